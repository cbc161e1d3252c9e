"""ORDER BY, OFFSET and LIMIT over batches, compared with the algebra at each change.

Rows have terms of all kinds: unbound, blank nodes, IRIs, numbers that are equal but not identical,
strings, booleans, dates and times. Many rows tie. `Slice` is compared with `algebra.shape.Slice`
over an `OrderBy` with ascending and descending keys, or over its input; if `distinct`, over
`Distinct`; if it has a `partition`, with one `Slice` per partition.

Not covered: whether the order of terms is that of SPARQL (tests/algebra/test_order.py).
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
tying = st.sampled_from([0, *IDS[1:7]])
sort_keys = st.lists(st.tuples(st.sampled_from([X, Y]), st.booleans()), max_size=2)
any_case = cases(rows_over([one, tying]), max_rows=12)
ties = cases(rows_over([tying, tying], longest=4), max_rows=14)
offsets, limits = st.integers(0, 4), st.sampled_from([None, 0, 1, 1, 2, 3, 6])
NAMES = [["x", "y"]]


def solution(ids: tuple[int, ...]) -> Solution:
    terms = zip((X, Y), map(TERMS.term_of, ids[:2]), strict=True)
    return Solution({v: term for v, term in terms if term is not None})


def snapshot_of(bag: Bag) -> Snapshot[Solution]:
    return Snapshot((solution(ids), n) for ids, n in bag.items())


def without_sort_columns(rows: list[Row]) -> list[Row]:
    """Remove the columns that only sort the rows."""
    return [row._replace(ids=row.ids[:2]) for row in rows]


def bag_of(snapshot: Snapshot[Solution]) -> Bag:
    """Convert a snapshot to a multiset of id rows."""
    bag: Bag = Counter()
    for row, n in snapshot.entries:
        bag[tuple(TERMS.id_of(row[v]) if v in row else 0 for v in (X, Y))] += n
    return bag


def defined(bag: Bag, keys: list, offset: int, limit: int | None, distinct: bool) -> Bag:
    """Evaluate the definition on a snapshot."""
    snapshot = snapshot_of(bag)
    if keys:
        snapshot = shape.OrderBy(tuple(keys), (X, Y), shape.UNIT).static(0, Inputs(), snapshot)
    if distinct:
        snapshot = shape.Distinct(shape.UNIT).static(0, Inputs(), snapshot)
    return bag_of(shape.Slice(offset, limit, (X, Y), shape.UNIT).static(0, Inputs(), snapshot))


class Sliced(Slice):
    """An OrderBy and the Slice over it, combined in one operator."""

    def __init__(
        self,
        source: Operator,
        keys: list,
        offset: int,
        limit: int | None,
        distinct: bool = False,
        partition: tuple[str, ...] = (),
    ) -> None:
        compiled_keys = [(compile_expression(key, TERMS, Run()), down) for key, down in keys]
        self.order = OrderBy(source, compiled_keys, ["x", "y"])
        equal = ["x", "y"] if distinct else None
        ranking = self.order.ranking
        super().__init__(
            self.order, ranking, TERMS, offset, limit, distinct=equal, partition=partition
        )

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        ordered, _ = self.order.step(batches, watermarks, cut)
        return super().step([ordered], watermarks, cut)


@given(any_case, sort_keys, offsets, limits, st.booleans(), st.booleans())
def test_a_slice_is_that_of_each_snapshot(
    case: Case, keys: list, offset: int, limit: int | None, distinct: bool, closing: bool
) -> None:
    for variant in (case, at_once(*case.inputs), one_by_one(*case.inputs, cut=closing)):
        rows = drive(
            lambda source: Sliced(source, keys, offset, limit, distinct),
            NAMES,
            variant,
            closing=closing,
        )
        check_snapshots(
            without_sort_columns(rows),
            case,
            lambda bag: defined(bag, keys, offset, limit, distinct),
        )


@given(ties, sort_keys, offsets, limits, st.booleans())
def test_a_slice_with_many_ties_is_that_of_each_snapshot(
    case: Case, keys: list, offset: int, limit: int | None, distinct: bool
) -> None:
    rows = drive(lambda source: Sliced(source, keys, offset, limit, distinct), NAMES, case)
    check_snapshots(
        without_sort_columns(rows), case, lambda bag: defined(bag, keys, offset, limit, distinct)
    )


@given(ties, sort_keys, offsets, limits)
def test_each_partition_is_ranked_separately(
    case: Case, keys: list, offset: int, limit: int | None
) -> None:
    def make(source: Operator) -> Slice:
        return Sliced(source, keys, offset, limit, partition=("x",))

    def definition(bag: Bag) -> Bag:
        parts: dict[int, Bag] = {}
        for ids, n in bag.items():
            parts.setdefault(ids[0], Counter())[ids] = n
        each = (defined(part, keys, offset, limit, False) for part in parts.values())
        return sum(each, Counter())

    check_snapshots(without_sort_columns(drive(make, NAMES, case)), case, definition)


@pytest.mark.parametrize(("one", "other"), list(product(KINDS, KINDS)))
def test_a_descending_key_reverses_the_order(one: Term, other: Term) -> None:
    up = comparison_key(one) < comparison_key(other)
    assert (descending_key(other) < descending_key(one)) == up
    same = comparison_key(one) == comparison_key(other)
    assert (descending_key(one) == descending_key(other)) == same


@given(any_case, sort_keys)
def test_order_by_only_adds_columns(case: Case, keys: list) -> None:
    compiled_keys = [(compile_expression(key, TERMS, Run()), down) for key, down in keys]
    rows = drive(lambda source: OrderBy(source, compiled_keys, ["x", "y"]), NAMES, case)
    for row in rows:
        at = {X: row.ids[0], Y: row.ids[1]}
        assert row.ids[2:] == (*(at[key] for key, _ in keys), *row.ids[:2])
    check_snapshots(without_sort_columns(rows), case, lambda bag: bag)


# -- State and size


def batch(xs: list[int], start: int, end: int, count: int | None = None) -> Batch:
    full = np.full(len(xs), count, np.int64) if count is not None else None
    ids = np.array(xs, np.int64)
    times = np.full(len(xs), start, np.int64), np.full(len(xs), end, np.int64)
    return Batch({"x": ids, "y": ids}, *times, full)


@pytest.mark.parametrize(("offset", "limit"), [(0, 3), (2, 3), (5, None), (0, 0)])
def test_a_million_equal_rows_need_little_state_and_time(offset: int, limit: int | None) -> None:
    slice_ = Sliced(DrivenInput(["x", "y"]), [(X, True)], offset, limit)
    started = time.process_time()
    first, _ = slice_.step([batch([IDS[3]] * 200_000, EPOCH, EPOCH + 9)], [EPOCH + 1], False)
    assert slice_.size() <= 5 + 3
    second, _ = slice_.step([batch([IDS[4]], EPOCH + 1, EPOCH + 9, 1_000_000)], [INFINITY], False)
    assert time.process_time() - started < 2
    holding = sum(
        int(b.where((b.start <= EPOCH + 5) & (b.end > EPOCH + 5)).counts().sum())
        for b in (first, second)
    )
    assert holding == (1_200_000 - offset if limit is None else limit)


def test_an_empty_partition_is_purged() -> None:
    slice_ = Sliced(DrivenInput(["x", "y"]), [], 0, 1, partition=("x",))
    for t in range(100):
        slice_.step([batch([IDS[t % 20]], t, t + 3)], [t], True)
    assert len(slice_._ranks._slices) <= 4
    assert slice_.size() <= 5


def test_retained_ids_are_reported() -> None:
    slice_ = Sliced(DrivenInput(["x", "y"]), [], 0, 1)
    slice_.step([batch(IDS[:4], 3, 9)], [4], False)
    slice_.step([batch(IDS[4:6], 5, 9)], [4], False)
    retained = {term for ids in slice_.retained_ids() for term in ids.tolist()}
    assert retained >= set(IDS[:6])


def test_forget_clears_the_sort_keys_of_reused_ids() -> None:
    terms = TermDictionary()
    keys = SortKeys(Ranking((("x", False),), ()), terms)
    old, kept = (terms.id_of(IRI(f"http://e/{name}")) for name in "zm")
    rows = batch([old, kept], 0, 1)
    assert keys.of(rows)[0] > keys.of(rows)[1]
    terms.recycle([np.array([kept])])
    new = terms.id_of(IRI("http://e/a"))
    assert new == old, "the id is reused"
    keys.forget()
    assert keys.of(rows)[0] < keys.of(rows)[1]
