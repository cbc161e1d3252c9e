"""Compressed files: gzip and Zstandard, decompressed as they are read, and as data arrives.

A compressed file may be truncated or damaged, as by an interrupted copy or a full disk. The content
before the damage is returned as though the file ended there; `broken` is the reason.
"""

from __future__ import annotations

import io
import re
import zlib
from typing import IO, Any

import pyarrow as pa

from streamsparql.errors import SourceError
from streamsparql.overriding import override
from streamsparql.sources.lines import AvailableReader

_READ_SIZE = 1 << 16
_TRUNCATED = re.compile("too soon|[Tt]runcated")


class _NotedReader(AvailableReader):
    """A file of compressed data that notes whether it has any."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.has_data = False
        self._read, self.read = self.read, self._noted

    def _noted(self, size: int) -> bytes:
        data: bytes = self._read(size)
        self.has_data = self.has_data or bool(data)
        return data


class CompressedFile(io.RawIOBase):
    """The content of a compressed file, as a raw file that can be buffered."""

    kind = ""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._compressed = _NotedReader(file)
        self._has_content = False
        self.broken: str | None = None
        """Why the content is truncated or damaged; None if it is whole."""

    @property
    def _name(self) -> object:
        return getattr(self._file, "name", "the file")

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int:
        if self.broken is not None:
            return 0
        try:
            data = self._decompressed(len(buffer))
        except (OSError, zlib.error) as error:
            if not self._has_content and not _TRUNCATED.search(str(error)):
                raise SourceError(
                    f"{self._name} cannot be decompressed as {self.kind}: {error}"
                ) from error
            self.broken = str(error)
            return 0
        if not data and not self._compressed.has_data:
            raise SourceError(f"{self._name} is empty; expected {self.kind}")
        self._has_content = self._has_content or bool(data)
        buffer[: len(data)] = data
        return len(data)

    def _decompressed(self, most: int) -> bytes:
        """Return up to `most` bytes of the content; none at its end."""
        raise NotImplementedError

    @override
    def close(self) -> None:
        self._file.close()
        super().close()


class Gzip(CompressedFile):
    """A gzip file, which may have several members."""

    kind = "gzip"

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._member = zlib.decompressobj(wbits=31)
        self._read = self._compressed.read
        self._input = b""
        self._member_begun = False
        self._damage: zlib.error | None = None

    @override
    def _decompressed(self, most: int) -> bytes:
        if self._damage is not None:
            raise self._damage
        while True:
            if self._member.eof:
                self._input = self._member.unused_data.lstrip(b"\0")
                self._member = zlib.decompressobj(wbits=31)
                self._member_begun = False
            if not self._input:
                self._input = self._read(_READ_SIZE)
            if not self._input:
                if self._member_begun:
                    raise OSError("the compressed data end too soon")
                return b""
            self._member_begun = True
            before = self._member.copy()
            try:
                data = self._member.decompress(self._input, most)
            except zlib.error as error:
                data, self._input = _content_before_damage(before, self._input), b""
                if not data:
                    raise
                self._damage = error
                return data
            self._input = self._member.unconsumed_tail
            if data:
                return data


def _content_before_damage(member: Any, compressed: bytes) -> bytes:
    """Return the content before the damage, by decompressing byte by byte."""
    content = []
    try:
        for k in range(len(compressed)):
            content.append(member.decompress(compressed[k : k + 1]))
    except zlib.error:
        pass
    return b"".join(content)


class Zstandard(CompressedFile):
    """A zstd file; it is read in small parts, because a part that fails is lost."""

    kind = "Zstandard"

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._stream = self._open()
        self._returned = 0
        """The number of bytes of the content that were returned."""
        self._damage: OSError | None = None

    def _open(self) -> Any:
        return pa.CompressedInputStream(pa.PythonFile(self._compressed, mode="r"), "zstd")

    @override
    def _decompressed(self, most: int) -> bytes:
        if self._damage is not None:
            raise self._damage
        try:
            data: bytes = self._stream.read(min(most, 1 << 12))
        except OSError as error:
            data = self._content_before_damage()
            if not data:
                raise
            self._damage = error
        self._returned += len(data)
        return data

    def _content_before_damage(self) -> bytes:
        """Return the rest of the content before the damage, by reading again byte by byte."""
        content = []
        try:
            self._file.seek(0)
            stream = self._open()
            left = self._returned
            while left and (part := stream.read(min(left, _READ_SIZE))):
                left -= len(part)
            while byte := stream.read(1):
                content.append(byte)
        except OSError:  # the damage, or a file that cannot be read again
            pass
        return b"".join(content)
