"""The order of terms: total, and never against `<`."""

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
def test_the_sort_keys_agree_with_less(a: Term, b: Term) -> None:
    try:
        smaller = less(a, b)
    except ExpressionError:
        return
    if smaller:
        assert comparison_key(a) < comparison_key(b)
        assert order_key(a) < order_key(b)


@given(any_terms, any_terms)
def test_two_terms_share_a_place_only_if_they_are_one(a: Term, b: Term) -> None:
    assert (order_key(a) < order_key(b)) + (order_key(b) < order_key(a)) == (a != b)


@given(st.lists(any_terms, max_size=6), st.randoms())
def test_sorting_does_not_depend_on_the_order_that_it_finds(
    found: list[Term], random: Random
) -> None:
    shuffled = random.sample(found, len(found))
    assert sorted(shuffled, key=order_key) == sorted(found, key=order_key)


def test_order_by_puts_unbound_first_then_blank_nodes_then_iris_then_literals() -> None:
    texts = ["_:b", "<x:a>", "<x:b>", "-1", "1.5", "2", '"a"', '"a"@en', '"b"', "true"]
    ordered = [None, *map(term, texts)]
    assert sorted(sorted(ordered, key=str), key=order_key) == ordered


@pytest.mark.parametrize(("a", "b"), [("1", "1.0"), ("01", "1e0"), ("-0e0", "0")])
def test_what_is_equal_leaves_the_order_to_the_next_key(a: str, b: str) -> None:
    assert comparison_key(term(a)) == comparison_key(term(b))
