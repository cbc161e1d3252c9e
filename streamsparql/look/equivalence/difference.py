"""The first difference of two plans over data: their definitions, evaluated at change points.

Snapshots change only where an element enters or leaves a window, so evaluating the plans at the
change points of all windows of both covers all instants.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.algebra.align import Align
from streamsparql.algebra.event import Detect
from streamsparql.algebra.graph import Graph
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import is_ordered
from streamsparql.algebra.solutions import EMPTY, Solution, Variable
from streamsparql.algebra.streams import Snapshot, change_points
from streamsparql.algebra.terms import BlankNode
from streamsparql.algebra.window import Window
from streamsparql.look.equivalence.isomorphism import are_isomorphic


class Difference(NamedTuple):
    """An instant at which two plans have different snapshots, and the snapshots.

    `row` is the outer row under which the plans were evaluated, as patterns of an EXISTS.
    """

    t: int
    one: Snapshot[Any]
    other: Snapshot[Any]
    row: Solution = EMPTY


class SnapshotComparison:
    """A comparison of two plans over data, at all instants at which a snapshot can change.

    With `below_detect` they are compared as subplans of a `Detect`, whose rows are events.
    """

    def __init__(self, one: Plan, other: Plan, below_detect: bool = False) -> None:
        self.one, self.other = one, other
        self.below_detect = below_detect
        self._ordered = is_ordered(one) and is_ordered(other)
        self._nodes = list({id(x): x for plan in (one, other) for x in plan.walk()}.values())
        self.graph_variables = frozenset(free_graph_variables(one) | free_graph_variables(other))

    def difference(self, data: Inputs, rows: Iterable[Solution] = (EMPTY,)) -> Difference | None:
        """Return the first difference over this data, under any of the outer rows.

        Return None without a difference. Free variables of `GRAPH ?g` are bound to the first graph.
        """
        if self.graph_variables:
            if not data.graphs:
                return None
            name = next(iter(data.graphs))
            for variable in self.graph_variables:
                data = data.in_graph(variable, name)
        evaluated = [(row, data.at_row(row) if row else data) for row in rows]
        for t in self.instants(data):
            for row, inputs in evaluated:
                one, other = self._at(self.one, t, inputs), self._at(self.other, t, inputs)
                if self._differ(one, other, inputs):
                    return Difference(t, one, other, row)
        return None

    def _differ(self, one: Snapshot[Any], other: Snapshot[Any], data: Inputs) -> bool:
        if one == other and not (self._ordered and list(one) != list(other)):
            return False
        items = chain.from_iterable(data.streams.values())
        triples = chain((item.triple for item in items), data.graph, *data.graphs.values())
        known = (term for triple in triples for term in triple if isinstance(term, BlankNode))
        return not are_isomorphic(one, other, known, self._ordered)

    def _at(self, plan: Plan, t: int, inputs: Inputs) -> Snapshot[Any]:
        if self.below_detect:
            return Snapshot.of(plan.events(t, inputs))
        return plan.at(t, inputs)

    def instants(self, data: Inputs) -> list[int]:
        """Return the instants at which a snapshot of one of the plans can change, in order."""
        points = {0}
        bare = self.below_detect
        for node in self._nodes:
            if isinstance(node, Window):
                points.update(change_points(node.validity(node.input.elements(data))))
            bare = bare or isinstance(node, Detect)
        if bare or any(map(_reads_bare_stream, (self.one, self.other))):
            ends = {item.end for stream in data.streams.values() for item in stream}
            points |= ends | {t + 1 for t in ends}
        for node in self._nodes:
            if isinstance(node, Align):
                points |= {
                    -((node.origin - t) // node.period) * node.period + node.origin
                    for t in [*points, *(t + 1 for t in points)]
                }
        return sorted(t for t in points if t >= 0)


def _reads_bare_stream(plan: Plan) -> bool:
    """Return whether a plan reads a stream without a window or a Detect above it."""
    pending, seen = [plan], set[int]()
    while pending:
        node = pending.pop()
        if isinstance(node, AccessStream):
            return True
        if id(node) not in seen and not isinstance(node, Window | Detect):
            seen.add(id(node))
            pending.extend(node.inputs)
    return False


def free_graph_variables(plan: Plan) -> set[Variable]:
    """Return the variables that name graphs in a plan and that no `GRAPH ?g` binds."""
    free: set[Variable] = set()
    pending: list[tuple[Plan, frozenset[Variable]]] = [(plan, frozenset())]
    seen: set[tuple[int, frozenset[Variable]]] = set()
    while pending:
        node, bound = pending.pop()
        if (id(node), bound) in seen:
            continue
        seen.add((id(node), bound))
        if isinstance(node, AccessGraph):
            free |= {g for g in node.graphs if isinstance(g, Variable)} - bound
        elif isinstance(node, Graph) and isinstance(node.name, Variable):
            bound |= {node.name}
        pending += [(below, bound) for below in node.inputs]
    return free
