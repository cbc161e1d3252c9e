"""How a notebook shows a trace: the operators' timelines under each other, those below first.

Solid bars are rows that an operator gives, over their validity; pale ones are rows that its state
holds, from the instant at which they came in to that at which they were let go. So a row is seen to
enter the window, to wait in the sweep area or the heap, to join, to leave. Colours are those of the
items that a row comes from. A slider lists what holds and what is held at an instant; without a
script, as in print, there are the timelines and a table of the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from streamsparql.display.picture import Picture
from streamsparql.look.explain.drawing.themes import themed
from streamsparql.look.jupyter.canvas import CELL, ROOT, Canvas, classed, fitted, titled
from streamsparql.look.jupyter.lanes import Bar, Group, draw_group
from streamsparql.look.jupyter.stepping import stepping
from streamsparql.look.jupyter.trace_tables import PAGE_STYLE, steps_table
from streamsparql.look.traces.lineage import Lineage, Origins
from streamsparql.overriding import override
from streamsparql.physical.operator import INFINITY

if TYPE_CHECKING:
    from streamsparql.look.traces.trace import StateRow, Trace, TracedOperator

WIDTH = 960.0
LEFT = 118.0
_HEAD = 22.0
_INPUTS = 12  # so many are listed
_COLOURS = 7  # the eighth is for what comes of many items, or of none
_BEYOND = 30  # time is drawn for so many times as long as items came
_BOLD = 9.0  # the advance of the font of heads, on the safe side

_RULES = """\
.held{fill-opacity:.2}
.frame{fill:none;stroke-width:1}
.given{stroke-dasharray:1 3;stroke-width:1.4;fill:none}
.area{fill-opacity:.45}
.cursor{stroke:#cf222e/#ff7b72;stroke-width:1.5;fill:none;visibility:hidden}
.faded{opacity:.2}
.fine{font-size:11px}"""
STYLE = themed(ROOT, _RULES)


@dataclass(frozen=True)
class TracePicture(Picture):
    """The picture of a trace, with the means to step through it."""

    steps: str = ""
    """The slider and the table of steps, with what they need."""

    @property
    @override
    def html(self) -> str:
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        return (
            f'<div class="streamsparql-trace"><style>{PAGE_STYLE}</style>'
            '<div class="controls" hidden><label>instant <input type="range" min="0" value="0">'
            '</label> <output></output> <button type="button">show all</button></div>'
            f'<div class="frame">{self.svg}</div>{note}'
            f'<div class="state" hidden></div>{self.steps}</div>'
        )


def trace_picture(trace: Trace) -> TracePicture:
    """The timelines of a trace.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {?s ?p ?o}")
    >>> picture = trace_picture(query.trace([("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 5)]))
    >>> "TimeWindow" in picture.svg, "<table" in picture.html
    (True, True)
    """
    blocks = list(_blocks(trace))
    start, end, last = _span(trace, blocks)
    title = f"What passes {len(trace.operators)} operators"
    canvas = Canvas(title, start, end, left=LEFT, width=WIDTH)
    canvas.add(f"<style>{STYLE}</style>")
    canvas.times(trace.clock)
    top = canvas.y
    areas = [group for block in blocks for group in _draw(canvas, block)]
    canvas.add(f'<path class="cursor" d="M0 {top:g}V{canvas.y:g}"/>')
    canvas.ruler(top, canvas.y, trace.clock)
    _legend(canvas, trace, blocks)
    text = str(trace)
    drawn = [block.operator for block in blocks]
    steps = steps_table(trace) + stepping(trace, drawn, areas, canvas)
    note = trace.note
    if last > end:
        moment = trace.wording.moment
        cut = f"what holds after {moment(end)}, to {moment(last)}, is cut off"
        note = "; ".join(filter(None, (note, cut)))
    return TracePicture(canvas.svg(), title, text, note, steps)


@dataclass(frozen=True)
class Block:
    """What is drawn of an operator: the rows that it gives, and the parts of its state."""

    operator: TracedOperator
    inputs: tuple[int, ...]
    """The numbers of the operators that it reads, of those that are drawn or said to be idle."""
    groups: tuple[Group, ...]


def _blocks(trace: Trace) -> Iterator[Block]:
    """Those of the operators that had any rows; a clip that cut nothing is left out."""
    lineage = Lineage(trace)
    below: dict[int, int] = {}  # what the clips that are left out read
    for operator in trace.operators:
        rows = list(_rows(trace, lineage, operator))
        held = list(_held(trace, lineage, operator))
        inputs = tuple(below.get(k, k) for k in operator.inputs)
        if operator.kind == "Clip" and not held and _same(lineage, operator):
            below[operator.number] = inputs[0]
        elif rows or held:
            parts = dict.fromkeys(bar.part for bar in held)
            groups = [Group(part, tuple(b for b in held if b.part == part)) for part in parts]
            yield Block(operator, inputs, (Group("gives", tuple(rows)), *groups))


def _reads(inputs: tuple[int, ...]) -> str:
    """Which operators one reads, in a few words.

    >>> _reads((2, 5)), _reads(()), _reads(tuple(range(20)))
    ('reads 2, 5', '', 'reads 20 operators')
    """
    if len(inputs) > _INPUTS:
        return f"reads {len(inputs)} operators"
    return f"reads {', '.join(map(str, inputs))}" if inputs else ""


def _same(lineage: Lineage, operator: TracedOperator) -> bool:
    below = lineage.rows[operator.inputs[0] - 1]
    return lineage.rows[operator.number - 1] == below


def _rows(trace: Trace, lineage: Lineage, operator: TracedOperator) -> Iterator[Bar]:
    """The rows that an operator gives."""
    given = trace.emitted_by(operator.number)
    for (step, element), (_, origins) in zip(given, lineage.rows[operator.number - 1], strict=True):
        later = step.instant > max(element.start, trace.first)
        given_at = f", given at {trace.wording.instant(step.instant)}" if later else ""
        yield Bar(
            operator.number,
            "gives",
            trace.wording.item(element.item),
            element.start,
            element.end,
            colours(origins),
            origins,
            f"{trace.wording.element(element)}{given_at}",
            step.instant,
        )


def _held(trace: Trace, lineage: Lineage, operator: TracedOperator) -> Iterator[Bar]:
    """The rows of an operator's state, each from when it came until it was let go."""
    since: dict[StateRow, list[int]] = {}
    found: list[Bar] = []

    def over(held: StateRow, begun: int, until: int, why: str) -> None:
        origins = lineage.of(operator.number, held)
        wording = trace.wording
        there = f"{wording.instant(begun)} to {wording.instant(until)}"
        tip = f"{held.part}: {wording.state_row(*held)}, there from {there}"
        text, shown = wording.item(held.element.item), colours(origins)
        ended = f"{tip}, {why}" if why else tip
        start = max(begun, trace.first)
        found.append(
            Bar(operator.number, held.part, text, start, until, shown, origins, ended, None)
        )

    for step in trace.steps:
        for before, after, why in step[operator.number].changes:
            begun = step.instant
            if before is not None:
                begun = since[before].pop(0)
                if after is None:
                    over(before, begun, step.instant, why)
            if after is not None:
                since.setdefault(after, []).append(begun)
    for held, begins in since.items():
        for begun in begins:
            over(held, begun, INFINITY, "")
    yield from sorted(found, key=lambda bar: bar.start)


def colours(origins: Origins) -> tuple[int, ...]:
    """The colours of a row: of the item or the two that it comes from, or that of all others.

    >>> colours(frozenset([1])), colours(frozenset([1, 9])), colours(frozenset())
    ((1,), (1, 2), (7,))
    """
    if not 0 < len(origins) <= 2:
        return (_COLOURS,)
    return tuple(k % _COLOURS for k in sorted(origins))


def _span(trace: Trace, blocks: Sequence[Block]) -> tuple[int, int, int]:
    """The time that is drawn: to the last end, but not very far beyond what came; and that end."""
    first = trace.first
    instants = [step.instant for step in trace.steps if step.instant < INFINITY]
    last = max([first, *instants])
    ends = [
        t
        for block in blocks
        for group in block.groups
        for bar in group.bars
        for t in (bar.end, bar.start)
        if t < INFINITY
    ]
    furthest = max([last + 1, *ends])
    if furthest - last > _BEYOND * (last - first) > 0:
        return first, last + _BEYOND * (last - first), furthest
    return first, furthest, furthest


def _draw(canvas: Canvas, block: Block) -> list[Group]:
    """A head, and the groups below it; gives those that became areas."""
    operator = block.operator
    canvas.line(8, canvas.y, canvas.width - 8, canvas.y, "grid")
    y = canvas.y + 16
    head = f"{operator.number} {operator.kind}"
    reads = _reads(block.inputs)
    if reads:
        canvas.text(canvas.width - 8, y, reads, "soft end")
    room = canvas.width - 40 - len(reads) * CELL - len(head) * _BOLD
    title = escape(fitted(operator.title, room))
    tip = titled("\n".join(filter(None, (operator.box.meaning, operator.title))))
    canvas.add(
        f'<text x="8" y="{y:g}">{tip}<tspan class="head">{escape(head)}</tspan>'
        f'<tspan class="code" dx="12">{title}</tspan></text>'
    )
    canvas.y += _HEAD
    areas = [group for group in block.groups if draw_group(canvas, group)]
    canvas.y += 4
    return areas


def _legend(canvas: Canvas, trace: Trace, blocks: Sequence[Block]) -> None:
    """What bars and colours say, and which operators had no rows."""
    drawn = {block.operator.number for block in blocks}
    idle = [o for o in trace.operators if o.number not in drawn and o.kind != "Clip"]
    canvas.y += 8
    y = canvas.y
    legend = (
        ("c0", "", "given, over its validity"),
        ("c0 held l0", "", "held in a state, as long as it was there"),
        ("c7", "", "of several items, or of none"),
    )
    x = 8.0
    for kind, tip, text in legend:
        canvas.add(
            f'<rect x="{x:g}" y="{y:g}" width="18" height="9" rx="2"{classed(kind)}>'
            f"{titled(tip)}</rect>"
        )
        canvas.text(x + 24, y + 9, text, "soft fine")
        x += 48 + len(text) * 6.2
    canvas.line(x, y + 5, x + 18, y + 5, "given l0")
    canvas.text(x + 24, y + 9, "until it was given", "soft fine")
    canvas.y += 16
    if idle:
        text = "without rows: " + ", ".join(f"{o.number} {o.kind}" for o in idle)
        canvas.text(8, canvas.y + 10, fitted(text, canvas.width - 16), "soft fine", text)
        canvas.y += 16
