"""Durations and instants as people write them, in arguments and on the command line.

A duration is a number of milliseconds, a text such as `5s`, `1 h 30 min` or `PT5S`, or a timedelta.
An instant is a number of milliseconds since 1970, a date and time in ISO 8601, or a datetime.
Without a time zone a date and time is in UTC, as the timestamps of sources are.

Only types are imported at the top: the command line imports this module before it reads a query.
"""

from __future__ import annotations

import re
from decimal import Decimal
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.algebra.xsd.durations import XsdDuration
from streamsparql.algebra.xsd.numeric import EXACT
from streamsparql.algebra.xsd.values import value_of
from streamsparql.errors import EngineError

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    Duration: TypeAlias = int | str | timedelta
    Instant: TypeAlias = int | str | datetime

_LONGEST = 1 << 62
_UNITS = {"ms": 1, "s": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(rf"({_NUMBER})\s*({'|'.join(_UNITS)})\s*")
_PARTS = re.compile(rf"(?:{_PART.pattern})+")
_DURATION = IRI(XSD + "duration")
_INTEGER = re.compile(r"-?[0-9]+")


def parse_duration(value: Any) -> int:
    """Return the milliseconds of a duration; raise ValueError with the reason if it is not one.

    >>> [parse_duration(text) for text in ("500ms", "1.5 m", "1 h 30 min", "PT5S", "10")]
    [500, 90000, 5400000, 5000, 10]
    >>> from datetime import timedelta
    >>> parse_duration(250), parse_duration(timedelta(seconds=5))
    (250, 5000)
    """
    if isinstance(value, str):
        milliseconds = _milliseconds_of_text(value.strip())
    elif (number := _integer(value)) is not None:
        milliseconds = Decimal(number)
    else:
        milliseconds = _milliseconds_of_timedelta(value)
    if milliseconds != milliseconds.to_integral_value():
        raise ValueError(f"not a whole number of milliseconds: {value!r:.60}")
    if not 0 <= milliseconds <= _LONGEST:
        raise ValueError(f"duration out of range: {value!r:.60}")
    return int(milliseconds)


def _milliseconds_of_text(text: str) -> Decimal:
    if re.fullmatch(_NUMBER, text):
        return Decimal(text)
    if _PARTS.fullmatch(text):
        return sum((Decimal(n) * _UNITS[unit] for n, unit in _PART.findall(text)), Decimal(0))
    duration = value_of(Literal(text, _DURATION))
    if not isinstance(duration, XsdDuration):
        raise ValueError(
            f"not a valid duration: {text!r:.60}; write it as 500ms, 10s, 5m, 1h, 2d or PT5S"
        )
    if duration.months:
        raise ValueError(f"years and months have no fixed length: {text!r}; write it in days")
    return EXACT.scaleb(duration.seconds, 3)


def _milliseconds_of_timedelta(value: Any) -> Decimal:
    from datetime import timedelta

    if not isinstance(value, timedelta):
        raise ValueError(
            f"not a valid duration: {value!r:.60}; pass milliseconds, a text such as '5s', or a"
            " timedelta"
        )
    return Decimal(value // timedelta(microseconds=1)) / 1000


def parse_instant(value: Any) -> int:
    """Return the milliseconds since 1970 of an instant; raise ValueError with the reason if none.

    >>> parse_instant("1500"), parse_instant("1970-01-01T00:01:00Z"), parse_instant("1970-01-02")
    (1500, 60000, 86400000)
    >>> from datetime import datetime, timezone
    >>> parse_instant(7), parse_instant(datetime(1970, 1, 1, 0, 0, 2, tzinfo=timezone.utc))
    (7, 2000)
    """
    # 21 digits are out of range; Python limits the digits that int() reads
    number = int(value[:21]) if _is_number(value) else _integer(value)
    if number is not None:
        if abs(number) > _LONGEST:
            raise ValueError(f"milliseconds since 1970 out of range: {value!r:.60}")
        return number
    from datetime import date, datetime

    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    from streamsparql.sources.stamps import IN_MILLISECONDS

    if isinstance(value, str | datetime):
        try:
            return IN_MILLISECONDS.stamp_of(value)
        except ValueError as error:
            raise ValueError(
                f"{error}; write milliseconds since 1970, or a time as 2026-01-31T12:00:00Z"
            ) from None
    raise ValueError(
        f"not a valid instant: {value!r:.60}; pass milliseconds since 1970, a text such as"
        " '2026-01-31T12:00:00Z', or a datetime"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and _INTEGER.fullmatch(value) is not None


def _integer(value: Any) -> int | None:
    return index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None


# -- arguments of functions ------------------------------------------------------------------------


def duration_argument(name: str, value: Any) -> int:
    """Return the milliseconds of an argument; raise an EngineError that names it if invalid.

    >>> duration_argument("max_delay", "5 s")
    5000
    """
    try:
        return parse_duration(value)
    except ValueError as error:
        raise EngineError(f"{name}: {error}") from None


def period_argument(name: str, value: Any) -> int:
    """Return the milliseconds of an argument that must be longer than 0.

    >>> period_argument("every", "10m")
    600000
    """
    milliseconds = duration_argument(name, value)
    if not milliseconds:
        raise EngineError(f"{name} must be longer than 0, not {value!r}")
    return milliseconds


def instant_argument(name: str, value: Any, least: int | None = 0) -> int:
    """Return the milliseconds since 1970 of an argument, at least `least`.

    >>> instant_argument("end", "2026-03-01T08:00:00Z")
    1772352000000
    """
    try:
        t = parse_instant(value)
    except ValueError as error:
        raise EngineError(f"{name}: {error}") from None
    if least is not None and t < least:
        raise EngineError(f"{name} must not be before 1970: {value!r}")
    return t
