"""The input of a plan's definition: the whole history of its streams, and its graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streamsparql.algebra.functions import Run
from streamsparql.algebra.solutions import EMPTY, Solution, Variable
from streamsparql.algebra.terms import IRI, Triple
from streamsparql.errors import SourceError

DEFAULT_STREAM = IRI("urn:streamsparql:default-stream")
"""The name of the stream that an EP-SPARQL query reads; the query itself does not name it."""

MAX_JUMP = 86_400_000
"""A day in milliseconds: an item further ahead of its stream needs a second one to confirm it."""


class StreamItem(NamedTuple):
    """An item of a raw stream: a triple that occurred over `[start, end]` and is known at `end`.

    For a triple with a timestamp `t`, both equal `t`.
    """

    triple: Triple
    start: int
    end: int


def item(triple: Triple, t: int) -> StreamItem:
    """Return the item for a triple with the timestamp `t`.

    >>> item(Triple(IRI("s"), IRI("p"), IRI("o")), 5).end
    5
    """
    return StreamItem(triple, t, t)


@dataclass(frozen=True)
class Inputs:
    """Streams by name, in stream order; the background graph; named graphs.

    `run` has the constants of a run: the value of NOW(). `outer` and `graph_names` are set during
    evaluation: the outer row of an EXISTS, and the current graph of each `GRAPH ?g`.
    """

    streams: Mapping[IRI, Sequence[StreamItem]] = field(default_factory=dict)
    graph: frozenset[Triple] = frozenset()
    graphs: Mapping[IRI, frozenset[Triple]] = field(default_factory=dict)
    run: Run = field(default_factory=Run)
    outer: Solution = EMPTY
    graph_names: Mapping[Variable, IRI] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ordered = {name: sorted(s, key=lambda i: i.end) for name, s in self.streams.items()}
        object.__setattr__(self, "streams", ordered)

    @property
    def start(self) -> int:
        """The least timestamp over all stream elements (h0); 0 if the streams are empty."""
        return min((s[0].end for s in self.streams.values() if s), default=0)

    def stream(self, name: IRI) -> Sequence[StreamItem]:
        """Return the items of a stream; raise SourceError for a stream without data."""
        if name not in self.streams:
            names = ", ".join(map(str, self.streams)) or "no stream"
            raise SourceError(f"missing data for the stream {name}; the input has {names}")
        return self.streams[name]

    def at_row(self, row: Solution) -> Inputs:
        """Return the inputs with an outer row."""
        return replace(self, outer=row)

    def without(self, *variables: Variable) -> Inputs:
        """Return the inputs with these variables removed from the outer row."""
        if not any(variable in self.outer for variable in variables):
            return self
        kept = {v: term for v, term in self.outer.items() if v not in variables}
        return replace(self, outer=Solution(kept))

    def in_graph(self, variable: Variable, name: IRI) -> Inputs:
        """Return the inputs with `GRAPH ?variable` at the graph of this name."""
        return replace(self, graph_names={**self.graph_names, variable: name})
