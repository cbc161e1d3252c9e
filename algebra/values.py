"""What a literal is worth, and what the operators of SPARQL make of it.

A term keeps what was written; `value_of` says what it denotes, as a Python value whose type is the
primitive datatype:

    xsd:boolean              bool         xsd:dateTime, dateTimeStamp   DateTime
    xsd:integer and below    int          xsd:date, time                Date, Time
    xsd:decimal              Decimal      xsd:gYear, gYearMonth, ...    GYear, GYearMonth, ...
    xsd:float                Single       xsd:duration                  Duration
    xsd:double               float        xsd:dayTimeDuration           DayTimeDuration
    xsd:string               str          xsd:yearMonthDuration         YearMonthDuration

An ill-typed literal, a language-tagged string and an unknown datatype have no value. Each operator
is a table from the types of its operands to a Python function: SPARQL 1.1's operator mapping
(section 17.3), and where that has nothing to say the one of XPath (Functions and Operators 3.1,
"F&O" below), as 17.3.1 allows. A pair of types that is not in the table is a type error.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from calendar import monthrange
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import lru_cache, partial
from itertools import product
from typing import Any, ClassVar, Self

from streamsparql.algebra.terms import IRI, XSD, XSD_STRING, BlankNode, Literal, Term


class ExpressionError(Exception):
    """SPARQL's third truth value: the expression has no value here. It never stops a query.

    >>> add(Literal("one"), Literal("two"))
    Traceback (most recent call last):
    ...
    streamsparql.algebra.values.ExpressionError: "one" + "two" is not defined
    """


# -- Numbers ------------------------------------------------------------------------------------

EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
"""Sums, differences and products of decimals have no rounding at all. Never divide in it."""

_QUOTIENT_DIGITS = 34
"""Significant digits of a decimal quotient, those of IEEE decimal128: F&O leaves it open."""


class Single(float):
    """An xsd:float: a double that single precision holds exactly.

    >>> Single.nearest(0.1)
    0.10000000149011612
    """

    __slots__ = ()

    @classmethod
    def nearest(cls, number: int | float | Decimal) -> Self:
        """The single that a number rounds to; an infinity where it is too large."""
        wide = _double(number)
        try:
            return cls(struct.unpack("<f", struct.pack("<f", wide))[0])
        except OverflowError:
            return cls(math.copysign(math.inf, wide))


def _double(number: int | float | Decimal) -> float:
    try:
        return float(number)
    except OverflowError:  # an int; a Decimal becomes an infinity by itself
        return math.inf if number > 0 else -math.inf


def _quotient(x: int | Decimal, y: int | Decimal) -> Decimal:
    if not y:
        raise ExpressionError("division by zero")
    dividend = Decimal(x)
    # As many digits as the dividend has: x / 1 is x, however long x is.
    digits = max(_QUOTIENT_DIGITS, len(dividend.as_tuple().digits))
    return Context(prec=digits).divide(dividend, Decimal(y))


def _ieee_quotient(x: float, y: float) -> float:
    try:
        return x / y
    except ZeroDivisionError:
        indefinite = x == 0 or math.isnan(x)
        return math.nan if indefinite else math.copysign(math.inf, x) * math.copysign(1.0, y)


def half_up(number: Decimal) -> int:
    """The nearest integer, and of two the greater one: fn:round.

    >>> half_up(Decimal("2.5")), half_up(Decimal("-2.5"))
    (3, -2)
    """
    return math.floor(EXACT.add(number, Decimal("0.5")))


# -- Dates and times ----------------------------------------------------------------------------

_DAY = 86_400
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # the Gregorian calendar repeats, so any year can be had
_EPOCH = date(1970, 1, 1).toordinal()


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a day of the proleptic Gregorian calendar, whose year 0 is 1 BCE."""
    cycles, rest = divmod(year - 2000, _CYCLE_YEARS)
    return date(2000 + rest, month, day).toordinal() + cycles * _CYCLE_DAYS - _EPOCH


def _calendar(days: int) -> tuple[int, int, int]:
    cycles, rest = divmod(days, _CYCLE_DAYS)
    found = date.fromordinal(_EPOCH + rest)
    return found.year + cycles * _CYCLE_YEARS, found.month, found.day


def _split(local: Decimal) -> tuple[int, Decimal]:
    """Whole days, and the seconds into the day."""
    days = math.floor(local) // _DAY
    return days, EXACT.subtract(local, Decimal(days * _DAY))


