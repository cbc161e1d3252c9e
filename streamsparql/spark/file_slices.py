"""Files on Spark: how sources name them, and how tasks read their splits of them.

Files that can be read from the middle are split: lines by bytes, Parquet by row groups. All others
(CSV, whose quoted values may contain line ends, and compressed files) are read whole, each by one
task. The parsers are those of `streamsparql.sources`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import IO, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from streamsparql.errors import SourceError
from streamsparql.overriding import override
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.files import file_chunks
from streamsparql.sources.folders import files_of, has_known_extension
from streamsparql.sources.mapped_tables import mapped_chunks
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.paths import path_of
from streamsparql.sources.stamps import StampReader
from streamsparql.sources.tables import chunks_of_batches, roles, row_groups

SPLIT = 1 << 27
"""The approximate number of bytes of a text file that a task reads."""
SPLIT_ROWS = 2_000_000
"""The number of rows of a Parquet file that a task reads, unless one row group has more."""
CHUNK_ITEMS = 65_536
"""The number of items that a task reads at a time."""
_LINES = (".nq", ".nt", ".jsonl", ".ndjson")
_PARQUET = (".parquet", ".pq")


class Split(NamedTuple):
    """A piece of a file: all of it, a range of bytes, or some row groups."""

    path: str
    begin: int = 0
    end: int | None = None
    groups: tuple[int, ...] | None = None
    mapped: Mapped | None = None
    """The mapping of a table, if there is one; its own source is ignored."""


class RowGroup(NamedTuple):
    """A row group of a Parquet file, with its least and greatest timestamps."""

    path: str
    number: int
    least: int
    most: int
    rows: int


def paths_of(source: Any) -> list[str]:
    """Return the files of a path, a folder or a pattern, or of a list of these.

    They are the files that the embedded engine reads; those of a folder are sorted by name.

    >>> paths_of("nowhere/at/all.nq")
    Traceback (most recent call last):
    streamsparql.errors.SourceError: nowhere/at/all.nq: no such file or folder
    """
    if not isinstance(source, str | os.PathLike):
        return [path for each in source for path in paths_of(each)]
    text = path_of(source)
    if _is_remote(text):
        return _remote_paths(text)
    files = files_of(text) or ([text] if os.path.exists(text) else [])
    if not files:
        raise SourceError(f"{text}: no such file or folder")
    return list(map(os.path.abspath, files))


def written_paths(sources: Iterable[Any]) -> dict[str, str]:
    """Return local files of sources as the caller wrote them, by their absolute paths."""
    written: dict[str, str] = {}
    for source in sources:
        if isinstance(source, Mapped):
            source = source.source
        if isinstance(source, str | os.PathLike) and not _is_remote(path_of(source)):
            text = path_of(source)
            written |= {os.path.abspath(file): file for file in files_of(text) or [text]}
        elif isinstance(source, list | tuple):
            written |= written_paths(each for each in source if isinstance(each, str | os.PathLike))
    return written


def _is_remote(path: str) -> bool:
    return "://" in path


def _remote_paths(path: str) -> list[str]:
    from pyarrow import fs

    system, inner = fs.FileSystem.from_uri(path)
    prefix = path[: path.index("://") + 3]
    if prefix.startswith("hdfs"):
        prefix = path[: path.index("/", len(prefix))]
    info = system.get_file_info(inner)
    if info.type == fs.FileType.File:
        return [path]
    if info.type != fs.FileType.Directory:
        raise SourceError(f"{path}: no such file or folder")
    entries = system.get_file_info(fs.FileSelector(inner, recursive=True))
    files = [each.path for each in entries if each.type == fs.FileType.File]
    inside = [each for each in files if not _hidden(os.path.relpath(each, inner))]
    known_formats = [each for each in inside if has_known_extension(each)]
    return sorted(prefix + each for each in known_formats or inside)


def _hidden(path: str) -> bool:
    return any(part[:1] in "._" for part in path.split("/"))


def open_source_file(path: str) -> IO[bytes]:
    """Open a local or remote file for reading."""
    if not _is_remote(path):
        return open(path, "rb")
    from pyarrow import fs

    system, inner = fs.FileSystem.from_uri(path)
    return cast("IO[bytes]", system.open_input_file(inner))


def size_of(path: str) -> int:
    """Return the size of a local or remote file, in bytes."""
    if not _is_remote(path):
        return os.path.getsize(path)
    from pyarrow import fs

    system, inner = fs.FileSystem.from_uri(path)
    return int(system.get_file_info(inner).size)


def is_parquet(path: str) -> bool:
    """Return whether a file is Parquet, by its extension."""
    return path.lower().endswith(_PARQUET)


# -- Splits -------------------------------------------------------------------------------------


def splits_of(
    paths: Sequence[str], mapped: Mapped | None = None, whole: bool = False
) -> list[Split]:
    """Return the splits of files that tasks read, in the order of the files.

    With a mapping each file is one split, as rules may number its rows, and so it is if it must be
    read as a `whole`.
    """
    splits: list[Split] = []
    for path in paths:
        if mapped is not None:
            splits.append(Split(path, mapped=mapped.over(None)))
        elif whole:
            splits.append(Split(path))
        elif is_parquet(path):
            splits += _parquet_splits(path)
        elif path.lower().endswith(_LINES):
            size = size_of(path)
            edges = [*range(0, max(size, 1), SPLIT), size]
            if len(edges) > 2 and edges[-1] - edges[-2] < SPLIT // 4:
                del edges[-2]
            splits += [Split(path, b, e) for b, e in pairwise(edges)]
        else:
            splits.append(Split(path))
    return splits


def _parquet_splits(path: str) -> Iterator[Split]:
    with open_source_file(path) as file:
        metadata = _parquet(file, path).metadata
        rows = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    groups: list[int] = []
    for k, count in enumerate(rows):
        if groups and sum(rows[j] for j in groups) + count > SPLIT_ROWS:
            yield Split(path, groups=tuple(groups))
            groups = []
        groups.append(k)
    yield Split(path, groups=tuple(groups))


def split_chunks(split: Split, encoder: Encoder, size: int, timed: bool = True) -> Iterator[Chunk]:
    """Yield the items of a split in chunks of `size`; those of a graph are not `timed`.

    Positions of rejects count from the start of the split; `located` converts them for the file.
    """
    with open_source_file(split.path) as file:
        if split.groups is not None:
            batches = group_batches(file, split.path, split.groups, encoder, size, timed)
            yield from chunks_of_batches(batches, encoder.with_unit("row", split.path), size, timed)
            return
        part: Any = file
        if split.end is not None:
            part = _Lines(file, split.begin, split.end)
        source = _Named(part, split.path)
        if split.mapped is None:
            yield from file_chunks(source, encoder, size, timed)
        else:
            yield from mapped_chunks(split.mapped.over(source), encoder, size, timed)


def located(reject: Reject, split: Split) -> Reject:
    """Return a reject of a split with its position in the file."""
    before = 0
    if split.groups:
        with open_source_file(split.path) as file:
            metadata = _parquet(file, split.path).metadata
            before = sum(metadata.row_group(k).num_rows for k in range(split.groups[0]))
    elif split.begin:
        before = _lines_before(split.path, split.begin)
    return reject._replace(position=reject.position + before) if before else reject


@lru_cache(maxsize=64)
def _lines_before(path: str, place: int) -> int:
    """Count the lines of a file that begin before a byte offset."""
    count, last = 0, b""
    with open_source_file(path) as file:
        left = _next_line(file, place)
        file.seek(0)
        while left and (data := file.read(min(left, 1 << 24))):
            left -= len(data)
            count += data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
            count -= last == b"\r" and data.startswith(b"\n")
            last = data[-1:]
    return count


class _Named(io.BufferedReader):
    """A file with its name, from which the format is detected."""

    def __init__(self, file: Any, path: str) -> None:
        super().__init__(file if isinstance(file, io.RawIOBase) else _Raw(file), 1 << 20)
        self._path = path

    @property
    @override
    def name(self) -> str:
        return self._path


class _Raw(io.RawIOBase):
    """An open file as a raw stream."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Lines(_Raw):
    """The lines of a file that begin in a range of its bytes."""

    def __init__(self, file: IO[bytes], begin: int, end: int) -> None:
        super().__init__(file)
        after = _next_line(file, end)
        first = _next_line(file, begin)
        file.seek(first)
        self._left = after - first

    @override
    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def _next_line(file: IO[bytes], place: int) -> int:
    """Return the offset of the first line that begins at `place` or after it."""
    if place == 0:
        return 0
    file.seek(place - 1)
    file.readline()
    return file.tell()


