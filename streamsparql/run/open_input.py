"""What is open: a query, or a session of many. Callers push items to it, and it calls `on_row`.

`Live` and `Session` have the same input: items that wait in buffers, mappings of records, the time
that callers promise, late and rejected items, rows that `on_row` is to be called with. They differ
in what a step is, and in who reads the rows.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterable, Callable, Collection, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from streamsparql.display import Displayed
from streamsparql.errors import EngineError, SourceError, warn
from streamsparql.physical.operator import INFINITY
from streamsparql.run.coroutines import Waiting, is_async
from streamsparql.run.engine import Engine
from streamsparql.run.notes import warn_of_units
from streamsparql.run.pushed import pushed_item
from streamsparql.run.record_check import RecordCheck, record_mapping
from streamsparql.run.replay import Stopped
from streamsparql.run.row_calls import RowCalls
from streamsparql.run.time_arguments import instant_argument
from streamsparql.sources import Chunk, Mapped, Reject
from streamsparql.sources.chunk import Rejected
from streamsparql.sources.clock import StreamClock
from streamsparql.sources.disorder import Sorter
from streamsparql.sources.folders import files_of
from streamsparql.sources.reading import Reading

if TYPE_CHECKING:
    from streamsparql.run.checkpoint.file import Checkpoint
    from streamsparql.run.time_arguments import Instant

BUFFER_SIZE = 8192
"""The number of pushed items that are processed together, unless results are requested before."""

MAX_REJECTS = 1_000
"""The number of late items, and of rejected ones, that are retained for display."""


class PushedStream:
    """A stream that items are pushed to: those that wait, and how they are read."""

    def __init__(self, name: str, sorter: Sorter, reading: Reading) -> None:
        self.name, self.sorter, self.reading = name, sorter, reading
        self.buffer: list[Any] = []
        """The items that were pushed one by one and not read yet."""
        self.arrived = 0
        """The number of these so far, for the positions in messages."""
        self.mapped: Mapped | None = None
        """The mapping of the records in the buffer; None for items."""
        self.checks: dict[Any, RecordCheck] = {}
        """The checks of the records that were pushed, by mapping."""

    def sort(self, chunk: Chunk) -> None:
        """Sort items."""
        self.sorter.push(chunk)


class OpenInput(Displayed):
    """What items are pushed to, until it is closed. A `with` statement closes it."""

    _kind: str
    """What is open, in messages."""
    _where_mappings_are = ""
    """Where else mappings are passed, in messages."""
    _on_row: Callable[[Any], object] | None = None
    """What all rows are passed to."""
    _entered = False
    """Whether it is in a `with` statement, which cannot wait for coroutines."""

    def __init__(
        self, engine: Engine, streams: Mapping[str, PushedStream], clock: StreamClock
    ) -> None:
        self._guard, self._input_engine = engine.guard, engine
        self._streams = streams
        self._clock = clock
        self._pushed = 0
        """The number of items that were pushed one by one and not read yet."""
        self._mappings: Mapping[str, Any] = {}
        """The mappings of records that callers need not pass, by stream."""
        self._noted: set[str] = set()
        """The streams of which a recognised unit was reported."""
        self._late: deque[Reject] = deque(maxlen=MAX_REJECTS)
        self._rejected: deque[Reject] = deque(maxlen=MAX_REJECTS)
        self._calls = RowCalls(engine.guard)
        self._waiting = Waiting()
        """The tasks that wait for rows."""
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
        with self._guard.lock:
            known = self._stream(stream)
            self._append(known, pushed_item(stream, known.reading, triple, t, times), None)

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
        with self._guard.lock:
            known = self._stream(stream)
            chosen = self._mappings.get(known.name) if mapping is None else mapping
            if chosen is None:
                raise EngineError(
                    f"missing mapping of <{known.name}>: pass mapping={self._where_mappings_are};"
                    " 'auto' maps each key to a predicate"
                )
            check = known.checks.get(chosen)
            if check is None:
                check = RecordCheck(known.name, record_mapping(chosen), known.reading)
                known.checks[chosen] = check
            parsed = check.parsed(record)
            self._append(known, parsed, check.mapped)

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
        name = self._stream(stream).name
        mapping = source if isinstance(source, Mapped) else None
        items = source if mapping is None else mapping.source
        if not isinstance(items, AsyncIterable):
            kind = type(items).__name__
            raise SourceError(f"<{name}>: a {kind} is not asynchronous; use push_many")
        count = 0
        try:
            async for item in items:
                count += 1
                with self._guard.lock:
                    self._append(self._stream(name), item, mapping)
        except Exception as error:
            error.add_note(f"<{name}>: {count:,} items were read before this error")
            raise

    def _append(self, stream: PushedStream, item: Any, mapping: Mapped | None) -> None:
        """Add an item, or a record with its mapping, to the buffer of its stream."""
        if mapping is not stream.mapped:
            if stream.buffer:
                with self._guard:
                    self._read_buffers()
            stream.mapped = mapping
        self._pushed += 1  # first: an item that is not counted would wait for the next push
        stream.buffer.append(item)
        if self._waiting.futures:
            self._waiting.wake()
        if self._pushed >= BUFFER_SIZE or self._calling:
            self._process()

    def push_many(self, stream: str, source: Any) -> None:
        """Push all items of a source, in its order. Short lists are buffered.

        If the source raises, the items before are pushed, a note on the error has their number, and
        what is open remains usable.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push_many("s", [("<a>", "<p>", "<b>", 3), ("<a>", "<p>", "<c>", 25)])
        >>> live.rows()
        [Row(o=<b>, [3, 10))]
        """
        few = isinstance(source, list | tuple) and len(source) < BUFFER_SIZE
        few = few and not self._calling and not self._input_engine.input.strict
        few = few and files_of(source) is None
        with self._guard.lock:
            known = self._stream(stream)
            if few and known.mapped is None:
                self._pushed += len(source)
                known.buffer.extend(source)
                self._waiting.wake()
                if self._pushed >= BUFFER_SIZE:
                    self._process()
                return
        self._waiting.wake()
        with self._guard:
            self._read_buffers()
        before, failures = known.sorter.read, list[BaseException]()
        chunks = self._input_engine.reader(known.name, source, failures=failures)
        while self._read(known, chunks, failures):
            if len(known.sorter) >= BUFFER_SIZE or self._calling:
                self._process()
        self._warn_of_units()
        for error in failures:
            read = known.sorter.read - before
            error.add_note(f"<{known.name}>: {read:,} items were read before this error")
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
        named = None if stream is None else self._stream(stream)
        self._waiting.wake()
        with self._guard:
            self._advance(until, [*self._streams.values()] if named is None else [named])
        self._call_on_row()

    # -- the end

    def close(self) -> None:
        """End all streams, and emit the rows of the last windows; they can still be read.

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
                self._advance(INFINITY, [*self._streams.values()])
            self._closed = True
        self._warn_of_units()
        for note in self._input_engine.cells.missing_keys:
            warn(note)
        self._call_on_row()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def __enter__(self) -> Self:
        self._entered = True
        self._check_on_row(self._on_row)
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
        """Close, and wait until `on_row` has handled all rows."""
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
        await self._calls.drain()

    # -- checkpoints

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write all that is open to a file, from which `restore` continues; return its bytes.

        Items that were pushed are processed before. The file replaces an older one when it is
        whole, so that there is always one to continue from. It has no source of items: a caller
        continues to push after the items that it has pushed before (docs/running.md).

        >>> import streamsparql, tempfile
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> path = tempfile.mkdtemp() + "/state.ckpt"
        >>> size = live.save(path)
        >>> again = streamsparql.restore(path)
        >>> again.close(), again.rows()
        (None, [Row(o="1", [3, 10))])
        """
        from streamsparql.run.checkpoint.file import write_checkpoint

        return write_checkpoint(path, self.checkpoint())

    def checkpoint(self) -> Checkpoint:
        """Return the state after all items that were pushed, as `save` writes it."""
        self._guard.verify()
        if not self._closed:
            self._process()
        if self._calls.waiting:
            raise EngineError(
                "rows wait for on_row: save outside of it; with a coroutine function, after drain"
            )
        return self._checkpoint()

    @abstractmethod
    def _checkpoint(self) -> Checkpoint:
        """Return the state, between two steps."""

    # -- what is known of the input

    @property
    def late(self) -> list[Reject]:
        """The last 1,000 items that arrived below the watermark; `stats` counts all."""
        self._read_rejects()
        return list(self._late)

    @property
    def rejected(self) -> list[Reject]:
        """The last 1,000 items that could not be read or stamped; `stats` counts all."""
        self._read_rejects()
        return list(self._rejected)

    # -- inside

    @property
    @abstractmethod
    def _calling(self) -> bool:
        """Whether there is an `on_row`, which is called as soon as a row is final."""

    def _check_on_row(self, on_row: Callable[[Any], object] | None) -> None:
        if on_row is None:
            return
        if not callable(on_row):
            raise EngineError(f"on_row must be a function of a row, not {on_row!r}")
        if self._entered and is_async(on_row):
            raise EngineError("on_row is a coroutine function: use async with, and aclose")

    def _check_open(self) -> None:
        if self._waiting.futures:
            self._waiting.check_thread()
        self._guard.verify()
        if self._closed:
            raise EngineError(f"the {self._kind} is closed")

    def _stream(self, name: str) -> PushedStream:
        """Return a stream that items are pushed to."""
        self._check_open()
        return self._streams.get(str(name)) or self._unknown(str(name))

    @abstractmethod
    def _unknown(self, name: str) -> PushedStream:
        """Return a stream that is not known yet, or raise an error."""

    def _read(
        self, stream: PushedStream, chunks: Iterator[Chunk], failures: list[BaseException]
    ) -> bool:
        """Sort the next chunk of a source; return False after the last one, and after an error.

        A source that cannot be read further does not harm what is open, unlike other exceptions.
        """
        with self._guard:
            try:
                chunk = next(chunks, None)
            except (SourceError, OSError, Stopped) as error:
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
            self._read_buffers()
            self._step()
        self._warn_of_units()
        self._call_on_row()

    def _warn_of_units(self) -> None:
        """Warn of units of timestamps that were recognised by their size, once for each stream."""
        if len(self._noted) < len(self._streams):
            warn_of_units(self._input_engine.readings, self._noted)

    def _call_on_row(self) -> None:
        """Call `on_row` with each row that is due; once, whether or not it raises."""
        self._calls.call()

    def _read_rejects(self) -> None:
        with self._guard:
            if not self._closed:
                self._read_buffers()
            self._keep_rejects()

    # The methods below change the state: their callers enter the guard.

    def _read_buffers(self) -> None:
        """Sort the items that were pushed one by one."""
        if not self._pushed:
            return
        self._pushed = 0
        for stream in self._streams.values():
            if stream.buffer:
                items, stream.buffer = stream.buffer, []
                first = stream.arrived + 1
                stream.arrived += len(items)
                source = items if stream.mapped is None else stream.mapped.over(items)
                for chunk in self._input_engine.reader(stream.name, source, first):
                    self._sort(stream, chunk)

    def _sort(self, stream: PushedStream, chunk: Chunk) -> None:
        """Sort items, and keep the late and rejected ones."""
        stream.sort(chunk)
        self._keep_rejects()
        self._clock.advance(stream.name, stream.sorter.watermark)

    def _keep_rejects(self) -> None:
        for reject in self._input_engine.drain():
            (self._late if reject.late else self._rejected).append(reject)

    def _advance(self, t: int, streams: Collection[PushedStream]) -> None:
        self._read_buffers()
        for stream in streams:
            stream.sorter.advance(t)
            self._clock.advance(stream.name, t)
        self._step(reading=True)

    @abstractmethod
    def _step(self, *, reading: bool = False) -> None:
        """Process the items below the watermark.

        With `reading`, time was advanced or rows are read, so that what was added since the last
        step must not wait for items.
        """
