"""RDF files, parsed by pyoxigraph: static graphs in any syntax, TriG of timestamped graphs.

A stream in TriG is a sequence of graphs, each with a statement of when it was generated:

    :g1 { :sensor :value 7 }    :g1 prov:generatedAtTime "2026-01-01T00:00:00Z"^^xsd:dateTime .

The triples of a graph are items with that stamp. They are emitted once the stamp is known, so the
statement may precede its graph or follow it. Positions count statements, since the parser reports
no lines.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import numpy as np

from streamsparql.algebra.terms import XSD
from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.lines import AvailableReader, is_pipe, truncation
from streamsparql.sources.nesting import CheckedJson, CheckedTripleTerms
from streamsparql.sources.quads import lines_of, split_lines
from streamsparql.sources.xml_entities import CheckedEntities

GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"
SYNTAXES = {
    "trig": "TRIG",
    "ttl": "TURTLE",
    "n3": "N3",
    "rdf": "RDF_XML",
    "owl": "RDF_XML",
    "xml": "RDF_XML",
    "jsonld": "JSON_LD",
}
"""The name of a syntax in pyoxigraph, by the extension of the file."""

_MAX_ERRORS = 1000


def _runs(
    file: IO[bytes], syntax: str, encoder: Encoder, size: int
) -> Iterator[tuple[int, list[Any] | Reject]]:
    """Yield runs of statements, each with the number of its first; or a reject in their place."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise SourceError(
            f"{encoder.name}: reading .{syntax} needs pyoxigraph, which is not installed;"
            " run pip install pyoxigraph"
        ) from error
    parser = SYNTAXES.get(syntax, "N_QUADS")
    form = getattr(pyoxigraph.RdfFormat, parser)
    base = "file:///" if syntax in ("rdf", "owl", "xml", "jsonld") else None
    live = is_pipe(file)
    content: Any = AvailableReader(file) if live else file
    match parser:
        case "RDF_XML":
            content = CheckedEntities(file, encoder.name)
        case "JSON_LD":
            content = CheckedJson(content, encoder.name)
        case "TURTLE" | "TRIG":
            content = CheckedTripleTerms(content, encoder.name)
    statements = pyoxigraph.parse(content, format=form, base_iri=base)
    number, ended = 1, False
    pending: list[tuple[int, Reject]] = []  # since the last statement
    while not ended:
        statements_read: list[Any] = []
        problem: SyntaxError | None = None
        try:
            if live:
                statements_read.extend(_available(file, statements, size))
                ended = not statements_read
            else:
                statements_read.extend(islice(statements, size))  # keeps those before an error
                ended = len(statements_read) < size
        except SyntaxError as error:
            problem = error
        except (OSError, EOFError, ValueError) as error:
            place = number + len(statements_read)
            raise SourceError(f"{encoder.name}, statement {place}: {error}") from error
        if statements_read:
            yield from pending
            pending = []
            yield number, statements_read
            number += len(statements_read)
        if problem is not None:
            if len(pending) == _MAX_ERRORS:
                raise SourceError(f"{encoder.name} is not valid .{syntax}: {problem}") from problem
            reason = f"not a statement: {problem}"
            pending.append((number, encoder.reject(number, reason, None)))
            number += 1
    if (why := truncation(file)) is not None:  # this explains why the last statement is invalid
        number = pending[0][0] if pending else number
        reason = f"the file is truncated or damaged: {why}"
        pending = [(number, encoder.reject(number, reason, None))]
    yield from pending


def _available(file: IO[bytes], statements: Iterator[Any], most: int) -> Iterator[Any]:
    """Yield the next statement, and those after it while a pipe has more data."""
    for statement in islice(statements, most):
        yield statement
        if not select.select([file], [], [], 0)[0]:
            return


_WITHOUT_GRAPHS = frozenset({"ttl", "n3", "rdf", "owl", "xml"})
"""The formats that have no named graphs."""


def graph_chunks(file: IO[bytes], syntax: str, encoder: Encoder, size: int) -> Iterator[Chunk]:
    """Yield the triples of a static graph, with the stamp 0; named graphs are rejected."""
    pending = PendingItems(encoder)
    for first, run in _runs(file, syntax, encoder, size):
        if isinstance(run, Reject):
            pending.rejects.append(run)
        elif syntax in _WITHOUT_GRAPHS:
            pending.extend(first, run)
        else:
            for number, quad in enumerate(run, first):
                if _in_graph(quad):
                    reason = "a statement in a named graph cannot be part of a static graph"
                    pending.rejects.append(encoder.reject(number, reason, str(quad)))
                else:
                    pending.add(number, quad, 0)
        if len(pending) >= size:
            yield pending.chunk()
            pending = PendingItems(encoder)
    yield pending.chunk()


def trig_chunks(
    file: IO[bytes], encoder: Encoder, size: int, syntax: str = "trig"
) -> Iterator[Chunk]:
    """Yield the triples of timestamped graphs, once the stamp of their graph is known.

    The timestamp may be that of a triple in the graph (`stamp_from`), which is an item as well.
    """
    graphs, live = _Graphs(encoder), is_pipe(file)
    for first, run in _runs(file, syntax, encoder, size):
        if isinstance(run, Reject):
            graphs.rejects.append(run)
        else:
            graphs.add(first, run)
        if len(graphs) >= size or (live and len(graphs)):
            yield from graphs.chunk().parts(size)
    graphs.end()
    yield from graphs.chunk().parts(size)


