"""The base of operators on two inputs, and the merging of matching rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch, IntArray
from streamsparql.physical.hidden import SINCE, is_stamp, is_time
from streamsparql.physical.operator import Operator, StepResult

AREAS, MIN_HEAP = "areas", "min-heap"
"""Parts of a state: the sweep areas, and the results that start after the release bound."""

SLICE = 1 << 16
"""The number of rows consumed at a time: the arrays of more rows would leave the cache."""


class Binary(Operator):
    """An operator on two inputs, which divides a long step into slices of time.

    This is sound because batches are ordered: the rest of a batch starts no earlier than its next
    row, which is then the watermark.
    """

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        if len(batches[0]) + len(batches[1]) <= SLICE:
            return self._consume(batches, watermarks, cut)
        out, bound, last = [], 0, tuple(map(len, batches))
        before = 0, 0
        for after in _slices(batches):
            parts = [batch.part(*at) for batch, *at in zip(batches, before, after, strict=True)]
            marks = [
                mark if at == end else min(mark, int(batch.start[at]))
                for batch, mark, at, end in zip(batches, watermarks, after, last, strict=True)
            ]
            rows, bound = self._consume(parts, marks, cut and after == last)
            out.append(rows)
            before = after
        return Batch.concat(out), bound

    @abstractmethod
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        """Compute one slice of a step, or a short step."""


def _slices(batches: Sequence[Batch]) -> Iterator[tuple[int, int]]:
    """Yield the ends of slices of time, as places in each of two batches."""
    left, right = batches
    longer = left if len(left) > len(right) else right
    number = -(-(len(left) + len(right)) // SLICE)
    for t in np.unique(longer.start[np.arange(1, number) * len(longer) // number]):
        yield int(np.searchsorted(left.start, t)), int(np.searchsorted(right.start, t))
    yield len(left), len(right)


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
            count = left.counts()[i] * right.counts()[j]
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
