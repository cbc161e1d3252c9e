"""Rows about instants, each once: equal rows of one instant count as one.

In most streams no two rows are equal, and the task is to detect that quickly: a sum of the columns,
each multiplied by a number of its own, is different for almost all different rows. Only if two sums
are equal are the rows themselves compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.kernels.keys import grouped
from streamsparql.physical.state.parts import RowBuffer

_ODD = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio
_ALL = (1 << 64) - 1


class Once(RowBuffer):
    """The rows of instants that are not over: an equal row can still follow.

    >>> once = Once(["x"])
    >>> rows = Batch({"x": np.array([7, 7])}, np.array([3, 3]), np.array([4, 4]))
    >>> len(once.consume(rows, 3)), len(once.consume(rows, 4)), len(once)
    (1, 0, 0)
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        numbers = (pow(_ODD, 2 * k + 3, 1 << 64) for k in range(len(self.names) + 1))
        self._numbers = [np.uint64(number & _ALL).view(np.int64) for number in numbers]

    def consume(self, rows: Batch, watermark: int) -> Batch:
        """Return the rows that are new; no later row starts before the watermark."""
        before = len(self.batch)
        both = Batch.concat([self.batch, rows.project(self.names)]) if before else rows
        new = rows
        if len(both) > 1 and self._may_repeat(both):
            columns = [both.columns[name] for name in self.names]
            order, first = grouped([*columns, both.start], len(both))
            distinct = np.zeros(len(both), np.bool_)
            distinct[order[first]] = True  # a stable order: the first of equal rows
            new = rows.where(distinct[before:])
            both = both.where(distinct)
        self.batch = both.where(both.start >= watermark)
        return new

    def _may_repeat(self, rows: Batch) -> bool:
        """Return whether two rows may be equal; False if they certainly differ."""
        sums: IntArray = rows.start * self._numbers[-1]
        for name, number in zip(self.names, self._numbers, strict=False):
            sums += rows.columns[name] * number
        sums.sort()
        return bool((sums[1:] == sums[:-1]).any())
