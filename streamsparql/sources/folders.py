"""Several files as one stream: a folder, a pattern or a list of paths, merged by time.

Files may follow each other in time, or overlap, such as one per sensor. Each file has its own
order: an item is emitted after all items of the other files that are stamped before the greatest
stamp so far of its own file. So an item is late in the merged stream if and only if it is late in
its file.

To know the order of the files, the first item of each is read ahead. A file is opened when the
merged time reaches that item; so only a part of each open file is in memory.

**A bogus stamp** in the future must not delay the items after it in its file until the other files
have reached it. So an item that jumps ahead by more than a day, and from which the next one falls
back as far, keeps its place in its file; the sorter judges it there.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any

import numpy as np

from streamsparql.algebra.inputs import MAX_JUMP
from streamsparql.errors import SourceError
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.files import KNOWN_EXTENSIONS
from streamsparql.sources.paths import extension_of, path_of
from streamsparql.sources.stamps import LATEST

ChunkReader = Callable[[int, str, int], Iterator[Chunk]]
"""Yields the chunks of a file; takes its number, its path and the maximal size of a chunk."""

_MIN_CHUNK = 1024
_PROBE_SIZE = 64


def files_of(source: Any) -> list[str] | None:
    """Return the files of a folder, a pattern or a list of paths; None for any other source.

    >>> files_of(["a.nq", "b.nq"]), files_of("a.nq"), files_of([("<a>", "<p>", "<b>", 1)])
    (['a.nq', 'b.nq'], None, None)
    """
    if isinstance(source, list | tuple):
        if not source or not all(isinstance(path, str | os.PathLike) for path in source):
            return None
        if "-" in source and len(source) > 1:
            raise SourceError("standard input cannot be merged with other files; pass it alone")
        return [path for entry in source for path in files_of(entry) or [path_of(entry)]]
    if not isinstance(source, str | os.PathLike) or source == "-":
        return None
    path = path_of(source)
    if os.path.isdir(path):
        return files_in(path)
    if not os.path.exists(path) and glob.has_magic(path):
        matches = sorted(glob.glob(path, recursive=True))
        files = [file for match in matches for file in files_of(match) or [match]]
        return distinct_files(files) or None
    return None


def distinct_files(paths: Sequence[str]) -> list[str]:
    """Return the paths without those of a file that occurs before, as by a link."""
    files: dict[str, str] = {}
    for path in paths:
        files.setdefault(os.path.realpath(path), path)
    return list(files.values())


def check_distinct(paths: list[str]) -> list[str]:
    """Return the paths of a stream; raise an error if two are the same file."""
    known = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in known:
            raise SourceError(f"{path}: duplicate file; a stream reads each file once")
        known.add(real)
    return paths


def files_in(folder: str) -> list[str]:
    """Return the files of a folder and its subfolders by name, except hidden ones (`.` and `_`).

    Only files with a known extension are returned; without any, all files. Links are
    followed, and a file with several names is returned once.
    """

    def fail(error: OSError) -> None:
        raise SourceError(f"{error.filename}: {error.strerror}")

    files = []
    above = {os.path.realpath(folder)}  # following a link to one of them would never end
    for parent, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        folders[:] = [name for name in folders if name[:1] not in "._"]
        for path in [os.path.join(parent, name) for name in folders]:
            real = os.path.realpath(path)
            if os.path.islink(path) and real in above:
                folders.remove(os.path.basename(path))
            above.add(real)
        files += [os.path.join(parent, name) for name in names if name[:1] not in "._"]
    if not files:
        raise SourceError(f"{folder}: the folder contains no files")
    known = [path for path in files if has_known_extension(path)]
    return distinct_files(sorted(known or files))


def has_known_extension(path: str) -> bool:
    """Return whether the name of a file determines its format.

    >>> has_known_extension("day=1/part-0.nq.gz"), has_known_extension("README")
    (True, False)
    """
    return extension_of(path) in KNOWN_EXTENSIONS


def merge_files(
    paths: Sequence[str], chunks: ChunkReader, probe: ChunkReader, size: int
) -> Iterator[Chunk]:
    """Yield the items of several files, in the order of time as far as each file is sorted.

    `probe` reads a file as `chunks` does; it is called for the first stamp only.
    """
    if len(paths) == 1:
        yield from chunks(0, paths[0], size)
        return
    for path in paths:
        if os.path.exists(path) and not os.path.isfile(path):
            raise SourceError(
                f"{path} can be read only once and cannot be merged with other files; pass it alone"
            )
    first = sorted((_first_stamp(probe, k, path), k) for k, path in enumerate(paths))
    first.reverse()
    running = _Running()
    while running.files or first:
        while first and first[-1][0] <= running.time:
            number = first.pop()[1]
            part = max(_MIN_CHUNK, size // (len(running.files) + 1))
            file = _File(number, chunks(number, paths[number], min(part, size)))
            running.add(file)
            yield from _with_held(file.take_untimed(), running)
        if running.files:
            taken, chunk = running.next(first[-1][0] if first else None)
            for part_of_chunk in chunk.parts(size):
                part_of_chunk.retained_ids = partial(
                    _retained_ids, running.files, part_of_chunk.retained_ids
                )
                yield part_of_chunk
            for file in taken:
                yield from _with_held(file.take_untimed(), running)


def _with_held(chunks: Iterable[Chunk], running: _Running) -> Iterator[Chunk]:
    """Yield chunks without rows; meanwhile the ids of the items read ahead stay in use."""
    for chunk in chunks:
        chunk.retained_ids = partial(_retained_ids, running.files, None)
        yield chunk


def _retained_ids(files: Iterable[_File], behind: Any) -> Iterator[IntArray]:
    """Yield the ids of items that were read and not emitted."""
    for file in files:
        yield from file.retained_ids()
    if behind is not None:
        yield from behind()


def _first_stamp(probe: ChunkReader, number: int, path: str) -> int:
    """Return the first stamp of a file; -1 if it has no item with a timestamp."""
    stamps: IntArray = np.empty(0, np.int64)
    for chunk in probe(number, path, _PROBE_SIZE):
        stamps = np.concatenate([stamps, chunk.stamps])
        if len(stamps) > 1:  # the second shows whether the first is plausible
            break
    return int(_keys(stamps, None, -1)[0]) if len(stamps) else -1


class _File:
    """One of the files: the part that is being emitted, and the part read ahead after it."""

    def __init__(self, number: int, chunks: Iterator[Chunk]) -> None:
        self.number = number
        self._chunks = chunks
        self._untimed: list[Chunk] = []
        self._time = -1
        self._ahead = self._read()
        self._at = 0
        self.chunk: Chunk | None = None
        self.keys: IntArray = np.empty(0, np.int64)
        self._next()

    @property
    def ended(self) -> bool:
        """Whether all items were taken."""
        return self.chunk is None

    @property
    def time(self) -> int:
        """The time of the next item."""
        return int(self.keys[self._at])

    @property
    def last(self) -> int:
        """The time of the last item that was read."""
        return int(self.keys[-1])

    def take(self, until: int, inclusive: bool) -> tuple[Chunk, IntArray]:
        """Return the items before an instant (or at it, if `inclusive`), and their times."""
        assert self.chunk is not None
        at = self._at
        after = int(np.searchsorted(self.keys, until, "right" if inclusive else "left"))
        assert after > at, "take is only called on a file with an item before the instant"
        whole = at == 0 and after == len(self.keys)
        taken = self.chunk if whole else self.chunk.part(at, after)
        keys = self.keys[at:after]
        self._at = after
        if after == len(self.keys):
            self._next()
        return taken, keys

    def take_untimed(self) -> Iterator[Chunk]:
        """Yield rejects from parts of the file without an item that has a timestamp."""
        untimed, self._untimed = self._untimed, []
        yield from untimed

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the ids of items that were read and not taken."""
        for chunk in (self.chunk, self._ahead):
            if chunk is not None:
                yield from (chunk.s, chunk.p, chunk.o)
                if chunk.retained_ids is not None:
                    yield from chunk.retained_ids()

    def _next(self) -> None:
        self.chunk, self._at = self._ahead, 0
        self._ahead = None if self.chunk is None else self._read()
        if self.chunk is not None:
            after = None if self._ahead is None else int(self._ahead.stamps[0])
            self.keys = _keys(self.chunk.stamps, after, self._time)
            self._time = int(self.keys[-1])

    def _read(self) -> Chunk | None:
        for chunk in self._chunks:
            if len(chunk.stamps):
                return chunk
            if chunk.items or chunk.rows_without_triples:
                self._untimed.append(chunk)
        return None