def _months_later(local: Decimal, months: int) -> Decimal:
    """The same day of another month, or that month's last one (XSD 1.1, E.3.3)."""
    days, rest = _split(local)
    year, month, day = _calendar(days)
    year, month = divmod(12 * year + month - 1 + months, 12)
    last = monthrange(2000 + year % _CYCLE_YEARS, month + 1)[1]
    return EXACT.add(rest, Decimal(_days(year, month + 1, min(day, last)) * _DAY))


@dataclass(frozen=True, slots=True)
class Moment:
    """A value of a date or time datatype.

    `local` is in exact seconds from 1970-01-01T00:00:00 on the clock that was written, `offset` how
    many minutes that clock is ahead of UTC, None where no time zone was written. What a datatype
    leaves out (the year of a gMonth) stands at one fixed value, so that order is order of `local`.
    """

    local: Decimal
    offset: int | None

    @classmethod
    def at(cls, local: Decimal, offset: int | None) -> Self:
        """The value of this datatype at a local time."""
        return cls(local, offset)

    @property
    def instant(self) -> Decimal:
        """Seconds on the UTC time line, where a missing time zone counts as UTC."""
        return EXACT.subtract(self.local, Decimal(60 * (self.offset or 0)))

    @property
    def calendar(self) -> tuple[int, int, int]:
        """Year, month and day."""
        return _calendar(_split(self.local)[0])

    @property
    def clock(self) -> tuple[int, int, Decimal]:
        """Hours, minutes and seconds."""
        rest = _split(self.local)[1]
        minutes = math.floor(rest) // 60
        return *divmod(minutes, 60), EXACT.subtract(rest, Decimal(60 * minutes))

    @property
    def zone(self) -> str:
        """The time zone as it is written: `Z`, `-08:00`, or nothing."""
        if not self.offset:
            return "" if self.offset is None else "Z"
        hours, minutes = divmod(abs(self.offset), 60)
        return f"{'-' if self.offset < 0 else '+'}{hours:02}:{minutes:02}"


class DateTime(Moment):
    """xsd:dateTime."""


class Date(Moment):
    """xsd:date: the moment its day begins."""

    @classmethod
    def at(cls, local: Decimal, offset: int | None) -> Self:
        """The day that a local time is in."""
        return cls(Decimal(_split(local)[0] * _DAY), offset)


class Time(Moment):
    """xsd:time: a moment within one day, the same for all."""

    @classmethod
    def at(cls, local: Decimal, offset: int | None) -> Self:
        """The time of day of a local time."""
        return cls(_split(local)[1], offset)


class GYear(Moment):
    """xsd:gYear."""


class GYearMonth(Moment):
    """xsd:gYearMonth."""


class GMonth(Moment):
    """xsd:gMonth."""


class GMonthDay(Moment):
    """xsd:gMonthDay."""


class GDay(Moment):
    """xsd:gDay."""


_LAYOUTS: dict[type[Moment], str] = {
    DateTime: "{year}-{month}-{day}T{clock}{zone}",
    Date: "{year}-{month}-{day}{zone}",
    Time: "{clock}{zone}",
    GYear: "{year}{zone}",
    GYearMonth: "{year}-{month}{zone}",
    GMonth: "--{month}{zone}",
    GMonthDay: "--{month}-{day}{zone}",
    GDay: "---{day}{zone}",
}
"""How each is written. Filled with patterns a layout reads, filled with digits it writes."""

_FIELDS = {
    "year": r"(?P<year>-?(?:[1-9]\d{3,}|0\d{3}))",
    "month": r"(?P<month>0[1-9]|1[0-2])",
    "day": r"(?P<day>0[1-9]|[12]\d|3[01])",
    "clock": r"(?P<hour>[01]\d|2[0-4]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d(?:\.\d+)?)",
    "zone": r"(?P<zone>Z|[+-](?:(?:0\d|1[0-3]):[0-5]\d|14:00))?",
}


def _moment_reader(kind: type[Moment], zoned: bool = False) -> Callable[[str], Moment | None]:
    """What reads a layout; with `zoned`, only where there is a time zone."""
    pattern = re.compile(_LAYOUTS[kind].format(**_FIELDS), re.ASCII)

    def read(lexical: str) -> Moment | None:
        match = pattern.fullmatch(lexical)
        if match is None or (zoned and match["zone"] is None):
            return None
        return _moment(kind, match.groupdict())

    return read


