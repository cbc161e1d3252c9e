"""The embedded engine: one execution of a query, in this process.

An `Execution` is a plan over data: it reads the static graphs, lowers the plan over them, consumes
the items of the streams step by step, and emits the rows that are final. `Result` and `Replay` read
whole histories through one; `Live` keeps one open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from streamsparql.algebra import shape
from streamsparql.algebra.align import align
from streamsparql.algebra.event import returns_events
from streamsparql.algebra.functions import Run
from streamsparql.algebra.partition import positions_read
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.xsd.values import date_time_literal
from streamsparql.compiled import CompiledQuery
from streamsparql.connectors.live_stream import LiveStream
from streamsparql.limits import Meter, bytes_of_rows, naming
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.sort_keys import Ranking
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.lowering.lower import Catalog, Lowered, TimeSlab, lower
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.operators.event import EventLeftJoin
from streamsparql.physical.operators.event_sets import Detect
from streamsparql.physical.operators.filter import Filter
from streamsparql.physical.operators.group import Aggregation
from streamsparql.physical.operators.report import Clip, TemporalCoalesce
from streamsparql.physical.operators.shape import Extend, Projection, projected_to
from streamsparql.physical.pipeline import Observer, Pipeline, wanted_predicates
from streamsparql.physical.rule_closure import with_inner
from streamsparql.run.decoder import RowDecoder
from streamsparql.run.guard import Guard
from streamsparql.run.input import RunInput, graph_named_by_query
from streamsparql.run.noted import NotedPredicates
from streamsparql.run.notes import DataNotes
from streamsparql.run.reports import Reporting, reports_of, result_columns
from streamsparql.sources import (
    Accounting,
    Chunk,
    Mapped,
    Reject,
    Wanted,
    read_graph,
    read_stream,
)
from streamsparql.sources.clock import InputStep, interleave
from streamsparql.sources.failed_cells import CellLog, merged
from streamsparql.sources.reading import Reading

CUT_AFTER = 65_536
"""Open rows are cut after this number of items, which bounds the rows that wait for their end."""

FEW_ROWS, ROWS_PER_ITEM = 1024, 64
"""A cut of this many rows, or of this many per item since the last one, is cheap."""

NOTED_CHUNKS = 4
"""The chunks of a stream whose predicates are noted: enough to name one, and few."""

SLAB_CHUNK = 262_144
"""The chunk size, in items, in which a slab of a history is read."""


class Execution:
    """One execution: items are pushed through a pipeline, which emits final rows.

    An execution that `shares_terms_with` another of the same query over the same data uses its
    dictionary and static graphs. Rows that are `ordered` carry the columns that ORDER BY sorts by,
    and are canonical with them. With `prompt`, the values of groups are emitted as soon as they
    end, in any order of their starts. `slab` is the slab of time to compute; the streams then
    contain only the items that it needs.
    """

    def __init__(
        self,
        query: CompiledQuery,
        run_input: RunInput,
        *,
        report: Reporting | None = None,
        ordered: bool = True,
        eager: bool = False,
        prompt: bool = False,
        shares_terms_with: Execution | None = None,
        observer: Observer | None = None,
        measured: bool = False,
        slab: TimeSlab | None = None,
    ) -> None:
        self.query, self.input, self.eager = query, run_input, eager
        self._prompt = prompt
        self._large = {} if slab is None else {"chunk": SLAB_CHUNK}
        other = self._shares_terms_with = shares_terms_with
        self.terms: TermDictionary = TermDictionary() if other is None else other.terms
        self.guard: Guard = self._new_guard(prompt) if other is None else other.guard
        """The guard of the state of this execution and of those that share its terms."""
        if self.guard.meter is not None:
            self.guard.meter.restart()
        self.graph_rejects: list[Reject] = [] if other is None else [*other.graph_rejects]
        """Triples of static graphs that were rejected."""
        self.graph_cells: CellLog = CellLog() if other is None else other.graph_cells
        """The cells of mapped static graphs without a value."""
        self._lag = 0
        with self.guard:
            self.catalog: Catalog = self._catalog() if other is None else other.catalog
            plan = query.optimized
            if report is not None and report.every is not None and not returns_events(plan):
                plan = align(plan, report.every, report.origin, report.closing)
                self._lag, report = int(report.closing), report._replace(closing=False)
            lowered = self._lowered(plan, slab)
        self.columns = result_columns(query)
        ranking: Ranking | None = lowered.ranking if ordered else None
        self.decoder = RowDecoder(query.form, query.variables, self.terms, ranking)
        self.events = SINCE in lowered.operator.names
        """Whether the rows are events: each occurs once, and equal ones stay apart."""
        self._clip = self._clipped(lowered.operator)
        self.reports = None
        if report is not None:
            self.reports = reports_of(report, self._clip, query, self.events)
        self._delaying: Operator = self._clip
        """The operator whose watermark shows that rows are delayed."""
        whole = prompt and not eager and report is None and self._emits_whole_values()
        self.sink: Operator = self._clip
        if self.reports is not None:
            self.sink = self.reports
        elif not self.events:
            self.sink = TemporalCoalesce(self._clip, eager, whole)
        self.pipeline = Pipeline(self.sink, self.terms, observer, measured=measured)
        self._wanted = wanted_predicates(self.sink)
        self.noted: dict[str, NotedPredicates] = {}
        """The predicates of streams that can be read only once, as far as they are noted."""
        read = positions_read(query.optimized)
        self._places = {name: read.get(name, frozenset()) for name in query.streams}
        accesses = [o for o in self.pipeline.operators if isinstance(o, StreamAccess)]
        stamped = [(o.stream, o.stamp) for o in accesses if o.stamp is not None]
        self._stamps = {name: stamp for name, stamp in stamped if stamp != SINCE}
        self._from_start = [
            o for o in with_inner(self.pipeline.operators) if isinstance(o, Detect | EventLeftJoin)
        ]
        self.streams = tuple(dict.fromkeys([*query.streams, *(o.stream for o in accesses)]))
        self.sorters = {
            name: run_input.sorter(name, (name, SINCE) in stamped) for name in self.streams
        }
        self.readings = {name: run_input.reading_of(name) for name in self.streams}
        """How each stream is read, and its cells without a value."""
        self.retained: list[Batch] = []
        """Rows that were emitted and that a reader still refers to: their terms stay in use."""
        self._ahead = self.sink.nothing()
        """Rows of an open query that were emitted and hold at the watermark or later."""
        self._since_cut = self._rows_cut = 0
        self.delayed = False
        """Whether rows that hold delay others: a cut would emit these."""
        self._steps: Iterator[InputStep] | None = None
        self._tables_read = Counter[str]()
        """The number of mapped tables of each stream that were read."""
        missing = (s for s in self.streams if s not in run_input.streams)
        self._scopes = [*run_input.streams, *missing]

    def _new_guard(self, per_step: bool) -> Guard:
        if self.input.limits is None:
            return Guard()
        meter = Meter(self.input.limits, per_step)
        meter.terms = self.terms
        return Guard(meter)

    def _lowered(self, plan: Plan, slab: TimeSlab | None) -> Lowered:
        """Lower a plan over the static graphs; without a slab, for the horizon of the run."""
        start, end = self.input.start or 0, self.input.end
        if slab is None and (start, end) != (0, None):
            # operators above the windows see no changes outside
            slab = TimeSlab(start, INFINITY if end is None else end)
        now = Run(date_time_literal(self.input.started))
        return lower(plan, self.terms, now, self.catalog, slab)

    def _clipped(self, rows: Operator) -> Clip:
        """Return the columns of the result and those that sort it, within the horizon."""
        start, end = self.input.start, self.input.end
        since = (SINCE,) if self.events else ()
        return Clip(
            projected_to(rows, (*self.columns, *self.decoder.sort_columns, *since)),
            None if start is None else start + self._lag,
            INFINITY if end is None else end + self._lag,
        )

    def _emits_whole_values(self) -> bool:
        """Let an aggregation emit each value of a group when it ends, if the result has them."""
        values = _values_below(self._clip)
        if values is None:
            return False
        values.whole, self._delaying = True, values.inputs[0]
        return True

    # -- input

    def _catalog(self) -> Catalog:
        """Read and index the static graphs."""
        sources = {**self.input.graphs}
        sources.update((name, None) for name in self.query.graphs if name not in sources)
        named: dict[IRI, Batch] = {}
        for k, (name, source) in enumerate(sources.items()):
            quoted = source is not None
            source = source if quoted else graph_named_by_query(name, self.input)
            named[IRI(name)] = self._graph(source, f"<{name}>", f"g{k}.", quoted)
        default = Batch.empty(TRIPLE)
        if self.input.graph is not None:
            default = self._graph(self.input.graph, "the default graph", "d.")
        return Catalog(default, named)

    def _graph(self, source: Any, name: str, scope: str, quoted: bool = True) -> Batch:
        strict = self.input.strict
        reading = Reading(cells=self.graph_cells)
        batch, rejects = read_graph(
            source, name, self.terms, scope=scope, strict=strict, quoted=quoted, reading=reading
        )
        self.graph_rejects += rejects
        for ids in batch.columns.values():
            self.terms.keep(ids)
        return batch

    def reader(
        self,
        stream: str,
        source: Any,
        first: int = 1,
        failures: list[BaseException] | None = None,
    ) -> Iterator[Chunk]:
        """Read a source of a stream, without the items that the query cannot match.

        `first` is the position of the first item, if other items were read before. With `failures`
        a source that raises ends there, and its exception is added to them.
        """
        source = LiveStream.of(source)
        if isinstance(source, Mapped):
            source = source.after(self._tables_read[stream])
            self._tables_read[stream] += 1
        chunks = read_stream(
            source,
            f"<{stream}>",
            self.terms,
            scope=f"s{self._scopes.index(stream)}.",
            wanted=self.wanted(stream),
            strict=self.input.strict,
            first=first,
            failures=failures,
            reading=self.readings[stream],
            **self._large,
        )
        meter = self.guard.meter
        return chunks if meter is None else metered_chunks(chunks, meter, f"<{stream}>")

    def wanted(self, stream: str) -> Wanted | None:
        """Return the predicates and places of a stream that the query reads; None if all."""
        predicates = self._wanted.get(stream, frozenset())
        read = self._places.get(stream, frozenset("spo"))
        if self._noted_chunks != 0:
            noted = NotedPredicates(predicates, read, self._noted_chunks)
            return self.noted.setdefault(stream, noted)
        return None if predicates is None and len(read) == 3 else Wanted(predicates, read)

    @cached_property
    def _noted_chunks(self) -> int | None:
        """The number of chunks of each stream whose predicates are noted; None for all."""
        return 0 if self.input.repeatable else NOTED_CHUNKS

    # -- steps

    def input_steps(self) -> Iterator[InputStep]:
        """Read all streams together, to their end."""
        readers = {name: self.reader(name, self.input.streams[name]) for name in self.streams}
        return interleave(readers, self.sorters) if readers else iter([InputStep({}, INFINITY)])

    def replay(self) -> Iterator[Batch]:
        """Read all streams to their end; emit rows once they are final, and retain them."""
        while (rows := self.next_rows()) is not None:
            yield rows

    def next_rows(self) -> Batch | None:
        """Read the next items of the streams; emit and retain rows, or None at the end.

        After an exception between two calls the next call continues where the last one ended.
        """
        with self.guard:
            if self._steps is None:
                self._steps = self.input_steps()
            step = next(self._steps, None)
            if step is None:
                return None
            rows = self.step(*step)
            if len(rows):
                self.retained.append(rows)
            return rows

    def step(self, batches: Mapping[str, Batch], watermark: int, *, prompt: bool = False) -> Batch:
        """Consume items up to the common watermark of the streams; emit the rows that are final.

        A row that holds, such as a left row without a match, can delay rows that are final. If
        `prompt`, rows that hold are cut, so that no other row waits. A cut costs as much as there
        are rows that hold: if these are very many, it waits for some items, or for a watermark
        beyond them.
        """
        self._begin(watermark)
        self._since_cut += sum(map(len, batches.values()))
        cut = self.eager or self.reports is not None or self._since_cut >= CUT_AFTER
        cheap = self._rows_cut <= max(FEW_ROWS, ROWS_PER_ITEM * self._since_cut)
        prompt = prompt and (cheap or watermark > self.last_stamp)
        cut = cut or (prompt and self.delayed)
        rows = self._step(batches, watermark, cut)
        self.delayed = self.pipeline.watermark_of(self._delaying) < watermark
        if prompt and self.delayed and not cut and self._clip.begin is not None:
            rows = Batch.concat([rows, self._step({}, watermark, True)], self.sink.names)
        if self._prompt and self.reports is None:
            self._note_ahead(rows, watermark)
        if self.terms.due():
            self.pipeline.recycle([*rows.columns.values(), *self._ids()])
        return rows

    def _note_ahead(self, rows: Batch, watermark: int) -> None:
        """Retain emitted rows that hold at the watermark or later, for `holding`.

        The content of a window that moves in steps is known until its next step, so rows can be
        emitted ahead of the watermark; and without streams all rows are emitted at once.
        """
        batches = [batch for batch in (self._ahead, rows) if len(batch)]
        if batches:
            until = watermark if self.streams else -1
            ahead = [batch.where(batch.end > until) for batch in batches]
            self._ahead = Batch.concat(ahead, self.sink.names)

    def holding(self, t: int) -> Batch:
        """Return the rows that hold at `t` if no further item up to it arrives.

        Only rows are returned, not those of reports, and no row that ended before the watermark.
        The execution does not change: a copy of its pipeline consumes the items that are retained.
        """
        copy = Execution(
            self.query,
            self.input,
            ordered=False,
            eager=self.eager,
            prompt=self._prompt,
            shares_terms_with=self,
        )
        with self.guard:
            copy.pipeline.load(self.pipeline.save())
            pending = {name: sorter.pending(t) for name, sorter in self.sorters.items()}
            if copy._clip.begin is None:
                starts = [int(rows.start[0]) for rows in pending.values() if len(rows)]
                copy._clip.begin = min(starts, default=0)
            later = copy._step(pending, INFINITY, False)
            rows = Batch.concat([self._ahead, later], self.sink.names)
            return rows.where((rows.start <= t) & (t < rows.end)).ordered()

    def _step(self, batches: Mapping[str, Batch], watermark: int, cut: bool) -> Batch:
        counts = self.pipeline.counts[self._delaying]
        before = counts.rows_out
        if self.reports is not None:
            self.reports.last = max(self.reports.last, self.last_stamp + self._lag)
            self.reports.clock = min(watermark, INFINITY - self._lag) + self._lag
        if self.guard.meter is not None:
            self.guard.meter.waiting = self._bytes_outside()
        offered = {name: self._stamped(name, batch) for name, batch in batches.items()}
        rows, _ = self.pipeline.step(offered, dict.fromkeys(self.streams, watermark), cut)
        if cut:
            self._since_cut, self._rows_cut = 0, counts.rows_out - before
        return rows

    @property
    def last_stamp(self) -> int:
        """The greatest timestamp of all items; -1 before the first."""
        return max((sorter.seen for sorter in self.sorters.values()), default=-1)

    @property
    def first_stamp(self) -> int:
        """The least timestamp of all items; INFINITY before the first."""
        return min((sorter.least for sorter in self.sorters.values()), default=INFINITY)

    @property
    def begin(self) -> int | None:
        """The start of the horizon; None until it is known."""
        return None if self._clip.begin is None else self._clip.begin - self._lag

    @property
    def accounting(self) -> Accounting:
        """The counts of the items that were read so far, over all streams."""
        return sum((sorter.accounting for sorter in self.sorters.values()), Accounting())

    @property
    def cells(self) -> CellLog:
        """The cells of mapped tables without a value, over all streams and graphs."""
        return merged([self.graph_cells, *(each.cells for each in self.readings.values())])

    def notes(self) -> DataNotes:
        """Return what a reader of the results should know about the data."""
        recognised = {name: each.stamps.recognised for name, each in self.readings.items()}
        return DataNotes(
            {name: unit for name, unit in recognised.items() if unit is not None},
            self.cells,
            self.accounting,
            max((sorter.needed_delay for sorter in self.sorters.values()), default=0),
        )

    def rejects(self) -> list[Reject]:
        """Return the late and the rejected items, with reasons; they are not part of the result."""
        return [*self.graph_rejects, *(r for s in self.sorters.values() for r in s.rejects)]

    def drain(self) -> list[Reject]:
        """Return the rejects since the last call, and clear them; the counts are not reset."""
        rejects, self.graph_rejects = self.graph_rejects, []
        for sorter in self.sorters.values():
            rejects += sorter.drain()
        return rejects

    def _ids(self) -> Iterator[IntArray]:
        """Yield the term ids that are in use outside the pipeline."""
        for sorter in self.sorters.values():
            yield from sorter.retained_ids()
        for batch in (*self.retained, self._ahead):
            yield from batch.columns.values()
        for noted in self.noted.values():
            yield noted.ids
        if self._shares_terms_with is not None:
            yield from self._shares_terms_with._ids()
            for operator in self._shares_terms_with.pipeline.operators:
                yield from operator.retained_ids()

    def _bytes_outside(self) -> int:
        """Return the size of the rows outside the pipeline: static graphs, items, results."""
        graphs = [self.catalog.default, *self.catalog.named.values()]
        items = sum(map(len, self.sorters.values())) + sum(map(len, graphs))
        results = sum(map(len, self.retained))
        return bytes_of_rows(items, len(TRIPLE)) + bytes_of_rows(results, len(self.sink.names))

    def _begin(self, watermark: int) -> None:
        """Start the horizon at the first item of all streams, once no earlier item can arrive."""
        if self._clip.begin is None and self.first_stamp <= watermark:
            first = 0 if self.first_stamp == INFINITY else self.first_stamp
            self._clip.begin = first + self._lag
        for operator in self._from_start:
            if operator.begin is None:
                operator.begin = self._start_of(operator, watermark)
        if self.reports is not None and self.reports.begin is None:
            self.reports.begin = self._clip.begin

    def _start_of(self, operator: Detect | EventLeftJoin, watermark: int) -> int | None:
        """Return the instant of solutions without an occurrence; None if it is not known yet.

        They are decided at the first instant, of the horizon or of the input, and detected at the
        start of the horizon.
        """
        begin = self.begin
        if begin is None or isinstance(operator, Detect):
            return begin
        first = min(begin, self.first_stamp)
        return first if first <= watermark else None

    def _stamped(self, name: str, batch: Batch) -> Batch:
        """Add the column of timestamps if the query reads them."""
        column = self._stamps.get(name)
        if column is None:
            return batch
        return batch.with_columns({column: self.terms.of_integers(batch.start)})


def metered_chunks(chunks: Iterator[Chunk], meter: Meter, name: str) -> Iterator[Chunk]:
    """Yield chunks; check the time and the size of the terms after each."""
    with naming(lambda: f"reading {name}"):
        for chunk in chunks:
            meter.begin()
            yield chunk


def _values_below(rows: Operator) -> Aggregation | None:
    """Return the aggregation whose rows an operator returns, with all their columns, if any."""
    while isinstance(rows, Clip | Filter | Extend | Projection) and len(rows.inputs) == 1:
        (below,) = rows.inputs
        if not set(below.names) <= set(rows.names):
            return None
        rows = below
    return rows if isinstance(rows, Aggregation) else None


def ranking_of(query: CompiledQuery) -> Ranking | None:
    """Return the order of ORDER BY over the columns of the result, if its keys are among them.

    >>> import streamsparql
    >>> ranking_of(streamsparql.compile("SELECT ?x { ?x <p> ?y } ORDER BY DESC(?x)")).keys
    (('x', True),)
    """
    plan = query.logical
    while isinstance(plan, shape.Projection | shape.Distinct | shape.Reduced | shape.Slice):
        plan = plan.input
    if not isinstance(plan, shape.OrderBy):
        return None
    keys = [(key.name, down) for key, down in plan.keys if isinstance(key, Variable)]
    if len(keys) < len(plan.keys) or not {name for name, _ in keys} <= set(query.variables):
        return None
    ties = tuple(column.name for column in plan.columns if column.name in query.variables)
    return Ranking(tuple(keys), ties)
