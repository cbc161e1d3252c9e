"""Moments: the dates and times of XSD, their lexical forms, order and arithmetic.

A moment is a local time in exact seconds whose time zone may be unknown. So moments are partially
ordered: comparing moments whose order depends on a missing time zone is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Self

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.xsd.durations import DayTimeDuration, XsdDuration, negate_duration
from streamsparql.algebra.xsd.gregorian import (
    SECONDS_PER_DAY,
    day_and_rest,
    day_number,
    months_later,
    year_month_day,
)
from streamsparql.algebra.xsd.numeric import EXACT, decimal_text
from streamsparql.overriding import override


@dataclass(frozen=True, slots=True)
class XsdMoment:
    """A value of a date or time datatype.

    `local` is the local time in exact seconds from 1970-01-01T00:00:00, `offset` the minutes by
    which it is ahead of UTC, None without a time zone. Fields that a datatype lacks (the year of a
    gMonth) have a fixed value, so that values compare by `local`.
    """

    local: Decimal
    offset: int | None

    @classmethod
    def at(cls, local: Decimal, offset: int | None) -> Self:
        """Return the value of this datatype at a local time."""
        return cls(local, offset)

    @property
    def instant(self) -> Decimal:
        """Seconds on the UTC time line; a missing time zone counts as UTC."""
        return EXACT.subtract(self.local, Decimal(60 * (self.offset or 0)))

    @property
    def calendar(self) -> tuple[int, int, int]:
        """Year, month and day."""
        return year_month_day(day_and_rest(self.local)[0])

    @property
    def clock(self) -> tuple[int, int, Decimal]:
        """Hours, minutes and seconds."""
        rest = day_and_rest(self.local)[1]
        minutes = math.floor(rest) // 60
        return *divmod(minutes, 60), EXACT.subtract(rest, Decimal(60 * minutes))

    @property
    def zone(self) -> str:
        """The time zone in its lexical form: `Z`, `-08:00`, or empty."""
        if not self.offset:
            return "" if self.offset is None else "Z"
        hours, minutes = divmod(abs(self.offset), 60)
        return f"{'-' if self.offset < 0 else '+'}{hours:02}:{minutes:02}"


class DateTime(XsdMoment):
    """xsd:dateTime."""


class Date(XsdMoment):
    """xsd:date: the first moment of the day."""

    @classmethod
    @override
    def at(cls, local: Decimal, offset: int | None) -> Self:
        return cls(Decimal(day_and_rest(local)[0] * SECONDS_PER_DAY), offset)


class Time(XsdMoment):
    """xsd:time: a moment within one fixed day."""

    @classmethod
    @override
    def at(cls, local: Decimal, offset: int | None) -> Self:
        return cls(day_and_rest(local)[1], offset)


class GYear(XsdMoment):
    """xsd:gYear."""


class GYearMonth(XsdMoment):
    """xsd:gYearMonth."""


class GMonth(XsdMoment):
    """xsd:gMonth."""


class GMonthDay(XsdMoment):
    """xsd:gMonthDay."""


class GDay(XsdMoment):
    """xsd:gDay."""


# -- Reading and writing ------------------------------------------------------------------------

_LAYOUTS: dict[type[XsdMoment], str] = {
    DateTime: "{year}-{month}-{day}T{clock}{zone}",
    Date: "{year}-{month}-{day}{zone}",
    Time: "{clock}{zone}",
    GYear: "{year}{zone}",
    GYearMonth: "{year}-{month}{zone}",
    GMonth: "--{month}{zone}",
    GMonthDay: "--{month}-{day}{zone}",
    GDay: "---{day}{zone}",
}
"""The layout of each datatype, to parse (with patterns as fields) and to format (with digits)."""

MOMENTS: tuple[type[XsdMoment], ...] = tuple(_LAYOUTS)

_FIELDS = {
    "year": r"(?P<year>-?(?:[1-9]\d{3,}|0\d{3}))",
    "month": r"(?P<month>0[1-9]|1[0-2])",
    "day": r"(?P<day>0[1-9]|[12]\d|3[01])",
    "clock": r"(?P<hour>[01]\d|2[0-4]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d(?:\.\d+)?)",
    "zone": r"(?P<zone>Z|[+-](?:(?:0\d|1[0-3]):[0-5]\d|14:00))?",
}


@cache
def _pattern(layout: str) -> re.Pattern[str]:
    return re.compile(layout.format(**_FIELDS), re.ASCII)


def _parser(kind: type[XsdMoment], zoned: bool = False) -> Callable[[str], XsdMoment | None]:
    """Return the parser of a datatype; with `zoned`, it requires a time zone."""

    def parse(lexical: str) -> XsdMoment | None:
        match = _pattern(_LAYOUTS[kind]).fullmatch(lexical)
        if match is None or (zoned and match["zone"] is None):
            return None
        return _moment(kind, match.groupdict())

    return parse


def _moment(kind: type[XsdMoment], part: dict[str, str | None]) -> XsdMoment | None:
    hour, minute = int(part.get("hour") or 0), int(part.get("minute") or 0)
    second = Decimal(part.get("second") or 0)
    if hour == 24 and (minute or second):
        return None
    # 1972, as in XSD, has a February 29, so that --02-29 is a gMonthDay.
    year, month, day = part.get("year") or 1972, part.get("month") or 1, part.get("day") or 1
    days = day_number(int(year), int(month), int(day))
    local = EXACT.add(second, Decimal(SECONDS_PER_DAY * days + 3600 * hour + 60 * minute))
    return kind.at(local, _offset(part["zone"]))


def _offset(zone: str | None) -> int | None:
    if zone is None or zone == "Z":
        return None if zone is None else 0
    minutes = 60 * int(zone[1:3]) + int(zone[4:6])
    return -minutes if zone[0] == "-" else minutes


def _moment_text(moment: XsdMoment) -> str:
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


MOMENT_PARSERS: dict[str, Callable[[str], XsdMoment | None]] = {
    "dateTime": _parser(DateTime),
    "dateTimeStamp": _parser(DateTime, zoned=True),
    "date": _parser(Date),
    "time": _parser(Time),
    "gYear": _parser(GYear),
    "gYearMonth": _parser(GYearMonth),
    "gMonth": _parser(GMonth),
    "gMonthDay": _parser(GMonthDay),
    "gDay": _parser(GDay),
}
"""The parser of each datatype's lexical forms; None or ValueError for other strings."""

