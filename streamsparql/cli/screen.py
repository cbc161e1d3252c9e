"""Output for a reader, in the width, the colours and the characters of the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import IO, NamedTuple

from streamsparql.text.widths import wrap

_NARROWEST, _WIDEST = 60, 100
_ASCII = str.maketrans(
    {
        "├": "|",
        "└": "`",
        "│": "|",
        "─": "-",
        "┬": "+",
        "┤": "|",
        "←": "<-",
        "…": "...",
        "█": "#",
        "░": ".",
        **{chr(0x2460 + k): f"({k + 1})" for k in range(20)},
        **dict(zip("▁▂▃▄▅▆▇", ".:-=+*%", strict=True)),
    }
)
_TOKENS = re.compile(
    r"(?P<iri><[^<>\s]*>)|(?P<variable>\?\w+)|(?P<word>\b[A-Z]{2,}\b)|(?P<note>^\s*#.*$)", re.M
)
_CODES: Mapping[str, int] = {"iri": 36, "variable": 33, "word": 1, "note": 2}


class Screen(NamedTuple):
    """The properties of a terminal: its columns, whether it has colours, and more than ASCII."""

    width: int = 80
    color: bool = False
    unicode: bool = True

    @classmethod
    def of_stdout(
        cls, narrowest: int = _NARROWEST, widest: int = _WIDEST, default: int = 80
    ) -> Screen:
        """Return the screen of standard output; a file has no colour and the `default` width."""
        if not sys.stdout.isatty():
            return cls(default)
        width = terminal_width(sys.stdout) or default
        capable = os.environ.get("TERM", "dumb") != "dumb"
        color = capable and not os.environ.get("NO_COLOR")
        unicode = capable and _supports_unicode(sys.stdout.encoding, os.environ)
        return cls(max(narrowest, min(width, widest)), color, unicode)

    def write(self, text: str = "") -> None:
        """Write lines, in ASCII if the terminal has no other characters."""
        print(text if self.unicode else text.translate(_ASCII))

    def heading(self, text: str) -> None:
        """Write a heading with a rule across the screen."""
        self.write()
        self.write(self.paint(f"── {text} ".ljust(self.width, "─"), 1))
        self.write()

    def prose(self, text: str) -> None:
        """Write a paragraph, wrapped at the width of the screen."""
        for line in wrap(" ".join(text.split()), self.width):
            self.write(line)

    def paint(self, text: str, *codes: int) -> str:
        """Return the text with ANSI colour codes if the screen has colour.

        >>> Screen(color=True).paint("red", 31), Screen().paint("red", 31)
        ('\\x1b[31mred\\x1b[0m', 'red')
        """
        return f"\033[{';'.join(map(str, codes))}m{text}\033[0m" if self.color and text else text

    def query(self, text: str) -> None:
        """Write the text of a query, with syntax colours."""
        if self.color:
            text = _TOKENS.sub(lambda token: self._painted(token), text)
        self.write(text.rstrip("\n"))

    def _painted(self, token: re.Match[str]) -> str:
        return self.paint(token[0], _CODES[token.lastgroup or "word"])


def terminal_width(terminal: IO[str]) -> int:
    """Return the number of columns of a terminal; 0 if it is unknown."""
    try:
        return os.get_terminal_size(terminal.fileno()).columns
    except OSError:
        return 0


def _supports_unicode(encoding: str, environ: Mapping[str, str]) -> bool:
    """Return whether a terminal shows more than ASCII, by its encoding and locale.

    >>> _supports_unicode("utf-8", {}), _supports_unicode("latin-1", {})
    (True, False)
    >>> _supports_unicode("utf-8", {"LC_ALL": "C"})
    False
    """
    names = (environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next(filter(None, names), "UTF-8")
    return all("utf8" in name.lower().replace("-", "") for name in (encoding, locale))
