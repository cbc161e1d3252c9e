"""Growing files: each line is a message, and each file a partition, whose position is in bytes.

    follow:wind.jsonl?map=m.rq     follow:logs/     follow:logs/*.nq?until=end

Files are polled. A file that was rotated (renamed, and created anew under its name) is read to its
end, then the new one; one that was truncated is read from its beginning. A line counts once its end
is there. Positions survive a rotation: the file is found by its number in the file system, or among
the files next to it whose names begin with its name, and a checksum of its beginning.
"""

from __future__ import annotations

import glob
import os
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from time import monotonic, sleep
from typing import IO, Any

from streamsparql.connectors.interface import Position
from streamsparql.connectors.message import Message
from streamsparql.connectors.urls import ConnectorUrl
from streamsparql.errors import SourceError
from streamsparql.sources.lines import LONGEST
from streamsparql.sources.paths import extension_of, is_compressed

_FORMATS = {
    "nq": {"format": "nq"},
    "nt": {"format": "nt"},
    "jsonl": {"format": "json"},
    "ndjson": {"format": "json"},
    "json": {"format": "json"},
    "csv": {"format": "csv"},
    "tsv": {"format": "csv", "delimiter": "\t"},
}
_BLOCK = 1 << 20
_PAUSE = 0.05
_HEAD = 256


def layout(url: ConnectorUrl) -> dict[str, Any]:
    """Return the format of the lines, by the extension of the first file, and its columns."""
    if url.hosts:
        raise SourceError(f"{url.shown}: a file has no host; write follow:PATH")
    first = next(iter(_paths(url)), url.path)
    if is_compressed(first):
        raise SourceError(f"{first}: a compressed file does not grow by lines; read it as a file")
    known: dict[str, Any] = dict(_FORMATS.get(extension_of(first), {}))
    kind = url.text("format") or known.get("format")
    if kind == "csv" and not url.text("columns"):
        known["columns"] = _header(first, known.get("delimiter") or url.text("delimiter") or ",")
    return known


