"""RDF files: static graphs in any syntax, and TriG whose graphs are timestamped. By pyoxigraph.

A stream in TriG is a sequence of graphs, each with the statement of when it was generated:

    :g1 { :sensor :value 7 }    :g1 prov:generatedAtTime "2026-01-01T00:00:00Z"^^xsd:dateTime .

The triples of a graph are items with that stamp. They come when both are known, so a statement may
stand before its graph or after it. Positions count statements, since the parser tells no lines.
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
from streamsparql.sources.lines import Prompt, broken, comes
from streamsparql.sources.quads import lines_of, split
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
}
"""What pyoxigraph calls the syntax of a file, by its extension."""

_MOST_ERRORS = 1000


def _runs(
    file: IO[bytes], syntax: str, reading: Encoder, size: int
) -> Iterator[tuple[int, list[Any] | Reject]]:
    """Runs of statements, each with the number of its first; a reject where there is none."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise SourceError(
            f"{reading.name}: .{syntax} is read by pyoxigraph, which is not installed:"
            " pip install pyoxigraph"
        ) from error
    form = getattr(pyoxigraph.RdfFormat, SYNTAXES[syntax])
    base = "file:///" if syntax in ("rdf", "owl", "xml", "jsonld") else None
    live = comes(file)
    content: Any = Prompt(file) if live else file
    statements = pyoxigraph.parse(content, format=form, base_iri=base)
    number, ended = 1, False
    wrong: list[tuple[int, Reject]] = []  # since the last statement
    while not ended:
        some: list[Any] = []
        problem: SyntaxError | None = None
        try:
            if live:
                some.extend(_at_hand(file, statements, size))
                ended = not some
            else:
                some.extend(islice(statements, size))  # keeps what came before an error
                ended = len(some) < size
        except SyntaxError as error:
            problem = error
        except (OSError, EOFError, ValueError) as error:
            place = number + len(some)
            raise SourceError(f"{reading.name}, statement {place}: {error}") from error
        if some:
            yield from wrong
            wrong = []
            yield number, some
            number += len(some)
        if problem is not None:
            if len(wrong) == _MOST_ERRORS:
                raise SourceError(f"{reading.name} is no .{syntax}: {problem}") from problem
            reason = f"this is no statement: {problem}"
            wrong.append((number, reading.reject(number, reason, None)))
            number += 1
    if (why := broken(file)) is not None:  # that is what is wrong with the last one
        number = wrong[0][0] if wrong else number
        wrong = [(number, reading.reject(number, f"the file breaks off: {why}", None))]
    yield from wrong


def _at_hand(file: IO[bytes], statements: Iterator[Any], most: int) -> Iterator[Any]:
    """The next statement, and those after it while there is more to read in a pipe."""
    for statement in islice(statements, most):
        yield statement
        if not select.select([file], [], [], 0)[0]:
            return


_GRAPHS_ONLY = frozenset({"ttl", "n3", "rdf", "owl", "xml"})
"""The formats in which no statement is in a named graph."""


def graph_chunks(file: IO[bytes], syntax: str, reading: Encoder, size: int) -> Iterator[Chunk]:
    """The triples of a static graph, as of instant 0; quads of named graphs are rejected."""
    held = _Held(reading)
    for first, found in _runs(file, syntax, reading, size):
        if isinstance(found, Reject):
            held.rejects.append(found)
        elif syntax in _GRAPHS_ONLY:
            held.extend(first, found)
        else:
            for number, quad in enumerate(found, first):
                if _in_graph(quad):
                    reason = "a statement in a named graph is no part of a static graph"
                    held.rejects.append(reading.reject(number, reason, str(quad)))
                else:
                    held.add(number, quad, 0)
        if len(held) >= size:
            yield held.chunk()
            held = _Held(reading)
    yield held.chunk()


def trig_chunks(file: IO[bytes], reading: Encoder, size: int) -> Iterator[Chunk]:
    """The triples of timestamped graphs, each graph once its stamp is known."""
    graphs, live = _Graphs(reading), comes(file)
    for first, found in _runs(file, "trig", reading, size):
        if isinstance(found, Reject):
            graphs.rejects.append(found)
        else:
            graphs.take(first, found)
        if len(graphs) >= size or (live and len(graphs)):
            yield from graphs.chunk().parts(size)
    graphs.end()
    yield from graphs.chunk().parts(size)


