"""Files: the format of a file, and its content, decompressed.

The extension names the format; `.gz` and `.zst` after it are decompressed while reading. Without a
name (standard input, a file in memory), or with another extension, the format is detected from the
first line: `{` begins JSON lines, a term or a comment N-Quads, a prefix TriG or Turtle; anything
else is the header of a CSV file, or of a TSV file if it contains tabs.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, cast

import pyarrow as pa

from streamsparql.errors import SourceError
from streamsparql.overriding import override
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.compression import Gzip, Zstandard
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.json_lines import json_chunks
from streamsparql.sources.lines import AvailableReader, truncation
from streamsparql.sources.messages import message_chunks
from streamsparql.sources.paths import extension_of, is_compressed, path_of
from streamsparql.sources.quads import line_chunks
from streamsparql.sources.rdf import SYNTAXES, graph_chunks, trig_chunks
from streamsparql.sources.separated import Separated
from streamsparql.sources.tables import chunk_of_batch, chunks_of_batches, parquet_batches, roles

_STREAM_FORMATS = "nq, trig, csv, tsv, jsonl, parquet"
_GRAPH_FORMATS = "nt, ttl, rdf, jsonld, csv, tsv, jsonl, parquet"
_OTHER_NAMES = {"ndjson": "jsonl", "pq": "parquet", "json": "jsonl", "n3": "ttl"}
KNOWN_EXTENSIONS = frozenset(
    {"nq", "nt", "csv", "tsv", "jsonl", "parquet", *SYNTAXES, *_OTHER_NAMES}
)
"""The extensions that determine a format."""


def is_file(source: Any) -> bool:
    """Return whether a source is a path, `-`, or an open file."""
    return isinstance(source, str | os.PathLike) or hasattr(source, "read")


def file_chunks(source: Any, encoder: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """Yield the items of a file: of a stream if `timed`, else of a static graph."""
    with open_source(source, encoder.name) as (file, kind):
        encoder = encoder.with_unit(POSITION_UNITS.get(kind, "statement"), file_name_of(source))
        if timed and encoder.reading.predicate is not None and kind not in ("trig", "nq"):
            untimed = partial(_chunks, file, kind, size=size, timed=False)
            yield from message_chunks(untimed, encoder, size)
        else:
            yield from _chunks(file, kind, encoder, size, timed)
        yield from encoder.remaining()


POSITION_UNITS = {
    "nq": "line",
    "nt": "line",
    "jsonl": "line",
    "csv": "row",
    "tsv": "row",
    "parquet": "row",
}
"""The unit of positions in a file, by its format; statements for any other."""


def file_name_of(source: Any) -> str | None:
    """Return the name of a file in messages: the path as the caller wrote it; None if unnamed."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else None


def _chunks(
    file: IO[bytes], kind: str, encoder: Encoder, size: int, timed: bool
) -> Iterator[Chunk]:
    match kind:
        case "csv" | "tsv":
            return _table_chunks(file, kind == "tsv", encoder, size, timed)
        case "jsonl":
            return json_chunks(file, encoder, size, timed)
        case "parquet":
            batches = parquet_batches(seekable(file, encoder), encoder, size, timed)
            return chunks_of_batches(batches, encoder, size, timed)
        case "nq" if timed and encoder.reading.predicate is not None:
            return trig_chunks(file, encoder, size, "nq")
        case "nq" if timed:
            return line_chunks(file, encoder, size, timed=True)
        case "nt" | "nq" if not timed:
            return line_chunks(file, encoder, size, timed=False)
        case "trig" if timed:
            return trig_chunks(file, encoder, size)
        case _ if kind in SYNTAXES and not timed:
            return graph_chunks(file, kind, encoder, size)
    if timed:
        expected = f"a format of streams, whose items have timestamps; use {_STREAM_FORMATS}"
    else:
        expected = f"a format of graphs; use {_GRAPH_FORMATS}"
    raise SourceError(f"{encoder.name}: .{kind} is not {expected} (each also .gz, .zst)")


def _table_chunks(
    file: IO[bytes], tabs: bool, encoder: Encoder, size: int, timed: bool
) -> Iterator[Chunk]:
    """Yield the rows of a table that has a column per part of an item."""
    table = Separated(encoder, lambda names: [*roles(names, encoder, timed).values()])
    for rows, places, rejects in table.batches(file, size, "\t" if tabs else ","):
        yield chunk_of_batch(rows, encoder, places, timed, rejects)


@contextmanager
def open_source(source: Any, name: str) -> Iterator[tuple[IO[bytes], str]]:
    """Open a file, decompressed, and detect its format; close it if it was opened by its path."""
    file, kind = _open_source(source, name)
    try:
        yield file, kind
    finally:
        if isinstance(source, str | os.PathLike) and source != "-":
            file.close()


