"""Plans as SVG pictures: a tree per stage, drawn without external tools.

A picture is self-contained, in a file or inside a page: its colours follow the reader's light or
dark theme, its fonts have fallbacks, and boxes are wide enough for any of them. Tooltips show whole
titles and all facts.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from streamsparql.look.explain.boxes.box import Box, BoxPlace, Reference, places
from streamsparql.look.explain.drawing.labels import (
    measure_lines,
    note_lines,
    title_lines,
    tooltip,
)
from streamsparql.look.explain.drawing.palette import PLAN_STYLE
from streamsparql.look.explain.drawing.tree_layout import GAP_Y, TreeBlock, layout
from streamsparql.look.explain.explanation import Explanation
from streamsparql.text.widths import cells, in_picture

_CELL = 6.7  # the advance of an 11 px monospaced font, rounded up
_LINE = 15.0
_HEAD = 17.0
_PAD = 9.0
_BADGE = 15.0
_MARGIN = 16.0
_HEADING = 30.0
_CORNER = 7.0
_STRIP = 7.0  # the padding of the strip with the measurements


def render_svg(explanation: Explanation) -> str:
    """Return one picture with the stages below each other."""
    parts: list[str] = []
    width = y = 0.0
    for name, box in explanation.stages:
        if explanation.headed:
            parts.append(f'<text class="stage" y="{y + 12:g}">{escape(name)}</text>')
            y += _HEADING
        drawing = tree_drawing(box)
        parts.append(f'<g transform="translate(0 {y:g})">\n{drawing.svg}\n</g>')
        width, y = max(width, drawing.width), y + drawing.height + _HEADING
    return svg_picture(Drawing("\n".join(parts), width, y - _HEADING))


class Drawing(NamedTuple):
    """A piece of SVG with its size; its origin is the upper left corner."""

    svg: str
    width: float
    height: float


def svg_picture(drawing: Drawing) -> str:
    """Return a drawing as an svg element, with a margin, a ground and the style sheet."""
    width, height = (round(side + 2 * _MARGIN) for side in (drawing.width, drawing.height))
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="streamsparql-plan" {size} role="img" '
        f'aria-label="query plan" xml:space="preserve">\n<style>{PLAN_STYLE}</style>\n'
        f'<rect class="ground" width="100%" height="100%"/>\n'
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">\n{drawing.svg}\n</g>\n</svg>'
    )


def tree_drawing(root: Box) -> Drawing:
    """Return the drawing of a tree: lines first, so that boxes cover them."""
    all_places = places(root)
    boxes = [_item(place) for place in all_places]
    blocks, (width, height) = layout(
        [place.children for place in all_places], [(box.width, box.height) for box in boxes]
    )
    lines = [_edges(block) for block in blocks if block.box is not None and block.children]
    parts = [f'<path class="edge" d="{line}"/>' for line in lines]
    for block in blocks:
        if block.box is not None:
            svg = boxes[block.box].svg
            parts.append(f'<g transform="translate({block.x:.1f} {block.y:.1f})">{svg}</g>')
    return Drawing("\n".join(parts), width, height)


def _item(place: BoxPlace) -> Drawing:
    """Return the drawing of a box, or of a reference."""
    item = place.item
    if isinstance(item, Reference):
        head = _head(item.role, "", 0, item.number)
        return Drawing(head.svg, head.width, head.height)
    head = _head(item.role, item.kind, item.number, place.reads)
    lines, notes, numbers = title_lines(item), note_lines(item), measure_lines(item)
    widest = max((cells(line, in_picture) for line in [*lines, *notes, *numbers]), default=0)
    width = max(head.width, widest * _CELL + 2 * _PAD)
    top = head.height + (_LINE * len(lines + notes) + 2) * bool(lines or notes)
    height = top + (_LINE * len(numbers) + _STRIP) * bool(numbers)
    hot = "" if item.measures is None else f" hot-{item.measures.heat}"
    mark = f" marked-{item.mark}" * bool(item.mark)
    svg = (
        f'<g class="of-{item.family}{hot}{mark}"><title>{escape(_tooltip(item))}</title>'
        f'<rect class="box" width="{width:.1f}" height="{height:g}" rx="6"/>{head.svg}'
    )
    kinds = ["title"] * len(lines) + ["note"] * len(notes)
    for index, (line, kind) in enumerate(zip(lines + notes, kinds, strict=True)):
        y = _HEAD + 1 + _LINE * (index + 0.8)
        svg += f'<text class="{kind}" x="{_PAD:g}" y="{y:g}">{escape(line)}</text>'
    return Drawing(f"{svg}{_strip(item, numbers, top, width)}</g>", width, height)


def _tooltip(box: Box) -> str:
    """Return the tooltip of a box, with its definition."""
    return f"{tooltip(box)}\n\n{box.definition}" if box.definition else tooltip(box)


def _strip(box: Box, numbers: list[str], y: float, width: float) -> str:
    """Return the strip with the measurements, coloured by heat, with a bar for the share."""
    if box.measures is None:
        return ""
    inner, height = width - 2, _LINE * len(numbers) + _STRIP - 1
    corners = f"v{height - 5:g}q0 5 -5 5h{10 - inner:.1f}q-5 0 -5 -5z"
    svg = f'<path class="strip" d="M1 {y:g}h{inner:.1f}{corners}"/>'
    share = min(box.measures.share or 0.0, 1.0) * inner
    svg += f'<rect class="bar" x="1" y="{y:g}" width="{share:.1f}" height="3"/>'
    for index, line in enumerate(numbers):
        at = y + 4 + _LINE * (index + 0.75)
        svg += f'<text class="measured" x="{_PAD:g}" y="{at:g}">{escape(line)}</text>'
    return svg


def _head(role: str, kind: str, number: int, reads: int) -> Drawing:
    """Return the first line of a box: its number, role and kind, and the number that it reads."""
    svg, x = "", _PAD
    if number:
        svg, x = _badge(number, x), x + _badge_width(number) + 5
    text = f'<tspan class="role">{escape(role)}: </tspan>' * bool(role) + escape(kind)
    if text:
        svg += f'<text class="kind" x="{x:g}" y="{_HEAD - 1:g}">{text}</text>'
        x += _kind_width(f"{role}: " * bool(role) + kind)
    if reads:
        arrow = f'<text class="kind" x="{x + 5:g}" y="{_HEAD - 1:g}">\u2190</text>' * bool(text)
        x += 22 * bool(text)
        svg, x = svg + arrow + _badge(reads, x), x + _badge_width(reads)
    return Drawing(svg, x + _PAD, _HEAD + 7)


def _badge(number: int, x: float) -> str:
    """Return a number in a circle."""
    width = _badge_width(number)
    return (
        f'<rect class="badge" x="{x:g}" y="{_HEAD - 13:g}" width="{width:g}" '
        f'height="{_BADGE:g}" rx="{_BADGE / 2:g}"/>'
        f'<text class="number" x="{x + width / 2:g}" y="{_HEAD - 2:g}">{number}</text>'
    )


def _badge_width(number: int) -> float:
    return _BADGE + 6 * (len(str(number)) - 1)


def _kind_width(text: str) -> float:
    """Estimate the width of text in small capitals of a wide sans serif font of 12 px."""
    return sum(_CAPITAL_WIDTHS.get(char.upper(), 0.62) + 0.2 * char.isupper() for char in text) * 12


_CAPITAL_WIDTHS = dict.fromkeys("IJ:", 0.4) | dict.fromkeys("MW", 0.8) | {" ": 0.35}


def _edges(block: TreeBlock) -> str:
    """Return the path of the lines from a box to its children, with round corners."""
    lone = len(block.children) == 1 and block.children[0].box is None
    start = block.children[0].anchor if lone else block.anchor
    path = ""
    for child in block.children:
        path += _line(start, block.bottom, child.anchor, child.y)
        if child.box is None:
            ends = [(below.x, below.y + below.height / 2) for below in child.children]
            path += f"V{ends[-1][1]:.1f}"
            path += "".join(f"M{child.anchor:.1f} {y:.1f}H{x:.1f}" for x, y in ends)
    return path


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    middle, side = y + GAP_Y / 2, to_x - x
    if abs(side) < 2 * _CORNER:
        curve = f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
        return f"M{x:.1f} {y:.1f}" + (curve if side else f"V{to_y:.1f}")
    corner = _CORNER if side > 0 else -_CORNER
    return (
        f"M{x:.1f} {y:.1f}V{middle - _CORNER:.1f}q0 {_CORNER:g} {corner:g} {_CORNER:g}"
        f"H{to_x - corner:.1f}q{corner:g} 0 {corner:g} {_CORNER:g}V{to_y:.1f}"
    )
