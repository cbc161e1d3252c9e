"""A query that stays open: callers push items and read the rows that it emits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from streamsparql.compiled import CompiledQuery
from streamsparql.errors import EngineError
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY
from streamsparql.run.coroutines import (
    Offered,
    RowReader,
)
from streamsparql.run.execution import Execution, ranking_of
from streamsparql.run.input import RunInput
from streamsparql.run.live_stats import Stats
from streamsparql.run.open_input import OpenInput, PushedStream
from streamsparql.run.record_check import mappings_of
from streamsparql.run.reports import requested_reports
from streamsparql.run.time_arguments import instant_argument, period_argument
from streamsparql.sources.clock import StreamClock
from streamsparql.values import check_values
from streamsparql.values.frames import check_library, pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    from streamsparql.physical.lowering.lower import Catalog
    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.checkpoint.file import Checkpoint
    from streamsparql.run.rows import Report, Row
    from streamsparql.run.time_arguments import Duration, Instant
    from streamsparql.values import Values

_Decoded = TypeVar("_Decoded")
_Emitted = TypeVar("_Emitted", bound="Row | Report")


class Live(OpenInput, Generic[_Emitted]):
    """A continuous query: of rows, or of reports. A `with` statement closes it.

    An exception in the middle of a step, such as that of Ctrl-C, makes it unusable: every later
    call raises an `EngineError` that names it. Errors of arguments, of sources and of `on_row`
    leave it usable.

    In a coroutine, `async for row in live` waits for rows while other tasks push items, and an
    `async with` statement closes the query once a coroutine function `on_row` has handled all rows.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    >>> with streamsparql.compile(text).open() as live:
    ...     live.push("s", ("<a>", "<p>", '"1"'), 3)
    ...     live.advance(50)
    ...     live.rows()
    [Row(o="1", [3, 10))]
    """

    _kind = "query"
    _where_mappings_are = ", or open the query with mapping="

    def __init__(
        self,
        query: CompiledQuery,
        run_input: RunInput,
        *,
        idle: Duration | None = None,
        emit: str = "final",
        report: RelationToStream | None = None,
        every: Duration | None = None,
        on_row: Callable[[_Emitted], object] | None = None,
        mapping: Any = None,
        restored: tuple[TermDictionary, Catalog] | None = None,
    ) -> None:
        if emit not in ("final", "eager"):
            raise EngineError(f"emit must be final or eager, not {emit!r}")
        silence = None if idle is None else period_argument("idle", idle)
        self._check_on_row(on_row)
        self.report = requested_reports(query, report, every)
        """The reports that it emits; None for rows."""
        self.every = None if every is None else period_argument("every", every)
        """The period of reports that was requested."""
        self._execution = Execution(
            query,
            run_input,
            report=self.report,
            ordered=self.report is not None,
            eager=emit == "eager",
            prompt=True,
            restored=restored,
        )
        self._decoder = self._execution.decoder
        streams = {
            name: PushedStream(name, sorter, self._execution.readings[name])
            for name, sorter in self._execution.sorters.items()
        }
        super().__init__(self._execution, streams, StreamClock(streams, silence))
        self._mappings = mappings_of(mapping, self._execution.streams)
        self._watermark = -1
        self._prompted = True
        """Whether no row that is final at the watermark was delayed."""
        self._graph_rejects = len(self._execution.graph_rejects)
        self._on_row = on_row
        self._instants: list[int] = []
        """The reports whose rows were not returned yet; the execution retains the rows."""
        self._offered: Offered[_Emitted] | None = None
        """Rows that are returned one by one; the execution retains them as its first batch."""

    # -- in a coroutine

    def __aiter__(self) -> RowReader[_Emitted]:
        return self.aiter()

    def aiter(self) -> RowReader[_Emitted]:
        """Return an asynchronous iterator over the rows, or reports, until the query is closed.

        It waits while none is final; other tasks of the same event loop push. If a task that waits
        is cancelled, or stops iterating, the rows that it has not received follow in the next
        iteration or call of `rows`. Several iterators share the rows: each row goes to one of them.

        >>> import asyncio, streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> async def main():
        ...     live = streamsparql.compile(text).open()
        ...     async def feed():
        ...         for t in (3, 25):
        ...             live.push("s", ("<a>", "<p>", '"1"'), t)
        ...             await asyncio.sleep(0)
        ...         live.close()
        ...     feeding = asyncio.create_task(feed())
        ...     print([row.start async for row in live])
        ...     await feeding
        >>> asyncio.run(main())
        [3, 25]
        """
        if self._on_row is not None:
            raise EngineError("rows are passed to on_row; open the query without it to iterate")
        return RowReader(self._next_row, self._waiting, lambda: self._closed)

    def _next_row(self) -> _Emitted | None:
        """Return the next row, or report; None if none is final."""
        with self._guard:
            if self._offered is None:
                if not self._closed:
                    self._read_buffers()
                    self._step_to_watermark(prompt=True)
                rows = self._retained().ordered()
                decoded = self._decoded(rows, self._instants)
                if not decoded:
                    return None
                self._offered = Offered(rows, self._instants, decoded)
                self._execution.retained, self._instants = [rows], []
            row = self._offered.pop()
            if not self._offered.left:
                del self._execution.retained[0]
                self._offered = None
            return row

    def _unread_instants(self) -> list[int]:
        """Return the instants of the reports that were not returned yet."""
        offered = [] if self._offered is None else self._offered.instants
        return [*offered, *self._instants]

    def _retained(self) -> Batch:
        """Return the rows that were not returned yet."""
        batches = self._execution.retained
        if self._offered is not None:
            batches = [self._offered.rest(), *batches[1:]]
        return Batch.concat(batches, self._execution.sink.names)

    # -- output

    def rows(self) -> list[_Emitted]:
        """Return the rows that were emitted since the last call, by start.

        With emit="final", these are the rows that have ended, in canonical form; with "eager", all
        rows, cut at the watermark. For reports: pairs of an instant and the rows of the report.
        """
        return self._take(self._decoded)

    def to_arrow(self, *, values: Values = "terms") -> pa.Table:
        """Return the rows since the last call as an Arrow table, as `Result.to_arrow` does.

        There is a column per variable, and `start` and `end`; for reports, `instant` instead.
        Native values have the types of the rows of this call.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> live.close()
        >>> live.to_arrow().to_pydict()
        {'o': ['"1"'], 'start': [3], 'end': [10]}
        """
        check_values(values)
        return self._take(lambda batch, _: self._table(batch, values, exact=True))

    def to_pandas(self, *, values: Values = "native") -> pd.DataFrame:
        """Return the rows since the last call as a frame of pandas, as `Result.to_pandas` does.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open(report="rstream")
        >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> live.advance(11)
        >>> live.to_pandas()
           o                          instant
        0  1 1970-01-01 00:00:00.010000+00:00
        """
        check_values(values)
        check_library("pandas")
        return self._take(lambda batch, _: pandas_frame(self._table(batch, values, exact=False)))

    def to_polars(self, *, values: Values = "native") -> pl.DataFrame:
        """Return the rows since the last call as a frame of Polars, as `Result.to_polars` does.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> live.close()
        >>> live.to_polars()["o"].to_list()
        ['1']
        """
        check_values(values)
        check_library("polars")
        return self._take(lambda batch, _: polars_frame(self._table(batch, values, exact=False)))

    def _table(self, batch: Batch, values: Values, exact: bool) -> pa.Table:
        reports = self._execution.reports is not None
        if values == "native":
            return self._decoder.native_table(batch, reports, exact)
        return self._decoder.table([batch], reports)

    def snapshot(self, t: Instant | None = None) -> Any:
        """Return the rows that hold at `t`, by default at the time of the last item.

        They are those that would hold if `t` passed without further items, as `Result.snapshot`
        returns them, in the order of ORDER BY if its keys are variables of the result. `rows`
        returns them later, too. `t` must not be before the watermark. The cost is that of copying
        the state.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> live.snapshot(), live.snapshot(10), live.rows()
        ([{'o': rdflib.term.Literal('1')}], [], [])
        """
        self._check_open()
        if self._execution.reports is not None:
            raise EngineError("snapshot needs rows; open the query without report= and every=")
        self._process()
        instant = self._last_instant() if t is None else instant_argument("t", t)
        if instant < self._watermark < INFINITY:
            raise EngineError(
                f"t ({instant}) is before the watermark ({self._watermark}): rows that ended since"
                " then are not retained"
            )
        rows = self._execution.holding(instant)
        return self._decoder.ordered_by(ranking_of(self._execution.query)).snapshot(rows)

    def _last_instant(self) -> int:
        """Return the time of the last item, or the watermark if that is later."""
        execution = self._execution
        jump = execution.input.max_jump
        # Before its second item, the first one of a stream is quarantined.
        first = [s.first_quarantined for s in execution.sorters.values() if s.seen < 0]
        quarantined = [t for t in first if t < INFINITY]
        last = execution.last_stamp
        if last < 0:
            last = min(quarantined, default=execution.input.start or 0)
        last = max([last, *(t for t in quarantined if jump is None or t <= last + jump)])
        if self._watermark < INFINITY:
            last = max(last, self._watermark)
        end = execution.input.end
        return last if end is None else min(last, end - 1)

    @property
    def watermark(self) -> int:
        """The instant before which all items have been processed; -1 before the first."""
        self._guard.verify()
        if not self._closed:
            self._process()
        return self._watermark

    def stats(self) -> Stats:
        """Return the counts of items, the rows and state of each operator, and the watermark.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push_many("s", [("<a>", "<p>", "<b>", t) for t in (3, 25, 4)])
        >>> stats = live.stats()
        >>> stats.items.accepted, stats.items.late, stats.watermark, stats.state
        (2, 1, 25, 1)
        """
        if not self._closed:
            self._process()
        with self._guard:
            return self._stats()

    def _stats(self) -> Stats:
        execution = self._execution
        terms = len(execution.terms)
        figures = execution.accounting, self._graph_rejects, self._watermark, terms
        operators = execution.operator_stats(execution.query.prefixes)
        return Stats(*figures, operators, execution.cells.failed)

    def __repr__(self) -> str:
        watermark = "all" if self._watermark >= INFINITY else self._watermark
        state = "unusable" if self._guard.broken else "closed" if self._closed else "open"
        return f"<Live: {state}, watermark {watermark}>"

    # -- inside

    @override
    def _checkpoint(self) -> Checkpoint:
        from streamsparql.run.checkpoint.queries import save_live

        return save_live(self)

    @property
    @override
    def _calling(self) -> bool:
        return self._on_row is not None

    @override
    def _unknown(self, name: str) -> PushedStream:
        names = ", ".join(f"<{known}>" for known in self._streams) or "no stream"
        raise EngineError(f"unknown stream <{name}>; the query reads {names}")

    def _take(self, decode: Callable[[Batch, list[int]], _Decoded]) -> _Decoded:
        """Return the rows emitted since the last call, decoded; they are not returned again."""
        with self._guard:
            if not self._closed:
                self._read_buffers()
        self._warn_of_units()  # before rows are taken: a warning may be raised
        with self._guard:
            if not self._closed:
                self._step_to_watermark(prompt=True)
            decoded = decode(self._retained().ordered(), self._unread_instants())
            self._execution.retained, self._instants, self._offered = [], [], None
            if self._on_row is None:
                return decoded
        self._call_on_row()
        return decoded

    # The methods below change the state: their callers enter the guard.

    @override
    def _step(self, *, reading: bool = False) -> None:
        self._step_to_watermark(prompt=self._calling)

    def _step_to_watermark(self, prompt: bool) -> None:
        """Process the items below the common watermark; if `prompt`, no final row is delayed."""
        watermark = self._clock.watermark()
        sorters = self._execution.sorters
        for name in self._clock.silent():  # items below it, if the stream resumes, are late
            sorters[name].advance(watermark)
        batches = {name: sorter.release(watermark) for name, sorter in sorters.items()}
        unchanged = not any(map(len, batches.values())) and watermark == self._watermark
        if unchanged and (self._prompted or not prompt or not self._execution.delayed):
            return
        self._watermark, self._prompted = watermark, prompt
        self._emit(self._execution.step(batches, watermark, prompt=prompt))

    def _emit(self, batch: Batch) -> None:
        """Retain the emitted rows until `rows` is called, or until `on_row` is."""
        reports = self._execution.reports
        instants = [] if reports is None else reports.done()
        if self._on_row is not None:
            self._calls.add(self._on_row, self._decoded(batch, instants))
            return
        if len(batch):
            self._execution.retained.append(batch)
        self._instants += instants

    def _decoded(self, batch: Batch, instants: list[int]) -> list[_Emitted]:
        """Decode rows, or reports."""
        decoded: Any
        if self._execution.reports is not None:
            decoded = list(self._decoder.reports(batch, instants))
        else:
            decoded = self._decoder.rows(batch.ordered())
        emitted: list[_Emitted] = decoded
        return emitted
