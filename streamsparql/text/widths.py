"""How wide text is, and how it is wrapped.

The unit is a cell, the width of a letter in a terminal or in a monospaced font. There are two
tables of character widths: a terminal's is exact; a picture's is on the safe side, since a browser
may have to take what is not in its monospaced font from another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unicodedata import combining, east_asian_width

Width = Callable[[str], int]
"""The cells that a character takes."""


_ISOLATING = "\u2066\u2067\u2068\u2069"


def in_terminal(char: str) -> int:
    """Wide characters (Chinese, emoji) take two cells, combining marks and isolating ones none."""
    if char in _ISOLATING:
        return 0
    if char < "\u0300" or not combining(char):
        return 2 if east_asian_width(char) in "WF" else 1
    return 0


def in_picture(char: str) -> int:
    """Latin, Greek and Cyrillic letters are in all monospaced fonts; the rest may be wider."""
    if char < "\u0530":
        return in_terminal(char)
    return 0 if combining(char) or char in _ISOLATING else 2


def cells(text: str, width: Width = in_terminal) -> int:
    r"""The width of a text.

    >>> cells("?x"), cells("風車"), cells("e\u0301")
    (2, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(width, text))


def wrap(text: str, room: int, most: int | None = None, width: Width = in_terminal) -> list[str]:
    """The text in lines of at most `room` cells, broken at spaces where there are any.

    What does not fit into `most` lines is cut, and an ellipsis says so.

    >>> wrap("?x wtur:StrCnt ?y", 10)
    ['?x', 'wtur:StrCn', 't ?y']
    >>> wrap("?x wtur:StrCnt ?y", 14, most=1)
    ['?x wtur:StrCn…']
    """
    lines: list[str] = []
    for word in text.split(" "):
        if lines and cells(lines[-1], width) + 1 + cells(word, width) <= room:
            lines[-1] += f" {word}"
        else:
            lines += _broken(word, room, width)
    if most is None or len(lines) <= most:
        return lines
    rest = next(_broken(" ".join(lines[most - 1 :]), room - 1, width))
    return [*lines[: most - 1], f"{rest}…"]


def _broken(word: str, room: int, width: Width) -> Iterator[str]:
    """A word in pieces that fit, each with at least one character."""
    start = used = 0
    for index, char in enumerate(word):
        if used + width(char) > room and index > start:
            yield word[start:index]
            start, used = index, 0
        used += width(char)
    yield word[start:]
