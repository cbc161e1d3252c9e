"""Round times for a time axis, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from streamsparql.errors import EngineError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_PERIODS = [
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28)),
]
_LONG_AGO = 1 << 33  # streams that begin in early 1970 count from a zero of their own


def ticks(start: int, end: int, most: int, calendar: bool = True) -> list[int]:
    """At most so many round times in a span: of clocks and days, or powers of ten.

    >>> ticks(0, 25, 6, calendar=False), ticks(3_000, 60_000, 4)
    ([0, 5, 10, 15, 20, 25], [15000, 30000, 45000, 60000])
    """
    periods = _PERIODS if calendar and end - start >= most * _SECOND else []
    step = next((p for p in periods if (end - start) // p < most), 0) or _decimal(end - start, most)
    return list(range(-(-start // step) * step, end + 1, step))


def _decimal(span: int, most: int) -> int:
    """A step of 1, 2 or 5 times a power of ten."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if span // (step * factor) < most:
                return step * factor
        step *= 10


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
    def room(self) -> int:
        """The cells that a label takes on an axis, with what is between it and the next."""
        return 13 if self.style != "ms" else 10

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

    def labels(self, times: Sequence[int]) -> list[tuple[int, str]]:
        """Times of an axis with what is written at them: as short as they can be told apart.

        >>> [label for _, label in Clock("iso").labels([0, 60_000])]
        ['00:00', '00:01']
        >>> [label for _, label in Clock("ms").labels([0, 5])]
        ['0 ms', '5']
        """
        form = "%H:%M" if all(t % _MINUTE == 0 for t in times) else "%H:%M:%S"
        parts = any(t % _SECOND for t in times)
        made: list[tuple[int, str]] = []
        for k, t in enumerate(times):
            found = self.at(t)
            if found is None:
                made.append((t, f"{t} ms" if k == 0 else str(t)))
            elif k and found.time() == time():
                made.append((t, f"{found:%m-%d}"))
            else:
                made.append((t, f"{found:{form}}{f'.{t % _SECOND:03}' * parts}"))
        return made
