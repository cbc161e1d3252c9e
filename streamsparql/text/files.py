"""Files of text: queries and mappings, whole."""

from __future__ import annotations

from streamsparql.errors import SourceError


def read_utf8(path: str) -> str:
    """Return the UTF-8 text in a file; raise a SourceError that does not name it.

    >>> read_utf8("nowhere.rq")
    Traceback (most recent call last):
    streamsparql.errors.SourceError: cannot be read: No such file or directory
    """
    try:
        with open(path, "rb") as file:
            return decode_utf8(file.read())
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}") from None


def decode_utf8(data: bytes) -> str:
    """Return the text of bytes; raise a SourceError if they are not UTF-8.

    >>> decode_utf8(b"ASK {}")
    'ASK {}'
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"is not UTF-8 text (byte {error.start})") from None
