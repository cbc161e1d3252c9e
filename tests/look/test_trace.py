"""Traces: the output and the state of each operator, at each instant, and their pictures.

The outputs are compared with the definitions of the logical plan, on random queries and data. The
states are compared row by row in examples, and by their number of rows on random queries.

Not covered: the rows of states outside the examples; the appearance of a picture (its parts and the
positions of its labels are checked).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.families import FAMILIES, Writer, of_family
from support.histories import dense_history
from support.schemas import entailing_history

import streamsparql
from streamsparql.errors import EngineError, SourceError
from streamsparql.look.jupyter.canvas import CELL
from streamsparql.look.jupyter.trace_tables import logical_html, moment_html, steps_table
from streamsparql.look.traces.lineage import Lineage
from streamsparql.look.traces.trace import Trace
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.state.canonical import OPEN
from streamsparql.physical.state.parts import TO_BE_EMITTED
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

PREFIX = "PREFIX : <http://e/> "
INTEGER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def items(*short: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return items with full names."""
    return [(*(_term(x) for x in item[:3]), item[3]) for item in short]


def _term(x: str | int) -> str:
    return INTEGER.format(x) if isinstance(x, int) else f"<http://e/{x}>"


def state_of(trace: Trace, t: int, number: int) -> dict[str, list[str]]:
    """Return the state of an operator at an instant: its rows as text, by part."""
    state: dict[str, list[str]] = {}
    for part, element in trace.at(t)[number].state:
        state.setdefault(part, []).append(trace.wording.state_row(part, element))
    return {part: sorted(rows) for part, rows in state.items()}


def number_of(trace: Trace, kind: str) -> int:
    """Return the number of the last operator of a kind."""
    return [o.number for o in trace.operators if o.kind == kind][-1]


# -- A left join, in slow motion ------------------------------------------------------------------


@pytest.fixture(scope="module")
def slow() -> Trace:
    """Return the trace of the example of physical/operators/left_join.py: e left, p and q right."""
    text = (
        f"{PREFIX} SELECT ?v ?d FROM STREAM :l WINDOW RANGE 30 SLIDE 1"
        " FROM STREAM :r WINDOW RANGE 11 SLIDE 1 { ?x :left ?v OPTIONAL { ?x :right ?d } }"
    )
    left = items(("x", "left", "e", 0), ("y", "left", "f", 20))
    right = items(("x", "right", "p", 6), ("x", "right", "q", 9))
    return streamsparql.compile(text).trace(
        {"http://e/l": left, "http://e/r": right}, step=1, end=60
    )


def test_left_row_without_match_is_undecided(slow: Trace) -> None:
    join = number_of(slow, "LeftJoin")
    assert state_of(slow, 3, join) == {
        "left area": ["?x :x, ?v :e  [0, 30)"],
        "undecided": ["?x :x, ?v :e  [0, 30)"],
    }
    assert state_of(slow, 7, join) == {
        "left area": ["?x :x, ?v :e  [0, 30)"],
        "right area": ["?x :x, ?d :p  [6, 17)"],
        "undecided": ["?x :x, ?v :e  [17, 30)"],
    }


def test_gap_is_emitted_when_its_end_is_known(slow: Trace) -> None:
    emitted = [
        (step.instant, slow.wording.element(row))
        for step, row in slow.emitted_by(number_of(slow, "LeftJoin"))
    ]
    assert emitted[:3] == [
        (6, "?x :x, ?v :e  [0, 6)"),
        (6, "?x :x, ?v :e, ?d :p  [6, 17)"),
        (9, "?x :x, ?v :e, ?d :q  [9, 20)"),
    ]


