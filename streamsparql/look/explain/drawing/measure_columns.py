"""The measurements of boxes as columns of text, to the right of the tree.

So the tree keeps its shape, and numbers can be compared down the page. A narrow terminal shows
fewer columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from streamsparql.look.explain.boxes.box import Measures
from streamsparql.look.explain.drawing.palette import HEAT
from streamsparql.text.numbers import bar, count, percent, ratio, seconds

MIN_TREE_WIDTH = 38
"""The least width of the tree, in cells."""
_TREE_WIDTH = 48  # in cells; optional columns are shown only beyond it
_GAP = 2
_BAR_WIDTH = 8


class MeasureColumn(NamedTuple):
    """A column: its head, its width in cells, and the text of its cells.

    `optional` columns are left out where the terminal is narrow, the highest number first; 0 is for
    columns that are always shown. The heat of the measurements colours the `heated` ones.
    """

    head: str
    width: int
    cell: Callable[[Measures], str]
    optional: int = 0
    left: bool = False
    heated: bool = False


def _state(measures: Measures) -> str:
    return count(measures.state) if measures.state else ""


def _rows_in(measures: Measures) -> str:
    return count(sum(measures.rows_in)) if measures.rows_in else ""


def _took(measures: Measures) -> str:
    return "" if measures.seconds is None else seconds(measures.seconds)


def _ratio(measures: Measures) -> str:
    return "" if measures.selectivity is None else ratio(measures.selectivity)


def _share(measures: Measures) -> str:
    return "" if measures.share is None else percent(round(measures.share, 3) or measures.share)


MEASURE_COLUMNS: tuple[MeasureColumn, ...] = (
    MeasureColumn("rows in", 7, _rows_in),
    MeasureColumn("out", 6, lambda m: "" if m.rows_out is None else count(m.rows_out)),
    MeasureColumn("out/in", 7, _ratio),
    MeasureColumn("state", 6, _state),
    MeasureColumn("took", 8, _took, optional=1),
    MeasureColumn("time", 6, _share, heated=True),
    MeasureColumn(
        "",
        _BAR_WIDTH,
        lambda m: bar(m.share or 0.0, _BAR_WIDTH),
        optional=2,
        left=True,
        heated=True,
    ),
)
"""All columns, from left to right."""


def fitting_columns(width: int) -> list[MeasureColumn]:
    """Return the columns that fit next to a tree on a terminal of this width.

    >>> [len(fitting_columns(width)) for width in (80, 99, 120)]
    [5, 5, 7]
    """
    chosen = list(MEASURE_COLUMNS)
    while total_width(chosen) > width - _TREE_WIDTH and any(c.optional for c in chosen):
        chosen.remove(max(chosen, key=lambda column: column.optional))
    return chosen


def total_width(columns: Sequence[MeasureColumn]) -> int:
    """Return the width of columns in cells, with the gap before each.

    >>> total_width(MEASURE_COLUMNS)
    62
    """
    return sum(column.width + _GAP for column in columns)


def header(columns: Sequence[MeasureColumn]) -> str:
    """Return the line above the numbers."""
    return "".join(" " * _GAP + _aligned(column, column.head) for column in columns).rstrip()


def measure_cells(
    measures: Measures, columns: Sequence[MeasureColumn], paint: Callable[[str, int], str]
) -> str:
    """Return the cells of a box, joined; `paint` colours text with an ANSI code."""
    line = ""
    for column in columns:
        text = column.cell(measures)
        cell = _aligned(column, text)
        if column.heated and measures.heat and text:
            cell = cell.replace(text, paint(text, HEAT[measures.heat].ansi))
        line += " " * _GAP + cell
    return line.rstrip()


def _aligned(column: MeasureColumn, text: str) -> str:
    return text.ljust(column.width) if column.left else text.rjust(column.width)
