"""The canonical form of a stream of rows: level k holds where the multiplicity is k or more.

Levels depend only on multiplicities over time (`phi` of SEMANTICS.md), so the retained rows may
themselves be in canonical form. In most results no two equal rows overlap or adjoin, and the task
is to detect that quickly. A hash table counts the retained rows in each bucket. A row that is alone
in its bucket when it ends is emitted unchanged. The others are extracted with all rows of their
bucket, and only these are sorted and swept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np
import pyarrow as pa

from streamsparql.algebra.streams import INFINITY
from streamsparql.limits import check_rows, checked
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
"""A row, its start and end, and its number among equal rows."""

LEVEL = "#level"
"""The column with the level of a row, from 1."""

OPEN = "still open"
"""The part with the rows that a later row can still extend."""

_KEY = "#key"
_LEAST = 1 << 12
"""The least number of buckets."""
_ROOM, _TOO_MUCH = 8, 512
"""The least and the greatest number of buckets per row, in a table with more than `_LEAST`."""


class Canonical(RowStore):
    """Rows in canonical form, each emitted when no later row can change it.

    The output depends on the logical stream alone (ESWC 2008, Definition 2).

    >>> canonical = Canonical(["x"])
    >>> twice = Batch({"x": np.array([7, 7])}, np.array([0, 4]), np.array([6, 10]))
    >>> rows = canonical.consume(twice, 9, False)
    >>> rows.start.tolist(), rows.end.tolist(), len(canonical)
    ([4], [6], 1)
    """

    encoded = ("_rows",)
    derived = ("_shift", "_table")

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._rows = ByEnd((*names, _KEY))
        self._nothing = Batch.empty((*names, LEVEL))
        self._table = np.empty(0, np.int32)
        self._fit(1)

    def consume(self, batch: Batch, watermark: int, cut: bool) -> Batch:
        """Consume rows; return those that are final with their levels, ordered by start.

        A row is final when it ended before the watermark: a row that starts at the watermark can
        extend one that ends there. With `cut`, rows are emitted up to the watermark.
        """
        cut = cut or watermark == INFINITY
        self._fit(len(self._rows) + len(batch))
        due = self._rows.release(INFINITY if cut else watermark - 1)
        if len(batch):
            new = self._keyed(batch)
            self._count(new, 1)
            ended = np.ones(len(new), np.bool_) if cut else new.start < watermark
            due = Batch.concat([due, new.where(ended)])
            self._rows.push(new.where(~ended))
        return self._final(due, watermark, cut) if len(due) else self._nothing

    @override
    def __len__(self) -> int:
        return len(self._rows)

    def first_start(self) -> int:
        """Return a bound: no later output starts before it."""
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
        keyed = self._keyed(rows)
        self._count(keyed, 1)
        self._rows.push(keyed)

    def _keyed(self, batch: Batch) -> Batch:
        """Return rows `turned`, with a column of their hash keys."""
        columns = {name: batch.column(name) for name in self.names}
        ids = list(columns.values())
        size = len(batch)
        blocks = [
            keys.row_keys([column[at : at + BLOCK] for column in ids], min(BLOCK, size - at), 1)
            for at in range(0, size, BLOCK)
        ]
        columns[_KEY] = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        return Batch(columns, batch.end, batch.start, batch.count)

    def _final(self, due: Batch, watermark: int, cut: bool) -> Batch:
        repeated = self._repeated(due)
        if repeated is None:
            self._count(due, -1)
            rows = _one_level(due)
        else:
            rows = self._levels(due, repeated)
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

    def _repeated(self, due: Batch) -> BoolArray | None:
        """Return a mask of the buckets with several rows of one key, one of them due, or None.

        Rows with different keys that share a bucket by chance do not count.
        """
        due_keys = due.columns[_KEY]
        crowded = (self._table[self._buckets(due_keys)] != 1).nonzero()[0]
        if not len(crowded):
            return None
        shared = np.zeros(len(self._table), np.bool_)
        shared[self._buckets(due_keys[crowded])] = True
        retained = (run.columns[_KEY] for run in self._rows.runs())
        others = (keys[shared[self._buckets(keys)]] for keys in retained)
        every = np.concatenate([due_keys[crowded], *others])
        every.sort()
        repeated = every[1:][every[1:] == every[:-1]]
        if due.count is not None:
            repeated = np.concatenate([repeated, due_keys[due.count > 1]])
        if not len(repeated):
            return None
        shared[:] = False
        shared[self._buckets(repeated)] = True
        return shared

    def _levels(self, due: Batch, repeated: BoolArray) -> Batch:
        """Return the levels of these rows and of all that may be equal to one of them."""
        is_repeated = repeated[self._buckets(due.columns[_KEY])]
        more = self._rows.extract(lambda run: repeated[self._buckets(run.columns[_KEY])])
        self._count(due, -1)
        self._count(more, -1)
        alike = Batch.concat([due.where(is_repeated), more])
        equal = [alike.columns[name] for name in self.names]
        slots = KeySlots(len(equal)).of(equal, len(alike))
        levels = coalesce_levels(slots, alike.end, alike.start, alike.count)
        columns = {name: column[levels.row] for name, column in alike.columns.items()}
        swept = Batch({**columns, LEVEL: levels.level}, levels.end, levels.start)
        return Batch.concat([_one_level(due.where(~is_repeated)), swept])

    # -- The table --

    def _buckets(self, row_keys: IntArray) -> IntArray:
        return (row_keys.view(np.uint64) >> self._shift).view(np.int64)

    def _count(self, rows: Batch, by: int) -> None:
        """Add `by` to the buckets of rows; a row with multiplicity 2 or more counts as two."""
        buckets = self._buckets(rows.columns[_KEY])
        if rows.count is None:
            times = np.full(len(rows), by, np.int32)
        else:
            times = (by * np.minimum(rows.count, 2)).astype(np.int32)
        np.add.at(self._table, buckets, times)

    def _fit(self, rows: int) -> None:
        """Rebuild the table if it is too small, or far too large, for this many rows."""
        size = len(self._table)
        if _ROOM * rows <= size and (size <= _LEAST or size <= _TOO_MUCH * rows):
            return
        bits = max(_LEAST, 2 * _ROOM * rows).bit_length() - 1
        self._table = np.zeros(1 << bits, np.int32)
        self._shift = np.uint64(64 - bits)
        for run in self._rows.runs():
            self._count(run, 1)


def _one_level(rows: Batch) -> Batch:
    """Return rows that have no equal rows, with level 1."""
    columns = {**rows.columns, LEVEL: np.ones(len(rows), np.int64)}
    return Batch(columns, rows.start, rows.end)


class ByStamps(Stateful):
    """Rows that are equal but for their stamps, numbered in the order of their stamps.

    A row that starts or ends changes the numbers of those after it, so all rows that are equal to
    it are emitted, and continue with new numbers.

    >>> terms = TermDictionary()
    >>> rows = ByStamps(["x", ".t ?x"], [".t ?x"], terms)
    >>> stamps = terms.of_integers(np.array([5, 4]))
    >>> both = Batch({"x": np.array([7, 7]), ".t ?x": stamps}, np.array([0, 2]), np.array([6, 6]))
    >>> rows.consume(both, 9, False).columns[LEVEL].tolist()
    [1, 1, 2]
    """

    encoded = ("_since",)
    derived = ("_alike",)

    def __init__(self, names: Sequence[str], stamps: Sequence[str], terms: TermDictionary) -> None:
        self._names, self._stamps, self._terms = tuple(names), tuple(sorted(stamps)), terms
        self._bare = [i for i, name in enumerate(names) if name not in stamps]
        self._upcoming, self._live = Heap(self._names), ByEnd(self._names)
        self._alike: dict[IdRow, Counter[IdRow]] = {}
        self._since: dict[IdRow, int] = {}

    def consume(self, batch: Batch, watermark: int, cut: bool) -> Batch:
        """Consume rows; return rows up to the instant at which their number changes or a cut."""
        new = self._upcoming.through([batch.project(self._names)], watermark - 1)
        self._live.push(turned(new))
        events = [*_events(new, 1), *_events(self._live.release(watermark - 1), -1)]
        out: list[_Numbered] = []
        for t, row, times in checked(sorted(events, key=itemgetter(0))):
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
        """Emit the rows that are equal but for their stamps, up to an instant."""
        since = self._since.get(bare, until)
        if since < until:
            check_rows(self._alike[bare].total(), len(self._names))
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
        return {TO_START: self._upcoming, "live": self._live}

    def first_start(self) -> int:
        """Return a bound: no later output starts before it."""
        return min(self._since.values(), default=INFINITY)

    @override
    def content_as(self, name: str) -> Iterator[NamedRows]:
        yield name, Batch.concat([self._upcoming.rows(), self._live.rows()]).ordered()

    @override
    def own_table(self) -> pa.Table:
        """Return rows without stamps, each with the instant at which its current number started."""
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
