"""Cells: terms in N-Triples syntax converted to other syntaxes, each distinct one once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.ntriples import parse_term, unescape_ntriples
from streamsparql.algebra.terms import IRI, XSD_STRING, Literal
from streamsparql.algebra.xsd.values import literal_of, value_of
from streamsparql.physical.dictionary.canonical_text import to_arrow
from streamsparql.text.numbers import short_number
from streamsparql.text.visible import visible
from streamsparql.translator.sparql_text import Writer

_CACHE_SIZE = 1 << 17
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")


class Cells:
    """A converter of the terms of columns, which caches its results.

    >>> shout = Cells(str.upper)
    >>> shout.of(pa.array(["<a>", None, "<a>"]).dictionary_encode(), "-").to_pylist()
    ['<A>', '-', '<A>']
    """

    def __init__(self, write: Callable[[str], str]) -> None:
        self._write = write
        self._known: dict[str, str] = {}

    def of(self, column: pa.Array, none: str) -> pa.Array:
        """Return a column of terms as texts; `none` is the text of a missing term."""
        if not isinstance(column, pa.DictionaryArray):
            column = column.dictionary_encode()
        if len(self._known) > _CACHE_SIZE:
            self._known.clear()
        known, write = self._known, self._write
        cells: list[str] = []
        for text in column.dictionary.to_pylist():
            cell = known.get(text)
            if cell is None:
                cell = known[text] = write(text)
            cells.append(cell)
        written = to_arrow(cells).take(column.indices)  # type: ignore[arg-type]
        return pc.fill_null(written, none) if written.null_count else written


def parts_of_term(text: str) -> tuple[str, str, str, str]:
    """Return the sort of a term (uri, bnode, literal), its value, its language and its datatype.

    >>> parts_of_term("<urn:a>"), parts_of_term('"7"^^<urn:t>'), parts_of_term('"chat"@fr')
    (('uri', 'urn:a', '', ''), ('literal', '7', '', 'urn:t'), ('literal', 'chat', 'fr', ''))
    """
    if text[0] == "<":
        return "uri", unescape_ntriples(text[1:-1]), "", ""
    if text[0] == "_":
        return "bnode", text[2:], "", ""
    end = text.rindex('"')
    value, rest = unescape_ntriples(text[1:end]), text[end + 1 :]
    if rest.startswith("@"):
        return "literal", value, rest[1:], ""
    return "literal", value, "", unescape_ntriples(rest[3:-1])


def native_text(term: str) -> tuple[str, bool]:
    """Return the text of a term's value, and whether it is a number or a boolean, as JSON has them.

    >>> double = "^^<http://www.w3.org/2001/XMLSchema#double>"
    >>> native_text(f'"22.50"{double}'), native_text(f'"INF"{double}'), native_text("<urn:a>")
    (('22.5', True), ('INF', False), ('urn:a', False))
    """
    sort, text, _, datatype = parts_of_term(term)
    if sort == "bnode":
        return f"_:{text}", False
    value = value_of(Literal(text, IRI(datatype))) if datatype else None
    if isinstance(value, bool | int | Decimal | float):
        return literal_of(value).lexical, isinstance(value, int | Decimal) or isfinite(value)
    return text, False


def joined_bytes(columns: Sequence[pa.Array | str], between: str, end: str = "") -> bytes:
    """Return rows of texts, concatenated, as UTF-8.

    >>> joined_bytes([pa.array(["a", "b"]), pa.array(["1", "2"])], ",", "\\n")
    b'a,1\\nb,2\\n'
    """
    rows: Any = pc.binary_join_element_wise(*columns, between)
    if end:
        rows = pc.binary_join_element_wise(rows, "", end)
    offsets, data = rows.buffers()[1:]
    ends = pa.Array.from_buffers(pa.int32(), len(rows) + 1, [None, offsets], offset=rows.offset)
    content: bytes = data.to_pybytes()[ends[0].as_py() : ends[-1].as_py()] if len(rows) else b""
    return content


class DisplayCell(NamedTuple):
    """A term as text for readers, and whether it is a number."""

    text: str
    number: bool = False

    @property
    def short(self) -> str:
        """The text, with a number of many digits rounded.

        >>> DisplayCell("571.333333333333333333333", True).short
        '571.3333333'
        """
        return short_number(self.text) if self.number else self.text


def display_cell(term: str, writer: Writer) -> DisplayCell:
    """Return the cell of a term: numbers, booleans and times bare, IRIs shortened by a prefix.

    >>> from streamsparql.algebra.terms import XSD
    >>> display_cell(f'"2026-03-01T08:00:00Z"^^<{XSD}dateTime>', Writer()).text
    '2026-03-01T08:00:00Z'
    >>> display_cell(f'"5"^^<{XSD}integer>', Writer()), display_cell('"5"', Writer()).text
    (DisplayCell(text='5', number=True), '"5"')
    """
    parsed = parse_term(term)
    if parsed is None:
        return DisplayCell(visible(term))
    if isinstance(parsed, Literal) and parsed.datatype != XSD_STRING:
        value = value_of(parsed)
        if value is not None:
            number = isinstance(value, int | Decimal | float) and not isinstance(value, bool)
            return DisplayCell(parsed.lexical, number)
    return DisplayCell(visible(writer.term(parsed)))


def is_number(text: str) -> bool:
    """Return whether a text is a number, and nothing else.

    >>> is_number("-1.5e3"), is_number("-1+1")
    (True, False)
    """
    return _NUMBER.fullmatch(text) is not None
