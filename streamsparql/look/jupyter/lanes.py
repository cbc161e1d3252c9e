"""Lanes of bars: rows that overlap in time stand under each other, each with its label in reach.

Where there are many, bars are thin and without labels (the pointer tells what they are); where so
many overlap that nobody could tell them apart, an area says how many hold at each instant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from streamsparql.algebra.streams import INFINITY
from streamsparql.look.jupyter.canvas import CELL, Canvas, fitted, titled
from streamsparql.text.widths import cells, in_picture

LABELLED = 48
"""Groups of up to so many bars have labels."""
MOST_LANES, MOST_BARS = 28, 600
"""Where more would be needed, the bars become an area."""

_PITCH, _BAR = 17.0, 13.0
_THIN_PITCH, _THIN = 6.0, 5.0
_AREA = 46.0
_GAP = 5.0
_LABEL = 30 * CELL
FAR = 9_000_000_000_000_000  # what scripts can count to


class Bar(NamedTuple):
    """A row, when it holds or is held, and which items it comes from."""

    operator: int
    part: str
    text: str
    start: int
    end: int
    colours: tuple[int, ...]
    origins: frozenset[int]
    tip: str
    given: int | None
    """When it was given; None for a row that is held."""


class Group(NamedTuple):
    """Bars of one sort, with a name."""

    name: str
    bars: tuple[Bar, ...]


class Placed(NamedTuple):
    """A bar in its lane, with its label: where it starts, and whether it is on the bar."""

    bar: Bar
    lane: int
    label: str
    x: float
    inside: bool


def draw_group(canvas: Canvas, group: Group) -> bool:
    """The bars of a group below what is drawn, in lanes; whether they became an area."""
    top = canvas.y
    bars = [bar for bar in group.bars if bar.start < canvas.end]
    later = len(group.bars) - len(bars)
    labelled = len(bars) <= LABELLED
    placed = list(place(canvas, bars, labelled))
    lanes = 1 + max((each.lane for each in placed), default=0)
    if len(bars) > MOST_BARS:
        lanes = MOST_LANES + 1
    pitch = _PITCH if labelled else _THIN_PITCH
    canvas.text(8, top + 11, fitted(group.name, canvas.left - 14, 6.4), "soft fine", group.name)
    if lanes > MOST_LANES:
        _draw_area(canvas, bars)
        return True
    for each in placed:
        _draw_bar(canvas, each, top + each.lane * pitch, _BAR if labelled else _THIN)
    canvas.y = top + max(lanes * pitch, 14) + 3
    if later:
        canvas.y = max(canvas.y, top + 30)
        canvas.text(8, top + 25, f"and {later} later", "soft fine")
    return False


def place(canvas: Canvas, bars: Sequence[Bar], labelled: bool) -> Iterator[Placed]:
    """The bars by start, each in the first lane where it and its label have room.

    >>> canvas = Canvas("two", 0, 10, left=0, width=300)
    >>> one = Bar(1, "gives", "?x 1", 0, 6, (0,), frozenset(), "", 0)
    >>> [each.lane for each in place(canvas, [one, one._replace(start=6), one], True)]
    [0, 1, 0]
    """
    ends: list[float] = []
    for bar in sorted(bars, key=lambda bar: bar.start):
        left, right = canvas.x(bar.start), max(canvas.x(bar.end), canvas.x(bar.start) + 3)
        label, x, inside = "", left, False
        from_, to = left, right
        if labelled:
            label, x, inside = _label(canvas, bar, left, right)
            after = x + cells(label, in_picture) * CELL
            from_, to = min(left, x), right if inside else max(right, after + _GAP)
        lane = next((k for k, end in enumerate(ends) if end <= from_), len(ends))
        ends[lane : lane + 1] = [to]
        yield Placed(bar, lane, label, x, inside)


def _label(canvas: Canvas, bar: Bar, left: float, right: float) -> tuple[str, float, bool]:
    """A bar's label, where it starts, whether it is inside: else after the bar, or before it."""
    text = bar.text if cells(bar.text, in_picture) * CELL <= _LABEL else _with_tails(bar.text)
    label = fitted(text, _LABEL)
    width = cells(label, in_picture) * CELL
    if right - left >= width + 8:
        return label, left + 4, True
    if right + _GAP + width <= canvas.width - 4:
        return label, right + _GAP, False
    if left - _GAP - width >= canvas.left:
        return label, left - _GAP - width, False
    return fitted(text, right - left - 8), left + 4, True


