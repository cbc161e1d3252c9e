"""Files: which format one has, and its bytes, unpacked.

The extension names the format; `.gz` and `.zst` after it are unpacked on the way. What has no name
(standard input, a file made in memory) is known by its first line: `{` begins JSON lines, a term
or a comment N-Quads, anything else is the header of a CSV, or of a TSV if it has tabs.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import IO, Any, cast

import pyarrow as pa

from streamsparql.errors import SourceError
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.json_lines import json_chunks
from streamsparql.sources.quads import line_chunks
from streamsparql.sources.rdf import SYNTAXES, graph_chunks, trig_chunks
from streamsparql.sources.reading import Reading
from streamsparql.sources.separated import Separated
from streamsparql.sources.tables import chunks_of_batches, parquet_batches

_PACKED = {"gz": "gzip", "zst": "zstd"}
_STREAMS = "nq, trig, csv, tsv, jsonl, parquet"
_GRAPHS = "nt, ttl, rdf, jsonld, csv, tsv, jsonl, parquet"
_OTHER_NAMES = {"ndjson": "jsonl", "pq": "parquet", "json": "jsonl", "n3": "ttl"}


def is_file(source: Any) -> bool:
    """Whether a source is a path, `-`, or an open file."""
    return isinstance(source, str | os.PathLike) or hasattr(source, "read")


def file_chunks(source: Any, reading: Reading, size: int, timed: bool) -> Iterator[Chunk]:
    """The content of a file: of a stream where `timed`, else of a static graph."""
    file, kind = _opened(source, reading)
    try:
        yield from _chunks(file, kind, reading, size, timed)
    finally:
        if isinstance(source, str | os.PathLike) and file is not sys.stdin.buffer:
            file.close()


def _chunks(
    file: IO[bytes], kind: str, reading: Reading, size: int, timed: bool
) -> Iterator[Chunk]:
    match kind:
        case "csv" | "tsv":
            return Separated(reading, timed, kind == "tsv").chunks(file, size)
        case "jsonl":
            return json_chunks(file, reading, size, timed)
        case "parquet":
            batches = parquet_batches(_seekable(file), reading, size, timed)
            return chunks_of_batches(batches, reading, size, timed)
        case "nq" if timed:
            return line_chunks(file, reading, size, timed=True)
        case "nt" if not timed:
            return line_chunks(file, reading, size, timed=False)
        case "trig" if timed:
            return trig_chunks(file, reading, size)
        case _ if kind in SYNTAXES and not timed:
            return graph_chunks(file, kind, reading, size)
    what = f"of a stream, whose items have timestamps: {_STREAMS}" if timed else f": {_GRAPHS}"
    raise SourceError(f"{reading.name}: .{kind} is no format {what} (each also .gz, .zst)")


def _opened(source: Any, reading: Reading) -> tuple[IO[bytes], str]:
    """The bytes, unpacked, and the format."""
    if isinstance(source, str) and source == "-":
        return _known(sys.stdin.buffer)
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source).removeprefix("file://")
        try:
            return _unpacked(open(path, "rb"), path)
        except OSError as error:
            raise SourceError(f"{reading.name}: {path}: {error.strerror or error}") from error
    if isinstance(source, io.TextIOBase):
        inner = getattr(source, "buffer", None)
        if inner is None:
            inner = io.BytesIO(source.read().encode("utf-8", "surrogatepass"))
        return _named(cast("IO[bytes]", inner), getattr(source, "name", None))
    return _named(source, getattr(source, "name", None))


def _named(file: IO[bytes], name: object) -> tuple[IO[bytes], str]:
    if isinstance(name, str) and os.path.splitext(name)[1]:
        return _unpacked(file, name)
    return _known(file)


def _unpacked(file: IO[bytes], path: str) -> tuple[IO[bytes], str]:
    stem, extension = os.path.splitext(path.lower())
    packed = _PACKED.get(extension[1:])
    if packed:
        unpacking = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), packed)
        file = cast("IO[bytes]", io.BufferedReader(_Unpacking(unpacking, file), 1 << 20))
        extension = os.path.splitext(stem)[1]
    kind = extension[1:]
    return (file, _OTHER_NAMES.get(kind, kind)) if kind else _known(file)


class _Unpacking(io.RawIOBase):
    """Arrow's unpacking stream as a raw stream of Python, which can be buffered."""

    def __init__(self, stream: pa.NativeFile, file: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream
        self._file = file

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer, as far as there is anything."""
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Closes the file below, too."""
        self._file.close()
        super().close()


def _known(file: IO[bytes]) -> tuple[IO[bytes], str]:
    """The format of what has no name, by how it begins."""
    if not hasattr(file, "peek"):
        file = cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", file)))
    start = cast("io.BufferedReader", file).peek(1 << 10)
    first = start.lstrip().split(b"\n", 1)[0]
    if first[:1] == b"{":
        return file, "jsonl"
    if first[:1] in (b"<", b"_", b"#", b""):
        return file, "nq"
    return file, "tsv" if b"\t" in first else "csv"


def _seekable(file: IO[bytes]) -> Any:
    """The file, or all its bytes where it can only be read from front to back."""
    return file if file.seekable() else pa.BufferReader(file.read())
