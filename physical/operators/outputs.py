"""Streams that are not pushed: the output of a query, and a stream from some instant on."""

from __future__ import annotations

from collections.abc import Sequence

from streamsparql.algebra import access
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.operators.access import Stream


class OutputStream(Stream):
    """The reports of a query as a stream, whose items are stamped with their report (R27).

    The watermark is the instant of the next report, so a report without triples moves time, too.
    If the streams of the query have advanced without an item, so has this one; should they end so,
    their horizon begins at 0, and the reports from before the watermark are not items.

    >>> import numpy as np
    >>> from streamsparql.physical.operators.access import Always
    >>> reports = Always.of(dict.fromkeys(TRIPLE, np.array([7])), 1)
    >>> triple = reports.rows.over(np.array([5]), np.array([6]))
    >>> stream = OutputStream(reports, "alarms", TermDictionary())
    >>> rows, watermark = stream.step([triple], [10], False)
    >>> rows.start.tolist(), watermark, stream.last
    ([5], 10, 5)
    """

    implements = (access.AccessStream,)
    scalars = ("first", "last", "_mark")

    def __init__(
        self, reports: Operator, name: str, terms: TermDictionary, stamp: str | None = None
    ) -> None:
        super().__init__((*TRIPLE, stamp) if stamp else TRIPLE, reports)
        self.stream, self.stamp = name, stamp
        self._terms = terms
        self._mark = 0
        """The watermark of the last step."""

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,) = batches, watermarks
        if len(batch) and batch.start[0] < self._mark:
            batch = batch.where(batch.start >= self._mark)
        self._mark = watermark
        if len(batch):
            self.first = min(self.first, int(batch.start[0]))
            self.last = max(self.last, int(batch.start[-1]))
        if self.stamp is not None:
            batch = batch.with_columns({self.stamp: self._terms.of_integers(batch.start)})
        return batch.project(self.names), watermark

    @override
    def facts(self) -> str:
        return f"<{self.stream}>"


class Since(Stream):
    """The items of a stream that are stamped at an instant or later.

    A query that is registered later may need items that a source has skipped so far, because no
    query needed them: it starts after these.

    >>> import numpy as np
    >>> from streamsparql.physical.operators.access import StreamAccess
    >>> items = Batch(dict.fromkeys(TRIPLE, np.array([7, 8])), np.array([3, 4]), np.array([4, 5]))
    >>> Since(StreamAccess("s"), 4).step([items], [9], False)[0].start.tolist()
    [4]
    """

    family = "access"

    def __init__(self, stream: Stream, since: int) -> None:
        super().__init__(stream.names, stream)
        self.since = since

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (batch,), (watermark,), (stream,) = batches, watermarks, self.inputs
        assert isinstance(stream, Stream)
        self.first, self.last = max(stream.first, self.since), stream.last
        return batch.where(batch.start >= self.since) if len(batch) else batch, watermark

    @override
    def facts(self) -> str:
        return f"since {self.since}"
