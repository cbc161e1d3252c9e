"""Expressions over whole batches come to what `algebra.expressions` says of each row.

Random expressions on random rows, with all kinds of terms in them, are evaluated both ways: the
ids of the values and the rows that a filter keeps must be the same. The definition is the algebra's
evaluation row by row; what the algebra gets wrong is not seen here, but in its own tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pytest
from expressions import RUN, any_terms, numbers, term
from hypothesis import given, settings
from hypothesis import strategies as st

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
    holds,
    value_or_none,
)
from streamsparql.algebra.numeric import Number, Single
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, Term
from streamsparql.algebra.values import literal_of
from streamsparql.physical.batch import Batch
from streamsparql.physical.expressions import compiled
from streamsparql.physical.terms import TermDictionary

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


def _larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    some = st.lists(inner, min_size=2, max_size=4).map(tuple)
    volatile = st.sampled_from([("RAND", ()), ("BNODE", (X,)), ("STRUUID", ())])
    return st.one_of(
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(BINARY[:6]), inner, inner),
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(BINARY), inner, inner),
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(UNARY), inner),
        some.map(And),
        some.map(Or),
        inner.map(Not),
        st.builds(If, inner, inner, inner),
        some.map(Coalesce),
        st.builds(In, inner, st.lists(inner, max_size=4).map(tuple)),
        volatile.map(lambda made: Volatile(*made, (X, Y), 1)),
    )


expressions = st.recursive(leaves, _larger, max_leaves=8)
flat = _larger(leaves)


def batch_of(terms: TermDictionary, made: Sequence[Row]) -> Batch:
    """The rows as a batch; a variable that no row binds has no column."""
    columns = {
        v.name: np.array([terms.id_of(row[v]) if v in row else 0 for row in made], np.int64)
        for v in (X, Y, Z)
        if any(v in row for row in made)
    }
    return Batch(columns, np.zeros(len(made), np.int64), np.ones(len(made), np.int64))


def check(expression: Expression, *batches: Sequence[Row], forget: bool = False) -> None:
    """Both evaluations, on one batch after the other."""
    terms = TermDictionary()
    fast = compiled(expression, terms, RUN)
    for made in batches:
        batch = batch_of(terms, made)
        assert fast.holds(batch).tolist() == [holds(expression, row, RUN) for row in made]
        wanted = [value_or_none(expression, row, RUN) for row in made]
        found = fast.values(batch)
        assert found.dtype == np.int64
        assert [terms.term_of(id_) if id_ else None for id_ in found.tolist()] == wanted
        ids = [0 if value is None else terms.id_of(value) for value in wanted]
        assert found.tolist() == ids
        if forget:
            fast.forget()


@given(flat, rows)
@settings(max_examples=400)
def test_each_operator_gives_what_the_algebra_gives(expression: Expression, made: list[Row]):
    check(expression, made)


@given(expressions, rows, rows, st.booleans())
@settings(max_examples=300)
def test_nested_expressions_too_and_on_later_batches(
    expression: Expression, first: list[Row], second: list[Row], forget: bool
):
    check(expression, first, second, forget=forget)


@pytest.mark.long
@given(st.one_of(flat, expressions), rows, rows)
@settings(max_examples=20_000)
def test_many_more(expression: Expression, first: list[Row], second: list[Row]):
    check(expression, first, second)


@given(st.sampled_from(BINARY[:11]), st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40))
@settings(max_examples=200)
def test_numbers_of_all_types_meet(symbol: str, pairs: list[tuple[Number, Number]]):
    made = [{X: literal_of(x), Y: literal_of(y)} for x, y in pairs]
    check(Call(symbol, (X, Y)), made)


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
@settings(max_examples=400)
def test_a_column_of_one_type_meets_a_constant(symbol: str, bound: Number, column: list[Number]):
    made = [{X: literal_of(number)} for number in column]
    constant = Constant(literal_of(bound))
    check(Call(symbol, (X, constant)), made)
    check(Call(symbol, (constant, X)), made)
    check(In(X, (constant, Constant(literal_of(1)), Constant(IRI("x:a")))), made)