class _Graphs:
    """The items of graphs: those whose stamp is known, and those that wait for it."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.rejects: list[Reject] = []
        self._stamps: dict[str, int] = {}
        self._waiting: dict[str, list[tuple[int, Any]]] = {}
        self._stamped = PendingItems(encoder, named=True)
        predicate = encoder.reading.predicate
        self._predicate = GENERATED if predicate is None else predicate[1:-1]
        self._inside = predicate is not None
        """Whether the triples with the timestamps are in their graphs, and items."""
        self._why: dict[str, str] = {}
        """The reasons why graphs have no timestamp, by name."""

    def __len__(self) -> int:
        return len(self._stamped) + len(self.rejects)

    def add(self, first: int, quads: list[Any]) -> None:
        """Add statements, the first of which has this number."""
        stamped, stamps = self._stamped, self._stamps
        name, stamp, graph = "", None, None
        for number, quad in enumerate(quads, first):
            if quad.graph_name is not graph and quad.graph_name != graph:
                graph = quad.graph_name
                name = str(graph) if _in_graph(quad) else ""
                stamp = stamps.get(name)
            about = quad.predicate.value == self._predicate
            if about and self._inside and name:
                self._add_stamp(number, quad, name)
                stamp = stamps.get(name)
            elif about and not self._inside and (not name or graph == quad.subject):
                self._add_stamp(number, quad, str(quad.subject))
                stamp = stamps.get(name)
                continue
            if not name:
                reason = "a statement outside a named graph has no time"
                if not self._inside:
                    reason = (
                        f"a statement outside a named graph, other than <{GENERATED}>, has no time"
                    )
                self.rejects.append(self.encoder.reject(number, reason, str(quad)))
            elif stamp is not None:
                stamped.add(number, quad, stamp)
            else:
                self._waiting.setdefault(name, []).append((number, quad))

    def _add_stamp(self, number: int, quad: Any, name: str) -> None:
        """Add the stamp of the graph of this name: its items so far no longer wait."""
        try:
            stamp = self.encoder.stamps.stamp_of(plain_stamp(quad.object, self._inside))
        except ValueError as error:
            if self._inside:
                self._why[name] = str(error)
            else:
                self.rejects.append(self.encoder.reject(number, str(error), str(quad)))
            return
        if self._stamps.setdefault(name, stamp) != stamp and not self._inside:
            reason = f"the graph {name} already has another timestamp"
            self.rejects.append(self.encoder.reject(number, reason, str(quad)))
        for place, item in self._waiting.pop(name, ()):
            self._stamped.add(place, item, stamp)

    def end(self) -> None:
        """Reject the items that still wait: their graphs have no timestamp."""
        for name, items in self._waiting.items():
            missing = f"missing timestamp: its graph {name} has no <{self._predicate}>"
            reason = self._why.get(name, missing)
            self.rejects += [self.encoder.reject(n, reason, str(item)) for n, item in items]
        self._waiting = {}

    def chunk(self) -> Chunk:
        """Return all items whose stamp is known."""
        stamped, self._stamped = self._stamped, PendingItems(self.encoder, named=True)
        stamped.rejects, self.rejects = self.rejects, []
        return stamped.chunk()


_PLAIN_NUMBERS = frozenset({f"{XSD}integer", f"{XSD}long"})


def plain_stamp(value: Any, strings: bool) -> int | str:
    """Return a timestamp of pyoxigraph as the number that it is, or as text.

    With `strings` a plain literal is the text of a time.
    """
    kind = getattr(value, "datatype", None)
    if strings and kind is not None and kind.value == f"{XSD}string":
        return str(value.value)
    if kind is not None and kind.value in _PLAIN_NUMBERS:
        text = value.value
        if text.isdigit() and text.isascii() and len(text) < 20:
            return int(text)
    return str(value)


def _in_graph(quad: Any) -> bool:
    return type(quad.graph_name).__name__ != "DefaultGraph"


class PendingItems:
    """Items that are collected until they become a chunk."""

    def __init__(self, encoder: Encoder, named: bool = False) -> None:
        self.encoder = encoder
        self._named = named
        self._items: list[Any] = []
        self._stamps: list[int] = []
        self._positions: list[int] = []
        self.rejects: list[Reject] = []

    def __len__(self) -> int:
        return len(self._items) + len(self.rejects)

    def add(self, number: int, quad: Any, stamp: int) -> None:
        """Add an item."""
        self._items.append(quad)
        self._stamps.append(stamp)
        self._positions.append(number)

    def extend(self, first: int, quads: list[Any]) -> None:
        """Add successive statements of a static graph, which have no time."""
        self._items += quads
        self._stamps += [0] * len(quads)
        self._positions += range(first, first + len(quads))

    def chunk(self) -> Chunk:
        """Return the collected items as a chunk."""
        stamps: IntArray = np.array(self._stamps, np.int64)
        positions: IntArray = np.array(self._positions, np.int64)
        items = self._items
        return self.encoder.chunk(
            self._columns(),
            (stamps, {}),
            positions,
            lambda k: (str(items[k].subject), str(items[k].predicate), str(items[k].object)),
            None,
            self.rejects,
        )

    def _columns(self) -> tuple[Any, Any, Any]:
        """Return subjects, predicates and objects; serializing and splitting is the fastest way."""
        import pyoxigraph

        if self._items:
            form = pyoxigraph.RdfFormat.N_QUADS
            lines = lines_of(pyoxigraph.serialize(self._items, format=form) or b"")
            if len(lines) == len(self._items):
                columns, odd = split_lines(lines, 4 if self._named else 3, False)
                if not len(odd):
                    s, p, o, *_ = columns.terms
                    return s, p, o
        terms = [(str(q.subject), str(q.predicate), str(q.object)) for q in self._items]
        s, p, o = zip(*terms, strict=True) if terms else ((),) * 3
        return s, p, o
