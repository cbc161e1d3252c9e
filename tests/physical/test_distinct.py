"""Distinct, Number and Coalesce, against their definitions, in any cut of the input into steps."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.steps import (
    EPOCH,
    Case,
    Row,
    RunInput,
    agrees,
    at_once,
    cases,
    drive,
    one_by_one,
    rows_over,
)

from streamsparql.algebra import shape
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.solutions import Solution
from streamsparql.algebra.streams import INFINITY, Element, Snapshot, coalesce
from streamsparql.algebra.terms import IRI
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import variable_of
from streamsparql.physical.kernels import keys
from streamsparql.physical.kernels.change_points import coalesce_levels
from streamsparql.physical.operators.report import TemporalCoalesce
from streamsparql.physical.operators.shape import Distinct, LatestStamps, Number

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


def distinct(source: RunInput) -> Distinct:
    return Distinct(source, ["x", "y"])


def eager(source: RunInput) -> TemporalCoalesce:
    return TemporalCoalesce(source, eager=True)


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
            agrees(drive(eager, NAMES, played, ordered=False), case, lambda bag: bag)

    check()


def elements(rows: list[Row]) -> list[Element]:
    """The rows as the algebra writes them."""
    return [Element(row.ids, row.start, row.end) for row in rows for _ in range(row.count)]


@given(st.lists(rows_over([two]), min_size=1))
def test_the_kernel_gives_the_canonical_form(rows: list[Row]) -> None:
    keys_, start, end, count = (
        np.array(column) for column in zip(*[(*r.ids, *r[1:]) for r in rows], strict=True)
    )
    levels = coalesce_levels(keys_, start, end, count)
    found = map(
        Element, zip(keys_[levels.row].tolist()), levels.start.tolist(), levels.end.tolist()
    )
    assert Counter(found) == Counter(coalesce(elements(rows)))


@given(case=some)
def test_coalesce_gives_the_canonical_form(case: Case) -> None:
    case = case._replace(rounds=tuple(r._replace(cut=False) for r in case.rounds))
    rows = drive(TemporalCoalesce, NAMES, case, ordered=False)
    assert Counter(elements(rows)) == Counter(coalesce(elements(list(case.inputs[0]))))


@given(case=some, closing=st.booleans())
def test_cutting_changes_no_snapshot_of_coalesce(case: Case, closing: bool) -> None:
    rows = drive(eager, NAMES, case, ordered=False, closing=closing)
    agrees(rows, case, lambda bag: bag)


@given(case=some, closing=st.booleans())
def test_number_tells_equal_rows_apart(case: Case, closing: bool) -> None:
    terms = TermDictionary()
    number = [0, *terms.of_integers(np.arange(1, 50)).tolist()]

    def numbered(bag: Counter) -> Counter:
        return Counter((*ids, number[k]) for ids, n in bag.items() for k in range(1, n + 1))

    rows = drive(lambda source: Number(source, ".k", terms), NAMES, case, closing=closing)
    agrees(rows, case, numbered)


@given(case=some, closing=st.booleans())
def test_number_orders_rows_by_their_stamps(case: Case, closing: bool) -> None:
    terms = TermDictionary()
    ids = [0, *terms.of_integers(np.arange(1, 50)).tolist()]
    names, seven = [".t of 2", "x", ".t of 1"], terms.id_of(IRI("x:a"))
    inputs = tuple(
        row._replace(ids=(ids[row.ids[1]], seven, ids[row.ids[0] - 1])) for row in case.inputs[0]
    )
    case = case._replace(inputs=(inputs,))

    def numbered(bag: Counter) -> Counter:
        given = Snapshot((solution(row), n) for row, n in bag.items())
        node = shape.Number(variable_of(".k"), shape.UNIT)
        found = node.static(0, Inputs(), given).entries
        every = [variable_of(name) for name in [*names, ".k"]]
        return Counter(
            tuple(terms.id_of(row[v]) if v in row else 0 for v in every) for row, _ in found
        )

    def solution(row: tuple[int, ...]) -> Solution:
        pairs = zip(map(variable_of, names), map(terms.term_of, row), strict=True)
        return Solution((v, term) for v, term in pairs if term)

    rows = drive(lambda source: Number(source, ".k", terms), [names], case, closing=closing)
    agrees(rows, case, numbered)


@given(case=some, columns=st.sampled_from([["x"], []]), closing=st.booleans())
def test_the_latest_stamps_are_kept(case: Case, columns: list[str], closing: bool) -> None:
    terms = TermDictionary()
    stamp = [0, *terms.of_integers(np.array([1700, 900])).tolist()]

    def stamped(row: Row) -> Row:
        return row._replace(ids=(row.ids[0], stamp[row.ids[1]], stamp[row.ids[0] - 1]))

    def latest(bag: Counter) -> Counter:
        found: dict = {}
        for x, *stamps in bag:
            before = found.setdefault((x,)[: len(columns)], [0, 0])
            both = zip(before, stamps, strict=True)
            found[(x,)[: len(columns)]] = [
                max(pair, key=[*stamp[:1], stamp[2], stamp[1]].index) for pair in both
            ]
        return Counter((*row, *stamps) for row, stamps in found.items())

    case = case._replace(inputs=(tuple(map(stamped, case.inputs[0])),))
    names = ["x", ".t of 1", ".t of 2"]
    rows = drive(
        lambda source: LatestStamps(source, columns, names[1:], terms),
        [names],
        case,
        closing=closing,
    )
    agrees(rows, case, latest)


MANY = 10**6


@pytest.mark.parametrize("ends", ["sliding", "never", "tied"])
@pytest.mark.parametrize("operator", [Distinct, TemporalCoalesce])
def test_a_million_equal_rows(operator: type, ends: str) -> None:
    """In chunks, which takes seconds at most; what comes out covers what went in."""
    start = EPOCH + (np.zeros(MANY, np.int64) if ends == "tied" else np.arange(MANY))
    end = {"sliding": start + 1000, "never": np.full(MANY, INFINITY), "tied": start + 5}[ends]
    source = RunInput(["x"])
    made = Distinct(source, ["x"]) if operator is Distinct else TemporalCoalesce(source)
    began, out = time.process_time(), []
    for at in range(0, MANY, 1 << 16):
        rows = Batch({"x": np.full(MANY, 7)}, start, end).part(at, at + (1 << 16))
        later = start[at + (1 << 16) :]
        out.append(made.step([rows], [int(later[0]) if len(later) else INFINITY], False)[0])
    assert time.process_time() - began < 20
    found = Batch.concat(out)
    for t in (int(start[0]), int(start[MANY // 2]), int(start[-1])):
        held = np.count_nonzero((start <= t) & (t < end))
        given = np.count_nonzero((found.start <= t) & (t < found.end))
        assert given == (1 if operator is Distinct else held)
    assert made.size() == 0
