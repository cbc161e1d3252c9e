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

The rows with the key of a probe are its candidates (key_index.py). Their number is known before any
pair is made: a join of several inputs chooses by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from sortedcontainers import SortedKeyList

from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch, BoolArray, IntArray
from streamsparql.physical.hidden import is_carried
from streamsparql.physical.kernels.keys import row_keys
from streamsparql.physical.state.key_index import CandidateRanges, KeyIndex
from streamsparql.physical.state.parts import RowStore, id_columns, table_of

_SMALL = 256
"""Up to this number of rows, a few probes search a run without an index."""
_BRUTE = 1 << 13
"""Up to this number of comparisons, building an index costs more."""
_FACTOR = 3
"""A run is merged with one that is up to this many times as long."""
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
        for probes, run in self.probed(batch, sharing):
            yield from probes.pairs(run, run.candidates(probes))

    def probed(self, batch: Batch, sharing: bool = False) -> Iterator[tuple[_Probes, AreaRun]]:
        """Yield each run with the rows of a batch that probe it by the same variables."""
        if not self._runs or not len(batch):
            return
        for bound, places in self._by_bound(batch):
            rows = batch if places is None else batch.take(places)
            for mine, runs in self._runs.items():
                both = mine & bound
                key = tuple(n for k, n in enumerate(self.shared) if both >> k & 1)
                if sharing and all(map(is_carried, key)):
                    continue
                probes = _Probes(rows, places, key)
                for run in runs:
                    yield probes, run

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
        bound, partly = 0, []
        for k, name in enumerate(self.shared):
            column = batch.columns.get(name)
            if column is not None and column.all():
                bound |= 1 << k
            elif column is not None:
                partly.append((k, column))
        if not partly:
            yield bound, None
            return
        bits = np.full(len(batch), bound)
        for k, column in partly:
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


class Candidates:
    """The rows of areas of one input that have the keys of probing rows.

    >>> area = SweepArea(["x"], ["x"])
    >>> area.insert(Batch({"x": np.array([7, 7])}, np.array([0, 0]), np.array([9, 9])))
    >>> probes = Batch({"x": np.array([7, 8])}, np.array([1, 1]), np.array([5, 5]))
    >>> found = Candidates.of(probes, [area])
    >>> found.count.tolist(), [pairs.place.tolist() for pairs in found.pairs(np.array([0]))]
    ([2, 0], [[0, 1]])
    """

    def __init__(
        self, rows: int, parts: Sequence[tuple[_Probes, AreaRun, CandidateRanges | _Compared]]
    ) -> None:
        self._parts = parts
        self.count = np.zeros(rows, np.int64)
        """The number of candidates of each probing row; some of them may not match."""
        for probes, _, candidates in parts:
            if probes.places is None:
                self.count += candidates.count
            else:
                self.count[probes.places] += candidates.count

    @classmethod
    def of(cls, batch: Batch, areas: Iterable[SweepArea]) -> Candidates:
        """Return the candidates of the rows of a batch."""
        probed = (each for area in areas for each in area.probed(batch))
        return cls(len(batch), [(probes, run, run.candidates(probes)) for probes, run in probed])

    def in_time(self) -> Candidates:
        """Return those that may overlap the probing rows, which takes a search for each row."""
        parts = [(probes, run, candidates.in_time()) for probes, run, candidates in self._parts]
        return Candidates(len(self.count), parts)

    def pairs(self, chosen: IntArray | None = None) -> Iterator[Pairs]:
        """Yield the pairs that match, of the chosen probing rows if not of all, in blocks."""
        for probes, run, candidates in self._parts:
            yield from probes.pairs(run, candidates, probes.own_places(chosen, len(self.count)))


class _Probes:
    """The rows of a batch that bind the same shared variables, and their keys in a partition."""

    def __init__(self, rows: Batch, places: IntArray | None, key: tuple[str, ...]) -> None:
        self.places, self.key = places, key
        self.start, self.end = rows.start, rows.end
        self._columns = [rows.column(name) for name in key]
        self.keys = row_keys(self._columns, len(rows))

    def own_places(self, chosen: IntArray | None, rows: int) -> IntArray | None:
        """Return the places in these probes of chosen rows of the batch; None for all."""
        if chosen is None or self.places is None:
            return chosen
        mask = np.zeros(rows, np.bool_)
        mask[chosen] = True
        return np.flatnonzero(mask[self.places])

    def pairs(
        self, run: AreaRun, candidates: CandidateRanges | _Compared, chosen: IntArray | None = None
    ) -> Iterator[Pairs]:
        """Yield the pairs of these probes with the rows of a run, in blocks."""
        for i, j in candidates.pairs(chosen):
            if len(self.key) > 1:
                i, j = self._verified(run.rows, i, j)
            if len(i):
                yield Pairs(i if self.places is None else self.places[i], run.rows, j)

    def _verified(self, rows: Batch, i: IntArray, j: IntArray) -> tuple[IntArray, IntArray]:
        """Return the pairs that agree in the columns of the key, not only in its hash."""
        same = self._columns[0][i] == rows.columns[self.key[0]][j]
        for column, name in zip(self._columns[1:], self.key[1:], strict=True):
            same &= column[i] == rows.columns[name][j]
        return (i, j) if same.all() else (i[same], j[same])


class _Compared:
    """The pairs of a few probes and a few rows, found without an index."""

    __slots__ = ("_matches",)

    def __init__(self, matches: BoolArray) -> None:
        self._matches = matches

    @property
    def count(self) -> IntArray:
        """The number of matches of each probe."""
        count: IntArray = self._matches.sum(1)
        return count

    def in_time(self) -> _Compared:
        """Return the matches, all of which overlap the probes."""
        return self

    def pairs(self, chosen: IntArray | None = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the pairs of a probe and a row that match, of the chosen probes if not of all."""
        if chosen is None:
            i, j = np.nonzero(self._matches)
        else:
            i, j = np.nonzero(self._matches[chosen])
            i = chosen[i]
        yield i, j


class AreaRun:
    """Rows that were inserted at about the same time, and their indexes."""

    def __init__(self, rows: Batch) -> None:
        self.rows = rows
        self.size = len(rows.end)
        ends = rows.end if self.size <= _SAMPLED else rows.end[_SAMPLE % self.size]
        half = (len(ends) - 1) // 2
        self.expiry = int(np.partition(ends, half)[half])
        """The first instant at which half of the rows (of many rows: of a sample) have ended."""
        self._indexes: dict[tuple[str, ...], KeyIndex] = {}

    def near(self, later: AreaRun) -> bool:
        """Return whether this run is short enough to be merged with a later one."""
        return self.size <= _FACTOR * later.size or self.size + later.size <= _SMALL

    def index(self, key: tuple[str, ...]) -> KeyIndex:
        """Return the index by these variables, built at the first call."""
        index = self._indexes.get(key)
        if index is None:
            keys = row_keys([self.rows.columns[name] for name in key], self.size)
            index = self._indexes[key] = KeyIndex(keys, self.rows.start, self.rows.end)
        return index

    def candidates(self, probes: _Probes) -> CandidateRanges | _Compared:
        """Return the rows that have the keys of probes."""
        key, keys = probes.key, probes.keys
        if key not in self._indexes and self.size <= _SMALL and self.size * len(keys) <= _BRUTE:
            rows = self.rows
            equal = row_keys([rows.columns[n] for n in key], self.size) == keys[:, None]
            equal &= rows.start < probes.end[:, None]
            equal &= rows.end > probes.start[:, None]
            return _Compared(equal)
        return self.index(key).candidates(keys, probes.start, probes.end)

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
