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
import pyarrow as pa

from streamsparql.overriding import override
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.kernels import keys
from streamsparql.physical.kernels.change_points import Sweep
from streamsparql.physical.state.parts import Stateful, arrays_of, table_of_arrays

_LEAST = 64
"""Capacities start here, and fewer idle slots than this are left alone."""

SLOT = "#slot"
"""The column with the slot of the group that a row belongs to."""

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


class KeySlots(Stateful):
    """The slots of distinct rows of `width` columns.

    >>> slots = KeySlots(1)
    >>> found = slots.of([np.array([70, 80, 70])], 3)
    >>> bool(found[0] == found[2]), slots.columns[0][found].tolist(), len(slots)
    (True, [70, 80, 70], 2)
    """

    scalars = ("capacity", "top")
    encoded = ("_used", "columns")
    derived = ("_free", "_left", "_mask", "_shift", "_table")

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

    def retained(self, alive: BoolArray) -> Iterator[IntArray]:
        """Yield the columns of the rows that are alive, by slot; slots that are not may be freed."""
        self.keep(alive)
        for column in self.columns:
            yield column[self._used]

    def used(self) -> IntArray:
        """Return the slots that are in use, in order."""
        return self._used.nonzero()[0]

    @override
    def own_table(self) -> pa.Table:
        slots = self.used()
        named = {f"key {k}": column[slots] for k, column in enumerate(self.columns)}
        return table_of_arrays({SLOT: slots, **named})

    @override
    def restore_own(self, table: pa.Table) -> None:
        slots, *columns = arrays_of(table).values()
        if len(columns) != len(self.columns):
            self._refuse(f"keys of {len(columns)} columns; expected {len(self.columns)}")
        self.columns = [grown(column[:0], self.capacity, 0) for column in self.columns]
        for mine, column in zip(self.columns, columns, strict=True):
            mine[slots] = column
        self._used = np.zeros(self.capacity, np.bool_)
        self._used[slots] = True
        free = (~self._used).nonzero()[0][::-1]
        self._left = len(free)
        self._free = np.concatenate([free, np.zeros(len(slots), np.int64)])
        self._make_table()


class SlotCounter(Stateful):
    """A number per slot that events add to; it costs nothing until one of them does.

    >>> counter = SlotCounter()
    >>> counter.after(Sweep(np.array([3]), np.array([0]), 4), np.array([7])).tolist(), counter.used
    ([7], True)
    """

    scalars = ("used",)
    encoded = ("_state",)

    def __init__(self) -> None:
        self._state = np.zeros((1, 0), np.int64)
        self.used = False
        """Whether any event has added to it."""

    def after(self, sweep: Sweep, deltas: IntArray) -> IntArray:
        """The numbers after each point."""
        if not self.used and not deltas.any():
            return np.zeros(len(sweep), np.int64)
        self.used = True
        self._state = reaching(self._state, sweep.capacity)
        found: IntArray = sweep.after(self._state, deltas[np.newaxis])[0]
        return found

    def of(self, slots: IntArray) -> list[int]:
        """The numbers of these slots."""
        self._state = reaching(self._state, int(slots.max()) + 1)
        found: list[int] = self._state[0, slots].tolist()
        return found

    def put(self, slots: IntArray, numbers: list[int]) -> None:
        """Gives these slots, which `of` has seen, other numbers."""
        self._state[0, slots] = numbers
        self.used = self.used or any(numbers)

    @override
    def own_table(self) -> pa.Table:
        (slots,) = self._state[0].nonzero()
        return table_of_arrays({SLOT: slots, "number": self._state[0, slots]})

    @override
    def restore_own(self, table: pa.Table) -> None:
        slots, numbers = arrays_of(table).values()
        self._state = reaching(self._state, int(slots.max(initial=-1)) + 1)
        self._state[0, slots] = numbers
