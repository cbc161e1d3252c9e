"""Sequences without an event in between (twin of algebra.event.SeqWithout).

A left row `a` and a right row `c` are a result if `c` starts after the end of `a`, and no absent
row lies between them. By definition the latter is asked of all left rows with the variables and the
start of `a`, and of all right rows with the variables and the end of `c`. So it is asked of the
strictest of them: of the left rows the first to end, of the right rows the last to start.

    M(c)    the latest start of the absent rows that ended before `c` starts
    (a, c)  is a result if  M(c) <= end of a < start of c

So each right row probes one range of the left rows, whatever the bound is. A left row before which
no range of a later right row can begin is *passed*: that is the case once an absent row has started
after it, unless the right row itself takes time, and began before that. So left rows are divided
into open and passed ones. Right rows that take no time, which are most, probe the open ones only;
for the others each pair is compared with the absent rows in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from streamsparql.algebra import event as algebra
from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import NEVER, Batch, BoolArray, IntArray
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.keys import grouped
from streamsparql.physical.kernels.occurrences import (
    after,
    instants,
    moving,
    starts_of,
    watermark_after,
)
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import MIN_HEAP, RowMerger, shared_names
from streamsparql.physical.state.evidence import WAITING
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.latest_starts import LatestStarts
from streamsparql.physical.state.parts import RowBuffer, Stateful
from streamsparql.physical.state.sweep_area import SweepArea
from streamsparql.physical.state.unions import DistinctRows

_LEAST = 1 << 10
"""The number of new left rows from which on they are divided into open and passed ones."""


class SeqWithout(Operator):
    """SEQ, without an absent row in between.

    All variables of the left and right rows are bound, and so are those that absent rows share.
    """

    implements = (algebra.SeqWithout,)
    state = "left rows until an absent row follows; per key the latest absent row"
    scalars = ("_divided",)

    def __init__(
        self, left: Operator, right: Operator, absent: Operator, bound: int = INFINITY
    ) -> None:
        names = tuple(dict.fromkeys((*left.names, *right.names)))
        super().__init__(names, left, right, absent)
        self.within = bound
        """The duration, in milliseconds, that a merged row must not reach."""
        shared = shared_names(left.names, right.names)
        keys = self._keys = shared_names(absent.names, names)
        self._of_right = set(keys) <= set(right.names)
        self._of_left = set(keys) <= set(left.names)
        self._shared = shared
        self._merge = RowMerger(names, None)
        self._empty()

    def _empty(self) -> None:
        """Begin without rows."""
        left, right, _ = self.inputs
        self._firsts = DistinctRows(left.names)
        self._open = SweepArea(left.names, self._shared)
        self._passed = self._open.another()
        self._divided = 0  # the number of open rows when they were last divided
        self._latest = LatestStarts(self._keys)
        self._absent = SweepArea((*self._keys, SINCE), self._keys)
        self._waiting, self._long = Heap(right.names), Heap(right.names)
        self._points = RowBuffer(right.names)
        self._results = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        left, right, absent = batches
        own = watermarks[1]
        known = min(watermarks[0], watermarks[2])
        firsts = self._firsts.consume(after(left, self.within), watermark_after(watermarks[0]))
        self._open.insert(_at_starts(firsts))
        absent = moving(absent).project((*self._keys, SINCE))
        self._latest.add(absent)
        self._absent.insert(absent)
        due = self._waiting.through([moving(right)], known)
        points, long = self._decided(due, own)
        bound = min(watermark_after(known), own)
        results = [*self._pairs_of_points(points), *self._pairs_of_long(long)]
        self._evict(bound)
        return self._results.through(results, bound), bound

    def _decided(self, due: Batch, own: int) -> tuple[Batch, Batch]:
        """Return the right rows that take no time, and others; of equal ones the last to start.

        A row that takes time is decided once all rows of its instant are known.
        """
        point = starts_of(due.columns[SINCE]) == due.start
        points = due.where(point)
        self._long.push(due.where(~point))
        long = self._long.release(own - 1)
        recent = Batch.concat([self._points.batch, points])
        if len(long):
            both = Batch.concat([long, recent])
            variables = [both.columns[name] for name in self.inputs[1].names if name != SINCE]
            order, first = grouped([*variables, both.start], len(both))
            last = np.maximum.reduceat(both.columns[SINCE][order], first)
            latest = np.empty(len(both), np.int64)
            latest[order] = np.repeat(last, np.diff(np.append(first, len(both))))
            long = long.where(long.columns[SINCE] == latest[: len(long)])
        self._points.batch = recent.where(recent.start >= own)
        return points, long

    def _pairs_of_points(self, points: Batch) -> Iterator[Batch]:
        """Yield the results of right rows that take no time."""
        if not len(points):
            return
        low = self._least_ends(points)
        if self._of_right:
            keys = [points.columns[name] for name in self._keys]
            low = np.maximum(low, self._latest.before(keys, points.start))
        for left, i, j in self._candidates(self._open, points, low):
            if not self._of_right:
                keys = self._key_columns(left, i, points, j)
                free = self._latest.before(keys, points.start[j]) < left.start[i]
                i, j = i[free], j[free]
            yield self._merged(left, i, points, j)

    def _pairs_of_long(self, rows: Batch) -> Iterator[Batch]:
        """Yield the results of right rows that take time."""
        if not len(rows):
            return
        for area in (self._open, self._passed):
            for left, i, j in self._candidates(area, rows, self._least_ends(rows)):
                free = ~self._interrupted(left, i, rows, j)
                yield self._merged(left, i[free], rows, j[free])

    def _least_ends(self, rows: Batch) -> IntArray:
        """Return the least end of left rows with which right rows are within the bound."""
        if self.within == INFINITY:
            return np.full(len(rows), NEVER)
        return rows.start - self.within + 1

    def _candidates(
        self, area: SweepArea, rows: Batch, low: IntArray
    ) -> Iterator[tuple[Batch, IntArray, IntArray]]:
        """Yield the left rows that end at `low` or later and before right rows start."""
        starts = starts_of(rows.columns[SINCE])
        (places,) = (low < starts).nonzero()
        probes = rows.take(places).over(low[places] + 1, starts[places] + 1)
        for probe, left, i in area.query(probes):
            j = places[probe]
            if self.within < INFINITY:
                within = starts_of(left.columns[SINCE][i]) > rows.start[j] - self.within
                i, j = i[within], j[within]
            yield left, i, j

    def _key_columns(self, left: Batch, i: IntArray, right: Batch, j: IntArray) -> list[IntArray]:
        """Return the variables of pairs that absent rows share."""
        return [
            left.columns[name][i] if name in left.columns else right.columns[name][j]
            for name in self._keys
        ]

    def _interrupted(self, left: Batch, i: IntArray, right: Batch, j: IntArray) -> BoolArray:
        """Return which pairs have an absent row in between."""
        interrupted = np.zeros(len(i), np.bool_)
        ends, starts = left.start[i] - 1, starts_of(right.columns[SINCE][j])
        (places,) = (ends + 1 < starts).nonzero()
        keys = self._key_columns(left, i[places], right, j[places])
        columns = dict(zip(self._keys, keys, strict=True))
        between = Batch(columns, ends[places] + 1, starts[places])
        for probe, rows, place in self._absent.query(between):
            hit = starts_of(rows.columns[SINCE][place]) > ends[places[probe]]
            interrupted[places[probe[hit]]] = True
        return interrupted

    def _merged(self, left: Batch, i: IntArray, right: Batch, j: IntArray) -> Batch:
        return instants(self._merge.rows(left, i, right, j))

    def _evict(self, t: int) -> None:
        """Evict what right rows that end at `t` or later do not need."""
        self._latest.fold(t)
        late = t - 2 if t == INFINITY else t - self.within
        if late > 0:
            self._open.purge(late + 2)
            self._passed.purge(late + 2)
            self._absent.purge(late + 1)
            self._latest.forget_before(late + 1)
        if self._of_left and len(self._open) > 2 * self._divided + _LEAST:
            rows = self._open.rows()
            keys = [rows.columns[name] for name in self._keys]
            passed = self._latest.folded(keys, len(rows)) >= rows.start
            self._passed.insert(rows.where(passed))
            self._open = self._open.another()
            self._open.insert(rows.where(~passed))
            self._divided = len(self._open)

    def take_rows(self) -> list[Batch]:
        """Remove and return the retained rows of each input, over their instants."""
        left = Batch.concat([self._open.rows(), self._passed.rows()])
        left = left.over(left.start - 1, left.start)
        right = Batch.concat([self._points.batch, self._long.rows()])
        absent = self._absent.rows()
        self._empty()
        return [rows.ordered() for rows in (left, right, absent)]

    def put_rows(self, rows: Sequence[Batch], t: int) -> None:
        """Retain rows of each input again, whose results before `t` have been emitted."""
        self.step(rows, (t, t, t), False)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {
            "first rows": self._firsts,
            "open": self._open,
            "passed": self._passed,
            "latest absent": self._latest,
            "absent": self._absent,
            WAITING: self._waiting,
            "of open instants": self._long,
            "points of open instants": self._points,
            MIN_HEAP: self._results,
        }

    @override
    def facts(self) -> str:
        on = f"on {', '.join(self._shared) or 'no column: a Cartesian product'}"
        return f"{on}; without {', '.join(self._keys) or 'any'}"


def _at_starts(rows: Batch) -> Batch:
    """Return rows over the instants at which they start."""
    return rows.over(rows.start, rows.start + 1)
