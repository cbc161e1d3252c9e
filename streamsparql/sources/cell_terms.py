"""Cells: the columns of any table as terms, each distinct value once.

Texts are plain strings, as there is nothing that says what else they might be; columns of another
type are literals of that type: numbers, booleans, dates and times. An empty text is no term, as
is null. JSON may have values of several kinds in a column, each of which is what it would be alone.
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
    """The terms of a column; 0 where it is empty.

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
        return _of_several(column, name, terms)
    texts = as_texts(column)
    if texts is not None:
        encoded = texts.dictionary_encode()
        return spread(_strings(encoded.dictionary, terms), encoded)
    numbers = _numbers(column, terms)
    if numbers is not None:
        return numbers
    written = _written(column)
    if written is None:
        raise SourceError(
            f"the column {name} holds {kind}: a mapping takes texts, numbers and times"
        )
    encoded = written.dictionary_encode()
    return spread(terms.encode(encoded.dictionary), encoded)


def _strings(texts: pa.Array, terms: TermDictionary) -> IntArray:
    """The plain strings of texts that are all different."""
    plain = bools_of(pc.match_substring_regex(texts, _PLAIN).fill_null(True))
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    ids = terms.encode(quoted.dictionary_encode())
    for k in np.flatnonzero(~plain).tolist():
        ids[k] = terms.id_of(Literal(texts[k].as_py()))
    ids[bools_of(pc.equal(texts, "").fill_null(False))] = 0
    return ids


def _of_several(column: pa.UnionArray, name: str, terms: TermDictionary) -> IntArray:
    """The terms of a column of several kinds, as `column_of` makes it."""
    codes, offsets = column.type_codes.to_numpy(), column.offsets.to_numpy()
    ids = np.zeros(len(column), np.int64)
    for k, kind in enumerate(_KINDS):
        mine = np.flatnonzero(codes == k)
        values = column.field(k).take(pa.array(offsets[mine]))
        if kind == _HUGE:
            texts = pc.binary_join_element_wise('"', values, f'"^^<{XSD}integer>', "")
            ids[mine] = terms.encode(texts.dictionary_encode())
        elif len(mine):
            ids[mine] = ids_of(values, name, terms)
    return ids


def _numbers(column: pa.Array, terms: TermDictionary) -> IntArray | None:
    """Integers, floating point numbers and booleans; None for anything else."""
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


def _written(column: pa.Array) -> pa.Array | None:
    """Terms in N-Triples syntax of what is neither text nor number; None where that is nothing."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        zoned = "Z" if kind.tz else ""
        plain = column.cast(pa.timestamp(kind.unit, "UTC")) if kind.tz else column
        texts = plain.cast(pa.timestamp(kind.unit)).cast(pa.string())
        texts = pc.replace_substring_regex(texts, r"\.0+$", "")
        texts, name = (
            pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), zoned, ""),
            "dateTime",
        )
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
_KINDS[_HUGE] = pa.string()  # integers beyond 64 bits, by their digits
_PLACES = {kind: place for place, kind in enumerate(_KINDS)}
_CALLED = {str: "text", int: "integer", float: "float", bool: "boolean"}


def column_of(values: Sequence[str | int | float | None]) -> pa.Array:
    """Values of JSON as a column: a union where they are of several kinds.

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
        kind = "text" if value is None else _CALLED[type(value)]
        if kind == "integer" and not -_WIDE <= value < _WIDE:  # type: ignore[operator]
            kind, value = _HUGE, str(value)
        codes.append(_PLACES[kind])
        offsets.append(len(parts[kind]))
        parts[kind].append(value)
    return pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(parts[kind], arrow) for kind, arrow in _KINDS.items()],
        list(_KINDS),
    )


_WIDE = 1 << 63
