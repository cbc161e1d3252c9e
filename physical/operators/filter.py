"""FILTER, EXISTS and NOT EXISTS: rows for which a condition or a pattern holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from streamsparql.algebra import filter as algebra
from streamsparql.algebra.solutions import Expression
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.operator import Operator, Stateless
from streamsparql.physical.operators.covering import Covering
from streamsparql.physical.operators.left_join import Condition
from streamsparql.physical.state.coverage import Emitted
from streamsparql.physical.state.parts import Memo


class Filter(Stateless):
    """The rows for which the condition is true; an error is not (ESWC 2008, Definition 8)."""

    implements = (algebra.Filter,)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        condition: Expression,
        compiled: Condition,
    ) -> None:
        super().__init__(input.names, input)
        self.condition = condition
        self.compiled = compiled

    @override
    def apply(self, batch: Batch) -> Batch:
        return batch.where(self.compiled.holds(batch))

    @override
    def memos(self) -> Iterable[Memo]:
        return (self.compiled,)

    @override
    def facts(self) -> str:
        return repr(self.condition)


class _ExistenceFilter(Covering):
    """A filter of the left rows by whether they have a match."""

    def __init__(
        self, left: Operator, right: Operator, on: Sequence[tuple[str, str]] | None = None
    ) -> None:
        super().__init__(left.names, left, right, on)


class AntiJoin(_ExistenceFilter):
    """NOT EXISTS: the left rows where they have no match."""

    implements = (algebra.AntiJoin,)

    @override
    def _select(self, parts: Emitted) -> Sequence[Batch]:
        return [parts.gaps]


class SemiJoin(_ExistenceFilter):
    """EXISTS: the left rows where they have a match, emitted with their first match."""

    implements = (algebra.SemiJoin,)

    @override
    def _select(self, parts: Emitted) -> Sequence[Batch]:
        return [parts.covered]

    @override
    def _bound(self, parts: Emitted, watermarks: Sequence[int]) -> int:
        return min(watermarks)


class BooleanIds(Protocol):
    """The part of a term dictionary that `Mark` uses."""

    def of_booleans(self, values: BoolArray) -> IntArray:
        """Return the ids of booleans."""


class Mark(Covering):
    """The left rows with a boolean: whether they have a match."""

    implements = (algebra.Mark,)

    def __init__(
        self,
        left: Operator,
        right: Operator,
        on: Sequence[tuple[str, str]] | None,
        variable: str,
        terms: BooleanIds,
    ) -> None:
        super().__init__((*left.names, variable), left, right, on)
        self._variable = variable
        self._false, self._true = terms.of_booleans(np.array([False, True])).tolist()

    @override
    def _select(self, parts: Emitted) -> Sequence[Batch]:
        return [self._marked(parts.gaps, self._false), self._marked(parts.covered, self._true)]

    def _marked(self, rows: Batch, mark: int) -> Batch:
        return rows.with_columns({self._variable: np.full(len(rows), mark)})
