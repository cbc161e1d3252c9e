"""Files as live sinks, which are rotated, and whose positions are in bytes.

    rotate:rows.jsonl?size=100MB&every=1d

The file that is written has its own name; a full one is renamed to it with a number: `rows.jsonl.1`
is the oldest. Rows that were written after a position can be removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import IO

import pyarrow as pa

from streamsparql.connectors.interface import Position
from streamsparql.connectors.urls import ConnectorUrl
from streamsparql.errors import EngineError
from streamsparql.sinks.layout import Layout
from streamsparql.sinks.text_formats import Csv, JsonLines, NQuads
from streamsparql.sources.paths import extension_of

_FORMATS = {"jsonl": JsonLines, "ndjson": JsonLines, "csv": Csv, "nq": NQuads}
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def rotation_sink(url: ConnectorUrl, layout: Layout) -> RotatedFile:
    """Return the file of a URL."""
    if url.hosts:
        raise EngineError(f"{url.shown}: a file has no host; write rotate:PATH")
    kind = url.text("format", extension_of(url.path), among=tuple(_FORMATS))
    if kind == "nq" and not layout.triples:
        raise EngineError(f"nq needs triples, not rows of {layout.form.upper()}; use jsonl")
    values = url.text("values", "native", among=("native", "terms"))
    if kind != "nq":
        layout = replace(layout, values=values, timestamps=layout.timestamps or "ms")
    size, period = _size(url), url.seconds("every", 0.0)
    return RotatedFile(url.path, layout, kind, size, period or None)


def _size(url: ConnectorUrl) -> int | None:
    text = url.text("size")
    if text is None:
        return None
    number = text.rstrip("KMGBkmgb")
    unit = text[len(number) :].upper()
    if not number.isdigit() or not int(number) or unit not in _UNITS:
        raise EngineError(f"{url.shown}: size={text}: expected a size such as 100MB")
    return int(number) * _UNITS[unit]


class RotatedFile:
    """A sink that appends rows to a file.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> layout = Layout("select", ("v",), ("start", "end"), values="native")
    >>> sink = RotatedFile(f"{folder.name}/r.csv", layout, "csv", size=1)
    >>> for k in range(3):
    ...     sink.write(pa.table({"v": ['"a"'], "start": [k], "end": [7]}))
    >>> sink.flush(), sorted(os.listdir(folder.name))
    (None, ['r.csv', 'r.csv.1', 'r.csv.2'])
    >>> sink.close(), folder.cleanup()
    (None, None)
    """

    def __init__(
        self,
        path: str,
        layout: Layout,
        kind: str,
        size: int | None = None,
        period: float | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._path, self._layout, self._kind = path, layout, kind
        self._size, self._period, self._now = size, period, clock
        self._number = 0
        """The number of full files."""
        while os.path.exists(self._full(self._number + 1)):
            self._number += 1
        self._open()

    def _full(self, number: int) -> str:
        return f"{self._path}.{number}"

    def _open(self) -> None:
        try:
            self._file: IO[bytes] = open(self._path, "ab")  # noqa: SIM115 -- it stays open
        except OSError as error:
            raise EngineError(f"{self._path}: {error.strerror}") from None
        self._since = self._now()
        self._is_empty = not self._file.tell()
        """Whether it has no rows."""
        target = _WithoutHeader(self._file)
        self._writer = _FORMATS[self._kind](target, self._layout)
        target.in_header = False

    def write(self, rows: pa.Table) -> None:
        """Append rows; rename the file before if it is full."""
        if not len(rows):
            return
        size = self._file.tell()
        is_full = self._size is not None and size >= self._size
        is_old = self._period is not None and self._now() - self._since >= self._period
        if not self._is_empty and (is_full or is_old):
            self.flush()
            self._file.close()
            self._number += 1
            os.rename(self._path, self._full(self._number))
            self._open()
        self._writer.write(rows)
        self._is_empty = False

    def flush(self) -> None:
        """Write all rows to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def position(self) -> Position:
        """Return the number of full files, and the bytes of the one that is written."""
        return {"full": self._number, "bytes": self._file.tell()}

    def truncate(self, position: Position) -> None:
        """Remove what was written after a position."""
        if position is None:
            return
        full, size = position["full"], position["bytes"]
        if full > self._number or (full == self._number and size > self._file.tell()):
            raise EngineError(
                f"{self._path}: it is shorter than at the position: it was changed or removed"
            )
        self._file.close()
        while self._number > full:
            os.replace(self._full(self._number), self._path)
            self._number -= 1
        os.truncate(self._path, size)
        self._open()

    def close(self) -> None:
        """Write all rows, and close the file."""
        self.flush()
        self._file.close()


class _WithoutHeader:
    """A file that takes the header of a writer only while it is empty."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._is_new = not file.tell()
        self.in_header = True
        """Whether the writer is being created, which writes its header."""

    def write(self, data: bytes) -> None:
        """Write data."""
        if self._is_new or not self.in_header:
            self._file.write(data)