def _keys(stamps: IntArray, after: int | None, time: int) -> IntArray:
    """Return the times of items in their file: its greatest plausible stamp so far.

    >>> _keys(np.array([5, 3, 10**12, 7]), None, -1).tolist()
    [5, 5, 5, 7]
    """
    following = np.append(stamps[1:], stamps[-1] if after is None else after)
    falls = stamps - following > MAX_JUMP
    if falls.any():
        before = np.maximum.accumulate(np.append(time, np.where(falls, time, stamps)))[:-1]
        bogus: BoolArray = falls & ((before < 0) | (stamps - before > MAX_JUMP))
        stamps = np.where(bogus, time, stamps)
    keys = np.maximum.accumulate(np.maximum(stamps, time))
    if keys[0] < 0:
        known = keys[keys >= 0]
        keys[keys < 0] = known[0] if len(known) else 0
    return keys


class _Running:
    """The open files, by how far the items of each were taken, and how far they were read.

    Two heaps find the few files that have items before an instant.
    """

    def __init__(self) -> None:
        self.files: dict[_File, None] = {}
        self._next: list[tuple[int, int, _File]] = []  # by the next item to take
        self._last: list[tuple[int, int, _File]] = []  # by the last item that was read

    @property
    def time(self) -> int:
        """The time of the next item of all files; LATEST if all items were taken."""
        return self._next[0][0] if self._next else LATEST

    def add(self, file: _File) -> None:
        """Add a file that was opened."""
        if not file.ended:
            self.files[file] = None
            heappush(self._last, (file.last, file.number, file))
            heappush(self._next, (file.time, file.number, file))

    def next(self, until: int | None) -> tuple[list[_File], Chunk]:
        """Return the items before `until` and before all unread items, and their files.

        The items of all files are merged into one chunk.
        """
        bound, number, _ = self._last[0]
        if until is not None and until <= bound:
            bound, number = until, -1
        taken = []
        while self._next and self._next[0][:2] <= (bound, number):
            taken.append(heappop(self._next)[2])
        taken.sort(key=lambda file: file.number)
        parts = []
        for file in taken:
            before = file.last
            parts.append(file.take(bound, file.number <= number))
            if file.ended:
                del self.files[file]
            else:
                heappush(self._next, (file.time, file.number, file))
            if not file.ended and file.last != before:
                heappush(self._last, (file.last, file.number, file))
        while self._last and self._is_stale(*self._last[0]):
            heappop(self._last)
        if len(parts) == 1:
            return taken, parts[0][0]
        order = np.argsort(np.concatenate([keys for _, keys in parts]), kind="stable")
        return taken, _merge_chunks([chunk for chunk, _ in parts], order)

    def _is_stale(self, last: int, _: int, file: _File) -> bool:
        """Return whether a heap entry refers to items that were taken since."""
        return file.ended or file.last != last


