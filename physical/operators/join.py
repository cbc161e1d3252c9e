"""The join of two inputs over intervals (SEMANTICS.md section 5).

Each input has a sweep area. New rows of one input probe the area of the other; new rows of both
inputs are paired once. A row is retained only while a later row of the other input can match it, so
nothing is retained once the other input has ended (a static graph).

A result holds over the intersection, so it starts with the later of the two rows. When one input is
ahead of the other, that can be after the least watermark; the heap retains the result until then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from streamsparql.algebra import access
from streamsparql.algebra import join as algebra
from streamsparql.algebra.plan import Plan
from streamsparql.limits import check_rows
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import (
    AREAS,
    MIN_HEAP,
    RowMerger,
    StampValues,
    join_facts,
    shared_names,
)
from streamsparql.physical.operators.covering import Covering
from streamsparql.physical.operators.sliced import Sliced
from streamsparql.physical.state.coverage import Emitted
from streamsparql.physical.state.heap import Heap, Passage
from streamsparql.physical.state.paired_areas import PairedAreas
from streamsparql.physical.state.parts import Stateful


class Join(Sliced):
    """`merge(mu1, mu2)` of each compatible pair that overlaps, over the intersection.

    At each instant it is the join of ESWC 2008, Definition 10.
    """

    implements: ClassVar[tuple[type[Plan], ...]] = (algebra.Join,)
    state = "both inputs, until no match can follow; results that start after the watermark"

    def __init__(self, left: Operator, right: Operator, terms: StampValues | None = None) -> None:
        super().__init__(tuple(dict.fromkeys((*left.names, *right.names))), left, right)
        self._merge = RowMerger(self.names, terms)
        self._areas = PairedAreas(left.names, right.names, shared_names(left.names, right.names))
        self._results = Heap(self.names)

    @override
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        left, right = batches
        results = []
        if len(left) or len(right):
            for pair in self._areas.meet(left, right, watermarks):
                check_rows(len(pair[1]), len(self.names))
                results.append(self._merge.rows(*pair))
        self._areas.purge(watermarks)
        bound = min(watermarks)
        return self._results.through(results, bound), bound

    @override
    def facts(self) -> str:
        return join_facts(self._areas.shared)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {AREAS: self._areas, MIN_HEAP: self._results}


class Union(Operator):
    """The rows of all inputs; columns that an input lacks are unbound (ESWC 2008, Definition 9).

    >>> import numpy as np
    >>> from streamsparql.physical.operators.access import Always
    >>> one, other = (Always.of({name: np.array([7])}, 1) for name in "xy")
    >>> rows, _ = Union(one, other).step([one.rows, other.rows], [9, 9], False)
    >>> rows.columns["x"].tolist(), rows.columns["y"].tolist()
    ([7, 0], [0, 7])
    """

    implements = (algebra.Union, access.Merge)
    state = "rows of inputs that are ahead of another"
    monotone = True

    def __init__(self, *inputs: Operator) -> None:
        super().__init__(tuple(dict.fromkeys(n for each in inputs for n in each.names)), *inputs)
        self._ahead = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        watermark = min(watermarks)
        return self._ahead.through(batches, watermark), watermark

    @override
    def emit_at_once(self) -> None:
        self._ahead = Passage(self.names)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"ahead": self._ahead}


class Minus(Covering):
    """The left rows where no compatible right row shares a bound variable with them."""

    implements = (algebra.Minus,)

    def __init__(self, left: Operator, right: Operator) -> None:
        super().__init__(left.names, left, right, sharing=True)

    @override
    def _select(self, parts: Emitted) -> Sequence[Batch]:
        return [parts.gaps]
