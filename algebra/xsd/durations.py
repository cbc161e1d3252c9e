"""Durations: months and seconds, which do not convert to each other.

So durations are partially ordered: whether P1M is shorter than P30D depends on the month. Comparing
durations whose order depends on the month is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.xsd.gregorian import SECONDS_PER_DAY, day_number, months_later
from streamsparql.algebra.xsd.numeric import EXACT, Numeric, decimal_text, quotient, round_half_up


@dataclass(frozen=True, slots=True)
class XsdDuration:
    """xsd:duration: months and exact seconds, with the same sign."""

    months: int
    seconds: Decimal

    zero: ClassVar[str] = "PT0S"


class DayTimeDuration(XsdDuration):
    """xsd:dayTimeDuration: seconds only."""


class YearMonthDuration(XsdDuration):
    """xsd:yearMonthDuration: months only."""

    zero: ClassVar[str] = "P0M"


DURATIONS: tuple[type[XsdDuration], ...] = (XsdDuration, DayTimeDuration, YearMonthDuration)


# -- Reading and writing ------------------------------------------------------------------------

_YEARS_MONTHS = r"(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?"
_DAYS_TIME = (
    r"(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_SECONDS_IN = {"days": SECONDS_PER_DAY, "hours": 3600, "minutes": 60, "seconds": 1}


@cache
def _pattern(fields: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<sign>-?)P(?=.){fields}", re.ASCII)


def _parser(kind: type[XsdDuration], fields: str) -> Callable[[str], XsdDuration | None]:
    def parse(lexical: str) -> XsdDuration | None:
        match = _pattern(fields).fullmatch(lexical)
        if match is None:
            return None
        part = match.groupdict()
        months = 12 * int(part.get("years") or 0) + int(part.get("months") or 0)
        seconds = Decimal(0)
        for unit, size in _SECONDS_IN.items():
            seconds = EXACT.fma(Decimal(part.get(unit) or 0), Decimal(size), seconds)
        return kind(-months, seconds.copy_negate()) if part["sign"] else kind(months, seconds)

    return parse


def duration_text(duration: XsdDuration) -> str:
    """Return the canonical form of a duration, which carries over: PT1M, never PT60S."""
    total = duration.seconds.copy_abs()
    whole = math.floor(total)
    fraction = decimal_text(EXACT.subtract(total, Decimal(whole)))[1:]
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    years, months = divmod(abs(duration.months), 12)
    dates = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (days, "D")) if n)
    times = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    times += f"{seconds}{fraction}S" if seconds or fraction else ""
    if not dates and not times:
        return duration.zero
    sign = "-" if duration.months < 0 or duration.seconds < 0 else ""
    return f"{sign}P{dates}{'T' if times else ''}{times}"


DURATION_PARSERS: dict[str, Callable[[str], XsdDuration | None]] = {
    "duration": _parser(XsdDuration, _YEARS_MONTHS + _DAYS_TIME),
    "dayTimeDuration": _parser(DayTimeDuration, _DAYS_TIME),
    "yearMonthDuration": _parser(YearMonthDuration, _YEARS_MONTHS),
}
"""The parser of each datatype's lexical forms, which returns None for other strings."""

DURATION_WRITERS: dict[type, tuple[str, Callable[[Any], str]]] = {
    XsdDuration: ("duration", duration_text),
    DayTimeDuration: ("dayTimeDuration", duration_text),
    YearMonthDuration: ("yearMonthDuration", duration_text),
}
"""The datatype of each type, and the function that writes its canonical form."""


# -- Order and arithmetic -----------------------------------------------------------------------


@cache
def _references() -> list[Decimal]:
    """Return XSD's four reference dates, which cover the lengths of months (XSD 1.1, 3.3.6.1)."""
    days = (1696, 9, 1), (1697, 2, 1), (1903, 3, 1), (1903, 7, 1)
    return [Decimal(SECONDS_PER_DAY * day_number(*day)) for day in days]


def _add_to(start: Decimal, duration: XsdDuration) -> Decimal:
    return EXACT.add(months_later(start, duration.months), duration.seconds)


def is_shorter(x: XsdDuration, y: XsdDuration) -> bool:
    """Return whether x is shorter from every reference date; raise if they disagree."""
    if x.months == y.months:
        return x.seconds < y.seconds
    ends = [(_add_to(start, x), _add_to(start, y)) for start in _references()]
    orders = {(a > b) - (a < b) for a, b in ends}
    if len(orders) > 1:
        raise ExpressionError("the order of the durations depends on the length of a month")
    return orders == {-1}


def length_key(duration: XsdDuration) -> Decimal:
    """Return a sort key for durations: the instant that they reach from the first reference."""
    # `is_shorter` holds from each reference, so also from the first: the key is consistent with it.
    return _add_to(_references()[0], duration)


def negate_duration(duration: XsdDuration) -> XsdDuration:
    """Return the duration with the opposite sign."""
    return type(duration)(-duration.months, duration.seconds.copy_negate())


def add_durations(x: XsdDuration, y: XsdDuration) -> XsdDuration:
    """Return x + y, an xsd:duration if their types differ."""
    kind = type(x) if type(x) is type(y) else XsdDuration
    months, seconds = x.months + y.months, EXACT.add(x.seconds, y.seconds)
    if months and seconds and (months < 0) is not (seconds < 0):
        raise ExpressionError("months and seconds of a duration must have the same sign")
    return kind(months, seconds)


def subtract_durations(x: XsdDuration, y: XsdDuration) -> XsdDuration:
    """Return x - y, an xsd:duration if their types differ."""
    return add_durations(x, negate_duration(y))


def multiply_duration(duration: XsdDuration, factor: Numeric) -> XsdDuration:
    """Return a multiple of a duration; months are rounded to a whole number."""
    by = Decimal(factor)
    return _rounded(
        duration,
        EXACT.multiply(Decimal(duration.months), by),
        EXACT.multiply(duration.seconds, by),
    )


def divide_duration(duration: XsdDuration, divisor: Numeric) -> XsdDuration:
    """Return a fraction of a duration; months are rounded to a whole number."""
    by = Decimal(divisor)
    if by.is_nan():
        raise ExpressionError("a duration cannot be divided by NaN")
    return _rounded(duration, quotient(duration.months, by), quotient(duration.seconds, by))


def _rounded(duration: XsdDuration, months: Decimal, seconds: Decimal) -> XsdDuration:
    if not (months.is_finite() and seconds.is_finite()):
        raise ExpressionError("a duration must be finite")
    return type(duration)(round_half_up(months), seconds)
