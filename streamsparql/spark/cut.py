"""Where time is cut into slabs, and why there.

A slab is a part of time, `[begin, end)`; its task computes the whole plan over the elements that
hold in it. An element that holds in several slabs is computed in each, so slabs are long against
what windows reach: `TimeHistogram.replication` says how much is read twice. Where windows reach so
far that cutting time does not pay, the streams are divided by the value of a variable that all
joins share, if there is one (`algebra/partition.py`), and else there are fewer slabs. What was
decided and why is in `Cut.reasons`, for `explain` to show.
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

ROWS = 3_000_000
"""How many items a slab has, about; one that has half as many again is cut further."""
FEWEST = 50_000
"""A slab of less is not worth a task."""
FINE, BOUND = 1.25, 1.4
"""How often an item may be computed: with many slabs, and at most."""


class Part(NamedTuple):
    """What a task is for: a part of time, or of the values of the key."""

    number: int
    begin: int
    end: int
    bucket: int = 0
    buckets: int = 1


@dataclass(frozen=True)
class Cut:
    """The parts of a run, in order of time; `key` names the variable that divides the streams."""

    parts: tuple[Part, ...]
    reasons: tuple[str, ...]
    key: str | None = None

    @property
    def borders(self) -> IntArray:
        """Where a slab ends and the next begins."""
        return np.array([] if self.key else [p.begin for p in self.parts[1:]], np.int64)


class TimeHistogram:
    """How the items of streams spread over time: how many come before an instant.

    >>> spread = TimeHistogram.of_samples([np.array([0, 10, 20, 30])], [8])
    >>> spread.rows, spread.first, spread.last, spread.before(15), spread.instants([4]).tolist()
    (8.0, 0, 30, 4.0, [20])
    """

    def __init__(self, at: IntArray, before: npt.NDArray[np.float64]) -> None:
        self._at, self._before = at, before
        self.rows = float(before[-1]) if len(before) else 0.0
        self.first = int(at[0]) if len(at) else 0
        self.last = int(at[-1]) - 1 if len(at) else 0

    @classmethod
    def of_ranges(cls, ranges: Iterable[tuple[int, int, int]]) -> TimeHistogram:
        """Of so many items each between a least and a greatest stamp, evenly spread.

        >>> TimeHistogram.of_ranges([(0, 9, 100), (10, 19, 300)]).before(15)
        250.0
        """
        some = sorted(r for r in ranges if r[2])
        at = np.array([t for least, most, _ in some for t in (least, most + 1)], np.int64)
        total = np.zeros(len(at))
        at.sort()
        for least, most, rows in some:
            total += rows * np.clip((at - least) / (most + 1 - least), 0, 1)
        return cls._of(at, total)

    @classmethod
    def of_samples(cls, samples: Sequence[IntArray], rows: Sequence[int]) -> TimeHistogram:
        """Of samples of stamps, and how many items each stands for."""
        kept = [(s, n / len(s)) for s, n in zip(samples, rows, strict=True) if len(s)]
        if not kept:
            return cls(np.empty(0, np.int64), np.empty(0))
        stamps = np.concatenate([s for s, _ in kept])
        weights = np.concatenate([np.full(len(s), each) for s, each in kept])
        order = np.argsort(stamps, kind="stable")
        stamps, total = stamps[order], np.cumsum(weights[order])
        after = np.flatnonzero(np.append(stamps[1:] != stamps[:-1], True))
        up_to = total[after]
        at = np.repeat(stamps[after], 2)
        at[1::2] += 1
        counts = np.repeat(up_to, 2)
        counts[0], counts[2::2] = 0.0, up_to[:-1]
        return cls._of(at, counts)

    @classmethod
    def _of(cls, at: IntArray, before: npt.NDArray[np.float64]) -> TimeHistogram:
        last = np.append(at[1:] != at[:-1], True) if len(at) else np.empty(0, np.bool_)
        return cls(at[last], np.maximum.accumulate(before)[last] if len(at) else before)

    @classmethod
    def together(cls, spreads: Sequence[TimeHistogram]) -> TimeHistogram:
        """Of several streams."""
        some = [s for s in spreads if len(s._at)]
        if len(some) < 2:
            return some[0] if some else cls.of_samples([], [])
        at = np.unique(np.concatenate([s._at for s in some]))
        total: npt.NDArray[np.float64] = sum(
            (np.interp(at, s._at, s._before, 0.0, s.rows) for s in some), np.zeros(len(at))
        )
        return cls(at, total)

    def before(self, t: int) -> float:
        """How many items are stamped before an instant, about."""
        return float(np.interp(t, self._at, self._before)) if len(self._at) else 0.0

    def instants(self, rows: Sequence[float]) -> IntArray:
        """The first instants before which there are so many items."""
        found: IntArray = np.ceil(np.interp(rows, self._before, self._at)).astype(np.int64)
        return found

    def between(self, begin: int, end: int) -> float:
        """How many items are stamped from one instant to before another."""
        return self.before(end) - self.before(begin)

    def replication(self, borders: Sequence[int], reach: int) -> float:
        """How often an item is computed on average, where it is in each slab that it reaches."""
        if not self.rows:
            return 1.0
        again = sum(self.between(max(border - reach, 0), border) for border in borders)
        return 1.0 + again / self.rows


@dataclass(frozen=True)
class CutOptions:
    """What a plan and a caller ask of a cut."""

    reach: int
    """How far back a slab has to look."""
    grid: tuple[int, int] | None = None
    keys: tuple[str, ...] = ()
    begin: int = 0
    end: int = INFINITY
    slabs: int | None = None
    cores: int = 1


def cut(spread: TimeHistogram, options: CutOptions) -> Cut:
    """The parts of a run over streams that are spread so.

    >>> day = TimeHistogram.of_ranges([(0, 86_399_999, 12_000_000)])
    >>> made = cut(day, CutOptions(reach=60_000, grid=(6_000, 0), cores=2))
    >>> [(part.begin, part.end % 6_000) for part in made.parts[:2]]
    [(0, 0), (21600000, 0)]
    """
    if options.slabs is not None and options.slabs < 1:
        raise EngineError(f"time is cut into a number of slabs, not into {options.slabs}")
    if options.slabs is not None:
        borders = _borders(spread, options, options.slabs)
        return _in_time(borders, options, [f"{len(borders) + 1} slabs, as asked for"])
    rows = spread.between(options.begin, options.end)
    count = max(min(options.cores, int(rows // FEWEST)), 1)
    if rows > count * ROWS:
        count = -(-round(rows / ROWS) // options.cores) * options.cores  # so that all end together
    why = [f"about {int(rows):,} items"]
    while count > options.cores and _replication(spread, options, count) > FINE:
        count = max(options.cores, count // 2)
    share = _replication(spread, options, count)
    if share > BOUND and options.keys:
        return _by_key(options, max(count, round(rows / ROWS)), share, why)
    if share > BOUND:
        why.append(
            f"items hold {_long(options.reach)}: in {count} slabs each is read {share:.1f} times"
        )
    while count > 1 and share > BOUND:
        count -= 1
        share = _replication(spread, options, count)
    borders = _borders(spread, options, count)
    if not borders:
        return _in_time([], options, [*why, "one task does it all"])
    again = spread.replication(borders, options.reach) - 1
    slabs = f"{len(borders) + 1} slabs of about {int(rows / count):,} items"
    why.append(f"{slabs}; items hold {_long(options.reach)}, so {again:.1%} are read twice")
    return _in_time(borders, options, why)


def _long(reach: int) -> str:
    return "for ever" if reach >= INFINITY else f"for {reach:,} ms"


def _replication(spread: TimeHistogram, options: CutOptions, count: int) -> float:
    return spread.replication(_borders(spread, options, count), options.reach)


def _borders(spread: TimeHistogram, options: CutOptions, count: int) -> list[int]:
    """Where time is cut into so many slabs of about as many items, on the grid of the windows."""
    first, last = max(options.begin, spread.first), min(options.end - 1, spread.last)
    low, rows = spread.before(first), spread.between(first, last + 1)
    if count < 2 or rows <= 0:
        return []
    exact = spread.instants([low + rows * k / count for k in range(1, count)]).tolist()
    found = sorted(set(map(_aligned(options, last - first, count), exact)))
    inside = [t for t in found if first < t <= last]
    return _further(spread, inside, (first, last + 1), rows / count)


def _aligned(options: CutOptions, span: int, count: int) -> Callable[[int], int]:
    """What moves an instant to the grid, where slabs are long against that."""
    if options.grid is None or options.grid[0] * 2 > span / count:
        return int
    period, origin = options.grid
    return lambda t: (t - origin + period // 2) // period * period + origin


def _further(
    spread: TimeHistogram, borders: list[int], ends: tuple[int, int], most: float
) -> list[int]:
    """With further cuts where a slab has half as many items again, on the grid or off it."""
    found: list[int] = []
    for begin, end in pairwise([ends[0], *borders, ends[1]]):
        rows = spread.between(begin, end)
        if rows > 1.5 * most and end - begin > 1:
            pieces = round(rows / most)
            low = spread.before(begin)
            inner = spread.instants([low + rows * k / pieces for k in range(1, pieces)])
            found += sorted({t for t in inner.tolist() if begin < t < end})
        found.append(end)
    return found[:-1]


def _in_time(borders: Sequence[int], options: CutOptions, why: Sequence[str]) -> Cut:
    edges = [options.begin, *borders, options.end]
    pairs = pairwise(edges)
    return Cut(tuple(Part(k, b, e) for k, (b, e) in enumerate(pairs)), tuple(why))


def _by_key(options: CutOptions, count: int, share: float, why: Sequence[str]) -> Cut:
    key = options.keys[0]
    reasons = (
        *why,
        f"items hold {_long(options.reach)}: in slabs of time each is read {share:.1f} times",
        f"all that meets has the same ?{key}: the streams are divided by its value",
    )
    parts = (Part(k, options.begin, options.end, k, count) for k in range(count))
    return Cut(tuple(parts), reasons, key)
