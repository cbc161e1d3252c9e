"""Lines: text files in blocks of whole lines.

A block is the result of one read, up to its last line end; the rest is kept for the next block. So
a pipe is read as data arrives, and no line is split between blocks. A line ends in LF, CRLF or CR.
A byte order mark at the beginning is skipped; one of UTF-16 or UTF-32 is an error, since no line
could be decoded.

A line longer than `LONGEST` is rejected, and so is the incomplete last line of a compressed file
that is truncated.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from streamsparql.errors import SourceError

if TYPE_CHECKING:
    from streamsparql.sources.chunk import Reject
    from streamsparql.sources.encoder import Encoder

_OTHER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
LONGEST = 1 << 26
"""The maximal length of a line, or of a quoted value of CSV, in bytes; more counts as unclosed."""
_SHOWN = 100
_PIPE = 1 << 18
"""The number of bytes that are requested from a pipe, whose buffer usually has fewer."""


class Truncated(Exception):
    """Raised if a compressed file ends before its content does, or is damaged."""


def truncation(file: IO[bytes]) -> str | None:
    """Return why a compressed file, read to its end, is truncated; None if it is whole."""
    reason: str | None = getattr(getattr(file, "raw", file), "broken", None)
    return reason


def line_blocks(
    file: IO[bytes], encoder: Encoder, size: int, quoted: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line.

    The first line has the number `first_line` of the file, if that is a part of another file. The
    last block may lack a line end. All line ends become LF, except if values may be `quoted`:
    then they may be part of a value and are kept.

    >>> import io
    >>> from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    >>> from streamsparql.sources.encoder import Encoder
    >>> list(line_blocks(io.BytesIO(b"one\\ntwo\\r\\nthr"), Encoder("file", TermDictionary()), 6))
    [(1, b'one\\n'), (2, b'two\\n'), (3, b'thr')]
    """
    line = getattr(file, "first_line", 1)
    unfinished, skipping = bytearray(), False  # it may arrive in many tiny pieces
    try:
        for data in _data(file, encoder, size, quoted):
            if skipping:
                _, end, data = data.partition(b"\n")
                skipping = not end
                if skipping or not data:
                    continue
            cut = max(data.rfind(b"\n"), data.rfind(b"\r") if quoted else -1) + 1
            if cut:
                whole = bytes(unfinished) + data[:cut] if unfinished else data[:cut]
                yield line, whole
                line += _count_line_ends(whole, quoted)
                unfinished = bytearray()
            unfinished += data[cut:]
            if len(unfinished) > LONGEST:
                encoder.pending.append(_reject(encoder, line, "the line is too long", unfinished))
                unfinished, skipping, line = bytearray(), True, line + 1
    except Truncated as error:
        reason = f"the file is truncated or damaged: {error}"
        encoder.pending.append(_reject(encoder, line, reason, unfinished))
    else:
        if unfinished:
            yield line, bytes(unfinished)


def _data(file: IO[bytes], encoder: Encoder, size: int, quoted: bool) -> Iterator[bytes]:
    """Yield the bytes as they arrive, without a byte order mark; no CRLF is split."""
    read = AvailableReader(file).read
    if is_pipe(file):  # Python allocates as many bytes as are requested
        size = min(size, _PIPE)
    first, pending = True, b""
    while True:
        try:
            data = read(size)
        except (OSError, EOFError) as error:
            raise SourceError(f"{encoder.name} cannot be read: {error}") from error
        if not data:
            if pending:
                yield pending if quoted else b"\n"
            if (why := truncation(file)) is not None:
                raise Truncated(why)
            return
        if first:
            if data.startswith(_OTHER_MARKS):
                raise SourceError(f"{encoder.name} is UTF-16 or UTF-32; expected UTF-8")
            data, first = data.removeprefix(codecs.BOM_UTF8), False
        if pending or b"\r" in data:
            data = pending + data
            pending = data[-1:] if data.endswith(b"\r") else b""
            data = data[: len(data) - len(pending)]
            if not quoted:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if data:
            yield data


def is_pipe(file: IO[bytes]) -> bool:
    """Return whether a file is a pipe or a terminal, whose content arrives over time."""
    try:
        return not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):  # a file in memory, or a compressed one
        return False


class AvailableReader:
    """A file whose reads return the available bytes instead of waiting for the requested number."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.read = getattr(file, "read1", file.read)

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._file.closed

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _count_line_ends(data: bytes, quoted: bool) -> int:
    """Return the number of line ends in a block."""
    ends = data.count(b"\n")
    return ends + data.count(b"\r") - data.count(b"\r\n") if quoted else ends


def _reject(encoder: Encoder, line: int, reason: str, unfinished: bytearray) -> Reject:
    """Return a reject for a line that is incomplete."""
    shown = bytes(unfinished[:_SHOWN]) or None
    return encoder.with_unit("line").reject(line, reason, shown)


def decoded(line: bytes) -> str | None:
    """Return the text of a line; None if it is not UTF-8.

    >>> decoded(b"caf\\xc3\\xa9"), decoded(b"caf\\xe9")
    ('café', None)
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


NOT_UTF8 = "the line is not UTF-8"
