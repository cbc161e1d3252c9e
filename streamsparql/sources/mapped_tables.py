"""The rows of mapped tables: files of each format, tables of Arrow, and records."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import IO, Any, NamedTuple

import pyarrow as pa

from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources.auto_mapping import SAMPLE_ROWS, first_rows, guess, namespace_of
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.files import (
    KNOWN_EXTENSIONS,
    POSITION_UNITS,
    file_name_of,
    is_file,
    open_source,
    seekable,
)
from streamsparql.sources.folders import files_of
from streamsparql.sources.json_lines import objects
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.mapping_rows import TripleMaker
from streamsparql.sources.messages import message_chunks
from streamsparql.sources.paths import extension_of, is_endless, path_of
from streamsparql.sources.records import is_message, positions_from, records_of
from streamsparql.sources.separated import Separated
from streamsparql.sources.tables import (
    arrow_batches,
    flattened,
    has_item_columns,
    parquet_rows,
)

TABLE_FORMATS = ("csv", "tsv", "jsonl", "parquet")
"""The formats of files that have columns."""


def mapped_chunks(mapped: Mapped, encoder: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """Yield the triples of a mapped table, in the order of its rows."""
    if timed and encoder.reading.predicate is not None:
        untimed = partial(_mapped_chunks, mapped, size=size, timed=False)
        yield from message_chunks(untimed, encoder, size, rows=True)
        return
    yield from _mapped_chunks(mapped, encoder, size, timed)


def _mapped_chunks(mapped: Mapped, encoder: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    source = mapped.source
    if is_file(source) and not is_message(source):
        yield from _chunks_of_file(mapped, encoder, size, timed)
        return
    batches = arrow_batches(source)
    if batches is not None:
        _check_no_layout(mapped, encoder.name)
        maker = TripleMaker(mapped, encoder.with_unit("row"), timed, None)
        for batch in encoder.until_failure(batches):
            yield from maker.rows(flattened(batch), size)
        return
    messages = messages_of(source, encoder.name)
    _check_no_layout(mapped, encoder.name)
    encoder = encoder.with_unit("record")
    maker = TripleMaker(mapped, encoder, timed, None)
    rest, first = iter(encoder.until_failure(messages)), encoder.first
    while part := list(islice(rest, size)):
        records, places, rejects = records_of(part, positions_from(first, len(part)), encoder)
        first += len(part)
        yield from maker.records(records, places, size, rejects)


def messages_of(source: Any, name: str) -> Iterable[Any]:
    """Return the records of a source; raise an error if it has none."""
    if isinstance(source, AsyncIterable):
        raise SourceError(
            f"{name}: an asynchronous source is read by an open query: await live.push_async(..)"
        )
    if isinstance(source, Mapping | str | bytes | bytearray | memoryview):
        raise SourceError(f"{name}: a single record; pass a list of records: [record]")
    if not isinstance(source, Iterable):
        raise SourceError(
            f"{name}: a {type(source).__name__} is not a table; a mapping reads files, tables, and"
            " iterables of dicts"
        )
    rest = iter(source)
    first = list(islice(rest, 1))
    if first and isinstance(first[0], tuple | list):
        raise SourceError(
            f"{name}: a mapping needs records (dicts) or a table, not a {type(first[0]).__name__}"
        )
    return chain(first, rest)


def _chunks_of_file(mapped: Mapped, encoder: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    with open_source(mapped.source, encoder.name) as (file, kind):
        name = file_name_of(mapped.source)
        kind = table_format(kind, name)
        if kind not in ("csv", "tsv"):
            _check_no_layout(mapped, name or encoder.name)
        encoder = encoder.with_unit(POSITION_UNITS[kind], name)
        maker = TripleMaker(mapped, encoder, timed, name)
        yield from _triples_of_file(mapped, file, kind, maker, size)
        yield from encoder.remaining()


def table_format(kind: str, name: str | None) -> str:
    """Return the format of a table in a file; raise an error if the file contains triples.

    >>> table_format("nq", "traffic.stream")
    'csv'
    """
    if kind in TABLE_FORMATS:
        return kind
    if extension_of(name or "") in KNOWN_EXTENSIONS:
        raise SourceError(f"{name}: a mapping needs a table, not .{kind}")
    return "csv"


def _check_no_layout(mapped: Mapped, name: str) -> None:
    """Raise an error if options of CSV are set for a table in another format."""
    if mapped.header is False or mapped.delimiter is not None:
        raise SourceError(f"{name} is not CSV; header and delimiter apply to CSV only")


def _triples_of_file(
    mapped: Mapped, file: IO[bytes], kind: str, maker: TripleMaker, size: int
) -> Iterator[Chunk]:
    encoder = maker.encoder
    if kind in ("csv", "tsv"):
        maker.header = int(mapped.header is not False)
        separator = mapped.delimiter or ("\t" if kind == "tsv" else None)
        table = Separated(encoder, maker.learn_columns, mapped.header)
        for rows, places, rejects in table.batches(file, size, separator):
            maker.header = int(table.has_header)
            yield from maker.parts(rows, places, size, rejects)
    elif kind == "jsonl":
        for items, places, rejects in objects(file, encoder, size):
            yield from maker.records(items, places, size, rejects)
    else:
        for batch in parquet_rows(seekable(file, encoder), encoder, maker.learn_columns, size):
            yield from maker.rows(batch, size)


def guessed_table(mapped: Mapped) -> Mapped:
    """Return a table with the mapping that its first rows show.

    A source that can be read only once is returned as it is: its first rows are seen when it is
    read.
    """
    files = files_of(mapped.source)
    first = mapped if files is None else mapped.over(files[0])
    if not _is_readable_again(first.source):
        return mapped
    sample = sample_of(first, SAMPLE_ROWS)
    if not len(sample.rows):
        return mapped
    namespace = mapped.namespace or namespace_of(mapped.source)
    text = guess(first_rows(sample.rows), namespace).mapping
    header = sample.header if sample.kind in ("csv", "tsv") else mapped.header
    return replace(mapped, mapping=text, header=header)


def needs_mapping(source: Any) -> bool:
    """Return whether a source is a table without the columns of items.

    Standard input and pipes, which can be read only once, are taken for tables.

    >>> needs_mapping([{"speed": 5}]), needs_mapping([("<a>", "<p>", "<b>", 5)])
    (True, False)
    """
    if isinstance(source, Mapped):
        return False
    files = files_of(source) if not isinstance(source, Mapped) else None
    first = source if files is None else files[0]
    if is_file(first) and not is_message(first):
        if not _is_readable_again(first):
            return True
        with open_source(first, "the table") as (_, kind):
            known = extension_of(file_name_of(first) or "") in KNOWN_EXTENSIONS
            if kind not in TABLE_FORMATS and known:
                return False
    elif arrow_batches(first) is None:
        if not isinstance(first, list | tuple):
            return False
        return bool(first) and is_message(first[0])
    rows = sample_of(Mapped(first, None, None), 1).rows
    names = rows.schema.names if isinstance(rows, pa.RecordBatch) else [*chain(*rows)]
    return not has_item_columns(names)


def _is_readable_again(source: Any) -> bool:
    """Return whether reading the first rows of a source leaves it as it was."""
    if isinstance(source, str | os.PathLike) and not is_message(source):
        return not is_endless(path_of(source))
    return not isinstance(source, Iterator | AsyncIterable) and not hasattr(source, "read")


class TableSample(NamedTuple):
    """The first rows of a table, or its first records."""

    kind: str
    """The format of the file; "table" or "records" in memory."""
    name: str | None
    """The name of the file."""
    rows: pa.RecordBatch | Sequence[Mapping[str, Any]]
    header: bool = True
    """Of CSV, whether the first line has the names of the columns."""
    delimiter: str = ","
    rejects: Sequence[Reject] = ()


def sample_of(mapped: Mapped, most: int) -> TableSample:
    """Return the first rows of a table, up to `most`; they are read again when it is mapped."""
    source = mapped.source
    encoder = Encoder("the table", TermDictionary())
    if is_file(source) and not is_message(source):
        with open_source(source, encoder.name) as (file, kind):
            name = file_name_of(source)
            kind = table_format(kind, name)
            encoder = encoder.with_unit(POSITION_UNITS[kind], name)
            return _sample_of_file(mapped, file, kind, encoder, most)
    batches = arrow_batches(source)
    if batches is not None:
        batch = next(batches, None)
        rows = [] if batch is None else flattened(batch).slice(0, most)
        return TableSample("table", None, rows)
    messages = list(islice(messages_of(source, encoder.name), most))
    records, _, rejects = records_of(messages, positions_from(1, len(messages)), encoder)
    return TableSample("records", None, records, rejects=rejects)


def _sample_of_file(
    mapped: Mapped, file: IO[bytes], kind: str, encoder: Encoder, most: int
) -> TableSample:
    name = encoder.name
    if kind in ("csv", "tsv"):
        separator = mapped.delimiter or ("\t" if kind == "tsv" else None)
        table = Separated(encoder, list, mapped.header)
        parts, rejects = _first_parts(table.batches(file, most, separator), most)
        if parts:
            rows = pa.Table.from_batches(parts).combine_chunks().to_batches()[:1] or parts[:1]
            layout = table.has_header, table.delimiter
            return TableSample(kind, name, rows[0].slice(0, most), *layout, rejects)
    elif kind == "jsonl":
        parts, rejects = _first_parts(objects(file, encoder, most), most)
        records = [record for part in parts for record in part]
        return TableSample(kind, name, records[:most], rejects=rejects)
    else:
        for rows in parquet_rows(seekable(file, encoder), encoder, list, most):
            return TableSample(kind, name, rows)
    return TableSample(kind, name, [])


def _first_parts(
    parts: Iterable[tuple[Any, Any, Sequence[Reject]]], most: int
) -> tuple[list[Any], list[Reject]]:
    """Return the first parts of a file, up to a number of rows, and their rejects."""
    first: list[Any] = []
    rejects: list[Reject] = []
    for part, _, wrong in parts:
        first.append(part)
        rejects += wrong
        if sum(map(len, first)) >= most:
            break
    return first, rejects
