"""The union of streams of rows: an ordered merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsparql.algebra import access, join
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.operator import Operator, Part, Step
from streamsparql.physical.state.heap import Heap


class Union(Operator):
    """All rows of all inputs; a column that an input lacks is unbound there (Definition 9).

    >>> import numpy as np
    >>> from streamsparql.physical.operators.access import Always
    >>> one, other = (Always.of({name: np.array([7])}, 1) for name in "xy")
    >>> rows, _ = Union(one, other).step([one.rows, other.rows], [9, 9], False)
    >>> rows.columns["x"].tolist(), rows.columns["y"].tolist()
    ([7, 0], [0, 7])
    """

    implements = (join.Union, access.Merge)
    state = "rows of an input that is ahead of another"

    def __init__(self, *inputs: Operator) -> None:
        super().__init__(tuple(dict.fromkeys(n for each in inputs for n in each.names)), *inputs)
        self._ahead = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        watermark = min(watermarks)
        came = [batch for batch in batches if len(batch)]
        if not came and not len(self._ahead):
            return self.nothing(), watermark
        if came:
            rows = Batch.concat(came, self.names).ordered()
            if not len(self._ahead) and rows.start[-1] <= watermark:
                return rows, watermark
            self._ahead.push(rows)
        return self._ahead.release(watermark), watermark

    @override
    def size(self) -> int:
        return len(self._ahead)

    @override
    def content(self) -> Iterator[Part]:
        yield "ahead", self._ahead.rows()

    @override
    def held(self) -> Iterator[IntArray]:
        return self._ahead.held()
