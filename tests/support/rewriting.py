"""What the tests of the rewriting rules share: random data, and when two plans mean the same."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
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
ASKED = {name for name, rule in RULES.items() if rule.below_exists}
Timed = list[tuple[tuple[str, str, str], int]]

TERMS: list[Term] = [IRI("http://e/a"), IRI("http://e/b"), BlankNode("n"), integer(1), integer(2)]
OUTER = st.dictionaries(
    st.sampled_from([Variable(name) for name in ("x", "y", "z", "w", "n1", "n2")]),
    st.sampled_from(TERMS),
    max_size=3,
)
"""Rows that an EXISTS around a plan could be asked for."""


@st.composite
def streams(draw: Callable[..., object]) -> Timed:
    items = draw(triples(6))
    assert isinstance(items, list)
    gaps = draw(st.lists(st.integers(0, 4), min_size=len(items), max_size=len(items)))
    assert isinstance(gaps, list)
    return [(item, sum(gaps[: k + 1])) for k, item in enumerate(items)]


@st.composite
def inputs(draw: Callable[..., object]) -> Inputs:
    """Two streams, one of which also has no name; a default graph; two named ones."""
    one, two, background = draw(streams()), draw(streams()), draw(triples(5))
    return streamsparql.inputs(  # type: ignore[no-any-return]
        {"http://e/s": one, "http://e/g1": two, DEFAULT_STREAM.value: one},
        graph=background,
        graphs={"http://e/g1": draw(triples(4)), "http://e/g2": draw(triples(3))},
    )


def instants(plan: Plan, data: Inputs) -> list[int]:
    """The change points of all windows of a plan, which are those of all that is above them."""
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
    """What took a subplan's place has its snapshots; below an outer row too, if the rule says so."""
    held = data.in_graph(Variable("g"), IRI("http://e/g1"))
    asked_for_rows = step.rule in ASKED and not isinstance(step.before, Ask)
    rows = [Solution()] + [Solution(outer)] * asked_for_rows
    for row in rows:
        asked = held.at_row(row)
        for t in times:
            try:
                expected = step.before.at(t, asked)
            except EngineError:  # it is about events
                assert step.before.events(t, asked) == step.after.events(t, asked), step
            else:
                assert step.after.at(t, asked) == expected, (t, row, step)


def check_whole(before: Plan, after: Plan, data: Inputs, times: list[int]) -> None:
    """The plans have the same snapshots, in the same order where there is one."""
    for t in times:
        one, other = before.at(t, data), after.at(t, data)
        assert one == other, before
        if is_ordered(before):
            assert list(one) == list(other), before
