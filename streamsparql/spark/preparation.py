"""Preparation: a history sorted by time, once, for all queries over it.

It writes Parquet files whose rows are in order of time, within a file and from one file to the
next, with terms in normal form. Row groups are small enough for tasks to read only those of their
time range, so that queries over prepared files need no exchange.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsparql.errors import SourceError
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.run.notes import DataNotes
from streamsparql.run.time_arguments import duration_argument
from streamsparql.sources.chunk import Accounting, Reject
from streamsparql.sources.folders import check_distinct
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.stamps import RecognisedUnit
from streamsparql.sources.tables import TERMS_KEY
from streamsparql.spark.blocks import without_dictionaries
from streamsparql.spark.cut import CutOptions, cut
from streamsparql.spark.engine import cores
from streamsparql.spark.exchange import BLOCK_SCHEMA, BlockReader, Need, pack_blocks
from streamsparql.spark.failures import raising_task_errors
from streamsparql.spark.file_slices import paths_of
from streamsparql.spark.frames import TERMS
from streamsparql.spark.read_log import READ_LOG_SCHEMA, ReadLog
from streamsparql.spark.stream_inputs import OrderedFiles, SplitFiles, survey_files, with_time_units
from streamsparql.spark.tasks import (
    MarkedSplit,
    items_of_splits,
    marked_splits,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamsparql.run.time_arguments import Duration

ROW_GROUP = 4 << 20
"""The size of a row group, in bytes: some hundred thousand rows, of which a task may need few."""
PREPARED_SCHEMA = "subject string, predicate string, object string, timestamp long"
"""The schema of prepared files, in Spark's DDL."""
_NAME = "prepared"


@dataclass(frozen=True)
class PreparedFiles:
    """The folder that a preparation wrote, and the items that it rejected."""

    path: str
    parts: int
    """The number of files."""
    rejects: tuple[Reject, ...]
    """Rejected items, with reasons; with a `max_delay`, late items, too."""
    notes: DataNotes
    """The unit of timestamps, if it was recognised, and the cells of mapped tables that have no
    value."""


def prepare(
    spark: SparkSession,
    sources: Any,
    path: str | os.PathLike[str],
    *,
    max_delay: Duration | None = None,
    time_unit: str | None = None,
    time_zone: str | None = None,
    stamp_from: str | None = None,
    strict: bool = False,
    overwrite: bool = False,
) -> PreparedFiles:
    """Write the items of files into the folder `path`, in order of time.

    `sources` is a file, a folder, a pattern, or a list of these, perhaps `mapped`: one stream, its
    items in any order. With `max_delay`, later items are rejected, as a run over the files rejects
    them; without it no item is late. `time_unit`, `time_zone` and `stamp_from` are those of `run`;
    the files that are written have milliseconds. With `strict` a reject is an error. A folder that
    is not empty is an error, unless `overwrite` is set.
    """
    delay = None if max_delay is None else duration_argument("max_delay", max_delay)
    folder = os.fspath(path)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise SourceError(f"{folder}: not a folder; prepared files are written into a folder")
    if not overwrite and os.path.exists(folder) and os.listdir(folder):
        raise SourceError(f"{folder}: the folder is not empty; use overwrite=True to replace it")
    mapping = sources if isinstance(sources, Mapped) else None
    files = check_distinct(paths_of(sources if mapping is None else mapping.source))
    most, max_jump = (INFINITY // 2, None) if delay is None else (delay, RunInput().max_jump)
    run_input = RunInput(
        {_NAME: sources},
        strict=strict,
        max_delay=most,
        max_jump=max_jump,
        time_unit=time_unit,
        time_zone=time_zone,
        stamp_from=stamp_from,
    )
    run_input, units = with_time_units(run_input)
    with raising_task_errors():
        stream = survey_files(spark, _NAME, files, run_input, mapping)
        prepared = _prepared(spark, stream, folder, run_input, dict(units))
    prepared.notes.issue()
    return prepared


def _prepared(
    spark: SparkSession,
    stream: OrderedFiles | SplitFiles,
    folder: str,
    run_input: RunInput,
    units: Mapping[str, RecognisedUnit],
) -> PreparedFiles:
    slabs = cut(stream.histogram, CutOptions(1, begin=0, cores=cores(spark)))
    splits = marked_splits(stream)
    need = Need.of(slabs.parts, [part.begin for part in slabs.parts])
    packing = partial(_packed, splits, need, run_input)
    blocks = spark.range(0, len(splits), 1, max(len(splits), 1)).mapInArrow(packing, BLOCK_SCHEMA)
    count = len(slabs.parts)
    arrived = blocks.repartitionById(count, blocks["target"]).sortWithinPartitions("first")
    rows = arrived.mapInArrow(sorted_rows, PREPARED_SCHEMA)
    rows = rows.select(
        *(rows[name].alias(name, metadata={TERMS_KEY: "terms"}) for name in TERMS), "timestamp"
    )
    rows.write.mode("overwrite").option("parquet.block.size", ROW_GROUP).option(
        "compression", "zstd"
    ).parquet(folder)
    numbers = spark.range(0, len(splits), 1, max(len(splits), 1))
    log = ReadLog()
    log.read(numbers.mapInArrow(partial(_log, splits, run_input), READ_LOG_SCHEMA).toArrow())
    notes = DataNotes(units, log.cells, Accounting(), 0)
    return PreparedFiles(folder, count, tuple(log.rejects), notes)


def _packed(
    splits: Sequence[MarkedSplit],
    need: Need,
    run_input: RunInput,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    yield from pack_blocks(need, 0, items_of_splits(_NAME, splits, run_input, batches))


def _log(
    splits: Sequence[MarkedSplit], run_input: RunInput, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    lenient, log = replace(run_input, strict=False), ReadLog()
    for _ in items_of_splits(_NAME, splits, lenient, batches, log=log):
        pass
    yield log.batch()


def sorted_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the items of blocks in order of time, as rows of `PREPARED_SCHEMA`."""
    for batch in BlockReader(batches, [_NAME]).items(0):
        table = without_dictionaries(pa.Table.from_batches([batch])).drop_columns(["sequence"])
        yield from table.combine_chunks().to_batches()
