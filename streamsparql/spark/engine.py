"""The Spark engine: a query over streams as a DataFrame.

A run has five steps:

1. Small static graphs are read; joins over large ones are computed by Spark (`statics`).
2. Each source is surveyed for the timestamps of its items (`stream_inputs`).
3. Time is cut into slabs, or the streams are divided by a key (`cut`). Where windows count
   elements, a job counts the elements before each slab (`ranks`).
4. One task per part runs the whole plan (`slab`). It reads its own time range of ordered files;
   all other items reach it through one shuffle (`exchange`).
5. Rows that touch a border are merged by a second, small shuffle of packed rows.

Steps 1 to 3 are done when the `SparkRun` is created, the others when the DataFrame is evaluated.
`tasks` has the functions that run in the workers.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsparql.algebra.event import reads_events
from streamsparql.algebra.event_reach import event_reach, how_to_bound
from streamsparql.algebra.join import LeftJoin
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.partition import (
    common_jumps,
    element_windows,
    reads_stream,
    stream_reaches,
    windows,
)
from streamsparql.algebra.partition_keys import key_matchings, partition_keys
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.window import ElementWindow
from streamsparql.errors import EngineError, UnsupportedFeature
from streamsparql.limits import Limits
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.run.measured import Cutting
from streamsparql.run.reports import Reporting
from streamsparql.sources.chunk import Reject
from streamsparql.sources.stamps import RecognisedUnit
from streamsparql.spark import slab
from streamsparql.spark.cut import Cut, CutOptions, TaskPart, TimeHistogram, cut
from streamsparql.spark.evidence import (
    EvidenceQuery,
    EvidenceTables,
    evidence_of,
    first_of_keys,
    result_table,
)
from streamsparql.spark.exchange import (
    BLOCK_SCHEMA,
    Need,
    block_batch,
    pack_blocks,
    sort_by_terms,
)
from streamsparql.spark.file_slices import written_paths
from streamsparql.spark.frames import TERMS, normal_items, pack_frame, patterns_over
from streamsparql.spark.ranks import COUNT_SCHEMA, Ranks, counting_edges, element_windows_over
from streamsparql.spark.read_log import READ_LOG_SCHEMA, ReadLog
from streamsparql.spark.slab import MERGE_SCHEMA, Task
from streamsparql.spark.stream_inputs import (
    FrameInput,
    MemoryInput,
    OrderedFiles,
    SplitFiles,
    StreamInput,
    survey_stream,
    with_time_units,
    without_data,
)
from streamsparql.spark.tasks import (
    compute_parts,
    count_elements,
    items_of_splits,
    log_of_frame,
    log_of_splits,
    marked_splits,
    merge_parts,
    pack_splits,
    part_markers,
)
from streamsparql.text.instants import instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamsparql.algebra.event_reach import OptionalEvidence
    from streamsparql.compiled import CompiledQuery

STATIC_OPTIONAL = (
    "the left side of an OPTIONAL has static rows, which the first instant decides: all slabs would"
    " read it"
)


def check_limits(limits: Limits | None) -> None:
    """Raise an error for a limit that tasks cannot enforce: others apply to each task.

    >>> check_limits(Limits(rows=5, time=60))
    Traceback (most recent call last):
    streamsparql.errors.UnsupportedFeature: limits: time does not apply on Spark
    hint: leave it out, and cancel the job from outside: spark.sparkContext.cancelJobGroup(..)
    """
    if limits is not None and limits.time is not None:
        raise UnsupportedFeature(
            "limits: time does not apply on Spark",
            hint="leave it out, and cancel the job from outside:"
            " spark.sparkContext.cancelJobGroup(..)",
        )


class SparkRun:
    """A query over streams, cut into parts; `frame` returns its result.

    `described` returns the cut and the reasons for it, for `explain`.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: CompiledQuery,
        run_input: RunInput,
        *,
        report: Reporting | None = None,
        slabs: int | None = None,
        ordered: bool = False,
    ) -> None:
        from streamsparql.spark.statics import gather_statics

        check_limits(run_input.limits)
        self._spark, self.query, self.report = spark, query, report
        self.plan = query.optimized
        run_input, self._recognised = with_time_units(run_input)
        self._written = written_paths(
            [*run_input.streams.values(), *run_input.graphs.values(), run_input.graph]
        )
        """The files as the caller wrote them, by the paths that tasks read."""
        self.statics = gather_statics(spark, query, run_input)
        self.streams = [
            survey_stream(spark, name, source, run_input, self.plan, self.statics.schema)
            for name, source in run_input.streams.items()
        ]
        self.histogram = TimeHistogram.merge([stream.histogram for stream in self.streams])
        self.task = self._task(run_input, ordered)
        end = INFINITY if run_input.end is None else run_input.end
        self._reaches = self._stream_reaches()
        self.cut = self._cut(self.task.begin, end, slabs)
        self.task = replace(self.task, key=self.cut.key, parts=len(self.cut.parts))
        evidence = evidence_of(query)
        if evidence and (self.cut.key or len(self.cut.parts) < 2 or self._reach >= INFINITY):
            self._reaches = dict.fromkeys(self._reaches, INFINITY)  # parts read all of it
        self._since, ranks = self._needs()
        self.task = replace(self.task, ranks=ranks)
        if evidence and self._reach < INFINITY:
            self.task = replace(self.task, evidence=self._first_pass(evidence))

    def _task(self, run_input: RunInput, ordered: bool) -> Task:
        least = min((stream.least for stream in self.streams), default=INFINITY)
        begin = (0 if least == INFINITY else least) if run_input.start is None else run_input.start
        without_streams = replace(
            without_data(run_input),
            streams=dict.fromkeys(run_input.streams),
            graph=self.statics.graph,
            graphs=self.statics.graphs,
            start=None,
            end=None,
        )
        return Task(
            uuid.uuid4().hex,
            self.query,
            without_streams,
            begin,
            self.report,
            ordered,
            statics=self.statics.results,
            delay=self._delay_in_parts(run_input),
            seen=max((stream.seen for stream in self.streams), default=-1),
            first=begin if least == INFINITY else least,
        )

    def _delay_in_parts(self, run_input: RunInput) -> int:
        """Return by how much the items of a part may be out of order.

        Items that were exchanged are sorted; rows of ordered files are out of order within their
        row group.
        """
        if not run_input.sorts_all:
            return run_input.delay
        ordered = [s for s in self.streams if isinstance(s, OrderedFiles)]
        return max((g.most - g.least for s in ordered for g in s.groups), default=0)

    def recognised_units(self) -> dict[str, RecognisedUnit]:
        """Return the units of timestamps that were recognised by their size, by stream."""
        in_memory = [s for s in self.streams if isinstance(s, MemoryInput | FrameInput)]
        units = {s.name: s.recognised for s in in_memory if s.recognised is not None}
        return dict(self._recognised) | units

    # -- decisions

    def _stream_reaches(self) -> dict[str, int]:
        """Return how far back the items of each stream reach."""
        reaches = stream_reaches(self.plan)
        optional = any(isinstance(node, LeftJoin) for node in self.plan.operators())
        if optional and reads_events(self.plan) and self.statics.any:
            if slab.decides_static_rows(self.task):
                return dict.fromkeys(reaches, INFINITY)
        return reaches

    @property
    def _reach(self) -> int:
        return max(self._reaches.values(), default=0)

    def _cut(self, begin: int, end: int, slabs: int | None) -> Cut:
        if begin >= end:
            return Cut((), ("the horizon ends before the first item",))
        task = self.task
        options = CutOptions(
            min(self._reach + task.margin + task.slack, INFINITY),
            common_jumps(self.plan),
            self._keys(end),
            begin,
            end,
            slabs,
            cores(self._spark),
            task.reads_events,
        )
        result = cut(self.histogram, options)
        return replace(result, reasons=(*result.reasons, *self._event_reasons(result)))

    def _event_reasons(self, result: Cut) -> Iterator[str]:
        """Yield what decides how far events reach back, and how to bound it."""
        if not self.task.reads_events:
            return
        if self._reach >= INFINITY:
            yield how_to_bound(self.plan) or STATIC_OPTIONAL
        elif evidence_of(self.query) and result.key is None and len(result.parts) > 1:
            yield "a first pass finds what each slab must know of the time before it"

    def _keys(self, end: int) -> tuple[str, ...]:
        """Return the variables by whose value the streams can be divided."""
        at_changes = self.report is not None and self.report.every is None
        if self.query.form != "select" or at_changes or element_windows(self.plan):
            return ()
        schema = self.statics.schema
        keys = partition_keys(self.plan, *(() if schema is None else (schema.keys,)))
        names = tuple(v.name for v in keys if self._key_columns(v.name) is not None)
        return () if names and self._reports_depend_on_other_parts(end) else names

    def _reports_depend_on_other_parts(self, end: int) -> bool:
        """Return whether the last report of a part depends on the rows of other parts.

        Reports continue until the last change of the whole result. That may be the end of a row of
        another part, after the last item; it then decides how often a row without end is reported.
        """
        if self.report is None or self.report.kind != "rstream" or end < INFINITY:
            return False
        lengths = {window.reach for window in windows(self.plan)}
        bounded = min(lengths, default=INFINITY) < INFINITY
        return bounded and (INFINITY in lengths or slab.has_static_rows(self.task))

    def _key_columns(self, key: str) -> dict[str, tuple[str, ...]] | None:
        """Return, by stream, the columns that can contain a value of the key.

        None if anything other than a pattern reads a stream.
        """
        columns_of_streams = {}
        schema = self.statics.schema
        matchings = key_matchings(
            self.plan, Variable(key), *(() if schema is None else (schema.keys,))
        )
        if matchings is None:
            return None
        for stream in self.streams:
            if patterns_over(self.plan, stream.name) is None:
                return None
            columns: set[str] = set()
            for matching, variable in matchings:
                if reads_stream(matching, stream.name):
                    columns.update(self._columns_of(matching.pattern, variable))
            columns_of_streams[stream.name] = tuple(sorted(columns))
        return columns_of_streams

    def _columns_of(self, pattern: TriplePattern, key: Variable) -> tuple[str, ...]:
        """Return the columns of items that a pattern can bind the key to."""
        if self.statics.schema is not None:
            return self.statics.schema.columns(pattern, key) or ()
        return tuple(c for c, place in zip(TERMS, pattern, strict=True) if place == key)

    def _needs(self) -> tuple[dict[str, list[int]], dict[int, dict[ElementWindow, int]]]:
        """Return since when each part needs each stream, and the ranks of its first elements."""
        reaches = self._reaches
        since: dict[str, list[int]] = {}
        ranks: dict[int, dict[ElementWindow, int]] = {}
        for stream in self.streams:
            if stream.name not in reaches:  # evidence of another stream
                since[stream.name] = [part.end for part in self.cut.parts]
                continue
            reach = reaches[stream.name]
            back = [self.task.back(part) for part in self.cut.parts]
            first = [max(t - reach + 1, 0) if reach < INFINITY else 0 for t in back]
            numbers = [number for number, _ in element_windows_over(self.plan, stream.name)]
            if numbers and len(first) == 1:
                first = [0]
            elif numbers:
                counts = self._count_elements(stream)
                needed = [
                    min(f, counts.since(b, numbers)) for f, b in zip(first, back, strict=True)
                ]
                first = [counts.edge(t) for t in needed]
                for part, t in zip(self.cut.parts, first, strict=True):
                    here = counts.ranks(dict.fromkeys(numbers, t))
                    ranks.setdefault(part.number, {}).update(here)
            since[stream.name] = first
        return since, ranks

    def _count_elements(self, stream: StreamInput) -> Ranks:
        """Run the job that counts the elements of a stream's windows, by pieces of time."""
        edges = counting_edges(stream.histogram)
        counting = partial(count_elements, self.task, stream.name, edges)
        match stream:
            case MemoryInput():
                batches: Any = counting(lambda _: iter([stream.items]), [])
                rows = pa.Table.from_batches(batches)
            case FrameInput():
                frame = stream.frame.mapInArrow(
                    partial(counting, self._item_reader(stream)), COUNT_SCHEMA
                )
                rows = frame.toArrow()
            case SplitFiles() | OrderedFiles():
                splits = marked_splits(stream)
                reading = partial(items_of_splits, stream.name, splits, self.task.run_input)
                frame = self._numbers(len(splits))
                rows = frame.mapInArrow(partial(counting, reading), COUNT_SCHEMA).toArrow()
            case _:
                raise EngineError(f"cannot count the elements of {stream.name}")
        return Ranks.of(self.plan, edges, rows.to_pylist())

    def _first_pass(self, evidence: Sequence[OptionalEvidence]) -> EvidenceTables:
        """Run the jobs that find what each slab must know of the time before it.

        The evidence that an optional side needs itself is found before.
        """
        tables: dict[int, pa.Table] = {}
        places = {each.operator: number for number, each in enumerate(evidence)}
        pending = list(range(len(evidence)))
        while pending:
            number = pending[-1]
            below = (places[each.operator] for each in event_reach(evidence[number].rows).evidence)
            missing = [k for k in below if k not in tables]
            if missing:
                pending += missing
                continue
            pending.pop()
            if number not in tables:
                tables[number] = self._evidence_rows(number, tables)
        return tables

    def _evidence_rows(self, number: int, known: EvidenceTables) -> pa.Table:
        """Run the job that finds the evidence of one operator."""
        query = EvidenceQuery(self.query, number)
        run = copy(self)
        run.query, run.plan, run.report = query, query.optimized, None
        run._reaches = stream_reaches(run.plan)
        parts = self.cut.parts
        if parts[0].begin > self.task.first:
            parts = (TaskPart(0, 0, parts[0].begin), *parts)
        parts = tuple(part._replace(number=k) for k, part in enumerate(parts))
        run.cut = Cut(parts, ())
        run.task = replace(
            self.task,
            name=uuid.uuid4().hex,
            query=query,
            begin=parts[0].begin,
            report=None,
            ordered=False,
            parts=len(parts),
            ranks={},
            evidence=dict(known),
        )
        run._since, _ = run._needs()
        return first_of_keys([result_table(run._compute().toArrow())], query)

    def described(self) -> Cutting:
        """Return the cut of the run and the reasons for it, for `explain`."""
        parts = self.cut.parts
        slabs = tuple((f"{p.number + 1}/{len(parts)}", self._describe_part(p)) for p in parts)
        sources = tuple((stream.name, stream.summary) for stream in self.streams)
        return Cutting(sources, tuple(self.statics.reasons), tuple(self.cut.reasons), slabs)

    def _describe_part(self, part: TaskPart) -> str:
        if part.buckets > 1:
            return f"one bucket of the values of ?{self.cut.key}"
        items = round(self.histogram.between(part.begin, part.end))
        return f"{instant(part.begin)} to {instant(part.end)}, about {items:,} items"

    # -- frames

    def frame(self) -> DataFrame:
        """Return the query's rows: a string column per variable, and their validity or instant."""
        if not self.cut.parts:
            return self._spark.createDataFrame([], self._schema())
        return self._merge(self._compute())

    @property
    def exchanges(self) -> bool:
        """Whether items of some stream reach the parts through a shuffle."""
        return any(self.cut.key or not isinstance(stream, OrderedFiles) for stream in self.streams)

    def measure(self) -> list[pa.RecordBatch]:
        """Run the query; return the measurements of its tasks instead of rows (`analyze`)."""
        if not self.cut.parts:
            return []
        run = copy(self)
        run.task = replace(self.task, measured=True)
        numbers: list[pa.RecordBatch] = run._merge(run._compute()).toArrow().to_batches()
        return numbers

    def read_log(self) -> ReadLog:
        """Read the files and DataFrames of the streams once more; return what is noted of them."""
        log = ReadLog()
        for stream in self.streams:
            match stream:
                case MemoryInput():
                    log.include(stream.log)
                    continue
                case FrameInput():
                    logging = partial(log_of_frame, stream.name, stream.unit)
                    frame = stream.whole.mapInArrow(logging, READ_LOG_SCHEMA)
                case SplitFiles() | OrderedFiles():
                    splits = marked_splits(stream)
                    logging = partial(log_of_splits, self.task, stream.name, splits)
                    frame = self._numbers(len(splits)).mapInArrow(logging, READ_LOG_SCHEMA)
                case _:
                    raise EngineError(f"cannot list the rejects of {stream.name}")
            log.read(frame.toArrow())
        log.rejects = self._with_written_paths(log.rejects)
        return log

    def graph_rejects(self) -> list[Reject]:
        """Return the rejected triples of static graphs; large ones are read once more."""
        return self._with_written_paths(self.statics.rejects(self._spark))

    def _with_written_paths(self, rejects: Iterable[Reject]) -> list[Reject]:
        return [r._replace(source=self._written.get(r.source, r.source)) for r in rejects]

    def _compute(self) -> DataFrame:
        count = len(self.cut.parts)
        direct = {
            stream.name: (stream.groups, self._since[stream.name])
            for stream in self.streams
            if isinstance(stream, OrderedFiles) and not self.cut.key
        }
        others = [stream for stream in self.streams if stream.name not in direct]
        packed = self.task.merges or self.task.measured
        schema = MERGE_SCHEMA if packed else self._schema()
        computing = partial(compute_parts, self.task, self.cut.parts, direct)
        if not others:
            return self._spark.range(0, count, 1, count).mapInArrow(computing, schema)
        blocks = self._spark.range(0, count, 1, 1).mapInArrow(part_markers, BLOCK_SCHEMA)
        for number, stream in enumerate(others):
            blocks = blocks.unionAll(self._blocks(number, stream))
        arrived = blocks.repartitionById(count, blocks["target"]).sortWithinPartitions(
            "target", "first"
        )
        sorts = {
            stream.name: sort_by_terms
            for stream in others
            if isinstance(stream, FrameInput)
            and not stream.sequenced
            and element_windows(self.plan)
        }
        names = [stream.name for stream in others]
        return arrived.mapInArrow(partial(computing, (names, sorts)), schema)

    def _blocks(self, number: int, stream: StreamInput) -> DataFrame:
        """Return the items of a stream, packed into blocks for the parts that need them."""
        need = Need.of(self.cut.parts, self._since[stream.name])
        if self.cut.key:
            columns = self._key_columns(self.cut.key) or {}
            scope = f"s{list(self.task.run_input.streams).index(stream.name)}."
            count = len(self.cut.parts)
            need = replace(need, key=columns[stream.name], buckets=count, scope=scope)
        match stream:
            case MemoryInput():
                rows = list(pack_blocks(need, number, [stream.items] if len(stream.items) else []))
                if not rows:
                    rows = [block_batch([], [], [], [])]
                return self._spark.createDataFrame(pa.Table.from_batches(rows), BLOCK_SCHEMA)
            case FrameInput():
                frame = stream.frame.where(stream.frame["timestamp"] >= int(need.since.min()))
                last = int(need.until.max())
                if last < INFINITY:
                    frame = frame.where(stream.frame["timestamp"] < last)
                normal = self._item_reader(stream) if self.cut.key else None
                packing = partial(pack_frame, need, number, normal, stream.predicates)
                return frame.mapInArrow(packing, BLOCK_SCHEMA)
            case SplitFiles() | OrderedFiles():
                splits = marked_splits(stream)
                reading = partial(pack_splits, self.task, stream.name, splits, need, number)
                frame = self._numbers(len(splits))
                return frame.mapInArrow(reading, BLOCK_SCHEMA)
        raise EngineError(f"cannot exchange the items of {stream.name}")

    def _item_reader(self, stream: FrameInput) -> Any:
        """Return the function that reads rows of a DataFrame as items with normal terms."""
        strict = self.task.run_input.strict
        return partial(normal_items, f"<{stream.name}>", stream.predicates, strict)

    def _numbers(self, count: int) -> DataFrame:
        """Return a DataFrame of the numbers below `count`, each in its own partition."""
        return self._spark.range(0, count, 1, max(count, 1))

    def _merge(self, computed: DataFrame) -> DataFrame:
        if not self.task.merges:
            return computed
        arrived = computed.repartitionById(len(self.cut.parts), computed["target"])
        bare = replace(self.task.run_input, graph=None, graphs={})
        merging = partial(merge_parts, replace(self.task, run_input=bare, statics=(), ranks={}))
        return arrived.mapInArrow(merging, MERGE_SCHEMA if self.task.measured else self._schema())

    def _schema(self) -> str:
        """Return the schema of the result, in Spark's DDL."""
        hidden = slab.hidden_columns(self._hidden_count())
        kind = "boolean" if self.query.form == "ask" else "string"
        names = [*(_column(n, kind) for n in self.task.columns), *(_column(n) for n in hidden)]
        return ", ".join([*names, *(_column(name, "long") for name in self.task.times)])

    def _hidden_count(self) -> int:
        """Return the number of columns that only sort the rows."""
        ranking = self.query.ranking if self.task.ordered else None
        return 0 if ranking is None else len(ranking.columns)


def _column(name: str, kind: str = "string") -> str:
    return "`" + name.replace("`", "``") + f"` {kind}"


def cores(spark: SparkSession) -> int:
    """Return how many tasks run at a time, as far as Spark reports it."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context; a range has one partition per core by default
        from pyspark.sql import functions

        parts = spark.range(0, 10_000).select(functions.spark_partition_id().alias("part"))
        return max(parts.distinct().count(), 1)
