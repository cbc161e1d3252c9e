"""A result without rows says why, with the terms of the data; a result with rows does not.

Random queries over random data: `why_empty` is true exactly if there are no rows besides those of
empty groups, it has a reason, and a pattern of which it says that nothing matches has no match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from support.engine import Data
from support.families import FAMILIES, of_family
from support.generate import DIALECTS, EVERYTHING, queries
from support.histories import data
from support.well_formed_html import Balanced

import streamsparql
from streamsparql.algebra.match import TriplePattern, match
from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.terms import Triple
from streamsparql.cli import main
from streamsparql.display.why_empty import WhyEmpty
from streamsparql.look.emptiness import matchings_without_rows, why_empty
from streamsparql.look.emptiness.evidence import Evidence, Source
from streamsparql.look.emptiness.probe import ITEMS, Probe
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.run.causes import causes
from streamsparql.run.input import RunInput

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

PREFIX = "PREFIX : <http://e/>\n"
S, R = "http://e/s", "http://e/r"
HALF_MINUTE = "FROM STREAM :s WINDOW RANGE 30 SECOND SLIDE 10 SECOND "
BOTH = HALF_MINUTE + "FROM STREAM :r WINDOW RANGE 30 SECOND SLIDE 10 SECOND "
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def iri(name: str) -> str:
    return f"<http://e/{name}>"


def number(n: int) -> str:
    return f'"{n}"^^<{INTEGER}>'


ITEMS_OF_S = [
    (iri("a"), iri("value"), number(20), 5_000),
    (iri("b"), iri("value"), number(25), 12_000),
    (iri("a"), iri("value"), number(24), 21_000),
    (iri("a"), TYPE, iri("Sensor"), 21_000),
]
ITEMS_OF_R = [(iri("a"), iri("door"), iri("open"), 10_000)]
TEXTS = [(s, p, o.partition("^")[0], t) for s, p, o, t in ITEMS_OF_S[:3]]


def check_html(html: str) -> None:
    """Check that HTML is well formed."""
    page = Balanced()
    page.feed(html)
    assert not page.open


def why(text: str, streams: Any = None, **options: Any) -> WhyEmpty:
    """Run a query over the items above, and return why its result is empty."""
    query = streamsparql.compile(PREFIX + text)
    known = {S: ITEMS_OF_S, R: ITEMS_OF_R}
    streams = {n: known[n] for n in query.streams} if streams is None else {S: streams}
    return query.run(streams, **options).why_empty()


# (query, items of :s or None for those above, options, the first line, a part of the details)
CASES: list[tuple[str, Any, dict[str, Any], str, str]] = [
    (
        HALF_MINUTE + "{ ?x :Value ?v }", None, {},
        "no rows: nothing matches ?x :Value ?v; did you mean :value?",
        ":s has 4 items: :value (3), <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> (1)",
    ),
    (
        HALF_MINUTE + "{ ?x <https://e/value/> ?v }", None, {},
        "no rows: nothing matches ?x <https://e/value/> ?v; did you mean :value?", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v ; :in ?room }", None, {},
        "no rows: nothing matches ?x :in ?room;"
        " if it is static data, pass --graph FILE, or graph= in Python", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v ; :in ?room }", None,
        {"graph": [(iri("a"), iri("isIn"), iri("hall"))]},
        "no rows: nothing matches ?x :in ?room; did you mean :isIn?",
        "the default graph has 1 triple: :isIn (1)",
    ),
    (
        HALF_MINUTE + "{ ?x a :Sensr }", None, {},
        "no rows: nothing matches ?x a :Sensr; did you mean :Sensor?", "the classes: :Sensor",
    ),
    (
        HALF_MINUTE + "{ ?x :value '20' }", None, {},
        'no rows: nothing matches ?x :value "20"; did you mean 20?', "the objects of :value: 20, 24, 25",
    ),
    (
        HALF_MINUTE + "{ :c :value ?v }", None, {},
        "no rows: nothing matches :c :value ?v", "the subjects of :value: :a, :b",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?x }", None, {},
        "no rows: nothing matches ?x :value ?x", "equal terms at the places of ?x",
    ),
    (
        "FROM NAMED STREAM :s WINDOW RANGE 30 SECOND SLIDE 10 SECOND { ?x :value ?v }", None, {},
        "no rows: nothing matches ?x :value ?v; :s has it, which only GRAPH :s { .. } reads", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v FILTER(?v > 200) }", None, {},
        "no rows: FILTER(?v > 200) is false for all 3 rows", "?v is 20, 24, 25",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v FILTER(?v > 20) }", TEXTS, {},
        "no rows: FILTER(?v > 20) is an error for all 3 rows; cast it: xsd:decimal(?v)",
        '?v is "20", "24", "25" (strings)',
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v FILTER(?v > 3 && ?x = :A) }", None, {},
        "no rows: FILTER(?x = :A) is false for all 3 rows; did you mean :a?", "?x is :a, :b",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v FILTER(?v < 22 && ?x = :b) }", None, {},
        "no rows: no row passes all conditions of FILTER((?v < 22) && (?x = :b))", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v FILTER(?x > 5) }", None, {},
        "no rows: FILTER(?x > 5) is an error for all 3 rows; an IRI has no order; STR(?x) is its text", "",
    ),
    (
        "?x (AVG(?v) AS ?m) " + HALF_MINUTE + "{ ?x :value ?v } GROUP BY ?x HAVING(AVG(?v) > 99)", None, {},
        "no rows: HAVING(?m > 99) is false for all", "?m is 20, 22, 24, 25",
    ),
    (
        "?x ?v ?d FROM STREAM :s WINDOW RANGE 10 SLIDE 1 FROM STREAM :r WINDOW RANGE 10 SLIDE 1"
        " { ?x :value ?v ; :door ?d }", None, {},
        "no rows: ?x :value ?v and ?x :door ?d match, but never at the same time;"
        " 10 without a unit is 10 ms; write 10 SECOND", "the nearest rows are 4 s 990 ms apart",
    ),
    (
        BOTH + "{ ?x :value ?v . ?y :door ?x }", None, {},
        "no rows: ?x :value ?v and ?y :door ?x have no value of ?x in common", "?x is :open",
    ),
    (
        HALF_MINUTE + "{ VALUES ?x { 'a' } ?x :value ?v }", None, {},
        "no rows: VALUES and ?x :value ?v have no value of ?x in common;"
        ' "a" is not the same term as :a', "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v }", None, {"end": 2_000},
        "no rows: all 3 rows hold outside of the horizon until 2,000 ms;"
        " change --from and --until, or start= and end= in Python",
        "they hold from 5,000 ms to 50,000 ms",
    ),
    (HALF_MINUTE + "{ ?x :value ?v }", [], {}, "no rows: the stream :s has no items", ""),
    (
        HALF_MINUTE + "{ ?x :value ?v }", [(*ITEMS_OF_S[0][:3], "noon")], {},
        "no rows: the only item of :s was rejected", "not a valid timestamp: 'noon'",
    ),
    (HALF_MINUTE + "{ ?x :value ?v } LIMIT 0", None, {}, "no rows: LIMIT 0 keeps no row", ""),
    (
        HALF_MINUTE + "{ ?x :value ?v } OFFSET 9", None, {},
        "no rows: OFFSET 9 skips all rows of each instant", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v FILTER(1 > 2) }", None, {},
        "no rows: this filter is false or an error for every row, so no row passes", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v OPTIONAL { ?x :door ?d FILTER(1 > 2) } FILTER(?v > 99) }", None, {},
        "no rows: FILTER(?v > 99) is false for all 3 rows", "",
    ),
    (
        BOTH + "{ VALUES (?x ?v) { (:a 25) (:b 20) } ?x :value ?v }", None, {},
        "no rows: VALUES and ?x :value ?v have no values of ?x and ?v in common", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v FILTER NOT EXISTS { ?x :value ?w } }", None, {},
        "no rows: NOT EXISTS removes all 3 rows of ?x :value ?v", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v FILTER EXISTS { ?x :Value ?w } }", None, {},
        "no rows: nothing matches ?x :Value ?w; did you mean :value?", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value ?v MINUS { ?x :value ?v } }", None, {},
        "no rows: MINUS removes all 3 rows of ?x :value ?v", "",
    ),
    (
        "FROM STREAM :s [RANGE TRIPLES 9 STEP 9] { ?x :value ?v }", None, {},
        "no rows: the window emits at each 9th triple, and the stream has 4; set a smaller STEP", "",
    ),
    (
        "FROM NAMED WINDOW :w ON :s [RANGE PT1S STEP PT30S] { WINDOW :w { ?x :value ?v } }", None, {},
        "no rows: 3 items of the stream fall between two windows; set STEP to RANGE or less", "",
    ),
    (
        "(AVG(?v) AS ?m) " + HALF_MINUTE + "{ ?x :vaule ?v }", None, {},
        "rows of empty groups only: nothing matches ?x :vaule ?v; did you mean :value?", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value/:next ?v }", None, {},
        "no rows: nothing matches _:b0 :next ?v;"
        " if it is static data, pass --graph FILE, or graph= in Python", "",
    ),
    (
        HALF_MINUTE + "{ ?x :door+ ?v }", None, {},
        "no rows: nothing matches the step :door of a property path; are these the data of :s?", "",
    ),
    (
        HALF_MINUTE + "{ ?x :value+ :c }", None, {},
        "no rows: no way along the property path ends where the query says", "",
    ),
    (
        HALF_MINUTE + "{ { ?x :Value ?v } UNION { ?x :values ?v } }", None, {},
        "no rows: nothing matches ?x :Value ?v; did you mean :value?",
        "and: nothing matches ?x :values ?v; did you mean :value?",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "items", "options", "first", "detail"), CASES)
def test_the_reason_names_what_left_no_rows(
    text: str, items: Any, options: dict[str, Any], first: str, detail: str
) -> None:
    select = "SELECT " if text.startswith(("?", "(")) else "SELECT * "
    reason = why(select + text, items, **options)
    lines = str(reason).splitlines()
    assert reason
    assert lines[0].startswith(first)
    assert any(detail in line for line in lines)
    check_html(reason._repr_html_())


def test_a_reason_points_to_the_text() -> None:
    (reason,) = why("SELECT * " + HALF_MINUTE + "{ ?x :value ?v ; :Value ?w }").reasons
    text = PREFIX + "SELECT * " + HALF_MINUTE + "{ ?x :value ?v ; :Value ?w }"
    assert reason.span is not None
    assert reason.span.of(text) == ":Value ?w"
    assert reason.code == "no-match"


def test_a_result_with_rows_has_no_reasons() -> None:
    reason = why("SELECT * " + HALF_MINUTE + "{ ?x :value ?v }")
    assert not reason
    assert str(reason) == "the result has rows"
    assert reason.reasons == ()


def test_an_answer_that_is_never_true_has_a_reason() -> None:
    assert str(why("ASK " + HALF_MINUTE + "{ ?x :value 99 }")).startswith(
        "false at every instant: nothing matches ?x :value 99"
    )
    assert not why("ASK " + HALF_MINUTE + "{ ?x :value 20 }")


def test_reports_without_rows_have_a_reason() -> None:
    query = streamsparql.compile(
        PREFIX + "SELECT * FROM STREAM :s WINDOW RANGE 1 SECOND SLIDE 1 SECOND { ?x :value ?v }"
    )
    result = query.run(ITEMS_OF_S[:1])
    assert not result.why_empty()
    reason = result.why_empty(report="rstream", every=3_600_000)
    assert str(reason).startswith(
        "no rows in any report: none of 1 row holds at the instant of a report, every 1 h"
    )
    assert not result.why_empty(report="rstream", every=1_000)


# -- sources that are read once, and large ones ----------------------------------------------------


def test_sources_that_are_read_once_have_reasons_by_their_counts() -> None:
    text = "SELECT * " + HALF_MINUTE
    reason = why(text + "{ ?x :Value ?v }", iter(ITEMS_OF_S))
    assert "did you mean :value?" in str(reason)
    assert reason.notes == (
        "a source can be read only once: the reasons are from the counts of the run",
    )
    assert str(why(text + "{ ?x :value ?v FILTER(?v > 99) }", iter(ITEMS_OF_S))).startswith(
        "no rows: none of 3 rows passes FILTER(?v > 99)"
    )
    joined = why(text + "{ ?x :value ?v . ?v :value ?w }", iter(ITEMS_OF_S))
    assert "never join: 3 and 3 rows" in str(joined)


def test_of_much_data_the_first_items_are_read_again() -> None:
    """The counts are those of the run over all items; the terms are those of the first ones."""
    many = [(iri(f"x{k}"), iri("pq"[k // 70_000]), number(k), k) for k in range(140_000)]
    text = "SELECT * FROM STREAM :s WINDOW RANGE 9 MS FIXED "
    for condition, first in (
        ("?x :p ?v FILTER(?v < 0)", "FILTER(?v < 0) is false for all"),
        ("?x :q ?v . ?v :q ?w", "the rows of ?x :q ?v and ?v :q ?w never join: 70,000 and 70,000"),
        ("?x :P ?v", "nothing matches ?x :P ?v; did you mean :p?"),
    ):
        query = streamsparql.compile(f"{PREFIX}{text}{{ {condition} }}")
        computation = query.run(many).computation
        reason = why_empty(query, computation.input, computation.finished(), items=100)
        assert str(reason).startswith(f"no rows: {first}")
        assert reason.notes == ("of the data, the first 65,536 items were read again",)


def test_late_and_rejected_items_are_noted() -> None:
    items = [ITEMS_OF_S[2], ITEMS_OF_S[0], (*ITEMS_OF_S[0][:3], "noon")]
    reason = why("SELECT * " + HALF_MINUTE + "{ ?x :value 20 }", items)
    assert reason.notes == ("1 of 3 items was late", "1 of 3 items was rejected")


def test_a_source_that_is_gone_is_an_error_of_the_second_run(tmp_path: Path) -> None:
    (file := tmp_path / "s.nq").write_text(f"{iri('a')} {iri('p')} {number(1)} 5 .\n")
    result = streamsparql.compile(PREFIX + "SELECT * " + HALF_MINUTE + "{ ?x :q ?v }").run(file)
    assert list(result) == []
    file.unlink()
    with pytest.raises(streamsparql.SourceError):
        result.why_empty()


# -- displays --------------------------------------------------------------------------------------


def test_printed_and_notebook_results_say_why() -> None:
    result = streamsparql.compile(PREFIX + "SELECT * " + HALF_MINUTE + "{ ?x :Value ?v }").run(
        ITEMS_OF_S
    )
    assert "did you mean :value?" in str(result)
    assert "did you mean :value?" in result._repr_html_()
    other = streamsparql.compile(PREFIX + "SELECT * " + HALF_MINUTE + "{ ?x :value ?v }")
    assert "did you mean" not in str(other.run(ITEMS_OF_S))


def test_the_command_line_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (f"{s} {p} {o} {number(t)} .\n" for s, p, o, t in ITEMS_OF_S)
    (tmp_path / "s.nq").write_text("".join(lines))
    (tmp_path / "q.rq").write_text(PREFIX + "SELECT * " + HALF_MINUTE + "{ ?x :Value ?v }")
    command = ["run", str(tmp_path / "q.rq"), "--stream", str(tmp_path / "s.nq")]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1
    assert "no rows: nothing matches ?x :Value ?v; did you mean :value?" in shown.err
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


# -- random queries --------------------------------------------------------------------------------


def triples_of(over: Data, read: Sequence[Source]) -> Iterator[Triple]:
    """Yield the triples of streams and graphs."""
    parts: list[tuple[str, str, str]] = []
    for source in read:
        name = "" if source.iri is None else source.iri.value
        if source.stream:
            parts += (x for x, _ in over.streams.get(name, ()))
        else:
            parts += over.graphs.get(name, ()) if name else over.graph
    for part in parts:
        subject, predicate, value = map(parse_term, part)
        assert subject is not None
        assert predicate is not None
        assert value is not None
        yield Triple(subject, predicate, value)


def pattern_of(operator: Operator) -> TriplePattern | None:
    return operator.pattern if isinstance(operator, TriplePatternMatching) else None


def check_reasons(text: str, over: Data) -> None:
    """Check that an empty result has reasons, and that patterns without a match have none."""
    query = streamsparql.compile(text)
    over = over.of(query, every_graph=False)
    streams = {name: [(*x, t) for x, t in items] for name, items in over.streams.items()}
    result = query.run(streams, over.graph, over.graphs)
    reason = result.why_empty()
    rows = list(result)
    if query.form == "ask":
        assert bool(reason) == (not any(row["answer"] for row in rows))
    elif not rows:
        assert reason
    elif reason:
        assert reason.outcome == "rows of empty groups only"
    if not reason:
        return
    assert reason.reasons, text
    assert re.match(r"[a-z ]+: ", str(reason))
    check_html(reason._repr_html_())
    probe = Probe(query, RunInput(streams, over.graph, over.graphs))
    probe.run(ITEMS)
    evidence, emptied = Evidence(query, probe, probe), causes(probe.pipeline)
    for pattern, matchings in matchings_without_rows(evidence, emptied).items():
        if {each for each in probe.pipeline.operators if pattern_of(each) == pattern} - {
            *matchings
        }:
            continue  # it has matches in another window
        read = [source for source in evidence.sources(pattern) if source.read]
        if not {"ELEMS", "TRIPLES"} & {*re.findall(r"[A-Z]+", text)}:
            assert not any(match(pattern, triple) for triple in triples_of(over, read)), text
    assert why_empty(query, None, probe).empty


@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_empty_result_has_a_reason(dialect: str) -> None:
    @settings(max_examples=20)
    @given(queries(replace(EVERYTHING, dialect=dialect)), data)
    def has_a_reason(text: str, over: Data) -> None:
        check_reasons(text, over)

    has_a_reason()


@pytest.mark.parametrize("family", FAMILIES)
def test_an_empty_result_of_any_operator_has_a_reason(family: str) -> None:
    @settings(max_examples=6)
    @given(of_family(family), data)
    def has_a_reason(text: str, over: Data) -> None:
        check_reasons(text, over)

    has_a_reason()


@pytest.mark.long
@settings(max_examples=3000)
@given(queries(EVERYTHING), data)
def test_any_of_many_empty_results_has_a_reason(text: str, over: Data) -> None:
    check_reasons(text, over)
