"""The sweep areas of two inputs, which find each matching pair of rows once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.state.parts import Stateful
from streamsparql.physical.state.sweep_area import SweepArea

LEFT_AREA, RIGHT_AREA = "left area", "right area"
"""The names of these parts of a state."""

RowPairs: TypeAlias = tuple[Batch, IntArray, Batch, IntArray]
"""Row `i[k]` of the first batch with row `j[k]` of the second, for each k."""


class PairedAreas(Stateful):
    """Sweep areas of a left and a right input, which yield each compatible pair that overlaps once.

    A row is retained only while a later row of the other side can match it; nothing is retained
    once the other side has ended (a static graph). `exact` and `sharing` are those of `SweepArea`.
    """

    def __init__(
        self,
        left: Sequence[str],
        right: Sequence[str],
        shared: Sequence[str],
        exact: bool = False,
        sharing: bool = False,
    ) -> None:
        self._left, self._right = SweepArea(left, shared, exact), SweepArea(right, shared, exact)
        self._sharing = sharing

    @override
    def parts(self) -> Mapping[str, SweepArea]:
        return {LEFT_AREA: self._left, RIGHT_AREA: self._right}

    @property
    def shared(self) -> tuple[str, ...]:
        """The variables that decide whether rows are compatible."""
        return self._left.shared

    def meet(self, left: Batch, right: Batch, watermarks: Sequence[int]) -> Iterator[RowPairs]:
        """Yield the pairs of new rows with retained rows and with each other.

        A row is retained only if it ends after the other side's watermark. New rows of one side are
        inserted before the others probe them: of a side whose rows are all retained, if there is.
        """
        left_retained, right_retained = left.end > watermarks[1], right.end > watermarks[0]
        if left_retained.all() and not right_retained.all():
            yield from self._probe_right(left, self._right)
            self._left.insert(left)
            yield from self._probe_left(right)
            self._right.insert(right.where(right_retained))
            return
        yield from self._probe_left(right)
        if len(left) and not right_retained.all():
            passing = self._right.another()
            passing.insert(right.where(~right_retained))
            yield from self._probe_right(left, passing)
        self._right.insert(right.where(right_retained))
        yield from self._probe_right(left, self._right)
        self._left.insert(left.where(left_retained))

    def retain(self, left: Batch, right: Batch, watermarks: Sequence[int]) -> None:
        """Retain rows that have met each other before."""
        self._left.insert(left.where(left.end > watermarks[1]))
        self._right.insert(right.where(right.end > watermarks[0]))

    def _probe_left(self, right: Batch) -> Iterator[RowPairs]:
        for pairs in self._left.query(right, self._sharing):
            yield pairs.rows, pairs.place, right, pairs.probe

    def _probe_right(self, left: Batch, rights: SweepArea) -> Iterator[RowPairs]:
        for pairs in rights.query(left, self._sharing):
            yield left, pairs.probe, pairs.rows, pairs.place

    def purge(self, watermarks: Sequence[int]) -> None:
        """Evict the rows that no later row of the other side can match."""
        self._left.purge(watermarks[1])
        self._right.purge(watermarks[0])
