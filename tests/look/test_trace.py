"""Traces: what passes each operator and what it holds is what the definitions say, and is drawn.

A trace says of each instant what holds of what an operator gives, and what its state holds. The
first is compared with the definitions of the logical plan, on random queries and data; of the
second the examples here know each row, and random ones that there are as many as `size` says.

What this cannot see: whether a state holds the right rows where no example looks; how a picture
looks (its parts and the places of its labels are checked).
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
from support.families import FAMILIES, of_family
from support.histories import dense_history

import streamsparql
from streamsparql.errors import EngineError, SourceError
from streamsparql.look.jupyter.canvas import CELL
from streamsparql.look.jupyter.trace_tables import logical_html, moment_html, steps_table
from streamsparql.look.traces.lineage import Lineage
from streamsparql.look.traces.trace import Trace
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput

PREFIX = "PREFIX : <http://e/> "
INTEGER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def items(*given: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Items with short names."""
    return [(*(_term(x) for x in item[:3]), item[3]) for item in given]


def _term(x: str | int) -> str:
    return INTEGER.format(x) if isinstance(x, int) else f"<http://e/{x}>"


def held(trace: Trace, t: int, number: int) -> dict[str, list[str]]:
    """What an operator holds at an instant, by part."""
    found: dict[str, list[str]] = {}
    for part, element in trace.at(t)[number].state:
        found.setdefault(part, []).append(trace.wording.held(part, element))
    return {part: sorted(rows) for part, rows in found.items()}


def number(trace: Trace, kind: str) -> int:
    """The last operator of a kind."""
    return [o.number for o in trace.operators if o.kind == kind][-1]


# -- A left join, in slow motion ------------------------------------------------------------------


@pytest.fixture(scope="module")
def slow() -> Trace:
    """The example of physical/operators/left_join.py: the left row e, the right rows p and q."""
    text = (
        f"{PREFIX} SELECT ?v ?d FROM STREAM :l WINDOW RANGE 30 SLIDE 1"
        " FROM STREAM :r WINDOW RANGE 11 SLIDE 1 { ?x :left ?v OPTIONAL { ?x :right ?d } }"
    )
    left = items(("x", "left", "e", 0), ("y", "left", "f", 20))
    right = items(("x", "right", "p", 6), ("x", "right", "q", 9))
    return streamsparql.compile(text).trace(
        {"http://e/l": left, "http://e/r": right}, step=1, end=60
    )


def test_a_left_row_waits_in_its_area_and_is_undecided(slow: Trace) -> None:
    join = number(slow, "LeftJoin")
    assert held(slow, 3, join) == {
        "left area": ["?x :x, ?v :e  [0, 30)"],
        "undecided": ["?x :x, ?v :e  [0, 30)"],
    }
    assert held(slow, 7, join) == {
        "left area": ["?x :x, ?v :e  [0, 30)"],
        "right area": ["?x :x, ?d :p  [6, 17)"],
        "undecided": ["?x :x, ?v :e  [17, 30)"],
    }


def test_a_gap_is_given_when_its_end_is_known(slow: Trace) -> None:
    given = [
        (step.instant, slow.wording.element(row))
        for step, row in slow.given_by(number(slow, "LeftJoin"))
    ]
    assert given[:3] == [
        (6, "?x :x, ?v :e  [0, 6)"),
        (6, "?x :x, ?v :e, ?d :p  [6, 17)"),
        (9, "?x :x, ?v :e, ?d :q  [9, 20)"),
    ]


def test_the_heap_holds_what_starts_after_the_release_bound(slow: Trace) -> None:
    """The match of y waits for the open gap of x, which begins before it."""
    text = (
        f"{PREFIX} SELECT ?v ?d FROM STREAM :l WINDOW RANGE 30 SLIDE 1"
        " FROM STREAM :r WINDOW RANGE 4 SLIDE 1 { ?x :left ?v OPTIONAL { ?x :right ?d } }"
    )
    left = items(("x", "left", "e", 0), ("y", "left", "f", 2))
    right = items(("y", "right", "p", 5))
    trace = streamsparql.compile(text).trace(
        {"http://e/l": left, "http://e/r": right}, step=1, end=60
    )
    join = number(trace, "LeftJoin")
    waiting = ["?x :y, ?v :f  [2, 5)", "?x :y, ?v :f, ?d :p  [5, 9)"]
    assert "min-heap" not in held(trace, 4, join)
    assert held(trace, 5, join)["min-heap"] == waiting
    assert held(trace, 28, join)["min-heap"] == waiting
    assert "min-heap" not in held(trace, 29, join)
    gave = [trace.wording.element(row) for row in trace.at(29).step[join].gave]  # type: ignore[union-attr]
    assert gave == ["?x :x, ?v :e  [0, 30)", *waiting]
    assert [c.why for c in trace.at(29)[join].changes if c.before and c.before.part == "min-heap"]\
        == ["given out"] * 2  # fmt: skip


