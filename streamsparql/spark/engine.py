"""The Spark engine: a query over streams as a DataFrame.

What happens, in order:

1. The static graphs are read, or worked out by Spark where they are large (`statics`).
2. Each source is looked at: when do its items come (`streams`)?
3. Time is cut into slabs, or the streams are divided by a key (`cut`); where windows count
   elements, a job counts what comes before each slab (`ranks`).
4. One task per part runs the whole plan (`slab`). It reads its own time range of ordered files; what
   else there is comes to it through one shuffle (`exchange`).
5. Rows that touch a border are merged by a second, small shuffle of packed rows.

Steps 1 to 3 are done when the DataFrame is made; the rest when it is asked for rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from streamsparql.algebra.partition import counted, grid, keys, reaches
from streamsparql.algebra.window import ElementWindow
from streamsparql.engine import Given, Reporting
from streamsparql.errors import EngineError
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.terms import TermDictionary
from streamsparql.sources.chunk import Wanted
from streamsparql.sources.reading import Reading
from streamsparql.sources.tables import chunks_of_batches
from streamsparql.spark import slab
from streamsparql.spark.blocks import plain
from streamsparql.spark.cut import Cut, Part, Spread, Wishes, cut
from streamsparql.spark.exchange import (
    EXCHANGED,
    Need,
    blocks_of,
    by_terms,
    exchanged,
    items_of_chunks,
    sources_of,
)
from streamsparql.spark.files import Group, in_order
from streamsparql.spark.frames import TERMS, normal_items, pack_frame, patterns_over
from streamsparql.spark.ranks import COUNTED, Counting, Ranks, edges_of, windows_over
from streamsparql.spark.slab import MERGING, Task
from streamsparql.spark.streams import (
    CHUNK,
    Frame,
    Local,
    Ordered,
    Splits,
    Stream,
    items_of_split,
    look,
    without_data,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamsparql.query import Query

Batches = Iterable[pa.RecordBatch]


class SparkRun:
    """A query over streams, cut into parts; `frame()` is its result.

    What was decided and why is in `cut.reasons` and `sources`, for `explain` to show.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: Query,
        given: Given,
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
        least = min((stream.least for stream in self.streams), default=INFINITY)
        begin = (0 if least == INFINITY else least) if given.start is None else given.start
        self.spread = Spread.together([stream.spread for stream in self.streams])
        static = replace(
            without_data(given), graph=self.statics.graph, graphs=self.statics.graphs, start=begin
        )
        names = dict.fromkeys(given.streams)
        task = Task(
            uuid.uuid4().hex,
            query,
            replace(static, streams=names),
            report,
            ordered,
            statics=self.statics.results,
            seen=max((stream.seen for stream in self.streams), default=-1),
        )
        self.cut = self._cut(task, begin, given.end, slabs)
        self.task = replace(task, key=self.cut.key, parts=len(self.cut.parts))
        self._since, ranks = self._needs()
        self.task = replace(self.task, ranks=ranks)

    # -- decisions

    def _cut(self, task: Task, begin: int, end: int | None, slabs: int | None) -> Cut:
        its_reaches = reaches(self.plan)
        reach = max(its_reaches.values(), default=0)
        reach = min(reach + task.margin + task.slack, INFINITY)
        found = tuple(v.name for v in keys(self.plan))
        at_changes = task.report is not None and task.report.every is None
        if self.query.form != "select" or at_changes or counted(self.plan):
            found = ()
        known = tuple(name for name in found if self._places(name) is not None)
        wishes = Wishes(
            reach,
            grid(self.plan),
            known,
            begin,
            INFINITY if end is None else end,
            slabs,
            cores(self._spark),
        )
        return cut(self.spread, wishes)

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
        its_reaches = reaches(self.plan)
        since: dict[str, list[int]] = {}
        ranks: dict[int, dict[ElementWindow, int]] = {}
        for stream in self.streams:
            reach = its_reaches.get(stream.name, 1)
            back = [self.task.back(part) for part in self.cut.parts]
            first = [max(t - reach + 1, 0) if reach < INFINITY else 0 for t in back]
            numbers = [number for number, _ in windows_over(self.plan, stream.name)]
            if numbers and len(first) > 1:
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
        counting = partial(_count, self.task, stream.name, edges)
        match stream:
            case Local():
                batches: Any = counting(lambda _: iter([stream.items]), [])
                rows = pa.Table.from_batches(batches)
            case Frame():
                frame = stream.frame.mapInArrow(partial(counting, normal_items), COUNTED)
                rows = frame.toArrow()
            case Splits() | Ordered():
                shares = _shares(stream)
                reading = partial(_items_of_shares, stream.name, shares, self.task.given)
                frame = self._spark.range(0, len(shares), 1, len(shares))
                rows = frame.mapInArrow(partial(counting, reading), COUNTED).toArrow()
            case _:
                raise EngineError(f"cannot count the elements of {stream.name}")
        return Ranks.of(self.plan, edges, rows.to_pylist())

    # -- frames

    def frame(self) -> DataFrame:
        """The rows of the query: a column of texts per variable, and when they hold."""
        return self._merged(self._computed())

    def _computed(self) -> DataFrame:
        count = len(self.cut.parts)
        direct = {
            stream.name: (stream.groups, self._since[stream.name])
            for stream in self.streams
            if isinstance(stream, Ordered) and not self.cut.key
        }
        others = [stream for stream in self.streams if stream.name not in direct]
        schema = MERGING if self.task.merges else self._schema()
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
            if isinstance(stream, Frame) and not stream.sequenced and counted(self.plan)
        }
        names = [stream.name for stream in others]
        return arrived.mapInArrow(partial(computing, (names, sorts)), schema)

    def _blocks(self, number: int, stream: Stream) -> DataFrame:
        """The items of a stream that goes through the exchange, packed for the parts."""
        need = Need.of(self.cut.parts, self._since[stream.name])
        if self.cut.key:
            places = self._places(self.cut.key) or {}
            need = replace(need, key=places[stream.name], buckets=len(self.cut.parts))
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
                packing = partial(pack_frame, need, number, bool(self.cut.key))
                return frame.mapInArrow(packing, EXCHANGED)
            case Splits() | Ordered():
                shares = _shares(stream)
                reading = partial(_packed_shares, self.task, stream.name, shares, need, number)
                frame = self._spark.range(0, len(shares), 1, len(shares))
                return frame.mapInArrow(reading, EXCHANGED)
        raise EngineError(f"cannot exchange the items of {stream.name}")

    def _merged(self, computed: DataFrame) -> DataFrame:
        if not self.task.merges:
            return computed
        arrived = computed.repartitionById(len(self.cut.parts), computed["target"])
        return arrived.mapInArrow(partial(merge_parts, self.task), self._schema())

    def _schema(self) -> str:
        """The schema of the result, as Spark writes it."""
        hidden = slab.hidden_columns(self._hidden())
        kind = "boolean" if self.query.form == "ask" else "string"
        names = [*(_column(n, kind) for n in self.task.columns), *(_column(n) for n in hidden)]
        times = ["instant"] if self.report is not None else ["start", "end"]
        return ", ".join([*names, *(f"`{name}` long" for name in times)])

    def _hidden(self) -> int:
        """How many columns only order the rows."""
        if not self.task.ordered:
            return 0
        from streamsparql.engine import Execution

        ranking = Execution(self.query, Given()).ranking
        return 0 if ranking is None else len(set(ranking.columns) - set(self.task.columns))


