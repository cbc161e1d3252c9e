"""What gives rows their shape: projection, and rows that tell themselves apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamsparql.algebra import shape
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import is_hidden
from streamsparql.physical.operator import Operator, Stateless


class Projection(Stateless):
    """Keeps some columns; those that the input lacks are unbound.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7]), "y": np.array([8])}, 1)
    >>> made = Projection(rows, ["y", "z"]).apply(rows.rows)
    >>> made.columns["y"].tolist(), made.columns["z"].tolist()
    ([8], [0])
    """

    implements = (shape.Projection,)

    def __init__(self, input: Operator, names: Sequence[str]) -> None:  # noqa: A002 -- the role
        super().__init__(names, input)

    @override
    def apply(self, batch: Batch) -> Batch:
        return batch.project(self.names)

    @override
    def facts(self) -> str:
        return " ".join(f"?{name}" for name in self.names if not is_hidden(name))


def narrowed(rows: Operator, names: Sequence[str]) -> Operator:
    """The rows with just these columns, in this order; themselves where they have no others.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7])}, 1)
    >>> narrowed(rows, ["x"]) is rows, narrowed(rows, []).names
    (True, ())
    """
    return rows if rows.names == tuple(names) else Projection(rows, names)


class Tag(Stateless):
    """Gives each row a number of its own, in a hidden column, so that it can be found again.

    EXISTS and the conditions of OPTIONAL are worked out beside the rows that ask, and joined back
    to them by this number. It never reaches a result.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows, terms = Always.of({"x": np.array([7, 7])}, 2), TermDictionary()
    >>> terms.integers_of(Tag(rows, "..row", terms).apply(rows.rows).columns["..row"]).tolist()
    [1, 2]
    """

    state = "a counter"

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
