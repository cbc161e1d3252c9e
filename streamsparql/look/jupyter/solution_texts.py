"""The rows of a result as texts: what its table and its timeline are made of."""

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

_DIGITS = 12


class Cell(NamedTuple):
    """A term as it is shown; a number is its value."""

    text: str
    number: bool = False

    @property
    def short(self) -> str:
        """The text, less the places of a number that nobody reads.

        >>> Cell("571.333333333333333333333", True).short
        '571.3333333…'
        """
        long = self.number and len(self.text) > _DIGITS
        return f"{self.text[: _DIGITS - 1]}…" if long else self.text


class Solution(NamedTuple):
    """A row: its cells, and when it holds."""

    cells: tuple[Cell, ...]
    start: int
    end: int

    @property
    def lasts(self) -> bool:
        """Whether it never ends."""
        return self.end >= INFINITY


@dataclass(frozen=True)
class Solutions:
    """Rows of a result, by start.

    `whole` says whether these are all; `start` and `end` are the horizon that was asked for.
    """

    form: str
    names: tuple[str, ...]
    rows: Sequence[Solution]
    whole: bool = True
    start: int | None = None
    end: int | None = None
    numeric: tuple[bool, ...] = field(init=False)
    """Of which columns all terms are numbers."""

    def __post_init__(self) -> None:
        """Looks at the columns."""
        columns = zip(*(row.cells for row in self.rows), strict=True)
        numeric = [all(c.number or not c.text for c in column) for column in columns]
        object.__setattr__(self, "numeric", tuple(numeric or [False] * len(self.names)))

    @property
    def heads(self) -> tuple[str, ...]:
        """How the columns are called."""
        mark = "?" if self.form == "select" else ""
        return tuple(f"{mark}{name}" for name in self.names)

    def first(self) -> int:
        """The first time there is."""
        starts = [row.start for row in self.rows]
        return min([*starts, *([] if self.start is None else [self.start])], default=0)


def solutions(
    tables: Sequence[pa.Table], names: Sequence[str], prefixes: Mapping[str, str]
) -> Iterator[Solution]:
    """The rows of tables as `Result.to_arrow` gives them: columns of terms, then start and end."""
    for table in tables:
        ends = table.column(len(names) + 1).to_pylist()
        found = cells_of(table, len(names), prefixes)
        for (cells, start), end in zip(found, ends, strict=True):
            yield Solution(cells, start, end)


def cells_of(
    table: pa.Table, count: int, prefixes: Mapping[str, str]
) -> Iterator[tuple[tuple[Cell, ...], int]]:
    """The rows of a table: its first `count` columns, which are of terms, and the next, a time."""
    writer = Writer(prefixes)
    known: dict[str | None, Cell] = {None: Cell("")}
    columns = [table.column(k).to_pylist() for k in range(count + 1)]
    for *terms, time in zip(*columns, strict=True):
        for text in terms:
            if text not in known:
                known[text] = _cell(text, writer)
        yield tuple(known[text] for text in terms), time


def _cell(text: str, writer: Writer) -> Cell:
    """A term in N-Triples syntax, or the answer of ASK.

    >>> _cell('"5"^^<http://www.w3.org/2001/XMLSchema#integer>', Writer())
    Cell(text='5', number=True)
    """
    term = parse_term(text)
    if term is None:
        return Cell(visible(text))
    if isinstance(term, Literal) and is_valid_number(text):
        return Cell(visible(term.lexical), True)
    return Cell(visible(writer.term(term)))
