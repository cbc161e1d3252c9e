"""JSON lines: an object on each line, with the keys that are the columns of `tables`.

Arrow reads whole blocks, with the types of the first object; a block that has others, or a line
that is no object, is read line by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json

from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.lines import NOT_UTF8, blocks, decoded
from streamsparql.sources.stamps import of_values
from streamsparql.sources.tables import chunk_of_batch, roles

_BYTES_OF_A_LINE = 150
_KINDS = {str: pa.string(), int: pa.int64()}


def json_chunks(file: IO[bytes], reading: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """The objects in chunks of at most that size."""
    part: dict[str, str] | None = None  # the columns, once there is an object that tells them
    schema = None
    for line, block in blocks(file, reading, max(1, size) * _BYTES_OF_A_LINE):
        lines = block.split(b"\n")
        if part is None:
            part, schema = _schema(lines, reading, timed)
        places = np.array([k for k, text in enumerate(lines) if text.strip()], np.int64)
        table = _parsed(block, schema, len(places)) if schema is not None else None
        for at in range(0, len(places), size):
            some = places[at : at + size]
            if table is not None:
                batch = table.slice(at, size).combine_chunks().to_batches()[0]
                yield chunk_of_batch(batch, reading, some + line, timed)
            else:
                yield _by_line([lines[k] for k in some], some + line, part or {}, reading)


def objects(
    file: IO[bytes], reading: Encoder, size: int
) -> Iterator[tuple[list[dict[str, Any]], IntArray, list[Reject]]]:
    """The objects, at most so many at a time, their lines, and the rejects among them."""
    for line, block in blocks(file, reading, max(1, size) * _BYTES_OF_A_LINE):
        lines = block.split(b"\n")
        places = [k for k, text in enumerate(lines) if text.strip()]
        for at in range(0, len(places), size):
            some = places[at : at + size]
            found, good, rejects = _read([lines[k] for k in some], np.array(some) + line, reading)
            yield found, good, rejects


def _read(
    lines: Sequence[bytes], positions: IntArray, reading: Encoder
) -> tuple[list[dict[str, Any]], IntArray, list[Reject]]:
    found: list[dict[str, Any]] = []
    places, rejects = [], list[Reject]()
    for k, line in enumerate(lines):
        read = _object(line)
        if isinstance(read, dict):
            found.append(read)
            places.append(k)
        else:
            rejects.append(reading.reject(int(positions[k]), read, line))
    return found, positions[places] if places else positions[:0], rejects


def _object(line: bytes) -> dict[str, Any] | str:
    """The object on a line, or why there is none."""
    text = decoded(line)
    if text is None:
        return NOT_UTF8
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return "this is no JSON"
    return found if isinstance(found, dict) else "this is no JSON object"


def _schema(
    lines: list[bytes], reading: Encoder, timed: bool
) -> tuple[dict[str, str] | None, pa.Schema | None]:
    """The columns of the first object, and their types; no types where Arrow's would not do."""
    for line in lines:
        first = _object(line) if line.strip() else ""
        if isinstance(first, dict):
            part = roles(list(first), reading, timed)
            kinds = [_KINDS.get(type(first[name])) for name in part.values()]
            if None in kinds:
                return part, None
            return part, pa.schema(list(zip(part.values(), kinds, strict=True)))
    return None, None


def _parsed(block: bytes, schema: pa.Schema, rows: int) -> pa.Table | None:
    """The rows as Arrow reads them; None where they are not all as expected, one on each line."""
    try:
        table = arrow_json.read_json(
            pa.BufferReader(block),
            arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
        table.validate(full=True)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    return table.select(schema.names) if table.num_rows == rows else None


def _by_line(
    lines: list[bytes], positions: IntArray, part: dict[str, str], reading: Encoder
) -> Chunk:
    found, positions, rejects = _read(lines, positions, reading)
    columns = {role: [item.get(name) for item in found] for role, name in part.items()}
    s, p, o = ([text if type(text) is str else "" for text in columns.get(r, ())] for r in "spo")
    times = [of_values(columns[role]) for role in ("start", "t", "end") if role in columns]
    stamps = times[-1] if times else (np.zeros(len(s), np.int64), {})
    since = times[0] if len(times) == 2 else None
    return reading.chunk((s, p, o), stamps, positions, found.__getitem__, since, rejects)
