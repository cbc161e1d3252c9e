"""Rewritten plans mean what the plans meant, at every instant; and rewriting is fast and ends.

The oracle is the definition itself: `plan.at(t)` of the query's plan and of the rewritten one. What
this cannot see: that both are wrong in the same way (the oracles of the other tests look at that),
and whether a rewritten plan is any faster (benchmarks/ does).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from generate import Features, queries, triples
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import X, matching, plan, stream
from test_depth import NESTED

import streamsparql
from streamsparql.algebra.align import Align, align, closing
from streamsparql.algebra.cost import Costs, Statistics
from streamsparql.algebra.expressions import Constant
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.inputs import DEFAULT_STREAM, Inputs
from streamsparql.algebra.join import Join
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import PRUNE, SETTLE, SIMPLIFY, Step, order, rewrite
from streamsparql.algebra.rules.properties import is_ordered
from streamsparql.algebra.shape import Projection
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import change_points
from streamsparql.algebra.terms import FALSE, IRI, BlankNode, Term, integer
from streamsparql.algebra.window import SlidingDeltaWindow, Window
from streamsparql.errors import EngineError

ALL = (*SIMPLIFY, *order(Costs()), *SETTLE, *PRUNE)
ASKED = {rule.name for rule in ALL if rule.asked}

STATIC = Features(named_graphs=True, volatile=True, limits=True)
FORMS = replace(STATIC, forms=("ask", "construct", "describe"), limits=False, volatile=False)
STREAMS = replace(STATIC, streams=True)
FEATURES = {
    "static": STATIC,
    "forms": FORMS,
    "streaming": STREAMS,
    "csparql": replace(STREAMS, dialect="csparql"),
    "cqels": replace(STREAMS, dialect="cqels", named_graphs=False),
    "rspql": replace(STREAMS, dialect="rspql", named_graphs=False),
    "epsparql": Features(
        dialect="epsparql",
        paths=False,
        exists=False,
        minus=False,
        forms=("select", "ask"),
        subqueries=False,
        groups=False,
    ),
}

Timed = list[tuple[tuple[str, str, str], int]]


@st.composite
def streams(draw: Callable[..., object]) -> Timed:
    items = draw(triples(6))
    assert isinstance(items, list)
    gaps = draw(st.lists(st.integers(0, 4), min_size=len(items), max_size=len(items)))
    assert isinstance(gaps, list)
    return [(item, sum(gaps[: k + 1])) for k, item in enumerate(items)]


@st.composite
def inputs(draw: Callable[..., object]) -> Inputs:
    one, two, background = draw(streams()), draw(streams()), draw(triples(5))
    return streamsparql.inputs(  # type: ignore[no-any-return]
        {"http://e/s": one, "http://e/g1": two, DEFAULT_STREAM.value: one},
        graph=background,
        graphs={"http://e/g1": draw(triples(4)), "http://e/g2": draw(triples(3))},
    )


TERMS: list[Term] = [IRI("http://e/a"), IRI("http://e/b"), BlankNode("n"), integer(1), integer(2)]
OUTER = st.dictionaries(
    st.sampled_from([Variable(name) for name in ("x", "y", "z", "w", "n1", "n2")]),
    st.sampled_from(TERMS),
    max_size=3,
)


def instants(found: Plan, data: Inputs) -> list[int]:
    """The change points of all windows of a plan, which are those of all that is above them."""
    points = {0, 30}
    for node in found.walk():
        if isinstance(node, Window):
            points.update(change_points(node.validity(node.input.elements(data))))
    points.update(
        item.end + k for stream in data.streams.values() for item in stream for k in (0, 1)
    )
    return sorted(points)


def check(query: str, data: Inputs, outer: dict[Variable, Term]) -> Iterator[Step]:
    """Each step keeps the subplan's snapshots, under outer rows as well; the whole keeps order."""
    before = streamsparql.compile(query).logical
    found = rewrite(before)
    times = instants(before, data)[:14]
    for step in found.trace:
        held = data.in_graph(Variable("g"), IRI("http://e/g1"))
        rows = [Solution()] + [Solution(outer)] * (step.rule in ASKED)
        for row in rows:
            for t in times:
                asked = held.at_row(row)
                try:
                    expected = step.before.at(t, asked)
                except EngineError:  # it is about events
                    assert step.before.events(t, asked) == step.after.events(t, asked), step
                else:
                    assert step.after.at(t, asked) == expected, (t, row, step)
        yield step
    for t in times:
        one, other = before.at(t, data), found.plan.at(t, data)
        assert one == other, query
        if is_ordered(before):
            assert list(one) == list(other), query


FIRED: dict[str, int] = {}


@pytest.mark.parametrize("dialect", FEATURES)
def test_a_rewritten_plan_has_the_same_snapshots(dialect: str) -> None:
    @settings(max_examples=60)
    @given(queries(FEATURES[dialect]), inputs(), OUTER)
    def run(query: str, data: Inputs, outer: dict[Variable, Term]) -> None:
        for step in check(query, data, outer):
            FIRED[step.rule] = FIRED.get(step.rule, 0) + 1

    run()


@pytest.mark.long
@pytest.mark.parametrize("dialect", FEATURES)
def test_many_rewritten_plans_have_the_same_snapshots(dialect: str) -> None:
    @settings(max_examples=1500)
    @given(queries(FEATURES[dialect]), inputs(), OUTER)
    def run(query: str, data: Inputs, outer: dict[Variable, Term]) -> None:
        for step in check(query, data, outer):
            FIRED[step.rule] = FIRED.get(step.rule, 0) + 1

    run()


def test_every_rule_was_used() -> None:
    missing = {rule.name for rule in ALL} - FIRED.keys()
    assert not missing, FIRED
