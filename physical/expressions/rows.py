"""The rows that an expression is evaluated on: a batch, or some rows of it.

Columns are read when they are asked for, and the numbers in a column are looked up once, however
often the expression names it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.arithmetic import NumericOperand


class BatchRows:
    """Rows of a batch with their numbers."""

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
        """The rows at these places."""
        if len(index) == self.length:
            return self
        some = BatchRows.__new__(BatchRows)
        some.terms, some.length = self.terms, len(index)
        some._columns, some._operands = {}, {}
        some._source, some._index = self, index
        return some

    def ids(self, name: str) -> IntArray:
        """The terms of a column."""
        found = self._columns.get(name)
        if found is None:
            if self._source is None:
                found = np.zeros(self.length, np.int64)
            else:
                found = self._source.ids(name)[self._index]
            self._columns[name] = found
        return found

    def operand(self, of: Hashable, make: Callable[[BatchRows], NumericOperand]) -> NumericOperand:
        """What `make` gives for these rows; once for each thing that it is made `of`."""
        found = self._operands.get(of)
        if found is None:
            source = self._source
            if source is not None and self._index is not None and of in source._operands:
                found = source._operands[of].take(self._index)
            else:
                found = make(self)
            self._operands[of] = found
        return found