def _with_tails(text: str) -> str:
    """A text in which IRIs say how they end: of several, that tells more than how they begin.

    >>> _with_tails("?x <http://purl.oclc.org/NET/ssnx/ssn#Sensor>, ?y <urn:a>")
    '?x <…Sensor>, ?y <urn:a>'
    >>> _with_tails("<urn:sensor:42> <http://example.org/>")
    '<…42> <…example.org/>'
    """
    return _IRI.sub(lambda found: _tail(found[1]), text)


def _tail(iri: str) -> str:
    """What is behind the last mark in an IRI that is not its end."""
    after = max(iri.rfind(mark, 0, -1) for mark in "/#:") + 1
    return f"<…{iri[max(after, len(iri) - _TAIL) :]}>" if after else f"<{iri}>"


_IRI = re.compile(r"<([^<>\s]{13,})>")
_TAIL = 16


def _draw_bar(canvas: Canvas, placed: Placed, y: float, height: float) -> None:
    """A bar in one colour or two; a line below it leads to when it was given, if that is later."""
    bar = placed.bar
    items = " ".join(map(str, sorted(bar.origins)))
    canvas.add(
        f'<g class="row" data-o="{bar.operator}" data-h="{int(bar.given is None)}"'
        f' data-a="{bar.start}" data-b="{min(bar.end, FAR)}" data-i="{items}">{titled(bar.tip)}'
    )
    _draw_shape(canvas, bar, y, height)
    if bar.given is not None and bar.end < bar.given < INFINITY and height == _BAR:
        below = y + height + 1.5
        canvas.line(
            canvas.x(bar.start), below, canvas.x(bar.given), below, f"given l{bar.colours[0]}"
        )
    if placed.label:
        ink = "code on" if placed.inside and bar.given is not None else "code"
        canvas.text(placed.x, y + height - 3, placed.label, ink)
    canvas.add("</g>")


def _draw_shape(canvas: Canvas, bar: Bar, y: float, height: float) -> None:
    """One colour above the other; around what is held, a frame."""
    part = height / len(bar.colours)
    held = bar.given is None
    cut = 1 if height == _BAR else 0
    for k, colour in enumerate(bar.colours):
        kind = f"c{colour} held" if held else f"c{colour}"
        at = y + k * part
        if not held and bar.end - bar.start <= 1 and canvas.x(bar.end) - canvas.x(bar.start) < 6:
            canvas.dot(canvas.x(bar.start), at + part / 2, kind, min(4, height / 2))
        else:
            canvas.bar(bar.start, bar.end, at, kind, part, cut=cut)
    if held:
        canvas.bar(bar.start, bar.end, y, f"l{bar.colours[0]} frame", height, cut=cut)


def _draw_area(canvas: Canvas, bars: Sequence[Bar]) -> None:
    """How many bars there are at each instant."""
    changes: dict[int, int] = {}
    for bar in bars:
        changes[bar.start] = changes.get(bar.start, 0) + 1
        if bar.end < INFINITY:
            changes[bar.end] = changes.get(bar.end, 0) - 1
    depth, depths = 0, []
    for t in sorted(changes):
        depth += changes[t]
        depths.append((t, depth))
    most = max(count for _, count in depths)
    bottom = canvas.y + _AREA
    steps = "".join(
        f"H{canvas.x(t):g}V{bottom - (_AREA - 4) * count / most:g}" for t, count in depths
    )
    outline = f"M{canvas.left:g} {bottom:g}{steps}H{canvas.x(canvas.end):g}V{bottom:g}z"
    tip = f"{len(bars)} rows, at most {most} at once"
    canvas.add(f'<path d="{outline}" class="c0 l0 area">{titled(tip)}</path>')
    canvas.text(8, canvas.y + 25, f"{len(bars)} rows,", "soft fine")
    canvas.text(8, canvas.y + 39, f"up to {most} at once", "soft fine")
    canvas.y = bottom + 5
