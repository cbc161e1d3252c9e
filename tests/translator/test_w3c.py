"""The W3C's tests of SPARQL 1.0 and 1.1, asked of the definitions of the algebra.

Static data always holds, so a query's answer over it is the snapshot of its plan at any instant.
The last part is about the comparison itself: a test that would pass whatever we answer proves
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from hypothesis import given
from hypothesis import strategies as st
from support import w3c
from support.external_data import over_data
from support.w3c import Answer, Case, Kind, Row

import streamsparql
from streamsparql import QueryError, QuerySyntaxError, UnsupportedFeature
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term
from streamsparql.translator.checks import check
from streamsparql.translator.parse import parse

DEVIATIONS: dict[str, str] = {}
"""Tests that we fail on purpose, by name, each with what the specification says to it."""


def _of(kind: Kind) -> Callable[[Path], Iterator[ParameterSet]]:
    def find(data: Path) -> Iterator[ParameterSet]:
        for case in w3c.cases(data):
            if case.kind == kind:
                reason = DEVIATIONS.get(case.name)
                marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
                yield pytest.param(case, id=case.name, marks=marks)

    return find


@pytest.mark.parametrize("case", over_data(_of("accepted")))
def test_a_query_is_accepted(case: Case) -> None:
    try:
        streamsparql.compile(case.text, base=case.query)
    except UnsupportedFeature:  # it calls a function of its own, which is no matter of syntax
        check(parse(case.text))


@pytest.mark.parametrize("case", over_data(_of("refused")))
def test_what_is_no_query_is_refused(case: Case) -> None:
    with pytest.raises((QuerySyntaxError, QueryError)):
        streamsparql.compile(case.text, base=case.query)


@pytest.mark.parametrize("stage", ["logical", "optimized"])
@pytest.mark.parametrize("case", over_data(_of("evaluated")))
def test_a_query_gives_the_answer(case: Case, stage: str) -> None:
    query = streamsparql.compile(case.text, base=case.query)
    plan: Plan = getattr(query, stage)
    ours = w3c.answer(query, plan.at(0, w3c.inputs(case, query)))
    difference = w3c.difference(case, query, ours, w3c.expected(case))
    assert not difference, difference


# -- the comparison --------------------------------------------------------------------------------


def test_no_lost_row_is_overlooked(data: Path) -> None:
    for case in w3c.cases(data):
        if case.kind == "evaluated":
            theirs = w3c.expected(case)
            assert w3c.agree(theirs, theirs, case.lax), case.name
            for i in range(len(theirs.rows)):
                fewer = replace(theirs, rows=theirs.rows[:i] + theirs.rows[i + 1 :])
                assert not w3c.agree(fewer, theirs), case.name


NODES = [BlankNode(label) for label in "abcd"]
CELLS: st.SearchStrategy[Term | None] = st.sampled_from([*NODES, IRI("i"), None])
ROWS = st.lists(st.tuples(CELLS, CELLS), max_size=7)
RENAMINGS = [dict(zip(NODES, nodes, strict=True)) for nodes in permutations(NODES)]


def _renamed(rows: Iterable[Row], renaming: dict[BlankNode, BlankNode]) -> list[Row]:
    return [tuple(renaming[x] if isinstance(x, BlankNode) else x for x in row) for row in rows]


def _solutions(rows: Iterable[Row], ordered: bool = False) -> Answer:
    return Answer("solutions", ("x", "y"), tuple(rows), ordered)


@given(ROWS, st.sampled_from(RENAMINGS), st.data())
def test_neither_the_names_of_blank_nodes_nor_the_order_of_rows_count(
    rows: list[Row], renaming: dict[BlankNode, BlankNode], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(_renamed(rows, renaming)))
    assert w3c.agree(_solutions(rows), _solutions(shuffled))


@given(ROWS, st.integers(0, 6), st.tuples(CELLS, CELLS))
def test_answers_agree_exactly_when_one_of_all_renamings_makes_them_equal(
    rows: list[Row], changed: int, row: Row
) -> None:
    others = [row if i == changed else old for i, old in enumerate(rows)]
    expected = any(Counter(_renamed(rows, one)) == Counter(others) for one in RENAMINGS)
    assert w3c.agree(_solutions(rows), _solutions(others)) == expected


X, Y = (IRI("x"), None), (IRI("y"), None)


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ([X, X, Y], [X, X, Y], True),
        ([X, Y], [X, X, Y], True),
        ([X, X, X, Y], [X, X, Y], False),
        ([X, X], [X, X, Y], False),
    ],
)
def test_reduced_may_drop_duplicates_and_nothing_else(
    ours: list[Row], theirs: list[Row], same: bool
) -> None:
    assert w3c.agree(_solutions(ours), _solutions(theirs), lax=True) == same


def test_numbered_rows_come_in_their_order() -> None:
    theirs = _solutions([X, Y, X], ordered=True)
    assert w3c.agree(_solutions([X, Y, X]), theirs)
    assert not w3c.agree(_solutions([X, X, Y]), theirs)


def _difference(text: str, ours: list[Term], theirs: list[Term], file: str = "a.srx") -> str:
    """Of two columns ?x."""
    case = Case("test", "evaluated", Path(), "", "", result=file)
    one, other = (Answer("solutions", ("x",), tuple((x,) for x in xs)) for xs in (ours, theirs))
    return w3c.difference(case, streamsparql.compile(text), one, other)


def _decimals(*lexical: str) -> list[Term]:
    return [Literal(x, IRI(XSD + "decimal")) for x in lexical]


def test_terms_of_the_data_are_compared_as_written_and_computed_ones_by_value() -> None:
    short, long = _decimals("0.5"), _decimals("0.50")
    assert _difference("SELECT ?x { ?s ?p ?x }", short, long)
    assert not _difference("SELECT ?x { BIND(1/2 AS ?x) }", short, long)
    assert not _difference("SELECT (AVG(?y) AS ?x) { ?s ?p ?y }", short, long)
    assert not _difference("SELECT ?x { ?s ?p ?x }", short, long, "a.tsv")
    assert _difference("SELECT ?x { BIND(1/2 AS ?x) }", short, _decimals("0.51"))
    assert _difference("SELECT ?x { BIND(1/2 AS ?x) }", short, [Literal("0.5")])


def test_rows_come_in_the_order_that_the_query_asks_for() -> None:
    one, other = _decimals("1", "2"), _decimals("2", "1")
    assert _difference("SELECT ?x { ?s ?p ?x } ORDER BY ?x LIMIT 9", other, one)
    assert not _difference("SELECT ?x { ?s ?p ?x } ORDER BY ?x", one, other)  # a file in disorder
    assert not _difference("SELECT ?x { ?s ?p ?x } ORDER BY (?x * 0)", one, other)
    assert not _difference("SELECT ?x { ?s ?p ?x }", one, other)


def test_what_a_select_shows_is_a_column_though_nothing_binds_it() -> None:
    """SPARQL 1.1, section 18.2.1: it is in scope, and stands in the head of the results."""
    inner = "{ SELECT ?x ?z { ?x ?p ?y } }"
    assert streamsparql.compile("SELECT ?x ?z { ?x ?p ?y }").variables == ("x", "z")
    assert streamsparql.compile(f"SELECT * {inner}").variables == ("x", "z")
    assert streamsparql.compile("SELECT ?x ?z { ?x ?p ?y MINUS { ?z ?p ?y } }").variables == (
        "x",
        "z",
    )
