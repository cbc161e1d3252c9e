"""The min-heap that puts results in the order of their start (Algorithms 4 and 5 of the paper).

An operator that finds results out of order puts them here and takes out those that start no later
than its *release bound*: nothing that starts earlier can be found any more. Rows of the same start
keep the order in which they were put in. Rows are held in a few ordered runs rather than one by
one: a run is merged with those before it that are not much longer, so each row is moved O(log n)
times.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamsparql.physical.batch import Batch, IntArray


class Heap:
    """Rows by start.

    >>> heap = Heap(["x"])
    >>> heap.push(Batch({"x": np.array([1, 2])}, np.array([5, 3]), np.array([9, 9])))
    >>> heap.release(4).columns["x"].tolist(), len(heap)
    ([2], 1)
    """

    def __init__(self, names: list[str] | tuple[str, ...]) -> None:
        self._nothing = Batch.empty(names)
        self._runs: list[Batch] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def push(self, batch: Batch) -> None:
        """Puts rows in, in any order."""
        if not len(batch):
            return
        run = batch.ordered()
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = Batch.concat([self._runs.pop(), run]).ordered()
        self._runs.append(run)

    def release(self, bound: int) -> Batch:
        """Takes out the rows that start at `bound` or before, in order."""
        out, kept = [], []
        for run in self._runs:
            after = int(np.searchsorted(run.start, bound, "right"))
            if after:
                out.append(run.part(0, after))
            if after < len(run):
                kept.append(run.part(after, len(run)) if after else run)
        if not out:
            return self._nothing
        self._runs = kept
        return out[0] if len(out) == 1 else Batch.concat(out).ordered()

    def runs(self) -> list[Batch]:
        """All rows, as they are held."""
        return list(self._runs)

    def rows(self) -> Batch:
        """All rows, in order; they stay."""
        return Batch.concat([self._nothing, *self._runs]).ordered()

    def held(self) -> Iterator[IntArray]:
        """The term ids of the rows."""
        for run in self._runs:
            yield from run.columns.values()
