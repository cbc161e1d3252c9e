"""Numbers inside ids: the literals that need no entry in the term dictionary.

A negative id is a literal of xsd:integer, xsd:double, xsd:decimal or xsd:boolean whose lexical form
is canonical, that is, what `algebra.values.literal_of` writes; or one of xsd:double that is plain,
like `"22.50"`, as sensors write them. Bits 62 and 61 are its tag, the others say what it is:

    integer   value + 2**60                    values of at most 18 digits
    double    the bits of the double, with an exponent of 8 bits in place of 11; bit 60 is set where
              the sign is not, and where it is not the others are inverted
    decimal   (mantissa + 2**56) * 16 + scale  of at most 15 digits, in mantissa and in fraction
    other     0 or 1, a boolean; else a plain double that is not canonical, as a decimal is

So ids of integers are in the order of their values, and ids of canonical doubles too. Which
literals are inlined depends on the literal alone, never on the way it came in: a literal has one
id. `lexical_id` decides, one literal at a time, and the functions over arrays agree with it.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.numeric import EXACT
from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.algebra.values import literal_of
from streamsparql.physical.batch import BoolArray, IntArray

FloatArray = npt.NDArray[np.float64]
KindArray = npt.NDArray[np.int8]

NO_NUMBER, INTEGER, DECIMAL, FLOAT, DOUBLE = range(5)
"""The kinds of numbers, in the order of promotion."""


class Numbers(NamedTuple):
    """What terms are worth as numbers: the doubles nearest to them, and their kinds."""

    values: FloatArray
    kinds: KindArray


# -- The layout ---------------------------------------------------------------------------------

TAG_INTEGER, TAG_DOUBLE, TAG_DECIMAL, TAG_OTHER = range(4)
ENDS = {name: f'"^^<{XSD}{name}>' for name in ("double", "integer", "decimal", "boolean")}
"""What the texts of literals end with that may be inlined, by their datatype."""

_LEAST = -(1 << 63)
_PAYLOAD = (1 << 61) - 1
_BASES = tuple(_LEAST + (tag << 61) for tag in range(4))

_INTEGER_BASE = _LEAST + (1 << 60)
_INTEGER_BOUND = 10**18
_POSITIVE = 1 << 60
_LOW_EXPONENT = 895 << 52  # the exponent that becomes 0: from 2**-127 on doubles fit
_MANTISSA_BOUND, _SCALES = 10**15, 16
_MANTISSA_BASE = 1 << 56
FALSE_ID = _BASES[TAG_OTHER]
TRUE_ID = FALSE_ID + 1


def tags(ids: IntArray) -> IntArray:
    """The tags of inlined ids."""
    return (ids >> 61) & 3


# -- Values to ids: 0 where the value does not fit ----------------------------------------------


def integer_ids(values: IntArray) -> IntArray:
    """The ids of integers.

    >>> integer_values(integer_ids(np.array([-5, 7]))).tolist()
    [-5, 7]
    """
    fit = (values > -_INTEGER_BOUND) & (values < _INTEGER_BOUND)
    return np.where(fit, values + _INTEGER_BASE, 0)


def double_ids(values: FloatArray) -> IntArray:
    """The ids of canonical doubles.

    >>> double_values(double_ids(np.array([1.5, -0.0]))).tolist()
    [1.5, -0.0]
    """
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    size = bits & ~_LEAST
    small = size - _LOW_EXPONENT
    zero = size == 0
    fit = (small >= 1 << 52) & (small < _POSITIVE) | zero
    small[zero] = 0
    payload = np.where(bits < 0, _POSITIVE - 1 - small, _POSITIVE + small)
    return np.where(fit, _BASES[TAG_DOUBLE] + payload, 0)


def decimal_ids(scaled: IntArray, digits: int) -> IntArray:
    """The ids of the decimals `scaled` / 10**`digits`.

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
    return _scaled_ids(mantissa, scale, TAG_DECIMAL)


def _scaled_ids(mantissa: IntArray, scale: IntArray, tag: int) -> IntArray:
    fit = (mantissa > -_MANTISSA_BOUND) & (mantissa < _MANTISSA_BOUND) & (scale < _SCALES)
    return np.where(fit, _BASES[tag] + (mantissa + _MANTISSA_BASE) * _SCALES + scale, 0)


