"""Expressions over batches, compared with the evaluation by `algebra.expressions` row by row.

Random expressions over random rows, with all kinds of terms, are evaluated both ways: the ids of
the values and the rows that a filter keeps must be the same. Not covered: errors of the algebra,
which has its own tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.expressions import RUN, any_terms, numbers, term

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
    Volatile,
    passes,
    value_or_none,
)
from streamsparql.algebra.functions import FUNCTIONS, Run
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, XSD, XSD_STRING, Literal, Term
from streamsparql.algebra.xsd.numeric import Numeric, Single
from streamsparql.algebra.xsd.values import literal_of
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions import evaluation, memo
from streamsparql.physical.expressions.compiler import compile_expression
from streamsparql.physical.expressions.memo import BindingMemo
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.filter import Filter
from streamsparql.physical.operators.shape import Extend

X, Y, Z = map(Variable, "xyz")
Row = dict[Variable, Term]

extreme = st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**64, 10**18])
near = st.sampled_from(["1", "1.0", "1e0", '"1"^^xsd:float', "2", "2.5", "0.1", "0.1e0", "-0e0"])
some_terms = st.one_of(
    any_terms, near.map(term), st.one_of(extreme, numbers, st.booleans()).map(literal_of)
)
rows = st.lists(
    st.dictionaries(st.sampled_from([X, Y, Z]), some_terms, max_size=3), min_size=1, max_size=12
)
leaves: st.SearchStrategy[Expression] = st.one_of(
    st.sampled_from([X, Y, Z]),
    st.sampled_from([X, Y, Z]),
    some_terms.map(Constant),
    st.sampled_from([X, Y, Z]).map(Bound),
)
BINARY = ["=", "!=", "<", ">", "<=", ">=", "SAMETERM", "+", "-", "*", "/", "CONTAINS"]
UNARY = ["u-", "u+", "ABS", "CEIL", "FLOOR", "ROUND", "STR", "ISNUMERIC", "STRLEN", "YEAR"]


def _nested(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    operands = st.lists(inner, min_size=2, max_size=4).map(tuple)
    volatile = st.sampled_from([("RAND", ()), ("BNODE", (X,)), ("STRUUID", ())])
    return st.one_of(
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(BINARY[:6]), inner, inner),
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(BINARY), inner, inner),
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(UNARY), inner),
        operands.map(And),
        operands.map(Or),
        inner.map(Not),
        st.builds(If, inner, inner, inner),
        operands.map(Coalesce),
        st.builds(In, inner, st.lists(inner, max_size=4).map(tuple)),
        volatile.map(lambda call: Volatile(*call, (X, Y), 1)),
    )


expressions = st.recursive(leaves, _nested, max_leaves=8)
flat = _nested(leaves)


def batch_of(terms: TermDictionary, rows: Sequence[Row]) -> Batch:
    """Encode rows as a batch; a variable that no row binds has no column."""
    columns = {
        v.name: np.array([terms.id_of(row[v]) if v in row else 0 for row in rows], np.int64)
        for v in (X, Y, Z)
        if any(v in row for row in rows)
    }
    return Batch(columns, np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64))


def check(expression: Expression, *batches: Sequence[Row], forget: bool = False) -> None:
    """Compare both evaluations on several batches; optionally forget memoised values in between."""
    terms = TermDictionary()
    fast = compile_expression(expression, terms, RUN)
    for rows in batches:
        batch = batch_of(terms, rows)
        assert fast.holds(batch).tolist() == [passes(expression, row, RUN) for row in rows]
        expected = [value_or_none(expression, row, RUN) for row in rows]
        values = fast.values(batch)
        assert values.dtype == np.int64
        assert [terms.term_of(id_) if id_ else None for id_ in values.tolist()] == expected
        ids = [0 if value is None else terms.id_of(value) for value in expected]
        assert values.tolist() == ids
        if forget:
            fast.forget()


@given(flat, rows)
@settings(max_examples=250)
def test_each_operator_agrees_with_the_algebra(expression: Expression, batch: list[Row]):
    check(expression, batch)


@given(expressions, rows, rows, st.booleans())
@settings(max_examples=150)
def test_nested_expressions_agree_on_several_batches(
    expression: Expression, first: list[Row], second: list[Row], forget: bool
):
    check(expression, first, second, forget=forget)


@pytest.mark.long
@given(st.one_of(flat, expressions), rows, rows)
@settings(max_examples=20_000)
def test_many_expressions_agree_with_the_algebra(
    expression: Expression, first: list[Row], second: list[Row]
):
    check(expression, first, second)


@given(st.sampled_from(BINARY[:11]), st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40))
@settings(max_examples=100)
def test_binary_operators_accept_numbers_of_all_types(
    symbol: str, pairs: list[tuple[Numeric, Numeric]]
):
    table = [{X: literal_of(x), Y: literal_of(y)} for x, y in pairs]
    check(Call(symbol, (X, Y)), table)


bounds = st.one_of(
    st.sampled_from(
        [0, 1, 1.0, 0.0, -0.0, math.nan, math.inf, -math.inf, 2.5, 2**53, 1e300, 1e-300]
    ),
    st.sampled_from(
        [Decimal("2.5"), Decimal("0.0"), Decimal("1"), Single(2.5), Single(1), -1, -2.5]
    ),
    numbers,
)
doubles = st.sampled_from([0.0, -0.0, 1.0, 2.5, -2.5, 1e30, 0.1]) | st.floats()
integers = st.integers(-3, 3) | st.sampled_from([2**53, 2**53 + 1, 10**18 - 1, 10**18, -(10**18)])


@given(
    st.sampled_from(BINARY[:6]),
    bounds,
    st.lists(doubles, min_size=1, max_size=20) | st.lists(integers, min_size=1, max_size=20),
)
@settings(max_examples=150)
def test_a_column_of_one_type_is_compared_with_a_constant(
    symbol: str, bound: Numeric, column: list[Numeric]
):
    table = [{X: literal_of(number)} for number in column]
    constant = Constant(literal_of(bound))
    check(Call(symbol, (X, constant)), table)
    check(Call(symbol, (constant, X)), table)
    check(In(X, (constant, Constant(literal_of(1)), Constant(IRI("x:a")))), table)
    check(Call(symbol, (X, Y)), [{X: x[X], Y: y[X]} for x, y in pairwise([*table, table[0]])])


not_canonical = st.sampled_from(["22.50", "0.10", "-3.0", "1e3", "7", "2.5", "INF"]).map(
    lambda lexical: Literal(lexical, IRI(XSD + "double"))
)
mixed = st.one_of(not_canonical, st.one_of(doubles, integers, st.booleans()).map(literal_of))


@given(
    st.sampled_from(BINARY[:6]),
    bounds,
    st.lists(mixed | some_terms, min_size=1, max_size=20) | st.lists(mixed, min_size=1),
)
@settings(max_examples=100)
def test_a_column_of_any_types_is_compared_with_a_constant(
    symbol: str, bound: Numeric, column: list[Term]
):
    table = [*({X: value} for value in column), *([{}] if len(column) % 2 else [])]
    check(Call(symbol, (X, Constant(literal_of(bound)))), table)
    check(Call(symbol, (Constant(literal_of(bound)), X)), table)


@given(st.lists(st.tuples(integers, st.integers(-8, 8)), min_size=1, max_size=20))
def test_quotients_of_integers_are_exact_or_rounded_decimals(pairs: list[tuple[int, int]]):
    check(Call("/", (X, Y)), [{X: literal_of(x), Y: literal_of(y)} for x, y in pairs])


@given(st.lists(some_terms, max_size=20), st.lists(some_terms, min_size=1, max_size=12))
@settings(max_examples=100)
def test_a_column_is_tested_against_a_list(options: list[Term], column: list[Term]):
    members = [*options, *column[:2]]
    check(In(X, tuple(map(Constant, members))), [{X: value} for value in column])
    resources = [o for o in members if not isinstance(o, Literal) or o.datatype == XSD_STRING]
    check(In(X, tuple(map(Constant, resources))), [{X: value} for value in column] + [{}])


exact = st.integers(-(10**7), 10**7) | st.decimals(-(10**4), 10**4, places=4)


@given(st.lists(st.tuples(exact, exact, exact), min_size=1, max_size=10), st.data())
@settings(max_examples=100)
def test_exact_numbers_stay_exact(
    numbers: list[tuple[Numeric, Numeric, Numeric]], data: st.DataObject
):
    operators = st.sampled_from(["+", "-", "*", "/", "ROUND", "FLOOR", "CEIL", "ABS", "u-"])
    expression: Expression = X
    for symbol in data.draw(st.lists(operators, max_size=5)):
        args = (
            expression,
            data.draw(st.sampled_from([Y, Z, Constant(literal_of(Decimal("1.8")))])),
        )
        expression = Call(symbol, args[: FUNCTIONS[symbol].least])
    table = [dict(zip((X, Y, Z), map(literal_of, row), strict=True)) for row in numbers]
    check(expression, table)
    check(Call(data.draw(st.sampled_from(BINARY[:6])), (expression, Y)), table)


# -- Size ---------------------------------------------------------------------------------------

ONE = Constant(literal_of(1))
TABLE: list[Row] = [{X: literal_of(1), Y: literal_of(2)}, {X: literal_of("a")}, {}]


@pytest.mark.parametrize(
    "wrap",
    [
        Not,
        lambda inner: And((inner, Bound(X))),
        lambda inner: In(inner, (Constant(literal_of(True)), Y)),
        lambda inner: Call("=", (inner, Constant(literal_of(True)))),
        lambda inner: Call("+", (X, inner)),
        lambda inner: If(Bound(X), inner, ONE),
        lambda inner: Coalesce((Y, inner)),
    ],
)
def test_an_expression_may_be_150_levels_deep(wrap: Callable[[Expression], Expression]):
    expression: Expression = Call("<", (X, Y))
    for _ in range(150):
        expression = wrap(expression)
    check(expression, TABLE)


def test_chains_may_be_long():
    total: Expression = X
    for _ in range(3_000):
        total = Call("+", (total, Y))
    check(Call(">", (total, ONE)), TABLE)
    check(Call("STR", (total,)), TABLE)
    check(Or(tuple(Call("=", (X, Constant(literal_of(k)))) for k in range(1_000, 0, -1))), TABLE)
    check(And((Bound(X),) * 5_000), TABLE)
    check(In(X, tuple(Constant(literal_of(k)) for k in range(1_000, 0, -1))), TABLE)


# -- Memoised values ----------------------------------------------------------------------------


def test_forget_permits_reused_ids():
    terms = TermDictionary()
    short = compile_expression(
        Call("<", (Call("STRLEN", (X,)), Constant(literal_of(4)))), terms, RUN
    )
    upper = compile_expression(Call("UCASE", (X,)), terms, RUN)
    ids = set()
    for text in ("abc", "abcdef", "x", "xyzxyz", "yy"):
        batch = batch_of(terms, [{X: Literal(text)}])
        ids |= set(batch.columns["x"].tolist())
        assert short.holds(batch).tolist() == [len(text) < 4]
        assert terms.term_of(int(upper.values(batch)[0])) == Literal(text.upper())
        terms.recycle([])
        short.forget()
        upper.forget()
    assert len(ids) < 5, "some ids were reused"


def test_each_binding_is_evaluated_once(monkeypatch: pytest.MonkeyPatch):
    calls: list[Term] = []
    evaluate = evaluation.evaluate

    def count(expression: Expression, row: Row, run: Run) -> Term:
        calls.append(row[X])
        return evaluate(expression, row, run)

    monkeypatch.setattr(evaluation, "evaluate", count)
    terms = TermDictionary()
    matches = Call("REGEX", (X, Constant(Literal("a"))))
    conjunction = compile_expression(And((matches, Call("<", (Y, ONE)))), terms, RUN)
    table: list[Row] = [{X: Literal(f"a{k % 5}"), Y: literal_of(k % 2)} for k in range(100)]
    for _ in range(2):
        assert conjunction.holds(batch_of(terms, table)).tolist() == [
            k % 2 == 0 for k in range(100)
        ]
    assert len(calls) == 5
    table = [{X: Literal("a7"), Y: ONE.term}]
    assert not conjunction.holds(batch_of(terms, table)).any()
    assert len(calls) == 5, "not evaluated, because the other conjunct is false"


@given(
    st.lists(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)), min_size=1), min_size=1),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_memoised_values_are_the_computed_ones(
    batches: list[list[tuple[int, int]]], width: int, collide: bool
):
    bindings = BindingMemo(np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memo, "_KEYS", 10)
        patch.setattr(memo, "_TABLE", 5)
        if collide:
            patch.setattr(memo, "row_keys", lambda columns, rows: columns[-1] // 2)
        width = 2 if collide else width
        for batch in batches:
            columns = [np.array(column, np.int64) for column in zip(*batch, strict=True)][:width]
            values = bindings.of(columns, lambda new: sum(c * 100**i for i, c in enumerate(new)))
            assert values.tolist() == [
                sum(x * 100**i for i, x in enumerate(r[:width])) for r in batch
            ]


# -- The operators ------------------------------------------------------------------------------


class _Source(Operator):
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        raise AssertionError("the test passes the batches itself")


def test_a_filter_keeps_counts_and_an_extension_leaves_errors_unbound():
    terms = TermDictionary()
    scan = _Source(("x",))
    batch = batch_of(terms, [{X: literal_of(k)} for k in (1, 2, 3)] + [{X: Literal("a")}])
    batch.count = np.array([5, 6, 7, 8])
    large = Call(">", (X, ONE))
    filtered, watermark = Filter(scan, large, compile_expression(large, terms, RUN)).step(
        [batch], [9], False
    )
    assert (filtered.counts().tolist(), watermark) == ([6, 7], 9)
    total = Call("+", (X, X))
    extend = Extend(scan, Y, total, compile_expression(total, terms, RUN))
    extended, _ = extend.step([batch], [9], False)
    assert extend.names == ("x", "y")
    assert terms.terms_of(extended.columns["y"]) == [*map(literal_of, (2, 4, 6)), None]
    assert extended.count is batch.count
    assert "y" in extend.facts()
