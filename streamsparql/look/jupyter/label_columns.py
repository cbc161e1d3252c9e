"""The labels of lanes: texts in columns, which share the room that there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsparql.look.jupyter.canvas import CELL
from streamsparql.text.widths import cells, in_picture

GAP = 2
"""Cells between columns."""
_LEAST = 8  # so much of a text can be told from another


def shared(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """The cells of each column: what its texts need, less where that is too much in all.

    Where there are too many columns for a look at each, the last ones are left out.

    >>> shared([["?x", "?value"], ["<a>", "1"]], 40), shared([["?value"] * 9], 18)
    ([3, 6], [6, 6])
    >>> shared([["<http://example.org/one>", "<http://example.org/two>"]], 40)
    [18, 18]
    """
    needed = [max(cells(text, in_picture) for text in column) for column in zip(*rows, strict=True)]
    widths: list[int] = []
    for width in needed:
        least = sum(min(w, _LEAST) for w in [*widths, width])
        if widths and least + GAP * (len(widths) + 1) > room:
            break
        widths.append(width)
    room -= GAP * len(widths)
    while sum(widths) > room and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths


def columns(widths: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Where columns begin, and how wide they are, in pixels."""
    x = 8.0
    for width in widths:
        yield x, width * CELL + 1
        x += (width + GAP) * CELL
