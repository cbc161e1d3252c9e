"""What sweeps hold of their input: elements until they end, and the unions of equal ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.kernels.intervals import firsts, running_max
from streamsparql.physical.operator import INFINITY, NEVER, Part
from streamsparql.physical.state.key_slots import Slots, grown, order_by

COMING, READY = "to start", "to be given"
"""What the rows are called that start after the watermark, and those that wait for others."""

_ROOM = 64
_RUNS = 4


def turned(batch: Batch) -> Batch:
    """The rows turned round: `start` is when they end, and `end` when they started."""
    return batch.over(batch.end, batch.start)


class _Run:
    """Ordered rows as the columns of one array: those from `head` to `tail`.

    What is given out are views of it. Places are written once, so these stay as they are.
    """

    __slots__ = ("head", "last", "rows", "tail")

    def __init__(self, batch: Batch) -> None:
        self.head, self.tail, self.last = 0, 0, NEVER
        self.rows = np.empty((len(batch.columns) + 3, len(batch) + _ROOM), np.int64)
        self.append(batch)

    def __len__(self) -> int:
        return self.tail - self.head

    def append(self, batch: Batch) -> None:
        """Puts rows at the end."""
        after = self.tail + len(batch)
        if after > self.rows.shape[1]:
            kept = self.rows[:, self.head : self.tail]
            self.rows = np.empty((len(kept), 2 * (len(self) + len(batch))), np.int64)
            self.rows[:, : len(self)] = kept
            self.head, self.tail = 0, len(self)
            after = self.tail + len(batch)
        here = self.rows[:, self.tail : after]
        here[0], here[1] = batch.start, batch.end
        here[2] = 1 if batch.count is None else batch.count
        for row, column in zip(here[3:], batch.columns.values(), strict=True):
            row[:] = column
        self.tail, self.last = after, int(batch.start[-1])

    def part(self, first: int, after: int, names: Sequence[str], counted: bool) -> Batch:
        """Some of the rows."""
        rows = self.rows[:, first:after]
        columns = dict(zip(names, rows[3:], strict=True))
        return Batch(columns, rows[0], rows[1], rows[2] if counted else None)


class Queue:
    """A heap (heap.py) that is at its best where rows come nearly in the order that they leave.

    Rows go to the end of an ordered run that they continue, if there is one. There are few runs: a
    new one is merged with those before it that are not much longer, once there are some.

    >>> queue = Queue(["x"])
    >>> queue.push(Batch({"x": np.array([1, 2])}, np.array([5, 3]), np.array([9, 9])))
    >>> queue.release(4).columns["x"].tolist(), len(queue)
    ([2], 1)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._nothing = Batch.empty(self._names)
        self._runs: list[_Run] = []
        self._first = INFINITY
        self._counted = False

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def push(self, batch: Batch) -> None:
        """Puts rows in, in any order; their columns are those of the queue, in that order."""
        if not len(batch):
            return
        batch = batch.ordered()
        first = int(batch.start[0])
        self._first = min(self._first, first)
        self._counted = self._counted or batch.count is not None
        for run in self._runs:
            if run.last <= first:
                run.append(batch)
                return
        while len(self._runs) >= _RUNS and len(self._runs[-1]) < 2 * len(batch):
            run = self._runs.pop()
            batch = Batch.concat([self._all(run), batch]).ordered()
        self._runs.append(_Run(batch))

    def release(self, bound: int) -> Batch:
        """Takes out the rows that start at `bound` or before, in order."""
        if bound < self._first:
            return self._nothing
        out = []
        for run in self._runs:
            if run.rows[0, run.head] <= bound:
                after = run.tail
                if run.last > bound:
                    found = run.rows[0, run.head : after].searchsorted(bound, "right")
                    after = run.head + int(found)
                out.append(run.part(run.head, after, self._names, self._counted))
                run.head = after
        self._settle()
        if not out:
            return self._nothing
        return out[0] if len(out) == 1 else Batch.concat(out).ordered()

    def _settle(self) -> None:
        """Forgets runs that are empty."""
        if not all(map(len, self._runs)):
            self._runs = [run for run in self._runs if len(run)]
        self._first = min((int(run.rows[0, run.head]) for run in self._runs), default=INFINITY)

    def _all(self, run: _Run) -> Batch:
        return run.part(run.head, run.tail, self._names, self._counted)

    def runs(self) -> Iterator[Batch]:
        """The rows, in parts, each of them ordered."""
        return map(self._all, self._runs)

    def rows(self) -> Batch:
        """All rows by `start`; they stay."""
        return Batch.concat([self._nothing, *self.runs()]).ordered()

    def held(self) -> Iterator[IntArray]:
        """The term ids of the rows."""
        for run in self.runs():
            yield from run.columns.values()


def in_time(coming: Queue, batch: Batch, bound: int) -> Batch:
    """The rows that start no later than `bound`, of a batch and those that wait; the others wait.

    >>> coming = Queue(["x"])
    >>> batch = Batch({"x": np.array([1, 2])}, np.array([3, 8]), np.array([9, 9]))
    >>> in_time(coming, batch, 5).columns["x"].tolist(), len(coming)
    ([1], 1)
    """
    if not len(coming) and (not len(batch) or batch.start[-1] <= bound):
        return batch
    coming.push(batch)
    return coming.release(bound)


class ByEnd(Queue):
    """Rows turned round, in the order of their end.

    >>> rows = ByEnd(["x"])
    >>> rows.push(turned(Batch({"x": np.array([1, 2])}, np.array([3, 4]), np.array([9, 8]))))
    >>> rows.release(8).columns["x"].tolist(), rows.first_start()
    ([2], 3)
    """

    def find(self, test: Callable[[Batch], BoolArray]) -> list[Batch]:
        """The rows that pass, in parts; at least one."""
        return [run.where(test(run)) for run in self.runs()] or [self._nothing]

    def extract(self, test: Callable[[Batch], BoolArray]) -> Batch:
        """Takes out the rows that pass."""
        found, kept = [self._nothing], []
        for run in self._runs:
            rows = self._all(run)
            passes = test(rows)
            if passes.any():
                found.append(rows.where(passes))
                rows = rows.where(~passes)
                if len(rows):
                    kept.append(_Run(rows))
            else:
                kept.append(run)
        self._runs = kept
        self._settle()
        return Batch.concat(found)

    def first_start(self) -> int:
        """When the first of the rows started; INFINITY if there is none."""
        return min((int(run.end.min()) for run in self.runs()), default=INFINITY)


class Unions:
    """The union of the validities of each distinct row, as rows come in the order of their start.

    >>> unions = Unions(["x"])
    >>> rows = Batch({"x": np.array([1, 1])}, np.array([3, 4]), np.array([6, 9]))
    >>> found = unions.take(rows, 6)
    >>> found.start.tolist(), found.end.tolist(), unions.take(found.part(0, 0), 7).start.tolist()
    ([3, 6], [6, 9], [])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
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

    def content(self) -> Iterator[Part]:
        """The rows that are covered, until when, and the pieces that are still to be given."""
        alive = self._alive().nonzero()[0]
        columns = [column[alive] for column in self._slots.columns]
        covered = self._covered[alive]
        since = np.full(len(alive), NEVER)
        yield "covered", Batch(dict(zip(self._names, columns, strict=True)), since, covered)
        yield READY, self._ready.rows()

    def held(self) -> Iterator[IntArray]:
        """The term ids of the rows."""
        yield from self._slots.held(self._alive())
        yield from self._ready.held()
