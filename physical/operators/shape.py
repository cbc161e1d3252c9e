"""The shape of solutions: projection, BIND, DISTINCT, ORDER BY, numbering (twins of algebra.shape).

`Distinct` is the union of the validities of equal rows (SEMANTICS.md section 5). A new element
`[ts, te)` of a row that is covered until `c` adds `[max(ts, c), te)`, if that is not empty, and it
is final at once. So a row that recurs, as in a sliding window, is emitted in adjoining pieces.
`TemporalCoalesce` (report.py) joins such pieces; `Number` distinguishes equal rows.

The order of rows in a snapshot is independent of time, so `OrderBy` moves no rows: it adds the
hidden columns of a `Ranking`, by which a `Slice` (slice.py), or a reader of a snapshot, sorts.
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
from streamsparql.physical.state.parts import TO_BE_EMITTED, Memo, Stateful
from streamsparql.physical.state.unions import DistinctRows


class Projection(Stateless):
    """The rows with only certain columns; those that the input lacks are unbound.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7]), "y": np.array([8])}, 1)
    >>> projected = Projection(rows, ["y", "z"]).apply(rows.rows)
    >>> projected.columns["y"].tolist(), projected.columns["z"].tolist()
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
    """Return an operator with only these columns, in this order; `rows` itself if it has them.

    >>> from streamsparql.physical.operators.access import Always
    >>> rows = Always.of({"x": np.array([7])}, 1)
    >>> projected_to(rows, ["x"]) is rows, projected_to(rows, []).names
    (True, ())
    """
    return rows if rows.names == tuple(names) else Projection(rows, names)


class Extend(Stateless):
    """The rows with a variable bound to the value of an expression; unchanged for an error."""

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
        self.name = variable.name
        self._compiled = compiled

    @override
    def apply(self, batch: Batch) -> Batch:
        values = self._compiled.values(batch)
        before = batch.columns.get(self.name)
        if before is not None:
            values = np.where(values == UNBOUND, before, values)
        return batch.with_columns({self.name: values})

    @override
    def memos(self) -> Iterable[Memo]:
        return (self._compiled,)

    @override
    def facts(self) -> str:
        return f"?{self.name} := {self.expression!r}"


class Distinct(Operator):
    """The union of the validities of each distinct row of these columns."""

    implements = (shape.Distinct,)
    state = "per distinct row that holds, its end"

    def __init__(self, input: Operator, columns: Sequence[str]) -> None:  # noqa: A002 -- the role
        super().__init__(columns, input)
        self._rows = DistinctRows(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (watermark,) = watermarks
        return self._rows.consume(batches[0], watermark), watermark

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"rows": self._rows}


class LatestStamps(Aggregation):
    """Each distinct row with the greatest of the stamps of equal live rows.

    When a row recurs, its validity is cut, and continues with the new stamp. So unlike `Distinct`,
    this operator emits a row when it ends.
    """

    implements = (shape.Distinct,)
    state = "the rows that hold; per distinct row its stamps, and their start"

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
    def _always_exists(self) -> bool:
        return False


class Number(Operator):
    """The rows with a column that numbers equal rows: k for the k-th level of a row.

    Rows that differ in stamps only are equal, and numbered in the order of their stamps.
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
    """The rows with the columns of a `Ranking`: values of the keys, and copies that break ties.

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
        kept = self.ranking.others(input.names)
        super().__init__((*kept, *self.ranking.columns), input)

    @override
    def apply(self, batch: Batch) -> Batch:
        keys: Mapping[str, IntArray] = {n: key.values(batch) for n, key in self._keys.items()}
        ties = {tie: batch.column(name) for tie, name in self._ties.items()}
        return batch.with_columns({**keys, **ties}).project(self.names)

    @override
    def memos(self) -> Iterable[Memo]:
        return self._keys.values()

    @override
    def facts(self) -> str:
        return ", ".join("descending" if down else "ascending" for _, down in self.ranking.keys)
