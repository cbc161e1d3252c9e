"""Kernels over arrays of intervals: pure functions, without rows or state.

Operators follow SEMANTICS.md; kernels compute the same without a loop over rows. Most of them use
two techniques. A *range* of places `[first, first + count)` per row represents the pairs of that
row, so the number of pairs is known before any is produced, and they are produced in blocks. A
*composite* of the number of a group and a time, `group * span + time`, turns "per group, in order
of time" into plain order, for which numpy has fast primitives. Composites must fit int64 and
INFINITY must not overflow them, so times are first replaced by their offset or, if that is too
large, by their rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamsparql.limits import checked
from streamsparql.physical.batch import BoolArray, IntArray

BLOCK = 1 << 15
"""The number of pairs in a block: larger arrays leave the cache, smaller ones need more calls."""

_LARGEST = 1 << 62


def pairs_in_blocks(first: IntArray, count: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the pairs (row, place) of the ranges `[first, first + count)`, in blocks.

    >>> [(i.tolist(), j.tolist()) for i, j in pairs_in_blocks(np.array([5, 0]), np.array([2, 1]))]
    [([0, 0, 1], [5, 6, 0])]
    """
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    shift = first - ends + count
    if 0 < total <= BLOCK:
        row = np.repeat(np.arange(len(count)), count)
        yield row, np.arange(total) + shift[row]
        return
    for at in checked(range(0, total, BLOCK)):
        after = min(at + BLOCK, total)
        a = int(np.searchsorted(ends, at, "right"))
        b = int(np.searchsorted(ends, after, "left")) + 1
        n = count[a:b].copy()
        n[0] = ends[a] - at
        n[-1] -= ends[b - 1] - after
        row = np.repeat(np.arange(a, b), n)
        yield row, np.arange(at, after) + shift[row]


def firsts(group: IntArray) -> BoolArray:
    """Return where a value differs from the one before it.

    >>> firsts(np.array([4, 4, 7])).tolist()
    [True, False, True]
    """
    first = np.empty(len(group), np.bool_)
    first[:1] = True
    np.not_equal(group[1:], group[:-1], out=first[1:])
    return first


def lasts(first: BoolArray) -> BoolArray:
    """Return where groups end, from where they begin.

    >>> lasts(np.array([True, False, True])).tolist()
    [False, True, True]
    """
    last = np.empty(len(first), np.bool_)
    last[-1:] = True
    last[:-1] = first[1:]
    return last


class TimeCodes:
    """Times as small codes in the same order, so that composites with `groups` groups fit int64.

    Codes are below `span`. For each `x` of `times` and any `t`, `x < t` exactly if the code of `x`
    is less than that of `t`.

    >>> last = 2**63 - 1
    >>> codes = TimeCodes(np.array([1000, 1500, last - 1]), groups=1 << 40)
    >>> codes.of(np.array([0, 1000, 1001, last])).tolist(), codes.span
    ([0, 0, 1, 3], 4)
    """

    def __init__(self, times: IntArray, groups: int) -> None:
        self._zero = int(times.min()) if len(times) else 0
        self._last = int(times.max()) - self._zero + 1 if len(times) else 0
        self._known: IntArray | None = None
        self.span = self._last + 1
        if self.span * max(groups, 1) >= _LARGEST:
            self._known = np.unique(times)
            self.span = len(self._known) + 1

    def of(self, times: IntArray) -> IntArray:
        """Return the codes of times, clipped to `[0, span)`."""
        if self._known is not None:
            return np.searchsorted(self._known, times, "left").astype(np.int64)
        return np.clip(times, self._zero, self._zero + self._last) - self._zero


def by_group_and_time(group: IntArray, time: IntArray) -> IntArray:
    """Return an order by group, then by time; `group` is not negative.

    >>> by_group_and_time(np.array([1, 0, 1]), np.array([7, 9, 3])).tolist()
    [1, 2, 0]
    """
    if len(time):
        low, span = int(time.min()), int(time.max()) - int(time.min()) + 1
        if span * (int(group.max()) + 1) < _LARGEST:
            return np.argsort(group * span + (time - low))
    return np.lexsort((time, group))


