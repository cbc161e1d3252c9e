"""Rows ranked by their sort keys, and the times during which each is in a slice (R8, R14).

A sweep visits the instants at which rows start and end, with the rows that hold in sorted lists. A
row that starts or ends shifts those after it by one, so at each end of the slice at most one row
enters or leaves: a change costs O(log n), however long the slice is. The sweep is a loop in Python
because each rank depends on all changes before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from sortedcontainers import SortedList

from streamsparql.algebra.streams import INFINITY
from streamsparql.limits import active_meter
from streamsparql.overriding import override
from streamsparql.physical.batch import NEVER, Batch, IdRow, IntArray
from streamsparql.physical.state.parts import (
    NamedRows,
    Stateful,
    arrays_of,
    id_columns,
    table_of_arrays,
)

RowSortKey: TypeAlias = tuple[Any, ...]
"""The key by which a row is sorted."""

Pieces: TypeAlias = list[tuple[IdRow, int, int]]
"""Rows of term ids, each with the start and end of a time during which it was in the slice."""


class SliceRanks:
    """The rows of one partition in order, and the instants at which rows entered its slice.

    An entry is a sort key, followed by the number of its row.

    >>> ranks = SliceRanks(0, 1, inside := {})
    >>> ranks.add(("b", 1), 0)
    >>> ranks.add(("a", 2), 5)
    >>> inside, ranks.left
    ({2: 5}, {1: 0})
    """

    def __init__(self, offset: int, end: int | None, inside: dict[int, int]) -> None:
        self.rows: SortedList = SortedList()
        self.offset, self.end = offset, end
        self.inside = inside
        self.left: dict[int, int] = {}
        """The rows that left at this instant, with the instant at which they entered."""
        self._equals: dict[IdRow, SortedList] = {}

    def add(self, entry: RowSortKey, t: int) -> None:
        """Add a row that starts: those after it shift by one."""
        rows, offset, end = self.rows, self.offset, self.end
        rows.add(entry)
        size = len(rows)
        full = end is not None and size > end
        if full and entry >= rows[end]:
            return
        if not offset or (size > offset and entry >= rows[offset]):
            self._enter(entry, t)
        elif size > offset:
            self._enter(rows[offset], t)
        if full:
            self._leave(rows[end])

    def remove(self, entry: RowSortKey, t: int) -> None:
        """Remove a row that ends: those after it move up."""
        rows, offset, end = self.rows, self.offset, self.end
        size = len(rows)
        full = end is not None and size > end
        beyond = full and entry >= rows[end]
        before = offset > 0 and (size <= offset or entry < rows[offset])
        rows.remove(entry)
        if beyond:
            return
        if not before:
            self._leave(entry)
        elif size > offset:
            self._leave(rows[offset - 1])
        if full and end:
            self._enter(rows[end - 1], t)

    def add_distinct(self, entry: RowSortKey, shown: IdRow, t: int) -> None:
        """Add a row that starts; only the first of equal rows has a rank."""
        equals = self._equals.setdefault(shown, SortedList())
        head = equals[0] if equals else None
        equals.add(entry)
        if equals[0] is entry:
            if head is not None:
                self.remove(head, t)
            self.add(entry, t)

    def remove_distinct(self, entry: RowSortKey, shown: IdRow, t: int) -> None:
        """Remove a row that ends; the next of its equals takes its rank."""
        equals = self._equals[shown]
        was_head = equals[0] == entry
        equals.remove(entry)
        if was_head:
            self.remove(entry, t)
            if equals:
                self.add(equals[0], t)
        if not equals:
            del self._equals[shown]

    def restore(self, entry: RowSortKey) -> None:
        """Restore a row; `inside` already contains its number if it is in the slice."""
        self.rows.add(entry)

    def restore_distinct(self, entry: RowSortKey, shown: IdRow) -> None:
        """Restore a row; only the first of equal rows has a rank."""
        equals = self._equals.setdefault(shown, SortedList())
        if equals and entry < equals[0]:
            self.rows.remove(equals[0])
        if not equals or entry < equals[0]:
            self.rows.add(entry)
        equals.add(entry)

    def _enter(self, entry: RowSortKey, t: int) -> None:
        """Record that a row enters; if it left at the same instant, it was inside all the time."""
        self.inside[entry[-1]] = self.left.pop(entry[-1], t)

    def _leave(self, entry: RowSortKey) -> None:
        self.left[entry[-1]] = self.inside.pop(entry[-1])


class _Row(NamedTuple):
    """A row that holds: its entry in a sorted list, and its term ids.

    `shown` are the ids in the columns of `distinct`, `partition` those in its columns.
    """

    entry: RowSortKey
    terms: IdRow
    shown: IdRow
    partition: IdRow


class RankedRows(Stateful):
    """The rows that hold, ranked, and the instants at which those in the slice entered it.

    `keys` returns the sort keys of rows. With `distinct`, only the first of the rows that are equal
    in these columns has a rank. Rows that differ in the columns of `partition` are ranked
    separately.
    """

    scalars = ("_next",)
    encoded = ("_ending", "_inside", "_rows", "_slices")

    def __init__(
        self,
        names: Sequence[str],
        keys: Callable[[Batch], list[RowSortKey]],
        offset: int,
        end: int | None,
        distinct: Sequence[str] | None,
        partition: Sequence[str],
    ) -> None:
        self.names = tuple(names)
        self._keys = keys
        self._offset, self._end = offset, end
        self._distinct = None if distinct is None else tuple(distinct)
        self._partition = tuple(partition)
        self._slices: dict[IdRow, SliceRanks] = {}
        self._ending: list[tuple[int, int]] = []
        self._rows: dict[int, _Row] = {}
        self._inside: dict[int, int] = {}
        self._next = 0

    @override
    def size(self) -> int:
        return len(self._rows)

    @override
    def content(self) -> Iterator[NamedRows]:
        """Yield the rows in the slice, from the instants at which they entered, and the others."""
        ends = {number: end for end, number in self._ending}
        inside: Pieces = []
        outside: Pieces = []
        for number, row in self._rows.items():
            since = self._inside.get(number)
            end = ends.get(number, INFINITY)
            if since is None:
                outside.append((row.terms, NEVER, end))
            else:
                inside.append((row.terms, since, end))
        yield "in the slice", self._batch(inside).ordered()
        yield "out of the slice", self._batch(outside)

    def first(self) -> int:
        """Return the first instant at which a row in the slice entered it, or INFINITY."""
        return min(self._inside.values(), default=INFINITY)

    def clear(self) -> None:
        """Evict all rows."""
        for rows in (self._slices, self._rows, self._inside, self._ending):
            rows.clear()

    def sweep(self, new: Batch, until: int) -> Batch:
        """Apply the changes before `until` in order; return the rows that left the slice."""
        keys, rows = self._keys(new), _tuples(new, self.names)
        partitions = _tuples(new, self._partition)
        shown = _tuples(new, self._distinct or ())
        starts, ends = new.start.tolist(), new.end.tolist()
        pieces: Pieces = []
        ending, meter = self._ending, active_meter()
        k = 0
        while k < len(starts) or (ending and ending[0][0] < until):
            if meter is not None:
                meter.check()
            t = starts[k] if k < len(starts) else INFINITY
            if ending and ending[0][0] < t:
                t = ending[0][0]
            changed: set[IdRow] = set()
            ended: list[int] = []
            while ending and ending[0][0] == t:
                ended.append(heapq.heappop(ending)[1])
                changed.add(self._remove(self._rows[ended[-1]], t))
            while k < len(starts) and starts[k] == t:
                row = _Row((*keys[k], self._next), rows[k], shown[k], partitions[k])
                self._add(row, t)
                if ends[k] < INFINITY:
                    heapq.heappush(ending, (ends[k], self._next))
                self._next += 1
                changed.add(partitions[k])
                k += 1
            self._settle(changed, t, pieces)
            for number in ended:
                del self._rows[number]
        return self._batch(pieces)

    def cut(self, t: int) -> Batch:
        """Return the rows in the slice, cut at an instant, from which they continue."""
        pieces: Pieces = []
        for number, since in self._inside.items():
            if since < t:
                pieces.append((self._rows[number].terms, since, t))
                self._inside[number] = t
        return self._batch(pieces)

    def _slice_of(self, partition: IdRow) -> SliceRanks:
        ranks = self._slices.get(partition)
        if ranks is None:
            ranks = SliceRanks(self._offset, self._end, self._inside)
            self._slices[partition] = ranks
        return ranks

    def _add(self, row: _Row, t: int) -> None:
        ranks = self._slice_of(row.partition)
        self._rows[row.entry[-1]] = row
        if self._distinct is None:
            ranks.add(row.entry, t)
        else:
            ranks.add_distinct(row.entry, row.shown, t)

    def _remove(self, row: _Row, t: int) -> IdRow:
        ranks = self._slices[row.partition]
        if self._distinct is None:
            ranks.remove(row.entry, t)
        else:
            ranks.remove_distinct(row.entry, row.shown, t)
        return row.partition

    def _settle(self, changed: Iterable[IdRow], t: int, pieces: Pieces) -> None:
        """Emit the rows that left at an instant; remove a slice without rows."""
        for partition in changed:
            ranks = self._slices[partition]
            if ranks.left:
                left = ((n, since) for n, since in ranks.left.items() if since < t)
                pieces += ((self._rows[n].terms, since, t) for n, since in left)
                ranks.left.clear()
            if not ranks.rows:
                del self._slices[partition]

    def _batch(self, pieces: Pieces) -> Batch:
        if not pieces:
            return Batch.empty(self.names)
        rows, starts, ends = zip(*pieces, strict=True)
        table = np.array(rows, np.int64).reshape(len(rows), len(self.names))
        columns = {name: table[:, k].copy() for k, name in enumerate(self.names)}
        return Batch(columns, np.array(starts, np.int64), np.array(ends, np.int64))

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        return id_columns(self._batch([(row.terms, 0, 0) for row in self._rows.values()]))

    @override
    def own_table(self) -> pa.Table:
        """Return the rows with their numbers, ends, and the instants at which they entered."""
        ends = {number: end for end, number in self._ending}
        rows = self._batch(
            [
                (row.terms, self._inside.get(number, NEVER), ends.get(number, INFINITY))
                for number, row in self._rows.items()
            ]
        )
        named = {f"?{name}": ids for name, ids in rows.columns.items()}
        number = np.array([*self._rows], np.int64)
        return table_of_arrays({"#row": number, "since": rows.start, "end": rows.end, **named})

    @override
    def restore_own(self, table: pa.Table) -> None:
        arrays = arrays_of(table)
        if list(arrays) != ["#row", "since", "end", *(f"?{name}" for name in self.names)]:
            self._refuse(f"the columns are {', '.join(arrays)}")
        numbers, since, end, *ids = arrays.values()
        rows = Batch(dict(zip(self.names, ids, strict=True)), since, end)
        inside = zip(numbers.tolist(), since.tolist(), strict=True)
        self._inside.update((number, t) for number, t in inside if t != NEVER)
        ending = zip(end.tolist(), numbers.tolist(), strict=True)
        self._ending = [(t, number) for t, number in ending if t < INFINITY]
        heapq.heapify(self._ending)
        for number, key, terms, shown, partition in zip(
            numbers.tolist(),
            self._keys(rows),
            _tuples(rows, self.names),
            _tuples(rows, self._distinct or ()),
            _tuples(rows, self._partition),
            strict=True,
        ):
            row = self._rows[number] = _Row((*key, number), terms, shown, partition)
            ranks = self._slice_of(partition)
            if self._distinct is None:
                ranks.restore(row.entry)
            else:
                ranks.restore_distinct(row.entry, shown)


def _tuples(batch: Batch, names: Sequence[str]) -> list[IdRow]:
    """Return the ids of each row in some columns."""
    if not names:
        return [()] * len(batch)
    return list(zip(*(batch.columns[name].tolist() for name in names), strict=True))
