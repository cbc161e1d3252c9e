"""The streams of a run on Spark: the kind of each source, and how its items spread over time.

- `OrderedFiles`: Parquet files in order of time. Tasks read their own time range of them.
- `SplitFiles`: other files. Tasks read splits of them, and the items go through the exchange.
- `FrameInput`: a caller's DataFrame. Catalyst filters and projects it before the exchange.
- `MemoryInput`: items in the caller's memory, read by the driver.

`survey_stream` decides which of these a source is. For unordered files and for DataFrames this
takes a job, which finds the first timestamp (where the horizon begins), the last one, and a sample
of the others.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamsparql.algebra.event import reads_events
from streamsparql.algebra.plan import Plan
from streamsparql.errors import EngineError
from streamsparql.overriding import override
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.sources import read_stream
from streamsparql.sources.chunk import Rejected, Wanted
from streamsparql.sources.decoded import ChunkSource
from streamsparql.sources.disorder import Sorter
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.folders import check_distinct, files_of
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.reading import Reading
from streamsparql.sources.records import are_messages
from streamsparql.sources.stamps import RecognisedUnit
from streamsparql.spark.cut import TimeHistogram
from streamsparql.spark.exchange import EVENT_SCHEMA, ITEM_SCHEMA, items_of_chunks
from streamsparql.spark.file_slices import (
    CHUNK_ITEMS,
    RowGroup,
    Split,
    located,
    paths_of,
    row_groups_in_order,
    split_chunks,
    splits_of,
)
from streamsparql.spark.read_log import ReadLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamsparql.spark.entailment import KnownSchema

SAMPLE = 1_000
"""The number of timestamps of a split in the sample."""
SURVEY_SCHEMA = "split int, least long, seen long, rows long, sample binary"
"""The schema of a survey of splits, in Spark's DDL."""


@dataclass(frozen=True, eq=False)
class StreamInput(ABC):
    """A stream as input of a run on Spark, and the distribution of its items over time."""

    name: str
    histogram: TimeHistogram
    least: int
    """The least timestamp; INFINITY without items."""
    seen: int
    """The greatest timestamp; -1 without items."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The kind of source, and how it is read, for `explain`."""


@dataclass(frozen=True, eq=False)
class OrderedFiles(StreamInput):
    """Parquet files in order of time."""

    groups: tuple[RowGroup, ...]

    @property
    @override
    def summary(self) -> str:
        files = len({group.path for group in self.groups})
        return (
            f"{_count(files, 'Parquet file')} in order of time,"
            f" {_count(len(self.groups), 'row group')}: tasks read their own time range"
        )


@dataclass(frozen=True, eq=False)
class SplitFiles(StreamInput):
    """Files whose items are all read and exchanged."""

    splits: tuple[Split, ...]
    earlier: tuple[int, ...]
    """The greatest timestamp before each split in its file."""

    @property
    @override
    def summary(self) -> str:
        files = len({split.path for split in self.splits})
        return f"{_count(files, 'file')} read by {_count(len(self.splits), 'task')}, then exchanged"


@dataclass(frozen=True, eq=False)
class FrameInput(StreamInput):
    """A DataFrame with the columns of `ITEM_SCHEMA`, or of `EVENT_SCHEMA`."""

    frame: DataFrame
    whole: DataFrame
    """All rows, before any filter, with the columns of an input table."""
    sequenced: bool
    """Whether a column orders items of one timestamp."""
    predicates: tuple[str, ...] = ()
    """The predicates, if their column contains their numbers; empty if it contains strings."""
    unit: str = "ms"
    """The unit of timestamps that are numbers."""
    recognised: RecognisedUnit | None = None
    """The unit of the timestamps, if it was recognised by their size."""

    @property
    @override
    def summary(self) -> str:
        return "a DataFrame: filtered and projected by Spark, then exchanged"


@dataclass(frozen=True, eq=False)
class MemoryInput(StreamInput):
    """Items in memory."""

    items: pa.Table
    log: ReadLog
    reading: Reading

    @property
    def recognised(self) -> RecognisedUnit | None:
        """The unit of the timestamps, if it was recognised by their size."""
        return self.reading.stamps.recognised

    @property
    @override
    def summary(self) -> str:
        return f"{_count(self.items.num_rows, 'item')} in memory, sent to the tasks"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def survey_stream(
    spark: SparkSession,
    name: str,
    source: Any,
    run_input: RunInput,
    plan: Plan,
    schema: KnownSchema | None = None,
) -> StreamInput:
    """Return a source as a stream, with the distribution of its items; `plan` reads the stream.

    `schema` is that for entailment.
    """
    if is_frame(source):
        from streamsparql.spark.frames import survey_frame

        return survey_frame(name, source, plan, run_input, schema)
    mapped = source if isinstance(source, Mapped) else None
    if _is_files(source):
        table = source if mapped is None else mapped.source
        return survey_files(spark, name, check_distinct(paths_of(table)), run_input, mapped)
    return _survey_memory(name, source, run_input, reads_events(plan))


