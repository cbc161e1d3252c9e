"""The Gregorian calendar, in days and seconds from 1970-01-01, for any year before and after.

datetime knows the years 1 to 9999; the calendar repeats every 400, so the others are had from
those. Year 0 is 1 BCE, as in XSD 1.1. A time here is the reading of a clock in exact seconds;
which time zone the clock is in, it does not say.

datetime and calendar are imported where they are used: importing the package is cheaper so, and
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
    """Days from 1970-01-01 to a day; ValueError if there is no such day."""
    from datetime import date

    cycles, rest = divmod(year - 2000, _CYCLE_YEARS)
    return date(2000 + rest, month, day).toordinal() + cycles * _CYCLE_DAYS - _EPOCH


def year_month_day(days: int) -> tuple[int, int, int]:
    """The day that is so many days from 1970-01-01."""
    from datetime import date

    cycles, rest = divmod(days, _CYCLE_DAYS)
    found = date.fromordinal(_EPOCH + rest)
    return found.year + cycles * _CYCLE_YEARS, found.month, found.day


def day_and_rest(local: Decimal) -> tuple[int, Decimal]:
    """Whole days, and the seconds into the day."""
    days = math.floor(local) // SECONDS_PER_DAY
    return days, EXACT.subtract(local, Decimal(days * SECONDS_PER_DAY))


def months_later(local: Decimal, months: int) -> Decimal:
    """The same day of another month, or that month's last one (XSD 1.1, E.3.3)."""
    from calendar import monthrange

    days, rest = day_and_rest(local)
    year, month, day = year_month_day(days)
    year, month = divmod(12 * year + month - 1 + months, 12)
    last = monthrange(2000 + year % _CYCLE_YEARS, month + 1)[1]
    return EXACT.add(rest, Decimal(day_number(year, month + 1, min(day, last)) * SECONDS_PER_DAY))
