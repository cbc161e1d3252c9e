"""BIND, and each `(expression AS ?v)`: adds a column of values (algebra.shape.Extend)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from streamsparql.algebra import shape as logical
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch
from streamsparql.physical.expressions.compiler import Expressed
from streamsparql.physical.operator import Operator, Stateless


class Extend(Stateless):
    """Binds a variable to an expression's value. Where that is an error, a row stays as it is."""

    implements: ClassVar[tuple[type[Plan], ...]] = (logical.Extend,)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        variable: Variable,
        expression: Expression,
        compiled: Expressed,
    ) -> None:
        super().__init__(tuple(dict.fromkeys((*input.names, variable.name))), input)
        self.expression = expression
        self._name = variable.name
        self._compiled = compiled

    @override
    def apply(self, batch: Batch) -> Batch:
        values = self._compiled.values(batch)
        before = batch.columns.get(self._name)
        if before is not None:
            values = np.where(values == UNBOUND, before, values)
        return batch.with_columns({self._name: values})

    @override
    def forget(self) -> None:
        self._compiled.forget()

    @override
    def facts(self) -> str:
        return f"?{self._name} := {self.expression!r}"
