"""OPTIONAL over intervals: the paper's Algorithms 4 and 5, corrected as SEMANTICS.md R9 says.

The left join of two inputs gives, at each instant, the merged rows of the pairs whose condition is
true, and each left row that is in no such pair. Over intervals that is

    every pair's merged row     over the intersection of the two validities
    every left row              over its gaps: where no such pair holds

and the second line is the hard one, because a gap is known only when nothing can fill it any more.

The state. Two sweep areas hold the rows that can still meet one of the other side. The coverage
holds each left row while parts of it are untold, with the instant up to which they have been told.
A min-heap by start holds results that may not go out, as one that starts earlier may follow.

A step, when rows have come of both sides, and their watermarks are Wl and Wr:

1. Each new row is sought in the other side's area, each new pair of rows once, and is put into its
   own area if it ends after the *other* side's watermark: nothing else can meet it.
2. Merged rows for which the condition is true are matches. They go on the heap, and the part of the
   left row that each holds over goes to the coverage. A pair whose condition is not true is no
   match: it leaves the left row uncovered.
3. Every match that starts before Wr is known by now: one that is still to come has a right row that
   is still to come. So the coverage tells the gaps up to Wr (see coverage.py), onto the heap.
4. Areas drop what ends by the other side's watermark, and the coverage what ends by Wr.
5. The heap releases what starts up to the *release bound*, the least of Wl, Wr and the starts of
   the open gaps: a gap that begins before Wr and whose end is not known yet will be a result that
   starts there.

An example: the left row e, the right rows p and q, with Wr after each step.

    e       |==============================|        0 .. 30
    p             |----------|                      6 .. 17, with e: a match over 6 .. 17
    q                |---|                          9 .. 13, a match over 9 .. 13
            0     6  9  13   17            30

    Wr = 3      nothing is told; a gap is open since 0: the bound is 0
    Wr = 8      p has come: the gap 0 .. 6 is told, told until 17; the bound is 8
    Wr = 12     q has come: it ends before 17, and changes nothing (R9 a)
    Wr = 20     a gap is open since 17: the bound is 17
    Wr = 40     e ends by Wr: the gap 17 .. 30 is told, and e goes; the bound is 40

Where the paper differs (R9): it sets the covered end to that of the last match, and would tell the
gap 13 .. 30 after q; it releases nothing when no left row lives; it takes the starts of all live
left rows for the bound, which holds results back that are covered for long; and it needs both
inputs in one order of time, where here each has a watermark of its own. A right side that has ended
(Wr is INFINITY, a static graph) lets every left row be told at once.

With `cut`, open gaps are told up to Wr and go on from there, so the bound is the least watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from streamsparql.algebra import join as algebra
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, BoolArray
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import (
    AREAS,
    MIN_HEAP,
    Binary,
    RowMerger,
    StampValues,
    join_facts,
    shared_names,
)
from streamsparql.physical.operators.covering import held_over
from streamsparql.physical.state.coverage import COVERAGE, FIRST_ROW, LEFT_ROW, Coverage
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.paired_areas import PairedAreas
from streamsparql.physical.state.parts import Memo, Stateful


class Condition(Memo, Protocol):
    """What a left join asks of a merged row."""

    def holds(self, batch: Batch) -> BoolArray:
        """Return where it is true."""


class LeftJoin(Binary):
    """The join where `condition` is true, and each left row where it has no such partner."""

    implements = (algebra.LeftJoin,)
    state = "both inputs, while they can still meet; what holds but is not known to its end"
    scalars = ("_next_row",)

    def __init__(
        self,
        left: Operator,
        right: Operator,
        condition: Condition | None = None,
        terms: StampValues | None = None,
    ) -> None:
        super().__init__(tuple(dict.fromkeys((*left.names, *right.names))), left, right)
        self._condition = condition
        self._merge = RowMerger(self.names, terms)
        shared = shared_names(left.names, right.names)
        self._areas = PairedAreas((*left.names, LEFT_ROW), right.names, shared)
        self._coverage = Coverage(left.names)
        self._results = Heap(self.names)
        self._next_row = FIRST_ROW

    @override
    def _take(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        left, right = batches
        found = []
        if len(left) or len(right):
            numbers = np.arange(self._next_row, self._next_row + len(left))
            self._next_row += len(left)
            self._coverage.add(left, numbers)
            numbered = left.with_columns({LEFT_ROW: numbers})
            for pair in self._areas.meet(numbered, right, watermarks):
                matches, over = self._merge.rows(*pair), held_over(pair)
                if self._condition is not None:
                    true = self._condition.holds(matches)
                    if not true.all():
                        matches = matches.where(true)
                        over = over[0][true], over[1][true], over[2][true]
                self._coverage.match(*over)
                found.append(matches)
        self._areas.purge(watermarks)
        told = self._coverage.emit((watermarks[0], watermarks[1]), cut)
        if len(told.gaps):
            found.append(told.gaps.project(self.names))
        return self._results.through(found, told.bound), told.bound

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {AREAS: self._areas, COVERAGE: self._coverage, MIN_HEAP: self._results}

    @override
    def memos(self) -> Iterable[Memo | None]:
        return (self._condition,)

    @override
    def facts(self) -> str:
        return join_facts(self._areas.shared)


class LeftJoinOn(Operator):
    """The left join whose matches come ready-made.

    Left rows have a number in the column `row`, and so have the rows of `matched`, of which each is
    a match of that left row over a part of its validity. The result has the matches, and the gaps
    that they leave; the numbers are dropped.
    """

    implements = (algebra.LeftJoin,)
    state = "left rows, while a match can still come; results that start after the watermark"

    def __init__(self, left: Operator, matched: Operator, row: str) -> None:
        names = dict.fromkeys((*left.names, *matched.names))
        super().__init__(tuple(name for name in names if name != row), left, matched)
        self._row = row
        self._coverage = Coverage([name for name in left.names if name != row])
        self._results = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        left, matched = batches
        self._coverage.add(left, left.column(self._row))
        self._coverage.match(matched.column(self._row), matched.start, matched.end)
        told = self._coverage.emit((watermarks[0], watermarks[1]), cut)
        found = [batch.project(self.names) for batch in (matched, told.gaps)]
        return self._results.through(found, told.bound), told.bound

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {COVERAGE: self._coverage, MIN_HEAP: self._results}