class _Graphs:
    """Graphs on their way to become items: those whose stamp is known, and those that wait."""

    def __init__(self, reading: Encoder) -> None:
        self.reading = reading
        self.rejects: list[Reject] = []
        self._stamps: dict[str, int] = {}
        self._waiting: dict[str, list[tuple[int, Any]]] = {}
        self._held = _Held(reading, named=True)

    def __len__(self) -> int:
        return len(self._held) + len(self.rejects)

    def take(self, first: int, quads: list[Any]) -> None:
        """Takes in statements, the first of which has that number."""
        held, stamps = self._held, self._stamps
        name, stamp, graph = "", None, None
        for number, quad in enumerate(quads, first):
            if quad.graph_name is not graph and quad.graph_name != graph:
                graph = quad.graph_name
                name = str(graph) if _in_graph(quad) else ""
                stamp = stamps.get(name)
            if quad.predicate.value == GENERATED and (not name or graph == quad.subject):
                self._stamped(number, quad)
                stamp = stamps.get(name)
            elif not name:
                reason = f"a statement in no graph, which is no <{GENERATED}>, has no timestamp"
                self.rejects.append(self.reading.reject(number, reason, str(quad)))
            elif stamp is not None:
                held.add(number, quad, stamp)
            else:
                self._waiting.setdefault(name, []).append((number, quad))

    def _stamped(self, number: int, quad: Any) -> None:
        """Takes in what stamps a graph: its items so far need wait no more."""
        name = str(quad.subject)
        try:
            stamp = _stamp_of(quad.object)
        except ValueError as error:
            self.rejects.append(self.reading.reject(number, str(error), str(quad)))
            return
        if self._stamps.setdefault(name, stamp) != stamp:
            reason = f"the graph {name} has another timestamp already"
            self.rejects.append(self.reading.reject(number, reason, str(quad)))
        for place, found in self._waiting.pop(name, ()):
            self._held.add(place, found, stamp)

    def end(self) -> None:
        """What still waits has no timestamp."""
        for name, items in self._waiting.items():
            reason = f"its graph {name} has no <{GENERATED}>"
            self.rejects += [self.reading.reject(n, reason, str(found)) for n, found in items]
        self._waiting = {}

    def chunk(self) -> Chunk:
        """All items whose stamp is known by now."""
        held, self._held = self._held, _Held(self.reading, named=True)
        held.rejects, self.rejects = self.rejects, []
        return held.chunk()


_PLAIN_NUMBERS = frozenset({f"{XSD}integer", f"{XSD}long"})


def _stamp_of(value: Any) -> int:
    """The stamp that a term of pyoxigraph is; a plain number needs no closer look."""
    kind = getattr(value, "datatype", None)
    if kind is not None and kind.value in _PLAIN_NUMBERS:
        text = value.value
        if text.isdigit() and text.isascii() and len(text) < 19:
            return int(text)
    return stamp_of(str(value))


def _in_graph(quad: Any) -> bool:
    return type(quad.graph_name).__name__ != "DefaultGraph"


class _Held:
    """Items that wait to become a chunk."""

    def __init__(self, reading: Encoder, named: bool = False) -> None:
        self.reading = reading
        self._named = named
        self._items: list[Any] = []
        self._stamps: list[int] = []
        self._positions: list[int] = []
        self.rejects: list[Reject] = []

    def __len__(self) -> int:
        return len(self._items) + len(self.rejects)

    def add(self, number: int, quad: Any, stamp: int) -> None:
        """An item."""
        self._items.append(quad)
        self._stamps.append(stamp)
        self._positions.append(number)

    def extend(self, first: int, quads: list[Any]) -> None:
        """Statements that follow each other, of a graph, which has no time."""
        self._items += quads
        self._stamps += [0] * len(quads)
        self._positions += range(first, first + len(quads))

    def chunk(self) -> Chunk:
        """All of them."""
        stamps: IntArray = np.array(self._stamps, np.int64)
        positions: IntArray = np.array(self._positions, np.int64)
        items = self._items
        return self.reading.chunk(
            self._columns(),
            (stamps, {}),
            positions,
            lambda k: (str(items[k].subject), str(items[k].predicate), str(items[k].object)),
            None,
            self.rejects,
        )

    def _columns(self) -> tuple[Any, Any, Any]:
        """Subjects, predicates and objects: written as lines and cut, which is what is quick."""
        import pyoxigraph

        if self._items:
            form = pyoxigraph.RdfFormat.N_QUADS
            lines = lines_of(pyoxigraph.serialize(self._items, format=form) or b"")
            if len(lines) == len(self._items):
                columns, odd = split(lines, 4 if self._named else 3, False)
                if not len(odd):
                    s, p, o, *_ = columns.terms
                    return s, p, o
        terms = [(str(q.subject), str(q.predicate), str(q.object)) for q in self._items]
        s, p, o = zip(*terms, strict=True) if terms else ((),) * 3
        return s, p, o
