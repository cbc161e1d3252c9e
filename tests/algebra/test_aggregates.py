"""The aggregates of SPARQL 1.1, over bags of terms.

They must not depend on the representation of the bag: its order, and how entries share its
multiplicities.
"""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expressions import STORE, any_terms, from_oxigraph, moderate_exact, numbers, term

from streamsparql.algebra.aggregate_functions import Bag, aggregate
from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.order import order_key
from streamsparql.algebra.terms import Term, integer
from streamsparql.algebra.xsd.literal_operators import add
from streamsparql.algebra.xsd.numeric import Single
from streamsparql.algebra.xsd.values import literal_of, numeric_value, value_of

NAMES = ["COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"]


def outcome(name: str, bag: Bag, distinct: bool = False) -> Term | None:
    """Return the aggregate, None for an error."""
    try:
        return aggregate(name, bag, distinct)
    except ExpressionError:
        return None


def read(*texts: str) -> Bag:
    """Return a bag of terms in Turtle syntax; `error` is a row whose expression is an error."""
    return [(None if text == "error" else term(text), 1) for text in texts]


@pytest.mark.parametrize(
    ("name", "texts", "answer"),
    [
        ("COUNT", ["1", "1", "<x:a>"], "3"),
        ("SUM", ["1", "2", "1"], "4"),
        ("SUM", ['"1"^^xsd:byte', "0.50"], '"1.5"^^xsd:decimal'),
        ("SUM", ["1", "0.5", '"0.1"^^xsd:float'], '"1.6"^^xsd:float'),
        ("SUM", ["1", '"2"^^xsd:float', "0.5e0"], '"3.5"^^xsd:double'),
        ("AVG", ["1", "2"], '"1.5"^^xsd:decimal'),
        ("AVG", ["1e0", "2"], '"1.5"^^xsd:double'),
        ("MIN", ["2", "10", "1.5"], "1.5"),
        ("MAX", ["2", "10", "1.5"], "10"),
        ("MIN", ['"b"', '"a"', "3"], "3"),
        ("MAX", ["<x:a>", "1"], "1"),
        ("SAMPLE", ["3", "1", "2"], "1"),
        ("GROUP_CONCAT", ['"b"', '"a"@en', "1", "<x:a>"], '"x:a 1 a b"'),
    ],
)
def test_aggregates(name: str, texts: list[str], answer: str) -> None:
    assert outcome(name, read(*texts)) == term(answer)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        *(("COUNT", "0"), ("SUM", "0"), ("AVG", "0"), ("GROUP_CONCAT", '""')),
        *(("MIN", None), ("MAX", None), ("SAMPLE", None)),
    ],
)
def test_aggregates_of_the_empty_bag(name: str, answer: str | None) -> None:
    assert outcome(name, []) == (answer and term(answer))


@pytest.mark.parametrize("name", NAMES)
def test_an_error_in_the_group_propagates_except_in_count_and_sample(name: str) -> None:
    answers = {"COUNT": term("2"), "SAMPLE": term("1")}
    assert outcome(name, read("1", "error", "2")) == answers.get(name)
    assert outcome(name, read("error")) == ({"COUNT": term("0")}.get(name))


def test_other_terms_cannot_be_summed_but_have_a_minimum() -> None:
    bag = [*read("1", "2"), (term("_:b"), 1)]  # the group :y of the W3C's agg-err-01
    assert [outcome(name, bag) for name in ["SUM", "AVG", "GROUP_CONCAT"]] == [None] * 3
    assert [outcome(name, bag) for name in ["MIN", "MAX"]] == [term("_:b"), term("2")]


def test_distinct_compares_terms_not_values() -> None:
    bag = read("1", "1", "01", "1.0", "error", "error")
    assert outcome("COUNT", bag, distinct=True) == term("3")
    assert outcome("SUM", read("1", "1", "01"), distinct=True) == term("2")
    assert outcome("GROUP_CONCAT", read('"a"', '"a"@en', '"a"'), distinct=True) == term('"a a"')


