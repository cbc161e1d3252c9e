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
from hypothesis import given
from hypothesis import strategies as st
from steps import Bag, Case, Row, agrees, cases, drive, rows_over

from streamsparql.algebra import join as algebra
from streamsparql.algebra.expressions import Call
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Operator as Logical
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Solution, Variable, compatible
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.coverage import AntiJoin, LeftJoinOn, Mark, Minus, SemiJoin
from streamsparql.physical.join import Join
from streamsparql.physical.left_join import LeftJoin

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


def defined_by(node: Logical, names: tuple[str, ...], *inputs: tuple[str, ...]):
    """What a logical operator makes of the snapshots of its operands, on bags of ids."""

    def definition(*bags: Bag) -> Bag:
        snapshots = [snapshot(one, of) for one, of in zip(bags, inputs, strict=True)]
        return bag(node.static(0, Inputs(), *snapshots), names)

    return definition


JOIN = defined_by(algebra.Join(UNIT, UNIT), BOTH, LEFT, RIGHT)


@given(inputs)
def test_a_join_is_the_join_of_the_snapshots(case: Case) -> None:
    agrees(drive(Join, [LEFT, RIGHT], case), case, JOIN)


class Differing:
    """A condition: two variables of the merged row are bound and differ."""

    def __init__(self, one: str, other: str) -> None:
        self.names = one, other

    def holds(self, batch: Batch) -> BoolArray:
        one, other = (batch.columns[name] for name in self.names)
        return (one != other) & (one != 0) & (other != 0)


DIFFER = Call("!=", (Variable("a"), Variable("b")))


def joined_left(condition: Differing | None):
    return lambda left, right: LeftJoin(left, right, condition)


@given(inputs)
def test_a_left_join_is_the_left_join_of_the_snapshots(case: Case) -> None:
    definition = defined_by(algebra.LeftJoin(UNIT, UNIT), BOTH, LEFT, RIGHT)
    agrees(drive(LeftJoin, [LEFT, RIGHT], case), case, definition)


@given(inputs)
def test_a_left_join_filters_its_matches(case: Case) -> None:
    definition = defined_by(algebra.LeftJoin(UNIT, UNIT, DIFFER), BOTH, LEFT, RIGHT)
    make = joined_left(Differing("a", "b"))
    agrees(drive(make, [LEFT, RIGHT], case), case, definition)


@given(inputs)
def test_minus_is_the_minus_of_the_snapshots(case: Case) -> None:
    definition = defined_by(algebra.Minus(UNIT, UNIT), LEFT, LEFT, RIGHT)
    agrees(drive(Minus, [LEFT, RIGHT], case), case, definition)


@given(inputs)
def test_minus_without_common_variables_takes_nothing_away(case: Case) -> None:
    names = ("c", "d", "e")
    definition = defined_by(algebra.Minus(UNIT, UNIT), LEFT, LEFT, names)
    agrees(drive(Minus, [LEFT, names], case), case, definition)


Partner = Callable[[tuple[int, ...], tuple[int, ...]], bool]


def agree(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return compatible(solution(one, LEFT), solution(other, RIGHT))


def equal(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return one[2] == other[0] and one[1] == other[2]


ON: list[tuple[list[tuple[str, str]] | None, Partner]] = [
    (None, agree),
    ([("a", "b"), ("y", "x")], equal),
    ([], lambda one, other: True),
]


@pytest.mark.parametrize(("on", "partner"), ON)
@given(case=inputs)
def test_semi_and_anti_join_part_the_rows(
    on: list[tuple[str, str]] | None, partner: Partner, case: Case
) -> None:
    def parted(positive: bool) -> Callable[[Bag, Bag], Bag]:
        return lambda left, right: Counter(
            {row: n for row, n in left.items() if any(partner(row, o) for o in right) == positive}
        )

    def marked(left: Bag, right: Bag) -> Bag:
        marks = {True: TRUE, False: FALSE}
        return Counter(
            {(*row, marks[any(partner(row, o) for o in right)]): n for row, n in left.items()}
        )

    names = [LEFT, RIGHT]
    agrees(drive(lambda a, b: SemiJoin(a, b, on), names, case), case, parted(True))
    agrees(drive(lambda a, b: AntiJoin(a, b, on), names, case), case, parted(False))
    agrees(drive(lambda a, b: Mark(a, b, on, "m", Marks()), names, case), case, marked)


FALSE, TRUE = -7, -8


class Marks:
    """A dictionary of two booleans."""

    def of_booleans(self, values: BoolArray) -> IntArray:
        return np.where(values, TRUE, FALSE)


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
