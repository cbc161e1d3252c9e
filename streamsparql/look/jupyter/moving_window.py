"""A moving window: the timestamps that it contains, step by step.

A stepped window is fixed between its steps and drawn as a line with two ends. A window with a live
edge contains the items since its left edge; the range over which its right edge moves is dashed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from streamsparql.algebra import window as w
from streamsparql.look.jupyter.canvas import SERIES, Canvas

MAX_POSITIONS = 40
"""The number of positions beyond which a window is not drawn step by step."""
_LEVELS = 12
_LEVEL_HEIGHT = 7.0


class WindowPosition(NamedTuple):
    """A window over the timestamps `[start, end)`; its live edge moves from `live` to `end`."""

    start: int
    end: int
    live: int


def window_positions(window: w.Window, first: int, last: int) -> Iterator[WindowPosition]:
    """Yield the positions of a window while items stamped from `first` to `last` arrive.

    A window that counts elements, or that has no grid, has no positions.

    >>> from streamsparql.algebra.shape import UNIT
    >>> list(window_positions(w.SlidingDeltaWindow(UNIT, 10, 5), 0, 9))
    [WindowPosition(start=-5, end=5, live=0), WindowPosition(start=0, end=10, live=5)]
    >>> stepped = w.SteppedWindow(UNIT, 10, 5, "right")
    >>> [(start, end) for start, end, _ in window_positions(stepped, 0, 9)]
    [(-10, 0), (-5, 5), (0, 10)]
    """
    if window.grid is None or not isinstance(window, w.TimeWindow):
        return
    step, width = window.grid.step, window.length
    until = last + 1 if window.live_edge else window.grid.ceil(last) + 1
    for at in range(window.grid.floor(first), until, step):
        end = at + step if window.live_edge else at
        yield WindowPosition(end - width, end, at)


def draw_positions(canvas: Canvas, window: w.Window, number: int, last: int) -> None:
    """Draw the positions of a window, each below the one before, in the colour of its number."""
    every = window_positions(window, canvas.start, last)
    visible = (position for position in every if position.end > canvas.start)
    positions = list(islice(visible, MAX_POSITIONS + 1))
    if not 0 < len(positions) <= MAX_POSITIONS:
        return
    kind, top = f"l{number % len(SERIES)}", canvas.y + 8
    levels = min(len(positions), _LEVELS)
    for k, (start, end, live) in enumerate(positions):
        y = top + k % levels * _LEVEL_HEIGHT
        left, middle, right = canvas.x(start), canvas.x(live), canvas.x(end)
        if left < middle:
            canvas.line(left, y, middle, y, f"{kind} thick")
        if middle < right:
            canvas.line(middle, y, right, y, f"{kind} wait")
        for x, t in ((left, start), (right, end)):
            if canvas.start <= t <= canvas.end:
                canvas.line(x, y - 3, x, y + 3, f"{kind} thick")
    canvas.text(8, top + 8, "window positions", "soft")
    canvas.y = top + levels * _LEVEL_HEIGHT + 4
