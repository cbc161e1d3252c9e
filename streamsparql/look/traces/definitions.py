"""The other side of a trace: what the definitions of the logical plan say of the same data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.algebra import access, match
from streamsparql.algebra.functions import Run
from streamsparql.algebra.graph import Graph
from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.plan import Plan, SnapshotOperator
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI, Literal, Triple
from streamsparql.algebra.xsd.values import date_time_literal
from streamsparql.look.explain.boxes.titles import title
from streamsparql.look.traces.trace_rows import compared, numbered
from streamsparql.physical.batch import Batch
from streamsparql.physical.hidden import ANSWER, is_carried, variable_of
from streamsparql.physical.lowering.lower import Catalog

if TYPE_CHECKING:
    from streamsparql.look.traces.trace import Trace, TracedOperator


class Disagreement(NamedTuple):
    """An instant at which an operator does not give what the node means that it computes."""

    operator: TracedOperator
    t: int
    ours: Snapshot[Any]
    definition: Snapshot[Any]


class Defined(NamedTuple):
    """A node of the logical plan, and its snapshot at an instant."""

    number: int
    node: Plan
    title: str
    """What it is given, in the query's words."""
    inputs: tuple[int, ...]
    """The numbers of the nodes that it reads."""
    snapshot: Snapshot[Any]


@dataclass(frozen=True, repr=False)
class Logical:
    """The nodes of the logical plan at an instant, those below first, the query's result last."""

    trace: Trace
    t: int
    nodes: tuple[Defined, ...]

    def __iter__(self) -> Iterator[Defined]:
        return iter(self.nodes)

    def __getitem__(self, number: int) -> Defined:
        return numbered(self.nodes, number)

    def __str__(self) -> str:
        from streamsparql.look.traces.trace_text import of_logical

        return of_logical(self)

    def __repr__(self) -> str:
        return f"<Logical at {self.trace.wording.moment(self.t)}>"

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from streamsparql.look.jupyter.trace_tables import logical_html

        return logical_html(self)


class Definitions:
    """What the logical plans of a query say of the data of a trace."""

    def __init__(self, trace: Trace, catalog: Catalog, started: int) -> None:
        self._trace = trace
        streams: dict[IRI, list[StreamItem]] = {IRI(name): [] for name in trace.query.streams}
        for name, (triple, start, _) in trace.items:
            streams.setdefault(IRI(name), []).append(StreamItem(triple, start, start))
        self.inputs = Inputs(
            streams=streams,
            graph=self._triples(catalog.default),
            graphs={name: self._triples(batch) for name, batch in catalog.named.items()},
            run=Run(date_time_literal(started)),
        )

    def _triples(self, batch: Batch) -> frozenset[Triple]:
        return frozenset(element.item for element in self._trace.decoder.elements(batch))

    def logical(self, t: int) -> Logical:
        """The snapshots of the nodes of the logical plan."""
        write = self._trace.wording.write
        numbers: dict[Plan, int] = {}
        found: list[Defined] = []
        for node in _below_first(self._trace.query.logical):
            numbers[node] = len(found) + 1
            below = tuple(numbers[each] for each in _read(node) if each in numbers)
            shown = node.at(t, self.inputs)
            found.append(Defined(len(found) + 1, node, title(node, write), below, shown))
        return Logical(self._trace, t, tuple(found))

    def check(self) -> list[Disagreement]:
        """Where operators do not agree with their nodes, or the rows with the query."""
        trace = self._trace
        known = set(_comparable(trace.query.optimized))
        pairs = [
            (operator, operator.node)
            for operator, physical in zip(trace.operators, trace.physical, strict=True)
            if operator.node in known and not any(map(is_carried, physical.names))
        ]
        found: list[Disagreement] = []
        for t in trace.instants:
            moment = trace.at(t)
            for operator, node in pairs:
                assert node is not None
                ours, definition = moment[operator.number].snapshot, node.at(t, self.inputs)
                if Snapshot.of(compared(ours)) != Snapshot.of(compared(definition)):
                    found.append(Disagreement(operator, t, ours, definition))
            ours, definition = self._shown(moment[len(trace.operators)].snapshot), self._whole(t)
            if ours != definition:
                found.append(Disagreement(trace.operators[-1], t, ours, definition))
        return found

    def _whole(self, t: int) -> Snapshot[Any]:
        """What the query means."""
        found = self._trace.query.logical.at(t, self.inputs)
        if self._trace.query.form != "ask":
            return Snapshot.of(compared(found))
        answer = variable_of(ANSWER)
        return Snapshot.of(Solution({answer: x}) for x in found if isinstance(x, Literal))

    def _shown(self, rows: Snapshot[Any]) -> Snapshot[Any]:
        """What a reader sees of the rows."""
        if self._trace.query.form != "select":
            return rows
        names = [Variable(name) for name in self._trace.query.variables]
        return rows.map(lambda row: row.project(names))


def _read(node: Plan) -> tuple[Plan, ...]:
    """The plans whose snapshots a node is made of; the patterns of EXISTS are not among them."""
    return node.operands if isinstance(node, SnapshotOperator) else node.inputs


def _below_first(root: Plan) -> list[Plan]:
    """Each node once, after those that it reads; not those whose `GRAPH ?g` stands above them."""
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
            pending += [(below, False) for below in reversed(_read(node))]
    return list(order)


def _comparable(plan: Plan) -> Iterator[Plan]:
    """The nodes that have one meaning wherever they stand, matchings also by their sources."""
    for node in _below_first(plan):
        yield node
        if isinstance(node, match.TriplePatternMatching) and isinstance(node.input, access.Merge):
            for source in node.input.sources:
                yield match.TriplePatternMatching(node.pattern, source, node.stamps)
