"""The evaluation of a mapping's WHERE clause over rows, which notes the cells without a value.

The engine's operators evaluate the clause. Each expression is watched: where it has no value
although all variables that it reads are bound, as for `xsd:integer("n/a")`, a cell of the table
does not fit the mapping. A variable that is unbound, such as an empty cell, is not such a case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from streamsparql.algebra.functions import Run
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.traversal import recursion_headroom
from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import BatchExpression, compile_expression
from streamsparql.physical.lowering.lower import HERE, At, Catalog, Lowering
from streamsparql.physical.operators.access import Always
from streamsparql.physical.pipeline import Pipeline
from streamsparql.sources.failed_cells import MAX_EXAMPLES
from streamsparql.sources.mapping import ROW_VARIABLE, TEXT, CompiledMapping
from streamsparql.translator.sparql_text import Writer


class FailedRows(NamedTuple):
    """The rows for which an expression has no value, and the first values that it read."""

    columns: tuple[str, ...]
    expression: str
    rows: IntArray
    values: tuple[str, ...]


FailureReport = Callable[[FailedRows], None]


def evaluate_mapping(
    mapping: CompiledMapping,
    columns: Mapping[str, IntArray],
    terms: TermDictionary,
    run: Run,
    report: FailureReport,
) -> Batch:
    """Return the solutions of a mapping's WHERE clause; `report` is called with failed rows.

    `columns` has the ids of each variable of the mapping's table, `ROW_VARIABLE` among them.
    """
    count = len(columns[ROW_VARIABLE])
    rows = Batch(dict(columns), np.zeros(count, np.int64), np.full(count, _ALWAYS))
    catalog = Catalog(results={mapping.table: rows})
    with recursion_headroom():
        lowering = _WatchedLowering(terms, run, catalog, mapping, report)
        operator = lowering.plan(mapping.plan, HERE).plain
    if isinstance(operator, Always):
        return operator.rows.expanded()
    solutions, _ = Pipeline(operator, terms).step({}, {})
    return solutions.expanded()


_ALWAYS = (1 << 63) - 1


class _WatchedLowering(Lowering):
    """A lowering whose expressions are watched."""

    def __init__(
        self,
        terms: TermDictionary,
        run: Run,
        catalog: Catalog,
        mapping: CompiledMapping,
        report: FailureReport,
    ) -> None:
        super().__init__(terms, run, catalog, None, ())
        self._report = report
        self._write = Writer(
            mapping.prefixes, lambda variable: f"?{variable.name.removesuffix(TEXT)}"
        )

    @override
    def compiled(self, expression: Expression, at: At) -> BatchExpression:
        return _Watched(expression, self.terms, self.run, self._write, self._report)


class _Watched:
    """An expression that reports the rows for which it has no value."""

    def __init__(
        self,
        expression: Expression,
        terms: TermDictionary,
        run: Run,
        write: Writer,
        report: FailureReport,
    ) -> None:
        self._expression, self._terms = expression, terms
        self._compiled = compile_expression(expression, terms, run)
        read = (v for v in expression.walk() if isinstance(v, Variable) and not v.hidden)
        self._names = tuple(dict.fromkeys(variable.name for variable in read))
        self._write, self._report_rows = write, report

    def holds(self, batch: Batch) -> BoolArray:
        """Return a mask of the rows for which the expression is true as a condition."""
        holds, failed = self._compiled.holds_or_fails(batch)
        if failed.any():
            self._report(batch, failed, f"FILTER{self._write.condition(self._expression)}")
        return holds

    def values(self, batch: Batch) -> IntArray:
        """Return the values, 0 for an error."""
        ids = self._compiled.values(batch)
        failed = ids == UNBOUND
        if failed.any():
            self._report(batch, failed, self._write.expression(self._expression))
        return ids

    def forget(self) -> None:
        """Drop the results that are memoised by id."""
        self._compiled.forget()

    def _report(self, batch: Batch, failed: BoolArray, text: str) -> None:
        """FailureReport the rows whose variables are all bound."""
        if ROW_VARIABLE not in batch.columns:  # a group that does not see the columns
            return
        for name in self._names:
            failed = failed & (batch.column(name) != UNBOUND)
        places = np.flatnonzero(failed)
        if not self._names or not len(places):
            return
        rows, first = np.unique(
            self._terms.integers_of(batch.column(ROW_VARIABLE)[places]), return_index=True
        )
        shown = places[first[:MAX_EXAMPLES]]
        values = self._terms.texts(batch.column(self._names[0])[shown]).to_pylist()
        columns = tuple(dict.fromkeys(name.removesuffix(TEXT) for name in self._names))
        self._report_rows(FailedRows(columns, text, rows, tuple(map(str, values))))
