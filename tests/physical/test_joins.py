"""The joins over intervals are the joins of the algebra at each instant.

Random rows, with unbound variables, ties, counts and ends at INFINITY, come in random steps, with
watermarks that trail by different lags; what comes out is compared with the algebra's own
definition on the snapshots, at each instant at which an input or the output changes.
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
    Ids,
    Row,
    RunInput,
    agrees,
    at_once,
    cases,
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
from streamsparql.physical.operators import binary
from streamsparql.physical.operators.filter import AntiJoin, Mark, SemiJoin
from streamsparql.physical.operators.join import Join, Minus
from streamsparql.physical.operators.left_join import LeftJoin, LeftJoinOn
from streamsparql.physical.state import sweep_area

LEFT, RIGHT = ("x", "y", "a"), ("b", "y", "x")
BOTH = ("x", "y", "a", "b")

ids = st.sampled_from([0, 1, 1, 2, 2, 3])
"""Often unbound, often equal."""
row = rows_over([ids, ids, ids])
bound_row = rows_over([st.sampled_from([1, 2])] * 3)
inputs = st.one_of(cases(row, row), cases(bound_row, bound_row))


def snapshot(bag: Bag, names: tuple[str, ...]) -> Snapshot[Solution]:
    """A bag of id rows as the algebra's multiset of solutions."""
    return Snapshot((solution(row, names), n) for row, n in bag.items())


def solution(ids: tuple[int, ...], names: tuple[str, ...]) -> Solution:
    bindings = zip(names, ids, strict=True)
    return Solution({Variable(name): IRI(str(number)) for name, number in bindings if number})


def bag(found: Snapshot[Solution], names: tuple[str, ...]) -> Bag:
    counted: Bag = Counter()
    for mu, n in found.entries:
        terms = [mu.get(Variable(name)) for name in names]
        counted[tuple(int(x.value) if isinstance(x, IRI) else 0 for x in terms)] += n
    return counted


Definition = Callable[[Bag, Bag], Bag]


def defined_by(node: Logical, names: tuple[str, ...]) -> Definition:
    """What a logical operator makes of the snapshots of its operands, on bags of ids."""

    def definition(left: Bag, right: Bag) -> Bag:
        snapshots = snapshot(left, LEFT), snapshot(right, RIGHT)
        return bag(node.static(0, Inputs(), *snapshots), names)

    return definition


class Differing:
    """A condition: two variables of the merged row are bound and differ."""

    def __init__(self, one: str, other: str) -> None:
        self.names = one, other

    def holds(self, batch: Batch) -> BoolArray:
        one, other = (batch.columns[name] for name in self.names)
        return (one != other) & (one != 0) & (other != 0)

    def forget(self) -> None:
        self.forgotten = True


DIFFER = Call("!=", (Variable("a"), Variable("b")))

Partner = Callable[[Ids, Ids], bool]
FALSE, TRUE = -7, -8


class Marks:
    """A dictionary of two booleans."""

    def of_booleans(self, values: BoolArray) -> IntArray:
        return np.where(values, TRUE, FALSE)


def agree(one: Ids, other: Ids) -> bool:
    return compatible(solution(one, LEFT), solution(other, RIGHT))


def equal(one: Ids, other: Ids) -> bool:
    return one[2] == other[0] and one[1] == other[2]


def parted(partner: Partner, positive: bool) -> Definition:
    """The left rows that have a partner, or those that have none."""
    return lambda left, right: Counter(
        {row: n for row, n in left.items() if any(partner(row, o) for o in right) == positive}
    )


def marked(partner: Partner) -> Definition:
    """The left rows, each with whether it has a partner."""

    def mark(row: Ids, right: Bag) -> int:
        return TRUE if any(partner(row, other) for other in right) else FALSE

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
    "semi join": (SemiJoin, parted(agree, True)),
    "anti join": (AntiJoin, parted(agree, False)),
    "mark": (lambda a, b: Mark(a, b, None, "m", Marks()), marked(agree)),
    "semi join on columns": (lambda a, b: SemiJoin(a, b, ON), parted(equal, True)),
    "anti join on columns": (lambda a, b: AntiJoin(a, b, ON), parted(equal, False)),
    "mark on columns": (lambda a, b: Mark(a, b, ON, "m", Marks()), marked(equal)),
    "semi join on nothing": (lambda a, b: SemiJoin(a, b, []), parted(lambda a, b: True, True)),
}


def check(name: str, case: Case) -> None:
    make, definition = OPERATORS[name]
    agrees(drive(make, [LEFT, RIGHT], case), case, definition)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=60)
