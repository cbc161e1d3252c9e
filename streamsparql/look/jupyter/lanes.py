"""Lanes of bars: rows that overlap in time are drawn below each other, each next to its label.

Many bars are drawn thin, with tooltips in place of labels. If too many overlap to be distinguished,
an area chart shows how many rows hold at each instant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from streamsparql.algebra.streams import INFINITY
from streamsparql.look.jupyter.canvas import CELL, Canvas, fit_text, title_element
from streamsparql.text.widths import cells, in_picture

MAX_LABELLED_BARS = 48
"""The number of bars up to which a group has labels."""
MAX_GROUP_LANES, MAX_GROUP_BARS = 28, 600
"""The limits beyond which bars are drawn as an area chart."""

_PITCH, _BAR = 17.0, 13.0
_THIN_PITCH, _THIN = 6.0, 5.0
_AREA = 46.0
_GAP = 5.0
_LABEL = 30 * CELL
FAR = 9_000_000_000_000_000
"""An end that JavaScript represents exactly, in place of `INFINITY`."""


class RowBar(NamedTuple):
    """A row that an operator emitted or retained, over its time, with the items of its lineage."""

    operator: int
    part: str
    text: str
    start: int
    end: int
    colours: tuple[int, ...]
    origins: frozenset[int]
    tip: str
    emitted: int | None
    """The instant of the step that emitted it; None for a row that is retained in a state."""


class BarGroup(NamedTuple):
    """The bars of one kind: the output of an operator, or a part of its state."""

    name: str
    bars: tuple[RowBar, ...]


class PlacedBar(NamedTuple):
    """A bar in its lane, with its label: its x coordinate, and whether it is inside the bar."""

    bar: RowBar
    lane: int
    label: str
    x: float
    inside: bool


def draw_group(canvas: Canvas, group: BarGroup) -> bool:
    """Draw a group at the current `y`; return whether it became an area chart."""
    top = canvas.y
    bars = [bar for bar in group.bars if bar.start < canvas.end]
    later = len(group.bars) - len(bars)
    labelled = len(bars) <= MAX_LABELLED_BARS
    placed = list(place_bars(canvas, bars, labelled))
    lanes = 1 + max((each.lane for each in placed), default=0)
    if len(bars) > MAX_GROUP_BARS:
        lanes = MAX_GROUP_LANES + 1
    pitch = _PITCH if labelled else _THIN_PITCH
    canvas.text(8, top + 11, fit_text(group.name, canvas.left - 14, 6.4), "soft fine", group.name)
    if lanes > MAX_GROUP_LANES:
        _draw_area(canvas, bars)
        return True
    for each in placed:
        _draw_bar(canvas, each, top + each.lane * pitch, _BAR if labelled else _THIN)
    canvas.y = top + max(lanes * pitch, 14) + 3
    if later:
        canvas.y = max(canvas.y, top + 30)
        canvas.text(8, top + 25, f"and {later} later", "soft fine")
    return False


def place_bars(canvas: Canvas, bars: Sequence[RowBar], labelled: bool) -> Iterator[PlacedBar]:
    """Yield the bars by start, each in the first lane where it fits with its label.

    >>> canvas = Canvas("two", 0, 10, left=0, width=300)
    >>> one = RowBar(1, "emits", "?x 1", 0, 6, (0,), frozenset(), "", 0)
    >>> [each.lane for each in place_bars(canvas, [one, one._replace(start=6), one], True)]
    [0, 1, 0]
    """
    ends: list[float] = []
    for bar in sorted(bars, key=lambda bar: bar.start):
        left, right = canvas.x(bar.start), max(canvas.x(bar.end), canvas.x(bar.start) + 3)
        label, x, inside = "", left, False
        begin, end = left, right
        if labelled:
            label, x, inside = _label(canvas, bar, left, right)
            after = x + cells(label, in_picture) * CELL
            begin, end = min(left, x), right if inside else max(right, after + _GAP)
        lane = next((k for k, taken in enumerate(ends) if taken <= begin), len(ends))
        ends[lane : lane + 1] = [end]
        yield PlacedBar(bar, lane, label, x, inside)


def _label(canvas: Canvas, bar: RowBar, left: float, right: float) -> tuple[str, float, bool]:
    """Return a bar's label, its x coordinate, and whether it is inside, not after or before."""
    text = bar.text if cells(bar.text, in_picture) * CELL <= _LABEL else _shorten_iris(bar.text)
    label = fit_text(text, _LABEL)
    width = cells(label, in_picture) * CELL
    if right - left >= width + 8:
        return label, left + 4, True
    if right + _GAP + width <= canvas.width - 4:
        return label, right + _GAP, False
    if left - _GAP - width >= canvas.left:
        return label, left - _GAP - width, False
    return fit_text(text, right - left - 8), left + 4, True


