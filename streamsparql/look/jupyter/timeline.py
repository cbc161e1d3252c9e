"""The timeline of a result: a lane per solution, with bars over the times at which it holds.

Equal rows share a lane, one bar above the other where the solution holds more than once. Lanes with
the same first value are neighbours and have one colour. Bars of rows that never end are arrows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from streamsparql.algebra.streams import INFINITY
from streamsparql.display.picture import Picture
from streamsparql.errors import EngineError
from streamsparql.look.jupyter.canvas import CELL, SERIES, Canvas, fitted
from streamsparql.look.jupyter.label_columns import GAP, columns, shared
from streamsparql.look.jupyter.solution_texts import Cell, Solution, Solutions
from streamsparql.text.instants import DisplayClock
from streamsparql.text.widths import cells

WIDTH = 880.0
LIMIT = 40
"""So many lanes are drawn, if it is not asked for more."""

_LABELS = 46  # the cells of the labels, all columns together
_LANE, _BAR = 20.0, 12.0
_THIN, _LEVELS = 7.0, 4  # bars above each other in a lane
_CLOSE = 10.0  # pixels between reports
_TEXT = 60

Report = tuple[int, Sequence[tuple[Cell, ...]]]
"""An instant, and the rows of its report."""


@dataclass
class Lane:
    """A solution, and the rows that are equal to it, level by level."""

    cells: tuple[Cell, ...]
    kind: str = "c0"
    levels: list[list[Solution]] = field(default_factory=list)

    def take(self, row: Solution) -> None:
        """A row goes where it does not overlap those before it."""
        for level in self.levels:
            if level[-1].end <= row.start:
                level.append(row)
                return
        self.levels.append([row])

    @property
    def rows(self) -> Iterable[Solution]:
        """All rows of the lane."""
        return (row for level in self.levels for row in level)

    @property
    def height(self) -> float:
        """With what is between it and the next."""
        count = min(len(self.levels), _LEVELS)
        return _LANE if count < 2 else _LANE - _BAR + count * (_THIN + 1)


def lanes(rows: Iterable[Solution], limit: int = LIMIT) -> tuple[list[Lane], int]:
    """The lanes of the first solutions, those with the same first value together; and how many
    solutions there are.

    >>> one, two, three = [(Cell(x), Cell(y)) for x, y in ("a1", "b2", "a3")]
    >>> rows = [Solution(one, 0, 5), Solution(two, 1, 3), Solution(three, 2, 4)]
    >>> [lane.cells[1].text for lane in lanes(rows)[0]], lanes(rows, 2)[1]
    (['1', '3', '2'], 3)
    """
    found: dict[tuple[Cell, ...], Lane] = {}
    for row in rows:
        found.setdefault(row.cells, Lane(row.cells)).take(row)
    groups: dict[Cell, list[Lane]] = {}
    for lane in list(found.values())[:limit]:
        groups.setdefault(lane.cells[0] if lane.cells else Cell(""), []).append(lane)
    apart = len(groups) > 1
    for k, group in enumerate(groups.values()):
        for lane in group:
            lane.kind = f"c{k % len(SERIES)}" if apart else "c0"
    return [lane for group in groups.values() for lane in group], len(found)


def timeline(
    shown: Solutions,
    limit: int = LIMIT,
    instants: Sequence[int] = (),
    reports: Sequence[Report] = (),
    timestamps: str | None = None,
) -> Picture:
    """The timeline of rows. Lines stand at `instants`, dots where `reports` have a row."""
    if type(limit) is not int or limit < 1:
        raise EngineError(f"a timeline has so many lanes: a number from 1 on, not {limit!r}")
    drawn, count = lanes(shown.rows, limit)
    start, end = span(shown, [row for lane in drawn for row in lane.rows], reports)
    instants = instants[bisect_left(instants, start) : bisect_right(instants, end)]  # may be many
    clock = DisplayClock.of(timestamps, start)
    widths = shared([shown.heads, *([c.short for c in lane.cells] for lane in drawn)], _LABELS)
    many = max((len(lane.levels) for lane in drawn), default=1)
    times = 6 if many > 1 else 0
    left = (sum(widths) + GAP * len(widths) + times) * CELL + 14
    canvas = Canvas("when each row of the result holds", start, end, left=left, width=WIDTH)
    note = "; ".join(
        [
            *_left_out(shown, len(drawn), count, len(widths)),
            *_wall(len(instants), _close(canvas, instants)),
        ]
    )
    top = _heads(canvas, shown.heads, widths)
    before: tuple[Cell, ...] = ()
    for lane in drawn:
        if shown.form == "ask":
            lane.kind = "c2" if lane.cells[0].text == "true" else "none l7"
        _lane(canvas, lane, widths, before, clock, reports)
        before = lane.cells
    if not drawn:
        canvas.text(canvas.left + 6, canvas.y + 14, "no rows", "soft")
        canvas.y += _LANE
    _verticals(canvas, shown, instants, top, clock)
    canvas.ruler(top, canvas.y, clock)
    return canvas.picture(as_text(drawn, start, end, clock, note), note)


def span(
    shown: Solutions, rows: Sequence[Solution], reports: Sequence[Report] = ()
) -> tuple[int, int]:
    """The part of time that is drawn: the horizon, or that of these rows and of their reports."""
    start = shown.first() if shown.start is None else shown.start
    if shown.end is not None:
        return start, shown.end
    cells = {row.cells for row in rows}
    told = (instant for instant, some in reversed(reports) if not cells.isdisjoint(some))
    ends = [t for row in rows for t in (row.start, row.end) if t < INFINITY]
    end = max([*ends, start + 1, next(told, 0)])
    return start, end + (max(1, (end - start) // 10) if any(row.lasts for row in rows) else 0)


def _left_out(shown: Solutions, drawn: int, count: int, columns: int) -> Iterator[str]:
    if count > drawn or not shown.whole:
        of = f"{count:,}" if shown.whole else f"at least {count:,}"
        yield f"the first {drawn} of {of} solutions"
    if columns < len(shown.heads):
        yield f"the first {columns} of {len(shown.heads)} variables; the pointer shows all"


def _wall(instants: int, close: bool) -> Iterator[str]:
    if close:
        yield f"{instants:,} reports, too close to each other to be drawn"


def _close(canvas: Canvas, instants: Sequence[int]) -> bool:
    """Whether lines at all instants would be a wall."""
    return len(instants) * _CLOSE > canvas.right - canvas.left


# -- labels


def _heads(canvas: Canvas, heads: Sequence[str], widths: Sequence[int]) -> float:
    """The names of the columns; gives where lanes begin."""
    for head, (x, width) in zip(heads, columns(widths), strict=False):
        canvas.text(x, canvas.y + 12, fitted(head, width), "code soft")
    canvas.y += 20
    return canvas.y


def _lane(
    canvas: Canvas,
    lane: Lane,
    widths: Sequence[int],
    before: tuple[Cell, ...],
    clock: DisplayClock,
    reports: Sequence[Report],
) -> None:
    """A lane: its label, its bars, and dots where a report has it."""
    whole, y = "  ".join(cell.text for cell in lane.cells), canvas.y
    again = True
    for k, (cell, (x, width)) in enumerate(zip(lane.cells, columns(widths), strict=False)):
        again = again and k < len(before) and before[k] == cell
        kind = "code soft" if again else "code"
        canvas.text(x, y + 13, fitted(cell.short, width), kind, whole)
    if len(lane.levels) > 1:
        canvas.text(canvas.left - 8, y + 13, f"×{len(lane.levels)}", "soft end")
    thin = len(lane.levels) > 1
    for k, level in enumerate(lane.levels[:_LEVELS]):
        at = y + (_LANE - _BAR) / 2 + (k * (_THIN + 1) if thin else 0)
        for row in apart(canvas, level):
            tip = f"{whole}\n{holds(row, clock)}"
            canvas.bar(row.start, row.end, at, lane.kind, _THIN if thin else _BAR, tip=tip)
    canvas.y += lane.height
    for instant, rows in reports:
        if lane.cells in rows and canvas.start <= instant <= canvas.end:
            tip = f"{whole}\nreported at {clock.moment(instant)}"
            canvas.dot(canvas.x(instant), (y + canvas.y) / 2, "report", 3, tip)


def apart(canvas: Canvas, rows: Iterable[Solution]) -> Iterator[Solution]:
    """The rows of a level, less those whose bars nobody could tell from the one before."""
    before: tuple[int, int] | None = None
    for row in rows:
        place = round(canvas.x(row.start)), round(canvas.x(row.end))
        if place != before:
            yield row
        before = place


def holds(row: Solution, clock: DisplayClock) -> str:
    """When a row holds, in words."""
    if row.lasts:
        return f"from {clock.moment(row.start)} on"
    return f"from {clock.moment(row.start)} until before {clock.moment(row.end)}"


def _verticals(
    canvas: Canvas, shown: Solutions, instants: Sequence[int], top: float, clock: DisplayClock
) -> None:
    """Lines at reports, behind the bars, and at the ends of the horizon."""

    def draw() -> None:
        for t in instants:
            tip = f"report at {clock.moment(t)}"
            canvas.line(canvas.x(t), top - 3, canvas.x(t), canvas.y, "mark thin", tip)

    if not _close(canvas, instants):
        canvas.behind(draw)
    for t, tip in ((shown.start, "start"), (shown.end, "end")):
        if t is not None:
            canvas.line(canvas.x(t), top - 6, canvas.x(t), canvas.y, "axis", f"the horizon's {tip}")


# -- for terminals


def as_text(
    drawn: Sequence[Lane], start: int, end: int, clock: DisplayClock, note: str = ""
) -> str:
    """The lanes as lines of characters.

    >>> row = Solution((Cell("a"),), 5, INFINITY)
    >>> print(as_text([Lane(row.cells, levels=[[row]])], 0, 10, DisplayClock("ms")))
    a                                ██████████████████████████████▶
       0 to 10 ms
    """
    names = ["  ".join(cell.text for cell in lane.cells) for lane in drawn]
    width = min(max(map(cells, names), default=0), _LABELS)
    lines = []
    for name, lane in zip(names, drawn, strict=True):
        line = [" "] * _TEXT
        for row in lane.rows:
            low = (row.start - start) * _TEXT // (end - start)
            high = -(-(min(row.end, end) - start) * _TEXT // (end - start))
            line[low:high] = "█" * (high - low)
        tail = "▶" if any(row.end > end for row in lane.rows) else ""
        cut = fitted(name, width, 1)
        pad = " " * (width - cells(cut))
        lines.append(f"{cut}{pad}  {''.join(line)}{tail}".rstrip())
    unit = "" if clock.style == "iso" else f" {clock.zone}"
    lines.append(f"{' ' * width}  {clock.moment(start)} to {clock.moment(end)}{unit}")
    return "\n".join([*lines, note] if note else lines)
