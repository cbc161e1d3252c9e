"""Windows: the validities of the elements of a stream (SEMANTICS.md section 3).

The validity in a time window depends on the stamp alone, so elements pass through. The validity in
an element window depends on the ranks of elements: the window retains an element until another one
pushes it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from streamsparql.algebra import window as w
from streamsparql.algebra.align import Align
from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.state.parts import NamedRows, RowBuffer, Stateful

INSIDE = "in the window"
"""The part with the elements inside of an element window."""


class TimeWindow(Operator):
    """A window on stamps: an element holds over the interval that the logical node computes.

    The sliding window is that of ESWC 2008, Definition 3, computed by ESWC 2008, Algorithm 2.

    >>> from streamsparql.algebra.shape import UNIT
    >>> from streamsparql.physical.operators.access import Always
    >>> window = TimeWindow(Always.of({}, 0), w.SlidingDeltaWindow(UNIT, 10, 5))
    >>> rows, _ = window.step([Batch({}, np.array([3]), np.array([4]))], [4], False)
    >>> rows.start.tolist(), rows.end.tolist()
    ([3], [10])
    """

    implements = (
        w.SlidingDeltaWindow,
        w.FixedWindow,
        w.SteppedWindow,
        w.NowWindow,
        w.UnboundedWindow,
    )

    def __init__(self, input: Operator, window: w.TimeWindow) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)
        self.window = window

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        if watermark != INFINITY:
            watermark, _ = self.window.interval(watermark)
        if not len(batch):
            return self.nothing(), watermark
        start, end = self.window.interval(batch.start)
        windowed = batch.over(start, end)
        return windowed.where(start < end) if self.window.misses_elements else windowed, watermark

    @override
    def facts(self) -> str:
        return window_facts(self.window)


class ElementWindow(Operator):
    """A window on ranks: an element holds from the stamp of one rank to that of another.

    Elements arrive in stream order, over all steps. The rank of an element is the number of those
    before it (ESWC 2008, Definition 4).
    """

    state = "the elements in the window"
    scalars = ("rank",)

    def __init__(self, input: Operator, window: w.ElementWindow) -> None:  # noqa: A002
        super().__init__(input.names, input)
        self.window = window
        self._waiting = RowBuffer(self.names)
        """The elements that were not pushed out, by rank, over `[stamp, emitted up to)`."""
        self.rank = 0
        """The rank, from 0, of the first of them, or of the next element."""

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        if not len(batch) and not cut and watermark != INFINITY:
            return self.nothing(), self._bound(watermark)
        batch = batch.expanded()
        rows = Batch.concat([self._waiting.batch, batch.over(batch.start, batch.start)], self.names)
        start, end = self._intervals(rows.start)
        since = np.maximum(start, rows.end)
        done = int(np.searchsorted(end, INFINITY, "left")) if watermark != INFINITY else len(rows)
        out = [rows.part(0, done).over(since[:done], end[:done])]
        self.rank += done
        rest = rows.part(done, len(rows))
        if cut and len(rest):
            until = np.minimum(end[done:], watermark)
            out.append(rest.over(since[done:], until))
            emitted_to = np.where(start[done:] < watermark, watermark, rest.end)
            rest = rest.over(rest.start, emitted_to)
        self._waiting.batch = rest
        output = Batch.concat(out, self.names)
        return output.where(output.start < output.end).ordered(), self._bound(watermark)

    def _intervals(self, stamps: IntArray) -> tuple[IntArray, IntArray]:
        """Return the starts and ends of the waiting elements; INFINITY where they are unknown."""
        padded = np.append(stamps, INFINITY)
        ranks = self.window.ranks(np.arange(self.rank, self.rank + len(stamps)))
        first, after = (padded[np.minimum(r - self.rank, len(stamps))] for r in ranks)
        return first, after

    def _bound(self, watermark: int) -> int:
        """Return a bound: no waiting element starts before it."""
        waiting = self._waiting.batch
        if watermark == INFINITY or not len(waiting):
            return watermark
        start, _ = self._intervals(waiting.start)
        return min(watermark, int(np.maximum(start, waiting.end)[0]))

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"elements": self._waiting}

    @override
    def content(self) -> Iterator[NamedRows]:
        waiting = self._waiting.batch
        start, end = self._intervals(waiting.start)
        inside = start < INFINITY
        rows = waiting.over(np.where(inside, start, waiting.start), end)
        yield INSIDE, rows.take(inside.nonzero()[0])
        yield "outside", rows.take((~inside).nonzero()[0])

    @override
    def facts(self) -> str:
        return window_facts(self.window)


class TupleWindow(ElementWindow):
    """The last `count` elements: the k-th holds until the (k + count)-th arrives.

    This is the sliding tuple window of ESWC 2008, Definition 5.

    >>> from streamsparql.algebra.shape import UNIT
    >>> from streamsparql.physical.operators.access import Always
    >>> window = TupleWindow(Always.of({}, 0), w.SlidingTupleWindow(UNIT, 1))
    >>> elements = Batch({}, np.array([3, 5]), np.array([4, 6]))
    >>> rows, watermark = window.step([elements], [9], False)
    >>> rows.start.tolist(), rows.end.tolist(), watermark
    ([3], [5], 5)
    """

    implements = (w.SlidingTupleWindow,)


class SteppedTupleWindow(ElementWindow):
    """The last `count` elements as of the last `step`-th one.

    >>> from streamsparql.algebra.shape import UNIT
    >>> from streamsparql.physical.operators.access import Always
    >>> window = SteppedTupleWindow(Always.of({}, 0), w.SteppedTupleWindow(UNIT, 2, step=2))
    >>> elements = Batch({}, np.array([1, 3, 5, 7]), np.array([2, 4, 6, 8]))
    >>> rows, _ = window.step([elements], [9], False)
    >>> rows.start.tolist(), rows.end.tolist()
    ([3, 3], [7, 7])
    """

    implements = (w.SteppedTupleWindow,)


class AlignToReports(Operator):
    """The rows with validities aligned to the grid of the reports (SEMANTICS.md section 6).

    All changes between two reports coincide. If columns are projected away later, many rows are
    equal: see `Consolidate`.

    >>> from streamsparql.algebra.shape import UNIT
    >>> from streamsparql.physical.operators.access import Always
    >>> align = AlignToReports(Always.of({}, 0), Align(UNIT, 10))
    >>> rows, _ = align.step([Batch({}, np.array([3, 4]), np.array([21, 9]))], [30], False)
    >>> rows.start.tolist(), rows.end.tolist()
    ([10], [30])
    """

    implements = (Align,)

    def __init__(self, input: Operator, align: Align) -> None:  # noqa: A002
        super().__init__(input.names, input)
        self.align = align

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        if watermark != INFINITY:
            watermark = self.align.grid_point(watermark)
        if not len(batch):
            return self.nothing(), watermark
        start, end = self.align.grid_point(batch.start), self.align.grid_point(batch.end)
        end = np.where(batch.end == INFINITY, INFINITY, end)  # the sum overflows
        return batch.over(start, end).where(start < end), watermark

    @override
    def facts(self) -> str:
        return f"every {self.align.period} ms"


def window_facts(window: w.Window) -> str:
    """Return the kind and the sizes of a window, as plans show them.

    >>> from streamsparql.algebra.shape import UNIT
    >>> window_facts(w.SlidingDeltaWindow(UNIT, 10, 5))
    'SlidingDeltaWindow width 10 slide 5'
    """
    sizes = (f"{name} {value}" for name, value in _sizes(window) if value)
    return f"{type(window).__name__} {' '.join(sizes)}".strip()


def _sizes(window: w.Window) -> Iterator[tuple[str, object]]:
    for name in ("width", "count", "slide", "step", "closed", "origin"):
        if name in window.field_names:
            yield name, getattr(window, name)
