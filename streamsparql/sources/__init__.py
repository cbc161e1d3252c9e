"""Sources: where data comes from. Each gives chunks of encoded items, and says what it rejects.

A *source* is a path or an open file, an iterable of items, a table that Arrow can read, or a graph
of rdflib. `read_stream` reads a stream, whose items have timestamps, `read_graph` a static graph.
`disorder` puts a stream's items in order, `clock` tells how far several streams have come.
docs/sources.md says what users can give; a new kind of source is one more case in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from streamsparql.errors import SourceError
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.terms import TermDictionary
from streamsparql.sources.chunk import Chunk, Reject, Wanted
from streamsparql.sources.files import file_chunks, is_file
from streamsparql.sources.items import chunks_of_items, chunks_of_triples
from streamsparql.sources.reading import Reading
from streamsparql.sources.tables import arrow_batches, chunks_of_batches

__all__ = ["Chunk", "Reject", "Wanted", "read_graph", "read_stream"]

CHUNK = 65_536


def read_stream(
    source: Any,
    name: str,
    terms: TermDictionary,
    *,
    scope: str = "",
    wanted: Wanted | None = None,
    strict: bool = False,
    chunk: int = CHUNK,
) -> Iterator[Chunk]:
    """The items of a stream, in the order of the source, up to `chunk` at a time.

    `scope` goes before the labels of blank nodes. Items whose predicate is not `wanted` are dropped
    before their other terms are looked at; they still tell the time. When reading strictly, the
    first reject is a SourceError. The ids in a chunk are in use until it is dropped.

    >>> terms = TermDictionary()
    >>> items = [("<a>", "<p>", '"1"', 5), ("<a>", '"p"', '"1"', 6)]
    >>> (found,) = read_stream(items, "s", terms)
    >>> len(found), found.end.tolist(), found.rejects[0].reason
    (1, [5], 'the predicate is no IRI')
    """
    reading = Reading(name, terms, scope, wanted, strict)
    if is_file(source):
        return file_chunks(source, reading, chunk, timed=True)
    batches = arrow_batches(source)
    if batches is not None:
        return chunks_of_batches(batches, reading, chunk, timed=True)
    if _is_rdflib_graph(source):
        raise SourceError(f"{name}: an rdflib graph has no timestamps: give it as a graph")
    return chunks_of_items(_iterable(source, name), reading, chunk)


def read_graph(
    source: Any, name: str, terms: TermDictionary, *, scope: str = "", strict: bool = False
) -> tuple[Batch, list[Reject]]:
    """The triples of a static graph, each once and always, and what is rejected.

    >>> batch, rejects = read_graph([("<a>", "<p>", "<b>")] * 2, "g", TermDictionary())
    >>> len(batch), rejects
    (1, [])
    """
    reading = Reading(name, terms, scope, None, strict)
    if is_file(source):
        chunks = file_chunks(source, reading, CHUNK, timed=False)
    elif (batches := arrow_batches(source)) is not None:
        chunks = chunks_of_batches(batches, reading, CHUNK, timed=False)
    else:
        chunks = chunks_of_triples(_iterable(source, name), reading, CHUNK)
    columns: list[tuple[IntArray, IntArray, IntArray]] = []
    rejects: list[Reject] = []
    for chunk in chunks:
        columns.append((chunk.s, chunk.p, chunk.o))
        rejects += chunk.rejects
    s, p, o = map(np.concatenate, zip(*columns, strict=True)) if columns else ([_NONE] * 3)
    return _always(s, p, o), rejects


_NONE: IntArray = np.empty(0, np.int64)


def _always(s: IntArray, p: IntArray, o: IntArray) -> Batch:
    """The set of these triples, which hold over all time."""
    order = np.lexsort((o, p, s))
    s, p, o = s[order], p[order], o[order]
    first = np.ones(len(s), np.bool_)
    first[1:] = (s[1:] != s[:-1]) | (p[1:] != p[:-1]) | (o[1:] != o[:-1])
    columns = dict(zip(TRIPLE, (s[first], p[first], o[first]), strict=True))
    rows = int(first.sum())
    return Batch(columns, np.zeros(rows, np.int64), np.full(rows, INFINITY, np.int64))


def _is_rdflib_graph(source: Any) -> bool:
    return hasattr(source, "triples") and hasattr(source, "namespace_manager")


def _iterable(source: Any, name: str) -> Iterable[Any]:
    if isinstance(source, bytes | Mapping) or not isinstance(source, Iterable):
        kind = type(source).__name__
        raise SourceError(
            f"{name}: a {kind} is no source: give a path or an open file, an iterable of items, or"
            " a table with the columns subject, predicate, object, timestamp"
        )
    return source
