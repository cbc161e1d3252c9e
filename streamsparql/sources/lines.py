"""Lines: text files in blocks of whole lines.

A block is what could be read at once, up to its last line end; the rest waits for the next. So a
pipe is read as it comes, and no line is in two blocks. A line ends in LF, CRLF or CR. A byte order
mark at the beginning is skipped; one of UTF-16 or UTF-32 is an error, for then every line would be.

A line that has no end and is longer than `LONGEST` is rejected, and so is what is left of the last
line where a packed file breaks off.
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
"""How many bytes a line may have, or a quoted value of CSV: what is longer was never closed."""
_SHOWN = 100


class BreaksOff(Exception):
    """A packed file ends before what is packed in it does, or goes on as something else."""


def broken(file: IO[bytes]) -> str | None:
    """Why a packed file that has been read to its end breaks off there; None where it does not."""
    found: str | None = getattr(getattr(file, "raw", file), "broken", None)
    return found


def blocks(
    file: IO[bytes], reading: Encoder, size: int, quoted: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line; the last may have no end.

    All ends are LF, but where lines may be `quoted` they stay as they are, for they may be a part
    of values.

    >>> import io
    >>> from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    >>> from streamsparql.sources.encoder import Encoder
    >>> list(blocks(io.BytesIO(b"one\\ntwo\\r\\nthr"), Encoder("file", TermDictionary()), 6))
    [(1, b'one\\n'), (2, b'two\\n'), (3, b'thr')]
    """
    line, begun, length, skipping = 1, list[bytes](), 0, False
    try:
        for data in _data(file, reading, size, quoted):
            if skipping:
                _, end, data = data.partition(b"\n")
                skipping = not end
                if skipping or not data:
                    continue
            cut = max(data.rfind(b"\n"), data.rfind(b"\r") if quoted else -1) + 1
            if cut:
                whole = b"".join([*begun, data[:cut]])
                yield line, whole
                line += _ends(whole, quoted)
                begun, length = [], 0
            if cut < len(data):
                begun.append(data[cut:])
                length += len(data) - cut
            if length > LONGEST:
                reading.loose.append(_reject(reading, line, "the line has no end", begun))
                begun, length, skipping, line = [], 0, True, line + 1
    except BreaksOff as error:
        reading.loose.append(_reject(reading, line, f"the file breaks off: {error}", begun))
    else:
        if begun:
            yield line, b"".join(begun)


def _data(file: IO[bytes], reading: Encoder, size: int, quoted: bool) -> Iterator[bytes]:
    """The bytes as they come, without a byte order mark; no CRLF is cut in two."""
    read = Prompt(file).read
    first, held = True, b""
    while True:
        try:
            data = read(size)
        except (OSError, EOFError) as error:
            raise SourceError(f"{reading.name} cannot be read: {error}") from error
        if not data:
            if held:
                yield held if quoted else b"\n"
            if (why := broken(file)) is not None:
                raise BreaksOff(why)
            return
        if first:
            if data.startswith(_OTHER_MARKS):
                raise SourceError(f"{reading.name} is UTF-16 or UTF-32: it must be UTF-8")
            data, first = data.removeprefix(codecs.BOM_UTF8), False
        if held or b"\r" in data:
            data = held + data
            held = data[-1:] if data.endswith(b"\r") else b""
            data = data[: len(data) - len(held)]
            if not quoted:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if data:
            yield data


def comes(file: IO[bytes]) -> bool:
    """Whether a file is a pipe or a terminal, whose content is still to come."""
    try:
        return not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):  # it is in memory, or packed
        return False


class Prompt:
    """A file that gives what is there, and not so much as it is asked for, so that nobody waits."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.read = getattr(file, "read1", file.read)

    @property
    def closed(self) -> bool:
        """Whether nobody can read it any more."""
        return self._file.closed

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _ends(data: bytes, quoted: bool) -> int:
    """How many lines end in it."""
    ends = data.count(b"\n")
    return ends + data.count(b"\r") - data.count(b"\r\n") if quoted else ends


def _reject(reading: Encoder, line: int, reason: str, begun: list[bytes]) -> Reject:
    """What is said of a line that has not come to its end."""
    shown = b"".join(begun)[:_SHOWN] or None
    return reading.of("line").reject(line, reason, shown)


def decoded(line: bytes) -> str | None:
    """The text of a line; None where it is not UTF-8.

    >>> decoded(b"caf\\xc3\\xa9"), decoded(b"caf\\xe9")
    ('café', None)
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


NOT_UTF8 = "the line is not UTF-8"
