"""The rows of mapped tables: files of each format, tables of Arrow, and records."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import IO, Any, NamedTuple

import pyarrow as pa

from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
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
from streamsparql.sources.lines import is_pipe
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.mapping_rows import TripleMaker
from streamsparql.sources.messages import message_chunks
from streamsparql.sources.paths import extension_of, is_endless, path_of
from streamsparql.sources.records import (
    are_messages,
    is_message,
    positions_from,
    records_of,
)
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
    _check_no_layout(mapped, encoder.name)
    if batches is not None:
        maker = TripleMaker(mapped, encoder.with_unit("row"), timed, None)
        parts = _parts_of_batches(encoder.until_failure(batches))
        yield from _mapped_parts(parts, maker, size)
        return
    messages = messages_of(source, encoder.name)
    maker = TripleMaker(mapped, encoder.with_unit("record"), timed, None)
    parts = _parts_of_messages(iter(encoder.until_failure(messages)), maker.encoder, size)
    yield from _mapped_parts(parts, maker, size)


Part = tuple[Any, IntArray, list[Reject]]
"""Rows of a table, or records, with their positions, and rejects among them."""


def _parts_of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
    first = 1
    for batch in batches:
        yield flattened(batch), positions_from(first, batch.num_rows), []
        first += batch.num_rows


def _parts_of_messages(messages: Iterator[Any], encoder: Encoder, size: int) -> Iterator[Part]:
    first = encoder.first
    while part := list(islice(messages, size)):
        yield records_of(part, positions_from(first, len(part)), encoder)
        first += len(part)


def _mapped_parts(
    parts: Iterator[Part], maker: TripleMaker, size: int, live: bool = False
) -> Iterator[Chunk]:
    """Yield the triples of the parts of a table.

    A mapping that is guessed is guessed from the first rows; of a `live` table from those of the
    first part that has any.
    """
    first: list[Part] = []
    if maker.guesses:
        most = 1 if live else SAMPLE_ROWS
        first = list(_up_to(parts, most))
        rows = _together([part for part, *_ in first])
        if rows is not None:
            maker.guess(rows)
    for rows, positions, rejects in chain(first, parts):
        if isinstance(rows, pa.RecordBatch):
            yield from maker.parts(rows, positions, size, rejects)
        else:
            yield from maker.records(rows, positions, size, rejects)


def _up_to(parts: Iterator[Part], most: int) -> Iterator[Part]:
    """Yield parts until they have a number of rows."""
    count = 0
    for part in parts:
        yield part
        count += len(part[0])
        if count >= most:
            return


def _together(parts: Sequence[Any]) -> Any:
    """Return the first rows of parts as one; None if there are none."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return None
    if isinstance(filled[0], pa.RecordBatch):
        return pa.Table.from_batches(filled).combine_chunks().to_batches()[0][:SAMPLE_ROWS]
    return [record for part in filled for record in part][:SAMPLE_ROWS]


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
    encoder, live = maker.encoder, is_pipe(file)
    if kind in ("csv", "tsv"):
        table = _separated(mapped, encoder, maker.learn_columns)
        maker.header = int(mapped.header is not False)
        parts: Iterator[Part] = table.batches(file, size, _delimiter(mapped, kind))
        parts = _noting_header(parts, table, maker)
    elif kind == "jsonl":
        parts = objects(file, encoder, size)
    else:
        seekable_file = seekable(file, encoder)
        parts = _parts_of_batches(parquet_rows(seekable_file, encoder, maker.learn_columns, size))
    yield from _mapped_parts(parts, maker, size, live)


def _noting_header(parts: Iterator[Part], table: Separated, maker: TripleMaker) -> Iterator[Part]:
    """Yield the rows of CSV, once it is known whether it has a header."""
    for part in parts:
        maker.header = int(table.has_header)
        yield part


def _separated(
    mapped: Mapped, encoder: Encoder, choose: Callable[[list[str]], list[str]]
) -> Separated:
    return Separated(encoder, choose, mapped.header)


def _delimiter(mapped: Mapped, kind: str) -> str | None:
    return mapped.delimiter or ("\t" if kind == "tsv" else None)


def guessed_table(mapped: Mapped) -> Mapped:
    """Return a table with the mapping that its first rows show.

    A source that can be read only once is returned as it is: its first rows are seen when it is
    read.
    """
    files = None if are_messages(mapped.source) else files_of(mapped.source)
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
    if are_messages(source):
        return True
    files = files_of(source)
    first = source if files is None else files[0]
    if is_file(first) and not is_message(first):
        if not _is_readable_again(first):
            return True
        with open_source(first, "the table") as (_, kind):
            known = extension_of(file_name_of(first) or "") in KNOWN_EXTENSIONS
            if kind not in TABLE_FORMATS and known:
                return False
    elif arrow_batches(first) is None:
        return False
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
        first = next(batches, None)
        if first is None:
            first = pa.record_batch({str(name): [] for name in getattr(source, "columns", ())})
        return TableSample("table", None, flattened(first).slice(0, most))
    messages = list(islice(messages_of(source, encoder.name), most))
    records, _, rejects = records_of(messages, positions_from(1, len(messages)), encoder)
    return TableSample("records", None, records, rejects=rejects)


def _sample_of_file(
    mapped: Mapped, file: IO[bytes], kind: str, encoder: Encoder, most: int
) -> TableSample:
    header, delimiter = True, ","
    if kind in ("csv", "tsv"):
        table = _separated(mapped, encoder, list)
        parts = list(_up_to(table.batches(file, most, _delimiter(mapped, kind)), most))
        header, delimiter = table.has_header, table.delimiter
    elif kind == "jsonl":
        parts = list(_up_to(objects(file, encoder, most), most))
    else:
        rows = parquet_rows(seekable(file, encoder), encoder, list, most)
        parts = list(_up_to(_parts_of_batches(rows), most))
    rejects = [reject for *_, wrong in parts for reject in wrong]
    first = _together([part for part, *_ in parts])
    if first is None:
        first = parts[0][0] if parts else []
    return TableSample(kind, encoder.name, first[:most], header, delimiter, rejects)
