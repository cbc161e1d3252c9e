"""FILTER: lets the rows pass for which a condition holds (algebra.filter.Filter)."""

from __future__ import annotations

from typing import ClassVar

from streamsparql.algebra import filter as logical
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.expressions.compiler import Expressed
from streamsparql.physical.operator import Operator, Stateless


class Filter(Stateless):
    """Keeps the rows for which the condition is true; an error is not true. Definition 8."""

    implements: ClassVar[tuple[type[Plan], ...]] = (logical.Filter,)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        condition: Expression,
        compiled: Expressed,
    ) -> None:
        super().__init__(input.names, input)
        self.condition = condition
        self._compiled = compiled

    @override
    def apply(self, batch: Batch) -> Batch:
        return batch.where(self._compiled.holds(batch))

    @override
    def forget(self) -> None:
        self._compiled.forget()

    @override
    def facts(self) -> str:
        return repr(self.condition)
