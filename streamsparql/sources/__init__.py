"""Sources: where data is read from. Each yields chunks of encoded items, with its rejects.

A *source* is a path or an open file, a folder or a list of paths, a mapped table, an iterable of
items, a table that Arrow can read, or a graph of rdflib. `read_stream` reads a stream, whose items
have timestamps, `read_graph` a static graph. `disorder` sorts the items of a stream, `clock`
computes the watermark of several streams. docs/sources.md describes the sources for users; a new
kind of source is one more case in `_chunks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from streamsparql.errors import LimitExceeded, SourceError
from streamsparql.limits import check_memory, naming
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.sources.chunk import Accounting, Chunk, Reject, Rejected, Wanted
from streamsparql.sources.decoded import ChunkSource
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.files import file_chunks, is_file
from streamsparql.sources.folders import check_distinct, distinct_files, files_of, merge_files
from streamsparql.sources.items import chunks_of_items, chunks_of_triples
from streamsparql.sources.mapped_tables import mapped_chunks
from streamsparql.sources.mapping import Mapped, mapped
from streamsparql.sources.messages import message_chunks
from streamsparql.sources.reading import Reading
from streamsparql.sources.records import are_messages
from streamsparql.sources.tables import arrow_batches, chunks_of_batches, with_term_texts

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

CHUNK_SIZE = 65_536
"""The number of items of a chunk, at most."""


def read_stream(
    source: Any,
    name: str,
    terms: TermDictionary,
    *,
    scope: str = "",
    wanted: Wanted | None = None,
    strict: bool = False,
    chunk: int = CHUNK_SIZE,
    first: int = 1,
    failures: list[BaseException] | None = None,
    reading: Reading | None = None,
) -> Iterator[Chunk]:
    """Yield the items of a stream, in the order of the source, up to `chunk` at a time.

    `scope` is a prefix of the labels of blank nodes. Of items whose predicate is not `wanted` only
    the timestamp is used, which advances the watermark. If `strict`, the first reject raises a
    SourceError. The ids in a chunk are in use until it is released. `first` is the position of the
    first item, if other items were read before. With `failures` an iterable that raises ends there,
    and its exception is added to them: the items before it are not lost.

    >>> terms = TermDictionary()
    >>> items = [("<a>", "<p>", '"1"', 5), ("<a>", '"p"', '"1"', 6)]
    >>> (chunk,) = read_stream(items, "s", terms)
    >>> len(chunk), chunk.end.tolist(), chunk.rejects[0].reason
    (1, [5], 'the predicate is not an IRI')
    """
    encoder = Encoder(
        name, terms, scope, wanted, strict, first=first, failures=failures, reading=reading
    )
    return _chunks(source, encoder, chunk, timed=True)


def _chunks(source: Any, encoder: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """Yield the items of any source: of a stream if `timed`, else of a static graph."""
    if timed and isinstance(source, ChunkSource):
        return source.chunks(encoder, size)
    if _has_mappings(source):
        return _chunks_of_tables(source, encoder, size, timed)
    table = source.source if isinstance(source, Mapped) else source
    files = None if are_messages(table) else files_of(table)
    if files is not None:
        files = check_distinct(files) if timed else distinct_files(files)
        return _chunks_of_files(source, files, encoder, size, timed)
    if isinstance(source, Mapped):
        return mapped_chunks(source, encoder, size, timed)
    if is_file(source):
        return file_chunks(source, encoder, size, timed)
    if timed and encoder.reading.predicate is not None:
        untimed = partial(_chunks, source, size=size, timed=False)
        return message_chunks(untimed, encoder, size)
    batches = arrow_batches(with_term_texts(source))
    if batches is not None:
        rows = encoder.with_unit("row")
        return chunks_of_batches(rows.until_failure(batches), rows, size, timed)
    if not timed:
        return chunks_of_triples(_iterable(source, encoder.name), encoder, size)
    if _is_rdflib_graph(source):
        raise SourceError(
            f"{encoder.name}: an rdflib graph has no timestamps; pass it as a static graph"
        )
    items = encoder.until_failure(_iterable(source, encoder.name))
    return chunks_of_items(items, encoder, size)


def _has_mappings(source: Any) -> bool:
    """Return whether a source is a list of mapped tables, possibly with files."""
    if not isinstance(source, list | tuple) or not source:
        return False
    are_items = isinstance(source[0], tuple | list)
    return not are_items and any(isinstance(each, Mapped) for each in source)


def _chunks_of_tables(
    sources: Sequence[Any], encoder: Encoder, size: int, timed: bool
) -> Iterator[Chunk]:
    """Yield the triples of a static graph that are read from several mapped tables, or files."""
    if timed:
        raise SourceError(
            f"{encoder.name}: a stream has one mapping; pass mapped([file, ..], ..) for several"
            " files, or their mappings as several streams"
        )
    scoped = [encoder.with_unit("row", scope=f"{k}.") for k in range(len(sources))]
    return chain.from_iterable(
        _chunks(source, each, size, timed) for source, each in zip(sources, scoped, strict=True)
    )


def _chunks_of_files(
    source: Any,
    paths: Sequence[str],
    encoder: Encoder,
    size: int,
    timed: bool,
) -> Iterator[Chunk]:
    """Yield the items of several files: merged by time for a stream, file by file for a graph."""

    def chunks(number: int, path: str, most: int) -> Iterator[Chunk]:
        return read(encoder, number, path, most)

    def probe(number: int, path: str, most: int) -> Iterator[Chunk]:
        probing = encoder.reading.probing()
        nothing = Wanted(frozenset())
        stamps_only = Encoder(encoder.name, TermDictionary(), wanted=nothing, reading=probing)
        return read(stamps_only, number, path, most)

    def read(encoder: Encoder, number: int, path: str, most: int) -> Iterator[Chunk]:
        if isinstance(source, Mapped):
            scoped = encoder.with_unit("row", scope=f"{number}.")
            return mapped_chunks(source.over(path), scoped, most, timed)
        return file_chunks(path, encoder, most, timed)

    if timed:
        return merge_files(paths, chunks, probe, size)
    return chain.from_iterable(chunks(k, path, size) for k, path in enumerate(paths))


def read_graph(
    source: Any,
    name: str,
    terms: TermDictionary,
    *,
    scope: str = "",
    strict: bool = False,
    quoted: bool = True,
    reading: Reading | None = None,
) -> tuple[Batch, list[Reject]]:
    """Return the distinct triples of a static graph, valid over all time, and its rejects.

    Unless it is `quoted`, no error and no reject shows what the source contains.

    >>> batch, rejects = read_graph([("<a>", "<p>", "<b>")] * 2, "g", TermDictionary())
    >>> len(batch), rejects
    (1, [])
    """
    encoder = Encoder(name, terms, scope, None, strict, reading=reading)
    with naming(lambda: f"reading {name}"):
        if not quoted:
            with _without_content(name):
                batch, rejects = _distinct_and_rejects(_chunks(source, encoder, CHUNK_SIZE, False))
            return batch, list(map(_unquoted, rejects))
        return _distinct_and_rejects(_chunks(source, encoder, CHUNK_SIZE, timed=False))


@contextmanager
def _without_content(name: str) -> Iterator[None]:
    """Replace errors that may quote a source; those of the file system do not."""
    try:
        yield
    except LimitExceeded:
        raise
    except Rejected as error:
        raise Rejected(_unquoted(error.reject)) from None
    except Exception as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno is not None:
            raise
        raise SourceError(
            f"{name} cannot be read as a graph; the reason is not shown, since the query alone"
            " names it: pass it in graphs="
        ) from None


def _unquoted(reject: Reject) -> Reject:
    reason = "not a triple; it is not shown, since the query alone names the graph"
    return reject._replace(reason=reason, item=None)


def _distinct_and_rejects(chunks: Iterable[Chunk]) -> tuple[Batch, list[Reject]]:
    """Return the distinct triples of chunks, and their rejects."""
    columns: list[tuple[IntArray, IntArray, IntArray]] = []
    rejects: list[Reject] = []
    for chunk in chunks:
        check_memory(len(chunk), len(TRIPLE))
        columns.append((chunk.s, chunk.p, chunk.o))
        rejects += chunk.rejects
    s, p, o = map(np.concatenate, zip(*columns, strict=True)) if columns else ([_NO_IDS] * 3)
    return _distinct_triples(s, p, o), rejects


_NO_IDS: IntArray = np.empty(0, np.int64)


def _distinct_triples(s: IntArray, p: IntArray, o: IntArray) -> Batch:
    """Return the set of these triples, each valid over all time."""
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
            f"{name}: a {kind} is not a source; pass a path or an open file, an iterable of items,"
            " or a table with the columns subject, predicate, object, timestamp"
        )
    return source
