"""Operators without a logical twin: they rename and add columns, and select rows by terms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import Operator, Stateless


class Rename(Stateless):
    """The rows with other names for columns; a column may have several names, or none.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7])}, 1)
    >>> Rename(rows, {"a": "x", "b": "x"}).apply(rows.rows)
    Batch(1 rows of a, b)
    """

    family = "match"

    def __init__(self, input: Operator, columns: Mapping[str, str]) -> None:  # noqa: A002
        super().__init__(tuple(columns), input)
        self.columns = dict(columns)

    @override
    def apply(self, batch: Batch) -> Batch:
        columns = {new: batch.columns[old] for new, old in self.columns.items()}
        return Batch(columns, batch.start, batch.end, batch.count)

    @override
    def facts(self) -> str:
        return ", ".join(f"{old} as {new}" for new, old in self.columns.items() if new != old)


class Constants(Stateless):
    """The rows with further columns, which have the same term in all rows.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7, 8])}, 2)
    >>> Constants(rows, {"g": 3}).apply(rows.rows).columns["g"].tolist()
    [3, 3]
    """

    family = "match"

    def __init__(self, input: Operator, constants: Mapping[str, int]) -> None:  # noqa: A002
        kept = (name for name in input.names if name not in constants)
        super().__init__((*kept, *constants), input)
        self.constants = dict(constants)

    @override
    def apply(self, batch: Batch) -> Batch:
        full = {n: np.full(len(batch), term, np.int64) for n, term in self.constants.items()}
        return batch.with_columns(full)


class SelectEqual(Stateless):
    """The rows in which two columns, or a column and a constant, have the same term.

    With `or_unbound` a row passes also if one of the two is unbound, as for compatibility.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7, 8, 0])}, 3)
    >>> [len(SelectEqual(rows, [("x", 7)], lax).apply(rows.rows)) for lax in (False, True)]
    [1, 2]
    """

    family = "match"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        pairs: list[tuple[str, str | int]],
        or_unbound: bool = False,
    ) -> None:
        super().__init__(input.names, input)
        self.pairs = pairs
        self.or_unbound = or_unbound

    @override
    def apply(self, batch: Batch) -> Batch:
        mask = np.ones(len(batch), np.bool_)
        for name, other in self.pairs:
            one = batch.columns[name]
            two = batch.columns[other] if isinstance(other, str) else np.int64(other)
            agree = one == two
            if self.or_unbound:
                agree |= (one == 0) | (two == 0)
            mask &= agree
        return batch.where(mask)

    def constants(self) -> list[tuple[str, int]]:
        """Return the columns that are compared with a constant, each with its term id."""
        if self.or_unbound:
            return []
        return [(name, other) for name, other in self.pairs if isinstance(other, int)]

    @override
    def facts(self) -> str:
        return ", ".join(f"{one} = {other}" for one, other in self.pairs)


class SelectBound(Stateless):
    """The rows in which certain columns are bound, and others are not.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7, 8, 0])}, 3)
    >>> [len(SelectBound(rows, {"x": bound}).apply(rows.rows)) for bound in (True, False)]
    [2, 1]
    """

    family = "match"

    def __init__(self, input: Operator, bound: Mapping[str, bool]) -> None:  # noqa: A002
        super().__init__(input.names, input)
        self.bound = dict(bound)

    @override
    def apply(self, batch: Batch) -> Batch:
        mask = np.ones(len(batch), np.bool_)
        for name, wanted in self.bound.items():
            mask &= (batch.columns[name] != 0) == wanted
        return batch.where(mask)


class SelectNotIn(Stateless):
    """The rows whose column has none of certain terms: a negated property set.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7, 8])}, 2)
    >>> SelectNotIn(rows, "x", [8]).apply(rows.rows).columns["x"].tolist()
    [7]
    """

    family = "match"

    def __init__(self, input: Operator, column: str, excluded: list[int]) -> None:  # noqa: A002
        super().__init__(input.names, input)
        self.column = column
        self._excluded = np.array(excluded, np.int64)

    @override
    def apply(self, batch: Batch) -> Batch:
        return batch.where(~np.isin(batch.columns[self.column], self._excluded))


class Tag(Stateless):
    """The rows with a number each, in a hidden column, by which they are joined again.

    EXISTS and conditions of OPTIONAL with EXISTS are evaluated on numbered rows, and joined to them
    by this number, which is never in a result.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows, terms = Always.of({"x": np.array([7, 7])}, 2), TermDictionary()
    >>> terms.integers_of(Tag(rows, "..row", terms).apply(rows.rows).columns["..row"]).tolist()
    [1, 2]
    """

    family = "shape"
    state = "a counter"
    scalars = ("_next",)

    def __init__(self, input: Operator, column: str, terms: TermDictionary) -> None:  # noqa: A002
        super().__init__((*input.names, column), input)
        self.column = column
        self._terms = terms
        self._next = 1

    @override
    def apply(self, batch: Batch) -> Batch:
        batch = batch.expanded()
        first, self._next = self._next, self._next + len(batch)
        numbers = np.arange(first, self._next, dtype=np.int64)
        return batch.with_columns({self.column: self._terms.of_integers(numbers)})
