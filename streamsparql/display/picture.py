"""A picture of a result, a stream or a trace, for notebooks and files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from streamsparql.display.frame import frame
from streamsparql.errors import EngineError


@dataclass(frozen=True)
class Picture:
    """An SVG picture, with a title, a text for terminals and a note.

    A notebook shows it; `save` writes it to a file; `print` prints its text.

    >>> picture = Picture("<svg/>", "a title", note="3 more rows")
    >>> print(picture.html.partition("</style>")[2])
    <div>
    <svg/>
    </div></div>
    <div style="opacity:.7;font-size:90%">3 more rows</div>
    """

    svg: str = field(repr=False)
    """The svg element, with its style."""
    title: str = ""
    """A short title."""
    text: str = field(default="", repr=False)
    """The content as text, for terminals."""
    note: str = ""
    """A line below the picture, on what it leaves out."""

    @property
    def html(self) -> str:
        """The picture in a frame, which scrolls if the picture is larger than the page."""
        note = f'\n<div style="opacity:.7;font-size:90%">{escape(self.note)}</div>'
        return f"{frame(self.svg)}{note * bool(self.note)}"

    @property
    def page(self) -> str:
        """A page with the picture only."""
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width">\n'
            f"<title>{escape(self.title)}</title>\n"
            "<style>:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}</style>\n"
            f"</head>\n<body>\n{self.html}\n</body>\n</html>\n"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a file, .svg or .html (a page); return the path.

        >>> from tempfile import mkdtemp
        >>> Picture("<svg/>").save(f"{mkdtemp()}/picture.svg").read_text()
        '<svg/>'
        """
        target = Path(path)
        kinds = {".svg": self.svg, ".html": self.page}
        if target.suffix not in kinds:
            raise EngineError(f"unsupported picture file {target.name!r}; expected .svg or .html")
        target.write_text(kinds[target.suffix], "utf-8")
        return target

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        return self.html

    def _repr_svg_(self) -> str:
        """Return the SVG, which converters to PDF use."""
        return self.svg

    def __str__(self) -> str:
        return self.text or self.title
