"""How instants are written for people, and which round ones stand at a time axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from itertools import count
from typing import NamedTuple

from streamsparql.algebra.streams import INFINITY
from streamsparql.errors import EngineError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_PERIODS = [
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14)),
]
_MONTHS = [1, 2, 3, 6, *(12 * n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000))]
_MONTH = 28 * _DAY  # at least
_MIDNIGHT = time_of_day()
_LONG_AGO = 1 << 33  # streams that begin in early 1970 count from a zero of their own


def _factors() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50 and so on."""
    return (factor * 10**power for power in count() for factor in (1, 2, 5))


class Clock(NamedTuple):
    """How times are written: "ms", "iso" (UTC) or "local"."""

    style: str = "iso"

    @classmethod
    def of(cls, style: str | None, first: int) -> Clock:
        """The clock of a style, or without one that of times which begin at `first`.

        >>> Clock.of(None, 5).style, Clock.of(None, 1_772_352_000_000).style
        ('ms', 'iso')
        """
        if style is not None and style not in ("ms", "iso", "local"):
            raise EngineError(f"timestamps are written ms, iso, local, not {style!r}")
        return cls(style or ("ms" if first < _LONG_AGO else "iso"))

    @property
    def zone(self) -> str:
        """Which clock it is."""
        return {"iso": "UTC", "local": "local time", "ms": "ms"}[self.style]

    def at(self, t: int) -> datetime | None:
        """The date and time; None where that is beyond the calendar, or not asked for."""
        if self.style == "ms":
            return None
        try:
            found = _EPOCH + timedelta(milliseconds=t)
            return found.astimezone(None if self.style == "local" else UTC)
        except (OverflowError, ValueError, OSError):
            return None

    def moment(self, t: int) -> str:
        """A time, in full.

        >>> Clock("iso").moment(1_772_352_000_500), Clock("ms").moment(7)
        ('2026-03-01 08:00:00.500', '7')
        """
        found = self.at(t)
        if found is None:
            return str(t)
        finest = "milliseconds" if t % 1000 else "seconds"
        return found.replace(tzinfo=None).isoformat(" ", finest)

    def day(self, t: int) -> str:
        """What an axis says of all its labels."""
        found = self.at(t)
        return "" if found is None else f"{found:%Y-%m-%d}, {self.zone}"

    # -- an axis

    def ticks(self, start: int, end: int, most: int) -> list[int]:
        """At most so many round times in a span: of clock and calendar, or powers of ten.

        >>> Clock("ms").ticks(0, 25, 6), Clock("iso").ticks(3_000, 60_000, 4)
        ([0, 5, 10, 15, 20, 25], [15000, 30000, 45000, 60000])
        """
        span = end - start
        first, last = self.at(start), self.at(end)
        if first is None or last is None or span < most * _SECOND:
            step = next(n for n in _factors() if span // n < most)
            return list(range(-(-start // step) * step, end + 1, step))
        shown = first.replace(tzinfo=None), last.replace(tzinfo=None)
        period = next((p for p in _PERIODS if span // p < most), None)
        if period is not None:
            times = _regular(*shown, timedelta(milliseconds=period))
        else:
            times = _monthly(*shown, next(n for n in _MONTHS if span // (n * _MONTH) < most))
        return sorted(t for t in {self._stamp(time) for time in times} if start <= t <= end)

    def _stamp(self, shown: datetime) -> int:
        """When this clock shows a date and time."""
        aware = shown.astimezone() if self.style == "local" else shown.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)

    def labels(self, times: Sequence[int]) -> list[tuple[int, str]]:
        """Times of an axis with what is written at them: as short as they can be told apart.

        >>> [label for _, label in Clock("iso").labels([60_000, 120_000])]
        ['00:01', '00:02']
        >>> [label for _, label in Clock("iso").labels([43_200_000, 86_400_000])]
        ['12:00', '01-02']
        >>> [label for _, label in Clock("ms").labels([0, 5])]
        ['0 ms', '5']
        """
        found = [shown for shown in map(self.at, times) if shown is not None]
        if len(found) < len(times):
            return [(t, f"{t} ms" if k == 0 else str(t)) for k, t in enumerate(times)]
        form = _form(found, times)
        year = found[0].year if found else 0
        made = []
        for t, shown in zip(times, found, strict=True):
            text = f"{shown:{form}}{f'.{t % _SECOND:03}' * any(t % _SECOND for t in times)}"
            if shown.time() == _MIDNIGHT and not form.startswith("%Y"):
                text = f"{shown:%m-%d}" if shown.year == year else f"{shown:%Y-%m-%d}"
                year = shown.year
            made.append((t, text))
        return made


def instant(t: int) -> str:
    """An instant by itself, with its zone.

    >>> instant(1_772_352_000_000), instant(5_000), instant(INFINITY)
    ('2026-03-01 08:00:00 UTC', '5,000 ms', 'the end')
    """
    if t >= INFINITY:
        return "the end"
    clock = Clock.of(None, t)
    return f"{t:,} ms" if clock.at(t) is None else f"{clock.moment(t)} {clock.zone}"


def _form(shown: Sequence[datetime], times: Sequence[int]) -> str:
    """How the times of an axis are written: years, months, or times of the day."""
    if all(x.time() == _MIDNIGHT and x.day == 1 for x in shown) and len(shown) > 1:
        return "%Y" if all(x.month == 1 for x in shown) else "%Y-%m"
    return "%H:%M" if all(t % _MINUTE == 0 for t in times) else "%H:%M:%S"


def _regular(first: datetime, last: datetime, step: timedelta) -> Iterator[datetime]:
    """The times of a regular grid, which begins on a Monday, around a span."""
    grid = range((first - datetime.min) // step, (last - datetime.min) // step + 1)
    return (datetime.min + k * step for k in grid)


def _monthly(first: datetime, last: datetime, step: int) -> Iterator[datetime]:
    """The beginnings of each so many months, from the month of one time to that of another."""
    months = range(-(-_month(first) // step) * step, _month(last) + 1, step)
    return (datetime(month // 12, month % 12 + 1, 1) for month in months)


def _month(time: datetime) -> int:
    return time.year * 12 + time.month - 1
