"""The base of vectorised evaluation, and what it falls back to: one binding after the other.

`OneByOne` knows every expression, since it asks `algebra.expressions`: once per distinct binding of
the variables that the expression reads, with the results kept for later batches.
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
"""What the sub-expressions of one expression keep, as it is about ids."""
Binding = tuple[Term | None, ...]
"""The terms of the variables that a sub-expression reads; None for an unbound one."""


class Evaluation(ABC):
    """A sub-expression on rows. Each kind gives its truth or its terms; the rest follows."""

    expensive = False
    """Whether it works one by one, so that it pays to ask it about few rows."""
    depth = 0

    def __init__(self, slow: OneByOne) -> None:
        self.slow = slow

    def truth(self, rows: BatchRows) -> TruthArray:
        """Its effective boolean value by row: FALSE, TRUE or ERROR."""
        return self.slow.truth_of_terms(rows.terms, self.ids(rows))

    @abstractmethod
    def ids(self, rows: BatchRows) -> IntArray:
        """Its value by row; 0 for an error."""

    def operand(self, rows: BatchRows) -> NumericOperand:
        """Its value by row, as operators on numbers see it."""
        return NumericOperand.of(rows.terms, self.ids(rows))


class OneByOne(Evaluation):
    """What has no short cut: evaluated once per distinct binding of the variables that it reads."""

    expensive = True

    def __init__(self, expression: Expression, run: Run, kept: Memos) -> None:
        super().__init__(self)
        self.expression, self._run, self.kept = expression, run, kept
        self._variables: tuple[Variable, ...] | None = None
        self._known: dict[type, BindingMemo] = {}
        self._judge: OneByOne | None = None

    def like(self, expression: Expression) -> OneByOne:
        """The same of another expression."""
        return OneByOne(expression, self._run, self.kept)

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
        """Its value, where it reads no variable."""
        return self._value(terms)(())

    def truth_of_terms(self, terms: TermDictionary, ids: IntArray) -> TruthArray:
        """The effective boolean values of terms; ERROR for 0."""
        found = terms.numbers(ids)
        true: BoolArray = (found.values != 0) & (found.values == found.values)
        truth = true.view(np.int8)
        doubtful = (found.kinds == 0) | ((found.kinds == DECIMAL) & (truth == IS_FALSE))
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
        self, rows: BatchRows, kind: ResultType, one: Callable[[Binding], int]
    ) -> ResultArray:
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = BindingMemo(kind)
            self.kept.append(known)
        # Without variables, all rows are bound as "no term" is.
        columns = [rows.ids(variable.name) for variable in self.variables] or [_NO_TERM]

        def work_out(new: list[IntArray]) -> list[int]:
            if not self.variables:
                return [one(())]
            terms = [_terms_of(rows.terms, column) for column in new]
            return [one(binding) for binding in zip(*terms, strict=True)]

        found = known.of(columns, work_out)
        return found if self.variables else np.full(len(rows), found[0])

    def _row(self, binding: Binding) -> dict[Variable, Term]:
        pairs = zip(self.variables, binding, strict=True)
        return {variable: term for variable, term in pairs if term is not None}

    def _value(self, terms: TermDictionary) -> Callable[[Binding], int]:
        def value(binding: Binding) -> int:
            found = value_or_none(self.expression, self._row(binding), self._run)
            return UNBOUND if found is None else terms.id_of(found)

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
    """The terms of ids, each made once."""
    distinct, inverse = np.unique(ids, return_inverse=True)
    if len(distinct) == len(ids):
        return terms.terms_of(ids)
    made = terms.terms_of(distinct)
    return [made[place] for place in inverse.tolist()]
