"""The values of literals, and the canonical literals of values.

A term keeps its lexical form; `value_of` returns its value, as a Python value whose type represents
the primitive datatype:

    xsd:boolean              bool         xsd:dateTime, dateTimeStamp   DateTime
    xsd:integer and below    int          xsd:date, time                Date, Time
    xsd:decimal              Decimal      xsd:gYear, gYearMonth, ...    GYear, GYearMonth, ...
    xsd:float                Single       xsd:duration                  Duration
    xsd:double               float        xsd:dayTimeDuration           DayTimeDuration
    xsd:string               str          xsd:yearMonthDuration         YearMonthDuration

Ill-typed literals, language-tagged strings and literals of unknown datatypes have no value. Numbers
are in `numeric`, dates and times in `moments`, durations in `durations`; SPARQL's operations on
them are in `literal_operators`, `casts` and `order`. F&O is XPath's Functions and Operators 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.terms import IRI, XSD, XSD_STRING, Literal, Term
from streamsparql.algebra.xsd import durations, moments, numeric
from streamsparql.algebra.xsd.durations import DayTimeDuration, XsdDuration, duration_text
from streamsparql.algebra.xsd.gregorian import SECONDS_PER_DAY
from streamsparql.algebra.xsd.moments import DateTime, XsdMoment
from streamsparql.algebra.xsd.numeric import EXACT, Numeric
from streamsparql.limits import check_string

# -- Lexical forms to values --------------------------------------------------------------------

XsdValue = bool | Numeric | str | XsdMoment | XsdDuration

_PARSERS: dict[str, Callable[[str], XsdValue | None]] = {
    "boolean": lambda lexical: {"true": True, "1": True, "false": False, "0": False}.get(lexical),
    **numeric.NUMERIC_PARSERS,
    **moments.MOMENT_PARSERS,
    **durations.DURATION_PARSERS,
}


@lru_cache(maxsize=1 << 16)
def _parse(lexical: str, datatype: str) -> XsdValue | None:
    parse = _PARSERS.get(datatype.removeprefix(XSD)) if datatype.startswith(XSD) else None
    try:
        return None if parse is None else parse(lexical)
    except ValueError:  # a 30th of February; more digits than Python accepts for an int
        return None


def value_of(term: Term) -> XsdValue | None:
    """Return the value of a literal; None for a term without a value.

    >>> value_of(Literal("01", IRI(XSD + "integer"))), value_of(Literal("300", IRI(XSD + "byte")))
    (1, None)
    """
    if type(term) is not Literal:
        return None
    datatype = term.datatype.value
    return term.lexical if datatype == XSD_STRING.value else _parse(term.lexical, datatype)


def numeric_value(term: Term) -> Numeric:
    """Return the value of a numeric literal, of a type in the order of promotion.

    >>> numeric_value(Literal("1.50", IRI(XSD + "decimal")))
    Decimal('1.50')
    """
    value = value_of(term)
    if isinstance(value, int | Decimal | float) and type(value) is not bool:
        return value
    raise ExpressionError(f"{term} is not a number")


# -- Values to canonical literals ---------------------------------------------------------------

_WRITERS: dict[type, tuple[str, Callable[[Any], str]]] = {
    bool: ("boolean", lambda value: "true" if value else "false"),
    str: ("string", str),
    **numeric.NUMERIC_WRITERS,
    **moments.MOMENT_WRITERS,
    **durations.DURATION_WRITERS,
}
_CANONICAL = {kind: (IRI(XSD + name), write) for kind, (name, write) in _WRITERS.items()}


def literal_of(value: XsdValue) -> Literal:
    """Return the canonical literal of a value, in the form of fn:string.

    >>> print(literal_of(Decimal("2.50")), literal_of(1e21))  # doctest: +NORMALIZE_WHITESPACE
    "2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>
    "1.0E21"^^<http://www.w3.org/2001/XMLSchema#double>
    """
    datatype, write = _CANONICAL[type(value)]
    try:
        text = write(value)
    except ValueError as error:  # more digits than Python writes for an int
        raise ExpressionError("the number is too large") from error
    check_string(len(text))
    return Literal(text, datatype)


# -- Milliseconds, as streams count time --------------------------------------------------------


def date_time_literal(milliseconds: int) -> Literal:
    """Return the xsd:dateTime in UTC of milliseconds since the epoch.

    >>> date_time_literal(1_500).lexical
    '1970-01-01T00:00:01.5Z'
    """
    text = date_time_lexical(milliseconds)
    check_string(len(text))
    return Literal(text, _DATE_TIME)


def date_time_lexical(milliseconds: int) -> str:
    """Return the lexical form of `date_time_literal`.

    >>> date_time_lexical(90_000_000)
    '1970-01-02T01:00:00Z'
    """
    minute, rest = divmod(milliseconds, 60_000)
    seconds, thousandths = divmod(rest, 1000)
    fraction = f".{thousandths:03}".rstrip("0") if thousandths else ""
    return f"{_minute(minute)}:{seconds:02}{fraction}Z"


@lru_cache(64)
def _minute(number: int) -> str:
    """Return the text of a minute, counted from the epoch: most times are of few of them."""
    day, rest = divmod(number, 24 * 60)
    return f"{_date_of_day(day)}T{rest // 60:02}:{rest % 60:02}"


@lru_cache(64)
def _date_of_day(day: int) -> str:
    """Return the date of a day, counted from the epoch."""
    moment = DateTime(Decimal(SECONDS_PER_DAY * day), 0)
    return literal_of(moment).lexical.partition("T")[0]


_DATE_TIME = IRI(XSD + "dateTime")


def milliseconds_of(literal: Term) -> int:
    """Return the milliseconds since the epoch of an xsd:dateTime, rounded down; UTC by default.

    >>> milliseconds_of(Literal("1970-01-01T01:00:00+01:00", IRI(XSD + "dateTime")))
    0
    """
    value = value_of(literal)
    if type(value) is not DateTime:
        raise ExpressionError(f"{literal} is not an xsd:dateTime")
    return math.floor(EXACT.scaleb(value.instant, 3))


_DURATION = IRI(XSD + "duration")


def duration_literal(milliseconds: int, datatype: IRI = _DURATION) -> Literal:
    """Return the duration of a number of milliseconds, in days, hours, minutes and seconds.

    >>> duration_literal(90_061_000).lexical
    'P1DT1H1M1S'
    """
    seconds = EXACT.scaleb(Decimal(milliseconds), -3)
    return Literal(duration_text(DayTimeDuration(0, seconds)), datatype)


def duration_milliseconds(literal: Term) -> int:
    """Return the milliseconds of a duration, rounded down; raise for a duration with months.

    >>> duration_milliseconds(Literal("P1DT1S", IRI(XSD + "duration")))
    86401000
    """
    value = value_of(literal)
    if not isinstance(value, XsdDuration) or value.months:
        raise ExpressionError(f"{literal} is not a duration of days, hours, minutes and seconds")
    return math.floor(EXACT.scaleb(value.seconds, 3))