def is_frame(source: Any) -> bool:
    """Return whether a source is a DataFrame of Spark or of Spark Connect."""
    return type(source).__module__.startswith("pyspark.sql")


def _survey_memory(name: str, source: Any, run_input: RunInput, events: bool) -> MemoryInput:
    terms, sorter = TermDictionary(), run_input.sorter(name, events)
    reading = run_input.reading_of(name)
    chunks = read_stream(source, f"<{name}>", terms, strict=run_input.strict, reading=reading)
    tables = list(items_of_chunks(chunks, sorter, terms))
    schema = EVENT_SCHEMA if events else ITEM_SCHEMA
    items = pa.concat_tables(tables) if tables else schema.empty_table()
    histogram = TimeHistogram.of_samples([items.column("timestamp").to_numpy()], [items.num_rows])
    log = ReadLog(sorter.rejects, reading.cells, sorter.accounting)
    return MemoryInput(name, histogram, sorter.least, sorter.seen, items, log, reading)


def survey_files(
    spark: SparkSession,
    name: str,
    paths: Sequence[str],
    run_input: RunInput,
    mapped: Mapped | None = None,
) -> OrderedFiles | SplitFiles:
    """Return files as a stream; a job surveys those without statistics of their time ranges."""
    groups = None
    messages = run_input.reading_of(name).predicate is not None
    if mapped is None and not messages:
        reading = run_input.reading_of(name)
        groups = row_groups_in_order(paths, Encoder(f"<{name}>", TermDictionary(), reading=reading))
    if groups is not None:
        histogram = TimeHistogram.of_ranges([(g.least, g.most, g.rows) for g in groups])
        least = min((g.least for g in groups), default=INFINITY)
        seen = max((g.most for g in groups), default=-1)
        return OrderedFiles(name, histogram, least, seen, tuple(groups))
    splits = splits_of(paths, mapped, whole=messages)
    surveying = partial(survey_splits, name, tuple(splits), without_data(run_input))
    surveys = _run_survey(spark, surveying, len(splits))
    marks = [row["seen"] for row in surveys]
    samples = [np.frombuffer(row["sample"], np.int64) for row in surveys]
    return SplitFiles(
        name,
        TimeHistogram.of_samples(samples, [row["rows"] for row in surveys]),
        min((row["least"] for row in surveys), default=INFINITY),
        max(marks, default=-1),
        tuple(splits),
        tuple(_earlier(splits, marks)),
    )


def _earlier(splits: Sequence[Split], seen: Sequence[int]) -> Iterator[int]:
    """Yield the greatest timestamp before each split in its file, as lateness is per file."""
    mark = -1
    for k, split in enumerate(splits):
        if not k or splits[k - 1].path != split.path:
            mark = -1
        yield mark
        mark = max(mark, seen[k])


def next_split(splits: Sequence[Split], k: int) -> list[Split]:
    """Return the split after the k-th in the same file: a list of one split, or of none."""
    return [split for split in splits[k + 1 : k + 2] if split.path == splits[k].path]


def _run_survey(spark: SparkSession, surveying: Any, count: int) -> list[Mapping[str, Any]]:
    frame = spark.range(0, count, 1, max(count, 1)).mapInArrow(surveying, SURVEY_SCHEMA)
    rows: list[Mapping[str, Any]] = frame.toArrow().sort_by("split").to_pylist()
    return rows


def without_data(run_input: RunInput) -> RunInput:
    """Return the options of a run, which are sent to the tasks, without its data."""
    return RunInput(
        start=run_input.start,
        end=run_input.end,
        strict=run_input.strict,
        max_delay=run_input.max_delay,
        max_jump=run_input.max_jump,
        time_unit=run_input.time_unit,
        time_zone=run_input.time_zone,
        stamp_from=run_input.stamp_from,
        started=run_input.started,
        limits=run_input.limits,
    )