def _column(name: str, kind: str = "string") -> str:
    return "`" + name.replace("`", "``") + f"` {kind}"


def cores(spark: SparkSession) -> int:
    """How many tasks run at a time, as far as Spark tells."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context: a range has as many parts by default
        from pyspark.sql import functions as F

        parts = spark.range(0, 10_000).select(F.spark_partition_id().alias("part"))
        return max(parts.distinct().count(), 1)


# -- In tasks -----------------------------------------------------------------------------------


def run_parts(
    task: Task,
    parts: Sequence[Part],
    direct: Mapping[str, tuple[Sequence[Group], Sequence[int]]],
    *rest: Any,
) -> Iterator[pa.RecordBatch]:
    """Computes the parts whose numbers come, or the one whose blocks come."""
    batches: Batches = rest[-1]
    if len(rest) == 1:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _given_out(task, parts[number], _ranges(task, direct, parts[number]))
        return
    names, sorts = rest[0]
    iterator = iter(batches)
    for batch in iterator:
        if batch.num_rows:
            part = parts[batch.column(0)[0].as_py()]
            streams = sources_of(_chained(batch, iterator), names, sorts)
            yield from _given_out(task, part, {**_ranges(task, direct, part), **streams})
            return


def _chained(first: pa.RecordBatch, rest: Batches) -> Batches:
    yield first
    yield from rest


def _ranges(
    task: Task, direct: Mapping[str, tuple[Sequence[Group], Sequence[int]]], part: Part
) -> dict[str, Any]:
    """The streams that a task reads itself, as sources."""
    found = {}
    for name, (groups, since) in direct.items():
        reading = Reading(f"<{name}>", TermDictionary())
        batches = in_order(
            groups, since[part.number], part.end, reading, CHUNK, task.given.max_delay
        )
        found[name] = _reader(batches)
    return found


def _reader(batches: Iterator[pa.RecordBatch]) -> Any:
    """Record batches as a source, however many there are."""
    first = next(batches, None)
    if first is None:
        return []
    return pa.RecordBatchReader.from_batches(first.schema, _chained(first, batches))


def _given_out(task: Task, part: Part, streams: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    ordered = {name: streams[name] for name in task.given.streams}
    for table in slab.together(slab.compute(task, part, ordered)):
        if task.merges:
            yield from slab.for_merging(task, part, table)
        else:
            yield from slab.finished(task, table)


def merge_parts(task: Task, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The rows that came to one target of the merge."""
    yield from slab.merged(task, batches)


