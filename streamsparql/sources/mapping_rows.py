"""The triples that a mapping makes of the rows of a table, many rows at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa

from streamsparql.algebra.functions import Run
from streamsparql.algebra.ntriples import unescape_ntriples
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term
from streamsparql.algebra.xsd.values import date_time_literal
from streamsparql.errors import SourceError
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import IRI_SORT, LITERAL_SORT, UNBOUND_SORT
from streamsparql.physical.lowering.lower import Catalog, lower
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.operators.access import Always
from streamsparql.physical.pipeline import Pipeline
from streamsparql.sources.cell_terms import column_of, ids_of
from streamsparql.sources.chunk import Chunk, Origin, Reject, told
from streamsparql.sources.encoder import Encoder, in_order
from streamsparql.sources.files import KNOWN, UNITS, is_file, name_of, opened, seekable
from streamsparql.sources.json_lines import objects
from streamsparql.sources.mapping import (
    FILE,
    ROW,
    ROWNUM,
    STREAM,
    TABLE,
    Mapped,
    Rules,
    UnknownColumn,
    columns_of,
    rules_of,
    variable_of,
)
from streamsparql.sources.paths import extension_of
from streamsparql.sources.separated import Separated
from streamsparql.sources.stamps import Stamps, of_column
from streamsparql.sources.tables import (
    arrow_batches,
    as_texts,
    beyond_calendar,
    parquet_rows,
    undecoded,
    value_of,
)

_TABLES = ("csv", "tsv", "jsonl", "parquet")


def mapped_chunks(mapped: Mapped, reading: Encoder, size: int, timed: bool) -> Iterator[Chunk]:
    """The triples of a mapped table, in the order of its rows."""
    source = mapped.source
    if is_file(source):
        with opened(source, reading.name) as (file, kind):
            name = name_of(source)
            if kind not in _TABLES:
                if extension_of(name or "") in KNOWN:
                    raise SourceError(f"{name}: a mapping is for a table, not for .{kind}")
                kind = "csv"
            if kind not in ("csv", "tsv"):
                _no_layout(mapped, name or reading.name)
            reading = reading.of(UNITS[kind], name)
            yield from _of_file(mapped, file, kind, Making(mapped, reading, timed, name), size)
            yield from reading.last()
        return
    batches = arrow_batches(source)
    if batches is None:
        kind = type(source).__name__
        raise SourceError(f"{reading.name}: a {kind} is no table that can be mapped")
    _no_layout(mapped, reading.name)
    making = Making(mapped, reading.of("row"), timed, None)
    for batch in batches:
        yield from making.rows(batch, size)


def _no_layout(mapped: Mapped, name: str) -> None:
    """An error where it is said how a CSV is written, and this is none."""
    if not mapped.header or mapped.delimiter is not None:
        raise SourceError(f"{name} is no CSV: header and delimiter do not go with it")


def _of_file(
    mapped: Mapped, file: IO[bytes], kind: str, making: Making, size: int
) -> Iterator[Chunk]:
    if kind in ("csv", "tsv"):
        separator = mapped.delimiter or ("\t" if kind == "tsv" else None)
        making.header = int(mapped.header)
        table = Separated(making.reading, making.choose, mapped.header)
        for rows, places, rejects in table.batches(file, size, separator):
            yield from making.parts(rows, places, size, rejects)
    elif kind == "jsonl":
        for found, places, rejects in objects(file, making.reading, size):
            if found:
                making.meet(found[0], dict.fromkeys(key for item in found for key in item))
            names = making.names
            wrong = {k: why for k, item in enumerate(found) for why in _unusable(item, names)}
            if wrong:
                reading = making.reading
                rejects += [reading.reject(int(places[k]), wrong[k], found[k]) for k in wrong]
                good = [k for k in range(len(found)) if k not in wrong]
                found, places = [found[k] for k in good], places[good]
            columns = [column_of([item.get(name) for item in found]) for name in names]
            rows = pa.RecordBatch.from_arrays(columns, names) if names else _nameless(len(found))
            yield from making.parts(rows, places, size, rejects)
    else:
        opened_file = seekable(file, making.reading)
        for batch in parquet_rows(opened_file, making.reading, making.choose, size):
            yield from making.rows(batch, size)


def _unusable(item: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    """Why an object of JSON has no term where one is looked for."""
    for value in map(item.get, names):
        if isinstance(value, dict | list):
            yield "a value that is used is an object or a list"
        elif isinstance(value, str) and not value.isascii() and _HALVES.search(value):
            yield "a value that is used has half a letter, which is no Unicode"


_HALVES = re.compile("[\ud800-\udfff]")


def _nameless(rows: int) -> pa.RecordBatch:
    """Rows of which no column is looked at."""
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], [""])


class Making:
    """One table on its way to triples."""

    def __init__(self, mapped: Mapped, reading: Encoder, timed: bool, file: str | None) -> None:
        self.reading = reading
        self.header = 0
        """How many rows are counted before the first."""
        self._text = mapped.mapping
        self._run = Run(date_time_literal(mapped.now))
        path = "" if file is None else os.path.abspath(file)
        self._table = Literal(f"{reading.stream} {path}")
        self._timed = timed
        self._beside = _beside(reading, file)
        self._columns: dict[str, str] = {}
        self._awaited: set[str] = set()
        """The variables of columns that may come, but did not yet."""
        self._rules: Rules | None = None
        self._rows = self._solutions = 0
        self._position = 1

    @property
    def known(self) -> bool:
        """Whether it is known which columns there are."""
        return self._rules is not None

    @property
    def names(self) -> list[str]:
        """The columns that are read, as the table calls them."""
        return [] if self._rules is None else [self._columns[v] for v in self._rules.used]

    def choose(self, names: Sequence[str]) -> list[str]:
        """Learns the columns of the table; gives those that are read."""
        self._columns = columns_of(names, self.reading.name)
        try:
            self._rules = rules_of(self._text, list(self._columns), self.reading.name, self._timed)
        except UnknownColumn as error:
            hint = "; if its first row names none: header=False, or --no-header" * bool(self.header)
            raise SourceError(f"{error}{hint}") from None
        return self.names

    def meet(self, first: Iterable[str], keys: Iterable[str]) -> None:
        """Learns the keys of some objects, which may have others than those before them.

        The very first object says which one tells the time, however many are read at once.
        """
        if self._rules is None:
            self._columns = columns_of(list(first), self.reading.name)
            known = list(self._columns)
            self._rules = rules_of(self._text, known, self.reading.name, self._timed, True)
            self._awaited = set(self._rules.used).difference(known)
            self._columns.update((variable, variable) for variable in self._awaited)
        for key in keys if self._awaited else ():
            variable = variable_of(key)
            if variable in self._awaited:
                self._columns[variable] = key
                self._awaited.discard(variable)

    def rows(self, batch: pa.RecordBatch, size: int) -> Iterator[Chunk]:
        """The triples of all rows of a batch of a table."""
        if not self.known:
            self.choose(batch.schema.names)
        positions = np.arange(self._position, self._position + batch.num_rows)
        self._position += batch.num_rows
        yield from self.parts(batch, positions, size, [])

    def parts(
        self, rows: pa.RecordBatch, positions: IntArray, size: int, rejects: Sequence[Reject]
    ) -> Iterator[Chunk]:
        """The triples of some rows, so many rows at a time that their triples fit the size."""
        if self._rules is None:
            step = max(1, len(positions))
        else:
            step = max(1, size // max(1, len(self._rules.template)))
        for at in range(0, max(1, len(positions)), step):
            here = positions[at : at + step]
            chunk = self._chunk(rows.slice(at, step), here, rejects if not at else ())
            yield from chunk.parts(size)

    def _chunk(self, rows: pa.RecordBatch, positions: IntArray, rejects: Sequence[Reject]) -> Chunk:
        rules = self._rules
        if rules is None:
            return self.reading.empty(rejects)
        cells = {v: rows.column(rows.schema.get_field_index(self._columns[v])) for v in rules.used}

        def item(k: int) -> object:
            return {self._columns[v]: told(value_of(column, k)) for v, column in cells.items()}

        wrong = undecoded(list(cells.values()))
        for variable in cells.keys() - set(rules.stamps):
            far = np.flatnonzero(beyond_calendar(cells[variable])).tolist()
            why = f"the value of {self._columns[variable]} is no time of the calendar"
            wrong.update(dict.fromkeys(far, why))
        solutions, row = self._solved(rules, cells, positions)
        since, stamps, untimed = self._stamps(rules, cells, solutions, row)
        wrong = {**untimed, **wrong}
        found = [self.reading.reject(int(positions[k]), why, item(k)) for k, why in wrong.items()]
        if wrong:
            good = ~np.isin(row, np.fromiter(wrong, np.int64))
            solutions, row, stamps = solutions.where(good), row[good], stamps[good]
            since = None if since is None else since[good]
        rejects = [*rejects, *found]
        chunk = self._filled(rules, solutions, row, (since, stamps), positions, item, rejects)
        chunk.rows_without_triples = len(positions) - len(wrong) - _different(chunk.positions)
        return chunk

    # -- solutions ----------------------------------------------------------------------------

    def _solved(
        self, rules: Rules, cells: Mapping[str, pa.Array], positions: IntArray
    ) -> tuple[Batch, IntArray]:
        """The solutions of the WHERE clause, in the order of the rows, and the row of each."""
        terms = self.reading.terms
        count = len(positions)
        columns = {v: ids_of(cells[v], self._columns[v], terms) for v in rules.used}
        first, self._rows = self._rows, self._rows + count
        columns[ROW] = terms.of_integers(np.arange(first, self._rows))
        columns[TABLE] = np.full(count, terms.id_of(self._table, keep=True))
        for name in rules.beside:
            if name == ROWNUM:
                columns[name] = terms.of_integers(positions - self.header)
            else:
                term = self._beside[name]
                columns[name] = np.full(count, 0 if term is None else terms.id_of(term, keep=True))
        start, end = np.zeros(count, np.int64), np.full(count, INFINITY, np.int64)
        catalog = Catalog(results={rules.table: Batch(columns, start, end)})
        operator = lower(rules.plan, terms, self._run, catalog).plain
        if isinstance(operator, Always):
            found = operator.rows
        else:
            found, _ = Pipeline(operator, terms).step({}, {})
        found = found.expanded()
        row = terms.integers_of(found.column(ROW)) - first
        if (row[1:] < row[:-1]).any():
            order = np.argsort(row, kind="stable")
            found, row = found.take(order), row[order]
        return found, row

    # -- stamps -------------------------------------------------------------------------------

    def _stamps(
        self, rules: Rules, cells: Mapping[str, pa.Array], solutions: Batch, row: IntArray
    ) -> tuple[IntArray | None, IntArray, dict[int, str]]:
        """The starts and stamps of solutions, and the rows that have none, with reasons."""
        if not rules.stamps:
            return None, np.zeros(len(row), np.int64), {}
        read = [self._stamp(v, cells, solutions, row) for v in rules.stamps]
        since = None
        stamps, why = read[-1]
        if len(read) == 2:
            since = read[0][0]
            stamps, why = in_order(*read)
        untimed: dict[int, str] = {}
        for k, reason in why.items():
            untimed.setdefault(int(row[k]), reason)
        return since, stamps, untimed

    def _stamp(
        self, variable: str, cells: Mapping[str, pa.Array], solutions: Batch, row: IntArray
    ) -> Stamps:
        column = cells.get(variable)
        if column is not None:
            texts = as_texts(column)
            return of_column((column if texts is None else texts).take(pa.array(row)))
        ids, terms = solutions.column(variable), self.reading.terms
        encoded = terms.dictionary(ids)
        values: list[Any] = [_lexical(text) for text in encoded.dictionary.to_pylist()]
        texts = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(values, pa.string()))
        return of_column(texts.dictionary_decode())

    # -- triples ------------------------------------------------------------------------------

    def _filled(
        self,
        rules: Rules,
        solutions: Batch,
        row: IntArray,
        times: tuple[IntArray | None, IntArray],
        positions: IntArray,
        item: Any,
        rejects: list[Reject],
    ) -> Chunk:
        """The template's triples of solutions, those of one after those of the one before."""
        count, width = len(row), len(rules.template)
        places = _Places(self, solutions)
        columns = [np.empty((count, width), np.int64) for _ in range(3)]
        good = np.empty((count, width), np.bool_)
        for k, pattern in enumerate(rules.template):
            good[:, k] = True
            for column, part, place in zip(columns, pattern, "spo", strict=True):
                column[:, k] = places.ids(part)
                good[:, k] &= places.fits(part, place)
        self._solutions += count
        s, p, o = (column.ravel() for column in columns)
        let = good.ravel()
        if rules.repeats or _different(row) < count:
            let = let & _first(np.repeat(row, width), s, p, o, let)
        of = np.repeat(np.arange(count), width)[let]
        s, p, o = s[let], p[let], o[let]
        since, stamps = times
        wanted = self.reading.wanted
        kept = None if wanted is None else np.flatnonzero(wanted.mask(p))
        at = of if kept is None else of[kept]
        if kept is not None:
            s, p, o = s[kept], p[kept], o[kept]
        rejected = self.reading.checked([*rejects, *self.reading.taken()])
        return Chunk(
            *(s, p, o, None if since is None else since[at], stamps[of], kept),
            *(positions[row[of]], len(of) + len(rejected), rejected),
            lambda k: item(int(row[of[k]])),
            (Origin(self.reading.name, self.reading.unit),),
        )

    def new_nodes(self, label: str, count: int) -> IntArray:
        """A blank node for each solution."""
        first, scope = self._solutions, self.reading.scope
        texts = [f"_:{label}.{k}" for k in range(first, first + count)]
        return self.reading.terms.encode(texts, scope)


