"""The canonical form of rows as they come: level k holds where the multiplicity is k or more.

Levels depend on `phi` alone, so what is held may itself be in canonical form. In most results no
two equal rows overlap or adjoin, and the work is to see that quickly. A table counts the rows that
are held, by a hash. A row that is alone in its bucket when it ends is given as it is; the others
are taken out with all that share their bucket, and only these are sorted and swept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np
import pyarrow as pa

from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, BoolArray, IdRow, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.kernels import keys
from streamsparql.physical.kernels.change_points import coalesce_levels
from streamsparql.physical.kernels.intervals import BLOCK
from streamsparql.physical.state.heap import ByEnd, Heap, turned
from streamsparql.physical.state.key_slots import KeySlots
from streamsparql.physical.state.parts import (
    TO_START,
    NamedRows,
    RowStore,
    Stateful,
    arrays_of,
    table_of_arrays,
)

_Numbered = tuple[IdRow, int, int, int]
"""A row, its start and end, and its number among equal ones."""

LEVEL = "#level"
"""The column that tells a row's level, from 1."""

OPEN = "could go on"
"""What the rows are called that a later row could still extend."""

_KEY = "#key"
_LEAST = 1 << 12
_ROOM, _TOO_MUCH = 8, 512
"""Buckets per row, at least and at most, where there are more than the least number of buckets."""


