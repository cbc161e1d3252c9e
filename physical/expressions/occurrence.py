"""The times of events in expressions: getSTARTTIME(), getENDTIME() and getDURATION().

They are hidden variables (algebra/expressions.py). Rows about events have them as numbers, so
comparisons with constants need no terms; terms are made only where an expression reads them
otherwise. Solutions without an occurrence leave them unbound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from streamsparql.algebra.bounds import time_comparison
from streamsparql.algebra.expressions import OCCURRENCE
from streamsparql.algebra.rules.conditions import conjunction, conjuncts, variables_in
from streamsparql.algebra.solutions import Expression
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.xsd.values import date_time_literal, duration_literal
from streamsparql.physical.batch import UNBOUND, Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import BatchExpression
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import starts_of, static_rows

START, END, DURATION = (variable.name for variable in OCCURRENCE.values())
TIMES = (START, END, DURATION)
"""The columns of the times of events."""


def milliseconds(rows: Batch, name: str) -> IntArray:
    """Return a time of each event; arbitrary numbers for static solutions."""
    if name == END:
        return rows.start
    starts = starts_of(rows.columns[SINCE])
    return starts if name == START else rows.start - starts


def with_times(rows: Batch, names: Iterable[str], terms: TermDictionary) -> Batch:
    """Return rows with columns of times as terms.

    >>> from streamsparql.physical.kernels.occurrences import since_of
    >>> rows = Batch({SINCE: since_of(np.array([500]))}, np.array([2_000]), np.array([2_001]))
    >>> terms = TermDictionary()
    >>> terms.term_of(with_times(rows, [DURATION], terms).columns[DURATION][0]).lexical
    'PT1.5S'
    """
    columns = {name: _terms_of(rows, name, terms) for name in names}
    return rows.with_columns(columns) if columns else rows


def _terms_of(rows: Batch, name: str, terms: TermDictionary) -> IntArray:
    """Return a time of each event as a term; unbound for static solutions."""
    ids = np.full(len(rows), UNBOUND, np.int64)
    moving = ~static_rows(rows)
    distinct, places = np.unique(milliseconds(rows, name)[moving], return_inverse=True)
    literal = duration_literal if name == DURATION else date_time_literal
    ids[moving] = terms.ids_of(map(literal, distinct.tolist()))[places]
    return ids


class EventExpression:
    """A compiled expression over rows about events, with the times that it reads as terms."""

    def __init__(
        self, expression: Expression, compiled: BatchExpression, terms: TermDictionary
    ) -> None:
        self.names = frozenset(variable.name for variable in variables_in(expression))
        """The columns that it reads."""
        self._compiled, self._terms = compiled, terms
        self._times = [name for name in TIMES if name in self.names]

    def holds(self, batch: Batch) -> BoolArray:
        """Return a mask of the rows for which the expression is true as a condition."""
        return self._compiled.holds(with_times(batch, self._times, self._terms))

    def values(self, batch: Batch) -> IntArray:
        """Return the values, 0 for an error."""
        return self._compiled.values(with_times(batch, self._times, self._terms))

    def forget(self) -> None:
        """Drop the results that are memoised by id: ids are reused for other terms."""
        self._compiled.forget()


class EventCondition:
    """A condition on rows about events: comparisons of times with constants, and the rest."""

    def __init__(
        self, condition: Expression, compile_: Callable[[Expression], EventExpression]
    ) -> None:
        self.names = frozenset(variable.name for variable in variables_in(condition))
        """The columns that it reads."""
        compared = [(time_comparison(conjunct), conjunct) for conjunct in conjuncts(condition)]
        self.comparisons = [comparison for comparison, _ in compared if comparison is not None]
        """The comparisons of times, as the time, the symbol and the limit."""
        rest = conjunction(conjunct for comparison, conjunct in compared if comparison is None)
        self.rest = None if rest is None else compile_(rest)
        """The other conjuncts."""

    def holds(self, batch: Batch) -> BoolArray:
        """Return a mask of the rows for which the condition is true."""
        passes = np.ones(len(batch), np.bool_)
        if self.comparisons:
            passes = ~static_rows(batch)
        for variable, symbol, limit in self.comparisons:
            passes &= _compare(milliseconds(batch, variable.name), symbol, limit)
        if self.rest is None:
            return passes
        if passes.all():
            return self.rest.holds(batch)
        (places,) = passes.nonzero()
        if len(places):
            passes[places] = self.rest.holds(batch.take(places))
        return passes

    def forget(self) -> None:
        """Drop the results that are memoised by id: ids are reused for other terms."""
        if self.rest is not None:
            self.rest.forget()


def _compare(times: IntArray, symbol: str, limit: int | None) -> BoolArray:
    if limit is None:  # between two milliseconds, so no time equals it
        return np.full(len(times), symbol == "!=")
    limit = min(max(limit, -INFINITY), INFINITY)
    compared: BoolArray = _SYMBOLS[symbol](times, limit)
    return compared


_SYMBOLS: dict[str, Callable[[IntArray, int], BoolArray]] = {
    "<": np.less,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}
