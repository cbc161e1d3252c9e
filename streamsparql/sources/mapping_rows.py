"""The triples that a mapping produces from the rows of a table, in batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from streamsparql.algebra.functions import Run
from streamsparql.algebra.ntriples import unescape_ntriples
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term
from streamsparql.algebra.xsd.values import date_time_literal
from streamsparql.errors import SourceError
from streamsparql.physical.batch import UNBOUND, Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import IRI_SORT, LITERAL_SORT, UNBOUND_SORT
from streamsparql.sources.auto_mapping import Rows, guessed_mapping
from streamsparql.sources.cell_terms import ids_of, text_ids_of
from streamsparql.sources.chunk import Chunk, Origin, Reject, Rejected, printable
from streamsparql.sources.encoder import Encoder, event_stamps
from streamsparql.sources.failed_cells import CellExample, FailedCells
from streamsparql.sources.mapping import (
    FILE,
    ROW_VARIABLE,
    ROWNUM,
    STREAM,
    TABLE_VARIABLE,
    CompiledMapping,
    Mapped,
    UnknownColumn,
    columns_by_variable,
    compile_mapping,
    text_variable,
    variable_of_column,
)
from streamsparql.sources.mapping_evaluation import FailedRows, evaluate_mapping
from streamsparql.sources.records import RecordColumns, path_name, rows_of_records
from streamsparql.sources.stamps import ParsedStamps
from streamsparql.sources.tables import as_texts, beyond_calendar, cell_value, not_utf8


class TripleMaker:
    """An evaluator of a mapping over the rows of one table."""

    def __init__(
        self,
        mapped: Mapped,
        encoder: Encoder,
        timed: bool,
        file: str | None,
    ) -> None:
        self.encoder = encoder
        self.header = 0
        """The number of rows before the first one of data."""
        self._mapped = mapped
        self._text = mapped.mapping
        self._run = Run(date_time_literal(mapped.now))
        path = "" if file is None else os.path.abspath(file)
        self._reading = f"{mapped.reading} " if mapped.reading else ""
        """What distinguishes new terms from those of earlier tables of the stream."""
        self._table = Literal(f"{self._reading}{encoder.stream} {path}")
        self._timed = timed
        self._extra = _extra_terms(encoder, file)
        self._columns: dict[str, str] = {}
        """The names of the columns in the table, by variable."""
        self._records = RecordColumns()
        self._keys = encoder.reading.cells.keys_of(encoder.stream)
        self._mapping: CompiledMapping | None = None
        self._rows = self._solutions = 0

    def learn_columns(self, names: Sequence[str]) -> list[str]:
        """Compile the mapping for the columns of the table; return those that it reads.

        A mapping that is guessed from the first rows may read any of them.
        """
        self._columns = columns_by_variable(names, self.encoder.name)
        if self._text is None:
            return list(names)
        self._compile()
        return self._names()

    @property
    def guesses(self) -> bool:
        """Whether the mapping is still to be guessed from the first rows."""
        return self._text is None

    def guess(self, rows: Rows) -> None:
        """Guess the mapping from the first rows, or records."""
        self._text = guessed_mapping(self._mapped, rows)
        if isinstance(rows, pa.RecordBatch):
            self._columns = self._columns or columns_by_variable(
                rows.schema.names, self.encoder.name
            )
            self._compile()

    def _compile(self, more: bool = False) -> CompiledMapping:
        """Compile the mapping for the columns that are known; there may be `more`."""
        assert self._text is not None
        name, stamp = self.encoder.name, self.encoder.reading.column
        stamp = None if stamp is None else variable_of_column(stamp)
        try:
            self._mapping = compile_mapping(
                self._text, list(self._columns), name, self._timed, more, stamp
            )
        except UnknownColumn as error:
            hint = "; if its first row is not a header, pass header=False (--no-header)"
            raise SourceError(f"{error}{hint * bool(self.header)}") from None
        return self._mapping

    def _names(self) -> list[str]:
        """Return the columns that the mapping reads, by their names in the table."""
        return [] if self._mapping is None else [self._columns[v] for v in self._mapping.used]

    def learn_records(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Compile the mapping for the first record; note paths that occur in later ones only.

        The very first record determines the timestamps, even if several are read at once.
        """
        if self._mapping is None and records:
            self._records.start(records[0], self.encoder.name)
            self._columns = {v: path_name(path) for v, path in self._records.paths.items()}
            used = self._compile(more=True).used
            self._keys.start(self.encoder.name, used, list(map(str, records[0])))
        if self._mapping is not None:
            self._records.learn(records, self._mapping.used)
            paths = self._records.paths
            self._keys.found.update(paths)
            self._columns |= {v: path_name(paths.get(v, (v,))) for v in self._mapping.used}

    def records(
        self,
        records: Sequence[Mapping[str, Any]],
        positions: IntArray,
        size: int,
        rejects: Sequence[Reject],
    ) -> Iterator[Chunk]:
        """Yield the triples of records, in chunks of up to `size` triples."""
        self.learn_records(records)
        used = () if self._mapping is None else self._mapping.used
        rows, wrong = rows_of_records(records, self._records.of(used))
        if wrong:
            unusable = [
                self.encoder.reject(int(positions[k]), why, records[k]) for k, why in wrong.items()
            ]
            rejects = [*rejects, *unusable]
            good = np.delete(np.arange(len(records)), list(wrong))
            rows, positions = rows.take(pa.array(good)), positions[good]
        yield from self.parts(rows, positions, size, rejects)

    def parts(
        self, rows: pa.RecordBatch, positions: IntArray, size: int, rejects: Sequence[Reject]
    ) -> Iterator[Chunk]:
        """Yield the triples of a batch of rows, in chunks of up to `size` triples."""
        if not self._columns and self._text is not None:
            self.learn_columns(rows.schema.names)
        if self._mapping is None:
            step = max(1, len(positions))
        else:
            step = max(1, size // max(1, len(self._mapping.template)))
        for at in range(0, max(1, len(positions)), step):
            here = positions[at : at + step]
            chunk = self._chunk(rows.slice(at, step), here, rejects if not at else ())
            yield from chunk.parts(size)

    def _chunk(self, rows: pa.RecordBatch, positions: IntArray, rejects: Sequence[Reject]) -> Chunk:
        mapping = self._mapping
        if mapping is None:
            return self.encoder.empty(rejects)
        fields = rows.schema
        cells = {v: rows.column(fields.get_field_index(self._columns[v])) for v in mapping.used}

        def item(k: int) -> object:
            return {
                self._columns[v]: printable(cell_value(column, k)) for v, column in cells.items()
            }

        wrong = not_utf8(list(cells.values()))
        for variable in cells.keys() - set(mapping.stamps):
            far = np.flatnonzero(beyond_calendar(cells[variable])).tolist()
            why = f"the value of {self._columns[variable]} is outside the years 1 to 9999"
            wrong.update(dict.fromkeys(far, why))
        solutions, row = self._evaluate(mapping, cells, positions)
        since, stamps, untimed = self._stamps(mapping, cells, solutions, row)
        wrong = {**untimed, **wrong}
        unusable = [self.encoder.reject(int(positions[k]), wrong[k], item(k)) for k in wrong]
        if wrong:
            good = ~np.isin(row, np.fromiter(wrong, np.int64))
            solutions, row, stamps = solutions.where(good), row[good], stamps[good]
            since = None if since is None else since[good]
        rejects = [*rejects, *unusable]
        chunk = self._fill_template(
            mapping, solutions, row, (since, stamps), positions, item, rejects
        )
        chunk.rows_without_triples = len(positions) - len(wrong) - _count_runs(chunk.positions)
        if chunk.rows_without_triples:
            self._log_without_triples(mapping, solutions, positions[row], chunk)
            self.encoder.reading.cells.unsolved += len(positions) - len(wrong) - _count_runs(row)
        return chunk

    def _log_without_triples(
        self, mapping: CompiledMapping, solutions: Batch, positions: IntArray, chunk: Chunk
    ) -> None:
        """Log which variables of the template are unbound in rows without triples."""
        fruitless = ~np.isin(positions, chunk.positions)
        variables = {part for pattern in mapping.template for part in pattern}
        for variable in variables:
            if isinstance(variable, Variable):
                unbound = fruitless & (solutions.column(variable.name) == UNBOUND)
                count = _count_runs(positions[unbound])
                if count:
                    self.encoder.reading.cells.unbound[variable.name] += count

    # -- solutions ----------------------------------------------------------------------------

    def _evaluate(
        self, mapping: CompiledMapping, cells: Mapping[str, pa.Array], positions: IntArray
    ) -> tuple[Batch, IntArray]:
        """Return the solutions of the WHERE clause, in the order of the rows, and their rows."""
        terms = self.encoder.terms
        count = len(positions)
        columns = {v: ids_of(cells[v], self._columns[v], terms) for v in mapping.used}
        columns |= {
            text_variable(v).name: text_ids_of(cells[v], self._columns[v], terms)
            for v in mapping.texts
        }
        first, self._rows = self._rows, self._rows + count
        columns[ROW_VARIABLE] = terms.of_integers(np.arange(first, self._rows))
        columns[TABLE_VARIABLE] = np.full(count, terms.id_of(self._table, keep=True))
        for name in mapping.extra:
            if name == ROWNUM:
                columns[name] = terms.of_integers(positions - self.header)
            else:
                term = self._extra[name]
                columns[name] = np.full(count, 0 if term is None else terms.id_of(term, keep=True))
        report = partial(self._log_failed, positions, first)
        solutions = evaluate_mapping(mapping, columns, terms, self._run, report)
        row = terms.integers_of(solutions.column(ROW_VARIABLE)) - first
        if (row[1:] < row[:-1]).any():
            order = np.argsort(row, kind="stable")
            solutions, row = solutions.take(order), row[order]
        return solutions, row

    def _log_failed(self, positions: IntArray, first: int, failed: FailedRows) -> None:
        """Log the cells of rows for which an expression has no value; strict runs end here."""
        encoder = self.encoder
        places = positions[failed.rows - first].tolist()
        examples = tuple(
            CellExample(value, encoder.name, position, encoder.unit)
            for value, position in zip(failed.values, places[: len(failed.values)], strict=True)
        )
        if encoder.strict:
            reason = f"{failed.expression} has no value for {failed.values[0]}"
            raise Rejected(encoder.reject(places[0], reason, None))
        names = tuple(self._columns.get(v, v) for v in failed.columns)
        encoder.reading.cells.add(FailedCells(names, failed.expression, len(places), examples))

    # -- stamps -------------------------------------------------------------------------------

    def _stamps(
        self,
        mapping: CompiledMapping,
        cells: Mapping[str, pa.Array],
        solutions: Batch,
        row: IntArray,
    ) -> tuple[IntArray | None, IntArray, dict[int, str]]:
        """Return the starts and stamps of solutions, and reasons for the rows without a stamp."""
        if not mapping.stamps:
            return None, np.zeros(len(row), np.int64), {}
        read = [self._stamp(v, cells, solutions, row) for v in mapping.stamps]
        since = None
        stamps, why = read[-1]
        if len(read) == 2:
            since = read[0][0]
            stamps, why = event_stamps(*read)
        untimed: dict[int, str] = {}
        for k, reason in why.items():
            untimed.setdefault(int(row[k]), reason)
        return since, stamps, untimed

    def _stamp(
        self, variable: str, cells: Mapping[str, pa.Array], solutions: Batch, row: IntArray
    ) -> ParsedStamps:
        column = cells.get(variable)
        if column is not None:
            texts = as_texts(column)
            return self.encoder.stamps.of_column(
                (column if texts is None else texts).take(pa.array(row))
            )
        ids, terms = solutions.column(variable), self.encoder.terms
        encoded = terms.dictionary(ids)
        values: list[Any] = [_string_value(text) for text in encoded.dictionary.to_pylist()]
        texts = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(values, pa.string()))
        return self.encoder.stamps.of_column(texts.dictionary_decode())

    # -- triples ------------------------------------------------------------------------------

    def _fill_template(
        self,
        mapping: CompiledMapping,
        solutions: Batch,
        row: IntArray,
        times: tuple[IntArray | None, IntArray],
        positions: IntArray,
        item: Any,
        rejects: list[Reject],
    ) -> Chunk:
        """Return the triples of the template for each solution, in the order of the solutions."""
        count, width = len(row), len(mapping.template)
        places = _Places(self, solutions)
        columns = [np.empty((count, width), np.int64) for _ in range(3)]
        good = np.empty((count, width), np.bool_)
        for k, pattern in enumerate(mapping.template):
            good[:, k] = True
            for column, part, place in zip(columns, pattern, "spo", strict=True):
                column[:, k] = places.ids(part)
                good[:, k] &= places.fits(part, place)
        self._solutions += count
        s, p, o = (column.ravel() for column in columns)
        valid = good.ravel()
        if mapping.repeats or _count_runs(row) < count:
            valid = valid & _first_in_row(np.repeat(row, width), s, p, o, valid)
        solution = np.repeat(np.arange(count), width)[valid]
        s, p, o = s[valid], p[valid], o[valid]
        since, stamps = times
        wanted = self.encoder.wanted
        kept = None if wanted is None else np.flatnonzero(wanted.mask(p))
        at = solution if kept is None else solution[kept]
        if kept is not None:
            s, p, o = s[kept], p[kept], o[kept]
        rejected = self.encoder.sort_rejects([*rejects, *self.encoder.take_pending()])
        return Chunk(
            *(s, p, o, None if since is None else since[at], stamps[solution], kept),
            *(positions[row[solution]], len(solution) + len(rejected), rejected),
            lambda k: item(int(row[solution[k]])),
            (Origin(self.encoder.name, self.encoder.unit),),
        )

    def new_nodes(self, label: str, count: int) -> IntArray:
        """Return the ids of new blank nodes, one per solution."""
        first, scope = self._solutions, self.encoder.scope
        label += self._reading and f".r{self._reading.strip()}"
        texts = [f"_:{label}.{k}" for k in range(first, first + count)]
        return self.encoder.terms.encode(texts, scope)