def test_group_concat_accepts_any_separator() -> None:
    assert aggregate("GROUP_CONCAT", [(term('"a"'), 3)], separator="") == term('"aaa"')
    assert aggregate("GROUP_CONCAT", read('"b"', '"a"'), separator=", ") == term('"a, b"')


def test_a_sum_of_doubles_is_rounded_once() -> None:
    assert outcome("SUM", read("1e100", "1e0", "-1e100")) == literal_of(1.0)
    assert outcome("SUM", [(literal_of(0.1), 10)]) == literal_of(1.0)
    assert outcome("SUM", read("1e308", "1e308", "-1e308")) == literal_of(1e308)
    assert outcome("SUM", [(literal_of(math.inf), 1), (literal_of(-math.inf), 1)]) == literal_of(
        math.nan
    )


bags = st.lists(st.tuples(any_terms | st.none(), st.integers(1, 3)), max_size=6)
number_bags = st.lists(st.tuples(numbers.map(literal_of), st.integers(1, 3)), max_size=6)


@given(st.sampled_from(NAMES), bags | number_bags, st.booleans(), st.randoms())
def test_an_aggregate_depends_only_on_the_bag(
    name: str, bag: Bag, distinct: bool, random: Random
) -> None:
    single = [(each, 1) for each, times in bag for _ in range(times)]
    shuffled = random.sample(single, len(single))
    assert outcome(name, shuffled, distinct) == outcome(name, bag, distinct)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_a_sum_of_doubles_agrees_with_fsum(summands: list[float]) -> None:
    try:
        expected = math.fsum(summands)
    except OverflowError:
        return  # an intermediate overflow; the sum itself may still be a double
    assert value_of(aggregate("SUM", [(literal_of(number), 1) for number in summands])) == expected


@given(st.lists(st.integers() | st.decimals(-(10**9), 10**9, places=9)))
def test_an_exact_sum_agrees_with_repeated_addition(summands: list[int]) -> None:
    total = integer(0)
    for number in summands:
        total = add(total, literal_of(number))
    assert aggregate("SUM", [(literal_of(number), 1) for number in summands]) == total


@given(number_bags)
def test_the_type_of_a_sum_is_the_widest_of_its_terms(bag: Bag) -> None:
    order = [int, type(value_of(term("1.0"))), Single, float]
    ranks = [order.index(type(numeric_value(each))) for each, _ in bag if each is not None]
    assert type(value_of(aggregate("SUM", bag))) is order[max(ranks, default=0)]


@given(st.lists(st.tuples(any_terms, st.integers(1, 3)), min_size=1))
def test_minimum_and_maximum_agree_with_the_order_of_terms(bag: Bag) -> None:
    ordered = sorted((each for each, _ in bag), key=order_key)
    assert [outcome("MIN", bag), outcome("MAX", bag)] == [ordered[0], ordered[-1]]
    assert outcome("SAMPLE", bag) == ordered[0]


@given(st.lists(moderate_exact, min_size=1))
def test_sums_and_averages_agree_with_pyoxigraph(summands: list[int]) -> None:
    bag: Bag = [(literal_of(number), 1) for number in summands]
    values = " ".join(str(each) for each, _ in bag)
    query = f"SELECT (SUM(?x) AS ?sum) (AVG(?x) AS ?avg) {{ VALUES ?x {{ {values} }} }}"
    solutions = STORE.query(query)
    assert isinstance(solutions, ox.QuerySolutions)
    (row,) = solutions
    assert aggregate("SUM", bag) == from_oxigraph(row["sum"])
    if row["avg"] is None:
        return  # pyoxigraph raises an error for 0 / 2.0, and so for some averages of 0
    theirs = from_oxigraph(row["avg"])
    averages = [Decimal(numeric_value(average)) for average in (aggregate("AVG", bag), theirs)]
    assert abs(averages[0] - averages[1]) < Decimal("1e-17")  # pyoxigraph keeps 18 places
