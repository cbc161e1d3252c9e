"""Validities as bars over a time axis, in text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamsparql.cli.screen import Screen
from streamsparql.windpark.folder import date_time_text

_STEPS = (1, 5, 10, 15, 30, 60, 120, 240, 720, 1440)
"""The distances between labels of the axis, in minutes; the shortest that fits is chosen."""
_MINUTE = 60_000
_MIN_COLUMNS = 9
"""The least number of columns from one label of the axis to the next."""


@dataclass(frozen=True)
class ValidityBar:
    """A labelled validity `[start, end)`, drawn paler if its variable is unbound."""

    label: str
    start: int
    end: int
    bound: bool = True


def bar_chart(groups: Sequence[tuple[str, Sequence[ValidityBar]]], screen: Screen) -> Iterator[str]:
    """Yield the lines of a chart: a time axis, then for each group its title and its bars.

    >>> bars = [ValidityBar("a", 0, 600_000), ValidityBar("b", 600_000, 1_200_000, bound=False)]
    >>> for line in bar_chart([("one", bars)], Screen(width=44)):
    ...     print(line)
         00:00           00:10           00:20
         ┬───────────────┬───────────────┬
      one
      a  ████████████████
      b                  ░░░░░░░░░░░░░░░░
    """
    all_bars = [bar for _, group in groups for bar in group]
    label_width = max(len(bar.label) for bar in all_bars) + 4
    room = min(screen.width - label_width - 6, 72)
    earliest, latest = min(bar.start for bar in all_bars), max(bar.end for bar in all_bars)
    span = max(latest - earliest, 1)
    fitting = (m for m in _STEPS if m * _MINUTE * room >= span * _MIN_COLUMNS)
    step = next(fitting, _STEPS[-1]) * _MINUTE
    first = earliest // step * step
    columns_per_step = max(1, room * step // (latest - first))

    def column(t: int) -> int:
        return (t - first) * columns_per_step // step

    times = range(first, latest + 1, step)
    labels = "".join(date_time_text(t)[11:16].ljust(columns_per_step) for t in times)
    yield " " * label_width + labels.rstrip()
    rest = "─" * max(0, column(latest) - column(times[-1]) - 1)
    ticks = "".join("┬".ljust(columns_per_step, "─") for _ in times[:-1])
    yield " " * label_width + ticks + "┬" + rest
    for title, group in groups:
        yield screen.paint(f"  {title}", 2)
        for bar in group:
            low = column(bar.start)
            blocks = ("█" if bar.bound else "░") * max(1, column(bar.end) - low)
            painted = screen.paint(blocks, 32 if bar.bound else 33)
            yield f"  {bar.label:{label_width - 2}}{' ' * low}{painted}"
