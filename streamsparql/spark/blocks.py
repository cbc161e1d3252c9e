"""Blocks: many rows packed into one value, the form in which rows travel between tasks.

Spark shuffles rows one by one, and moving a row costs more than computing with it. So rows are
packed: a block is a compressed Arrow table with dictionary-encoded terms, as bytes in one row of a
DataFrame. A shuffle then moves hundreds of rows instead of millions.
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


def pack(table: pa.Table) -> bytes:
    """Return a table as compressed bytes.

    >>> unpack(pack(pa.table({"x": ["<a>", "<a>"]}))).column("x").to_pylist()
    ['<a>', '<a>']
    """
    sink = pa.BufferOutputStream()
    table = compact(table)
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    block: bytes = sink.getvalue().to_pybytes()
    return block


def compact(table: pa.Table) -> pa.Table:
    """Return a table in one chunk, without dictionary entries that its rows do not use.

    A slice of a table refers to the whole dictionary of that table.

    >>> whole = pa.table({"x": pa.array([f"<{k}>" for k in range(9)]).dictionary_encode()})
    >>> len(compact(whole.slice(0, 2)).column("x").chunk(0).dictionary)
    2
    """
    table = table.combine_chunks()
    for k, name in enumerate(table.column_names):
        column = table.column(k)
        if _is_dictionary(column) and any(len(c.dictionary) > len(c) for c in column.chunks):
            table = table.set_column(k, name, column.cast(pa.string()).dictionary_encode())
    return table


def unpack(block: bytes | pa.Buffer) -> pa.Table:
    """Return the table that `pack` made into a block."""
    return pa.ipc.open_stream(block).read_all()


def without_dictionaries(table: pa.Table) -> pa.Table:
    """Return a table with strings in place of dictionaries.

    >>> table = pa.table({"x": pa.array(["<a>"]).dictionary_encode()})
    >>> without_dictionaries(table).schema.field("x").type
    DataType(string)
    """
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        columns[name] = column.cast(pa.string()) if _is_dictionary(column) else column
    return pa.table(columns)


def _is_dictionary(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def hashes(column: pa.ChunkedArray, scope: str = "") -> Hashes:
    """Return a hash of each string, the same in all processes; that of null is 0.

    With a `scope`, the labels of blank nodes are hashed with that scope as their prefix.

    >>> a, b, again = hashes(pa.chunked_array([["<a>", "<b>", "<a>"]])).tolist()
    >>> a == again, a == b
    (True, False)
    """
    encoded = column if _is_dictionary(column) else column.dictionary_encode()
    parts = [np.empty(0, np.uint32)]
    for chunk in encoded.chunks:
        texts = (_scoped(text or "", scope) for text in chunk.dictionary.to_pylist())
        known = np.array([0, *(crc32(text.encode()) for text in texts)], np.uint32)
        codes = np.asarray(chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
        parts.append(known[codes + 1])
    return np.concatenate(parts)


def _scoped(text: str, scope: str) -> str:
    return f"_:{scope}{text[2:]}" if scope and text.startswith("_:") else text


def row_hashes(table: pa.Table, names: Sequence[str]) -> Hashes:
    """Return a hash of each row by these columns, the same in all processes."""
    combined = np.zeros(table.num_rows, np.uint32)
    for name in names:
        combined = combined * np.uint32(1_000_003) ^ hashes(table.column(name))
    return combined


def split_by_target(table: pa.Table, targets: IntArray) -> list[tuple[int, pa.Table]]:
    """Return the rows of each target, in their original order.

    >>> rows = pa.table({"x": ["<a>", "<b>", "<c>"]})
    >>> parts = split_by_target(rows, np.array([1, 0, 1]))
    >>> [(k, part.column("x").to_pylist()) for k, part in parts]
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
