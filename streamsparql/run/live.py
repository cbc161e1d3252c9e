"""A query that stays open: push in, results out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from streamsparql.errors import EngineError
from streamsparql.look.explain.boxes.phrases import with_prefixes
from streamsparql.look.explain.boxes.physical import operator_box
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import INFINITY
from streamsparql.run.execution import Execution, RunInput, reports_asked
from streamsparql.run.result import Shape, by_instant
from streamsparql.sources import Accounting, Chunk, Reject
from streamsparql.sources.clock import Clock
from streamsparql.sources.folders import files_of

if TYPE_CHECKING:
    from streamsparql.query import Query

BUFFER = 8192
"""So many pushed items are taken in together, unless somebody asks for results before."""

KEPT = 1_000
"""So many of the items that were not taken are remembered."""


class OperatorStats(NamedTuple):
    """What an operator did so far, and what it holds."""

    operator: str
    facts: str
    """What it is given, in the query's words."""
    rows_in: int
    rows_out: int
    state: int


class Stats(NamedTuple):
    """A look at a live query: how far it is, what it holds, what it could not take."""

    items: int
    """Items that the query used; those that no pattern can match are not among them."""
    late: int
    rejected: int
    """Items that could not be read."""
    watermark: int
    terms: int
    """Terms that the dictionary holds."""
    operators: tuple[OperatorStats, ...]
    """Those that read streams first, the sink last."""

    @property
    def state(self) -> int:
        """Rows held by all operators."""
        return sum(each.state for each in self.operators)


