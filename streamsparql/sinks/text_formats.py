"""Text formats for programs: CSV, JSON lines, N-Quads.

CSV of SELECT and ASK is SPARQL's (values only); that of CONSTRUCT and DESCRIBE has terms in
N-Triples syntax, so that it can be read as a source, like N-Quads. JSON lines have terms as in
SPARQL's JSON format, and omit the keys of unbound variables. With native values, both have the
values of terms: numbers, booleans, texts.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.terms import XSD
from streamsparql.overriding import override
from streamsparql.sinks.cells import Cells, is_number, joined_bytes, native_text, parts_of_term
from streamsparql.sinks.layout import Layout
from streamsparql.sinks.times import instant_texts

BATCH = 1 << 16
"""The maximal number of rows that are joined at once."""


class _Text:
    """The base of text formats: a file, and times in milliseconds by default."""

    def __init__(self, file: Any, layout: Layout) -> None:
        self._file = file
        self.layout = layout
        self._style = layout.style("ms")

    def write(self, rows: pa.Table) -> None:
        """Write rows without delay."""
        for batch in rows.combine_chunks().to_batches(BATCH):
            if len(batch):
                self._file.write(self._lines(batch))

    def _lines(self, batch: pa.RecordBatch) -> bytes:
        raise NotImplementedError

    def _terms(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return [batch.column(k) for k in range(len(self.layout.names))]

    def _times(self, batch: pa.RecordBatch) -> list[pa.Array]:
        first = len(self.layout.names)
        columns = (batch.column(first + k) for k in range(len(self.layout.times)))
        return [instant_texts(column.to_numpy(), self._style) for column in columns]

    def flush(self) -> None:
        """Flush the file; rows are not delayed."""
        self._file.flush()

    def close(self) -> None:
        """Flush the file; rows are not delayed."""
        self._file.flush()


class Csv(_Text):
    """SPARQL's CSV, with times; for triples of terms, CSV in N-Triples syntax."""

    def __init__(self, file: Any, layout: Layout) -> None:
        super().__init__(file, layout)
        self._value = _native if layout.native else str if layout.triples else _lexical
        self._cells = Cells(self._cell)
        file.write(csv_line([*layout.names, *layout.source_times], "\n"))

    def _cell(self, term: str) -> str:
        value = self._value(term)
        return _quoted(_without_formula(value) if self.layout.escape_formulas else value)

    @override
    def _lines(self, batch: pa.RecordBatch) -> bytes:
        cells = [self._cells.of(column, "") for column in self._terms(batch)]
        times = [pc.fill_null(column, "") for column in self._times(batch)]
        return joined_bytes([*cells, *times], ",", "\n")


def csv_line(names: Sequence[str], end: str) -> bytes:
    """Return the first line of a CSV file.

    >>> csv_line(["x", "a,b"], "\\n")
    b'x,"a,b"\\n'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator=end).writerow(names)
    return line.getvalue().encode("utf-8")


def csv_cell(term: str) -> str:
    """Return a term as in SPARQL's CSV results.

    >>> csv_cell('"a, b"'), csv_cell("_:x"), csv_cell("<urn:a>")
    ('"a, b"', '_:x', 'urn:a')
    """
    return _quoted(_lexical(term))


def _lexical(term: str) -> str:
    sort, value, _, _ = parts_of_term(term)
    return f"_:{value}" if sort == "bnode" else value


def _native(term: str) -> str:
    return native_text(term)[0]


def _without_formula(value: str) -> str:
    """Return a value as a spreadsheet shows it: behind an apostrophe if it would be a formula.

    >>> _without_formula("=1+1"), _without_formula("-1.5")
    ("'=1+1", '-1.5')
    """
    formula = value.startswith(_FORMULA_STARTS) and not is_number(value)
    return f"'{value}" if formula else value


_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _quoted(text: str) -> str:
    if '"' in text or "," in text or "\n" in text or "\r" in text:
        text = text.replace('"', '""')
        return f'"{text}"'
    return text


class JsonLines(_Text):
    """An object per line: the terms of the bound variables, then the times.

    The end of a row that never ends is null.
    """

    def __init__(self, file: Any, layout: Layout) -> None:
        super().__init__(file, layout)
        native = layout.native or layout.form == "ask"
        write = native_json if native else json_term
        self._cells = [Cells(_member(name, write)) for name in layout.names]
        self._keys = [f"{json.dumps(name, ensure_ascii=False)}: " for name in layout.times]

    @override
    def _lines(self, batch: pa.RecordBatch) -> bytes:
        columns: list[pa.Array | str] = ["{"]
        terms = zip(self._cells, self._terms(batch), strict=True)
        columns += [cells.of(column, "") for cells, column in terms]
        for k, (key, times) in enumerate(zip(self._keys, self._times(batch), strict=True)):
            if self._style != "ms":
                times = pc.binary_join_element_wise('"', times, '"', "")
            columns += [", " + key if k else key, pc.fill_null(times, "null")]
        return joined_bytes(columns, "", "}\n")


def _member(name: str, write: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that writes a term as the member of an object, with this name as key."""
    key = json.dumps(name, ensure_ascii=False)
    return lambda term: f"{key}: {write(term)}, "


def native_json(term: str) -> str:
    """Return the value of a term in JSON: a number, a boolean or a string.

    >>> native_json(f'"7"^^<{XSD}integer>'), native_json("<urn:a>")
    ('7', '"urn:a"')
    """
    text, bare = native_text(term)
    return text if bare else encode_basestring(text)


def json_term(term: str) -> str:
    """Return a term as in SPARQL's JSON results.

    >>> json_term('"chat"@fr')
    '{"type": "literal", "value": "chat", "xml:lang": "fr"}'
    """
    sort, value, language, datatype = parts_of_term(term)
    more = ""
    if language:
        more = f', "xml:lang": {encode_basestring(language)}'
    elif datatype:
        more = f', "datatype": {encode_basestring(datatype)}'
    return f'{{"type": "{sort}", "value": {encode_basestring(value)}{more}}}'


class NQuads(_Text):
    """N-Quads whose fourth term is the start of the triple, or the instant of its report.

    That of an event is its end, at which it is known.
    """

    @override
    def _lines(self, batch: pa.RecordBatch) -> bytes:
        s, p, o = (column.cast(pa.string()) for column in self._terms(batch))
        kind = "integer" if self._style == "ms" else "dateTime"
        times = self._times(batch)[int(self.layout.events)]
        stamps = pc.binary_join_element_wise('"', times, f'"^^<{XSD}{kind}> .', "")
        return joined_bytes([s, p, o, stamps], " ", "\n")