def test_what_just_happened(slow: Trace) -> None:
    join = number(slow, "LeftJoin")
    told = {t: str(slow.at(t).step) for t in (0, 6, 16)}
    assert "left area + ?x :x, ?v :e  [0, 30)" in told[0]
    assert "undecided ~ ?x :x, ?v :e  [0, 30) now [17, 30)" in told[6]
    assert "right area - ?x :x, ?d :p  [6, 17): ended" in told[16]
    assert not slow.at(5)[join].changes
    assert [held.part for held in slow.at(6).step[join].entered] == ["right area"]  # type: ignore[union-attr]


def test_steps_are_read_like_a_sequence(slow: Trace) -> None:
    assert len(slow) == len(list(slow)) == slow[-1].number + 1
    assert slow[0].instant == 0
    assert slow[-1].instant == INFINITY
    assert [slow.wording.element(e) for e in slow[0].came["http://e/l"]] == [":x :left :e  [0, 1)"]
    assert all(doing for step in slow for doing in step)
    for operators in (slow[0], slow.at(5), slow.logical(5)):
        for number in (99, 0, -1):
            with pytest.raises(EngineError, match=f"there is no operator {number}: they are 1 to"):
                operators[number]


# -- Other operators ------------------------------------------------------------------------------


def _of(text: str, *given: tuple[Any, ...], **options: Any) -> Trace:
    return streamsparql.compile(PREFIX + text).trace(items(*given), **options)


def test_windows_of_elements() -> None:
    trace = _of(
        "SELECT ?v FROM STREAM :s WINDOW ELEMS 2 { ?x :p ?v }",
        *(("a", "p", k, 2 * k) for k in range(4)),
    )
    window = number(trace, "TupleWindow")
    assert held(trace, 2, window) == {"in the window": [":a :p 0  from 0 on", ":a :p 1  from 2 on"]}
    assert held(trace, 4, window)["in the window"] == [":a :p 1  from 2 on", ":a :p 2  from 4 on"]


def test_groups_and_their_values() -> None:
    trace = _of(
        "SELECT ?x (SUM(?v) AS ?n) FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v } GROUP BY ?x",
        ("a", "p", 1, 1), ("b", "p", 5, 2), ("a", "p", 2, 4),
    )  # fmt: skip
    groups = number(trace, "Aggregation")
    found = held(trace, 4, groups)
    assert found["values"] == ["?x :a, ?n 3  from 4 on", "?x :b, ?n 5  from 2 on"]
    assert sorted(row.split("  ")[1] for row in found["elements"]) == [
        "[1, 11)",
        "[2, 12)",
        "[4, 14)",
    ]


def test_slices() -> None:
    trace = _of(
        "SELECT ?v FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v } ORDER BY ?v LIMIT 1",
        ("a", "p", 3, 1), ("a", "p", 1, 2), ("a", "p", 2, 3),
    )  # fmt: skip
    assert held(trace, 3, number(trace, "Slice")) == {
        "in the slice": ["?x :a, ?v 1  [2, 12)"],
        "out of the slice": ["?x :a, ?v 2  until 13", "?x :a, ?v 3  until 11"],
    }


def test_distinct() -> None:
    trace = _of(
        "SELECT DISTINCT ?x FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v }",
        ("a", "p", 3, 1), ("a", "p", 1, 2), ("b", "p", 2, 3),
    )  # fmt: skip
    assert held(trace, 3, number(trace, "Distinct")) == {
        "covered": ["?x :a  until 12", "?x :b  until 13"],
        "to be emitted": ["?x :a  [11, 12)"],
    }


# -- On random queries and data -------------------------------------------------------------------


