"""The closure over intervals, compared with the closure of the edges that hold at each instant."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.steps import (
    Bag,
    Case,
    Row,
    at_once,
    cases,
    check_snapshots,
    drive,
    one_by_one,
    rows_over,
)

from streamsparql.algebra.path import _transitive_closure
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.path import TransitiveClosure

EDGE = ("s", "o")
node = st.integers(1, 4)


def closure(edges: Operator) -> TransitiveClosure:
    return TransitiveClosure(edges, *EDGE)


def definition(edges: Bag) -> Bag:
    pairs = Counter((IRI(str(a)), IRI(str(b))) for a, b in edges)
    return Counter((int(a.value), int(b.value)) for a, b in _transitive_closure(pairs))


@given(cases(rows_over([node, node])))
def test_the_closure_is_its_definition_on_the_snapshots(case: Case) -> None:
    check_snapshots(drive(closure, [EDGE], case), case, definition)


def test_cycles_diamonds_and_adjacent_validities_are_closed() -> None:
    ring = [Row((1, 2), 0, 9), Row((2, 3), 2, 12), Row((3, 1), 4, INFINITY), Row((1, 1), 5, 6)]
    diamond = [Row((1, 2), 0, 5), Row((2, 4), 0, 5), Row((1, 3), 5, 9), Row((3, 4), 3, 9)]
    for edges in (ring, diamond):
        for case in (at_once(edges), one_by_one(edges), one_by_one(edges, cut=True)):
            check_snapshots(drive(closure, [EDGE], case), case, definition)


def test_a_chain_is_closed_from_either_end() -> None:
    chain = [Row((k, k + 1), k, 200 - k) for k in range(1, 40)]
    back = [Row((40 - k, 41 - k), k, 200) for k in range(1, 40)]
    for edges in (chain, back):
        case = one_by_one(edges)
        check_snapshots(drive(closure, [EDGE], case)[:], case, definition)
