"""Files: which format one has, and its bytes, unpacked.

The extension names the format; `.gz` and `.zst` after it are unpacked on the way. What has no name
(standard input, a file made in memory), or one that tells nothing, is known by its first line: `{`
begins JSON lines, a term or a comment N-Quads, a prefix TriG or Turtle, anything else is the header
of a CSV, or of a TSV if it has tabs.
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
from typing import IO, Any, cast

import pyarrow as pa

from streamsparql.errors import SourceError
from streamsparql.overriding import override
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.compression import Gzip, Zstandard
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.json_lines import json_chunks
from streamsparql.sources.lines import Prompt, broken
from streamsparql.sources.paths import extension_of, is_packed, path_of
from streamsparql.sources.quads import line_chunks
from streamsparql.sources.rdf import SYNTAXES, graph_chunks, trig_chunks
from streamsparql.sources.separated import Separated
from streamsparql.sources.tables import chunk_of_batch, chunks_of_batches, parquet_batches, roles

_STREAMS = "nq, trig, csv, tsv, jsonl, parquet"
_GRAPHS = "nt, ttl, rdf, jsonld, csv, tsv, jsonl, parquet"
_OTHER_NAMES = {"ndjson": "jsonl", "pq": "parquet", "json": "jsonl", "n3": "ttl"}
KNOWN = frozenset({"nq", "nt", "csv", "tsv", "jsonl", "parquet", *SYNTAXES, *_OTHER_NAMES})
"""The extensions that tell a format."""


def is_file(source: Any) -> bool:
    """Whether a source is a path, `-`, or an open file."""
    return isinstance(source, str | os.PathLike) or hasattr(source, "read")


def file_chunks(source: Any, reading: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """The content of a file: of a stream where `timed`, else of a static graph."""
    with opened(source, reading.name) as (file, kind):
        reading = reading.of(UNITS.get(kind, "statement"), name_of(source))
        yield from _chunks(file, kind, reading, size, timed)
        yield from reading.last()


UNITS = {"nq": "line", "nt": "line", "jsonl": "line", "csv": "row", "tsv": "row", "parquet": "row"}
"""What the positions in a file count, by its format."""


def name_of(source: Any) -> str | None:
    """What to call a file in a message: the path as it was given; None where there is no name."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else None


def _chunks(
    file: IO[bytes], kind: str, reading: Encoder, size: int, timed: bool
) -> Iterator[Chunk]:
    match kind:
        case "csv" | "tsv":
            return _table_chunks(file, kind == "tsv", reading, size, timed)
        case "jsonl":
            return json_chunks(file, reading, size, timed)
        case "parquet":
            batches = parquet_batches(seekable(file, reading), reading, size, timed)
            return chunks_of_batches(batches, reading, size, timed)
        case "nq" if timed:
            return line_chunks(file, reading, size, timed=True)
        case "nt" | "nq" if not timed:
            return line_chunks(file, reading, size, timed=False)
        case "trig" if timed:
            return trig_chunks(file, reading, size)
        case _ if kind in SYNTAXES and not timed:
            return graph_chunks(file, kind, reading, size)
    what = f"of a stream, whose items have timestamps: {_STREAMS}" if timed else f": {_GRAPHS}"
    raise SourceError(f"{reading.name}: .{kind} is no format {what} (each also .gz, .zst)")


def _table_chunks(
    file: IO[bytes], tabs: bool, reading: Encoder, size: int, timed: bool
) -> Iterator[Chunk]:
    """The rows of a table that has a column for each part of an item."""
    table = Separated(reading, lambda names: [*roles(names, reading, timed).values()])
    for rows, places, rejects in table.batches(file, size, "\t" if tabs else ","):
        yield chunk_of_batch(rows, reading, places, timed, rejects)


@contextmanager
def opened(source: Any, name: str) -> Iterator[tuple[IO[bytes], str]]:
    """The bytes of a file, unpacked, and its format; what was opened by its path gets closed."""
    file, kind = _opened(source, name)
    try:
        yield file, kind
    finally:
        if isinstance(source, str | os.PathLike) and source != "-":
            file.close()