def boolean_ids(values: BoolArray) -> IntArray:
    """The ids of booleans."""
    return np.where(values, TRUE_ID, FALSE_ID)


# -- Ids to values ------------------------------------------------------------------------------


def integer_values(ids: IntArray) -> IntArray:
    """The values of inlined integers."""
    return ids - _INTEGER_BASE


def double_values(ids: IntArray) -> FloatArray:
    """The values of inlined canonical doubles."""
    payload = ids & _PAYLOAD
    negative = payload < _POSITIVE
    size = np.where(negative, _POSITIVE - 1 - payload, payload - _POSITIVE)
    bits = np.where(size == 0, 0, size + _LOW_EXPONENT) | np.where(negative, _LEAST, 0)
    return bits.view(np.float64)


def scaled_parts(ids: IntArray) -> tuple[IntArray, IntArray]:
    """The mantissas and scales of inlined decimals, and of plain doubles."""
    payload = ids & _PAYLOAD
    return (payload >> 4) - _MANTISSA_BASE, payload & (_SCALES - 1)


_SCALE_RANGE = np.arange(_SCALES)
_POWERS = 10.0**_SCALE_RANGE


def _scaled_values(ids: IntArray) -> FloatArray:
    """Mantissa and power are doubles without rounding, so the quotient is the nearest one."""
    mantissa, scale = scaled_parts(ids)
    values: FloatArray = mantissa / _POWERS[scale]
    return values


