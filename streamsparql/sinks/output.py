"""Where bytes go: a path, packed or not, or an open file of bytes or of text."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa

from streamsparql.errors import EngineError

_PACKINGS = {".gz": "gzip", ".zst": "zstd"}


class Output:
    """Takes bytes of UTF-8 text, also where the file below takes texts."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._texts = isinstance(file, io.TextIOBase) or "b" not in getattr(file, "mode", "b")

    def write(self, data: bytes) -> None:
        """Writes all of it."""
        self._file.write(data.decode("utf-8") if self._texts else data)

    def flush(self) -> None:
        """What was written is there to be read, as far as packing lets it be."""
        self._file.flush()


@contextmanager
def opened(target: str | os.PathLike[str] | IO[Any], binary: bool) -> Iterator[Any]:
    """The output for a target; a file that is given by its path is made, and closed at the end.

    What is `binary` gets the file as it is.
    """
    if not isinstance(target, str | os.PathLike):
        yield target if binary else Output(target)
        return
    path = os.fspath(target)
    packing = _PACKINGS.get(os.path.splitext(path.lower())[1])
    try:
        file: Any = open(path, "wb")  # noqa: SIM115 -- it is closed below
    except OSError as error:
        raise EngineError(f"cannot write {path}: {error.strerror}") from None
    with file:
        if packing is None:
            yield file if binary else Output(file)
            return
        packed = pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), packing)
        try:
            yield packed if binary else _Packed(packed)
        finally:
            packed.close()


class _Packed(Output):
    """A packed output: it is whole when it is closed, and no sooner."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._texts = False

    def flush(self) -> None:
        """Packing by small pieces packs badly: what is held back is written at the end."""
