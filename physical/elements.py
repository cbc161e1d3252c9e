"""What sweeps hold of their input: elements until they end, and the unions of equal ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.heap import Heap
from streamsparql.physical.intervals import firsts, running_max
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.slots import Slots, grown, order_by

NEVER = -INFINITY
"""Before all instants: what is covered until then is not covered."""


def turned(batch: Batch) -> Batch:
    """The rows turned round: `start` is when they end, and `end` when they started."""
    return batch.over(batch.end, batch.start)


def in_time(coming: Heap, batch: Batch, bound: int) -> Batch:
    """The rows that start no later than `bound`, of a batch and those that wait; the others wait.

    >>> coming = Heap(["x"])
    >>> batch = Batch({"x": np.array([1, 2])}, np.array([3, 8]), np.array([9, 9]))
    >>> in_time(coming, batch, 5).columns["x"].tolist(), len(coming)
    ([1], 1)
    """
    if not len(coming) and (not len(batch) or batch.start[-1] <= bound):
        return batch
    coming.push(batch)
    return coming.release(bound)


class Queue(Heap):
    """A heap that knows its first start, so that there is no work where none is due."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(tuple(names))
        self._first = INFINITY

    def push(self, batch: Batch) -> None:
        """Puts rows in, in any order."""
        if len(batch):
            self._first = min(self._first, int(batch.start.min()))
            super().push(batch)

    def release(self, bound: int) -> Batch:
        """Takes out the rows that start at `bound` or before, in order."""
        if bound < self._first:
            return self._nothing
        found = super().release(bound)
        self._first = min((int(run.start[0]) for run in self._runs), default=INFINITY)
        return found


class ByEnd(Queue):
    """Rows turned round, in the order of their end.

    >>> rows = ByEnd(["x"])
    >>> rows.push(turned(Batch({"x": np.array([1, 2])}, np.array([3, 4]), np.array([9, 8]))))
    >>> rows.release(8).columns["x"].tolist(), rows.first_start()
    ([2], 3)
    """

    def runs(self) -> Iterator[Batch]:
        """The rows, in parts."""
        return iter(self._runs)

    def find(self, test: Callable[[Batch], BoolArray]) -> list[Batch]:
        """The rows that pass, in parts."""
        return [run.where(test(run)) for run in self._runs]

    def extract(self, test: Callable[[Batch], BoolArray]) -> Batch:
        """Takes out the rows that pass."""
        found, kept = [self._nothing], []
        for run in self._runs:
            passes = test(run)
            if passes.any():
                found.append(run.where(passes))
                run = run.where(~passes)
            if len(run):
                kept.append(run)
        self._runs = kept
        self._first = min((int(run.start[0]) for run in kept), default=INFINITY)
        return Batch.concat(found)

    def first_start(self) -> int:
        """When the first of the rows started; INFINITY if there is none."""
        return min((int(run.end.min()) for run in self._runs), default=INFINITY)


class Unions:
    """The union of the validities of each distinct row, as rows come in the order of their start.

    >>> unions = Unions(["x"])
    >>> rows = Batch({"x": np.array([1, 1])}, np.array([3, 4]), np.array([6, 9]))
    >>> found = unions.take(rows, 6)
    >>> found.start.tolist(), found.end.tolist(), unions.take(found.part(0, 0), 7).start.tolist()
    ([3, 6], [6, 9], [])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._slots = Slots(len(names))
        self._covered = np.full(self._slots.capacity, NEVER)
        self._ready = Queue(names)
        self._entered = 0  # rows, since idle slots were looked for
        self._watermark = NEVER

    def __len__(self) -> int:
        return len(self._ready) + int(np.count_nonzero(self._alive()))

    def _alive(self) -> BoolArray:
        return self._covered > self._watermark

    def take(self, batch: Batch, watermark: int) -> Batch:
        """What is newly covered, as far as it starts no later than the watermark.

        All rows that come later start at the watermark or after it, those of the batch before.
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
        order = order_by(slots, capacity)
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

    def held(self) -> Iterator[IntArray]:
        """The term ids of the rows."""
        yield from self._slots.held(self._alive())
        yield from self._ready.held()
