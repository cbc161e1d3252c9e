"""Rows as text: a table to read, CSV, JSON lines, N-Quads.

A line is a row with its times: `start` and `end` of its validity, or the `instant` of the report
that it is in. A table is for readers: it shortens IRIs with the query's prefixes. CSV of SELECT and
ASK is SPARQL's (values only); that of CONSTRUCT and DESCRIBE has terms in N-Triples syntax, so that
it can be a source again, as N-Quads can. JSON lines have terms as SPARQL's JSON format has them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term
from streamsparql.physical.operator import INFINITY
from streamsparql.terms import term
from streamsparql.translator.text import Writer

if TYPE_CHECKING:
    from streamsparql.query import Query
    from streamsparql.results import Result

TRIPLE = ("subject", "predicate", "object")
_WIDTH_FROM = 1000
_NUMBERS = {XSD + kind for kind in ("integer", "decimal", "double", "float")}

Cell = Term | bool | None


class Line(NamedTuple):
    """A row, with `start` and `end`, or with `instant`; None is an end that never comes."""

    cells: tuple[Cell, ...]
    times: tuple[int | None, ...]


class Lines:
    """What a run gives, line by line, as it becomes known."""

    def __init__(
        self, query: Query, result: Result, report: str | None = None, every: int | None = None
    ) -> None:
        self.form = query.form
        self.prefixes: Mapping[str, str] = query.translation.names.prefixes
        self.names = {"select": query.variables, "ask": ("answer",)}.get(query.form, TRIPLE)
        self.reports = report is not None or every is not None
        self._result, self._report, self._every = result, report, every
        self._cell = remembering(_cell)

    @property
    def triples(self) -> bool:
        """Whether the lines are triples."""
        return self.form in ("construct", "describe")

    @property
    def times(self) -> tuple[str, ...]:
        """How the times are called; no variable of the query is called the same."""
        return unlike(("instant",) if self.reports else ("start", "end"), self.names)

    def __iter__(self) -> Iterator[Line]:
        if not self.reports:
            for row in self._result:
                times = (row.start, None if row.end == INFINITY else row.end)
                yield Line(tuple(map(self._cell, row.values())), times)
            return
        for instant, rows in self._result.report(self._report, self._every):
            for cells in self._cells(rows):
                yield Line(cells, (instant,))

    def _cells(self, rows: Any) -> Iterator[tuple[Cell, ...]]:
        """The lines of one report: of a boolean or none, of a graph, of a list of rows."""
        if self.form == "ask":
            yield from [] if rows is None else [(bool(rows),)]
        elif self.triples:
            yield from sorted((tuple(map(self._cell, triple)) for triple in rows), key=_written)
        else:
            for row in rows:
                yield tuple(self._cell(row[name]) for name in self.names)


def unlike(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The names, with as many underscores as it takes to be none of the others.

    >>> unlike(("start", "end"), ("x", "end"))
    ('start', 'end_')
    """
    made = []
    for name in names:
        while name in others:
            name += "_"
        made.append(name)
    return tuple(made)


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, bool) else term(value)


_Made = TypeVar("_Made")
_REMEMBERED = 100_000


def remembering(make: Callable[[Any], _Made]) -> Callable[[Any], _Made]:
    """The same function, for objects that come again and again, as the terms of a batch do.

    >>> shout = remembering(str.upper)
    >>> shout("a"), shout("a")
    ('A', 'A')
    """
    kept: dict[int, tuple[Any, _Made]] = {}

    def remembered(value: Any) -> _Made:
        found = kept.get(id(value))
        if found is None or found[0] is not value:
            if len(kept) >= _REMEMBERED:
                kept.clear()
            found = kept[id(value)] = (value, make(value))
        return found[1]

    return remembered


