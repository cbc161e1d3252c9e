"""Plans as text, for a terminal.

The only input of an operator is the line below it; where there are several, each is a branch. So a
plan reads like the pipeline that it is, from the result down, and is only as far indented as it
branches:

    Projection  ?x ?y
    Join
    ├─ TriplePatternMatching  ?x :p ?y
    │  AccessGraph  default graph
    └─ Table  ?y: (1) (2)

A title that is too long goes on below itself. What stands in several places has a number: `① Merge`
where it is drawn, `← ①` where it is read. A branch that is indented too far to be read is put below
the tree, under a number too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from streamsparql.look.explain.boxes.box import Box, Place, Reference, circled, measured, places
from streamsparql.look.explain.boxes.phrases import used
from streamsparql.look.explain.drawing.measure_columns import (
    LEAST_TREE,
    broad,
    cells_of,
    fitting,
    heads,
)
from streamsparql.look.explain.drawing.palette import FAMILIES
from streamsparql.look.explain.explanation import Explanation
from streamsparql.text.widths import cells, wrap

LEAST_WIDTH = 60
"""Narrower than this nothing is readable; so this is what is written."""

_LEAST_TITLE = 24  # narrower, and a title starts on the line after its operator
_HEAD = 52  # what an operator with its role and marks may take
_ROOM = 26  # the same where numbers stand beside the tree, whose titles are cut after so many
_TITLE = 3  # lines
_ESCAPES = re.compile(r"\033\[[\d;]*m")
_BOLD, _FAINT, _SLANTED = 1, 2, 3


def render(explanation: Explanation) -> str:
    """The stages as trees, with headings where all that there is was asked for."""
    ink = Ink(explanation.color)
    width = max(explanation.width, LEAST_WIDTH)
    lines: list[str] = []
    if explanation.whole:
        lines += _listed(explanation.summary(), ink, width)
    if explanation.notes:
        lines += [*_listed(list(explanation.notes), ink, width), ""]
    for name, box in explanation.stages:
        if explanation.headed:
            lines += [""] * bool(lines and lines[-1])
            lines += [ink.paint(f"── {name} " + "─" * (width - len(name) - 4), _BOLD), ""]
        lines += tree(box, ink, width)
        if name == "optimized" and explanation.rules:
            lines += ["", *_listed([("rules", used(explanation.rules))], ink, width)]
    return "\n".join(lines)


class Ink(NamedTuple):
    """Writes in colour, or does not."""

    color: bool

    def paint(self, text: str, *codes: int) -> str:
        """The text in ANSI's colours and weights."""
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
    """Where a place begins: what is before it on its first line and on those after, its number."""

    place: int
    first: str
    after: str
    number: int


def tree(root: Box, ink: Ink, width: int) -> Iterator[str]:
    """The lines of a tree, none wider than `width`; at the right what was measured, if it was."""
    if not measured(root):
        yield from (line for line, _ in _drawn(root, ink, width, _HEAD, None))
        return
    columns = fitting(width)
    room = max(width - broad(columns), LEAST_TREE)
    yield " " * room + ink.paint(heads(columns), _FAINT)
    for line, box in _drawn(root, ink, room, _ROOM, _TITLE):
        if box is None or box.measures is None:
            yield line
            continue
        shown = cells(_ESCAPES.sub("", line))
        rest = cells_of(box.measures, columns, ink.paint)
        yield line + " " * (room - shown) + rest


def plain(root: Box, width: int = 100) -> str:
    """A tree without colour."""
    return "\n".join(tree(root, Ink(False), width))


def _drawn(
    root: Box, ink: Ink, width: int, head: int, most: int | None
) -> Iterator[tuple[str, Box | None]]:
    """The lines, the first one of a box with it.

    What would leave an operator no more than `head` cells goes on below; a title has at most so
    many lines.
    """
    found = places(root)
    last = max(place.item.number for place in found)
    sections = [(0, root.number)]
    for top, number in sections:
        if top:
            yield "", None
        pending = [_Start(top, "", "", number)]
        while pending:
            start = pending.pop()
            place = found[start.place]
            if place.children and cells(start.after) > width - head:
                last += not start.number
                sections.append((start.place, start.number or last))
                mark = f"↓ {circled(start.number or last)}"
                yield ink.paint(start.first, _FAINT) + ink.paint(mark, _BOLD), None
            else:
                box = place.item if isinstance(place.item, Box) else None
                for line in _lines(place, start, ink, width, most):
                    yield line, box
                    box = None
                pending += reversed(_below(place, start.after, found))


def _below(place: Place, after: str, found: list[Place]) -> list[_Start]:
    """The children: one below, or several as branches."""
    leads = [("├─ ", "│  ")] * (len(place.children) - 1) + [("└─ ", "   ")]
    if len(place.children) == 1:
        leads = [("", "")]
    return [
        _Start(child, after + lead, after + rail, found[child].item.number)
        for child, (lead, rail) in zip(place.children, leads, strict=False)
    ]


def _lines(place: Place, start: _Start, ink: Ink, width: int, most: int | None) -> Iterator[str]:
    """A box on one line, or as many as its title takes."""
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
    first, *more = _titled(item.title, reads, width - indent, most)
    if width - indent < _LEAST_TITLE and more:
        indent = cells(start.after) + 4
        first, more = "", _titled(item.title, reads, width - indent, most)
    yield f"{head}  {first}" if first else head
    rail = ink.paint(start.after, _FAINT) + " " * (indent - cells(start.after))
    yield from (rail + line for line in more)


def _titled(title: str, reads: str, room: int, most: int | None) -> list[str]:
    """A title in lines, with the mark of what it reads, which is never cut."""
    lines = wrap(f"{title}  {reads}".strip(), room)
    if most is None or len(lines) <= most:
        return lines
    *lines, last = wrap(title, room, most)
    if reads:
        kept = last if cells(last) + cells(reads) + 2 <= room else wrap(last, room - 6, 1)[0]
        last = f"{kept}  {reads}"
    return [*lines, last]
