"""FILTER: lets the rows pass for which a condition holds (algebra.filter.Filter)."""

from __future__ import annotations

from typing import ClassVar

from streamsparql.algebra import filter as logical
from streamsparql.algebra.functions import Run
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression
from streamsparql.physical.batch import Batch
from streamsparql.physical.expressions import compiled
from streamsparql.physical.operator import Operator, Stateless
from streamsparql.physical.terms import TermDictionary


class Filter(Stateless):
    """Keeps the rows for which the condition is true; an error is not true. Definition 8.

    `text` is the condition as people are to read it.
    """

    implements: ClassVar[tuple[type[Plan], ...]] = (logical.Filter,)

    def __init__(
        self,
        input_: Operator,
        condition: Expression,
        terms: TermDictionary,
        run: Run,
        text: str | None = None,
    ) -> None:
        super().__init__(input_.names, input_)
        self._compiled = compiled(condition, terms, run)
        self._text = repr(condition) if text is None else text

    def apply(self, batch: Batch) -> Batch:
        """The rows that pass."""
        return batch.where(self._compiled.holds(batch))

    def forget(self) -> None:
        """Drops what is known of ids, before the dictionary gives them to other terms."""
        self._compiled.forget()

    def facts(self) -> str:
        """The condition."""
        return self._text
