"""The proleptic Gregorian calendar, in days and seconds from 1970-01-01, for any year.

datetime supports the years 1 to 9999; the calendar repeats every 400 years, so other years are
mapped to those. Year 0 is 1 BCE, as in XSD 1.1. Times are local, in exact seconds, without a time
zone.

datetime and calendar are imported inside functions to keep the import of the package fast:
compiling a query seldom needs them.
"""

from __future__ import annotations

import math
from decimal import Decimal

from streamsparql.algebra.xsd.numeric import EXACT

SECONDS_PER_DAY = 86_400
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_EPOCH = 719_163  # 1970-01-01, as datetime counts days


def day_number(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date; raise ValueError for an invalid date."""
    from datetime import date

    cycles, rest = divmod(year - 2000, _CYCLE_YEARS)
    return date(2000 + rest, month, day).toordinal() + cycles * _CYCLE_DAYS - _EPOCH


def year_month_day(days: int) -> tuple[int, int, int]:
    """Return the year, month and day at a number of days from 1970-01-01."""
    from datetime import date

    cycles, rest = divmod(days, _CYCLE_DAYS)
    day = date.fromordinal(_EPOCH + rest)
    return day.year + cycles * _CYCLE_YEARS, day.month, day.day


def day_and_rest(local: Decimal) -> tuple[int, Decimal]:
    """Return the whole days of a local time, and the seconds into the day."""
    days = math.floor(local) // SECONDS_PER_DAY
    return days, EXACT.subtract(local, Decimal(days * SECONDS_PER_DAY))


def months_later(local: Decimal, months: int) -> Decimal:
    """Add months to a local time; the day is at most the month's last one (XSD 1.1, E.3.3)."""
    from calendar import monthrange

    days, rest = day_and_rest(local)
    year, month, day = year_month_day(days)
    year, month = divmod(12 * year + month - 1 + months, 12)
    last = monthrange(2000 + year % _CYCLE_YEARS, month + 1)[1]
    return EXACT.add(rest, Decimal(day_number(year, month + 1, min(day, last)) * SECONDS_PER_DAY))
