"""The sweep area: the rows of one input that a later row of the other input can match.

The sweep area of the paper (ESWC 2008, Algorithm 4) handles single elements; this one handles
batches, organised like a log-structured store. An insert is a *run*. A run is merged with those
that are not much longer, so there are O(log n) runs and a row is moved O(log n) times; a single row
joins a short run that is searched without an index. The first probe of a longer run builds an
index: its rows in buckets by the hash of their keys. Expired rows are evicted when half of a run
has expired; runs are ordered by the instant at which half has expired.

Two rows are compatible when each shared variable is equal in both or unbound in one of them. So
rows are partitioned by the shared variables that they bind. Between a partition of the area and a
partition of the probes, the key is the variables that both bind; without such variables, time alone
decides. Keys of several columns are hashes, so matches are verified.

The rows with the key of a probe are candidates; pairs are those that overlap the probe in time. The
number of candidates is known before any is produced. A few candidates are produced and filtered. If
there are many, those that start after the probe ends are skipped, and those that start so long
before it that the longest validity of the run cannot reach it (which is exact for windows of one
size). If many are left, two exact searches find the pairs: rows that start within a probe, and
probes that start within a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from sortedcontainers import SortedKeyList

from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch, IntArray
from streamsparql.physical.hidden import is_carried
from streamsparql.physical.kernels.intervals import TimeCodes, pairs_in_blocks
from streamsparql.physical.kernels.keys import row_keys
from streamsparql.physical.state.parts import RowStore, id_columns, table_of

_SMALL = 256
"""Up to this number of rows, a few probes search a run without an index."""
_BRUTE = 1 << 13
"""Up to this number of comparisons, building an index costs more."""
_FACTOR = 3
"""A run is merged with one that is up to this many times as long."""
_FEW = 256
"""Up to this number of candidates, all are produced and filtered."""
_WASTE = 12
"""Up to this number of candidates per row, producing and filtering is cheaper than searching."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_RUN = "#run"
_SAMPLED = 1 << 11
"""From this number of rows on, the half-life of a run is estimated from a sample."""
_SAMPLE = np.arange(_SAMPLED // 4) * 0x9E3779B1


class Pairs(NamedTuple):
    """Row `probe[k]` of the probing batch matches row `place[k]` of `rows`, for each k."""

    probe: IntArray
    rows: Batch
    place: IntArray


class SweepArea(RowStore):
    """Rows with the columns `names`, matched on the variables `shared` with the other input.

    With `exact`, unbound is a value like others: it equals itself only.

    >>> area = SweepArea(["x", "y"], ["x"])
    >>> row = {"x": np.array([7]), "y": np.array([1])}
    >>> area.insert(Batch(row, np.array([0]), np.array([10])))
    >>> probes = Batch({"x": np.array([7, 8, 0, 7])}, np.array([1, 2, 3, 10]), np.full(4, 20))
    >>> [pairs.probe.tolist() for pairs in area.query(probes)]
    [[2], [0]]
    >>> area.purge(10)
    >>> len(area)
    0
    """

    scalars = ("_purged",)
    encoded = ("_runs",)

    def __init__(self, names: Sequence[str], shared: Sequence[str], exact: bool = False) -> None:
        self.names = tuple(names)
        self.shared = tuple(shared)
        self._exact = exact
        self._runs: dict[int, SortedKeyList] = {}
        self._purged = -1

    def another(self) -> SweepArea:
        """Return an empty area of the same kind."""
        return SweepArea(self.names, self.shared, self._exact)

    def _run(self, rows: Batch) -> AreaRun:
        """Return a run of rows."""
        return AreaRun(rows)

    @override
    def __len__(self) -> int:
        """Return the number of rows, including expired ones not yet purged. O(runs)."""
        return sum(run.size for runs in self._runs.values() for run in runs)

    @override
    def rows(self) -> Batch:
        """Return all rows, including expired ones not yet purged. O(n)."""
        return Batch.concat([run.rows for run in self.all_runs()], self.names)

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        for run in self.all_runs():
            yield from id_columns(run.rows)

    def all_runs(self) -> Iterator[AreaRun]:
        """Return the runs of all partitions."""
        return (run for runs in self._runs.values() for run in runs)

    @override
    def own_table(self) -> pa.Table:
        """Return the rows with the numbers of their runs; a run determines when they are purged."""
        sizes = [run.size for run in self.all_runs()]
        runs = np.repeat(np.arange(len(sizes)), sizes)
        return table_of(self.rows().with_columns({_RUN: runs}))

    @override
    def restore_own(self, table: pa.Table) -> None:
        self.put_back(self._rows_of(table, (*self.names, _RUN)))

    @override
    def put_back(self, rows: Batch) -> None:
        run = rows.columns[_RUN]
        borders = [0, *((run[1:] != run[:-1]).nonzero()[0] + 1).tolist(), len(rows)]
        for first, after in pairwise(borders):
            part = rows.part(first, after).project(self.names)
            for bound, _ in self._by_bound(part):
                self._runs.setdefault(bound, SortedKeyList(key=_expiry)).add(self._run(part))

    def insert(self, batch: Batch) -> None:
        """Insert rows. Amortised O(log n) per row, with a small constant: rows are copied."""
        for bound, places in self._by_bound(batch):
            rows = batch if places is None else batch.take(places)
            self._add(bound, self._run(rows.project(self.names)))

    def _add(self, bound: int, run: AreaRun) -> None:
        runs = self._runs.get(bound)
        if runs is None:
            runs = self._runs[bound] = SortedKeyList(key=_expiry)
        while True:
            near = next((other for other in runs if other.near(run)), None)
            if near is None:
                break
            runs.remove(near)
            run = self._run(Batch.concat([near.rows, run.rows]))
        runs.add(run)

    def query(self, batch: Batch, sharing: bool = False) -> Iterator[Pairs]:
        """Yield the pairs of compatible rows that overlap, in blocks.

        With `sharing`, only pairs with a variable that is bound in both. O(log n) per probe and
        run, plus the pairs, plus at most a few times the number of rows.
        """
        if not self._runs or not len(batch):
            return
        for bound, places in self._by_bound(batch):
            probes = batch if places is None else batch.take(places)
            for mine, runs in self._runs.items():
                both = mine & bound
                key = tuple(n for k, n in enumerate(self.shared) if both >> k & 1)
                if sharing and all(map(is_carried, key)):
                    continue
                columns = [probes.column(name) for name in key]
                keys = row_keys(columns, len(probes))
                for run in runs:
                    for i, j in run.meet(key, keys, probes.start, probes.end):
                        if len(key) > 1:
                            i, j = _verified(columns, run.rows, key, i, j)
                        if len(i):
                            yield Pairs(i if places is None else places[i], run.rows, j)

    def purge(self, t: int) -> None:
        """Evict the rows that end at `t` or before. Amortised O(1) per row, plus O(runs).

        A run is scanned only when half of its rows have ended, so the area has at most twice as
        many rows as are alive, or about twice if it estimated the half-lives of long runs.
        """
        if t <= self._purged:
            return
        self._purged = t
        for bound, runs in list(self._runs.items()):
            while runs and runs[0].expiry <= t:
                run = runs.pop(0)
                alive = run.rows.end > t
                if alive.any():
                    self._add(bound, self._run(run.rows.where(alive)))
            if not runs:
                del self._runs[bound]

    def _by_bound(self, batch: Batch) -> Iterator[tuple[int, IntArray | None]]:
        """Yield each set of bound shared variables, as bits, with its rows; None for all rows."""
        if not len(batch):
            return
        full = (1 << len(self.shared)) - 1
        if self._exact:
            yield full, None
            return
        columns = [batch.column(name) for name in self.shared]
        if all(column.all() for column in columns):
            yield full, None
            return
        bits = np.zeros(len(batch), np.int64)
        for k, column in enumerate(columns):
            bits |= (column != UNBOUND).astype(np.int64) << k
        patterns = np.unique(bits).tolist()
        for bound in patterns:
            yield bound, None if len(patterns) == 1 else np.flatnonzero(bits == bound)

    def _check(self) -> None:
        """Assert the invariants."""
        for bound, runs in self._runs.items():
            assert runs, "an empty partition is removed"
            for run in runs:
                run.check()
                assert tuple(run.rows.columns) == self.names
                assert list(self._by_bound(run.rows)) == [(bound, None)], (
                    "one pattern of bound variables"
                )
                dead = int((run.rows.end <= self._purged).sum())
                assert 2 * dead <= run.size, "half of a run is alive"


def _expiry(run: AreaRun) -> int:
    return run.expiry


def _verified(
    columns: list[IntArray], rows: Batch, key: tuple[str, ...], i: IntArray, j: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the pairs that agree in the columns of the key, not only in its hash."""
    same = columns[0][i] == rows.columns[key[0]][j]
    for column, name in zip(columns[1:], key[1:], strict=True):
        same &= column[i] == rows.columns[name][j]
    return (i, j) if same.all() else (i[same], j[same])


class AreaRun:
    """Rows that were inserted at about the same time, and their indexes."""

    def __init__(self, rows: Batch) -> None:
        self.rows = rows
        self.size = len(rows.end)
        ends = rows.end if self.size <= _SAMPLED else rows.end[_SAMPLE % self.size]
        half = (len(ends) - 1) // 2
        self.expiry = int(np.partition(ends, half)[half])
        """The first instant at which half of the rows (of many rows: of a sample) have ended."""
        self._indexes: dict[tuple[str, ...], _Index] = {}

    def near(self, later: AreaRun) -> bool:
        """Return whether this run is short enough to be merged with a later one."""
        return self.size <= _FACTOR * later.size or self.size + later.size <= _SMALL

    def index(self, key: tuple[str, ...]) -> _Index:
        """Return the index by these variables, built at the first call."""
        index = self._indexes.get(key)
        if index is None:
            keys = row_keys([self.rows.columns[name] for name in key], self.size)
            index = self._indexes[key] = _Index(keys, self.rows.start, self.rows.end)
        return index

    def meet(
        self, key: tuple[str, ...], keys: IntArray, start: IntArray, end: IntArray
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the pairs of a probe and a row with equal keys that overlap in time."""
        if key not in self._indexes and self.size <= _SMALL and self.size * len(keys) <= _BRUTE:
            rows = self.rows
            equal = row_keys([rows.columns[n] for n in key], self.size) == keys[:, None]
            equal &= rows.start < end[:, None]
            equal &= rows.end > start[:, None]
            i, j = np.nonzero(equal)
            yield i, j
            return
        yield from self.index(key).meet(keys, start, end)

    def check(self) -> None:
        """Assert the invariants."""
        assert self.size == len(self.rows) > 0
        assert (self.rows.start < self.rows.end).all(), "validities are not empty"
        for key, index in self._indexes.items():
            keys = row_keys([self.rows.columns[name] for name in key], self.size)
            assert (keys[index.order] == index.keys).all()
            assert (self.rows.start[index.order] == index.start).all()
            assert (self.rows.end[index.order] == index.end).all()
            assert (np.sort(index.order) == np.arange(self.size)).all(), "a permutation"
            assert index.first[-1] == self.size


class _Index:
    """The rows of a run in buckets by the hash of their keys: a probe needs no search.

    The arrays are in the order of the buckets, rows of a bucket in the order of the run; `order`
    has their places. A bucket may have several keys, so keys are compared. There are two to four
    times as many buckets as rows.
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

    def meet(
        self, keys: IntArray, start: IntArray, end: IntArray
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the pairs of a probe and a row with equal keys that overlap in time."""
        bucket = self._bucket(keys)
        low = self.first[bucket]
        count = self.first[bucket + 1] - low
        total = int(count.sum())
        if not total:
            return
        ranges, timed = pairs_in_blocks(low, count), None
        if total > _WASTE * len(keys) + _FEW:
            timed = self._timed
            low, count = timed.within(bucket, start - self._longest + 1, end)
            if int(count.sum()) > _WASTE * (len(keys) + len(self.keys)):
                ranges, timed = timed.meet(bucket, start, end), None
            else:
                ranges = pairs_in_blocks(low, count)
        for i, j in ranges:
            if timed is not None and timed.place is not None:
                j = timed.place[j]
            meets = self.keys[j] == keys[i]
            meets &= self.start[j] < end[i]
            meets &= self.end[j] > start[i]
            yield (i, self.order[j]) if meets.all() else (i[meets], self.order[j[meets]])


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
