"""What a sink knows of the rows that it gets, and what a sink is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True)
class Layout:
    """The columns of rows: those of terms, then those of times; and how times are written.

    `timestamps` is `ms` (milliseconds since 1970), `iso` (xsd:dateTime, UTC) or `local` (that with
    the zone of this machine); by default tables for readers have UTC and the others milliseconds.
    """

    form: str
    names: tuple[str, ...]
    times: tuple[str, ...]
    prefixes: Mapping[str, str] = field(default_factory=dict)
    timestamps: str | None = None

    @property
    def triples(self) -> bool:
        """Whether the rows are triples."""
        return self.form in ("construct", "describe")

    @property
    def source_times(self) -> tuple[str, ...]:
        """How tables that may be read again call the times.

        Triples are items of a stream from their start on, or at their report's instant.

        >>> Layout("construct", ("subject", "predicate", "object"), ("start", "end")).source_times
        ('timestamp', 'end')
        """
        return ("timestamp", *self.times[1:]) if self.triples else self.times


class Sink(Protocol):
    """Writes rows."""

    def write(self, rows: pa.Table) -> None:
        """Takes in rows."""

    def flush(self) -> None:
        """Nothing that was taken in is held back any more."""

    def close(self) -> None:
        """There are no more rows."""
