"""The base of the operators that emit the covered or the uncovered parts of their left rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.operator import Operator, Part, Step
from streamsparql.physical.operators.binary import HEAP, Binary, shared_names
from streamsparql.physical.state.coverage import FIRST_ROW, ROW, Coverage, Emitted
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.meeting import Meeting, Pair


class Covering(Binary):
    """An operator that tells what of its left rows is covered by partners on its right.

    Rows are partners when they are compatible, or, with `on`, when they agree in the pairs of
    columns that it names, where what is unbound equals what is unbound.
    """

    state = "both inputs, while they can still meet; what holds but is not known to its end"

    def __init__(
        self,
        names: Sequence[str],
        left: Operator,
        right: Operator,
        on: Sequence[tuple[str, str]] | None = None,
        sharing: bool = False,
    ) -> None:
        super().__init__(names, left, right)
        if on is None:
            shared = shared_names(left.names, right.names)
            self._keys = [(name, name, name) for name in shared]
        else:
            self._keys = [(f".on{k}", one, other) for k, (one, other) in enumerate(on)]
        keys = [name for name, _, _ in self._keys]
        self._sharing = sharing
        self._meeting = Meeting((*keys, ROW), keys, keys, on is not None, sharing)
        self._coverage = Coverage(left.names)
        self._results = Heap(self.names)
        self._numbers = FIRST_ROW

    @override
    def _take(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        left, right = batches
        if len(left) or len(right):
            numbers = np.arange(self._numbers, self._numbers + len(left))
            self._numbers += len(left)
            self._coverage.add(left, numbers)
            lefts = {name: left.column(one) for name, one, _ in self._keys}
            rights = {name: right.column(other) for name, _, other in self._keys}
            for pair in self._meeting.meet(
                Batch({**lefts, ROW: numbers}, left.start, left.end),
                Batch(rights, right.start, right.end),
                watermarks,
            ):
                self._coverage.match(*held_over(pair))
        self._meeting.purge(watermarks)
        told = self._coverage.tell((watermarks[0], watermarks[1]), cut)
        bound = self._bound(told, watermarks)
        return self._results.through(self._emit(told), bound), bound

    @abstractmethod
    def _emit(self, told: Emitted) -> Sequence[Batch]:
        """What the operator gives of it."""

    def _bound(self, told: Emitted, watermarks: Sequence[int]) -> int:
        """No result that has still to come starts before this."""
        return told.bound

    @override
    def facts(self) -> str:
        if self._sharing:
            return f"sharing one of {', '.join(one for _, one, _ in self._keys) or 'nothing'}"
        pairs = [one if one == other else f"{one} = {other}" for _, one, other in self._keys]
        return f"on {', '.join(pairs) or 'nothing: whatever there is'}"

    @override
    def size(self) -> int:
        return len(self._meeting) + len(self._coverage) + len(self._results)

    @override
    def content(self) -> Iterator[Part]:
        lefts, rights = self._meeting.content()
        for (part, rows), place in ((lefts, 1), (rights, 2)):
            columns = {key[place]: rows.columns[key[0]] for key in self._keys}
            yield part, Batch(columns, rows.start, rows.end, rows.count)
        yield from self._coverage.content()
        yield HEAP, self._results.rows()

    @override
    def held(self) -> Iterator[IntArray]:
        for part in (self._meeting, self._coverage, self._results):
            yield from part.held()


def held_over(pair: Pair) -> tuple[IntArray, IntArray, IntArray]:
    """The numbers of the left rows of pairs, and the intersections."""
    left, i, right, j = pair
    start = np.maximum(left.start[i], right.start[j])
    return left.columns[ROW][i], start, np.minimum(left.end[i], right.end[j])