class Live:
    """A continuous query. It can be used in a `with` statement, which closes it.

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
        query: Query,
        given: RunInput,
        *,
        idle: int | None = None,
        emit: str = "final",
        report: str | None = None,
        every: int | None = None,
        on_row: Callable[[Any], object] | None = None,
    ) -> None:
        if emit not in ("final", "eager"):
            raise EngineError(f"rows are emitted final or eager, not {emit!r}")
        if idle is not None and (type(idle) is not int or idle <= 0):
            raise EngineError(f"idle is a number of milliseconds, not {idle!r}")
        wanted = reports_asked(query, report, every)
        reported = wanted is not None
        self._run = Execution(query, given, report=wanted, ordered=reported, eager=emit == "eager")
        self._shape = Shape(query, self._run)
        self._clock = Clock(self._run.streams, idle)
        self._buffers: dict[str, list[Any]] = {name: [] for name in self._run.streams}
        self._came = dict.fromkeys(self._run.streams, 0)
        """How many items were pushed one by one, for what is said of them to have a place."""
        self._pushed = 0
        self._items = 0
        self._watermark = -1
        self._on_row = on_row
        self._late = deque(self._run.rejects, maxlen=KEPT)
        self._instants: list[int] = []
        """The reports of which the rows were not taken out; the run holds the rows."""
        self._closed = False

    # -- in

    def push(self, stream: str, triple: Any, t: int | None = None, *times: int) -> None:
        """An item of a stream: a triple and its timestamp, or the start and end of an event.

        One with no timestamp happens when it comes, by the clock of this machine.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> for t in (3, 25):
        ...     live.push("s", ("<a>", "<p>", "<b>"), t)
        >>> live.rows(), live.watermark
        ([Row(o=<b>, [3, 10))], 25)
        """
        buffer = self._buffer(stream)
        buffer.append((triple, time_ns() // 1_000_000 if t is None else t, *times))
        self._pushed += 1
        if self._pushed >= BUFFER or self._on_row is not None:
            self._take_in()

    def push_many(self, stream: str, source: Any) -> None:
        """All items of a source, in the order in which they are given. A few are read later.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push_many("s", [("<a>", "<p>", "<b>", 3), ("<a>", "<p>", "<c>", 25)])
        >>> live.rows()
        [Row(o=<b>, [3, 10))]
        """
        name = str(stream)
        buffer = self._buffer(name)
        few = isinstance(source, list | tuple) and len(source) < BUFFER
        few = few and files_of(source) is None
        if few and self._on_row is None and not self._run.given.strict:
            buffer.extend(source)
            self._pushed += len(source)
            if self._pushed >= BUFFER:
                self._take_in()
            return
        self._flush()
        sorter = self._run.sorters[name]
        for chunk in self._run.reader(name, source):
            self._sort(name, chunk)
            if len(sorter) >= BUFFER or self._on_row is not None:
                self._round()

    def advance(self, t: int, stream: str | None = None) -> None:
        """Nothing older than `t` will come: on this stream, or on any.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", "<b>"), 3)
        >>> live.rows(), live.advance(11), live.rows()
        ([], None, [Row(o=<b>, [3, 10))])
        """
        self._open()
        if stream is not None:
            self._buffer(stream)
        self._flush()
        for name in self._buffers if stream is None else [str(stream)]:
            self._run.sorters[name].advance(t)
            self._clock.advance(name, t)
        self._round()

    def close(self) -> None:
        """The end of all streams: what the last windows hold is given out, and nothing is lost.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", "<b>"), 3)
        >>> live.close(), live.rows()
        (None, [Row(o=<b>, [3, 10))])
        """
        if self._closed:
            return
        self.advance(INFINITY)
        if not self._buffers:
            self._give(self._run.round({}, INFINITY))
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- out

    def rows(self) -> list[Any]:
        """What became known since the last call.

        Rows with their validity: "final", those that have ended, in canonical form, and "eager",
        all that holds, cut at the watermark. In order of start within a call. Where reports were
        asked for: pairs of an instant and the rows of that report.
        """
        batch, instants = self._taken()
        return self._shown(batch, instants)

    def to_arrow(self) -> pa.Table:
        """The same as an Arrow table, as `Result.to_arrow` gives it.

        There is a column per variable, and `start` and `end`; of a report's rows, where reports
        were asked for, `instant` tells which report they are in.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push("s", ("<a>", "<p>", '"1"'), 3)
        >>> live.close()
        >>> live.to_arrow().to_pydict()
        {'o': ['"1"'], 'start': [3], 'end': [10]}
        """
        batch, _ = self._taken()
        return self._shape.table([batch], reports=self._run.reports is not None)

    @property
    def late(self) -> list[Reject]:
        """What was not taken: late items, and what could not be read, with reasons.

        They are the last 1,000 of them; `stats` counts all.
        """
        if not self._closed:
            self._flush()
        for sorter in self._run.sorters.values():
            self._late += sorter.drain()
        return list(self._late)

    @property
    def watermark(self) -> int:
        """All that happened before this instant is known; -1 at first."""
        if not self._closed:
            self._take_in()
        return self._watermark

    def stats(self) -> Stats:
        """Rows in and out and state per operator, the watermark, how much was late or rejected.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> live = streamsparql.compile(text).open()
        >>> live.push_many("s", [("<a>", "<p>", "<b>", t) for t in (3, 25, 4)])
        >>> stats = live.stats()
        >>> stats.items, stats.late, stats.watermark, stats.state
        (2, 1, 25, 1)
        """
        if not self._closed:
            self._take_in()
        state = self._run.pipeline.state()
        write = with_prefixes(self._run.query.prefixes)
        boxes = {o: operator_box(o, write) for o in state}
        operators = tuple(
            OperatorStats(boxes[o].kind, boxes[o].title, counts.rows_in, counts.rows_out, state[o])
            for o, counts in self._run.pipeline.counts.items()
        )
        accounting = sum((sorter.accounting for sorter in self._run.sorters.values()), Accounting())
        terms = len(self._run.terms)
        return Stats(
            self._items, accounting.late, accounting.rejected, self._watermark, terms, operators
        )

    def __str__(self) -> str:
        from streamsparql.look.jupyter.live_view import as_text

        return as_text(self.stats(), self._closed)

    def __repr__(self) -> str:
        from streamsparql.look.jupyter.live_view import facts

        return f"<Live: {facts(self.stats(), self._closed)}>"

    def _repr_html_(self) -> str:
        """How a notebook shows the open query: how far it is, and what it holds."""
        from streamsparql.look.jupyter.live_view import shown

        return shown(self.stats(), self._closed)

    # -- inside

    def _open(self) -> None:
        if self._closed:
            raise EngineError("the query is closed")

    def _buffer(self, stream: str) -> list[Any]:
        self._open()
        found = self._buffers.get(str(stream))
        if found is None:
            names = ", ".join(f"<{name}>" for name in self._buffers) or "none"
            raise EngineError(f"the query does not read the stream <{stream}>; it reads: {names}")
        return found

    def _flush(self) -> None:
        """What was pushed item by item goes where it is put in order."""
        if not self._pushed:
            return
        self._pushed = 0
        for name, buffer in self._buffers.items():
            if not buffer:
                continue
            self._buffers[name] = []
            first = self._came[name] + 1
            self._came[name] += len(buffer)
            for chunk in self._run.reader(name, buffer, first):
                self._sort(name, chunk)

    def _sort(self, stream: str, chunk: Chunk) -> None:
        """What came is put in order, and what is late or bad is set apart."""
        sorter = self._run.sorters[stream]
        sorter.push(chunk)
        self._late += sorter.drain()
        self._clock.advance(stream, sorter.watermark)

    def _take_in(self) -> None:
        self._flush()
        self._round()

    def _round(self) -> None:
        watermark = self._clock.watermark()
        for name in self._clock.silent():  # what it says of before, if it speaks again, is late
            self._run.sorters[name].advance(watermark)
        batches = {name: sorter.release(watermark) for name, sorter in self._run.sorters.items()}
        came = sum(map(len, batches.values()))
        if not came and watermark == self._watermark:
            return
        self._items += came
        self._watermark = watermark
        self._give(self._run.round(batches, watermark))

    def _give(self, batch: Batch) -> None:
        """What became known goes to who listens, or is kept until somebody takes it out."""
        instants = [] if self._run.reports is None else self._run.reports.done()
        if self._on_row is not None:
            for each in self._shown(batch, instants):
                self._on_row(each)
            return
        if len(batch):
            self._run.parts.append(batch)
        self._instants += instants

    def _taken(self) -> tuple[Batch, list[int]]:
        """What became known since the last time, in order of start, and the reports' instants."""
        if not self._closed:
            self._take_in()
        parts, instants = self._run.parts, self._instants
        self._run.parts, self._instants = [], []
        return Batch.concat(parts, self._run.sink.names).ordered(), instants

    def _shown(self, batch: Batch, instants: list[int]) -> list[Any]:
        """Rows, or reports, as users get them."""
        if self._run.reports is not None:
            return list(by_instant(self._shape, batch, instants))
        return self._shape.rows(batch.ordered())
