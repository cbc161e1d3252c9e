"""Files with positions: sources that continue where they were, and sinks that are cut there.

N-Quads are read in blocks of whole lines, and the position is a byte. Other formats (CSV, whose
values may contain line ends, Parquet, compressed files, folders, mapped tables) have positions that
count the items: they are read again up to there.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from streamsparql.errors import EngineError, SourceError
from streamsparql.run.open_input import PushedStream
from streamsparql.sinks import SINKS, Layout, Sink, format_of
from streamsparql.sources import Chunk
from streamsparql.sources.lines import LONGEST
from streamsparql.sources.paths import is_endless, path_of
from streamsparql.sources.reading import Reading

READ_SIZE = 1 << 20
"""The number of bytes that are read at a time."""

FORMATS = ("csv", "jsonl", "nq")
"""The formats that can be continued at a byte."""


class _Lines(io.BytesIO):
    """Whole lines of a file; the first one has a number."""

    def __init__(self, data: bytes, name: str, first_line: int) -> None:
        super().__init__(data)
        self.name, self.first_line = name, first_line


class LineFile:
    """A file of N-Quads, in blocks of whole lines."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._offset, self._line = 0, 1

    def position(self) -> Any:
        """Return the byte, and the number of the line, after the last block."""
        return {"byte": self._offset, "line": self._line}

    def seek(self, position: Any, reading: Reading) -> None:
        """Continue after a block."""
        self._offset, self._line = int(position["byte"]), int(position["line"])
        if os.path.getsize(self.path) < self._offset:
            raise SourceError(
                f"{self.path} has fewer bytes than were read before: it is another file; remove the"
                " checkpoint to read it from its start"
            )

    def blocks(self) -> Iterator[Any]:
        """Yield blocks as sources; the position is then that after the block."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                while data := file.read(READ_SIZE):
                    while not data.endswith(b"\n") and len(data) < LONGEST:
                        more = file.readline(LONGEST)
                        if not more:
                            break
                        data += more
                    block = _Lines(data, self.path, self._line)
                    self._offset += len(data)
                    self._line += data.count(b"\n")
                    yield block
        except OSError as error:
            raise SourceError(f"{self.path}: {error.strerror or error}") from error


class FileInput:
    """A source that is a file, a folder or a table, chunk by chunk, with a position.

    It is read into the stream of an engine, whose `reader` returns chunks.
    """

    def __init__(self, source: Any, stream: PushedStream, engine: Any) -> None:
        self._source, self._stream, self._engine = source, stream, engine
        path = path_of(source) if isinstance(source, str | os.PathLike) else ""
        if path and (path == "-" or is_endless(path)):
            raise EngineError(
                f"{path} cannot be read again after a restart: write it to a file, or read it by"
                " a connector"
            )
        lines = path.lower().endswith(".nq") and os.path.isfile(path)
        by_line = lines and stream.reading.predicate is None
        self._file = LineFile(path) if by_line else None
        self._chunks = self._of_lines() if by_line else engine.reader(stream.name, source)
        self._count = self._items = 0

    def _of_lines(self) -> Iterator[Chunk | None]:
        """Yield the chunks of each block, then None: after a block there is a position."""
        assert self._file is not None
        for block in self._file.blocks():
            yield from self._engine.reader(self._stream.name, block)
            yield None

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks up to the next position; none at the end."""
        for chunk in self._chunks:
            if chunk is None:
                return
            self._count += 1
            self._items += chunk.items
            yield chunk
            if self._file is None:
                return

    def position(self) -> Any:
        """Return the position after the last chunks."""
        if self._file is not None:
            return self._file.position()
        return {"chunks": self._count, "items": self._items}

    def seek(self, position: Any) -> None:
        """Continue at a position; called before the first chunk."""
        reading = self._stream.reading
        if self._file is not None:
            self._file.seek(position, reading)
            return
        cells = reading.cells.save()
        while self._count < position["chunks"] and next(self.chunks(), None) is not None:
            pass
        if (self._count, self._items) != (position["chunks"], position["items"]):
            raise SourceError(
                f"<{self._stream.name}>: {self._items:,} items, where {position['items']:,} were"
                " read before: it is another source; remove the checkpoint to read it from its"
                " start"
            )
        reading.cells.load(cells)


class _Buffer:
    """The bytes that a sink has written, until they are taken."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._data += data

    def flush(self) -> None:
        """Do nothing: the bytes are taken."""

    def take(self) -> bytes:
        """Return the bytes since the last call."""
        data, self._data = bytes(self._data), bytearray()
        return data


class FileOutput:
    """A file that rows are appended to, and that is cut at a position after a restart."""

    def __init__(
        self, path: str | os.PathLike[str], layout: Layout, kind: str | None = None
    ) -> None:
        self._path = os.fspath(path)
        kind = kind or format_of(self._path)
        if kind not in FORMATS or self._path.lower().endswith((".gz", ".zst")):
            raise EngineError(
                f"{self._path} cannot be continued after a restart; write csv, jsonl or nq,"
                " uncompressed"
            )
        self._buffer = _Buffer()
        self._sink: Sink = SINKS[kind](self._buffer, layout)
        self._header = self._buffer.take()
        self._file: Any = None

    def truncate(self, position: Any) -> None:
        """Remove what was written after a position; None: all of it."""
        try:
            if position is None:
                self._file = open(self._path, "wb")  # noqa: SIM115
                self._file.write(self._header)
                return
            size, kept = os.path.getsize(self._path), int(position["byte"])
            if size < kept:
                raise EngineError(
                    f"{self._path} has {size:,} bytes, but {kept:,} were written before the"
                    " checkpoint: it was changed; remove the checkpoint to start again"
                )
            self._file = open(self._path, "r+b")  # noqa: SIM115
            self._file.truncate(kept)
            self._file.seek(kept)
        except OSError as error:
            raise self._error(error) from None

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._sink.write(rows)
        try:
            self._file.write(self._buffer.take())
        except OSError as error:
            raise self._error(error) from None

    def flush(self) -> None:
        """Let other processes see all rows."""
        try:
            self._file.flush()
        except OSError as error:
            raise self._error(error) from None

    def position(self) -> Any:
        """Return the byte after the rows so far, which are durable."""
        self.flush()
        os.fsync(self._file.fileno())
        return {"byte": self._file.tell()}

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _error(self, error: OSError) -> EngineError:
        return EngineError(f"cannot write {self._path}: {error.strerror or error}")


def in_defined_order(rows: pa.Table, layout: Layout) -> pa.Table:
    """Return rows by their times, then by the texts of their terms.

    Rows that start together have no order of their own: that of an engine depends on the numbers
    that terms have in its dictionary.

    >>> layout = Layout("select", ("x",), ("start", "end"))
    >>> table = pa.table({"x": ["<b>", "<a>", None], "start": [5, 5, 3], "end": [9, 9, 9]})
    >>> in_defined_order(table, layout).to_pydict()
    {'x': [None, '<a>', '<b>'], 'start': [3, 5, 5], 'end': [9, 9, 9]}
    """
    first = len(layout.names)
    times = [np.asarray(column.to_numpy()) for column in rows.columns[first:]]
    terms = [_ranks(column) for column in rows.columns[:first]]
    order = np.lexsort([*reversed(terms), *reversed(times)])
    return rows.take(pa.array(order))


def _ranks(column: pa.ChunkedArray) -> Any:
    """Return the places of texts in their order; -1 for none."""
    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    ranks = np.empty(len(texts) + 1, np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    ranks[-1] = -1
    return ranks[encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)]
