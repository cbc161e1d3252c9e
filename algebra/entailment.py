"""RDFS entailment: what triples entail, given the schema in static graphs (SEMANTICS.md section 9).

A schema consists of the statements with `rdfs:subClassOf`, `rdfs:subPropertyOf`, `rdfs:domain` and
`rdfs:range` in static graphs, and those that follow from them. Each of the rules of RDFS that are
applied has two premises: a triple, and a statement of the schema. So each triple entails by itself:

    >>> a, p, Dog, Animal = map(IRI, ("a", "p", "Dog", "Animal"))
    >>> schema = schema_of(frozenset([Triple(Dog, SUBCLASS, Animal), Triple(p, DOMAIN, Dog)]))
    >>> for triple in sorted(entailed_by(Triple(a, p, a), schema), key=str):
    ...     print(triple.predicate.value.rpartition("#")[2], triple.object)
    type <Animal>
    type <Dog>
    p <a>

A triple of a stream is never a statement of the schema, whatever its predicate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any

from streamsparql.algebra.access import AccessGraph, Stamped
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.match import TriplePattern, match
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Events, Plan, SnapshotOperator
from streamsparql.algebra.streams import Element, Snapshot
from streamsparql.algebra.terms import IRI, RDF, Literal, Triple
from streamsparql.overriding import override

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE = IRI(RDF + "type")
SUBCLASS, SUBPROPERTY = IRI(RDFS + "subClassOf"), IRI(RDFS + "subPropertyOf")
DOMAIN, RANGE = IRI(RDFS + "domain"), IRI(RDFS + "range")
SCHEMA_PREDICATES = (SUBCLASS, SUBPROPERTY, DOMAIN, RANGE)
"""The predicates of the statements of a schema."""

Triples = frozenset[Triple]


class Entailed(SnapshotOperator):
    """The triples, and what each of them entails with the schema in static graphs. Section 9.

    A triple that the same statement entails in several ways counts once; if several statements
    entail it, it counts once for each.
    """

    family = "access"

    input: Plan
    schema: AccessGraph

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Hashable]:
        """Apply the rules of RDFS to each triple (RDF 1.1 Semantics, section 9.2.1)."""
        triples, graph = snapshots
        schema = schema_of(frozenset(graph))
        return Snapshot((x, n) for item, n in triples.entries for x in entailed_by(item, schema))

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        """Return what each event entails, over the same occurrence. Section 7."""
        triples, graph = events
        schema = schema_of(frozenset(event.item for event in graph))
        return frozenset(
            event._replace(item=x) for event in triples for x in entailed_by(event.item, schema)
        )


class Entailing(SnapshotOperator):
    """The triples that match a pattern or entail a match of it. Section 9.

    A window of a group counts these: elements of the stream, not what they entail.
    """

    family = "access"

    pattern: TriplePattern
    input: Plan
    schema: AccessGraph

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Hashable]:
        triples, graph = snapshots
        schema = schema_of(frozenset(graph))
        return triples.where(lambda item: self._selects(item, schema))

    @override
    def elements(self, inputs: Inputs) -> list[Element[Hashable]]:
        schema = schema_of(frozenset(self.schema.at(inputs.start, inputs)))
        return [x for x in self.input.elements(inputs) if self._selects(x.item, schema)]

    def _selects(self, item: Any, schema: Triples) -> bool:
        entailed = (x.triple if isinstance(x, Stamped) else x for x in entailed_by(item, schema))
        return any(match(self.pattern, triple) is not None for triple in entailed)


def reads_entailed(plan: Plan) -> bool:
    """Return whether a plan reads entailed triples."""
    return plan.fold(_reads_entailed, keep="_reads_entailed")


def _reads_entailed(node: Node, parts: list[bool]) -> bool:
    return type(node) is Entailed or any(parts)


@lru_cache(maxsize=64)
def schema_of(graph: Triples) -> Triples:
    """Return the statements of the schema that a graph contains or entails.

    >>> c, d, e = map(IRI, "cde")
    >>> chain = frozenset([Triple(c, SUBCLASS, d), Triple(d, SUBCLASS, e)])
    >>> schema_of(chain) - chain == {Triple(c, SUBCLASS, e)}
    True
    """
    while True:
        schema = frozenset(x for x in graph if x.predicate in SCHEMA_PREDICATES)
        new = frozenset(_consequences(graph, schema)) - graph
        if not new:
            return schema
        graph |= new


def entailed_by(item: Triple | Stamped, schema: Triples) -> frozenset[Any]:
    """Return a triple, and what it entails; a stamped one keeps its stamps.

    >>> a, p, q = map(IRI, "apq")
    >>> print(*entailed_by(Triple(a, p, a), frozenset([Triple(p, SUBPROPERTY, q)])) - {(a, p, a)})
    <a> <q> <a>
    """
    if isinstance(item, Stamped):
        return frozenset(Stamped(x, item.stamps) for x in _closure(item.triple, schema))
    return _closure(item, schema)


@lru_cache(maxsize=4096)
def _closure(triple: Triple, schema: Triples) -> Triples:
    known = frozenset([triple])
    while new := frozenset(_consequences(known, schema)) - known:
        known |= new
    return known


def _consequences(triples: Iterable[Triple], schema: Triples) -> Iterator[Triple]:
    """Yield what each triple entails together with one statement of the schema."""
    for (x, p, y), (one, relation, other) in product(triples, schema):
        if relation == DOMAIN and one == p:  # rdfs2
            yield Triple(x, TYPE, other)
        if relation == RANGE and one == p and not isinstance(y, Literal):  # rdfs3
            yield Triple(y, TYPE, other)
        if relation == SUBPROPERTY and one == p and isinstance(other, IRI):  # rdfs7
            yield Triple(x, other, y)
        if relation == SUBPROPERTY and one == y and p == SUBPROPERTY:  # rdfs5
            yield Triple(x, SUBPROPERTY, other)
        if relation == SUBCLASS and one == y and p in (TYPE, SUBCLASS):  # rdfs9, rdfs11
            yield Triple(x, p, other)
