"""Labels of lanes: text in columns that share a fixed width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsparql.look.jupyter.canvas import CELL
from streamsparql.text.widths import cells, in_picture

GAP = 2
"""The gap between columns, in cells."""
_MIN_WIDTH = 8  # in cells; shorter labels cannot be distinguished


def column_widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the width of each column in cells: its longest text, reduced to fit into `room`.

    The last columns are omitted if they do not fit at their minimum width.

    >>> column_widths([["?x", "?value"], ["<a>", "1"]], 40), column_widths([["?value"] * 9], 18)
    ([3, 6], [6, 6])
    >>> column_widths([["<http://example.org/one>", "<http://example.org/two>"]], 40)
    [18, 18]
    """
    needed = [max(cells(text, in_picture) for text in column) for column in zip(*rows, strict=True)]
    widths: list[int] = []
    for width in needed:
        minimum = sum(min(w, _MIN_WIDTH) for w in [*widths, width])
        if widths and minimum + GAP * (len(widths) + 1) > room:
            break
        widths.append(width)
    room -= GAP * len(widths)
    while sum(widths) > room and max(widths) > _MIN_WIDTH:
        widths[widths.index(max(widths))] -= 1
    return widths


def column_places(widths: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Yield the x coordinate and width of each column, in pixels."""
    x = 8.0
    for width in widths:
        yield x, width * CELL + 1
        x += (width + GAP) * CELL
