"""Kernels over arrays of intervals, compared with loops over rows."""

from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamsparql.algebra.streams import INFINITY
from streamsparql.physical.batch import IntArray
from streamsparql.physical.kernels import intervals, segment_tree
from streamsparql.physical.kernels.intervals import (
    TimeCodes,
    by_group_and_time,
    newly_covered,
    pairs_in_blocks,
    running_max,
    split_by_coverage,
)
from streamsparql.physical.kernels.segment_tree import SegmentTree

EPOCH = 1_700_000_000_000
FAR = (1 << 62) + 1
time = st.one_of(st.integers(0, 12), st.sampled_from([EPOCH, EPOCH + 5, FAR, INFINITY - 1]))
span = st.tuples(st.integers(0, 3), time, st.one_of(time, st.just(INFINITY))).filter(
    lambda s: s[1] < s[2]
)
spans = st.lists(span, max_size=12)


def arrays(rows: list[tuple[int, int, int]]) -> tuple[IntArray, IntArray, IntArray]:
    one, two, three = np.array(rows, np.int64).reshape(-1, 3).T
    return one.copy(), two.copy(), three.copy()


def change_points(rows: list[tuple[int, int, int]]) -> list[int]:
    """Return all instants at which coverage can change."""
    return sorted({t for row in rows for t in row[1:]} | {0})


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=8), st.integers(1, 7))
def test_blocks_have_the_pairs_of_the_ranges_in_order(
    ranges: list[tuple[int, int]], size: int
) -> None:
    expected = [(i, first + k) for i, (first, count) in enumerate(ranges) for k in range(count)]
    before, intervals.BLOCK = intervals.BLOCK, size
    try:
        blocks = list(pairs_in_blocks(*np.array(ranges, np.int64).reshape(-1, 2).T))
    finally:
        intervals.BLOCK = before
    assert [pair for i, j in blocks for pair in zip(i.tolist(), j.tolist())] == expected
    assert all(0 < len(i) <= size for i, _ in blocks)


@given(st.lists(time, max_size=9), st.lists(time), st.sampled_from([1, 5, 1 << 61]))
def test_time_codes_preserve_the_order_of_times(
    known: list[int], probes: list[int], groups: int
) -> None:
    codes = TimeCodes(np.array(known, np.int64), groups)
    assert codes.span * groups < 1 << 63 or codes.span <= len(known) + 1
    probe_codes = codes.of(np.array(probes, np.int64)).tolist()
    known_codes = codes.of(np.array(known, np.int64)).tolist()
    assert all(0 <= code < codes.span for code in probe_codes + known_codes)
    for t, code in zip(probes, probe_codes):
        for other, known_code in zip(known, known_codes):
            assert (other < t) == (known_code < code), "an earlier time must have a lower code"


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(time, st.just(INFINITY)))))
def test_running_max_is_computed_per_group(rows: list[tuple[int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    numbers = {group: k for k, group in enumerate(dict.fromkeys(group for group, _ in rows))}
    greatest: dict[int, int] = {}
    expected = []
    for group, value in rows:
        greatest[group] = max(greatest.get(group, 0), value)
        expected.append(greatest[group])
    group = np.array([numbers[group] for group, _ in rows], np.int64)
    assert running_max(group, np.array([v for _, v in rows], np.int64)).tolist() == expected


@given(spans.filter(bool))
def test_rows_are_ordered_by_group_and_time(rows: list[tuple[int, int, int]]) -> None:
    group, start, _ = arrays(rows)
    order = by_group_and_time(group, start).tolist()
    assert sorted(order) == list(range(len(rows)))
    assert [rows[k][:2] for k in order] == sorted(row[:2] for row in rows)


@given(spans, spans, st.integers(0, 2))
def test_newly_covered_is_the_difference_at_each_instant(
    rows: list[tuple[int, int, int]], known: list[tuple[int, int, int]], cut: int
) -> None:
    parts = [arrays(known[:cut]), arrays(known[cut:])]
    new = list(zip(*(x.tolist() for x in newly_covered(arrays(rows), parts)), strict=True))
    for group in range(4):
        for t in change_points(rows + known):

            def holds(intervals_: list[tuple[int, int, int]], g: int = group, t: int = t) -> int:
                return sum(s <= t < e for of, s, e in intervals_ if of == g)

            expected = bool(holds(rows)) and not holds(known)
            assert holds(new) == expected
    for (group, _, end), (other, start, _) in pairwise(sorted(new)):
        assert group != other or end < start, "pieces neither overlap nor adjoin"


@given(spans, st.lists(time, min_size=4, max_size=4))
def test_a_row_is_split_into_gaps_and_covered_pieces(
    rows: list[tuple[int, int, int]], emitted_until: list[int]
) -> None:
    parts = split_by_coverage(*arrays(rows), np.array(emitted_until, np.int64))
    until = dict(zip(parts.place.tolist(), parts.until.tolist(), strict=True))
    gaps = list(zip(*(x.tolist() for x in parts.gaps), strict=True))
    covered = list(zip(*(x.tolist() for x in parts.covered), strict=True))
    assert all(start < end for _, start, end in gaps + covered)
    for group in range(4):
        own = [row for row in rows if row[0] == group]
        last = max([emitted_until[group], *(end for _, _, end in own)])
        assert until.get(group, emitted_until[group]) == last
        for t in change_points(rows + [(group, emitted_until[group], last)]):
            is_covered = any(s <= t < e for _, s, e in own)
            new = emitted_until[group] <= t < last
            assert sum(s <= t < e for g, s, e in gaps if g == group) == (new and not is_covered)
            assert sum(s <= t < e for g, s, e in covered if g == group) == (new and is_covered)


border = st.one_of(st.integers(0, 6).map(float), st.sampled_from([-np.inf, np.inf, np.nan]))
value = st.one_of(
    st.integers(-1, 14).map(lambda n: n / 2), st.sampled_from([-np.inf, np.inf, np.nan])
)


@given(st.lists(st.tuples(border, border), max_size=9), st.lists(value, max_size=9), st.booleans())
def test_a_value_lies_in_the_intervals_that_the_tree_finds(
    intervals_: list[tuple[float, float]], values: list[float], short: bool
) -> None:
    low, high = np.array(intervals_, np.float64).reshape(-1, 2).T
    with patch.object(segment_tree, "_SHORT", 10**6 if short else 0):
        pairs = [*SegmentTree(low, high).stab(np.array(values, np.float64))]
    places = [
        (i, j) for one, other in pairs for i, j in zip(one.tolist(), other.tolist(), strict=True)
    ]
    assert sorted(places) == [
        (i, j) for i, v in enumerate(values) for j, (a, b) in enumerate(intervals_) if a <= v <= b
    ]
    assert [i for i, _ in places] == sorted(i for i, _ in places), "by value"
