"""Preparation: a history put in order of time, once, for all queries over it.

What it makes are Parquet files whose rows are in order of time, within a file and from one file to
the next, with terms in normal form, in row groups of a size that tasks can pick from. Over these a
query's tasks read their own time range and nothing is exchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsparql.errors import EngineError, SourceError
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.sources.chunk import Reject
from streamsparql.sources.folders import check_distinct
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.tables import TERMS_KEY
from streamsparql.spark.blocks import plain
from streamsparql.spark.cut import CutOptions, cut
from streamsparql.spark.engine import cores
from streamsparql.spark.exchange import EXCHANGED, Arriving, Need, blocks_of
from streamsparql.spark.failures import told
from streamsparql.spark.file_slices import paths_of
from streamsparql.spark.frames import TERMS
from streamsparql.spark.stream_inputs import Ordered, Splits, look_at_files
from streamsparql.spark.tasks import REJECTED, Share, as_rows, items_of_shares, shares_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_GROUP = 4 << 20
"""The bytes of a row group: some hundred thousand rows, of which a task may need just a few."""
ROWS = "subject string, predicate string, object string, timestamp long"
_NAME = "prepared"


@dataclass(frozen=True)
class Prepared:
    """What a preparation made."""

    path: str
    parts: int
    rejects: tuple[Reject, ...]
    """What could not be read, with reasons; late items too, where they were not wanted."""


def prepare(
    spark: SparkSession,
    sources: Any,
    path: str | os.PathLike[str],
    *,
    max_delay: int | None = None,
    strict: bool = False,
    overwrite: bool = False,
) -> Prepared:
    """Writes the items of files into the folder `path`, in order of time.

    `sources` is a file, a folder or a pattern, or a list of them, or `mapped` ones: one stream, its
    items in any order. With `max_delay`, items that come later than that are rejected, as a run
    over the files would; without, none is late. With `strict` a reject is an error.
    """
    if max_delay is not None and (type(max_delay) is not int or max_delay < 0):
        raise EngineError(f"max_delay is a number of milliseconds, not {max_delay!r}")
    folder = os.fspath(path)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise SourceError(f"{folder} is no folder: prepared files are written into one")
    if not overwrite and os.path.exists(folder) and os.listdir(folder):
        raise SourceError(f"{folder}: there is something in it already")
    mapping = sources if isinstance(sources, Mapped) else None
    files = check_distinct(paths_of(sources if mapping is None else mapping.source))
    most, max_jump = (
        (INFINITY // 2, None) if max_delay is None else (max_delay, RunInput().max_jump)
    )
    given = RunInput(max_delay=most, max_jump=max_jump, strict=strict)
    with told():
        return _prepared(spark, look_at_files(spark, _NAME, files, given, mapping), folder, given)


def _prepared(
    spark: SparkSession, stream: Ordered | Splits, folder: str, given: RunInput
) -> Prepared:
    made = cut(stream.spread, CutOptions(1, begin=0, cores=cores(spark)))
    shares = shares_of(stream)
    need = Need.of(made.parts, [part.begin for part in made.parts])
    packing = partial(_packed, shares, need, given)
    blocks = spark.range(0, len(shares), 1, max(len(shares), 1)).mapInArrow(packing, EXCHANGED)
    count = len(made.parts)
    arrived = blocks.repartitionById(count, blocks["target"]).sortWithinPartitions("first")
    rows = arrived.mapInArrow(written, ROWS)
    rows = rows.select(
        *(rows[name].alias(name, metadata={TERMS_KEY: "terms"}) for name in TERMS), "timestamp"
    )
    rows.write.mode("overwrite").option("parquet.block.size", ROW_GROUP).option(
        "compression", "zstd"
    ).parquet(folder)
    numbers = spark.range(0, len(shares), 1, max(len(shares), 1))
    found = numbers.mapInArrow(partial(_rejected, shares, given), REJECTED).toArrow()
    rejects = tuple(Reject(**row) for row in found.to_pylist())
    return Prepared(folder, count, rejects)


def _packed(
    shares: Sequence[Share], need: Need, given: RunInput, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield from blocks_of(need, 0, items_of_shares(_NAME, shares, given, batches))


def _rejected(
    shares: Sequence[Share], given: RunInput, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    found: list[Reject] = []
    for _ in items_of_shares(_NAME, shares, replace(given, strict=False), batches, rejects=found):
        pass
    yield as_rows(found)


def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The items of blocks in order of time, as rows of `ROWS`."""
    for batch in Arriving(batches, [_NAME]).items(0):
        table = plain(pa.Table.from_batches([batch])).drop_columns(["sequence"])
        yield from table.combine_chunks().to_batches()
