"""The min-heap that orders rows by their start (ESWC 2008, Algorithm 4 and Algorithm 5).

Rows are pushed in any order and released by their start, up to a *bound* below which no later row
will start. They are stored in a few ordered runs. A push extends the run that it continues, so rows
that arrive nearly in order cost O(1) each; otherwise a new run is merged with those before it that
are not much longer, so a row is moved O(log n) times. Rows of the same start keep their order,
because only the newest run is extended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.state.parts import RowStore, id_columns

_RUNS = 4
"""From this number of runs on, a new run is merged with older ones."""


class Heap(RowStore):
    """Rows by start.

    >>> heap = Heap(["x"])
    >>> heap.push(Batch({"x": np.array([1, 2])}, np.array([5, 3]), np.array([9, 9])))
    >>> heap.release(4).columns["x"].tolist(), len(heap)
    ([2], 1)
    """

    encoded = ("_runs",)
    derived = ("_counted", "_first")

    _extended = -1
    """The first run that a push may extend."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._nothing = Batch.empty(self.names)
        self._runs: list[_Run] = []
        self._first = INFINITY
        self._counted = False

    @property
    def first(self) -> int:
        """The least start of the rows; INFINITY if there are no rows."""
        return self._first

    @override
    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def push(self, batch: Batch) -> None:
        """Insert rows, in any order."""
        if len(batch):
            self._push(self._in_columns(batch.ordered()))

    def release(self, bound: int) -> Batch:
        """Remove and return the rows that start at `bound` or before, in order."""
        if bound < self._first or not self._runs:
            return self._nothing
        if len(self._runs) == 1 and self._runs[0].last <= bound:
            run = self._runs.pop()
            self._first = INFINITY
            return run.rows(self)
        out = [run.release(bound, self) for run in self._runs if run.first <= bound]
        self._drop_empty_runs()
        return out[0] if len(out) == 1 else Batch.concat(out).ordered()

    def through(self, batches: Sequence[Batch], bound: int) -> Batch:
        """Insert rows and release those that start at `bound` or before.

        If the heap is empty and all rows start at `bound` or before, they are not stored.

        >>> heap = Heap(["x"])
        >>> rows = Batch({"x": np.array([1, 2])}, np.array([3, 8]), np.array([9, 9]))
        >>> heap.through([rows], 5).columns["x"].tolist(), len(heap)
        ([1], 1)
        """
        batches = [batch for batch in batches if len(batch)]
        if not batches:
            return self.release(bound)
        rows = batches[0] if len(batches) == 1 else Batch.concat(batches, self.names)
        rows = self._in_columns(rows.ordered())
        if not self._runs and rows.start[-1] <= bound:
            return rows
        self._push(rows)
        return self.release(bound)

    def _in_columns(self, batch: Batch) -> Batch:
        return batch if tuple(batch.columns) == self.names else batch.project(self.names)

    def _push(self, batch: Batch) -> None:
        first = int(batch.start[0])
        self._first = min(self._first, first)
        self._counted = self._counted or batch.count is not None
        for run in self._runs[self._extended :]:
            if run.last <= first:
                run.append(batch)
                return
        while len(self._runs) >= _RUNS and len(self._runs[-1]) < 2 * len(batch):
            run = self._runs.pop()
            batch = Batch.concat([run.rows(self), batch]).ordered()
        self._runs.append(_Run(batch))

    def _drop_empty_runs(self) -> None:
        self._runs = [run for run in self._runs if len(run)]
        self._first = min((run.first for run in self._runs), default=INFINITY)

    def runs(self) -> list[Batch]:
        """Return the rows in ordered parts, without removing them."""
        return [run.rows(self) for run in self._runs]

    @override
    def rows(self) -> Batch:
        return Batch.concat([self._nothing, *self.runs()]).ordered()

    @override
    def put_back(self, rows: Batch) -> None:
        self.push(rows)

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        for run in self.runs():
            yield from id_columns(run)


class Passage(Heap):
    """A heap that releases all rows at once, for operators that emit in any order.

    >>> rows = Batch({"x": np.array([1, 2])}, np.array([8, 3]), np.array([9, 9]))
    >>> Passage(["x"]).through([rows], 0).start.tolist()
    [3, 8]
    """

    @override
    def through(self, batches: Sequence[Batch], bound: int) -> Batch:
        return super().through(batches, INFINITY)


