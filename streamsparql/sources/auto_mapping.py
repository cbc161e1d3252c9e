"""The mapping of a table that is guessed: one node per row, a predicate per column.

    PREFIX : <http://example.org/traffic#>
    PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    CONSTRUCT {
      [] :status ?status ;
         :avgSpeed ?avgSpeed_ .
    }
    WHERE {
      BIND(xsd:integer(?avgSpeed) AS ?avgSpeed_)
      BIND(?TIMESTAMP AS ?timestamp)
    }

It casts each column to the type that its first values show, so the same text makes the same triples
of the table in any format. It is an ordinary mapping: `streamsparql head` prints it, to be saved
and changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from streamsparql.algebra.terms import XSD
from streamsparql.sources.column_types import (
    MISSING,
    Column,
    TimeColumn,
    kind_of_texts,
    time_column,
)
from streamsparql.sources.folders import files_of
from streamsparql.sources.mapping import Mapped, columns_by_variable
from streamsparql.sources.paths import COMPRESSED_EXTENSIONS, path_of
from streamsparql.sources.records import are_messages, path_name, paths_in, value_at

SAMPLE_ROWS = 1_000
"""The number of rows from which the types of columns are guessed."""

Rows: TypeAlias = "pa.RecordBatch | Sequence[Mapping[str, Any]]"
"""The first rows of a table, or the first records."""


@dataclass(frozen=True)
class Guess:
    """What the first rows of a table show, and the mapping that follows."""

    columns: tuple[Column, ...]
    time: TimeColumn | None
    skipped: tuple[str, ...]
    """The columns that no mapping can read as they are: lists."""
    namespace: str
    mapping: str


def guess(rows: Rows, namespace: str) -> Guess:
    """Return what rows show.

    >>> rows = pa.record_batch({"id": ["a"], "v": [7], "time": ["2014-08-01 10:00"]})
    >>> shown = guess(rows, "http://example.org/x#")
    >>> [column.kind for column in shown.columns], shown.time.column.name
    (['string', 'integer', 'dateTime'], 'time')
    """
    columns, skipped = _columns(rows)
    time = time_column(columns)
    return Guess(
        tuple(columns), time, tuple(skipped), namespace, mapping_text(columns, time, namespace)
    )


def guessed_mapping(mapped: Mapped, rows: Rows) -> str:
    """Return the text of the mapping that the first rows of a table show."""
    return guess(first_rows(rows), mapped.namespace or namespace_of(mapped.source)).mapping


def first_rows(rows: Rows) -> Rows:
    """Return the rows from which the types of columns are guessed."""
    return rows[:SAMPLE_ROWS]


def namespace_of(source: Any) -> str:
    """Return the namespace of the predicates of a table: that of its file, whatever its format.

    >>> namespace_of("data/traffic.csv.gz"), namespace_of([{"a": 1}])
    ('http://example.org/traffic#', 'http://example.org/data#')
    """
    return f"http://example.org/{table_name(source)}#"


def table_name(source: Any) -> str:
    """Return the name of a table: that of its file without extension, or `data`."""
    path = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    if not isinstance(path, str | os.PathLike) or path in _UNNAMED:
        paths = isinstance(source, list | tuple) and not are_messages(source)
        files = files_of(source) if paths else None
        if not files:
            return "data"
        path = files[0]
    name = os.path.basename(os.path.normpath(path_of(path)))
    for extension in COMPRESSED_EXTENSIONS:
        name = name.removesuffix(extension)
    return re.sub(r"[^A-Za-z0-9_.-]", "_", os.path.splitext(name)[0]) or "data"


_UNNAMED = ("-", "<stdin>", "standard input")


# -- columns ---------------------------------------------------------------------------------------


def _columns(rows: Rows) -> tuple[list[Column], list[str]]:
    """Return the columns of rows, and the names of those that are lists."""
    if isinstance(rows, pa.RecordBatch):
        named = dict(zip(rows.schema.names, rows.columns, strict=True))
        listed = [name for name, column in named.items() if _is_list(column.type)]
        variables = columns_by_variable(list(named), "the table")
        return [
            _arrow_column(name, variable, named[name])
            for variable, name in variables.items()
            if name not in listed
        ], listed
    values: dict[str, list[Any]] = {}
    lists: dict[str, None] = {}
    for k, record in enumerate(rows):
        for path in paths_in(record, lists=False):
            value = value_at(record, path)
            if isinstance(value, list | tuple):
                lists[path_name(path)] = None
            elif not isinstance(value, Mapping):
                column = values.setdefault(path_name(path), [])
                column += [None] * (k - len(column))
                column.append(value)
    plain = [name for name in values if name not in lists]
    nested = {name for name in plain for other in plain if other.startswith(f"{name}.")}
    variables = columns_by_variable([n for n in plain if n not in nested], "the records")
    return [
        _record_column(name, variable, values[name], len(rows))
        for variable, name in variables.items()
    ], list(lists)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) and not pa.types.is_struct(kind))


def _arrow_column(name: str, variable: str, column: pa.Array) -> Column:
    """Return a column of Arrow; texts of CSV are bytes."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_binary(kind):
        texts = [(value or b"").decode("utf-8", "replace") for value in column.to_pylist()]
        return _text_column(name, variable, texts, numbers=True)
    if pa.types.is_null(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text_column(name, variable, column.cast(pa.string()).to_pylist(), numbers=False)
    if pa.types.is_string_view(kind):
        return _text_column(name, variable, column.cast(pa.string()).to_pylist(), numbers=False)
    type_name = next((n for n, test in _ARROW_KINDS.items() if test(kind)), "string")
    texts = [None if value is None else str(value) for value in _shown(column)]
    filled = tuple(text for text in texts if text and text != "nan")
    return Column(name, variable, type_name, filled, len(texts), True)


def _shown(column: pa.Array) -> list[Any]:
    """Return the values of a column; times as Arrow writes them."""
    if pa.types.is_temporal(column.type):
        shown: list[Any] = column.cast(pa.string()).to_pylist()
        return shown
    values: list[Any] = column.to_pylist()
    return values


_ARROW_KINDS = {
    "integer": pa.types.is_integer,
    "double": pa.types.is_floating,
    "boolean": pa.types.is_boolean,
    "decimal": pa.types.is_decimal,
    "dateTime": pa.types.is_timestamp,
    "date": pa.types.is_date,
    "time": pa.types.is_time,
}


def _text_column(name: str, variable: str, texts: Sequence[str | None], *, numbers: bool) -> Column:
    """Return a column of text; `numbers` may be written in it, if the format has no types."""
    filled = tuple(text for text in texts if text)
    kind = kind_of_texts(filled)
    if not numbers and kind in ("integer", "double", "boolean"):
        kind = "string"
    seconds = all(text.count(":") > 1 for text in filled if text.lower() not in MISSING)
    return Column(name, variable, kind, filled, len(texts), False, seconds)


def _record_column(name: str, variable: str, values: list[Any], rows: int) -> Column:
    """Return a column of records."""
    known = [v for v in values if v is not None and v == v and v != ""]
    kinds = set(map(type, known))
    if kinds <= {str}:
        column = _text_column(name, variable, known, numbers=False)
        return Column(name, variable, column.kind, column.values, rows, False, column.seconds)
    kind = next((n for n, kinds_of in _PYTHON_KINDS.items() if kinds <= kinds_of), "mixed")
    return Column(name, variable, kind, tuple(map(str, known)), rows, True)


_PYTHON_KINDS: dict[str, set[type]] = {
    "boolean": {bool},
    "integer": {int},
    "double": {int, float},
    "decimal": {int, Decimal},
    "date": {date},
    "time": {time_of_day},
    "dateTime": {datetime},
}


# -- the text --------------------------------------------------------------------------------------


def mapping_text(columns: Sequence[Column], time: TimeColumn | None, namespace: str) -> str:
    """Return a mapping of the columns, with the timestamps of a column."""
    names = {column.variable for column in columns}
    binds: list[str] = []
    objects: list[str] = []
    for column in columns:
        cast = _cast(column)
        variable = column.variable
        if cast is not None:
            variable = _free(f"{column.variable}_", names)
            binds.append(f"BIND({cast} AS ?{variable})")
        objects.append(f":{column.variable} ?{variable}")
    if time is not None:
        stamp = _stamp(time)
        if stamp != "?timestamp":
            bound = "timestamp" if "timestamp" not in names else _free("t", names)
            binds.append(f"BIND({stamp} AS ?{bound})")
    template = " ;\n     ".join(objects)
    prefixes = [f"PREFIX : <{namespace}>", f"PREFIX xsd: <{XSD}>"]
    where = "".join(f"  {line}\n" for line in binds)
    return "\n".join([*prefixes, f"CONSTRUCT {{\n  [] {template} .\n}}", f"WHERE {{\n{where}}}\n"])


def _free(name: str, names: set[str]) -> str:
    """Return a variable that is not a column, and reserve it."""
    while name in names:
        name += "_"
    names.add(name)
    return name


def _cast(column: Column) -> str | None:
    """Return the expression for the value of a column; None for the cell as it is."""
    variable = f"?{column.variable}"
    match column.kind:
        case "integer" | "double" | "decimal" | "date":
            return f"xsd:{column.kind}({variable})"
        case "boolean":
            return f"xsd:boolean(LCASE({variable}))"
        case "dateTime":
            text = f'REPLACE({variable}, " ", "T")'
            if not column.typed and not column.seconds:
                text = f'REPLACE({text}, "(T[0-9]{{2}}:[0-9]{{2}})$", "$1:00")'
            return f"xsd:dateTime({text})"
        case "time" if column.typed and column.seconds:
            return f"xsd:time({variable})"
        case "mixed":
            return f"STR({variable})"
    return None


def _stamp(time: TimeColumn) -> str:
    """Return the expression for the timestamp of a row."""
    day = f"?{time.column.variable}"
    if time.form in ("day-first", "month-first"):
        day = f'REPLACE(REPLACE({day}, "^([0-9])([/.])", "0$1$2"), "([/.])([0-9])[/.]", "$10$2$1")'
        order = "$3-$2-$1" if time.form == "day-first" else "$3-$1-$2"
        day = f'REPLACE({day}, "^([0-9]{{2}})[/.]([0-9]{{2}})[/.]([0-9]{{4}})", "{order}")'
        if any(":" in value for value in time.column.values):
            day = f'REPLACE({day}, " +([0-9]):", " 0$1:")'
    if time.clock is None:
        return day
    clock = f'REPLACE(?{time.clock.variable}, "^([0-9]):", "0$1:")'
    return f'CONCAT({day}, "T", {clock})'
