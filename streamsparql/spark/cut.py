"""The cut of a run: where time is cut into slabs, and why.

A slab is a part of time, `[begin, end)`; its task computes the whole plan over the elements that
hold in it. An element that holds in several slabs is computed in each, so slabs are made long
relative to the reach of windows: `TimeHistogram.replication` estimates how often an item is read.
Where windows reach so far that cutting time does not pay, the streams are divided by the value of a
variable that all joins share, if there is one (`algebra/partition.py`); otherwise there are fewer
slabs. `Cut.reasons` records the decisions and their reasons, for `explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streamsparql.errors import EngineError
from streamsparql.physical.batch import IntArray
from streamsparql.physical.operator import INFINITY

SLAB_ITEMS = 3_000_000
"""The approximate number of items per slab; a slab of 1.5 times as many is cut further."""
MIN_SLAB_ITEMS = 50_000
"""The number of items below which a further slab costs more than it saves."""
PREFERRED_REPLICATION, MAX_REPLICATION = 1.25, 1.4
"""How often an item may be computed on average: with more slabs than cores, and at most."""


class TaskPart(NamedTuple):
    """The part of a run that one task computes: a slab of time, or a bucket of the key's values."""

    number: int
    begin: int
    end: int
    bucket: int = 0
    buckets: int = 1


@dataclass(frozen=True)
class Cut:
    """The parts of a run, in order of time; `key` names the variable that divides the streams."""

    parts: tuple[TaskPart, ...]
    reasons: tuple[str, ...]
    key: str | None = None

    @property
    def borders(self) -> IntArray:
        """The instants at which a slab ends and the next begins."""
        return np.array([] if self.key else [p.begin for p in self.parts[1:]], np.int64)


class TimeHistogram:
    """The distribution of the items of streams over time.

    >>> histogram = TimeHistogram.of_samples([np.array([0, 10, 20, 30])], [8])
    >>> histogram.rows, histogram.first, histogram.last
    (8.0, 0, 30)
    >>> histogram.before(15), histogram.instants([4]).tolist()
    (4.0, [20])
    """

    def __init__(self, at: IntArray, before: npt.NDArray[np.float64]) -> None:
        self._at, self._before = at, before
        self.rows = float(before[-1]) if len(before) else 0.0
        self.first = int(at[0]) if len(at) else 0
        self.last = int(at[-1]) - 1 if len(at) else 0

    @classmethod
    def of_ranges(cls, ranges: Iterable[tuple[int, int, int]]) -> TimeHistogram:
        """Return the histogram of ranges `(least, greatest timestamp, items)`, evenly filled.

        >>> TimeHistogram.of_ranges([(0, 9, 100), (10, 19, 300)]).before(15)
        250.0
        """
        filled = sorted(r for r in ranges if r[2])
        at = np.array([t for least, most, _ in filled for t in (least, most + 1)], np.int64)
        total = np.zeros(len(at))
        at.sort()
        for least, most, rows in filled:
            total += rows * np.clip((at - least) / (most + 1 - least), 0, 1)
        return cls._of_counts(at, total)

    @classmethod
    def of_samples(cls, samples: Sequence[IntArray], rows: Sequence[int]) -> TimeHistogram:
        """Return the histogram of samples of timestamps; `rows` are the items each represents."""
        weighted = [(s, n / len(s)) for s, n in zip(samples, rows, strict=True) if len(s)]
        if not weighted:
            return cls(np.empty(0, np.int64), np.empty(0))
        stamps = np.concatenate([s for s, _ in weighted])
        weights = np.concatenate([np.full(len(s), each) for s, each in weighted])
        order = np.argsort(stamps, kind="stable")
        stamps, total = stamps[order], np.cumsum(weights[order])
        after = np.flatnonzero(np.append(stamps[1:] != stamps[:-1], True))
        up_to = total[after]
        at = np.repeat(stamps[after], 2)
        at[1::2] += 1
        counts = np.repeat(up_to, 2)
        counts[0], counts[2::2] = 0.0, up_to[:-1]
        return cls._of_counts(at, counts)

    @classmethod
    def _of_counts(cls, at: IntArray, before: npt.NDArray[np.float64]) -> TimeHistogram:
        last = np.append(at[1:] != at[:-1], True) if len(at) else np.empty(0, np.bool_)
        return cls(at[last], np.maximum.accumulate(before)[last] if len(at) else before)

    @classmethod
    def merge(cls, histograms: Sequence[TimeHistogram]) -> TimeHistogram:
        """Return the histogram of several streams together."""
        filled = [s for s in histograms if len(s._at)]
        if len(filled) < 2:
            return filled[0] if filled else cls.of_samples([], [])
        at = np.unique(np.concatenate([s._at for s in filled]))
        total: npt.NDArray[np.float64] = sum(
            (np.interp(at, s._at, s._before, 0.0, s.rows) for s in filled), np.zeros(len(at))
        )
        return cls(at, total)

    def before(self, t: int) -> float:
        """Estimate the number of items stamped before an instant."""
        return float(np.interp(t, self._at, self._before)) if len(self._at) else 0.0

    def instants(self, rows: Sequence[float]) -> IntArray:
        """Return, for each number of items, the first instant before which there are that many."""
        at: IntArray = np.ceil(np.interp(rows, self._before, self._at)).astype(np.int64)
        return at

    def between(self, begin: int, end: int) -> float:
        """Estimate the number of items stamped in `[begin, end)`."""
        return self.before(end) - self.before(begin)

    def replication(self, borders: Sequence[int], reach: int) -> float:
        """Estimate how often an item is computed on average, once in each slab that it reaches.

        `reach` is the look-back of a slab, in milliseconds.
        """
        if not self.rows:
            return 1.0
        repeated = sum(self.between(max(border - reach, 0), border) for border in borders)
        return 1.0 + repeated / self.rows


