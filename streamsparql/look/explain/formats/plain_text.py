"""Plans as text, for a terminal.

A single input of an operator is on the line below it; several inputs are branches. So a plan reads
like a pipeline, from the result down, and only branches are indented:

    Projection  ?x ?y
    Join
    ├─ TriplePatternMatching  ?x :p ?y
    │  AccessGraph  default graph
    └─ Table  ?y: (1) (2)

A long title is wrapped. A subtree that occurs in several places has a number: `① Merge` where it is
drawn, `← ①` where it is read. A branch that is indented too far to be readable is moved below the
tree, under a number: `↓ ②`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from streamsparql.look.explain.boxes.box import (
    Box,
    BoxPlace,
    Reference,
    circled,
    has_measures,
    places,
    remarks,
)
from streamsparql.look.explain.boxes.phrases import applied_rules
from streamsparql.look.explain.drawing.measure_columns import (
    MIN_TREE_WIDTH,
    fitting_columns,
    header,
    measure_cells,
    total_width,
)
from streamsparql.look.explain.drawing.palette import FAMILIES
from streamsparql.look.explain.explanation import Explanation
from streamsparql.text.widths import cells, wrap

MIN_WIDTH = 60
"""The least width of the output, also on a narrower terminal."""

_MIN_TITLE_WIDTH = 24  # a title with less room starts on the line after its operator
_MIN_WIDTH_OF_BOX = 52  # a branch with less room is moved below the tree
_MIN_WIDTH_OF_MEASURED_BOX = 26
_MAX_TITLE_LINES = 3  # of measured boxes
_ESCAPES = re.compile(r"\033\[[\d;]*m")
_BOLD, _FAINT, _SLANTED = 1, 2, 3


def render_text(explanation: Explanation) -> str:
    """Return the stages as trees; where there are several, under headings."""
    ink = Ink(explanation.color)
    width = max(explanation.width, MIN_WIDTH)
    lines: list[str] = []
    if explanation.whole:
        lines += _listed(explanation.summary(), ink, width)
    if explanation.notes:
        lines += [*_listed(list(explanation.notes), ink, width), ""]
    for name, box in explanation.stages:
        if explanation.headed:
            lines += [""] * bool(lines and lines[-1])
            lines += [ink.paint(f"── {name} " + "─" * (width - len(name) - 4), _BOLD), ""]
        lines += tree_lines(box, ink, width)
        below = remarks(box)
        if name == "optimized" and explanation.rules:
            below.append(("rules", applied_rules(explanation.rules)))
        if below:
            lines += ["", *_listed(below, ink, width)]
    return "\n".join(lines)


class Ink(NamedTuple):
    """A painter of text, in colour or plain."""

    color: bool

    def paint(self, text: str, *codes: int) -> str:
        """Return the text with ANSI codes for colour and weight, if in colour."""
        if not self.color or not text:
            return text
        return f"\033[{';'.join(map(str, codes))}m{text}\033[0m"


def _listed(entries: list[tuple[str, str]], ink: Ink, width: int) -> list[str]:
    indent = max(len(name) for name, _ in entries) + 2
    lines: list[str] = []
    for name, text in entries:
        first, *more = wrap(text, width - indent)
        lines.append(ink.paint(name.ljust(indent), _FAINT) + first)
        lines += [" " * indent + line for line in more]
    return lines


class _Start(NamedTuple):
    """A place to draw: its index, the prefixes of its first line and of the others, its number."""

    place: int
    first: str
    after: str
    number: int


def tree_lines(root: Box, ink: Ink, width: int) -> Iterator[str]:
    """Yield the lines of a tree, none wider than `width`; measurements are on the right."""
    if not has_measures(root):
        yield from (line for line, _ in _draw(root, ink, width, _MIN_WIDTH_OF_BOX, None))
        return
    columns = fitting_columns(width)
    room = max(width - total_width(columns), MIN_TREE_WIDTH)
    yield " " * room + ink.paint(header(columns), _FAINT)
    for line, box in _draw(root, ink, room, _MIN_WIDTH_OF_MEASURED_BOX, _MAX_TITLE_LINES):
        if box is None or box.measures is None:
            yield line
            continue
        width_of_line = cells(_ESCAPES.sub("", line))
        figures = measure_cells(box.measures, columns, ink.paint)
        yield line + " " * (room - width_of_line) + figures


def tree_text(root: Box, width: int = 100) -> str:
    """Return a tree without colour."""
    return "\n".join(tree_lines(root, Ink(False), width))


def _draw(
    root: Box, ink: Ink, width: int, min_width: int, max_lines: int | None
) -> Iterator[tuple[str, Box | None]]:
    """Yield the lines; the first line of a box is paired with the box.

    A branch in which a box would have less than `min_width` cells continues below the tree. A title
    has at most `max_lines` lines.
    """
    all_places = places(root)
    last = max(place.item.number for place in all_places)
    sections = [(0, root.number)]
    for top, number in sections:
        if top:
            yield "", None
        pending = [_Start(top, "", "", number)]
        while pending:
            start = pending.pop()
            place = all_places[start.place]
            if place.children and cells(start.after) > width - min_width:
                last += not start.number
                sections.append((start.place, start.number or last))
                mark = f"↓ {circled(start.number or last)}"
                yield ink.paint(start.first, _FAINT) + ink.paint(mark, _BOLD), None
            else:
                box = place.item if isinstance(place.item, Box) else None
                for line in _lines(place, start, ink, width, max_lines):
                    yield line, box
                    box = None
                pending += reversed(_branches(place, start.after, all_places))


def _branches(place: BoxPlace, after: str, all_places: list[BoxPlace]) -> list[_Start]:
    """Return the children: one on the line below, or several as branches."""
    leads = [("├─ ", "│  ")] * (len(place.children) - 1) + [("└─ ", "   ")]
    if len(place.children) == 1:
        leads = [("", "")]
    return [
        _Start(child, after + lead, after + rail, all_places[child].item.number)
        for child, (lead, rail) in zip(place.children, leads, strict=False)
    ]


def _lines(
    place: BoxPlace, start: _Start, ink: Ink, width: int, max_lines: int | None
) -> Iterator[str]:
    """Yield the lines of one box: the first, and those that its title continues on."""
    item = place.item
    role = f"{item.role}: " if item.role else ""
    lead = ink.paint(start.first, _FAINT)
    if isinstance(item, Reference):
        yield lead + ink.paint(role, _SLANTED) + ink.paint(f"← {circled(item.number)}", _BOLD)
        return
    mark = f"{circled(start.number)} " if start.number else ""
    kind = ink.paint(item.kind, _BOLD, FAMILIES[item.family].ansi)
    reads = f"← {circled(place.reads)}" if place.reads else ""
    head = lead + ink.paint(mark, _BOLD) + ink.paint(role, _SLANTED) + kind
    indent = cells(start.first + mark + role + item.kind) + 2
    first, *more = _wrapped_title(item.title, reads, width - indent, max_lines)
    if width - indent < _MIN_TITLE_WIDTH and more:
        indent = cells(start.after) + 4
        first, more = "", _wrapped_title(item.title, reads, width - indent, max_lines)
    yield f"{head}  {first}" if first else head
    rail = ink.paint(start.after, _FAINT) + " " * (indent - cells(start.after))
    yield from (rail + line for line in more)


def _wrapped_title(title: str, reads: str, room: int, max_lines: int | None) -> list[str]:
    """Wrap a title, followed by the number of the box that it reads, which is never cut."""
    lines = wrap(f"{title}  {reads}".strip(), room)
    if max_lines is None or len(lines) <= max_lines:
        return lines
    *lines, last = wrap(title, room, max_lines)
    if reads:
        kept = last if cells(last) + cells(reads) + 2 <= room else wrap(last, room - 6, 1)[0]
        last = f"{kept}  {reads}"
    return [*lines, last]
