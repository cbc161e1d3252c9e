"""Distinct, Number and TemporalCoalesce, compared with their definitions, in any steps."""

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
    DrivenInput,
    Row,
    at_once,
    cases,
    check_snapshots,
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
any_case = cases(rows_over([one, two]), max_rows=14)
NAMES = [["x", "y"]]


@pytest.fixture(params=["hashed", "colliding"])
def hashing(request, monkeypatch):
    """Leave keys unchanged, or make them collide until they are salted."""
    if request.param == "colliding":
        row_keys = keys.row_keys
        monkeypatch.setattr(
            keys, "row_keys", lambda c, n, salt=0: row_keys(c, n, salt) & (2 ** min(salt, 62) - 1)
        )


def distinct(source: DrivenInput) -> Distinct:
    return Distinct(source, ["x", "y"])


def eager(source: DrivenInput) -> TemporalCoalesce:
    return TemporalCoalesce(source, eager=True)


@given(case=any_case, closing=st.booleans())
def test_distinct_emits_each_row_once(case: Case, closing: bool) -> None:
    rows = drive(distinct, NAMES, case, closing=closing)
    check_snapshots(rows, case, lambda bag: Counter(dict.fromkeys(bag, 1)))


@pytest.mark.usefixtures("hashing")
def test_colliding_keys_change_nothing() -> None:
    @given(case=any_case)
    @settings(max_examples=50)
    def check(case: Case) -> None:
        for variant in (case, at_once(*case.inputs), one_by_one(*case.inputs)):
            rows = drive(distinct, NAMES, variant)
            check_snapshots(rows, case, lambda bag: Counter(dict.fromkeys(bag, 1)))
            check_snapshots(drive(eager, NAMES, variant, ordered=False), case, lambda bag: bag)

    check()


def elements(rows: list[Row]) -> list[Element]:
    """Convert rows to elements of the algebra."""
    return [Element(row.ids, row.start, row.end) for row in rows for _ in range(row.count)]


@given(st.lists(rows_over([two]), min_size=1))
def test_the_kernel_computes_the_canonical_form(rows: list[Row]) -> None:
    keys_, start, end, count = (
        np.array(column) for column in zip(*[(*r.ids, *r[1:]) for r in rows], strict=True)
    )
    levels = coalesce_levels(keys_, start, end, count)
    coalesced = map(
        Element, zip(keys_[levels.row].tolist()), levels.start.tolist(), levels.end.tolist()
    )
    assert Counter(coalesced) == Counter(coalesce(elements(rows)))


@given(case=any_case)
def test_coalesce_emits_the_canonical_form(case: Case) -> None:
    case = case._replace(steps=tuple(r._replace(cut=False) for r in case.steps))
    rows = drive(TemporalCoalesce, NAMES, case, ordered=False)
    assert Counter(elements(rows)) == Counter(coalesce(elements(list(case.inputs[0]))))


@given(case=any_case, closing=st.booleans())
def test_cutting_changes_no_snapshot_of_coalesce(case: Case, closing: bool) -> None:
    rows = drive(eager, NAMES, case, ordered=False, closing=closing)
    check_snapshots(rows, case, lambda bag: bag)


@given(case=any_case, closing=st.booleans())
def test_number_distinguishes_equal_rows(case: Case, closing: bool) -> None:
    terms = TermDictionary()
    number = [0, *terms.of_integers(np.arange(1, 50)).tolist()]

    def numbered(bag: Counter) -> Counter:
        return Counter((*ids, number[k]) for ids, n in bag.items() for k in range(1, n + 1))

    rows = drive(lambda source: Number(source, ".k", terms), NAMES, case, closing=closing)
    check_snapshots(rows, case, numbered)


