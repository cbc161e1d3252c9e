"""The Spark engine: a query over streams as a DataFrame.

What happens, in order:

1. The static graphs are read, or worked out by Spark where they are large (`statics`).
2. Each source is looked at: when do its items come (`streams`)?
3. Time is cut into slabs, or the streams are divided by a key (`cut`); where windows count
   elements, a job counts what comes before each slab (`ranks`).
4. One task per part runs the whole plan (`slab`). It reads its own time range of ordered files;
   what else there is comes to it through one shuffle (`exchange`).
5. Rows that touch a border are merged by a second, small shuffle of packed rows.

Steps 1 to 3 are done when the DataFrame is made; the rest when it is asked for rows. What runs in
the workers is in `tasks`.
"""

from __future__ import annotations

import uuid
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsparql.algebra.partition import (
    common_jumps,
    element_windows,
    partition_keys,
    stream_reaches,
    windows,
)
from streamsparql.algebra.window import ElementWindow
from streamsparql.errors import EngineError
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.run.measured import Cutting
from streamsparql.run.reports import Reporting
from streamsparql.sources.chunk import Reject
from streamsparql.spark import slab
from streamsparql.spark.cut import Cut, CutOptions, Part, TimeHistogram, cut
from streamsparql.spark.exchange import (
    EXCHANGED,
    Need,
    blocks_of,
    by_terms,
    exchanged,
)
from streamsparql.spark.frames import TERMS, normal_items, pack_frame, patterns_over
from streamsparql.spark.ranks import COUNTED, Ranks, edges_of, windows_over
from streamsparql.spark.slab import MERGING, Task
from streamsparql.spark.stream_inputs import (
    Frame,
    Local,
    Ordered,
    Splits,
    Stream,
    look,
    without_data,
)
from streamsparql.spark.tasks import (
    REJECTED,
    count_elements,
    items_of_shares,
    markers,
    merge_parts,
    packed_shares,
    rejects_of_rows,
    rejects_of_shares,
    run_parts,
    shares_of,
)
from streamsparql.text.instants import instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamsparql.compiled import CompiledQuery


