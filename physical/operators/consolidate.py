"""Consolidation: equal rows become one with a count, so that fewer are joined and aggregated."""

from __future__ import annotations

import numpy as np

from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, check_count
from streamsparql.physical.kernels.keys import grouped
from streamsparql.physical.operator import Operator, Stateless


class Consolidate(Stateless):
    """The input; rows of a batch that are equal over the same interval become one with a count.

    This pays if validities are aligned to reports and columns were projected away.
    """

    family = "shape"

    def __init__(self, input: Operator) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)

    @override
    def apply(self, batch: Batch) -> Batch:
        return consolidated(batch)


def consolidated(batch: Batch) -> Batch:
    """Return a batch in which rows that are equal over the same interval are one with a count.

    >>> same = Batch({"x": np.array([7, 7])}, np.array([0, 0]), np.array([5, 5]))
    >>> consolidated(same).count.tolist()
    [2]
    """
    columns = [*batch.columns.values(), batch.start, batch.end]
    order, first = grouped(columns, len(batch))
    if len(first) == len(batch):
        return batch
    counts = np.add.reduceat(batch.counts()[order], first)
    check_count(int(counts.max(initial=0)))
    merged = batch.take(order[first])
    return Batch(merged.columns, merged.start, merged.end, counts).ordered()
