"""The base of MINUS, EXISTS and NOT EXISTS, which emit covered parts or gaps of left rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from streamsparql.limits import check_rows
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import AREAS, MIN_HEAP, shared_names
from streamsparql.physical.operators.sliced import Sliced
from streamsparql.physical.state.coverage import COVERAGE, FIRST_ROW, LEFT_ROW, Coverage, Emitted
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.paired_areas import LEFT_AREA, RIGHT_AREA, PairedAreas, RowPairs
from streamsparql.physical.state.parts import NamedRows, Stateful


class Covering(Sliced):
    """An operator that emits the parts of its left rows that right rows match, or do not match.

    Rows match when they are compatible or, with `on`, when they agree in these pairs of columns,
    where unbound equals unbound.
    """

    state = "both inputs, until no match can follow; results that are not final"
    scalars = ("_next_row",)

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
        self._areas = PairedAreas((*keys, LEFT_ROW), keys, keys, on is not None, sharing)
        self._coverage = Coverage(left.names)
        self._results = Heap(self.names)
        self._next_row = FIRST_ROW

    @override
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        left, right = batches
        if len(left) or len(right):
            numbers = np.arange(self._next_row, self._next_row + len(left))
            self._next_row += len(left)
            self._coverage.add(left, numbers)
            lefts = {name: left.column(one) for name, one, _ in self._keys}
            rights = {name: right.column(other) for name, _, other in self._keys}
            for pair in self._areas.meet(
                Batch({**lefts, LEFT_ROW: numbers}, left.start, left.end),
                Batch(rights, right.start, right.end),
                watermarks,
            ):
                check_rows(len(pair[1]), 0)
                self._coverage.match(*intersections(pair))
        self._areas.purge(watermarks)
        parts = self._coverage.emit((watermarks[0], watermarks[1]), cut)
        bound = self._bound(parts, watermarks)
        return self._results.through(self._select(parts), bound), bound

    @abstractmethod
    def _select(self, parts: Emitted) -> Sequence[Batch]:
        """Return the results among the parts of left rows."""

    def _bound(self, parts: Emitted, watermarks: Sequence[int]) -> int:
        """Return a bound: no later result starts before it."""
        return parts.bound

    @override
    def facts(self) -> str:
        if self._sharing:
            return f"sharing one of {', '.join(one for _, one, _ in self._keys) or 'nothing'}"
        pairs = [one if one == other else f"{one} = {other}" for _, one, other in self._keys]
        return f"on {', '.join(pairs) or 'no column: any row matches'}"

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {AREAS: self._areas, COVERAGE: self._coverage, MIN_HEAP: self._results}

    @override
    def content(self) -> Iterator[NamedRows]:
        places = {LEFT_AREA: 1, RIGHT_AREA: 2}
        for name, rows in super().content():
            if name in places:
                columns = {key[places[name]]: rows.columns[key[0]] for key in self._keys}
                rows = Batch(columns, rows.start, rows.end, rows.count)
            yield name, rows


def intersections(pair: RowPairs) -> tuple[IntArray, IntArray, IntArray]:
    """Return the numbers of the left rows of pairs, and the intersections."""
    left, i, right, j = pair
    start = np.maximum(left.start[i], right.start[j])
    return left.columns[LEFT_ROW][i], start, np.minimum(left.end[i], right.end[j])
