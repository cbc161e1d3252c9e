"""Graphs as input and output: GRAPH, CONSTRUCT, DESCRIBE; and ASK."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from streamsparql.algebra.access import Stamped
from streamsparql.algebra.expressions import OCCURRENCE
from streamsparql.algebra.filter import with_occurrence
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.plan import Events, Occurrence, Plan, SnapshotOperator
from streamsparql.algebra.solutions import (
    Solution,
    Variable,
    compatible,
    merge_solutions,
    number_equal_rows,
)
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term, Triple, boolean
from streamsparql.overriding import override


class Graph(Plan):
    """`GRAPH name { .. }` over the named graphs that the caller passes. Section 4, "Graphs".

    `GRAPH <iri>` is its input if a graph of that name exists, and empty otherwise. `GRAPH ?g` is
    the union over all named graphs, each joined with `?g` bound to the name. The join is applied
    last: inside the braces only patterns bind `?g`.
    """

    family = "graph"

    name: IRI | Variable
    input: Plan

    @override
    def at(self, t: int, inputs: Inputs) -> Snapshot[Solution]:
        """Return the input's solutions over the named graphs (SPARQL 1.1 section 18.6, Graph)."""
        if isinstance(self.name, IRI):
            return self.input.at(t, inputs) if self.name in inputs.graphs else Snapshot()
        return Snapshot(
            (merge_solutions(mu, row), n)
            for mu, inside in self._graphs(self.name, inputs)
            for row, n in self.input.at(t, inside).entries
            if compatible(mu, row)
        )

    @override
    def events(self, t: int, inputs: Inputs) -> Events:
        if isinstance(self.name, IRI):
            return self.input.events(t, inputs) if self.name in inputs.graphs else frozenset()
        return frozenset(
            event._replace(item=merge_solutions(mu, event.item))
            for mu, inside in self._graphs(self.name, inputs)
            for event in self.input.events(t, inside)
            if compatible(mu, event.item)
        )

    def _graphs(self, variable: Variable, inputs: Inputs) -> Iterator[tuple[Solution, Inputs]]:
        for name in inputs.graphs:
            yield Solution({variable: name}), inputs.in_graph(variable, name)


class Construct(SnapshotOperator):
    """CONSTRUCT: the set of triples that the template yields for the rows. Section 4, R16.

    A blank node of the template is a function of its label, the row, and the row's number among
    equal rows, so that cutting a validity does not change it.
    """

    family = "graph"

    template: tuple[TriplePattern, ...]
    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Triple]:
        """Return the instantiated template as a set (SPARQL 1.1 section 16.2)."""
        rows = number_equal_rows(snapshots[0].entries)
        triples = {
            triple: 1 for row, k in rows for triple in instantiate_template(self.template, row, k)
        }
        return Snapshot(triples.items())

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return frozenset(
            Occurrence(triple, event.start, event.end)
            for event in events[0]
            for triple in instantiate_template(self.template, with_occurrence(event), 1)
        )


def instantiate_template(
    template: tuple[TriplePattern, ...], row: Solution, number: int
) -> Iterator[Triple]:
    """Yield the template's triples for one row, without those that are not valid RDF.

    >>> p = TriplePattern(Variable("x"), IRI("p"), Variable("y"))
    >>> list(instantiate_template((p,), Solution({Variable("x"): IRI("a")}), 1))
    []
    """
    for pattern in template:
        terms = [_instantiate_place(place, row, number) for place in pattern]
        subject, predicate, value = terms
        if (
            isinstance(subject, IRI | BlankNode)
            and isinstance(predicate, IRI)
            and value is not None
        ):
            yield Triple(subject, predicate, value)


def _instantiate_place(place: Term | Variable, row: Solution, number: int) -> Term | None:
    if isinstance(place, Variable):
        return row.get(place)
    return template_node(place, row, number) if isinstance(place, BlankNode) else place


def template_node(place: BlankNode, row: Solution, number: int) -> BlankNode:
    """Return the blank node of a row for a blank node of a template.

    It is a function of the label, the row, and the row's number among equal rows. The duration of
    an event follows from its start and its end.

    >>> one, two = (template_node(BlankNode("b"), Solution(), number) for number in (1, 2))
    >>> one == two
    False
    """
    named = ((v, term) for v, term in row.items() if not v.stamp and v != _DURATION)
    return node_of_cells(place, (f"{v}={term}" for v, term in named), number)


_DURATION = OCCURRENCE["GETDURATION"]


def node_of_cells(place: BlankNode, cells: Iterable[str], number: int) -> BlankNode:
    """Return the blank node of a row whose bound variables and their terms are `cells`."""
    text = "\n".join([place.label, str(number), *sorted(cells)])
    return BlankNode("t" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:20])


class Describe(SnapshotOperator):
    """DESCRIBE: the concise bounded descriptions of resources. Section 4.

    For each resource (an IRI, or a variable's value in a row): all triples of `data` with it as
    subject, and recursively those of the blank nodes that are their objects.
    """

    family = "graph"

    resources: tuple[IRI | Variable, ...]
    input: Plan
    data: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Triple]:
        """Return the descriptions as a set of triples (SPARQL 1.1 section 16.4)."""
        rows, data = snapshots
        by_subject: dict[Term, list[Triple]] = {}
        for item, _ in data.entries:
            triple: Triple = item.triple if isinstance(item, Stamped) else item
            by_subject.setdefault(triple.subject, []).append(triple)
        pending = [
            resource if isinstance(resource, IRI) else row[resource]
            for row, _ in rows.entries
            for resource in self.resources
            if isinstance(resource, IRI) or resource in row
        ]
        described: set[Term] = set()
        while pending:
            term = pending.pop()
            if term not in described:
                described.add(term)
                triples = by_subject.get(term, ())
                pending += [x.object for x in triples if isinstance(x.object, BlankNode)]
        return Snapshot.of({x for term in described for x in by_subject.get(term, ())})


class Ask(SnapshotOperator):
    """ASK: one boolean, whether the input has a row. Section 4."""

    family = "graph"

    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Literal]:
        """Return the boolean (SPARQL 1.1 section 16.3)."""
        return Snapshot.of([boolean(len(snapshots[0]) > 0)])
