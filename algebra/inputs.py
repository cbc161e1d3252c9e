"""What a plan's definition is evaluated over: the whole history of its streams, and its graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streamsparql.algebra.functions import Run
from streamsparql.algebra.solutions import EMPTY, Solution, Variable
from streamsparql.algebra.terms import IRI, Triple
from streamsparql.errors import SourceError

DEFAULT_STREAM = IRI("urn:streamsparql:default-stream")
"""The stream that an EP-SPARQL query reads, which has no name in its text."""

MAX_JUMP = 86_400_000
"""A day in milliseconds: how far ahead of its stream an item is believed without another one."""


class StreamItem(NamedTuple):
    """An item of a raw stream: a triple that occurred over `[start, end]`, and is known at `end`.

    A triple with a timestamp `t` has both equal to `t`.
    """

    triple: Triple
    start: int
    end: int


def item(triple: Triple, t: int) -> StreamItem:
    """A triple stamped `t`.

    >>> item(Triple(IRI("s"), IRI("p"), IRI("o")), 5).end
    5
    """
    return StreamItem(triple, t, t)


@dataclass(frozen=True)
class Inputs:
    """Streams by name, in stream order; the background graph; named graphs.

    `run` is what is constant in a run: the value of NOW(), the base IRI. `outer` and `graph_names`
    are set during evaluation: the row that EXISTS is asked for, the graph each `GRAPH ?g` is at.
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
        """h0: the least timestamp over all stream elements, 0 when there is none."""
        return min((s[0].end for s in self.streams.values() if s), default=0)

    def stream(self, name: IRI) -> Sequence[StreamItem]:
        """The items of a stream; a stream that is read must be given."""
        if name not in self.streams:
            given = ", ".join(map(str, self.streams)) or "none"
            raise SourceError(f"no data is given for the stream {name}; given are: {given}")
        return self.streams[name]

    def at_row(self, row: Solution) -> Inputs:
        """The same inputs, asked for one outer row."""
        return replace(self, outer=row)

    def without(self, *variables: Variable) -> Inputs:
        """The same inputs; below here these variables are not those of the outer row."""
        if not any(variable in self.outer for variable in variables):
            return self
        kept = {v: term for v, term in self.outer.items() if v not in variables}
        return replace(self, outer=Solution(kept))

    def in_graph(self, variable: Variable, name: IRI) -> Inputs:
        """The same inputs, inside `GRAPH ?variable` at the graph of that name."""
        return replace(self, graph_names={**self.graph_names, variable: name})
