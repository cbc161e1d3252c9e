"""ORDER BY, OFFSET and LIMIT over batches, against the algebra's definitions at every change.

The ids that rows have here are of terms of all kinds: unbound, blank nodes, IRIs, numbers that are
equal and not the same, strings, booleans, moments. Many rows tie. `Slice` is held to
`algebra.shape.Slice`, over an `OrderBy` with keys up and down, or by its own columns; with
`distinct` to `Slice` over `Distinct`; with `partition` to a `Slice` for each part.

What it cannot see: whether the order of terms is SPARQL's (tests/algebra/test_order.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.steps import (
    EPOCH,
    Bag,
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
from streamsparql.algebra.functions import Run
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.order import comparison_key
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import INFINITY, Snapshot
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term, integer
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import compile_expression
from streamsparql.physical.expressions.sort_keys import Ranking, SortKeys, descending_key
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.shape import OrderBy
from streamsparql.physical.operators.slice import Slice

X, Y = Variable("x"), Variable("y")


def typed(lexical: str, kind: str) -> Literal:
    return Literal(lexical, IRI(XSD + kind))


KINDS: list[Term] = [
    BlankNode("b"), IRI("http://e/a"), IRI("http://e/b"), integer(1), integer(2),
    typed("1", "decimal"), typed("1.0E0", "double"), typed("NaN", "double"), typed("-2", "float"),
    typed("INF", "double"), typed("0.1", "decimal"), typed("x", "integer"), typed("true", "boolean"),
    typed("2020-01-01T00:00:00Z", "dateTime"), typed("2020-01-01", "date"), typed("P1D", "duration"),
    Literal("a"), Literal("ab"), Literal("a", language="en"), Literal("b"), typed("a", "other"),
    typed("123456789012345678901234567890.1234567891", "decimal"),
    typed("123456789012345678901234567890.1234567892", "decimal"),
]  # fmt: skip
TERMS = TermDictionary()
IDS = [TERMS.id_of(term, keep=True) for term in KINDS]
one = st.sampled_from([0, *IDS])
few = st.sampled_from([0, *IDS[1:7]])
ways = st.lists(st.tuples(st.sampled_from([X, Y]), st.booleans()), max_size=2)
some = cases(rows_over([one, few]), most=12)
tight = cases(rows_over([few, few], longest=4), most=14)
offsets, limits = st.integers(0, 4), st.sampled_from([None, 0, 1, 1, 2, 3, 6])
NAMES = [["x", "y"]]


def solution(ids: tuple[int, ...]) -> Solution:
    terms = zip((X, Y), map(TERMS.term_of, ids[:2]), strict=True)
    return Solution({v: term for v, term in terms if term is not None})


def snapshot_of(bag: Bag) -> Snapshot[Solution]:
    return Snapshot((solution(ids), n) for ids, n in bag.items())


def shown(rows: list[Row]) -> list[Row]:
    """The rows without the columns that sort them, their ids by what they stand for."""
    return [row._replace(ids=row.ids[:2]) for row in rows]


def of(found: Snapshot[Solution]) -> Bag:
    """A snapshot in ids."""
    bag: Bag = Counter()
    for row, n in found.entries:
        bag[tuple(TERMS.id_of(row[v]) if v in row else 0 for v in (X, Y))] += n
    return bag


def defined(bag: Bag, keys: list, offset: int, limit: int | None, distinct: bool) -> Bag:
    """What the algebra says of a snapshot."""
    found = snapshot_of(bag)
    if keys:
        found = shape.OrderBy(tuple(keys), (X, Y), shape.UNIT).static(0, Inputs(), found)
    if distinct:
        found = shape.Distinct(shape.UNIT).static(0, Inputs(), found)
    return of(shape.Slice(offset, limit, (X, Y), shape.UNIT).static(0, Inputs(), found))


class Sliced(Slice):
    """An OrderBy and the Slice over it, as one operator."""

    def __init__(
        self,
        source: Operator,
        keys: list,
        offset: int,
        limit: int | None,
        distinct: bool = False,
        partition: tuple[str, ...] = (),
    ) -> None:
        made = [(compile_expression(key, TERMS, Run()), down) for key, down in keys]
        self.order = OrderBy(source, made, ["x", "y"])
        equal = ["x", "y"] if distinct else None
        ranking = self.order.ranking
        super().__init__(
            self.order, ranking, TERMS, offset, limit, distinct=equal, partition=partition
        )

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        ordered, _ = self.order.step(batches, watermarks, cut)
        return super().step([ordered], watermarks, cut)


@given(some, ways, offsets, limits, st.booleans(), st.booleans())
def test_a_slice_is_that_of_each_snapshot(
    case: Case, keys: list, offset: int, limit: int | None, distinct: bool, closing: bool
) -> None:
    for played in (case, at_once(*case.inputs), one_by_one(*case.inputs, cut=closing)):
        rows = drive(
            lambda source: Sliced(source, keys, offset, limit, distinct),
            NAMES,
            played,
            closing=closing,
        )
        agrees(shown(rows), case, lambda bag: defined(bag, keys, offset, limit, distinct))


@given(tight, ways, offsets, limits, st.booleans())
def test_a_slice_of_many_ties(
    case: Case, keys: list, offset: int, limit: int | None, distinct: bool
) -> None:
    rows = drive(lambda source: Sliced(source, keys, offset, limit, distinct), NAMES, case)
    agrees(shown(rows), case, lambda bag: defined(bag, keys, offset, limit, distinct))


@given(tight, ways, offsets, limits)
def test_parts_rank_by_themselves(case: Case, keys: list, offset: int, limit: int | None) -> None:
    def made(source: Operator) -> Slice:
        return Sliced(source, keys, offset, limit, partition=("x",))

    def by_part(bag: Bag) -> Bag:
        parts: dict[int, Bag] = {}
        for ids, n in bag.items():
            parts.setdefault(ids[0], Counter())[ids] = n
        each = (defined(part, keys, offset, limit, False) for part in parts.values())
        return sum(each, Counter())

    agrees(shown(drive(made, NAMES, case)), case, by_part)


@pytest.mark.parametrize(("one", "other"), list(product(KINDS, KINDS)))
def test_a_descending_key_is_the_other_way_round(one: Term, other: Term) -> None:
    up = comparison_key(one) < comparison_key(other)
    assert (descending_key(other) < descending_key(one)) == up
    same = comparison_key(one) == comparison_key(other)
    assert (descending_key(one) == descending_key(other)) == same


@given(some, ways)
def test_order_by_adds_columns_and_moves_nothing(case: Case, keys: list) -> None:
    compiled_keys = [(compile_expression(key, TERMS, Run()), down) for key, down in keys]
    rows = drive(lambda source: OrderBy(source, compiled_keys, ["x", "y"]), NAMES, case)
    for row in rows:
        at = {X: row.ids[0], Y: row.ids[1]}
        assert row.ids[2:] == (*(at[key] for key, _ in keys), *row.ids[:2])
    agrees(shown(rows), case, lambda bag: bag)


# -- State and size


def batch(xs: list[int], start: int, end: int, count: int | None = None) -> Batch:
    full = np.full(len(xs), count, np.int64) if count is not None else None
    ids = np.array(xs, np.int64)
    times = np.full(len(xs), start, np.int64), np.full(len(xs), end, np.int64)
    return Batch({"x": ids, "y": ids}, *times, full)


@pytest.mark.parametrize(("offset", "limit"), [(0, 3), (2, 3), (5, None), (0, 0)])
def test_a_million_equal_rows_are_as_a_handful(offset: int, limit: int | None) -> None:
    slice_ = Sliced(RunInput(["x", "y"]), [(X, True)], offset, limit)
    started = time.process_time()
    some, _ = slice_.step([batch([IDS[3]] * 200_000, EPOCH, EPOCH + 9)], [EPOCH + 1], False)
    assert slice_.size() <= 5 + 3
    more, _ = slice_.step([batch([IDS[4]], EPOCH + 1, EPOCH + 9, 1_000_000)], [INFINITY], False)
    assert time.process_time() - started < 2
    held = sum(
        int(b.where((b.start <= EPOCH + 5) & (b.end > EPOCH + 5)).counts().sum())
        for b in (some, more)
    )
    assert held == (1_200_000 - offset if limit is None else limit)


def test_a_part_with_no_rows_is_forgotten() -> None:
    slice_ = Sliced(RunInput(["x", "y"]), [], 0, 1, partition=("x",))
    for t in range(100):
        slice_.step([batch([IDS[t % 20]], t, t + 3)], [t], True)
    assert len(slice_._ranks._slices) <= 4
    assert slice_.size() <= 5


def test_what_is_held_is_told() -> None:
    slice_ = Sliced(RunInput(["x", "y"]), [], 0, 1)
    slice_.step([batch(IDS[:4], 3, 9)], [4], False)
    slice_.step([batch(IDS[4:6], 5, 9)], [4], False)
    held = {term for ids in slice_.retained_ids() for term in ids.tolist()}
    assert held >= set(IDS[:6])


def test_keys_forget_when_ids_come_to_stand_for_others() -> None:
    terms = TermDictionary()
    keys = SortKeys(Ranking((("x", False),), ()), terms)
    old, kept = (terms.id_of(IRI(f"http://e/{name}")) for name in "zm")
    rows = batch([old, kept], 0, 1)
    assert keys.of(rows)[0] > keys.of(rows)[1]
    terms.recycle([np.array([kept])])
    new = terms.id_of(IRI("http://e/a"))
    assert new == old, "the id is used again"
    keys.forget()
    assert keys.of(rows)[0] < keys.of(rows)[1]
