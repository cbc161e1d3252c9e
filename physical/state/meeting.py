"""The sweep areas of two inputs, and how rows of both meet: once, whichever comes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.operator import Part
from streamsparql.physical.state.sweep_area import SweepArea

LEFT, RIGHT = "left area", "right area"
"""What the sweep areas of two inputs are called."""
Pair: TypeAlias = tuple[Batch, IntArray, Batch, IntArray]
"""Row `i[k]` of the first batch with row `j[k]` of the second, for each k."""


class Meeting:
    """The sweep areas of two inputs: finds each compatible pair that overlaps, once.

    `exact` and `sharing` are those of `SweepArea`.
    """

    def __init__(
        self,
        left: Sequence[str],
        right: Sequence[str],
        shared: Sequence[str],
        exact: bool = False,
        sharing: bool = False,
    ) -> None:
        self._areas = SweepArea(left, shared, exact), SweepArea(right, shared, exact)
        self._sharing = sharing

    def __len__(self) -> int:
        return sum(map(len, self._areas))

    def facts(self) -> str:
        """The shared variables, for people to read."""
        return f"on {', '.join(self._areas[0].shared) or 'nothing: each with each'}"

    def content(self) -> Iterator[Part]:
        """Both areas."""
        for name, area in zip((LEFT, RIGHT), self._areas, strict=True):
            yield name, area.rows()

    def held(self) -> Iterator[IntArray]:
        """The ids of both areas."""
        for area in self._areas:
            yield from area.held()

    def meet(self, left: Batch, right: Batch, watermarks: Sequence[int]) -> Iterator[Pair]:
        """The pairs of new rows with those that are there and with each other.

        A row stays only if it ends after the other side's watermark.
        """
        lefts, rights = self._areas
        if len(right):
            for pairs in lefts.query(right, self._sharing):
                yield pairs.rows, pairs.place, right, pairs.probe
            staying = right.end > watermarks[0]
            if staying.all():
                rights.insert(right)
            else:
                if len(left):
                    passing = rights.another()
                    passing.insert(right.where(~staying))
                    yield from self._probe(left, passing)
                rights.insert(right.where(staying))
        if len(left):
            yield from self._probe(left, rights)
            lefts.insert(left.where(left.end > watermarks[1]))

    def _probe(self, left: Batch, rights: SweepArea) -> Iterator[Pair]:
        for pairs in rights.query(left, self._sharing):
            yield left, pairs.probe, pairs.rows, pairs.place

    def purge(self, watermarks: Sequence[int]) -> None:
        """Drops what no later row of the other side can meet."""
        self._areas[0].purge(watermarks[1])
        self._areas[1].purge(watermarks[0])
