"""Windows over batches, compared with the executable definitions, in any steps.

Each window of the algebra has two definitions, `content` and `validity` (algebra/window.py). The
physical operators are compared with both, at each instant around the stream, with any width, step
and origin, present-day timestamps, duplicates, and cuts anywhere.

Not covered: whether the definitions are those of the papers (tests/algebra/test_windows.py).
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans import matching
from support.steps import (
    EPOCH,
    Bag,
    Case,
    DrivenInput,
    Row,
    Step,
    at_once,
    batch_of,
    cases,
    drive,
    one_by_one,
    rows_of,
    rows_over,
    snapshot,
)

from streamsparql.algebra import partition
from streamsparql.algebra import window as w
from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.align import Align, closes_periods
from streamsparql.algebra.cost import Costs
from streamsparql.algebra.functions import Run
from streamsparql.algebra.grid import Instants
from streamsparql.algebra.join import Join
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY, Element
from streamsparql.algebra.terms import IRI
from streamsparql.look.equivalence import equivalent
from streamsparql.look.jupyter.moving_window import window_positions
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.lowering.lower import Catalog, lower
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.consolidate import consolidated
from streamsparql.physical.operators.window import (
    AlignToReports,
    ElementWindow,
    SteppedTupleWindow,
    TimeWindow,
    TupleWindow,
)
from streamsparql.physical.pipeline import Pipeline

S = AccessStream(IRI("s"))
NAMES = [["x"]]
size, origin = st.integers(1, 9), st.sampled_from([0, 0, 1, 3, 7, EPOCH + 2])
time_windows: st.SearchStrategy[w.TimeWindow] = st.one_of(
    st.builds(
        lambda width, slide, o: w.SlidingDeltaWindow(S, max(width, slide), min(width, slide), origin=o),
        size, size, origin,
    ),
    st.builds(lambda width, o: w.FixedWindow(S, width, origin=o), size, origin),
    st.builds(
        lambda width, step, closed, o: w.SteppedWindow(S, width, step, closed, origin=o),
        size, size, st.sampled_from(["left", "right"]), origin,
    ),
    st.builds(lambda o: w.NowWindow(S, origin=o), origin),
    st.builds(lambda o: w.UnboundedWindow(S, origin=o), origin),
)  # fmt: skip
element_windows: st.SearchStrategy[w.ElementWindow] = st.one_of(
    st.builds(lambda count: w.SlidingTupleWindow(S, count), st.integers(1, 6)),
    st.builds(lambda n, m: w.SteppedTupleWindow(S, n, m), st.integers(1, 6), st.integers(1, 4)),
)


@st.composite
def streams(draw: st.DrawFn) -> Case:
    """Draw a stream that is sorted by time, in any steps, with any lag of the watermarks."""
    base = draw(st.sampled_from([0, 0, EPOCH]))
    stamps = sorted(draw(st.lists(st.integers(0, 20), max_size=14)))
    counts = draw(st.lists(st.sampled_from([1, 1, 1, 3]), min_size=14, max_size=14))
    last = draw(st.integers(0, 6))
    arrivals = sorted(draw(st.integers(0, last)) for _ in stamps)
    lag = st.sampled_from([0, 0, 0, 1, 4, None])
    steps = [Step((draw(lag),), draw(st.booleans())) for _ in range(last)]
    rows = (
        Row((k + 1,), base + t, base + t + 1, n)
        for k, (t, n) in enumerate(zip(stamps, counts, strict=False))
    )
    return Case((tuple(rows),), (tuple(arrivals),), tuple(steps))


def elements(case: Case) -> list[Element[object]]:
    """Convert the stream to elements of the algebra."""
    return [
        Element(row.ids, row.start, row.end) for row in case.inputs[0] for _ in range(row.count)
    ]


def around(case: Case) -> range:
    """Return each instant at which a small window over a small stream can change."""
    first = min((row.start for row in case.inputs[0]), default=0)
    return range(max(first - 12, 0), first + 55)


def bag(content: list[Element[object]]) -> Bag:
    return Counter(item for item, *_ in content)  # type: ignore[misc]


def element_window(source: Operator, window: w.ElementWindow) -> ElementWindow:
    if isinstance(window, w.SlidingTupleWindow):
        return TupleWindow(source, window)
    assert isinstance(window, w.SteppedTupleWindow)
    return SteppedTupleWindow(source, window)


@given(window=time_windows, case=streams(), closing=st.booleans())
def test_a_time_window_emits_its_validity(window: w.TimeWindow, case: Case, closing: bool) -> None:
    output = drive(lambda source: TimeWindow(source, window), NAMES, case, closing=closing)
    emitted = [Element(r.ids, r.start, r.end) for r in output for _ in range(r.count)]
    assert Counter(emitted) == Counter(window.validity(elements(case)))
    for t in around(case):
        assert snapshot(output, t) == bag(window.content(elements(case), t)), f"at {t}"


@given(window=element_windows, case=streams(), closing=st.booleans())
def test_an_element_window_holds_its_content(
    window: w.ElementWindow, case: Case, closing: bool
) -> None:
    output = drive(lambda source: element_window(source, window), NAMES, case, closing=closing)
    for t in (*around(case), INFINITY - 1):
        assert snapshot(output, t) == bag(window.content(elements(case), t)), f"at {t}"


@given(window=element_windows, case=streams())
def test_an_element_window_without_cuts_emits_its_validity(
    window: w.ElementWindow, case: Case
) -> None:
    case = case._replace(steps=tuple(r._replace(cut=False) for r in case.steps))
    output = drive(lambda source: element_window(source, window), NAMES, case)
    emitted = Counter(Element(r.ids, r.start, r.end) for r in output for _ in range(r.count))
    assert emitted == Counter(window.validity(elements(case)))


@given(window=element_windows, stamps=st.lists(st.integers(0, 50), max_size=60))
def test_an_element_window_retains_at_most_what_it_can_still_emit(
    window: w.ElementWindow, stamps: list[int]
) -> None:
    operator = element_window(DrivenInput(["x"]), window)
    for k, t in enumerate(sorted(stamps)):
        rows = Batch({"x": np.array([k + 1])}, np.array([t]), np.array([t + 1]))
        operator.step([rows], [t], False)
        assert operator.size() <= window.count + getattr(window, "step", 1)


grids = st.builds(
    lambda period, o, closing: Align(S, period, o, closing),
    size, origin, st.booleans(),
)  # fmt: skip
validities = cases(rows_over([st.integers(1, 3)], longest=20), max_rows=14)


@given(align=grids, case=validities, closing=st.booleans())
def test_alignment_holds_the_content_of_the_last_report(
    align: Align, case: Case, closing: bool
) -> None:
    for variant in (case, at_once(*case.inputs), one_by_one(*case.inputs)):
        output = drive(
            lambda source: AlignToReports(source, align), NAMES, variant, closing=closing
        )
        for t in around(case):
            report = (t - align.origin) // align.period * align.period + align.origin
            report -= align.closing
            expected = snapshot(case.inputs[0], report) if report >= 0 else Counter()
            assert snapshot(output, t) == expected, f"at {t}"


@given(align=grids, case=validities)
def test_alignment_maps_intervals_by_its_definition(align: Align, case: Case) -> None:
    output = drive(lambda source: AlignToReports(source, align), NAMES, at_once(*case.inputs))
    expected: Counter[tuple[object, int, int]] = Counter()
    for row in case.inputs[0]:
        start, end = align.interval(row.start, row.end)
        if start < end:
            expected[row.ids, start, end] += row.count
    emitted: Counter[tuple[object, int, int]] = Counter()
    for row in output:
        emitted[row.ids, row.start, row.end] += row.count
    assert emitted == expected


@given(rows=st.lists(rows_over([st.integers(1, 2), st.integers(0, 1)]), max_size=12))
def test_consolidation_counts_equal_rows(rows: list[Row]) -> None:
    output = rows_of(consolidated(batch_of(["x", "y"], rows)))
    assert len({row[:3] for row in output}) == len(output)
    for t in range(25):
        assert snapshot(output, t) == snapshot(rows, t)


@pytest.mark.parametrize(
    "kind", [*TimeWindow.implements, w.SlidingTupleWindow, w.SteppedTupleWindow]
)
def test_each_window_of_the_algebra_has_an_operator(kind: type[Plan]) -> None:
    operators = (TimeWindow, TupleWindow, SteppedTupleWindow)
    assert sum(kind in operator.implements for operator in operators) == 1


def test_facts_of_windows_have_their_parameters() -> None:
    window = w.SteppedWindow(S, 10, 5, "left", origin=3)
    facts = TimeWindow(DrivenInput(["x"]), window).facts()
    assert facts == "SteppedWindow width 10 step 5 closed left origin 3"
    assert AlignToReports(DrivenInput(["x"]), Align(S, 5)).facts() == "every 5 ms"


# -- New window classes need no change elsewhere ---------------------------------------------------


class DelayedWindow(w.TimeWindow):
    """A window in which an element holds for `width`, starting `delay` after its timestamp."""

    width: int
    delay: int

    def holds(self, t: int, stamp: int) -> bool:
        return t - self.delay - self.width < stamp <= t - self.delay

    def interval(self, stamp: Instants) -> tuple[Instants, Instants]:
        return stamp + self.delay, stamp + (self.delay + self.width)

    @property
    def length(self) -> int:
        return self.width

    @property
    def reach(self) -> int:
        return self.delay + self.width


class AllButTheLast(w.ElementWindow):
    """A window of the `count` elements before the last one."""

    def last(self, arrived: int) -> tuple[int, int]:
        return arrived - 1 - self.count, arrived - 1

    def ranks(self, rank: Instants) -> tuple[Instants, Instants]:
        return rank + 1, rank + (1 + self.count)

    @property
    def moves_by(self) -> int:
        return 1


@given(case=streams(), width=size, delay=size)
def test_a_new_time_window_is_computed(case: Case, width: int, delay: int) -> None:
    window = DelayedWindow(S, width, delay)
    rows = drive(lambda source: TimeWindow(source, window), NAMES, case)
    for t in around(case):
        assert snapshot(rows, t) == bag(window.content(elements(case), t)), f"at {t}"


@given(case=streams(), count=size)
def test_a_new_element_window_is_computed(case: Case, count: int) -> None:
    window = AllButTheLast(S, count)
    rows = drive(lambda source: ElementWindow(source, window), NAMES, case)
    for t in (*around(case), INFINITY - 1):
        assert snapshot(rows, t) == bag(window.content(elements(case), t)), f"at {t}"


def test_a_new_window_is_planned() -> None:
    delayed, counted = DelayedWindow(S, 10, 5), AllButTheLast(S, 7)
    plan = Join(matching("?x p ?y", delayed), matching("?x q ?z", counted))
    assert partition.stream_reaches(plan) == {"s": 15}
    assert [window.look_back for window in partition.element_windows(plan)] == [8]
    assert partition.common_jumps(plan) is partition.all_jumps(plan) is closes_periods(plan) is None
    assert [Costs().rows(window) for window in (delayed, counted)] == [10.0, 7.0]
    assert list(window_positions(delayed, 0, 9)) == list(window_positions(counted, 0, 9)) == []
    assert equivalent(plan, plan, trials=3)
    lowered = lower(plan, TermDictionary(), Run(), Catalog(known=False)).plain
    kinds = [type(operator) for operator in Pipeline(lowered, TermDictionary()).operators]
    assert kinds.count(TimeWindow) == kinds.count(ElementWindow) == 1
