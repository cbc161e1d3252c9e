"""The W3C's formats of SPARQL results: JSON, XML, CSV and TSV.

A result set of SPARQL has no validity, so the times of rows are further variables, `start` and
`end`, or `instant`, with values of xsd:dateTime; the end of a row that never ends is unbound. The
rows of a query that reads no stream hold at all times: they have no such variables, and a layout
without times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.terms import XSD
from streamsparql.errors import EngineError
from streamsparql.overriding import override
from streamsparql.sinks.cells import Cells, joined_bytes, parts_of_term
from streamsparql.sinks.layout import Layout, Sink
from streamsparql.sinks.text_formats import BATCH, csv_cell, csv_line, json_term
from streamsparql.sinks.times import instant_texts


class _Results:
    """The base of the formats: the columns of a batch, its times as terms."""

    def __init__(self, file: Any, layout: Layout) -> None:
        self._file, self.layout = file, layout
        self.names = (*layout.names, *layout.times)
        self._style = layout.style("iso")

    def write(self, rows: pa.Table) -> None:
        """Write rows without delay."""
        for batch in rows.combine_chunks().to_batches(BATCH):
            if len(batch):
                self._file.write(self._lines(self._columns(batch)))

    def _columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns of all variables; of a query without variables, an unbound one."""
        first, count = len(self.layout.names), len(self.names)
        times = (batch.column(k).to_numpy() for k in range(first, count))
        columns = [*batch.columns[:first], *(self._terms_of_times(stamps) for stamps in times)]
        return columns or [pa.nulls(len(batch), pa.string())]

    def _terms_of_times(self, stamps: Any) -> pa.Array:
        kind = "integer" if self._style == "ms" else "dateTime"
        texts = instant_texts(stamps, self._style)
        return pc.binary_join_element_wise('"', texts, f'"^^<{XSD}{kind}>', "")

    def _lines(self, columns: list[pa.Array]) -> bytes:
        raise NotImplementedError

    def flush(self) -> None:
        """Flush the file; rows are not delayed."""
        self._file.flush()

    def close(self) -> None:
        """Flush the file; rows are not delayed."""
        self._file.flush()


class SparqlCsv(_Results):
    """SPARQL 1.1 Query Results CSV: values only, lines that end as RFC 4180 requires."""

    def __init__(self, file: Any, layout: Layout) -> None:
        super().__init__(file, layout)
        self._cells = Cells(csv_cell)
        file.write(csv_line(self.names, "\r\n"))

    @override
    def _lines(self, columns: list[pa.Array]) -> bytes:
        return joined_bytes([self._cells.of(column, "") for column in columns], ",", "\r\n")


class SparqlTsv(_Results):
    """SPARQL 1.1 Query Results TSV: terms in SPARQL's syntax, whose escapes leave no tab."""

    def __init__(self, file: Any, layout: Layout) -> None:
        super().__init__(file, layout)
        file.write(("\t".join(f"?{name}" for name in self.names) + "\n").encode("utf-8"))

    @override
    def _lines(self, columns: list[pa.Array]) -> bytes:
        texts = [pc.fill_null(column.cast(pa.string()), "") for column in columns]
        return joined_bytes(texts, "\t", "\n")


class SparqlJson(_Results):
    """SPARQL 1.1 Query Results JSON, a line per solution."""

    def __init__(self, file: Any, layout: Layout) -> None:
        super().__init__(file, layout)
        keys = [json.dumps(name, ensure_ascii=False) for name in self.names or ("",)]
        self._cells = [Cells(_member(key)) for key in keys]
        self._between = ""
        head = json.dumps({"vars": self.names}, ensure_ascii=False)
        file.write(f'{{"head": {head},\n"results": {{"bindings": ['.encode())

    @override
    def _lines(self, columns: list[pa.Array]) -> bytes:
        pairs = zip(self._cells, columns, strict=True)
        members = [cells.of(column, "") for cells, column in pairs]
        joined = pc.binary_join_element_wise("", *members, "")
        objects = joined_bytes(["\n{", pc.utf8_slice_codeunits(joined, 2), "}"], "", ",")
        lines, self._between = self._between.encode() + objects[:-1], ","
        return lines

    @override
    def close(self) -> None:
        self._file.write(b"\n]}}\n")
        self._file.flush()


def _member(key: str) -> Callable[[str], str]:
    return lambda term: f", {key}: {json_term(term)}"


