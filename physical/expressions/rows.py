"""The rows on which an expression is evaluated: a batch, or a selection of its rows.

Columns are selected lazily, and the numbers of a column are looked up once, however often the
expression refers to the column.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.arithmetic import NumericOperand


class BatchRows:
    """Rows of a batch, with the numeric values of subexpressions that are already computed."""

    __slots__ = ("_columns", "_index", "_operands", "_source", "length", "terms")

    def __init__(self, terms: TermDictionary, batch: Batch) -> None:
        self.terms, self.length = terms, len(batch)
        self._columns = dict(batch.columns)
        self._operands: dict[Hashable, NumericOperand] = {}
        self._source: BatchRows | None = None
        self._index: IntArray | None = None

    def __len__(self) -> int:
        return self.length

    def take(self, index: IntArray) -> BatchRows:
        """Return the rows at these places."""
        if len(index) == self.length:
            return self
        selected = BatchRows.__new__(BatchRows)
        selected.terms, selected.length = self.terms, len(index)
        selected._columns, selected._operands = {}, {}
        selected._source, selected._index = self, index
        return selected

    def ids(self, name: str) -> IntArray:
        """Return the ids of a column."""
        ids = self._columns.get(name)
        if ids is None:
            if self._source is None:
                ids = np.zeros(self.length, np.int64)
            else:
                ids = self._source.ids(name)[self._index]
            self._columns[name] = ids
        return ids

    def operand(self, of: Hashable, make: Callable[[BatchRows], NumericOperand]) -> NumericOperand:
        """Return the values of the expression `of`; `make` computes them at the first call."""
        operand = self._operands.get(of)
        if operand is None:
            source = self._source
            if source is not None and self._index is not None and of in source._operands:
                operand = source._operands[of].take(self._index)
            else:
                operand = make(self)
            self._operands[of] = operand
        return operand
