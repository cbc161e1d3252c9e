"""Parquet: terms in N-Triples syntax, and times as numbers or as Arrow's timestamps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.physical.operator import INFINITY
from streamsparql.sinks.layout import Layout
from streamsparql.sinks.times import check_style

_ROW_GROUP = 1 << 20


class Parquet:
    """A Parquet file; the end of a row that never ends is null."""

    def __init__(self, file: Any, layout: Layout) -> None:
        self._layout = layout
        numbers = check_style(layout.timestamps, "ms") == "ms"
        self._time = pa.int64() if numbers else pa.timestamp("ms", "UTC")
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
        for k in range(first, first + len(self._layout.times)):
            stamps = rows.column(k)
            never = pa.scalar(None, pa.int64())
            columns.append(pc.if_else(pc.less(stamps, INFINITY), stamps, never).cast(self._time))
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
