"""RDF files: static graphs in any syntax, and TriG whose graphs are timestamped. By pyoxigraph.

A stream in TriG is a sequence of graphs, each with the statement of when it was generated:

    :g1 { :sensor :value 7 }    :g1 prov:generatedAtTime "2026-01-01T00:00:00Z"^^xsd:dateTime .

The triples of a graph are items with that stamp. They come when both are known, so a statement may
stand before its graph or after it. Positions count statements, since the parser tells no lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import numpy as np

from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import stamp_of

GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"
SYNTAXES = {
    "trig": "TRIG",
    "ttl": "TURTLE",
    "n3": "N3",
    "rdf": "RDF_XML",
    "owl": "RDF_XML",
    "xml": "RDF_XML",
    "jsonld": "JSON_LD",
    "nq": "N_QUADS",
}
"""What pyoxigraph calls the syntax of a file, by its extension."""

_MOST_ERRORS = 1000


def _statements(file: IO[bytes], syntax: str, reading: Reading) -> Iterator[Any]:
    """The statements of a file; a reject where there is something else."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise SourceError(
            f"{reading.name}: .{syntax} is read by pyoxigraph, which is not installed:"
            " pip install streamsparql[files]"
        ) from error
    form = getattr(pyoxigraph.RdfFormat, SYNTAXES[syntax])
    base = "file:///" if syntax in ("rdf", "owl", "xml", "jsonld") else None
    statements = pyoxigraph.parse(file, format=form, base_iri=base)
    number = errors = 0
    while True:
        number += 1
        try:
            yield number, next(statements)
        except StopIteration:
            return
        except SyntaxError as error:
            errors += 1
            if errors > _MOST_ERRORS:
                raise SourceError(f"{reading.name} is no .{syntax}: {error}") from error
            yield number, reading.reject(number, f"this is no statement: {error}", None)
        except (OSError, EOFError, ValueError) as error:
            raise SourceError(f"{reading.name}, statement {number}: {error}") from error


def graph_chunks(file: IO[bytes], syntax: str, reading: Reading, size: int) -> Iterator[Chunk]:
    """The triples of a static graph, as of instant 0; quads of named graphs are rejected."""
    statements = _statements(file, syntax, reading)
    while some := list(islice(statements, size)):
        held = _Held(reading)
        for number, found in some:
            if isinstance(found, Reject):
                held.rejects.append(found)
            elif _in_graph(found):
                reason = "a statement in a named graph is no part of a static graph"
                held.rejects.append(reading.reject(number, reason, str(found)))
            else:
                held.add(number, found, 0)
        yield held.chunk()


def trig_chunks(file: IO[bytes], reading: Reading, size: int) -> Iterator[Chunk]:
    """The triples of timestamped graphs, each graph once its stamp is known."""
    stamps: dict[str, int] = {}
    waiting: dict[str, list[tuple[int, Any]]] = {}
    held = _Held(reading)
    for number, found in _statements(file, "trig", reading):
        if isinstance(found, Reject):
            held.rejects.append(found)
        elif _tells_time(found):
            _stamped(held, number, found, stamps, waiting)
        elif not _in_graph(found):
            reason = f"a statement in no graph, which is no <{GENERATED}>, has no timestamp"
            held.rejects.append(reading.reject(number, reason, str(found)))
        elif (name := str(found.graph_name)) in stamps:
            held.add(number, found, stamps[name])
        else:
            waiting.setdefault(name, []).append((number, found))
        if len(held) >= size:
            yield held.chunk()
            held = _Held(reading)
    for name, items in waiting.items():
        reason = f"its graph {name} has no <{GENERATED}>"
        held.rejects += [reading.reject(n, reason, str(found)) for n, found in items]
    yield held.chunk()


def _tells_time(quad: Any) -> bool:
    """Whether a statement stamps a graph: it stands in no graph, or in the one that it is about."""
    if quad.predicate.value != GENERATED:
        return False
    return not _in_graph(quad) or quad.graph_name == quad.subject


def _stamped(
    held: _Held,
    number: int,
    quad: Any,
    stamps: dict[str, int],
    waiting: dict[str, list[tuple[int, Any]]],
) -> None:
    """Takes in what stamps a graph: its items so far need wait no more."""
    name = str(quad.subject)
    try:
        stamp = stamp_of(str(quad.object))
    except ValueError as error:
        held.rejects.append(held.reading.reject(number, str(error), str(quad)))
        return
    if stamps.setdefault(name, stamp) != stamp:
        reason = f"the graph {name} has another timestamp already"
        held.rejects.append(held.reading.reject(number, reason, str(quad)))
    for place, found in waiting.pop(name, ()):
        held.add(place, found, stamp)


def _in_graph(quad: Any) -> bool:
    return type(quad.graph_name).__name__ != "DefaultGraph"


class _Held:
    """Items that wait to become a chunk."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._items: list[tuple[str, str, str]] = []
        self._stamps: list[int] = []
        self._positions: list[int] = []
        self.rejects: list[Reject] = []

    def __len__(self) -> int:
        return len(self._items) + len(self.rejects)

    def add(self, number: int, quad: Any, stamp: int) -> None:
        """An item."""
        self._items.append((str(quad.subject), str(quad.predicate), str(quad.object)))
        self._stamps.append(stamp)
        self._positions.append(number)

    def chunk(self) -> Chunk:
        """All of them."""
        s, p, o = zip(*self._items, strict=True) if self._items else ((),) * 3
        stamps: IntArray = np.array(self._stamps, np.int64)
        positions: IntArray = np.array(self._positions, np.int64)
        return self.reading.chunk(
            (s, p, o), (stamps, {}), positions, self._items.__getitem__, None, self.rejects
        )