def _moment(kind: type[Moment], part: dict[str, str | None]) -> Moment | None:
    hour, minute = int(part.get("hour") or 0), int(part.get("minute") or 0)
    second = Decimal(part.get("second") or 0)
    if hour == 24 and (minute or second):
        return None
    # 1972, as in XSD, is a leap year: --02-29 is a gMonthDay.
    year, month, day = part.get("year") or 1972, part.get("month") or 1, part.get("day") or 1
    days = _days(int(year), int(month), int(day))
    local = EXACT.add(second, Decimal(_DAY * days + 3600 * hour + 60 * minute))
    return kind.at(local, _offset(part["zone"]))


def _offset(zone: str | None) -> int | None:
    if zone is None or zone == "Z":
        return None if zone is None else 0
    minutes = 60 * int(zone[1:3]) + int(zone[4:6])
    return -minutes if zone[0] == "-" else minutes


def _moment_text(moment: Moment) -> str:
    year, month, day = moment.calendar
    hours, minutes, seconds = moment.clock
    fraction = decimal_text(EXACT.subtract(seconds, Decimal(int(seconds))))[1:]
    return _LAYOUTS[type(moment)].format(
        year=f"{year:0{5 if year < 0 else 4}}",
        month=f"{month:02}",
        day=f"{day:02}",
        clock=f"{hours:02}:{minutes:02}:{int(seconds):02}{fraction}",
        zone=moment.zone,
    )


_ZONE_DOUBT = 14 * 3600  # an unknown time zone is within 14 hours of UTC


def _gap(x: Moment, y: Moment) -> Decimal:
    """Seconds from x to y; only where the order is known (XSD 1.1, D.2.1: not within 14 hours)."""
    gap = EXACT.subtract(y.instant, x.instant)
    if (x.offset is None) is not (y.offset is None) and gap.copy_abs() <= _ZONE_DOUBT:
        raise ExpressionError("the order depends on a time zone that is not given")
    return gap


def _elapsed(x: Moment, y: Moment) -> DayTimeDuration:
    if (x.offset is None) is not (y.offset is None):
        raise ExpressionError("the difference depends on a time zone that is not given")
    return DayTimeDuration(0, EXACT.subtract(x.instant, y.instant))


def _later(moment: Moment, duration: Duration) -> Moment:
    local = moment.local
    if duration.months:
        if type(moment) is Time:
            raise ExpressionError("a time of day has no months")
        local = _months_later(local, duration.months)
    return moment.at(EXACT.add(local, duration.seconds), moment.offset)


def _earlier(moment: Moment, duration: Duration) -> Moment:
    return _later(moment, _opposite(duration))


# -- Durations ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duration:
    """xsd:duration: months and exact seconds, neither convertible into the other."""

    months: int
    seconds: Decimal

    zero: ClassVar[str] = "PT0S"


class DayTimeDuration(Duration):
    """xsd:dayTimeDuration: no months."""


class YearMonthDuration(Duration):
    """xsd:yearMonthDuration: no seconds."""

    zero: ClassVar[str] = "P0M"


