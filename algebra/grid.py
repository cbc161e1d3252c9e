"""Grids of instants: what windows jump on, and reports are made on.

The arithmetic is the same for one instant and for an array of instants, and is written once:
`Instants` stands for either.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar


class Arithmetic(Protocol):
    """What grids and windows need of instants: integers have it, and arrays of integers."""

    def __add__(self, other: Any, /) -> Any: ...

    def __sub__(self, other: Any, /) -> Any: ...

    def __mul__(self, other: Any, /) -> Any: ...

    def __floordiv__(self, other: Any, /) -> Any: ...


Instants = TypeVar("Instants", bound=Arithmetic)
"""An instant, or an array of them; ranks of elements are treated alike."""


class Grid(NamedTuple):
    """The instants `origin + k*step`, for all integers k.

    >>> Grid(5).floor(17), Grid(5).ceil(17), Grid(5, origin=2).floor(1), Grid(5).floor(17, later=4)
    (15, 20, -3, 20)
    """

    step: int
    origin: int = 0

    def floor(self, t: Instants, later: int = 0) -> Instants:
        """Return the last grid point that is not after an instant, or `later` than that."""
        step, origin = self
        shift = later if step == 1 else later - origin
        point: Instants = t + shift if shift else t  # each operation is a pass over an array
        if step > 1:
            point = point // step * step
            point = point + origin if origin else point
        return point

    def ceil(self, t: Instants, later: int = 0) -> Instants:
        """Return the first grid point that is not before an instant, or `later` than that."""
        return self.floor(t, later + self.step - 1)
