"""The outlines of trees, which a layout pushes against each other.

Boxes differ in size and rows are not aligned, so each side of an outline is a list of segments: a
range of heights, and the x that the tree reaches there. The deepest segment is the first. Pushing
two trees together reads only the heights that both have, and joining them appends the shorter
outline to the longer. So no side is copied as a whole, and moving a side moves its origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

Segment = tuple[float, float, float]
"""From one height (top) to another (bottom), a tree reaches to this x."""


@dataclass
class Side:
    """One side of an outline: gapless segments, deepest first, relative to the origin (dx, dy)."""

    segments: list[Segment]
    dx: float = 0.0
    dy: float = 0.0

    @property
    def bottom(self) -> float:
        """The y at which the side ends."""
        return self.segments[0][1] + self.dy

    def move(self, x: float, y: float) -> None:
        """Move the side, in constant time."""
        self.dx += x
        self.dy += y

    def add(self, top: float, bottom: float, x: float) -> None:
        """Add a segment above all others."""
        self.segments.append((top - self.dy, bottom - self.dy, x - self.dx))

    def over(self, inner: Side) -> Side:
        """Return the side of two trees: this one, continued by the inner one below its bottom."""
        if self.bottom >= inner.bottom:
            return self
        dx, dy = self.dx - inner.dx, self.dy - inner.dy
        end = self.segments[0][1] + dy
        while inner.segments[-1][1] <= end:
            inner.segments.pop()
        _, bottom, x = inner.segments.pop()
        inner.segments.append((end, bottom, x))
        inner.segments += ((top + dy, bottom + dy, x + dx) for top, bottom, x in self.segments)
        return inner


def distance(right: Side, left: Side) -> float:
    """Return how far to move a tree with the side `left` so that it touches the side `right`."""
    i, j = len(right.segments) - 1, len(left.segments) - 1
    overlap = -inf
    while i >= 0 and j >= 0:
        (_, end, x), (_, other_end, other_x) = right.segments[i], left.segments[j]
        overlap = max(overlap, x - other_x)
        end, other_end = end + right.dy, other_end + left.dy
        i -= end <= other_end
        j -= other_end <= end
    return overlap + right.dx - left.dx


@dataclass
class Outline:
    """Both sides of a tree, and its least and greatest x."""

    left: Side
    right: Side
    low: float
    high: float

    @classmethod
    def of(cls, width: float, height: float) -> Outline:
        """Return the outline of a box."""
        sides = Side([(0.0, height, 0.0)]), Side([(0.0, height, width)])
        return cls(*sides, 0.0, width)

    @property
    def bottom(self) -> float:
        """The y at which the tree ends."""
        return self.left.bottom

    @property
    def width(self) -> float:
        """The width of the tree."""
        return self.high - self.low

    def move(self, x: float, y: float) -> None:
        """Move both sides."""
        self.left.move(x, y)
        self.right.move(x, y)
        self.low += x
        self.high += x
