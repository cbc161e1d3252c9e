"""An index of rows by key and time: it finds the rows with the keys of probes, and how many.

The rows with the key of a probe are its candidates; pairs are those that overlap the probe in time.
The number of candidates is known before any is produced. A few candidates are produced and
filtered. If there are many, those that start after the probe ends are skipped, and those that start
so long before it that the longest validity of the index cannot reach it (which is exact for windows
of one size). If many are left, two exact searches find the pairs: rows that start within a probe,
and probes that start within a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from streamsparql.physical.batch import IntArray
from streamsparql.physical.kernels.intervals import TimeCodes, pairs_in_blocks

_FEW = 256
"""Up to this number of candidates, all are produced and filtered."""
_WASTE = 12
"""Up to this number of candidates per row, producing and filtering is cheaper than searching."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class KeyIndex:
    """Rows in buckets by the hash of their keys: a probe needs no search.

    The arrays are in the order of the buckets, rows of a bucket in their original order; `order`
    has their places. A bucket may have several keys, so keys are compared. There are two to four
    times as many buckets as rows.

    >>> index = KeyIndex(np.array([7, 7, 8]), np.array([0, 5, 0]), np.array([9, 9, 9]))
    >>> found = index.candidates(np.array([7, 8]), np.array([0, 0]), np.array([3, 3]))
    >>> found.count.tolist(), [(i.tolist(), j.tolist()) for i, j in found.pairs()]
    ([2, 1], [([0, 1], [0, 2])])
    """

    def __init__(self, keys: IntArray, start: IntArray, end: IntArray) -> None:
        self._bits = np.uint64(max(len(keys).bit_length() + 1, 2))
        bucket = self._bucket(keys)
        self.order = _radix_order(bucket, int(self._bits))
        self.keys, self.start, self.end = keys[self.order], start[self.order], end[self.order]
        self.first = np.zeros((1 << int(self._bits)) + 1, np.int64)
        np.cumsum(np.bincount(bucket, minlength=len(self.first) - 1), out=self.first[1:])

    def _bucket(self, keys: IntArray) -> IntArray:
        return ((keys.view(np.uint64) * _GOLDEN) >> (np.uint64(64) - self._bits)).view(np.int64)

    @cached_property
    def _longest(self) -> int:
        """The longest validity."""
        return int((self.end - self.start).max())

    @cached_property
    def _timed(self) -> _Timed:
        """The rows by start within the buckets."""
        return _Timed(self.first, self.start, self.end)

    def candidates(self, keys: IntArray, start: IntArray, end: IntArray) -> Ranges:
        """Return the candidates of probes: the rows in their buckets."""
        bucket = self._bucket(keys)
        low = self.first[bucket]
        return Ranges(self, Probes(keys, start, end, bucket), low, self.first[bucket + 1] - low)

    @cached_property
    def _common(self) -> tuple[int, int]:
        """The latest start and the earliest end: all rows hold in between."""
        return int(self.start.max()), int(self.end.min())

    def overlap_all(self, probes: Probes) -> bool:
        """Return whether all rows overlap all probes, as those of static data do."""
        start, end = self._common
        return start < int(probes.end.min()) and int(probes.start.max()) < end

    def in_time(self, probes: Probes) -> tuple[IntArray, IntArray]:
        """Return the ranges, by start, of the rows in the buckets that may overlap probes."""
        return self._timed.within(probes.bucket, probes.start - self._longest + 1, probes.end)

    def pairs(
        self, probes: Probes, low: IntArray, count: IntArray, timed: bool
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the pairs of a probe and a row with equal keys that overlap in time."""
        total, places = int(count.sum()), None
        if not total:
            return
        always = self.overlap_all(probes)
        if not timed and not always and many(total, len(probes.keys)):
            timed = True
            low, count = self.in_time(probes)
            total = int(count.sum())
        if timed and total > _WASTE * (len(probes.keys) + len(self.keys)):
            blocks = self._timed.meet(probes.bucket, probes.start, probes.end)
        else:
            blocks = pairs_in_blocks(low, count)
            places = self._timed.place if timed else None
        for i, j in blocks:
            if places is not None:
                j = places[j]
            meets = self.keys[j] == probes.keys[i]
            if not always:
                meets &= self.start[j] < probes.end[i]
                meets &= self.end[j] > probes.start[i]
            yield (i, self.order[j]) if meets.all() else (i[meets], self.order[j[meets]])


def many(candidates: int, probes: int) -> bool:
    """Return whether candidates are so many that searching by time is cheaper than filtering."""
    return candidates > _WASTE * probes + _FEW


class Probes(NamedTuple):
    """The rows that probe an index."""

    keys: IntArray
    start: IntArray
    end: IntArray
    bucket: IntArray

    def take(self, places: IntArray) -> Probes:
        """Return the probes at these places."""
        return Probes(*(array[places] for array in self))


class Ranges:
    """The candidates of probes: a range of places of an index for each, by start if `timed`."""

    __slots__ = ("_index", "_low", "_probes", "_timed", "count")

    def __init__(
        self,
        index: KeyIndex,
        probes: Probes,
        low: IntArray,
        count: IntArray,
        timed: bool = False,
    ) -> None:
        self._index, self._probes, self._low, self._timed = index, probes, low, timed
        self.count = count
        """The number of candidates of each probe."""

    def in_time(self) -> Ranges:
        """Return the candidates that may overlap the probes."""
        if self._timed or self._index.overlap_all(self._probes):
            return self
        return Ranges(self._index, self._probes, *self._index.in_time(self._probes), timed=True)

    def pairs(self, chosen: IntArray | None = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the pairs of a probe and a row that match, of the chosen probes if not of all."""
        index, probes, low, count = self._index, self._probes, self._low, self.count
        if chosen is None:
            yield from index.pairs(probes, low, count, self._timed)
            return
        for i, j in index.pairs(probes.take(chosen), low[chosen], count[chosen], self._timed):
            yield chosen[i], j


def _radix_order(numbers: IntArray, bits: int) -> IntArray:
    """Return a stable order by numbers of at most 32 bits; numpy sorts 16 bits by radix."""
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if bits > 16:
        high = (numbers >> 16).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order


class _Timed:
    """The rows of an index by bucket, then by start: one composite number orders them by both."""

    def __init__(self, first: IntArray, start: IntArray, end: IntArray) -> None:
        self._codes = TimeCodes(start, len(first))
        self._bucket = np.repeat(np.arange(len(first) - 1), np.diff(first))
        self._start, self._end = start, end
        composite = self._bucket * self._codes.span + self._codes.of(start)
        self.place: IntArray | None = None
        if not (composite[1:] >= composite[:-1]).all():
            self.place = np.argsort(composite, kind="stable")
            composite = composite[self.place]
        self._composite = composite

    def within(self, bucket: IntArray, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """Return the range of the rows of each bucket that start in `[low, high)`."""
        base = bucket * self._codes.span
        first = np.searchsorted(self._composite, base + self._codes.of(low))
        after = np.searchsorted(self._composite, base + self._codes.of(high))
        return first, after - first

    def meet(
        self, bucket: IntArray, start: IntArray, end: IntArray
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the pairs that overlap: rows that start within a probe, then the reverse."""
        for i, j in pairs_in_blocks(*self.within(bucket, start, end)):
            yield i, j if self.place is None else self.place[j]
        order = np.argsort(bucket, kind="stable")
        first = np.searchsorted(bucket[order], np.arange(int(bucket.max()) + 2))
        probes = _Timed(first, start[order], end[order])
        rows = np.flatnonzero(self._bucket < len(first) - 1)
        ranges = probes.within(self._bucket[rows], self._start[rows] + 1, self._end[rows])
        for j, i in pairs_in_blocks(*ranges):
            yield order[i if probes.place is None else probes.place[i]], rows[j]