class Canonical(RowStore):
    """Rows in canonical form, each given when no later row can change it.

    `equal` names the columns in which rows are equal.

    >>> canonical = Canonical(["x"], ["x"])
    >>> twice = Batch({"x": np.array([7, 7])}, np.array([0, 4]), np.array([6, 10]))
    >>> rows = canonical.take(twice, 9, False)
    >>> rows.start.tolist(), rows.end.tolist(), len(canonical)
    ([4], [6], 1)
    """

    encoded = ("_rows",)
    derived = ("_shift", "_table")

    def __init__(self, names: Sequence[str], equal: Sequence[str]) -> None:
        self.names, self._equal = tuple(names), tuple(equal)
        self._rows = ByEnd((*names, _KEY))
        self._nothing = Batch.empty((*names, LEVEL))
        self._table = np.empty(0, np.int32)
        self._fit(1)

    def take(self, batch: Batch, watermark: int, cut: bool) -> Batch:
        """Takes rows in; gives those that are final, with their level, ordered by start.

        A row is final when it ended before the watermark: what ends at the watermark itself, a row
        that starts there may go on from. A cut makes final all that started before it.
        """
        cut = cut or watermark == INFINITY
        self._fit(len(self._rows) + len(batch))
        due = self._rows.release(INFINITY if cut else watermark - 1)
        if len(batch):
            came = self._turned(batch)
            self._count(came, 1)
            ended = np.ones(len(came), np.bool_) if cut else came.start < watermark
            due = Batch.concat([due, came.where(ended)])
            self._rows.push(came.where(~ended))
        return self._final(due, watermark, cut) if len(due) else self._nothing

    @override
    def __len__(self) -> int:
        return len(self._rows)

    def first_start(self) -> int:
        """No row is given later that starts before this."""
        return self._rows.first_start()

    @override
    def rows(self) -> Batch:
        return self._rows.rows().project(self.names)

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        return self._rows.retained_ids()

    @override
    def put_back(self, rows: Batch) -> None:
        self._fit(len(rows))
        keyed = self._turned(rows)
        self._count(keyed, 1)
        self._rows.push(keyed)

    def _turned(self, batch: Batch) -> Batch:
        found = {name: batch.column(name) for name in self.names}
        equal = [found[name] for name in self._equal]
        size = len(batch)
        parts = [
            keys.row_keys([ids[at : at + BLOCK] for ids in equal], min(BLOCK, size - at), 1)
            for at in range(0, size, BLOCK)
        ]
        found[_KEY] = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return Batch(found, batch.end, batch.start, batch.count)

    def _final(self, due: Batch, watermark: int, cut: bool) -> Batch:
        twins = self._twins(due)
        if twins is None:
            self._count(due, -1)
            rows = _one_level(due)
        else:
            rows = self._levels(due, twins)
        start, end = rows.end, rows.start
        if cut:
            now, later = start < watermark, end > watermark
            final = rows.over(start, np.minimum(end, watermark)).where(now)
            back = rows.over(end, np.maximum(start, watermark)).where(later)
        else:
            now = end < watermark
            final, back = rows.over(start, end).where(now), rows.where(~now)
        if len(back):
            back = back.project((*self.names, _KEY))
            self._count(back, 1)
            self._rows.push(back)
        return final.project(self._nothing.columns).ordered()

    def _twins(self, due: Batch) -> BoolArray | None:
        """The buckets in which several rows have one key, one of them due; None if there are none.

        Of the rows that share a bucket many do so by chance: these are left alone.
        """
        found = due.columns[_KEY]
        some = (self._table[self._buckets(found)] != 1).nonzero()[0]
        if not len(some):
            return None
        shared = np.zeros(len(self._table), np.bool_)
        shared[self._buckets(found[some])] = True
        held = (run.columns[_KEY] for run in self._rows.runs())
        every = np.concatenate([found[some], *(ids[shared[self._buckets(ids)]] for ids in held)])
        every.sort()
        twins = every[1:][every[1:] == every[:-1]]
        if due.count is not None:
            twins = np.concatenate([twins, found[due.count > 1]])
        if not len(twins):
            return None
        shared[:] = False
        shared[self._buckets(twins)] = True
        return shared

    def _levels(self, due: Batch, twins: BoolArray) -> Batch:
        """These rows, and all that may be equal to one of them, by levels."""
        twin = twins[self._buckets(due.columns[_KEY])]
        more = self._rows.extract(lambda run: twins[self._buckets(run.columns[_KEY])])
        self._count(due, -1)
        self._count(more, -1)
        alike = Batch.concat([due.where(twin), more])
        equal = [alike.columns[name] for name in self._equal]
        slots = KeySlots(len(equal)).of(equal, len(alike))
        levels = coalesce_levels(slots, alike.end, alike.start, alike.count)
        columns = {name: column[levels.row] for name, column in alike.columns.items()}
        found = Batch({**columns, LEVEL: levels.level}, levels.end, levels.start)
        return Batch.concat([_one_level(due.where(~twin)), found])

    # -- The table --

    def _buckets(self, found: IntArray) -> IntArray:
        return (found.view(np.uint64) >> self._shift).view(np.int64)

    def _count(self, rows: Batch, by: int) -> None:
        """Counts rows in or out; a row that is there twice is not alone."""
        buckets = self._buckets(rows.columns[_KEY])
        if rows.count is None:
            times = np.full(len(rows), by, np.int32)
        else:
            times = (by * np.minimum(rows.count, 2)).astype(np.int32)
        np.add.at(self._table, buckets, times)

    def _fit(self, rows: int) -> None:
        """Makes the table anew where it is too small for so many rows, or far too large."""
        size = len(self._table)
        if _ROOM * rows <= size and (size <= _LEAST or size <= _TOO_MUCH * rows):
            return
        bits = max(_LEAST, 2 * _ROOM * rows).bit_length() - 1
        self._table = np.zeros(1 << bits, np.int32)
        self._shift = np.uint64(64 - bits)
        for run in self._rows.runs():
            self._count(run, 1)


def _one_level(rows: Batch) -> Batch:
    """Rows that have no equal."""
    columns = {**rows.columns, LEVEL: np.ones(len(rows), np.int64)}
    return Batch(columns, rows.start, rows.end)


