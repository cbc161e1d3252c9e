"""The errors of this package, subclasses of `StreamSparqlError`.

Errors in a query's text have a place in it: a line, a column and a span. Their message shows the
source line with carets, what was expected, and possibly a hint.

This module imports nothing from the package, so that every layer can raise these errors.
"""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from typing import NamedTuple, Self


class Span(NamedTuple):
    """A part of a query's text: character offsets, the end exclusive.

    >>> Span(3, 7).of("abc FILTER")
    ' FIL'
    """

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters that the span covers."""
        return text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """Return the smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


def position(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column of an offset, both counted from 1. LF, CR and CRLF end a line.

    >>> position("SELECT ?x\\r\\nWHERE", 11)
    (2, 1)
    """
    line, start = 1, 0
    for next_start in _line_starts(text, offset):
        line, start = line + 1, next_start
    return line, offset - start + 1


def _line_starts(text: str, until: int) -> list[int]:
    starts, at = [], 0
    while at < min(until, len(text)):
        if text[at] == "\n" or (text[at] == "\r" and text[at + 1 : at + 2] != "\n"):
            starts.append(at + 1)
        at += 1
    return [start for start in starts if start <= until]


def snippet(text: str, span: Span) -> str:
    """Return the source line of a span's start, with carets below the part that the span covers.

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
    if len(source) > _MAX_LINE:
        before = before if len(before) <= _MAX_CONTEXT else f"…{before[-_MAX_CONTEXT:]}"
        marked = marked if len(marked) <= _MAX_LINE else f"{marked[:_MAX_LINE]}…"
        after = after if len(after) <= _MAX_CONTEXT else f"{after[:_MAX_CONTEXT]}…"
    pad = "".join("\t" if char == "\t" else " " * _columns(char) for char in before)
    carets = "^" * max(1, sum(map(_columns, marked)))
    printable = "".join(
        char if char.isprintable() or char == "\t" else "\ufffd" for char in before + marked + after
    )
    return f"{line:>4} | {printable}\n     | {pad}{carets}"


_MAX_LINE, _MAX_CONTEXT = 160, 60


def _columns(char: str) -> int:
    """Return the number of terminal columns that a character occupies."""
    if char.isascii():
        return 1
    from unicodedata import combining, east_asian_width

    return 0 if combining(char) else 1 + (east_asian_width(char) in "WF")


def escape_controls(text: str) -> str:
    """Escape control characters, except line breaks and tabs, and those that reorder text.

    A terminal would obey them. The escapes are those of SPARQL and JSON.

    >>> escape_controls("a\\x1b[31m\\n")
    'a\\\\u001B[31m\\n'
    """
    return re.sub(_CONTROL, lambda char: f"\\u{ord(char[0]):04X}", text)


_CONTROL = "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]"


class StreamSparqlError(Exception):
    """The base class of all errors of this package; messages may quote data."""

    def __str__(self) -> str:
        return escape_controls(super().__str__())

    def _render_traceback_(self) -> list[str]:
        r"""Return the lines that IPython and notebooks show in place of a traceback.

        >>> SourceError("wind.nq: No such file or directory")._render_traceback_()
        ['\x1b[1;31mSourceError\x1b[0m: wind.nq: No such file or directory']
        """
        first, *more = str(self).splitlines() or [""]
        return [f"\033[1;31m{type(self).__name__}\033[0m: {first}", *more, *_cause(self)]


def _cause(error: BaseException) -> list[str]:
    """Return a line with the error that caused one, if it is of code outside of this package."""
    cause = error.__cause__
    frames = [] if cause is None else list(traceback.walk_tb(cause.__traceback__))
    if not frames or _is_inside(frames[-1][0].f_globals.get("__name__", "")):
        return []
    frame, line = frames[-1]
    place = f"{frame.f_code.co_filename}, line {line}, in {frame.f_code.co_name}"
    return [escape_controls(f"caused by {type(cause).__name__}: {cause} ({place})")]


class TextError(StreamSparqlError):
    """An error in a query's text. `str()` shows its place; the attributes have the details."""

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
        self.file: str | None = None
        """The file that the text was read from, if `compile` read it."""

    def about(self, text: str) -> Self:
        """Set the text that the span refers to, and return the error."""
        self.text = text
        return self

    @property
    def line(self) -> int | None:
        """The line, counted from 1; None if the error has no place in a text."""
        return self._position[0] if self._position else None

    @property
    def column(self) -> int | None:
        """The column, counted from 1; None if the error has no place in a text."""
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
        if self.file is not None:
            lines[0] = f"{self.file}: {lines[0]}"
        return escape_controls("\n".join(lines))


class QuerySyntaxError(TextError):
    """Text that is not a query: the parser expected something else at this place."""


class QueryError(TextError):
    """A well-formed but invalid query, as with an undeclared prefix or a window of size 0."""


class UnsupportedFeature(TextError):
    """A construct that is recognised but not supported; a hint says what to write instead."""


class SourceError(StreamSparqlError):
    """An input that cannot be read, with its name, the place in it, and the reason."""


class EngineError(StreamSparqlError):
    """A failure in the evaluation of a valid query."""


class LimitExceeded(EngineError):
    """A computation that exceeds one of its `Limits`.

    >>> error = LimitExceeded("more than 5 rows in one step", "rows", 5, "Join on x")
    >>> print(error)
    more than 5 rows in one step, in Join on x; raise the limit with Limits(rows=..), on the \
command line with --row-limit
    >>> error.limit, error.value, error.operator
    ('rows', 5, 'Join on x')
    """

    def __init__(
        self, message: str, limit: str = "", value: float | None = None, operator: str = ""
    ) -> None:
        super().__init__(message)
        self.limit, self.value = limit, value
        self.operator = operator
        """The operator, or the phase, that exceeded it; empty if it is unknown."""

    def inside(self, operator: str) -> Self:
        """Set the operator unless it is known, and return the error."""
        self.operator = self.operator or operator
        return self

    def __str__(self) -> str:
        where = f", in {self.operator}" if self.operator else ""
        return escape_controls(f"{self.args[0]}{where}{_HINTS.get(self.limit, '')}")


_HINT = "; raise the limit with Limits({0}=..), on the command line with --{1}-limit"
_HINTS = {
    **{name: _HINT.format(name, name) for name in ("time", "memory", "state", "string")},
    "rows": _HINT.format("rows", "row"),
    "text": "; raise the limit with Limits(text=..)",
}


class DataWarning(UserWarning):
    """What a reader of results should know about the data: a guessed unit, late items, lost cells.

    Python's `warnings` decide whether it is shown, ignored or raised.
    """


class ConnectionWarning(UserWarning):
    """A connection of a live source or sink that broke, and that is being repaired."""


def warn(message: str, category: type[Warning] = DataWarning) -> None:
    """Issue a warning at the first caller outside of this package."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(escape_controls(message), category, stacklevel=depth)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
