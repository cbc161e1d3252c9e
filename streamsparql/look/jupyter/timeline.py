"""The timeline of a result: a lane per solution, with a bar for each validity.

Equal rows share a lane; duplicates that overlap are drawn below each other. Lanes with the same
first value are neighbours and have the same colour. A bar without end is an arrow.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from streamsparql.algebra.streams import INFINITY
from streamsparql.display.picture import Picture
from streamsparql.errors import EngineError
from streamsparql.look.jupyter.canvas import CELL, SERIES, Canvas, fit_text
from streamsparql.look.jupyter.display_rows import DisplayRow, DisplayRows
from streamsparql.look.jupyter.label_columns import GAP, column_places, column_widths
from streamsparql.sinks.cells import DisplayCell
from streamsparql.text.instants import DisplayClock
from streamsparql.text.widths import cells, in_picture

_WIDTH = 880.0
MAX_LANES = 40
"""The number of lanes that are drawn by default."""

_LABELS = 46  # cells, of all label columns together
_LANE, _BAR = 20.0, 12.0
_THIN, _MAX_LEVELS = 7.0, 4  # of bars that share a lane
_MIN_GAP = 10.0  # pixels between the lines of reports
_TEXT_WIDTH = 60

DrawnReport = tuple[int, Sequence[tuple[DisplayCell, ...]]]
"""An instant, and the rows of its report."""


@dataclass
class SolutionLane:
    """A solution with its rows, in levels of rows that do not overlap."""

    cells: tuple[DisplayCell, ...]
    kind: str = "c0"
    levels: list[list[DisplayRow]] = field(default_factory=list)

    def add(self, row: DisplayRow) -> None:
        """Add a row to the first level where it does not overlap the row before it."""
        for level in self.levels:
            if level[-1].end <= row.start:
                level.append(row)
                return
        self.levels.append([row])

    @property
    def rows(self) -> Iterable[DisplayRow]:
        """The rows of all levels."""
        return (row for level in self.levels for row in level)

    @property
    def height(self) -> float:
        """The height in pixels, with the gap to the next lane."""
        count = min(len(self.levels), _MAX_LEVELS)
        return _LANE if count < 2 else _LANE - _BAR + count * (_THIN + 1)


def solution_lanes(
    rows: Iterable[DisplayRow], limit: int = MAX_LANES
) -> tuple[list[SolutionLane], int]:
    """Return the lanes of the first solutions, grouped by first value, and the number of solutions.

    >>> one, two, three = [(DisplayCell(x), DisplayCell(y)) for x, y in ("a1", "b2", "a3")]
    >>> rows = [DisplayRow(one, 0, 5), DisplayRow(two, 1, 3), DisplayRow(three, 2, 4)]
    >>> [lane.cells[1].text for lane in solution_lanes(rows)[0]], solution_lanes(rows, 2)[1]
    (['1', '3', '2'], 3)
    """
    lanes: dict[tuple[DisplayCell, ...], SolutionLane] = {}
    for row in rows:
        lanes.setdefault(row.cells, SolutionLane(row.cells)).add(row)
    groups: dict[DisplayCell, list[SolutionLane]] = {}
    for lane in list(lanes.values())[:limit]:
        groups.setdefault(lane.cells[0] if lane.cells else DisplayCell(""), []).append(lane)
    coloured = len(groups) > 1
    for k, group in enumerate(groups.values()):
        for lane in group:
            lane.kind = f"c{k % len(SERIES)}" if coloured else "c0"
    return [lane for group in groups.values() for lane in group], len(lanes)


def timeline_picture(
    shown: DisplayRows,
    limit: int = MAX_LANES,
    instants: Sequence[int] = (),
    reports: Sequence[DrawnReport] = (),
    timestamps: str | None = None,
) -> Picture:
    """Return the timeline of rows, with lines at `instants` and dots for the rows of `reports`."""
    if type(limit) is not int or limit < 1:
        raise EngineError(f"limit must be a positive number of lanes, not {limit!r}")
    lanes, count = solution_lanes(shown.rows, limit)
    start, end = timeline_span(shown, [row for lane in lanes for row in lane.rows], reports)
    # a slice, because a range may have too many instants to iterate over
    instants = instants[bisect_left(instants, start) : bisect_right(instants, end)]
    clock = DisplayClock.of(timestamps, start)
    labels = [[cell.short for cell in lane.cells] for lane in lanes]
    widths = column_widths([shown.heads, *labels], _LABELS)
    overlap = any(len(lane.levels) > 1 for lane in lanes)
    left = (sum(widths) + GAP * len(widths) + (6 if overlap else 0)) * CELL + 14
    canvas = Canvas("when each row of the result holds", start, end, left=left, width=_WIDTH)
    note = "; ".join(
        [
            *_omissions(shown, len(lanes), count, len(widths)),
            *_omitted_reports(len(instants), _too_dense(canvas, instants)),
        ]
    )
    top = _draw_heads(canvas, shown.heads, widths)
    before: tuple[DisplayCell, ...] = ()
    for lane in lanes:
        if shown.form == "ask":
            lane.kind = "c2" if lane.cells[0].text == "true" else "none l7"
        _draw_lane(canvas, lane, widths, before, clock, reports)
        before = lane.cells
    if not lanes:
        canvas.text(canvas.left + 6, canvas.y + 14, "no rows", "soft")
        canvas.y += _LANE
    _draw_verticals(canvas, shown, instants, top, clock)
    canvas.ruler(top, canvas.y, clock)
    _draw_legend(canvas, lanes, shown)
    return canvas.picture(timeline_text(lanes, start, end, clock, note), note)


def timeline_span(
    shown: DisplayRows, rows: Sequence[DisplayRow], reports: Sequence[DrawnReport] = ()
) -> tuple[int, int]:
    """Return the time to draw: the horizon, or where that is open, up to the last row or report."""
    start = shown.first() if shown.start is None else shown.start
    if shown.end is not None:
        return start, shown.end
    cells = {row.cells for row in rows}
    reported = (t for t, report in reversed(reports) if not cells.isdisjoint(report))
    ends = [t for row in rows for t in (row.start, row.end) if t < INFINITY]
    end = max([*ends, start + 1, next(reported, 0)])
    return start, end + (max(1, (end - start) // 10) if any(row.never_ends for row in rows) else 0)


def _omissions(shown: DisplayRows, drawn: int, count: int, columns: int) -> Iterator[str]:
    if count > drawn or not shown.whole:
        total = f"{count:,}" if shown.whole else f"at least {count:,}"
        yield f"the first {drawn} of {total} solutions"
    if columns < len(shown.heads):
        yield f"the first {columns} of {len(shown.heads)} variables; tooltips show all"


def _omitted_reports(instants: int, too_dense: bool) -> Iterator[str]:
    if too_dense:
        yield f"{instants:,} reports, too close together to be drawn"


def _too_dense(canvas: Canvas, instants: Sequence[int]) -> bool:
    """Return whether the lines of reports would be closer together than the minimum gap."""
    return len(instants) * _MIN_GAP > canvas.right - canvas.left


# -- labels


def _draw_heads(canvas: Canvas, heads: Sequence[str], widths: Sequence[int]) -> float:
    """Draw the column names; return the y coordinate of the first lane."""
    for head, (x, width) in zip(heads, column_places(widths), strict=False):
        canvas.text(x, canvas.y + 12, fit_text(head, width), "code soft")
    canvas.y += 20
    return canvas.y


def _draw_lane(
    canvas: Canvas,
    lane: SolutionLane,
    widths: Sequence[int],
    before: tuple[DisplayCell, ...],
    clock: DisplayClock,
    reports: Sequence[DrawnReport],
) -> None:
    """Draw a lane's label, its bars, and a dot for each report that contains its solution."""
    whole, y = "  ".join(cell.text for cell in lane.cells), canvas.y
    repeated = True
    for k, (cell, (x, width)) in enumerate(zip(lane.cells, column_places(widths), strict=False)):
        repeated = repeated and k < len(before) and before[k] == cell
        kind = "code soft" if repeated else "code"
        canvas.text(x, y + 13, fit_text(cell.short, width), kind, whole)
    if len(lane.levels) > 1:
        canvas.text(canvas.left - 8, y + 13, f"×{len(lane.levels)}", "soft end")
    thin = len(lane.levels) > 1
    for k, level in enumerate(lane.levels[:_MAX_LEVELS]):
        bar_y = y + (_LANE - _BAR) / 2 + (k * (_THIN + 1) if thin else 0)
        for row in visibly_distinct(canvas, level):
            tip = f"{whole}\n{validity_text(row, clock)}"
            canvas.bar(row.start, row.end, bar_y, lane.kind, _THIN if thin else _BAR, tip=tip)
    canvas.y += lane.height
    for instant, rows in reports:
        if lane.cells in rows and canvas.start <= instant <= canvas.end:
            tip = f"{whole}\nreported at {clock.moment(instant)}"
            canvas.dot(canvas.x(instant), (y + canvas.y) / 2, "report", 3, tip)


