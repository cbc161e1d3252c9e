"""What a reader of results should know about the data: guessed units, late items, lost cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from streamsparql.errors import warn
from streamsparql.sources import Accounting
from streamsparql.sources.failed_cells import CellLog
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import UNIT_NAMES, RecognisedUnit
from streamsparql.text.instants import instant

_MAX_EXPRESSIONS = 5
"""The number of expressions that are shown with their failed cells."""

WriteOption = Callable[[str, str | int], str]
"""Writes an option and its value as an interface spells them; numbers are milliseconds."""


def in_python(name: str, value: str | int) -> str:
    """Return an option as an argument of a function.

    >>> in_python("max_delay", 90_000), in_python("time_unit", "ms")
    ('max_delay=90_000', "time_unit='ms'")
    """
    return f"{name}={value:_}" if isinstance(value, int) else f"{name}={value!r}"


class DataNotes(NamedTuple):
    """Notes on the data of a run."""

    units: Mapping[str, RecognisedUnit]
    """The units that were recognised by the size of timestamps, by stream."""
    cells: CellLog
    items: Accounting
    needed_delay: int
    """The least `max_delay` with which no item would have been late."""

    def lines(self, option: WriteOption = in_python) -> list[str]:
        """Return the notes as text.

        >>> notes = DataNotes({}, CellLog(), Accounting(10, 8, 2, 0), 90_000)
        >>> print(*notes.lines(), sep="\\n")
        late: 2 of 10 items, not in the result; max_delay=90_000 keeps all of them, \
max_delay='auto' sorts the whole input
        """
        lines = [self._unit_line(name, unit, option) for name, unit in self.units.items()]
        lines += self.cells.missing_keys
        failed = self.cells.failed
        lines += map(str, failed[:_MAX_EXPRESSIONS])
        if len(failed) > _MAX_EXPRESSIONS:
            lines.append(f"… and {len(failed) - _MAX_EXPRESSIONS:,} more expressions")
        if self.items.rows_without_triples and self.cells.without_triples:
            rows = f"{self.items.rows_without_triples:,} table rows have no triples"
            lines.append(f"{rows}: {self.cells.without_triples}")
        if self.needed_delay:
            read = f" of {self.items.read:,}" if self.items.read else ""
            late = f"late: {self.items.late:,}{read} items, not in the result"
            kept, every = option("max_delay", self.needed_delay), option("max_delay", "auto")
            lines.append(f"{late}; {kept} keeps all of them, {every} sorts the whole input")
        return lines

    def _unit_line(self, name: str, recognised: RecognisedUnit, option: WriteOption) -> str:
        unit, example = (
            UNIT_NAMES[recognised.unit],
            f"{recognised.number} is {instant(recognised.stamp)}",
        )
        other = option("time_unit", "ms")
        return f"<{name}>: timestamps are read as {unit} since 1970: {example}; {other} if not"

    def issue(self) -> None:
        """Issue the notes as warnings."""
        for line in self.lines():
            warn(line)


def warn_of_units(readings: Mapping[str, Reading], noted: set[str]) -> None:
    """Warn of units of timestamps that were recognised by their size, once: note the streams."""
    recognised = {n: r.stamps.recognised for n, r in readings.items() if n not in noted}
    units = {name: unit for name, unit in recognised.items() if unit is not None}
    if units:
        noted.update(units)
        DataNotes(units, CellLog(), Accounting(), 0).issue()
