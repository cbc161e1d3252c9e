"""The file of a checkpoint: a header that describes it, and tables in Arrow IPC.

The first line names the format and its version, the second one has the length and the checksum of
the header, which is JSON. The tables follow, compressed by Zstandard, each with a checksum in the
header, so a damaged part is named. A file is written next to its name, synchronised, and renamed: a
process that is killed leaves the old file or the new one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from secrets import token_hex
from typing import Any, NamedTuple

import pyarrow as pa

import streamsparql
from streamsparql.errors import EngineError
from streamsparql.physical.state.parts import Tables

FILE_VERSION = 1
"""The version of the format; a file of another version is refused."""

_TITLE = b"streamsparql checkpoint "
_LEVEL = 1
_LONGEST_LINE = 100
_WRITING = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", _LEVEL))


class SavedTable(NamedTuple):
    """A table of a checkpoint, as its header lists it."""

    name: str
    rows: int
    bytes: int
    """The length in the file."""
    checksum: str
    file: str | None = None
    """The file next to the checkpoint that has it; None if the checkpoint has it itself."""


class Checkpoint(NamedTuple):
    """The content of a checkpoint: what was saved, as JSON and as tables."""

    content: dict[str, Any]
    """What is not a table: texts, options, counters, positions."""
    tables: Tables
    package: str = streamsparql.__version__
    """The version of the package that wrote it."""
    saved: str = ""
    """When it was written: a date and time in UTC."""
    parts: tuple[SavedTable, ...] = ()
    """The tables as they are in the file."""


Store = Callable[[str, pa.Table], SavedTable | None]
"""Stores a table in a file of its own; None if it is to be in the file of the checkpoint."""


def write_checkpoint(
    path: str | os.PathLike[str], checkpoint: Checkpoint, store: Store | None = None
) -> int:
    """Write a checkpoint, so that the file is whole whatever happens; return its bytes.

    Tables that `store` stores elsewhere are not written again.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "state.ckpt"
    >>> written = write_checkpoint(path, Checkpoint({"kind": "x"}, {"n": pa.table({"a": [1]})}))
    >>> read = read_checkpoint(path)
    >>> read.content, read.tables["n"].to_pydict(), written == path.stat().st_size
    ({'kind': 'x'}, {'a': [1]}, True)
    """
    blocks, parts = [], []
    for name, table in checkpoint.tables.items():
        part = None if store is None else store(name, table)
        if part is None:
            blocks.append(encoded(table))
            part = SavedTable(name, len(table), len(blocks[-1]), checksum(blocks[-1]))
        parts.append(part)
    header = {
        "package": checkpoint.package,
        "saved": checkpoint.saved or datetime.now(UTC).isoformat(timespec="milliseconds"),
        "content": checkpoint.content,
        "parts": parts,
    }
    text = json.dumps(header, separators=(",", ":")).encode("utf-8", "surrogatepass")
    first = b"%s%d\n%d %s\n" % (_TITLE, FILE_VERSION, len(text), checksum(text).encode())
    return write_whole(path, [first, text, *blocks])


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; raise an error that names what is wrong with the file."""
    name = os.fspath(path)
    header, data = _read(name)
    return _with_tables(name, header, data)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a checkpoint: its content, and the list of its parts."""
    return _read(os.fspath(path))[0]


def _read(name: str) -> tuple[dict[str, Any], memoryview]:
    """Return the header of a file, and what follows it."""
    data = _bytes_of(name, f"cannot read the checkpoint {name}")
    title, _, rest = data[:_LONGEST_LINE].partition(b"\n")
    if not title.startswith(_TITLE):
        raise EngineError(f"{name} is not a checkpoint of streamsparql")
    if title != _TITLE + str(FILE_VERSION).encode():
        written = title.removeprefix(_TITLE).decode("ascii", "replace")
        raise EngineError(
            f"{name} has format {written} of checkpoints; this version of streamsparql"
            f" ({streamsparql.__version__}) reads format {FILE_VERSION}"
        )
    sizes, _, _ = rest.partition(b"\n")
    at = len(title) + len(sizes) + 2
    header = _header(name, sizes, memoryview(data)[at:])
    at += int(sizes.split()[0])
    return header, memoryview(data)[at:]


def _bytes_of(name: str, failure: str) -> bytes:
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise EngineError(f"{failure}: {error.strerror}") from None


def _header(name: str, sizes: bytes, data: memoryview) -> dict[str, Any]:
    """Return the header of a file, whose second line has its length and checksum."""
    try:
        length, expected = sizes.decode("ascii").split()
        text = bytes(data[: int(length)])
        if int(length) < 0 or len(text) < int(length) or checksum(text) != expected:
            raise ValueError("checksum")
        header = json.loads(text.decode("utf-8", "surrogatepass"))
        header["parts"] = [SavedTable(*part) for part in header["parts"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise EngineError(f"the checkpoint {name} is damaged: its header") from None
    return dict(header)


def _with_tables(name: str, header: Mapping[str, Any], data: memoryview) -> Checkpoint:
    tables: Tables = {}
    at = 0
    for part in header["parts"]:
        if part.file is None:
            block = data[at : at + part.bytes]
            at += part.bytes
        else:
            beside = os.path.join(os.path.dirname(name), os.path.basename(part.file))
            failure = f"the checkpoint {name} lacks its part {part.name!r}, {beside}"
            block = memoryview(_bytes_of(beside, failure))
        if len(block) < part.bytes:
            raise EngineError(f"the checkpoint {name} is truncated: in its part {part.name!r}")
        if checksum(block) != part.checksum:
            raise EngineError(f"the checkpoint {name} is damaged: its part {part.name!r}")
        try:
            with pa.ipc.open_stream(pa.py_buffer(block)) as reader:
                tables[part.name] = reader.read_all()
        except (pa.ArrowException, OSError, ValueError):
            raise EngineError(f"the checkpoint {name} is damaged: its part {part.name!r}") from None
    if at != len(data):
        raise EngineError(f"the checkpoint {name} is damaged: unexpected bytes at its end")
    parts = tuple(header["parts"])
    return Checkpoint(header["content"], tables, header["package"], header["saved"], parts)


def encoded(table: pa.Table) -> pa.Buffer:
    """Return a table as it is in a file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITING) as writer:
        writer.write_table(table)
    return sink.getvalue()


def checksum(data: Any) -> str:
    """Return the checksum of bytes."""
    return blake2b(data, digest_size=16).hexdigest()


def write_whole(path: str | os.PathLike[str], blocks: list[Any]) -> int:
    """Write a file next to its name, synchronise it, and rename it; return its bytes."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    part = os.path.join(folder, f".{name[:_LONGEST_LINE]}.{token_hex(4)}.part")
    try:
        try:
            with open(part, "xb") as file:
                file.writelines(blocks)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            os.replace(part, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise
        synchronise_folder(folder)
    except OSError as error:
        raise EngineError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from None
    return size


def synchronise_folder(folder: str) -> None:
    """Make the names in a folder durable, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
