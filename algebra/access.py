"""Access: the sources of a plan, streams and static graphs (SEMANTICS.md section 3).

`access(stream)` assigns the validity `[t, t+1)` to each item of a raw stream; windows lengthen it.
`access(graph)` assigns `[0, INFINITY)` to each triple of a static graph. Where a pattern reads
several default sources, they are merged below it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Events, Occurrence, Plan, SnapshotOperator
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.streams import Element, Snapshot
from streamsparql.algebra.terms import IRI, Triple
from streamsparql.overriding import override


class Stamped(NamedTuple):
    """A triple with its latest timestamp on each stream that delivered it.

    Only plans of queries that call `timestamp` contain these (SEMANTICS.md section 8).
    """

    triple: Triple
    stamps: tuple[tuple[IRI, int], ...]


class AccessStream(Plan):
    """A stream: an item stamped `t` holds over `[t, t+1)`. Section 3; ESWC 2008, Definition 1.

    With `stamped`, elements are `Stamped` triples.
    """

    family = "access"

    stream: IRI
    stamped: bool = False

    @override
    def elements(self, inputs: Inputs) -> list[Element[Hashable]]:
        return [
            Element(self._item(triple, t), t, t + 1) for triple, _, t in inputs.stream(self.stream)
        ]

    def _item(self, triple: Triple, t: int) -> Triple | Stamped:
        return Stamped(triple, ((self.stream, t),)) if self.stamped else triple

    @override
    def at(self, t: int, inputs: Inputs) -> Snapshot[Hashable]:
        return Snapshot.of(element.item for element in self.elements(inputs) if element.holds(t))

    @override
    def events(self, t: int, inputs: Inputs) -> Events:
        """Return the items known at `t`, each over its own occurrence. Section 7."""
        items = inputs.stream(self.stream)
        return frozenset(Occurrence(triple, a, w) for triple, a, w in items if w <= t)


class AccessGraph(Plan):
    """Static graphs, merged into one set of triples that always hold. Section 3.

    `graphs` are names; a variable among them denotes the graph that `GRAPH ?g` currently ranges
    over. `background` adds the default graph that the caller passes with the query.
    """

    family = "access"

    graphs: tuple[IRI | Variable, ...] = ()
    background: bool = False
    stamped: bool = False

    def _triples(self, inputs: Inputs) -> frozenset[Triple]:
        names = (inputs.graph_names[g] if isinstance(g, Variable) else g for g in self.graphs)
        graphs = [inputs.graphs.get(name, frozenset()) for name in names]
        return frozenset().union(*graphs, inputs.graph if self.background else ())

    @override
    def at(self, t: int, inputs: Inputs) -> Snapshot[Hashable]:
        triples = self._triples(inputs)
        return Snapshot.of(Stamped(x, ()) if self.stamped else x for x in triples)

    @override
    def events(self, t: int, inputs: Inputs) -> Events:
        """Return all triples, without an occurrence. Section 7."""
        return frozenset(Occurrence(triple) for triple in self._triples(inputs))


class Merge(SnapshotOperator):
    """The union of the sources of a pattern: multiplicities add. Sections 3 and 4."""

    family = "access"

    sources: tuple[Plan, ...]

    def __post_init__(self) -> None:
        assert len(self.sources) > 1, "a merge needs at least two sources"

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Hashable]) -> Snapshot[Hashable]:
        return Snapshot(entry for snapshot in snapshots for entry in snapshot.entries)

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return frozenset().union(*events)
