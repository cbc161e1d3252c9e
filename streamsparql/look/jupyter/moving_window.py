"""A window in motion: which stamps it holds, step by step.

A stepped window stands still between its steps: a line with two ends. One with a live edge holds
what came since its left edge: the part where its right edge moves is dashed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from streamsparql.algebra import window as w
from streamsparql.look.jupyter.canvas import SERIES, Canvas

STEPS = 40
"""A window with more steps than that is not drawn in motion."""
LEVELS = 12
_LEVEL = 7.0


class Position(NamedTuple):
    """A window stands over the stamps from `start` to `end`; from `live` on while time goes on."""

    start: int
    end: int
    live: int


def stands(window: w.Window, first: int, last: int) -> Iterator[Position]:
    """The places where a window stands while items of these stamps come.

    >>> from streamsparql.algebra.shape import UNIT
    >>> list(stands(w.SlidingDeltaWindow(UNIT, 10, 5), 0, 9))
    [Position(start=-5, end=5, live=0), Position(start=0, end=10, live=5)]
    >>> list(stands(w.SteppedWindow(UNIT, 10, 5, "right"), 0, 9))
    [Position(start=-10, end=0, live=0), Position(start=-5, end=5, live=5), \
Position(start=0, end=10, live=10)]
    """
    if window.grid is None or not isinstance(window, w.TimeWindow):
        return
    step, width = window.grid.step, window.length
    until = last + 1 if window.live_edge else window.grid.ceil(last) + 1
    for at in range(window.grid.floor(first), until, step):
        end = at + step if window.live_edge else at
        yield Position(end - width, end, at)


def positions(canvas: Canvas, window: w.Window, number: int, last: int) -> None:
    """Draws where a window stands, step by step, each below the one before."""
    seen = (p for p in stands(window, canvas.start, last) if p.end > canvas.start)
    found = list(islice(seen, STEPS + 1))
    if not 0 < len(found) <= STEPS:
        return
    kind, top = f"l{number % len(SERIES)}", canvas.y + 8
    levels = min(len(found), LEVELS)
    for k, (start, end, live) in enumerate(found):
        y = top + k % levels * _LEVEL
        left, middle, right = canvas.x(start), canvas.x(live), canvas.x(end)
        if left < middle:
            canvas.line(left, y, middle, y, f"{kind} thick")
        if middle < right:
            canvas.line(middle, y, right, y, f"{kind} wait")
        for x, t in ((left, start), (right, end)):
            if canvas.start <= t <= canvas.end:
                canvas.line(x, y - 3, x, y + 3, f"{kind} thick")
    canvas.text(8, top + 8, "where it stands", "soft")
    canvas.y = top + levels * _LEVEL + 4