def running_max(group: IntArray, values: IntArray) -> IntArray:
    """Return the greatest value so far within each group; `group` ascends from 0.

    >>> running_max(np.array([0, 0, 1]), np.array([9, 3, 4])).tolist()
    [9, 9, 4]
    """
    if not len(values):
        return values
    groups = int(group[-1]) + 1
    if groups == 1:
        return np.maximum.accumulate(values)
    low, high = int(values.min()), int(values.max())
    if (high - low + 1) * groups < _LARGEST:
        base = group * (high - low + 1) - low
        return np.maximum.accumulate(values + base) - base
    known, rank = np.unique(values, return_inverse=True)
    base = group * len(known)
    return known[np.maximum.accumulate(rank + base) - base]


RowSpans = tuple[IntArray, IntArray, IntArray]
"""Parts of rows: the place of the row of each part, its start, its end."""


class CoverageSplit(NamedTuple):
    """Gaps, newly covered parts, and the new covered ends `until` of the rows at `place`."""

    gaps: RowSpans
    covered: RowSpans
    place: IntArray
    until: IntArray


def split_by_coverage(
    place: IntArray, start: IntArray, end: IntArray, covered: IntArray
) -> CoverageSplit:
    """Split rows by matches, visited in the order of their start; `covered` is the end per row.

    This is the loop over matches of ESWC 2008, Algorithm 5.

    >>> places, covered = np.array([0, 0]), np.array([0])
    >>> parts = split_by_coverage(places, np.array([2, 5]), np.array([4, 9]), covered)
    >>> [x.tolist() for x in parts.gaps], parts.until.tolist()
    ([[0, 0], [0, 4], [2, 5]], [9])
    """
    before = covered[place]
    new = end > before
    if not new.all():
        place, start, end, before = place[new], start[new], end[new], before[new]
    if len(place) > 1:
        order = by_group_and_time(place, start)
        place, start, end, before = place[order], start[order], end[order], before[order]
    first = firsts(place)
    until = running_max(np.cumsum(first) - 1, end)
    (later,) = (~first).nonzero()
    before[later] = until[later - 1]
    gap = start > before
    piece = first | gap
    last = lasts(first)
    return CoverageSplit(
        (place[gap], before[gap], start[gap]),
        (place[piece], np.maximum(start, before)[piece], until[lasts(piece)]),
        place[last],
        until[last],
    )


def newly_covered(spans: RowSpans, known: Sequence[RowSpans]) -> RowSpans:
    """Return the maximal spans in which a span of a group holds, but none of its `known` ones.

    >>> spans = np.array([0, 0]), np.array([0, 4]), np.array([5, 9])
    >>> known = np.array([0]), np.array([2]), np.array([3])
    >>> [x.tolist() for x in newly_covered(spans, [known])]
    [[0, 0], [0, 3], [2, 9]]
    """
    count = len(spans[0])
    place = np.concatenate([spans[0], *(k[0] for k in known)])
    start = np.concatenate([spans[1], *(k[1] for k in known)])
    end = np.concatenate([spans[2], *(k[2] for k in known)])
    group, time = np.concatenate([place, place]), np.concatenate([start, end])
    change = np.ones(len(time), np.int64)
    change[len(place) :] = -1
    is_span = np.zeros(len(time), np.bool_)
    is_span[:count] = is_span[len(place) : len(place) + count] = True
    order = by_group_and_time(group, time)
    group, time, change, is_span = group[order], time[order], change[order], is_span[order]
    holding = np.cumsum(np.where(is_span, change, 0))[:-1]
    covered = np.cumsum(np.where(is_span, 0, change))[:-1]
    new = np.flatnonzero((holding > 0) & (covered == 0) & (time[:-1] < time[1:]))
    group, start, end = group[new], time[new], time[new + 1]
    begins = firsts(group)
    begins[1:] |= start[1:] != end[:-1]
    return group[begins], start[begins], end[lasts(begins)]
