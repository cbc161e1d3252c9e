"""Pairs of matching rows: the columns that decide whether rows match, and the merged row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from streamsparql.physical.batch import UNBOUND, Batch, IntArray, check_count
from streamsparql.physical.hidden import SINCE, is_stamp, is_time

AREAS, MIN_HEAP = "areas", "min-heap"
"""Parts of a state: the sweep areas, and the results that start after the release bound."""


def shared_names(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """Return the variables that decide whether rows are compatible: shared ones, except times.

    >>> shared_names(["x", "y", ".t ?x"], [".t ?x", "z", "x"])
    ['x']
    """
    return [name for name in left if name in right and not is_time(name)]


def join_facts(shared: Sequence[str]) -> str:
    """Describe the variables that a join compares."""
    return f"on {', '.join(shared) or 'no column: a Cartesian product'}"


class StampValues(Protocol):
    """The part of a term dictionary that `RowMerger` uses."""

    def integers_of(self, ids: IntArray) -> IntArray:
        """Return the values of inlined integers."""


class RowMerger:
    """A merger of pairs of rows into `merge(mu1, mu2)`; multiplicities multiply.

    Of times, a merged row has the latest stamps, and the earliest SINCE.
    """

    def __init__(self, names: Sequence[str], terms: StampValues | None) -> None:
        self._names = names
        self._terms = terms

    def rows(self, left: Batch, i: IntArray, right: Batch, j: IntArray) -> Batch:
        """Return the merged rows of pairs, each over the intersection."""
        columns = {}
        for name in self._names:
            one, other = left.columns.get(name), right.columns.get(name)
            if other is None:
                assert one is not None
                columns[name] = one[i]
            elif one is None:
                columns[name] = other[j]
            else:
                columns[name] = self._both(name, one[i], other, j)
        count = None
        if left.count is not None or right.count is not None:
            one, other = left.counts()[i], right.counts()[j]
            check_count(float((one.astype(np.float64) * other).max(initial=0)))
            count = one * other
        start = np.maximum(left.start[i], right.start[j])
        return Batch(columns, start, np.minimum(left.end[i], right.end[j]), count)

    def _both(self, name: str, one: IntArray, other: IntArray, j: IntArray) -> IntArray:
        if is_stamp(name):
            return self._latest(one, other[j])
        if name == SINCE:
            return np.minimum(one, other[j])
        unbound = one == UNBOUND
        return np.where(unbound, other[j], one) if unbound.any() else one

    def _latest(self, one: IntArray, other: IntArray) -> IntArray:
        """Return the greater of two stamps; a bound one if only one is bound."""
        assert self._terms is not None, "stamps are merged by their values"
        later = self._terms.integers_of(other) > self._terms.integers_of(one)
        return np.where((one == UNBOUND) | (later & (other != UNBOUND)), other, one)