def markers(batches: Batches) -> Iterator[pa.RecordBatch]:
    """A row per part, so that each part has one even where no item comes to it."""
    for batch in batches:
        count = batch.num_rows
        none = pa.nulls(count, pa.binary())
        yield exchanged(batch.column(0).cast(pa.int32()), [-1] * count, [-1] * count, none)


T = TypeVar("T")


def _shares(stream: Splits | Ordered) -> list[Any]:
    """The shares of a stream's files that one task each reads."""
    if isinstance(stream, Splits):
        return list(zip(stream.splits, stream.earlier, strict=True))
    seen = [-1]
    for group in stream.groups:
        seen.append(max(seen[-1], group.most))
    return list(zip(stream.groups, seen[:-1], strict=True))


def _items_of_shares(
    name: str,
    shares: Sequence[Any],
    given: Given,
    batches: Batches,
    wanted: Wanted | None = None,
    terms: TermDictionary | None = None,
) -> Iterator[pa.Table]:
    """The items of the shares whose numbers come."""
    terms = TermDictionary() if terms is None else terms
    for batch in batches:
        for number in batch.column(0).to_pylist():
            share, seen = shares[number]
            if isinstance(share, Group):
                yield from _items_of_group(name, share, seen, number, given, terms, wanted)
            else:
                yield from items_of_split(name, share, seen, number, given, terms, wanted)


def _items_of_group(
    name: str,
    group: Group,
    seen: int,
    number: int,
    given: Given,
    terms: TermDictionary,
    wanted: Wanted | None,
) -> Iterator[pa.Table]:
    from streamsparql.sources.disorder import Sorter

    reading = Reading(f"<{name}>", terms, "", wanted, given.strict)
    sorter = Sorter(f"<{name}>", given.max_delay, given.strict, None)
    sorter.seen = seen
    found = in_order([group], 0, INFINITY, reading, CHUNK, given.max_delay, seen)
    chunks = chunks_of_batches(found, reading, CHUNK, timed=True)
    yield from items_of_chunks(chunks, sorter, terms, number << 40)


def _packed_shares(
    task: Task, name: str, shares: Sequence[Any], need: Need, stream: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    ground = slab.ground(task)
    items = _items_of_shares(name, shares, task.given, batches, ground.wanted(name), ground.terms)
    yield from blocks_of(need, stream, items)


def _count(
    task: Task, stream: str, edges: Any, items: Any, batches: Any
) -> Iterator[pa.RecordBatch]:
    counting = Counting(task.query.optimized, stream, edges)
    for table in items(batches):
        counting.add(plain(table))
    yield from counting.rows()
