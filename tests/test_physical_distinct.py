"""Distinct, Number and Coalesce, against their definitions, in any cut of the input into steps."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steps import Case, Given, Row, agrees, at_once, cases, drive, one_by_one, rows_over

from streamsparql.algebra.streams import Element, coalesce
from streamsparql.physical import keys
from streamsparql.physical.distinct import Coalesce, Distinct, Number
from streamsparql.physical.pieces import coalesced
from streamsparql.physical.terms import TermDictionary

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
def test_keys_may_collide() -> None:
    @given(case=some)
    @settings(max_examples=50)
    def check(case: Case) -> None:
        for played in (case, at_once(*case.inputs), one_by_one(*case.inputs)):
            rows = drive(distinct, NAMES, played)
            agrees(rows, case, lambda bag: Counter(dict.fromkeys(bag, 1)))
            agrees(drive(Coalesce, NAMES, played, ordered=False), case, lambda bag: bag)

    check()


def elements(rows: list[Row]) -> list[Element]:
    """The rows as the algebra writes them."""
    return [Element(row.ids, row.start, row.end) for row in rows for _ in range(row.count)]


@given(st.lists(rows_over([two]), min_size=1))
def test_the_kernel_gives_the_canonical_form(rows: list[Row]) -> None:
    keys_, start, end, count = (
        np.array(column) for column in zip(*[(*r.ids, *r[1:]) for r in rows], strict=True)
    )
    levels = coalesced(keys_, start, end, count)
    found = map(
        Element, zip(keys_[levels.row].tolist()), levels.start.tolist(), levels.end.tolist()
    )
    assert Counter(found) == Counter(coalesce(elements(rows)))


@given(case=some)
def test_coalesce_gives_the_canonical_form(case: Case) -> None:
    case = case._replace(rounds=tuple(r._replace(cut=False) for r in case.rounds))
    rows = drive(Coalesce, NAMES, case, ordered=False)
    assert Counter(elements(rows)) == Counter(coalesce(elements(list(case.inputs[0]))))


@given(case=some, closing=st.booleans())
def test_cutting_changes_no_snapshot_of_coalesce(case: Case, closing: bool) -> None:
    rows = drive(Coalesce, NAMES, case, ordered=False, closing=closing)
    agrees(rows, case, lambda bag: bag)


@given(case=some, closing=st.booleans())
def test_number_tells_equal_rows_apart(case: Case, closing: bool) -> None:
    terms = TermDictionary()
    number = [0, *terms.of_integers(np.arange(1, 50)).tolist()]

    def numbered(bag: Counter) -> Counter:
        return Counter((*ids, number[k]) for ids, n in bag.items() for k in range(1, n + 1))

    rows = drive(lambda source: Number(source, ".k", terms), NAMES, case, closing=closing)
    agrees(rows, case, numbered)
