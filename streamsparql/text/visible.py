"""Text made safe to show: control characters escaped, right-to-left text isolated."""

from __future__ import annotations

from unicodedata import bidirectional


def visible(text: str) -> str:
    r"""Replace characters that are not printable by SPARQL escapes; the result is one line.

    >>> print(visible("a\u2028b\u202e"))
    a\u2028b\u202E
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(ord(char)) for char in text)


def isolated(text: str) -> str:
    """Return the visible text, isolated if it has right-to-left letters.

    Without isolation, right-to-left text would reorder the rest of its line.

    >>> isolated("a"), isolated("\u0627") == "\u2066\u0627\u2069"
    ('a', True)
    """
    shown = visible(text)
    if shown.isascii() or not any(bidirectional(char) in _RIGHT_TO_LEFT for char in shown):
        return shown
    return f"\u2066{shown}\u2069"


_RIGHT_TO_LEFT = ("R", "AL", "AN")


def _escape(code: int) -> str:
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
