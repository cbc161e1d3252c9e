"""The translation of each dialect: windows, sets or multisets, scopes, reports; and detection."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.plans import events, plan, rows

import streamsparql
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.algebra.match import TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.shape import UNIT, Distinct
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.window import (
    FixedWindow,
    NowWindow,
    SlidingDeltaWindow,
    SlidingTupleWindow,
    SteppedTupleWindow,
    SteppedWindow,
    UnboundedWindow,
    Window,
)
from streamsparql.cli.common_options import DIALECT_CHOICES, ENTAILMENT_CHOICES
from streamsparql.translator.dialects import DIALECTS, dialect_named
from streamsparql.translator.translate import ENTAILMENTS
from streamsparql.translator.unparse import unparse

S, MINUTE, HOUR = 1000, 60_000, 3_600_000
ANY_INPUT = UNIT


def windows(text: str, **options: object) -> list[Window]:
    """Return the distinct windows of a query's plan in reading order, without their inputs."""
    plan = streamsparql.compile(text, **options).logical
    distinct: dict[Plan, None] = {}
    for node in plan.walk():
        if isinstance(node, Window):
            distinct.setdefault(node.with_inputs(ANY_INPUT))
    return list(distinct)


def native(clause: str) -> str:
    return f"SELECT * FROM STREAM <s> {clause} {{ ?a ?b ?c }}"


def csparql(clause: str) -> str:
    return f"REGISTER QUERY q AS SELECT * FROM STREAM <s> [{clause}] {{ ?a ?b ?c }}"


def cqels(clause: str) -> str:
    return f"SELECT * {{ STREAM <s> [{clause}] {{ ?a ?b ?c }} }}"


def rspql(clause: str) -> str:
    return f"SELECT * FROM NAMED WINDOW <w> ON <s> [{clause}] {{ WINDOW <w> {{ ?a ?b ?c }} }}"


def sliding(width: int, slide: int = 1) -> Window:
    return SlidingDeltaWindow(ANY_INPUT, width, slide)


def closed_right(width: int, step: int) -> Window:
    return SteppedWindow(ANY_INPUT, width, step, "right")


def closed_left(width: int, step: int) -> Window:
    return SteppedWindow(ANY_INPUT, width, step, "left", name="<w>")


CLAUSES = [
    (native("WINDOW RANGE 30 MINUTE SLIDE"), sliding(30 * MINUTE, MINUTE)),  # R11
    (native("WINDOW RANGE 30 MINUTE"), sliding(30 * MINUTE, MINUTE)),  # R10
    (native("WINDOW RANGE 30 SLIDE"), sliding(30)),
    (native("WINDOW RANGE 30"), sliding(30)),
    (native("WINDOW RANGE 2 HOURS SLIDE 90 SECONDS"), sliding(2 * HOUR, 90 * S)),
    (native("WINDOW RANGE 1 WEEK SLIDE 1 DAY"), sliding(7 * 24 * HOUR, 24 * HOUR)),
    (native("WINDOW RANGE 30 SLIDE 10"), sliding(30, 10)),
    (native("WINDOW RANGE 30 MINUTE FIXED"), FixedWindow(ANY_INPUT, 30 * MINUTE)),
    (native("WINDOW ELEMS 1500"), SlidingTupleWindow(ANY_INPUT, 1500)),
    (csparql("RANGE 10s STEP 2s"), closed_right(10 * S, 2 * S)),
    (csparql("RANGE 30m STEP 5m"), closed_right(30 * MINUTE, 5 * MINUTE)),
    (csparql("RANGE 500 ms STEP 100 ms"), closed_right(500, 100)),
    (csparql("RANGE 1h TUMBLING"), closed_right(HOUR, HOUR)),
    (csparql("RANGE 1d STEP 1h"), closed_right(24 * HOUR, HOUR)),
    (csparql("RANGE TRIPLES 100"), SlidingTupleWindow(ANY_INPUT, 100)),
    (csparql("RANGE TRIPLES 100 STEP 10"), SteppedTupleWindow(ANY_INPUT, 100, 10)),
    (cqels("NOW"), NowWindow(ANY_INPUT)),
    (cqels("ALL"), UnboundedWindow(ANY_INPUT)),
    (cqels("TRIPLES 5"), SlidingTupleWindow(ANY_INPUT, 5)),
    (cqels("RANGE 30 seconds"), sliding(30 * S)),
    (cqels("RANGE 3s SLIDE 1s"), sliding(3 * S, S)),
    (rspql("RANGE PT10S STEP PT5S"), closed_left(10 * S, 5 * S)),
    (rspql("RANGE PT1H30M STEP PT1M"), closed_left(90 * MINUTE, MINUTE)),
    (rspql("RANGE 10 STEP 5"), closed_left(10, 5)),
    (rspql("ELEMENTS 3"), SlidingTupleWindow(ANY_INPUT, 3, name="<w>")),
]


