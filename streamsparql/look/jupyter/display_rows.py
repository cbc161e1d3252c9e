"""The rows of a result as text, from which its table and its timeline are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import Literal
from streamsparql.sinks.cells import is_valid_number
from streamsparql.text.visible import visible
from streamsparql.translator.sparql_text import Writer

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_DIGITS = 12


class Cell(NamedTuple):
    """A term as text; a numeric literal is shown as its lexical form."""

    text: str
    number: bool = False

    @property
    def short(self) -> str:
        """The text, with the decimals of a long number cut.

        >>> Cell("571.333333333333333333333", True).short
        '571.3333333…'
        """
        long = self.number and len(self.text) > _MAX_DIGITS
        return f"{self.text[: _MAX_DIGITS - 1]}…" if long else self.text


class DisplayRow(NamedTuple):
    """A row as text, with its validity."""

    cells: tuple[Cell, ...]
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
) -> Iterator[tuple[tuple[Cell, ...], int]]:
    """Yield the rows of a table: its first `count` columns as cells, and the instant after them."""
    writer = Writer(prefixes)
    cache: dict[str | None, Cell] = {None: Cell("")}
    columns = [table.column(k).to_pylist() for k in range(count + 1)]
    for *terms, time in zip(*columns, strict=True):
        for text in terms:
            if text not in cache:
                cache[text] = _cell(text, writer)
        yield tuple(cache[text] for text in terms), time


def _cell(text: str, writer: Writer) -> Cell:
    """Return the cell of a term in N-Triples syntax, or of the answer to ASK.

    >>> _cell('"5"^^<http://www.w3.org/2001/XMLSchema#integer>', Writer())
    Cell(text='5', number=True)
    """
    term = parse_term(text)
    if term is None:
        return Cell(visible(text))
    if isinstance(term, Literal) and is_valid_number(text):
        return Cell(visible(term.lexical), True)
    return Cell(visible(writer.term(term)))
