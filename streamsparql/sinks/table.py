"""A table for readers: times first, then terms, shortened with the query's prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.physical.dictionary.canonical_text import to_arrow
from streamsparql.sinks.cells import Cells, display_cell, joined_bytes
from streamsparql.sinks.layout import Layout
from streamsparql.sinks.times import check_style, instant_texts
from streamsparql.text.instants import DisplayClock
from streamsparql.text.widths import cells
from streamsparql.translator.sparql_text import DisplayWriter

_MEASURED = 1000
"""The number of rows that determine the widths of columns; later cells may exceed them."""
_MAX_WIDTH = 80
"""The maximal width of a column, so that a long cell does not pad all other lines."""
_GAP = "  "


class TextTable:
    """A text table, aligned by its first rows."""

    def __init__(self, file: Any, layout: Layout) -> None:
        self._file = file
        self._layout = layout
        self._style = "" if layout.timestamps is None else check_style(layout.timestamps, "iso")
        self._writer = DisplayWriter(layout.prefixes)
        self._cells = Cells(self._cell)
        self._held: list[pa.RecordBatch] = []
        self._widths: list[int] = []
        self._right: list[bool] = []

    def write(self, rows: pa.Table) -> None:
        """Add rows; write them once enough are known to determine the widths."""
        self._held += [batch for batch in rows.combine_chunks().to_batches() if len(batch)]
        if self._widths or sum(map(len, self._held)) > _MEASURED:
            self._write_held()

    def flush(self) -> None:
        """Write the rows that are retained to measure the columns."""
        if self._held:
            self._write_held()
        self._file.flush()

    def close(self) -> None:
        """Write the remaining rows, or the header of an empty table."""
        self._write_held()
        self._file.flush()

    # -- texts

    def _cell(self, term: str) -> str:
        """Return a term as text for readers."""
        return display_cell(term, self._writer).short

    def _write_held(self) -> None:
        if not self._style:
            first = min((int(_times(self._layout, b)[0].min()) for b in self._held), default=0)
            self._style = DisplayClock.of(None, first).style
        blocks = [self._texts(batch) for batch in self._held]
        if not self._widths:
            header = self._header()
            names = len(self._layout.times)
            self._right = [self._style == "ms"] * names + self._numeric_columns()
            self._widths = [
                min(max(cells(head), *(_longest(block[k]) for block in blocks), 0), _MAX_WIDTH)
                for k, head in enumerate(header)
            ]
            blocks.insert(0, [pa.array([head]) for head in header])
        for block in blocks:
            self._file.write(self._lines(block))
        self._held.clear()

    def _header(self) -> list[str]:
        """Return the names of the columns; that of the first time includes the time zone."""
        first, *others = self._layout.times
        zone = {"iso": " (UTC)", "local": " (local)", "ms": ""}[self._style]
        mark = "?" if self._layout.form == "select" else ""
        return [first + zone, *others, *(f"{mark}{name}" for name in self._layout.names)]

    def _texts(self, batch: pa.RecordBatch) -> list[pa.Array]:
        times = [
            pc.fill_null(instant_texts(stamps, self._style, blank=True), "…")
            for stamps in _times(self._layout, batch)
        ]
        return [*times, *(self._cells.of(column, "") for column in _terms(self._layout, batch))]

    def _numeric_columns(self) -> list[bool]:
        """Return for each column whether it contains only numbers."""
        numeric = [True] * len(self._layout.names)
        for batch in self._held:
            for k, column in enumerate(_terms(self._layout, batch)):
                encoded = (
                    column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
                )
                shown = [
                    display_cell(term, self._writer) for term in encoded.dictionary.to_pylist()
                ]
                numeric[k] = numeric[k] and all(cell.number for cell in shown)
        return numeric

    def _lines(self, block: Sequence[pa.Array]) -> bytes:
        padded = []
        for texts, width, right in zip(block, self._widths, self._right, strict=True):
            if pc.all(pc.string_is_ascii(texts)).as_py():
                pad = pc.utf8_lpad if right else pc.utf8_rpad
                padded.append(pad(texts, width=width))
            else:  # characters may take two columns, or none
                padded.append(to_arrow([_padded(text, width, right) for text in texts.to_pylist()]))
        return joined_bytes([pc.utf8_rtrim_whitespace(_side_by_side(padded))], "", "\n")


def _side_by_side(columns: Sequence[pa.Array]) -> pa.Array:
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, _GAP)


def _times(layout: Layout, batch: pa.RecordBatch) -> list[Any]:
    first = len(layout.names)
    return [batch.column(first + k).to_numpy() for k in range(len(layout.times))]


def _terms(layout: Layout, batch: pa.RecordBatch) -> list[pa.Array]:
    return [batch.column(k) for k in range(len(layout.names))]


def _longest(texts: pa.Array) -> int:
    if pc.all(pc.string_is_ascii(texts)).as_py():
        return int(pc.max(pc.utf8_length(texts)).as_py() or 0)
    return max(map(cells, texts.to_pylist()))


def _padded(text: str, width: int, right: bool) -> str:
    """Return a text padded to the width of its column, aligned left or `right`.

    >>> _padded("風車", 6, False), _padded("…", 3, True)
    ('風車  ', '  …')
    """
    gap = " " * (width - cells(text))
    return gap + text if right else text + gap
