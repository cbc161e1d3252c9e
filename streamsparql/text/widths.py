"""The width of text, and wrapping.

The unit is a cell, the width of a letter in a terminal or in a monospaced font. There are two width
functions: that of terminals is exact; that of pictures is an upper bound, since a browser may
replace characters that its monospaced font lacks by those of another font.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unicodedata import combining, east_asian_width

Width = Callable[[str], int]
"""The number of cells that a character takes."""

_ISOLATING = "\u2066\u2067\u2068\u2069"


def in_terminal(char: str) -> int:
    """Return the width in a terminal: wide characters (Chinese, emoji) take 2, combining ones 0."""
    if char in _ISOLATING:
        return 0
    if char < "\u0300" or not combining(char):
        return 2 if east_asian_width(char) in "WF" else 1
    return 0


def in_picture(char: str) -> int:
    """Return an upper bound of the width in a picture.

    All monospaced fonts have Latin, Greek and Cyrillic letters; other characters may be wider.
    """
    if char < "\u0530":
        return in_terminal(char)
    return 0 if combining(char) or char in _ISOLATING else 2


def cells(text: str, width: Width = in_terminal) -> int:
    r"""Return the width of a text in cells.

    >>> cells("?x"), cells("風車"), cells("e\u0301")
    (2, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(width, text))


def wrap(text: str, room: int, most: int | None = None, width: Width = in_terminal) -> list[str]:
    """Wrap a text into lines of up to `room` cells, at spaces where possible.

    Text that does not fit into `most` lines is cut and ends with an ellipsis.

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
            lines += _split_word(word, room, width)
    if most is None or len(lines) <= most:
        return lines
    rest = next(_split_word(" ".join(lines[most - 1 :]), room - 1, width))
    return [*lines[: most - 1], f"{rest}…"]


def _split_word(word: str, room: int, width: Width) -> Iterator[str]:
    """Yield pieces of a word that fit, each of at least one character."""
    start = used = 0
    for index, char in enumerate(word):
        if used + width(char) > room and index > start:
            yield word[start:index]
            start, used = index, 0
        used += width(char)
    yield word[start:]