def _header(path: str, delimiter: str) -> list[str]:
    """Return the columns that the first line of a file names."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            line = file.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: {error}; name the columns: ?columns=A,B,..") from None
    if not line:
        raise SourceError(f"{path} has no header yet; name the columns: ?columns=A,B,..")
    return [name.strip('"') for name in line.split("\t" if delimiter == "tab" else delimiter)]


def transport(url: ConnectorUrl, decoder: Any) -> Follow:
    """Return the files of a URL."""
    until_end = url.text("until", among=("end",)) == "end"
    header = decoder.format == "csv" and not url.text("columns")
    return Follow(url, until_end, header)


def _paths(url: ConnectorUrl) -> list[str]:
    """Return the files that there are now: the file itself, those of a folder or of a pattern."""
    path = url.path
    if os.path.isdir(path):
        found = [entry.path for entry in os.scandir(path) if entry.is_file()]
        known = [name for name in found if extension_of(name) in _FORMATS]
        return sorted(name for name in known if not is_compressed(name))
    if not os.path.exists(path) and glob.has_magic(path):
        return sorted(filter(os.path.isfile, glob.glob(path)))
    return [path]


class _File:
    """A file that is read as it grows."""

    def __init__(self, path: str, header: bool) -> None:
        self.path = path
        self._header = header
        self._file: IO[bytes] | None = None
        self._base = 0
        """The bytes of the files before it, under the same name."""
        self._offset = 0
        self._left = b""
        """The beginning of a line whose end is not there yet; it ends at the offset."""
        self.at_end = False
        self.start: Position = {"offset": 0, "base": 0}
        """The position at which reading started."""
        if self._open(path):
            self.start = self._position(0)

    def _position(self, offset: int) -> Position:
        if self._file is None:
            return {"offset": offset, "base": self._base}
        number = self._file.fileno()
        size = min(_HEAD, self._offset)
        begins = {"head": size, "sum": zlib.crc32(os.pread(number, size, 0))}
        return {"offset": offset, "base": self._base, "inode": os.fstat(number).st_ino, **begins}

    def seek(self, position: Position) -> None:
        """Go to a position, in the file that it was returned for."""
        self._base, self.start = position["base"], position
        inode = position.get("inode")
        if inode is None:
            return
        self.close()
        beside = self._beside()
        like = [path for path in beside if _begins(path, position)]
        same = [path for path in like if os.stat(path).st_ino == inode] or like
        if not same:
            raise SourceError(
                f"{self.path}: the file of the saved position was replaced, and is not beside it;"
                " items may be lost: start without the position to read what there is"
            )
        self._open(same[0])
        assert self._file is not None
        self._offset = position["offset"]
        self._file.seek(self._offset)

    def read(self, whole: bool) -> Iterator[Message]:
        """Yield the lines that are there; `whole` also one that has no end."""
        while True:
            if self._file is None and not self._open(self.path):
                self.at_end = True
                return
            assert self._file is not None
            data = self._file.read(_BLOCK)
            self._offset += len(data)
            if data:
                self.at_end = not whole and len(data) < _BLOCK
                yield from self._lines(data)
                return
            newer = self._newer()
            if newer is not None:
                if more := self._file.read(_BLOCK):  # written just before it was replaced
                    self._offset += len(more)
                    yield from self._lines(more)
                    return
                yield from self._rest()
                self._base += self._offset
                self._offset = 0
                self.close()
                self._open(newer)
                continue
            self.at_end = True
            if whole:
                yield from self._rest()
            return

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _open(self, path: str) -> bool:
        """Open a file, if there is one."""
        try:
            self._file = open(path, "rb")  # noqa: SIM115 -- it stays open
        except FileNotFoundError:
            self._file = None
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}") from None
        return self._file is not None

    def _newer(self) -> str | None:
        """Return the file that replaced this one, which was read to its end; None without one."""
        assert self._file is not None
        mine = os.fstat(self._file.fileno())
        try:
            beside = self._beside()
            numbers = [os.stat(path).st_ino for path in beside]
        except FileNotFoundError:  # renamed at this moment: the next poll will find it
            return None
        if mine.st_ino not in numbers:  # removed
            return self.path if os.path.exists(self.path) else None
        place = numbers.index(mine.st_ino) + 1
        if place == len(beside):
            is_truncated = mine.st_size < self._offset
            return self.path if is_truncated and beside[-1] == self.path else None
        return beside[place]

    def _beside(self) -> list[str]:
        """Return the file and its older ones, which were renamed, from the oldest to itself."""
        folder, name = os.path.split(self.path)
        rotated = re.compile(rf"{re.escape(name)}[._-][0-9][0-9._T:-]*")
        entries = [e for e in os.scandir(folder or ".") if rotated.fullmatch(e.name)]
        entries.sort(key=lambda entry: entry.stat().st_mtime_ns)
        itself = [self.path] if os.path.exists(self.path) else []
        return [os.path.join(folder, entry.name) for entry in entries] + itself

    def _lines(self, data: bytes) -> Iterator[Message]:
        """Yield the whole lines of more data, without empty ones."""
        start = self._offset - len(data) - len(self._left)
        lines = (self._left + data).split(b"\n")
        self._left = lines.pop()
        if len(self._left) > LONGEST:
            raise SourceError(f"{self.path}: a line is longer than {LONGEST:,} bytes")
        ends = self._position(0)
        for line in lines:
            after = start + len(line) + 1
            if line.strip() and not (self._header and start == 0):
                position = {**ends, "offset": after}
                yield Message(line, self.path, self._base + start + 1, position, topic=self.path)
            start = after

    def _rest(self) -> Iterator[Message]:
        """Yield the last line of a file that does not grow, if it has no end."""
        line, self._left = self._left, b""
        start = self._offset - len(line)
        if line.strip() and not (self._header and start == 0):
            place = self._base + start + 1
            yield Message(line, self.path, place, self._position(self._offset), topic=self.path)


def _begins(path: str, position: Position) -> bool:
    """Return whether a file begins as that of a position did, and is as long."""
    try:
        with open(path, "rb") as file:
            same: bool = zlib.crc32(file.read(position["head"])) == position["sum"]
            return same and os.fstat(file.fileno()).st_size >= position["offset"]
    except OSError:
        return False


class Follow:
    """A transport of the lines of files: one, those of a folder, or those of a pattern."""

    unit = "byte"
    replayable = True

    def __init__(self, url: ConnectorUrl, until_end: bool, header: bool) -> None:
        self._url, self._until_end, self._header = url, until_end, header
        self._files: dict[str, _File] = {}
        self._find()

    @property
    def ended(self) -> bool:
        """Whether the files were read to their ends, if they are to be read no further."""
        return self._until_end and all(file.at_end for file in self._files.values())

    def receive(self, timeout: float, paused: Collection[str]) -> list[Message]:
        """Return the next lines of each file, up to about a megabyte."""
        until = monotonic() + timeout
        while True:
            self._find()
            messages = [
                message
                for path, file in self._files.items()
                if path not in paused
                for message in file.read(self._until_end)
            ]
            left = until - monotonic()
            if messages or left <= 0 or self.ended:
                return messages
            sleep(min(left, _PAUSE))

    def positions(self) -> Mapping[str, Position]:
        """Return the files, each with the position that was read up to."""
        return {path: file.start for path, file in self._files.items()}

    def at_end(self, partition: str) -> bool:
        """Return whether a file was read to its end."""
        return self._files[partition].at_end

    def seek(self, positions: Mapping[str, Position]) -> None:
        """Start at these positions."""
        for path, position in positions.items():
            if path not in self._files:
                self._files[path] = _File(path, self._header)
            self._files[path].seek(position)

    def commit(self, positions: Mapping[str, Position]) -> None:
        """Acknowledge nothing: files stay."""

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def _find(self) -> None:
        """Find new files."""
        for path in _paths(self._url):
            if path not in self._files:
                self._files[path] = _File(path, self._header)
