"""The joins over intervals are the joins of the algebra at each instant.

Random rows, with unbound variables, ties, counts and ends at INFINITY, come in random steps, with
watermarks that trail by different lags; what comes out is compared with the algebra's own
definition on the snapshots, at each instant at which an input or the output changes.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from steps import Bag, Case, agrees, cases, drive, rows_over

from streamsparql.algebra import join as algebra
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Operator as Logical
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI
from streamsparql.physical.join import Join

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
