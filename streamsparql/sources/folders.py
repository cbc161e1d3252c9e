"""Several files as one stream: a folder, a pattern or a list of paths, merged by time.

Files may follow each other in time, or run beside each other, such as one per sensor. Each has an
order of its own: an item comes when all items of other files have come that are stamped before the
greatest stamp so far of its own file. So an item is late in the whole just where it is late in its
file, whatever the other files are like.

To know the order of the files, each is looked into first, as far as its first item. It is opened
when the merged time comes to that; so what is in memory is a part of each file that runs at a time.

**A bogus stamp** in the future must not hold back what follows it in its file until the others
have come so far. So an item that leaps ahead by more than a day, and from which the next one falls
back as far, is put where it stands in its file, for the sorter to judge it there.
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
from streamsparql.sources.files import KNOWN
from streamsparql.sources.paths import extension_of, path_of
from streamsparql.sources.stamps import LATEST

Open = Callable[[int, str, int], Iterator[Chunk]]
"""The chunks of a file, given its number, its path and the most items of a chunk."""

_LEAST = 1024
_PROBE = 64


def files_of(source: Any) -> list[str] | None:
    """The files of a folder, a pattern or a list of paths; None for any other source.

    >>> files_of(["a.nq", "b.nq"]), files_of("a.nq"), files_of([("<a>", "<p>", "<b>", 1)])
    (['a.nq', 'b.nq'], None, None)
    """
    if isinstance(source, list | tuple):
        if not source or not all(isinstance(one, str | os.PathLike) for one in source):
            return None
        if "-" in source and len(source) > 1:
            raise SourceError("standard input is no file among others: give it alone")
        return [path for one in source for path in files_of(one) or [path_of(one)]]
    if not isinstance(source, str | os.PathLike) or source == "-":
        return None
    path = path_of(source)
    if os.path.isdir(path):
        return files_in(path)
    if not os.path.exists(path) and glob.has_magic(path):
        matching = sorted(glob.glob(path, recursive=True))
        found = [file for one in matching for file in files_of(one) or [one]]
        return without_repeats(found) or None
    return None


def without_repeats(paths: Sequence[str]) -> list[str]:
    """The paths, but for those of a file that is among them already, as by a link."""
    found: dict[str, str] = {}
    for path in paths:
        found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def each_once(paths: list[str]) -> list[str]:
    """The paths of a stream; an error if two of them are of one file, for it would count twice."""
    known = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in known:
            raise SourceError(f"{path} is given twice")
        known.add(real)
    return paths


def files_in(folder: str) -> list[str]:
    """The files of a folder and those below it, by name, but those that begin with a dot or `_`.

    They are those whose names tell their format; where none does, all. Links are followed, and a
    file that has several names is one.
    """

    def refuse(error: OSError) -> None:
        raise SourceError(f"{error.filename}: {error.strerror}")

    found = []
    above = {os.path.realpath(folder)}  # a link to one of them would never end
    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        folders[:] = [name for name in folders if name[:1] not in "._"]
        for path in [os.path.join(parent, name) for name in folders]:
            real = os.path.realpath(path)
            if os.path.islink(path) and real in above:
                folders.remove(os.path.basename(path))
            above.add(real)
        found += [os.path.join(parent, name) for name in names if name[:1] not in "._"]
    known = [path for path in found if tells_format(path)]
    if not found:
        raise SourceError(f"{folder}: there is no file in it")
    return without_repeats(sorted(known or found))


def tells_format(path: str) -> bool:
    """Whether the name of a file tells its format.

    >>> tells_format("day=1/part-0.nq.gz"), tells_format("README")
    (True, False)
    """
    return extension_of(path) in KNOWN


def merged(paths: Sequence[str], chunks: Open, probe: Open, size: int) -> Iterator[Chunk]:
    """The items of several files, in the order of time as far as each file is in order.

    `probe` reads a file as `chunks` does, but is asked for its first stamp only.
    """
    if len(paths) == 1:
        yield from chunks(0, paths[0], size)
        return
    for path in paths:
        if os.path.exists(path) and not os.path.isfile(path):
            raise SourceError(
                f"{path} can be read once, and files that are merged are looked into before:"
                " give it alone"
            )
    first = sorted((_first_stamp(probe, k, path), k) for k, path in enumerate(paths))
    first.reverse()
    running = _Running()
    while running.files or first:
        while first and first[-1][0] <= running.time:
            number = first.pop()[1]
            part = max(_LEAST, size // (len(running.files) + 1))
            file = _File(number, chunks(number, paths[number], min(part, size)))
            running.take_in(file)
            yield from _holding(file.without_time(), running)
        if running.files:
            taken, chunk = running.next(first[-1][0] if first else None)
            for part_of_it in chunk.parts(size):
                part_of_it.held = partial(_held, running.files, part_of_it.held)
                yield part_of_it
            for file in taken:
                yield from _holding(file.without_time(), running)


def _holding(chunks: Iterable[Chunk], running: _Running) -> Iterator[Chunk]:
    """Chunks without rows, while which the ids of what was read stay in use."""
    for chunk in chunks:
        chunk.held = partial(_held, running.files, None)
        yield chunk


def _held(files: Iterable[_File], behind: Any) -> Iterator[IntArray]:
    """The ids of items that were read and not given out."""
    for file in files:
        yield from file.held()
    if behind is not None:
        yield from behind()


def _first_stamp(probe: Open, number: int, path: str) -> int:
    """When a file begins; -1 where it has no item with a timestamp."""
    stamps: IntArray = np.empty(0, np.int64)
    for chunk in probe(number, path, _PROBE):
        stamps = np.concatenate([stamps, chunk.stamps])
        if len(stamps) > 1:  # the second tells whether to believe the first
            break
    return int(_keys(stamps, None, -1)[0]) if len(stamps) else -1


class _File:
    """One of the files: a part of it that was read, and the part after that."""

    def __init__(self, number: int, chunks: Iterator[Chunk]) -> None:
        self.number = number
        self._chunks = chunks
        self._loose: list[Chunk] = []
        self._time = -1
        self._ahead = self._read()
        self._at = 0
        self.chunk: Chunk | None = None
        self.keys: IntArray = np.empty(0, np.int64)
        self._next()

    @property
    def ended(self) -> bool:
        """Whether all has been taken."""
        return self.chunk is None

    @property
    def time(self) -> int:
        """Where the next item stands in time."""
        return int(self.keys[self._at])

    @property
    def last(self) -> int:
        """Where the last one stands that was read."""
        return int(self.keys[-1])

    def take(self, until: int, itself: bool) -> tuple[Chunk, IntArray]:
        """What stands before an instant, or at it, too, with the places in time."""
        assert self.chunk is not None
        at = self._at
        after = int(np.searchsorted(self.keys, until, "right" if itself else "left"))
        assert after > at, "a file that has nothing to give is not asked"
        whole = at == 0 and after == len(self.keys)
        found = self.chunk if whole else self.chunk.part(at, after)
        keys = self.keys[at:after]
        self._at = after
        if after == len(self.keys):
            self._next()
        return found, keys

    def without_time(self) -> Iterator[Chunk]:
        """Rejects that came where there was no item with a timestamp."""
        loose, self._loose = self._loose, []
        yield from loose

    def held(self) -> Iterator[IntArray]:
        """The ids of what was read and not taken."""
        for chunk in (self.chunk, self._ahead):
            if chunk is not None:
                yield from (chunk.s, chunk.p, chunk.o)
                if chunk.held is not None:
                    yield from chunk.held()

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
                self._loose.append(chunk)
        return None


def _keys(stamps: IntArray, after: int | None, time: int) -> IntArray:
    """Where items stand in the time of their file: its greatest stamp so far that is believed.

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
    """The files that run at a time: how far each was taken, and how far each was read.

    Of many files a few have anything to give before some instant: two heaps tell which.
    """

    def __init__(self) -> None:
        self.files: dict[_File, None] = {}
        self._next: list[tuple[int, int, _File]] = []  # by the next item that is to be taken
        self._last: list[tuple[int, int, _File]] = []  # by the last item that was read

    @property
    def time(self) -> int:
        """Where the next item of all stands; LATEST where there is none."""
        return self._next[0][0] if self._next else LATEST

    def take_in(self, file: _File) -> None:
        """A file begins."""
        if not file.ended:
            self.files[file] = None
            heappush(self._last, (file.last, file.number, file))
            heappush(self._next, (file.time, file.number, file))

    def next(self, until: int | None) -> tuple[list[_File], Chunk]:
        """What of all files stands before all that is still to be read of any of them, and before
        `until`; and which files that is of.
        """  # fmt: skip
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
        while self._last and self._gone(*self._last[0]):
            heappop(self._last)
        if len(parts) == 1:
            return taken, parts[0][0]
        order = np.argsort(np.concatenate([keys for _, keys in parts]), kind="stable")
        return taken, _mixed([chunk for chunk, _ in parts], order)

    def _gone(self, last: int, _: int, file: _File) -> bool:
        """Whether an entry of a heap is of what was taken since."""
        return file.ended or file.last != last


def _mixed(chunks: Sequence[Chunk], order: IntArray) -> Chunk:
    """Chunks as one, whose stamps are in this order."""
    rows, count = [], 0
    for chunk in chunks:
        places = np.full(len(chunk.stamps), -1)
        places[slice(None) if chunk.kept is None else chunk.kept] = np.arange(len(chunk)) + count
        rows.append(places)
        count += len(chunk)
    of = np.concatenate(rows)[order]
    kept = np.flatnonzero(of >= 0)
    row = of[kept]
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
