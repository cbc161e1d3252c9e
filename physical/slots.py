"""Numbers for distinct rows: where an operator keeps what it knows of each.

A sweep per key needs a place for each distinct key row that lives: a *slot*. Slots are small
numbers that stay while the row is there, so what is known of the rows is plain arrays over slots.
The way from a row to its slot is a sorted array of keys; a row's key may be a hash (keys.py), so
what is found is verified, and where two rows collide all are keyed anew with another salt.

Rows that are gone keep their slot until there are enough of them: taking out is a pass over all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamsparql.physical import keys
from streamsparql.physical.batch import BoolArray, IntArray

_LEAST = 64
"""Capacities start here, and fewer idle slots than this are left alone."""


def grown(array: IntArray, capacity: int, fill: int) -> IntArray:
    """The array with room for more, in its last dimension.

    >>> grown(np.array([5]), 3, -1).tolist()
    [5, -1, -1]
    """
    more = np.full((*array.shape[:-1], capacity - array.shape[-1]), fill, array.dtype)
    return np.concatenate([array, more], axis=-1)


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
    >>> slots.of([np.array([70, 80, 70])], 3).tolist(), slots.columns[0][:2].tolist()
    ([0, 1, 0], [70, 80])
    """

    def __init__(self, width: int) -> None:
        self.columns = [np.zeros(_LEAST, np.int64) for _ in range(width)]
        """The rows by slot."""
        self.capacity = _LEAST
        """All slots are below this."""
        self._free = np.arange(_LEAST)[::-1]
        self._left = _LEAST  # how many of `_free` are free
        self._keys = np.empty(0, np.int64)
        self._slots = np.empty(0, np.int64)
        self._salt = 0

    def __len__(self) -> int:
        return len(self._slots)

    def of(self, columns: Sequence[IntArray], rows: int) -> IntArray:
        """The slots of these rows; rows that have none get one."""
        while True:
            found = keys.row_keys(columns, rows, self._salt)
            slots, new = self._look_up(found)
            if new is None:
                if len(columns) < 2 or self._same(columns, slots):
                    return slots
                self._rekey()
            elif (distinct := self._distinct(columns, found, new)) is not None:
                self._enter(columns, *distinct)
            else:
                self._rekey()

    def _look_up(self, found: IntArray) -> tuple[IntArray, BoolArray | None]:
        """The slots of keys, and which keys have none."""
        if not len(self._keys):
            return found, np.ones(len(found), np.bool_)
        at = self._keys.searchsorted(found)
        at[at == len(self._keys)] = 0
        new = self._keys[at] != found
        return self._slots[at], new if new.any() else None

    def _same(self, columns: Sequence[IntArray], slots: IntArray) -> bool:
        pairs = zip(self.columns, columns, strict=True)
        return all((mine[slots] == theirs).all() for mine, theirs in pairs)

    def _distinct(
        self, columns: Sequence[IntArray], found: IntArray, new: BoolArray
    ) -> tuple[IntArray, IntArray] | None:
        """The new keys, ascending, each with the place of a row; None where rows collide."""
        places = np.flatnonzero(new)
        if len(places) == 1:
            return found[places], places
        some, first, inverse = np.unique(found[places], return_index=True, return_inverse=True)
        if len(columns) > 1 and len(some) < len(places):
            if not keys.same_rows(columns, places, places[first][inverse]).all():
                return None
        return some, places[first]

    def _enter(self, columns: Sequence[IntArray], new: IntArray, places: IntArray) -> None:
        if len(new) > self._left:
            self._grow(len(self) + len(new))
        self._left -= len(new)
        slots = self._free[self._left : self._left + len(new)][::-1]
        for mine, theirs in zip(self.columns, columns, strict=True):
            mine[slots] = theirs[places]
        at = self._keys.searchsorted(new)
        if len(new) == 1:
            cut = int(at[0])
            self._keys = np.concatenate([self._keys[:cut], new, self._keys[cut:]])
            self._slots = np.concatenate([self._slots[:cut], slots, self._slots[cut:]])
            return
        at += np.arange(len(new))
        old = np.ones(len(self) + len(new), np.bool_)
        old[at] = False
        merged = np.empty((2, len(old)), np.int64)
        merged[0, at], merged[1, at] = new, slots
        merged[0, old], merged[1, old] = self._keys, self._slots
        self._keys, self._slots = merged

    def _grow(self, needed: int) -> None:
        before, self.capacity = self.capacity, max(2 * self.capacity, 2 * needed)
        self.columns = [grown(column, self.capacity, 0) for column in self.columns]
        more = np.arange(before, self.capacity)[::-1]
        self._free = np.concatenate([more, self._free[: self._left], np.zeros(before, np.int64)])
        self._left += len(more)

    def _rekey(self) -> None:
        """Other keys for all rows; again, until no two rows share one."""
        while True:
            self._salt += 1
            rows = [column[self._slots] for column in self.columns]
            found = keys.row_keys(rows, len(self), self._salt)
            order = np.argsort(found)
            self._keys, self._slots = found[order], self._slots[order]
            if (self._keys[1:] != self._keys[:-1]).all():
                return

    def keep(self, alive: BoolArray) -> None:
        """Frees the slots that are not alive, when there are enough of them; `alive` is by slot."""
        held = alive[self._slots]
        idle = len(held) - np.count_nonzero(held)
        if 4 * idle >= len(held) + _LEAST or idle == len(held):
            free = self._slots[~held]
            self._free[self._left : self._left + len(free)] = free
            self._left += len(free)
            self._keys, self._slots = self._keys[held], self._slots[held]

    def held(self, alive: BoolArray) -> Iterator[IntArray]:
        """The term ids of the rows that are alive."""
        self.keep(alive)
        for column in self.columns:
            yield column[self._slots]
