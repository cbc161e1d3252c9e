"""The inlining of literals: from texts to ids, and from texts to numeric values.

`lexical_id` defines which literals are inlined, one literal at a time. Streams contain many
numbers, most of them new, so `inlined_ids` computes the same for whole arrays: it parses the digits
of all texts at once, position by position, from their bytes. For a plain number (no exponent, at
most 15 digits) the digits decide: two such decimals are two doubles, so the shortest form of the
double is the text itself. The few other numbers are parsed, written again, and compared.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from decimal import Decimal
from itertools import compress, repeat
from operator import eq
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.terms import XSD, Literal
from streamsparql.algebra.xsd.numeric import EXACT, INTEGERS, Numeric
from streamsparql.algebra.xsd.values import literal_of
from streamsparql.physical.batch import BoolArray, FloatArray, IntArray
from streamsparql.physical.dictionary.inline_ids import (
    BASES,
    ENDS,
    FALSE_ID,
    FIRST_UNUSUAL,
    INTEGER_BASE,
    INTEGER_BOUND,
    LEAST_USUAL,
    LOW_EXPONENT,
    MANTISSA_BASE,
    MANTISSA_BOUND,
    POSITIVE,
    POWERS,
    SCALES,
    SIZE,
    TAG_DECIMAL,
    TAG_DOUBLE,
    TAG_OTHER,
    TRUE_ID,
    bools_of,
    double_ids,
    double_texts,
    integer_ids,
    numpy_of,
    scaled_ids,
)

# -- Lexical forms to ids, one by one -----------------------------------------------------------

_PLAIN = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?")
_DOUBLE = re.compile(r"-?[0-9]{1,17}(?:\.[0-9]{1,22})?(?:E-?[0-9]{1,2})?")


def literal_id(literal: Literal) -> int:
    """Return the id of an inlined literal; 0 for other literals.

    >>> literal_id(literal_of(1)) == lexical_id("1", "integer"), literal_id(Literal("1"))
    (True, 0)
    """
    name = literal.datatype.value
    return lexical_id(literal.lexical, name[len(XSD) :]) if name.startswith(XSD) else 0


def lexical_id(lexical: str, name: str) -> int:
    """Return the id of a literal by its lexical form and its datatype in xsd; 0 if not inlined."""
    if name == "boolean":
        return {"true": TRUE_ID, "false": FALSE_ID}.get(lexical, 0)
    if name not in ENDS:
        return 0
    return (_usual_double_id(lexical) if name == "double" else 0) or _unusual_id(lexical, name)


def _unusual_id(lexical: str, name: str) -> int:
    """Return the id of a number in any lexical form."""
    if plain := _PLAIN.fullmatch(lexical):
        sign, whole, fraction = plain[1], plain[2], plain[3] or ""
        if len(lexical) <= 19 and (inlined := _plain_id(sign, whole, fraction, name)):
            return inlined
    if name == "double" and _DOUBLE.fullmatch(lexical):
        value = float(lexical)
        return _double_id(value) if literal_of(value).lexical == lexical else 0
    return 0


_LONGEST = {"integer": 19, "decimal": 18}
"""The lengths of the longest lexical forms that are inlined, with their signs."""
_BY_END = {end[-8:]: (name, end) for name, end in ENDS.items()}


def inlined_id(text: str) -> int:
    """Return the id of an inlined literal by its N-Triples text; 0 for other texts.

    >>> inlined_id("<a>")
    0
    """
    name, end = _BY_END.get(text[-8:], ("", ""))
    if name and text[0] == '"' and text.endswith(end):
        return lexical_id(text[1 : -len(end)], name)
    return 0


def _plain_id(sign: str, whole: str, fraction: str, name: str) -> int:
    """Return the id of a number without exponent; 0 if its digits do not suffice."""
    mantissa = int(sign + whole + fraction)
    if name == "integer":
        wrong = fraction or (sign and not mantissa) or abs(mantissa) >= INTEGER_BOUND
        return 0 if wrong else mantissa + INTEGER_BASE
    if abs(mantissa) >= MANTISSA_BOUND or len(fraction) >= SCALES:
        return 0
    scaled = (mantissa + MANTISSA_BASE) * SCALES + len(fraction)
    if name == "decimal":
        wrong = fraction.endswith("0") or (sign and not mantissa)
        return 0 if wrong else BASES[TAG_DECIMAL] + scaled
    value = mantissa / 10.0 ** len(fraction)
    if not mantissa:
        if sign:
            return 0 if fraction else _double_id(-0.0)
        return BASES[TAG_OTHER] + scaled if fraction else _double_id(0.0)
    canonical = 1e-6 <= abs(value) < 1e6 and not fraction.endswith("0")
    return _double_id(value) if canonical else BASES[TAG_OTHER] + scaled


def _usual_double_id(lexical: str) -> int:
    """Return the id of a double that `repr` writes as `literal_of` does; 0 for others."""
    if lexical[-2:] == ".0":
        return 0
    try:
        value = float(lexical)
    except ValueError:
        return 0
    usual = 1e-4 <= value < 1e6 or -1e6 < value <= -1e-4
    return _double_id(value) if usual and repr(value) == lexical else 0


_pack, _unpack = struct.Struct("<d").pack, struct.Struct("<q").unpack


def _double_id(value: float) -> int:
    """Return `double_ids` of one value."""
    bits: int = _unpack(_pack(value))[0]
    size = bits & SIZE
    small = size - LOW_EXPONENT if size else 0
    if size and not 1 << 52 <= small < POSITIVE:
        return 0
    return BASES[TAG_DOUBLE] + (POSITIVE - 1 - small if bits < 0 else POSITIVE + small)


def few_ids(texts: list[str]) -> IntArray:
    """Return the ids of a few N-Triples texts of inlined doubles or integers; 0 for others.

    >>> few_ids([f'"7{ENDS["integer"]}', "<a>"]).tolist() == [lexical_id("7", "integer"), 0]
    True
    """
    ids = np.zeros(len(texts), np.int64)
    for name in ("double", "integer"):
        end = ENDS[name]
        ended = [*map(str.endswith, texts, repeat(end))]
        if True in ended:
            places = [k for k in compress(range(len(texts)), ended) if texts[k][0] == '"']
            lexical = [texts[k][1 : -len(end)] for k in places]
            usual = _usual_ids(lexical, name)
            for k in (usual == 0).nonzero()[0].tolist():
                usual[k] = _unusual_id(lexical[k], name)
            if len(places) == len(texts):
                return usual
            ids[places] = usual
    return ids


_NUMBERS = {
    "double": re.compile(r"(?:-?(?:0|[1-9][0-9]{0,8}+)\.[0-9]{1,9}+\n)*+"),
    "integer": re.compile(r"(?:-?(?:0|[1-9][0-9]{0,16}+)\n)*+"),
}
"""Lines of numbers whose digits are those of a number of 64 bits."""


def alike_ids(texts: list[str]) -> IntArray | None:
    """Return the ids of texts that are all doubles with a point, or all integers; None for others.

    They are parsed as one text, whose lines are their lexical forms. An id is 0 if the number has a
    form, or a size, that is not inlined.

    >>> alike_ids([f'"7{ENDS["integer"]}', "<a>"]), alike_ids([f'"-7{ENDS["integer"]}']) is None
    (None, False)
    """
    name = next((name for name in _NUMBERS if texts[0].endswith(ENDS[name])), None)
    if name is None:
        return None
    end = ENDS[name]
    lines = "\n".join([*texts, ""]).replace(f'{end}\n"', "\n")
    if not lines.endswith(f"{end}\n") or lines[0] != '"':
        return None
    lines = lines[1 : -len(end) - 1] + "\n"
    # Without quotes, each line is a text of its own: a text with a line break would be a line more.
    if not _NUMBERS[name].fullmatch(lines) or lines.count("\n") != len(texts):
        return None
    data = np.frombuffer(lines.encode(), np.uint8)
    after = np.flatnonzero(data == _NEWLINE)
    negative = data[np.concatenate([[0], after[:-1] + 1])] == _MINUS
    scale = np.zeros(len(texts), np.int64)
    if name == "double":
        scale = after - np.flatnonzero(data == _POINT) - 1
        lines = lines.replace(".", "")
    mantissa = np.fromstring(lines, np.int64, sep=" ")
    right = np.ones(len(texts), np.bool_)
    return _Plain(right, negative, mantissa, scale, data[after - 1] == _ZERO).ids(name)


def _usual_ids(lexical: list[str], name: str) -> IntArray:
    """Return the ids of numbers in the form that Python writes; 0 for others."""
    values: list[int] | list[float]
    try:
        if name == "integer":
            values = [*map(int, lexical)]
            ids = integer_ids(np.array(values, np.int64))
        else:
            values = [*map(float, lexical)]
            ids = _usual_double_ids(np.array(values, np.float64))
    except (ValueError, OverflowError):
        return np.zeros(len(lexical), np.int64)
    same = [*map(eq, map(repr, values), lexical)]
    if False in same:
        ids[~np.array(same)] = 0
    return ids


def _usual_double_ids(values: FloatArray) -> IntArray:
    """Return the ids of doubles that `repr` writes as `literal_of` does; 0 for others."""
    if len(values) and values.min() >= LEAST_USUAL and values.max() < FIRST_UNUSUAL:
        ids = values.view(np.int64) - LOW_EXPONENT + (BASES[TAG_DOUBLE] + POSITIVE)
        whole = np.floor(values) == values
        if whole.any():
            ids[whole] = 0
        return ids
    size = np.abs(values)
    usual = (size >= LEAST_USUAL) & (size < FIRST_UNUSUAL) & (np.floor(size) != size)
    return np.where(usual, double_ids(values), 0)


# -- Lexical forms to ids, many at once ---------------------------------------------------------

_WIDTH = 17  # "0." and 15 digits
_ZERO, _POINT, _MINUS, _NEWLINE = b"0.-\n"
_BLOCK = 4096  # the number of texts at once: their digits fit into the cache


class _Plain(NamedTuple):
    """Numbers without exponent, by their digits; fields are undefined where `ok` is false."""

    ok: BoolArray
    negative: BoolArray
    mantissa: IntArray
    scale: IntArray
    last_zero: BoolArray

    def ids(self, name: str) -> IntArray:
        """Return their ids, as `_plain_id` does for one number."""
        minus_zero = self.negative & (self.mantissa == 0)
        if name == "integer":
            wrong = minus_zero | (self.scale > 0)
            return np.where(self.ok & ~wrong, integer_ids(self.mantissa), 0)
        fraction = self.scale > 0
        if name == "decimal":
            wrong = minus_zero | (fraction & self.last_zero)
            ids = scaled_ids(self.mantissa, self.scale, TAG_DECIMAL)
            return np.where(self.ok & ~wrong, ids, 0)
        short = self.ok & (np.abs(self.mantissa) < MANTISSA_BOUND) & (self.scale < SCALES)
        values = self.mantissa / POWERS[np.minimum(self.scale, SCALES - 1)]
        size = np.abs(values)
        canonical = (size >= 1e-6) & (size < 1e6) & ~(fraction & self.last_zero)
        canonical |= (size == 0) & ~fraction
        values[minus_zero] = -0.0
        ids = double_ids(values)
        if not canonical.all():
            plain = scaled_ids(self.mantissa, self.scale, TAG_OTHER)
            ids = np.where(canonical, ids, np.where(minus_zero, 0, plain))
        return np.where(short, ids, 0)


def _plain(texts: TextSpans, begin: IntArray, length: IntArray) -> _Plain:
    """Parse the digits of `length` bytes from `begin` on; the texts are longer than that."""
    data = texts.data
    negative = data[begin] == _MINUS
    begin, length = begin + negative, length - negative
    ok = (length > 0) & (length <= _WIDTH)
    width = int(np.minimum(length, _WIDTH).max(initial=1))
    read = texts.bytes_from(begin, width).view(np.uint8).reshape(-1, width)
    # One row per position, so that the loops below run along contiguous memory.
    read = np.ascontiguousarray(read.T)
    within = np.arange(width)[:, None] < length
    point = (read == _POINT) & within
    digits = read - np.uint8(_ZERO)
    digit = (digits < 10) & within
    points = point.sum(axis=0, dtype=np.int8)
    ok &= (point | digit).sum(axis=0, dtype=np.int8) == np.minimum(length, _WIDTH)
    place = np.where(points == 1, point.argmax(axis=0), length)
    ok &= (points == 0) | ((points == 1) & (place > 0) & (place < length - 1))
    ok &= (digits[0] != 0) | (place == 1)
    mantissa = np.zeros(len(begin), np.int64)
    for factor, unit in zip(digit * np.int64(9) + 1, digits * digit.astype(np.int64), strict=True):
        mantissa *= factor
        mantissa += unit
    last = data[begin + np.maximum(length, 1) - 1] == _ZERO
    np.negative(mantissa, out=mantissa, where=negative)
    return _Plain(ok, negative, mantissa, np.where(points == 1, length - place - 1, 0), last)


def _sane_doubles(lexical: pa.Array) -> IntArray:
    """Return the ids of canonical doubles, by parsing and writing them."""
    sane = pc.match_substring_regex(lexical, f"^(?:{_DOUBLE.pattern})$")
    values = numpy_of(pc.if_else(sane, lexical, "0").cast(pa.float64()))
    canonical = bools_of(pc.and_(sane, pc.equal(double_texts(values), lexical)))
    return np.where(canonical, double_ids(values), 0)


class TextSpans(NamedTuple):
    """Texts in memory: the bytes of `data` from `begin` to before `end`."""

    data: npt.NDArray[np.uint8]
    begin: IntArray
    end: IntArray

    @classmethod
    def of_array(cls, texts: pa.Array) -> TextSpans:
        """Return the spans of an Arrow array of strings without nulls."""
        _, offsets, data = texts.buffers()
        shown = slice(texts.offset, texts.offset + len(texts) + 1)
        places = np.frombuffer(offsets, np.int32)[shown].astype(np.int64)
        return cls(np.frombuffer(data or b"", np.uint8), places[:-1], places[1:])

    def at(self, places: IntArray) -> TextSpans:
        """Return the spans at these places."""
        return TextSpans(self.data, self.begin[places], self.end[places])

    def bytes_from(self, places: IntArray, width: int) -> npt.NDArray[Any]:
        """Return the `width` bytes from each place on, as one item each."""
        windows = np.ndarray((len(self.data) - width + 1,), f"V{width}", self.data, strides=(1,))
        return windows[places]


_END_BYTES = 40  # compared as words, of each of ENDS; these are a little longer, at most _MOST
_MOST = max(map(len, ENDS.values()))
_END_WORDS = {
    name: (np.frombuffer(end[-_END_BYTES:].encode(), np.int64), end[:-_END_BYTES].encode())
    for name, end in ENDS.items()
}
_QUOTE, _GREATER = b'">'


def _places_by_type(texts: TextSpans) -> dict[str, IntArray]:
    """Return the places of texts that end like literals of the datatypes of `ENDS`."""
    data, begin, end = texts
    long = np.flatnonzero(end - begin > _MOST)
    if len(long):
        long = long[(data[begin[long]] == _QUOTE) & (data[end[long] - 1] == _GREATER)]
    if not len(long):
        return {}
    words = texts.bytes_from(end[long] - _END_BYTES, _END_BYTES).view(np.int64)
    words = words.reshape(len(long), -1)
    places = {}
    for name, (tail, head) in _END_WORDS.items():
        here = np.flatnonzero(words[:, -1] == tail[-1])
        if len(here):
            first = end[long[here]] - len(ENDS[name])
            right = np.ones(len(here), np.bool_)
            for k, byte in enumerate(head):
                right &= data[first + k] == byte
            for k, word in enumerate(tail[:-1]):
                right &= words[here, k] == word
            places[name] = long[here[right]]
    return places


def inlined_ids(texts: TextSpans, as_arrow: Callable[[IntArray], pa.Array]) -> IntArray:
    """Return the ids of N-Triples texts of inlined literals; 0 for others.

    `as_arrow` returns the texts at given places as an Arrow array, where digits do not decide.

    >>> texts = pa.array(['"7"^^<http://www.w3.org/2001/XMLSchema#integer>', "<a>"])
    >>> ids = inlined_ids(TextSpans.of_array(texts), texts.take)
    >>> ids.tolist() == [lexical_id("7", "integer"), 0]
    True
    """
    ids = np.zeros(len(texts.begin), np.int64)
    for name, places in _places_by_type(texts).items():
        parsed = np.zeros(len(places), np.int64)
        for first in range(0, len(places) if name != "boolean" else 0, _BLOCK):
            block = texts.at(places[first : first + _BLOCK])
            length = block.end - block.begin - 1 - len(ENDS[name])
            parsed[first : first + _BLOCK] = _plain(block, block.begin + 1, length).ids(name)
        rest = np.flatnonzero(parsed == 0)
        if name in _LONGEST:
            length = texts.end[places[rest]] - texts.begin[places[rest]] - 1 - len(ENDS[name])
            rest = rest[length <= _LONGEST[name]]
        if len(rest):
            lexical = _lexical(as_arrow(places[rest]), ENDS[name])
            if name == "double":
                parsed[rest] = _sane_doubles(lexical)
            else:
                parsed[rest] = [lexical_id(text, name) for text in lexical.to_pylist()]
        ids[places] = parsed
    return ids


def _lexical(texts: pa.Array, end: str) -> pa.Array:
    """Return the lexical forms, between the quotes."""
    return pc.binary_slice(texts.view(pa.binary()), 1, -len(end)).view(pa.string())


# -- Numeric values of literals that are not inlined --------------------------------------------

NUMBER_ENDS = {name: f'"^^<{XSD}{name}>' for name in ("double", "float", "decimal", *INTEGERS)}
"""The ends of the texts of numbers, by datatype."""

NOT_EXACT = -(1 << 63)
_SCIENTIFIC = r"^-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?$"


class TextValues(NamedTuple):
    """Numeric values: the nearest doubles, and exact values as in `exact_of`.

    The other fields are undefined where `known` is false: such texts are parsed one by one.
    """

    known: BoolArray
    values: FloatArray
    exact: IntArray


def values_of_texts(texts: pa.Array, name: str) -> TextValues:
    """Return the values of literals of one numeric datatype, by their texts."""
    end = NUMBER_ENDS[name]
    spans = TextSpans.of_array(texts)
    plain = _plain(spans, spans.begin + 1, spans.end - spans.begin - 1 - len(end))
    values = plain.mantissa / POWERS[np.minimum(plain.scale, SCALES - 1)]
    exact = np.full(len(texts), NOT_EXACT)
    if name in INTEGERS:
        least, most = INTEGERS[name]
        known = plain.ok & (plain.scale == 0)
        if least is not None:
            known &= plain.mantissa >= least
        if most is not None:
            known &= plain.mantissa <= most
        if name == "integer":
            _add_long(texts, end, _LONG_INTEGER, TextValues(known, values, plain.mantissa))
        return TextValues(known, values, plain.mantissa)
    known = plain.ok & (np.abs(plain.mantissa) < MANTISSA_BOUND) & (plain.scale <= 15)
    if name == "decimal":
        decimals = TextValues(known & (plain.scale <= 6), values, _millionths(plain))
        _add_long(texts, end, _LONG_DECIMAL, decimals)
        return decimals
    values[plain.negative & (plain.mantissa == 0)] = -0.0
    rest = np.flatnonzero(~known)
    if len(rest):
        lexical = _lexical(texts.take(pa.array(rest)), end)
        sane = pc.match_substring_regex(lexical, _SCIENTIFIC)
        known[rest] = bools_of(sane)
        values[rest] = numpy_of(pc.if_else(sane, lexical, "0").cast(pa.float64()))
    if name == "float":
        known &= np.abs(values) < _SINGLES
        values = np.where(known, values, 0.0).astype(np.float32).astype(np.float64)
    return TextValues(known, values, exact)


_LONG_INTEGER = r"^-?[1-9][0-9]{19,89}$"
"""Integers beyond 64 bits."""
_LONG_DECIMAL = r"^-?(?:[1-9][0-9]{10,89}(?:\.[0-9]{1,90})?|[0-9]{1,90}\.[0-9]{6,90}[1-9]0{0,90})$"
"""Decimals from 10**10 on, and those with seven or more digits after the point."""


def _add_long(texts: pa.Array, end: str, form: str, values: TextValues) -> None:
    """Add the values of texts of this form, which are not exact in the sense of `exact_of`."""
    rest = np.flatnonzero(~values.known)
    if not len(rest):
        return
    lexical = _lexical(texts.take(pa.array(rest)), end)
    long = pc.match_substring_regex(lexical, form)
    values.known[rest] = bools_of(long)
    values.values[rest] = numpy_of(pc.if_else(long, lexical, "0").cast(pa.float64()))
    values.exact[rest] = NOT_EXACT


_SINGLES = 3e38  # the largest single is a little larger


def _millionths(plain: _Plain) -> IntArray:
    factor = 10 ** np.maximum(6 - plain.scale, 0)
    fits = np.abs(plain.mantissa) < (1 << 53) // factor
    return np.where(fits, plain.mantissa * factor, NOT_EXACT)


def exact_of(value: Numeric) -> int:
    """Return an integer as it is, a decimal in millionths, or NOT_EXACT."""
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else NOT_EXACT
    if isinstance(value, Decimal) and value.copy_abs() < 1 << 53:
        scaled = EXACT.scaleb(value, 6)
        if scaled.copy_abs() < 1 << 53 and scaled == int(scaled):
            return int(scaled)
    return NOT_EXACT