def _open_source(source: Any, name: str) -> tuple[IO[bytes], str]:
    if getattr(source, "closed", False):
        raise SourceError(f"{file_name_of(source) or name}: the file is closed")
    if isinstance(source, str) and source == "-":
        return _by_content(sys.stdin.buffer, "standard input")
    if isinstance(source, str | os.PathLike):
        path = path_of(source)
        try:
            file = open(path, "rb")  # noqa: SIM115 -- the caller closes it
        except OSError as error:
            too_many = "; too many files overlap in time: raise the limit (ulimit -n)"
            hint = too_many if error.errno == errno.EMFILE else ""
            raise SourceError(f"{path}: {error.strerror or error}{hint}") from error
        try:
            return _by_extension(file, path)
        except BaseException:
            file.close()
            raise
    if isinstance(source, io.TextIOBase):
        inner = getattr(source, "buffer", None)
        if inner is None:
            inner = io.BytesIO(source.read().encode("utf-8", "surrogatepass"))
        return _by_name(cast("IO[bytes]", inner), getattr(source, "name", None), name)
    return _by_name(source, getattr(source, "name", None), name)


def _by_name(file: IO[bytes], path: object, name: str) -> tuple[IO[bytes], str]:
    if isinstance(path, str) and os.path.splitext(path)[1]:
        return _by_extension(file, path)
    return _by_content(file, name)


def _by_extension(file: IO[bytes], path: str) -> tuple[IO[bytes], str]:
    """Return a file, decompressed, and its format by its extension, else by its first line."""
    if is_compressed(path):
        raw = Gzip(file) if path.lower().endswith(".gz") else Zstandard(file)
        file = cast("IO[bytes]", io.BufferedReader(raw, 1 << 20))
    extension = extension_of(path)
    kind = _OTHER_NAMES.get(extension, extension)
    return (file, kind) if kind in KNOWN_EXTENSIONS else _by_content(file, path)


_MAGIC: dict[bytes, type[Gzip] | type[Zstandard]] = {
    b"\x1f\x8b": Gzip,
    b"\x28\xb5\x2f\xfd": Zstandard,
}
"""The first bytes of compressed files, for those whose name does not show the compression."""


def _by_content(file: IO[bytes], name: str) -> tuple[IO[bytes], str]:
    """Return a file, decompressed, and its format by its first line."""
    if not hasattr(file, "peek"):
        file = cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", file)))
    try:
        start = cast("io.BufferedReader", file).peek(_PEEK_SIZE)[:_PEEK_SIZE]
        if not _shows_format(start):
            file, start = _read_start(file)
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error}") from error
    for magic, decompressor in _MAGIC.items():
        if start.startswith(magic):
            content = io.BufferedReader(decompressor(file), 1 << 20)
            return _by_content(cast("IO[bytes]", content), name)
    start = start.removeprefix(codecs.BOM_UTF8)
    first = start.lstrip().split(b"\n", 1)[0].split(b"\r", 1)[0]
    if start.startswith(b"PAR1"):
        return file, "parquet"
    if b"\0" in start and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{name}: unknown format; expected {_STREAM_FORMATS} or {_GRAPH_FORMATS}")
    if first[:1] == b"{":
        return file, "jsonl"
    if _TURTLE.match(first):
        return file, "trig"
    if first[:1] in (b"<", b"_", b"#", b""):
        return file, "nq"
    return file, "tsv" if b"\t" in first else "csv"


_PEEK_SIZE = 1 << 10
_TURTLE = re.compile(rb"@(prefix|base)\s|(prefix|base|graph)\s[^,;|\t]*[<{]", re.I)


def _shows_format(start: bytes) -> bool:
    """Return whether the format can be detected: from a whole line, or from a magic number."""
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    line = b"\n" in text or b"\r" in text or b"\0" in start or start.startswith(b"PAR1")
    return line or len(start) >= _PEEK_SIZE or start.startswith(tuple(_MAGIC))


def _read_start(file: IO[bytes]) -> tuple[IO[bytes], bytes]:
    """Read the start of a file that arrives in small pieces; the returned file still has it."""
    start, read = b"", AvailableReader(file).read
    while not _shows_format(start) and (data := read(_PEEK_SIZE - len(start))):
        start += data
    return cast("IO[bytes]", io.BufferedReader(_Unread(start, file), 1 << 16)), start


class _Unread(io.RawIOBase):
    """A file whose start, already read, is read again."""

    def __init__(self, start: bytes, file: IO[bytes]) -> None:
        super().__init__()
        self._start, self._file, self._read = start, file, AvailableReader(file).read

    @property
    def truncation(self) -> str | None:
        """Why the content of a compressed file is truncated or damaged; None if it is whole."""
        return truncation(self._file)

    @override
    def readinto(self, buffer: Any) -> int:
        data, self._start = self._start[: len(buffer)], self._start[len(buffer) :]
        data = data or self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    @override
    def readable(self) -> bool:
        return True

    @override
    def fileno(self) -> int:
        return self._file.fileno()

    @override
    def close(self) -> None:
        self._file.close()
        super().close()


def seekable(file: IO[bytes], encoder: Encoder) -> Any:
    """Return the file, or its content in memory if it can only be read from front to back."""
    if file.seekable():
        return file
    try:
        data = file.read()
    except OSError as error:
        raise SourceError(f"{encoder.name} cannot be read: {error}") from error
    if (why := truncation(file)) is not None:
        raise SourceError(f"{encoder.name} is truncated or damaged: {why}")
    return pa.BufferReader(data)
