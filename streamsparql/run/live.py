"""A query that stays open: callers push items and read the rows that it emits."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import pyarrow as pa

from streamsparql.compiled import CompiledQuery
from streamsparql.display import Displayed, describe
from streamsparql.errors import EngineError, SourceError, warn
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY
from streamsparql.run.coroutines import (
    Caller,
    Offered,
    RowReader,
    Waiting,
    is_async,
    reject_coroutine,
)
from streamsparql.run.execution import Execution, ranking_of
from streamsparql.run.input import RunInput
from streamsparql.run.live_stats import OperatorStats, Stats
from streamsparql.run.notes import warn_of_units
from streamsparql.run.pushed import pushed_item
from streamsparql.run.record_check import RecordCheck, mappings_of, record_mapping
from streamsparql.run.reports import requested_reports
from streamsparql.run.time_arguments import instant_argument, period_argument
from streamsparql.sources import Chunk, Mapped, Reject
from streamsparql.sources.chunk import Rejected
from streamsparql.sources.clock import StreamClock
from streamsparql.sources.folders import files_of
from streamsparql.values import check_values
from streamsparql.values.frames import check_library, pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.rows import Report, Row
    from streamsparql.run.time_arguments import Duration, Instant
    from streamsparql.values import Values

BUFFER_SIZE = 8192
"""The number of pushed items that are processed together, unless results are requested before."""

MAX_REJECTS = 1_000
"""The number of late items, and of rejected ones, that are retained for display."""


_Decoded = TypeVar("_Decoded")
_Emitted = TypeVar("_Emitted", bound="Row | Report")


class Live(Displayed, Generic[_Emitted]):
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
    ) -> None:
        if emit not in ("final", "eager"):
            raise EngineError(f"emit must be final or eager, not {emit!r}")
        silence = None if idle is None else period_argument("idle", idle)
        if on_row is not None and not callable(on_row):
            raise EngineError(f"on_row must be a function of a row, not {on_row!r}")
        wanted = requested_reports(query, report, every)
        reported = wanted is not None
        self._execution = Execution(
            query, run_input, report=wanted, ordered=reported, eager=emit == "eager", prompt=True
        )
        self._decoder = self._execution.decoder
        self._clock = StreamClock(self._execution.streams, silence)
        self._buffers: dict[str, list[Any]] = {name: [] for name in self._execution.streams}
        self._arrived = dict.fromkeys(self._execution.streams, 0)
        """The number of items that were pushed one by one, for the positions in messages."""
        self._pushed = 0
        self._mappings: dict[str, Mapped | None] = {}
        """The mapping of the records in a buffer, by stream; None for items."""
        self._checks: dict[tuple[str, Any], RecordCheck] = {}
        self._bound = mappings_of(mapping, self._execution.streams)
        """The mappings of records, by stream."""
        self._noted: set[str] = set()
        """The streams of which a recognised unit was reported."""
        self._watermark = -1
        self._prompted = True
        """Whether no row that is final at the watermark was delayed."""
        self._late: deque[Reject] = deque(maxlen=MAX_REJECTS)
        self._rejected: deque[Reject] = deque(maxlen=MAX_REJECTS)
        self._graph_rejects = len(self._execution.graph_rejects)
        self._guard = self._execution.guard
        self._on_row = on_row
        self._emitted: deque[_Emitted] = deque()
        """The rows, or reports, that `on_row` is still to be called with."""
        self._caller = Caller(on_row, self._emitted, self._guard) if is_async(on_row) else None
        self._waiting = Waiting()
        """The tasks that wait for rows."""
        self._instants: list[int] = []
        """The reports whose rows were not returned yet; the execution retains the rows."""
        self._offered: Offered[_Emitted] | None = None
        """Rows that are returned one by one; the execution retains them as its first batch."""
        self._closed = False

    # -- input

    def push(self, stream: str, triple: Any, t: Instant | None = None, *times: Instant) -> None:
        """Push an item to a stream: a triple and its timestamp, or the start and end of an event.

        The parts of the triple are terms or plain values (docs/sources.md); a triple or a timestamp
        that cannot be understood raises a `SourceError`. An item with no timestamp gets the time of
        this machine's clock.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> for t in (3, 25):
        ...     live.push("s", ("<a>", "<p>", "<b>"), t)
        >>> live.rows(), live.watermark
        ([Row(o=<b>, [3, 10))], 25)
        """
        self._buffer(stream)
        reading = self._execution.readings[str(stream)]
        self._append(str(stream), pushed_item(stream, reading, triple, t, times), None)

    def push_record(self, stream: str, record: Any, mapping: Any = None) -> None:
        """Push a record, a dict or the text of a JSON object, of which a mapping makes triples.

        `mapping` is the text of a CONSTRUCT over the keys of the record (docs/sources.md), or the
        path of a file with one; by default it is that of `open(mapping=)`. "auto" maps each key of
        the first record to a predicate. A record that cannot be read raises a `SourceError`.

        >>> import streamsparql
        >>> text = "SELECT ?v FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <v> ?v }"
        >>> live = streamsparql.compile(text).open(mapping="CONSTRUCT { [] <v> ?v } {}")
        >>> live.push_record("s", {"v": 5, "t": 3})
        >>> live.push_record("s", b'{"v": 6, "t": 25}')
        >>> live.rows()
        [Row(v="5"^^<http://www.w3.org/2001/XMLSchema#integer>, [3, 10))]
        """
        name = str(stream)
        self._buffer(name)
        chosen = self._bound.get(name) if mapping is None else mapping
        if chosen is None:
            raise EngineError(
                f"missing mapping of <{name}>: pass mapping=, or open the query with mapping=;"
                " 'auto' maps each key to a predicate"
            )
        check = self._checks.get((name, chosen))
        if check is None:
            reading = self._execution.readings[name]
            check = self._checks[name, chosen] = RecordCheck(name, record_mapping(chosen), reading)
        parsed = check.parsed(record)
        self._append(name, parsed, check.mapped)

    async def push_async(self, stream: str, source: Any) -> None:
        """Push the items of an asynchronous source, as they arrive.

        `source` is an asynchronous iterable of items, or of records with a mapping:
        `streamsparql.mapped(messages, mapping)`. Items that cannot be read are rejected.

        >>> import asyncio, streamsparql
        >>> async def sensor():
        ...     for t in (3, 25):
        ...         yield "<a>", "<p>", t, t
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> asyncio.run(live.push_async("s", sensor()))
        >>> live.rows()
        [Row(o="3"^^<http://www.w3.org/2001/XMLSchema#integer>, [3, 10))]
        """
        name = str(stream)
        self._buffer(name)
        mapping = source if isinstance(source, Mapped) else None
        items = source if mapping is None else mapping.source
        if not isinstance(items, AsyncIterable):
            kind = type(items).__name__
            raise SourceError(f"<{name}>: a {kind} is not asynchronous; use push_many")
        count = 0
        try:
            async for item in items:
                count += 1
                self._append(name, item, mapping)
        except Exception as error:
            error.add_note(f"<{name}>: {count:,} items were read before this error")
            raise

    def _append(self, name: str, item: Any, mapping: Mapped | None) -> None:
        """Add an item, or a record with its mapping, to the buffer of its stream."""
        buffer = self._buffer(name)
        if mapping is not self._mappings.get(name):
            if buffer:
                with self._guard:
                    self._flush()
                buffer = self._buffers[name]
            self._mappings[name] = mapping
        self._pushed += 1  # first: an item that is not counted would wait for the next push
        buffer.append(item)
        if self._waiting.futures:
            self._waiting.wake()
        if self._pushed >= BUFFER_SIZE or self._on_row is not None:
            self._process()

    def push_many(self, stream: str, source: Any) -> None:
        """Push all items of a source, in its order. Short lists are buffered.

        If the source raises, the items before are pushed, a note on the error has their number, and
        the query remains usable.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push_many("s", [("<a>", "<p>", "<b>", 3), ("<a>", "<p>", "<c>", 25)])
        >>> live.rows()
        [Row(o=<b>, [3, 10))]
        """
        name = str(stream)
        buffer = self._buffer(name)
        few = isinstance(source, list | tuple) and len(source) < BUFFER_SIZE
        few = few and files_of(source) is None
        few = few and self._mappings.get(name) is None
        if few and self._on_row is None and not self._execution.input.strict:
            self._pushed += len(source)
            buffer.extend(source)
            self._waiting.wake()
            if self._pushed >= BUFFER_SIZE:
                self._process()
            return
        self._waiting.wake()
        with self._guard:
            self._flush()
        sorter = self._execution.sorters[name]
        before, failures = sorter.read, list[BaseException]()
        chunks = self._execution.reader(name, source, failures=failures)
        while self._read(name, chunks, failures):
            if len(sorter) >= BUFFER_SIZE or self._on_row is not None:
                self._process()
        self._warn_of_units()
        for error in failures:
            error.add_note(f"<{name}>: {sorter.read - before:,} items were read before this error")
            raise error

    def advance(self, t: Instant, stream: str | None = None) -> None:
        """Promise that no item before `t` will be pushed: to this stream, or by default to any.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", "<b>"), 3)
        >>> live.rows(), live.advance(11), live.rows()
        ([], None, [Row(o=<b>, [3, 10))])
        """
        self._check_open()
        until = INFINITY if t == INFINITY else instant_argument("t", t)
        if stream is not None:
            self._buffer(stream)
        self._waiting.wake()
        with self._guard:
            self._advance(until, stream)
        self._call_on_row()

    def close(self) -> None:
        """End all streams, and emit the rows of the last windows.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", "<b>"), 3)
        >>> live.close(), live.rows()
        (None, [Row(o=<b>, [3, 10))])
        """
        self._waiting.check_thread()
        self._waiting.wake()
        with self._guard:
            if not self._closed:
                self._advance(INFINITY)
                if not self._buffers:
                    self._emit(self._execution.step({}, INFINITY))
            self._closed = True
        self._warn_of_units()
        for note in self._execution.cells.missing_keys:
            warn(note)
        self._call_on_row()

    def __enter__(self) -> Self:
        if self._caller is not None:
            raise EngineError("on_row is a coroutine function: use async with, and aclose")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._guard.broken:
            self._closed = True  # the error under way says more than a second one
            return
        self.close()

    # -- in a coroutine

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._guard.broken:
            self._closed = True
            self._waiting.wake()
            return
        self.close()
        if kind is None or issubclass(kind, Exception):  # a cancelled task does not wait
            await self.drain()

    async def aclose(self) -> None:
        """Close the query, and wait until `on_row` has handled all rows."""
        self.close()
        await self.drain()

    async def drain(self) -> None:
        """Wait until `on_row`, a coroutine function, has handled all rows that were emitted.

        Its error is raised here, or by the next `push`, `advance` or `close`; it is not called with
        that row again, and the rows after it follow. Call it between pushes so that rows do not
        accumulate.

        >>> import asyncio, streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> async def show(row):
        ...     await asyncio.sleep(0)
        ...     print(row.value("o"), row.start)
        >>> async def main():
        ...     async with streamsparql.compile(text).open(on_row=show) as live:
        ...         for t in (3, 25):
        ...             live.push("s", ("<a>", "<p>", '"1"'), t)
        ...             await live.drain()
        >>> asyncio.run(main())
        1 3
        1 25
        """
        if self._caller is not None:
            await self._caller.drain()

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
                    self._flush()
                    self._step(prompt=True)
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
    def late(self) -> list[Reject]:
        """The last 1,000 items that arrived below the watermark; `stats` counts all."""
        self._drain()
        return list(self._late)

    @property
    def rejected(self) -> list[Reject]:
        """The last 1,000 items that could not be read or stamped; `stats` counts all."""
        self._drain()
        return list(self._rejected)

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
        state = execution.pipeline.state()
        operators = []
        for operator, counts in execution.pipeline.counts.items():
            description = describe(operator, execution.query.prefixes)
            rows = sum(counts.rows_in), counts.rows_out, state[operator]
            operators.append(OperatorStats(description.kind, description.title, *rows))
        terms = len(execution.terms)
        figures = execution.accounting, self._graph_rejects, self._watermark, terms
        return Stats(*figures, tuple(operators), execution.cells.failed)

    @property
    def closed(self) -> bool:
        """Whether the query was closed."""
        return self._closed

    def __repr__(self) -> str:
        watermark = "all" if self._watermark >= INFINITY else self._watermark
        state = "unusable" if self._guard.broken else "closed" if self._closed else "open"
        return f"<Live: {state}, watermark {watermark}>"

    # -- inside

    def _check_open(self) -> None:
        if self._waiting.futures:
            self._waiting.check_thread()
        self._guard.verify()
        if self._closed:
            raise EngineError("the query is closed")

    def _buffer(self, stream: str) -> list[Any]:
        self._check_open()
        buffer = self._buffers.get(str(stream))
        if buffer is None:
            names = ", ".join(f"<{name}>" for name in self._buffers) or "no stream"
            raise EngineError(f"unknown stream <{stream}>; the query reads {names}")
        return buffer

    def _read(self, stream: str, chunks: Iterator[Chunk], failures: list[BaseException]) -> bool:
        """Sort the next chunk of a source; return False after the last one, and after an error.

        A source that cannot be read further does not harm the query, unlike other exceptions.
        """
        with self._guard:
            try:
                chunk = next(chunks, None)
            except (SourceError, OSError) as error:
                if isinstance(error, Rejected):
                    raise
                failures.append(error)
                return False
            if chunk is not None:
                self._sort(stream, chunk)
            return chunk is not None

    def _process(self) -> None:
        """Process all items that were pushed; call `on_row` with what is emitted."""
        with self._guard:
            self._flush()
            self._step(prompt=self._on_row is not None)
        self._warn_of_units()
        self._call_on_row()

    def _warn_of_units(self) -> None:
        """Warn of units of timestamps that were recognised by their size, once."""
        warn_of_units(self._execution.readings, self._noted)

    def _call_on_row(self) -> None:
        """Call `on_row` with each row that is due; once, whether or not it raises."""
        if self._caller is not None:
            self._caller.start()
            return
        while self._emitted and self._on_row is not None:
            # In one line: between the two calls no exception could get lost with its row.
            reject_coroutine(self._on_row(self._next_emitted()))

    def _next_emitted(self) -> _Emitted:
        with self._guard:
            return self._emitted.popleft()

    def _take(self, decode: Callable[[Batch, list[int]], _Decoded]) -> _Decoded:
        """Return the rows emitted since the last call, decoded; they are not returned again."""
        with self._guard:
            if not self._closed:
                self._flush()
        self._warn_of_units()  # before rows are taken: a warning may be raised
        with self._guard:
            if not self._closed:
                self._step(prompt=True)
            instants = self._instants
            if self._offered is not None:
                instants = [*self._offered.instants, *instants]
            decoded = decode(self._retained().ordered(), instants)
            self._execution.retained, self._instants, self._offered = [], [], None
            if self._on_row is None:
                return decoded
        self._call_on_row()
        return decoded

    # The methods below change the state: their callers enter the guard.

    def _flush(self) -> None:
        """Sort the items that were pushed one by one."""
        if not self._pushed:
            return
        self._pushed = 0
        for name, buffer in self._buffers.items():
            if not buffer:
                continue
            self._buffers[name] = []
            first = self._arrived[name] + 1
            self._arrived[name] += len(buffer)
            mapping = self._mappings.get(name)
            source = buffer if mapping is None else mapping.over(buffer)
            for chunk in self._execution.reader(name, source, first):
                self._sort(name, chunk)

    def _sort(self, stream: str, chunk: Chunk) -> None:
        """Sort items, and collect the late and rejected ones."""
        sorter = self._execution.sorters[stream]
        sorter.push(chunk)
        self._keep_rejects()
        self._clock.advance(stream, sorter.watermark)

    def _drain(self) -> None:
        with self._guard:
            if not self._closed:
                self._flush()
            self._keep_rejects()

    def _keep_rejects(self) -> None:
        for reject in self._execution.drain():
            (self._late if reject.late else self._rejected).append(reject)

    def _advance(self, t: int, stream: str | None = None) -> None:
        self._flush()
        for name in self._buffers if stream is None else [str(stream)]:
            self._execution.sorters[name].advance(t)
            self._clock.advance(name, t)
        self._step(prompt=self._on_row is not None)

    def _step(self, prompt: bool) -> None:
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
            self._emitted += self._decoded(batch, instants)
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
