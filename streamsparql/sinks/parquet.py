"""Parquet: terms in N-Triples syntax or native values; times as numbers or Arrow's timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.sinks.layout import Layout, Sink
from streamsparql.values.columns import native_column

_ROW_GROUP = 1 << 20


def open_parquet(file: Any, layout: Layout) -> Sink:
    """Open a Parquet file for terms, or for native values."""
    return NativeParquet(file, layout) if layout.native else Parquet(file, layout)


class Parquet:
    """A Parquet file; the end of a row that never ends is null."""

    def __init__(self, file: Any, layout: Layout) -> None:
        self._layout = layout
        self._time = _type_of_times(layout)
        terms = [pa.field(name, pa.string()) for name in layout.names]
        times = [pa.field(name, self._time) for name in layout.source_times]
        self._schema = pa.schema([*terms, *times])
        from pyarrow.parquet import ParquetWriter

        self._writer = ParquetWriter(file, self._schema, compression="zstd")
        self._held: list[pa.Table] = []

    def write(self, rows: pa.Table) -> None:
        """Add rows to the row group; write it if it is full."""
        first = len(self._layout.names)
        columns = [rows.column(k).cast(pa.string()) for k in range(first)]
        columns += [_times(rows.column(k), self._time) for k in range(first, rows.num_columns)]
        self._held.append(pa.table(columns, schema=self._schema))
        if sum(map(len, self._held)) >= _ROW_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._held))
            self._held.clear()

    def flush(self) -> None:
        """Do nothing: a row group is written when it is full; small ones are slow to read."""

    def close(self) -> None:
        """Write the last row group, and the file's footer."""
        self._write_group()
        self._writer.close()


class NativeParquet:
    """A Parquet file of native values, written at its end: only then the type of a column is known.

    Until then rows are retained as term ids, in which most numbers are inlined.
    """

    def __init__(self, file: Any, layout: Layout) -> None:
        self._file, self._layout = file, layout
        self._terms: TermDictionary = TermDictionary()
        self._rows: list[list[IntArray]] = []

    def write(self, rows: pa.Table) -> None:
        """Retain rows."""
        first = len(self._layout.names)
        ids = [self._terms.encode(rows.column(k)) for k in range(first)]
        times = [rows.column(k).to_numpy() for k in range(first, rows.num_columns)]
        self._rows.append([*ids, *times])

    def flush(self) -> None:
        """Do nothing: rows are retained until the file is closed."""

    def close(self) -> None:
        """Write all rows."""
        from pyarrow.parquet import write_table

        layout = self._layout
        columns = self._columns(len(layout.names) + len(layout.times))
        first = len(layout.names)
        terms = [native_column(ids, self._terms) for ids in columns[:first]]
        fields = [column.field(name) for name, column in zip(layout.names, terms, strict=True)]
        kind = _type_of_times(layout)
        fields += [pa.field(name, kind) for name in layout.times]
        times = [_times(pa.chunked_array([stamps]), kind) for stamps in columns[first:]]
        table = pa.table([*(column.values for column in terms), *times], pa.schema(fields))
        write_table(table, self._file, row_group_size=_ROW_GROUP, compression="zstd")

    def _columns(self, count: int) -> Sequence[IntArray]:
        if not self._rows:
            return [np.empty(0, np.int64)] * count
        return [np.concatenate(parts) for parts in zip(*self._rows, strict=True)]


def _type_of_times(layout: Layout) -> pa.DataType:
    return pa.int64() if layout.style("ms") == "ms" else pa.timestamp("ms", "UTC")


def _times(stamps: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return instants in milliseconds as a type; null for INFINITY."""
    never = pa.scalar(None, pa.int64())
    return pc.if_else(pc.less(stamps, INFINITY), stamps, never).cast(kind)
