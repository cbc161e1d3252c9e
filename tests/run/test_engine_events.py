"""Queries about events (EP-SPARQL) run as they are defined (SEMANTICS.md section 7).

Random trees of all operators over points and longer events, two streams and static triples are
compared with their definitions: the patterns step by step, each stream with a watermark of its own
(support/events.py), and whole queries in the modes of the engine, live and over histories. Absence
and sequences are compared with quantifiers in Python, too.

Not tested here: CONSTRUCT rules (test_engine_rules.py); how the operators save their states
(tests/physical/test_saved_states.py); the rules of the optimizer one by one
(tests/algebra/test_rules.py).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv
from pyarrow import parquet as pq
from support.engine import Mode, cells, settings_of, show
from support.engine import _cells_of_definition as cells_of_definition
from support.events import (
    PREFIX,
    EventWriter,
    difference,
    pattern_of,
    random_events,
)

import streamsparql
from streamsparql.algebra import event
from streamsparql.algebra.functions import Run
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operators import event_absence
from streamsparql.physical.operators.event import SeqJoin
from streamsparql.run.input import RunInput
from streamsparql.run.live import Live
from streamsparql.run.result import EmbeddedComputation, Result

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

SEEDS = st.integers(0, 2**32).map(Random)
"""Sources of random cases."""


def check_many(examples: int, check: Callable[[Random], None]) -> None:
    """Check random cases."""

    @settings(max_examples=examples)
    @given(SEEDS)
    def holds(random: Random) -> None:
        check(random)

    holds()


# -- patterns, step by step -------------------------------------------------------------------------


LINKS = ["SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL", "OPTIONAL", ""]


def check_pair(link: str, random: Random) -> None:
    check_text(EventWriter(random).pair(link), random, times=4)


def check_pattern(random: Random) -> None:
    check_text(EventWriter(random).where(), random)


def check_text(text: str, random: Random, times: int = 1) -> None:
    optimize, data = random.random() < 0.5, random_events(random)
    difference_ = difference(pattern_of(text), data, random, optimize, times)
    assert not difference_, f"{text}\n{difference_}"


@pytest.mark.parametrize("link", LINKS)
def test_operators_agree_with_the_definition_for_any_watermarks(link: str) -> None:
    check_many(80, partial(check_pair, link))


@pytest.mark.long
@pytest.mark.parametrize("link", LINKS)
def test_operators_agree_with_the_definition_for_many_watermarks(link: str) -> None:
    check_many(10_000, partial(check_pair, link))


def test_patterns_agree_with_the_definition_for_any_watermarks() -> None:
    check_many(250, check_pattern)


@pytest.mark.long
def test_many_patterns_agree_with_the_definition_for_any_watermarks() -> None:
    check_many(60_000, check_pattern)


def check_absence(random: Random) -> None:
    """Check absence as it is written; half of the time by the operators that replace it."""
    text = EventWriter(random).absence()
    data = random_events(random, most=10)
    with patch.object(event_absence, "_LEAST", random.choice([0, 1, 1024])):
        difference_ = difference(pattern_of(text), data, random, random.random() < 0.7)
    assert not difference_, f"{text}\n{difference_}"


def test_absence_agrees_with_the_definition() -> None:
    check_many(250, check_absence)


@pytest.mark.long
def test_absence_agrees_with_the_definition_in_many_cases() -> None:
    check_many(40_000, check_absence)


def check_without(random: Random) -> None:
    """Check the operator of absence in between for any keys that its sides share."""
    writer = EventWriter(random)
    left, right, absent = random.choice(
        [("?x", "?x", "?x"), ("?x", "?x", "?y"), ("?x", "?y", "?x"), ("?x", "?y", "?y"),
         ("?x", "?x", ":a"), (":a", ":b", "?x"), ("?x", "?y", "?a")]
    )  # fmt: skip
    sides = f"{left} :{writer.pick(*'pq')} ?a . ", f"{right} :{writer.pick(*'pq')} ?c . "
    sides = tuple(f"GRAPH :g {{ {side}}}" if writer.chance(30) else side for side in sides)
    if writer.chance(25):
        sides = f"{{ {sides[0]}}} SEQ {{ {left} :p ?e }}", sides[1]
    if writer.chance(25):
        sides = sides[0], f"{{ {sides[1]}}} SEQ {{ {right} :q ?f }}"
    between = f"{absent} :{writer.pick(*'pq')} {writer.pick('?b', '?b', '?a', '?c')} . "
    one, other, third = (pattern_of(f"{{ {text} }}") for text in (*sides, between))
    node = event.SeqWithout(one, other, third)
    bounded = pattern_of(f"{{ {sides[0]} FILTER({writer.duration('<')}) }}")
    pattern = node if writer.chance(40) else bounded.with_inputs(node)
    data = random_events(random, most=12)
    with patch.object(event_absence, "_LEAST", random.choice([0, 1, 1024])):
        difference_ = difference(pattern, data, random, optimize=False)
    assert not difference_, f"{sides} without {between}\n{difference_}"


def test_sequences_without_an_event_agree_with_the_definition() -> None:
    check_many(200, check_without)


@pytest.mark.long
def test_sequences_without_an_event_agree_with_the_definition_in_many_cases() -> None:
    check_many(30_000, check_without)


# -- whole queries ----------------------------------------------------------------------------------

Item = tuple[tuple[str, str, str], int, int]


def quoted(items: Sequence[tuple[str, int, int]]) -> list[Item]:
    """Return items with terms in N-Triples syntax, by their ends."""
    terms = [(tuple(f"<{word}>" for word in text.split()), a, b) for text, a, b in items]
    return sorted(terms, key=lambda item: item[2])


def disordered(items: Sequence[Item], delay: int, random: Random) -> list[Item]:
    """Shuffle items so that none is late by more than `delay`."""
    arrival = [(end + random.randint(0, delay), k) for k, (_, _, end) in enumerate(items)]
    return [items[k] for _, k in sorted(arrival)]


def rows_of_history(query: Any, run_input: RunInput) -> list[Any]:
    return list(Result(EmbeddedComputation(query, run_input)))


def rows_of_live_query(query: Any, run_input: RunInput, random: Random) -> list[Any]:
    """Push the items one by one, with other calls between them."""
    left = {name: list(items) for name, items in run_input.streams.items()}
    live = Live(query, run_input, emit=random.choice(["final", "eager"]))
    rows: list[Any] = []
    while waiting := [name for name in left if left[name]]:
        name = random.choice(waiting)
        match random.randrange(6):
            case 0:
                least = min(end for items in left.values() for _, _, end in items)
                live.advance(max(least - random.choice([0, 1]), 0))
            case 1:
                rows += live.rows()
            case _:
                live.push(name, *left[name].pop(0))
    live.close()
    assert not live.late
    return rows + live.rows()


def check_query(random: Random) -> None:
    text = PREFIX + EventWriter(random).query()
    query = streamsparql.compile(text, dialect="epsparql", optimize=random.random() < 0.7)
    data = random_events(random)
    streams = {name: quoted(data.streams[name]) for name in query.streams}
    static = [tuple(f"<{word}>" for word in text.split()) for text in data.static]
    definition = streamsparql.inputs(streams, static, run=Run())
    delay = random.choice([0, 0, 2, 5])
    arrived = {name: disordered(items, delay, random) for name, items in streams.items()}
    run_input = RunInput(arrived, static, max_delay=delay, started=0)
    mode = Mode(chunk=random.choice([1, 2, 3, 65_536]), cut_after=random.choice([1, 3, 65_536]))
    with settings_of(mode):
        if random.random() < 0.5:
            rows = rows_of_history(query, run_input)
        else:
            rows = rows_of_live_query(query, run_input, random)
    about_events = event.returns_events(query.optimized)
    for t in range(definition.start, 14):
        expected = Counter(
            cells_of_definition(query.form, x) for x in query.logical.at(t, definition)
        )
        here = (r for r in rows if (r.end == t if about_events else r.start <= t < r.end))
        detections = Counter(cells(query.form, row) for row in here)
        detections = Counter(set(detections)) if query.form == "construct" else detections
        assert detections == expected, (
            f"at {t}: {show(detections)}, not {show(expected)}\n{text}\n{arrived}"
        )


def test_queries_agree_with_the_definition_in_all_modes() -> None:
    check_many(150, check_query)


@pytest.mark.long
def test_many_queries_agree_with_the_definition_in_all_modes() -> None:
    check_many(30_000, check_query)


# -- against quantifiers ----------------------------------------------------------------------------


def random_items(random: Random, count: int) -> list[tuple[str, int, int]]:
    """Return events `(key, start, end)`, some of them points."""
    starts = [random.randint(0, 30) for _ in range(count)]
    return [(random.choice("xyz"), t, t + random.choice([0, 0, 1, 4])) for t in starts]


def items_of(**predicates: list[tuple[str, int, int]]) -> list[Item]:
    """Return items with a number for each event as value, by their ends."""
    items = [
        ((f"<{key}>", f"<{link}>", f"<{link}{k}>"), start, end)
        for link, events in predicates.items()
        for k, (key, start, end) in enumerate(events)
    ]
    return sorted(items, key=lambda item: item[2])


def short(milliseconds: int) -> str:
    return (
        f'getDURATION() < "PT{milliseconds / 1000}S"^^<http://www.w3.org/2001/XMLSchema#duration>'
    )


@pytest.mark.parametrize("seed", range(20))
def test_three_events_in_sequence_are_all_that_quantifiers_find(seed: int) -> None:
    random = Random(seed)
    a, b, c = (random_items(random, 12) for _ in range(3))
    bound = random.choice([5, 12, 99])
    text = (
        "SELECT ?a ?b ?c { { ?x <a> ?a } SEQ { ?x <b> ?b } SEQ { ?x <c> ?c }"
        f" FILTER({short(bound)}) }}"
    )
    rows = streamsparql.compile(text).run(items_of(a=a, b=b, c=c))
    detections = sorted((*(str(row[v])[-3:] for v in "abc"), row.start, row.end) for row in rows)
    expected = sorted(
        (f"a{i}"[-3:], f"b{j}"[-3:], f"c{k}"[-3:], one[1], three[2])
        for (i, one), (j, two), (k, three) in product(*map(enumerate, (a, b, c)))
        if one[0] == two[0] == three[0]
        if one[2] < two[1] and two[2] < three[1] and three[2] - one[1] < bound
    )
    assert detections == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_sequence_is_interrupted_exactly_if_an_event_lies_between(seed: int) -> None:
    random = Random(seed)
    a, b, c = (random_items(random, 14) for _ in range(3))
    bound = random.choice([6, 15, 99])
    text = (
        "SELECT ?a ?c { { { ?x <a> ?a } SEQ { ?x <c> ?c } } EQUALSOPTIONAL"
        f" {{ {{ ?x <a> ?a }} SEQ {{ ?x <b> ?b }} SEQ {{ ?x <c> ?c }} }}"
        f" FILTER(!BOUND(?b) && {short(bound)}) }}"
    )
    query = streamsparql.compile(text)
    assert "absence_in_between" in query.rewriting.counts()
    detections = sorted(
        (str(row["a"]), str(row["c"])) for row in query.run(items_of(a=a, b=b, c=c))
    )
    expected = sorted(
        (f"a{i}", f"c{k}")
        for (i, one), (k, three) in product(enumerate(a), enumerate(c))
        if one[0] == three[0] and one[2] < three[1] and three[2] - one[1] < bound
        if not any(two[0] == one[0] and one[2] < two[1] and two[2] < three[1] for two in b)
    )
    assert detections == expected


@pytest.mark.parametrize("seed", range(20))
def test_an_event_is_alone_exactly_if_none_precedes_it(seed: int) -> None:
    random = Random(seed)
    a, b = (random_items(random, 10) for _ in range(2))
    text = "SELECT ?b { { ?x <a> ?a } OPTIONALSEQ { ?x <b> ?b } FILTER(!BOUND(?a)) }"
    query = streamsparql.compile(text)
    assert "absence_before" in query.rewriting.counts()
    expected = sorted(
        f"b{j}"
        for j, two in enumerate(b)
        if not any(one[0] == two[0] and one[2] < two[1] for one in a)
    )
    assert sorted(str(row["b"]) for row in query.run(items_of(a=a, b=b))) == expected


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("link", ["OPTIONALSEQ", "EQUALSOPTIONAL", "OPTIONAL"])
def test_optional_events_are_those_that_quantifiers_find(link: str, seed: int) -> None:
    random = Random(seed)
    a, b = (random_items(random, 14) for _ in range(2))
    text = f"SELECT ?a ?b {{ {{ ?x <a> ?a }} {link} {{ ?x <b> ?b }} }}"
    rows = streamsparql.compile(text, "epsparql").run(items_of(a=a, b=b))
    pairs = [
        (i, j)
        for (i, one), (j, two) in product(enumerate(a), enumerate(b))
        if one[0] == two[0]
        if (link == "OPTIONALSEQ" and one[2] < two[1])
        or (link == "EQUALSOPTIONAL" and one[1:] == two[1:])
        or (link == "OPTIONAL" and two[2] <= one[2])
    ]
    expected = {(f"a{i}", f"b{j}", min(a[i][1], b[j][1]), max(a[i][2], b[j][2])) for i, j in pairs}
    kept, place = (b, 1) if link == "OPTIONALSEQ" else (a, 0)
    for k, (_, start, end) in enumerate(kept):
        if all(pair[place] != k for pair in pairs):
            alone = (None, f"b{k}") if place else (f"a{k}", None)
            expected.add((*alone, start, end))
    values = [tuple(None if v is None else str(v) for v in (r.get("a"), r.get("b"))) for r in rows]
    occurrences = [(row.start, row.end) for row in rows]
    events = [(*pair, *when) for pair, when in zip(values, occurrences, strict=True)]
    assert sorted(map(str, events)) == sorted(map(str, expected))


# -- cases ------------------------------------------------------------------------------------------

PAIR = "SELECT ?x { { ?x <a> ?v } SEQ { ?x <b> ?w } }"


def times(text: str, items: Sequence[Any], **options: Any) -> list[tuple[int, int]]:
    """Return the occurrences of the results of a query, in their order."""
    return [(row.start, row.end) for row in streamsparql.compile(text).run(items, **options)]


def at(link: str, start: int, end: int | None = None, subject: str = "s") -> Item:
    return (f"<{subject}>", f"<{link}>", "<o>"), start, start if end is None else end


def test_events_with_equal_timestamps_are_not_in_sequence() -> None:
    assert times(PAIR, [at("a", 3), at("b", 3)]) == []
    assert times(PAIR, [at("a", 3), at("b", 3), at("b", 4)]) == [(3, 4)]


def test_events_that_touch_are_not_in_sequence() -> None:
    assert times(PAIR, [at("a", 1, 4), at("b", 4, 6)]) == []
    assert times(PAIR, [at("a", 1, 4), at("b", 5, 6)]) == [(1, 6)]


def test_one_item_is_not_in_sequence_with_itself() -> None:
    text = "SELECT ?x { { ?x ?p ?v } SEQ { ?x ?q ?w } }"
    assert times(text, [at("a", 3), at("a", 5)]) == [(3, 5)]


def test_points_can_be_equal() -> None:
    text = "SELECT ?x { { ?x <a> ?v } EQUALS { ?x <b> ?w } }"
    items = [at("a", 1), at("b", 1), at("a", 2, 4), at("b", 3, 4), at("b", 2, 4)]
    assert times(text, items) == [(1, 1), (2, 4)]


def test_an_optional_side_that_never_occurs_leaves_all_events_alone() -> None:
    items = [at("b", 1), at("b", 2, 4)]
    assert times("SELECT ?x { { ?x <a> ?v } OPTIONALSEQ { ?x <b> ?w } }", items) == [(1, 1), (2, 4)]
    assert times("SELECT ?x { { ?x <b> ?v } EQUALSOPTIONAL { ?x <a> ?w } }", items) == [
        (1, 1),
        (2, 4),
    ]
    assert times("SELECT ?x { { ?x <b> ?v } SEQ { ?x <b> ?z } OPTIONAL { ?x <a> ?w } }", items) == [
        (1, 4)
    ]


def test_equal_solutions_at_different_ends_are_different_rows() -> None:
    items = [at("a", 1), at("b", 5), at("b", 6), at("b", 6)]
    result = streamsparql.compile(PAIR).run(items)
    assert [(row.start, row.end) for row in result] == [(1, 5), (1, 6)]
    assert result.to_arrow().select(["start", "end"]).to_pylist() == [
        {"start": 1, "end": 5},
        {"start": 1, "end": 6},
    ]
    assert [len(result.snapshot(t)) for t in (4, 5, 6, 7)] == [0, 1, 1, 0]


def test_events_before_the_horizon_are_no_rows_next_to_static_solutions() -> None:
    items, graph = [at("a", 7), at("a", 25)], [("<s>", "<a>", "<o>")]
    text = "SELECT ?x { ?x <a> ?v BIND(getENDTIME() AS ?e) }"
    assert times(text, items, graph=graph, start=9) == [(9, 9), (25, 25)]


def test_distinct_rows_are_events_without_duration() -> None:
    items = [at("a", 1), at("a", 2), at("b", 5), at("b", 6)]
    assert times(PAIR, items) == [(1, 5), (2, 5), (1, 6), (2, 6)]
    assert times(PAIR.replace("SELECT", "SELECT DISTINCT"), items) == [(5, 5), (6, 6)]


def test_groups_are_those_of_an_instant_and_hold() -> None:
    items = [at("a", 1), at("a", 2), at("b", 5), at("b", 6), at("c", 9)]
    counted = "SELECT (COUNT(*) AS ?n) { { ?x <a> ?v } SEQ { ?x <b> ?w } }"
    rows = streamsparql.compile(counted).run(items, end=10)
    assert [(row["n"].value, row.start, row.end) for row in rows] == [
        (0, 1, 5),
        (2, 5, 7),
        (0, 7, 10),
    ]
    asked = streamsparql.compile("ASK { { ?x <a> ?v } SEQ { ?x <b> ?w } }").run(items)
    assert [asked.snapshot(t) for t in (4, 5, 6, 7)] == [False, True, True, False]


def test_the_first_of_equal_events_is_in_a_slice_for_any_order_of_arrival() -> None:
    text = f"{PAIR} ORDER BY ?x LIMIT 1"
    items = [at("a", 1), at("a", 2), at("a", 3)]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        whole = [items[k] for k in order]
        assert times(text, [*whole, at("b", 5)], max_delay=5) == [(1, 5)]


def test_each_report_shows_the_events_since_the_one_before() -> None:
    query = streamsparql.compile(PAIR)
    items = [at("a", 1), at("b", 5), at("b", 6), at("b", 10), at("b", 21)]
    for kind in ("rstream", "istream"):
        reports = query.run(items).report(kind, every=10)
        assert [(t, len(rows)) for t, rows in reports] == [(10, 3), (20, 0), (30, 1)]
    assert [(t, len(r)) for t, r in query.run(items).report("istream")] == [
        (5, 1), (6, 1), (10, 1), (21, 1),
    ]  # fmt: skip
    with query.open(report="istream", every=10) as live:
        live.push_many(query.streams[0], items)
        assert [(t, len(rows)) for t, rows in live.rows()] == [(10, 3), (20, 0)]


def test_reports_of_constructed_triples_are_graphs() -> None:
    text = "CONSTRUCT { ?x <r> ?v } FROM NAMED STREAM <s> { GRAPH <s> { { ?x <a> ?v } SEQ { ?x <b> ?w } } }"
    result = streamsparql.compile(text).run([at("a", 1), at("a", 2), at("b", 5)])
    assert sorted((row.start, row.end) for row in result) == [(1, 5), (2, 5)]
    assert len(result.snapshot(5)) == 1
    assert result.to_arrow(report="istream").num_rows == 1
    assert result.to_arrow(report="rstream", every=10).num_rows == 1


def test_the_horizon_clips_detections_and_not_what_they_begin_with() -> None:
    items = [at("a", 1), at("b", 5), at("b", 9), at("b", 12)]
    assert times(PAIR, items, start=6, end=12) == [(1, 9)]


STATIC = [("<s>", "<k>", "<o>"), ("<t>", "<k>", "<o>")]


def test_static_solutions_are_detected_at_the_start_of_the_horizon() -> None:
    query = streamsparql.compile("SELECT ?x { ?x <k> ?y }", dialect="epsparql")
    for options, expected in (({}, 3), ({"start": 1}, 1), ({"start": 5}, 5)):
        rows = query.run([at("a", 3)], graph=STATIC, **options)
        assert [(row.start, row.end) for row in rows] == [(expected, expected)] * 2
    assert [(row.start, row.end) for row in query.run([], graph=STATIC)] == [(0, 0)] * 2


def test_static_solutions_are_matched_by_what_is_known_at_the_first_instant() -> None:
    text = "SELECT ?x ?v { ?x <k> ?y OPTIONAL { ?x <a> ?v } }"
    query = streamsparql.compile(text, dialect="epsparql")
    rows = list(query.run([at("a", 3), at("a", 4, subject="t")], graph=STATIC))
    assert {(str(row["x"]), row["v"] is None, row.end) for row in rows} == {
        ("s", False, 3), ("t", True, 3),
    }  # fmt: skip


def test_static_solutions_of_an_optional_side_match_before_the_first_item() -> None:
    text = (
        "SELECT ?x ?v FROM NAMED <g> { { GRAPH <g> { ?x <k> ?y OPTIONAL { ?x <a> ?v } } }"
        " UNION { ?x <b> ?v } }"
    )
    query = streamsparql.compile(text, dialect="epsparql")
    graph = [("<s>", "<k>", "<o>"), ("<s>", "<a>", "<o>")]
    with query.open(graphs={"g": graph}, max_jump=None) as live:
        assert live.rows() == []
        live.push(DEFAULT_STREAM.value, ("<s>", "<p>", "<o>"), 3)
        (row,) = live.rows()
    assert (row["v"] is None, row.start, row.end) == (False, 3, 3)


def test_times_of_events_can_be_read_wherever_expressions_are() -> None:
    text = """SELECT ?took (getSTARTTIME() AS ?first) (MONTH(getENDTIME()) AS ?month) {
        { { ?x <a> ?v } SEQ { ?x <b> ?w } BIND(getDURATION() AS ?took) }
        FILTER(getENDTIME() >= "1970-01-01T00:00:02Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>)
        } ORDER BY getDURATION() LIMIT 1"""
    items = [at("a", 500), at("b", 1_000), at("a", 1_500), at("b", 2_000)]
    (row,) = streamsparql.compile(text).run(items)
    assert [row[name].n3().split("^^")[0] for name in ("took", "first", "month")] == [
        '"PT0.5S"', '"1970-01-01T00:00:01.5Z"', '"1"',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bound", "occurrences"),
    [
        ("PT0.004S", [(1, 4)]), ("PT0.0041S", [(1, 4), (1, 5)]), ("P0D", []), ("-PT1S", []),
        ("P1Y", [(1, 4), (1, 5), (1, 9)]), ("P999999999999999D", [(1, 4), (1, 5), (1, 9)]),
    ],
)  # fmt: skip
def test_bounds_of_any_length_are_exact(bound: str, occurrences: list[tuple[int, int]]) -> None:
    constant = f'"{bound}"^^<http://www.w3.org/2001/XMLSchema#duration>'
    text = f"{PAIR[:-1]} FILTER(getDURATION() < {constant}) }}"
    items = [at("a", 1), at("b", 4), at("b", 5), at("b", 9)]
    assert times(text, items) == occurrences
    mirrored = text.replace(f"getDURATION() < {constant}", f"{constant} > getDURATION()")
    assert times(mirrored, items) == occurrences


def test_a_late_event_is_reported_and_revises_nothing() -> None:
    """Also if it would have been the evidence that an event is not the first."""
    query = streamsparql.compile(
        "SELECT ?x { { ?x <a> ?v } OPTIONALSEQ { ?x <b> ?w } FILTER(!BOUND(?v)) }"
    )
    result = query.run([at("b", 5), at("c", 9), at("a", 2)])
    assert [(row.start, row.end) for row in result] == [(5, 5)]
    assert [reject.reason for reject in result.late] == ["late by 7 ms"]
    in_time = query.run([at("b", 5), at("c", 9), at("a", 2)], max_delay=7)
    assert list(in_time) == []


# -- live -------------------------------------------------------------------------------------------


def test_pairs_are_emitted_when_the_watermark_reaches_their_end() -> None:
    query = streamsparql.compile(PAIR)
    with query.open() as live:
        live.push(query.streams[0], *at("a", 3))
        assert live.rows() == []
        live.push(query.streams[0], *at("b", 5))
        (row,) = live.rows()
        assert repr(row) == "Row(x=<s>, [3, 5])"
        live.push(query.streams[0], *at("b", 5, subject="s"))
        assert live.rows() == [], "an equal event of the same instant"


def test_unmatched_events_are_emitted_once_they_are_decided() -> None:
    query = streamsparql.compile("SELECT ?x { { ?x <a> ?v } EQUALSOPTIONAL { ?x <b> ?w } }")
    with query.open() as live:
        live.push(query.streams[0], *at("a", 3))
        assert live.rows() == [], "a simultaneous event can still come"
        live.advance(4)
        assert [(row.start, row.end) for row in live.rows()] == [(3, 3)]
    before = streamsparql.compile("SELECT ?x { { ?x <a> ?v } OPTIONALSEQ { ?x <b> ?w } }")
    with before.open(max_jump=None) as live:
        live.push(before.streams[0], *at("b", 3))
        assert [(row.start, row.end) for row in live.rows()] == [(3, 3)], "what precedes is known"


ALONE = {
    "OPTIONALSEQ": "SELECT ?x { { GRAPH <g> { ?x <b> ?w } } OPTIONALSEQ { ?x <a> ?v } }",
    "EQUALSOPTIONAL": "SELECT ?x { { ?x <a> ?v } EQUALSOPTIONAL { GRAPH <g> { ?x <b> ?w } } }",
    "OPTIONAL": "SELECT ?x { ?x <a> ?v OPTIONAL { GRAPH <g> { ?x <b> ?w } } }",
}


@pytest.mark.parametrize("link", ALONE)
def test_an_optional_side_that_never_comes_delays_rows_until_its_watermark(link: str) -> None:
    text = ALONE[link].replace("?x {", "?x FROM STREAM <s> FROM NAMED STREAM <g> {", 1)
    query = streamsparql.compile(text, "epsparql")
    with query.open(max_jump=None) as live:
        for t in (3, 5, 9):
            live.push("s", *at("a", t))
        assert live.rows() == []
        live.advance(6, "g")
        assert [row.end for row in live.rows()] == [3, 5]
    assert [(row.start, row.end) for row in live.rows()] == [(9, 9)]
    assert [row.end for row in query.run({"s": [at("a", 3), at("a", 5)], "g": []})] == [3, 5]


@pytest.mark.parametrize("link", ["SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL", "OPTIONAL", ""])
def test_an_occurrence_without_length_is_a_point(link: str) -> None:
    text = f"SELECT ?x ?v ?w {{ {{ ?x <a> ?v }} {link} {{ ?x <b> ?w }} }}"
    moments = [("a", 1), ("b", 1), ("a", 4), ("b", 6), ("b", 6), ("a", 6)]
    points = [at(name, t)[:1] + (t,) for name, t in moments]
    query = streamsparql.compile(text, "epsparql")
    expected = sorted(map(repr, query.run(points)))
    assert expected
    assert sorted(map(repr, query.run([at(name, t, t) for name, t in moments]))) == expected


def operators_of(live: Live, kind: type) -> list[Any]:
    operators = live._execution.pipeline.operators
    return [operator for operator in operators if type(operator) is kind]


def endless(count: int, keys: int) -> Iterator[Item]:
    """Yield events of three kinds over keys that come and go."""
    random = Random(5)
    for t in range(count):
        yield at(random.choice("abc"), t, subject=f"s{t // 100 * keys + random.randrange(keys)}")


BOUNDED = [
    f"SELECT ?x {{ {{ ?x <a> ?v }} SEQ {{ ?x <b> ?w }} SEQ {{ ?x <c> ?z }} FILTER({short(60)}) }}",
    f"SELECT ?x {{ ?x <a> ?v . ?x <b> ?w {{ ?x <c> ?z }} EQUALS {{ ?x <c> ?u }} FILTER({short(60)}) }}",
    f"SELECT ?x {{ {{ ?x <a> ?v FILTER({short(60)}) }} OPTIONALSEQ {{ ?x <b> ?w }} FILTER({short(60)}) }}",
    f"SELECT ?x {{ {{ ?x <a> ?v }} EQUALSOPTIONAL {{ ?x <b> ?w }} FILTER({short(60)}) }}",
    f"SELECT ?x {{ {{ ?x <a> ?v }} SEQ {{ ?x <b> ?u }} OPTIONAL {{ ?x <c> ?w FILTER({short(60)}) }}"
    f" FILTER({short(60)}) }}",
    f"SELECT ?x {{ {{ {{ ?x <a> ?v }} SEQ {{ ?x <c> ?z }} }} EQUALSOPTIONAL {{ {{ ?x <a> ?v }} SEQ"
    f" {{ ?x <b> ?w }} SEQ {{ ?x <c> ?z }} }} FILTER(!BOUND(?w) && {short(60)}) }}",
    f"SELECT DISTINCT ?x {{ {{ ?x <a> ?v }} SEQ {{ ?x <b> ?w }} SEQ {{ ?x <c> ?z }}"
    f" FILTER({short(60)}) }}",
]  # fmt: skip


@pytest.mark.parametrize("text", BOUNDED)
def test_state_is_flat_in_a_long_run_with_a_bound(text: str) -> None:
    query = streamsparql.compile(text)
    assert not [w for w in query.check() if w.code == "unbounded-state"]
    sizes, rows = [], 0
    with query.open() as live:
        for k, item in enumerate(endless(6_000, keys=20)):
            live.push(query.streams[0], *item)
            if k % 500 == 499:
                rows += len(live.rows())
                sizes.append(live.stats().state)
    assert rows > 50
    assert max(sizes[6:]) < 1.5 * max(sizes[2:6]) < 600


def test_the_right_side_of_a_sequence_is_not_retained() -> None:
    query = streamsparql.compile(PAIR)
    with query.open() as live:
        for item in endless(500, keys=5):
            live.push(query.streams[0], *item)
            live.rows()
            (join,) = operators_of(live, SeqJoin)
            assert not len(join.parts()["areas"].parts()["right area"])


def test_evidence_is_one_row_per_key() -> None:
    text = "SELECT ?x { { ?x <a> ?v } OPTIONALSEQ { ?x <b> ?w } FILTER(!BOUND(?v)) }"
    query = streamsparql.compile(text)
    with query.open() as live:
        for t in range(1_000):
            live.push(query.streams[0], *at("a", t, subject=f"s{t % 7}"))
        live.rows()
        assert live.stats().state == 7


def test_terms_of_retained_events_survive_recycling() -> None:
    query = streamsparql.compile(f"{PAIR[:-1]} FILTER({short(100)}) }}")
    items = [at("ab"[t % 2], t, subject=f"s{t // 10}") for t in range(3_000)]
    expected = times(f"{PAIR[:-1]} FILTER({short(100)}) }}", items)
    rows: list[Any] = []
    with patch.object(TermDictionary, "due", lambda terms: True), query.open() as live:
        for k in range(0, len(items), 7):
            live.push_many(query.streams[0], items[k : k + 7])
            rows += live.rows()
    assert [(row.start, row.end) for row in rows] == expected
    assert all(str(row["x"]) == f"s{row.start // 10}" for row in rows)


# -- occurrences as input ----------------------------------------------------------------------------


def test_windows_stamp_an_occurrence_by_its_end() -> None:
    text = "SELECT ?x FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 10 MS { ?x <a> ?v }"
    rows = streamsparql.compile(text).run([at("a", 1, 14), at("b", 20)])
    assert [(row.start, row.end) for row in rows] == [(14, 20)]


def test_an_occurrence_that_ends_before_it_starts_is_rejected() -> None:
    query = streamsparql.compile(PAIR)
    result = query.run([at("a", 3), at("b", 9, 5), at("b", 6)])
    assert [(row.start, row.end) for row in result] == [(3, 6)]
    assert [reject.reason for reject in result.rejected] == ["the event ends before it starts"]
    with query.open() as live:
        live.push(query.streams[0], ("<s>", "<b>", "<o>"), 9, 5)
        assert [reject.reason for reject in live.rejected] == ["the event ends before it starts"]


def test_the_places_of_triples_that_tell_events_apart_are_read() -> None:
    text = "SELECT ?x { ?x <a> ?v }"
    items = [(("<s>", "<a>", f"<o{k}>"), 3, 3) for k in range(3)]
    query = streamsparql.compile(text, dialect="epsparql")
    assert [(row.start, row.end) for row in query.run(items)] == [(3, 3)] * 3
    distinct = streamsparql.compile(text.replace("SELECT", "SELECT DISTINCT"), dialect="epsparql")
    assert [(row.start, row.end) for row in distinct.run(items)] == [(3, 3)]


@pytest.mark.parametrize("seed", range(12))
def test_a_trace_of_events_agrees_with_the_definition(seed: int) -> None:
    random = Random(seed)
    query = streamsparql.compile(PREFIX + EventWriter(random).query(), dialect="epsparql")
    data = random_events(random)
    streams = {name: quoted(data.streams[name]) for name in query.streams}
    trace = query.trace(streams)
    assert trace.check() == []
    assert str(trace)
    assert all(str(trace.logical(t)) for t in trace.instants[:3])


DERIVED = "CONSTRUCT { ?x <r> ?w } FROM NAMED STREAM <s> { GRAPH <s> { { ?x <a> ?v } SEQ { ?x <b> ?w } } }"
LATER_EVENTS = "SELECT ?x { { ?x <r> ?v } SEQ { ?x <r> ?w } }"


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_constructed_events_are_a_source_of_events(ending: str, tmp_path: Path) -> None:
    derived = streamsparql.compile(DERIVED).run(
        [at("a", 1), at("b", 4), at("a", 5, 6), at("b", 7, 9)]
    )
    assert derived.write(tmp_path / f"derived.{ending}") == 3
    assert times(LATER_EVENTS, tmp_path / f"derived.{ending}") == [(1, 9)]


def test_constructed_events_are_stamped_by_their_ends_in_n_quads(tmp_path: Path) -> None:
    derived = streamsparql.compile(DERIVED).run([at("a", 1), at("a", 2), at("b", 4)])
    derived.write(tmp_path / "derived.nq")
    text = "SELECT ?x { { ?x <r> ?v } EQUALS { ?x <r> ?w } }"
    assert times(text, tmp_path / "derived.nq") == [(4, 4)]


SOURCES: dict[str, Callable[[list[Item], Path], Any]] = {
    "tuples": lambda items, path: items,
    "an iterator": lambda items, path: iter(items),
    "arrow": lambda items, path: table_of(items),
    "pandas": lambda items, path: table_of(items).to_pandas(),
    "csv": lambda items, path: written(items, path / "items.csv"),
    "jsonl": lambda items, path: written(items, path / "items.jsonl"),
    "parquet": lambda items, path: written(items, path / "items.parquet"),
    "mapped": lambda items, path: streamsparql.mapped(
        table_of(items), "CONSTRUCT { ?s ?p ?o } { BIND(IRI(?subject) AS ?s)"
        " BIND(IRI(?predicate) AS ?p) BIND(?object AS ?o) }",
    ),
}  # fmt: skip
"""Sources of occurrences: all that can have two times."""


def table_of(items: list[Item]) -> pa.Table:
    columns = zip(*((s, p, o, a, b) for (s, p, o), a, b in items), strict=True)
    names = ("subject", "predicate", "object", "start", "end")
    return pa.table(dict(zip(names, map(list, columns), strict=True)))


def written(items: list[Item], path: Path) -> Path:
    table = table_of(items)
    match path.suffix:
        case ".csv":
            csv.write_csv(table, path, csv.WriteOptions(quoting_style="none"))
        case ".jsonl":
            path.write_text("\n".join(map(json.dumps, table.to_pylist())))
        case ".parquet":
            pq.write_table(table, path)
    return path


@pytest.mark.parametrize("kind", SOURCES)
def test_items_of_each_source_can_take_time(kind: str, tmp_path: Path) -> None:
    items = [at("a", 1, 3), at("b", 2, 4), at("b", 9, 5), at("b", 4, 6), at("a", 7), at("b", 8)]
    if kind == "mapped":
        items = [((s[1:-1], p[1:-1], o), a, b) for (s, p, o), a, b in items]
    result = streamsparql.compile(PAIR).run(SOURCES[kind](items, tmp_path))
    assert [(row.start, row.end) for row in result] == [(1, 6), (1, 8), (7, 8)]
    assert [reject.reason for reject in result.rejected] == ["the event ends before it starts"]
    assert [reject.reason for reject in result.late] == []


def test_points_and_longer_events_can_be_pushed_in_any_form() -> None:
    query = streamsparql.compile(PAIR)
    with query.open(max_jump=None) as live:
        live.push(query.streams[0], ("<s>", "<a>", "<o>"), 1, 3)
        live.push(query.streams[0], ("<s>", "<b>", "<o>"), 4)
        live.push_many(query.streams[0], [("<s>", "<b>", "<o>", 5), (("<s>", "<b>", "<o>"), 3, 6)])
        live.push_many(query.streams[0], table_of([at("b", 6, 7)]))
        assert [(row.start, row.end) for row in live.rows()] == [(1, 4), (1, 5), (1, 7)]