@given(case=inputs)
def test_an_operator_is_its_definition_on_the_snapshots(name: str, case: Case) -> None:
    check(name, case)


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=1500)
@given(case=inputs)
def test_an_operator_is_its_definition_on_many_snapshots(name: str, case: Case) -> None:
    check(name, case)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=20)
@given(case=inputs)
def test_long_runs_slices_and_small_blocks_change_nothing(name: str, case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_area, "_BRUTE", -1)
        patch.setattr(sweep_area, "_FEW", 0)
        patch.setattr(sweep_area, "_WASTE", 0)
        patch.setattr(intervals, "BLOCK", 2)
        patch.setattr(binary, "SLICE", 3)
        check(name, case)


def test_minus_without_common_variables_takes_nothing_away() -> None:
    case = one_by_one([Row((1, 2, 3), 0, 9)], [Row((1, 2, 3), 2, 5)])
    given_rows = drive(Minus, [LEFT, ("c", "d", "e")], case)
    agrees(given_rows, case, lambda left, right: left)


@st.composite
def ready_made(draw: st.DrawFn) -> Case:
    """Left rows with numbers, and pieces of them as matches that come no sooner than they do."""
    case = draw(cases(row, rows_over([st.integers(0, 20), ids])))
    lefts, pieces = case.inputs
    numbers = draw(st.permutations(range(1, len(lefts) + 1)))
    numbered = [left._replace(ids=(*left.ids, n)) for left, n in zip(lefts, numbers, strict=True)]
    matches, comes = [], []
    for piece, when in zip(pieces, case.comes[1], strict=True):
        if numbered:
            of = piece.ids[0] % len(numbered)
            left = numbered[of]
            start, end = max(piece.start, left.start), min(piece.end, left.end)
            if start < end:
                matches.append(
                    Row((left.ids[3], piece.ids[1], left.ids[0]), start, end, piece.count)
                )
                comes.append(max(when, case.comes[0][of]))
    return Case((tuple(numbered), tuple(matches)), (case.comes[0], tuple(comes)), case.rounds)


@given(ready_made())
def test_a_left_join_with_ready_made_matches_adds_the_gaps(case: Case) -> None:
    def definition(left: Bag, matched: Bag) -> Bag:
        found: Bag = Counter()
        for (x, y, a, number), n in left.items():
            mine = {m: k for m, k in matched.items() if m[0] == number}
            for (_, b, x2), k in mine.items():
                found[x2, 0, 0, b] += k
            if not mine:
                found[x, y, a, 0] += n
        return found

    names = [(*LEFT, "n"), ("n", "b", "x")]
    agrees(drive(lambda a, b: LeftJoinOn(a, b, "n"), names, case), case, definition)


# -- What no small random case shows -------------------------------------------------------------


def column_rows(start: IntArray, end: IntArray, **columns: IntArray | int) -> Batch:
    """A batch of many rows; a number stands for a column of it."""
    full = {name: np.broadcast_to(column, len(start)) for name, column in columns.items()}
    return Batch(full, start, end)


def steps_of(
    make: Callable[..., Operator], left: Batch, right: Batch, steps: int
) -> tuple[list[Batch], Operator]:
    """Plays two batches to an operator in steps of equal length, with tight watermarks."""
    operator = make(RunInput(tuple(left.columns)), RunInput(tuple(right.columns)))
    last = int(max(left.start[-1], right.start[-1])) + 1
    cuts = np.linspace(0, last, steps + 1).astype(np.int64)
    out = []
    for k in range(steps):
        parts = [
            side.part(*np.searchsorted(side.start, cuts[k : k + 2]).tolist())
            for side in (left, right)
        ]
        mark = int(cuts[k + 1]) if k < steps - 1 else INFINITY
        out.append(operator.step(parts, [mark, mark], False)[0])
    return out, operator


def short_lived(seed: int, many: int, name: str) -> Batch:
    """Rows of one key, each for 1 to 10 ms."""
    random = np.random.default_rng(seed)
    start = np.sort(random.integers(0, many, many))
    return column_rows(start, start + random.integers(1, 11, many), k=7, **{name: np.arange(many)})


@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize("forever", [False, True])
def test_one_giant_key_of_short_lives_does_not_explode(steps: int, forever: bool) -> None:
    left, right = short_lived(1, 100_000, "a"), short_lived(2, 100_000, "b")
    if forever:  # one row that lives on must not make all others candidates for ever
        right.end[500] = INFINITY
    out, operator = steps_of(Join, left, right, steps)
    begun = np.searchsorted(right.start, left.end, "left")
    ended = np.searchsorted(np.sort(right.end), left.start, "right")
    assert sum(map(len, out)) == int((begun - ended).sum())
    assert operator.size() == 0


