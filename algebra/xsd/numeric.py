"""Numbers: the four types of values of XSD's numeric datatypes, and their lexical forms.

Integers and decimals are exact and of any length; only quotients are rounded. The types are in the
order of promotion, integer, decimal, float, double: an operator promotes both operands to the later
type (F&O 4.2). Floats and doubles are those of IEEE 754.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import partial
from typing import Any, Self

from streamsparql.algebra.expression_error import ExpressionError

Numeric = int | Decimal | float

EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
"""The context for sums, differences and products without rounding; do not divide in it."""

_QUOTIENT_DIGITS = 34
"""Significant digits of a decimal quotient, as in IEEE decimal128; F&O leaves the number open."""


class Single(float):
    """An xsd:float: a double that single precision represents exactly.

    >>> Single.nearest(0.1)
    0.10000000149011612
    """

    __slots__ = ()

    @classmethod
    def nearest(cls, number: Numeric) -> Self:
        """Round a number to a single; an infinity if it is too large."""
        wide = double(number)
        try:
            return cls(struct.unpack("<f", struct.pack("<f", wide))[0])
        except OverflowError:
            return cls(math.copysign(math.inf, wide))


def double(number: Numeric) -> float:
    """Round a number to a double; an infinity if it is too large."""
    try:
        return float(number)
    except OverflowError:  # an int; a Decimal becomes an infinity by itself
        return math.inf if number > 0 else -math.inf


NUMERIC_TYPES: dict[type, Callable[[Any], Any]] = {
    int: int,
    Decimal: Decimal,
    Single: Single.nearest,
    float: double,
}
"""The types of numbers in the order of promotion, each with its conversion function."""


# -- Division and rounding ----------------------------------------------------------------------


def quotient(x: int | Decimal, y: int | Decimal) -> Decimal:
    """Return x / y with 34 significant digits, or with as many as x if x has more."""
    if not y:
        raise ExpressionError("division by zero")
    dividend = Decimal(x)
    # At least the digits of the dividend, so that x / 1 is x.
    digits = max(_QUOTIENT_DIGITS, len(dividend.as_tuple().digits))
    return Context(prec=digits).divide(dividend, Decimal(y))


def ieee_quotient(x: float, y: float) -> float:
    """Return x / y by IEEE 754, where division by zero has a value."""
    try:
        return x / y
    except ZeroDivisionError:
        indefinite = x == 0 or math.isnan(x)
        return math.nan if indefinite else math.copysign(math.inf, x) * math.copysign(1.0, y)


def round_half_up(number: Decimal) -> int:
    """Return the nearest integer; ties round up (fn:round).

    >>> round_half_up(Decimal("2.5")), round_half_up(Decimal("-2.5"))
    (3, -2)
    """
    return math.floor(EXACT.add(number, Decimal("0.5")))


# -- Parsing ------------------------------------------------------------------------------------

Parser = Callable[[str], Numeric | None]

_DIGITS = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(rf"{_DECIMAL.pattern}(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")


def _integer_parser(least: int | None, most: int | None) -> Parser:
    def parse(lexical: str) -> int | None:
        if not _DIGITS.fullmatch(lexical):
            return None
        value = int(lexical)
        fits = (least is None or least <= value) and (most is None or value <= most)
        return value if fits else None

    return parse


def _parser(pattern: re.Pattern[str], parse: Callable[[str], Numeric]) -> Parser:
    return lambda lexical: parse(lexical) if pattern.fullmatch(lexical) else None


INTEGERS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(1 << 63), (1 << 63) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-(1 << 7), (1 << 7) - 1),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, (1 << 8) - 1),
}
"""The integer datatypes, with the least and the greatest value of each."""

NUMERIC_PARSERS: dict[str, Parser] = {
    **{name: _integer_parser(*bounds) for name, bounds in INTEGERS.items()},
    "decimal": _parser(_DECIMAL, Decimal),
    "float": _parser(_DOUBLE, lambda lexical: Single.nearest(float(lexical))),
    "double": _parser(_DOUBLE, float),
}
"""The parser of each numeric datatype's lexical forms, which returns None for other strings."""


# -- Canonical forms ----------------------------------------------------------------------------


def decimal_text(number: Decimal) -> str:
    """Return the canonical form of a decimal, without exponent, trailing zeros or a bare point.

    >>> decimal_text(Decimal("2.50")), decimal_text(Decimal("3.0")), decimal_text(Decimal("-0"))
    ('2.5', '3', '0')
    """
    return f"{number.normalize(EXACT):f}" if number else "0"


def _float_text(shortest: Callable[[float], str], number: float) -> str:
    """Return fn:string of a float or double: plain from 1e-6 to 1e6, else scientific.

    Section 19.1.1 of F&O.
    """
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "INF" if number > 0 else "-INF"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    exact = Decimal(shortest(number)).normalize(EXACT)
    if 1e-6 <= abs(number) < 1e6:
        return decimal_text(exact)
    first, *rest = exact.as_tuple().digits
    fraction = "".join(map(str, rest)) or "0"
    return f"{'-' if number < 0 else ''}{first}.{fraction}E{exact.adjusted()}"


def _shortest_single(number: float) -> str:
    """Return the shortest digits that parse to this single; nine always suffice."""
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))
    return next(text for text in texts if Single.nearest(float(text)) == number)


NUMERIC_WRITERS: dict[type, tuple[str, Callable[[Any], str]]] = {
    int: ("integer", str),
    Decimal: ("decimal", decimal_text),
    Single: ("float", partial(_float_text, _shortest_single)),
    float: ("double", partial(_float_text, repr)),
}
"""The datatype of each type, and the function that writes its canonical form."""
