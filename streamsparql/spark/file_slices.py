"""Files on Spark: which there are, and how tasks read their shares of them.

What can be read from the middle is split: lines by bytes, Parquet by row groups. The rest (CSV,
whose quotes may hold line ends, and what is packed) is read whole, each file by one task. The
parsers are those of `streamsparql.sources`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
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
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.mapping_rows import mapped_chunks
from streamsparql.sources.paths import path_of
from streamsparql.sources.stamps import stamps_of_column
from streamsparql.sources.tables import chunks_of_batches, roles, row_groups

SPLIT = 1 << 27
"""How many bytes of a text file a task reads, about."""
SPLIT_ROWS = 2_000_000
"""How many rows of a Parquet file."""
_LINES = (".nq", ".nt", ".jsonl", ".ndjson")
_PARQUET = (".parquet", ".pq")


class Split(NamedTuple):
    """A share of a file: all of it, some bytes, or some row groups."""

    path: str
    begin: int = 0
    end: int | None = None
    groups: tuple[int, ...] | None = None
    mapped: Mapped | None = None
    """The mapping of a table, if there is one; what it is a mapping of does not count."""


class Group(NamedTuple):
    """A row group of a Parquet file in order of time."""

    path: str
    number: int
    least: int
    most: int
    rows: int


def paths_of(source: Any) -> list[str]:
    """The files of a path, a folder or a pattern, or of a list of them, as the embedded engine has
    them: those of a folder in order of their names.

    >>> paths_of("nowhere/at/all.nq")
    Traceback (most recent call last):
    streamsparql.errors.SourceError: nowhere/at/all.nq: there is no such file or folder
    """
    if not isinstance(source, str | os.PathLike):
        return [path for one in source for path in paths_of(one)]
    text = path_of(source)
    if _is_remote(text):
        return _remote_paths(text)
    found = files_of(text) or ([text] if os.path.exists(text) else [])
    if not found:
        raise SourceError(f"{text}: there is no such file or folder")
    return list(map(os.path.abspath, found))


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
        raise SourceError(f"{path}: there is no such file or folder")
    found = system.get_file_info(fs.FileSelector(inner, recursive=True))
    files = [each.path for each in found if each.type == fs.FileType.File]
    inside = [each for each in files if not _hidden(os.path.relpath(each, inner))]
    known = [each for each in inside if has_known_extension(each)]
    return sorted(prefix + each for each in known or inside)


def _hidden(path: str) -> bool:
    return any(part[:1] in "._" for part in path.split("/"))


def opened(path: str) -> IO[bytes]:
    """A file, on this machine or another."""
    if not _is_remote(path):
        return open(path, "rb")
    from pyarrow import fs

    system, inner = fs.FileSystem.from_uri(path)
    return cast("IO[bytes]", system.open_input_file(inner))


def size_of(path: str) -> int:
    """How many bytes a file has."""
    if not _is_remote(path):
        return os.path.getsize(path)
    from pyarrow import fs

    system, inner = fs.FileSystem.from_uri(path)
    return int(system.get_file_info(inner).size)


def is_parquet(path: str) -> bool:
    """Whether a file is Parquet, by its name."""
    return path.lower().endswith(_PARQUET)


# -- Splits -------------------------------------------------------------------------------------


def splits_of(paths: Sequence[str], mapped: Mapped | None = None) -> list[Split]:
    """The shares of files that tasks read, in order. The rows of mapped ones are numbered on."""
    found: list[Split] = []
    for path in paths:
        if mapped is not None:
            found.append(Split(path, mapped=mapped.over(None)))
        elif is_parquet(path):
            found += _groups_together(path)
        elif path.lower().endswith(_LINES):
            size = size_of(path)
            edges = [*range(0, max(size, 1), SPLIT), size]
            if len(edges) > 2 and edges[-1] - edges[-2] < SPLIT // 4:
                del edges[-2]
            found += [Split(path, b, e) for b, e in pairwise(edges)]
        else:
            found.append(Split(path))
    return found


def _groups_together(path: str) -> Iterator[Split]:
    with opened(path) as file:
        metadata = _parquet(file, path).metadata
        rows = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    some: list[int] = []
    for k, count in enumerate(rows):
        if some and sum(rows[j] for j in some) + count > SPLIT_ROWS:
            yield Split(path, groups=tuple(some))
            some = []
        some.append(k)
    yield Split(path, groups=tuple(some))


def split_chunks(split: Split, reading: Encoder, size: int, timed: bool = True) -> Iterator[Chunk]:
    """The items of a split. In its rejects, positions are counted from where it begins: `located`
    counts them from where the file does."""
    with opened(split.path) as file:
        if split.groups is not None:
            batches = group_batches(file, split.path, split.groups, reading, size, timed)
            yield from chunks_of_batches(batches, reading.with_unit("row", split.path), size, timed)
            return
        part: Any = file
        if split.end is not None:
            part = _Lines(file, split.begin, split.end)
        source = _Named(part, split.path)
        if split.mapped is None:
            yield from file_chunks(source, reading, size, timed)
        else:
            yield from mapped_chunks(split.mapped.over(source), reading, size, timed)


def located(reject: Reject, split: Split) -> Reject:
    """A reject of a split, with its position counted from where the file begins."""
    before = 0
    if split.groups:
        with opened(split.path) as file:
            metadata = _parquet(file, split.path).metadata
            before = sum(metadata.row_group(k).num_rows for k in range(split.groups[0]))
    elif split.begin:
        before = _lines_before(split.path, split.begin)
    return reject._replace(position=reject.position + before) if before else reject


@lru_cache(maxsize=64)
def _lines_before(path: str, place: int) -> int:
    """How many lines of a file begin before a place in it."""
    count, last = 0, b""
    with opened(path) as file:
        left = _line_from(file, place)
        file.seek(0)
        while left and (data := file.read(min(left, 1 << 24))):
            left -= len(data)
            count += data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
            count -= last == b"\r" and data.startswith(b"\n")
            last = data[-1:]
    return count


class _Named(io.BufferedReader):
    """A file under the name that tells its format."""

    def __init__(self, file: Any, path: str) -> None:
        super().__init__(file if isinstance(file, io.RawIOBase) else _Raw(file), 1 << 20)
        self._path = path

    @property
    @override
    def name(self) -> str:
        return self._path


class _Raw(io.RawIOBase):
    """Any open file as a raw one."""

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
    """The lines of a file that begin within some bytes of it."""

    def __init__(self, file: IO[bytes], begin: int, end: int) -> None:
        super().__init__(file)
        after = _line_from(file, end)
        first = _line_from(file, begin)
        file.seek(first)
        self._left = after - first

    @override
    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def _line_from(file: IO[bytes], place: int) -> int:
    """Where the first line begins that begins at a place or after it."""
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
        raise SourceError(f"{path} is no Parquet file that can be read: {error}") from error


def group_batches(
    file: Any, path: str, groups: Sequence[int], reading: Encoder, size: int, timed: bool = True
) -> Iterator[pa.RecordBatch]:
    """The record batches of some row groups, of the columns that are needed."""
    for group in groups:
        try:
            yield from row_groups(file, [group], reading, size, timed)
        except (pa.ArrowInvalid, OSError) as error:
            raise SourceError(f"{path}, row group {group}, cannot be read: {error}") from error


def groups_of(paths: Sequence[str], reading: Encoder) -> list[Group] | None:
    """The row groups of Parquet files, in order of time; None where they overlap or do not tell.

    Within a file they must be in order as they are: that is the order in which its items came.
    """
    found: list[Group] = []
    for path in paths:
        if not is_parquet(path):
            return None
        with opened(path) as file:
            opened_file = _parquet(file, path)
            part = roles(opened_file.schema_arrow.names, reading, True)
            its = _stamped_groups(path, opened_file, part.get("t", part.get("end", "")))
        if its is None or not _apart(its):
            return None
        found += its
    found.sort(key=lambda group: group.least)
    return found if _apart(found) else None


def _apart(groups: Sequence[Group]) -> bool:
    return all(one.most <= other.least for one, other in pairwise(groups))


def _stamped_groups(path: str, file: Any, column: str) -> list[Group] | None:
    """The row groups of a file, by the statistics of the column of timestamps."""
    metadata = file.metadata
    kind = file.schema_arrow.field(column).type
    if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)):
        return None
    place = file.schema_arrow.names.index(column)
    found = []
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        if not group.num_rows:
            continue
        known = group.column(place).statistics
        if known is None or not known.has_min_max or known.null_count:
            return None
        least, most = _stamp(known.min, kind), _stamp(known.max, kind)
        if least is None or most is None or least < 0:
            return None
        found.append(Group(path, k, least, most, group.num_rows))
    return found


def _stamp(value: Any, kind: pa.DataType) -> int | None:
    if isinstance(value, int):
        return value
    stamps, wrong = stamps_of_column(pa.array([value], kind))
    return None if wrong else int(stamps[0])


def in_order(
    groups: Sequence[Group],
    begin: int,
    end: int,
    reading: Encoder,
    size: int,
    max_delay: int = 0,
    seen: int = -1,
) -> Iterator[pa.RecordBatch]:
    """The items stamped from `begin` to before `end`, of row groups that are in order of time.

    Row groups are in order, rows within one may not be: what is late by more than `max_delay`
    behind those before it is left out. `seen` is the greatest timestamp before the first group.
    """
    for group in groups:
        if group.most < begin:
            seen = max(seen, group.most)
        elif group.least < end:
            with opened(group.path) as file:
                for batch in group_batches(file, group.path, [group.number], reading, size):
                    found, seen = _within(batch, begin, end, reading, seen, max_delay)
                    if found.num_rows:
                        yield found


def _within(
    batch: pa.RecordBatch, begin: int, end: int, reading: Encoder, seen: int, max_delay: int
) -> tuple[pa.RecordBatch, int]:
    part = roles(batch.schema.names, reading, True)
    column = batch.column(part.get("t", part.get("end", "")))
    stamps = stamps_of_column(column)[0]
    if not len(stamps):
        return batch, seen
    if (stamps[1:] >= stamps[:-1]).all() and stamps[0] >= seen - max_delay:
        low, high = np.searchsorted(stamps, [begin, end], "left").tolist()
        return batch.slice(low, high - low), max(seen, int(stamps[-1]))
    time = np.maximum.accumulate(np.maximum(stamps, seen))
    late = stamps < np.append(seen, time[:-1]) - max_delay
    if reading.strict and late.any():
        at = int(stamps[late][0])
        raise SourceError(
            f"{reading.name}: an item stamped {at} is late by more than {max_delay} ms"
        )
    fine = ~late & (stamps >= begin) & (stamps < end)
    return batch.take(pa.array(np.flatnonzero(fine))), int(time[-1])
