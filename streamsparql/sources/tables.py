"""Tables: Arrow and what speaks its protocol (pandas, Polars, DuckDB), and Parquet.

The columns are `subject, predicate, object` or `s, p, o`, with `timestamp` or `t`, for events
`start` and `end`; others are not read. Terms are written as in N-Triples.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.errors import SourceError
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.lines import decoded
from streamsparql.sources.stamps import Stamps, of_column
from streamsparql.sources.term_texts import is_term, text_of

_ROLES = {
    "s": ("subject", "s"),
    "p": ("predicate", "p"),
    "o": ("object", "o"),
    "t": ("timestamp", "t"),
    "start": ("start",),
    "end": ("end",),
}
_NAMES = {name: role for role, names in _ROLES.items() for name in names}
_GIVE = (
    "give subject, predicate, object and timestamp (or s, p, o, t; for events start and end), or a"
    " mapping of other columns: streamsparql.mapped, --map"
)


def roles(names: Sequence[str], reading: Encoder, timed: bool) -> dict[str, str]:
    """Which column plays which part; an error where one is missing."""
    found: dict[str, str] = {}
    for name in names:
        role = _NAMES.get(name.strip().lstrip("?").lower())
        if role is not None and role in found:
            raise SourceError(f"{reading.name}: two columns for one: {found[role]}, {name}")
        if role is not None:
            found[role] = name
    stamped = "t" in found or {"start", "end"} <= found.keys()
    if not {"s", "p", "o"} <= found.keys() or (timed and not stamped):
        raise SourceError(f"{reading.name} has the columns {', '.join(names)}: {_GIVE}")
    used = ("s", "p", "o") + (() if not timed else ("t",) if "t" in found else ("start", "end"))
    return {role: found[role] for role in used}


def arrow_batches(source: Any) -> Iterator[Any] | None:
    """The record batches of what speaks Arrow's protocol; None where the source does not."""
    if isinstance(source, pa.RecordBatch):
        return iter([source])
    if isinstance(source, pa.RecordBatchReader):
        found: Iterator[Any] = iter(source)  # what goes wrong in it keeps its own words
        return found
    try:
        if hasattr(source, "__arrow_c_stream__"):
            batches: Iterable[pa.RecordBatch] = pa.RecordBatchReader.from_stream(source)
        elif type(source).__module__.partition(".")[0] == "pandas":
            batches = pa.Table.from_pandas(source, preserve_index=False).to_batches()
        else:
            return None
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
        raise SourceError(f"this table cannot be read as Arrow: {error.args[0]}") from error
    return iter(batches)


def with_texts(source: Any) -> Any:
    """A pandas frame whose cells are terms of some library, with N-Triples in their place.

    Arrow would take a term of rdflib for a string.
    """
    if type(source).__module__.partition(".")[0] != "pandas" or not hasattr(source, "columns"):
        return source
    made = source.copy(deep=False)
    for k, kind in enumerate(source.dtypes):
        values = source.iloc[:, k].tolist() if kind.kind == "O" else ()
        if any(map(is_term, set(map(type, values)))):
            made.isetitem(k, [text_of(v) if is_term(type(v)) else v for v in values])
    return made


def chunks_of_batches(
    batches: Iterable[pa.RecordBatch], reading: Encoder, size: int, timed: bool
) -> Iterator[Chunk]:
    """The rows of record batches in chunks of at most that size."""
    first = 1
    for batch in batches:
        for at in range(0, batch.num_rows, size):
            part = batch.slice(at, size)
            positions = np.arange(first, first + part.num_rows)
            yield chunk_of_batch(part, reading, positions, timed)
            first += part.num_rows


def chunk_of_batch(
    batch: pa.RecordBatch,
    reading: Encoder,
    positions: IntArray,
    timed: bool,
    rejects: Sequence[Reject] = (),
) -> Chunk:
    """The rows of one record batch."""
    part = roles(batch.schema.names, reading, timed)
    s, p, o = (_texts(batch, part[role], reading) for role in "spo")
    since: Stamps | None = None
    if not timed:
        stamps: Stamps = np.zeros(len(positions), np.int64), {}
    elif "t" in part:
        stamps = _stamps(batch, part["t"], reading)
    else:
        since, stamps = (_stamps(batch, part[role], reading) for role in ("start", "end"))
    columns = [batch.column(name) for name in part.values()]
    known = undecoded(columns)

    def original(k: int) -> object:
        return tuple(value_of(column, k) for column in columns)

    return reading.chunk((s, p, o), stamps, positions, original, since, rejects, known)


def value_of(column: pa.Array, k: int) -> object:
    """A cell as Python has it; what it has not, as a time beyond its calendar, as a number.

    >>> value_of(pa.array([7]), 0), value_of(pa.array([10**17], pa.timestamp("ms")), 0)
    (7, 100000000000000000)
    """
    cell = column[k]
    try:
        return cell.as_py()
    except (ImportError, KeyError, OverflowError, ValueError):  # nanoseconds, odd zones, far times
        return getattr(cell, "value", None)


