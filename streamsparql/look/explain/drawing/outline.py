"""The outlines of trees, which a layout pushes against each other.

Boxes differ in size and rows are not aligned, so each side of an outline is a list of stretches of
height, each with how far the tree reaches there. The deepest stretch comes first. Pushing two trees
together looks at the height that both have, and what is joined is the shorter outline to the
longer; so a side is never copied as a whole, and moving one is moving where it counts from.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

Stretch = tuple[float, float, float]
"""From one height to another, a tree reaches to this x."""


@dataclass
class Side:
    """One side of a tree's outline: gapless stretches, deepest first, counted from (dx, dy)."""

    stretches: list[Stretch]
    dx: float = 0.0
    dy: float = 0.0

    @property
    def bottom(self) -> float:
        """Where it ends."""
        return self.stretches[0][1] + self.dy

    def move(self, x: float, y: float) -> None:
        """Moves all of it."""
        self.dx += x
        self.dy += y

    def add(self, top: float, bottom: float, x: float) -> None:
        """A stretch above all others."""
        self.stretches.append((top - self.dy, bottom - self.dy, x - self.dx))

    def over(self, inner: Side) -> Side:
        """The outline of two trees: this one's, and where it has ended the inner tree's."""
        if self.bottom >= inner.bottom:
            return self
        dx, dy = self.dx - inner.dx, self.dy - inner.dy
        end = self.stretches[0][1] + dy
        while inner.stretches[-1][1] <= end:
            inner.stretches.pop()
        _, bottom, x = inner.stretches.pop()
        inner.stretches.append((end, bottom, x))
        inner.stretches += ((top + dy, bottom + dy, x + dx) for top, bottom, x in self.stretches)
        return inner


def distance(right: Side, left: Side) -> float:
    """How far to push a tree with the side `left` so that it touches one with the side `right`."""
    i, j = len(right.stretches) - 1, len(left.stretches) - 1
    found = -inf
    while i >= 0 and j >= 0:
        (_, end, x), (_, other_end, other_x) = right.stretches[i], left.stretches[j]
        found = max(found, x - other_x)
        end, other_end = end + right.dy, other_end + left.dy
        i -= end <= other_end
        j -= other_end <= end
    return found + right.dx - left.dx


@dataclass
class Outline:
    """Both sides of a tree, and the least and the greatest x."""

    left: Side
    right: Side
    low: float
    high: float

    @classmethod
    def of(cls, width: float, height: float) -> Outline:
        """The outline of a box."""
        sides = Side([(0.0, height, 0.0)]), Side([(0.0, height, width)])
        return cls(*sides, 0.0, width)

    @property
    def bottom(self) -> float:
        """Where the tree ends."""
        return self.left.bottom

    @property
    def breadth(self) -> float:
        """How much room the tree takes."""
        return self.high - self.low

    def move(self, x: float, y: float) -> None:
        """Moves both sides."""
        self.left.move(x, y)
        self.right.move(x, y)
        self.low += x
        self.high += x
