"""Lines: text files in blocks of whole lines.

A block is what could be read at once, up to its last line end; the rest waits for the next. So a
pipe is read as it comes, and no line is in two blocks. A byte order mark at the beginning is
skipped; one of UTF-16 or UTF-32 is an error, for then every line would be.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import IO

from streamsparql.errors import SourceError

_OTHER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
LONGEST = 1 << 26
"""How many bytes a line may have, or a quoted value of CSV: what is longer was never closed."""


def blocks(file: IO[bytes], name: str, size: int) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line; the last may have no end.

    >>> import io
    >>> list(blocks(io.BytesIO(b"one\\ntwo\\nthr"), "file", 6))
    [(1, b'one\\n'), (2, b'two\\n'), (3, b'thr')]
    """
    line, begun = 1, b""
    read = getattr(file, "read1", file.read)
    mark = True
    while True:
        try:
            data = read(size)
        except (OSError, EOFError) as error:
            raise SourceError(f"{name}, after line {line}: {error}") from error
        if mark and data:
            if data.startswith(_OTHER_MARKS):
                raise SourceError(f"{name} is UTF-16 or UTF-32: it must be UTF-8")
            data, mark = data.removeprefix(codecs.BOM_UTF8), False
        if not data and not begun:
            return
        cut = data.rfind(b"\n") + 1 if data else None
        if cut == 0:
            begun += data
            if len(begun) > LONGEST:
                raise SourceError(f"{name}, line {line}: the line has no end")
            continue
        whole = begun + data[:cut]
        begun = data[cut:] if cut else b""
        yield line, whole
        line += whole.count(b"\n")
        if cut is None:
            return


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
