"""Sources: where data comes from. Each gives chunks of encoded items, and says what it rejects.

A *source* is a path or an open file, a folder or a list of paths, a mapped table, an iterable of
items, a table that Arrow can read, or a graph of rdflib. `read_stream` reads a stream, whose items
have timestamps, `read_graph` a static graph.
`disorder` puts a stream's items in order, `clock` tells how far several streams have come.
docs/sources.md says what users can give; a new kind of source is one more case in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from streamsparql.errors import SourceError
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.sources.chunk import Accounting, Chunk, Reject, Wanted
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.files import file_chunks, is_file
from streamsparql.sources.folders import each_once, files_of, merged, without_repeats
from streamsparql.sources.items import chunks_of_items, chunks_of_triples
from streamsparql.sources.mapping import Mapped, mapped
from streamsparql.sources.mapping_rows import mapped_chunks
from streamsparql.sources.tables import arrow_batches, chunks_of_batches, with_texts

__all__ = [
    "Accounting",
    "Chunk",
    "Mapped",
    "Reject",
    "Wanted",
    "mapped",
    "read_graph",
    "read_stream",
]

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
    first: int = 1,
) -> Iterator[Chunk]:
    """The items of a stream, in the order of the source, up to `chunk` at a time.

    `scope` goes before the labels of blank nodes. Items whose predicate is not `wanted` are dropped
    before their other terms are looked at; they still tell the time. When reading strictly, the
    first reject is a SourceError. The ids in a chunk are in use until it is dropped. `first` is the
    position of the first of several items.

    >>> terms = TermDictionary()
    >>> items = [("<a>", "<p>", '"1"', 5), ("<a>", '"p"', '"1"', 6)]
    >>> (found,) = read_stream(items, "s", terms)
    >>> len(found), found.end.tolist(), found.rejects[0].reason
    (1, [5], 'the predicate is no IRI')
    """
    return _chunks(
        source, Encoder(name, terms, scope, wanted, strict, first=first), chunk, timed=True
    )


def _chunks(source: Any, reading: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """What any source holds: of a stream where `timed`, else of a static graph."""
    table = source.source if isinstance(source, Mapped) else source
    files = files_of(table)
    if files is not None:
        files = each_once(files) if timed else without_repeats(files)
        return _of_files(source, files, reading, size, timed)
    if isinstance(source, Mapped):
        return mapped_chunks(source, reading, size, timed)
    if is_file(source):
        return file_chunks(source, reading, size, timed)
    batches = arrow_batches(with_texts(source))
    if batches is not None:
        return chunks_of_batches(batches, reading.of("row"), size, timed)
    if not timed:
        return chunks_of_triples(_iterable(source, reading.name), reading, size)
    if _is_rdflib_graph(source):
        raise SourceError(f"{reading.name}: an rdflib graph has no timestamps: give it as a graph")
    return chunks_of_items(_iterable(source, reading.name), reading, size)


def _of_files(
    source: Any, paths: Sequence[str], reading: Encoder, size: int, timed: bool
) -> Iterator[Chunk]:
    """Several files: those of a stream merged by time, those of a graph one after the other."""

    def chunks(number: int, path: str, most: int) -> Iterator[Chunk]:
        return of(reading, number, path, most)

    def probe(number: int, path: str, most: int) -> Iterator[Chunk]:
        nothing = Encoder(reading.name, TermDictionary(), wanted=Wanted(frozenset()))
        return of(nothing, number, path, most)

    def of(reading: Encoder, number: int, path: str, most: int) -> Iterator[Chunk]:
        if isinstance(source, Mapped):
            scoped = reading.of("row", scope=f"{number}.")
            return mapped_chunks(source.over(path), scoped, most, timed)
        return file_chunks(path, reading, most, timed)

    if timed:
        return merged(paths, chunks, probe, size)
    return chain.from_iterable(chunks(k, path, size) for k, path in enumerate(paths))


def read_graph(
    source: Any, name: str, terms: TermDictionary, *, scope: str = "", strict: bool = False
) -> tuple[Batch, list[Reject]]:
    """The triples of a static graph, each once and always, and what is rejected.

    >>> batch, rejects = read_graph([("<a>", "<p>", "<b>")] * 2, "g", TermDictionary())
    >>> len(batch), rejects
    (1, [])
    """
    reading = Encoder(name, terms, scope, None, strict)
    chunks = _chunks(source, reading, CHUNK, timed=False)
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