@pytest.mark.parametrize(("text", "window"), CLAUSES)
def test_a_clause_becomes_a_window(text, window):
    assert windows(text) == [window]


@pytest.mark.parametrize("text", [csparql("RANGE 10s STEP 5s"), rspql("RANGE PT9S STEP PT3S")])
def test_origin_moves_the_grid(text):
    (window,) = windows(text, origin=1700)
    assert window.origin == 1700


@pytest.mark.parametrize(
    ("text", "is_set"),
    [
        (native("WINDOW ELEMS 3"), False),
        (csparql("RANGE 10s STEP 5s"), True),
        (cqels("ALL"), True),
        (rspql("RANGE PT9S STEP PT3S"), True),
    ],
)
def test_a_window_holds_a_multiset_or_a_set(text, is_set):
    """Section 4: duplicates in a window count twice in Streaming SPARQL only."""
    assert any(isinstance(node, Distinct) for node in plan(text).walk()) == is_set
    twice = events(("a p b", 4), ("a p b", 4), name="s")
    counts = {len(list(plan(text).at(t, twice))) for t in (5, 6 * S)}
    assert max(counts) == (1 if is_set else 2)


REPORTS = [
    (native("WINDOW RANGE 10 S SLIDE 2 S"), (None, 2 * S, None)),
    (csparql("RANGE 10s STEP 2s"), ("rstream", 2 * S, "q")),
    (
        "REGISTER STREAM out COMPUTED EVERY 5m AS CONSTRUCT { ?a <p> ?b } "
        "FROM STREAM <s> [RANGE 10s STEP 2s] { ?a <q> ?b }",
        ("rstream", 5 * MINUTE, "out"),
    ),
    (cqels("RANGE 3s SLIDE 1s"), ("istream", None, None)),
    (
        "REGISTER DSTREAM <out> AS SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT9S STEP PT3S] "
        "{ WINDOW <w> { ?a ?b ?c } }",
        ("dstream", 3 * S, "out"),
    ),
    (
        "SELECT ISTREAM * FROM NAMED WINDOW <w> ON <s> [RANGE PT9S STEP PT3S] "
        "{ WINDOW <w> { ?a ?b ?c } }",
        ("istream", 3 * S, None),
    ),
]


@pytest.mark.parametrize(("text", "report"), REPORTS)
def test_a_report_is_that_of_the_query(text, report):
    parsed = streamsparql.compile(text).report
    assert (parsed.kind, parsed.every, parsed.name) == report


# -- scopes ----------------------------------------------------------------------------------------


def windows_of_pattern(text: str, predicate: str) -> list[Window]:
    """Return the windows that apply to the triple pattern with a predicate."""
    distinct: dict[Plan, None] = {}
    for node in streamsparql.compile(text).logical.walk():
        above = isinstance(node, Window) and isinstance(node.input, TriplePatternMatching)
        matching = node.input if above else node
        if isinstance(matching, TriplePatternMatching) and matching.pattern.predicate == IRI(
            predicate
        ):
            windows = [n for n in node.walk() if isinstance(n, Window)]
            distinct.update((window.with_inputs(ANY_INPUT), None) for window in windows)
    return list(distinct)


