"""Numbers inside ids: the literals that need no entry in the term dictionary.

A negative id is a canonical literal of xsd:integer, xsd:double, xsd:decimal or xsd:boolean: its
lexical form is what `algebra.values.literal_of` writes. Bits 62 and 61 are its tag, the others say
what it is worth:

    integer   value + 2**60                    values of at most 18 digits
    double    the bits of the double, with an exponent of 8 bits in place of 11; bit 60 is set where
              the sign is not, and where it is the others are inverted
    decimal   (mantissa + 2**56) * 16 + scale  mantissas of at most 16 digits, scales below 16
    boolean   0 or 1

So ids of integers are in the order of their values, and ids of doubles too. Which literals are
inlined depends on the term alone, never on the way it came in: a literal has one id. The functions
here are pure, over arrays; `literal_id` is the one that decides, one literal at a time, and the
vectorised ones agree with it.
"""

from __future__ import annotations

import re
from decimal import Decimal
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

_LEAST = -(1 << 63)
_PAYLOAD = (1 << 61) - 1
_TAG_INTEGER, _TAG_DOUBLE, _TAG_DECIMAL, _TAG_BOOLEAN = range(4)
_KINDS = np.array([INTEGER, DOUBLE, DECIMAL, NO_NUMBER], np.int8)
_NAMES = ("integer", "double", "decimal", "boolean")
DATATYPES = tuple(IRI(XSD + name) for name in _NAMES)

_INTEGER_BASE = _LEAST + (1 << 60)
_INTEGER_BOUND = 10**18
_DOUBLE_BASE = _LEAST + (_TAG_DOUBLE << 61)
_POSITIVE = 1 << 60
_LOW_EXPONENT = 895 << 52  # the exponent that becomes 0: from 2**-127 on doubles fit
_DECIMAL_BASE = _LEAST + (_TAG_DECIMAL << 61)
_MANTISSA_BOUND, _MANTISSA_BASE, _SCALES = 10**16, 1 << 56, 16
_BOOLEAN_BASE = _LEAST + (_TAG_BOOLEAN << 61)
TRUE_ID, FALSE_ID = _BOOLEAN_BASE + 1, _BOOLEAN_BASE


