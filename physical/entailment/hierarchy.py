"""Hierarchies of classes or properties, as term ids; sets of ids that whole columns are tested for.

A hierarchy has any shape: several parents, cycles. The ids in it are those of static graphs, which
are never recycled. Other ids of a column (inlined literals, terms of streams) are in no hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        found = None if self._table is None else look_up(self._table, column)
        for one in self._single:
            same = column == one
            found = same if found is None else found | same
        return np.zeros(len(column), np.bool_) if found is None else found


class Hierarchy:
    """A relation between narrower and broader terms; `above` and `below` follow it transitively.

    >>> tree = Hierarchy(np.array([3, 4, 5]), np.array([2, 2, 4]))
    >>> sorted(tree.above(5)), sorted(tree.below(2))
    ([2, 4], [3, 4, 5])
    """

    def __init__(self, narrower: IntArray, broader: IntArray) -> None:
        self._parents: dict[int, list[int]] = {}
        self._children: dict[int, list[int]] = {}
        for one, other in zip(narrower.tolist(), broader.tolist(), strict=True):
            self._parents.setdefault(one, []).append(other)
            self._children.setdefault(other, []).append(one)
        self._slots = np.zeros(max(self._parents, default=0) + 2, np.int64)
        """By id, the place of a narrower term in the three arrays below; 0 for other ids."""
        narrow = np.fromiter(self._parents, np.int64)
        self._slots[narrow] = np.arange(1, len(narrow) + 1)
        self._first = np.zeros(len(narrow) + 1, np.int64)
        self._count = np.full(len(narrow) + 1, _UNKNOWN)
        self._count[0] = 0
        self._above = np.empty(0, np.int64)
        """The broader terms of the narrower terms that occurred in columns."""

    def __len__(self) -> int:
        return len(self._parents)

    @property
    def narrower(self) -> Iterable[int]:
        """The terms with a broader one."""
        return self._parents.keys()

    def above(self, term: int) -> frozenset[int]:
        """Return the broader terms of a term, without itself."""
        return _reachable(self._parents, term) - {term}

    def below(self, term: int) -> frozenset[int]:
        """Return the narrower terms of a term, without itself."""
        return _reachable(self._children, term) - {term}

    def expand(self, column: IntArray) -> tuple[IntArray, IntArray]:
        """Return the broader terms of each id of a column: the places of the ids, and the terms.

        >>> tree = Hierarchy(np.array([3, 3]), np.array([2, 1]))
        >>> [ids.tolist() for ids in tree.expand(np.array([9, 3]))]
        [[1, 1], [1, 2]]
        """
        slots = look_up(self._slots, column)
        counts = self._count[slots]
        if (counts == _UNKNOWN).any():
            self._add(np.unique(column[counts == _UNKNOWN]))
            counts = self._count[slots]
        places = np.repeat(np.arange(len(column)), counts)
        before = np.cumsum(counts) - counts
        within = np.arange(len(places)) - before[places]
        return places, self._above[self._first[slots[places]] + within]

    def _add(self, terms: IntArray) -> None:
        """Collect the broader terms of further narrower terms."""
        found = [sorted(self.above(term)) for term in terms.tolist()]
        slots, counts = self._slots[terms], np.array([len(above) for above in found], np.int64)
        self._first[slots] = len(self._above) + np.cumsum(counts) - counts
        self._count[slots] = counts
        new = np.fromiter((one for above in found for one in above), np.int64, counts.sum())
        self._above = np.concatenate([self._above, new])


_UNKNOWN = -1


def _reachable(steps: Mapping[int, list[int]], start: int) -> frozenset[int]:
    pending, reached = [start], set[int]()
    while pending:
        for term in steps.get(pending.pop(), ()):
            if term not in reached:
                reached.add(term)
                pending.append(term)
    return frozenset(reached)
