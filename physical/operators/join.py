"""The join of two inputs over intervals (SEMANTICS.md section 5).

Each side has a sweep area. What comes of one side meets what is in the other's area; what comes of
both in one step meets once. A row goes into its area only while a row that the other side has still
to give can meet it, so of an input that has ended (a static graph) the other side keeps nothing.

A result holds over the intersection, and so starts where the later of the two does. That may be
after the least watermark, when one input runs ahead of the other: the heap keeps it until then.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from streamsparql.algebra import join as algebra
from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch, IntArray
from streamsparql.physical.hidden import is_stamp
from streamsparql.physical.operator import Operator, Part, Step
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.sweep_area import SweepArea

LEFT, RIGHT = "left area", "right area"
"""What the sweep areas of two inputs are called."""
HEAP = "min-heap"
"""What results are in that start after the release bound."""

SLICE = 1 << 16
"""So many rows are taken in at a time: the arrays of more would leave the cache."""


class Binary(Operator):
    """An operator on two inputs, which takes a long step in slices of time.

    That is sound as rows come in order: what has still to come of a batch starts no earlier than
    its next row does, which is all that a watermark says.
    """

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        if len(batches[0]) + len(batches[1]) <= SLICE:
            return self._take(batches, watermarks, cut)
        out, bound, last = [], 0, tuple(map(len, batches))
        before = 0, 0
        for after in _slices(batches):
            parts = [batch.part(*at) for batch, *at in zip(batches, before, after, strict=True)]
            marks = [
                mark if at == end else min(mark, int(batch.start[at]))
                for batch, mark, at, end in zip(batches, watermarks, after, last, strict=True)
            ]
            rows, bound = self._take(parts, marks, cut and after == last)
            out.append(rows)
            before = after
        return Batch.concat(out), bound

    @abstractmethod
    def _take(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """A step that is not too long."""


def _slices(batches: Sequence[Batch]) -> Iterator[tuple[int, int]]:
    """Where slices of time end in each of two batches."""
    left, right = batches
    longer = left if len(left) > len(right) else right
    number = -(-(len(left) + len(right)) // SLICE)
    for t in np.unique(longer.start[np.arange(1, number) * len(longer) // number]):
        yield int(np.searchsorted(left.start, t)), int(np.searchsorted(right.start, t))
    yield len(left), len(right)


class Join(Binary):
    """`merge(mu1, mu2)` of each compatible pair that overlaps, over the intersection."""

    implements = (algebra.Join,)
    state = "both inputs, while they can still meet; results that start after the watermark"

    def __init__(self, left: Operator, right: Operator, terms: Stamps | None = None) -> None:
        super().__init__(tuple(dict.fromkeys((*left.names, *right.names))), left, right)
        self._merge = RowMerger(self.names, terms)
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
        return release(self._results, found, bound), bound

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


def shared_names(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The variables that decide whether rows are compatible: those of both, stamps left out.

    >>> shared_names(["x", "y", ".t ?x"], [".t ?x", "z", "x"])
    ['x']
    """
    return [name for name in left if name in right and not is_stamp(name)]


def release(heap: Heap, found: list[Batch], bound: int) -> Batch:
    """What can be given out by now of the results that wait and those just found.

    Where nothing waits and all that was found can go, the heap is not needed.
    """
    if found:
        rows = Batch.concat(found).ordered()
        if len(rows) and not len(heap) and rows.start[-1] <= bound:
            return rows
        heap.push(rows)
    return heap.release(bound)


class Stamps(Protocol):
    """What merging needs to know of a dictionary."""

    def integers_of(self, ids: IntArray) -> IntArray:
        """The numbers that inlined integers stand for."""


Pair = tuple[Batch, IntArray, Batch, IntArray]
"""Row `i[k]` of the first batch with row `j[k]` of the second, for each k."""


class RowMerger:
    """Makes the row `merge(mu1, mu2)` of each pair; counts multiply."""

    def __init__(self, names: Sequence[str], terms: Stamps | None) -> None:
        self._names = names
        self._terms = terms

    def rows(self, left: Batch, i: IntArray, right: Batch, j: IntArray) -> Batch:
        """The merged rows of pairs, each over the intersection."""
        columns = {}
        for name in self._names:
            one, other = left.columns.get(name), right.columns.get(name)
            if other is None:
                assert one is not None
                columns[name] = one[i]
            elif one is None:
                columns[name] = other[j]
            else:
                columns[name] = self._both(name, one[i], other, j)
        count = None
        if left.count is not None or right.count is not None:
            count = left.counts()[i] * right.counts()[j]
        start = np.maximum(left.start[i], right.start[j])
        return Batch(columns, start, np.minimum(left.end[i], right.end[j]), count)

    def _both(self, name: str, one: IntArray, other: IntArray, j: IntArray) -> IntArray:
        if is_stamp(name):
            return self._latest(one, other[j])
        unbound = one == UNBOUND
        return np.where(unbound, other[j], one) if unbound.any() else one

    def _latest(self, one: IntArray, other: IntArray) -> IntArray:
        """The greater of two stamps; what is unbound loses."""
        assert self._terms is not None, "stamps are merged by their numbers"
        later = self._terms.integers_of(other) > self._terms.integers_of(one)
        return np.where((one == UNBOUND) | (later & (other != UNBOUND)), other, one)


class Meeting:
    """The sweep areas of two inputs: finds each compatible pair that overlaps, once.

    `exact` and `sharing` are those of `SweepArea`.
    """

    def __init__(
        self,
        left: Sequence[str],
        right: Sequence[str],
        shared: Sequence[str],
        exact: bool = False,
        sharing: bool = False,
    ) -> None:
        self._areas = SweepArea(left, shared, exact), SweepArea(right, shared, exact)
        self._sharing = sharing

    def __len__(self) -> int:
        return sum(map(len, self._areas))

    def facts(self) -> str:
        """The shared variables, for people to read."""
        return f"on {', '.join(self._areas[0].shared) or 'nothing: each with each'}"

    def content(self) -> Iterator[Part]:
        """Both areas."""
        for name, area in zip((LEFT, RIGHT), self._areas, strict=True):
            yield name, area.rows()

    def held(self) -> Iterator[IntArray]:
        """The ids of both areas."""
        for area in self._areas:
            yield from area.held()

    def meet(self, left: Batch, right: Batch, watermarks: Sequence[int]) -> Iterator[Pair]:
        """The pairs of new rows with those that are there and with each other.

        A row stays only if it ends after the other side's watermark.
        """
        lefts, rights = self._areas
        if len(right):
            for pairs in lefts.query(right, self._sharing):
                yield pairs.rows, pairs.place, right, pairs.probe
            staying = right.end > watermarks[0]
            if staying.all():
                rights.insert(right)
            else:
                if len(left):
                    passing = rights.another()
                    passing.insert(right.where(~staying))
                    yield from self._probe(left, passing)
                rights.insert(right.where(staying))
        if len(left):
            yield from self._probe(left, rights)
            lefts.insert(left.where(left.end > watermarks[1]))

    def _probe(self, left: Batch, rights: SweepArea) -> Iterator[Pair]:
        for pairs in rights.query(left, self._sharing):
            yield left, pairs.probe, pairs.rows, pairs.place

    def purge(self, watermarks: Sequence[int]) -> None:
        """Drops what no later row of the other side can meet."""
        self._areas[0].purge(watermarks[1])
        self._areas[1].purge(watermarks[0])
