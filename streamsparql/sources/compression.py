"""Packed files: gzip and Zstandard, unpacked as they are read, and as they come.

A packed file may break off: its copy was interrupted, its disk was full. What could be unpacked is
given, then there is an end, and `broken` says why it is none.
"""

from __future__ import annotations

import io
import re
import zlib
from typing import IO, Any

import pyarrow as pa

from streamsparql.errors import SourceError
from streamsparql.overriding import override
from streamsparql.sources.lines import Prompt

_PART = 1 << 16
_TOO_SOON = re.compile("too soon|[Tt]runcated")


class Packed(io.RawIOBase):
    """The content of a packed file, as a raw file that can be buffered."""

    kind = ""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._any = False
        self.broken: str | None = None
        """Why there is no more, where that is not because there is no more."""

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int:
        if self.broken is not None:
            return 0
        try:
            data = self._unpacked(len(buffer))
        except (OSError, zlib.error) as error:
            if not self._any and not _TOO_SOON.search(str(error)):
                raise SourceError(
                    f"{getattr(self._file, 'name', 'the file')} cannot be unpacked as"
                    f" {self.kind}: {error}"
                ) from error
            self.broken = str(error)
            return 0
        self._any = self._any or bool(data)
        buffer[: len(data)] = data
        return len(data)

    def _unpacked(self, most: int) -> bytes:
        """Some bytes of the content; none at its end."""
        raise NotImplementedError

    @override
    def close(self) -> None:
        self._file.close()
        super().close()


class Gzip(Packed):
    """What gzip packed, one member after the other."""

    kind = "gzip"

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._member = zlib.decompressobj(wbits=31)
        self._read = Prompt(file).read
        self._packed = b""
        self._begun = False
        self._damage: zlib.error | None = None

    @override
    def _unpacked(self, most: int) -> bytes:
        if self._damage is not None:
            raise self._damage
        while True:
            if self._member.eof:
                self._packed = self._member.unused_data.lstrip(b"\0")
                self._member = zlib.decompressobj(wbits=31)
                self._begun = False
            if not self._packed:
                self._packed = self._read(_PART)
            if not self._packed:
                if self._begun:
                    raise OSError("the compressed data end too soon")
                return b""
            self._begun = True
            before = self._member.copy()
            try:
                data = self._member.decompress(self._packed, most)
            except zlib.error as error:
                data, self._packed = _up_to_the_damage(before, self._packed), b""
                if not data:
                    raise
                self._damage = error
                return data
            self._packed = self._member.unconsumed_tail
            if data:
                return data


def _up_to_the_damage(member: Any, packed: bytes) -> bytes:
    """What can be unpacked before zlib finds what is wrong: it is asked byte by byte."""
    found = []
    try:
        for k in range(len(packed)):
            found.append(member.decompress(packed[k : k + 1]))
    except zlib.error:
        pass
    return b"".join(found)


class Zstandard(Packed):
    """What zstd packed; small parts are taken at a time, for one that fails is lost."""

    kind = "Zstandard"

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._stream = self._opened()
        self._given = 0
        self._damage: OSError | None = None

    def _opened(self) -> Any:
        return pa.CompressedInputStream(pa.PythonFile(Prompt(self._file), mode="r"), "zstd")

    @override
    def _unpacked(self, most: int) -> bytes:
        if self._damage is not None:
            raise self._damage
        try:
            data: bytes = self._stream.read(min(most, 1 << 12))
        except OSError as error:
            data = self._up_to_the_damage()
            if not data:
                raise
            self._damage = error
        self._given += len(data)
        return data

    def _up_to_the_damage(self) -> bytes:
        """The rest before what cannot be unpacked, from the beginning on and byte by byte."""
        found = []
        try:
            self._file.seek(0)
            stream = self._opened()
            left = self._given
            while left and (part := stream.read(min(left, _PART))):
                left -= len(part)
            while byte := stream.read(1):
                found.append(byte)
        except OSError:  # the damage, or it is no file that can be read again
            pass
        return b"".join(found)
