"""The cells of tables as terms: each distinct value of a column is encoded once.

Strings become plain literals, since a table does not define their datatype; columns of another type
become literals of that type: numbers, booleans, dates and times. An empty string and null are
unbound. A column of JSON values may mix types; each value is encoded as it would be alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.terms import XSD, Literal
from streamsparql.errors import SourceError
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.canonical_text import spread
from streamsparql.physical.dictionary.inline_ids import bools_of
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
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
        return _ids_of_union(column, name, terms)
    texts = as_texts(column)
    if texts is not None:
        encoded = texts.dictionary_encode()
        return spread(_string_ids(encoded.dictionary, terms), encoded)
    ids = _number_ids(column, terms)
    if ids is not None:
        return ids
    literals = _literal_texts(column)
    if literals is None:
        raise SourceError(
            f"the column {name} has the type {kind}; a mapping reads strings, numbers, booleans,"
            " dates and times"
        )
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


def _ids_of_union(column: pa.UnionArray, name: str, terms: TermDictionary) -> IntArray:
    """Return the ids of the terms of a column of mixed types, as `column_of` builds it."""
    codes, offsets = column.type_codes.to_numpy(), column.offsets.to_numpy()
    ids = np.zeros(len(column), np.int64)
    for k, kind in enumerate(_KINDS):
        rows = np.flatnonzero(codes == k)
        values = column.field(k).take(pa.array(offsets[rows]))
        if kind == _HUGE:
            texts = pc.binary_join_element_wise('"', values, f'"^^<{XSD}integer>', "")
            ids[rows] = terms.encode(texts.dictionary_encode())
        elif len(rows):
            ids[rows] = ids_of(values, name, terms)
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
        values = column.cast(pa.float64()).fill_null(0.0).to_numpy()
        ids = terms.of_doubles(values)
    elif pa.types.is_boolean(kind):
        ids = terms.of_booleans(bools_of(column.fill_null(False)))
    else:
        return None
    return np.where(bools_of(column.is_null()), 0, ids) if column.null_count else ids


def _literal_texts(column: pa.Array) -> pa.Array | None:
    """Return times, dates, decimals and large integers as literals in N-Triples syntax.

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
    return pc.binary_join_element_wise('"', texts, f'"^^<{XSD}{name}>', "")


_HUGE = "huge"
_KINDS = {"text": pa.string(), "integer": pa.int64(), "float": pa.float64(), "boolean": pa.bool_()}
_KINDS[_HUGE] = pa.string()  # the digits of integers beyond 64 bits
_TYPE_CODES = {kind: code for code, kind in enumerate(_KINDS)}
_KIND_OF_TYPE = {str: "text", int: "integer", float: "float", bool: "boolean"}


def column_of(values: Sequence[str | int | float | None]) -> pa.Array:
    """Return JSON values as a column: a union if their types differ.

    >>> column_of([1, None, 2]).type, column_of([1, "x", None, True]).to_pylist()
    (DataType(int64), [1, 'x', None, True])
    """
    if len({type(value) for value in values if value is not None}) < 2:
        try:
            return pa.array(values)
        except OverflowError:
            pass
    parts: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    codes, offsets = [], []
    for value in values:
        kind = "text" if value is None else _KIND_OF_TYPE[type(value)]
        if kind == "integer" and not -_INT64_BOUND <= value < _INT64_BOUND:  # type: ignore[operator]
            kind, value = _HUGE, str(value)
        codes.append(_TYPE_CODES[kind])
        offsets.append(len(parts[kind]))
        parts[kind].append(value)
    return pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(parts[kind], arrow) for kind, arrow in _KINDS.items()],
        list(_KINDS),
    )


_INT64_BOUND = 1 << 63
