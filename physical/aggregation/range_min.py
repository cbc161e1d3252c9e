"""Range minima: the least rank among the elements that hold at each change point.

MIN, MAX and SAMPLE use them. An element holds over a range of the change points of its slot. The
least rank over all ranges that contain a point is computed by a sparse table in reverse: each range
is the union of two overlapping ranges whose length is a power of two; from the greatest length
down, each of these passes its least rank on to its two halves.
"""

from __future__ import annotations

import numpy as np

from streamsparql.algebra.streams import INFINITY
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary

ERROR_RANK = -(1 << 63)
"""The rank of an error, below all others: one error among the values makes the result an error."""


def least_ranks(points: int, first: IntArray, after: IntArray, ranks: IntArray) -> IntArray:
    """Return for each point the least rank over the ranges that contain it, or INFINITY.

    A range is `[first, after)`.

    >>> least_ranks(4, np.array([0, 1]), np.array([3, 2]), np.array([5, 4])).tolist()[:3]
    [5, 4, 5]
    """
    nonempty = first < after
    first, after, ranks = first[nonempty], after[nonempty], ranks[nonempty]
    level = np.frexp((after - first).astype(np.float64))[1] - 1
    least = np.full(points, INFINITY)
    for k in range(int(level.max(initial=0)), -1, -1):
        here = np.flatnonzero(level == k)
        np.minimum.at(least, first[here], ranks[here])
        np.minimum.at(least, after[here] - (1 << k), ranks[here])
        half = (1 << k) >> 1
        if half:
            halves = least.copy()
            np.minimum(halves[half:], least[:-half], out=halves[half:])
            least = halves
    return least


class TermRanks:
    """The ranks of terms in ascending order, or with `last` in descending order.

    >>> terms = TermDictionary()
    >>> ids = terms.of_integers(np.array([5, 7]))
    >>> last = TermRanks(ids, terms, last=True, strict=True)
    >>> terms.integers_of(last.ids(last.ranks[:1])).tolist()
    [5]
    """

    def __init__(self, ids: IntArray, terms: TermDictionary, last: bool, strict: bool) -> None:
        bound = ids != 0
        self._known = ids[bound]
        ranks = terms.order_ranks(self._known)
        self._ranks_are_ids, self._last = ranks is self._known, last
        if last:
            ranks = ~ranks
        self.ranks = np.full(len(ids), ERROR_RANK if strict else INFINITY)
        """A rank for each term; that of an error (0) is ERROR_RANK if `strict`, else INFINITY."""
        self.ranks[bound] = ranks
        self._order = ranks

    def ids(self, ranks: IntArray) -> IntArray:
        """Return the ids of the terms with these ranks; 0 for an error and for INFINITY."""
        no_term = (ranks == ERROR_RANK) | (ranks == INFINITY)
        if self._ranks_are_ids:
            ids = ~ranks if self._last else ranks
        elif len(self._order):
            known, place = np.unique(self._order, return_index=True)
            at = np.minimum(known.searchsorted(ranks), len(known) - 1)
            ids = self._known[place[at]]
        else:
            ids = ranks
        return np.where(no_term, 0, ids)
