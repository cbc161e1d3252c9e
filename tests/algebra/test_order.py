"""The order of terms: total, and consistent with `<`."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expressions import any_terms, term

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.order import comparison_key, order_key
from streamsparql.algebra.terms import Term
from streamsparql.algebra.xsd.literal_operators import less


@given(any_terms, any_terms)
def test_sort_keys_are_consistent_with_less(a: Term, b: Term) -> None:
    try:
        smaller = less(a, b)
    except ExpressionError:
        return
    if smaller:
        assert comparison_key(a) < comparison_key(b)
        assert order_key(a) < order_key(b)


@given(any_terms, any_terms)
def test_only_equal_terms_have_equal_order_keys(a: Term, b: Term) -> None:
    assert (order_key(a) < order_key(b)) + (order_key(b) < order_key(a)) == (a != b)


@given(st.lists(any_terms, max_size=6), st.randoms())
def test_sorting_does_not_depend_on_the_input_order(terms: list[Term], random: Random) -> None:
    shuffled = random.sample(terms, len(terms))
    assert sorted(shuffled, key=order_key) == sorted(terms, key=order_key)


def test_order_by_sorts_unbound_blank_nodes_iris_literals() -> None:
    texts = ["_:b", "<x:a>", "<x:b>", "-1", "1.5", "2", '"a"', '"a"@en', '"b"', "true"]
    ordered = [None, *map(term, texts)]
    assert sorted(sorted(ordered, key=str), key=order_key) == ordered


@pytest.mark.parametrize(("a", "b"), [("1", "1.0"), ("01", "1e0"), ("-0e0", "0")])
def test_equal_values_are_ties_of_order_by(a: str, b: str) -> None:
    assert comparison_key(term(a)) == comparison_key(term(b))
