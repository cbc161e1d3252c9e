"""JSON lines: an object per line, whose keys are the columns of `tables`.

Arrow parses whole blocks with the types of the first object; a block with other types, or with a
line that is not an object, is parsed line by line.
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
from streamsparql.sources.lines import NOT_UTF8, decoded, line_blocks
from streamsparql.sources.tables import chunk_of_batch, roles

_BYTES_OF_A_LINE = 150
_KINDS = {str: pa.string(), int: pa.int64()}


def json_chunks(file: IO[bytes], encoder: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """Yield the objects in chunks of at most this size."""
    columns: dict[str, str] | None = None  # known from the first object
    schema = None
    for line, block in line_blocks(file, encoder, max(1, size) * _BYTES_OF_A_LINE):
        lines = block.split(b"\n")
        if columns is None:
            columns, schema = _schema(lines, encoder, timed)
        places = np.array([k for k, text in enumerate(lines) if text.strip()], np.int64)
        table = None
        if schema is not None and _looks_like_objects(block, lines, len(places)):
            table = _parsed(block, schema, len(places))
        for at in range(0, len(places), size):
            part = places[at : at + size]
            if table is not None:
                batch = table.slice(at, size).combine_chunks().to_batches()[0]
                yield chunk_of_batch(batch, encoder, part + line, timed)
            else:
                yield _by_line([lines[k] for k in part], part + line, columns or {}, encoder)


def objects(
    file: IO[bytes], encoder: Encoder, size: int
) -> Iterator[tuple[list[dict[str, Any]], IntArray, list[Reject]]]:
    """Yield up to `size` objects at a time, their lines, and the rejects among them."""
    for line, block in line_blocks(file, encoder, max(1, size) * _BYTES_OF_A_LINE):
        lines = block.split(b"\n")
        places = [k for k, text in enumerate(lines) if text.strip()]
        for at in range(0, len(places), size):
            part = places[at : at + size]
            yield _parse([lines[k] for k in part], np.array(part) + line, encoder)


def _parse(
    lines: Sequence[bytes], positions: IntArray, encoder: Encoder
) -> tuple[list[dict[str, Any]], IntArray, list[Reject]]:
    items: list[dict[str, Any]] = []
    places, rejects = [], list[Reject]()
    for k, line in enumerate(lines):
        parsed = _object(line)
        if isinstance(parsed, dict):
            items.append(parsed)
            places.append(k)
        else:
            rejects.append(encoder.reject(int(positions[k]), parsed, line))
    return items, positions[places] if places else positions[:0], rejects


def _object(line: bytes) -> dict[str, Any] | str:
    """Return the object on a line, or the reason why it is rejected."""
    text = decoded(line)
    return NOT_UTF8 if text is None else json_object(text)


_decoder: Any = json.JSONDecoder()
_scan = _decoder.scan_once
"""Parses the value at a place of a text, faster than `json.loads`."""


def json_object(text: str) -> dict[str, Any] | str:
    """Return the JSON object that a text is, or the reason why it is not one.

    >>> json_object(' {"a": 1}'), json_object("[1]"), json_object("{} {}")
    ({'a': 1}, 'not a JSON object', 'not valid JSON')
    """
    text = text.strip(_BLANKS)
    try:
        value, end = _scan(text, 0)
    except (ValueError, RecursionError, StopIteration):
        return "not valid JSON"
    if end < len(text):
        return "not valid JSON"
    return value if type(value) is dict else "not a JSON object"


_BLANKS = " \t\n\r"


def _schema(
    lines: list[bytes], encoder: Encoder, timed: bool
) -> tuple[dict[str, str] | None, pa.Schema | None]:
    """Return the columns of the first object, and their types; None if Arrow cannot parse them."""
    for line in lines:
        first = _object(line) if line.strip() else ""
        if isinstance(first, dict):
            columns = roles(list(first), encoder, timed)
            kinds = [_KINDS.get(type(first[name])) for name in columns.values()]
            if None in kinds:
                return columns, None
            return columns, pa.schema(list(zip(columns.values(), kinds, strict=True)))
    return None, None


def _looks_like_objects(block: bytes, lines: Sequence[bytes], rows: int) -> bool:
    """Return whether each of the lines that are not blank, `rows` many, is in braces.

    Arrow accepts an object over several lines, several on one line, and `null`, which it reads as
    an object without keys, and which crashes it as the first value of a block.
    """
    if not rows or b"\0" in block:
        return False
    if block.startswith(b"{") and block.endswith((b"}", b"}\n")):
        if block.count(b"}\n{") == rows - 1:  # usually there are no other lines
            return True
    return all(text[:1] + text[-1:] in (b"{}", b"") for text in map(bytes.strip, lines))


def _parsed(block: bytes, schema: pa.Schema, rows: int) -> pa.Table | None:
    """Return the rows as Arrow parses them; None if a line is not one row of the schema."""
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
    lines: list[bytes], positions: IntArray, column_of_role: dict[str, str], encoder: Encoder
) -> Chunk:
    items, positions, rejects = _parse(lines, positions, encoder)
    return chunk_of_objects(items, positions, column_of_role, encoder, rejects)


def chunk_of_objects(
    items: Sequence[dict[str, Any]],
    positions: IntArray,
    column_of_role: dict[str, str],
    encoder: Encoder,
    rejects: Sequence[Reject] = (),
) -> Chunk:
    """Return objects whose keys are those of items as a chunk; without a time they have stamp 0."""
    columns = {role: [item.get(name) for item in items] for role, name in column_of_role.items()}
    s, p, o = ([text if type(text) is str else "" for text in columns.get(r, ())] for r in "spo")
    read = encoder.stamps.of_values
    times = [read(columns[role]) for role in ("start", "t", "end") if role in columns]
    stamps = times[-1] if times else (np.zeros(len(s), np.int64), {})
    since = times[0] if len(times) == 2 else None
    return encoder.chunk((s, p, o), stamps, positions, items.__getitem__, since, rejects)
