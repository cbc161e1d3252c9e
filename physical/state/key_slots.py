"""Numbers for distinct rows: where an operator keeps what it knows of each.

A sweep per key needs a place for each distinct key row that lives: a *slot*. Slots are small
numbers that stay while the row is there, so what is known of the rows is plain arrays over slots.
The way from a row to its slot is a hash table with linear probing, of which all rows of a batch
take a step at a time. Rows are compared as they are, so it does not matter whether hashes collide.

Rows that are gone keep their slot until there are enough of them: taking out is a pass over all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.kernels import keys

_LEAST = 64
"""Capacities start here, and fewer idle slots than this are left alone."""

_EMPTY = -1
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio


def grown(array: IntArray, capacity: int, fill: int) -> IntArray:
    """The array with room for more, in its last dimension.

    >>> grown(np.array([5]), 3, -1).tolist()
    [5, -1, -1]
    """
    more = np.full((*array.shape[:-1], capacity - array.shape[-1]), fill, array.dtype)
    return np.concatenate([array, more], axis=-1)


def reaching(state: IntArray, capacity: int) -> IntArray:
    """A state by slot that has room for all slots below the capacity.

    >>> reaching(np.zeros((1, 2), np.int64), 4).tolist()
    [[0, 0, 0, 0]]
    """
    return state if state.shape[-1] >= capacity else grown(state, capacity, 0)


def order_by(numbers: IntArray, most: int) -> IntArray:
    """A stable order by small numbers, `0 <= number < most`.

    A number and its place go into one integer, as sorting integers is faster than sorting places.

    >>> order_by(np.array([3, 0, 3, 1]), 4).tolist()
    [1, 3, 0, 2]
    """
    size = len(numbers)
    bits = size.bit_length()
    packed = (numbers << bits) | np.arange(size)
    assert most < 1 << (62 - bits)
    packed.sort()
    return packed & ((1 << bits) - 1)


class Slots:
    """The slots of distinct rows of `width` columns.

    >>> slots = Slots(1)
    >>> found = slots.of([np.array([70, 80, 70])], 3)
    >>> bool(found[0] == found[2]), slots.columns[0][found].tolist(), len(slots)
    (True, [70, 80, 70], 2)
    """

    def __init__(self, width: int) -> None:
        self.columns = [np.zeros(_LEAST, np.int64) for _ in range(width)]
        """The rows by slot."""
        self.capacity = _LEAST
        """All slots are below this."""
        self.top = 0
        """All slots that were ever given are below this."""
        self._used = np.zeros(_LEAST, np.bool_)
        self._free = np.arange(_LEAST)[::-1]
        self._left = _LEAST  # how many of `_free` are free
        self._make_table()

    def __len__(self) -> int:
        return self.capacity - self._left

    def of(self, columns: Sequence[IntArray], rows: int) -> IntArray:
        """The slots of these rows; rows that have none get one."""
        if rows > self._left:
            self._grow(len(self) + rows)
        at = self._places(columns, rows)
        slots = self._table[at]
        if int(slots.min(initial=0)) == _EMPTY:
            slots = self._enter(columns, at, slots)
        wrong = self._differ(columns, slots)
        if wrong is None:
            return slots
        left = wrong.nonzero()[0]
        while len(left):
            at = (at[wrong] + 1) & self._mask
            columns = [column[wrong] for column in columns]
            found = self._table[at]
            if int(found.min()) == _EMPTY:
                found = self._enter(columns, at, found)
            slots[left] = found
            wrong = self._differ(columns, found)
            if wrong is None:
                break
            left = left[wrong]
        return slots

    def _places(self, columns: Sequence[IntArray], rows: int) -> IntArray:
        """Where in the table to look for rows first."""
        hashed = keys.row_keys(columns, rows).view(np.uint64) * _MULTIPLIER
        return (hashed >> self._shift).view(np.int64)

    def _differ(self, columns: Sequence[IntArray], slots: IntArray) -> BoolArray | None:
        """Which rows are not those in these slots; None if all are."""
        wrong = None
        for mine, theirs in zip(self.columns, columns, strict=True):
            here = mine[slots] != theirs
            wrong = here if wrong is None else wrong | here
        return wrong if wrong is not None and wrong.any() else None

    def _enter(self, columns: Sequence[IntArray], at: IntArray, slots: IntArray) -> IntArray:
        """Gives slots to rows that found an empty place, one where several found the same."""
        empty = (slots == _EMPTY).nonzero()[0]
        places = at[empty]
        self._table[places] = empty
        first = empty[self._table[places] == empty]
        self._left -= len(first)
        new = self._free[self._left : self._left + len(first)]
        self.top = max(self.top, int(new.max()) + 1)
        self._table[at[first]] = new
        self._used[new] = True
        for mine, theirs in zip(self.columns, columns, strict=True):
            mine[new] = theirs[first]
        return self._table[at]

    def _grow(self, needed: int) -> None:
        before, self.capacity = self.capacity, max(2 * self.capacity, 2 * needed)
        self.columns = [grown(column, self.capacity, 0) for column in self.columns]
        self._used = np.concatenate([self._used, np.zeros(self.capacity - before, np.bool_)])
        more = np.arange(before, self.capacity)[::-1]
        self._free = np.concatenate([more, self._free[: self._left], np.zeros(before, np.int64)])
        self._left += len(more)
        self._make_table()

    def _make_table(self) -> None:
        """The table of the slots that are in use. It is never more than half full."""
        bits = (2 * self.capacity - 1).bit_length()
        self._shift, self._mask = np.uint64(64 - bits), (1 << bits) - 1
        self._table = np.full(1 << bits, _EMPTY)
        slots = self._used.nonzero()[0]
        at = self._places([column[slots] for column in self.columns], len(slots))
        while len(slots):
            free = self._table[at] == _EMPTY
            self._table[at[free]] = slots[free]
            left = self._table[at] != slots
            slots, at = slots[left], (at[left] + 1) & self._mask

    def keep(self, alive: BoolArray) -> None:
        """Frees the slots that are not alive, when there are enough of them; `alive` is by slot."""
        idle = (self._used & ~alive).nonzero()[0]
        if 4 * len(idle) >= len(self) + _LEAST or len(idle) == len(self) > 0:
            self._used[idle] = False
            self._free[self._left : self._left + len(idle)] = idle
            self._left += len(idle)
            self._make_table()

    def held(self, alive: BoolArray) -> Iterator[IntArray]:
        """The term ids of the rows that are alive."""
        self.keep(alive)
        for column in self.columns:
            yield column[self._used]