MOMENT_WRITERS: dict[type, tuple[str, Callable[[Any], str]]] = {
    DateTime: ("dateTime", _moment_text),
    Date: ("date", _moment_text),
    Time: ("time", _moment_text),
    GYear: ("gYear", _moment_text),
    GYearMonth: ("gYearMonth", _moment_text),
    GMonth: ("gMonth", _moment_text),
    GMonthDay: ("gMonthDay", _moment_text),
    GDay: ("gDay", _moment_text),
}
"""The datatype of each type, and the function that writes its canonical form."""


# -- Order and arithmetic -----------------------------------------------------------------------

_MAX_ZONE_OFFSET = 14 * 3600  # an unknown time zone is within 14 hours of UTC


def seconds_between(x: XsdMoment, y: XsdMoment) -> Decimal:
    """Return the seconds from x to y; raise if their order depends on a missing time zone.

    It does if only one has a time zone and they are at most 14 hours apart (XSD 1.1, D.2.1).
    """
    seconds = EXACT.subtract(y.instant, x.instant)
    if (x.offset is None) is not (y.offset is None) and seconds.copy_abs() <= _MAX_ZONE_OFFSET:
        raise ExpressionError("the order depends on a missing time zone")
    return seconds


def subtract_moments(x: XsdMoment, y: XsdMoment) -> DayTimeDuration:
    """Return x - y; raise if only one of them has a time zone."""
    if (x.offset is None) is not (y.offset is None):
        raise ExpressionError("the difference depends on a missing time zone")
    return DayTimeDuration(0, EXACT.subtract(x.instant, y.instant))


def moment_plus_duration(moment: XsdMoment, duration: XsdDuration) -> XsdMoment:
    """Add a duration to a moment: first its months, then its seconds (XSD 1.1, E.3.3)."""
    local = moment.local
    if duration.months:
        if type(moment) is Time:
            raise ExpressionError("cannot add months to a time of day")
        local = months_later(local, duration.months)
    return moment.at(EXACT.add(local, duration.seconds), moment.offset)


def moment_minus_duration(moment: XsdMoment, duration: XsdDuration) -> XsdMoment:
    """Subtract a duration from a moment."""
    return moment_plus_duration(moment, negate_duration(duration))