def _opened(source: Any, name: str) -> tuple[IO[bytes], str]:
    if isinstance(source, str) and source == "-":
        return _known(sys.stdin.buffer, "standard input")
    if isinstance(source, str | os.PathLike):
        path = path_of(source)
        try:
            file = open(path, "rb")  # noqa: SIM115 -- handed on
        except OSError as error:
            many = "; so many files run beside each other: raise the limit (ulimit -n)"
            hint = many if error.errno == errno.EMFILE else ""
            raise SourceError(f"{path}: {error.strerror or error}{hint}") from error
        try:
            return _unpacked(file, path)
        except BaseException:
            file.close()
            raise
    if isinstance(source, io.TextIOBase):
        inner = getattr(source, "buffer", None)
        if inner is None:
            inner = io.BytesIO(source.read().encode("utf-8", "surrogatepass"))
        return _named(cast("IO[bytes]", inner), getattr(source, "name", None), name)
    return _named(source, getattr(source, "name", None), name)


def _named(file: IO[bytes], path: object, name: str) -> tuple[IO[bytes], str]:
    if isinstance(path, str) and os.path.splitext(path)[1]:
        return _unpacked(file, path)
    return _known(file, name)


def _unpacked(file: IO[bytes], path: str) -> tuple[IO[bytes], str]:
    """The bytes of a file by its name; where that tells no format, its first line does."""
    if is_packed(path):
        raw = Gzip(file) if path.lower().endswith(".gz") else Zstandard(file)
        file = cast("IO[bytes]", io.BufferedReader(raw, 1 << 20))
    extension = extension_of(path)
    kind = _OTHER_NAMES.get(extension, extension)
    return (file, kind) if kind in KNOWN else _known(file, path)


_MAGIC: dict[bytes, type[Gzip] | type[Zstandard]] = {
    b"\x1f\x8b": Gzip,
    b"\x28\xb5\x2f\xfd": Zstandard,
}
"""How packed files begin, also where no name tells that they are packed."""


def _known(file: IO[bytes], name: str) -> tuple[IO[bytes], str]:
    """The format of what has no name that tells it, by how it begins."""
    if not hasattr(file, "peek"):
        file = cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", file)))
    try:
        start = cast("io.BufferedReader", file).peek(_START)[:_START]
        if not _enough(start):
            file, start = _begun(file)
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error}") from error
    for magic, unpacked in _MAGIC.items():
        if start.startswith(magic):
            return _known(cast("IO[bytes]", io.BufferedReader(unpacked(file), 1 << 20)), name)
    start = start.removeprefix(codecs.BOM_UTF8)
    first = start.lstrip().split(b"\n", 1)[0].split(b"\r", 1)[0]
    if start.startswith(b"PAR1"):
        return file, "parquet"
    if b"\0" in start and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{name} is of no known format: {_STREAMS} or {_GRAPHS}")
    if first[:1] == b"{":
        return file, "jsonl"
    if _TURTLE.match(first):
        return file, "trig"
    if first[:1] in (b"<", b"_", b"#", b""):
        return file, "nq"
    return file, "tsv" if b"\t" in first else "csv"


_START = 1 << 10
_TURTLE = re.compile(rb"@(prefix|base)\s|(prefix|base|graph)\s[^,;|\t]*[<{]", re.I)


def _enough(start: bytes) -> bool:
    """Whether the format can be told: there is a line, or what no line begins with."""
    whole = start.removeprefix(codecs.BOM_UTF8).lstrip()
    told = b"\n" in whole or b"\r" in whole or b"\0" in start or start.startswith(b"PAR1")
    return told or len(start) >= _START or start.startswith(tuple(_MAGIC))


def _begun(file: IO[bytes]) -> tuple[IO[bytes], bytes]:
    """A file that comes in small pieces, and its beginning, which it still has."""
    start, read = b"", Prompt(file).read
    while not _enough(start) and (data := read(_START - len(start))):
        start += data
    return cast("IO[bytes]", io.BufferedReader(_Resumed(start, file), 1 << 16)), start


class _Resumed(io.RawIOBase):
    """A file whose beginning was read already."""

    def __init__(self, start: bytes, file: IO[bytes]) -> None:
        super().__init__()
        self._start, self._file, self._read = start, file, Prompt(file).read

    @property
    def broken(self) -> str | None:
        """Why a packed file ends too soon."""
        return broken(self._file)

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


def seekable(file: IO[bytes], reading: Encoder) -> Any:
    """The file, or all its bytes where it can only be read from front to back."""
    if file.seekable():
        return file
    try:
        data = file.read()
    except OSError as error:
        raise SourceError(f"{reading.name} cannot be read: {error}") from error
    if (why := broken(file)) is not None:
        raise SourceError(f"{reading.name} breaks off: {why}")
    return pa.BufferReader(data)