class SparqlXml(_Results):
    """SPARQL Query Results XML, a line per solution."""

    def __init__(self, file: Any, layout: Layout) -> None:
        super().__init__(file, layout)
        self._cells = [Cells(_binding(name)) for name in self.names or ("",)]
        variables = "".join(f"<variable name={_attribute(name)}/>" for name in self.names)
        file.write(f"{_XML}\n<head>{variables}</head>\n<results>\n".encode())

    @override
    def _lines(self, columns: list[pa.Array]) -> bytes:
        pairs = zip(self._cells, columns, strict=True)
        bindings = [cells.of(column, "") for cells, column in pairs]
        return joined_bytes(["<result>", *bindings, "</result>"], "", "\n")

    @override
    def close(self) -> None:
        self._file.write(b"</results>\n</sparql>\n")
        self._file.flush()


_XML = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">'
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _text(text: str) -> str:
    """Return text as XML; raise an error for a character that XML 1.0 does not have.

    White space at the ends is written as references: there are readers that trim it otherwise.
    """
    if invalid := _NO_XML.search(text):
        code = f"U+{ord(invalid[0]):04X}"
        raise EngineError(f"sparql-xml cannot represent the character {code}; use sparql-json")
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" "))
    after = len(text) - before - len(inner)
    return f"{_SPACE * before}{escape(inner, _REFERENCES)}{_SPACE * after}"


_SPACE = "&#32;"
_REFERENCES = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}


def _attribute(text: str) -> str:
    return quoteattr(text)


def _binding(name: str) -> Callable[[str], str]:
    """Return a function that writes a term as the binding of a variable.

    >>> _binding("x")('"chat"@fr')
    '<binding name="x"><literal xml:lang="fr">chat</literal></binding>'
    """
    start = f"<binding name={_attribute(name)}>"

    def binding(term: str) -> str:
        sort, value, language, datatype = parts_of_term(term)
        attribute = f" xml:lang={_attribute(language)}" if language else ""
        attribute = f" datatype={_attribute(datatype)}" if datatype else attribute
        return f"{start}<{sort}{attribute}>{_text(value)}</{sort}></binding>"

    return binding


class _Truth:
    """The answer of an ASK that holds at all times, between two texts."""

    def __init__(self, file: Any, before: str, after: str) -> None:
        self._file, self._before, self._after = file, before, after

    def write(self, rows: pa.Table) -> None:
        """Write the answer."""
        for term in rows.column(0).to_pylist():
            self._file.write(f"{self._before}{parts_of_term(term)[1]}{self._after}\n".encode())

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()

    def close(self) -> None:
        """Flush the file."""
        self._file.flush()


_FORMATS: Mapping[str, Callable[[Any, Layout], Sink]] = {
    "sparql-json": SparqlJson,
    "sparql-xml": SparqlXml,
    "sparql-csv": SparqlCsv,
    "sparql-tsv": SparqlTsv,
}
_TRUTHS = {
    "sparql-json": ('{"head": {}, "boolean": ', "}"),
    "sparql-xml": (f"{_XML}\n<head/>\n<boolean>", "</boolean>\n</sparql>"),
}
SPARQL_FORMATS = tuple(_FORMATS)
"""The names of the formats."""


def sparql_sink(name: str) -> Callable[[Any, Layout], Sink]:
    """Return the function that opens a sink of a format.

    >>> import io
    >>> file = io.BytesIO()
    >>> sparql_sink("sparql-tsv")(file, Layout("select", ("x",), ("start", "end"))).close()
    >>> file.getvalue()
    b'?x\\t?start\\t?end\\n'
    """

    def opened(file: Any, layout: Layout) -> Sink:
        if layout.form == "ask" and not layout.times:
            return _Truth(file, *_TRUTHS[name])
        return _FORMATS[name](file, layout)

    return opened


def check_sparql_format(name: str, layout: Layout) -> None:
    """Raise an error if a format cannot represent the result of a query.

    >>> check_sparql_format("sparql-csv", Layout("construct", ("subject",), ("start", "end")))
    Traceback (most recent call last):
    streamsparql.errors.EngineError: sparql-csv is for solutions, not for the triples of \
CONSTRUCT; use nq
    """
    if layout.triples:
        form = layout.form.upper()
        raise EngineError(f"{name} is for solutions, not for the triples of {form}; use nq")
    if layout.form == "ask" and not layout.times and name not in _TRUTHS:
        raise EngineError(f"{name} cannot represent the answer of ASK; use sparql-json")