def test_heap_retains_rows_that_start_after_the_release_bound(slow: Trace) -> None:
    """The match of y waits for the open gap of x, which starts before it."""
    text = (
        f"{PREFIX} SELECT ?v ?d FROM STREAM :l WINDOW RANGE 30 SLIDE 1"
        " FROM STREAM :r WINDOW RANGE 4 SLIDE 1 { ?x :left ?v OPTIONAL { ?x :right ?d } }"
    )
    left = items(("x", "left", "e", 0), ("y", "left", "f", 2))
    right = items(("y", "right", "p", 5))
    trace = streamsparql.compile(text).trace(
        {"http://e/l": left, "http://e/r": right}, step=1, end=60
    )
    join = number_of(trace, "LeftJoin")
    waiting = ["?x :y, ?v :f  [2, 5)", "?x :y, ?v :f, ?d :p  [5, 9)"]
    assert "min-heap" not in state_of(trace, 4, join)
    assert state_of(trace, 5, join)["min-heap"] == waiting
    assert state_of(trace, 28, join)["min-heap"] == waiting
    assert "min-heap" not in state_of(trace, 29, join)
    step = trace.at(29).step
    assert step is not None
    assert [trace.wording.element(row) for row in step[join].emitted] == [
        "?x :x, ?v :e  [0, 30)",
        *waiting,
    ]
    assert [c.why for c in trace.at(29)[join].changes if c.before and c.before.part == "min-heap"]\
        == ["emitted"] * 2  # fmt: skip


def test_step_text_has_the_changes_of_states(slow: Trace) -> None:
    join = number_of(slow, "LeftJoin")
    texts = {t: str(slow.at(t).step) for t in (0, 6, 16)}
    assert "left area + ?x :x, ?v :e  [0, 30)" in texts[0]
    assert "undecided ~ ?x :x, ?v :e  [0, 30) now [17, 30)" in texts[6]
    assert "right area - ?x :x, ?d :p  [6, 17): expired" in texts[16]
    assert not slow.at(5)[join].changes
    assert [row.part for row in slow.at(6).step[join].inserted] == ["right area"]  # type: ignore[index]


def test_trace_is_a_sequence_of_steps(slow: Trace) -> None:
    assert len(slow) == len(list(slow)) == slow[-1].number + 1
    assert slow[0].instant == 0
    assert slow[-1].instant == INFINITY
    assert [slow.wording.element(e) for e in slow[0].consumed["http://e/l"]] == [
        ":x :left :e  [0, 1)"
    ]
    assert all(each for step in slow for each in step)
    for operators in (slow[0], slow.at(5), slow.logical(5)):
        for number in (99, 0, -1):
            with pytest.raises(
                EngineError, match=f"unknown operator {number}; operators are numbered 1 to"
            ):
                operators[number]


# -- Other operators ------------------------------------------------------------------------------


def trace_of(text: str, *short: tuple[Any, ...], **options: Any) -> Trace:
    return streamsparql.compile(PREFIX + text).trace(items(*short), **options)


def test_state_of_a_window_of_elements() -> None:
    trace = trace_of(
        "SELECT ?v FROM STREAM :s WINDOW ELEMS 2 { ?x :p ?v }",
        *(("a", "p", k, 2 * k) for k in range(4)),
    )
    window = number_of(trace, "TupleWindow")
    assert state_of(trace, 2, window) == {
        "in the window": [":a :p 0  from 0 on", ":a :p 1  from 2 on"]
    }
    assert state_of(trace, 4, window)["in the window"] == [
        ":a :p 1  from 2 on",
        ":a :p 2  from 4 on",
    ]


def test_state_of_an_aggregation() -> None:
    trace = trace_of(
        "SELECT ?x (SUM(?v) AS ?n) FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v } GROUP BY ?x",
        ("a", "p", 1, 1), ("b", "p", 5, 2), ("a", "p", 2, 4),
    )  # fmt: skip
    groups = number_of(trace, "Aggregation")
    state = state_of(trace, 4, groups)
    assert state["values"] == ["?x :a, ?n 3  from 4 on", "?x :b, ?n 5  from 2 on"]
    assert sorted(row.split("  ")[1] for row in state["elements"]) == [
        "[1, 11)",
        "[2, 12)",
        "[4, 14)",
    ]


