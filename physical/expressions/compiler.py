"""The compilation of expressions for vectorised evaluation: over all rows of a batch at once.

Equality, order, arithmetic and the logic of `||`, `&&` and `!` are computed on arrays. Where arrays
do not decide, and for every other function, `algebra.expressions.evaluate` is called, once per
distinct binding of the variables that the sub-expression reads, with memoised results. So there is
one semantics, and this module adds fast paths.

    FILTER(?v > 22.5 && REGEX(?name, "^a"))

        And                      three-valued, cheap parts first
         |- Comparison           doubles and int64; undecided rows: one by one
         `- OneByOne             for the rows that are left, per distinct ?name
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from streamsparql.algebra.expressions import (
    And,
    Bound,
    Call,
    Coalesce,
    Constant,
    If,
    In,
    Not,
    Or,
)
from streamsparql.algebra.functions import Run
from streamsparql.algebra.node import Node
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term
from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import (
    BLANK_SORT,
    IRI_SORT,
    LITERAL_SORT,
    TermDictionary,
)
from streamsparql.physical.expressions.arithmetic import (
    CALCULATED,
    COMPARED,
    IS_ERROR,
    IS_FALSE,
    IS_TRUE,
    NOT_VECTORISED,
    ROUNDED,
    NumericOperand,
    TruthArray,
    calculate,
    compare_numbers,
    round_numbers,
    terms_of,
)
from streamsparql.physical.expressions.evaluation import Evaluation, Memos, OneByOne
from streamsparql.physical.expressions.id_comparison import MIRRORED, against, among, between
from streamsparql.physical.expressions.rows import BatchRows
from streamsparql.physical.expressions.string_building import TemplateEvaluation, string_template


class BatchExpression(Protocol):
    """The interface of expressions for operators."""

    def holds(self, batch: Batch) -> BoolArray:
        """Return a mask of the rows for which the expression is true as a condition."""

    def values(self, batch: Batch) -> IntArray:
        """Return the values, 0 for an error."""

    def forget(self) -> None:
        """Drop the results that are memoised by id: ids are reused for other terms."""


class CompiledExpression:
    """An expression that is ready for batches.

    >>> from streamsparql.algebra.terms import integer
    >>> terms = TermDictionary()
    >>> small = Call("<", (Variable("x"), Constant(integer(2))))
    >>> ids = terms.of_integers(np.array([1, 2, 3]))
    >>> batch = Batch({"x": ids}, np.zeros(3, np.int64), np.full(3, 9))
    >>> compile_expression(small, terms, Run()).holds(batch).tolist()
    [True, False, False]
    """

    def __init__(self, root: Evaluation, terms: TermDictionary, memos: Memos) -> None:
        self._root, self._terms, self._memos = root, terms, memos

    def holds(self, batch: Batch) -> BoolArray:
        """Return a mask of the rows whose effective boolean value is true; an error is not."""
        holds: BoolArray = self._root.truth(BatchRows(self._terms, batch)) == IS_TRUE
        return holds

    def holds_or_fails(self, batch: Batch) -> tuple[BoolArray, BoolArray]:
        """Return the mask of `holds`, and one of the rows for which the condition is an error."""
        truth = self._root.truth(BatchRows(self._terms, batch))
        return truth == IS_TRUE, truth == IS_ERROR

    def values(self, batch: Batch) -> IntArray:
        """Return the values; 0, which means unbound, for an error."""
        return self._root.ids(BatchRows(self._terms, batch))

    def forget(self) -> None:
        """Drop the results that are memoised by id: the dictionary reuses ids for other terms."""
        for memo in self._memos:
            memo.clear()


def compile_expression(
    expression: Expression, terms: TermDictionary, run: Run
) -> CompiledExpression:
    """Compile an expression for batches whose terms are in `terms`."""
    memos: Memos = []

    def compile_node(node: Node, parts: list[Evaluation | None]) -> Evaluation | None:
        """Compile a node; None for one without variables: only the largest of these is compiled."""
        assert isinstance(node, Expression)
        if not isinstance(node, Variable) and not any(parts):
            return None
        inner = [part or constant(own) for part, own in zip(parts, node.parts(), strict=True)]
        slow = OneByOne(node, run, memos)
        depth = _depth(node, inner)
        evaluation = slow if depth > _DEEPEST else _evaluation(node, inner, slow)
        evaluation.depth = depth
        return evaluation

    def constant(node: Node) -> Evaluation:
        assert isinstance(node, Expression)
        return _Fixed(OneByOne(node, run, memos))

    root = expression.fold(compile_node) or constant(expression)
    return CompiledExpression(root, terms, memos)


_DEEPEST = 70
"""Deeper expressions are evaluated one by one: `evaluate` needs fewer frames per level."""


def _depth(node: Node, inner: Sequence[Evaluation]) -> int:
    """Return the depth of the recursion, in levels; a chain such as `?a + ?b + ..` is one level."""
    depths = [part.depth for part in inner]
    if isinstance(node, Call) and node.args and isinstance(node.args[0], Call):
        depths[0] -= 1
    return 1 + max(depths, default=0)


def _evaluation(node: Expression, inner: list[Evaluation], slow: OneByOne) -> Evaluation:
    match node:
        case Variable(name):
            return _Column(name, slow)
        case Call(symbol, _) if symbol in COMPARED:
            return _Comparison(str(symbol), inner[0], inner[1], slow)
        case Call("SAMETERM", _):
            return _SameTerm(inner[0], inner[1], slow)
        case Call(symbol, _) if symbol in CALCULATED or symbol in ROUNDED:
            return _Calculation(str(symbol), inner, slow)
        case Call(name, _) if name in _SORTS or name == "ISNUMERIC":
            return _Test(str(name), inner[0], slow)
        case And() | Or():
            return _Decision(inner, isinstance(node, Or), slow)
        case Not():
            return _Negation(inner[0], slow)
        case Bound(Variable(name)):
            return _IsBound(name, slow)
        case If():
            return _Choice(inner, slow)
        case Coalesce():
            return _First(inner, slow)
        case In():
            return _Among(node, inner, slow)
    template = string_template(node)
    return slow if template is None else TemplateEvaluation(template, slow)


# -- Leaves -------------------------------------------------------------------------------------


class _Column(Evaluation):
    """A variable."""

    def __init__(self, name: str, slow: OneByOne) -> None:
        super().__init__(slow)
        self._name = name

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        return rows.ids(self._name)

    @override
    def operand(self, rows: BatchRows) -> NumericOperand:
        return rows.operand(self, super().operand)


class _Fixed(Evaluation):
    """A constant, or an expression of constants."""

    def __init__(self, slow: OneByOne) -> None:
        super().__init__(slow)
        self._memo: list[NumericOperand] = []
        slow.memos.append(self._memo)

    @property
    def term(self) -> Term | None:
        """The term, if the expression is a term."""
        match self.slow.expression:
            case Constant(term):
                return term
        return None

    @override
    def truth(self, rows: BatchRows) -> TruthArray:
        return self.slow.truth(rows)

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        ids = self.operand(rows).ids
        assert ids is not None
        return np.full(len(rows), ids[0])

    @override
    def operand(self, rows: BatchRows) -> NumericOperand:
        if not self._memo:
            ids = np.array([self.slow.constant(rows.terms)], np.int64)
            self._memo.append(NumericOperand.of(rows.terms, ids))
        return self._memo[0]


class _IsBound(Evaluation):
    """BOUND."""

    def __init__(self, name: str, slow: OneByOne) -> None:
        super().__init__(slow)
        self._name = name

    @override
    def truth(self, rows: BatchRows) -> TruthArray:
        bound: BoolArray = rows.ids(self._name) != UNBOUND
        return bound.view(np.int8)

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        return _booleans(rows, self.truth(rows))


def _booleans(rows: BatchRows, truth: TruthArray) -> IntArray:
    """Return the xsd:booleans of truths; 0 for an error."""
    ids = rows.terms.of_booleans(truth == IS_TRUE)
    return np.where(truth == IS_ERROR, UNBOUND, ids) if (truth == IS_ERROR).any() else ids


# -- Operators ----------------------------------------------------------------------------------


class _Condition(Evaluation):
    """An expression whose value is a boolean or an error."""

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        return _booleans(rows, self.truth(rows))


class _Comparison(_Condition):
    """`=`, `<` and the other comparisons."""

    def __init__(self, symbol: str, a: Evaluation, b: Evaluation, slow: OneByOne) -> None:
        super().__init__(slow)
        self._symbol, self._a, self._b = symbol, a, b
        self.expensive = a.expensive or b.expensive

    @override
    def truth(self, rows: BatchRows) -> TruthArray:
        truth = self._by_ids(rows)
        if truth is None:
            return _settled(self._by_values(rows), rows, self.slow)
        if len(truth) and truth.max() == NOT_VECTORISED:
            index = np.flatnonzero(truth == NOT_VECTORISED)
            few = rows.take(index)
            truth[index] = _settled(self._by_values(few), few, self.slow)
        return truth

    def _by_values(self, rows: BatchRows) -> TruthArray:
        return compare_numbers(self._symbol, self._a.operand(rows), self._b.operand(rows))

    def _by_ids(self, rows: BatchRows) -> TruthArray | None:
        """Compare columns and constants by ids; None if ids do not decide."""
        match self._a, self._b:
            case _Column() as column, _Column() as other:
                return between(self._symbol, column.ids(rows), other.ids(rows))
            case _Column() as column, _Fixed(term=IRI() | BlankNode() | Literal() as term):
                return against(self._symbol, column.ids(rows), term, rows.terms)
            case _Fixed(term=IRI() | BlankNode() | Literal() as term), _Column() as column:
                return against(MIRRORED[self._symbol], column.ids(rows), term, rows.terms)
        return None


def _settled(truth: TruthArray, rows: BatchRows, slow: OneByOne) -> TruthArray:
    """Return the truth with undecided rows evaluated one by one."""
    if not len(truth) or truth.max() < NOT_VECTORISED:
        return truth
    index = np.flatnonzero(truth == NOT_VECTORISED)
    truth[index] = slow.truth(rows.take(index))
    return truth


class _SameTerm(_Condition):
    """sameTerm: equal ids."""

    def __init__(self, a: Evaluation, b: Evaluation, slow: OneByOne) -> None:
        super().__init__(slow)
        self._a, self._b = a, b
        self.expensive = a.expensive or b.expensive

    @override
    def truth(self, rows: BatchRows) -> TruthArray:
        one, other = self._a.ids(rows), self._b.ids(rows)
        unbound = (one == UNBOUND) | (other == UNBOUND)
        return np.where(unbound, IS_ERROR, one == other).astype(np.int8)


_SORTS = {"ISIRI": IRI_SORT, "ISURI": IRI_SORT, "ISBLANK": BLANK_SORT, "ISLITERAL": LITERAL_SORT}


class _Test(_Condition):
    """isIRI, isBlank, isLiteral, isNumeric."""

    def __init__(self, name: str, arg: Evaluation, slow: OneByOne) -> None:
        super().__init__(slow)
        self._name, self._arg = name, arg
        self.expensive = arg.expensive

    @override
    def truth(self, rows: BatchRows) -> TruthArray:
        ids, terms = self._arg.ids(rows), rows.terms
        sort = _SORTS.get(self._name)
        holds = terms.numbers(ids).kinds > 0 if sort is None else terms.sorts(ids) == sort
        return np.where(ids == UNBOUND, IS_ERROR, holds).astype(np.int8)


class _Calculation(Evaluation):
    """Arithmetic on numbers."""

    def __init__(self, symbol: str, args: Sequence[Evaluation], slow: OneByOne) -> None:
        super().__init__(slow)
        self._symbol, self._args = symbol, args
        self.expensive = any(arg.expensive for arg in args)

    @override
    def operand(self, rows: BatchRows) -> NumericOperand:
        chain = [self]
        while isinstance(first := chain[-1]._args[0], _Calculation):
            chain.append(first)
        result = chain[-1]._args[0].operand(rows)
        for link in reversed(chain):
            if len(link._args) == 1:
                result = round_numbers(link._symbol, result)
            else:
                result = calculate(link._symbol, result, link._args[1].operand(rows))
        return result

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        ids, unknown = terms_of(self.operand(rows))
        index = np.flatnonzero(unknown)
        if len(index):
            ids[index] = self.slow.ids(rows.take(index))
        return ids


class _Decision(_Condition):
    """`||` and `&&`: the first part that is true (for `||`) or false (for `&&`) decides a row."""

    def __init__(self, args: Sequence[Evaluation], until: bool, slow: OneByOne) -> None:
        super().__init__(slow)
        self.args = sorted(args, key=lambda arg: arg.expensive)
        self._until = IS_TRUE if until else IS_FALSE
        self.expensive = any(arg.expensive for arg in args)

    @override
    def truth(self, rows: BatchRows) -> TruthArray:
        result = np.full(len(rows), 1 - self._until, np.int8)
        for arg in self.args:
            undecided = result != self._until
            left = np.count_nonzero(undecided)
            if not left:
                break
            # Selecting rows costs more than evaluating a cheap part on all of them.
            if left == len(rows) or (not arg.expensive and 4 * left > len(rows)):
                truth = arg.truth(rows)
                better = undecided & (truth != 1 - self._until)
                np.copyto(result, truth, where=better)
            else:
                index = np.flatnonzero(undecided)
                truth = arg.truth(rows.take(index))
                result[index] = np.where(truth == 1 - self._until, result[index], truth)
        return result


class _Negation(_Condition):
    """`!`."""

    def __init__(self, arg: Evaluation, slow: OneByOne) -> None:
        super().__init__(slow)
        self._arg = arg
        self.expensive = arg.expensive

    @override
    def truth(self, rows: BatchRows) -> TruthArray:
        return _NEGATED[self._arg.truth(rows)]


_NEGATED: TruthArray = np.array([IS_TRUE, IS_FALSE, IS_ERROR], np.int8)


class _Choice(Evaluation):
    """IF."""

    def __init__(self, args: Sequence[Evaluation], slow: OneByOne) -> None:
        super().__init__(slow)
        self._condition, *self._branches = args
        self.expensive = any(arg.expensive for arg in args)

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        truth = self._condition.truth(rows)
        result = np.zeros(len(rows), np.int64)
        for code, branch in zip((IS_TRUE, IS_FALSE), self._branches, strict=True):
            index = np.flatnonzero(truth == code)
            if len(index):
                result[index] = branch.ids(rows.take(index))
        return result


class _First(Evaluation):
    """COALESCE."""

    def __init__(self, args: Sequence[Evaluation], slow: OneByOne) -> None:
        super().__init__(slow)
        self._args = args
        self.expensive = any(arg.expensive for arg in args)

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        result = np.zeros(len(rows), np.int64)
        index = np.arange(len(rows))
        for arg in self._args:
            result[index] = arg.ids(rows.take(index))
            index = np.flatnonzero(result == UNBOUND)
            if not len(index):
                break
        return result


class _Shared(Evaluation):
    """An argument that several operators read, evaluated once per batch."""

    def __init__(self, arg: Evaluation) -> None:
        super().__init__(arg.slow)
        self._arg = arg
        self.expensive = arg.expensive

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        ids = self.operand(rows).ids
        return self._arg.ids(rows) if ids is None else ids

    @override
    def operand(self, rows: BatchRows) -> NumericOperand:
        return rows.operand(self, self._arg.operand)


class _Among(_Condition):
    """IN: a single comparison by ids if they decide, else a chain of `=`."""

    def __init__(self, node: In, inner: Sequence[Evaluation], slow: OneByOne) -> None:
        super().__init__(slow)
        arg, *options = inner
        self._arg = arg if isinstance(arg, _Fixed | _Column) else _Shared(arg)
        written = [option.term for option in options if isinstance(option, _Fixed)]
        self._terms = [term for term in written if term is not None]
        self._together = isinstance(arg, _Column) and len(self._terms) == len(options)
        equalities: list[Evaluation] = [
            _Comparison("=", self._arg, option, slow.like(Call("=", (node.arg, written_as))))
            for option, written_as in zip(options, node.options, strict=True)
        ]
        self._chain = _Decision(equalities, True, slow)
        self.expensive = any(arg.expensive for arg in inner)

    @override
    def truth(self, rows: BatchRows) -> TruthArray:
        if self._together:
            truth = among(self._arg.ids(rows), self._terms, rows.terms)
            if truth is not None:
                return truth
        if not self._chain.args:
            return np.where(self._arg.ids(rows) == UNBOUND, IS_ERROR, IS_FALSE).astype(np.int8)
        return self._chain.truth(rows)
