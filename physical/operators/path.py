"""`p+` over intervals: the transitive closure of edges that come and go (SPARQL 1.1 section 9.3).

A way holds where all of its edges do, over the intersection of their validities, and a pair holds
where one of its ways does, over the union of theirs. The closure is kept, not computed anew: when
edges come, only what they add is derived (semi-naive evaluation), and what has ended is dropped, as
a pair knows until when its ways hold.

In a step, with the new edges N, all live edges E (N among them) and the pairs R that are known:

    delta = what N and R o N cover and R does not      ways whose last edge is the only new one
    then, until there is none,
    delta = what delta o E covers and R does not       ways that are one edge longer

where R gets each delta. "Covers" is meant per instant: of a pair that is known over [0, 5), a new
way over [3, 9) gives the piece [5, 9), and only that piece is followed further. An edge adds
nothing where its pair is known already, and is kept only where it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from streamsparql.algebra import path as algebra
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.kernels.intervals import firsts, newly_covered
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import MIN_HEAP
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import Stateful
from streamsparql.physical.state.sweep_area import SweepArea


class TransitiveClosure(Operator):
    """The pairs that one edge or more connect, over the union of the validities of their ways.

    The edges are rows with the columns `subject` and `object`; how often one is there is nothing to
    the closure. A step costs as many rounds as the longest way that its new edges begin is long.
    """

    implements = (algebra.Path,)
    state = "edges that hold, and the pairs that they connect"

    def __init__(self, input: Operator, subject: str, object: str) -> None:  # noqa: A002
        super().__init__((subject, object), input)
        self._edges = SweepArea(self.names, [subject])
        self._pairs = SweepArea(self.names, self.names)
        self._results = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (edges,), (watermark,) = batches, watermarks
        found = []
        if len(edges):
            new = self._new([edges])
            self._edges.insert(new)
            delta = self._new([new, *self._led_to(new)])
            while len(delta):
                found.append(delta)
                self._pairs.insert(delta)
                delta = self._new(list(self._led_on(delta)))
        self._edges.purge(watermark)
        self._pairs.purge(watermark)
        return self._results.through(found, watermark), watermark

    def _led_to(self, edges: Batch) -> Iterator[Batch]:
        """R o N: the known pairs that end where an edge begins, with the edge."""
        subject, object_ = self.names
        at = edges.columns[subject]
        ends = Batch({subject: np.zeros_like(at), object_: at}, edges.start, edges.end)
        for i, pairs, j in self._pairs.query(ends):
            yield self._ways(pairs, j, edges, i)

    def _led_on(self, pairs: Batch) -> Iterator[Batch]:
        """R o E: pairs, with the edges that begin where they end."""
        subject, object_ = self.names
        begins = Batch({subject: pairs.columns[object_]}, pairs.start, pairs.end)
        for i, edges, j in self._edges.query(begins):
            yield self._ways(pairs, i, edges, j)

    def _ways(self, one: Batch, i: IntArray, other: Batch, j: IntArray) -> Batch:
        subject, object_ = self.names
        columns = {subject: one.columns[subject][i], object_: other.columns[object_][j]}
        start = np.maximum(one.start[i], other.start[j])
        return Batch(columns, start, np.minimum(one.end[i], other.end[j]))

    def _new(self, ways: list[Batch]) -> Batch:
        """Where ways connect a pair that is not known to be connected there, in disjoint pieces."""
        found = Batch.concat(ways, self.names) if ways else self.nothing()
        if not len(found):
            return found
        order = np.lexsort(tuple(found.columns.values()))
        columns = [column[order] for column in found.columns.values()]
        start, end = found.start[order], found.end[order]
        first = firsts(columns[0]) | firsts(columns[1])
        group = np.cumsum(first) - 1
        asked = Batch(dict(zip(self.names, columns, strict=True)), start, end)
        known = [
            (group[i], pairs.start[j], pairs.end[j]) for i, pairs, j in self._pairs.query(asked)
        ]
        group, start, end = newly_covered((group, start, end), known)
        columns = [column[first][group] for column in columns]
        return Batch(dict(zip(self.names, columns, strict=True)), start, end).ordered()

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"edges": self._edges, "pairs": self._pairs, MIN_HEAP: self._results}
