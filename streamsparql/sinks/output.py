"""The targets of sinks: a path, compressed or not, or an open file of bytes or of text."""

from __future__ import annotations

import gzip
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from secrets import token_hex
from types import TracebackType
from typing import IO, Any

import pyarrow as pa

from streamsparql.errors import EngineError, escape_controls
from streamsparql.overriding import override
from streamsparql.sources.folders import files_of
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.paths import path_of

_LEVEL = 6


class Output:
    """An output of UTF-8 text as bytes, which are decoded for a text file.

    On a terminal, control characters of the data are escaped: they could move the cursor, or hide
    output.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._is_terminal = hasattr(file, "isatty") and file.isatty()
        self._texts = isinstance(file, io.TextIOBase) or hasattr(file, "encoding")

    def write(self, data: bytes) -> None:
        """Write all of the data."""
        if self._is_terminal:
            data = escape_controls(data.decode("utf-8")).encode("utf-8")
        self._file.write(data.decode("utf-8") if self._texts else data)

    def flush(self) -> None:
        """Flush the file."""
        flush = getattr(self._file, "flush", None)
        if flush is not None:
            flush()


class Incomplete(Exception):
    """Raised to end the `with` of a sink before all rows are written, without an error."""

    part: str | None = None
    """The file with the rows so far; None if they were written in place."""


class _NamedFile(io.RawIOBase):
    """A file opened for writing, whose errors name it.

    If it is to be `whole`, it is written next to its name, and renamed at the end of the `with`; so
    there is never a part of it under its name. After an error the part is removed; after
    `Incomplete` it stays. Devices and pipes are written in place, and so are
    files in folders in which no other file can be created.
    """

    def __init__(self, path: str, whole: bool) -> None:
        super().__init__()
        self._path = path
        self._part: str | None = None
        self._file: Any = None
        if whole and _is_replaceable(path):
            self._with_name(self._open_part)
        if self._file is None:
            self._with_name(lambda: setattr(self, "_file", open(path, "wb")))  # noqa: SIM115

    def _open_part(self) -> None:
        """Open a file next to the target, with the permissions of the target."""
        folder, name = os.path.split(os.path.realpath(self._path))
        part = os.path.join(folder, f"{name[:_LONGEST_NAME]}.{token_hex(4)}.part")
        try:
            self._file = open(part, "xb")  # noqa: SIM115
        except PermissionError:
            return
        self._part = part
        if os.path.exists(self._path):
            with suppress(OSError):
                shutil.copymode(self._path, part)

    def _with_name(self, act: Any) -> Any:
        try:
            return act()
        except OSError as error:
            raise EngineError(f"cannot write {self._path}: {error.strerror or error}") from None

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        part = self._part
        try:
            self.close()
            if part is not None and kind is None:
                self._with_name(lambda: os.replace(part, os.path.realpath(self._path)))
                self._part = None
            elif isinstance(error, Incomplete):
                error.part, self._part = part, None
        finally:
            if self._part is not None:
                with suppress(OSError):
                    os.unlink(self._part)

    @override
    def writable(self) -> bool:
        return True

    @override
    def write(self, data: Any) -> int:
        written: int = self._with_name(lambda: self._file.write(data))
        return written

    @override
    def flush(self) -> None:
        if self._file is not None and not self._file.closed:
            self._with_name(self._file.flush)

    @override
    def close(self) -> None:
        if self._file is not None:
            self._with_name(self._file.close)
        super().close()


_LONGEST_NAME = 200


def _is_replaceable(path: str) -> bool:
    """Return whether another file can take the place of a path: it is missing, or a plain file."""
    if os.path.abspath(path).startswith(("/dev/", "/proc/")):  # such as /dev/stdout
        return False
    return not os.path.lexists(path) or (os.path.isfile(path) and os.access(path, os.W_OK))


class _CompressedOutput(Output):
    """A compressed output: its content is complete only once it is closed."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._texts = False

    @override
    def flush(self) -> None:
        """Do nothing: compressing small pieces is inefficient; the rest is written on close."""


@contextmanager
def open_target(
    target: str | os.PathLike[str] | IO[Any], binary: bool, whole: bool
) -> Iterator[Any]:
    """Open the output for a target; a file that is passed by its path is closed at the end.

    For a `binary` format the file itself is the output. A file by its path is replaced when the new
    one is `whole`, and is otherwise unchanged; else it is written in place.
    """
    if not isinstance(target, str | os.PathLike):
        if not hasattr(target, "write"):
            raise EngineError(f"a result is written to a path or an open file, not {target!r:.40}")
        if binary and hasattr(target, "encoding"):
            raise EngineError("parquet needs a path or a file of bytes, not of text")
        yield target if binary else Output(target)
        return
    path = os.fspath(target)
    extension = os.path.splitext(path.lower())[1]
    with ExitStack() as stack:
        file: Any = stack.enter_context(_NamedFile(path, whole))
        if extension == ".gz":
            compressed: Any = gzip.GzipFile("", "wb", _LEVEL, file, mtime=0)
            yield _CompressedOutput(stack.enter_context(compressed))
        elif extension == ".zst":
            compressed = pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd")
            yield _CompressedOutput(stack.enter_context(compressed))
        else:
            yield file if binary else Output(file)


def check_target(target: Any, sources: Iterable[Any]) -> None:
    """Raise an error if a file would be overwritten while it is read."""
    if not isinstance(target, str | os.PathLike) or not os.path.isfile(target):
        return
    for source in sources:
        if any(os.path.exists(file) and os.path.samefile(file, target) for file in _paths(source)):
            raise EngineError(f"cannot write {os.fspath(target)}: the run reads it")


def _paths(source: Any) -> Iterator[str]:
    """Yield the files that a source is read from, if they have names."""
    if isinstance(source, Mapped):
        yield from _paths(source.source)
    elif isinstance(source, list | tuple) and any(isinstance(each, Mapped) for each in source):
        for each in source:
            yield from _paths(each)
    elif (files := files_of(source)) is not None:
        yield from files
    elif isinstance(source, str | os.PathLike):
        yield path_of(source)
    elif isinstance(name := getattr(source, "name", None), str):
        yield name
