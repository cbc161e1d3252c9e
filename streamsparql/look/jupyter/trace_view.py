"""The notebook display of a trace: the timelines of its operators, those that read streams first.

Solid bars are rows that an operator emitted, over their validity; pale bars are rows that its state
retained, from the instant at which they entered it until they were evicted. This shows how a row
enters a window, waits in a sweep area or heap, joins and expires. The colours of a row are those of
the items of its lineage. A slider lists the rows that hold and the state at an instant; without a
script, as in print, there are the timelines and a table of the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from streamsparql.display.picture import Picture
from streamsparql.look.explain.drawing.themes import themed
from streamsparql.look.jupyter.canvas import (
    CANVAS_CLASS,
    CELL,
    Canvas,
    class_attribute,
    fit_text,
    title_element,
)
from streamsparql.look.jupyter.lanes import BarGroup, RowBar, draw_group
from streamsparql.look.jupyter.stepping import slider_script
from streamsparql.look.jupyter.trace_tables import PAGE_STYLE, steps_table
from streamsparql.look.traces.lineage import Lineage, Origins
from streamsparql.overriding import override
from streamsparql.physical.operator import INFINITY

if TYPE_CHECKING:
    from streamsparql.look.traces.trace import StateRow, Trace, TracedOperator

_WIDTH = 960.0
_LEFT = 118.0
_HEAD = 22.0
_MAX_INPUTS = 12  # listed in the head of an operator
_COLOURS = 7  # the eighth is for rows with more than two items in their lineage, or none
_MAX_TAIL = 30  # time drawn after the last step, as a multiple of the time of the steps
_BOLD = 9.0  # the advance of the font of heads, rounded up

_RULES = """\
.retained{fill-opacity:.2}
.frame{fill:none;stroke-width:1}
.delay{stroke-dasharray:1 3;stroke-width:1.4;fill:none}
.area{fill-opacity:.45}
.cursor{stroke:#cf222e/#ff7b72;stroke-width:1.5;fill:none;visibility:hidden}
.faded{opacity:.2}
.fine{font-size:11px}"""
_STYLE = themed(CANVAS_CLASS, _RULES)


@dataclass(frozen=True)
class TracePicture(Picture):
    """The picture of a trace, with a slider to step through it."""

    steps: str = ""
    """The table of steps, and the script of the slider with its data."""

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
    """Draw the timelines of a trace.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {?s ?p ?o}")
    >>> picture = trace_picture(query.trace([("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 5)]))
    >>> "TimeWindow" in picture.svg, "<table" in picture.html
    (True, True)
    """
    blocks = list(_blocks(trace))
    start, end, last = _drawn_span(trace, blocks)
    title = f"rows and state of {len(trace.operators)} operators"
    canvas = Canvas(title, start, end, left=_LEFT, width=_WIDTH)
    canvas.add(f"<style>{_STYLE}</style>")
    canvas.times(trace.clock)
    top = canvas.y
    areas = [group for block in blocks for group in _draw_block(canvas, block)]
    canvas.add(f'<path class="cursor" d="M0 {top:g}V{canvas.y:g}"/>')
    canvas.ruler(top, canvas.y, trace.clock)
    _draw_legend(canvas, trace, blocks)
    text = str(trace)
    operators = [block.operator for block in blocks]
    steps = steps_table(trace) + slider_script(trace, operators, areas, canvas)
    note = trace.note
    if last > end:
        moment = trace.wording.moment
        cut = f"cut off at {moment(end)}; rows hold until {moment(last)}"
        note = "; ".join(filter(None, (note, cut)))
    return TracePicture(canvas.svg(), title, text, note, steps)


@dataclass(frozen=True)
class OperatorBlock:
    """The part of a picture for one operator: the rows that it emitted, and its state by part."""

    operator: TracedOperator
    inputs: tuple[int, ...]
    """The numbers of the operators that it reads, among those drawn or listed in the legend."""
    groups: tuple[BarGroup, ...]


def _blocks(trace: Trace) -> Iterator[OperatorBlock]:
    """Yield a block for each operator that had rows, except a clip that is an identity."""
    lineage = Lineage(trace)
    below: dict[int, int] = {}  # the input of each clip that is omitted
    for operator in trace.operators:
        emitted = list(_emitted_rows(trace, lineage, operator))
        retained = list(_retained_rows(trace, lineage, operator))
        inputs = tuple(below.get(k, k) for k in operator.inputs)
        if operator.kind == "Clip" and not retained and _is_identity(lineage, operator):
            below[operator.number] = inputs[0]
        elif emitted or retained:
            output = BarGroup("emits", tuple(emitted))
            parts = dict.fromkeys(bar.part for bar in retained)
            state = (BarGroup(p, tuple(b for b in retained if b.part == p)) for p in parts)
            yield OperatorBlock(operator, inputs, (output, *state))


def _reads(inputs: tuple[int, ...]) -> str:
    """Return a list of the operators that an operator reads, or their number if it is long.

    >>> _reads((2, 5)), _reads(()), _reads(tuple(range(20)))
    ('reads 2, 5', '', 'reads 20 operators')
    """
    if len(inputs) > _MAX_INPUTS:
        return f"reads {len(inputs)} operators"
    return f"reads {', '.join(map(str, inputs))}" if inputs else ""


def _is_identity(lineage: Lineage, operator: TracedOperator) -> bool:
    """Return whether an operator emitted exactly the rows of its input."""
    below = lineage.rows[operator.inputs[0] - 1]
    return lineage.rows[operator.number - 1] == below


def _emitted_rows(trace: Trace, lineage: Lineage, operator: TracedOperator) -> Iterator[RowBar]:
    """Yield a bar for each row that an operator emitted."""
    output = trace.emitted_by(operator.number)
    rows = lineage.rows[operator.number - 1]
    for (step, element), (_, origins) in zip(output, rows, strict=True):
        delayed = step.instant > max(element.start, trace.first)
        emitted_at = f", emitted at {trace.wording.instant(step.instant)}" if delayed else ""
        yield RowBar(
            operator.number,
            "emits",
            trace.wording.item(element.item),
            element.start,
            element.end,
            colours(origins),
            origins,
            f"{trace.wording.element(element)}{emitted_at}",
            step.instant,
        )


def _retained_rows(trace: Trace, lineage: Lineage, operator: TracedOperator) -> Iterator[RowBar]:
    """Yield a bar for each row of an operator's state, from its entry to its eviction."""
    entries: dict[StateRow, list[int]] = {}
    bars: list[RowBar] = []

    def add_bar(state_row: StateRow, entered: int, evicted: int, why: str) -> None:
        origins = lineage.of(operator.number, state_row)
        wording = trace.wording
        period = f"{wording.instant(entered)} to {wording.instant(evicted)}"
        tip = f"{state_row.part}: {wording.state_row(*state_row)}, retained from {period}"
        tip = f"{tip}, {why}" if why else tip
        text, shown = wording.item(state_row.element.item), colours(origins)
        start = max(entered, trace.first)
        bars.append(
            RowBar(operator.number, state_row.part, text, start, evicted, shown, origins, tip, None)
        )

    for step in trace.steps:
        for before, after, why in step[operator.number].changes:
            entered = step.instant
            if before is not None:
                entered = entries[before].pop(0)
                if after is None:
                    add_bar(before, entered, step.instant, why)
            if after is not None:
                entries.setdefault(after, []).append(entered)
    for state_row, instants in entries.items():
        for entered in instants:
            add_bar(state_row, entered, INFINITY, "")
    yield from sorted(bars, key=lambda bar: bar.start)


def colours(origins: Origins) -> tuple[int, ...]:
    """Return the colours of a row: those of its one or two items, else that of all others.

    >>> colours(frozenset([1])), colours(frozenset([1, 9])), colours(frozenset())
    ((1,), (1, 2), (7,))
    """
    if not 0 < len(origins) <= 2:
        return (_COLOURS,)
    return tuple(k % _COLOURS for k in sorted(origins))


def _drawn_span(trace: Trace, blocks: Sequence[OperatorBlock]) -> tuple[int, int, int]:
    """Return the start and end of the time that is drawn, and the last end of a row.

    Rows that hold far longer than the steps last would compress the steps, so time is cut.
    """
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
    if furthest - last > _MAX_TAIL * (last - first) > 0:
        return first, last + _MAX_TAIL * (last - first), furthest
    return first, furthest, furthest


def _draw_block(canvas: Canvas, block: OperatorBlock) -> list[BarGroup]:
    """Draw an operator's head and groups; return the groups that became area charts."""
    operator = block.operator
    canvas.line(8, canvas.y, canvas.width - 8, canvas.y, "grid")
    y = canvas.y + 16
    head = f"{operator.number} {operator.kind}"
    reads = _reads(block.inputs)
    if reads:
        canvas.text(canvas.width - 8, y, reads, "soft end")
    room = canvas.width - 40 - len(reads) * CELL - len(head) * _BOLD
    title = escape(fit_text(operator.title, room))
    tip = title_element("\n".join(filter(None, (operator.box.meaning, operator.title))))
    canvas.add(
        f'<text x="8" y="{y:g}">{tip}<tspan class="head">{escape(head)}</tspan>'
        f'<tspan class="code" dx="12">{title}</tspan></text>'
    )
    canvas.y += _HEAD
    areas = [group for group in block.groups if draw_group(canvas, group)]
    canvas.y += 4
    return areas


def _draw_legend(canvas: Canvas, trace: Trace, blocks: Sequence[OperatorBlock]) -> None:
    """Draw the meaning of bars and colours, and list the operators without rows."""
    drawn = {block.operator.number for block in blocks}
    idle = [o for o in trace.operators if o.number not in drawn and o.kind != "Clip"]
    canvas.y += 8
    y = canvas.y
    legend = (
        ("c0", "", "emitted, over its validity"),
        ("c0 retained l0", "", "retained in a state"),
        ("c7", "", "from several items, or from none"),
    )
    x = 8.0
    for kind, tip, text in legend:
        canvas.add(
            f'<rect x="{x:g}" y="{y:g}" width="18" height="9" rx="2"{class_attribute(kind)}>'
            f"{title_element(tip)}</rect>"
        )
        canvas.text(x + 24, y + 9, text, "soft fine")
        x += 48 + len(text) * 6.2
    canvas.line(x, y + 5, x + 18, y + 5, "delay l0")
    canvas.text(x + 24, y + 9, "until it was emitted", "soft fine")
    canvas.y += 16
    if idle:
        text = "without rows: " + ", ".join(f"{o.number} {o.kind}" for o in idle)
        canvas.text(8, canvas.y + 10, fit_text(text, canvas.width - 16), "soft fine", text)
        canvas.y += 16
