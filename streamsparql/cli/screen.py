"""What a command writes for a reader: as wide as the terminal, in the signs and colours it has."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import IO, NamedTuple

from streamsparql.text.widths import wrap

_NARROW, _WIDE = 60, 100
_PLAIN = str.maketrans(
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
_PARTS = re.compile(
    r"(?P<iri><[^<>\s]*>)|(?P<variable>\?\w+)|(?P<word>\b[A-Z]{2,}\b)|(?P<note>^\s*#.*$)", re.M
)
_SHADES: Mapping[str, int] = {"iri": 36, "variable": 33, "word": 1, "note": 2}


class Screen(NamedTuple):
    """How wide what is written may be, whether in colour, and whether in more than ASCII."""

    width: int = 80
    color: bool = False
    signs: bool = True

    @classmethod
    def here(cls, narrowest: int = _NARROW, widest: int = _WIDE, otherwise: int = 80) -> Screen:
        """The screen that standard output is; a file is plain, and so wide `otherwise`."""
        if not sys.stdout.isatty():
            return cls(otherwise)
        width = columns_of(sys.stdout) or otherwise
        able = os.environ.get("TERM", "dumb") != "dumb"
        color = able and not os.environ.get("NO_COLOR")
        signs = able and _has_signs(sys.stdout.encoding, os.environ)
        return cls(max(narrowest, min(width, widest)), color, signs)

    def write(self, text: str = "") -> None:
        """Writes lines."""
        print(text if self.signs else text.translate(_PLAIN))

    def heading(self, text: str) -> None:
        """Writes a heading, with a line across the screen."""
        self.write()
        self.write(self.paint(f"── {text} ".ljust(self.width, "─"), 1))
        self.write()

    def prose(self, text: str) -> None:
        """Writes a paragraph, wrapped."""
        for line in wrap(" ".join(text.split()), self.width):
            self.write(line)

    def paint(self, text: str, *codes: int) -> str:
        """The text in colour, where there is any.

        >>> Screen(color=True).paint("red", 31), Screen().paint("red", 31)
        ('\\x1b[31mred\\x1b[0m', 'red')
        """
        return f"\033[{';'.join(map(str, codes))}m{text}\033[0m" if self.color and text else text

    def query(self, text: str) -> None:
        """Writes a query's text."""
        if self.color:
            text = _PARTS.sub(lambda found: self._shaded(found), text)
        self.write(text.rstrip("\n"))

    def _shaded(self, found: re.Match[str]) -> str:
        return self.paint(found[0], _SHADES[found.lastgroup or "word"])


def columns_of(terminal: IO[str]) -> int:
    """How wide a terminal is; 0 where it does not tell."""
    try:
        return os.get_terminal_size(terminal.fileno()).columns
    except OSError:
        return 0


def _has_signs(encoding: str, environ: Mapping[str, str]) -> bool:
    """Whether a terminal shows what is not ASCII: its locale may say that it does not.

    >>> _has_signs("utf-8", {}), _has_signs("utf-8", {"LC_ALL": "C"}), _has_signs("latin-1", {})
    (True, False, False)
    """
    names = (environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next(filter(None, names), "UTF-8")
    return all("utf8" in name.lower().replace("-", "") for name in (encoding, locale))