def beyond_calendar(column: pa.Array) -> BoolArray:
    """Which times or days of a column have no date that could be written.

    >>> beyond_calendar(pa.array([0, 10**17], pa.timestamp("ms"))).tolist()
    [False, True]
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        values = column.cast(pa.timestamp(kind.unit)).cast(pa.int64())
    elif pa.types.is_date32(kind):
        units, values = 1, pc.multiply(column.cast(pa.int32()).cast(pa.int64()), 86_400)
    elif pa.types.is_date64(kind):
        units, values = 1000, column.cast(pa.int64())
    else:
        return np.zeros(len(column), np.bool_)
    times = values.fill_null(0).to_numpy(zero_copy_only=False) // units
    found: BoolArray = (times < _FIRST) | (times > _LAST)
    return found


_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, in seconds since 1970


def undecoded(columns: Sequence[pa.Array]) -> dict[int, str]:
    """The rows that hold bytes which are no text."""
    wrong: dict[int, str] = {}
    for column in columns:
        if not pa.types.is_binary(column.type):
            continue
        try:
            column.cast(pa.string())
        except pa.ArrowInvalid:
            values = column.to_pylist()
            bad = [k for k, value in enumerate(values) if value and decoded(value) is None]
            wrong.update(dict.fromkeys(bad, "the row is not UTF-8"))
    return wrong


def _texts(batch: pa.RecordBatch, name: str, reading: Encoder) -> pa.Array:
    """A column of terms, as texts; where it is dictionary-encoded it stays so."""
    column = batch.column(name)
    values = column.dictionary if pa.types.is_dictionary(column.type) else column
    texts = as_texts(values)
    if texts is None:
        raise SourceError(
            f"{reading.name}: the column {name} holds {column.type}, not terms as text"
        )
    if values is column:
        return texts
    return pa.DictionaryArray.from_arrays(column.indices, texts)


def as_texts(column: pa.Array) -> pa.Array | None:
    """A column as texts, null where it holds bytes that are none; None where it holds no text."""
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_string(kind):
        return column.cast(pa.string())
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return None
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([decoded(value or b"\xff") for value in column.to_pylist()], pa.string())


def _stamps(batch: pa.RecordBatch, name: str, reading: Encoder) -> Stamps:
    column = batch.column(name)
    binary = pa.types.is_binary(column.type)
    return of_column(_texts(batch, name, reading) if binary else column)


def parquet_rows(
    file: Any, reading: Encoder, choose: Callable[[Sequence[str]], list[str]], size: int
) -> Iterator[pa.RecordBatch]:
    """The record batches of a Parquet file, of the columns that are chosen."""
    import pyarrow.parquet as parquet

    try:
        opened = parquet.ParquetFile(file)
        columns = choose(opened.schema_arrow.names)
        yield from opened.iter_batches(size, columns=columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{reading.name} is no Parquet file that can be read: {error}") from error


def parquet_batches(file: Any, reading: Encoder, size: int, timed: bool) -> Iterator[Any]:
    """The record batches of a Parquet file, of the columns that are needed and no others."""
    import pyarrow.parquet as parquet

    try:
        groups = range(parquet.ParquetFile(file).metadata.num_row_groups)
        yield from row_groups(file, groups, reading, size, timed)
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{reading.name} is no Parquet file that can be read: {error}") from error


def row_groups(
    file: Any, groups: Sequence[int], reading: Encoder, size: int, timed: bool
) -> Iterator[pa.RecordBatch]:
    """The record batches of some row groups.

    Columns that are known to hold nothing but terms are not read where the query has no use for
    them: `UNREAD` stands in these.
    """
    import pyarrow.parquet as parquet

    schema = parquet.ParquetFile(file).schema_arrow
    part = roles(schema.names, reading, timed)
    known = vouched(schema)
    unread = [part[role] for role in "so" if part[role] in known and not reading.uses(role)]
    again = [part[role] for role in "sp" if schema.field(part[role]).type == pa.string()]
    opened = parquet.ParquetFile(file, read_dictionary=again)
    columns = [name for name in part.values() if name not in unread]
    for batch in opened.iter_batches(size, row_groups=list(groups), columns=columns):
        for name in unread:
            batch = batch.append_column(name, constant(UNREAD, batch.num_rows))
        yield batch


UNREAD = "<urn:streamsparql:unread>"
"""What stands where nobody looks."""

VOUCHED = "streamsparql"
"""The metadata of a column that holds nothing but terms in normal form, with the value `terms`."""
_SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def constant(text: str, rows: int) -> pa.DictionaryArray:
    """A column that has the same text in all rows."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([text]))


def vouched(schema: pa.Schema) -> set[str]:
    """The columns of a file that are known to hold nothing but terms in normal form.

    >>> field = pa.field("object", pa.string(), metadata={VOUCHED: "terms"})
    >>> vouched(pa.schema([field, ("subject", pa.string())]))
    {'object'}
    """
    name, terms = VOUCHED.encode(), b"terms"
    found = {field.name for field in schema if (field.metadata or {}).get(name) == terms}
    written = (schema.metadata or {}).get(_SPARK)
    fields = json.loads(written)["fields"] if written else ()
    spark = {each["name"] for each in fields if each["metadata"].get(VOUCHED) == "terms"}
    return found | spark
