"""A segment tree: which of many closed intervals of numbers contain a value.

The borders of the intervals divide the line into elementary pieces: each border, and each gap
between two. They are the leaves of a binary tree, in order. An interval is stored at the nodes
whose leaves it covers and whose parents' it does not: at most two nodes of each level. A value lies
in exactly the intervals at its leaf and at the nodes above it.

So n intervals take O(n log n) places, however long they are, and a value costs O(log n) look-ups
and its hits. Short intervals are stored at their leaves instead, for a single look-up per value.
All operations are on arrays: the levels of the tree are the only loop.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamsparql.physical.batch import FloatArray, IntArray
from streamsparql.physical.kernels.intervals import BLOCK, pairs_in_blocks

_SHORT = 32
"""Up to this number of leaves per interval, on average, intervals are stored at their leaves."""


class SegmentTree:
    """Closed intervals `[low, high]`; one with a border that is NaN, or with low > high, is empty.

    >>> tree = SegmentTree(np.array([0.0, 2.0, -np.inf]), np.array([5.0, 3.0, 2.0]))
    >>> [(i.tolist(), sorted(j.tolist())) for i, j in tree.stab(np.array([2.0]))]
    [([0, 0, 0], [0, 1, 2])]
    """

    def __init__(self, low: FloatArray, high: FloatArray) -> None:
        (intervals,) = (low <= high).nonzero()
        low, high = low[intervals], high[intervals]
        self._cuts = np.unique(np.concatenate([low, high]))
        first, after = (
            2 * np.searchsorted(self._cuts, low),
            2 * np.searchsorted(self._cuts, high) + 1,
        )
        if int((after - first).sum()) <= _SHORT * len(intervals):
            self._height, self._leaves = 0, 2 * len(self._cuts)
            ranges = [*pairs_in_blocks(first, after - first)]
            rows, nodes = map(np.concatenate, zip(*ranges, strict=True)) if ranges else (_NONE,) * 2
            nodes, stored = nodes + self._leaves, intervals[rows]
        else:
            self._height = (2 * len(self._cuts) - 1).bit_length()
            self._leaves = 1 << self._height
            nodes, stored = _covering_nodes(first + self._leaves, after + self._leaves, intervals)
        order = np.argsort(nodes, kind="stable")
        self._stored = stored[order]
        self._first = np.searchsorted(nodes[order], np.arange(2 * self._leaves + 1))

    def stab(self, values: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the pairs (value, interval that contains it) as places, in blocks, by value."""
        step = max(BLOCK // (self._height + 1), 1)
        for at in range(0, len(values), step):
            yield from self._stab(values[at : at + step], at)

    def _stab(self, values: FloatArray, at: int) -> Iterator[tuple[IntArray, IntArray]]:
        place = np.searchsorted(self._cuts, values)
        inside = place < len(self._cuts)
        leaf = 2 * place - 1
        leaf[inside] += self._cuts[place[inside]] == values[inside]
        (within,) = (inside & (leaf >= 0)).nonzero()
        nodes = leaf[within] + self._leaves
        if self._height:
            nodes = (nodes[:, np.newaxis] >> np.arange(self._height + 1)).ravel()
        low = self._first[nodes]
        for i, j in pairs_in_blocks(low, self._first[nodes + 1] - low):
            yield within[i // (self._height + 1) if self._height else i] + at, self._stored[j]


def _covering_nodes(
    first: IntArray, after: IntArray, intervals: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the nodes that cover the leaves from `first` to before `after`, and their intervals.

    The leaves of a tree with 2**h of them are the nodes from 2**h on; node k has the parent k // 2.
    """
    nodes, stored = [_NONE], [_NONE]
    while len(intervals):
        for odd, node in ((first & 1, first), (after & 1, after - 1)):
            (chosen,) = odd.nonzero()
            nodes.append(node[chosen])
            stored.append(intervals[chosen])
        first, after = (first + 1) >> 1, after >> 1
        (left,) = (first < after).nonzero()
        first, after, intervals = first[left], after[left], intervals[left]
    return np.concatenate(nodes), np.concatenate(stored)


_NONE: IntArray = np.empty(0, np.int64)
