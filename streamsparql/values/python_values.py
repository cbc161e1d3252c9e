"""The Python value of a term."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

from streamsparql.algebra.terms import IRI, BlankNode, Term
from streamsparql.algebra.xsd.durations import XsdDuration
from streamsparql.algebra.xsd.moments import Date, DateTime, Time, XsdMoment
from streamsparql.algebra.xsd.numeric import EXACT, Single
from streamsparql.algebra.xsd.values import value_of

PythonValue = bool | int | Decimal | float | str | datetime | date | time | timedelta

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def python_value(term: Term) -> PythonValue:
    """Return the Python value of a term: exact, or else its text.

    IRIs, blank nodes, language-tagged strings, literals of other datatypes and ill-typed ones are
    text. So is a value that the Python type cannot represent: nanoseconds, the year 10000, P1M.

    >>> from streamsparql.algebra.terms import XSD, Literal
    >>> [python_value(Literal(text, IRI(XSD + kind))) for kind, text in (
    ...     ("integer", "7"), ("decimal", "7.50"), ("date", "2026-03-01"), ("integer", "seven"))]
    [7, Decimal('7.50'), datetime.date(2026, 3, 1), 'seven']
    >>> python_value(IRI("http://example.org/a"))
    'http://example.org/a'
    """
    if isinstance(term, IRI):
        return term.value
    if isinstance(term, BlankNode):
        return str(term)
    value = value_of(term)
    if isinstance(value, Single):
        return float(value)
    if isinstance(value, XsdMoment | XsdDuration):
        native = _time_value(value)
        return term.lexical if native is None else native
    return term.lexical if value is None else value


def _time_value(value: XsdMoment | XsdDuration) -> PythonValue | None:
    """Return the value of a date, time or duration; None if Python has no exact one."""
    if isinstance(value, XsdDuration):
        return None if value.months else _timedelta(value.seconds)
    local = _timedelta(value.local)
    if local is None or type(value) not in (DateTime, Date, Time):
        return None
    try:
        moment = _EPOCH + local
    except OverflowError:
        return None
    if type(value) is Date:
        return moment.date()
    moment = moment.replace(tzinfo=_zone(value.offset))
    return moment if type(value) is DateTime else moment.timetz()


def _timedelta(seconds: Decimal) -> timedelta | None:
    """Return a number of seconds as a timedelta; None if it is not a whole number of microseconds.

    >>> _timedelta(Decimal("1.5")), _timedelta(Decimal("1E-9"))
    (datetime.timedelta(seconds=1, microseconds=500000), None)
    """
    microseconds = EXACT.scaleb(seconds, 6)
    whole = math.floor(microseconds)
    try:
        return whole * _MICROSECOND if whole == microseconds else None
    except OverflowError:
        return None


def _zone(offset: int | None) -> timezone | None:
    if not offset:
        return None if offset is None else UTC
    return timezone(timedelta(minutes=offset))


def aware_datetime(t: int) -> datetime | None:
    """Return an instant in milliseconds as a datetime in UTC; None beyond the year 9999.

    >>> aware_datetime(1500)
    datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """
    try:
        return (_EPOCH + timedelta(milliseconds=t)).replace(tzinfo=UTC)
    except OverflowError:
        return None
