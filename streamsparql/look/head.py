"""The head of a source: what its first rows or items show, and how to query it.

Of a table: its columns with their types, the column with the timestamps, the first rows, and a
mapping that works as it is. Of a stream or a graph in RDF: the predicates, with examples. Both end
with a query to begin with.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamsparql.errors import EngineError, SourceError
from streamsparql.look.first_query import query_over_columns, query_over_predicates, window_for
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.run.notes import WriteOption, in_python
from streamsparql.sources import read_graph, read_stream
from streamsparql.sources.auto_mapping import (
    SAMPLE_ROWS,
    Guess,
    first_rows,
    guess,
    namespace_of,
    table_name,
)
from streamsparql.sources.chunk import Reject
from streamsparql.sources.column_types import Column
from streamsparql.sources.files import file_name_of, is_file, open_source
from streamsparql.sources.folders import files_of
from streamsparql.sources.local_times import zone_of
from streamsparql.sources.mapped_tables import TABLE_FORMATS, TableSample, sample_of
from streamsparql.sources.mapping import Mapped
from streamsparql.sources.reading import Reading
from streamsparql.sources.records import are_messages, is_message, path_name, paths_in, value_at
from streamsparql.sources.stamps import PER_SECOND, UNIT_NAMES, StampReader
from streamsparql.sources.tables import cell_value, has_item_columns
from streamsparql.text.instants import instant
from streamsparql.text.visible import isolated
from streamsparql.text.widths import cells, wrap

_ROWS = 5
_ITEMS = 10_000
"""The number of items of a stream that are read."""
_MAX_CELL = 32
_EXAMPLES = 3
_BYTES = 1 << 18
"""The number of bytes that are read of an open file or a pipe."""
_FORMATS = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines", "parquet": "Parquet"}
_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


@dataclass(frozen=True)
class Stamps:
    """The timestamps of the first items."""

    first: int
    last: int
    delay: int
    """The milliseconds by which they are out of order."""
    unit: str | None
    """The unit, if they are numbers."""
    count: int


@dataclass(frozen=True)
class Head:
    """What the first rows or items of a source show; its text is for readers."""

    name: str
    """The name of the file, or what the source is."""
    summary: str
    """The format, and how much was read."""
    sections: tuple[tuple[str, str], ...]
    """The parts of the text, each with its title."""
    mapping: str | None
    """The mapping of a table."""
    query: str
    """A query to begin with."""

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.summary}"]
        parts += [f"{title}\n\n{text}" if title else text for title, text in self.sections]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        """Return the display in a notebook."""
        return f"<pre>{escape(str(self))}</pre>"


def head(
    source: Any,
    *,
    rows: int = _ROWS,
    header: bool | None = None,
    delimiter: str | None = None,
    namespace: str | None = None,
    time_unit: str | None = None,
    time_zone: str | None = None,
    stamp_from: str | None = None,
    option: WriteOption = in_python,
) -> Head:
    """Return what the first rows or items of a source show, and how to query it.

    `source` is a file, a folder, a table, records or items. Of a table it shows the columns, the
    timestamps, the first `rows`, and a mapping that works as it is; of RDF the predicates. The
    other options are those of `mapped` and `run`; `option` writes those that the text mentions.

    >>> shown = head([{"sensor": "north", "v": 7, "time": "2026-03-01 08:00:00"}])
    >>> print(shown.mapping)
    PREFIX : <http://example.org/data#>
    PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    CONSTRUCT {
      [] :sensor ?sensor ;
         :v ?v_ ;
         :time ?time_ .
    }
    WHERE {
      BIND(xsd:integer(?v) AS ?v_)
      BIND(xsd:dateTime(REPLACE(?time, " ", "T")) AS ?time_)
      BIND(?time AS ?timestamp)
    }
    <BLANKLINE>
    """
    if time_unit is not None and time_unit not in PER_SECOND:
        raise EngineError(f"time_unit must be s, ms, us or ns, not {time_unit!r}")
    reading = Reading(StampReader(time_unit, zone_of(time_zone)), stamp_from)
    files = None if are_messages(source) else files_of(source)
    open_first = _opener(source if files is None else files[0])
    more = f", the first of {len(files):,} files" if files and len(files) > 1 else ""
    if _is_table(open_first()):
        sample = sample_of(Mapped(open_first(), None, header, delimiter), SAMPLE_ROWS)
        if not has_item_columns(_names(sample)):
            space = namespace or namespace_of(source)
            return _Table(source, sample, space, reading, option).head(rows, more)
    return _head_of_items(source, open_first, reading, more, option)


def _opener(source: Any) -> Callable[[], Any]:
    """Return a function that returns a source from its beginning."""
    if hasattr(source, "read") or (isinstance(source, str) and source == "-"):
        file = source if hasattr(source, "read") else sys.stdin.buffer
        data = _first_bytes(file)
        name = "standard input" if file is not source else getattr(source, "name", None)

        def fresh() -> Any:
            again = io.BytesIO(data)
            if isinstance(name, str):
                again.name = name
            return again

        return fresh
    if isinstance(source, Iterator):
        raise SourceError("the source can be read only once; pass a list of its first items")
    return lambda: source


def _first_bytes(file: Any) -> bytes:
    """Return the first whole lines of an open file, and leave a file in memory as it was."""
    place = file.tell() if file.seekable() else None
    data = file.read(_BYTES)
    data = data.encode() if isinstance(data, str) else data
    if place is not None:
        file.seek(place)
    if len(data) < _BYTES:
        return bytes(data)
    return bytes(data[: data.rfind(b"\n") + 1] or data)


def _is_table(source: Any) -> bool:
    """Return whether a source has columns."""
    if is_file(source) and not is_message(source):
        with open_source(source, "the source") as (_, kind):
            return kind in TABLE_FORMATS
    if isinstance(source, list | tuple):
        return are_messages(source)
    return not hasattr(source, "triples")


def _names(sample: TableSample) -> list[str]:
    """Return the columns of a sample."""
    if isinstance(sample.rows, pa.RecordBatch):
        return list(sample.rows.schema.names)
    return list(dict.fromkeys(str(key) for record in sample.rows for key in record))


# -- tables ----------------------------------------------------------------------------------------


class _Table:
    """A table whose columns need a mapping."""

    def __init__(
        self,
        source: Any,
        sample: TableSample,
        namespace: str,
        reading: Reading,
        option: WriteOption,
    ) -> None:
        self._source, self._sample, self._option = source, sample, option
        self._name = table_name(source)
        self._reading = reading
        if not len(sample.rows):
            raise SourceError(f"{sample.name or 'the table'} has no rows")
        self._guess: Guess = guess(first_rows(sample.rows), namespace)

    def head(self, rows: int, more: str) -> Head:
        """Return what the table shows."""
        sample, shown = self._sample, self._guess
        count = len(first_rows(sample.rows))
        kind = _FORMATS.get(
            sample.kind, f"a {sample.kind}" if sample.kind == "table" else "records"
        )
        if sample.kind == "csv":
            kind += f" separated by {_DELIMITERS.get(sample.delimiter, sample.delimiter)}"
            kind += "" if sample.header else ", without a header"
        columns = _count(len(shown.columns) + len(shown.skipped), "column")
        first = f"its first {_count(count, 'row')}" if count > 1 else "its first row"
        stamps, problems = self._mapped()
        sections = [("", _columns_text(shown.columns))]
        if shown.skipped:
            names = ", ".join(shown.skipped)
            sections.append(
                (
                    "",
                    f"lists are not mapped: {names}; a path such as"
                    f" {shown.skipped[0]}.0 reads a value of one",
                )
            )
        sections.append(("", self._times_text(stamps)))
        if problems:
            sections.append(("", "\n".join(problems)))
        sections.append(("", _rows_text(sample, shown.columns, rows)))
        sections.append(("a mapping that works as it is", shown.mapping.rstrip()))
        query = query_over_columns(
            shown.columns,
            None if shown.time is None else shown.time.column,
            shown.namespace,
            self._name,
            0 if stamps is None else stamps.last - stamps.first,
        )
        sections.append(("a query to begin with", query.rstrip()))
        name = sample.name or "the source"
        return Head(
            name, f"{kind}, {columns}; {first}{more}", tuple(sections), shown.mapping, query
        )

    def _mapped(self) -> tuple[Stamps | None, list[str]]:
        """Return the timestamps of the first rows, as the mapping reads them, and its problems."""
        rows = first_rows(self._sample.rows)
        if self._guess.time is None and self._reading.stamp_from is None:
            return None, []
        table = Mapped(rows, self._guess.mapping)
        terms = TermDictionary()
        chunks = list(read_stream(table, "<the table>", terms, reading=self._reading))
        stamps = np.concatenate([chunk.stamps for chunk in chunks])
        rejects = [reject for chunk in chunks for reject in chunk.rejects]
        problems = [
            f"?{' ?'.join(each.columns)}: {each.expression} has no value for"
            f" {', '.join(example.value for example in each.examples)}: {_count(each.rows, 'row')}"
            for each in self._reading.cells.failed
        ]
        if rejects:
            problems.append(f"rejected: {_count(len(rejects), 'row')}; {rejects[0].reason}")
        return _stamps(stamps, self._reading.stamps), problems

    def _times_text(self, stamps: Stamps | None) -> str:
        """Return how the timestamps were time, and what they are."""
        time, place = self._guess.time, self._reading.stamp_from
        if stamps is None:
            hint = self._option("stamp_from", "COLUMN")
            return f"timestamps: no column has times, so this is a static graph; or name it: {hint}"
        if place is not None:
            where, example = f"timestamps: {place}", None
        else:
            assert time is not None
            where = f"timestamps: {time.column.name}, {time.reason}"
            if time.clock is not None:
                where = f"timestamps: {time.column.name} and {time.clock.name}, {time.reason}"
            example = time.column.values[0] if time.clock is None else None
        read = "" if example is None else f"; {example} is {instant(stamps.first)}"
        lines = [f"{where}{read}"]
        zoned = time is not None and any(
            value.endswith("Z") or "+" in value for value in time.column.values[:1]
        )
        if stamps.unit is not None and (time is None or time.form == "number"):
            other = self._option("time_unit", "UNIT")
            lines.append(
                f"they count {UNIT_NAMES[stamps.unit]} since 1970; {other} sets another unit"
            )
        elif self._reading.stamps.zone is None and not zoned:
            lines.append(
                f"times without an offset are in UTC; {self._option('time_zone', 'ZONE')} sets"
                " another zone"
            )
        lines += _disorder(stamps, self._option)
        return "\n".join(lines)


def _stamps(stamps: IntArray, reader: StampReader) -> Stamps | None:
    if not len(stamps):
        return None
    time = np.maximum.accumulate(stamps)
    delay = int((time - stamps).max())
    return Stamps(int(stamps[0]), int(time[-1]), delay, reader.unit, len(stamps))


def _disorder(stamps: Stamps, option: WriteOption) -> list[str]:
    if not stamps.delay:
        return []
    bound, every = option("max_delay", stamps.delay), option("max_delay", "auto")
    return [f"they are out of order: {bound} keeps all of these, {every} sorts the whole input"]


def _columns_text(columns: Sequence[Column]) -> str:
    rows = [["column", "type", "empty", "values"]]
    for column in columns:
        examples = list(islice(column.examples, _EXAMPLES + 1))
        shown = [_short(value) for value in examples[:_EXAMPLES]]
        more = ["…"] if len(examples) > _EXAMPLES else []
        empty = column.rows - len(column.values)
        rows.append([_short(column.name), column.kind, f"{empty:,}", ", ".join([*shown, *more])])
    return _aligned(rows, right=(2,))


def _rows_text(sample: TableSample, columns: Sequence[Column], count: int) -> str:
    """Return the first rows of a table."""
    rows, names = sample.rows, [column.name for column in columns]
    values: list[list[Any]] = []
    if isinstance(rows, pa.RecordBatch):
        places = [rows.schema.get_field_index(name) for name in names]
        for k in range(min(count, rows.num_rows)):
            values.append([cell_value(rows.column(place), k) for place in places])
    else:
        for record in islice(rows, count):
            inside = {path_name(path): value_at(record, path) for path in paths_in(record)}
            values.append([inside.get(name) for name in names])
    texts = [[_cell(value) for value in row] for row in values]
    return _aligned([[_short(name) for name in names], *texts], widest=120)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return _short(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


def _short(text: str) -> str:
    """Return a text on one line, cut if it is long."""
    line = isolated(" ".join(text.split()))
    return line if len(line) <= _MAX_CELL else f"{line[: _MAX_CELL - 1]}…"


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = (), widest: int = 0) -> str:
    """Return rows as aligned columns; those that exceed the width are left out."""
    widths = [max(cells(row[k]) for row in rows) for k in range(len(rows[0]))]
    kept = len(widths)
    while widest and kept > 1 and sum(widths[:kept]) + 2 * kept > widest:
        kept -= 1
    lines = []
    for row in rows:
        parts = []
        for k, (text, width) in enumerate(zip(row[:kept], widths, strict=False)):
            pad = " " * (width - cells(text))
            parts.append(pad + text if k in right else text + pad)
        lines.append("  ".join([*parts, *["…"] * (kept < len(widths))]).rstrip())
    return "\n".join(lines)


# -- triples ---------------------------------------------------------------------------------------


def _head_of_items(
    source: Any, open_first: Callable[[], Any], reading: Reading, more: str, option: WriteOption
) -> Head:
    """Return what the first items of a stream show, or the triples of a static graph."""
    terms = TermDictionary()
    first = open_first()
    name = (file_name_of(first) if is_file(first) else None) or "the source"
    items = _items(first, terms, reading)
    if items is None or not len(items.s):
        items = _triples(open_first(), terms) or items
    if items is None:
        raise SourceError(f"{name} is neither a stream nor a static graph")
    stamps = None if items.times is None else _stamps(items.times, reading.stamps)
    count = len(items.s)
    read = f"{_count(count, 'triple')} read{', the first ones' * (count >= _ITEMS)}"
    sections = [("", _predicates_text(items, terms))]
    if stamps is not None:
        lines = [f"timestamps: {instant(stamps.first)} to {instant(stamps.last)}"]
        if reading.stamps.recognised is not None:
            unit = UNIT_NAMES[reading.stamps.recognised.unit]
            other = option("time_unit", "UNIT")
            lines.append(f"they count {unit} since 1970; {other} sets another unit")
        sections.append(("", "\n".join([*lines, *_disorder(stamps, option)])))
    if items.rejects:
        rejected = _count(len(items.rejects), "item")
        sections.append(("", f"rejected: {rejected}; {items.rejects[0].reason}"))
    window = None if stamps is None else window_for(stamps.last - stamps.first, stamps.count)
    predicates = terms.texts(np.unique(items.p)).to_pylist()
    query = query_over_predicates(predicates, table_name(source), window)
    if count:
        sections.append(("a query to begin with", query.rstrip()))
    kind = "static graph" if items.times is None else "stream"
    return Head(name, f"a {kind}; {read}{more}", tuple(sections), None, query)


class _Items(NamedTuple):
    """The first items of a stream, or the triples of a graph, which have no times."""

    s: IntArray
    p: IntArray
    o: IntArray
    times: IntArray | None
    rejects: list[Reject]


def _items(source: Any, terms: TermDictionary, reading: Reading) -> _Items | None:
    """Return the first items of a stream; None if the source has no timestamps."""
    columns: list[tuple[IntArray, ...]] = [(_NOTHING,) * 4]
    rejects: list[Reject] = []
    count = 0
    try:
        for chunk in read_stream(source, "the source", terms, chunk=_ITEMS, reading=reading):
            columns.append((chunk.s, chunk.p, chunk.o, chunk.stamps))
            rejects += chunk.rejects
            count += chunk.items
            if count >= _ITEMS:
                break
    except SourceError:
        return None
    s, p, o, times = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return _Items(s, p, o, times, rejects)


def _triples(source: Any, terms: TermDictionary) -> _Items | None:
    """Return the triples of a static graph; None if the source has none."""
    batch, rejects = read_graph(source, "the source", terms)
    s, p, o = batch.columns.values()
    return _Items(s, p, o, None, rejects) if len(s) else None


_NOTHING: IntArray = np.empty(0, np.int64)


def _predicates_text(items: _Items, terms: TermDictionary) -> str:
    """Return the predicates with the number of their triples and an example."""
    s, p, o, *_ = items
    rows = [["predicate", "triples", "subjects", "an object"]]
    predicates, counts = np.unique(p, return_counts=True)
    for k in np.argsort(-counts, kind="stable").tolist():
        places = np.flatnonzero(p == predicates[k])
        text, example = terms.texts(np.array([predicates[k], o[places[0]]])).to_pylist()
        subjects = len(np.unique(s[places]))
        rows.append([text, f"{counts[k]:,}", f"{subjects:,}", wrap(_flat(example), 60, 1)[0]])
    return _aligned(rows, right=(1, 2))


def _flat(text: str) -> str:
    return isolated(" ".join(text.split()))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
