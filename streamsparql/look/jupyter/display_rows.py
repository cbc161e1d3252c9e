"""The rows of a result as text, from which its table and its timeline are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from streamsparql.algebra.streams import INFINITY
from streamsparql.sinks.cells import DisplayCell, display_cell
from streamsparql.translator.sparql_text import DisplayWriter

if TYPE_CHECKING:
    import pyarrow as pa


class DisplayRow(NamedTuple):
    """A row as text, with its validity."""

    cells: tuple[DisplayCell, ...]
    start: int
    end: int

    @property
    def never_ends(self) -> bool:
        """Whether the validity has no end."""
        return self.end >= INFINITY


@dataclass(frozen=True)
class DisplayRows:
    """Rows of a result, by start.

    `whole` is whether these are all rows; `start` and `end` are the requested horizon, if any.
    """

    form: str
    names: tuple[str, ...]
    rows: Sequence[DisplayRow]
    whole: bool = True
    start: int | None = None
    end: int | None = None
    numeric: tuple[bool, ...] = field(init=False)
    """For each column, whether all its terms are numbers."""

    def __post_init__(self) -> None:
        columns = zip(*(row.cells for row in self.rows), strict=True)
        numeric = [all(c.number or not c.text for c in column) for column in columns]
        object.__setattr__(self, "numeric", tuple(numeric or [False] * len(self.names)))

    @property
    def heads(self) -> tuple[str, ...]:
        """The column names; variables have their question mark."""
        mark = "?" if self.form == "select" else ""
        return tuple(f"{mark}{name}" for name in self.names)

    def first(self) -> int:
        """Return the earliest instant: the start of the horizon or of the first row."""
        starts = [row.start for row in self.rows]
        return min([*starts, *([] if self.start is None else [self.start])], default=0)


def display_rows(
    tables: Sequence[pa.Table], names: Sequence[str], prefixes: Mapping[str, str]
) -> Iterator[DisplayRow]:
    """Yield the rows of tables that have the layout of `Result.to_arrow`: terms, start, end."""
    for table in tables:
        ends = table.column(len(names) + 1).to_pylist()
        starting = cells_and_times(table, len(names), prefixes)
        for (cells, start), end in zip(starting, ends, strict=True):
            yield DisplayRow(cells, start, end)


def cells_and_times(
    table: pa.Table, count: int, prefixes: Mapping[str, str]
) -> Iterator[tuple[tuple[DisplayCell, ...], int]]:
    """Yield the rows of a table: its first `count` columns as cells, and the instant after them."""
    writer = DisplayWriter(prefixes)
    cache: dict[str | None, DisplayCell] = {None: DisplayCell("")}
    columns = [table.column(k).to_pylist() for k in range(count + 1)]
    for *terms, time in zip(*columns, strict=True):
        for text in terms:
            if text not in cache:
                cache[text] = display_cell(text, writer)
        yield tuple(cache[text] for text in terms), time
