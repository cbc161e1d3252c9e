"""Where rows come into a plan: streams, static graphs and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamsparql.algebra import access, match, shape
from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.operator import Operator, StepResult


class StreamAccess(Operator):
    """Hands on the items of a stream, over `[t, t+1)`, that the pipeline offers for a step.

    >>> stream = StreamAccess("s")
    >>> item = np.array([7])
    >>> stream.offer(Batch(dict.fromkeys(TRIPLE, item), np.array([3]), np.array([4])), 5)
    >>> stream.step([], [], False)
    (Batch(1 rows of .s, .p, .o), 5)
    """

    implements = (access.AccessStream,)

    def __init__(self, stream: str, stamp: str | None = None) -> None:
        super().__init__((*TRIPLE, stamp) if stamp else TRIPLE)
        self.stream = stream
        self.stamp = stamp
        """The hidden column of the items' own stamps, where the query asks for them."""
        self._offered: StepResult | None = None

    def offer(self, batch: Batch, watermark: int) -> None:
        """Set what the next step emits."""
        self._offered = batch, watermark

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        offered, self._offered = self._offered, None
        assert offered is not None, "a step takes what was offered for it"
        return offered

    @override
    def facts(self) -> str:
        return f"<{self.stream}>"


class Always(Operator):
    """Rows that are all there from the beginning, and come at once.

    They are of a static graph, of what a pattern finds in it, or of VALUES.

    >>> always = Always.of({"x": np.array([7, 8])}, 2)
    >>> [len(always.step([], [], False)[0]) for _ in range(3)]
    [2, 0, 0]
    """

    implements = (access.AccessGraph, match.TriplePatternMatching, shape.Table)
    state = "none: the rows are given once, in the first step"
    scalars = ("_emitted",)

    def __init__(self, batch: Batch, what: str = "") -> None:
        super().__init__(tuple(batch.columns))
        self.rows = batch
        self._what = what
        self._emitted = False

    @classmethod
    def of(cls, columns: dict[str, IntArray], rows: int, what: str = "") -> Always:
        """Rows that hold over all time."""
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
        return f"{self._what}, {rows}" if self._what else rows