_YEARS_MONTHS = r"(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?"
_DAYS_TIME = (
    r"(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_SECONDS_IN = {"days": _DAY, "hours": 3600, "minutes": 60, "seconds": 1}


def _duration_reader(kind: type[Duration], fields: str) -> Callable[[str], Duration | None]:
    pattern = re.compile(rf"(?P<sign>-?)P(?=.){fields}", re.ASCII)

    def read(lexical: str) -> Duration | None:
        match = pattern.fullmatch(lexical)
        if match is None:
            return None
        part = match.groupdict()
        months = 12 * int(part.get("years") or 0) + int(part.get("months") or 0)
        seconds = Decimal(0)
        for unit, size in _SECONDS_IN.items():
            seconds = EXACT.fma(Decimal(part.get(unit) or 0), Decimal(size), seconds)
        return kind(-months, seconds.copy_negate()) if part["sign"] else kind(months, seconds)

    return read


def _duration_text(duration: Duration) -> str:
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


_REFERENCES = [
    Decimal(_DAY * _days(*day)) for day in ((1696, 9, 1), (1697, 2, 1), (1903, 3, 1), (1903, 7, 1))
]
"""XSD's four witnesses of how long a month can be (XSD 1.1, 3.3.6.1)."""


def _reached(start: Decimal, duration: Duration) -> Decimal:
    return EXACT.add(_months_later(start, duration.months), duration.seconds)


def _shorter(x: Duration, y: Duration) -> bool:
    """XSD's partial order: shorter from wherever one starts, else the order is not known."""
    if x.months == y.months:
        return x.seconds < y.seconds
    ends = [(_reached(start, x), _reached(start, y)) for start in _REFERENCES]
    orders = {(a > b) - (a < b) for a, b in ends}
    if len(orders) > 1:
        raise ExpressionError("the order depends on how long a month is")
    return orders == {-1}


def _opposite(duration: Duration) -> Duration:
    return type(duration)(-duration.months, duration.seconds.copy_negate())


def _together(x: Duration, y: Duration) -> Duration:
    kind = type(x) if type(x) is type(y) else Duration
    months, seconds = x.months + y.months, EXACT.add(x.seconds, y.seconds)
    if months and seconds and (months < 0) is not (seconds < 0):
        raise ExpressionError("a duration has one sign for its months and its seconds")
    return kind(months, seconds)


def _apart(x: Duration, y: Duration) -> Duration:
    return _together(x, _opposite(y))


def _times(duration: Duration, factor: int | float | Decimal) -> Duration:
    by = Decimal(factor)
    return _scaled(
        duration,
        EXACT.multiply(Decimal(duration.months), by),
        EXACT.multiply(duration.seconds, by),
    )


def _share(duration: Duration, divisor: int | float | Decimal) -> Duration:
    by = Decimal(divisor)
    if by.is_nan():
        raise ExpressionError("a duration cannot be divided by NaN")
    return _scaled(duration, _quotient(duration.months, by), _quotient(duration.seconds, by))


def _scaled(duration: Duration, months: Decimal, seconds: Decimal) -> Duration:
    if not (months.is_finite() and seconds.is_finite()):
        raise ExpressionError("a duration is finite")
    return type(duration)(half_up(months), seconds)


# -- Lexical forms to values --------------------------------------------------------------------

Value = bool | int | Decimal | float | str | Moment | Duration
Reader = Callable[[str], Value | None]

_DIGITS = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(rf"{_DECIMAL.pattern}(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")


def _integer_reader(least: int | None, most: int | None) -> Reader:
    def read(lexical: str) -> int | None:
        if not _DIGITS.fullmatch(lexical):
            return None
        value = int(lexical)
        fits = (least is None or least <= value) and (most is None or value <= most)
        return value if fits else None

    return read


def _reader(pattern: re.Pattern[str], read: Callable[[str], Value]) -> Reader:
    return lambda lexical: read(lexical) if pattern.fullmatch(lexical) else None


_INTEGERS: dict[str, tuple[int | None, int | None]] = {
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

_READERS: dict[str, Reader] = {
    "boolean": lambda lexical: {"true": True, "1": True, "false": False, "0": False}.get(lexical),
    **{name: _integer_reader(*bounds) for name, bounds in _INTEGERS.items()},
    "decimal": _reader(_DECIMAL, Decimal),
    "float": _reader(_DOUBLE, lambda lexical: Single.nearest(float(lexical))),
    "double": _reader(_DOUBLE, float),
    "dateTime": _moment_reader(DateTime),
    "dateTimeStamp": _moment_reader(DateTime, zoned=True),
    "date": _moment_reader(Date),
    "time": _moment_reader(Time),
    "gYear": _moment_reader(GYear),
    "gYearMonth": _moment_reader(GYearMonth),
    "gMonth": _moment_reader(GMonth),
    "gMonthDay": _moment_reader(GMonthDay),
    "gDay": _moment_reader(GDay),
    "duration": _duration_reader(Duration, _YEARS_MONTHS + _DAYS_TIME),
    "dayTimeDuration": _duration_reader(DayTimeDuration, _DAYS_TIME),
    "yearMonthDuration": _duration_reader(YearMonthDuration, _YEARS_MONTHS),
}


@lru_cache(maxsize=1 << 16)
def _read(lexical: str, datatype: str) -> Value | None:
    read = _READERS.get(datatype.removeprefix(XSD)) if datatype.startswith(XSD) else None
    try:
        return None if read is None else read(lexical)
    except ValueError:  # a 30th of February; more digits than Python reads as an int
        return None


def value_of(term: Term) -> Value | None:
    """The value that a literal denotes; None for a term that has none.

    >>> value_of(Literal("01", IRI(XSD + "integer"))), value_of(Literal("300", IRI(XSD + "byte")))
    (1, None)
    """
    if type(term) is not Literal:
        return None
    datatype = term.datatype.value
    return term.lexical if datatype == XSD_STRING.value else _read(term.lexical, datatype)


# -- Values to canonical literals ---------------------------------------------------------------


def decimal_text(number: Decimal) -> str:
    """A decimal in canonical form: no exponent, no zeros at the end, no point without a fraction.

    >>> decimal_text(Decimal("2.50")), decimal_text(Decimal("3.0")), decimal_text(Decimal("-0"))
    ('2.5', '3', '0')
    """
    return f"{number.normalize(EXACT):f}" if number else "0"


def _float_text(shortest: Callable[[float], str], number: float) -> str:
    """fn:string of a float or double (F&O 19.1.1): plain from 1e-6 to 1e6, else scientific."""
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
    """The fewest digits that read back as this single, which nine always do."""
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))
    return next(text for text in texts if Single.nearest(float(text)) == number)


