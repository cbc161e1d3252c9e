"""The predicates that a run notes of its streams, to name them if the result is empty."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from streamsparql.overriding import override
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.sources import Wanted


@dataclass(frozen=True)
class NotedPredicates(Wanted):
    """What a query reads of a stream; it counts the predicates of the first `chunks`, or of all.

    >>> noted = NotedPredicates(frozenset({3, 5}))
    >>> noted.mask(np.array([5, 4, 4])).tolist(), dict(noted.counts)
    ([True, False, False], {4: 2, 5: 1})
    """

    chunks: int | None = None
    counts: Counter[int] = field(default_factory=Counter)
    """The number of items of each predicate."""
    _masked: list[int] = field(default_factory=list)

    @override
    def mask(self, ids: IntArray) -> BoolArray:
        if self.chunks is None or len(self._masked) < self.chunks:
            self._masked.append(len(ids))
            predicates, numbers = np.unique(ids, return_counts=True)
            self.counts.update(dict(zip(predicates.tolist(), numbers.tolist(), strict=True)))
        return super().mask(ids)

    @property
    def ids(self) -> IntArray:
        """The predicates, which the dictionary must retain."""
        return np.array(list(self.counts), np.int64)