# -- Parquet in order of time -------------------------------------------------------------------


def _parquet(file: Any, path: str, **options: Any) -> Any:
    try:
        return parquet.ParquetFile(file, **options)
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{path}: not a readable Parquet file: {error}") from error


def group_batches(
    file: Any, path: str, groups: Sequence[int], encoder: Encoder, size: int, timed: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of row groups, with the columns that the encoder reads."""
    for group in groups:
        try:
            yield from row_groups(file, [group], encoder, size, timed)
        except (pa.ArrowInvalid, OSError) as error:
            raise SourceError(f"{path}: cannot read row group {group}: {error}") from error


def row_groups_in_order(paths: Sequence[str], encoder: Encoder) -> list[RowGroup] | None:
    """Return the row groups of Parquet files, in order of time.

    None if their time ranges overlap, or if statistics are missing. Within a file they must be in
    order as written, since that is the order in which its items arrived.
    """
    all_groups: list[RowGroup] = []
    for path in paths:
        if not is_parquet(path):
            return None
        with open_source_file(path) as file:
            opened_file = _parquet(file, path)
            columns = roles(opened_file.schema_arrow.names, encoder, True)
            column = columns.get("t", columns.get("end", ""))
            groups = _timed_groups(path, opened_file, column, encoder.stamps)
        if groups is None or not _in_time_order(groups):
            return None
        all_groups += groups
    all_groups.sort(key=lambda group: group.least)
    return all_groups if _in_time_order(all_groups) else None


def _in_time_order(groups: Sequence[RowGroup]) -> bool:
    return all(group.most <= after.least for group, after in pairwise(groups))


def _timed_groups(path: str, file: Any, column: str, stamps: StampReader) -> list[RowGroup] | None:
    """Return the row groups of a file with the statistics of the timestamp column, if complete.

    The order of local times is not that of their instants, so they have no statistics.
    """
    metadata = file.metadata
    kind = file.schema_arrow.field(column).type
    if pa.types.is_timestamp(kind) and kind.tz is None and stamps.zone is not None:
        return None
    if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)):
        return None
    place = file.schema_arrow.names.index(column)
    groups = []
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        if not group.num_rows:
            continue
        statistics = group.column(place).statistics
        if statistics is None or not statistics.has_min_max or statistics.null_count:
            return None
        ends = pa.array([statistics.min, statistics.max], kind)
        (least, most), wrong = stamps.of_column(ends)
        if wrong:
            return None
        groups.append(RowGroup(path, k, int(least), int(most), group.num_rows))
    return groups


def read_in_order(
    groups: Sequence[RowGroup],
    begin: int,
    end: int,
    encoder: Encoder,
    size: int,
    max_delay: int = 0,
    seen: int = -1,
) -> Iterator[pa.RecordBatch]:
    """Yield the items stamped in `[begin, end)` of row groups that are in order of time.

    Their timestamps are in milliseconds, whatever they are in the file.
    Rows within a group may be out of order; items late by more than `max_delay` are left out.
    `seen` is the greatest timestamp before the first group.
    """
    for group in groups:
        if group.most < begin:
            seen = max(seen, group.most)
        elif group.least < end:
            with open_source_file(group.path) as file:
                for batch in group_batches(file, group.path, [group.number], encoder, size):
                    items, seen = _items_within(batch, begin, end, encoder, seen, max_delay)
                    if items.num_rows:
                        yield items


def _items_within(
    batch: pa.RecordBatch, begin: int, end: int, encoder: Encoder, seen: int, max_delay: int
) -> tuple[pa.RecordBatch, int]:
    columns = roles(batch.schema.names, encoder, True)
    for role, name in (("t", "timestamp"), ("start", "start"), ("end", "end")):
        if role in columns:
            place = batch.schema.get_field_index(columns[role])
            stamps = encoder.stamps.of_column(batch.column(place))[0]
            batch = batch.set_column(place, name, pa.array(stamps))
    if not len(stamps):
        return batch, seen
    if (stamps[1:] >= stamps[:-1]).all() and stamps[0] >= seen - max_delay:
        low, high = np.searchsorted(stamps, [begin, end], "left").tolist()
        return batch.slice(low, high - low), max(seen, int(stamps[-1]))
    time = np.maximum.accumulate(np.maximum(stamps, seen))
    late = stamps < np.append(seen, time[:-1]) - max_delay
    if encoder.strict and late.any():
        at = int(stamps[late][0])
        raise SourceError(
            f"{encoder.name}: an item stamped {at} is late by more than {max_delay} ms"
        )
    accepted = ~late & (stamps >= begin) & (stamps < end)
    return batch.take(pa.array(np.flatnonzero(accepted))), int(time[-1])
