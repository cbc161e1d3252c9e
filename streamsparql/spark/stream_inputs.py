"""The streams of a run on Spark: what kind of source each is, and how its items spread over time.

- `Ordered`: Parquet files in order of time. Tasks read their own time range of them.
- `Splits`: other files. Tasks read shares of them, and the items go through the exchange.
- `Frame`: a caller's DataFrame. Catalyst filters and projects it before the exchange.
- `Local`: what the caller holds in memory. It was read where it is.

`look` finds out which it is. Looking costs a job for files and frames: when the first item came
(where the horizon begins), when the last one did, and a sample of when the others did.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamsparql.algebra.plan import Plan
from streamsparql.overriding import override
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.sources import read_stream
from streamsparql.sources.chunk import Reject, Rejected, Wanted
from streamsparql.sources.disorder import Sorter
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.folders import check_distinct, files_of
from streamsparql.sources.mapping import Mapped
from streamsparql.spark.cut import TimeHistogram
from streamsparql.spark.exchange import ITEMS, items_of_chunks
from streamsparql.spark.file_slices import (
    Group,
    Split,
    groups_of,
    located,
    paths_of,
    split_chunks,
    splits_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE = 1_000
"""How many stamps of a share of the input are a sample of it."""
CHUNK = 65_536
SURVEYED = "split int, least long, seen long, rows long, sample binary"


@dataclass(frozen=True, eq=False)
class Stream(ABC):
    """What all kinds have in common."""

    name: str
    spread: TimeHistogram
    least: int
    """The least timestamp; INFINITY where there is no item."""
    seen: int
    """The greatest; -1 where there is none."""

    @property
    @abstractmethod
    def what(self) -> str:
        """The kind of source and how it is read, for people."""


@dataclass(frozen=True, eq=False)
class Ordered(Stream):
    """Parquet files in order of time."""

    groups: tuple[Group, ...]

    @property
    @override
    def what(self) -> str:
        files = len({group.path for group in self.groups})
        return (
            f"{_count(files, 'Parquet file')} in order of time,"
            f" {_count(len(self.groups), 'row group')}: tasks read their own time range"
        )


@dataclass(frozen=True, eq=False)
class Splits(Stream):
    """Files that are read whole and exchanged."""

    splits: tuple[Split, ...]
    earlier: tuple[int, ...]
    """The greatest timestamp before each split in its file."""

    @property
    @override
    def what(self) -> str:
        files = len({split.path for split in self.splits})
        return f"{_count(files, 'file')} read by {_count(len(self.splits), 'task')}, then exchanged"


@dataclass(frozen=True, eq=False)
class Frame(Stream):
    """A DataFrame with the columns of `ITEMS`; `sequenced` where a column orders equal stamps."""

    frame: DataFrame
    whole: DataFrame
    """As it came, before anything was filtered, with the columns that a table has."""
    sequenced: bool
    predicates: tuple[str, ...] = ()
    """What the numbers in the column of predicates stand for; if there are none, it has texts."""

    @property
    @override
    def what(self) -> str:
        return "a DataFrame: filtered and projected by Spark, then exchanged"


@dataclass(frozen=True, eq=False)
class Local(Stream):
    """Items in memory."""

    items: pa.Table
    rejects: tuple[Reject, ...]

    @property
    @override
    def what(self) -> str:
        return f"{_count(self.items.num_rows, 'item')} in memory, sent to the tasks"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def look(spark: SparkSession, name: str, source: Any, given: RunInput, plan: Plan) -> Stream:
    """What a source is, and when its items come; `plan` is what reads it."""
    if is_frame(source):
        from streamsparql.spark.frames import look_at_frame

        return look_at_frame(name, source, plan, given.strict)
    mapped = source if isinstance(source, Mapped) else None
    table = source if mapped is None else mapped.source
    if files_of(table) is not None or (isinstance(table, str | os.PathLike) and table != "-"):
        return look_at_files(spark, name, check_distinct(paths_of(table)), given, mapped)
    return _local(name, source, given)


def is_frame(source: Any) -> bool:
    """Whether a source is a DataFrame of Spark, in process or by Connect."""
    return type(source).__module__.startswith("pyspark.sql")


def _local(name: str, source: Any, given: RunInput) -> Local:
    terms, sorter = TermDictionary(), _sorter(name, given)
    chunks = read_stream(source, f"<{name}>", terms, strict=given.strict)
    tables = list(items_of_chunks(chunks, sorter, terms))
    items = pa.concat_tables(tables) if tables else ITEMS.empty_table()
    spread = TimeHistogram.of_samples([items.column("timestamp").to_numpy()], [items.num_rows])
    return Local(name, spread, sorter.least, sorter.seen, items, tuple(sorter.rejects))


def look_at_files(
    spark: SparkSession,
    name: str,
    paths: Sequence[str],
    given: RunInput,
    mapped: Mapped | None = None,
) -> Ordered | Splits:
    """Files as a stream; where they do not tell their order, a job finds it out."""
    groups = None
    if mapped is None:
        groups = groups_of(paths, Encoder(f"<{name}>", TermDictionary()))
    if groups is not None:
        spread = TimeHistogram.of_ranges([(g.least, g.most, g.rows) for g in groups])
        least = min((g.least for g in groups), default=INFINITY)
        seen = max((g.most for g in groups), default=-1)
        return Ordered(name, spread, least, seen, tuple(groups))
    splits = splits_of(paths, mapped)
    surveying = partial(survey, name, tuple(splits), without_data(given))
    found = _surveyed(spark, surveying, len(splits))
    marks = [row["seen"] for row in found]
    samples = [np.frombuffer(row["sample"], np.int64) for row in found]
    return Splits(
        name,
        TimeHistogram.of_samples(samples, [row["rows"] for row in found]),
        min((row["least"] for row in found), default=INFINITY),
        max(marks, default=-1),
        tuple(splits),
        tuple(_earlier(splits, marks)),
    )


def _earlier(splits: Sequence[Split], seen: Sequence[int]) -> Iterator[int]:
    """The greatest timestamp before each split in its file: an item is late in its own file."""
    mark = -1
    for k, split in enumerate(splits):
        if not k or splits[k - 1].path != split.path:
            mark = -1
        yield mark
        mark = max(mark, seen[k])


def following(splits: Sequence[Split], k: int) -> list[Split]:
    """The split after one in the same file, if there is one."""
    return [split for split in splits[k + 1 : k + 2] if split.path == splits[k].path]


def _surveyed(spark: SparkSession, surveying: Any, count: int) -> list[Mapping[str, Any]]:
    frame = spark.range(0, count, 1, max(count, 1)).mapInArrow(surveying, SURVEYED)
    rows: list[Mapping[str, Any]] = frame.toArrow().sort_by("split").to_pylist()
    return rows


def without_data(given: RunInput) -> RunInput:
    """What is given beside the data, to be sent to tasks."""
    return RunInput(
        start=given.start,
        end=given.end,
        strict=given.strict,
        max_delay=given.max_delay,
        max_jump=given.max_jump,
        started=given.started,
    )


def _sorter(name: str, given: RunInput, seen: int = -1) -> Sorter:
    sorter = Sorter(f"<{name}>", given.max_delay, given.strict, given.max_jump)
    sorter.seen = seen
    return sorter


# -- In tasks -----------------------------------------------------------------------------------


def survey(
    name: str, splits: Sequence[Split], given: RunInput, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """When the items of splits come: rows of `SURVEYED`. Nothing but timestamps is looked at."""
    for batch in batches:
        for k in batch.column(0).to_pylist():
            reading = Encoder(f"<{name}>", TermDictionary(), wanted=Wanted(frozenset()))
            sorter = Sorter(f"<{name}>", given.max_delay, False, given.max_jump)
            stamps: list[IntArray] = [np.empty(0, np.int64)]
            for chunk in split_chunks(splits[k], reading, CHUNK):
                chunk.rejects.clear()
                sorter.push(chunk)
                stamps.append(chunk.stamps)
            decide(sorter, following(splits, k))
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


def decide(sorter: Sorter, following: Sequence[Split]) -> None:
    """Lets the first item of the next split decide on one that leapt at the end of a split."""
    nothing = Encoder(sorter.name, TermDictionary(), wanted=Wanted(frozenset()))
    for split in following if sorter.undecided else ():
        for chunk in split_chunks(split, nothing, 1):
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
    given: RunInput,
    terms: TermDictionary,
    wanted: Wanted | None,
    rejects: list[Reject] | None = None,
) -> Iterator[pa.Table]:
    """The items of a split that are wanted and not late; what is rejected goes to `rejects`.

    `following` is the next split, if there is one.
    """
    reading = Encoder(f"<{name}>", terms, "", wanted, given.strict)
    sorter = _sorter(f"{name}", given, earlier)
    chunks = split_chunks(split, reading, CHUNK)
    try:
        yield from items_of_chunks(
            chunks, sorter, terms, number << 40, lambda: decide(sorter, following)
        )
    except Rejected as error:
        raise Rejected(located(error.reject, split)) from None
    if rejects is not None:
        rejects += [located(reject, split) for reject in sorter.rejects]
