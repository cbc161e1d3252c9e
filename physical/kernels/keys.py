"""Keys: one number per row, by which rows are sorted, grouped and joined.

The key of a row is a function of some of its columns. For one column it is the id itself. For
several columns it is a hash, so rows with the same key can differ: `same_rows` compares them, and
another `salt` leads to other keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from streamsparql.physical.batch import BoolArray, IntArray

_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def row_keys(columns: Sequence[IntArray], rows: int, salt: int = 0) -> IntArray:
    """Return a key for each row; without columns, all keys are equal.

    >>> one, two = np.array([1, 1, 2]), np.array([5, 5, 5])
    >>> a, b, c = row_keys([one, two], 3).tolist()
    >>> a == b, a == c
    (True, False)
    """
    if not columns:
        return np.zeros(rows, np.int64)
    if len(columns) == 1 and not salt:
        return columns[0]
    key = np.full(rows, salt + 1, np.uint64)
    for column in columns:
        key = _mixed((key ^ _mixed(column.view(np.uint64))) * np.uint64(_MULTIPLIERS[0]))
    return key.view(np.int64)


def _mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the finaliser of splitmix64: each input bit flips half of the output bits."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_MULTIPLIERS[1])
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_MULTIPLIERS[2])
    return x ^ (x >> np.uint64(31))


def same_rows(columns: Sequence[IntArray], one: IntArray, other: IntArray) -> BoolArray:
    """Return whether the rows at the places `one` and `other` agree, pair by pair."""
    same = np.ones(len(one), np.bool_)
    for column in columns:
        same &= column[one] == column[other]
    return same


def grouped(columns: Sequence[IntArray], rows: int) -> tuple[IntArray, IntArray]:
    """Return a stable order in which equal rows are adjacent, and where each group begins.

    >>> order, first = grouped([np.array([7, 5, 7])], 3)
    >>> order.tolist(), first.tolist()
    ([1, 0, 2], [0, 1])
    """
    keys = row_keys(columns, rows)
    order = np.argsort(keys, kind="stable")
    same = same_rows(columns, order[1:], order[:-1])
    if len(columns) > 1 and not same[keys[order[1:]] == keys[order[:-1]]].all():
        order = np.lexsort(columns)  # the hashes of two different rows are equal
        same = same_rows(columns, order[1:], order[:-1])
    return order, np.flatnonzero(np.append(True, ~same)[:rows])


def stable_order(numbers: IntArray, most: int) -> IntArray:
    """Return a stable order by small numbers, `0 <= number < most`.

    A number and its place form one integer, as sorting integers is faster than sorting places.

    >>> stable_order(np.array([3, 0, 3, 1]), 4).tolist()
    [1, 3, 0, 2]
    """
    size = len(numbers)
    bits = size.bit_length()
    packed = (numbers << bits) | np.arange(size)
    assert most < 1 << (62 - bits)
    packed.sort()
    return packed & ((1 << bits) - 1)