def test_state_of_a_slice() -> None:
    trace = trace_of(
        "SELECT ?v FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v } ORDER BY ?v LIMIT 1",
        ("a", "p", 3, 1), ("a", "p", 1, 2), ("a", "p", 2, 3),
    )  # fmt: skip
    assert state_of(trace, 3, number_of(trace, "Slice")) == {
        "in the slice": ["?x :a, ?v 1  [2, 12)"],
        "out of the slice": ["?x :a, ?v 2  until 13", "?x :a, ?v 3  until 11"],
    }


def test_state_of_a_distinct() -> None:
    trace = trace_of(
        "SELECT DISTINCT ?x FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v }",
        ("a", "p", 3, 1), ("a", "p", 1, 2), ("b", "p", 2, 3),
    )  # fmt: skip
    assert state_of(trace, 3, number_of(trace, "Distinct")) == {
        "covered": ["?x :a  until 12", "?x :b  until 13"],
        TO_BE_EMITTED: ["?x :a  [11, 12)"],
    }


# -- On random queries and data -------------------------------------------------------------------


class _Sizes:
    """An observer that compares the rows of a state's content with its size."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def observe(self, operator: Operator, inputs: Sequence[Batch], output: Batch) -> None:
        rows = sum(len(rows) for _, rows in operator.content())
        assert rows == operator.size(), operator
        self.seen[type(operator).__name__] += rows > 0


STATEFUL = {
    "Aggregation", "Annotate", "AntiJoin", "Distinct", "Join", "LatestStamps",
    "LeftJoin", "Mark", "Minus", "Number", "SemiJoin", "Slice", "SteppedTupleWindow", "TemporalCoalesce",
    "TransitiveClosure", "TupleWindow", "Union",
}  # fmt: skip


def test_content_of_a_state_has_as_many_rows_as_its_size() -> None:
    sizes = _Sizes()
    for k in range(400):
        random = Random(k)
        text = _random_text(random)
        data = dense_history(k).of(streamsparql.compile(text), False)
        run = Execution(streamsparql.compile(text), RunInput(*data), observer=sizes)
        for batches, watermark in run.input_steps():
            for t in sorted({t for rows in batches.values() for t in rows.start.tolist()}):
                run.step({n: rows.where(rows.start == t) for n, rows in batches.items()}, t)
            run.step({}, watermark)
        if {kind for kind, times in sizes.seen.items() if times} >= STATEFUL:
            return
    raise AssertionError(f"never seen: {STATEFUL - set(sizes.seen)}")


def _random_text(random: Random) -> str:
    from support.families import PREFIX as PREFIXES
    from support.families import Writer

    return PREFIXES + Writer(random).fill(random.choice(FAMILIES[random.choice(sorted(FAMILIES))]))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_operators_agree_with_the_definitions(family: str) -> None:
    @settings(max_examples=4)
    @given(of_family(family), st.integers(0, 2**32))
    def agrees(text: str, seed: int) -> None:
        query = streamsparql.compile(text)
        data = dense_history(seed).of(query, False)
        trace = query.trace(*data)
        assert trace.check() == []
        total = sum(len(rows) for part in trace[-1]._recorded.states.values() for _, rows in part)
        assert not total, "states are empty when the streams have ended"

    agrees()


@settings(max_examples=12)
@given(st.sampled_from(["windows", "joins", "sets", "paths", "graphs"]), st.integers(0, 2**32))
def test_operators_over_entailed_triples_agree_with_the_definitions(family: str, seed: int) -> None:
    query = streamsparql.compile(
        PREFIX + Writer(Random(seed)).fill(FAMILIES[family][seed % 3]), entailment="rdfs"
    )
    trace = query.trace(*entailing_history(seed).of(query, False))
    assert trace.check() == []
    for t in trace.instants[:2]:
        assert trace.logical(t) is not None


def test_check_reports_operators_that_disagree() -> None:
    trace = trace_of(
        "SELECT ?v FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v }", ("a", "p", 1, 1)
    )
    trace.definitions.inputs.streams.clear()  # type: ignore[attr-defined]
    trace.definitions.inputs.streams.update(  # type: ignore[attr-defined]
        streamsparql.inputs({"http://e/s": items(("a", "p", 2, 1))}).streams
    )
    disagreements = trace.check()
    assert {each.operator.kind for each in disagreements} >= {"TimeWindow", "TriplePatternMatching"}
    first = disagreements[0]
    assert (first.t, len(first.emitted), len(first.definition)) == (1, 1, 1)


def test_logical_has_the_definition_of_each_node() -> None:
    query = streamsparql.compile(
        f"{PREFIX} SELECT ?v FROM STREAM :s WINDOW RANGE 10 SLIDE 1 {{ ?x :p ?v FILTER(?v > 1) }}"
    )
    trace = query.trace(items(("a", "p", 1, 1), ("a", "p", 2, 4)))
    logical = trace.logical(5)
    assert [type(node.node).__name__ for node in logical][-1] == "Projection"
    assert logical[len(logical.nodes)].snapshot == query.logical.at(5, trace.definitions.inputs)
    assert "?v 2" in str(logical)
    assert "by definition at 5" in logical_html(logical)


# -- The items of a trace -------------------------------------------------------------------------------

WINDOW = "SELECT ?v FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v }"


def test_unmatched_items_are_traced() -> None:
    trace = trace_of(WINDOW, ("a", "p", 1, 1), ("a", "q", 2, 4))
    assert len(trace.items) == 2
    assert len(trace.emitted_by(number_of(trace, "TriplePatternMatching"))) == 1


def test_trace_of_many_items_is_cut_off_with_a_note() -> None:
    items = [("a", "p", k, k // 2) for k in range(100)]
    trace, whole = trace_of(WINDOW, *items, limit=7), trace_of(WINDOW, *items, end=3)
    assert (len(trace.items), trace.until) == (6, 3)
    assert "more than 7 items" in trace.note
    assert trace.note in str(trace)
    assert [e for _, e in trace.emitted_by(len(trace.operators))] == [
        e for _, e in whole.emitted_by(len(whole.operators))
    ]
    assert "more than 7 items" in trace._repr_html_()
    assert len(trace_of(WINDOW, *[("a", "p", k, 5) for k in range(9)], limit=3).items) == 9


def test_trace_of_large_states_is_cut_off_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamsparql.look.traces.recording.MAX_STATE_ROWS", 100)
    text = "SELECT DISTINCT ?v FROM STREAM :s WINDOW RANGE 1 S SLIDE 1 MS { ?x :p ?v }"
    trace = trace_of(text, *(("a", "p", k, k) for k in range(100)), step=1)
    assert trace.until == trace[-2].instant + 1 < 99
    assert "too many rows" in trace.note
    assert trace.check() == []


def test_items_before_the_start_are_one_step() -> None:
    trace = trace_of(WINDOW, *(("a", "p", k, k) for k in range(8)), start=6)
    assert [trace.wording.instant(step.instant) for step in trace] == [
        "before",
        "6",
        "7",
        "the end",
    ]
    assert len(trace.at(6)[2].snapshot) == 7
    assert trace.check() == []


def test_step_advances_the_watermark_between_items() -> None:
    trace = trace_of(WINDOW, ("a", "p", 1, 1), ("a", "p", 2, 7), step=5)
    assert [step.instant for step in trace][:-1] == [1, 5, 7, 10, 15]
    with pytest.raises(EngineError, match="use a longer step"):
        trace_of(WINDOW, ("a", "p", 1, 1), ("a", "p", 2, 1_000_000), step=1)


def test_unmatched_item_is_never_late() -> None:
    """The item is traced at its own instant, so a trace accepts the items that a run accepts."""
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o }")
    stream = [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 12), ("<a>", "<q>", '"3"', 5)]
    assert len(list(query.run(stream, strict=True))) == 2
    trace = query.trace(stream, strict=True)
    assert trace.late == []
    consumed = [(step.instant, item.object.lexical) for step in trace
            for rows in step.consumed.values() for (item, *_) in rows]  # fmt: skip
    assert consumed == [(3, "1"), (5, "3"), (12, "2")]


def test_terms_of_items_stay_until_they_are_consumed() -> None:
    """A large graph makes the dictionary recycle unused terms, in the middle of a trace."""
    query = streamsparql.compile(
        "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o FILTER NOT EXISTS { ?o <q> ?z } }"
    )
    graph = [(f"<urn:{k}>", "<q>", f'"{k}"') for k in range(66_000)]
    stream = [(f"<a{k}>", "<p>", f'"only here {k}"', k) for k in range(5)]
    rows = [str(row["o"]) for row in query.run(stream, graph)]
    trace = query.trace(stream, graph)
    assert [
        item.object.lexical for step in trace for r in step.consumed.values() for (item, *_) in r
    ] == rows
    assert len(trace.at(4)[len(trace.operators)].snapshot) == 5


def test_note_mentions_late_items() -> None:
    trace = trace_of(WINDOW, ("a", "p", 1, 5), ("a", "p", 2, 3), ("a", "p", 3, 6))
    assert len(trace.late) == 1
    assert "trace.late" in trace.note


def test_invalid_arguments_raise() -> None:
    with pytest.raises(EngineError, match="limit must be a positive integer, not 0"):
        trace_of(WINDOW, limit=0)
    for step in (0, -1, 1.5):
        with pytest.raises(EngineError, match=rf"^step.* {step}"):
            trace_of(WINDOW, step=step)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="t must not be before 1970: -1"):
        trace_of(WINDOW).at(-1)
    with pytest.raises(SourceError, match="missing stream"):
        streamsparql.compile(PREFIX + WINDOW).trace()


def test_trace_without_items() -> None:
    trace = trace_of(WINDOW)
    assert len(trace) == 1
    assert not trace.items
    assert trace.picture().svg
    assert str(trace.at(3)).startswith("at 3")
    static = streamsparql.compile("SELECT ?s { ?s ?p ?o }").trace(graph=[("<a>", "<b>", "<c>")])
    assert "from" not in str(static)
    assert static.check() == []


# -- Text ----------------------------------------------------------------------------------------


def test_text_of_traces_and_moments() -> None:
    trace = trace_of(WINDOW, ("a", "p", 1, 1), ("a", "p", 2, 4))
    text = str(trace)
    assert text.startswith("2 items in 3 steps through 6 operators\n  1  StreamAccess :s\n")
    assert "at 4\n  1  StreamAccess\n       emits :a :p 2  [4, 5)\n" in text
    assert str(trace[1]) in text
    moment = str(trace.at(4))
    assert "       :a :p 1\n       :a :p 2\n" in moment
    assert "<table>" in moment_html(trace.at(4))
    assert repr(trace) == "<Trace: 2 items, 3 steps, 6 operators>"


def test_steps_table_omits_empty_steps(slow: Trace) -> None:
    """Where the watermark advances without items, most steps are empty."""
    table = steps_table(slow)
    instants = [int(t) for t in re.findall(r"<tr><td>(\d+)</td>", table)]
    assert {0, 6, 9, 20} <= set(instants)
    assert instants == sorted(instants)
    assert not {1, 2, 3, 4, 5, 7, 8} & set(instants)
    assert "more steps" not in table


# -- Pictures -------------------------------------------------------------------------------------

TURBINES = f"""{PREFIX} # lint: ignore combined-readings
SELECT ?x (AVG(?v) AS ?mean) (COUNT(?w) AS ?n)
FROM STREAM :s WINDOW RANGE 10 S SLIDE 2 S
{{ ?x :power ?v OPTIONAL {{ ?x :wind ?w FILTER(?w > 100) }} FILTER(?v < 850) }} GROUP BY ?x"""


def turbines(count: int, t: int = 0) -> Trace:
    """Return a trace of random readings of six turbines, from an instant on."""
    random, readings = Random(3), []
    for _ in range(count):
        t += random.randint(200, 1800)
        kind = "power" if random.random() < 0.6 else "wind"
        readings.append((f"turbine{random.randint(1, 6)}", kind, random.randint(0, 900), t))
    return streamsparql.compile(TURBINES).trace(items(*readings))


def _svg(html: str) -> ElementTree.Element:
    match = re.search(r"<svg.*?</svg>", html, re.DOTALL)
    assert match
    return ElementTree.fromstring(match[0])


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


Box = tuple[float, float, float, float]


def _labels(row: ElementTree.Element) -> list[Box]:
    """Return the boxes of the labels of a row, rather too large than too small."""
    return [
        (float(e.get("x", "")), float(e.get("y", "")) - 9, len(e.text or "") * CELL, 10)
        for e in row
        if _tag(e) == "text"
    ]


def _shapes(row: ElementTree.Element) -> list[Box]:
    return [
        tuple(float(e.get(name, "")) for name in ("x", "y", "width", "height"))  # type: ignore[misc]
        for e in row
        if _tag(e) == "rect"
    ]


def _meet(one: Box, other: Box) -> bool:
    (x, y, w, h), (u, v, a, b) = one, other
    return x + 0.5 < u + a and u + 0.5 < x + w and y + 0.5 < v + b and v + 0.5 < y + h


@pytest.mark.parametrize("count", [3, 30, 300])
def test_labels_overlap_neither_labels_nor_bars_of_others(count: int) -> None:
    svg = _svg(turbines(count).picture().html)
    width = float(svg.get("width", ""))
    rows = [e for e in svg.iter() if e.get("class") == "row"]
    assert len(rows) > count
    labels = [(box, k) for k, row in enumerate(rows) for box in _labels(row)]
    bars = [(box, k) for k, row in enumerate(rows) for box in _shapes(row)]
    assert all(x >= 0 and x + w <= width for (x, _, w, _), _ in labels)
    by_line: dict[int, list[tuple[Box, int]]] = {}
    for box, k in [*labels, *bars]:
        by_line.setdefault(round(box[1] / 40), []).append((box, k))
    boxes = {id(box) for box, _ in labels}
    for line in by_line.values():
        for (one, i), (other, j) in combinations(line, 2):
            if i != j and (id(one) in boxes or id(other) in boxes):
                assert not _meet(one, other), (rows[i][0].text, rows[j][0].text)


def test_picture_has_all_operators_and_rows() -> None:
    trace = turbines(30)
    html = trace._repr_html_()
    svg = _svg(html)
    heads = [e.text for e in svg.iter() if _tag(e) == "tspan" and e.get("class") == "head"]
    assert heads == [
        "1 StreamAccess", "2 TimeWindow", "3 TriplePatternMatching", "4 Filter",
        "5 TriplePatternMatching", "6 Filter", "7 LeftJoin", "8 Aggregation", "10 TemporalCoalesce",
    ]  # fmt: skip
    reads = [e.text for e in svg.iter() if (e.text or "").startswith("reads ")]
    assert reads[-1] == "reads 8"  # not the Clip, which cut nothing
    rows = [e for e in svg.iter() if e.get("class") == "row"]
    emitted = Counter(e.get("data-o") for e in rows if e.get("data-h") == "0")
    assert all(emitted[str(n)] == len(trace.emitted_by(n)) for n in range(1, 9))
    names = {e[-1].tail if len(e) else e.text for e in svg.iter() if _tag(e) == "text"}
    assert {"left area", "right area", "undecided", "min-heap", "values", OPEN} <= names
    assert html.count("<tr>") == 1 + min(len(trace), 30)
    assert '<div class="controls" hidden>' in html, "controls are hidden without the script"
    assert not re.search(r"\sid=", html)


def test_rows_are_drawn_with_the_items_that_they_derive_from() -> None:
    trace = turbines(30)
    svg = _svg(trace.picture().svg)
    joined = [e for e in svg.iter() if e.get("class") == "row" and e.get("data-o") == "7"]
    for row in joined:
        text = row[0].text or ""
        positions = [int(k) for k in (row.get("data-i") or "").split()]
        assert len(positions) == (2 if "?w" in text and "?v" in text else 1)
        for k in positions:
            assert trace.wording.item(trace.items[k][1].item).split(" ")[-1] in text


def test_script_has_the_rows_and_instants() -> None:
    trace = trace_of(
        "SELECT ?v FROM STREAM :s WINDOW RANGE 1 H SLIDE 1 S { ?x :p ?v }",
        *(("a", "p", k, k * 1000) for k in range(60)),
    )
    html = trace._repr_html_()
    match = re.search(r'<script type="application/json">(.*?)</script>', html)
    assert match
    data = json.loads(match[1])
    assert len(data["instants"]) == len(data["words"]) == len(data["x"])
    assert len([row for row in data["rows"] if row[0] == 2]) == 60
    assert "60 rows," in html
    assert "up to 60 at once" in html


def test_terms_are_escaped_in_html() -> None:
    evil = '"</script><b onclick=1>&amp;"'
    query = streamsparql.compile(PREFIX + WINDOW.replace(":p", "?p"))
    trace = query.trace([("<http://e/a>", "<http://e/p>", evil, 1)])
    html = trace._repr_html_() + trace.at(1)._repr_html_() + trace.logical(1)._repr_html_()
    assert "<b onclick" not in html
    assert html.count("</script>") == 2
    _svg(trace.picture().svg)


def test_picture_is_saved(tmp_path: Any) -> None:
    picture = turbines(3).picture()
    assert "<svg" in picture.save(tmp_path / "trace.svg").read_text()
    assert "application/json" in picture.save(tmp_path / "trace.html").read_text()
    assert str(picture).startswith("3 items")


@pytest.mark.parametrize(
    ("where", "origins"),
    [
        ("?x :p ?y OPTIONAL { ?x :q ?z FILTER(?z > ?y) }", [[0]]),
        ("?x :p ?y OPTIONAL { ?x :q ?z }", [[0], [0, 1]]),
        ("{ ?x :p ?y } UNION { ?x :q ?z }", [[0], [1]]),
        ("?x :p ?y MINUS { ?z :q ?w }", [[0]]),
        ("?x :p ?y . ?x :q ?z", [[0, 1]]),
    ],
)
def test_lineage_has_the_items_that_rows_derive_from(where: str, origins: list[list[int]]) -> None:
    trace = trace_of(
        f"SELECT * FROM STREAM :s WINDOW RANGE 20 SLIDE 5 {{ {where} }}",
        *(("a", "p", 5, 1), ("a", "q", 3, 2)),
    )
    assert [sorted(positions) for _, positions in Lineage(trace).rows[-1]] == origins


def test_picture_ends_with_the_last_row_or_has_a_note() -> None:
    text = "SELECT * FROM STREAM :s WINDOW RANGE {} SLIDE 5 {{ ?x :p ?y }}"
    short = (("a", "p", 5, 1), ("b", "p", 3, 3))
    whole = trace_of(text.format(20), *short).picture()
    assert whole.note == ""
    assert re.search(r'"instants":\[1,2,3,[0-9,]*20\]', whole.html)
    cut = trace_of(text.format(2_000), *short).picture()
    assert cut.note == "cut off at 63; rows hold until 2000"
    assert re.search(r'"instants":\[1,2,3,4\]', cut.html)
