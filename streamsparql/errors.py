"""What can go wrong, said to the person who wrote the query.

Every error of this package is a `StreamSparqlError`. The ones about a query's text know where
in it they are: they carry the line, the column and the span, and their message shows the source
line with a caret under it, what was expected, and a hint where there is one.

This module imports nothing, so that every layer can raise these errors.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Self


class Span(NamedTuple):
    """A stretch of a query's text: character offsets, the end not included.

    >>> Span(3, 7).of("abc FILTER")
    ' FIL'
    """

    start: int
    end: int

    def of(self, text: str) -> str:
        """The characters that the span covers."""
        return text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """The least span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both counted from 1, of a character offset. A line ends in LF, CR or CRLF.

    >>> position("SELECT ?x\\r\\nWHERE", 11)
    (2, 1)
    """
    line, start = 1, 0
    for found in _line_starts(text, offset):
        line, start = line + 1, found
    return line, offset - start + 1


def _line_starts(text: str, until: int) -> list[int]:
    starts, at = [], 0
    while at < min(until, len(text)):
        if text[at] == "\n" or (text[at] == "\r" and text[at + 1 : at + 2] != "\n"):
            starts.append(at + 1)
        at += 1
    return [start for start in starts if start <= until]


def snippet(text: str, span: Span) -> str:
    """The source line of a span's start, with carets under the part of the span on that line.

    >>> print(snippet("SELECT ?x\\nFILTRE(?x)", Span(10, 16)))
       2 | FILTRE(?x)
         | ^^^^^^
    """
    line, column = position(text, span.start)
    start = span.start - column + 1
    source = re.split(r"[\r\n]", text[start:], maxsplit=1)[0]
    before, after = source[: column - 1], source[column - 1 :]
    marked = after[: max(1, span.end - span.start)]
    after = after[len(marked) :]
    if len(source) > _LONGEST_LINE:
        before = before if len(before) <= _BESIDE else f"…{before[-_BESIDE:]}"
        marked = marked if len(marked) <= _LONGEST_LINE else f"{marked[:_LONGEST_LINE]}…"
        after = after if len(after) <= _BESIDE else f"{after[:_BESIDE]}…"
    pad = "".join("\t" if char == "\t" else " " * _columns(char) for char in before)
    carets = "^" * max(1, sum(map(_columns, marked)))
    seen = before + marked + after
    shown = "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in seen)
    return f"{line:>4} | {shown}\n     | {pad}{carets}"


_LONGEST_LINE, _BESIDE = 160, 60


def _columns(char: str) -> int:
    """How many columns of a terminal a character takes."""
    if char.isascii():
        return 1
    from unicodedata import combining, east_asian_width

    return 0 if combining(char) else 1 + (east_asian_width(char) in "WF")


class StreamSparqlError(Exception):
    """The base of all errors of this package."""


class TextError(StreamSparqlError):
    """An error about a query's text. `str()` shows the place; the attributes name its parts."""

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        text: str = "",
        *,
        expected: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message, self.span, self.text = message, span, text
        self.expected, self.hint = expected, hint

    def about(self, text: str) -> Self:
        """The same error, told which text it is about."""
        self.text = text
        return self

    @property
    def line(self) -> int | None:
        """The line, counted from 1; None where the error has no place in a text."""
        return self._position[0] if self._position else None

    @property
    def column(self) -> int | None:
        """The column, counted from 1."""
        return self._position[1] if self._position else None

    @property
    def _position(self) -> tuple[int, int] | None:
        return None if self.span is None else position(self.text, self.span.start)

    def __str__(self) -> str:
        lines = [self.message]
        if self.span is not None and self._position is not None:
            lines[0] = "line {}, column {}: ".format(*self._position) + self.message
            lines.append(snippet(self.text, self.span))
        if self.expected:
            lines.append("expected: " + ", ".join(self.expected))
        if self.hint:
            lines.append("hint: " + self.hint)
        return "\n".join(lines)


class QuerySyntaxError(TextError):
    """The text is not a query: something else was expected at this place."""


class QueryError(TextError):
    """The text is well formed but means nothing: an undeclared prefix, a window of size 0."""


class UnsupportedFeature(TextError):
    """A construct that this package knows but does not run, named, with a way to write it else."""


class SourceError(StreamSparqlError):
    """An input that cannot be read: which one, where in it, and why."""


class EngineError(StreamSparqlError):
    """The evaluation of a well-formed query failed."""
