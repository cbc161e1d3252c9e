"""The join of several inputs, compared with its definition and with a tree of binary joins.

Rows choose the inputs that they ask by a policy. Whatever it chooses, the results are the same, so
most tests choose at random, and let each part of the rows be as small as it likes.

Not covered: which chains are joined this way (test_join_lowering.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.steps import (
    Bag,
    Case,
    DrivenInput,
    Row,
    at_once,
    cases,
    check_snapshots,
    drive,
    rows_over,
)

from streamsparql.algebra.streams import INFINITY
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.kernels import intervals
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators import multi_join, sliced
from streamsparql.physical.operators.join import Join
from streamsparql.physical.operators.multi_join import ChooseInput, MultiJoin, fewest_candidates
from streamsparql.physical.state import key_index, sweep_area

SHAPES: dict[str, list[tuple[str, ...]]] = {
    "star": [("x", "a"), ("x", "b"), ("x", "c")],
    "chain": [("x", "y"), ("y", "z"), ("z", "w")],
    "cycle": [("x", "y"), ("y", "z"), ("z", "x")],
    "nested": [("x", "y", "z"), ("y", "x"), ("z", "y", "x")],
    "star of four": [("x",), ("x", "a"), ("x", "b"), ("x", "a")],
    "chain and star of four": [("x", "y"), ("y", "z"), ("y", "w"), ("w", "x")],
    "product": [("x", "a"), ("b",), ("x", "c")],
    "two": [("x", "a"), ("x", "b")],
}
"""The columns of the inputs; some of them are asked by several keys."""

ids = st.sampled_from([0, 1, 1, 2, 2, 3])
"""Often unbound (0), often equal."""
bound = st.sampled_from([1, 2])


def inputs_of(names: Sequence[tuple[str, ...]]) -> st.SearchStrategy[Case]:
    """Draw inputs with these columns: streams, or an input that has ended from the start."""
    rows = st.sampled_from([ids, bound]).flatmap(
        lambda kind: cases(*(rows_over([kind] * len(n)) for n in names), max_rows=6)
    )
    return st.one_of(rows, rows.map(with_static_input))


def with_static_input(case: Case) -> Case:
    """Return the case with a static last input: its rows always hold, and come first."""
    always = tuple(row._replace(start=0, end=INFINITY) for row in case.inputs[-1])
    return Case((*case.inputs[:-1], always), (*case.arrivals[:-1], (0,) * len(always)), case.steps)


def merged(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the merge of two rows over all columns; None if they are not compatible."""
    if any(a and b and a != b for a, b in zip(one, other, strict=True)):
        return None
    return tuple(a or b for a, b in zip(one, other, strict=True))


def definition(names: Sequence[tuple[str, ...]], output: Sequence[str]) -> Callable[..., Bag]:
    """Return the join of multisets of rows, pair by pair from left to right."""
    every = list(dict.fromkeys(name for each in names for name in each))

    def wide(row: tuple[int, ...], columns: Sequence[str]) -> tuple[int, ...]:
        values = dict(zip(columns, row, strict=True))
        return tuple(values.get(name, 0) for name in every)

    def join(left: Bag, right: Bag) -> Bag:
        bag = Bag()
        for (one, n), (other, m) in product(left.items(), right.items()):
            if (both := merged(one, other)) is not None:
                bag[both] += n * m
        return bag

    def of(*bags: Bag) -> Bag:
        wides = []
        for bag, columns in zip(bags, names, strict=True):
            counted = Bag()
            for row, n in bag.items():
                counted[wide(row, columns)] += n
            wides.append(counted)
        projected = Bag()
        for row, n in reduce(join, wides).items():
            projected[tuple(row[every.index(name)] for name in output)] += n
        return projected

    return of


def at_random(seed: int) -> ChooseInput:
    """Return a policy that chooses any input for each row."""
    random = np.random.default_rng(seed)

    def choose(inputs: Sequence[int], counts: IntArray) -> IntArray:
        assert counts.shape[0] == len(inputs) > 1
        return random.integers(0, len(inputs), counts.shape[1])

    return choose