_WRITERS: dict[type, tuple[str, Callable[[Any], str]]] = {
    bool: ("boolean", lambda value: "true" if value else "false"),
    int: ("integer", str),
    Decimal: ("decimal", decimal_text),
    Single: ("float", partial(_float_text, _shortest_single)),
    float: ("double", partial(_float_text, repr)),
    str: ("string", str),
    DateTime: ("dateTime", _moment_text),
    Date: ("date", _moment_text),
    Time: ("time", _moment_text),
    GYear: ("gYear", _moment_text),
    GYearMonth: ("gYearMonth", _moment_text),
    GMonth: ("gMonth", _moment_text),
    GMonthDay: ("gMonthDay", _moment_text),
    GDay: ("gDay", _moment_text),
    Duration: ("duration", _duration_text),
    DayTimeDuration: ("dayTimeDuration", _duration_text),
    YearMonthDuration: ("yearMonthDuration", _duration_text),
}
_CANONICAL = {kind: (IRI(XSD + name), write) for kind, (name, write) in _WRITERS.items()}


def literal_of(value: Value) -> Literal:
    """The canonical literal of a value, as fn:string writes it.

    >>> print(literal_of(Decimal("2.50")), literal_of(1e21))  # doctest: +NORMALIZE_WHITESPACE
    "2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>
    "1.0E21"^^<http://www.w3.org/2001/XMLSchema#double>
    """
    datatype, write = _CANONICAL[type(value)]
    try:
        return Literal(write(value), datatype)
    except ValueError as error:  # more digits than Python writes of an int
        raise ExpressionError("the number is too large") from error


def date_time_literal(milliseconds: int) -> Literal:
    """The xsd:dateTime, in UTC, of milliseconds since the epoch.

    >>> date_time_literal(1_500).lexical
    '1970-01-01T00:00:01.5Z'
    """
    return literal_of(DateTime(EXACT.scaleb(Decimal(milliseconds), -3), 0))


def milliseconds_of(literal: Term) -> int:
    """Milliseconds since the epoch of an xsd:dateTime, rounded down; UTC where it has no time zone.

    >>> milliseconds_of(Literal("1970-01-01T01:00:00+01:00", IRI(XSD + "dateTime")))
    0
    """
    value = value_of(literal)
    if type(value) is not DateTime:
        raise ExpressionError(f"{literal} is not an xsd:dateTime")
    return math.floor(EXACT.scaleb(value.instant, 3))


_DURATION = IRI(XSD + "duration")


def duration_literal(milliseconds: int, datatype: IRI = _DURATION) -> Literal:
    """The duration of so many milliseconds: days, hours, minutes, seconds.

    >>> duration_literal(90_061_000).lexical
    'P1DT1H1M1S'
    """
    seconds = EXACT.scaleb(Decimal(milliseconds), -3)
    return Literal(_duration_text(DayTimeDuration(0, seconds)), datatype)


def duration_milliseconds(literal: Term) -> int:
    """The milliseconds of a duration, rounded down. One with months has no such number.

    >>> duration_milliseconds(Literal("P1DT1S", IRI(XSD + "duration")))
    86401000
    """
    value = value_of(literal)
    if not isinstance(value, Duration) or value.months:
        raise ExpressionError(f"{literal} is not a duration of days, hours, minutes and seconds")
    return math.floor(EXACT.scaleb(value.seconds, 3))


# -- Operators ----------------------------------------------------------------------------------

Operation = Callable[[Any, Any], Any]
Rows = dict[tuple[type, type], Operation]

NUMBERS: dict[type, Callable[[Any], Any]] = {
    int: int,
    Decimal: Decimal,
    Single: Single.nearest,
    float: _double,
}
"""The types of numbers, each promoted to those after it, with what promotes a number to it."""

_DURATIONS: tuple[type, ...] = (Duration, DayTimeDuration, YearMonthDuration)


