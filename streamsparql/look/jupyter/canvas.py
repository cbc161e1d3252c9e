"""A canvas with a time axis, on which the pictures of results, streams and traces are drawn.

A canvas grows downwards: the next shape goes below `y`. Text is measured generously, so that a
label fits in whichever font the reader has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import pairwise

from streamsparql.display.picture import Picture
from streamsparql.look.explain.drawing.palette import FAINT, INK, LINE, MONO, PAPER, SANS
from streamsparql.look.explain.drawing.themes import themed
from streamsparql.text.instants import DisplayClock
from streamsparql.text.widths import cells, in_picture

SERIES = (
    ("#2f6fb5", "#6fb1f5"),
    ("#b5562f", "#f09a6f"),
    ("#2f8f5b", "#6fd39c"),
    ("#7a55b0", "#b99af0"),
    ("#a8801a", "#e3bd55"),
    ("#1f8a94", "#5fd0d9"),
    ("#a83e74", "#ee8fbc"),
    ("#5f6b7a", "#a9b5c4"),
)
"""Colours that distinguish series: classes c0 to c7 fill with them, l0 to l7 stroke with them."""

CANVAS_CLASS = "streamsparql-times"
CELL = 6.7  # the advance of an 11 px monospaced font, rounded up
_DIGIT = 7.7  # the advance of a digit of a 12 px font, rounded up
_MARGIN = 8.0
_ARROW = 9.0


def _rules() -> Iterable[str]:
    paper, ink, faint, line = map("/".join, (PAPER, INK, FAINT, LINE))
    yield f".ground{{fill:{paper}}}"
    yield f"text{{font:12px {SANS};fill:{ink}}}"
    yield f".code{{font:11px {MONO}}}"
    yield ".head{font-weight:600}"
    yield f".soft{{fill:{faint}}}"
    yield f".on{{fill:{paper}}}"
    yield ".mid{text-anchor:middle}"
    yield ".end{text-anchor:end}"
    yield ".grid{stroke:#d8dde3/#2b333c}"
    yield f".axis{{stroke:{line}}}"
    yield f".band{{fill:{line};fill-opacity:.16}}"
    yield ".mark{stroke:#cf222e/#ff7b72;stroke-width:1.5;fill:none}"
    yield ".red{fill:#cf222e/#ff7b72}"
    yield f".report{{fill:#cf222e/#ff7b72;stroke:{paper}}}"
    yield ".thin{stroke-width:1;opacity:.42}"
    yield f".point{{fill:{ink};stroke:{paper}}}"
    yield ".faint{opacity:.75}"
    yield ".area{fill-opacity:.55}"
    yield ".thick{stroke-width:2}"
    yield ".wait{stroke-dasharray:2 3;stroke-width:1.5}"
    yield ".none{fill:none;stroke-width:1.2;stroke-dasharray:4 2}"
    yield ".pale{opacity:.28}"
    for k, (light, dark) in enumerate(SERIES):
        yield f".c{k}{{fill:{light}/{dark}}}"
        yield f".l{k}{{stroke:{light}/{dark}}}"


CANVAS_STYLE = themed(CANVAS_CLASS, "\n".join(_rules()))
"""The style sheet of every canvas."""


class Canvas:
    """An SVG that grows downwards, with a time axis between `left` and the right margin.

    >>> canvas = Canvas("one bar", 0, 10)
    >>> canvas.bar(2, 5, canvas.y, "c0", tip="from 2 to 5")
    >>> canvas.picture().svg.count("<rect")
    2
    """

    def __init__(
        self, title: str, start: int, end: int, *, left: float = 190, width: float = 720
    ) -> None:
        self.title, self.left, self.width = title, left, width
        self.start, self.end = start, max(end, start + 1)
        self.y = _MARGIN
        self.parts: list[str] = []
        self._below: list[str] = []

    @property
    def right(self) -> float:
        """The x coordinate of the end of the time axis; arrows extend a little beyond it."""
        return self.width - _MARGIN - _ARROW

    def x(self, t: float) -> float:
        """Return the x coordinate of an instant, clamped to the axis."""
        share = (min(max(t, self.start), self.end) - self.start) / (self.end - self.start)
        return round(self.left + (self.right - self.left) * share, 1)

    # -- shapes

    def add(self, part: str) -> None:
        """Append an SVG fragment."""
        self.parts.append(part)

    def text(self, x: float, y: float, text: str, kind: str = "", tip: str = "") -> None:
        """Draw text with its baseline at `y`."""
        content = f"{title_element(tip)}{escape(text)}"
        self.add(f'<text x="{x:g}" y="{y:g}"{class_attribute(kind)}>{content}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str, tip: str = "") -> None:
        """Draw a straight line."""
        self._shape("path", f'd="M{x1:g} {y1:g}L{x2:g} {y2:g}"', kind, tip)

    def box(
        self, x: float, y: float, width: float, height: float, kind: str, tip: str = ""
    ) -> None:
        """Draw a rectangle at least one pixel wide."""
        size = f'width="{max(width, 1):g}" height="{height:g}"'
        self._shape("rect", f'x="{x:g}" y="{y:g}" {size} rx="{min(2, height / 4):g}"', kind, tip)

    def dot(self, x: float, y: float, kind: str, radius: float = 3.5, tip: str = "") -> None:
        """Draw a dot that marks an instant."""
        self._shape("circle", f'cx="{x:g}" cy="{y:g}" r="{radius:g}"', kind, tip)

    def bar(
        self,
        start: float,
        end: float,
        y: float,
        kind: str,
        height: float = 14,
        *,
        cut: float = 0,
        tip: str = "",
    ) -> None:
        """Draw a validity interval; one that ends beyond the axis becomes an arrow.

        `cut` shortens the bar by that many pixels, which separates it from its neighbour.
        """
        left, right = self.x(start), self.x(end) - cut
        if end > self.end:
            tips = f"L{right + _ARROW:g} {y + height / 2:g}L{right:g} {y + height:g}"
            edge = f"M{left:g} {y:g}L{right:g} {y:g}{tips}L{left:g} {y + height:g}z"
            self._shape("path", f'd="{edge}"', kind, tip)
        else:
            self.box(left, y, round(right - left, 1), height, kind, tip)

    def _shape(self, tag: str, attributes: str, kind: str, tip: str) -> None:
        content = f">{title_element(tip)}</{tag}>" if tip else "/>"
        self.add(f"<{tag} {attributes}{class_attribute(kind)}{content}")

    # -- the axis

    def ruler(
        self, top: float, bottom: float, clock: DisplayClock | None = None, every: int | None = None
    ) -> None:
        """Draw grid lines at round times, or `every` ms from the start, labelled below `bottom`."""
        clock = clock or DisplayClock("ms")
        ticks = self._ticks(clock)
        if every is not None:
            ticks = clock.labels(range(self.start, self.end + 1, every))
        for t, _ in ticks:
            self._below.append(
                f'<path d="M{self.x(t):g} {top:g}L{self.x(t):g} {bottom:g}" class="grid"/>'
            )
        self._tick_labels(ticks, bottom + 15)
        self.y = bottom + 22
        if clock.day(self.start):
            self.text(self.left, self.y + 10, clock.day(self.start), "soft")
            self.y += 18

    def times(self, clock: DisplayClock) -> None:
        """Repeat the tick labels at the current `y`, for the top of a tall picture."""
        self._tick_labels(self._ticks(clock), self.y + 10)
        self.y += 18

    def _ticks(self, clock: DisplayClock) -> list[tuple[int, str]]:
        """Return as many round times as fit on the axis with their labels."""
        for most in range(int((self.right - self.left) / (6 * _DIGIT)), 2, -1):
            ticks = clock.labels(clock.ticks(self.start, self.end, most))
            room = max((_label_width(label) for _, label in ticks), default=0)
            places = [self.x(t) for t, _ in ticks]
            if all(x - before >= room for before, x in pairwise(places)):
                return ticks
        return clock.labels(clock.ticks(self.start, self.end, 2))

    def _tick_labels(self, ticks: Sequence[tuple[int, str]], y: float) -> None:
        """Draw tick labels from left to right, without those that would overlap the one before."""
        occupied = 0.0
        for t, label in ticks:
            half = _label_width(label) / 2
            x = min(self.x(t), self.width - half)
            if x - half >= occupied:
                self.text(x, y, label, "soft mid")
                occupied = x + half

    def behind(self, draw: Callable[[], None]) -> None:
        """Call `draw`, and put the shapes that it adds behind all others."""
        before, self.parts = self.parts, []
        draw()
        self._below += self.parts
        self.parts = before

    # -- the whole

    def picture(self, text: str = "", note: str = "") -> Picture:
        """Return the drawing as a picture, with its text for a terminal and a note."""
        return Picture(self.svg(), self.title, text, note)

    def svg(self) -> str:
        """Return the drawing as SVG, with background and style sheet: a file, or part of a page."""
        width, height = f"{self.width:g}", f"{self.y + _MARGIN:g}"
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="{CANVAS_CLASS}" {size} role="img" '
                f'aria-label="{escape(self.title)}">',
                f"<style>{CANVAS_STYLE}</style>",
                '<rect class="ground" width="100%" height="100%"/>',
                *self._below,
                *self.parts,
                "</svg>\n",
            ]
        )


def _label_width(label: str) -> float:
    """Return the width of an axis label in pixels, with its gap."""
    return len(label) * _DIGIT + 4


def fit_text(text: str, width: float, cell: float = CELL) -> str:
    """Return text that fits into a width in pixels, shortened with an ellipsis; "" if none fits.

    >>> fit_text("turbine", 40), fit_text("turbine", 47), fit_text("turbine", 5)
    ('turb…', 'turbine', '')

    The end of an IRI is more specific than its beginning, so the end is kept.

    >>> fit_text("<http://example.org/T1>", 60)
    '<…rg/T1>'
    """
    room = int(width / cell)
    if cells(text, in_picture) <= room:
        return text
    if text.startswith("<") and text.endswith(">") and " " not in text and room > 4:
        return f"<…{_prefix(text[:0:-1], room - 2)[::-1]}"
    prefix = _prefix(text, room - 1)
    return f"{prefix}…" if prefix else ""


def _prefix(text: str, room: int) -> str:
    """Return the longest prefix of a text that fits into `room` cells."""
    used = 0
    for k, char in enumerate(text):
        used += in_picture(char)
        if used > room:
            return text[:k]
    return text


def class_attribute(kind: str) -> str:
    """Return the class attribute of an element, or nothing."""
    return f' class="{kind}"' if kind else ""


def title_element(tip: str) -> str:
    """Return the title element of a shape, which browsers show as its tooltip, or nothing."""
    return f"<title>{escape(tip)}</title>" if tip else ""
