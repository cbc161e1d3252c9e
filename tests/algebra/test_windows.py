"""Windows: the table of SEMANTICS.md section 3, and the agreement of content and validity.

Not covered: whether the table is the papers' meaning. test_streams_against_pyoxigraph.py computes
windows from their clauses independently, and the expected results here are computed by hand.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.grid import Grid
from streamsparql.algebra.inputs import Inputs, item
from streamsparql.algebra.streams import INFINITY, Element, Snapshot, snapshot
from streamsparql.algebra.terms import IRI, Triple, integer
from streamsparql.algebra.window import (
    ElementWindow,
    FixedWindow,
    NowWindow,
    SlidingDeltaWindow,
    SlidingTupleWindow,
    SteppedTupleWindow,
    SteppedWindow,
    TimeWindow,
    UnboundedWindow,
    Window,
)

S = AccessStream(IRI("s"))
HOUR = 3_600_000


def stream(*stamps: int) -> list[Element[object]]:
    return [Element(k, t, t + 1) for k, t in enumerate(stamps)]


# (window, stamp, the interval of the table)
TABLE = [
    (SlidingDeltaWindow(S, 10, 5), 0, (0, 10)),
    (SlidingDeltaWindow(S, 10, 5), 4, (4, 10)),
    (SlidingDeltaWindow(S, 10, 5), 5, (5, 15)),
    (SlidingDeltaWindow(S, 10, 1), 7, (7, 17)),
    (SlidingDeltaWindow(S, 10, 4), 3, (3, 12)),  # d does not divide w: R1
    (SlidingDeltaWindow(S, 10, 5, origin=3), 4, (4, 13)),
    (FixedWindow(S, 10), 0, (0, 10)),
    (FixedWindow(S, 10), 9, (9, 10)),
    (FixedWindow(S, 10), 10, (10, 20)),
    (SteppedWindow(S, 10, 5, "right"), 0, (0, 10)),  # stamped on a step, visible at it
    (SteppedWindow(S, 10, 5, "right"), 1, (5, 15)),
    (SteppedWindow(S, 10, 5, "right"), 5, (5, 15)),  # expires by tf - w < t
    (SteppedWindow(S, 10, 10, "right"), 1, (10, 20)),
    (SteppedWindow(S, 10, 5, "left"), 0, (5, 15)),  # [0, 10) closes at 10, [-5, 5) at 5
    (SteppedWindow(S, 10, 5, "left"), 4, (5, 15)),
    (SteppedWindow(S, 10, 5, "left"), 5, (10, 20)),
    (SteppedWindow(S, 10, 10, "left"), 9, (10, 20)),
    (SteppedWindow(S, 10, 10, "left", origin=3), 12, (13, 23)),
    (SteppedWindow(S, 10, 4, "left"), 0, (2, 14)),  # closes at .. 2, 6, 10, 14
    (SteppedWindow(S, 2, 5, "left"), 3, None),  # hopping: neither [0, 2) nor [5, 7) contains it
    (NowWindow(S), 7, (7, 8)),
    (UnboundedWindow(S), 7, (7, INFINITY)),
    (
        SlidingDeltaWindow(S, HOUR, 60_000),
        1_700_000_000_123,
        (1_700_000_000_123, 1_700_003_580_000),
    ),
]


@pytest.mark.parametrize(("window", "stamp", "interval"), TABLE, ids=repr)
def test_the_interval_of_an_element(window, stamp, interval):
    intervals = [(start, end) for _, start, end in window.validity(stream(stamp))]
    assert intervals == ([interval] if interval else [])


def test_the_last_elements_hold_until_newer_ones_evict_them():
    valid = SlidingTupleWindow(S, 2).validity(stream(1, 3, 3, 7))
    assert valid == [
        Element(0, 1, 3),
        Element(1, 3, 7),
        Element(2, 3, INFINITY),
        Element(3, 7, INFINITY),
    ]


def test_an_element_evicted_at_its_own_instant_never_holds():
    valid = SlidingTupleWindow(S, 1).validity(stream(5, 5, 5))
    assert valid == [Element(2, 5, INFINITY)]


def test_a_stepped_tuple_window_changes_at_every_mth_element():
    window = SteppedTupleWindow(S, 3, 2)
    valid = window.validity(stream(1, 2, 3, 4, 5))
    assert valid == [
        Element(0, 2, 4),
        Element(1, 2, INFINITY),
        Element(2, 4, INFINITY),
        Element(3, 4, INFINITY),
    ]
    assert [e.item for e in window.content(stream(1, 2, 3, 4, 5), 5)] == [1, 2, 3]


def test_a_sliding_window_follows_definition_3():
    """With range 10 and slide 5, i is 3 at 12, so the window is [5, 12] (ESWC 2008, Definition 3)."""
    window = SlidingDeltaWindow(S, 10, 5)
    assert [s for s in range(16) if window.holds(12, s)] == list(range(5, 13))
    assert [s for s in range(16) if window.holds(9, s)] == list(range(10))
    assert [s for s in range(16) if window.holds(10, s)] == list(range(5, 11))


@st.composite
def windows(draw) -> Window:
    width, step = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    origin = draw(st.sampled_from([0, 0, 3, 7]))
    return draw(
        st.sampled_from(
            [
                SlidingDeltaWindow(S, max(width, step), min(width, step), origin=origin),
                FixedWindow(S, width, origin=origin),
                SteppedWindow(S, width, step, "left", origin=origin),
                SteppedWindow(S, width, step, "right", origin=origin),
                NowWindow(S),
                UnboundedWindow(S),
                SlidingTupleWindow(S, width),
                SteppedTupleWindow(S, width, step),
            ]
        )
    )


@given(windows(), st.lists(st.integers(0, 6), max_size=10))
def test_validity_agrees_with_content(window, gaps):
    arrived = stream(*(sum(gaps[: k + 1]) for k in range(len(gaps))))
    valid = window.validity(arrived)
    for t in range(90):
        content = Snapshot.of(element.item for element in window.content(arrived, t))
        assert snapshot(valid, t) == content


# -- stated properties, compared with the content --------------------------------------------------

DENSE = stream(*range(80))
"""An element at each instant."""
LATE = range(40, 80)
"""Instants at which every window here is full."""


def ranks_at(window: Window, t: int) -> set[object]:
    return {element.item for element in window.content(DENSE, t)}


@given(windows())
def test_content_jumps_on_the_grid(window):
    for t in LATE:
        before, after = ranks_at(window, t - 1), ranks_at(window, t)
        jumped = before - after if window.live_edge else before ^ after
        if window.grid is not None and jumped:
            assert window.grid.floor(t) == t


@given(windows())
def test_a_window_with_a_live_edge_contains_an_element_on_arrival(window):
    if window.live_edge:
        assert all(t in ranks_at(window, t) for t in LATE)


@given(windows())
def test_no_element_holds_longer_than_the_reach(window):
    if isinstance(window, TimeWindow):
        ages = [t - rank for t in LATE for rank in ranks_at(window, t)]
        assert not ages or max(ages) < window.reach


@given(windows())
def test_length_and_expected_size_agree_with_the_content(window):
    largest = max(len(window.content(DENSE, t)) for t in LATE)
    if not isinstance(window, UnboundedWindow):
        assert window.expected_size(rate=1.0, history=1000) == largest
    elif isinstance(window, TimeWindow):
        assert window.length == INFINITY
        assert window.expected_size(rate=0.5, history=1000) == 500


@given(windows())
def test_misses_elements_agrees_with_the_content(window):
    seen = set().union(*(ranks_at(window, t) for t in range(80)))
    assert window.misses_elements == (not seen >= set(range(20, 50)))


@given(windows(), st.integers(0, 60))
def test_an_element_window_depends_only_on_its_look_back(window, arrived):
    if isinstance(window, ElementWindow):
        first, after = window.last(arrived)
        assert after <= arrived
        assert first >= arrived - window.look_back


@given(st.integers(1, 9), st.integers(0, 12), st.integers(-30, 60), st.integers(0, 12))
def test_grid_points_around_an_instant(step, origin, t, later):
    grid = Grid(step, origin)
    points = [point for point in range(-60, 120) if (point - origin) % step == 0]
    assert grid.floor(t, later) == max(point for point in points if point <= t + later)
    assert grid.ceil(t, later) == min(point for point in points if point >= t + later)


@given(windows(), st.lists(st.integers(0, 2**45), min_size=1, max_size=20))
def test_formulas_agree_on_arrays_and_single_numbers(window, numbers):
    formula = window.interval if isinstance(window, TimeWindow) else window.ranks
    start, end = formula(np.array(numbers, np.int64))
    assert start.dtype == end.dtype == np.int64
    assert list(zip(start.tolist(), end.tolist(), strict=True)) == list(map(formula, numbers))


# -- special cases ---------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 60))
def test_a_fixed_window_is_a_sliding_window_with_slide_equal_to_range(width, stamp):
    fixed = FixedWindow(S, width).validity(stream(stamp))
    assert fixed == SlidingDeltaWindow(S, width, width).validity(stream(stamp))


def test_a_window_reads_its_stream_in_order():
    def triple(n: int) -> Triple:
        return Triple(IRI("a"), IRI("p"), integer(n))

    data = Inputs({IRI("s"): [item(triple(2), 9), item(triple(1), 4)]})
    assert list(SlidingTupleWindow(S, 1).at(9, data)) == [triple(2)]
    assert list(SlidingTupleWindow(S, 1).at(8, data)) == [triple(1)]


def test_invalid_window_parameters_are_rejected():
    for make in (
        lambda: SlidingDeltaWindow(S, 5, 6),
        lambda: FixedWindow(S, 0),
        lambda: SteppedWindow(S, 5, 0, "left"),
        lambda: SlidingTupleWindow(S, 0),
        lambda: SteppedTupleWindow(S, 1, 0),
    ):
        with pytest.raises(AssertionError):
            make()
