"""Columns of numbers: integers, decimals, floats and doubles, promoted to a common type."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.xsd.values import value_of
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary import inline_ids as inlined
from streamsparql.physical.dictionary.inline_ids import NumericValues
from streamsparql.physical.dictionary.term_dictionary import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    NO_NUMBER,
    TermDictionary,
)
from streamsparql.values.native_column import NativeColumn

NUMBER_NAMES = {INTEGER: "integer", DECIMAL: "decimal", FLOAT: "float", DOUBLE: "double"}
"""The kinds of numbers, by name."""

LEXICAL = r'(?s)^"(?P<lexical>(?:[^"\\]|\\.)*)"'
"""The pattern of the lexical form in the text of a literal."""

_EXACT_DOUBLES = 1 << 53
_DIGITS, _MOST_DIGITS = 38, 76
"""The numbers of digits of Arrow's decimals."""


def number_kinds(numbers: NumericValues) -> set[int]:
    """Return the kinds of numbers among terms; NO_NUMBER if there are other terms.

    >>> terms = TermDictionary()
    >>> number_kinds(terms.numbers(terms.of_integers(np.array([1, 2])))) == {INTEGER}
    True
    """
    counts = np.bincount(numbers.kinds, minlength=len(NUMBER_NAMES) + 1)
    return set(np.flatnonzero(counts).tolist())


def number_column(
    ids: IntArray, numbers: NumericValues, kinds: Set[int], terms: TermDictionary, exact: bool
) -> NativeColumn | None:
    """Return numbers of these kinds as a column; None if no type holds all of them.

    Decimals become doubles unless `exact`.
    """
    assert NO_NUMBER not in kinds
    names = [NUMBER_NAMES[kind] for kind in kinds]
    if kinds == {INTEGER}:
        integers, known = terms.exact_integers(ids)
        if known.all():
            return NativeColumn.of(pa.array(integers), names)
    if kinds == {INTEGER} or (exact and kinds <= {INTEGER, DECIMAL}):
        decimals = _decimals(ids, terms) if exact else None
        if decimals is None:
            return None
        return NativeColumn.of(decimals, names, "" if kinds == {DECIMAL} else "decimal")
    values = numbers.values
    if kinds == {FLOAT}:
        return NativeColumn.of(pa.array(values.astype(np.float32)), names)
    if INTEGER in kinds and not _are_exact_doubles(ids, terms):
        return None
    return NativeColumn.of(pa.array(values), names, "" if kinds == {DOUBLE} else "double")


def _are_exact_doubles(ids: IntArray, terms: TermDictionary) -> bool:
    """Return whether doubles hold all integers of a column exactly."""
    integers, known = terms.exact_integers(ids)
    values, kinds = terms.numbers(ids)
    large = (kinds == INTEGER) & ~(known & (np.abs(integers) <= _EXACT_DOUBLES))
    for value, term in zip(values[large].tolist(), terms.terms_of(ids[large]), strict=True):
        if term is None or value != value_of(term):  # Python compares exactly
            return False
    return True


def _decimals(ids: IntArray, terms: TermDictionary) -> pa.Array | None:
    """Return integers and decimals with a common scale; None if they need more than 76 digits."""
    inline = ids < 0
    small = _small_decimals(ids[inline]) if inline.any() else None
    if small is None:
        return _written_decimals(ids, terms)
    if inline.all():
        return small
    others = _written_decimals(ids[~inline], terms)
    if others is None or others.type.bit_width > 128:
        return _written_decimals(ids, terms)
    kind = pa.decimal128(_DIGITS, max(small.type.scale, others.type.scale))
    try:
        values = pa.concat_arrays([small.cast(kind), others.cast(kind)])
    except pa.ArrowInvalid:  # too many digits
        return _written_decimals(ids, terms)
    places = np.empty(len(ids), np.int64)
    places[np.concatenate([np.flatnonzero(inline), np.flatnonzero(~inline)])] = np.arange(len(ids))
    return values.take(pa.array(places))


def _small_decimals(ids: IntArray) -> pa.Array | None:
    """Return inlined numbers as decimals; None if one of them needs more than 64 bits."""
    integer = inlined.tags(ids) == inlined.TAG_INTEGER
    mantissa, scale = inlined.scaled_parts(ids)
    mantissa = np.where(integer, inlined.integer_values(ids), mantissa)
    scale = np.where(integer, 0, scale)
    most = int(scale.max())
    factor = 10 ** (most - scale)
    if (np.abs(mantissa).astype(np.float64) * factor >= 2.0**63).any():
        return None
    words = np.empty((len(ids), 2), np.int64)  # of 128 bits, the lower one first
    words[:, 0] = mantissa * factor
    words[:, 1] = words[:, 0] >> 63
    kind = pa.decimal128(_DIGITS, most)
    return pa.Array.from_buffers(kind, len(ids), [None, pa.py_buffer(words)])


def _written_decimals(ids: IntArray, terms: TermDictionary) -> pa.Array | None:
    """Return numbers as decimals, parsed from their lexical forms by Arrow."""
    lexical = pc.struct_field(pc.extract_regex(terms.bound_texts(ids), LEXICAL), "lexical")
    parts = pc.extract_regex(lexical, r"^[+-]?0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?$")
    whole, scale = (
        pc.max(pc.utf8_length(pc.struct_field(parts, name).fill_null(""))).as_py()
        for name in ("whole", "fraction")
    )
    if whole + scale > _MOST_DIGITS:
        return None
    kind = pa.decimal128 if whole + scale <= _DIGITS else pa.decimal256
    return lexical.cast(kind(_DIGITS if kind is pa.decimal128 else _MOST_DIGITS, scale))