DEEP = (
    native("WINDOW RANGE 9").replace("{ ?a ?b ?c }", "")
    + """{ ?x <one> 1
    { ?x <two> 2 { ?x <three> 3 WINDOW ELEMS 3 } OPTIONAL { ?x <four> 4 } WINDOW ELEMS 2 }
    FILTER EXISTS { ?x <five> 5 { ?x <six> 6 } WINDOW ELEMS 5 }
    { SELECT ?x { ?x <seven> 7 { ?x <eight> 8 WINDOW RANGE 8 } } } }"""
)


@pytest.mark.parametrize(
    ("pattern", "window"),
    [
        ("one", sliding(9)),
        ("two", SlidingTupleWindow(ANY_INPUT, 2)),
        ("three", SlidingTupleWindow(ANY_INPUT, 3)),  # the innermost wins
        ("four", SlidingTupleWindow(ANY_INPUT, 2)),  # R5: it applies to nested groups
        ("five", SlidingTupleWindow(ANY_INPUT, 5)),
        ("six", SlidingTupleWindow(ANY_INPUT, 5)),
        ("seven", sliding(9)),
        ("eight", sliding(8)),
    ],
)
def test_the_innermost_window_applies(pattern, window):
    assert windows_of_pattern(DEEP, pattern) == [window]


def test_a_group_window_counts_matches_and_a_from_window_counts_statements():
    """R6: the position of a window, below or above the matching."""
    data = events(("a p 1", 1), ("a q 1", 2), ("a q 2", 3), name="s")
    below = "SELECT ?o FROM STREAM <s> WINDOW ELEMS 2 { ?s <p> ?o }"
    above = "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 { ?s <p> ?o WINDOW ELEMS 2 }"
    assert plan(below).at(3, data) == rows()
    assert plan(above).at(3, data) == rows({"o": "1"})


def test_a_block_keeps_its_window_inside_a_group_with_a_window():
    text = "SELECT * { { STREAM <s> [NOW] { ?a <one> ?c } WINDOW ELEMS 5 } }"
    assert windows_of_pattern(text, "one") == [NowWindow(ANY_INPUT)]
    text = rspql("RANGE 9 STEP 3").replace("?c }", "?c } WINDOW ELEMS 5").replace("?b", "<one>")
    assert windows_of_pattern(text, "one") == [closed_left(9, 3)]


def test_report_instants_are_those_at_which_windows_move():
    """R4: a window of RSP-QL is reported at its close, which STEP need not divide."""
    report = streamsparql.compile(rspql("RANGE PT10S STEP PT3S"), origin=5).report
    assert (report.every, report.origin) == (3 * S, 1005)
    two = (
        "SELECT * FROM NAMED WINDOW <v> ON <s> [RANGE 10 STEP 4] "
        "FROM NAMED WINDOW <w> ON <s> [RANGE 9 STEP 4] { WINDOW ?w { ?a ?b ?c } }"
    )
    report = streamsparql.compile(two).report
    assert (report.every, report.origin) == (1, 0)


