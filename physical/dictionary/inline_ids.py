"""Inlined ids: literals that are encoded in their ids, without an entry in the term dictionary.

A negative id is a literal of xsd:integer, xsd:double, xsd:decimal or xsd:boolean whose lexical form
is canonical (what `algebra.xsd.values.literal_of` writes); or a plain xsd:double such as `"22.50"`,
as sensors write them. Bits 62 and 61 are a tag, the others the value:

    integer   value + 2**60                    values of at most 18 digits
    double    the bits of the double, with an exponent of 8 bits instead of 11; bit 60 is set unless
              the double is negative, in which case the other bits are inverted
    decimal   (mantissa + 2**56) * 16 + scale  of at most 15 digits, in mantissa and in fraction
    other     0 or 1: a boolean; else a plain double that is not canonical, encoded like a decimal

So ids of integers are in the order of their values, and so are ids of canonical doubles. Whether a
literal is inlined depends on the literal alone, never on its source: a literal has one id.
inline_parsing.py decides which literals are inlined; this module defines the layout of ids.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.algebra.xsd.numeric import EXACT
from streamsparql.algebra.xsd.values import literal_of
from streamsparql.physical.batch import BoolArray, FloatArray, IntArray

KindArray = npt.NDArray[np.int8]

NO_NUMBER, INTEGER, DECIMAL, FLOAT, DOUBLE = range(5)
"""The kinds of numbers, in the order of promotion."""


class NumericValues(NamedTuple):
    """The numeric values of terms: the nearest doubles, and their kinds."""

    values: FloatArray
    kinds: KindArray


# -- The layout ---------------------------------------------------------------------------------

TAG_INTEGER, TAG_DOUBLE, TAG_DECIMAL, TAG_OTHER = range(4)
ENDS = {name: f'"^^<{XSD}{name}>' for name in ("double", "integer", "decimal", "boolean")}
"""The ends of the texts of literals that may be inlined, by datatype."""

_LEAST = -(1 << 63)
_PAYLOAD = (1 << 61) - 1
SIZE = (1 << 63) - 1  # the bits of a double without its sign
BASES = tuple(_LEAST + (tag << 61) for tag in range(4))

INTEGER_BASE = _LEAST + (1 << 60)
INTEGER_BOUND = 10**18
POSITIVE = 1 << 60
LOW_EXPONENT = 895 << 52  # the exponent that becomes 0: from 2**-127 on doubles fit
MANTISSA_BOUND, SCALES = 10**15, 16
MANTISSA_BASE = 1 << 56
FALSE_ID = BASES[TAG_OTHER]
TRUE_ID = FALSE_ID + 1


def tags(ids: IntArray) -> IntArray:
    """Return the tags of inlined ids."""
    return (ids >> 61) & 3


# -- Values to ids: 0 where the value does not fit ----------------------------------------------


def integer_ids(values: IntArray) -> IntArray:
    """Return the ids of integers.

    >>> integer_values(integer_ids(np.array([-5, 7]))).tolist()
    [-5, 7]
    """
    fit = (values > -INTEGER_BOUND) & (values < INTEGER_BOUND)
    return np.where(fit, values + INTEGER_BASE, 0)


def double_ids(values: FloatArray) -> IntArray:
    """Return the ids of canonical doubles.

    >>> double_values(double_ids(np.array([1.5, -0.0]))).tolist()
    [1.5, -0.0]
    """
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    size = bits & SIZE
    small = size - LOW_EXPONENT
    zero = size == 0
    fit = (small >= 1 << 52) & (small < POSITIVE) | zero
    small[zero] = 0
    payload = np.where(bits < 0, POSITIVE - 1 - small, POSITIVE + small)
    return np.where(fit, BASES[TAG_DOUBLE] + payload, 0)


def decimal_ids(scaled: IntArray, digits: int) -> IntArray:
    """Return the ids of the decimals `scaled` / 10**`digits`.

    >>> decimal_ids(np.array([250]), 2) == decimal_ids(np.array([25]), 1)
    array([ True])
    """
    mantissa, scale = scaled.copy(), np.full(len(scaled), digits)
    for _ in range(digits):
        shorter = (mantissa % 10 == 0) & (scale > 0)
        if not shorter.any():
            break
        mantissa[shorter] //= 10
        scale[shorter] -= 1
    return scaled_ids(mantissa, scale, TAG_DECIMAL)


def scaled_ids(mantissa: IntArray, scale: IntArray, tag: int) -> IntArray:
    """Return the ids of mantissa / 10**scale, as decimals or as plain doubles."""
    fit = (mantissa > -MANTISSA_BOUND) & (mantissa < MANTISSA_BOUND) & (scale < SCALES)
    return np.where(fit, BASES[tag] + (mantissa + MANTISSA_BASE) * SCALES + scale, 0)


def boolean_ids(values: BoolArray) -> IntArray:
    """Return the ids of booleans."""
    return np.where(values, TRUE_ID, FALSE_ID)


# -- Ids to values ------------------------------------------------------------------------------


def integer_values(ids: IntArray) -> IntArray:
    """Return the values of inlined integers."""
    return ids - INTEGER_BASE


def double_values(ids: IntArray) -> FloatArray:
    """Return the values of inlined canonical doubles."""
    flip = (ids >> 60 & 1) - 1  # all ones where the double is negative
    size = (ids ^ flip) & (POSITIVE - 1)
    bits = size + LOW_EXPONENT | flip & _LEAST
    zero = size == 0
    if zero.any():
        bits[zero] = flip[zero] & _LEAST
    return bits.view(np.float64)


_pack, _unpack = struct.Struct("<q").pack, struct.Struct("<d").unpack


def double_value(term_id: int) -> float:
    """Return the value of one inlined canonical double.

    >>> double_value(int(double_ids(np.array([-1.5]))[0]))
    -1.5
    """
    negative = not term_id & POSITIVE
    size = (~term_id if negative else term_id) & (POSITIVE - 1)
    value: float = _unpack(_pack(size + LOW_EXPONENT if size else 0))[0]
    return -value if negative else value


def scaled_parts(ids: IntArray) -> tuple[IntArray, IntArray]:
    """Return the mantissas and scales of inlined decimals, or of plain doubles."""
    payload = ids & _PAYLOAD
    return (payload >> 4) - MANTISSA_BASE, payload & (SCALES - 1)


_SCALE_RANGE = np.arange(SCALES)
POWERS = 10.0**_SCALE_RANGE


def _scaled_values(ids: IntArray) -> FloatArray:
    """Return the nearest doubles: mantissa and power are exact, so the quotient is rounded once."""
    mantissa, scale = scaled_parts(ids)
    values: FloatArray = mantissa / POWERS[scale]
    return values


def inlined_numbers(ids: IntArray) -> NumericValues:
    """Return the numeric values of inlined literals.

    >>> inlined_numbers(double_ids(np.array([1.5])))
    NumericValues(values=array([1.5]), kinds=array([4], dtype=int8))
    """
    tag = tags(ids)
    first = int(tag[0]) if len(tag) else 0
    if (tag == first).all():
        return _numbers_of_tag(ids, first)
    values, kinds = np.empty(len(ids)), np.empty(len(ids), np.int8)
    for which in range(4):
        mask = tag == which
        if mask.any():
            values[mask], kinds[mask] = _numbers_of_tag(ids[mask], which)
    return NumericValues(values, kinds)


def _numbers_of_tag(ids: IntArray, tag: int) -> NumericValues:
    if tag == TAG_INTEGER:
        return NumericValues(
            integer_values(ids).astype(np.float64), np.full(len(ids), INTEGER, np.int8)
        )
    if tag == TAG_DOUBLE:
        return NumericValues(double_values(ids), np.full(len(ids), DOUBLE, np.int8))
    if tag == TAG_DECIMAL:
        return NumericValues(_scaled_values(ids), np.full(len(ids), DECIMAL, np.int8))
    truth = ids <= TRUE_ID
    kinds = np.where(truth, NO_NUMBER, DOUBLE).astype(np.int8)
    return NumericValues(np.where(truth, 0.0, _scaled_values(ids)), kinds)


# -- Ids to texts -------------------------------------------------------------------------------


def double_texts(values: FloatArray) -> pa.Array:
    """Return the canonical lexical forms of doubles.

    >>> double_texts(np.array([1.5, 1e6])).to_pylist()
    ['1.5', '1.0E6']
    """
    texts = pa.array(values).cast(pa.string())
    size = np.abs(values)
    rare = ~((size >= 1e-6) & (size < 1e6) | (size == 0))
    if rare.any():
        texts = pc.replace_with_mask(texts, pa.array(rare), _rare_texts(values[rare]))
    return texts


def _rare_texts(values: FloatArray) -> pa.Array:
    """Return the forms of INF, NaN and doubles with an exponent, from the digits of Arrow.

    Like `repr`, Arrow writes the shortest digits that are read as the same double; Arrow and XSD
    differ in the position of the point, and in the doubles that have an exponent.
    """
    written = pa.array(np.abs(values)).cast(pa.string())
    parts = pc.extract_regex(written, _SHORTEST)
    whole, fraction, power = (pc.struct_field(parts, k).fill_null("") for k in range(3))
    digits = pc.utf8_rtrim(pc.binary_join_element_wise(whole, fraction, ""), "0")
    other = pc.utf8_slice_codeunits(digits, 1)
    other = pc.if_else(pc.equal(other, ""), "0", other)
    shift = pc.if_else(pc.equal(power, ""), "0", power).cast(pa.int64())
    exponent = pc.add(shift, pc.subtract(pc.utf8_length(whole), 1)).cast(pa.string())
    sign = pc.if_else(pa.array(values < 0), "-", "")
    first = pc.binary_join_element_wise(sign, pc.utf8_slice_codeunits(digits, 0, 1), "")
    number = pc.binary_join_element_wise(first, other, ".")
    texts = pc.binary_join_element_wise(number, exponent, "E")
    special = ~np.isfinite(values)
    if special.any():
        named = pa.array([literal_of(value).lexical for value in values[special].tolist()])
        texts = pc.replace_with_mask(texts, pa.array(special), named)
    return texts


_SHORTEST = r"^(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]+))?(?:e\+?(?P<power>-?[0-9]+))?$"


def _scaled_texts(ids: IntArray) -> pa.Array:
    """Return the lexical forms of decimals and plain doubles, scale by scale."""
    mantissa, scale = scaled_parts(ids)
    sign = pc.if_else(pa.array(mantissa < 0), "-", "")
    whole, fraction = np.divmod(np.abs(mantissa), (10**_SCALE_RANGE)[scale])
    texts = pc.binary_join_element_wise(sign, pa.array(whole).cast(pa.string()), "")
    digits = pa.array(fraction).cast(pa.string())
    for which in np.unique(scale).tolist():
        if which:
            padded = pc.utf8_lpad(digits, which, "0")
            longer = pc.binary_join_element_wise(texts, padded, ".")
            texts = pc.if_else(pa.array(scale == which), longer, texts)
    return texts


class InlinedTexts:
    """The N-Triples texts of inlined literals, in a bounded cache: windows report terms repeatedly.

    >>> InlinedTexts().of(np.array([TRUE_ID])).to_pylist()
    ['"true"^^<http://www.w3.org/2001/XMLSchema#boolean>']
    """

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def of(self, ids: IntArray) -> pa.Array:
        """Return the texts of ids."""
        if len(ids) > _TOO_MANY:
            return _texts_by_tag(ids)
        return pa.array(self.listed(ids.tolist()), pa.string())

    def listed(self, ids: list[int]) -> list[str | None]:
        """Return the texts of a list of ids."""
        result: list[str | None] = [*map(self._known.get, ids)]
        missed = [k for k, text in enumerate(result) if text is None]
        if missed:
            new = [ids[k] for k in missed]
            few = len(new) <= (_FEW if _is_plain(new) else _FEW_SCALED)
            texts = _few_texts(new) if few else _texts_by_tag(np.array(new, np.int64)).to_pylist()
            if len(self._known) + len(new) > _MOST:
                self._known.clear()
            self._known.update(zip(new, texts, strict=True))
            for k, text in zip(missed, texts, strict=True):
                result[k] = text
        return result


_FEW, _FEW_SCALED, _TOO_MANY, _MOST = 256, 48, 1 << 15, 1 << 16


def _is_plain(ids: list[int]) -> bool:
    """Return whether ids are integers, or all of them canonical doubles."""
    greatest = max(ids)
    integers = greatest < BASES[TAG_DOUBLE]
    return integers or (min(ids) >= BASES[TAG_DOUBLE] and greatest < BASES[TAG_DECIMAL])


def _few_texts(ids: list[int]) -> list[str]:
    """Return the texts of a few ids."""
    if min(ids) >= BASES[TAG_DOUBLE] and max(ids) < BASES[TAG_DECIMAL]:
        end = ENDS["double"]
        return [
            f'"{value!r}{end}'
            if LEAST_USUAL <= value < FIRST_UNUSUAL and value % 1
            else str(literal_of(value))
            for value in double_values(np.array(ids)).tolist()
        ]
    end = ENDS["integer"]
    return [
        f'"{one - INTEGER_BASE}{end}' if one < BASES[TAG_DOUBLE] else str(inlined_literal(one))
        for one in ids
    ]


LEAST_USUAL, FIRST_UNUSUAL = 1e-4, 1e6
"""Between these bounds, `repr` and `literal_of` write doubles that are not whole alike."""


def _texts_by_tag(ids: IntArray) -> pa.Array:
    """Return the texts of ids, tag by tag."""
    tagged = tags(ids)
    where = [np.flatnonzero(tagged == tag) for tag in range(4)]
    parts = [_texts_of_tag(ids[here], tag) for tag, here in enumerate(where) if len(here)]
    if len(parts) == 1:
        return parts[0]
    places = np.empty(len(ids), np.int64)
    places[np.concatenate(where)] = np.arange(len(ids))
    return pa.concat_arrays(parts).take(pa.array(places))


def _texts_of_tag(ids: IntArray, tag: int) -> pa.Array:
    """Return the texts of ids that all have one tag."""
    if tag == TAG_OTHER:
        truth = ids <= TRUE_ID
        if truth.all():
            return _quoted(pa.array(ids == TRUE_ID).cast(pa.string()), "boolean")
        plain = _quoted(_scaled_texts(np.where(truth, ids + 2, ids)), "double")
        booleans = _quoted(pa.array(ids == TRUE_ID).cast(pa.string()), "boolean")
        return pc.if_else(pa.array(truth), booleans, plain)
    if tag == TAG_INTEGER:
        return _quoted(pa.array(integer_values(ids)).cast(pa.string()), "integer")
    if tag == TAG_DOUBLE:
        return _quoted(double_texts(double_values(ids)), "double")
    return _quoted(_scaled_texts(ids), "decimal")


def _quoted(lexical: pa.Array, name: str) -> pa.Array:
    return pc.binary_join_element_wise('"', lexical, ENDS[name], "")


@lru_cache(maxsize=1 << 14)
def inlined_literal(term_id: int) -> Literal:
    """Return the literal of an inlined id.

    >>> print(inlined_literal(int(integer_ids(np.array([7]))[0])))
    "7"^^<http://www.w3.org/2001/XMLSchema#integer>
    """
    tag, payload = (term_id >> 61) & 3, term_id & _PAYLOAD
    if tag == TAG_INTEGER:
        return literal_of(term_id - INTEGER_BASE)
    if tag == TAG_DOUBLE:
        return literal_of(double_value(term_id))
    if term_id in (TRUE_ID, FALSE_ID):
        return literal_of(term_id == TRUE_ID)
    mantissa, scale = (payload >> 4) - MANTISSA_BASE, payload & (SCALES - 1)
    lexical = f"{EXACT.scaleb(Decimal(mantissa), -scale):f}"
    return Literal(lexical, IRI(XSD + ("decimal" if tag == TAG_DECIMAL else "double")))


def inlined_literals(ids: IntArray) -> list[Literal]:
    """Return the literals of inlined ids."""
    if ids.max() < BASES[TAG_DOUBLE]:
        return [Literal(str(value), _INTEGER) for value in integer_values(ids).tolist()]
    if ids.min() >= BASES[TAG_DOUBLE] and ids.max() < BASES[TAG_DECIMAL]:
        return [
            Literal(repr(value), _DOUBLE)
            if LEAST_USUAL <= value < FIRST_UNUSUAL and value % 1
            else literal_of(value)
            for value in double_values(ids).tolist()
        ]
    return [inlined_literal(one) for one in ids.tolist()]


_INTEGER, _DOUBLE = IRI(XSD + "integer"), IRI(XSD + "double")


# -- Arrow and numpy -----------------------------------------------------------------------------


def numpy_of(array: pa.Array) -> npt.NDArray[Any]:
    """Return an Arrow array as a numpy array."""
    result: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return result


def bools_of(array: pa.Array) -> BoolArray:
    """Return an Arrow array of booleans as a numpy array."""
    return numpy_of(array).astype(np.bool_)
