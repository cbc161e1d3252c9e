"""Grids of instants, on which windows jump and reports are emitted.

The arithmetic is the same for one instant and for an array of instants: `Instants` is either.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar


class Arithmetic(Protocol):
    """The arithmetic that grids and windows need: that of integers and of integer arrays."""

    def __add__(self, other: Any, /) -> Any: ...

    def __sub__(self, other: Any, /) -> Any: ...

    def __mul__(self, other: Any, /) -> Any: ...

    def __floordiv__(self, other: Any, /) -> Any: ...


Instants = TypeVar("Instants", bound=Arithmetic)
"""An instant or an array of instants; also a rank of an element or an array of ranks."""


class Grid(NamedTuple):
    """The instants `origin + k*step`, for all integers k.

    >>> Grid(5).floor(17), Grid(5).ceil(17), Grid(5, origin=2).floor(1), Grid(5).floor(17, later=4)
    (15, 20, -3, 20)
    """

    step: int
    origin: int = 0

    def floor(self, t: Instants, later: int = 0) -> Instants:
        """Return the last grid point at or before `t + later`."""
        step, origin = self
        shift = later if step == 1 else later - origin
        point: Instants = t + shift if shift else t  # an operation on an array is a pass over it
        if step > 1:
            point = point // step * step
            point = point + origin if origin else point
        return point

    def ceil(self, t: Instants, later: int = 0) -> Instants:
        """Return the first grid point at or after `t + later`."""
        return self.floor(t, later + self.step - 1)
