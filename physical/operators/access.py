"""The sources of a plan: streams, static graphs and tables; and the time of its streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from streamsparql.algebra import access, match, shape
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.operator import Operator, StepResult


class Stream(Operator):
    """The base of the operators that emit the items of a stream."""

    scalars: ClassVar[tuple[str, ...]] = ("first", "last")

    def __init__(self, names: Sequence[str], *inputs: Operator) -> None:
        super().__init__(names, *inputs)
        self.first, self.last = INFINITY, -1
        """The least and the greatest timestamp of all items, also of those that are not emitted."""


class StreamAccess(Stream):
    """The items of a stream, each over `[t, t+1)`, which the pipeline offers before each step.

    Its output is a physical stream (ESWC 2008, Definition 1).

    >>> stream = StreamAccess("s")
    >>> item = np.array([7])
    >>> stream.offer(Batch(dict.fromkeys(TRIPLE, item), np.array([3]), np.array([4])), 5)
    >>> stream.step([], [], False)
    (Batch(1 rows of .s, .p, .o), 5)
    """

    implements: ClassVar[tuple[type[Plan], ...]] = (access.AccessStream,)

    def __init__(self, stream: str, stamp: str | None = None) -> None:
        super().__init__((*TRIPLE, stamp) if stamp else TRIPLE)
        self.stream = stream
        self.stamp = stamp
        """The hidden column of the stamps of items, or of the starts of events, if it is used."""
        self._offered: StepResult | None = None

    def offer(self, batch: Batch, watermark: int) -> None:
        """Set the output of the next step."""
        self._offered = batch, watermark

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        offered, self._offered = self._offered, None
        assert offered is not None, "each step needs an offer"
        return offered

    @override
    def facts(self) -> str:
        return f"<{self.stream}>"


class Clock(Operator):
    """The time of several streams: their least watermark, and the span of their items.

    It ignores the items. Operators that depend on time rather than on rows read it.

    >>> clock = Clock(stream := StreamAccess("s"))
    >>> stream.first = stream.last = 3
    >>> clock.step([stream.nothing()], [2], False)[1], clock.begin
    (2, None)
    >>> clock.step([stream.nothing()], [5], False)[1], clock.begin
    (5, 3)
    """

    family = "align"
    scalars = ("last", "since", "_first", "_now")

    def __init__(self, *streams: Operator) -> None:
        super().__init__((), *streams)
        self.since = [0] * len(streams)
        """The timestamp of each stream from which on its items count."""
        self._first, self.last = INFINITY, -1
        """The least and the greatest timestamp of all items that count."""
        self._now = -1

    @property
    def begin(self) -> int | None:
        """The first timestamp, 0 without items; None while an earlier item may arrive."""
        if self._first > self._now:
            return None
        return 0 if self._first == INFINITY else self._first

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        for stream, since in zip(self.inputs, self.since, strict=True):
            if isinstance(stream, Stream) and stream.last >= since:
                self._first = min(self._first, max(stream.first, since))
                self.last = max(self.last, stream.last)
        self._now = min(watermarks, default=INFINITY)
        return self.nothing(), self._now


class Always(Operator):
    """Rows that are known from the beginning, and are emitted in the first step.

    They are the triples of a static graph, the matches of a pattern in it, or VALUES.

    >>> always = Always.of({"x": np.array([7, 8])}, 2)
    >>> [len(always.step([], [], False)[0]) for _ in range(3)]
    [2, 0, 0]
    """

    implements = (access.AccessGraph, match.TriplePatternMatching, shape.Table)
    state = "none: the rows are emitted once, in the first step"
    scalars = ("_emitted",)

    def __init__(self, batch: Batch, what: str = "") -> None:
        super().__init__(tuple(batch.columns))
        self.rows = batch
        self.what = what
        """A description of the rows."""
        self._emitted = False

    @classmethod
    def of(cls, columns: dict[str, IntArray], rows: int, what: str = "") -> Always:
        """Return rows that hold at all instants."""
        start, end = np.zeros(rows, np.int64), np.full(rows, INFINITY, np.int64)
        return cls(Batch(columns, start, end), what)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        emitted, self._emitted = self._emitted, True
        return (self.nothing() if emitted else self.rows), INFINITY

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        if not self._emitted:
            yield from self.rows.columns.values()

    @override
    def facts(self) -> str:
        rows = f"{len(self.rows)} rows" if len(self.rows) != 1 else "one row"
        return f"{self.what}, {rows}" if self.what else rows