class _Places:
    """The terms in the places of the template, each worked out once."""

    def __init__(self, making: Making, solutions: Batch) -> None:
        self._making, self._solutions = making, solutions
        self._terms = making.reading.terms
        self._ids: dict[Term | Variable, IntArray] = {}
        self._sorts: dict[Variable, Any] = {}

    def ids(self, part: Term | Variable) -> IntArray:
        """The ids of a part of a pattern, by solution."""
        if part not in self._ids:
            count = len(self._solutions)
            if isinstance(part, Variable):
                self._ids[part] = self._solutions.column(part.name)
            elif isinstance(part, BlankNode):
                self._ids[part] = self._making.new_nodes(part.label.strip("."), count)
            else:
                self._ids[part] = np.full(count, self._terms.id_of(part, keep=True))
        return self._ids[part]

    def fits(self, part: Term | Variable, place: str) -> BoolArray | bool:
        """Where it can stand in a place of a triple."""
        if not isinstance(part, Variable):
            return not (isinstance(part, Literal) and place == "s") and (
                place != "p" or isinstance(part, IRI)
            )
        if part not in self._sorts:
            self._sorts[part] = self._terms.sorts(self.ids(part))
        sorts = self._sorts[part]
        found: BoolArray = sorts != UNBOUND_SORT
        if place == "p":
            found = sorts == IRI_SORT
        elif place == "s":
            found &= sorts != LITERAL_SORT
        return found


def _first(row: IntArray, s: IntArray, p: IntArray, o: IntArray, among: BoolArray) -> BoolArray:
    """Which triples are the first of their kind in their row: what a row gives is a graph."""
    index = np.flatnonzero(among)
    _, first = np.unique(np.stack([row, s, p, o])[:, index], axis=1, return_index=True)
    found = np.zeros(len(row), np.bool_)
    found[index[first]] = True
    return found


def _different(rows: IntArray) -> int:
    """How many rows these are, in their order."""
    return int(np.count_nonzero(np.diff(rows))) + min(len(rows), 1)


def _beside(reading: Encoder, file: str | None) -> dict[str, Term | None]:
    """What is bound beside the columns: the stream and the file, where there are any."""
    name = reading.stream
    named = name.startswith("<") and name.endswith(">")
    inside = file is not None and file != "standard input"
    return {
        STREAM: IRI(name[1:-1]) if named else None,
        FILE: Literal(os.path.basename(file)) if inside and file else None,
    }


def _lexical(text: str | None) -> str | None:
    """The text of a plain string; another term as it is written."""
    if text is not None and text[:1] == '"' and text[-1:] == '"':
        return unescape_ntriples(text[1:-1]) if "\\" in text else text[1:-1]
    return text