class SparkRun:
    """A query over streams, cut into parts; `frame()` is its result.

    What was decided and why is in `cut.reasons` and `sources`, for `explain` to show.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: CompiledQuery,
        given: RunInput,
        *,
        report: Reporting | None = None,
        slabs: int | None = None,
        ordered: bool = False,
    ) -> None:
        from streamsparql.spark.statics import gathered_statics

        self._spark, self.query, self.report = spark, query, report
        self.plan = query.optimized
        self.statics = gathered_statics(spark, query, given)
        self.streams = [look(spark, n, s, given, self.plan) for n, s in given.streams.items()]
        self.spread = TimeHistogram.together([stream.spread for stream in self.streams])
        self.task = self._task(given, ordered)
        end = INFINITY if given.end is None else given.end
        self.cut = self._cut(self.task.begin, end, slabs)
        self.task = replace(self.task, key=self.cut.key, parts=len(self.cut.parts))
        self._since, ranks = self._needs()
        self.task = replace(self.task, ranks=ranks)

    def _task(self, given: RunInput, ordered: bool) -> Task:
        least = min((stream.least for stream in self.streams), default=INFINITY)
        begin = (0 if least == INFINITY else least) if given.start is None else given.start
        beside = replace(
            without_data(given),
            streams=dict.fromkeys(given.streams),
            graph=self.statics.graph,
            graphs=self.statics.graphs,
            start=None,
            end=None,
        )
        return Task(
            uuid.uuid4().hex,
            self.query,
            beside,
            begin,
            self.report,
            ordered,
            statics=self.statics.results,
            seen=max((stream.seen for stream in self.streams), default=-1),
        )

    # -- decisions

    def _cut(self, begin: int, end: int, slabs: int | None) -> Cut:
        if begin >= end:
            return Cut((), ("the horizon ends before the first item comes",))
        task = self.task
        its_reaches = stream_reaches(self.plan)
        longest = max(its_reaches.values(), default=0)
        options = CutOptions(
            min(longest + task.margin + task.slack, INFINITY),
            common_jumps(self.plan),
            self._keys(end),
            begin,
            end,
            slabs,
            cores(self._spark),
        )
        return cut(self.spread, options)

    def _keys(self, end: int) -> tuple[str, ...]:
        """The variables by whose value the streams can be divided."""
        at_changes = self.report is not None and self.report.every is None
        if self.query.form != "select" or at_changes or element_windows(self.plan):
            return ()
        found = tuple(v.name for v in partition_keys(self.plan) if self._places(v.name) is not None)
        return () if found and self._ends_elsewhere(end) else found

    def _ends_elsewhere(self, end: int) -> bool:
        """Whether a part by itself cannot tell how long its rows are reported.

        Reports go on until the last change of all. That may be the end of a row of another part,
        after the last item; which matters to a row that never ends.
        """
        if self.report is None or self.report.kind != "rstream" or end < INFINITY:
            return False
        lengths = {window.reach for window in windows(self.plan)}
        bounded = min(lengths, default=INFINITY) < INFINITY
        return bounded and (INFINITY in lengths or slab.stands(self.task))

    def _places(self, key: str) -> dict[str, tuple[str, ...]] | None:
        """By stream, the columns of its items that can hold a value of the key."""
        found = {}
        for stream in self.streams:
            patterns = patterns_over(self.plan, stream.name)
            if patterns is None:
                return None
            its = {
                column
                for pattern in patterns
                for column, place in zip(TERMS, pattern, strict=True)
                if getattr(place, "name", None) == key
            }
            found[stream.name] = tuple(sorted(its))
        return found

    def _needs(self) -> tuple[dict[str, list[int]], dict[int, dict[ElementWindow, int]]]:
        """From when on each part needs each stream, and the ranks of what comes first."""
        its_reaches = stream_reaches(self.plan)
        since: dict[str, list[int]] = {}
        ranks: dict[int, dict[ElementWindow, int]] = {}
        for stream in self.streams:
            its_reach = its_reaches.get(stream.name, 1)
            back = [self.task.back(part) for part in self.cut.parts]
            first = [max(t - its_reach + 1, 0) if its_reach < INFINITY else 0 for t in back]
            numbers = [number for number, _ in windows_over(self.plan, stream.name)]
            if numbers and len(first) == 1:
                first = [0]
            elif numbers:
                known = self._counted(stream)
                wanted = [min(f, known.since(b, numbers)) for f, b in zip(first, back, strict=True)]
                first = [known.edge(t) for t in wanted]
                for part, t in zip(self.cut.parts, first, strict=True):
                    here = known.ranks(dict.fromkeys(numbers, t))
                    ranks.setdefault(part.number, {}).update(here)
            since[stream.name] = first
        return since, ranks

    def _counted(self, stream: Stream) -> Ranks:
        edges = edges_of(stream.spread)
        counting = partial(count_elements, self.task, stream.name, edges)
        match stream:
            case Local():
                batches: Any = counting(lambda _: iter([stream.items]), [])
                rows = pa.Table.from_batches(batches)
            case Frame():
                frame = stream.frame.mapInArrow(partial(counting, self._normal(stream)), COUNTED)
                rows = frame.toArrow()
            case Splits() | Ordered():
                shares = shares_of(stream)
                reading = partial(items_of_shares, stream.name, shares, self.task.given)
                frame = self._numbers(len(shares))
                rows = frame.mapInArrow(partial(counting, reading), COUNTED).toArrow()
            case _:
                raise EngineError(f"cannot count the elements of {stream.name}")
        return Ranks.of(self.plan, edges, rows.to_pylist())

    def described(self) -> Cutting:
        """Return how the run is cut, and why, for `explain`."""
        parts = self.cut.parts
        slabs = tuple((f"{p.number + 1}/{len(parts)}", self._described_part(p)) for p in parts)
        sources = tuple((stream.name, stream.what) for stream in self.streams)
        return Cutting(sources, tuple(self.statics.reasons), tuple(self.cut.reasons), slabs)

    def _described_part(self, part: Part) -> str:
        if part.buckets > 1:
            return f"a share of the values of ?{self.cut.key}"
        items = round(self.spread.between(part.begin, part.end))
        return f"{instant(part.begin)} to {instant(part.end)}, about {items:,} items"

    # -- frames

    def frame(self) -> DataFrame:
        """The rows of the query: a column of texts per variable, and when they hold."""
        if not self.cut.parts:
            return self._spark.createDataFrame([], self._schema())
        return self._merged(self._computed())

    @property
    def exchanges(self) -> bool:
        """Whether items come to the parts through a shuffle, and not from files alone."""
        return any(self.cut.key or not isinstance(stream, Ordered) for stream in self.streams)

    def watched(self) -> list[pa.RecordBatch]:
        """Runs it for what its tasks measure; no row of the result comes here (`measured`)."""
        if not self.cut.parts:
            return []
        run = copy(self)
        run.task = replace(self.task, watched=True)
        found: list[pa.RecordBatch] = run._merged(run._computed()).toArrow().to_batches()
        return found

    def rejects(self) -> list[Reject]:
        """What is not part of the result: late items, and what could not be read, with reasons."""
        found = self.statics.rejects(self._spark)
        for stream in self.streams:
            match stream:
                case Local():
                    found += stream.rejects
                    continue
                case Frame():
                    frame = stream.whole.mapInArrow(partial(rejects_of_rows, stream.name), REJECTED)
                case Splits() | Ordered():
                    shares = shares_of(stream)
                    reading = partial(rejects_of_shares, self.task, stream.name, shares)
                    numbers = self._numbers(len(shares))
                    frame = numbers.mapInArrow(reading, REJECTED)
                case _:
                    raise EngineError(f"cannot tell the rejects of {stream.name}")
            found += (Reject(**row) for row in frame.toArrow().to_pylist())
        return found

    def _computed(self) -> DataFrame:
        count = len(self.cut.parts)
        direct = {
            stream.name: (stream.groups, self._since[stream.name])
            for stream in self.streams
            if isinstance(stream, Ordered) and not self.cut.key
        }
        others = [stream for stream in self.streams if stream.name not in direct]
        packed = self.task.merges or self.task.watched
        schema = MERGING if packed else self._schema()
        computing = partial(run_parts, self.task, self.cut.parts, direct)
        if not others:
            return self._spark.range(0, count, 1, count).mapInArrow(computing, schema)
        blocks = self._spark.range(0, count, 1, 1).mapInArrow(markers, EXCHANGED)
        for number, stream in enumerate(others):
            blocks = blocks.unionAll(self._blocks(number, stream))
        arrived = blocks.repartitionById(count, blocks["target"]).sortWithinPartitions(
            "target", "first"
        )
        sorts = {
            stream.name: by_terms
            for stream in others
            if isinstance(stream, Frame) and not stream.sequenced and element_windows(self.plan)
        }
        names = [stream.name for stream in others]
        return arrived.mapInArrow(partial(computing, (names, sorts)), schema)

    def _blocks(self, number: int, stream: Stream) -> DataFrame:
        """The items of a stream that goes through the exchange, packed for the parts."""
        need = Need.of(self.cut.parts, self._since[stream.name])
        if self.cut.key:
            places = self._places(self.cut.key) or {}
            scope = f"s{list(self.task.given.streams).index(stream.name)}."
            count = len(self.cut.parts)
            need = replace(need, key=places[stream.name], buckets=count, scope=scope)
        match stream:
            case Local():
                rows = list(blocks_of(need, number, [stream.items] if len(stream.items) else []))
                if not rows:
                    rows = [exchanged([], [], [], [])]
                return self._spark.createDataFrame(pa.Table.from_batches(rows), EXCHANGED)
            case Frame():
                frame = stream.frame.where(stream.frame["timestamp"] >= int(need.since.min()))
                last = int(need.until.max())
                if last < INFINITY:
                    frame = frame.where(stream.frame["timestamp"] < last)
                normal = self._normal(stream) if self.cut.key else None
                packing = partial(pack_frame, need, number, normal, stream.predicates)
                return frame.mapInArrow(packing, EXCHANGED)
            case Splits() | Ordered():
                shares = shares_of(stream)
                reading = partial(packed_shares, self.task, stream.name, shares, need, number)
                frame = self._numbers(len(shares))
                return frame.mapInArrow(reading, EXCHANGED)
        raise EngineError(f"cannot exchange the items of {stream.name}")

    def _normal(self, stream: Frame) -> Any:
        """What brings the rows of a DataFrame to normal form."""
        strict = self.task.given.strict
        return partial(normal_items, f"<{stream.name}>", stream.predicates, strict)

    def _numbers(self, count: int) -> DataFrame:
        """So many numbers, each in a partition of its own."""
        return self._spark.range(0, count, 1, max(count, 1))

    def _merged(self, computed: DataFrame) -> DataFrame:
        if not self.task.merges:
            return computed
        arrived = computed.repartitionById(len(self.cut.parts), computed["target"])
        bare = replace(self.task.given, graph=None, graphs={})
        merging = partial(merge_parts, replace(self.task, given=bare, statics=(), ranks={}))
        return arrived.mapInArrow(merging, MERGING if self.task.watched else self._schema())

    def _schema(self) -> str:
        """The schema of the result, as Spark writes it."""
        hidden = slab.hidden_columns(self._hidden())
        kind = "boolean" if self.query.form == "ask" else "string"
        names = [*(_column(n, kind) for n in self.task.columns), *(_column(n) for n in hidden)]
        return ", ".join([*names, *(_column(name, "long") for name in self.task.times)])

    def _hidden(self) -> int:
        """Return the number of columns that only order the rows."""
        ranking = self.query.ranking if self.task.ordered else None
        return 0 if ranking is None else len(ranking.columns)


def _column(name: str, kind: str = "string") -> str:
    return "`" + name.replace("`", "``") + f"` {kind}"


def cores(spark: SparkSession) -> int:
    """How many tasks run at a time, as far as Spark tells."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context: a range has as many parts by default
        from pyspark.sql import functions

        parts = spark.range(0, 10_000).select(functions.spark_partition_id().alias("part"))
        return max(parts.distinct().count(), 1)