class ByStamps(Stateful):
    """The same where equal rows differ in stamps: the k-th of those that hold, by their stamps.

    With each row that comes or goes those after it get another number, so that there is no way but
    to give all rows that are equal to it anew.

    >>> terms = TermDictionary()
    >>> rows = ByStamps(["x", ".t ?x"], [".t ?x"], terms)
    >>> stamps = terms.of_integers(np.array([5, 4]))
    >>> both = Batch({"x": np.array([7, 7]), ".t ?x": stamps}, np.array([0, 2]), np.array([6, 6]))
    >>> rows.take(both, 9, False).columns[LEVEL].tolist()
    [1, 1, 2]
    """

    encoded = ("_since",)
    derived = ("_alike",)

    def __init__(self, names: Sequence[str], stamps: Sequence[str], terms: TermDictionary) -> None:
        self._names, self._stamps, self._terms = tuple(names), tuple(sorted(stamps)), terms
        self._bare = [i for i, name in enumerate(names) if name not in stamps]
        self._coming, self._live = Heap(self._names), ByEnd(self._names)
        self._alike: dict[IdRow, Counter[IdRow]] = {}
        self._since: dict[IdRow, int] = {}

    def take(self, batch: Batch, watermark: int, cut: bool) -> Batch:
        """Takes rows in; gives those that stand unchanged until they are cut, or something is."""
        new = self._coming.through([batch.project(self._names)], watermark - 1)
        self._live.push(turned(new))
        events = [*_events(new, 1), *_events(self._live.release(watermark - 1), -1)]
        out: list[_Numbered] = []
        for t, row, times in sorted(events, key=itemgetter(0)):
            bare = tuple(row[i] for i in self._bare)
            self._emit(bare, t, out)
            alike = self._alike.setdefault(bare, Counter())
            alike[row] += times
            if not alike[row]:
                del alike[row]
            if alike:
                self._since[bare] = t
            else:
                del self._alike[bare], self._since[bare]
        if cut or watermark == INFINITY:
            for bare in self._alike:
                self._emit(bare, watermark, out)
                self._since[bare] = watermark
        if watermark == INFINITY:
            self._alike, self._since, self._live = {}, {}, ByEnd(self._names)
        return self._batch(out)

    def _emit(self, bare: IdRow, until: int, out: list[_Numbered]) -> None:
        """Emit the rows that are equal but for their stamps, each with its number."""
        since = self._since.get(bare, until)
        if since < until:
            alike = sorted(self._alike[bare].items(), key=lambda entry: self._order(entry[0]))
            rows = (row for row, times in alike for _ in range(times))
            out += [(row, since, until, k) for k, row in enumerate(rows, 1)]

    def _order(self, row: IdRow) -> list[tuple[str, int]]:
        ids = [(name, row[self._names.index(name)]) for name in self._stamps]
        bound = np.array([term for _, term in ids if term], np.int64)
        names = (name for name, term in ids if term)
        return list(zip(names, self._terms.integers_of(bound).tolist(), strict=True))

    def _batch(self, numbered: list[_Numbered]) -> Batch:
        size = len(numbered)
        rows = np.array([row for row, *_ in numbered], np.int64).reshape(size, len(self._names))
        times = np.array([rest for _, *rest in numbered], np.int64).reshape(size, 3)
        columns = dict(zip((*self._names, LEVEL), [*rows.T, times[:, 2]], strict=True))
        return Batch(columns, times[:, 0], times[:, 1]).ordered()

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {TO_START: self._coming, "live": self._live}

    def first_start(self) -> int:
        """No row is given later that starts before this."""
        return min(self._since.values(), default=INFINITY)

    @override
    def content_as(self, name: str) -> Iterator[NamedRows]:
        yield name, Batch.concat([self._coming.rows(), self._live.rows()]).ordered()

    @override
    def own_table(self) -> pa.Table:
        """Return since when the rows that are equal but for their stamps hold unchanged."""
        bare = np.array([*self._since], np.int64).reshape(len(self._since), len(self._bare)).T
        named = {f"?{self._names[i]}": ids for i, ids in zip(self._bare, bare, strict=True)}
        return table_of_arrays({**named, "since": np.array([*self._since.values()], np.int64)})

    @override
    def restore_own(self, table: pa.Table) -> None:
        *bare, since = (array.tolist() for array in arrays_of(table).values())
        rows = zip(*bare, strict=True) if bare else [()] * len(since)
        self._since = dict(zip(rows, since, strict=True))
        for _, row, times in _events(self._live.rows(), 1):
            alike = self._alike.setdefault(tuple(row[i] for i in self._bare), Counter())
            alike[row] += times


def _events(rows: Batch, sign: int) -> Iterator[tuple[int, IdRow, int]]:
    columns = [column.tolist() for column in rows.columns.values()]
    ids = zip(*columns, strict=True)
    times = (sign * rows.counts()).tolist()
    return zip(rows.start.tolist(), ids, times, strict=True)
