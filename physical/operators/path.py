"""`p+` over intervals: the transitive closure of edges with validities (SPARQL 1.1 section 9.3).

A way holds over the intersection of the validities of its edges; a pair holds over the union of the
validities of its ways. The closure is maintained incrementally: new edges derive only the pairs
that they add (semi-naive evaluation), and expired pairs are evicted, since each pair has the end of
its ways.

In a step, with the new edges N, all live edges E (including N) and the known pairs R:

    delta = the parts of N and R o N that R does not cover     ways with a new last edge
    then, while delta is not empty,
    delta = the parts of delta o E that R does not cover       ways that are one edge longer

where each delta is added to R. "Cover" is per instant: for a pair that is known over [0, 5), a new
way over [3, 9) adds the piece [5, 9), and only that piece is extended further. An edge is retained
only where its pair is not known already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from streamsparql.algebra import path as algebra
from streamsparql.limits import check_rows
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.kernels.intervals import firsts, newly_covered
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import MIN_HEAP
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import Stateful
from streamsparql.physical.state.sweep_area import SweepArea

_COPIES = 40  # columns of the arrays in which the uncovered parts of ways are found


class TransitiveClosure(Operator):
    """The pairs that one or more edges connect, over the union of the validities of their ways.

    The edges are rows with the columns `subject` and `object`; multiplicities are ignored. The
    number of iterations of a step is the number of edges of the longest new way.
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
        results = []
        if len(edges):
            new = self._uncovered([edges])
            self._edges.insert(new)
            delta = self._uncovered([new, *self._ending_at(new)])
            while len(delta):
                results.append(delta)
                self._pairs.insert(delta)
                delta = self._uncovered(list(self._extended(delta)))
        self._edges.purge(watermark)
        self._pairs.purge(watermark)
        return self._results.through(results, watermark), watermark

    def _ending_at(self, edges: Batch) -> Iterator[Batch]:
        """Yield R o N: the known pairs that end where an edge starts, with the edge."""
        subject, object_ = self.names
        at = edges.columns[subject]
        ends = Batch({subject: np.zeros_like(at), object_: at}, edges.start, edges.end)
        for i, pairs, j in self._pairs.query(ends):
            yield self._ways(pairs, j, edges, i)

    def _extended(self, pairs: Batch) -> Iterator[Batch]:
        """Yield delta o E: pairs, with the edges that start where they end."""
        subject, object_ = self.names
        begins = Batch({subject: pairs.columns[object_]}, pairs.start, pairs.end)
        for i, edges, j in self._edges.query(begins):
            yield self._ways(pairs, i, edges, j)

    def _ways(self, one: Batch, i: IntArray, other: Batch, j: IntArray) -> Batch:
        check_rows(len(i), _COPIES)
        subject, object_ = self.names
        columns = {subject: one.columns[subject][i], object_: other.columns[object_][j]}
        start = np.maximum(one.start[i], other.start[j])
        return Batch(columns, start, np.minimum(one.end[i], other.end[j]))

    def _uncovered(self, ways: list[Batch]) -> Batch:
        """Return the parts of ways that the known pairs do not cover, in disjoint pieces."""
        rows = Batch.concat(ways, self.names) if ways else self.nothing()
        if not len(rows):
            return rows
        order = np.lexsort(tuple(rows.columns.values()))
        columns = [column[order] for column in rows.columns.values()]
        start, end = rows.start[order], rows.end[order]
        first = firsts(columns[0]) | firsts(columns[1])
        group = np.cumsum(first) - 1
        probes = Batch(dict(zip(self.names, columns, strict=True)), start, end)
        known = [
            (group[i], pairs.start[j], pairs.end[j]) for i, pairs, j in self._pairs.query(probes)
        ]
        group, start, end = newly_covered((group, start, end), known)
        columns = [column[first][group] for column in columns]
        return Batch(dict(zip(self.names, columns, strict=True)), start, end).ordered()

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"edges": self._edges, "pairs": self._pairs, MIN_HEAP: self._results}