def with_time_units(run_input: RunInput) -> tuple[RunInput, list[tuple[str, RecognisedUnit]]]:
    """Return a run's input with the unit of each stream's timestamps, and the recognised units.

    Where a unit is not set, the first timestamp of the source decides, as in the embedded engine:
    tasks read a source from the middle. The unit of a DataFrame is decided when it is surveyed.
    """
    units: dict[str, str] = {}
    recognised: list[tuple[str, RecognisedUnit]] = []
    for name, source in run_input.streams.items():
        if isinstance(source, ChunkSource):
            raise EngineError(f"<{name}>: a live source is read by the embedded engine")
        stamps = run_input.reading_of(name).stamps
        if stamps.unit is None and _is_files(source):
            _decide_unit(name, source, run_input.reading_of(name, stamps))
            if stamps.recognised is not None:
                recognised.append((name, stamps.recognised))
            stamps.unit = stamps.unit or "ms"
        if stamps.unit is not None:
            units[name] = stamps.unit
    return replace(run_input, time_unit=units), recognised


def _decide_unit(name: str, source: Any, reading: Reading) -> None:
    """Read files up to the first timestamp."""
    mapped = source if isinstance(source, Mapped) else None
    paths = paths_of(source if mapped is None else mapped.source)
    encoder = Encoder(
        f"<{name}>", TermDictionary(), wanted=Wanted(frozenset()), reading=reading.probing()
    )
    for split in splits_of(paths, mapped, whole=reading.predicate is not None):
        for chunk in split_chunks(split, encoder, 1):
            if len(chunk.stamps):
                return


def _is_files(source: Any) -> bool:
    """Return whether a source is files, which tasks read."""
    table = source.source if isinstance(source, Mapped) else source
    if are_messages(table):
        return False
    return files_of(table) is not None or (isinstance(table, str | os.PathLike) and table != "-")


# -- In tasks -----------------------------------------------------------------------------------


def survey_splits(
    name: str, splits: Sequence[Split], run_input: RunInput, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Survey the timestamps of splits, without reading terms: yield rows of `SURVEY_SCHEMA`."""
    for batch in batches:
        for k in batch.column(0).to_pylist():
            reading = run_input.reading_of(name)
            nothing = Wanted(frozenset())
            encoder = Encoder(f"<{name}>", TermDictionary(), wanted=nothing, reading=reading)
            sorter = replace(run_input, strict=False).sorter(name)
            stamps: list[IntArray] = [np.empty(0, np.int64)]
            for chunk in split_chunks(splits[k], encoder, CHUNK_ITEMS):
                chunk.rejects.clear()
                sorter.push(chunk)
                stamps.append(chunk.stamps)
            settle_quarantine(sorter, next_split(splits, k), reading)
            rows = np.sort(np.concatenate(stamps))
            sample = rows[:: max(1, len(rows) // SAMPLE)]
            row = {
                "split": pa.array([k], pa.int32()),
                "least": pa.array([sorter.least], pa.int64()),
                "seen": [sorter.seen],
                "rows": [len(rows)],
                "sample": pa.array([sample.tobytes()], pa.binary()),
            }
            yield pa.RecordBatch.from_pydict(row)


def settle_quarantine(sorter: Sorter, following: Sequence[Split], reading: Reading) -> None:
    """Decide, by the first item of the next split, on items in quarantine at the end of a split."""
    nothing = Wanted(frozenset())
    stamps_only = Encoder(sorter.name, TermDictionary(), wanted=nothing, reading=reading.probing())
    for split in following if sorter.undecided else ():
        for chunk in split_chunks(split, stamps_only, 1):
            chunk.rejects.clear()
            if len(chunk.stamps):
                sorter.push(chunk)
                break
    sorter.advance(INFINITY)


def items_of_split(
    name: str,
    split: Split,
    following: Sequence[Split],
    earlier: int,
    number: int,
    run_input: RunInput,
    terms: TermDictionary,
    wanted: Wanted | None,
    log: ReadLog | None = None,
    events: bool = False,
) -> Iterator[pa.Table]:
    """Yield the accepted items of a split that `wanted` selects.

    `following` is the next split of the file, `earlier` the greatest timestamp before the split.
    What was read is noted in a log; the positions of rejects become those in the file.
    """
    reading = run_input.reading_of(name)
    encoder = Encoder(f"<{name}>", terms, "", wanted, run_input.strict, reading=reading)
    sorter = run_input.sorter(name, events)
    sorter.seen = earlier
    chunks = split_chunks(split, encoder, CHUNK_ITEMS)
    try:
        yield from items_of_chunks(
            chunks if log is None else log.counted(chunks),
            sorter,
            terms,
            number << 40,
            lambda: settle_quarantine(sorter, following, reading),
        )
    except Rejected as error:
        raise Rejected(located(error.reject, split)) from None
    if log is not None:
        log.reject([located(reject, split) for reject in sorter.rejects])
        log.cells.include(reading.cells)
