"""The join of rows with queries by a condition, such as `?v > $low && ?v < $high`.

A plain filter would need each row once per query. Here a segment tree finds the queries whose
condition a value satisfies (state/band_area.py), so a row costs as much as it has hits. Conditions
without borders for a variable are evaluated on all pairs, a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streamsparql.algebra import filter as algebra
from streamsparql.algebra.solutions import Expression
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.expressions.compiler import BatchExpression
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.binary import StampValues
from streamsparql.physical.operators.join import Join
from streamsparql.physical.state.band_area import BandAreas, Borders
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import Memo


class BandCondition(NamedTuple):
    """A condition on pairs of a row and a query."""

    expression: Expression
    compiled: BatchExpression
    borders: Borders | None = None
    """The borders that it sets for a variable, if any."""
    complete: bool = False
    """Whether the condition consists of these borders only."""


class BandJoin(Join):
    """The pairs of a row and a query for which a condition is true, over the intersection.

    The output has the columns of the rows and those that queries `carry`.
    """

    implements = (algebra.Filter,)

    def __init__(
        self,
        rows: Operator,
        queries: Operator,
        carried: Sequence[str],
        condition: BandCondition,
        terms: StampValues | None = None,
    ) -> None:
        super().__init__(rows, queries, terms)
        self.condition, self._compiled = condition.expression, condition.compiled
        self._complete = condition.complete
        if condition.borders is not None:
            self._areas = BandAreas(rows.names, queries.names, condition.borders)
        self.names = (*rows.names, *carried)
        self._results = Heap(self.names)

    @override
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        rows, queries = batches
        results = []
        if len(rows) or len(queries):
            for pair in self._areas.meet(rows, queries, watermarks):
                merged = self._merge.rows(*pair)
                if not (self._are_exact() and self._complete):
                    merged = merged.where(self._compiled.holds(merged))
                results.append(merged)
        self._areas.purge(watermarks)
        bound = min(watermarks)
        return self._results.through(results, bound), bound

    def _are_exact(self) -> bool:
        """Return whether the pairs that the areas have yielded last satisfy all borders."""
        return isinstance(self._areas, BandAreas) and self._areas.exact

    @override
    def memos(self) -> Iterable[Memo | None]:
        return (self._compiled,)

    @override
    def facts(self) -> str:
        return repr(self.condition)
