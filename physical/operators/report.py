"""The last operators of a plan: the horizon, the canonical form, reports (SEMANTICS.md section 6).

A report at an instant shows a snapshot. `Reports` emits rows that start at that instant: RSTREAM
those that hold, ISTREAM those whose multiplicity is greater than in the report before, DSTREAM
those whose multiplicity is less. Differences of bags need no snapshots: a row that starts adds one,
a row that ends subtracts one, and a sum of zero means no change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from streamsparql.algebra.grid import Grid, Instants
from streamsparql.algebra.streams import INFINITY
from streamsparql.limits import check_rows
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.kernels.keys import grouped
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.access import Clock
from streamsparql.physical.operators.queries import QueryTable
from streamsparql.physical.state.canonical import OPEN, Canonical
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import RowBuffer, Stateful

RelationToStream = Literal["rstream", "istream", "dstream"]
"""The operators from relations to streams."""


class Clip(Operator):
    """The part of the rows within the horizon `[begin, end)`.

    If the horizon begins with the first item of the streams, `begin` is None until that item is
    known, and rows are retained until then. A `clock` knows it, or the caller sets `begin`; `lag`
    is added to the time of the clock.
    """

    family = "align"
    state = "all rows, until the start of the horizon is known"
    scalars = ("begin", "end")

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        begin: int | None,
        end: int = INFINITY,
        clock: Clock | None = None,
        lag: int = 0,
    ) -> None:
        super().__init__(input.names, input, *([] if clock is None else [clock]))
        self.begin, self.end = begin, end
        self.clock, self.lag = clock, lag
        self._waiting = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        batch, watermark = batches[0], watermarks[0]
        if self.begin is None and self.clock is not None and self.clock.begin is not None:
            self.begin = self.clock.begin + self.lag
        if self.begin is None:
            self._waiting.push(batch)
            return self.nothing(), -1
        if len(self._waiting):
            self._waiting.push(batch)
            pieces = self._waiting.release(INFINITY)  # cuts are not changes, which reports count
            batch = Canonical(self.names).consume(pieces, INFINITY, False).project(self.names)
        if len(batch) and (batch.start[0] < self.begin or self.end < INFINITY):
            start, end = np.maximum(batch.start, self.begin), np.minimum(batch.end, self.end)
            batch = batch.over(start, end).where(start < end)
        return batch, INFINITY if watermark >= self.end else watermark

    @override
    def due(self) -> bool:
        return self.begin is not None and len(self._waiting) > 0

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"horizon unknown": self._waiting}


class TemporalCoalesce(Operator):
    """The canonical form by level sets (algebra/streams.py), a function of `phi` alone.

    It is the sink of a plan: a row is emitted when it is final, so it may start before rows of
    earlier steps. Within a step rows are ordered by start. If `eager`, a cut emits pieces;
    otherwise rows are whole, however often operators below are cut. If the input is `canonical`
    already and consists of final rows, they pass through.
    """

    family = "shape"
    state = "the rows that a later row could still extend"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        eager: bool = False,
        canonical: bool = False,
    ) -> None:
        super().__init__(input.names, input)
        self.eager, self.canonical = eager, canonical
        self._rows = Canonical(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        if self.canonical:
            return batches[0], watermarks[0]
        rows = self._rows.consume(batches[0], watermarks[0], cut and self.eager)
        return rows.project(self.names), min(watermarks[0], self._rows.first_start())

    def open_rows(self) -> Batch:
        """Return the rows that a later row could still extend, not in canonical form."""
        return self._rows.rows()

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {OPEN: self._rows}


class Reports(Operator):
    """The rows of each report, over the instant of the report.

    Reports are at `origin + k * every`, or without `every` at each change. With `closing` a report
    at `r` shows the snapshot of `r - 1`: it closes the period before it (R15). If the horizon below
    has a clock, it is that of the reports; otherwise the caller sets `clock`, `begin` and `last`.
    """

    family = "align"
    state = "the rows that a later report may show, or whose end it may report"
    scalars = ("begin", "end", "last", "clock", "_reported", "_stepped_at", "_next", "_due")

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        kind: RelationToStream,
        every: int | None,
        origin: int = 0,
        closing: bool = False,
        shown: Sequence[str] | None = None,
        queries: QueryTable | None = None,
        *,
        events: bool = False,
        distinct: bool = False,
    ) -> None:
        timed = isinstance(input, Clip) and input.clock is not None
        self._horizon = input if isinstance(input, Clip) and timed else None
        super().__init__(input.names, input, *input.inputs[1:] if timed else ())
        self.events, self.distinct = events, distinct
        """Whether rows are events; whether a report has each row once."""
        self.shown = self.names if shown is None else tuple(shown)
        """The columns that are shown; others only order the rows."""
        self.kind, self.every, self.origin = kind, every, origin
        self.lag = int(closing)
        self.begin: int | None = None
        """The start of the horizon, and of the reports; None until it is known."""
        self.end = INFINITY
        """The end of the horizon."""
        self.last = -1
        """The last instant of a change so far; when the streams have ended, reports end there."""
        self.clock = -1
        """The instant up to which reports are emitted. The watermark of the plan can be greater,
        for instance if the plan is static."""
        self._queries = queries
        self._identity = (_DETECTED,) if events else ()
        names = (*self.names, *self._identity)
        self._shown = RowBuffer(names)
        self._changes = Heap((*names, _SIGN))
        self._reported = 0
        self._stepped_at = -1
        self._next: int | None = None
        self._due: list[int] = []

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        batch = batches[0]
        if self._horizon is not None:
            self._read_clock(self._horizon, watermarks[1])
        self.last = max(self.last, self._last_change(batch))
        if self.events:
            batch = self._detections(batch)
        self._stepped_at = self.clock
        ended = self.clock == INFINITY
        until = (
            self.first_report(self.last) + (self.every or 1)
            if ended
            else self.first_report(self.clock)
        )
        until = min(until, self.first_report(self._end))
        if self.begin is None and not len(batch):  # nothing is reported before the horizon
            return batch, INFINITY if ended else until
        if self.kind != "rstream":
            rows = self._differences(batch, until)
        elif self.every is None:
            rows = self._snapshots_at(batch, self._instants(batch, until), until)
        else:
            rows = self._snapshots(batch, until)
        if self.distinct and len(rows):
            rows = self._distinct(rows)
        self._report(rows, until)
        return rows.project(self.names), INFINITY if ended else until

    def _read_clock(self, horizon: Clip, now: int) -> None:
        assert horizon.clock is not None
        self.clock = min(now, INFINITY - horizon.lag) + horizon.lag
        self.last = max(self.last, horizon.clock.last + horizon.lag)
        self.begin = horizon.begin

    def _last_change(self, batch: Batch) -> int:
        """Return the last instant at which rows start or end, without the cuts of leases."""
        times = np.concatenate([batch.start, batch.end])
        if self._queries is not None:
            times = times[~np.isin(times, self._queries.cuts)]
        return _last(times) if len(times) else -1

    @override
    def due(self) -> bool:
        return self.clock != self._stepped_at

    def _detections(self, batch: Batch) -> Batch:
        """Return events so that the report of a period shows those that ended in it.

        A column has the instant of the event, so that both of two equal events are reported.
        """
        if self.every is not None:
            label = self.first_report(batch.start)
            batch = batch.over(label, label + self.every)
        return batch.with_columns({_DETECTED: batch.start})

    def _distinct(self, rows: Batch) -> Batch:
        """Return one of equal rows of each report."""
        columns = [*(rows.columns[name] for name in self.shown), rows.start]
        order, first = grouped(columns, len(rows))
        return rows.take(np.sort(order[first]))

    def _report(self, rows: Batch, until: int) -> None:
        """Note the instants of the reports before `until`."""
        if self.every is None:
            if self.kind != "rstream":
                self._due += np.unique(rows.start).tolist()
        elif self.begin is not None:
            first = self.first_report(self.begin) if self._next is None else self._next
            instants = range(first, until, self.every)
            check_rows(max(0, -(-(until - first) // self.every)), 0)
            self._due += instants
            self._next = max(first, until)

    @property
    def _end(self) -> int:
        """The end of the horizon, at most an instant to which periods can be added."""
        return min(self.end, INFINITY // 2)

    def done(self) -> list[int]:
        """Return the instants of the reports that were completed since the last call."""
        due, self._due = self._due, []
        return due

    def first_report(self, instants: Instants) -> Instants:
        """Return the first report that shows the snapshot of an instant or a later one."""
        return Grid(self.every or 1, self.origin).ceil(instants, later=self.lag)

    def _snapshots(self, batch: Batch, until: int) -> Batch:
        """Return RSTREAM on a grid: each row in all reports before `until` that show it.

        Retained rows are over `[first report, report after the last)`.
        """
        assert self.every is not None
        rows, since = self._shown.batch, self._reported
        if len(batch):
            first = self.first_report(batch.start)
            after = self.first_report(np.minimum(batch.end, INFINITY - self.every - 1))
            aligned = batch.over(first, after).where(first < after)
            rows = Batch.concat([rows, aligned], self._shown.names)
        self._reported = max(since, until)
        self._shown.batch = rows.where(rows.end > until)
        if until - since == self.every:
            return _shown_at(rows.where(rows.start <= since), since)
        return _spread_out(rows, until, since, self.every)

    def _instants(self, batch: Batch, until: int) -> IntArray:
        """Return the instants before `until` at which a multiplicity changes."""
        instants = np.unique(self._differences(batch, until).start)
        self._due += instants.tolist()
        return instants

    def _snapshots_at(self, batch: Batch, instants: IntArray, until: int) -> Batch:
        """Return RSTREAM at each change."""
        rows = Batch.concat([self._shown.batch, batch], self._shown.names)
        first = np.searchsorted(instants, self.first_report(rows.start), "left")
        after = np.searchsorted(instants, np.minimum(rows.end, INFINITY - 1) + self.lag, "left")
        self._shown.batch = rows.where(rows.end + (rows.end < INFINITY) * self.lag > until)
        shown = _spread_out(rows.over(first, after), len(instants), 0, 1)
        labels = instants[shown.start]
        return shown.over(labels, labels + 1)

    def _differences(self, batch: Batch, until: int) -> Batch:
        """Return the rows with greater, or less, multiplicity at each report before `until`."""
        wanted = -1 if self.kind == "dstream" else 1
        ends = batch.where(batch.end < INFINITY)
        for rows, at, sign in ((batch, batch.start, 1), (ends, ends.end, -1)):
            signs = np.full(len(rows), sign, np.int64) * rows.counts()
            label = self.first_report(at)
            changes = Batch({**rows.columns, _SIGN: signs}, label, label)
            self._changes.push(changes)
        due = self._changes.release(until - 1)
        if not len(due):
            return self.nothing()
        columns = [due.columns[name] for name in (*self.shown, *self._identity)]
        order, first = grouped([*columns, due.start], len(due))
        signs = due.columns[_SIGN][order] * wanted
        sums = np.add.reduceat(signs, first)
        changed = sums != 0 if self.kind == "rstream" else sums > 0
        places = np.where(signs > 0, np.arange(len(due)), len(due))
        chosen = np.minimum.reduceat(places, first)  # of equal rows, one that changes this way
        rows = due.take(order[np.where(chosen < len(due), chosen, first)[changed]])
        counted = Batch(rows.columns, rows.start, rows.start + 1, np.abs(sums[changed]))
        return counted.project(self.names).expanded().ordered()

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"reported": self._shown, "pending changes": self._changes}

    @override
    def facts(self) -> str:
        return f"{self.kind} {'at each change' if self.every is None else f'every {self.every} ms'}"


_SIGN, _DETECTED = "#sign", "#detected"


def _last(end: IntArray) -> int:
    """Return the last finite end; -1 if all are INFINITY."""
    last = int(end.max())
    if last < INFINITY:
        return last
    ends = end[end < INFINITY]
    return int(ends.max()) if len(ends) else -1


def _shown_at(rows: Batch, instant: int) -> Batch:
    """Return the rows in one report."""
    at = np.full(len(rows), instant, np.int64)
    return rows.over(at, at + 1).expanded()


def _spread_out(rows: Batch, until: int, since: int, every: int) -> Batch:
    """Return each row in the reports of its validity from `since` to before `until`, in order.

    Large reports are computed one by one, small ones all at once.
    """
    first = np.maximum(rows.start, since)
    times = np.maximum(np.minimum(rows.end, until) - first, 0) // every
    total = int(times.sum())
    if not total:
        return rows.part(0, 0)
    check_rows(total, len(rows.columns))
    least = int(first[times > 0].min())
    instants = range(least, until, every)
    if total > _LARGE * len(instants):
        return _one_by_one(rows, instants)
    index = np.repeat(np.arange(len(rows)), times)
    nth = np.arange(total) - np.repeat(np.cumsum(times) - times, times)
    at = first[index] + nth * every
    periods = (at - least) // every
    few = len(instants) <= 1 << 16  # numpy sorts 16 bits by their digits
    order = np.argsort(periods.astype(np.uint16) if few else periods, kind="stable")
    shown = rows.take(index[order])
    at = at[order]
    return shown.over(at, at + 1).expanded()


_LARGE = 1 << 9


def _one_by_one(rows: Batch, instants: range) -> Batch:
    """Return the rows of the reports at these instants, one report after the other."""
    places = [np.flatnonzero((rows.start <= r) & (rows.end > r)) for r in instants]
    sizes = np.array([len(shown) for shown in places])
    shown = rows.take(np.concatenate(places))
    at = np.repeat(np.array(instants), sizes)
    return shown.over(at, at + 1).expanded()
