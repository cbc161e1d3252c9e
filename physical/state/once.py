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
from streamsparql.physical.state.key_slots import KeySlots, reaching
from streamsparql.physical.state.parts import RowBuffer

_ODD = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio
_ALL = (1 << 64) - 1


class Seen:
    """The rows of many steps, at any instants, in a hash table.

    >>> seen = Seen(["x"])
    >>> rows = Batch({"x": np.array([7, 7, 8])}, np.array([3, 3, 3]), np.array([4, 4, 4]))
    >>> seen.consume(rows).columns["x"].tolist(), len(seen.consume(rows)), len(seen)
    ([7, 8], 0, 2)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._slots = KeySlots(len(self._names) + 1)
        self._known = np.zeros(0, np.int64)  # by slot, whether it has a row
        self._place = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._slots)

    def consume(self, rows: Batch) -> Batch:
        """Return the rows that are new."""
        columns = [*(rows.columns[name] for name in self._names), rows.start]
        slots = self._slots.of(columns, len(rows))
        self._known = reaching(self._known, self._slots.capacity)
        self._place = reaching(self._place, self._slots.capacity)
        new = self._known[slots] == 0
        self._known[slots] = 1
        places = np.arange(len(rows))
        self._place[slots[::-1]] = places[::-1]  # the first of equal rows
        return rows.where(new & (self._place[slots] == places))

    def starts(self) -> IntArray:
        """Return the instants of the rows."""
        return self._slots.columns[-1][self._slots.used()]

    def rows_from(self, t: int) -> Batch:
        """Return the rows from an instant on."""
        slots = self._slots.used()
        slots = slots[self._slots.columns[-1][slots] >= t]
        *columns, start = (column[slots] for column in self._slots.columns)
        return Batch(dict(zip(self._names, columns, strict=True)), start, start + 1).ordered()


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
