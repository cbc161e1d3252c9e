"""The engine of a session: one dictionary, one catalog, one pipeline, for the plans of all queries.

A query that is registered is placed: it joins a plan that runs, or gets a new one.

- Queries with the same skeleton (algebra/sharing.py) and the same constants read one plain plan.
- From the second query that differs in constants on, they share a plan with a table, whose
  parameters are the constants in which they differ; other constants stay in the plan, where they
  filter early. A query that differs in further constants gets a new plan with more parameters.
- Parameters that a text names are always those of a table.

A query that joins a plan meets what the windows of the plan contain: it starts *warm*. A new plan
starts *cold*, with the items from the watermark on; or, if the session keeps a history, with these
items. What a plan can share with those that run is decided in physical/lowering/lower_many.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakSet

from streamsparql.algebra.align import align
from streamsparql.algebra.functions import Run
from streamsparql.algebra.parameter import parameters_in
from streamsparql.algebra.partition import positions_read, stream_reaches
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import rewrite
from streamsparql.algebra.sharing import bind, is_shareable
from streamsparql.algebra.terms import IRI, Term
from streamsparql.algebra.traversal import recursion_headroom
from streamsparql.algebra.xsd.values import date_time_literal
from streamsparql.connectors.live_stream import LiveStream
from streamsparql.errors import EngineError
from streamsparql.limits import bytes_of_rows
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.hidden import QUERY
from streamsparql.physical.lowering.lower import At, Catalog
from streamsparql.physical.lowering.lower_many import SharedLowering
from streamsparql.physical.lowering.lower_parameters import carrying, queries_as_outer_rows
from streamsparql.physical.operator import INFINITY, Operator, StepResult, inputs_first
from streamsparql.physical.operators.access import Clock, Stream, StreamAccess
from streamsparql.physical.operators.outputs import OutputStream, Since
from streamsparql.physical.operators.queries import QueryTable, SelectQueries
from streamsparql.physical.operators.report import Clip, Reports, TemporalCoalesce
from streamsparql.physical.operators.shape import projected_to
from streamsparql.physical.pipeline import Pipeline, SavedPlans, wanted_predicates
from streamsparql.run.engine import Engine
from streamsparql.run.execution import CUT_AFTER, FEW_ROWS, ROWS_PER_ITEM
from streamsparql.run.input import RunInput, graph_named_by_query
from streamsparql.run.outputs import FedStream, refuse_cycle
from streamsparql.run.plan_reader import PlanReader
from streamsparql.run.reports import report_operator
from streamsparql.run.session_streams import EVERYTHING, SessionStream
from streamsparql.run.shared_plan import Operators, Shape, SharedPlan
from streamsparql.sources import (
    Chunk,
    Mapped,
    Wanted,
)
from streamsparql.sources.clock import StreamClock


class SessionEngine(Engine):
    """The plans of a session, and the streams that they read."""

    def __init__(self, run_input: RunInput, history: int, idle: int | None) -> None:
        super().__init__(run_input, per_step=True)
        self.history = history
        self.known = True
        """Whether the static graphs are known; else plans are only explained."""
        self.pipeline = Pipeline(None, self.terms)
        self.streams: dict[str, SessionStream] = {}
        self._numbers = 0
        """The number of streams so far."""
        self.outputs: dict[str, FedStream] = {}
        """The streams that queries feed."""
        self.plans: dict[SharedPlan, None] = {}
        self.ended = WeakSet[PlanReader]()
        """The readers of queries that were removed, which may still have rows."""
        self.clock = StreamClock((), idle)
        self._families: dict[Shape, list[SharedPlan]] = {}
        self._run = Run(date_time_literal(run_input.started))
        with self.guard:
            self._default, self._named = self._read_graphs()
        self._catalogs: dict[tuple[str, ...], Catalog] = {}
        self._lowerings: dict[_LoweringKey, SharedLowering] = {}
        self._constants: dict[Operator, _Constants] = {}
        self._changed = False
        """Whether a plan or a query was added since the last step."""

    # -- static graphs

    def _read_graphs(self) -> tuple[Batch, dict[str, Batch]]:
        default = Batch.empty(TRIPLE)
        if self.input.graph is not None:
            default = self._graph(self.input.graph, "the default graph", "d.")
        named = {
            name: self._graph(source, f"<{name}>", f"g{k}.")
            for k, (name, source) in enumerate(self.input.graphs.items())
        }
        return default, named

    def read_named_graphs(self, names: Iterable[str]) -> tuple[str, ...]:
        """Read the graphs that a query names and the session does not have; return their names."""
        missing = tuple(name for name in names if name not in self.input.graphs)
        if not self.known:
            return missing
        for name in missing:
            if name not in self._named:
                source = graph_named_by_query(name, self.input)
                scope = f"g{len(self._named)}."
                self._named[name] = self._graph(source, f"<{name}>", scope, quoted=False)
        return missing

    def catalog(self, names: tuple[str, ...]) -> Catalog:
        """Return the graphs of the session, and those that a query names."""
        if names not in self._catalogs:
            shown = [*self.input.graphs, *names] if self.known else []
            named = {IRI(name): self._named[name] for name in shown}
            self._catalogs[names] = Catalog(self._default, named, self.known)
        return self._catalogs[names]

    # -- placing queries

    def place(
        self, shape: Shape, constants: Mapping[str, Term], named: Collection[str]
    ) -> SharedPlan:
        """Return the plan of a query: one that admits the query, or else a new one.

        `named` are the parameters that instances of the query have values of.
        """
        family = self._families.setdefault(shape, [])
        admitting = [p for p in family if p.admits(constants) and not self._has_ended(p)]
        plan = min(admitting, key=lambda plan: len(plan.parameters), default=None)
        if plan is None:
            lifted = self._lifted(family, constants, named)
            fixed = {name: term for name, term in constants.items() if name not in lifted}
            tabled = bool(lifted or family) and self.is_shareable(shape, fixed)
            plan = self._build(shape, fixed if tabled else constants, tabled)
            family.append(plan)
        return plan

    def _has_ended(self, plan: SharedPlan) -> bool:
        """Return whether a plan has emitted all of its rows, such as one over static graphs."""
        if plan.fresh or plan.reports is not None:
            return False
        return self.pipeline.watermark_of(plan.operators.clip) == INFINITY

    @staticmethod
    def _lifted(
        family: Sequence[SharedPlan], constants: Mapping[str, Term], named: Collection[str]
    ) -> set[str]:
        """Return the parameters of a new plan: the constants in which queries differ so far."""
        lifted = set(named)
        if family:
            nearest = max(family, key=lambda plan: len(plan.parameters))
            lifted.update(nearest.parameters)
            lifted.update(n for n, term in nearest.fixed.items() if constants.get(n) != term)
        return lifted

    @staticmethod
    def is_shareable(shape: Shape, fixed: Mapping[str, Term]) -> bool:
        """Return whether one plan with a table can compute queries of a shape."""
        for report in (shape.report, shape.fed):
            if report is not None and report.kind == "rstream" and report.every is None:
                return False  # each query has a report when its own rows change, even to none
        return bool(shape.streams) and is_shareable(bind(shape.skeleton, fixed))

    # -- plans

    def _build(self, shape: Shape, fixed: Mapping[str, Term], tabled: bool) -> SharedPlan:
        """Lower a plan, and add it to the pipeline."""
        plan, lag = self._rewritten(shape, fixed)
        lowered = self._lower(shape, plan, lag, tabled, {})
        needs = _needs(plan, lowered.operators.sink, shape.streams)
        since = {name: self._since(name, needs.get(name)) for name in shape.streams}
        later = {name: t for name, t in since.items() if t > self.mark(name)}
        if later:  # a source has skipped items that the plan needs
            self._forget(lowered, ())
            lowered = self._lower(shape, plan, lag, tabled, later)
        begin = self._begin(since)
        lowered.operators.clock.since = [since[name] for name in shape.streams]
        lowered.operators.clip.begin = None if begin is None else begin + lag
        shared = SharedPlan(shape, fixed, lowered.operators, since, begin)
        reads_outputs = not self.outputs.keys().isdisjoint(shape.streams)
        warm = self.history and (needs or reads_outputs)
        self._add(shared, lowered, self._warmed(shared) if warm else None)
        for name, need in needs.items():
            self.streams[name].needs.add(shared, need)
        return shared

    @staticmethod
    def _rewritten(shape: Shape, fixed: Mapping[str, Term]) -> tuple[Plan, int]:
        """Return a plan as it is lowered, and what is added to the time of its streams."""
        plan, lag = bind(shape.skeleton, fixed), 0
        if shape.optimize:
            plan = rewrite(plan).plan
        report = shape.report
        if report is not None and report.every is not None:
            plan = align(plan, report.every, report.origin, report.closing)
            lag = int(report.closing)
        return plan, lag

    def restore_plan(
        self,
        shape: Shape,
        constants: Mapping[str, Term],
        saved: Mapping[str, Any],
        places: SavedPlans,
    ) -> SharedPlan:
        """Lower a plan of a checkpoint, and put its operators in the places of the saved ones.

        A plan that was not running any more has no places: only its rows are read.
        """
        fixed = {name: constants[name] for name in saved["fixed"]}
        since, begin = saved["since"], saved["begin"]
        plan, lag = self._rewritten(shape, fixed)
        before, self._lowerings = self._lowerings, {}
        since_saved = saved["lowered_since"]
        lowered = self._lower(shape, plan, lag, saved["tabled"], since_saved)
        if saved["running"]:
            numbers = places.row_numbers(lowered.operators.sink, saved["root"])
            if any(own != number for own, number in numbers.items()):
                self.terms.release(lowered.kept)
                self._lowerings = {}
                self._lowering(shape, since_saved).row_numbers = numbers
                lowered = self._lower(shape, plan, lag, saved["tabled"], since_saved)
        self._lowerings = before
        if not saved["running"]:
            self.terms.release(lowered.kept)
            return SharedPlan(shape, fixed, lowered.operators, since, begin)
        others = self._fed_streams() | self._constants.keys()
        shared = places.place(lowered.operators.sink, saved["root"])
        if not since_saved:
            self._lowering(shape, {}).adopt(lowered.lowering, shared)
        operators = lowered.operators.with_shared(shared)
        restored = SharedPlan(shape, fixed, operators, since, begin)
        below = inputs_first(operators.sink, without_inputs=others)
        new = [each for each in below if each not in others]
        self._constants.update(dict.fromkeys(new, _Constants(len(new), lowered.kept)))
        self.plans[restored] = None
        self._families.setdefault(shape, []).append(restored)
        for name, need in _needs(plan, operators.sink, shape.streams).items():
            if name in self.streams:
                self.streams[name].needs.add(restored, need)
        return restored

    def _fed_streams(self) -> set[Operator]:
        """Return the operators of the streams that queries feed."""
        return {access for output in self.outputs.values() for access in output.accesses}

    def restore_output(self, name: str, query: str, plan: SharedPlan) -> FedStream:
        """Let a plan of a checkpoint feed a stream."""
        self.outputs[name] = FedStream(name, query, plan, self.terms, self.history)
        return self.outputs[name]

    def order(self, plans: Iterable[SharedPlan], outputs: Iterable[str]) -> None:
        """Put the plans, and the streams that they feed, in the order of a checkpoint."""
        self.plans = {plan: None for plan in plans if plan in self.plans}
        for plan in self.plans:
            family = self._families[plan.shape]
            family.remove(plan)
            family.append(plan)
        known = dict(self.outputs)
        self.outputs.clear()
        self.outputs.update((name, known[name]) for name in outputs)

    def restore_graphs(
        self, run_input: RunInput, default: Batch, named: Mapping[str, Batch]
    ) -> None:
        """Continue with the static graphs, and the value of NOW(), of a checkpoint."""
        self.input = run_input
        self._run = Run(date_time_literal(run_input.started))
        self._default, self._named = default, dict(named)

    @property
    def graphs(self) -> tuple[Batch, Mapping[str, Batch]]:
        """The default graph, and the named graphs that were read."""
        return self._default, self._named

    def _lower(
        self, shape: Shape, plan: Plan, lag: int, tabled: bool, since: Mapping[str, int]
    ) -> _LoweredPlan:
        """Lower a plan up to its sink, over the items that are stamped `since` these instants."""
        low = self._lowering(shape, since)
        with self.terms.recording() as kept, recursion_headroom():
            clock, table, at = Clock(*map(self.access, shape.streams)), None, At()
            if tabled:
                reach = max(stream_reaches(plan).values(), default=1)
                table = QueryTable(clock, sorted(parameters_in(plan), key=int), reach, lag)
                at = At(outer=queries_as_outer_rows(table, plan))
            rows, ranking = low.plan(plan, at)
        ranking = None if shape.report is None else ranking
        shown = (*shape.columns, *(() if ranking is None else ranking.columns))
        select = None
        if table is not None:
            rows = carrying(rows, at, self.terms)
            rows = select = SelectQueries(projected_to(rows, (*shown, QUERY)))
        end = INFINITY if self.input.end is None else self.input.end + lag
        clip = Clip(projected_to(rows, (*shown, QUERY) if tabled else shown), None, end, clock, lag)
        sink: Reports | TemporalCoalesce = TemporalCoalesce(clip)
        if shape.report is not None:
            columns = (*shape.columns, QUERY) if tabled else shape.columns
            report = shape.report._replace(closing=False)
            sink = report_operator(report, clip, columns, table)
        output = _fed(shape, clip, sink, table)
        operators = Operators(clock, table, select, clip, sink, output, shown, ranking)
        return _LoweredPlan(operators, low, kept)

    def _lowering(self, shape: Shape, since: Mapping[str, int]) -> SharedLowering:
        """Return the lowering of plans that read the same graphs, and streams since then."""
        key = shape.graphs, tuple(sorted(since.items()))
        low = self._lowerings.get(key)
        if low is None:

            def stream(name: str, stamp: str | None) -> Operator:
                access = self.access(name, stamp)
                return Since(access, since[name]) if name in since else access

            low = SharedLowering(self.terms, self._run, self.catalog(shape.graphs), stream)
            self._lowerings[key] = low
        return low

    def _warmed(self, shared: SharedPlan) -> Pipeline:
        """Return a pipeline that has read the history, for the new operators of a plan.

        Those that the plan shares with other plans have no state (lower_many.py).
        """
        warmed, fed = Pipeline(None, self.terms), dict[Operator, StepResult]()
        for access in streams_below(shared.operators.sink):
            stream, mark = access.stream, self.mark(access.stream)
            output = self.outputs.get(stream)
            kept = self.streams[stream].kept() if output is None else output.kept(mark)
            items = self._stamped(Batch.concat([*kept], TRIPLE), [access.stamp])
            fed[access] = items.project(access.names), mark
        warmed.add(shared.operators.sink, cut=True, fed=fed)
        rows, _ = warmed.step({}, {})
        assert not len(rows), "rows begin at the watermark"
        return warmed

    def _add(
        self, shared: SharedPlan, lowered: _LoweredPlan, warmed: Pipeline | None = None
    ) -> None:
        before = set(self.pipeline.operators)
        self.pipeline.add(shared.operators.sink, shared.reports is not None, warmed)
        new = [operator for operator in self.pipeline.operators if operator not in before]
        constants = _Constants(len(new), lowered.kept)
        self._constants.update(dict.fromkeys(new, constants))
        self.plans[shared] = None
        self._changed = True

    def start_of(self, plan: SharedPlan) -> int | None:
        """Return the instant from which on a query that joins a plan has rows."""
        clip = plan.operators.clip
        begin = None if clip.begin is None else clip.begin - clip.lag
        if plan.fresh or begin is None:
            return begin
        return max(begin, self.mark_of(plan.shape.streams))

    def add(
        self,
        plan: SharedPlan,
        reader: PlanReader,
        numbers: IntArray,
        values: Sequence[IntArray],
    ) -> int | None:
        """Add queries to the table of a plan; return their start."""
        start = self.start_of(plan)
        watermark = 0 if plan.fresh else self.mark_of(plan.shape.streams)
        since = watermark if start is None else start
        plan.add(reader, numbers, values, since + plan.operators.clip.lag)
        self._changed = True
        return start

    # -- streams of streams

    def check_output(self, query: str, name: str, streams: Iterable[str]) -> None:
        """Raise an error if a query cannot feed a stream."""
        known = self.outputs.get(name)
        if known is not None:
            raise EngineError(f"<{name}> is the output of {known.query} already")
        if name in self.streams and self.streams[name].touched:
            raise EngineError(
                f"<{name}> cannot be the output of {query}: items were pushed to it, or its time"
                " was advanced"
            )
        refuse_cycle(query, name, streams, self.outputs)

    def feed(self, query: str, plan: SharedPlan) -> None:
        """Let a plan feed the stream that its query is registered as."""
        name = plan.shape.output
        assert name is not None
        output = self.outputs[name] = FedStream(name, query, plan, self.terms, self.history)
        pushed = self.streams.get(name)
        if pushed is not None:  # queries that were registered before read it
            self.forget_streams([name])
            for stamp, access in pushed.accesses.items():
                self.pipeline.replace(access, output.access(stamp))
                self._forget_operators([access])
            self._lowerings.clear()
        self.pipeline.add(output.access(), cut=True)  # reports need the rows that hold

    def summaries(self) -> list[PlanSummary]:
        """Return the plans, for readers."""
        plans = []
        for plan in self.plans:
            names = tuple(reader.query.name for reader in plan.readers)
            output = plan.shape.output
            fed = None if output is None else self.outputs[output].access()
            plans.append(PlanSummary(names, output, plan.operators.sink, fed))
        return plans

    def remove(self, shared: SharedPlan) -> None:
        """Remove a plan that no query reads any more, with the state that no other plan reads."""
        del self.plans[shared]
        if shared.shape.output is not None:
            output = self.outputs.pop(shared.shape.output)
            self._forget_operators(self.pipeline.remove(output.access()))
        family = self._families[shared.shape]
        family.remove(shared)
        if not family:
            del self._families[shared.shape]
        for stream in self.streams.values():
            stream.needs.remove(shared)
        self._forget_operators(self.pipeline.remove(shared.operators.sink))

    def _forget_operators(self, operators: Collection[Operator]) -> None:
        """Forget operators that left the pipeline, with the constants that only they need."""
        for low in self._lowerings.values():
            low.forget(operators)
        for operator in operators:
            constants = self._constants.pop(operator, None)
            if constants is not None:
                constants.operators -= 1
                if not constants.operators:
                    self.terms.release(constants.kept)

    def _forget(self, lowered: _LoweredPlan, used: Collection[Operator]) -> None:
        """Forget operators that were lowered and are not used."""
        lowered.lowering.begin()
        self.terms.release(lowered.kept)

    # -- time

    def stream(self, name: str) -> SessionStream:
        """Return a stream that items are pushed to; a new one if no query has read it yet."""
        stream = self.streams.get(name)
        if stream is None:
            assert name not in self.outputs, "the output of a query is not pushed"
            stream = SessionStream(name, self._numbers, self.input, self.history)
            self._numbers += 1
            self.streams[name] = stream
            self.sorters[name], self.readings[name] = stream.sorter, stream.reading
            self.clock.add(name)
        return stream

    def forget_streams(self, names: Collection[str]) -> None:
        """Forget streams that no query has read."""
        for name in names:
            del self.streams[name], self.sorters[name], self.readings[name]
            self.clock.remove(name)

    def access(self, name: str, stamp: str | None = None) -> Stream:
        """Return the operator of the items of a stream."""
        if name in self.outputs:
            return self.outputs[name].access(stamp)
        accesses = self.stream(name).accesses
        if stamp not in accesses:
            accesses[stamp] = StreamAccess(name, stamp)
        return accesses[stamp]

    def mark(self, name: str) -> int:
        """Return the instant before which all items of a stream were processed."""
        if name in self.outputs:
            return max(self.pipeline.watermark_of(self.outputs[name].access()), 0)
        return self.streams[name].mark

    @property
    def watermarks(self) -> dict[str, int]:
        """The mark of each stream, also of those that queries feed."""
        return {name: self.mark(name) for name in (*self.streams, *self.outputs)}

    @property
    def rows_before(self) -> int:
        """The instant before which all rows that start were emitted."""
        sinks = (plan.operators.sink for plan in self.plans)
        return min(map(self.pipeline.watermark_of, sinks), default=INFINITY)

    def is_touched(self, name: str) -> bool:
        """Return whether a stream has had an item, or its time was advanced.

        The time of an output advances with that of all streams that its query reads.
        """
        if name in self.outputs:
            return all(map(self.is_touched, self.outputs[name].plan.shape.streams))
        return self.streams[name].touched

    def mark_of(self, streams: Iterable[str]) -> int:
        """Return the instant before which all items of some streams were processed."""
        return min(map(self.mark, streams), default=INFINITY)

    def _since(self, name: str, need: Wanted | None) -> int:
        """Return the stamp from which on a new plan has the items of a stream; 0 for all."""
        mark = self.mark(name)
        if not self.is_touched(name):
            return 0
        if self.history:
            return max(mark - self.history, 0)
        if name in self.outputs:
            return mark
        return max(mark, self.streams[name].needs.complete_from(need or EVERYTHING))

    def _begin(self, since: Mapping[str, int]) -> int | None:
        """Return the start of the horizon of a new plan; None for the first item."""
        instants = [] if self.input.start is None else [self.input.start]
        for name, stamp in since.items():
            if self.is_touched(name):
                instants.append(self.mark(name) if self.history else stamp)
        return max(instants, default=None)

    @override
    def reader(
        self,
        stream: str,
        source: Any,
        first: int = 1,
        failures: list[BaseException] | None = None,
    ) -> Iterator[Chunk]:
        known, source = self.streams[stream], LiveStream.of(source)
        if isinstance(source, Mapped):
            source = source.after(known.tables_read)
            known.tables_read += 1
        wanted = known.needs.all
        needs = None if wanted == EVERYTHING else wanted
        return self._chunks(stream, source, known.scope, needs, first=first, failures=failures)

    def step(self, prompt: Collection[SharedPlan] = (), reading: bool = False) -> None:
        """Process the items below the watermarks, if there are any.

        When rows are read, plans that were added since the last step make a step, too. For the
        plans in `prompt`, rows that hold are cut if they delay rows that are final, as
        `Execution.step` does.
        """
        silent = set(self.clock.silent())
        common = self.clock.watermark() if silent else 0
        offered, marks, news = {}, {}, self._changed and reading
        for name, stream in self.streams.items():
            if name in silent:  # items below it, if the stream resumes, are late
                stream.sorter.advance(common)
            before = stream.mark
            offered[name] = self._stamped(stream.release(), stream.accesses)
            marks[name] = stream.mark
            news = news or stream.mark > before or len(offered[name]) > 0
        if news:
            self._step(offered, marks)
        delayed = [plan for plan in prompt if plan in self.plans and self._is_delayed(plan)]
        if delayed:
            self._cut(delayed, marks)
        if self.terms.due():
            self.pipeline.recycle(self._ids())

    def _stamped(self, batch: Batch, columns: Iterable[str | None]) -> Batch:
        """Add the columns of timestamps if queries read them."""
        stamps = [column for column in columns if column is not None]
        if not stamps or not len(batch):
            return batch
        return batch.with_columns(dict.fromkeys(stamps, self.terms.of_integers(batch.start)))

    def _step(self, offered: Mapping[str, Batch], marks: Mapping[str, int]) -> None:
        self._changed = False
        self._lowerings = {key: low for key, low in self._lowerings.items() if not key[1]}
        for low in self._lowerings.values():
            low.begin()
        items = sum(map(len, offered.values()))
        cut = False
        for plan in self.plans:
            plan.since_cut += items
            cut = cut or plan.since_cut >= CUT_AFTER
        if self.guard.meter is not None:
            self.guard.meter.waiting = self._bytes_outside()
        self.pipeline.step(offered, marks, cut)
        for plan in self.plans:
            if cut:
                plan.since_cut = plan.rows_cut = 0
            mark = self.mark_of(plan.shape.streams)
            plan.emit(self.pipeline.output(plan.operators.sink), mark)
        for name, output in self.outputs.items():
            output.keep(self.pipeline.output(output.access()), self.mark(name))

    def _bytes_outside(self) -> int:
        """Return the size of the rows outside the pipeline: graphs, items, rows that wait."""
        triples = len(self._default) + sum(map(len, self._named.values()))
        triples += sum(stream.size() for stream in self.streams.values())
        size = bytes_of_rows(triples, len(TRIPLE))
        for plan in self.plans:
            rows = sum(len(emission.rows) for emission in plan.outbox.emissions.since(0))
            size += bytes_of_rows(rows, len(plan.names))
        return size

    def _is_delayed(self, plan: SharedPlan) -> bool:
        """Return whether rows of a plan that hold delay others, and a cut is cheap."""
        clip = plan.operators.clip
        if plan.reports is not None or clip.begin is None:
            return False
        watermark = self.mark_of(plan.shape.streams)
        cheap = plan.rows_cut <= max(FEW_ROWS, ROWS_PER_ITEM * plan.since_cut)
        return self.pipeline.watermark_of(clip) < watermark and (cheap or watermark == INFINITY)

    def _cut(self, plans: Collection[SharedPlan], marks: Mapping[str, int]) -> None:
        """Cut the rows of plans that hold, at the watermark."""
        before = {plan: self.pipeline.counts[plan.operators.clip].rows_out for plan in plans}
        for plan in plans:
            self.pipeline.cut_below(plan.operators.sink, True)
        self._step({}, marks)
        for plan in plans:
            self.pipeline.cut_below(plan.operators.sink, False)
            emitted = self.pipeline.counts[plan.operators.clip].rows_out
            plan.since_cut, plan.rows_cut = 0, emitted - before[plan]

    def end_of(self, plan: SharedPlan) -> int:
        """Emit the rows of a plan up to the watermark, at which queries end; return it."""
        if plan.reports is None and not plan.fresh:
            marks = {name: stream.mark for name, stream in self.streams.items()}
            self._cut([plan], marks)
        return self.mark_of(plan.shape.streams)

    def _ids(self) -> Iterator[IntArray]:
        """Yield the term ids that are in use outside the pipeline."""
        for stream in self.streams.values():
            yield from stream.retained_ids()
        for plan in self.plans:
            yield from plan.retained_ids()
        for reader in self.ended:
            yield from reader.retained_ids()
        for output in self.outputs.values():
            yield from output.retained_ids()


_LoweringKey = tuple[tuple[str, ...], tuple[tuple[str, int], ...]]
"""The graphs that a query names, and the instants from which on it has the items of streams."""


@dataclass
class _Constants:
    """The constants of operators that were lowered together: kept while one of them is used."""

    operators: int
    kept: list[int]


def _fed(
    shape: Shape, clip: Clip, sink: Reports | TemporalCoalesce, table: QueryTable | None
) -> Operator | None:
    """Return the operator of the reports that a plan feeds to a stream, if it does."""
    if shape.fed is None:
        return None
    reports: Operator = sink
    if shape.report is None:
        columns = shape.columns if table is None else (*shape.columns, QUERY)
        reports = report_operator(shape.fed, clip, columns, table)
    return reports if table is None else SelectQueries(reports)


class PlanSummary(NamedTuple):
    """A plan for readers: the names of its queries, the stream that it feeds, and its roots."""

    names: tuple[str, ...]
    output: str | None
    root: Operator
    fed: Operator | None
    """The operator of the stream that it feeds."""


class _LoweredPlan(NamedTuple):
    """The operators of a plan, and how they were lowered."""

    operators: Operators
    lowering: SharedLowering
    kept: list[int]


def streams_below(root: Operator) -> list[StreamAccess | OutputStream]:
    """Return the operators of streams that a plan reads, without those of plans below them."""
    accesses: dict[StreamAccess | OutputStream, None] = {}
    pending, seen = [root], set[Operator]()
    while pending:
        operator = pending.pop()
        if isinstance(operator, StreamAccess | OutputStream):
            accesses[operator] = None
        elif operator not in seen:
            seen.add(operator)
            pending += operator.inputs
    return [*accesses]


def _needs(plan: Plan, sink: Operator, streams: Collection[str]) -> dict[str, Wanted]:
    """Return what a plan needs of each stream that it reads and no query feeds."""
    places = positions_read(plan)
    return {
        name: Wanted(predicates, places.get(name, EVERYTHING.places))
        for name, predicates in wanted_predicates(sink).items()
        if name in streams
    }