class _Sizes:
    """An observer that compares what a state shows with what it says that it holds."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def observe(self, operator: Operator, inputs: Sequence[Batch], output: Batch) -> None:
        shown = sum(len(rows) for _, rows in operator.content())
        assert shown == operator.size(), operator
        self.seen[type(operator).__name__] += shown > 0


STATEFUL = {
    "Aggregation", "Annotate", "AntiJoin", "Distinct", "Join", "LatestStamps",
    "LeftJoin", "Mark", "Minus", "Number", "SemiJoin", "Slice", "SteppedTupleWindow", "TemporalCoalesce",
    "TransitiveClosure", "TupleWindow", "Union",
}  # fmt: skip


def test_a_state_shows_as_many_rows_as_it_holds() -> None:
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
    from support.families import PREFIX as NAMES
    from support.families import Writer

    return NAMES + Writer(random).fill(random.choice(FAMILIES[random.choice(sorted(FAMILIES))]))


@pytest.mark.parametrize("family", FAMILIES)
def test_operators_agree_with_the_definitions(family: str) -> None:
    @settings(max_examples=4)
    @given(of_family(family), st.integers(0, 2**32))
    def agrees(text: str, seed: int) -> None:
        query = streamsparql.compile(text)
        data = dense_history(seed).of(query, False)
        trace = query.trace(*data)
        assert trace.check() == []
        total = sum(len(rows) for part in trace[-1]._frame.content.values() for _, rows in part)
        assert not total, "nothing is held when the streams have ended"

    agrees()


def test_check_finds_what_does_not_agree() -> None:
    trace = _of("SELECT ?v FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v }", ("a", "p", 1, 1))
    trace.definitions.inputs.streams.clear()  # type: ignore[attr-defined]
    trace.definitions.inputs.streams.update(  # type: ignore[attr-defined]
        streamsparql.inputs({"http://e/s": items(("a", "p", 2, 1))}).streams
    )
    found = trace.check()
    assert {each.operator.kind for each in found} >= {"TimeWindow", "TriplePatternMatching"}
    assert (found[0].t, len(found[0].ours), len(found[0].definition)) == (1, 1, 1)


def test_definitions_are_shown_by_node() -> None:
    query = streamsparql.compile(
        f"{PREFIX} SELECT ?v FROM STREAM :s WINDOW RANGE 10 SLIDE 1 {{ ?x :p ?v FILTER(?v > 1) }}"
    )
    trace = query.trace(items(("a", "p", 1, 1), ("a", "p", 2, 4)))
    logical = trace.logical(5)
    assert [type(node.node).__name__ for node in logical][-1] == "Projection"
    assert logical[len(logical.nodes)].snapshot == query.logical.at(5, trace.definitions.inputs)
    assert "?v 2" in str(logical)
    assert "by definition at 5" in logical_html(logical)


# -- What is traced -------------------------------------------------------------------------------

WINDOW = "SELECT ?v FROM STREAM :s WINDOW RANGE 10 SLIDE 1 { ?x :p ?v }"


def test_items_that_nothing_matches_are_seen() -> None:
    trace = _of(WINDOW, ("a", "p", 1, 1), ("a", "q", 2, 4))
    assert len(trace.items) == 2
    assert len(trace.given_by(number(trace, "TriplePatternMatching"))) == 1


def test_a_trace_of_many_items_is_broken_off_and_says_so() -> None:
    some = [("a", "p", k, k // 2) for k in range(100)]
    trace, whole = _of(WINDOW, *some, limit=7), _of(WINDOW, *some, end=3)
    assert (len(trace.items), trace.until) == (6, 3)
    assert "more than 7 items" in trace.note
    assert trace.note in str(trace)
    assert [e for _, e in trace.given_by(len(trace.operators))] == [
        e for _, e in whole.given_by(len(whole.operators))
    ]
    assert "more than 7 items" in trace._repr_html_()
    assert len(_of(WINDOW, *[("a", "p", k, 5) for k in range(9)], limit=3).items) == 9


def test_a_trace_of_large_states_is_broken_off_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamsparql.look.traces.recording.MOST_ROWS", 100)
    text = "SELECT DISTINCT ?v FROM STREAM :s WINDOW RANGE 1 S SLIDE 1 { ?x :p ?v }"
    trace = _of(text, *(("a", "p", k, k) for k in range(100)), step=1)
    assert trace.until == trace[-2].instant + 1 < 99
    assert "hold very many rows" in trace.note
    assert trace.check() == []


def test_what_came_before_the_start_is_one_step() -> None:
    trace = _of(WINDOW, *(("a", "p", k, k) for k in range(8)), start=6)
    assert [trace.wording.instant(step.instant) for step in trace] == [
        "before",
        "6",
        "7",
        "the end",
    ]
    assert len(trace.at(6)[2].snapshot) == 7
    assert trace.check() == []


def test_time_goes_on_in_between() -> None:
    trace = _of(WINDOW, ("a", "p", 1, 1), ("a", "p", 2, 7), step=5)
    assert [step.instant for step in trace][:-1] == [1, 5, 7, 10, 15]
    with pytest.raises(EngineError, match="take a longer one"):
        _of(WINDOW, ("a", "p", 1, 1), ("a", "p", 2, 1_000_000), step=1)


def test_an_item_that_no_pattern_matches_is_never_late() -> None:
    """It is in the trace all the same, when it was; so a trace takes what a run takes."""
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o }")
    given = [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 12), ("<a>", "<q>", '"3"', 5)]
    assert len(list(query.run(given, strict=True))) == 2
    trace = query.trace(given, strict=True)
    assert trace.late == []
    came = [(step.instant, item.object.lexical) for step in trace
            for rows in step.came.values() for (item, *_) in rows]  # fmt: skip
    assert came == [(3, "1"), (5, "3"), (12, "2")]


def test_what_was_read_keeps_its_terms_until_it_is_taken() -> None:
    """A large graph makes the dictionary forget what nobody holds, in the middle of a trace."""
    query = streamsparql.compile(
        "SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o FILTER NOT EXISTS { ?o <q> ?z } }"
    )
    graph = [(f"<urn:{k}>", "<q>", f'"{k}"') for k in range(66_000)]
    given = [(f"<a{k}>", "<p>", f'"only here {k}"', k) for k in range(5)]
    rows = [str(row["o"]) for row in query.run(given, graph)]
    trace = query.trace(given, graph)
    assert [
        item.object.lexical for step in trace for r in step.came.values() for (item, *_) in r
    ] == rows
    assert len(trace.at(4)[len(trace.operators)].snapshot) == 5


def test_late_items_are_noted() -> None:
    trace = _of(WINDOW, ("a", "p", 1, 5), ("a", "p", 2, 3), ("a", "p", 3, 6))
    assert len(trace.late) == 1
    assert "trace.late" in trace.note


def test_mistakes() -> None:
    for options in ({"limit": 0}, {"step": -1}, {"step": 1.5}):
        with pytest.raises(EngineError, match="is a whole number"):
            _of(WINDOW, **options)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="an instant"):
        _of(WINDOW).at(-1)
    with pytest.raises(SourceError, match="missing stream"):
        streamsparql.compile(PREFIX + WINDOW).trace()


def test_a_trace_of_nothing() -> None:
    trace = _of(WINDOW)
    assert len(trace) == 1
    assert not trace.items
    assert trace.picture().svg
    assert str(trace.at(3)).startswith("at 3")
    static = streamsparql.compile("SELECT ?s { ?s ?p ?o }").trace(graph=[("<a>", "<b>", "<c>")])
    assert "from" not in str(static)
    assert static.check() == []


# -- Words ----------------------------------------------------------------------------------------


def test_text() -> None:
    trace = _of(WINDOW, ("a", "p", 1, 1), ("a", "p", 2, 4))
    text = str(trace)
    assert text.startswith("2 items in 3 steps through 6 operators\n  1  StreamAccess :s\n")
    assert "at 4\n  1  StreamAccess\n       gives :a :p 2  [4, 5)\n" in text
    assert str(trace[1]) in text
    moment = str(trace.at(4))
    assert "       :a :p 1\n       :a :p 2\n" in moment
    assert "<table>" in moment_html(trace.at(4))
    assert repr(trace) == "<Trace: 2 items, 3 steps, 6 operators>"


def test_steps_that_tell_nothing_are_not_in_the_table(slow: Trace) -> None:
    """Where time goes on by itself, most steps are empty; those that are not come in order."""
    table = steps_table(slow)
    shown = [int(t) for t in re.findall(r"<tr><td>(\d+)</td>", table)]
    assert {0, 6, 9, 20} <= set(shown)
    assert shown == sorted(shown)
    assert not {1, 2, 3, 4, 5, 7, 8} & set(shown)
    assert "more steps" not in table


# -- Pictures -------------------------------------------------------------------------------------

TURBINES = f"""{PREFIX} SELECT ?x (AVG(?v) AS ?mean) (COUNT(?w) AS ?n)
FROM STREAM :s WINDOW RANGE 10 S SLIDE 2 S
{{ ?x :power ?v OPTIONAL {{ ?x :wind ?w FILTER(?w > 100) }} FILTER(?v < 850) }} GROUP BY ?x"""


def turbines(count: int, t: int = 0) -> Trace:
    """Readings of some turbines."""
    random, found = Random(3), []
    for _ in range(count):
        t += random.randint(200, 1800)
        kind = "power" if random.random() < 0.6 else "wind"
        found.append((f"turbine{random.randint(1, 6)}", kind, random.randint(0, 900), t))
    return streamsparql.compile(TURBINES).trace(items(*found))


def _svg(html: str) -> ElementTree.Element:
    found = re.search(r"<svg.*?</svg>", html, re.DOTALL)
    assert found
    return ElementTree.fromstring(found[0])


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


Box = tuple[float, float, float, float]


def _labels(row: ElementTree.Element) -> list[Box]:
    """Where the labels of a row are, on the safe side."""
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


def test_the_picture_has_what_there_is() -> None:
    trace = turbines(30)
    html = trace._repr_html_()
    svg = _svg(html)
    heads = [e.text for e in svg.iter() if _tag(e) == "tspan" and e.get("class") == "head"]
    assert heads == [
        "1 StreamAccess", "2 TimeWindow", "3 TriplePatternMatching", "4 Filter",
        "5 TriplePatternMatching", "6 Filter", "7 LeftJoin", "8 Aggregation", "10 TemporalCoalesce",
    ]  # fmt: skip
    reads = [e.text for e in svg.iter() if (e.text or "").startswith("reads ")]
    assert reads[-1] == "reads 8"  # not the clip, which cut nothing
    rows = [e for e in svg.iter() if e.get("class") == "row"]
    given = Counter(e.get("data-o") for e in rows if e.get("data-h") == "0")
    assert all(given[str(n)] == len(trace.given_by(n)) for n in range(1, 9))
    names = {e[-1].tail if len(e) else e.text for e in svg.iter() if _tag(e) == "text"}
    assert {"left area", "right area", "undecided", "min-heap", "values", "still open"} <= names
    assert html.count("<tr>") == 1 + min(len(trace), 30)
    assert '<div class="controls" hidden>' in html, "what needs a script shows with it only"
    assert not re.search(r"\sid=", html)


def test_lineage_gives_rows_the_items_that_they_come_from() -> None:
    trace = turbines(30)
    svg = _svg(trace.picture().svg)
    joined = [e for e in svg.iter() if e.get("class") == "row" and e.get("data-o") == "7"]
    for row in joined:
        text = row[0].text or ""
        places = [int(k) for k in (row.get("data-i") or "").split()]
        assert len(places) == (2 if "?w" in text and "?v" in text else 1)
        for k in places:
            assert trace.wording.item(trace.items[k][1].item).split(" ")[-1] in text


def test_the_data_of_the_script() -> None:
    trace = _of(
        "SELECT ?v FROM STREAM :s WINDOW RANGE 1 H SLIDE 1 S { ?x :p ?v }",
        *(("a", "p", k, k * 1000) for k in range(60)),
    )
    html = trace._repr_html_()
    found = re.search(r'<script type="application/json">(.*?)</script>', html)
    assert found
    data = json.loads(found[1])
    assert len(data["instants"]) == len(data["words"]) == len(data["x"])
    assert len([row for row in data["rows"] if row[0] == 2]) == 60
    assert "60 rows," in html
    assert "up to 60 at once" in html


def test_nothing_escapes() -> None:
    evil = '"</script><b onclick=1>&amp;"'
    query = streamsparql.compile(PREFIX + WINDOW.replace(":p", "?p"))
    trace = query.trace([("<http://e/a>", "<http://e/p>", evil, 1)])
    html = trace._repr_html_() + trace.at(1)._repr_html_() + trace.logical(1)._repr_html_()
    assert "<b onclick" not in html
    assert html.count("</script>") == 2
    _svg(trace.picture().svg)


def test_a_picture_is_saved(tmp_path: Any) -> None:
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
def test_rows_have_the_colours_of_what_they_come_of(where: str, origins: list[list[int]]) -> None:
    trace = _of(
        f"SELECT * FROM STREAM :s WINDOW RANGE 20 SLIDE 5 {{ {where} }}",
        *(("a", "p", 5, 1), ("a", "q", 3, 2)),
    )
    assert [sorted(found) for _, found in Lineage(trace).rows[-1]] == origins


def test_a_picture_goes_on_until_all_has_ended_or_says_that_it_does_not() -> None:
    text = "SELECT * FROM STREAM :s WINDOW RANGE {} SLIDE 5 {{ ?x :p ?y }}"
    given = (("a", "p", 5, 1), ("b", "p", 3, 3))
    whole = _of(text.format(20), *given).picture()
    assert whole.note == ""
    assert re.search(r'"instants":\[1,2,3,[0-9,]*20\]', whole.html)
    cut = _of(text.format(2_000), *given).picture()
    assert cut.note == "what holds after 63, to 2000, is cut off"
    assert re.search(r'"instants":\[1,2,3,4\]', cut.html)