class _Run:
    """Ordered rows: the batch that was pushed or, once extended, the columns of one growing array.

    Released rows are views. Each place of the array is written once, so the views never change.
    """

    __slots__ = ("_batch", "_head", "_table", "_tail", "first", "last")

    def __init__(self, batch: Batch) -> None:
        self._batch: Batch = batch
        self._table: IntArray | None = None
        self._head, self._tail = 0, len(batch.start)
        self.first, self.last = int(batch.start[0]), int(batch.start[-1])

    def __len__(self) -> int:
        return self._tail - self._head

    def append(self, batch: Batch) -> None:
        """Add rows at the end."""
        after = self._tail + len(batch)
        table = self._table
        if table is None or after > table.shape[1]:
            table = self._grow(2 * (len(self) + len(batch)), len(batch.columns))
            after = self._tail + len(batch)
        _write(table[:, self._tail : after], batch)
        self._tail, self.last = after, int(batch.start[-1])

    def _grow(self, room: int, width: int) -> IntArray:
        size = len(self)
        larger = np.empty((3 + width, room), np.int64)
        if self._table is None:
            _write(larger[:, :size], self._batch.part(self._head, self._tail))
        else:
            larger[:, :size] = self._table[:, self._head : self._tail]
        self._table = larger
        self._head, self._tail = 0, size
        return larger

    def release(self, bound: int, heap: Heap) -> Batch:
        """Remove and return the rows that start at `bound` or before."""
        head, after = self._head, self._tail
        if self.last > bound:
            start = self._batch.start if self._table is None else self._table[0]
            after = head + int(start[head:after].searchsorted(bound, "right"))
            self.first = int(start[after])
        self._head = after
        return self._part(head, after, heap)

    def rows(self, heap: Heap) -> Batch:
        """Return the rows."""
        return self._part(self._head, self._tail, heap)

    def _part(self, first: int, after: int, heap: Heap) -> Batch:
        if self._table is None:
            whole = after - first == len(self._batch.start)
            return self._batch if whole else self._batch.part(first, after)
        rows = self._table[:, first:after]
        columns = dict(zip(heap.names, rows[3:], strict=True))
        return Batch(columns, rows[0], rows[1], rows[2] if heap._counted else None)


def _write(places: IntArray, batch: Batch) -> None:
    places[0], places[1] = batch.start, batch.end
    places[2] = 1 if batch.count is None else batch.count
    for place, column in zip(places[3:], batch.columns.values(), strict=True):
        place[:] = column


def turned(batch: Batch) -> Batch:
    """Swap the ends of the validities: `start` is the end of a row, and `end` its start."""
    return batch.over(batch.end, batch.start)


class ByEnd(Heap):
    """Rows by end, with equal ends in any order; rows are pushed and released `turned`.

    >>> rows = ByEnd(["x"])
    >>> rows.push(turned(Batch({"x": np.array([1, 2])}, np.array([3, 4]), np.array([9, 8]))))
    >>> rows.release(8).columns["x"].tolist(), rows.first_start()
    ([2], 3)
    """

    _extended = 0

    @override
    def rows(self) -> Batch:
        return turned(super().rows()).ordered()

    @override
    def put_back(self, rows: Batch) -> None:
        self.push(turned(rows))

    def find(self, test: Callable[[Batch], BoolArray]) -> list[Batch]:
        """Return the rows that pass a test, turned, as a list of at least one batch."""
        return [run.where(test(run)) for run in self.runs()] or [self._nothing]

    def extract(self, test: Callable[[Batch], BoolArray]) -> Batch:
        """Remove and return the rows that pass a test, turned."""
        extracted, kept = [self._nothing], []
        for run in self._runs:
            rows = run.rows(self)
            passes = test(rows)
            if passes.any():
                extracted.append(rows.where(passes))
                rows = rows.where(~passes)
                if len(rows):
                    kept.append(_Run(rows))
            else:
                kept.append(run)
        self._runs = kept
        self._drop_empty_runs()
        return Batch.concat(extracted)

    def first_start(self) -> int:
        """Return the least start of the rows; INFINITY if there are no rows."""
        return min((int(run.end.min()) for run in self.runs()), default=INFINITY)