def visibly_distinct(canvas: Canvas, rows: Iterable[DisplayRow]) -> Iterator[DisplayRow]:
    """Yield the rows of a level, except those whose bars have the same pixels as the bar before."""
    before: tuple[int, int] | None = None
    for row in rows:
        place = round(canvas.x(row.start)), round(canvas.x(row.end))
        if place != before:
            yield row
        before = place


def validity_text(row: DisplayRow, clock: DisplayClock) -> str:
    """Return the validity of a row as text."""
    end = "…" if row.never_ends else clock.moment(row.end)
    return f"holds over [{clock.moment(row.start)}, {end})"


def _draw_verticals(
    canvas: Canvas, shown: DisplayRows, instants: Sequence[int], top: float, clock: DisplayClock
) -> None:
    """Draw a line at each report, behind the bars, and at both ends of the horizon."""

    def draw_report_lines() -> None:
        for t in instants:
            tip = f"report at {clock.moment(t)}"
            canvas.line(canvas.x(t), top - 3, canvas.x(t), canvas.y, "mark thin", tip)

    if not _too_dense(canvas, instants):
        canvas.behind(draw_report_lines)
    for t, side in ((shown.start, "start"), (shown.end, "end")):
        if t is not None:
            canvas.line(
                canvas.x(t), top - 6, canvas.x(t), canvas.y, "axis", f"{side} of the horizon"
            )


