"""Slots: small numbers for distinct key rows, by which operators index arrays.

A sweep per key needs an array index for each distinct key row that is alive: its *slot*. A slot
does not change while the row is alive, so the state of all rows is plain arrays indexed by slot. A
hash table with linear probing maps rows to slots; all rows of a batch advance one probe at a time.
The rows themselves are compared, so collisions of hashes do not matter.

Expired rows keep their slots until many have expired, because freeing is a pass over all slots.
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
"""The initial capacity. Few idle slots are not freed: `keep` compares their number with this."""

SLOT = "#slot"
"""The column with the slot of the group that a row belongs to."""

_EMPTY = -1
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio


def grown(array: IntArray, capacity: int, fill: int) -> IntArray:
    """Return the array with its last dimension extended to a capacity.

    >>> grown(np.array([5]), 3, -1).tolist()
    [5, -1, -1]
    """
    more = np.full((*array.shape[:-1], capacity - array.shape[-1]), fill, array.dtype)
    return np.concatenate([array, more], axis=-1)


def reaching(state: IntArray, capacity: int) -> IntArray:
    """Return an array by slot that has room for all slots below the capacity.

    >>> reaching(np.zeros((1, 2), np.int64), 4).tolist()
    [[0, 0, 0, 0]]
    """
    return state if state.shape[-1] >= capacity else grown(state, capacity, 0)


class KeySlots(Stateful):
    """The slots of distinct rows of `width` columns.

    >>> slots = KeySlots(1)
    >>> of_rows = slots.of([np.array([70, 80, 70])], 3)
    >>> bool(of_rows[0] == of_rows[2]), slots.columns[0][of_rows].tolist(), len(slots)
    (True, [70, 80, 70], 2)
    """

    scalars = ("capacity", "top")
    encoded = ("_used", "columns")
    derived = ("_free", "_left", "_mask", "_shift", "_table")

    def __init__(self, width: int) -> None:
        self.columns = [np.zeros(_LEAST, np.int64) for _ in range(width)]
        """The key rows by slot."""
        self.capacity = _LEAST
        """The number of slots, free or in use."""
        self.top = 0
        """All slots that were ever assigned are below this."""
        self._used = np.zeros(_LEAST, np.bool_)
        self._free = np.arange(_LEAST)[::-1]
        self._left = _LEAST  # the number of free slots: the first ones in `_free`
        self._make_table()

    def __len__(self) -> int:
        return self.capacity - self._left

    def of(self, columns: Sequence[IntArray], rows: int) -> IntArray:
        """Return the slots of rows; rows without one are assigned one."""
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
            probed = self._table[at]
            if int(probed.min()) == _EMPTY:
                probed = self._enter(columns, at, probed)
            slots[left] = probed
            wrong = self._differ(columns, probed)
            if wrong is None:
                break
            left = left[wrong]
        return slots

    def find(self, columns: Sequence[IntArray], rows: int) -> IntArray:
        """Return the slots of rows; -1 for rows without one.

        >>> slots = KeySlots(1)
        >>> of_rows = slots.of([np.array([70, 80])], 2)
        >>> bool((slots.find([np.array([80, 90])], 2) == [of_rows[1], -1]).all())
        True
        """
        at = self._places(columns, rows)
        slots = self._table[at]
        left = np.arange(rows)
        while len(left):
            probed = slots[left]
            wrong = self._differ(columns, probed)
            if wrong is not None:
                wrong &= probed != _EMPTY
            if wrong is None or not wrong.any():
                break
            left, at = left[wrong], (at[wrong] + 1) & self._mask
            columns = [column[wrong] for column in columns]
            slots[left] = self._table[at]
        return slots

    def _places(self, columns: Sequence[IntArray], rows: int) -> IntArray:
        """Return the first place of the table to probe for each row."""
        hashed = keys.row_keys(columns, rows).view(np.uint64) * _MULTIPLIER
        return (hashed >> self._shift).view(np.int64)

    def _differ(self, columns: Sequence[IntArray], slots: IntArray) -> BoolArray | None:
        """Return a mask of the rows that differ from those in the slots; None if all are equal."""
        wrong = None
        for mine, theirs in zip(self.columns, columns, strict=True):
            differ = mine[slots] != theirs
            wrong = differ if wrong is None else wrong | differ
        return wrong if wrong is not None and wrong.any() else None

    def _enter(self, columns: Sequence[IntArray], at: IntArray, slots: IntArray) -> IntArray:
        """Assign slots to rows that probed an empty place: one slot per place."""
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
        """Build the hash table of the slots in use; it is never more than half full."""
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
        """Free the slots that are not alive, once many are idle; `alive` is a mask by slot."""
        idle = (self._used & ~alive).nonzero()[0]
        if 4 * len(idle) >= len(self) + _LEAST or len(idle) == len(self) > 0:
            self._used[idle] = False
            self._free[self._left : self._left + len(idle)] = idle
            self._left += len(idle)
            self._make_table()

    def retained(self, alive: BoolArray) -> Iterator[IntArray]:
        """Yield the key columns of the slots in use, after `keep`."""
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
    """A number per slot, to which events add; without such events it costs nothing.

    >>> counter = SlotCounter()
    >>> counter.after(Sweep(np.array([3]), np.array([0]), 4), np.array([7])).tolist(), counter.used
    ([7], True)
    """

    scalars = ("used",)
    encoded = ("_state",)

    def __init__(self) -> None:
        self._state = np.zeros((1, 0), np.int64)
        self.used = False
        """Whether an event has added to a number."""

    def after(self, sweep: Sweep, deltas: IntArray) -> IntArray:
        """Apply the events of a sweep; return the numbers after each point."""
        if not self.used and not deltas.any():
            return np.zeros(len(sweep), np.int64)
        self.used = True
        self._state = reaching(self._state, sweep.capacity)
        numbers: IntArray = sweep.after(self._state, deltas[np.newaxis])[0]
        return numbers

    def of(self, slots: IntArray) -> list[int]:
        """Return the numbers of slots."""
        self._state = reaching(self._state, int(slots.max()) + 1)
        numbers: list[int] = self._state[0, slots].tolist()
        return numbers

    def put(self, slots: IntArray, numbers: list[int]) -> None:
        """Replace the numbers of slots for which `of` was called."""
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
