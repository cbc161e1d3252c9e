"""The labels of lanes: texts in columns, which share the room that there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsparql.explain.measure import cells, in_picture
from streamsparql.jupyter.canvas import CELL

GAP = 2
"""Cells between columns."""


def shared(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """The cells of each column: what its texts need, less where that is too much in all.

    >>> shared([["?x", "?value"], ["<a>", "1"]], 40), shared([["?x", "?value"]], 9)
    ([3, 6], [2, 3])
    """
    widths = [max(cells(text, in_picture) for text in column) for column in zip(*rows, strict=True)]
    room -= GAP * len(widths)
    while sum(widths) > room and max(widths) > 3:
        widths[widths.index(max(widths))] -= 1
    return widths


def columns(widths: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Where columns begin, and how wide they are, in pixels."""
    x = 8.0
    for width in widths:
        yield x, width * CELL + 1
        x += (width + GAP) * CELL
