"""Instants as text for readers, and the round ones that label a time axis."""

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
_SHORTEST_MONTH = 28 * _DAY
_MIDNIGHT = time_of_day()
_FIRST_DATE = 1 << 33  # a stream that starts before April 1970 counts from an arbitrary zero


def _factors() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50 and so on."""
    return (factor * 10**power for power in count() for factor in (1, 2, 5))


class DisplayClock(NamedTuple):
    """A style of writing timestamps: "ms", "iso" (UTC) or "local"."""

    style: str = "iso"

    @classmethod
    def of(cls, style: str | None, first: int) -> DisplayClock:
        """Return the clock of a style, or the default one for times that start at `first`.

        >>> DisplayClock.of(None, 5).style, DisplayClock.of(None, 1_772_352_000_000).style
        ('ms', 'iso')
        """
        if style is not None and style not in ("ms", "iso", "local"):
            raise EngineError(f"timestamps must be ms, iso or local, not {style!r}")
        return cls(style or ("ms" if first < _FIRST_DATE else "iso"))

    @property
    def zone(self) -> str:
        """The name of the time zone, or of the unit."""
        return {"iso": "UTC", "local": "local time", "ms": "ms"}[self.style]

    def at(self, t: int) -> datetime | None:
        """Return the date and time; None for style ms, or outside of the calendar."""
        if self.style == "ms":
            return None
        try:
            time = _EPOCH + timedelta(milliseconds=t)
            return time.astimezone(None if self.style == "local" else UTC)
        except (OverflowError, ValueError, OSError):
            return None

    def moment(self, t: int) -> str:
        """Return the full text of an instant.

        >>> DisplayClock("iso").moment(1_772_352_000_500), DisplayClock("ms").moment(7)
        ('2026-03-01 08:00:00.500', '7')
        """
        time = self.at(t)
        if time is None:
            return str(t)
        precision = "milliseconds" if t % 1000 else "seconds"
        return time.replace(tzinfo=None).isoformat(" ", precision)

    def day(self, t: int) -> str:
        """Return the title of an axis: the day of `t` and the zone; empty without a date."""
        time = self.at(t)
        return "" if time is None else f"{time:%Y-%m-%d}, {self.zone}"

    # -- an axis

    def ticks(self, start: int, end: int, most: int) -> list[int]:
        """Return up to `most` round instants of a span: of clock and calendar, or powers of ten.

        >>> DisplayClock("ms").ticks(0, 25, 6), DisplayClock("iso").ticks(3_000, 60_000, 4)
        ([0, 5, 10, 15, 20, 25], [15000, 30000, 45000, 60000])
        """
        span = end - start
        first, last = self.at(start), self.at(end)
        if first is None or last is None or span < most * _SECOND:
            step = next(n for n in _factors() if span // n < most)
            return list(range(-(-start // step) * step, end + 1, step))
        local = first.replace(tzinfo=None), last.replace(tzinfo=None)
        period = next((p for p in _PERIODS if span // p < most), None)
        if period is not None:
            times = _regular(*local, timedelta(milliseconds=period))
        else:
            times = _monthly(
                *local, next(n for n in _MONTHS if span // (n * _SHORTEST_MONTH) < most)
            )
        return sorted(t for t in {self._stamp(time) for time in times} if start <= t <= end)

    def _stamp(self, time: datetime) -> int:
        """Return the instant of a date and time of this clock."""
        aware = time.astimezone() if self.style == "local" else time.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)

    def labels(self, times: Sequence[int]) -> list[tuple[int, str]]:
        """Return the instants of an axis with their labels, short and distinct.

        >>> [label for _, label in DisplayClock("iso").labels([60_000, 120_000])]
        ['00:01', '00:02']
        >>> [label for _, label in DisplayClock("iso").labels([43_200_000, 86_400_000])]
        ['12:00', '01-02']
        >>> [label for _, label in DisplayClock("ms").labels([0, 5])]
        ['0 ms', '5']
        """
        dates = [time for time in map(self.at, times) if time is not None]
        if len(dates) < len(times):
            return [(t, f"{t} ms" if k == 0 else str(t)) for k, t in enumerate(times)]
        form = _label_format(dates, times)
        year = dates[0].year if dates else 0
        labels = []
        for t, date in zip(times, dates, strict=True):
            text = f"{date:{form}}{f'.{t % _SECOND:03}' * any(t % _SECOND for t in times)}"
            if date.time() == _MIDNIGHT and not form.startswith("%Y"):
                text = f"{date:%m-%d}" if date.year == year else f"{date:%Y-%m-%d}"
                year = date.year
            labels.append((t, text))
        return labels


def instant(t: int) -> str:
    """Return the text of a single instant, with its zone.

    >>> instant(1_772_352_000_000), instant(5_000), instant(INFINITY)
    ('2026-03-01 08:00:00 UTC', '5,000 ms', 'the end')
    """
    if t >= INFINITY:
        return "the end"
    clock = DisplayClock.of(None, t)
    return f"{t:,} ms" if clock.at(t) is None else f"{clock.moment(t)} {clock.zone}"


def _label_format(dates: Sequence[datetime], times: Sequence[int]) -> str:
    """Return the format of the labels of an axis: years, months, or times of the day."""
    if all(x.time() == _MIDNIGHT and x.day == 1 for x in dates) and len(dates) > 1:
        return "%Y" if all(x.month == 1 for x in dates) else "%Y-%m"
    return "%H:%M" if all(t % _MINUTE == 0 for t in times) else "%H:%M:%S"


def _regular(first: datetime, last: datetime, step: timedelta) -> Iterator[datetime]:
    """Yield the times of a regular grid around a span; the grid starts on a Monday."""
    grid = range((first - datetime.min) // step, (last - datetime.min) // step + 1)
    return (datetime.min + k * step for k in grid)


def _monthly(first: datetime, last: datetime, step: int) -> Iterator[datetime]:
    """Yield the start of every `step`-th month, from the month of `first` to that of `last`."""
    months = range(-(-_month_number(first) // step) * step, _month_number(last) + 1, step)
    return (datetime(month // 12, month % 12 + 1, 1) for month in months)


def _month_number(time: datetime) -> int:
    return time.year * 12 + time.month - 1
