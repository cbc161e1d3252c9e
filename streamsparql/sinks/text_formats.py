"""Text formats for programs: CSV, JSON lines, N-Quads.

CSV of SELECT and ASK is SPARQL's (values only); that of CONSTRUCT and DESCRIBE has terms in
N-Triples syntax, so that it can be read as a source, like N-Quads. JSON lines have terms as in
SPARQL's JSON format, and omit the keys of unbound variables.
"""

from __future__ import annotations

import csv
import io
import json
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.terms import XSD
from streamsparql.overriding import override
from streamsparql.sinks.cells import Cells, is_number, joined_bytes, parts_of_term
from streamsparql.sinks.layout import Layout
from streamsparql.sinks.times import check_style, instant_texts

_BATCH = 1 << 16
"""The maximal number of rows that are joined at once."""


class _Text:
    """The base of text formats: a file, and times in milliseconds by default."""

    def __init__(self, file: Any, layout: Layout) -> None:
        self._file = file
        self.layout = layout
        self._style = check_style(layout.timestamps, "ms")

    def write(self, rows: pa.Table) -> None:
        """Write rows without delay."""
        for batch in rows.combine_chunks().to_batches(_BATCH):
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
    """SPARQL's CSV, with times; for triples, CSV of terms in N-Triples syntax."""

    def __init__(self, file: Any, layout: Layout) -> None:
        super().__init__(file, layout)
        value = _value_without_formula if layout.escape_formulas else _value
        self._cells = Cells(_quoted if layout.triples else value)
        head = io.StringIO()
        csv.writer(head, lineterminator="\n").writerow([*layout.names, *layout.source_times])
        file.write(head.getvalue().encode("utf-8"))

    @override
    def _lines(self, batch: pa.RecordBatch) -> bytes:
        cells = [self._cells.of(column, "") for column in self._terms(batch)]
        times = [pc.fill_null(column, "") for column in self._times(batch)]
        return joined_bytes([*cells, *times], ",", "\n")


def _value(term: str) -> str:
    """Return a term as in SPARQL's CSV results.

    >>> _value('"a, b"'), _value("_:x"), _value("<urn:a>")
    ('"a, b"', '_:x', 'urn:a')
    """
    return _quoted(_lexical(term))


def _lexical(term: str) -> str:
    sort, value, _, _ = parts_of_term(term)
    return f"_:{value}" if sort == "bnode" else value


def _value_without_formula(term: str) -> str:
    """Return a term as a spreadsheet shows it: behind an apostrophe if it would be a formula.

    >>> _value_without_formula('"=1+1"'), _value_without_formula('"-1.5"')
    ("'=1+1", '-1.5')
    """
    value = _lexical(term)
    formula = value.startswith(_FORMULA_STARTS) and not is_number(value)
    return _quoted(f"'{value}" if formula else value)


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
        self._cells = [Cells(_member(name, layout.form == "ask")) for name in layout.names]
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


def _member(name: str, truth: bool) -> Any:
    """Return a function that writes a term as the member of an object, with this name as key."""
    key = json.dumps(name, ensure_ascii=False)

    def member(term: str) -> str:
        return f"{key}: {parts_of_term(term)[1] if truth else json_term(term)}, "

    return member


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
