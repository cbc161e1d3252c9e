"""Durations and instants as people write them, in arguments and on the command line.

A duration is a number of milliseconds, a text such as `5s`, `1 h 30 min` or `PT5S`, or a timedelta.
An instant is a number of milliseconds since 1970, a date and time in ISO 8601, or a datetime.
Without a time zone a date and time is in UTC, as the timestamps of sources are.

Only types are imported at the top: the command line imports this module before it reads a query.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from streamsparql.errors import EngineError
from streamsparql.text.durations import LONGEST_TIME, parse_duration, whole_number

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    Duration: TypeAlias = int | str | timedelta
    Instant: TypeAlias = int | str | datetime

_INTEGER = re.compile(r"-?[0-9]+")


def parse_instant(value: Any) -> int:
    """Return the milliseconds since 1970 of an instant; raise ValueError with the reason if none.

    >>> parse_instant("1500"), parse_instant("1970-01-01T00:01:00Z"), parse_instant("1970-01-02")
    (1500, 60000, 86400000)
    >>> from datetime import datetime, timezone
    >>> parse_instant(7), parse_instant(datetime(1970, 1, 1, 0, 0, 2, tzinfo=timezone.utc))
    (7, 2000)
    """
    # 21 digits are out of range; Python limits the digits that int() reads
    number = int(value[:21]) if _is_number(value) else whole_number(value)
    if number is not None:
        if abs(number) > LONGEST_TIME:
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