class _Places:
    """The terms of the parts of the template, each computed once."""

    def __init__(self, maker: TripleMaker, solutions: Batch) -> None:
        self._maker, self._solutions = maker, solutions
        self._terms = maker.encoder.terms
        self._ids: dict[Term | Variable, IntArray] = {}
        self._sorts: dict[Variable, Any] = {}

    def ids(self, part: Term | Variable) -> IntArray:
        """Return the ids of a part of a pattern, one per solution."""
        if part not in self._ids:
            count = len(self._solutions)
            if isinstance(part, Variable):
                self._ids[part] = self._solutions.column(part.name)
            elif isinstance(part, BlankNode):
                self._ids[part] = self._maker.new_nodes(part.label.strip("."), count)
            else:
                self._ids[part] = np.full(count, self._terms.id_of(part, keep=True))
        return self._ids[part]

    def fits(self, part: Term | Variable, place: str) -> BoolArray | bool:
        """Return for which solutions a part is valid in a place of a triple: `s`, `p` or `o`."""
        if not isinstance(part, Variable):
            return not (isinstance(part, Literal) and place == "s") and (
                place != "p" or isinstance(part, IRI)
            )
        if part not in self._sorts:
            self._sorts[part] = self._terms.sorts(self.ids(part))
        sorts = self._sorts[part]
        valid: BoolArray = sorts != UNBOUND_SORT
        if place == "p":
            valid = sorts == IRI_SORT
        elif place == "s":
            valid &= sorts != LITERAL_SORT
        return valid