def test_a_million_duplicates_meet_one_row() -> None:
    many = 1_000_000
    same = column_rows(np.full(many, 5), np.full(many, 9), k=7)
    one = column_rows(np.array([3]), np.array([7]), k=7, b=1)
    for left, right in ((same, one), (one, same)):
        out, _ = steps_of(Join, left, right, 1)
        assert sum(map(len, out)) == many
    out, _ = steps_of(LeftJoin, one, same, 1)
    starts, ends = np.concatenate([b.start for b in out]), np.concatenate([b.end for b in out])
    assert len(starts) == many + 1
    assert (starts[0], ends[0]) == (3, 5)
    out, _ = steps_of(AntiJoin, same, one, 1)
    assert {(*map(int, pair),) for b in out for pair in zip(b.start, b.end)} == {(7, 9)}


def test_keys_that_collide_are_told_apart() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_area, "row_keys", lambda columns, rows: np.zeros(rows, np.int64))
        left = [Row((x, y, 1), 0, 9) for x in (1, 2) for y in (1, 2, 3)]
        right = [Row((5, y, x), 2, 5) for x in (2, 3) for y in (2, 3, 4)]
        for name in OPERATORS:
            check(name, at_once(left, right))


class Integers:
    """A dictionary of inlined integers in an order of its own."""

    def integers_of(self, ids: IntArray) -> IntArray:
        return -ids


def test_stamps_play_no_part_in_compatibility_and_merge_by_their_greatest() -> None:
    left = [Row((1, -5, -2), 0, 9), Row((2, 0, -4), 0, 9)]
    right = [Row((-3, -7, 1), 0, 9), Row((0, -1, 2), 0, 9)]
    names = [("x", ".t of a", ".t of b"), (".t of a", ".t of b", "x")]
    for make in (Join, LeftJoin):

        def with_terms(a: Operator, b: Operator, make: Callable[..., Operator] = make) -> Operator:
            return make(a, b, terms=Integers())

        given_rows = drive(with_terms, names, at_once(left, right))
        assert {row.ids for row in given_rows} == {(1, -5, -7), (2, 0, -4)}


def test_what_met_a_static_side_is_kept_nowhere() -> None:
    static = column_rows(np.zeros(50, np.int64), np.full(50, INFINITY), k=np.arange(1, 51), b=1)
    for make in (Join, LeftJoin, SemiJoin, AntiJoin, Minus):
        operator = make(RunInput(("k", "a")), RunInput(("k", "b")))
        nothing = Batch.empty(("k", "b"))
        operator.step([Batch.empty(("k", "a")), static], [0, INFINITY], False)
        for t in range(0, 1000, 100):
            times = np.arange(t, t + 100)
            left = column_rows(times, times + 10_000, k=times % 90 + 1, a=2)
            batch, mark = operator.step([left, nothing], [t + 100, INFINITY], False)
            assert mark == t + 100
            assert len(batch) >= 40, "known at once"
            assert operator.size() == 50


def test_operators_say_what_they_are_joined_on() -> None:
    def facts(make: Callable[..., Operator]) -> str:
        return make(RunInput(LEFT), RunInput(RIGHT)).facts()

    assert facts(Join) == facts(LeftJoin) == facts(AntiJoin) == "on x, y"
    assert facts(Minus) == "sharing one of x, y"
    assert facts(lambda a, b: SemiJoin(a, b, ON)) == "on a = b, y = x"
    assert facts(lambda a, b: SemiJoin(a, b, [])) == "on nothing: whatever there is"


def test_a_left_join_lets_its_condition_forget() -> None:
    condition = Differing("a", "b")
    LeftJoin(RunInput(LEFT), RunInput(RIGHT), condition).forget()
    assert condition.forgotten


def test_state_goes_with_what_has_ended() -> None:
    for make in (Join, LeftJoin, SemiJoin, AntiJoin, Minus):
        operator = make(RunInput(("k", "a")), RunInput(("k", "b")))
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


def test_a_row_that_is_told_for_ever_still_meets_what_comes() -> None:
    short = [Row((2, 2, k), k, k + 2) for k in range(1, 40)]
    left = [Row((1, 1, 1), 0, INFINITY), *short, Row((1, 1, 2), 50, 60)]
    right = [Row((5, 1, 1), 1, INFINITY), Row((6, 1, 1), 45, 48), Row((7, 1, 1), 52, 55)]
    for name in OPERATORS:
        check(name, one_by_one(left, right))
