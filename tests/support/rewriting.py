"""Shared by tests of the rewrite rules: random data, and checks that two plans are equivalent."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from support.engine import Data
from support.generate import triples

import streamsparql
from streamsparql.algebra.fixpoint import Replacement
from streamsparql.algebra.graph import Ask
from streamsparql.algebra.inputs import DEFAULT_STREAM, Inputs
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import phases
from streamsparql.algebra.rules.properties import is_ordered
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import change_points
from streamsparql.algebra.terms import IRI, BlankNode, Term, integer
from streamsparql.algebra.window import Window
from streamsparql.errors import EngineError

RULES = {rule.name: rule for phase in phases() for rule in phase.rules}
BELOW_EXISTS = {name for name, rule in RULES.items() if rule.below_exists}
Timed = list[tuple[tuple[str, str, str], int]]

TERMS: list[Term] = [IRI("http://e/a"), IRI("http://e/b"), BlankNode("n"), integer(1), integer(2)]
OUTER = st.dictionaries(
    st.sampled_from([Variable(name) for name in ("x", "y", "z", "w", "n1", "n2")]),
    st.sampled_from(TERMS),
    max_size=3,
)
"""Outer rows for which an EXISTS could evaluate a plan."""


@st.composite
def streams(draw: Callable[..., object]) -> Timed:
    """Draw a short stream."""
    items = draw(triples(6))
    assert isinstance(items, list)
    gaps = draw(st.lists(st.integers(0, 4), min_size=len(items), max_size=len(items)))
    assert isinstance(gaps, list)
    return [(item, sum(gaps[: k + 1])) for k, item in enumerate(items)]


@st.composite
def inputs(draw: Callable[..., object]) -> Inputs:
    """Draw two streams, the first also as default stream; a default graph, and two named graphs."""
    one, two, background = draw(streams()), draw(streams()), draw(triples(5))
    return streamsparql.inputs(  # type: ignore[no-any-return]
        {"http://e/s": one, "http://e/g1": two, DEFAULT_STREAM.value: one},
        graph=background,
        graphs={"http://e/g1": draw(triples(4)), "http://e/g2": draw(triples(3))},
    )


def inputs_of(history: Data) -> Inputs:
    """Return a history as inputs of definitions, the first stream also as default stream."""
    streams = {**history.streams, DEFAULT_STREAM.value: history.streams["http://e/s"]}
    return streamsparql.inputs(streams, history.graph, history.graphs)  # type: ignore[no-any-return]


def instants(plan: Plan, data: Inputs) -> list[int]:
    """Return the instants at which a snapshot of the plan can change."""
    points = {0, 30}
    for node in plan.walk():
        if isinstance(node, Window):
            points.update(change_points(node.validity(node.input.elements(data))))
    items = (item for stream in data.streams.values() for item in stream)
    points.update(item.end + k for item in items for k in (0, 1))
    return sorted(points)


def check_step(
    step: Replacement, data: Inputs, outer: dict[Variable, Term], times: list[int]
) -> None:
    """Check that a rewrite keeps the snapshots; for an outer row, too, if the rule permits it."""
    in_graph = data.in_graph(Variable("g"), IRI("http://e/g1"))
    below_exists = step.rule in BELOW_EXISTS and not isinstance(step.before, Ask)
    rows = [Solution()] + [Solution(outer)] * below_exists
    for row in rows:
        at_row = in_graph.at_row(row)
        for t in times:
            try:
                expected = step.before.at(t, at_row)
            except EngineError:  # the plan is over events
                assert step.before.events(t, at_row) == step.after.events(t, at_row), step
            else:
                assert step.after.at(t, at_row) == expected, (t, row, step)


def check_whole(before: Plan, after: Plan, data: Inputs, times: list[int]) -> None:
    """Check that two plans have the same snapshots, in the same order if they are ordered."""
    for t in times:
        one, other = before.at(t, data), after.at(t, data)
        assert one == other, before
        if is_ordered(before):
            assert list(one) == list(other), before
