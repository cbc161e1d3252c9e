"""The shape of solutions: projection, BIND, DISTINCT, ORDER BY, numbering (twins of algebra.shape).

`Distinct` is the union of the validities of equal rows (SEMANTICS.md section 5). A new element
`[ts, te)` of a row that is covered until `c` adds `[max(ts, c), te)`, if that is not empty, and
this is known at once. So a row that comes again and again, as in a sliding window, is given in
adjoining pieces. `Coalesce` (report.py) puts such pieces together; `Number` tells equal rows apart.

The order of rows in a snapshot is no part of time, so `OrderBy` moves no rows: it adds the hidden
columns of a `Ranking`, by which a `Slice` (slice.py) above, or a reader of a snapshot, sorts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from streamsparql.algebra import shape
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import BatchExpression
from streamsparql.physical.expressions.sort_keys import Ranking
from streamsparql.physical.hidden import is_hidden, is_stamp, sorting_column, tie_column
from streamsparql.physical.operator import Operator, Stateless, StepResult
from streamsparql.physical.operators.group import Aggregation, ColumnAggregate
from streamsparql.physical.state.canonical import LEVEL, OPEN, ByStamps, Canonical
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import TO_BE_EMITTED, TO_START, Memo, Stateful
from streamsparql.physical.state.unions import ValidityUnions


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


def projected_to(rows: Operator, names: Sequence[str]) -> Operator:
    """The rows with just these columns, in this order; themselves where they have no others.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7])}, 1)
    >>> projected_to(rows, ["x"]) is rows, projected_to(rows, []).names
    (True, ())
    """
    return rows if rows.names == tuple(names) else Projection(rows, names)


class Extend(Stateless):
    """Binds a variable to an expression's value. Where that is an error, a row stays as it is."""

    implements = (shape.Extend,)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        variable: Variable,
        expression: Expression,
        compiled: BatchExpression,
    ) -> None:
        super().__init__(tuple(dict.fromkeys((*input.names, variable.name))), input)
        self.expression = expression
        self._name = variable.name
        self._compiled = compiled

    @override
    def apply(self, batch: Batch) -> Batch:
        values = self._compiled.values(batch)
        before = batch.columns.get(self._name)
        if before is not None:
            values = np.where(values == UNBOUND, before, values)
        return batch.with_columns({self._name: values})

    @override
    def memos(self) -> Iterable[Memo]:
        return (self._compiled,)

    @override
    def facts(self) -> str:
        return f"?{self._name} := {self.expression!r}"


class Distinct(Operator):
    """The union of validities of each distinct row of these columns."""

    implements = (shape.Distinct,)
    state = "per distinct row that holds, until when it is covered"

    def __init__(self, input: Operator, columns: Sequence[str]) -> None:  # noqa: A002 -- the role
        super().__init__(columns, input)
        self._coming = Heap(self.names)
        self._unions = ValidityUnions(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (watermark,) = watermarks
        batch = self._coming.through([batches[0].project(self.names)], watermark)
        return self._unions.consume(batch, watermark), watermark

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {TO_START: self._coming, "unions": self._unions}


class LatestStamps(Aggregation):
    """Each row once, with the greatest of the stamps that live rows like it carry.

    A row that comes again cuts the validity, and goes on with its new stamp. So unlike `Distinct`
    this gives a row when it is over.
    """

    implements = (shape.Distinct,)
    state = "the rows that hold; per distinct one its stamps and since when they stand"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        columns: Sequence[str],
        stamps: Sequence[str],
        terms: TermDictionary,
    ) -> None:
        calls = [ColumnAggregate(stamp, "LATEST", stamp) for stamp in stamps]
        super().__init__(input, columns, calls, terms)

    @override
    def _always(self) -> bool:
        return False


class Number(Operator):
    """Adds a column that numbers equal rows: k for the k-th level of a row.

    Stamps do not count in what is equal; where there are some, they are what orders the rows.
    """

    implements = (shape.Number,)
    state = "the rows that a later row could still extend"

    def __init__(self, input: Operator, variable: str, terms: TermDictionary) -> None:  # noqa: A002
        super().__init__((*input.names, variable), input)
        self.variable = variable
        self._terms = terms
        stamps = [name for name in input.names if is_stamp(name)]
        self._rows: Canonical | ByStamps
        if stamps:
            self._rows = ByStamps(input.names, stamps, terms)
        else:
            self._rows = Canonical(input.names)
        self._ready = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        rows = self._rows.consume(batches[0], watermarks[0], cut)
        if len(rows):
            number = self._terms.of_integers(rows.columns[LEVEL])
            self._ready.push(rows.with_columns({self.variable: number}).project(self.names))
        bound = min(watermarks[0], self._rows.first_start())
        return self._ready.release(bound), bound

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {OPEN: self._rows, TO_BE_EMITTED: self._ready}


class OrderBy(Stateless):
    """Adds the columns of a `Ranking` to rows: the keys' values and copies of what breaks ties.

    >>> from streamsparql.physical.operators.access import Always
    >>> OrderBy(Always.of({}, 0), [], ["x"]).ranking.columns
    ('.by x',)
    """

    implements = (shape.OrderBy,)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        keys: Sequence[tuple[BatchExpression, bool]],
        columns: Sequence[str],
    ) -> None:
        self._keys = {sorting_column(k): values for k, (values, _) in enumerate(keys)}
        self._ties = {tie_column(name): name for name in columns}
        down = (descending for _, descending in keys)
        self.ranking = Ranking(tuple(zip(self._keys, down, strict=True)), tuple(self._ties))
        kept = [name for name in input.names if name not in self.ranking.columns]
        super().__init__((*kept, *self.ranking.columns), input)

    @override
    def apply(self, batch: Batch) -> Batch:
        made: Mapping[str, IntArray] = {n: key.values(batch) for n, key in self._keys.items()}
        ties = {tie: batch.column(name) for tie, name in self._ties.items()}
        return batch.with_columns({**made, **ties}).project(self.names)

    @override
    def memos(self) -> Iterable[Memo]:
        return self._keys.values()

    @override
    def facts(self) -> str:
        return ", ".join("descending" if down else "ascending" for _, down in self.ranking.keys)
