"""Memoised results of expressions, by the ids of the variables that they read.

Results for one column of dictionary entries are in a table by id, others in a sorted array of row
keys. Both are bounded: the table has a greatest id, and the array is cleared when it is full. Both
are also cleared when ids are reused for other terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.kernels.keys import row_keys

_TABLE = 1 << 20
_KEYS = 1 << 17
"""The bound of ids in the table, and the number of keys at which the array is cleared."""

ResultType = type[np.int8] | type[np.int64]
ResultArray = npt.NDArray[Any]
Compute = Callable[[list[IntArray]], Sequence[int] | IntArray]
"""A function that returns the results for distinct bindings."""


class BindingMemo:
    """Results by binding, each computed once.

    >>> results = BindingMemo(np.int64)
    >>> results.of([np.array([3, 4, 3])], lambda columns: 10 * columns[0]).tolist()
    [30, 40, 30]
    >>> results.of([np.array([3])], lambda columns: []).tolist()
    [30]
    """

    def __init__(self, kind: ResultType) -> None:
        self._kind = kind
        self.clear()

    def clear(self) -> None:
        """Drop all results."""
        self._table: ResultArray = np.zeros(0, self._kind)
        self._known = np.zeros(0, np.bool_)
        self._keys: IntArray = np.zeros(0, np.int64)
        self._values: ResultArray = np.zeros(0, self._kind)
        self._columns: list[IntArray] = []

    def of(self, columns: list[IntArray], compute: Compute) -> ResultArray:
        """Return the result for each row; `compute` is called for bindings without a result."""
        if len(columns) == 1 and columns[0].min(initial=0) >= 0:
            return self._by_table(columns[0], compute)
        return self._by_key(columns, compute)

    def _by_table(self, ids: IntArray, compute: Compute) -> ResultArray:
        most = int(ids.max(initial=0))
        if most >= _TABLE:
            return self._by_key([ids], compute)
        if most >= len(self._table):
            more = max(1024, most + 1 + most // 2) - len(self._table)
            self._table = np.concatenate([self._table, np.zeros(more, self._kind)])
            self._known = np.concatenate([self._known, np.zeros(more, np.bool_)])
        known = self._known[ids]
        if not known.all():
            new = np.unique(ids[~known])
            self._table[new] = compute([new])
            self._known[new] = True
        return self._table[ids]

    def _by_key(self, columns: list[IntArray], compute: Compute) -> ResultArray:
        rows = len(columns[0])
        if len(self._keys) > _KEYS:
            self.clear()
        keys = row_keys(columns, rows)
        places, known = self._places(keys, columns)
        if not known.all():
            new = np.flatnonzero(~known)
            self._add([column[new] for column in columns], keys[new], compute)
            places, known = self._places(keys, columns)
        results = self._values[places]
        if not known.all():  # different rows with the same key
            rest = np.flatnonzero(~known)
            results[rest] = [compute([c[i : i + 1] for c in columns])[0] for i in rest.tolist()]
        return results

    def _places(self, keys: IntArray, columns: Sequence[IntArray]) -> tuple[IntArray, BoolArray]:
        if not len(self._keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known = self._keys[places] == keys
        if len(columns) > 1:
            for mine, column in zip(self._columns, columns, strict=True):
                known &= mine[places] == column
        return places, known

    def _add(self, columns: list[IntArray], keys: IntArray, compute: Compute) -> None:
        keys, first = np.unique(keys, return_index=True)
        columns = [column[first] for column in columns]
        values = np.array(compute(columns), self._kind)
        if len(self._keys):
            keys = np.concatenate([self._keys, keys])
            values = np.concatenate([self._values, values])
            columns = [np.concatenate(both) for both in zip(self._columns, columns, strict=True)]
        order = np.argsort(keys, kind="stable")
        self._keys, self._values = keys[order], values[order]
        self._columns = [column[order] for column in columns]
