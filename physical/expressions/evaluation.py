"""The base of vectorised evaluation, and its fallback: one binding after the other.

`OneByOne` evaluates any expression by `algebra.expressions`, once per distinct binding of the
variables that the expression reads, and memoises the results for later batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.expressions import evaluate, value_or_none
from streamsparql.algebra.functions import Run
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import Term
from streamsparql.algebra.xsd.literal_operators import effective_boolean_value
from streamsparql.limits import checked
from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import DECIMAL, TermDictionary
from streamsparql.physical.expressions.arithmetic import (
    IS_ERROR,
    IS_FALSE,
    IS_TRUE,
    NumericOperand,
    TruthArray,
)
from streamsparql.physical.expressions.memo import BindingMemo, ResultArray, ResultType
from streamsparql.physical.expressions.rows import BatchRows

Memos = list[BindingMemo | list[NumericOperand]]
"""The results that the sub-expressions of one expression memoise by id."""
Binding = tuple[Term | None, ...]
"""The terms of the variables that a sub-expression reads; None for an unbound one."""


class Evaluation(ABC):
    """The evaluation of a sub-expression on rows; each subclass implements `truth` or `ids`."""

    expensive = False
    """Whether it is evaluated one by one, so that it pays to select rows first."""
    depth = 0

    def __init__(self, slow: OneByOne) -> None:
        self.slow = slow

    def truth(self, rows: BatchRows) -> TruthArray:
        """Return the effective boolean value by row: IS_FALSE, IS_TRUE or IS_ERROR."""
        return self.slow.truth_of_terms(rows.terms, self.ids(rows))

    @abstractmethod
    def ids(self, rows: BatchRows) -> IntArray:
        """Return the value by row; 0 for an error."""

    def operand(self, rows: BatchRows) -> NumericOperand:
        """Return the value by row as the argument of a numeric operator."""
        return NumericOperand.of(rows.terms, self.ids(rows))


class OneByOne(Evaluation):
    """An expression that is evaluated once per distinct binding of the variables that it reads."""

    expensive = True

    def __init__(self, expression: Expression, run: Run, memos: Memos) -> None:
        super().__init__(self)
        self.expression, self._run, self.memos = expression, run, memos
        self._variables: tuple[Variable, ...] | None = None
        self._known: dict[type, BindingMemo] = {}
        self._judge: OneByOne | None = None

    def like(self, expression: Expression) -> OneByOne:
        """Return the evaluation of another expression, in the same run."""
        return OneByOne(expression, self._run, self.memos)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that the expression reads."""
        if self._variables is None:
            read = (node for node in self.expression.walk() if isinstance(node, Variable))
            self._variables = tuple(dict.fromkeys(read))
        return self._variables

    @override
    def truth(self, rows: BatchRows) -> TruthArray:
        truth: TruthArray = self._by_binding(rows, np.int8, self._truth)
        return truth

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        return self._by_binding(rows, np.int64, self._value(rows.terms))

    def constant(self, terms: TermDictionary) -> int:
        """Return the value of an expression without variables."""
        return self._value(terms)(())

    def truth_of_terms(self, terms: TermDictionary, ids: IntArray) -> TruthArray:
        """Return the effective boolean values of terms; IS_ERROR for 0."""
        values, kinds = terms.numbers(ids)
        true: BoolArray = (values != 0) & (values == values)
        truth = true.view(np.int8)
        doubtful = (kinds == 0) | ((kinds == DECIMAL) & (truth == IS_FALSE))
        if not doubtful.any():
            return truth
        for value, code in zip(terms.of_booleans(_BOTH).tolist(), (IS_FALSE, IS_TRUE), strict=True):
            known = ids == value
            truth[known] = code
            doubtful &= ~known
        truth[ids == UNBOUND] = IS_ERROR
        index = np.flatnonzero(doubtful & (ids != UNBOUND))
        if len(index):
            self._judge = self._judge or self.like(Variable(""))
            batch = Batch({"": ids[index]}, ids[index], ids[index])
            truth[index] = self._judge.truth(BatchRows(terms, batch))
        return truth

    def _by_binding(
        self, rows: BatchRows, kind: ResultType, evaluate_binding: Callable[[Binding], int]
    ) -> ResultArray:
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = BindingMemo(kind)
            self.memos.append(known)
        # Without variables, all rows have one binding.
        columns = [rows.ids(variable.name) for variable in self.variables] or [_NO_TERM]

        def compute(new: list[IntArray]) -> list[int]:
            if not self.variables:
                return [evaluate_binding(())]
            terms = [_terms_of(rows.terms, column) for column in new]
            return [evaluate_binding(binding) for binding in checked(zip(*terms, strict=True))]

        results = known.of(columns, compute)
        return results if self.variables else np.full(len(rows), results[0])

    def _row(self, binding: Binding) -> dict[Variable, Term]:
        pairs = zip(self.variables, binding, strict=True)
        return {variable: term for variable, term in pairs if term is not None}

    def _value(self, terms: TermDictionary) -> Callable[[Binding], int]:
        def value(binding: Binding) -> int:
            term = value_or_none(self.expression, self._row(binding), self._run)
            return UNBOUND if term is None else terms.id_of(term)

        return value

    def _truth(self, binding: Binding) -> int:
        try:
            value = evaluate(self.expression, self._row(binding), self._run)
            return int(effective_boolean_value(value))
        except ExpressionError:
            return IS_ERROR


_BOTH: BoolArray = np.array([False, True])
_NO_TERM: IntArray = np.zeros(1, np.int64)


def _terms_of(terms: TermDictionary, ids: IntArray) -> list[Term | None]:
    """Return the terms of ids, each distinct one created once."""
    distinct, inverse = np.unique(ids, return_inverse=True)
    if len(distinct) == len(ids):
        return terms.terms_of(ids)
    of_distinct = terms.terms_of(distinct)
    return [of_distinct[place] for place in inverse.tolist()]
