"""The base of operators that match rows of several inputs: a long step is divided into slices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import Operator, StepResult

SLICE = 1 << 16
"""The number of rows consumed at a time: the arrays of more rows would leave the cache."""


class Sliced(Operator):
    """An operator that divides a long step into slices of time.

    This is sound because batches are ordered: the rest of a batch starts no earlier than its next
    row, which is then the watermark.
    """

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        if sum(map(len, batches)) <= SLICE:
            return self._consume(batches, watermarks, cut)
        out, bound, last = [], 0, tuple(map(len, batches))
        before = (0,) * len(batches)
        for after in _slices(batches):
            parts = [batch.part(*at) for batch, *at in zip(batches, before, after, strict=True)]
            marks = [
                mark if at == end else min(mark, int(batch.start[at]))
                for batch, mark, at, end in zip(batches, watermarks, after, last, strict=True)
            ]
            rows, bound = self._consume(parts, marks, cut and after == last)
            out.append(rows)
            before = after
        return Batch.concat(out).ordered(), bound

    @abstractmethod
    def _consume(
        self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool
    ) -> StepResult:
        """Compute one slice of a step, or a short step."""


def _slices(batches: Sequence[Batch]) -> Iterator[tuple[int, ...]]:
    """Yield the ends of slices of time, as a place in each batch."""
    longest = max(batches, key=len)
    number = -(-sum(map(len, batches)) // SLICE)
    for t in np.unique(longest.start[np.arange(1, number) * len(longest) // number]):
        yield tuple(int(np.searchsorted(batch.start, t)) for batch in batches)
    yield tuple(map(len, batches))
