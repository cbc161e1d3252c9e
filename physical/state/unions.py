"""The union of the validities of each distinct row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from streamsparql.overriding import override
from streamsparql.physical.batch import NEVER, Batch, BoolArray, IntArray
from streamsparql.physical.kernels.intervals import firsts, running_max
from streamsparql.physical.kernels.keys import stable_order
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.key_slots import SLOT, KeySlots, grown
from streamsparql.physical.state.parts import (
    TO_BE_EMITTED,
    TO_START,
    NamedRows,
    Stateful,
    arrays_of,
    is_of_terms,
    table_of_arrays,
)


class DistinctRows(Stateful):
    """The pieces of time in which each distinct row newly holds; of equal rows the first counts.

    >>> distinct = DistinctRows(["x"])
    >>> rows = Batch({"x": np.array([1, 1])}, np.array([3, 4]), np.array([9, 9]))
    >>> distinct.consume(rows, 6).start.tolist()
    [3]
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._upcoming = Heap(names)
        self._unions = ValidityUnions(names)

    def consume(self, batch: Batch, watermark: int) -> Batch:
        """Consume rows; return the new pieces that start up to the watermark.

        Later rows start at the watermark or after it.
        """
        rows = self._upcoming.through([batch.project(self.names)], watermark)
        return self._unions.consume(rows, watermark)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {TO_START: self._upcoming, "unions": self._unions}


class ValidityUnions(Stateful):
    """The union of the validities of each distinct row, for rows in the order of their start.

    >>> unions = ValidityUnions(["x"])
    >>> rows = Batch({"x": np.array([1, 1])}, np.array([3, 4]), np.array([6, 9]))
    >>> pieces = unions.consume(rows, 6)
    >>> pieces.start.tolist(), pieces.end.tolist(), len(unions.consume(pieces.part(0, 0), 7))
    ([3, 6], [6, 9], 0)
    """

    scalars = ("_entered", "_watermark")
    encoded = ("_covered",)

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._slots = KeySlots(len(names))
        self._covered = np.full(self._slots.capacity, NEVER)
        self._ready = Heap(names)
        self._entered = 0  # the number of rows since idle slots were freed
        self._watermark = NEVER

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"keys": self._slots, TO_BE_EMITTED: self._ready}

    @override
    def size(self) -> int:
        return len(self._ready) + int(np.count_nonzero(self._alive()))

    def _alive(self) -> BoolArray:
        return self._covered > self._watermark

    def consume(self, batch: Batch, watermark: int) -> Batch:
        """Add rows; return the pieces that are newly covered and start up to the watermark.

        Later rows start at the watermark or after it.
        """
        self._watermark = watermark
        if len(batch):
            self._ready.push(self._newly_covered(batch))
        self._entered += len(batch)
        if 8 * self._entered > len(self._slots):
            self._slots.keep(self._alive())
            self._entered = 0
        return self._ready.release(watermark)

    def _newly_covered(self, batch: Batch) -> Batch:
        slots = self._slots.of(list(batch.columns.values()), len(batch))
        capacity = self._slots.capacity
        if len(self._covered) < capacity:
            self._covered = grown(self._covered, capacity, NEVER)
        order = stable_order(slots, capacity)
        slots, start, end = slots[order], batch.start[order], batch.end[order]
        covered = self._covered[slots]
        first = firsts(slots)
        if first.all():
            self._covered[slots] = np.maximum(covered, end)
        else:
            until = running_max(np.cumsum(first) - 1, end)
            last = np.append(first[1:], True)
            self._covered[slots[last]] = np.maximum(covered, until)[last]
            covered[1:] = np.where(first[1:], covered[1:], np.maximum(covered[1:], until[:-1]))
        new = end > covered
        pieces = Batch(batch.columns, batch.start, batch.end).take(order[new])
        return pieces.over(np.maximum(start, covered)[new], pieces.end)

    @override
    def content(self) -> Iterator[NamedRows]:
        """Yield the covered rows, up to their covered ends, and the pieces that are not yet due."""
        alive = self._alive().nonzero()[0]
        columns = [column[alive] for column in self._slots.columns]
        covered = self._covered[alive]
        since = np.full(len(alive), NEVER)
        yield "covered", Batch(dict(zip(self._names, columns, strict=True)), since, covered)
        yield TO_BE_EMITTED, self._ready.rows()

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        for name, ids in zip(self._names, self._slots.retained(self._alive()), strict=True):
            if is_of_terms(name):
                yield ids
        yield from self._ready.retained_ids()

    @override
    def own_table(self) -> pa.Table:
        slots = self._slots.used()
        return table_of_arrays({SLOT: slots, "covered": self._covered[slots]})

    @override
    def restore_own(self, table: pa.Table) -> None:
        slots, covered = arrays_of(table).values()
        self._covered = grown(self._covered[:0], self._slots.capacity, NEVER)
        self._covered[slots] = covered