@dataclass(frozen=True)
class CutOptions:
    """The requirements of a plan and of a caller on a cut."""

    reach: int
    """The look-back of a slab, in milliseconds."""
    grid: tuple[int, int] | None = None
    """Period and origin of the instants at which windows jump, if they share such a grid."""
    keys: tuple[str, ...] = ()
    """The variables by whose values the streams can be divided."""
    begin: int = 0
    end: int = INFINITY
    slabs: int | None = None
    """The requested number of slabs."""
    cores: int = 1
    events: bool = False
    """Whether items are needed for events, instead of holding in windows."""

    @property
    def hold(self) -> str:
        """The time for which items are read, as text."""
        holding = "are needed" if self.events else "hold"
        until = "forever" if self.reach >= INFINITY else f"for {self.reach:,} ms"
        return f"items {holding} {until}"


def cut(histogram: TimeHistogram, options: CutOptions) -> Cut:
    """Return the parts of a run over streams with this distribution over time.

    >>> day = TimeHistogram.of_ranges([(0, 86_399_999, 12_000_000)])
    >>> result = cut(day, CutOptions(reach=60_000, grid=(6_000, 0), cores=2))
    >>> [(part.begin, part.end % 6_000) for part in result.parts[:2]]
    [(0, 0), (21600000, 0)]
    """
    if options.slabs is not None and options.slabs < 1:
        raise EngineError(f"slabs must be a positive number, not {options.slabs}")
    if options.slabs is not None:
        borders = _borders(histogram, options, options.slabs)
        return _cut_by_time(borders, options, [f"{len(borders) + 1} slabs, as requested"])
    rows = histogram.between(options.begin, options.end)
    count = max(min(options.cores, int(rows // MIN_SLAB_ITEMS)), 1)
    if rows > count * SLAB_ITEMS:
        # A multiple of the cores, so that all tasks end together.
        count = -(-round(rows / SLAB_ITEMS) // options.cores) * options.cores
    why = [f"about {int(rows):,} items"]
    while count > options.cores and _replication(histogram, options, count) > PREFERRED_REPLICATION:
        count = max(options.cores, count // 2)
    replication = _replication(histogram, options, count)
    if replication > MAX_REPLICATION and options.keys:
        return _cut_by_key(options, max(count, round(rows / SLAB_ITEMS)), replication, why)
    if replication > MAX_REPLICATION:
        why.append(f"{options.hold}: with {count} slabs each would be read {replication:.1f} times")
    while count > 1 and replication > MAX_REPLICATION:
        count -= 1
        replication = _replication(histogram, options, count)
    borders = _borders(histogram, options, count)
    if not borders:
        return _cut_by_time([], options, [*why, "one task computes everything"])
    repeated = histogram.replication(borders, options.reach) - 1
    slabs = f"{len(borders) + 1} slabs of about {int(rows / count):,} items"
    why.append(f"{slabs}; {options.hold}, so {repeated:.1%} are read twice")
    return _cut_by_time(borders, options, why)


def _replication(histogram: TimeHistogram, options: CutOptions, count: int) -> float:
    return histogram.replication(_borders(histogram, options, count), options.reach)


def _borders(histogram: TimeHistogram, options: CutOptions, count: int) -> list[int]:
    """Return the borders of `count` slabs of about equal size, on the grid of the windows."""
    first, last = max(options.begin, histogram.first), min(options.end - 1, histogram.last)
    low, rows = histogram.before(first), histogram.between(first, last + 1)
    if count < 2 or rows <= 0:
        return []
    exact = histogram.instants([low + rows * k / count for k in range(1, count)]).tolist()
    aligned = sorted(set(map(_alignment(options, last - first, count), exact)))
    inside = [t for t in aligned if first < t <= last]
    return _split_large_slabs(histogram, inside, (first, last + 1), rows / count)


def _alignment(options: CutOptions, span: int, count: int) -> Callable[[int], int]:
    """Return the function that moves an instant to the grid, or the identity for short slabs."""
    if options.grid is None or options.grid[0] * 2 > span / count:
        return int
    period, origin = options.grid
    return lambda t: (t - origin + period // 2) // period * period + origin


def _split_large_slabs(
    histogram: TimeHistogram, borders: list[int], ends: tuple[int, int], most: float
) -> list[int]:
    """Cut slabs of more than 1.5 times `most` items further, even if not on the grid."""
    all_borders: list[int] = []
    for begin, end in pairwise([ends[0], *borders, ends[1]]):
        rows = histogram.between(begin, end)
        if rows > 1.5 * most and end - begin > 1:
            pieces = round(rows / most)
            low = histogram.before(begin)
            inner = histogram.instants([low + rows * k / pieces for k in range(1, pieces)])
            all_borders += sorted({t for t in inner.tolist() if begin < t < end})
        all_borders.append(end)
    return all_borders[:-1]


def _cut_by_time(borders: Sequence[int], options: CutOptions, why: Sequence[str]) -> Cut:
    edges = [options.begin, *borders, options.end]
    pairs = pairwise(edges)
    return Cut(tuple(TaskPart(k, b, e) for k, (b, e) in enumerate(pairs)), tuple(why))


def _cut_by_key(options: CutOptions, count: int, replication: float, why: Sequence[str]) -> Cut:
    key = options.keys[0]
    reasons = (
        *why,
        f"{options.hold}: with slabs of time each would be read {replication:.1f} times",
        f"all joins and groups share ?{key}: the streams are divided by its value",
    )
    parts = (TaskPart(k, options.begin, options.end, k, count) for k in range(count))
    return Cut(tuple(parts), reasons, key)