def _merge_chunks(chunks: Sequence[Chunk], order: IntArray) -> Chunk:
    """Return chunks as one, with the stamps in this order."""
    rows, count = [], 0
    for chunk in chunks:
        places = np.full(len(chunk.stamps), -1)
        places[slice(None) if chunk.kept is None else chunk.kept] = np.arange(len(chunk)) + count
        rows.append(places)
        count += len(chunk)
    row_of_stamp = np.concatenate(rows)[order]
    kept = np.flatnonzero(row_of_stamp >= 0)
    row = row_of_stamp[kept]
    s, p, o = (np.concatenate([getattr(c, name) for c in chunks])[row] for name in "spo")
    since = None
    if any(chunk.since is not None for chunk in chunks):
        since = np.concatenate([chunk.start for chunk in chunks])[row]
    sizes = [len(chunk.stamps) for chunk in chunks]
    part = np.repeat(np.arange(len(chunks)), sizes)[order]
    local = np.concatenate([np.arange(size) for size in sizes])[order]
    stamps = np.concatenate([chunk.stamps for chunk in chunks])[order]
    positions = np.concatenate([chunk.positions for chunk in chunks])[order]
    rejects: list[Reject] = [reject for chunk in chunks for reject in chunk.rejects]
    every = None if len(kept) == len(order) else kept
    return Chunk(
        *(s, p, o, since, stamps, every, positions, sum(chunk.items for chunk in chunks), rejects),
        lambda k: chunks[int(part[k])].original(int(local[k])),
        tuple(chunk.origins[0] for chunk in chunks),
        part,
        rows_without_triples=sum(chunk.rows_without_triples for chunk in chunks),
    )