@given(case=any_case, closing=st.booleans())
def test_number_orders_rows_by_their_stamps(case: Case, closing: bool) -> None:
    terms = TermDictionary()
    ids = [0, *terms.of_integers(np.arange(1, 50)).tolist()]
    names, iri = [".t of 2", "x", ".t of 1"], terms.id_of(IRI("x:a"))
    inputs = tuple(
        row._replace(ids=(ids[row.ids[1]], iri, ids[row.ids[0] - 1])) for row in case.inputs[0]
    )
    case = case._replace(inputs=(inputs,))

    def numbered(bag: Counter) -> Counter:
        snapshot = Snapshot((solution(row), n) for row, n in bag.items())
        node = shape.Number(variable_of(".k"), shape.UNIT)
        entries = node.static(0, Inputs(), snapshot).entries
        variables = [variable_of(name) for name in [*names, ".k"]]
        return Counter(
            tuple(terms.id_of(row[v]) if v in row else 0 for v in variables) for row, _ in entries
        )

    def solution(row: tuple[int, ...]) -> Solution:
        pairs = zip(map(variable_of, names), map(terms.term_of, row), strict=True)
        return Solution((v, term) for v, term in pairs if term)

    rows = drive(lambda source: Number(source, ".k", terms), [names], case, closing=closing)
    check_snapshots(rows, case, numbered)


@given(case=any_case, columns=st.sampled_from([["x"], []]), closing=st.booleans())
def test_only_the_latest_stamps_are_emitted(case: Case, columns: list[str], closing: bool) -> None:
    terms = TermDictionary()
    stamp = [0, *terms.of_integers(np.array([1700, 900])).tolist()]

    def stamped(row: Row) -> Row:
        return row._replace(ids=(row.ids[0], stamp[row.ids[1]], stamp[row.ids[0] - 1]))

    def latest(bag: Counter) -> Counter:
        latest_stamps: dict = {}
        for x, *stamps in bag:
            previous = latest_stamps.setdefault((x,)[: len(columns)], [0, 0])
            both = zip(previous, stamps, strict=True)
            latest_stamps[(x,)[: len(columns)]] = [
                max(pair, key=[*stamp[:1], stamp[2], stamp[1]].index) for pair in both
            ]
        return Counter((*row, *stamps) for row, stamps in latest_stamps.items())

    case = case._replace(inputs=(tuple(map(stamped, case.inputs[0])),))
    names = ["x", ".t of 1", ".t of 2"]
    rows = drive(
        lambda source: LatestStamps(source, columns, names[1:], terms),
        [names],
        case,
        closing=closing,
    )
    check_snapshots(rows, case, latest)


MILLION = 10**6


@pytest.mark.parametrize("ends", ["sliding", "never", "tied"])
@pytest.mark.parametrize("operator", [Distinct, TemporalCoalesce])
def test_a_million_equal_rows_take_seconds(operator: type, ends: str) -> None:
    """Chunks of a million rows take seconds at most; the output has the snapshots of the input."""
    start = EPOCH + (np.zeros(MILLION, np.int64) if ends == "tied" else np.arange(MILLION))
    end = {"sliding": start + 1000, "never": np.full(MILLION, INFINITY), "tied": start + 5}[ends]
    source = DrivenInput(["x"])
    tested = Distinct(source, ["x"]) if operator is Distinct else TemporalCoalesce(source)
    started, batches = time.process_time(), []
    for at in range(0, MILLION, 1 << 16):
        rows = Batch({"x": np.full(MILLION, 7)}, start, end).part(at, at + (1 << 16))
        later = start[at + (1 << 16) :]
        batches.append(tested.step([rows], [int(later[0]) if len(later) else INFINITY], False)[0])
    assert time.process_time() - started < 20
    output = Batch.concat(batches)
    for t in (int(start[0]), int(start[MILLION // 2]), int(start[-1])):
        holding = np.count_nonzero((start <= t) & (t < end))
        emitted = np.count_nonzero((output.start <= t) & (t < output.end))
        assert emitted == (1 if operator is Distinct else holding)
    assert tested.size() == 0
