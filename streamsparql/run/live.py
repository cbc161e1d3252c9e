"""A query that stays open: callers push items and read the rows that it emits."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import pyarrow as pa

from streamsparql.compiled import CompiledQuery
from streamsparql.display import Displayed, describe
from streamsparql.errors import EngineError, SourceError
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput
from streamsparql.run.notes import DataNotes
from streamsparql.run.record_check import RecordCheck, mappings_of, record_mapping
from streamsparql.run.reports import requested_reports
from streamsparql.sources import Accounting, Chunk, Mapped, Reject
from streamsparql.sources.chunk import Rejected
from streamsparql.sources.clock import StreamClock
from streamsparql.sources.failed_cells import CellLog, FailedCells
from streamsparql.sources.folders import files_of
from streamsparql.sources.term_texts import check_triple

BUFFER_SIZE = 8192
"""The number of pushed items that are processed together, unless results are requested before."""

MAX_REJECTS = 1_000
"""The number of late items, and of rejected ones, that are retained for display."""


_Decoded = TypeVar("_Decoded")


class OperatorStats(NamedTuple):
    """The rows that an operator has consumed and emitted, and that it retains."""

    operator: str
    facts: str
    """Its parameters, as the query writes them."""
    rows_in: int
    rows_out: int
    state: int


class Stats(NamedTuple):
    """Figures of an open query: the counts of its items, its watermark, its state."""

    items: Accounting
    graph_rejects: int
    """Triples of static graphs that were rejected."""
    watermark: int
    terms: int
    """Terms in the dictionary."""
    operators: tuple[OperatorStats, ...]
    """Those that read streams first, the sink last."""
    failed_cells: tuple[FailedCells, ...] = ()
    """The cells of records for which an expression of their mapping has no value."""

    @property
    def late(self) -> int:
        """Items that arrived below the watermark."""
        return self.items.late

    @property
    def rejected(self) -> int:
        """Items that could not be read or stamped, and triples of static graphs."""
        return self.items.rejected + self.graph_rejects

    @property
    def state(self) -> int:
        """Rows that all operators retain."""
        return sum(each.state for each in self.operators)


class Live(Displayed):
    """A continuous query. A `with` statement closes it.

    An exception in the middle of a step, such as that of Ctrl-C, makes it unusable: every later
    call raises an `EngineError` that names it. Errors of arguments, of sources and of `on_row`
    leave it usable.

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
        idle: int | None = None,
        emit: str = "final",
        report: str | None = None,
        every: int | None = None,
        on_row: Callable[[Any], object] | None = None,
        mapping: Any = None,
    ) -> None:
        if emit not in ("final", "eager"):
            raise EngineError(f"emit must be final or eager, not {emit!r}")
        if idle is not None and (type(idle) is not int or idle <= 0):
            raise EngineError(f"idle must be a positive number of milliseconds, not {idle!r}")
        if on_row is not None and not callable(on_row):
            raise EngineError(f"on_row must be a function of a row, not {on_row!r}")
        wanted = requested_reports(query, report, every)
        reported = wanted is not None
        self._execution = Execution(
            query, run_input, report=wanted, ordered=reported, eager=emit == "eager", prompt=True
        )
        self._decoder = self._execution.decoder
        self._clock = StreamClock(self._execution.streams, idle)
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
        self._emitted: deque[Any] = deque()
        """The rows, or reports, that `on_row` is still to be called with."""
        self._instants: list[int] = []
        """The reports whose rows were not returned yet; the execution retains the rows."""
        self._closed = False

    # -- input

    def push(self, stream: str, triple: Any, t: Any = None, *times: Any) -> None:
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
        stamps = reading.stamps
        if reading.predicate is not None:
            raise EngineError(
                "stamp_from reads the time of whole messages; use push_many, or push_record"
            )
        try:
            check_triple(triple)
            if t is None:
                t = stamps.now()
            stamps.check(t)
            for end in times:
                stamps.check(end)
        except ValueError as error:
            raise SourceError(f"<{stream}>: {error}") from None
        self._append(str(stream), (triple, t, *times), None)

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
            if self._pushed >= BUFFER_SIZE:
                self._process()
            return
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

    def advance(self, t: int, stream: str | None = None) -> None:
        """Promise that no item before `t` will be pushed: to this stream, or by default to any.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", "<b>"), 3)
        >>> live.rows(), live.advance(11), live.rows()
        ([], None, [Row(o=<b>, [3, 10))])
        """
        self._check_open()
        if isinstance(t, bool) or not hasattr(t, "__index__") or not 0 <= t <= INFINITY:
            raise EngineError(f"t must be a number of milliseconds, not {t!r}")
        if stream is not None:
            self._buffer(stream)
        with self._guard:
            self._advance(t, stream)
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
        with self._guard:
            if not self._closed:
                self._advance(INFINITY)
                if not self._buffers:
                    self._emit(self._execution.step({}, INFINITY))
            self._closed = True
        self._warn_of_units()
        self._call_on_row()

    def __enter__(self) -> Self:
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

    # -- output

    def rows(self) -> list[Any]:
        """Return the rows that were emitted since the last call, by start.

        With emit="final", these are the rows that have ended, in canonical form; with "eager", all
        rows, cut at the watermark. For reports: pairs of an instant and the rows of the report.
        """
        return self._take(self._decoded)

    def to_arrow(self) -> pa.Table:
        """Return the rows since the last call as an Arrow table, as `Result.to_arrow` does.

        There is a column per variable, and `start` and `end`; for reports, `instant` instead.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> live.close()
        >>> live.to_arrow().to_pydict()
        {'o': ['"1"'], 'start': [3], 'end': [10]}
        """
        reports = self._execution.reports is not None
        return self._take(lambda batch, _: self._decoder.table([batch], reports))

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
        readings = self._execution.readings.items()
        recognised = {n: r.stamps.recognised for n, r in readings if n not in self._noted}
        units = {name: unit for name, unit in recognised.items() if unit is not None}
        if units:
            self._noted.update(units)
            DataNotes(units, CellLog(), Accounting(), 0).issue()

    def _call_on_row(self) -> None:
        """Call `on_row` with each row that is due; once, whether or not it raises."""
        while self._emitted and self._on_row is not None:
            # In one line: between the two calls no exception could get lost with its row.
            self._on_row(self._next_emitted())

    def _next_emitted(self) -> Any:
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
            rows = Batch.concat(self._execution.retained, self._execution.sink.names)
            decoded = decode(rows.ordered(), self._instants)
            self._execution.retained, self._instants = [], []
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
        if unchanged and (self._prompted or not prompt):
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

    def _decoded(self, batch: Batch, instants: list[int]) -> list[Any]:
        """Decode rows, or reports."""
        if self._execution.reports is not None:
            return list(self._decoder.reports(batch, instants))
        return self._decoder.rows(batch.ordered())
