"""OPTIONAL over intervals: ESWC 2008, Algorithm 4 and Algorithm 5, corrected by SEMANTICS.md R9.

The left join of two inputs has, at each instant, the merged rows of the pairs whose condition is
true, and each left row that is in no such pair. Over intervals that is

    the merged row of each pair   over the intersection of the two validities
    each left row                 over its gaps: where no such pair holds

and the second line is the difficult one, because a gap is final only when no later row can match.

State. Two sweep areas retain the rows that a later row of the other input can match. The coverage
retains each left row until all of its parts are emitted, with the instant up to which they are. A
min-heap by start retains results while an earlier result may follow.

A step, with new rows of both inputs and their watermarks Wl and Wr:

1. Each new row probes the sweep area of the other input, each new pair once, and is inserted into
   its own area if it ends after the watermark of the *other* input: else no later row matches it.
2. Merged rows for which the condition is true are matches. They are pushed on the heap, and their
   intersections are added to the coverage. A pair whose condition is not true is not a match: it
   leaves the left row uncovered.
3. Every match that starts before Wr is known: a later match has a later right row. So the coverage
   emits the gaps up to Wr (state/coverage.py), which are pushed on the heap.
4. The areas evict the rows that end by the watermark of the other input, the coverage those that
   end by Wr.
5. The heap releases the results that start up to the *release bound*, the least of Wl, Wr and the
   starts of the open gaps: an open gap, without an end yet, will be a result with its start.

An example: the left row e, the right rows p and q, with Wr after each step.

    e       |==============================|        0 .. 30
    p             |----------|                      6 .. 17, with e: a match over 6 .. 17
    q                |---|                          9 .. 13, a match over 9 .. 13
            0     6  9  13   17            30

    Wr = 3      no output; a gap is open since 0: the bound is 0
    Wr = 8      p is new: the gap 0 .. 6 is emitted, e is covered until 17; the bound is 8
    Wr = 12     q is new: it ends before 17, and changes nothing (R9 a)
    Wr = 20     a gap is open since 17: the bound is 17
    Wr = 40     e ends by Wr: the gap 17 .. 30 is emitted, and e is evicted; the bound is 40

Where the paper differs (R9): it sets the covered end to that of the last match, and would emit the
gap 13 .. 30 after q; it releases nothing when no left row is alive; its bound includes the starts
of all live left rows, which delays results that are covered for long; and it needs both inputs in
one order of time, whereas here each has its own watermark. If the right input has ended (Wr is
INFINITY, a static graph), every left row is emitted at once.

With `cut`, open gaps are emitted up to Wr and continue from there, so the bound is the least
watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from streamsparql.algebra import join as algebra
from streamsparql.limits import check_rows
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, BoolArray
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import (
    AREAS,
    MIN_HEAP,
    RowMerger,
    StampValues,
    join_facts,
    shared_names,
)
from streamsparql.physical.operators.covering import intersections
from streamsparql.physical.operators.sliced import Sliced
from streamsparql.physical.state.coverage import COVERAGE, FIRST_ROW, LEFT_ROW, Coverage
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.paired_areas import PairedAreas
from streamsparql.physical.state.parts import Memo, Stateful


class Condition(Memo, Protocol):
    """The condition of a left join on merged rows."""

    def holds(self, batch: Batch) -> BoolArray:
        """Return a mask of the rows for which it is true."""


class LeftJoin(Sliced):
    """The join where `condition` is true, and each left row while it has no such match.

    At each instant it is the left join of ESWC 2008, Definition 13, and over static data that of
    ESWC 2008, Definition 12. It is computed by ESWC 2008, Algorithm 4 and Algorithm 5.
    """

    implements = (algebra.LeftJoin,)
    state = "both inputs, until no match can follow; results that are not final"
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
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        left, right = batches
        results = []
        if len(left) or len(right):
            numbers = np.arange(self._next_row, self._next_row + len(left))
            self._next_row += len(left)
            self._coverage.add(left, numbers)
            numbered = left.with_columns({LEFT_ROW: numbers})
            for pair in self._areas.meet(numbered, right, watermarks):
                check_rows(len(pair[1]), len(self.names))
                matches, over = self._merge.rows(*pair), intersections(pair)
                if self._condition is not None:
                    true = self._condition.holds(matches)
                    if not true.all():
                        matches = matches.where(true)
                        over = over[0][true], over[1][true], over[2][true]
                self._coverage.match(*over)
                results.append(matches)
        self._areas.purge(watermarks)
        parts = self._coverage.emit((watermarks[0], watermarks[1]), cut)
        if len(parts.gaps):
            results.append(parts.gaps.project(self.names))
        return self._results.through(results, parts.bound), parts.bound

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
    """The left join whose matches are the right input.

    Left rows have a number in the column `row`. Each row of `matched` has the number of a left row,
    and is a match of that row over a part of the left row's validity. The result has the matches
    and the gaps, without the numbers.
    """

    implements = (algebra.LeftJoin,)
    state = "left rows, until no match can follow; results that start after the watermark"

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
        parts = self._coverage.emit((watermarks[0], watermarks[1]), cut)
        results = [batch.project(self.names) for batch in (matched, parts.gaps)]
        return self._results.through(results, parts.bound), parts.bound

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {COVERAGE: self._coverage, MIN_HEAP: self._results}