def inlined_numbers(ids: IntArray) -> Numbers:
    """What inlined literals are worth.

    >>> inlined_numbers(double_ids(np.array([1.5])))
    Numbers(values=array([1.5]), kinds=array([4], dtype=int8))
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
    return Numbers(values, kinds)


def _numbers_of_tag(ids: IntArray, tag: int) -> Numbers:
    if tag == TAG_INTEGER:
        return Numbers(integer_values(ids).astype(np.float64), np.full(len(ids), INTEGER, np.int8))
    if tag == TAG_DOUBLE:
        return Numbers(double_values(ids), np.full(len(ids), DOUBLE, np.int8))
    if tag == TAG_DECIMAL:
        return Numbers(_scaled_values(ids), np.full(len(ids), DECIMAL, np.int8))
    truth = ids <= TRUE_ID
    kinds = np.where(truth, NO_NUMBER, DOUBLE).astype(np.int8)
    return Numbers(np.where(truth, 0.0, _scaled_values(ids)), kinds)


# -- Lexical forms to ids, one by one -----------------------------------------------------------

_PLAIN = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?")
_DOUBLE = re.compile(r"-?[0-9]{1,17}(?:\.[0-9]{1,22})?(?:E-?[0-9]{1,2})?")


def literal_id(literal: Literal) -> int:
    """The id of a literal that is inlined; 0 for one that is not.

    >>> literal_id(Literal("01", IRI(XSD + "integer"))), literal_id(Literal("1"))
    (0, 0)
    """
    name = literal.datatype.value
    return lexical_id(literal.lexical, name[len(XSD) :]) if name.startswith(XSD) else 0


def lexical_id(lexical: str, name: str) -> int:
    """The id of a literal by its lexical form and the name of its datatype in xsd."""
    if name == "boolean":
        return {"true": TRUE_ID, "false": FALSE_ID}.get(lexical, 0)
    if name not in ENDS:
        return 0
    if plain := _PLAIN.fullmatch(lexical):
        sign, whole, fraction = plain[1], plain[2], plain[3] or ""
        if len(lexical) <= 19 and (found := _plain_id(sign, whole, fraction, name)):
            return found
    if name == "double" and _DOUBLE.fullmatch(lexical):
        value = float(lexical)
        return _double_id(value) if literal_of(value).lexical == lexical else 0
    return 0


def _plain_id(sign: str, whole: str, fraction: str, name: str) -> int:
    """The id of a number without exponent, where it needs no more than its digits."""
    mantissa = int(sign + whole + fraction)
    if name == "integer":
        wrong = fraction or (sign and not mantissa) or abs(mantissa) >= _INTEGER_BOUND
        return 0 if wrong else mantissa + _INTEGER_BASE
    if abs(mantissa) >= _MANTISSA_BOUND or len(fraction) >= _SCALES:
        return 0
    scaled = (mantissa + _MANTISSA_BASE) * _SCALES + len(fraction)
    if name == "decimal":
        wrong = fraction.endswith("0") or (sign and not mantissa)
        return 0 if wrong else _BASES[TAG_DECIMAL] + scaled
    value = mantissa / 10.0 ** len(fraction)
    if not mantissa:
        if sign:
            return 0 if fraction else _double_id(-0.0)
        return _BASES[TAG_OTHER] + scaled if fraction else _double_id(0.0)
    canonical = 1e-6 <= abs(value) < 1e6 and not fraction.endswith("0")
    return _double_id(value) if canonical else _BASES[TAG_OTHER] + scaled


def _double_id(value: float) -> int:
    """`double_ids` for one value."""
    size: int = struct.unpack("<q", struct.pack("<d", abs(value)))[0]
    small = size - _LOW_EXPONENT if size else 0
    if size and not 1 << 52 <= small < _POSITIVE:
        return 0
    negative = struct.pack(">d", value)[0] >> 7
    return _BASES[TAG_DOUBLE] + (_POSITIVE - 1 - small if negative else _POSITIVE + small)


# -- Lexical forms to ids, many at once ---------------------------------------------------------

_WIDTH = 17  # "0." and 15 digits
_ZERO, _POINT, _MINUS = b"0.-"


class _Plain(NamedTuple):
    """Numbers without exponent, by their digits. The fields mean nothing where `ok` is false."""

    ok: BoolArray
    negative: BoolArray
    mantissa: IntArray
    scale: IntArray
    last_zero: BoolArray

    def ids(self, name: str) -> IntArray:
        """Their ids, as `_plain_id` gives them one by one."""
        minus_zero = self.negative & (self.mantissa == 0)
        if name == "integer":
            wrong = minus_zero | (self.scale > 0)
            return np.where(self.ok & ~wrong, integer_ids(self.mantissa), 0)
        fraction = self.scale > 0
        if name == "decimal":
            wrong = minus_zero | (fraction & self.last_zero)
            found = _scaled_ids(self.mantissa, self.scale, TAG_DECIMAL)
            return np.where(self.ok & ~wrong, found, 0)
        short = self.ok & (np.abs(self.mantissa) < _MANTISSA_BOUND) & (self.scale < _SCALES)
        values = self.mantissa / _POWERS[np.minimum(self.scale, _SCALES - 1)]
        size = np.abs(values)
        canonical = (size >= 1e-6) & (size < 1e6) & ~(fraction & self.last_zero)
        canonical |= (size == 0) & ~fraction
        values[minus_zero] = -0.0
        found = double_ids(values)
        if not canonical.all():
            plain = _scaled_ids(self.mantissa, self.scale, TAG_OTHER)
            found = np.where(canonical, found, np.where(minus_zero, 0, plain))
        return np.where(short, found, 0)


def _plain(data: npt.NDArray[np.uint8], begin: IntArray, length: IntArray) -> _Plain:
    """Reads the digits of texts that are in `data`, which goes on well beyond each."""
    negative = data[begin] == _MINUS
    begin, length = begin + negative, length - negative
    ok = (length > 0) & (length <= _WIDTH)
    width = int(np.minimum(length, _WIDTH).max(initial=1))
    windows = np.lib.stride_tricks.as_strided(data, (len(data) - width + 1, width), (1, 1))
    # A row for each place in the texts, so that what follows runs along whole columns of memory.
    texts = np.ascontiguousarray(windows[begin].T)
    within = np.arange(width)[:, None] < length
    point = (texts == _POINT) & within
    digits = texts - np.uint8(_ZERO)
    digit = (digits < 10) & within
    points = point.sum(axis=0, dtype=np.int8)
    ok &= (point | digit).sum(axis=0, dtype=np.int8) == np.minimum(length, _WIDTH)
    place = np.where(points == 1, point.argmax(axis=0), length)
    ok &= (points == 0) | ((points == 1) & (place > 0) & (place < length - 1))
    ok &= (digits[0] != 0) | (place == 1)
    mantissa = np.zeros(len(begin), np.int64)
    for row, use in zip(digits, digit, strict=True):
        mantissa *= np.where(use, np.int8(10), np.int8(1))
        mantissa += np.where(use, row, np.uint8(0))
    last = data[begin + np.maximum(length, 1) - 1] == _ZERO
    np.negative(mantissa, out=mantissa, where=negative)
    return _Plain(ok, negative, mantissa, np.where(points == 1, length - place - 1, 0), last)


def _sane_doubles(lexical: pa.Array) -> IntArray:
    """Any canonical double, by writing what was read."""
    sane = pc.match_substring_regex(lexical, f"^(?:{_DOUBLE.pattern})$")
    values = numpy_of(pc.if_else(sane, lexical, "0").cast(pa.float64()))
    canonical = bools_of(pc.and_(sane, pc.equal(double_texts(values), lexical)))
    return np.where(canonical, double_ids(values), 0)


def text_ids(texts: pa.Array, name: str) -> IntArray:
    """The ids of literals of one datatype, by their N-Triples texts; 0 for those not inlined.

    The texts begin with a quote and end with `ENDS[name]`; what is between is not known.

    >>> texts = pa.array(['"7"^^<http://www.w3.org/2001/XMLSchema#integer>'])
    >>> text_ids(texts, "integer") == integer_ids(np.array([7]))
    array([ True])
    """
    end = ENDS[name]
    _, offsets, data = texts.buffers()
    shown = slice(texts.offset, texts.offset + len(texts) + 1)
    places = np.frombuffer(offsets, np.int32)[shown].astype(np.int64)
    begin, length = places[:-1] + 1, places[1:] - places[:-1] - 1 - len(end)
    ids = np.zeros(len(texts), np.int64)
    if name != "boolean":
        ids = _plain(np.frombuffer(data, np.uint8), begin, length).ids(name)
    rest = np.flatnonzero((ids == 0) & (length > 0))
    if len(rest):
        lexical = pc.binary_slice(texts.take(pa.array(rest)).view(pa.binary()), 1, -len(end))
        lexical = lexical.view(pa.string())
        if name == "double":
            ids[rest] = _sane_doubles(lexical)
        else:
            ids[rest] = [lexical_id(text, name) for text in lexical.to_pylist()]
    return ids


def numpy_of(array: pa.Array) -> npt.NDArray[Any]:
    """An Arrow array as numpy's."""
    found: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return found


