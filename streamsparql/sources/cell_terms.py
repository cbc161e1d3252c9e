"""The cells of tables as terms: each distinct value of a column is encoded once.

Strings become plain literals, since a table does not define their datatype; columns of another type
become literals of that type: numbers, booleans, dates and times. An empty string, null and NaN are
unbound. A column of records (records.py) may mix types, and may contain terms of RDF; each value is
encoded as it would be alone.

Each cell has a text, too: the term that string functions of a mapping read in its place, so that
`CONCAT("http://example.org/", ?id)` has the same value whether the table stores `7` as a string or
as a number. The text of a whole number stored as a double has no fraction, as in columns of pandas
with gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.terms import IRI, XSD, Literal, Term
from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.canonical_text import spread
from streamsparql.physical.dictionary.inline_ids import bools_of
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources.records import TERM_KIND, UNION_KINDS
from streamsparql.sources.tables import as_texts

_PLAIN = r'^[^"\\\x00-\x1f]*$'


def ids_of(column: pa.Array, name: str, terms: TermDictionary) -> IntArray:
    """Return the ids of the terms of a column; 0 for an empty cell.

    >>> terms = TermDictionary()
    >>> ids = ids_of(pa.array(["a", "", 'say "b"', None]), "x", terms)
    >>> terms.texts(ids).to_pylist()
    ['"a"', None, '"say \\\\"b\\\\""', None]
    >>> terms.texts(ids_of(pa.array([7, None]), "x", terms)).to_pylist()[0]
    '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return spread(ids_of(column.dictionary, name, terms), column)
    if pa.types.is_union(kind):
        return _ids_of_union(column, ids_of, name, terms)
    texts = as_texts(column)
    if texts is not None:
        encoded = texts.dictionary_encode()
        return spread(_string_ids(encoded.dictionary, terms), encoded)
    ids = _number_ids(column, terms)
    if ids is not None:
        return ids
    lexical = _lexical_forms(column)
    if lexical is None:
        raise SourceError(
            f"the column {name} has the type {kind}; a mapping reads strings, numbers, booleans,"
            " dates and times"
        )
    texts, datatype = lexical
    literals = pc.binary_join_element_wise('"', texts, f'"^^<{XSD}{datatype}>', "")
    encoded = literals.dictionary_encode()
    return spread(terms.encode(encoded.dictionary), encoded)


def _string_ids(texts: pa.Array, terms: TermDictionary) -> IntArray:
    """Return the ids of plain string literals; the texts must be distinct."""
    plain = bools_of(pc.match_substring_regex(texts, _PLAIN).fill_null(True))
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    ids = terms.encode(quoted.dictionary_encode())
    for k in np.flatnonzero(~plain).tolist():
        ids[k] = terms.id_of(Literal(texts[k].as_py()))
    ids[bools_of(pc.equal(texts, "").fill_null(False))] = 0
    return ids


def text_ids_of(column: pa.Array, name: str, terms: TermDictionary) -> IntArray:
    """Return the ids of the texts of a column's cells, as plain literals; 0 for an empty cell.

    >>> terms = TermDictionary()
    >>> terms.texts(text_ids_of(pa.array([7.0, 0.5, None, 1e-7]), "x", terms)).to_pylist()
    ['"7"', '"0.5"', None, '"0.0000001"']
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return spread(text_ids_of(column.dictionary, name, terms), column)
    if pa.types.is_union(kind):
        return _ids_of_union(column, text_ids_of, name, terms)
    if as_texts(column) is not None:
        return ids_of(column, name, terms)
    encoded = column.dictionary_encode()
    values = encoded.dictionary
    lexical = _lexical_forms(values)
    if pa.types.is_floating(kind):
        texts = pa.array(map(_plain_number, values.cast(pa.float64()).to_pylist()), pa.string())
    elif lexical is not None:
        texts, _ = lexical
    else:  # booleans, or a type that has no terms
        return spread(_texts_of_terms(terms.terms_of(ids_of(values, name, terms)), terms), encoded)
    return spread(_string_ids(texts, terms), encoded)


def _plain_number(value: float) -> str:
    """Return a number without exponent, and without fraction if it is whole; empty for NaN."""
    if value != value:
        return ""
    if value.is_integer() and abs(value) < _WHOLE:
        return str(int(value))
    text = repr(value)
    return f"{Decimal(text):f}" if "e" in text else text


_WHOLE = 1 << 53


def _texts_of_terms(values: Iterable[Term | None], terms: TermDictionary) -> IntArray:
    """Return the ids of the texts of terms; tagged strings and blank nodes are left as they are."""
    texts: list[Term | None] = []
    for value in values:
        if isinstance(value, IRI):
            texts.append(Literal(value.value))
        elif isinstance(value, Literal) and value.language is None:
            texts.append(Literal(value.lexical))
        else:
            texts.append(value)
    return terms.ids_of(texts)


def _ids_of_union(
    column: pa.UnionArray,
    ids_of_part: Callable[[pa.Array, str, TermDictionary], IntArray],
    name: str,
    terms: TermDictionary,
) -> IntArray:
    """Return the ids of a column of mixed types, as `column_of` builds it."""
    codes, offsets = column.type_codes.to_numpy(), column.offsets.to_numpy()
    ids = np.zeros(len(column), np.int64)
    for k, kind in enumerate(UNION_KINDS):
        rows = np.flatnonzero(codes == k)
        if not len(rows):
            continue
        values = column.field(k).take(pa.array(offsets[rows]))
        if kind == TERM_KIND:
            ids[rows] = terms.encode(values.dictionary_encode())
            if ids_of_part is text_ids_of:
                ids[rows] = _texts_of_terms(terms.terms_of(ids[rows]), terms)
        else:
            ids[rows] = ids_of_part(values, name, terms)
    return ids


def _number_ids(column: pa.Array, terms: TermDictionary) -> IntArray | None:
    """Return the ids of integers, floating point numbers or booleans; None for other types."""
    kind = column.type
    if pa.types.is_integer(kind):
        try:
            values = column.fill_null(0).cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:  # beyond 2**63
            return None
        ids = terms.of_integers(values)
    elif pa.types.is_floating(kind):
        values = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
        missing = np.isnan(values)
        return np.where(missing, 0, terms.of_doubles(np.where(missing, 0.0, values)))
    elif pa.types.is_boolean(kind):
        ids = terms.of_booleans(bools_of(column.fill_null(False)))
    else:
        return None
    return np.where(bools_of(column.is_null()), 0, ids) if column.null_count else ids


def _lexical_forms(column: pa.Array) -> tuple[pa.Array, str] | None:
    """Return the lexical forms of times, dates, decimals and integers, and their datatype.

    None for a column of any other type.
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        utc = column.cast(pa.timestamp(kind.unit, "UTC")) if kind.tz else column
        texts = utc.cast(pa.timestamp(kind.unit)).cast(pa.string())
        texts = pc.replace_substring_regex(texts, r"\.0+$", "")
        texts = pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), zone, "")
        name = "dateTime"
    elif pa.types.is_date(kind):
        texts, name = column.cast(pa.date32()).cast(pa.string()), "date"
    elif pa.types.is_time(kind):
        texts, name = pc.replace_substring_regex(column.cast(pa.string()), r"\.0+$", ""), "time"
    elif pa.types.is_decimal(kind):
        texts, name = column.cast(pa.string()), "decimal"
    elif pa.types.is_integer(kind):
        texts, name = column.cast(pa.string()), "integer"
    else:
        return None
    return texts, name
