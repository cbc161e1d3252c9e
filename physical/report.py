"""What users get: the part of a result within the horizon, and reports (SEMANTICS.md section 6).

A report at an instant shows a snapshot. `Reports` gives the rows of each as rows that start there:
RSTREAM all that hold, ISTREAM those that are more than at the instant before, DSTREAM those that
are less. Differences of bags need no snapshots: a row that starts counts one more, one that ends
one less, and what cancels out has not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.heap import Heap
from streamsparql.physical.keys import grouped
from streamsparql.physical.operator import INFINITY, Operator, Step
from streamsparql.physical.window import ceil

Kind = Literal["rstream", "istream", "dstream"]


class Clip(Operator):
    """The part of the rows within the horizon `[begin, end)`.

    Where the horizon begins with the first item of the streams, nothing goes on before that is
    known: `begin` is None until then.
    """

    state = "everything, until it is known when the horizon begins"

    def __init__(self, input: Operator, begin: int | None, end: int = INFINITY) -> None:  # noqa: A002
        super().__init__(input.names, input)
        self.begin, self.end = begin, end
        self._waiting = Heap(self.names)

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """The rows as far as they are inside."""
        (batch,), (watermark,) = batches, watermarks
        if self.begin is None:
            self._waiting.push(batch)
            return self.nothing(), -1
        if len(self._waiting):
            self._waiting.push(batch)
            batch = self._waiting.release(INFINITY)
        if len(batch):
            start, end = np.maximum(batch.start, self.begin), np.minimum(batch.end, self.end)
            batch = batch.over(start, end).where(start < end)
        return batch, INFINITY if watermark >= self.end else watermark

    def due(self) -> bool:
        """Whether rows waited for a horizon that is known now."""
        return self.begin is not None and len(self._waiting) > 0

    def size(self) -> int:
        """The rows that wait for the horizon."""
        return len(self._waiting)

    def held(self) -> Iterator[IntArray]:
        """Their terms."""
        return self._waiting.held()


class Reports(Operator):
    """The rows of each report, over one instant: that of the report.

    Reports are at `origin + k * every`, or with no `every` at each change. With `closing` a report
    at `r` shows the snapshot of `r - 1`: it closes the period before it (R15).
    """

    state = "the rows that a later report may show, or that are to end"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        kind: Kind,
        every: int | None,
        origin: int = 0,
        closing: bool = False,
    ) -> None:
        super().__init__(input.names, input)
        self.kind, self.every, self.origin = kind, every, origin
        self.lag = int(closing)
        self.begin: int | None = None
        """Where the horizon begins, once that is known: there are no reports of before."""
        self.end = INFINITY
        """Where it ends."""
        self.last = -1
        """The last instant at which anything was seen to happen: reports end with it."""
        self._rows = self.nothing()
        self._changes = Heap((*self.names, _SIGN))
        self._reported = 0
        self._next: int | None = None
        self._due: list[int] = []

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """The reports that nothing can change any more."""
        (batch,), (watermark,) = batches, watermarks
        if len(batch):
            ends = batch.end[batch.end < INFINITY]
            self.last = max(self.last, int(batch.start[-1]), int(ends.max()) if len(ends) else -1)
        over = watermark == INFINITY
        until = int(self._label(np.array([self.last if over else watermark]))[0])
        until, bound = (until + (self.every or 1), INFINITY) if over else (until, until)
        if self.kind != "rstream":
            rows = self._differences(batch, until)
        elif self.every is None:
            rows = self._snapshots_at(batch, self._instants(batch, until), until)
        else:
            rows = self._snapshots(batch, until)
        self._report(rows, until)
        return rows, bound

    def _report(self, rows: Batch, until: int) -> None:
        """Notes the instants of the reports before `until`."""
        if self.every is None:
            if self.kind != "rstream":
                self._due += np.unique(rows.start).tolist()
        elif self.begin is not None:
            first, end = (int(self._label(np.array([t]))[0]) for t in (self.begin, self._end))
            first = first if self._next is None else self._next
            self._due += range(first, min(until, end), self.every)
            self._next = max(first, until)

    @property
    def _end(self) -> int:
        """The end of the horizon, where there is room after it."""
        return min(self.end, INFINITY // 2)

    def done(self) -> list[int]:
        """The instants of the reports that are done since the last call, empty ones too."""
        due, self._due = self._due, []
        return due

    def _label(self, instants: IntArray) -> IntArray:
        """The first report that shows the snapshot of an instant or a later one."""
        if self.every is None:
            return instants + self.lag
        return ceil(instants + self.lag - self.origin, self.every) + self.origin

    def _snapshots(self, batch: Batch, until: int) -> Batch:
        """RSTREAM on a grid: each row in all reports that show it, up to before `until`."""
        assert self.every is not None
        rows = Batch.concat([self._rows, batch], self.names)
        first = np.maximum(self._label(rows.start), self._reported)
        after = self._label(np.minimum(rows.end, INFINITY - self.every - 1))
        self._rows = rows.where(after > until)
        times = np.maximum(np.minimum(after, until) - first, 0) // self.every
        self._reported = max(self._reported, until)
        return _spread(rows, first, times, self.every)

    def _instants(self, batch: Batch, until: int) -> IntArray:
        """The instants before `until` at which something changes."""
        instants = np.unique(self._differences(batch, until).start)
        self._due += instants.tolist()
        return instants

    def _snapshots_at(self, batch: Batch, instants: IntArray, until: int) -> Batch:
        """RSTREAM at each change."""
        rows = Batch.concat([self._rows, batch], self.names)
        first = np.searchsorted(instants, self._label(rows.start), "left")
        after = np.searchsorted(instants, np.minimum(rows.end, INFINITY - 1) + self.lag, "left")
        self._rows = rows.where(rows.end + (rows.end < INFINITY) * self.lag > until)
        shown = _spread(rows, first, np.maximum(after - first, 0), 1)
        labels = instants[shown.start]
        return shown.over(labels, labels + 1)

    def _differences(self, batch: Batch, until: int) -> Batch:
        """The rows that are more, or less, at each report before `until`."""
        wanted = -1 if self.kind == "dstream" else 1
        ends = batch.where(batch.end < INFINITY)
        for rows, at, sign in ((batch, batch.start, 1), (ends, ends.end, -1)):
            signs = np.full(len(rows), sign, np.int64) * rows.counts()
            label = self._label(at)
            changes = Batch({**rows.columns, _SIGN: signs}, label, label)
            self._changes.push(changes)
        due = self._changes.release(until - 1)
        if not len(due):
            return self.nothing()
        columns = [due.columns[name] for name in self.names]
        order, first = grouped([*columns, due.start], len(due))
        sums = np.add.reduceat(due.columns[_SIGN][order], first)
        if self.every is None and self.kind == "rstream":
            changed = sums != 0
        else:
            sums *= wanted
            changed = sums > 0
        rows = due.take(order[first[changed]]).project(self.names)
        counted = Batch(rows.columns, rows.start, rows.start + 1, np.abs(sums[changed]))
        return counted.expanded().ordered()

    def size(self) -> int:
        """The rows that are shown again, and changes to come."""
        return len(self._rows) + len(self._changes)

    def held(self) -> Iterator[IntArray]:
        """Their terms."""
        yield from self._rows.columns.values()
        yield from self._changes.held()

    def facts(self) -> str:
        """What is reported when."""
        return f"{self.kind} {'at each change' if self.every is None else f'every {self.every} ms'}"


_SIGN = "..sign"


def _spread(rows: Batch, first: IntArray, times: IntArray, every: int) -> Batch:
    """Each row at so many instants, `every` apart, from its first one on; in order of time."""
    index = np.repeat(np.arange(len(rows)), times)
    nth = np.arange(len(index)) - np.repeat(np.cumsum(times) - times, times)
    at = first[index] + nth * every
    if not len(at):
        return Batch(rows.columns, rows.start, rows.end, rows.count).take(index)
    periods = (at - at.min()) // every
    few = int(periods.max()) < 1 << 16  # numpy sorts 16 bits by their digits
    order = np.argsort(periods.astype(np.uint16) if few else periods, kind="stable")
    shown = rows.take(index[order])
    instants = at[order]
    return shown.over(instants, instants + 1).expanded()