def bools_of(array: pa.Array) -> BoolArray:
    """An Arrow array of booleans as numpy's."""
    return numpy_of(array).astype(np.bool_)


# -- Ids to texts -------------------------------------------------------------------------------


def double_texts(values: FloatArray) -> pa.Array:
    """The canonical lexical forms of doubles.

    >>> double_texts(np.array([1.5, 1e6])).to_pylist()
    ['1.5', '1.0E6']
    """
    texts = pa.array(values).cast(pa.string())
    size = np.abs(values)
    rare = ~((size >= 1e-6) & (size < 1e6) | (size == 0))
    if rare.any():
        written = pa.array([literal_of(value).lexical for value in values[rare].tolist()])
        texts = pc.replace_with_mask(texts, pa.array(rare), written)
    return texts


def _scaled_texts(ids: IntArray) -> pa.Array:
    """The digits of decimals and plain doubles, group by group of those with the same scale."""
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


def inlined_texts(ids: IntArray, tag: int) -> pa.Array:
    """The N-Triples texts of inlined literals that all have this tag."""
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
    """The literal of an inlined id.

    >>> print(inlined_literal(int(integer_ids(np.array([7]))[0])))
    "7"^^<http://www.w3.org/2001/XMLSchema#integer>
    """
    tag, payload = (term_id >> 61) & 3, term_id & _PAYLOAD
    if tag == TAG_INTEGER:
        return literal_of(term_id - _INTEGER_BASE)
    if tag == TAG_DOUBLE:
        return literal_of(double_values(np.array([term_id])).item())
    if term_id in (TRUE_ID, FALSE_ID):
        return literal_of(term_id == TRUE_ID)
    mantissa, scale = (payload >> 4) - _MANTISSA_BASE, payload & (_SCALES - 1)
    lexical = f"{EXACT.scaleb(Decimal(mantissa), -scale):f}"
    return Literal(lexical, IRI(XSD + ("decimal" if tag == TAG_DECIMAL else "double")))
