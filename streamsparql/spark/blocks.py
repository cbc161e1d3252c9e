"""Blocks: many rows packed into one value, which is how rows travel between tasks.

Spark moves rows between tasks one by one, and each costs more than what we compute with it. So rows
are packed: a block is an Arrow table with its terms dictionary-encoded, compressed, as bytes in one
row of a DataFrame. A shuffle then moves some hundred rows in place of some millions.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamsparql.physical.batch import IntArray

Hashes = npt.NDArray[np.uint32]

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def packed(table: pa.Table) -> bytes:
    """A table as bytes.

    >>> unpacked(packed(pa.table({"x": ["<a>", "<a>"]}))).column("x").to_pylist()
    ['<a>', '<a>']
    """
    sink = pa.BufferOutputStream()
    table = compact(table)
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def compact(table: pa.Table) -> pa.Table:
    """The table in one piece, without entries of dictionaries that its rows do not use.

    What was taken out of a table refers to all the dictionary of that.

    >>> whole = pa.table({"x": pa.array([f"<{k}>" for k in range(9)]).dictionary_encode()})
    >>> len(compact(whole.slice(0, 2)).column("x").chunk(0).dictionary)
    2
    """
    table = table.combine_chunks()
    for k, name in enumerate(table.column_names):
        column = table.column(k)
        if _coded(column) and any(len(c.dictionary) > len(c) for c in column.chunks):
            table = table.set_column(k, name, column.cast(pa.string()).dictionary_encode())
    return table


def unpacked(block: bytes | pa.Buffer) -> pa.Table:
    """The table that was packed."""
    return pa.ipc.open_stream(block).read_all()


def plain(table: pa.Table) -> pa.Table:
    """The table with texts in place of dictionaries.

    >>> plain(pa.table({"x": pa.array(["<a>"]).dictionary_encode()})).schema.field("x").type
    DataType(string)
    """
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        columns[name] = column.cast(pa.string()) if _coded(column) else column
    return pa.table(columns)


def _coded(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def hashes(column: pa.ChunkedArray, scope: str = "") -> Hashes:
    """A hash of each text that is the same in all processes; 0 of null.

    With a `scope` the labels of blank nodes are hashed as they will be once they are scoped.

    >>> a, b, again = hashes(pa.chunked_array([["<a>", "<b>", "<a>"]])).tolist()
    >>> a == again, a == b
    (True, False)
    """
    coded = column if _coded(column) else column.dictionary_encode()
    parts = [np.empty(0, np.uint32)]
    for chunk in coded.chunks:
        texts = (_scoped(text or "", scope) for text in chunk.dictionary.to_pylist())
        known = np.array([0, *(crc32(text.encode()) for text in texts)], np.uint32)
        codes = np.asarray(chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
        parts.append(known[codes + 1])
    return np.concatenate(parts)


def _scoped(text: str, scope: str) -> str:
    return f"_:{scope}{text[2:]}" if scope and text.startswith("_:") else text


def hashes_of_rows(table: pa.Table, names: Sequence[str]) -> Hashes:
    """A hash of each row by these columns."""
    found = np.zeros(table.num_rows, np.uint32)
    for name in names:
        found = found * np.uint32(1_000_003) ^ hashes(table.column(name))
    return found


def divided(table: pa.Table, targets: IntArray) -> list[tuple[int, pa.Table]]:
    """The rows for each target, in the order that they have.

    >>> rows = pa.table({"x": ["<a>", "<b>", "<c>"]})
    >>> [(k, t.column("x").to_pylist()) for k, t in divided(rows, np.array([1, 0, 1]))]
    [(0, ['<b>']), (1, ['<a>', '<c>'])]
    """
    if not len(targets):
        return []
    order = np.argsort(targets, kind="stable")
    ranked = targets[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    ends = np.append(starts[1:], len(ranked))
    if len(starts) == 1:
        return [(int(ranked[0]), table)]
    sorted_rows = table.take(pa.array(order))
    return [
        (int(ranked[b]), sorted_rows.slice(b, e - b))
        for b, e in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
