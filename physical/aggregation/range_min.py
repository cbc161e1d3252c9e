"""The least of what holds at each change point: MIN, MAX and SAMPLE.

An element holds over a range of a slot's change points. The least rank over all ranges that hold a
point is found as in a sparse table, the other way round: a range is two overlapping ranges whose
length is a power of two, and from the longest down each is split in halves.
"""

from __future__ import annotations

import numpy as np

from streamsparql.algebra.streams import INFINITY
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary

ERROR_RANK = -(1 << 63)
"""The rank of an error among the values, which makes the whole an error."""


def least_ranks(points: int, first: IntArray, after: IntArray, ranks: IntArray) -> IntArray:
    """For each point the least rank over the ranges `[first, after)` that hold it; else INFINITY.

    >>> least_ranks(4, np.array([0, 1]), np.array([3, 2]), np.array([5, 4])).tolist()[:3]
    [5, 4, 5]
    """
    some = first < after
    first, after, ranks = first[some], after[some], ranks[some]
    level = np.frexp((after - first).astype(np.float64))[1] - 1
    found = np.full(points, INFINITY)
    for k in range(int(level.max(initial=0)), -1, -1):
        here = np.flatnonzero(level == k)
        np.minimum.at(found, first[here], ranks[here])
        np.minimum.at(found, after[here] - (1 << k), ranks[here])
        half = (1 << k) >> 1
        if half:
            halves = found.copy()
            np.minimum(halves[half:], found[:-half], out=halves[half:])
            found = halves
    return found


class TermRanks:
    """Terms by rank: the first of some, or the last.

    >>> terms = TermDictionary()
    >>> ids = terms.of_integers(np.array([5, 7]))
    >>> last = TermRanks(ids, terms, last=True, strict=True)
    >>> terms.integers_of(last.ids(last.ranks[:1])).tolist()
    [5]
    """

    def __init__(self, ids: IntArray, terms: TermDictionary, last: bool, strict: bool) -> None:
        some = ids != 0
        self._known = ids[some]
        ranks = terms.order_ranks(self._known)
        self._itself, self._last = ranks is self._known, last
        if last:
            ranks = ~ranks
        self.ranks = np.full(len(ids), ERROR_RANK if strict else INFINITY)
        """A rank for each term; an error is the least when it is `strict`, else it is no term."""
        self.ranks[some] = ranks
        self._order = ranks

    def ids(self, ranks: IntArray) -> IntArray:
        """The terms of ranks; 0 where that is an error or there is no term."""
        none = (ranks == ERROR_RANK) | (ranks == INFINITY)
        if self._itself:
            found = ~ranks if self._last else ranks
        elif len(self._order):
            known, place = np.unique(self._order, return_index=True)
            at = np.minimum(known.searchsorted(ranks), len(known) - 1)
            found = self._known[place[at]]
        else:
            found = ranks
        return np.where(none, 0, found)
