"""SUM and AVG of integers and decimals of any size: as the definition, without computing it."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import streamsparql
from streamsparql.algebra.aggregate_functions import aggregate
from streamsparql.algebra.terms import XSD, Term
from streamsparql.algebra.xsd.values import literal_of
from streamsparql.physical.aggregation.aggregators import Aggregator
from streamsparql.physical.aggregation.numeric_sums import NumericSums
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.kernels.change_points import Sweep

integers = st.one_of(
    st.integers(-(10**30), 10**30),
    st.sampled_from([2**53, 2**53 + 1, -(2**62), 2**63 - 1, -(2**63), 2**63, 10**89, 1, 0]),
)
decimals = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False, places=7, min_value=-90, max_value=90),
    st.builds(
        lambda number, digits: Decimal(number).scaleb(-digits),
        st.integers(-(10**20), 10**20),
        st.integers(0, 40),
    ),
    st.sampled_from(["2.5", "0.0000001", "999999999.999999999", "-4611686018427387904.5"]).map(
        Decimal
    ),
)
numbers = st.one_of(integers, decimals)
events = st.lists(st.tuples(numbers, st.sampled_from([1, 1, 2, 1000])), min_size=1, max_size=12)


def check(steps: list[list[tuple[int | Decimal, int]]]) -> None:
    """Add the numbers of each step to a slot, then remove some; compare with the definition."""
    terms = TermDictionary()
    sums = NumericSums(terms)
    bag = Counter[Term]()
    for step in steps:
        changes = [(literal_of(number), n) for number, n in step]
        changes += [(literal_of(number), -n) for number, n in step[::2]]
        ids = np.array([terms.id_of(literal) for literal, _ in changes])
        count = np.array([n for _, n in changes])
        expected, rows = [], []
        for literal, n in changes:
            bag[literal] += n
            now = [*(+bag).items()]
            expected.append([terms.id_of(aggregate(name, now)) for name in ("SUM", "AVG")])
            rows.append(bag.total())
        sweep = Sweep(np.zeros(len(ids), np.int64), np.arange(len(ids)), 1)
        totals = sums.after(sweep, ids, count, np.array(rows))
        for k, (values, left) in enumerate((totals.sums(), totals.averages())):
            assert not left.any()
            wanted = terms.terms_of(np.array([pair[k] for pair in expected]))
            assert terms.terms_of(values) == wanted


@given(st.lists(events, min_size=1, max_size=3))
@settings(max_examples=80)
@example([[(2**62 - 1, 1), (1, 1)], [(Decimal("0.0000001"), 2)]])
@example([[(2**53, 1000)] * 12])
@example([[(10**39, 1)], [(Decimal(10) ** 39 + Decimal("1e-7"), 1)]])
def test_sums_and_averages_are_exact(steps: list[list[tuple[int | Decimal, int]]]) -> None:
    check(steps)


@pytest.mark.long
@given(st.lists(events, min_size=1, max_size=5))
@settings(max_examples=3000)
def test_many_sums_and_averages_are_exact(steps: list[list[tuple[int | Decimal, int]]]) -> None:
    check(steps)


@pytest.mark.parametrize("function", ["SUM", "AVG"])
@pytest.mark.parametrize(
    ("number", "datatype"),
    [
        ("52.5162746", "decimal"),
        ("13.377704201234567", "decimal"),
        ("576460752303423488", "integer"),
        ("576460752303423488.5", "decimal"),
        ("99999999999999999999999", "integer"),
    ],
)
def test_long_numbers_need_no_bags(
    number: str, datatype: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definition reads the whole window for each row: a window of 100 costs 100 times more."""

    def refused(*_: object) -> None:
        raise AssertionError("computed by definition")

    monkeypatch.setattr(Aggregator, "by_bags", refused)
    items = [("<s>", "<p>", f'"{number}"^^<{XSD}{datatype}>', t) for t in range(1, 30)]
    query = streamsparql.compile(
        f"SELECT ({function}(?o) AS ?x) FROM STREAM <s> WINDOW RANGE 100 {{ ?s <p> ?o }} # lint: ignore"
    )
    values = query.run(streams=items).to_arrow()["x"].to_pylist()
    exact = Decimal(number) * (29 if function == "SUM" else 1)
    assert f'"{exact:f}"' in {value.partition("^^")[0] for value in values}
