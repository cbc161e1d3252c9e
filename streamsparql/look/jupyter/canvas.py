"""A canvas with a time axis, on which the pictures of results, streams and traces are drawn.

A canvas grows downwards: what is drawn next goes below `y`. Texts are measured on the safe side, so
that one that has to fit, fits in any font.
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
"""The colours of what is told apart: classes c0 to c7 fill with them, l0 to l7 draw lines."""

ROOT = "streamsparql-times"
CELL = 6.7  # the advance of an 11 px monospaced font, with something to spare
_DIGIT = 7.7  # the advance of a digit of a 12 px font, with something to spare
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


STYLE = themed(ROOT, "\n".join(_rules()))
"""The style sheet of canvases."""


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
        """Where the time axis ends; arrows go on a little."""
        return self.width - _MARGIN - _ARROW

    def x(self, t: float) -> float:
        """Where an instant is drawn; those outside of the axis at its ends."""
        share = (min(max(t, self.start), self.end) - self.start) / (self.end - self.start)
        return round(self.left + (self.right - self.left) * share, 1)

    # -- shapes

    def add(self, part: str) -> None:
        """A piece of SVG."""
        self.parts.append(part)

    def text(self, x: float, y: float, text: str, kind: str = "", tip: str = "") -> None:
        """A text; its baseline is at `y`."""
        self.add(f'<text x="{x:g}" y="{y:g}"{classed(kind)}>{titled(tip)}{escape(text)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str, tip: str = "") -> None:
        """A straight line."""
        self._shape("path", f'd="M{x1:g} {y1:g}L{x2:g} {y2:g}"', kind, tip)

    def box(
        self, x: float, y: float, width: float, height: float, kind: str, tip: str = ""
    ) -> None:
        """A rectangle, never too thin to be seen."""
        size = f'width="{max(width, 1):g}" height="{height:g}"'
        self._shape("rect", f'x="{x:g}" y="{y:g}" {size} rx="{min(2, height / 4):g}"', kind, tip)

    def dot(self, x: float, y: float, kind: str, radius: float = 3.5, tip: str = "") -> None:
        """Something that happens at an instant."""
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
        """When something holds; beyond the axis it goes on as an arrow. `cut` parts neighbours."""
        left, right = self.x(start), self.x(end) - cut
        if end > self.end:
            tips = f"L{right + _ARROW:g} {y + height / 2:g}L{right:g} {y + height:g}"
            edge = f"M{left:g} {y:g}L{right:g} {y:g}{tips}L{left:g} {y + height:g}z"
            self._shape("path", f'd="{edge}"', kind, tip)
        else:
            self.box(left, y, round(right - left, 1), height, kind, tip)

    def _shape(self, name: str, what: str, kind: str, tip: str) -> None:
        inside = f">{titled(tip)}</{name}>" if tip else "/>"
        self.add(f"<{name} {what}{classed(kind)}{inside}")

    # -- the axis

    def ruler(
        self, top: float, bottom: float, clock: DisplayClock | None = None, every: int | None = None
    ) -> None:
        """Lines at round times behind all that is drawn, and the times below `bottom`."""
        clock = clock or DisplayClock("ms")
        marks = self._marks(clock)
        if every is not None:
            marks = clock.labels(range(self.start, self.end + 1, every))
        for t, _ in marks:
            self._below.append(
                f'<path d="M{self.x(t):g} {top:g}L{self.x(t):g} {bottom:g}" class="grid"/>'
            )
        self._times(marks, bottom + 15)
        self.y = bottom + 22
        if clock.day(self.start):
            self.text(self.left, self.y + 10, clock.day(self.start), "soft")
            self.y += 18

    def times(self, clock: DisplayClock) -> None:
        """The times of the axis once more, for the head of what is high."""
        self._times(self._marks(clock), self.y + 10)
        self.y += 18

    def _marks(self, clock: DisplayClock) -> list[tuple[int, str]]:
        """Round times, as many as there is room for with their labels."""
        for most in range(int((self.right - self.left) / (6 * _DIGIT)), 2, -1):
            found = clock.labels(clock.ticks(self.start, self.end, most))
            room = max((_breadth(label) for _, label in found), default=0)
            places = [self.x(t) for t, _ in found]
            if all(x - before >= room for before, x in pairwise(places)):
                return found
        return clock.labels(clock.ticks(self.start, self.end, 2))

    def _times(self, marks: Sequence[tuple[int, str]], y: float) -> None:
        """The labels of times, each at its place, as far as there is room to the right."""
        taken = 0.0
        for t, label in marks:
            half = _breadth(label) / 2
            x = min(self.x(t), self.width - half)
            if x - half >= taken:
                self.text(x, y, label, "soft mid")
                taken = x + half

    def behind(self, draw: Callable[[], None]) -> None:
        """What `draw` draws goes behind all the rest."""
        before, self.parts = self.parts, []
        draw()
        self._below += self.parts
        self.parts = before

    # -- the whole

    def picture(self, text: str = "", note: str = "") -> Picture:
        """What was drawn, as a picture."""
        return Picture(self.svg(), self.title, text, note)

    def svg(self) -> str:
        """What was drawn, with a ground and its style: as a file or inside of a page."""
        width, height = f"{self.width:g}", f"{self.y + _MARGIN:g}"
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="{ROOT}" {size} role="img" '
                f'aria-label="{escape(self.title)}">',
                f"<style>{STYLE}</style>",
                '<rect class="ground" width="100%" height="100%"/>',
                *self._below,
                *self.parts,
                "</svg>\n",
            ]
        )


def _breadth(label: str) -> float:
    """The room that a label of an axis takes."""
    return len(label) * _DIGIT + 4


def fitted(text: str, width: float, cell: float = CELL) -> str:
    """A text that fits into a width, cut with an ellipsis where it is too long; "" in no room.

    >>> fitted("turbine", 40), fitted("turbine", 47), fitted("turbine", 5)
    ('turb…', 'turbine', '')

    Of a whole IRI the end says more than the beginning.

    >>> fitted("<http://example.org/T1>", 60)
    '<…rg/T1>'
    """
    room = int(width / cell)
    if cells(text, in_picture) <= room:
        return text
    if text.startswith("<") and text.endswith(">") and " " not in text and room > 4:
        return f"<…{_begin(text[:0:-1], room - 2)[::-1]}"
    made = _begin(text, room - 1)
    return f"{made}…" if made else ""


def _begin(text: str, room: int) -> str:
    """As much of a text as there is room for."""
    used = 0
    for k, char in enumerate(text):
        used += in_picture(char)
        if used > room:
            return text[:k]
    return text


def classed(kind: str) -> str:
    """An element's class, if it has one."""
    return f' class="{kind}"' if kind else ""


def titled(tip: str) -> str:
    """What shows where the pointer rests."""
    return f"<title>{escape(tip)}</title>" if tip else ""
