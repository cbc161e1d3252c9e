"""Kernels that sweep over change points per key: pure functions over arrays.

Rows of one key overlap and adjoin in any way; a sweep computes the key's multiplicity over time.
Each row is two events: one adds its count, the other subtracts it. In order of key and time, a
running sum is the multiplicity, for all keys in one pass, as the events of each key sum to zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsparql.algebra.streams import INFINITY
from streamsparql.limits import check_rows
from streamsparql.physical.batch import IntArray
from streamsparql.physical.kernels.intervals import TimeCodes, firsts, running_max
from streamsparql.physical.kernels.keys import stable_order


class Levels(NamedTuple):
    """Rows in canonical form: `row` is the place of an equal row of the input."""

    row: IntArray
    start: IntArray
    end: IntArray
    level: IntArray
    """The k-th level of a row holds exactly where its multiplicity is k or more."""


def coalesce_levels(
    keys: IntArray, start: IntArray, end: IntArray, count: IntArray | None = None
) -> Levels:
    """Return the canonical form of rows, by start; rows are equal if their keys are.

    >>> both = coalesce_levels(np.array([5, 5]), np.array([0, 4]), np.array([6, 10]))
    >>> both.start.tolist(), both.end.tolist(), both.level.tolist()
    ([0, 4], [10, 6], [1, 2])
    """
    group = np.unique(keys, return_inverse=True)[1]
    codes = TimeCodes(start, len(keys))
    order = (group * codes.span + codes.of(start)).argsort()
    group, start, end = group[order], start[order], end[order]
    count = np.ones(len(keys), np.int64) if count is None else count[order]
    reach = running_max(group, np.minimum(end, start.max(initial=0) + 1))
    apart = firsts(group)
    apart[1:] |= start[1:] > reach[:-1]
    alone = apart & (count == 1)
    alone[:-1] &= apart[1:]
    single = alone.nonzero()[0]
    ones = np.ones(len(single), np.int64)
    result = Levels(order[single], start[single], end[single], ones)
    if len(single) < len(order):
        rest = (~alone).nonzero()[0]
        cluster = np.cumsum(apart[rest]) - 1
        levels = _swept(cluster, start[rest], end[rest], count[rest])
        levels = levels._replace(row=order[rest[levels.row]])
        result = Levels(*(np.concatenate(pair) for pair in zip(result, levels, strict=True)))
    by_start = np.argsort(result.start, kind="stable")
    return Levels(*(column[by_start] for column in result))


def _swept(group: IntArray, start: IntArray, end: IntArray, count: IntArray) -> Levels:
    """Return the levels of consecutive groups of rows, each group ordered by start."""
    times = np.concatenate([start, end])
    codes = TimeCodes(times[times < INFINITY], int(group[-1]) + 1)
    point = np.concatenate([group, group]) * codes.span + codes.of(times)
    at = np.argsort(point, kind="stable")
    point = point[at]
    last = _lasts(point)
    depth = np.cumsum(np.concatenate([count, -count])[at])[last]
    rows = firsts(group).nonzero()[0]
    return _paired(rows, point[last] // codes.span, times[at[last]], depth)


def _paired(rows: IntArray, group: IntArray, times: IntArray, depth: IntArray) -> Levels:
    """Return levels from the multiplicities at change points; `rows` has one row per group.

    Within a level of a group, points that open and points that close it alternate.
    """
    before = np.concatenate([[0], depth[:-1]])
    low, high = np.minimum(before, depth), np.maximum(before, depth)
    check_rows(int((high - low).sum()), 0)
    deepest = np.maximum.reduceat(depth, np.flatnonzero(firsts(group)))
    offset = np.cumsum(deepest) - deepest
    times = np.repeat(times, high - low)
    point = np.repeat(np.arange(len(depth)), high - low)
    level = np.arange(len(point)) - np.repeat(np.cumsum(high - low) - high, high - low)
    order = stable_order(offset[group[point]] + level, int(deepest.sum()) + 1)
    opens, closes = order[::2], order[1::2]
    return Levels(rows[group[point[opens]]], times[opens], times[closes], level[opens] + 1)


class Sweep:
    """The change points of slots, in order of slot and time, from events in any order.

    >>> sweep = Sweep(np.array([1, 0, 1]), np.array([5, 6, 7]), 2)
    >>> sweep.slots.tolist(), sweep.times.tolist()
    ([0, 1, 1], [6, 5, 7])
    >>> state = np.array([[0, 10]])
    >>> sweep.after(state, np.array([[1, 2, 3]])).tolist(), state.tolist()
    ([[2, 11, 14]], [[2, 14]])
    """

    def __init__(self, slots: IntArray, times: IntArray, capacity: int) -> None:
        self.events, self.capacity = len(slots), capacity
        self._codes = TimeCodes(times, capacity)
        point = slots * self._codes.span + self._codes.of(times)
        order = point.argsort()
        point = point[order]
        self._order, self._last = order, _lasts(point)
        self._points = point[self._last]
        last = order[self._last]
        self.slots, self.times = slots[last], times[last]
        self.first = firsts(self.slots)
        """Whether each point is the first of its slot."""
        self._group = self.first.cumsum() - 1
        self.final = _lasts(self.slots)
        """The places of the last points of the slots."""

    def __len__(self) -> int:
        return len(self.slots)

    def after(self, state: IntArray, deltas: IntArray) -> IntArray:
        """Add events to sums by slot; return the sums after each point.

        `state` is updated to the sums after the last points. Both have a row per quantity.
        """
        assert state.shape[1] >= self.capacity
        sums: IntArray = deltas.take(self._order, 1).cumsum(1).take(self._last, 1)
        changed = self.slots[self.final]
        base = state.take(changed, 1)
        base[:, 1:] -= sums.take(self.final[:-1], 1)
        sums += base.take(self._group, 1)
        state[:, changed] = sums.take(self.final, 1)
        return sums

    def ranges(self, slots: IntArray, start: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
        """Return for each row of a slot the range of its points in `[start, end)`."""
        base = slots * self._codes.span
        return (
            self._points.searchsorted(base + self._codes.of(start)),
            self._points.searchsorted(base + self._codes.of(end)),
        )


def _lasts(sorted_: IntArray) -> IntArray:
    """Return the places of the last of equal values."""
    last = np.ones(len(sorted_), np.bool_)
    np.not_equal(sorted_[1:], sorted_[:-1], out=last[:-1])
    return last.nonzero()[0]