# -- detection of the dialect ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("SELECT * { ?s ?p ?o }", "streaming"),
        (native("WINDOW ELEMS 3"), "streaming"),
        (csparql("RANGE 10s STEP 5s"), "csparql"),
        ("SELECT * FROM STREAM <s> [RANGE 10s TUMBLING] { ?s ?p ?o }", "csparql"),
        (cqels("NOW"), "cqels"),
        ("SELECT * FROM NAMED <s> [NOW] AS ?w { GRAPH ?w { ?s ?p ?o } }", "cqels"),
        ("SELECT * { { ?a <p> ?b } SEQ { ?b <p> ?c } }", "epsparql"),
        ("SELECT ISTREAM * FROM STREAM <s> [RANGE 10s STEP 5s] { ?s ?p ?o }", "csparql"),
        ("SELECT ISTREAM * FROM STREAM <s> WINDOW RANGE 9 { ?s ?p ?o }", "streaming"),
        ("REGISTER ISTREAM o AS SELECT * { STREAM <s> [NOW] { ?s ?p ?o } }", "cqels"),
        ("SELECT ISTREAM * { ?s ?p ?o }", "rspql"),
        ("SELECT ?s AS ?n FROM STREAM <s> [RANGE 10s STEP 5s] { ?s ?p ?o }", "csparql"),
        ("SELECT * { ?a <p> ?b FILTER(getDURATION() < 'PT1M') }", "epsparql"),
        (rspql("RANGE PT9S STEP PT3S"), "rspql"),
    ],
)
def test_auto_detects_the_dialect(text, dialect):
    query = streamsparql.compile(text)
    assert query.dialect == dialect
    assert streamsparql.compile(text, dialect=dialect).logical == query.logical


@pytest.mark.parametrize("text", [c[0] for c in CLAUSES])
@pytest.mark.parametrize("dialect", ["streaming", "csparql", "cqels", "epsparql", "rspql"])
def test_a_query_in_another_dialect_compiles_with_a_warning_or_is_refused(text, dialect):
    detected = streamsparql.compile(text).dialect
    try:
        query = streamsparql.compile(text, dialect=dialect)
    except streamsparql.StreamSparqlError as error:
        assert detected != dialect
        assert "line 1" in str(error)
        return
    assert detected == dialect or any(w.code == "foreign" for w in query.check())


def test_events_are_read_from_the_default_stream():
    query = streamsparql.compile("SELECT * { { ?a <p> ?b } SEQ { ?b <p> ?c } }")
    assert query.streams == (DEFAULT_STREAM.value,)


# -- a dialect is a record -------------------------------------------------------------------------

ROUND_TRIPS = {
    "streaming": native("WINDOW RANGE 10 S SLIDE 1 S"),
    "csparql": "SELECT * FROM STREAM <s> [RANGE 9s STEP 3s] { ?a ?b ?c GRAPH <s> { ?c ?d ?e } }",
    "cqels": cqels("RANGE 9s SLIDE 3s"),
    "epsparql": "SELECT * { { ?a <p> ?b } SEQ { ?b <p> ?c } }",
    "rspql": rspql("RANGE PT9S STEP PT3S"),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_copy_of_a_dialect_under_another_name_behaves_the_same(name, monkeypatch):
    """Dialects differ only in their fields."""
    copy = replace(DIALECTS[name], name="copied", title="A copy", aliases=())
    monkeypatch.setitem(DIALECTS, "copied", copy)
    original = streamsparql.compile(ROUND_TRIPS[name], dialect=name)
    copied = streamsparql.compile(ROUND_TRIPS[name], dialect="copied")
    assert copied.dialect == "copied"
    assert copied.logical == original.logical
    assert copied.report == original.report
    assert unparse(original.logical, "copied") == unparse(original.logical, name)


def test_no_code_depends_on_the_name_of_a_dialect():
    comparison = re.compile(
        r"dialect\.(name|title)\s*(==|!=|in\b|not in\b)|\[[\w.]*dialect\.name\]"
    )
    for folder in ("translator", "physical", "streamsparql"):
        for file in (Path(__file__).parents[2] / folder).rglob("*.py"):
            assert not comparison.search(file.read_text("utf-8")), file


def test_the_command_line_offers_all_dialects():
    assert ("auto", *DIALECTS) == DIALECT_CHOICES
    assert ENTAILMENTS == ENTAILMENT_CHOICES


@pytest.mark.parametrize("name", ["Streaming SPARQL", "native", "SPARQL", "C-SPARQL", "rsp_ql"])
def test_names_of_dialects_have_several_spellings(name):
    assert dialect_named(name) in DIALECTS.values()
