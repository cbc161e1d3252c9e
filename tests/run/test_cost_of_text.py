"""The cost of a query as a function of its text: twice the text is about twice the work.

Work is the number of calls that Python reports to a profiler, not time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

import streamsparql

SIZES = (30, 60, 120)
MOST_GROWTH = 3.0
"""The second doubling adds at most this many times the work of the first; linear work adds 2."""

ITEMS = [("<s>", "<p>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', 1)]

Chain = Callable[[int], str]


def _numbered(text: str, between: str = " ") -> Chain:
    """Return a function that repeats a text; `{}` in it is replaced by the index of the copy."""
    return lambda n: between.join(text.replace("{}", str(k)) for k in range(n))


def _around(before: str, chain: Chain, after: str) -> Chain:
    return lambda n: before + chain(n) + after


def _where(chain: Chain) -> Chain:
    return _around("SELECT * FROM STREAM <s> WINDOW RANGE 10 { ", chain, " }")


def _filter(before: str, chain: Chain, after: str) -> Chain:
    return _where(_around(f"?s ?p ?o FILTER({before}", chain, f"{after})"))


CHAINS: dict[str, Chain] = {
    "unions": _where(_numbered("{ ?s <p{}> ?o }", " UNION ")),
    "optionals": _where(_around("?s ?p ?o ", _numbered("OPTIONAL { ?s <q{}> ?v }"), "")),
    "minus": _where(_around("?s ?p ?o ", _numbered("MINUS { ?s <q{}> ?v }"), "")),
    "filters": _where(_around("?s ?p ?o ", _numbered("FILTER(?o != {})"), "")),
    "exists": _where(_around("?s ?p ?o ", _numbered("FILTER EXISTS { ?s ?p ?v{} }"), "")),
    "not exists": _where(_around("?s ?p ?o ", _numbered("FILTER NOT EXISTS { ?s <q{}> ?v }"), "")),
    "groups": _where(_numbered("{ ?s ?p ?o }")),
    "subqueries": _where(_numbered("{ SELECT DISTINCT ?s { ?s ?p ?o } }")),
    "triple patterns": _where(_around("?s ?p ?o .", _numbered("?s <q{}> ?o ."), "")),
    "members of a list": _where(_around("?s ?p (", _numbered("{}"), ")")),
    "values": _where(_around("?s ?p ?o VALUES (?o ?x) {", _numbered("({} 1)"), "}")),
    "||": _filter("", _numbered("?o = {}", " || "), ""),
    "&&": _filter("", _numbered("?o != {}", " && "), ""),
    "+ of constants": _filter("1", _numbered("+ 1"), " > 0"),
    "+": _filter("?o", _numbered("+ 1"), " > 0"),
    "-": _filter("?o", _numbered("- {}"), " < 0"),
    "signs": _filter("?o", _numbered("-1"), " < 0"),
    "*": _filter("?o", _numbered("* 1.5"), " > 0"),
    "/": _filter("?o", _numbered("/ 2e0"), " > 0"),
    "+ and *": _filter("?o", _numbered("+ ?o * 2"), " > 0"),
    "IN": _filter("?o IN (", _numbered("?o + {}", ", "), ")"),
    "NOT IN": _filter("?o NOT IN (", _numbered("{}", ", "), ")"),
    "CONCAT": _filter("CONCAT(", _numbered("STR(?o), '{}'", ", "), ") = ''"),
    "COALESCE": _filter("COALESCE(", _numbered("?u + {}", ", "), ") = 1"),
    "path sequences": _where(_around("?s ", _numbered("<p>", "/"), " ?o")),
    "path alternatives": _where(_around("?s ", _numbered("<p{}>", "|"), " ?o")),
    "closures": _where(_around("?s (", _numbered("^<p{}>", "|"), ")* ?o")),
    "aggregates": _around(
        "SELECT (",
        _numbered("SUM(?o)", " + "),
        " AS ?x) FROM STREAM <s> WINDOW RANGE 10 { ?s ?p ?o }",
    ),
    "HAVING": _around(
        "SELECT ?s FROM STREAM <s> WINDOW RANGE 10 { ?s ?p ?o } GROUP BY ?s HAVING ",
        _numbered("(COUNT(*) > {})"),
        "",
    ),
    "ORDER BY": _around(
        "SELECT * FROM STREAM <s> WINDOW RANGE 10 { ?s ?p ?o } ORDER BY ", _numbered("?o"), ""
    ),
    "streams": _around("SELECT * ", _numbered("FROM STREAM <s{}> WINDOW RANGE 10"), "{ ?s ?p ?o }"),
}
"""Queries that grow, by operator."""


def _calls(text: str) -> int:
    """Return the number of calls from the text of a query to its rows."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        query = streamsparql.compile(text)
        query.run(streams=dict.fromkeys(query.streams, ITEMS)).to_arrow()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_twice_the_text_is_about_twice_the_work(name: str) -> None:
    chain = CHAINS[name]
    _calls(chain(3))  # imports and first lookups
    one, two, four = (_calls(chain(n)) for n in SIZES)
    assert four - two < MOST_GROWTH * (two - one), (one, two, four)