def _draw_legend(canvas: Canvas, lanes: Sequence[SolutionLane], shown: DisplayRows) -> None:
    """Draw what bars, colours, arrows, numbers and dots mean, as far as the picture has them."""
    kinds = {lane.kind: lane for lane in lanes}
    entries = []
    if shown.form == "ask":
        entries += [(kind, f"{lane.cells[0].text} holds") for kind, lane in kinds.items()]
    elif lanes:
        colours = f"; a colour per {shown.heads[0]}" if len(kinds) > 1 else ""
        entries.append((lanes[0].kind, f"the row holds{colours}"))
    if any(row.end > canvas.end for lane in lanes for row in lane.rows):
        entries.append(("arrow", "beyond the end"))
    if any(len(lane.levels) > 1 for lane in lanes):
        entries.append(("", "×n: equal rows at once"))
    if any('class="report"' in part for part in canvas.parts):
        entries.append(("report", "reported"))
    x, middle = 8.0, canvas.y + 10
    for kind, text in entries:
        if kind == "report":
            canvas.dot(x + 8, middle, kind, 3)
        elif kind == "arrow":
            canvas.text(x + 4, middle + 4, "▶", "soft")
        elif kind:
            canvas.box(x, middle - 5, 16, 10, kind)
        x += 22 if kind else 0
        canvas.text(x, middle + 4, text, "soft")
        x += cells(text, in_picture) * CELL + 20
    canvas.y += 20 * bool(entries)


# -- for terminals


def timeline_text(
    lanes: Sequence[SolutionLane], start: int, end: int, clock: DisplayClock, note: str = ""
) -> str:
    """Return the lanes as lines of text, for a terminal.

    >>> row = DisplayRow((DisplayCell("a"),), 5, INFINITY)
    >>> print(timeline_text([SolutionLane(row.cells, levels=[[row]])], 0, 10, DisplayClock("ms")))
    a                                ██████████████████████████████▶
       0 to 10 ms
    """
    names = ["  ".join(cell.short for cell in lane.cells) for lane in lanes]
    width = min(max(map(cells, names), default=0), _LABELS)
    lines = []
    for name, lane in zip(names, lanes, strict=True):
        line = [" "] * _TEXT_WIDTH
        for row in lane.rows:
            low = (row.start - start) * _TEXT_WIDTH // (end - start)
            high = -(-(min(row.end, end) - start) * _TEXT_WIDTH // (end - start))
            line[low:high] = "█" * (high - low)
        tail = "▶" if any(row.end > end for row in lane.rows) else ""
        label = fit_text(name, width, 1)
        pad = " " * (width - cells(label))
        lines.append(f"{label}{pad}  {''.join(line)}{tail}".rstrip())
    unit = "" if clock.style == "iso" else f" {clock.zone}"
    lines.append(f"{' ' * width}  {clock.moment(start)} to {clock.moment(end)}{unit}")
    return "\n".join([*lines, note] if note else lines)
