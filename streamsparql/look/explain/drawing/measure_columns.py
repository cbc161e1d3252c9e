"""The measurements of boxes as columns of text, beside the tree: as many as there is room for.

They stand at the right, so that the tree keeps its shape and numbers can be compared down the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from streamsparql.look.explain.boxes.box import Measures
from streamsparql.look.explain.drawing.palette import HEAT
from streamsparql.text.numbers import bar, count, percent, ratio, seconds

LEAST_TREE = 38
"""So many cells are the tree's, whatever else there is."""
_GOOD_TREE = 48  # and so many before there are columns that one can do without
_GAP = 2
_BAR = 8


class Column(NamedTuple):
    """A column: its head, its width, what it shows, and which columns go first for want of room."""

    head: str
    width: int
    cell: Callable[[Measures], str]
    gives_way: int = 0
    left: bool = False
    heated: bool = False


def _state(measures: Measures) -> str:
    return count(measures.state) if measures.state else ""


def _in(measures: Measures) -> str:
    return count(sum(measures.rows_in)) if measures.rows_in else ""


def _ratio(measures: Measures) -> str:
    return "" if measures.selectivity is None else ratio(measures.selectivity)


def _share(measures: Measures) -> str:
    return "" if measures.share is None else percent(round(measures.share, 3) or measures.share)


COLUMNS: tuple[Column, ...] = (
    Column("rows in", 7, _in),
    Column("out", 6, lambda m: "" if m.rows_out is None else count(m.rows_out)),
    Column("out/in", 7, _ratio),
    Column("state", 6, _state),
    Column("took", 8, lambda measures: seconds(measures.seconds), gives_way=1),
    Column("time", 6, _share, heated=True),
    Column("", _BAR, lambda m: bar(m.share or 0.0, _BAR), gives_way=2, left=True, heated=True),
)
"""What is shown of measurements, from the left."""


def fitting(width: int) -> list[Column]:
    """The columns that have room beside a tree.

    >>> [len(fitting(width)) for width in (80, 99, 120)]
    [5, 5, 7]
    """
    chosen = list(COLUMNS)
    while broad(chosen) > width - _GOOD_TREE and any(column.gives_way for column in chosen):
        chosen.remove(max(chosen, key=lambda column: column.gives_way))
    return chosen


def broad(columns: Sequence[Column]) -> int:
    """How many cells the columns take, with the gaps before them.

    >>> broad(COLUMNS)
    62
    """
    return sum(column.width + _GAP for column in columns)


def heads(columns: Sequence[Column]) -> str:
    """The line above the numbers."""
    return "".join(" " * _GAP + _set(column, column.head) for column in columns).rstrip()


def cells_of(
    measures: Measures, columns: Sequence[Column], paint: Callable[[str, int], str]
) -> str:
    """A box's numbers; `paint` colours what says how hot it is."""
    shown = ""
    for column in columns:
        text = column.cell(measures)
        cell = _set(column, text)
        if column.heated and measures.heat and text:
            cell = cell.replace(text, paint(text, HEAT[measures.heat].ansi))
        shown += " " * _GAP + cell
    return shown.rstrip()


def _set(column: Column, text: str) -> str:
    return text.ljust(column.width) if column.left else text.rjust(column.width)