def _written(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    return tuple(map(str, cells))


class Table:
    """A table, aligned by its first lines; longer cells in later ones push the others aside."""

    def __init__(self, file: IO[str], lines: Lines) -> None:
        self._file = file
        self._writer = Writer(lines.prefixes)
        heads = [f"?{name}" if lines.form == "select" else name for name in lines.names]
        self._held: list[Sequence[str]] = [[*heads, *lines.times]]
        self._right = [True] * len(self._held[0])
        self._widths: list[int] = []

    def line(self, line: Line) -> None:
        """Takes in a line."""
        for k, cell in enumerate(line.cells):
            if not self._widths and cell is not None and not _is_number(cell):
                self._right[k] = False
        texts = [*map(self._text, line.cells), *("…" if t is None else str(t) for t in line.times)]
        if self._widths:
            self._write(texts)
            return
        self._held.append(texts)
        if len(self._held) > _WIDTH_FROM:
            self.flush()

    def flush(self) -> None:
        """Writes what is held to see how wide the columns are."""
        if not self._widths:
            self._widths = [max(map(len, column)) for column in zip(*self._held, strict=True)]
            for texts in self._held:
                self._write(texts)
            self._held.clear()
        self._file.flush()

    def _text(self, cell: Cell) -> str:
        if cell is None:
            return ""
        if isinstance(cell, bool):
            return str(cell).lower()
        return cell.lexical if _is_number(cell) else self._writer.term(cell)

    def _write(self, texts: Sequence[str]) -> None:
        cells = zip(texts, self._widths, self._right, strict=True)
        padded = [t.rjust(width) if right else t.ljust(width) for t, width, right in cells]
        self._file.write("  ".join(padded).rstrip() + "\n")


def _is_number(cell: Cell) -> TypeGuard[Literal]:
    return isinstance(cell, Literal) and cell.datatype.value in _NUMBERS


class Csv:
    """SPARQL's CSV, with times; of triples, terms in N-Triples syntax."""

    def __init__(self, file: IO[str], lines: Lines) -> None:
        self._file = file
        self._text = remembering(_in_ntriples if lines.triples else _plain)
        self._write = csv.writer(file, lineterminator="\n").writerow
        self._write([*lines.names, *lines.times])

    def line(self, line: Line) -> None:
        """Takes in a line."""
        self._write([*map(self._text, line.cells), *line.times])

    def flush(self) -> None:
        """Nothing is held back."""
        self._file.flush()


def _plain(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return str(cell).lower()
        case IRI():
            return cell.value
        case Literal():
            return cell.lexical
    return str(cell)


def _in_ntriples(cell: Cell) -> str:
    return "" if cell is None else str(cell)


class JsonLines:
    """An object on each line: by name, terms as in SPARQL's JSON results, where there is one.

    The answer of ASK is a boolean, times are numbers, and null where a row never ends.
    """

    def __init__(self, file: IO[str], lines: Lines) -> None:
        self._file, self._names, self._times = file, lines.names, lines.times
        self._term = remembering(as_json)

    def line(self, line: Line) -> None:
        """Takes in a line."""
        cells = zip(self._names, line.cells, strict=True)
        made = {name: self._term(cell) for name, cell in cells if cell is not None}
        made.update(zip(self._times, line.times, strict=True))
        self._file.write(json.dumps(made, ensure_ascii=False) + "\n")

    def flush(self) -> None:
        """Nothing is held back."""
        self._file.flush()


def as_json(cell: Term | bool) -> Any:
    """A term as SPARQL's JSON results have it.

    >>> as_json(Literal("chat", language="fr"))
    {'type': 'literal', 'value': 'chat', 'xml:lang': 'fr'}
    """
    match cell:
        case bool():
            return cell
        case IRI(value):
            return {"type": "uri", "value": value}
        case BlankNode(label):
            return {"type": "bnode", "value": label}
    made = {"type": "literal", "value": cell.lexical}
    if cell.language is not None:
        made["xml:lang"] = cell.language
    elif cell.datatype.value != XSD + "string":
        made["datatype"] = cell.datatype.value
    return made


class NQuads:
    """N-Quads whose fourth term is the triple's start, or its report's instant: a stream again."""

    def __init__(self, file: IO[str], lines: Lines) -> None:
        self._file = file
        self._text = remembering(str)

    def line(self, line: Line) -> None:
        """Takes in a line."""
        triple = " ".join(map(self._text, line.cells))
        self._file.write(f'{triple} "{line.times[0]}"^^<{XSD}integer> .\n')

    def flush(self) -> None:
        """Nothing is held back."""
        self._file.flush()


writers: Mapping[str, type[Table] | type[Csv] | type[JsonLines] | type[NQuads]] = {
    "table": Table,
    "csv": Csv,
    "jsonl": JsonLines,
    "nq": NQuads,
}
"""What writes lines, by the name of the format."""
