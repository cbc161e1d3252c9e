"""The joins over intervals, compared with the joins of the algebra at each instant.

Random rows, with unbound variables, ties, counts and unbounded ends, arrive in random steps, with
watermarks that lag by different amounts. The output is compared with the algebra's definition on
the snapshots, at each instant at which an input or the output changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.steps import (
    Bag,
    Case,
    DrivenInput,
    Ids,
    Row,
    at_once,
    cases,
    check_snapshots,
    drive,
    one_by_one,
    rows_over,
)

from streamsparql.algebra import join as algebra
from streamsparql.algebra.expressions import Call
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import SnapshotOperator as Logical
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Solution, Variable, compatible
from streamsparql.algebra.streams import INFINITY, Snapshot
from streamsparql.algebra.terms import IRI
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.kernels import intervals
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators import sliced
from streamsparql.physical.operators.filter import AntiJoin, Mark, SemiJoin
from streamsparql.physical.operators.join import Join, Minus
from streamsparql.physical.operators.left_join import LeftJoin, LeftJoinOn
from streamsparql.physical.state import key_index, sweep_area

LEFT, RIGHT = ("x", "y", "a"), ("b", "y", "x")
BOTH = ("x", "y", "a", "b")

ids = st.sampled_from([0, 1, 1, 2, 2, 3])
"""Often unbound (0), often equal."""
row = rows_over([ids, ids, ids])
bound_row = rows_over([st.sampled_from([1, 2])] * 3)
inputs = st.one_of(cases(row, row), cases(bound_row, bound_row))


def snapshot(bag: Bag, names: tuple[str, ...]) -> Snapshot[Solution]:
    """Convert a multiset of id rows to one of solutions."""
    return Snapshot((solution(row, names), n) for row, n in bag.items())


def solution(ids: tuple[int, ...], names: tuple[str, ...]) -> Solution:
    bindings = zip(names, ids, strict=True)
    return Solution({Variable(name): IRI(str(number)) for name, number in bindings if number})


def bag(snapshot_: Snapshot[Solution], names: tuple[str, ...]) -> Bag:
    counted: Bag = Counter()
    for mu, n in snapshot_.entries:
        terms = [mu.get(Variable(name)) for name in names]
        counted[tuple(int(x.value) if isinstance(x, IRI) else 0 for x in terms)] += n
    return counted


Definition = Callable[[Bag, Bag], Bag]


def defined_by(node: Logical, names: tuple[str, ...]) -> Definition:
    """Return the definition of a logical operator as a function of multisets of id rows."""

    def definition(left: Bag, right: Bag) -> Bag:
        snapshots = snapshot(left, LEFT), snapshot(right, RIGHT)
        return bag(node.static(0, Inputs(), *snapshots), names)

    return definition


class Differing:
    """A condition that two variables of the merged row are bound and differ."""

    def __init__(self, one: str, other: str) -> None:
        self.names = one, other

    def holds(self, batch: Batch) -> BoolArray:
        one, other = (batch.columns[name] for name in self.names)
        return (one != other) & (one != 0) & (other != 0)

    def forget(self) -> None:
        self.forgotten = True


DIFFER = Call("!=", (Variable("a"), Variable("b")))

Matches = Callable[[Ids, Ids], bool]
FALSE, TRUE = -7, -8


class BooleanTerms:
    """A term dictionary of two booleans."""

    def of_booleans(self, values: BoolArray) -> IntArray:
        return np.where(values, TRUE, FALSE)


def are_compatible(one: Ids, other: Ids) -> bool:
    return compatible(solution(one, LEFT), solution(other, RIGHT))


def are_equal_on_columns(one: Ids, other: Ids) -> bool:
    return one[2] == other[0] and one[1] == other[2]


def restricted(matches: Matches, positive: bool) -> Definition:
    """Return the definition that keeps the left rows with a match, or those without."""
    return lambda left, right: Counter(
        {row: n for row, n in left.items() if any(matches(row, o) for o in right) == positive}
    )


def marked(matches: Matches) -> Definition:
    """Return the definition that marks each left row with whether it has a match."""

    def mark(row: Ids, right: Bag) -> int:
        return TRUE if any(matches(row, other) for other in right) else FALSE

    return lambda left, right: Counter({(*row, mark(row, right)): n for row, n in left.items()})


ON = [("a", "b"), ("y", "x")]
OPERATORS: dict[str, tuple[Callable[..., Operator], Definition]] = {
    "join": (Join, defined_by(algebra.Join(UNIT, UNIT), BOTH)),
    "left join": (LeftJoin, defined_by(algebra.LeftJoin(UNIT, UNIT), BOTH)),
    "left join with a condition": (
        lambda left, right: LeftJoin(left, right, Differing("a", "b")),
        defined_by(algebra.LeftJoin(UNIT, UNIT, DIFFER), BOTH),
    ),
    "minus": (Minus, defined_by(algebra.Minus(UNIT, UNIT), LEFT)),
    "semi join": (SemiJoin, restricted(are_compatible, True)),
    "anti join": (AntiJoin, restricted(are_compatible, False)),
    "mark": (lambda a, b: Mark(a, b, None, "m", BooleanTerms()), marked(are_compatible)),
    "semi join on columns": (
        lambda a, b: SemiJoin(a, b, ON),
        restricted(are_equal_on_columns, True),
    ),
    "anti join on columns": (
        lambda a, b: AntiJoin(a, b, ON),
        restricted(are_equal_on_columns, False),
    ),
    "mark on columns": (
        lambda a, b: Mark(a, b, ON, "m", BooleanTerms()),
        marked(are_equal_on_columns),
    ),
    "semi join on nothing": (lambda a, b: SemiJoin(a, b, []), restricted(lambda a, b: True, True)),
}


def check(name: str, case: Case) -> None:
    make, definition = OPERATORS[name]
    check_snapshots(drive(make, [LEFT, RIGHT], case), case, definition)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=60)
@given(case=inputs)
def test_an_operator_is_its_definition_on_the_snapshots(name: str, case: Case) -> None:
    check(name, case)


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=1500)
@given(case=inputs)
def test_an_operator_is_its_definition_on_the_snapshots_of_many_cases(
    name: str, case: Case
) -> None:
    check(name, case)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=20)
@given(case=inputs)
def test_indexes_slices_and_small_blocks_change_nothing(name: str, case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_area, "_BRUTE", -1)
        patch.setattr(key_index, "_FEW", 0)
        patch.setattr(key_index, "_WASTE", 0)
        patch.setattr(intervals, "BLOCK", 2)
        patch.setattr(sliced, "SLICE", 3)
        check(name, case)


def test_minus_without_common_variables_keeps_all_rows() -> None:
    case = one_by_one([Row((1, 2, 3), 0, 9)], [Row((1, 2, 3), 2, 5)])
    output = drive(Minus, [LEFT, ("c", "d", "e")], case)
    check_snapshots(output, case, lambda left, right: left)


@st.composite
def numbered_matches(draw: st.DrawFn) -> Case:
    """Draw numbered left rows, and matches within their validity that do not arrive before them."""
    case = draw(cases(row, rows_over([st.integers(0, 20), ids])))
    lefts, pieces = case.inputs
    numbers = draw(st.permutations(range(1, len(lefts) + 1)))
    numbered = [left._replace(ids=(*left.ids, n)) for left, n in zip(lefts, numbers, strict=True)]
    matches, arrivals = [], []
    for piece, when in zip(pieces, case.arrivals[1], strict=True):
        if numbered:
            k = piece.ids[0] % len(numbered)
            left = numbered[k]
            start, end = max(piece.start, left.start), min(piece.end, left.end)
            if start < end:
                matches.append(
                    Row((left.ids[3], piece.ids[1], left.ids[0]), start, end, piece.count)
                )
                arrivals.append(max(when, case.arrivals[0][k]))
    return Case((tuple(numbered), tuple(matches)), (case.arrivals[0], tuple(arrivals)), case.steps)


@given(numbered_matches())
def test_a_left_join_with_precomputed_matches_adds_the_gaps(case: Case) -> None:
    def definition(left: Bag, matched: Bag) -> Bag:
        output: Bag = Counter()
        for (x, y, a, number), n in left.items():
            matches = {m: k for m, k in matched.items() if m[0] == number}
            for (_, b, x2), k in matches.items():
                output[x2, 0, 0, b] += k
            if not matches:
                output[x, y, a, 0] += n
        return output

    names = [(*LEFT, "n"), ("n", "b", "x")]
    check_snapshots(drive(lambda a, b: LeftJoinOn(a, b, "n"), names, case), case, definition)


# -- Cases that small random cases do not reach --------------------------------------------------


def column_rows(start: IntArray, end: IntArray, **columns: IntArray | int) -> Batch:
    """Return a batch; a number is repeated in all rows of its column."""
    full = {name: np.broadcast_to(column, len(start)) for name, column in columns.items()}
    return Batch(full, start, end)


def steps_of(
    make: Callable[..., Operator], left: Batch, right: Batch, steps: int
) -> tuple[list[Batch], Operator]:
    """Feed two batches to an operator in steps of equal length, with watermarks without lag."""
    operator = make(DrivenInput(tuple(left.columns)), DrivenInput(tuple(right.columns)))
    last = int(max(left.start[-1], right.start[-1])) + 1
    cuts = np.linspace(0, last, steps + 1).astype(np.int64)
    output = []
    for k in range(steps):
        parts = [
            side.part(*np.searchsorted(side.start, cuts[k : k + 2]).tolist())
            for side in (left, right)
        ]
        mark = int(cuts[k + 1]) if k < steps - 1 else INFINITY
        output.append(operator.step(parts, [mark, mark], False)[0])
    return output, operator


def short_lived(seed: int, many: int, name: str) -> Batch:
    """Return rows of one key, each valid for 1 to 10 ms."""
    random = np.random.default_rng(seed)
    start = np.sort(random.integers(0, many, many))
    return column_rows(start, start + random.integers(1, 11, many), k=7, **{name: np.arange(many)})


@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize("unbounded", [False, True])
def test_many_short_rows_of_one_key_stay_cheap(steps: int, unbounded: bool) -> None:
    left, right = short_lived(1, 100_000, "a"), short_lived(2, 100_000, "b")
    if unbounded:  # one unbounded row must not make all others candidates
        right.end[500] = INFINITY
    output, operator = steps_of(Join, left, right, steps)
    begun = np.searchsorted(right.start, left.end, "left")
    ended = np.searchsorted(np.sort(right.end), left.start, "right")
    assert sum(map(len, output)) == int((begun - ended).sum())
    assert operator.size() == 0


def test_a_million_duplicates_match_one_row() -> None:
    million = 1_000_000
    same = column_rows(np.full(million, 5), np.full(million, 9), k=7)
    one = column_rows(np.array([3]), np.array([7]), k=7, b=1)
    for left, right in ((same, one), (one, same)):
        output, _ = steps_of(Join, left, right, 1)
        assert sum(map(len, output)) == million
    output, _ = steps_of(LeftJoin, one, same, 1)
    starts, ends = (
        np.concatenate([b.start for b in output]),
        np.concatenate([b.end for b in output]),
    )
    assert len(starts) == million + 1
    assert (starts[0], ends[0]) == (3, 5)
    output, _ = steps_of(AntiJoin, same, one, 1)
    assert {(*map(int, pair),) for b in output for pair in zip(b.start, b.end)} == {(7, 9)}


def test_colliding_keys_are_distinguished() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_area, "row_keys", lambda columns, rows: np.zeros(rows, np.int64))
        left = [Row((x, y, 1), 0, 9) for x in (1, 2) for y in (1, 2, 3)]
        right = [Row((5, y, x), 2, 5) for x in (2, 3) for y in (2, 3, 4)]
        for name in OPERATORS:
            check(name, at_once(left, right))


class Integers:
    """A term dictionary of inlined integers whose ids are in descending order."""

    def integers_of(self, ids: IntArray) -> IntArray:
        return -ids


def test_compatibility_ignores_stamps_and_merging_takes_the_greatest() -> None:
    left = [Row((1, -5, -2), 0, 9), Row((2, 0, -4), 0, 9)]
    right = [Row((-3, -7, 1), 0, 9), Row((0, -1, 2), 0, 9)]
    names = [("x", ".t of a", ".t of b"), (".t of a", ".t of b", "x")]
    for make in (Join, LeftJoin):

        def with_terms(a: Operator, b: Operator, make: Callable[..., Operator] = make) -> Operator:
            return make(a, b, terms=Integers())

        output = drive(with_terms, names, at_once(left, right))
        assert {row.ids for row in output} == {(1, -5, -7), (2, 0, -4)}


def test_rows_matched_with_a_static_side_are_not_retained() -> None:
    static = column_rows(np.zeros(50, np.int64), np.full(50, INFINITY), k=np.arange(1, 51), b=1)
    for make in (Join, LeftJoin, SemiJoin, AntiJoin, Minus):
        operator = make(DrivenInput(("k", "a")), DrivenInput(("k", "b")))
        nothing = Batch.empty(("k", "b"))
        operator.step([Batch.empty(("k", "a")), static], [0, INFINITY], False)
        for t in range(0, 1000, 100):
            times = np.arange(t, t + 100)
            left = column_rows(times, times + 10_000, k=times % 90 + 1, a=2)
            batch, mark = operator.step([left, nothing], [t + 100, INFINITY], False)
            assert mark == t + 100
            assert len(batch) >= 40, "final at once"
            assert operator.size() == 50


def test_facts_name_the_join_columns() -> None:
    def facts(make: Callable[..., Operator]) -> str:
        return make(DrivenInput(LEFT), DrivenInput(RIGHT)).facts()

    assert facts(Join) == facts(LeftJoin) == facts(AntiJoin) == "on x, y"
    assert facts(Minus) == "sharing one of x, y"
    assert facts(lambda a, b: SemiJoin(a, b, ON)) == "on a = b, y = x"
    assert facts(lambda a, b: SemiJoin(a, b, [])) == "on no column: any row matches"


def test_forget_reaches_the_condition_of_a_left_join() -> None:
    condition = Differing("a", "b")
    LeftJoin(DrivenInput(LEFT), DrivenInput(RIGHT), condition).forget()
    assert condition.forgotten


def test_expired_rows_are_purged() -> None:
    for make in (Join, LeftJoin, SemiJoin, AntiJoin, Minus):
        operator = make(DrivenInput(("k", "a")), DrivenInput(("k", "b")))
        for t in range(0, 20_000, 1000):
            times = np.arange(t, t + 1000, 10)
            left = column_rows(times, times + 1500, k=times % 7, a=2)
            right = column_rows(times, times + 700, k=times % 5, b=3)
            operator.step([left, right], [t + 1000, t + 990], False)
            assert operator.size() < 3000
        empty = [Batch.empty(("k", "a")), Batch.empty(("k", "b"))]
        operator.step(empty, [30_000, 30_000], False)
        assert operator.size() == 0
        assert not any(len(column) for column in operator.retained_ids())


def test_an_unbounded_covered_row_still_matches_later_rows() -> None:
    short = [Row((2, 2, k), k, k + 2) for k in range(1, 40)]
    left = [Row((1, 1, 1), 0, INFINITY), *short, Row((1, 1, 2), 50, 60)]
    right = [Row((5, 1, 1), 1, INFINITY), Row((6, 1, 1), 45, 48), Row((7, 1, 1), 52, 55)]
    for name in OPERATORS:
        check(name, one_by_one(left, right))
