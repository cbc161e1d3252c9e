"""The layout of the rows that a sink writes, and the protocol of sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from streamsparql.sinks.times import check_style


@dataclass(frozen=True)
class Layout:
    """The columns of rows: those of terms, then those of times; and how times are written.

    `timestamps` is `ms` (milliseconds since 1970), `iso` (xsd:dateTime, UTC) or `local` (the same
    in the time zone of this machine); by default `iso` in tables for readers and with native
    values, else `ms`. In CSV, `escape_formulas` keeps spreadsheets from running cells. `values` are
    terms, or native: numbers, booleans, texts. The times
    of `events` are their start and their end, in place of a validity.
    """

    form: str
    names: tuple[str, ...]
    times: tuple[str, ...]
    prefixes: Mapping[str, str] = field(default_factory=dict)
    timestamps: str | None = None
    escape_formulas: bool = False
    events: bool = False
    values: str = "terms"

    @property
    def triples(self) -> bool:
        """Whether the rows are triples."""
        return self.form in ("construct", "describe")

    @property
    def native(self) -> bool:
        """Whether terms are written as native values."""
        return self.values == "native"

    def style(self, default: str) -> str:
        """Return the style of times; `default` unless one is set, or values are native."""
        return check_style(self.timestamps, "iso" if self.native else default)

    @property
    def source_times(self) -> tuple[str, ...]:
        """The names of the columns of times in tables that may be read as sources.

        The timestamp of a triple is its start, or the instant of its report; an event has both.
        Triples of native values cannot be read as a source.

        >>> Layout("construct", ("subject", "predicate", "object"), ("start", "end")).source_times
        ('timestamp', 'end')
        """
        if self.triples and not self.native and not self.events:
            return ("timestamp", *self.times[1:])
        return self.times


class Sink(Protocol):
    """A consumer of rows that writes them in a format."""

    def write(self, rows: pa.Table) -> None:
        """Write rows, possibly with a delay."""

    def flush(self) -> None:
        """Write the rows that are delayed."""

    def close(self) -> None:
        """Write the remaining rows, and the end of the file."""