def _shorten_iris(text: str) -> str:
    """Shorten long IRIs to their last part, which distinguishes them.

    >>> _shorten_iris("?x <http://purl.oclc.org/NET/ssnx/ssn#Sensor>, ?y <urn:a>")
    '?x <…Sensor>, ?y <urn:a>'
    >>> _shorten_iris("<urn:sensor:42> <http://example.org/>")
    '<…42> <…example.org/>'
    """
    return _LONG_IRI.sub(lambda match: _last_part(match[1]), text)


def _last_part(iri: str) -> str:
    """Return the part of an IRI after its last separator; a final separator does not count."""
    after = max(iri.rfind(separator, 0, -1) for separator in "/#:") + 1
    return f"<…{iri[max(after, len(iri) - _MAX_TAIL) :]}>" if after else f"<{iri}>"


_LONG_IRI = re.compile(r"<([^<>\s]{13,})>")
_MAX_TAIL = 16


def _draw_bar(canvas: Canvas, placed: PlacedBar, y: float, height: float) -> None:
    """Draw a bar; if its row was emitted after its end, also a line below it up to that instant."""
    bar = placed.bar
    items = " ".join(map(str, sorted(bar.origins)))
    canvas.add(
        f'<g class="row" data-o="{bar.operator}" data-h="{int(bar.emitted is None)}"'
        f' data-a="{bar.start}" data-b="{min(bar.end, FAR)}" data-i="{items}">'
        f"{title_element(bar.tip)}"
    )
    _draw_shape(canvas, bar, y, height)
    if bar.emitted is not None and bar.end < bar.emitted < INFINITY and height == _BAR:
        below = y + height + 1.5
        canvas.line(
            canvas.x(bar.start), below, canvas.x(bar.emitted), below, f"delay l{bar.colours[0]}"
        )
    if placed.label:
        ink = "code on" if placed.inside and bar.emitted is not None else "code"
        canvas.text(placed.x, y + height - 3, placed.label, ink)
    canvas.add("</g>")


def _draw_shape(canvas: Canvas, bar: RowBar, y: float, height: float) -> None:
    """Draw a bar's colours above each other, with a frame around a row that is retained."""
    part = height / len(bar.colours)
    retained = bar.emitted is None
    cut = 1 if height == _BAR else 0
    for k, colour in enumerate(bar.colours):
        kind = f"c{colour} retained" if retained else f"c{colour}"
        at = y + k * part
        if (
            not retained
            and bar.end - bar.start <= 1
            and canvas.x(bar.end) - canvas.x(bar.start) < 6
        ):
            canvas.dot(canvas.x(bar.start), at + part / 2, kind, min(4, height / 2))
        else:
            canvas.bar(bar.start, bar.end, at, kind, part, cut=cut)
    if retained:
        canvas.bar(bar.start, bar.end, y, f"l{bar.colours[0]} frame", height, cut=cut)


def _draw_area(canvas: Canvas, bars: Sequence[RowBar]) -> None:
    """Draw an area chart of the number of bars at each instant."""
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
    canvas.add(f'<path d="{outline}" class="c0 l0 area">{title_element(tip)}</path>')
    canvas.text(8, canvas.y + 25, f"{len(bars)} rows,", "soft fine")
    canvas.text(8, canvas.y + 39, f"up to {most} at once", "soft fine")
    canvas.y = bottom + 5
