"""Records: dicts, and JSON objects, as rows of a table whose columns are their keys.

A value inside a nested record or list is a column, too, named by its path: `after.price`,
`data.0.value`. A record may be the text of a JSON object. The columns that a mapping reads become
columns of Arrow, so that one evaluation serves many records; the type of a value never depends on
other records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Reject
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.json_lines import json_object
from streamsparql.sources.lines import decoded
from streamsparql.sources.mapping import columns_by_variable, variable_of_column
from streamsparql.sources.term_texts import is_term, literal_text, ntriples_text

RecordPath = tuple[Any, ...]
"""The keys and indexes that lead to a value in a record."""

TERM_KIND = "term"
UNION_KINDS = {
    "text": pa.string(),
    "integer": pa.int64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    TERM_KIND: pa.string(),
}
"""The parts of a column of mixed types; a term is written in N-Triples syntax."""
_CODES = {kind: code for code, kind in enumerate(UNION_KINDS)}
_KIND_OF_TYPE = {str: "text", int: "integer", float: "float", bool: "boolean"}
_INT64_BOUND = 1 << 63
_DEEPEST = 32
"""The nesting up to which values of a record are columns."""


def path_name(path: RecordPath) -> str:
    """Return the name of the column at a path.

    >>> path_name(("data", 0, "value"))
    'data.0.value'
    """
    return ".".join(map(str, path))


def paths_in(record: Mapping[str, Any], lists: bool = True) -> Iterator[RecordPath]:
    """Yield the paths of a record: those of its keys first, then those inside of its values.

    >>> list(paths_in({"op": "c", "after": {"id": 7, "tags": ["x"]}}))
    [('op',), ('after',), ('after', 'id'), ('after', 'tags'), ('after', 'tags', 0)]
    """
    pending: list[tuple[RecordPath, Any]] = [((), record)]
    while pending:
        path, value = pending.pop(0)
        if path:
            yield path
        if len(path) < _DEEPEST and isinstance(value, Mapping):
            pending += [((*path, key), inner) for key, inner in value.items()]
        elif len(path) < _DEEPEST and lists and isinstance(value, list | tuple):
            pending += [((*path, k), inner) for k, inner in enumerate(value)]


def value_at(record: Mapping[str, Any], path: RecordPath) -> Any:
    """Return the value at a path of a record; None if the record lacks it.

    >>> value_at({"after": {"id": 7}}, ("after", "id")), value_at({"after": None}, ("after", "id"))
    (7, None)
    """
    value: Any = record
    for key in path:
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list | tuple) and type(key) is int and key < len(value):
            value = value[key]
        else:
            return None
    return value


# -- one record ------------------------------------------------------------------------------------


def parsed_record(record: Any) -> Mapping[str, Any] | str:
    """Return a record, parsed if it is the text of a JSON object; the reason if it is neither."""
    if type(record) is dict:
        return record
    if isinstance(record, str):
        return json_object(record)
    if isinstance(record, bytes | bytearray | memoryview):
        text = decoded(bytes(record))
        return "the record is not UTF-8" if text is None else json_object(text)
    if isinstance(record, Mapping):
        return record
    return f"expected a dict or the text of a JSON object, not {type(record).__name__}"


def is_message(value: Any) -> bool:
    """Return whether a value is a record: a dict, or the text of a JSON object.

    >>> is_message(b'{"a": 1}'), is_message("a.nq")
    (True, False)
    """
    if isinstance(value, str):
        return value.lstrip()[:1] == "{"
    return isinstance(value, Mapping | bytes | bytearray | memoryview)


def are_messages(source: Any) -> bool:
    """Return whether a source is a list of records, and not one of paths.

    >>> are_messages(['{"a": 1}']), are_messages(["a.jsonl"]), are_messages([])
    (True, False, False)
    """
    return isinstance(source, list | tuple) and bool(source) and is_message(source[0])


def records_of(
    messages: Sequence[Any], positions: IntArray, encoder: Encoder
) -> tuple[list[Mapping[str, Any]], IntArray, list[Reject]]:
    """Return the records among messages, their positions, and rejects for the others."""
    records: list[Mapping[str, Any]] = []
    places, rejects = [], list[Reject]()
    for k, message in enumerate(messages):
        record = parsed_record(message)
        if isinstance(record, str):
            rejects.append(encoder.reject(int(positions[k]), record, message))
        else:
            records.append(record)
            places.append(k)
    return records, positions[places] if places else positions[:0], rejects


# -- columns of records ----------------------------------------------------------------------------


def rows_of_records(
    records: Sequence[Mapping[str, Any]], columns: Mapping[str, RecordPath]
) -> tuple[pa.RecordBatch, dict[int, str]]:
    """Return the values of records as columns, and the reasons for records that have no row.

    >>> rows, wrong = rows_of_records([{"v": 1}, {"v": [2]}], {"v": ("v",)})
    >>> rows.column("v").to_pylist(), wrong
    ([1, None], {1: 'the value of v is a list'})
    """
    if not columns:
        return pa.RecordBatch.from_arrays([pa.nulls(len(records))], [""]), {}
    wrong: dict[int, str] = {}
    arrays = []
    for name, path in columns.items():
        if len(path) == 1:
            values = [record.get(path[0]) for record in records]
        else:
            values = [value_at(record, path) for record in records]
        array, unusable = column_of(values)
        arrays.append(array)
        wrong.update((k, f"the value of {name} {why}") for k, why in unusable.items())
    return pa.RecordBatch.from_arrays(arrays, list(columns)), wrong


class RecordColumns:
    """The columns of records: the keys of the first one, and paths that later ones show.

    >>> columns = RecordColumns()
    >>> columns.start({"op": "c"}, "records")
    >>> columns.learn([{"after": {"id": 7}}], ["op", "after_id"])
    >>> columns.paths
    {'op': ('op',), 'after_id': ('after', 'id')}
    """

    def __init__(self) -> None:
        self.paths: dict[str, RecordPath] = {}
        """The paths of the columns, by variable."""
        self._awaited: set[str] | None = None

    def start(self, record: Mapping[str, Any], name: str) -> None:
        """Take the keys of the first record as columns; raise an error if two are one variable."""
        keys = {str(key): key for key in record}
        columns = columns_by_variable(list(keys), name)
        self.paths = {variable: (keys[key],) for variable, key in columns.items()}

    def learn(self, records: Sequence[Mapping[str, Any]], used: Sequence[str]) -> None:
        """Find the paths of the variables that are used and not known yet."""
        if self._awaited is None:
            self._awaited = set(used).difference(self.paths)
        for record in records if self._awaited else ():
            for path in paths_in(record):
                variable = variable_of_column(path_name(path))
                if variable in self._awaited:
                    self.paths[variable] = path
                    self._awaited.discard(variable)

    def of(self, used: Sequence[str]) -> dict[str, RecordPath]:
        """Return the paths of variables by the names of their columns; the own name if unknown."""
        known = ((variable, self.paths.get(variable, (variable,))) for variable in used)
        return {path_name(path): path for _, path in known}


def column_of(values: Sequence[Any]) -> tuple[pa.Array, dict[int, str]]:
    """Return values as a column, and the reasons for those that are not terms.

    If the types of the values differ, the column is a union.

    >>> column_of([1, None, 2])[0].type, column_of([1, "x", None, True])[0].to_pylist()
    (DataType(int64), [1, 'x', None, True])
    """
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) < 2 and kinds <= _ARROW_TYPES and not _mixes_zones(values, kinds):
        try:
            return pa.array(values), {}
        except (OverflowError, UnicodeEncodeError, pa.ArrowException):
            pass
    parts: dict[str, list[Any]] = {kind: [] for kind in UNION_KINDS}
    codes, offsets, wrong = [], [], dict[int, str]()
    for k, value in enumerate(values):
        try:
            kind, value = _kind_and_value(value)
        except ValueError as error:
            wrong[k], kind, value = str(error), "text", None
        codes.append(_CODES[kind])
        offsets.append(len(parts[kind]))
        parts[kind].append(value)
    union = pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(parts[kind], arrow) for kind, arrow in UNION_KINDS.items()],
        list(UNION_KINDS),
    )
    return union, wrong


_ARROW_TYPES = {str, int, float, bool, datetime, date}


def _mixes_zones(values: Sequence[Any], kinds: set[type]) -> bool:
    """Return whether only some of the values, all datetimes, have a time zone: Arrow mixes them."""
    return kinds == {datetime} and len({v.tzinfo is None for v in values if v is not None}) > 1


def _kind_and_value(value: Any) -> tuple[str, Any]:
    """Return the part of a union for a value, and the value there; raise ValueError if none."""
    kind = _KIND_OF_TYPE.get(type(value))
    if value is None:
        return "text", None
    if kind == "text":
        _check_unicode(value)
    if kind is not None and (kind != "integer" or -_INT64_BOUND <= value < _INT64_BOUND):
        return kind, value
    if is_term(type(value)):
        text = ntriples_text(value)
    elif isinstance(value, str):
        _check_unicode(value)
        return "text", str(value)
    elif isinstance(value, datetime) and value.tzinfo is not None:
        text = literal_text(value.astimezone(UTC))  # as Arrow writes it
    else:
        text = literal_text(value)
    if not text:
        raise ValueError(f"is {_NAMED.get(type(value)) or f'of type {type(value).__name__}'}")
    return TERM_KIND, text


_NAMED: dict[type, str] = {dict: "an object", list: "a list"}


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("has an unpaired surrogate, which is not Unicode") from None


def unusable_value(value: Any) -> str:
    """Return why a mapping cannot read a value; "" if it can.

    >>> unusable_value(5), unusable_value({})
    ('', 'is an object')
    """
    if type(value) in _SIMPLE_TYPES:
        return ""
    try:
        _kind_and_value(value)
    except ValueError as error:
        return str(error)
    return ""


_SIMPLE_TYPES = frozenset({int, float, bool, type(None)})


def positions_from(first: int, count: int) -> IntArray:
    """Return the positions of records, from that of the first on."""
    return np.arange(first, first + count)
