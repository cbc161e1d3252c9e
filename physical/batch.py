"""Batches: many rows at once, as columns of term ids, each row with its validity.

A row is a solution mapping that holds over `[start, end)`. Its terms are ids of a `TermDictionary`;
id 0 means that the variable is unbound. The columns are the variables of the plan by name, hidden
ones included; triples are rows with the three columns of `TRIPLE`. A batch is ordered by `start`.
`count` is the multiplicity of each row; None means 1 for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from streamsparql.algebra.streams import INFINITY
from streamsparql.errors import EngineError
from streamsparql.limits import check_rows

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Columns: TypeAlias = dict[str, IntArray]

IdRow: TypeAlias = tuple[int, ...]
"""The term ids of one row."""

TRIPLE = (".s", ".p", ".o")
"""The columns of a batch of triples."""

UNBOUND = 0

NEVER = -INFINITY
"""An instant before all others: the start of a row in a state that does not retain its start."""


MAX_COUNT, MAX_ROWS = 1 << 52, 1 << 61
"""The greatest multiplicity of a row, and the greatest number of rows of a group."""


def check_count(count: float, most: int = MAX_COUNT) -> None:
    """Raise an error for a number of rows that might not be exact.

    >>> check_count(1e16)
    Traceback (most recent call last):
    streamsparql.errors.EngineError: more than 4,503,599,627,370,496 equal rows at one instant; \
join fewer patterns, or more selective ones
    """
    if count > most:
        raise EngineError(
            f"more than {most:,} equal rows at one instant; join fewer patterns, or more selective"
            " ones"
        )


class Batch:
    """Rows in columns, each over `[start, end)`; ordered by `start`.

    It is a part of a physical stream (ESWC 2008, Definition 1).

    >>> batch = Batch({"x": np.array([7, 8])}, np.array([0, 5]), np.array([9, 9]))
    >>> len(batch), batch.where(batch.start > 0).columns["x"].tolist()
    (2, [8])
    """

    __slots__ = ("columns", "count", "end", "start")

    def __init__(
        self, columns: Columns, start: IntArray, end: IntArray, count: IntArray | None = None
    ) -> None:
        self.columns = columns
        self.start = start
        self.end = end
        self.count = count

    @classmethod
    def empty(cls, names: Iterable[str]) -> Batch:
        """Return a batch without rows that has these columns."""
        return cls(dict.fromkeys(names, _NONE), _NONE, _NONE)

    @classmethod
    def concat(cls, batches: Sequence[Batch], names: Sequence[str] | None = None) -> Batch:
        """Concatenate batches that have the same columns.

        With `names`, the result has only these columns; those that a batch lacks are unbound.
        """
        if names is None:
            names = list(batches[0].columns)
        batches = [batch for batch in batches if len(batch)] or list(batches[:1])
        if len(batches) < 2:
            return batches[0].project(names) if batches else cls.empty(names)
        count = None
        if any(batch.count is not None for batch in batches):
            count = np.concatenate([batch.counts() for batch in batches])
        return cls(
            {name: np.concatenate([batch.column(name) for batch in batches]) for name in names},
            np.concatenate([batch.start for batch in batches]),
            np.concatenate([batch.end for batch in batches]),
            count,
        )

    def __len__(self) -> int:
        return len(self.start)

    def __repr__(self) -> str:
        return f"Batch({len(self)} rows of {', '.join(self.columns)})"

    def column(self, name: str) -> IntArray:
        """Return the ids of a variable; all unbound where the batch does not have it."""
        ids = self.columns.get(name)
        return np.zeros(len(self), np.int64) if ids is None else ids

    def counts(self) -> IntArray:
        """Return the multiplicities of the rows as an array."""
        return np.ones(len(self), np.int64) if self.count is None else self.count

    def project(self, names: Iterable[str]) -> Batch:
        """Return the rows with only these columns."""
        own = self.columns
        columns = {n: own[n] if n in own else self.column(n) for n in names}
        return Batch(columns, self.start, self.end, self.count)

    def with_columns(self, columns: Mapping[str, IntArray]) -> Batch:
        """Return the rows with columns added or replaced."""
        return Batch({**self.columns, **columns}, self.start, self.end, self.count)

    def over(self, start: IntArray, end: IntArray) -> Batch:
        """Return the rows over other validities."""
        return Batch(self.columns, start, end, self.count)

    def take(self, index: IntArray) -> Batch:
        """Return the rows at these places, in that order."""
        count = None if self.count is None else self.count[index]
        columns = {name: column[index] for name, column in self.columns.items()}
        return Batch(columns, self.start[index], self.end[index], count)

    def where(self, mask: BoolArray) -> Batch:
        """Return the rows where the mask is true, in the same order."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def part(self, first: int, after: int) -> Batch:
        """Return the rows from place `first` to before `after`, without copying."""
        cut = slice(first, after)
        count = None if self.count is None else self.count[cut]
        columns = {name: column[cut] for name, column in self.columns.items()}
        return Batch(columns, self.start[cut], self.end[cut], count)

    def ordered(self) -> Batch:
        """Return the rows ordered by `start`, stably."""
        if len(self) < 2 or bool((self.start[1:] >= self.start[:-1]).all()):
            return self
        return self.take(np.argsort(self.start, kind="stable"))

    def expanded(self) -> Batch:
        """Return each row as often as its count says, without counts."""
        if self.count is None:
            return self
        check_rows(int(self.count.sum()), len(self.columns))
        index = np.repeat(np.arange(len(self)), self.count)
        return Batch(self.columns, self.start, self.end).take(index)


_NONE: IntArray = np.empty(0, np.int64)
_NONE.setflags(write=False)
