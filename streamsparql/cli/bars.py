"""Validities as bars over a line of time, in text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamsparql.cli.screen import Screen
from streamsparql.windpark.folder import time_of

_STEPS = (1, 5, 10, 15, 30, 60, 120, 240, 720, 1440)
_MINUTE = 60_000
_TICK = 9  # at least so many signs from one time of the day to the next


@dataclass(frozen=True)
class Bar:
    """What holds over a stretch of time; what is not bound is drawn paler."""

    label: str
    start: int
    end: int
    bound: bool = True


def bars(groups: Sequence[tuple[str, Sequence[Bar]]], screen: Screen) -> Iterator[str]:
    """The lines of a picture: a time line, and each bar on a line of its own.

    >>> told = [("one", [Bar("a", 0, 600_000), Bar("b", 600_000, 1_200_000, bound=False)])]
    >>> for line in bars(told, Screen(width=44)):
    ...     print(line)
         00:00           00:10           00:20
         ┬───────────────┬───────────────┬
      one
      a  ████████████████
      b                  ░░░░░░░░░░░░░░░░
    """
    shown = [bar for _, group in groups for bar in group]
    labels = max(len(bar.label) for bar in shown) + 4
    room = min(screen.width - labels - 6, 72)
    earliest, latest = min(bar.start for bar in shown), max(bar.end for bar in shown)
    span = max(latest - earliest, 1)
    step = next((m for m in _STEPS if m * _MINUTE * room >= span * _TICK), _STEPS[-1]) * _MINUTE
    first = earliest // step * step
    signs = max(1, room * step // (latest - first))  # from one time of the day to the next

    def place(t: int) -> int:
        return (t - first) * signs // step

    times = range(first, latest + 1, step)
    yield " " * labels + "".join(time_of(t)[11:16].ljust(signs) for t in times).rstrip()
    rest = "─" * max(0, place(latest) - place(times[-1]) - 1)
    yield " " * labels + "".join("┬".ljust(signs, "─") for _ in times[:-1]) + "┬" + rest
    for title, group in groups:
        yield screen.paint(f"  {title}", 2)
        for bar in group:
            low = place(bar.start)
            drawn = ("█" if bar.bound else "░") * max(1, place(bar.end) - low)
            painted = screen.paint(drawn, 32 if bar.bound else 33)
            yield f"  {bar.label:{labels - 2}}{' ' * low}{painted}"
