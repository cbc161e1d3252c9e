"""Where bytes go: a path, packed or not, or an open file of bytes or of text."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import pyarrow as pa

from streamsparql.errors import EngineError
from streamsparql.overriding import override
from streamsparql.sources.folders import files_of
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.paths import path_of

_LEVEL = 6


class Output:
    """Takes bytes of UTF-8 text, also where the file below takes texts."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._texts = isinstance(file, io.TextIOBase) or hasattr(file, "encoding")

    def write(self, data: bytes) -> None:
        """Writes all of it."""
        self._file.write(data.decode("utf-8") if self._texts else data)

    def flush(self) -> None:
        """What was written is there to be read, as far as packing lets it be."""
        flush = getattr(self._file, "flush", None)
        if flush is not None:
            flush()


class _Named(io.RawIOBase):
    """A file that is written, and says which one it is when it cannot be."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._file: Any = None
        self._told(lambda: setattr(self, "_file", open(path, "wb")))  # noqa: SIM115

    def _told(self, act: Any) -> Any:
        try:
            return act()
        except OSError as error:
            raise EngineError(f"cannot write {self._path}: {error.strerror or error}") from None

    @override
    def writable(self) -> bool:
        return True

    @override
    def write(self, data: Any) -> int:
        written: int = self._told(lambda: self._file.write(data))
        return written

    @override
    def flush(self) -> None:
        if self._file is not None and not self._file.closed:
            self._told(self._file.flush)

    @override
    def close(self) -> None:
        if self._file is not None:
            self._told(self._file.close)
        super().close()


class _Packed(Output):
    """A packed output: it is whole when it is closed, and no sooner."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._texts = False

    @override
    def flush(self) -> None:
        """Packing by small pieces packs badly: what is held back is written at the end."""


@contextmanager
def opened(target: str | os.PathLike[str] | IO[Any], binary: bool) -> Iterator[Any]:
    """The output for a target; a file that is given by its path is made, and closed at the end.

    What is `binary` gets the file as it is.
    """
    if not isinstance(target, str | os.PathLike):
        if not hasattr(target, "write"):
            raise EngineError(f"a result is written to a path or an open file, not {target!r:.40}")
        if binary and hasattr(target, "encoding"):
            raise EngineError("parquet is written to a path or a file of bytes, not of text")
        yield target if binary else Output(target)
        return
    path = os.fspath(target)
    extension = os.path.splitext(path.lower())[1]
    with ExitStack() as stack:
        file: Any = stack.enter_context(_Named(path))
        if extension == ".gz":
            made: Any = gzip.GzipFile("", "wb", _LEVEL, file, mtime=0)
            yield _Packed(stack.enter_context(made))
        elif extension == ".zst":
            made = pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd")
            yield _Packed(stack.enter_context(made))
        else:
            yield file if binary else Output(file)


def check_target(target: Any, sources: Iterable[Any]) -> None:
    """An error where a file would be written that is read, too."""
    if not isinstance(target, str | os.PathLike) or not os.path.isfile(target):
        return
    for source in sources:
        if any(os.path.exists(file) and os.path.samefile(file, target) for file in _paths(source)):
            raise EngineError(f"{os.fspath(target)} is read, and cannot be written meanwhile")


def _paths(source: Any) -> Iterator[str]:
    """The files that a source is read from, as far as it has names for them."""
    if isinstance(source, Mapped):
        yield from _paths(source.source)
    elif (files := files_of(source)) is not None:
        yield from files
    elif isinstance(source, str | os.PathLike):
        yield path_of(source)
    elif isinstance(name := getattr(source, "name", None), str):
        yield name
