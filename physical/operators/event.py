"""The event operators of EP-SPARQL as joins in time (twins of algebra.event; SEMANTICS.md 7).

Rows about events are joined over other validities than those they have: kernels/occurrences.py
defines these, and how pairs in sequence, or shorter than a bound, become pairs that overlap.

    operator         left rows as   right rows as   a pair is also required to
    EventJoin        held           held
    SeqJoin          after          instant         be in sequence, if the right event takes time
    EqJoin           instant        instant         start at the same time
    SeqRightJoin     as SeqJoin, and each right row that has no partner
    EqLeftJoin       as EqJoin, and each left row that has no partner
    EventLeftJoin    instant        held            and each left row that has no partner
    NeverBefore      each right row that no left row precedes

The output is about instants again. A pair is emitted once the watermark reaches its end, an
unmatched row once it is decided (state/evidence.py); nothing is revised later.

Rows `after` start one instant late, and so does their watermark. An instant ends before that, so
the right side of a sequence is not retained: all rows that precede it are known when it arrives.

Inputs are sets of event solutions, by definition. Duplicates in the input lead to duplicates in the
output, and `Detect` removes them (event_sets.py).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from streamsparql.algebra import event as algebra
from streamsparql.algebra import join, match
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.expressions.occurrence import TIMES, EventCondition
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import (
    after,
    at_instant,
    held,
    instants,
    moving,
    since_of,
    start_in_sequence,
    static_rows,
    watermark_after,
)
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import (
    AREAS,
    MIN_HEAP,
    RowMerger,
    join_facts,
    shared_names,
)
from streamsparql.physical.operators.left_join import Condition
from streamsparql.physical.operators.sliced import Sliced
from streamsparql.physical.state.evidence import Accepted, EvidenceRows, Unmatched
from streamsparql.physical.state.heap import Heap, Passage
from streamsparql.physical.state.paired_areas import PairedAreas
from streamsparql.physical.state.parts import Memo, Stateful


class _EventPairs(Sliced):
    """The base of the operators on two inputs: the pairs of rows over other validities.

    With a `condition`, pairs for which it is not true are left out.
    """

    keys: tuple[str, ...] = ()
    """Columns that pairs must agree in, in addition to shared variables."""
    monotone = True

    def __init__(
        self,
        left: Operator,
        right: Operator,
        bound: int = INFINITY,
        condition: Condition | None = None,
    ) -> None:
        super().__init__(tuple(dict.fromkeys((*left.names, *right.names))), left, right)
        self.within = bound
        """The duration, in milliseconds, that a merged row must not reach."""
        self.condition = condition
        self._shared = shared_names(left.names, right.names)
        self._merge = RowMerger(self.names, None)
        self._areas = self._no_rows()
        self._results = Heap(self.names)

    def _no_rows(self) -> PairedAreas:
        left, right = self.inputs
        return PairedAreas(left.names, right.names, [*self._shared, *self.keys])

    @override
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        left, right = batches
        marks = self._marks(watermarks)
        results = self._pairs(self._left(left), self._right(right), marks)
        bound = min(marks)
        return self._results.through(list(results), bound), bound

    def _pairs(self, left: Batch, right: Batch, marks: Sequence[int]) -> Iterator[Batch]:
        """Yield the pairs of new rows with retained rows and with each other."""
        if len(left) or len(right):
            for pair in self._areas.meet(left, right, marks):
                yield self._merged(*pair)
        self._areas.purge(marks)

    def _merged(self, left: Batch, i: IntArray, right: Batch, j: IntArray) -> Batch:
        """Return the merged rows of the pairs that are related and satisfy the condition."""
        related = self._related(left, i, right, j)
        if related is not None and not related.all():
            i, j = i[related], j[related]
        rows = instants(self._merge.rows(left, i, right, j))
        return rows if self.condition is None else rows.where(self.condition.holds(rows))

    @abstractmethod
    def _left(self, rows: Batch) -> Batch:
        """Return left rows over the validities by which they are joined."""

    @abstractmethod
    def _right(self, rows: Batch) -> Batch:
        """Return right rows over the validities by which they are joined."""

    def _marks(self, watermarks: Sequence[int]) -> Sequence[int]:
        """Return the watermarks of the inputs over these validities."""
        return watermarks

    def _related(self, left: Batch, i: IntArray, right: Batch, j: IntArray) -> BoolArray | None:
        """Return which pairs, of those that overlap, are related in time; None for all."""
        return None

    @override
    def emit_at_once(self) -> None:
        self._results = Passage(self.names)

    def take_rows(self) -> list[Batch]:
        """Remove and return the retained rows of each input, over their instants."""
        areas, self._areas = self._areas, self._no_rows()
        left, right = (area.rows() for area in areas.parts().values())
        later, _ = self._marks((0, 0))  # how much later left rows start in their area
        left = left.over(left.start - later, left.end)
        return [instants(rows).ordered() for rows in (left, right)]

    def put_rows(self, rows: Sequence[Batch], t: int) -> None:
        """Retain rows of each input again, whose results before `t` have been emitted."""
        left, right = rows
        self._areas.retain(self._left(left), self._right(right), self._marks((t, t)))

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {AREAS: self._areas, MIN_HEAP: self._results}

    @override
    def memos(self) -> Iterable[Memo | None]:
        return (self.condition,)

    @override
    def facts(self) -> str:
        return join_facts(self._shared)


class EventJoin(_EventPairs):
    """The merged row of each compatible pair, from the first start to the last end."""

    implements = (join.Join, match.BasicGraphPattern)
    state = "both inputs, while they can be part of an event within the bound"

    @override
    def _left(self, rows: Batch) -> Batch:
        return held(rows, self.within)

    @override
    def _right(self, rows: Batch) -> Batch:
        return held(rows, self.within)


class SeqJoin(_EventPairs):
    """SEQ: the compatible pairs of which the second starts after the end of the first."""

    implements: ClassVar[tuple[type[Plan], ...]] = (algebra.SeqJoin,)
    state = "left rows, while they can begin an event within the bound"

    @override
    def _left(self, rows: Batch) -> Batch:
        return after(rows, self.within)

    @override
    def _right(self, rows: Batch) -> Batch:
        return moving(rows)

    @override
    def _marks(self, watermarks: Sequence[int]) -> Sequence[int]:
        return watermark_after(watermarks[0]), watermarks[1]

    @override
    def _related(self, left: Batch, i: IntArray, right: Batch, j: IntArray) -> BoolArray | None:
        return start_in_sequence(left, i, right, j)


class EqJoin(_EventPairs):
    """EQUALS: the compatible pairs with the same start and the same end."""

    implements: ClassVar[tuple[type[Plan], ...]] = (algebra.EqJoin,)
    state = "rows of an input that is ahead of the other"
    keys = (SINCE,)

    @override
    def _left(self, rows: Batch) -> Batch:
        return moving(rows)

    @override
    def _right(self, rows: Batch) -> Batch:
        return moving(rows)


# -- with an optional side ------------------------------------------------------------------------


class _Preserved:
    """The decision on the rows of a preserved input: which of them have no partner.

    The partners of a row are the rows of the other input, over validities that overlap its instant,
    that are `related` to it and satisfy the condition. Of these rows only the columns that decide
    this are retained, for the time of `bound`, the bound of the condition.
    """

    def __init__(
        self,
        rows: Operator,
        others: Operator,
        keys: Sequence[str],
        bound: int,
        condition: EventCondition | None,
        related: Accepted,
    ) -> None:
        shared = [*shared_names(rows.names, others.names), *keys]
        read = frozenset[str]() if condition is None else condition.names
        wanted = read | {SINCE} if bound < INFINITY or read.intersection(TIMES) else read
        names = dict.fromkeys((*shared, *(n for n in others.names if n in wanted)))
        self._condition = condition
        self._related = related
        self._merge = RowMerger(tuple(dict.fromkeys((*rows.names, *names))), None)
        evidence = EvidenceRows(tuple(names), shared, endless=bound == INFINITY)
        self.unmatched = Unmatched(rows.names, evidence, self._partners)

    def _partners(self, rows: Batch, i: IntArray, others: Batch, j: IntArray) -> BoolArray | None:
        related = self._related(rows, i, others, j)
        if self._condition is None:
            return related
        if related is None or related.all():
            return self._condition.holds(instants(self._merge.rows(rows, i, others, j)))
        (places,) = related.nonzero()
        merged = self._merge.rows(rows, i[places], others, j[places])
        related[places] = self._condition.holds(instants(merged))
        return related


class _Optional(_EventPairs):
    """The base of the optional operators: pairs, and the preserved rows without a partner.

    `own` is the bound of the condition. Pairs are retained for the lesser bound, evidence for that
    of the condition, which can be missing.
    """

    monotone = False
    kept: ClassVar[int]
    """The place of the preserved input."""

    def __init__(
        self,
        left: Operator,
        right: Operator,
        bound: int = INFINITY,
        condition: EventCondition | None = None,
        own: int = INFINITY,
    ) -> None:
        super().__init__(left, right, min(bound, own), condition)
        self.own = own
        rows, others = (left, right) if self.kept == 0 else (right, left)
        preserved = _Preserved(rows, others, self.keys, own, condition, self._partners)
        self._unmatched = preserved.unmatched

    @override
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        left, right = self._left(batches[0]), self._right(batches[1])
        marks = self._marks(watermarks)
        bound = min(marks)
        results = [*self._pairs(left, right, marks), *self._alone(batches, marks)]
        return self._results.through(results, bound), bound

    def _alone(self, batches: Sequence[Batch], marks: Sequence[int]) -> Iterator[Batch]:
        """Yield the preserved rows that are known to have no partner; static ones have none."""
        rows, others = batches[self.kept], batches[1 - self.kept]
        static = static_rows(rows)
        if static.any():
            yield rows.where(static)
            rows = rows.where(~static)
        own, known = marks[self.kept], marks[1 - self.kept]
        yield self._unmatched.consume(rows, self._evidence(others), (own, known))

    def continue_at(self, t: int, rows: Batch) -> None:
        """Begin at an instant, with the evidence from before it."""
        self._unmatched.continue_with(self._evidence(rows), self._marks((t, t))[1 - self.kept])

    @abstractmethod
    def _evidence(self, rows: Batch) -> Batch:
        """Return rows of the optional side over the time in which they can be partners."""

    def _partners(self, rows: Batch, i: IntArray, others: Batch, j: IntArray) -> BoolArray | None:
        if self.kept == 0:
            return self._related(rows, i, others, j)
        return self._related(others, j, rows, i)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {**super().parts(), UNMATCHED: self._unmatched}


UNMATCHED = "unmatched"


class SeqRightJoin(_Optional, SeqJoin):
    """OPTIONALSEQ: the pairs in sequence, and each right row that no left row precedes."""

    implements = (algebra.SeqRightJoin,)
    state = "left rows, while they can begin an event within the bound; of all, what precedes"
    kept = 1

    @override
    def _evidence(self, rows: Batch) -> Batch:
        return after(rows, self.own)


class EqLeftJoin(_Optional, EqJoin):
    """EQUALSOPTIONAL: the simultaneous pairs, and each left row without one."""

    implements = (algebra.EqLeftJoin,)
    kept = 0

    @override
    def _evidence(self, rows: Batch) -> Batch:
        return moving(rows)


class EventLeftJoin(_Optional):
    """OPTIONAL: each left row with the right rows that are known by its end, or without one.

    Static left rows are decided at the first instant of the input.
    """

    implements = (join.LeftJoin,)
    state = "right rows, while they can be part of an event within the bound; of all, what is known"
    kept = 0
    scalars = ("begin", "_waits")

    def __init__(
        self,
        left: Operator,
        right: Operator,
        bound: int = INFINITY,
        condition: EventCondition | None = None,
        own: int = INFINITY,
    ) -> None:
        super().__init__(left, right, bound, condition, own)
        self.begin: int | None = None
        """The first instant of the input; None until it is known."""
        self._waits = False  # whether the last step waited for it
        self._static = Heap(left.names)

    @override
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        left, right = batches
        static = static_rows(left)
        if static.any() or len(self._static):
            self._static.push(left.where(static))
            left = left.where(~static)
        if self.begin is not None and len(self._static):
            first = at_instant(self._static.release(INFINITY), self.begin)
            left = Batch.concat([first, left]).ordered()
        self._waits = self.begin is None
        if self._waits:  # static inputs have ended already, but their rows are still undecided
            watermarks = [min(watermark, -1) for watermark in watermarks]
        return super()._consume([left, right], watermarks, cut)

    @override
    def due(self) -> bool:
        return self._waits and self.begin is not None

    @override
    def _alone(self, batches: Sequence[Batch], marks: Sequence[int]) -> Iterator[Batch]:
        rows, others = batches
        yield instants(self._unmatched.consume(rows, self._evidence(others), (marks[0], marks[1])))

    @override
    def _left(self, rows: Batch) -> Batch:
        return rows

    @override
    def _right(self, rows: Batch) -> Batch:
        return held(rows, self.within)

    @override
    def _evidence(self, rows: Batch) -> Batch:
        return held(rows, self.own)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {**super().parts(), "static": self._static}


class NeverBefore(Sliced):
    """OPTIONALSEQ without a left side: the right rows that no left row precedes."""

    implements = (algebra.NeverBefore,)
    state = "of the left rows, what precedes: the first per key, or those within the bound"

    def __init__(
        self,
        left: Operator,
        right: Operator,
        condition: EventCondition | None = None,
        own: int = INFINITY,
    ) -> None:
        super().__init__(right.names, left, right)
        self.own = own
        self.condition = condition
        self._shared = shared_names(left.names, right.names)
        self._unmatched = _Preserved(right, left, (), own, condition, _preceded).unmatched
        self._results = Heap(self.names)

    def continue_at(self, t: int, rows: Batch) -> None:
        """Begin at an instant, with the evidence from before it."""
        self._unmatched.continue_with(after(rows, self.own), watermark_after(t))

    @override
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        left, right = batches
        known, own = watermark_after(watermarks[0]), watermarks[1]
        bound = min(known, own)
        static = static_rows(right)
        alone = self._unmatched.consume(right.where(~static), after(left, self.own), (own, known))
        return self._results.through([right.where(static), alone], bound), bound

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {UNMATCHED: self._unmatched, MIN_HEAP: self._results}

    def take_rows(self) -> list[Batch]:
        """Remove and return the retained rows of each input, over their instants.

        Left rows have the columns that decide; where their starts do not, they start early.
        """
        left = self._unmatched.evidence.take()
        left = left.over(left.start - 1, left.start).ordered()
        if SINCE not in left.columns:
            left = left.with_columns({SINCE: since_of(np.zeros(len(left), np.int64))})
        return [left, self.inputs[1].nothing()]

    def put_rows(self, rows: Sequence[Batch], t: int) -> None:
        """Retain rows of each input again, whose results before `t` have been emitted."""
        self._consume(rows, (t, t), False)

    @override
    def memos(self) -> Iterable[Memo | None]:
        return (self.condition,)

    @override
    def facts(self) -> str:
        return join_facts(self._shared)


def _preceded(rows: Batch, i: IntArray, others: Batch, j: IntArray) -> BoolArray:
    return start_in_sequence(others, j, rows, i)
