"""Text made safe to show: control characters escaped, right-to-left text isolated."""

from __future__ import annotations

from unicodedata import bidirectional


def visible(text: str) -> str:
    r"""The text with what cannot be seen written as SPARQL's escapes, so that it is one line.

    >>> print(visible("a\u2028b\u202e"))
    a\u2028b\u202E
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(ord(char)) for char in text)


def isolated(text: str) -> str:
    """A text that is part of a line, visible; one with letters that are written from right to left
    is kept by itself, for it would turn around what stands beside it.

    >>> isolated("a"), isolated("\u0627") == "\u2066\u0627\u2069"
    ('a', True)
    """
    shown = visible(text)
    if shown.isascii() or not any(bidirectional(char) in _LEFTWARDS for char in shown):
        return shown
    return f"\u2066{shown}\u2069"


_LEFTWARDS = ("R", "AL", "AN")


def _escaped(code: int) -> str:
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
