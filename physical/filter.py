"""FILTER: lets the rows pass for which a condition holds (algebra.filter.Filter)."""

from __future__ import annotations

from typing import ClassVar

from streamsparql.algebra import filter as logical
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression
from streamsparql.physical.batch import Batch
from streamsparql.physical.expressions import Expressed
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

    def apply(self, batch: Batch) -> Batch:
        """The rows that pass."""
        return batch.where(self._compiled.holds(batch))

    def forget(self) -> None:
        """Drops what is known of ids, before the dictionary gives them to other terms."""
        self._compiled.forget()

    def facts(self) -> str:
        """The condition."""
        return repr(self.condition)
