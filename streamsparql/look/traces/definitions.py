"""The definitions of the logical plan, evaluated over the data of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.algebra import access, match
from streamsparql.algebra.event import Detect
from streamsparql.algebra.expressions import OCCURRENCE
from streamsparql.algebra.functions import Run
from streamsparql.algebra.graph import Graph
from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.plan import Plan, SnapshotOperator
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI, Literal, Triple
from streamsparql.algebra.xsd.values import date_time_literal
from streamsparql.display import Displayed
from streamsparql.look.explain.boxes.titles import title
from streamsparql.look.traces.trace_rows import numbered, occurrence, without_hidden
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.hidden import ANSWER, is_carried, variable_of
from streamsparql.physical.lowering.lower import Catalog

if TYPE_CHECKING:
    from streamsparql.look.traces.trace import Trace, TracedOperator


class Disagreement(NamedTuple):
    """An instant at which an operator's output differs from the definition of its node."""

    operator: TracedOperator
    t: int
    emitted: Snapshot[Any]
    """The snapshot of the operator's output."""
    definition: Snapshot[Any]


class NodeMoment(NamedTuple):
    """A node of the logical plan, and its snapshot at an instant."""

    number: int
    node: Plan
    title: str
    """Its parameters, as the query writes them."""
    inputs: tuple[int, ...]
    """The numbers of the nodes that it reads."""
    snapshot: Snapshot[Any]


@dataclass(frozen=True, repr=False)
class LogicalMoment(Displayed):
    """The nodes of the logical plan at an instant, inputs first, the query's result last."""

    trace: Trace
    t: int
    nodes: tuple[NodeMoment, ...]

    def __iter__(self) -> Iterator[NodeMoment]:
        return iter(self.nodes)

    def __getitem__(self, number: int) -> NodeMoment:
        return numbered(self.nodes, number)

    @override
    def __str__(self) -> str:
        from streamsparql.look.traces.trace_text import logical_text

        return logical_text(self)

    def __repr__(self) -> str:
        return f"<LogicalMoment at {self.trace.wording.moment(self.t)}>"


class Definitions:
    """The logical plans of a query, and the data of a trace over which they are evaluated."""

    def __init__(self, trace: Trace, catalog: Catalog, started: int) -> None:
        self._trace = trace
        streams: dict[IRI, list[StreamItem]] = {IRI(name): [] for name in trace.query.streams}
        for name, item in trace.items:
            streams.setdefault(IRI(name), []).append(StreamItem(item.item, *occurrence(item)))
        self.inputs = Inputs(
            streams=streams,
            graph=self._triples(catalog.default),
            graphs={name: self._triples(batch) for name, batch in catalog.named.items()},
            run=Run(date_time_literal(started)),
        )

    def _triples(self, batch: Batch) -> frozenset[Triple]:
        return frozenset(element.item for element in self._trace.decoder.elements(batch))

    def logical(self, t: int) -> LogicalMoment:
        """Evaluate each node of the logical plan at an instant.

        A node over events has those that end at the instant.
        """
        write = self._trace.wording.write
        numbers: dict[Plan, int] = {}
        nodes: list[NodeMoment] = []
        events = _below_detect(self._trace.query.logical)
        for node in _inputs_first(self._trace.query.logical):
            numbers[node] = len(nodes) + 1
            inputs = tuple(numbers[each] for each in _inputs_of(node) if each in numbers)
            snapshot = self._events(node, t) if node in events else node.at(t, self.inputs)
            nodes.append(NodeMoment(numbers[node], node, title(node, write), inputs, snapshot))
        return LogicalMoment(self._trace, t, tuple(nodes))

    def _events(self, node: Plan, t: int) -> Snapshot[Any]:
        """Return the event solutions of a node that become known at an instant."""
        known = node.events(t, self.inputs)
        return Snapshot.of(item for item, _, end in known if end == t)

    def check(self) -> list[Disagreement]:
        """Compare each operator with its node, and the result with the query, at each instant.

        Operators over events are not compared: they omit what no result can contain.
        """
        trace = self._trace
        comparable = set(_comparable(trace.query.optimized))
        pairs = [
            (operator, operator.node, _TIMES.difference(physical.names))
            for operator, physical in zip(trace.operators, trace.physical, strict=True)
            if operator.node in comparable and not any(map(is_carried, physical.names))
        ]
        disagreements: list[Disagreement] = []
        for t in trace.instants:
            moment = trace.at(t)
            for operator, node, unread in pairs:
                assert node is not None
                emitted, definition = moment[operator.number].snapshot, node.at(t, self.inputs)
                rows, expected = (without_hidden(each, unread) for each in (emitted, definition))
                if Snapshot.of(rows) != Snapshot.of(expected):
                    disagreements.append(Disagreement(operator, t, emitted, definition))
            emitted = self._result_columns(moment[len(trace.operators)].snapshot)
            definition = self._query_snapshot(t)
            if emitted != definition:
                disagreements.append(Disagreement(trace.operators[-1], t, emitted, definition))
        return disagreements

    def _query_snapshot(self, t: int) -> Snapshot[Any]:
        """Evaluate the query at an instant by its definition, in the form of the result's rows."""
        snapshot = self._trace.query.logical.at(t, self.inputs)
        if self._trace.query.form != "ask":
            return Snapshot.of(without_hidden(snapshot))
        answer = variable_of(ANSWER)
        return Snapshot.of(Solution({answer: x}) for x in snapshot if isinstance(x, Literal))

    def _result_columns(self, rows: Snapshot[Any]) -> Snapshot[Any]:
        """Project rows to the variables of the result."""
        if self._trace.query.form != "select":
            return rows
        names = [Variable(name) for name in self._trace.query.variables]
        return rows.map(lambda row: row.project(names))


_TIMES = frozenset(variable.name for variable in OCCURRENCE.values())
"""The times of events, which `Detect` emits only if they are read."""


def _inputs_of(node: Plan) -> tuple[Plan, ...]:
    """Return the plans that a node evaluates at its own instant, without patterns of EXISTS."""
    return node.operands if isinstance(node, SnapshotOperator) else node.inputs


def _inputs_first(root: Plan) -> list[Plan]:
    """Return each node once, after its inputs, without nodes that depend on a `GRAPH ?g` above."""
    order: dict[Plan, None] = {}
    pending = [(root, False)]
    while pending:
        node, ready = pending.pop()
        if node in order:
            continue
        if ready:
            order[node] = None
            continue
        pending.append((node, True))
        if not (isinstance(node, Graph) and isinstance(node.name, Variable)):
            pending += [(below, False) for below in reversed(_inputs_of(node))]
    return list(order)


def _below_detect(plan: Plan) -> set[Plan]:
    """Return the nodes that are evaluated over events."""
    detecting = (node for node in plan.operators() if isinstance(node, Detect))
    return {below for node in detecting for below in node.input.operators()}


def _comparable(plan: Plan) -> Iterator[Plan]:
    """Yield the nodes whose snapshot does not depend on where they are used.

    A matching over merged sources is lowered to one operator per source, so these are yielded too.
    """
    events = _below_detect(plan)
    for node in _inputs_first(plan):
        if node in events:
            continue
        yield node
        if isinstance(node, match.TriplePatternMatching) and isinstance(node.input, access.Merge):
            for source in node.input.sources:
                yield match.TriplePatternMatching(node.pattern, source, node.stamps)