def _numeric(*by_type: Operation) -> Rows:
    """The rows of an operator on numbers: both operands are promoted to the wider type."""

    promotions = list(NUMBERS.values())

    def promoted(wide: int) -> Operation:
        apply, to = by_type[wide], promotions[wide]
        return lambda x, y: apply(to(x), to(y))

    pairs = product(enumerate(NUMBERS), repeat=2)
    return {
        (left, right): by_type[i] if i == j else promoted(max(i, j))
        for (i, left), (j, right) in pairs
    }


def _to_single(apply: Operation) -> Operation:
    # A double has more than twice the digits of a single, so rounding twice is rounding once.
    return lambda x, y: Single.nearest(apply(x, y))


def _pairs(lefts: Iterable[type], rights: Iterable[type], apply: Operation) -> Rows:
    return dict.fromkeys(product(lefts, rights), apply)


_EQUAL: Rows = {
    **_numeric(*[operator.eq] * 4),
    (str, str): operator.eq,
    (bool, bool): operator.eq,
    **{(kind, kind): lambda x, y: not _gap(x, y) for kind in _LAYOUTS},
    **_pairs(_DURATIONS, _DURATIONS, lambda x, y: (x.months, x.seconds) == (y.months, y.seconds)),
}
_LESS: Rows = {
    **_numeric(*[operator.lt] * 4),
    (str, str): operator.lt,
    (bool, bool): operator.lt,
    **{(kind, kind): lambda x, y: _gap(x, y) > 0 for kind in _LAYOUTS},
    **_pairs(_DURATIONS, _DURATIONS, _shorter),
}
_ADD: Rows = {
    **_numeric(operator.add, EXACT.add, _to_single(operator.add), operator.add),
    **_pairs((DateTime, Date, Time), _DURATIONS, _later),
    **_pairs(_DURATIONS, (DateTime, Date, Time), lambda x, y: _later(y, x)),
    **_pairs(_DURATIONS, _DURATIONS, _together),
}
_SUBTRACT: Rows = {
    **_numeric(operator.sub, EXACT.subtract, _to_single(operator.sub), operator.sub),
    **_pairs((DateTime, Date, Time), _DURATIONS, _earlier),
    **{(kind, kind): _elapsed for kind in (DateTime, Date, Time)},
    **_pairs(_DURATIONS, _DURATIONS, _apart),
}
_MULTIPLY: Rows = {
    **_numeric(operator.mul, EXACT.multiply, _to_single(operator.mul), operator.mul),
    **_pairs(_DURATIONS, NUMBERS, _times),
    **_pairs(NUMBERS, _DURATIONS, lambda x, y: _times(y, x)),
}
_DIVIDE: Rows = {
    **_numeric(_quotient, _quotient, _to_single(_ieee_quotient), _ieee_quotient),
    **_pairs(_DURATIONS, NUMBERS, _share),
}
_NEGATE: dict[type, Callable[[Any], int | Decimal | float]] = {
    int: operator.neg,
    Decimal: Decimal.copy_negate,
    Single: lambda value: Single(-value),
    float: operator.neg,
}


def _apply(rows: Rows, symbol: str, a: Term, b: Term) -> Any:
    x, y = value_of(a), value_of(b)
    row = rows.get((type(x), type(y)))
    if row is None:
        raise ExpressionError(f"{a} {symbol} {b} is not defined")
    return row(x, y)


def equal(a: Term, b: Term) -> bool:
    """`a = b` (SPARQL 1.1, 17.3 and 17.4.1.7).

    Literals of known datatypes with disjoint value spaces differ. Of a literal without a value one
    knows that it equals itself and that it is no language-tagged string; the rest is an error.

    >>> equal(Literal("1", IRI(XSD + "integer")), Literal("1.0", IRI(XSD + "decimal")))
    True
    """
    x, y = value_of(a), value_of(b)
    if x is None or y is None:
        return _same_term(a, b)
    row = _EQUAL.get((type(x), type(y)))
    return row is not None and bool(row(x, y))


def _same_term(a: Term, b: Term) -> bool:
    if a == b:
        return True
    if type(a) is Literal and type(b) is Literal and a.language is None and b.language is None:
        raise ExpressionError(f"it is not known whether {a} and {b} are equal")
    return False


def less(a: Term, b: Term) -> bool:
    """`a < b` (SPARQL 1.1, 17.3), with XSD's order for the datatypes that SPARQL leaves out.

    >>> less(Literal("P1D", IRI(XSD + "dayTimeDuration")), Literal("P1M", IRI(XSD + "duration")))
    True
    """
    return bool(_apply(_LESS, "<", a, b))