def tags(ids: IntArray) -> IntArray:
    """The tags of inlined ids: 0 integer, 1 double, 2 decimal, 3 boolean."""
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
    """The ids of doubles."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    size = bits & ((1 << 63) - 1)
    small = size - _LOW_EXPONENT
    zero = size == 0
    fit = (small >= 1 << 52) & (small < _POSITIVE) | zero
    small[zero] = 0
    return np.where(
        fit, _DOUBLE_BASE + np.where(bits < 0, _POSITIVE - 1 - small, _POSITIVE + small), 0
    )


def decimal_ids(scaled: IntArray, digits: int) -> IntArray:
    """The ids of the decimals `scaled` / 10**`digits`."""
    mantissa, scale = scaled.copy(), np.full(len(scaled), digits)
    for _ in range(digits):
        shorter = (mantissa % 10 == 0) & (scale > 0)
        if not shorter.any():
            break
        mantissa[shorter] //= 10
        scale[shorter] -= 1
    return _decimal_ids(mantissa, scale)


def _decimal_ids(mantissa: IntArray, scale: IntArray) -> IntArray:
    fit = (mantissa > -_MANTISSA_BOUND) & (mantissa < _MANTISSA_BOUND) & (scale < _SCALES)
    return np.where(fit, _DECIMAL_BASE + (mantissa + _MANTISSA_BASE) * _SCALES + scale, 0)


def boolean_ids(values: BoolArray) -> IntArray:
    """The ids of booleans."""
    return np.where(values, TRUE_ID, FALSE_ID)


# -- Ids to values ------------------------------------------------------------------------------


def integer_values(ids: IntArray) -> IntArray:
    """The values of inlined integers."""
    return ids - _INTEGER_BASE


def double_values(ids: IntArray) -> FloatArray:
    """The values of inlined doubles."""
    payload = ids & _PAYLOAD
    negative = payload < _POSITIVE
    size = np.where(negative, _POSITIVE - 1 - payload, payload - _POSITIVE)
    bits = np.where(size == 0, 0, size + _LOW_EXPONENT) | np.where(negative, _LEAST, 0)
    return bits.view(np.float64)


def decimal_parts(ids: IntArray) -> tuple[IntArray, IntArray]:
    """The mantissas and scales of inlined decimals."""
    payload = ids & _PAYLOAD
    return (payload >> 4) - _MANTISSA_BASE, payload & (_SCALES - 1)


_POWERS = 10.0 ** np.arange(_SCALES)


def _decimal_values(ids: IntArray) -> FloatArray:
    mantissa, scale = decimal_parts(ids)
    values: FloatArray = mantissa / _POWERS[scale]
    # Beyond 2**53 the mantissa is rounded first, and the quotient a second time.
    for i in np.flatnonzero(np.abs(mantissa) > 1 << 53).tolist():
        values[i] = float(EXACT.scaleb(Decimal(int(mantissa[i])), -int(scale[i])))
    return values


def inlined_numbers(ids: IntArray) -> Numbers:
    """What inlined literals are worth.

    >>> inlined_numbers(double_ids(np.array([1.5]))).values.tolist()
    [1.5]
    """
    tag = tags(ids)
    first = int(tag[0]) if len(tag) else 0
    if (tag == first).all():
        return Numbers(_VALUES[first](ids), np.full(len(ids), _KINDS[first]))
    values = np.zeros(len(ids))
    for which in np.unique(tag).tolist():
        mask = tag == which
        values[mask] = _VALUES[which](ids[mask])
    return Numbers(values, _KINDS[tag])


_VALUES: tuple[Any, ...] = (
    lambda ids: integer_values(ids).astype(np.float64),
    double_values,
    _decimal_values,
    lambda ids: np.zeros(len(ids)),
)


# -- Lexical forms to ids -----------------------------------------------------------------------

_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_CANONICAL_DECIMAL = re.compile(r"0|-?(?:0\.[0-9]*[1-9]|[1-9][0-9]*(?:\.[0-9]*[1-9])?)")
_PLAIN_DOUBLE = re.compile(r"-?[0-9]{1,17}(?:\.[0-9]{1,22})?(?:E-?[0-9]{1,3})?")


def literal_id(literal: Literal) -> int:
    """The id of a literal that is inlined; 0 for one that is not.

    >>> literal_id(Literal("01", IRI(XSD + "integer"))), literal_id(Literal("1"))
    (0, 0)
    """
    if not literal.datatype.value.startswith(XSD):
        return 0
    return lexical_id(literal.lexical, literal.datatype.value[len(XSD) :])


def lexical_id(lexical: str, name: str) -> int:
    """The id of a literal by its lexical form and the name of its datatype in xsd."""
    if name == "integer":
        if _CANONICAL_INTEGER.fullmatch(lexical):
            return int(lexical) + _INTEGER_BASE
    elif name == "double":
        if _PLAIN_DOUBLE.fullmatch(lexical):
            value = float(lexical)
            if value == value and literal_of(value).lexical == lexical:
                return int(double_ids(np.array([value]))[0])
    elif name == "decimal":
        if _CANONICAL_DECIMAL.fullmatch(lexical):
            whole, _, fraction = lexical.partition(".")
            if len(fraction) < _SCALES and abs(mantissa := int(whole + fraction)) < _MANTISSA_BOUND:
                return _DECIMAL_BASE + (mantissa + _MANTISSA_BASE) * _SCALES + len(fraction)
    elif name == "boolean":
        return {"true": TRUE_ID, "false": FALSE_ID}.get(lexical, 0)
    return 0


def _sane(lexical: pa.Array, pattern: re.Pattern[str]) -> tuple[pa.Array, pa.Array]:
    """Where the pattern matches, and the lexical forms there; "0" elsewhere, which casts."""
    match = pc.match_substring_regex(lexical, f"^(?:{pattern.pattern})$")
    return match, pc.if_else(match, lexical, "0")


def _integers(lexical: pa.Array) -> IntArray:
    sane, texts = _sane(lexical, _CANONICAL_INTEGER)
    return np.where(_bools(sane), integer_ids(_numpy(texts.cast(pa.int64()))), 0)


def _doubles(lexical: pa.Array) -> IntArray:
    sane, texts = _sane(lexical, _PLAIN_DOUBLE)
    values = _numpy(texts.cast(pa.float64()))
    canonical = pc.and_(sane, pc.equal(double_texts(values), lexical))
    return np.where(_bools(canonical), double_ids(values), 0)


def _decimals(lexical: pa.Array) -> IntArray:
    sane, texts = _sane(lexical, _CANONICAL_DECIMAL)
    point = _numpy(pc.find_substring(texts, ".")).astype(np.int64)
    length = _numpy(pc.binary_length(texts)).astype(np.int64)
    scale = np.where(point < 0, 0, length - point - 1)
    short = _bools(sane) & (length <= 18)
    mantissa = pc.if_else(pa.array(short), pc.replace_substring(texts, ".", ""), "0")
    return np.where(short, _decimal_ids(_numpy(mantissa.cast(pa.int64())), scale), 0)


def _booleans(lexical: pa.Array) -> IntArray:
    true, false = _bools(pc.equal(lexical, "true")), _bools(pc.equal(lexical, "false"))
    return np.where(true, TRUE_ID, np.where(false, FALSE_ID, 0))


_READ = dict(zip(_NAMES, (_integers, _doubles, _decimals, _booleans), strict=True))


def lexical_ids(lexical: pa.Array, name: str) -> IntArray:
    """The ids of literals of one datatype by their lexical forms; 0 for those not inlined.

    >>> (lexical_ids(pa.array(["1.5", "1.50"]), "double") < 0).tolist()
    [True, False]
    """
    return _READ[name](lexical)


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return found


def _bools(array: pa.Array) -> BoolArray:
    return _numpy(array).astype(np.bool_)


# -- Ids to texts -------------------------------------------------------------------------------


def double_texts(values: FloatArray) -> pa.Array:
    """The lexical forms of doubles, as `literal_of` writes them.

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


def _decimal_texts(ids: IntArray) -> pa.Array:
    mantissa, scale = decimal_parts(ids)
    pairs = zip(mantissa.tolist(), scale.tolist(), strict=True)
    return pa.array([f"{EXACT.scaleb(Decimal(m), -s):f}" for m, s in pairs], pa.string())


_WRITE: tuple[Any, ...] = (
    lambda ids: pa.array(integer_values(ids)).cast(pa.string()),
    lambda ids: double_texts(double_values(ids)),
    _decimal_texts,
    lambda ids: pa.array(ids == TRUE_ID).cast(pa.string()),
)


def inlined_texts(ids: IntArray, tag: int) -> pa.Array:
    """The N-Triples texts of inlined literals that all have this tag."""
    return pc.binary_join_element_wise('"', _WRITE[tag](ids), f'"^^{DATATYPES[tag]}', "")


def inlined_literal(term_id: int) -> Literal:
    """The literal of an inlined id.

    >>> print(inlined_literal(int(integer_ids(np.array([7]))[0])))
    "7"^^<http://www.w3.org/2001/XMLSchema#integer>
    """
    tag = (term_id >> 61) & 3
    return Literal(_WRITE[tag](np.array([term_id]))[0].as_py(), DATATYPES[tag])
