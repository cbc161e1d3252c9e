"""Hierarchies of classes or properties as term ids, and sets of ids that test whole columns.

A hierarchy has any shape: several parents, cycles. Its ids are those of terms in static graphs,
which are never recycled. Other ids of a column (inlined literals, terms of streams) are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from streamsparql.physical.batch import BoolArray, IntArray

_FEW = 4
"""Up to this number of ids are compared one by one."""


def look_up(table: npt.NDArray[Any], ids: IntArray) -> npt.NDArray[Any]:
    """Return the entries of a table at ids.

    The first and the last entry are the default: of negative ids, and of those beyond the table.
    """
    return table.take(ids, mode="clip")


class IdSet:
    """A set of term ids, which can test a whole column.

    >>> IdSet([7, 9, -5]).mask(np.array([9, 8, -5, 10_000])).tolist()
    [True, False, True, False]
    """

    def __init__(self, ids: Iterable[int]) -> None:
        self.ids = frozenset(ids)
        few = len(self.ids) <= _FEW
        self._single = [one for one in self.ids if few or one < 0]
        self._table: BoolArray | None = None
        if not few:
            listed = np.fromiter((one for one in self.ids if one > 0), np.int64)
            self._table = np.zeros(int(listed.max(initial=0)) + 2, np.bool_)
            self._table[listed] = True

    def mask(self, column: IntArray) -> BoolArray:
        """Return which ids of a column are in the set."""
        mask = None if self._table is None else look_up(self._table, column)
        for one in self._single:
            same = column == one
            mask = same if mask is None else mask | same
        return np.zeros(len(column), np.bool_) if mask is None else mask


def places_in_runs(first: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the numbers of runs, each as often as its run is long, and the places in the runs.

    >>> [numbers.tolist() for numbers in places_in_runs(np.array([5, 9]), np.array([2, 1]))]
    [[0, 0, 1], [5, 6, 9]]
    """
    runs = np.repeat(np.arange(len(sizes)), sizes)
    before = np.cumsum(sizes) - sizes
    return runs, np.arange(len(runs)) + (first - before)[runs]


class _Relation:
    """Pairs of numbers below `size`, by the first of each pair."""

    def __init__(self, one: IntArray, other: IntArray, size: int) -> None:
        order = np.argsort(one, kind="stable")
        self._other = other[order]
        self._first = np.searchsorted(one[order], np.arange(size + 1))
        self._size = size

    def reachable(self, starts: IntArray) -> tuple[IntArray, IntArray]:
        """Return the numbers that chains of pairs reach from each start, other than the start.

        They are sorted: by the place of the start, then by number.
        """
        places, ends = np.arange(len(starts)), starts
        known = np.empty(0, np.int64)
        while len(ends):
            first = self._first[ends]
            runs, at = places_in_runs(first, self._first[ends + 1] - first)
            places, ends = places[runs], self._other[at]
            other = ends != starts[places]
            new = np.unique(places[other] * self._size + ends[other])
            new = new[~_among(new, known)]
            known = np.sort(np.concatenate([known, new]))
            places, ends = new // self._size, new % self._size
        return known // self._size, known % self._size


def _among(values: IntArray, known: IntArray) -> BoolArray:
    """Return which values are in a sorted array."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    same: BoolArray = known[at] == values
    return same


class Hierarchy:
    """A relation between narrower and broader terms; `above` and `below` follow it transitively.

    >>> tree = Hierarchy(np.array([3, 4, 5]), np.array([2, 2, 4]))
    >>> sorted(tree.above(5)), sorted(tree.below(2))
    ([2, 4], [3, 4, 5])
    """

    def __init__(self, narrower: IntArray, broader: IntArray) -> None:
        self._terms, numbers = np.unique(np.concatenate([narrower, broader]), return_inverse=True)
        one, other = numbers[: len(narrower)], numbers[len(narrower) :]
        size = len(self._terms)
        self._up, self._down = _Relation(one, other, size), _Relation(other, one, size)
        self._known: dict[tuple[_Relation, int], frozenset[int]] = {}
        own = np.unique(one)
        self.narrower: list[int] = self._terms[own].tolist()
        """The terms with a broader one."""
        self._slots = np.zeros(max(self.narrower, default=0) + 2, np.int64)
        """By id, the number of a narrower term, from 1 on; 0 for other ids."""
        self._slots[self._terms[own]] = own + 1
        self._first = np.zeros(size + 1, np.int64)
        self._size = np.full(size + 1, _UNKNOWN)
        self._size[0] = 1
        self._above = np.zeros(1, np.int64)
        """Each narrower term that occurred in a column, followed by its broader terms."""

    def __len__(self) -> int:
        return len(self.narrower)

    def above(self, term: int) -> frozenset[int]:
        """Return the broader terms of a term, without itself."""
        return self._reachable(self._up, term)

    def below(self, term: int) -> frozenset[int]:
        """Return the narrower terms of a term, without itself."""
        return self._reachable(self._down, term)

    def _reachable(self, steps: _Relation, term: int) -> frozenset[int]:
        known = self._known.get((steps, term))
        if known is None:
            number = np.flatnonzero(self._terms == term)
            known = frozenset(self._terms[steps.reachable(number)[1]].tolist())
            self._known[steps, term] = known
        return known

    def expand(self, column: IntArray) -> tuple[IntArray, IntArray]:
        """Return each id of a column and its broader terms: the places of the ids, and the terms.

        >>> tree = Hierarchy(np.array([3, 3]), np.array([2, 1]))
        >>> [ids.tolist() for ids in tree.expand(np.array([9, 3]))]
        [[0, 1, 1, 1], [9, 3, 1, 2]]
        """
        slots = look_up(self._slots, column)
        sizes = self._size[slots]
        if (sizes == _UNKNOWN).any():
            self._add(np.unique(slots[sizes == _UNKNOWN]))
            sizes = self._size[slots]
        places, at = places_in_runs(self._first[slots], sizes)
        terms = self._above[at]
        unknown = slots == 0
        if unknown.any():
            terms = np.where(unknown[places], column[places], terms)
        return places, terms

    def _add(self, slots: IntArray) -> None:
        """Collect the broader terms of further narrower terms."""
        places, above = self._up.reachable(slots - 1)
        self._size[slots] = sizes = np.bincount(places, minlength=len(slots)) + 1
        own = np.cumsum(sizes) - sizes
        self._first[slots] = len(self._above) + own
        added = np.empty(len(slots) + len(above), np.int64)
        added[own] = self._terms[slots - 1]
        others = np.ones(len(added), np.bool_)
        others[own] = False
        added[others] = self._terms[above]
        self._above = np.concatenate([self._above, added])


_UNKNOWN = -1