def _first_in_row(
    row: IntArray, s: IntArray, p: IntArray, o: IntArray, among: BoolArray
) -> BoolArray:
    """Return which triples are the first of equal ones in their row: a row produces a graph."""
    index = np.flatnonzero(among)
    _, places = np.unique(np.stack([row, s, p, o])[:, index], axis=1, return_index=True)
    first = np.zeros(len(row), np.bool_)
    first[index[places]] = True
    return first


def _count_runs(rows: IntArray) -> int:
    """Return the number of distinct rows; equal ones must be adjacent."""
    return int(np.count_nonzero(np.diff(rows))) + min(len(rows), 1)


def _extra_terms(encoder: Encoder, file: str | None) -> dict[str, Term | None]:
    """Return the values of STREAM and FILE; None if the name is unknown."""
    name = encoder.stream
    named = name.startswith("<") and name.endswith(">")
    has_path = file is not None and file != "standard input"
    return {
        STREAM: IRI(name[1:-1]) if named else None,
        FILE: Literal(os.path.basename(file)) if has_path and file else None,
    }


def _string_value(text: str | None) -> str | None:
    """Return the value of a plain string; another term in N-Triples syntax."""
    if text is not None and text[:1] == '"' and text[-1:] == '"':
        return unescape_ntriples(text[1:-1]) if "\\" in text else text[1:-1]
    return text