@contextmanager
def any_choice() -> Iterator[None]:
    """Count the candidates in all inputs in each step, and let all rows have their choice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multi_join, "CHEAP", -1)
        patch.setattr(multi_join, "RECOUNT", 0)
        patch.setattr(multi_join, "PART", -INFINITY)
        yield


def check(
    names: Sequence[tuple[str, ...]], case: Case, choose: ChooseInput, output: Sequence[str] = ()
) -> None:
    """Drive a join of a case; compare its snapshots with the definition."""
    every = tuple(dict.fromkeys(name for each in names for name in each))

    def make(*inputs: Operator) -> Operator:
        return MultiJoin(inputs, output or None, choose=choose)

    check_snapshots(drive(make, names, case), case, definition(names, output or every))


@pytest.mark.parametrize("shape", SHAPES)
def test_any_order_yields_the_join(shape: str) -> None:
    names = SHAPES[shape]

    @settings(max_examples=60)
    @given(inputs_of(names), st.integers(0, 1000))
    def test(case: Case, seed: int) -> None:
        with any_choice():
            check(names, case, at_random(seed))

    test()


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_any_order_yields_the_join_of_many_cases(shape: str) -> None:
    names = SHAPES[shape]

    @settings(max_examples=1000)
    @given(inputs_of(names), st.integers(0, 1000))
    def test(case: Case, seed: int) -> None:
        with any_choice():
            check(names, case, at_random(seed))

    test()


@pytest.mark.parametrize("shape", ["star", "cycle", "chain and star of four"])
def test_indexes_slices_and_small_blocks_change_nothing(shape: str) -> None:
    names = SHAPES[shape]

    @settings(max_examples=25)
    @given(inputs_of(names), st.integers(0, 1000))
    def test(case: Case, seed: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sweep_area, "_BRUTE", -1)
            patch.setattr(key_index, "_FEW", 0)
            patch.setattr(key_index, "_WASTE", 0)
            patch.setattr(intervals, "BLOCK", 2)
            patch.setattr(multi_join, "BLOCK", 2)
            patch.setattr(sliced, "SLICE", 3)
            check(names, case, fewest_candidates)
            with any_choice():
                check(names, case, at_random(seed))

    test()


@settings(max_examples=40)
@given(inputs_of(SHAPES["chain"]), st.permutations(["x", "z", "w"]))
def test_columns_that_nothing_reads_are_removed(case: Case, output: list[str]) -> None:
    check(SHAPES["chain"], case, fewest_candidates, output)


def test_an_input_may_be_joined_with_itself() -> None:
    source = DrivenInput(("x", "y"))
    operator = MultiJoin([source, source, DrivenInput(("y",))])
    rows = Batch({"x": np.array([1, 2]), "y": np.array([5, 5])}, np.zeros(2, int), np.full(2, 9))
    other = Batch({"y": np.array([5])}, np.array([3]), np.array([7]))
    output, _ = operator.step([rows, rows, other], [INFINITY] * 3, False)
    assert output.columns["x"].tolist() == [1, 2]
    assert output.start.tolist() == [3, 3]


class Integers:
    """A term dictionary of inlined integers whose ids are in descending order."""

    def integers_of(self, ids: IntArray) -> IntArray:
        return -ids


def test_compatibility_ignores_stamps_and_merging_takes_the_greatest() -> None:
    names = [("x", ".t of a"), (".t of a", "x", "b"), ("x", ".t of a")]
    case = at_once([Row((1, -5), 0, 9)], [Row((-7, 1, 3), 0, 9)], [Row((1, -6), 0, 9)])
    rows = drive(lambda *each: MultiJoin(each, terms=Integers()), names, case)
    assert [row.ids for row in rows] == [(1, -7, 3)]


# -- larger inputs ---------------------------------------------------------------------------------


def stream(random: np.random.Generator, rows: int, length: int, **values: int) -> Batch:
    """Return rows that hold for a while, with random ids of each column up to a number."""
    start = np.sort(random.integers(0, 2000, rows))
    columns = {name: random.integers(1, most + 1, rows) for name, most in values.items()}
    return Batch(columns, start, start + random.integers(1, length + 1, rows))


def skewed(random: np.random.Generator, rows: int, length: int, **values: int) -> Batch:
    """Return such rows, of which each column has a few frequent values."""
    batch = stream(random, rows, length, **values)
    for name, column in batch.columns.items():
        batch.columns[name] = np.where(random.random(rows) < 0.4, 1 + column % 3, column)
    return batch


def steps(inputs: Sequence[Batch], number: int) -> Iterator[tuple[list[Batch], list[int]]]:
    """Yield the inputs in steps of equal length; the last input is static, and comes first."""
    *streams, static = inputs
    cuts = np.linspace(0, 2001, number + 1).astype(np.int64)
    for k in range(number):
        parts = [each.part(*np.searchsorted(each.start, cuts[k : k + 2])) for each in streams]
        mark = int(cuts[k + 1]) if k < number - 1 else INFINITY
        marks = [mark] * len(streams)
        yield [*parts, static if k == 0 else static.part(0, 0)], [*marks, INFINITY]


def rows_of(batches: Sequence[Batch], names: Sequence[str]) -> list[list[int]]:
    """Return all rows with their validity, sorted."""
    whole = Batch.concat([batch.expanded() for batch in batches])
    arrays = [*(whole.columns[name] for name in names), whole.start, whole.end]
    return sorted(np.stack(arrays, 1).tolist())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["fewest candidates", "random"])
def test_it_agrees_with_binary_joins_over_many_rows(seed: int, policy: str) -> None:
    random = np.random.default_rng(seed)
    static = Batch(
        {"y": random.integers(1, 90, 300), "z": random.integers(1, 40, 300)},
        np.zeros(300, np.int64),
        np.full(300, INFINITY),
    )
    inputs = [
        skewed(random, 3000, 300, x=60, y=80),
        skewed(random, 2000, 20, x=60, z=30),
        stream(random, 1000, 900, y=80, z=30),
        static,
    ]
    sources = [DrivenInput(tuple(batch.columns)) for batch in inputs]
    joins = [Join(sources[0], sources[1])]
    for source in sources[2:]:
        joins.append(Join(joins[-1], source))
    choose = fewest_candidates if policy == "fewest candidates" else at_random(seed)
    together = MultiJoin(sources, choose=choose)
    expected, actual = [], []
    for batches, marks in steps(inputs, 7):
        output, mark = batches[0], marks[0]
        for join, right, right_mark in zip(joins, batches[1:], marks[1:], strict=True):
            output, mark = join.step([output, right], [mark, right_mark], False)
        expected.append(output)
        with any_choice():
            actual.append(together.step(batches, marks, False)[0])
    names = together.names
    assert rows_of(actual, names) == rows_of(expected, names) != []
    assert together.size() == 0


# -- state -----------------------------------------------------------------------------------------


def test_rows_are_retained_while_a_later_row_of_any_other_input_can_match() -> None:
    operator = MultiJoin([DrivenInput(("x", name)) for name in "abc"])
    rows = [
        Batch({"x": np.array([1]), n: np.array([2])}, np.array([0]), np.array([9])) for n in "abc"
    ]
    nothing = [batch.part(0, 0) for batch in rows]
    operator.step([rows[0], nothing[1], nothing[2]], [5, 5, 5], False)
    assert operator.size() == 1
    operator.step(nothing, [5, 20, 5], False)
    assert operator.size() == 1, "the third input can match it"
    operator.step(nothing, [5, 20, 9], False)
    assert operator.size() == 0


def test_rows_matched_with_static_inputs_are_not_retained() -> None:
    always = np.zeros(50, np.int64), np.full(50, INFINITY)
    statics = [Batch({"k": np.arange(1, 51), n: np.arange(1, 51)}, *always) for n in "bc"]
    operator = MultiJoin([DrivenInput(("k", name)) for name in "abc"])
    nothing = Batch.empty(("k", "a"))
    operator.step([nothing, *statics], [0, INFINITY, INFINITY], False)
    for t in range(0, 1000, 100):
        times = np.arange(t, t + 100)
        rows = Batch({"k": times % 90 + 1, "a": times + 1}, times, times + 10_000)
        ended = [static.part(0, 0) for static in statics]
        output, mark = operator.step([rows, *ended], [t + 100, INFINITY, INFINITY], False)
        assert mark == t + 100
        assert len(output) >= 40, "final at once"
        assert operator.size() == 100, "the static rows"


def test_expired_rows_are_purged() -> None:
    operator = MultiJoin([DrivenInput(("k", name)) for name in "abc"])
    for t in range(0, 20_000, 1000):
        times = np.arange(t, t + 1000, 10)
        batches = [
            Batch({"k": times % k + 1, name: times}, times, times + 10 * k)
            for k, name in ((50, "a"), (70, "b"), (90, "c"))
        ]
        operator.step(batches, [t + 1000, t + 990, t + 980], False)
        assert operator.size() < 1500
    operator.step([batch.part(0, 0) for batch in batches], [30_000] * 3, False)
    assert operator.size() == 0
    assert not any(len(column) for column in operator.retained_ids())


# -- the choice of inputs --------------------------------------------------------------------------

CROWD, STARS = range(1, 51), range(51, 101)
"""Rows with many candidates in the second input, and rows with many in the third."""


def drifting() -> tuple[MultiJoin, Callable[[range], int]]:
    """Return a join over two retained inputs, and a function that adds rows of its first input."""
    operator = MultiJoin(
        [DrivenInput(("x", "y")), DrivenInput(("x", "a")), DrivenInput(("y", "a"))]
    )
    keys = np.array([*CROWD, *STARS])
    batches = [Batch.empty(("x", "y"))]
    for name, many in (("x", CROWD), ("y", STARS)):
        column = np.repeat(keys, np.where(np.isin(keys, many), 90, 2))
        zeros = np.zeros(len(column), np.int64)
        batches.append(Batch({name: column, "a": np.arange(len(column)) % 7}, zeros, zeros + 100))
    operator.step(batches, [0, 0, 0], False)

    def add(rows: range) -> int:
        columns = {"x": np.array(rows), "y": np.array(rows)}
        new = Batch(columns, np.full(len(rows), 5), np.full(len(rows), 9))
        output, _ = operator.step([new, *(b.part(0, 0) for b in batches[1:])], [5, 5, 5], False)
        return len(output)

    return operator, add


def taken(operator: MultiJoin) -> dict[tuple[int, ...], int]:
    return {order: rows for order, rows in operator.orders() if order[0] == 0}


def test_each_row_asks_the_input_with_the_fewest_candidates_first() -> None:
    operator, add = drifting()
    add(range(1, 101))
    assert taken(operator) == {(0, 2, 1): 50, (0, 1, 2): 50}


def test_the_order_follows_a_drift_at_once() -> None:
    operator, add = drifting()
    for rows in (CROWD, STARS, CROWD):
        add(rows)
    assert taken(operator) == {(0, 2, 1): 100, (0, 1, 2): 50}


def test_a_few_rows_ask_as_the_others_do() -> None:
    operator, add = drifting()
    add(range(40, 55))  # 4 rows would make 352 pairs less if they were a part of their own
    assert taken(operator) == {(0, 2, 1): 15}


def test_rows_without_a_candidate_in_one_input_ask_none() -> None:
    operator, add = drifting()
    assert add(range(101, 200)) == 0
    assert taken(operator) == {}


def test_cheap_rows_are_not_counted_in_other_inputs() -> None:
    asked = []

    def choose(inputs: Sequence[int], counts: IntArray) -> IntArray:
        asked.append(len(counts))
        return fewest_candidates(inputs, counts)

    sources = [DrivenInput(("x", name)) for name in "abc"]
    operator = MultiJoin(sources, choose=choose)
    keys = np.arange(1, 101)
    for t in range(3):
        times = np.full(100, t), np.full(100, 9)
        operator.step([Batch({"x": keys, n: keys}, *times) for n in "abc"], [t, t, t], False)
    assert asked == []


def test_an_input_that_shares_no_variable_is_asked_last() -> None:
    names = [("x",), ("b",), ("x", "a")]
    operator = MultiJoin([*map(DrivenInput, names)])
    ones = [Batch({n: np.array([1]) for n in each}, np.array([0]), np.array([9])) for each in names]
    assert len(operator.step(ones, [0, 0, 0], False)[0]) == 1
    assert [order for order, _ in operator.orders()] == [(2, 0, 1)]


def test_short_lived_rows_ask_those_that_are_retained() -> None:
    operator = MultiJoin([DrivenInput(("x", name)) for name in "abc"])
    for t in range(0, 50, 10):
        times = np.arange(t, t + 10)
        now = Batch({"x": times % 3 + 1, "a": times + 1}, times, times + 1)
        others = [Batch({"x": times % 3 + 1, n: times + 1}, times, times + 30) for n in "bc"]
        operator.step([now if t else now.part(0, 0), *others], [t + 10] * 3, False)
    assert {order[0] for order, _ in operator.orders()} == {0}


def test_facts_name_the_join_columns() -> None:
    inputs = [DrivenInput(each) for each in SHAPES["chain"]]
    assert MultiJoin(inputs).facts() == "on y, z"