def add(a: Term, b: Term) -> Literal:
    """`a + b`: numbers, a moment and a duration, two durations.

    >>> add(Literal("2020-01-31", IRI(XSD + "date")), Literal("P1M", IRI(XSD + "duration"))).lexical
    '2020-02-29'
    """
    return literal_of(_apply(_ADD, "+", a, b))


def subtract(a: Term, b: Term) -> Literal:
    """`a - b`: numbers, two moments, a moment and a duration, two durations.

    >>> subtract(Literal("2020-03-01", IRI(XSD + "date")), Literal("2020-02-01", IRI(XSD + "date")))
    ... # doctest: +ELLIPSIS
    Literal(lexical='P29D', datatype=...#dayTimeDuration'), language=None)
    """
    return literal_of(_apply(_SUBTRACT, "-", a, b))


def multiply(a: Term, b: Term) -> Literal:
    """`a * b`: numbers, a duration and a number.

    >>> multiply(Literal("1.10", IRI(XSD + "decimal")), Literal("3", IRI(XSD + "integer"))).lexical
    '3.3'
    """
    return literal_of(_apply(_MULTIPLY, "*", a, b))


def divide(a: Term, b: Term) -> Literal:
    """`a / b`: numbers, a duration by a number. Two integers give a decimal.

    >>> divide(Literal("1", IRI(XSD + "integer")), Literal("8", IRI(XSD + "integer"))).lexical
    '0.125'
    """
    return literal_of(_apply(_DIVIDE, "/", a, b))


def negate(a: Term) -> Literal:
    """`-a`, of a number.

    >>> negate(Literal("1", IRI(XSD + "integer"))).lexical
    '-1'
    """
    return literal_of(_NEGATE[type(number := number_of(a))](number))


def plus(a: Term) -> Literal:
    """`+a`, of a number.

    >>> plus(Literal("01", IRI(XSD + "byte"))).lexical
    '1'
    """
    return literal_of(number_of(a))


def number_of(term: Term) -> int | Decimal | float:
    """The value of a numeric literal; its type is its place in the order of promotion.

    >>> number_of(Literal("1.50", IRI(XSD + "decimal")))
    Decimal('1.50')
    """
    value = value_of(term)
    if isinstance(value, int | Decimal | float) and type(value) is not bool:
        return value
    raise ExpressionError(f"{term} is not a number")


def effective_boolean_value(term: Term) -> bool:
    """What a term counts as in a condition (SPARQL 1.1, 17.2.2).

    >>> effective_boolean_value(Literal("")), effective_boolean_value(Literal("no"))
    (False, True)
    """
    value = value_of(term)
    truth = _TRUTH.get(type(value))
    if truth is not None:
        return truth(value)
    if type(term) is Literal:
        if term.language is not None:
            return term.lexical != ""
        if value is None and term.datatype.value in _FALSE_IF_ILL_TYPED:
            return False
    raise ExpressionError(f"{term} is neither true nor false")


_TRUTH: dict[type, Callable[[Any], bool]] = {
    bool: bool,
    str: bool,
    **dict.fromkeys(NUMBERS, lambda value: value == value and value != 0),  # NaN is false
}
_FALSE_IF_ILL_TYPED = {XSD + name for name in (*_INTEGERS, "boolean", "decimal", "float", "double")}


# -- Casts --------------------------------------------------------------------------------------

Conversions = dict[type, Callable[[Any], Value]]


def _finite(number: float) -> float:
    if math.isfinite(number):
        return number
    raise ExpressionError(f"{number} is no decimal number")


def _as_duration(kind: type[Duration], months: bool, seconds: bool) -> Conversions:
    def convert(value: Duration) -> Duration:
        return kind(value.months if months else 0, value.seconds if seconds else Decimal(0))

    return dict.fromkeys(_DURATIONS, convert)


def _as_moment(kind: type[Moment], *sources: type[Moment]) -> Conversions:
    return dict.fromkeys(sources, lambda value: kind.at(value.local, value.offset))


def _as_number(*to: Callable[[Any], Value]) -> Conversions:
    return dict(zip((bool, *NUMBERS), to, strict=True))


