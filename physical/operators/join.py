"""The join of two inputs over intervals (SEMANTICS.md section 5).

Each side has a sweep area. What comes of one side meets what is in the other's area; what comes of
both in one step meets once. A row goes into its area only while a row that the other side has still
to give can meet it, so of an input that has ended (a static graph) the other side keeps nothing.

A result holds over the intersection, and so starts where the later of the two does. That may be
after the least watermark, when one input runs ahead of the other: the heap keeps it until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsparql.algebra import access
from streamsparql.algebra import join as algebra
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.operator import Operator, Part, Step
from streamsparql.physical.operators.binary import (
    HEAP,
    Binary,
    Merge,
    Stamps,
    shared_names,
)
from streamsparql.physical.operators.covering import Covering
from streamsparql.physical.state.coverage import Emitted
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.meeting import Meeting


class Join(Binary):
    """`merge(mu1, mu2)` of each compatible pair that overlaps, over the intersection."""

    implements = (algebra.Join,)
    state = "both inputs, while they can still meet; results that start after the watermark"

    def __init__(self, left: Operator, right: Operator, terms: Stamps | None = None) -> None:
        super().__init__(tuple(dict.fromkeys((*left.names, *right.names))), left, right)
        self._merge = Merge(self.names, terms)
        self._meeting = Meeting(left.names, right.names, shared_names(left.names, right.names))
        self._results = Heap(self.names)

    @override
    def _take(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        left, right = batches
        found = []
        if len(left) or len(right):
            met = self._meeting.meet(left, right, watermarks)
            found = [self._merge.rows(*pair) for pair in met]
        self._meeting.purge(watermarks)
        bound = min(watermarks)
        return self._results.through(found, bound), bound

    @override
    def facts(self) -> str:
        return self._meeting.facts()

    @override
    def size(self) -> int:
        return len(self._meeting) + len(self._results)

    @override
    def content(self) -> Iterator[Part]:
        yield from self._meeting.content()
        yield HEAP, self._results.rows()

    @override
    def held(self) -> Iterator[IntArray]:
        yield from self._meeting.held()
        yield from self._results.held()


class Union(Operator):
    """All rows of all inputs; a column that an input lacks is unbound there (Definition 9).

    >>> import numpy as np
    >>> from streamsparql.physical.operators.access import Always
    >>> one, other = (Always.of({name: np.array([7])}, 1) for name in "xy")
    >>> rows, _ = Union(one, other).step([one.rows, other.rows], [9, 9], False)
    >>> rows.columns["x"].tolist(), rows.columns["y"].tolist()
    ([7, 0], [0, 7])
    """

    implements = (algebra.Union, access.Merge)
    state = "rows of an input that is ahead of another"

    def __init__(self, *inputs: Operator) -> None:
        super().__init__(tuple(dict.fromkeys(n for each in inputs for n in each.names)), *inputs)
        self._ahead = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        watermark = min(watermarks)
        return self._ahead.through(batches, watermark), watermark

    @override
    def size(self) -> int:
        return len(self._ahead)

    @override
    def content(self) -> Iterator[Part]:
        yield "ahead", self._ahead.rows()

    @override
    def held(self) -> Iterator[IntArray]:
        return self._ahead.held()


class Minus(Covering):
    """The left rows where no compatible right row shares a bound variable with them."""

    implements = (algebra.Minus,)

    def __init__(self, left: Operator, right: Operator) -> None:
        super().__init__(left.names, left, right, sharing=True)

    @override
    def _emit(self, told: Emitted) -> Sequence[Batch]:
        return [told.gaps]
