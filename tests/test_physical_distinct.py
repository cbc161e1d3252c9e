"""Distinct, Number and Coalesce, against their definitions, in any cut of the input into steps."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steps import Case, Given, agrees, at_once, cases, drive, one_by_one, rows_over

from streamsparql.physical import keys
from streamsparql.physical.distinct import Distinct

one, two = st.integers(1, 3), st.integers(0, 2)
some = cases(rows_over([one, two]), most=14)
NAMES = [["x", "y"]]


@pytest.fixture(params=["hashed", "colliding"])
def hashing(request, monkeypatch):
    """Keys as they are, and keys that collide until they are salted."""
    if request.param == "colliding":
        strong = keys.row_keys
        monkeypatch.setattr(
            keys, "row_keys", lambda c, n, salt=0: strong(c, n, salt) & (2 ** min(salt, 62) - 1)
        )


def distinct(source: Given) -> Distinct:
    return Distinct(source, ["x", "y"])


@given(case=some, closing=st.booleans())
def test_distinct_is_each_row_once(case: Case, closing: bool) -> None:
    rows = drive(distinct, NAMES, case, closing=closing)
    agrees(rows, case, lambda bag: Counter(dict.fromkeys(bag, 1)))


@pytest.mark.usefixtures("hashing")
def test_distinct_with_colliding_keys() -> None:
    @given(case=some)
    @settings(max_examples=50)
    def check(case: Case) -> None:
        for played in (case, at_once(*case.inputs), one_by_one(*case.inputs)):
            rows = drive(distinct, NAMES, played)
            agrees(rows, case, lambda bag: Counter(dict.fromkeys(bag, 1)))

    check()