_TO_INTEGER = _as_number(int, int, int, *[lambda number: int(_finite(number))] * 2)
_TO_DECIMAL = _as_number(*[Decimal] * 3, *[lambda number: Decimal(_finite(number))] * 2)
_CASTS: dict[str, Conversions] = {
    "boolean": {kind: truth for kind, truth in _TRUTH.items() if kind is not str},
    **dict.fromkeys(_INTEGERS, _TO_INTEGER),
    "decimal": _TO_DECIMAL,
    "float": _as_number(*[Single.nearest] * 5),
    "double": _as_number(*[_double] * 5),
    "dateTime": _as_moment(DateTime, DateTime, Date),
    "date": _as_moment(Date, DateTime, Date),
    "time": _as_moment(Time, DateTime, Time),
    "duration": _as_duration(Duration, months=True, seconds=True),
    "dayTimeDuration": _as_duration(DayTimeDuration, months=False, seconds=True),
    "yearMonthDuration": _as_duration(YearMonthDuration, months=True, seconds=False),
}
_CONVERSIONS = {IRI(XSD + name): conversions for name, conversions in _CASTS.items()}

CAST_TARGETS = frozenset({XSD_STRING, *_CONVERSIONS})
"""The datatypes that `cast` can make a literal of."""


def cast(term: Term, datatype: IRI) -> Literal:
    """The constructor function of a datatype (SPARQL 1.1, 17.5; F&O 19).

    >>> cast(Literal(" 1.90 "), IRI(XSD + "decimal")).lexical
    '1.9'
    >>> cast(Literal("1.9", IRI(XSD + "decimal")), IRI(XSD + "integer")).lexical
    '1'
    """
    if datatype == XSD_STRING:
        return Literal(_as_string(term))
    value, conversions = value_of(term), _CONVERSIONS.get(datatype, {})
    if type(value) is str and conversions:  # F&O 19.2: white space around a string is ignored
        result = _read(value.strip(" \t\n\r"), datatype.value)
    else:
        convert = conversions.get(type(value))
        result = None if convert is None else convert(value)
    if result is not None:
        literal = Literal(literal_of(result).lexical, datatype)
        if value_of(literal) is not None:  # a derived integer holds what its range holds
            return literal
    raise ExpressionError(f"{term} cannot be cast to {datatype}")


def _as_string(term: Term) -> str:
    if isinstance(term, BlankNode):
        raise ExpressionError("a blank node cannot be cast to a string")
    if isinstance(term, IRI):
        return term.value
    value = value_of(term)
    return term.lexical if value is None else literal_of(value).lexical


# -- Order --------------------------------------------------------------------------------------

Key = tuple[int | float | str | Decimal, ...]


def _by_length(duration: Duration) -> Decimal:
    # Less is less from each of the references, so it is so from the first: this extends `<`.
    return _reached(_REFERENCES[0], duration)


_FAMILIES: list[tuple[Iterable[type], Callable[[Any], Any]]] = [
    (NUMBERS, lambda value: value),
    ((str,), lambda value: value),
    ((bool,), int),
    *(((kind,), lambda value: value.instant) for kind in _LAYOUTS),
    (_DURATIONS, _by_length),
]
_ORDER = {kind: (rank, key) for rank, (kinds, key) in enumerate(_FAMILIES) for kind in kinds}
_STRINGS, _NAN, _NO_VALUE = _ORDER[str][0], len(_FAMILIES), len(_FAMILIES) + 1


def comparison_key(term: Term | None) -> Key:
    """What ORDER BY (SPARQL 1.1, 15.1) compares: where two are the same, its next key decides.

    Unbound, blank nodes, IRIs, literals. Literals go by family: numbers; strings, where a
    language-tagged one follows the plain one; booleans; dateTime, date, time and the other moments,
    a missing time zone read as UTC; durations, by where they lead from 1696-09-01; NaN; literals
    without a value. Within a family they go by value, exactly: where `<` rounds to promote, it does
    not contradict that. So wherever `a < b` is true, `comparison_key(a) < comparison_key(b)`.

    >>> comparison_key(Literal("01", IRI(XSD + "byte"))) == comparison_key(literal_of(1.0))
    True
    """
    if term is None:
        return (0,)
    if isinstance(term, BlankNode):
        return (1, term.label)
    if isinstance(term, IRI):
        return (2, term.value)
    value = value_of(term)
    if type(value) is str or term.language is not None:
        return (3, _STRINGS, term.lexical, term.language or "")
    if value is None:
        return (3, _NO_VALUE, term.datatype.value, term.lexical)
    if value != value:
        return (3, _NAN)
    rank, key = _ORDER[type(value)]
    return (3, rank, key(value))


def order_key(term: Term | None) -> Key:
    """A total order in which no two terms share a place: `comparison_key`, then how it is written.

    >>> sorted([Literal("b"), IRI("z"), None, Literal("a")], key=order_key)[:2]
    [None, IRI(value='z')]
    """
    key = comparison_key(term)
    return (*key, term.datatype.value, term.lexical) if isinstance(term, Literal) else key
