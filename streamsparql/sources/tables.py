"""Tables: Arrow and libraries that implement its protocol (pandas, Polars, DuckDB), and Parquet.

The columns are `subject, predicate, object` or `s, p, o`, with `timestamp` or `t`, for events
`start` and `end`; others are ignored. Terms are written as in N-Triples.
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
from streamsparql.sources.stamps import ParsedStamps
from streamsparql.sources.term_texts import is_term, ntriples_text

_ROLES = {
    "s": ("subject", "s"),
    "p": ("predicate", "p"),
    "o": ("object", "o"),
    "t": ("timestamp", "t"),
    "start": ("start",),
    "end": ("end",),
}
_NAMES = {name: role for role, names in _ROLES.items() for name in names}
_EXPECTED = (
    "expected subject, predicate, object and timestamp (or s, p, o, t; for events start and end),"
    " or a mapping of other columns: streamsparql.mapped, --map"
)


def roles(names: Sequence[str], encoder: Encoder, timed: bool) -> dict[str, str]:
    """Return the column of each role: s, p, o, and t or start and end; raise if one is missing."""
    columns: dict[str, str] = {}
    stamp = encoder.reading.column if timed else None
    if stamp is not None and stamp not in names:
        raise SourceError(
            f"{encoder.name}: unknown column {stamp} in stamp_from; it has {', '.join(names)}"
        )
    for name in names:
        role = _NAMES.get(name.strip().lstrip("?").lower())
        if stamp is not None:
            role = "t" if name == stamp else role if role in ("s", "p", "o") else None
        if role is not None and role in columns:
            raise SourceError(
                f"{encoder.name}: ambiguous columns {columns[role]} and {name}: each names the"
                f" {_ROLES[role][0]}"
            )
        if role is not None:
            columns[role] = name
    stamped = "t" in columns or {"start", "end"} <= columns.keys()
    if not {"s", "p", "o"} <= columns.keys() or (timed and not stamped):
        raise SourceError(f"{encoder.name} has the columns {', '.join(names)}; {_EXPECTED}")
    used = ("s", "p", "o") + (() if not timed else ("t",) if "t" in columns else ("start", "end"))
    return {role: columns[role] for role in used}


def has_item_columns(names: Sequence[str]) -> bool:
    """Return whether columns are those of items: subject, predicate and object.

    >>> has_item_columns(["s", "p", "o", "t"]), has_item_columns(["s", "speed"])
    (True, False)
    """
    known = {_NAMES.get(name.strip().lstrip("?").lower()) for name in names}
    return {"s", "p", "o"} <= known


def arrow_batches(source: Any) -> Iterator[Any] | None:
    """Return the record batches of a table with Arrow's protocol; None for any other source."""
    if isinstance(source, pa.RecordBatch):
        return iter([source])
    if isinstance(source, pa.RecordBatchReader):
        batches_read: Iterator[Any] = iter(source)  # its own errors are raised
        return batches_read
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


def with_term_texts(source: Any) -> Any:
    """Return a pandas frame with N-Triples texts in place of the terms of a library.

    Arrow would convert a term of rdflib to a plain string.
    """
    if type(source).__module__.partition(".")[0] != "pandas" or not hasattr(source, "columns"):
        return source
    frame = source.copy(deep=False)
    for k, kind in enumerate(source.dtypes):
        values = source.iloc[:, k].tolist() if kind.kind == "O" else ()
        if any(map(is_term, set(map(type, values)))):
            frame.isetitem(k, [ntriples_text(v) if is_term(type(v)) else v for v in values])
    return frame


def chunks_of_batches(
    batches: Iterable[pa.RecordBatch], encoder: Encoder, size: int, timed: bool
) -> Iterator[Chunk]:
    """Yield the rows of record batches in chunks of at most this size."""
    first = 1
    for batch in batches:
        _check_intact(batch, encoder, timed)
        for at in range(0, batch.num_rows, size):
            part = batch.slice(at, size)
            positions = np.arange(first, first + part.num_rows)
            yield chunk_of_batch(part, encoder, positions, timed)
            first += part.num_rows


def _check_intact(batch: pa.RecordBatch, encoder: Encoder, timed: bool) -> None:
    """Raise an error if texts are not UTF-8 or not in their dictionary, which Arrow accepts."""
    for name in roles(batch.schema.names, encoder, timed).values():
        check_column(batch.column(name), encoder.name)


def check_column(column: pa.Array, name: str) -> None:
    """Raise an error for a column that Arrow would read beyond its end, or that is not UTF-8."""
    try:
        column.validate(full=True)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise SourceError(f"{name} is damaged: {error}") from error


def chunk_of_batch(
    batch: pa.RecordBatch,
    encoder: Encoder,
    positions: IntArray,
    timed: bool,
    rejects: Sequence[Reject] = (),
) -> Chunk:
    """Return the rows of one record batch as a chunk."""
    part = roles(batch.schema.names, encoder, timed)
    s, p, o = (_texts(batch, part[role], encoder) for role in "spo")
    since: ParsedStamps | None = None
    if not timed:
        stamps: ParsedStamps = np.zeros(len(positions), np.int64), {}
    elif "t" in part:
        stamps = _stamps(batch, part["t"], encoder)
    else:
        since, stamps = (_stamps(batch, part[role], encoder) for role in ("start", "end"))
    columns = [batch.column(name) for name in part.values()]
    known = not_utf8(columns)

    def original(k: int) -> object:
        return tuple(cell_value(column, k) for column in columns)

    return encoder.chunk((s, p, o), stamps, positions, original, since, rejects, known)


def cell_value(column: pa.Array, k: int) -> object:
    """Return a cell as a Python value; as a number if Python cannot represent it.

    >>> cell_value(pa.array([7]), 0), cell_value(pa.array([10**17], pa.timestamp("ms")), 0)
    (7, 100000000000000000)
    """
    cell = column[k]
    try:
        return cell.as_py()
    except (ImportError, KeyError, OverflowError, ValueError):  # nanoseconds, zones, far times
        return getattr(cell, "value", None)


def beyond_calendar(column: pa.Array) -> BoolArray:
    """Return a mask of the times or days that are outside the years 1 to 9999.

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
    beyond: BoolArray = (times < _FIRST) | (times > _LAST)
    return beyond


_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, in seconds since 1970


def not_utf8(columns: Sequence[pa.Array]) -> dict[int, str]:
    """Return the rows with bytes that are not UTF-8, each with the reason."""
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


def _texts(batch: pa.RecordBatch, name: str, encoder: Encoder) -> pa.Array:
    """Return a column of terms as texts; if it is dictionary-encoded, the result is as well."""
    column = batch.column(name)
    values = column.dictionary if pa.types.is_dictionary(column.type) else column
    texts = as_texts(values)
    if texts is None:
        raise SourceError(
            f"{encoder.name}: the column {name} has the type {column.type}; expected terms as text"
        )
    if values is column:
        return texts
    return pa.DictionaryArray.from_arrays(column.indices, texts)


def as_texts(column: pa.Array) -> pa.Array | None:
    """Return a column as texts, null if not UTF-8; None if the column has another type."""
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


def _stamps(batch: pa.RecordBatch, name: str, encoder: Encoder) -> ParsedStamps:
    column = batch.column(name)
    binary = pa.types.is_binary(column.type)
    return encoder.stamps.of_column(_texts(batch, name, encoder) if binary else column)


def parquet_rows(
    file: Any, encoder: Encoder, choose: Callable[[Sequence[str]], list[str]], size: int
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a Parquet file, with the columns that `choose` returns."""
    import pyarrow.parquet as parquet

    try:
        opened = parquet.ParquetFile(file)
        names = flattened(pa.RecordBatch.from_pylist([], opened.schema_arrow)).schema.names
        chosen = choose(names)
        columns = [c for c in opened.schema_arrow.names if _is_read(c, chosen)]
        for batch in opened.iter_batches(size, columns=columns):
            for column in batch.columns:
                check_column(column, encoder.name)
            yield flattened(batch)
    except _UNREADABLE as error:
        raise SourceError(f"{encoder.name} cannot be read as Parquet: {error}") from error


def _is_read(column: str, chosen: Sequence[str]) -> bool:
    """Return whether a column, or a value inside of it, is among the chosen ones."""
    return any(name == column or name.startswith(f"{column}.") for name in chosen)


def flattened(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a record batch with the fields of nested records as columns.

    >>> nested = pa.record_batch({"after": pa.array([{"id": 7}])})
    >>> flattened(nested).schema.names
    ['after.id']
    """
    while any(pa.types.is_struct(field.type) for field in batch.schema):
        columns, names = [], []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_struct(column.type):
                columns += column.flatten()
                names += [f"{name}.{field.name}" for field in column.type]
            else:
                columns.append(column)
                names.append(name)
        batch = pa.RecordBatch.from_arrays(columns, names)
    return batch


def parquet_batches(file: Any, encoder: Encoder, size: int, timed: bool) -> Iterator[Any]:
    """Yield the record batches of a Parquet file, with the columns that a source needs."""
    import pyarrow.parquet as parquet

    try:
        groups = range(parquet.ParquetFile(file).metadata.num_row_groups)
        yield from row_groups(file, groups, encoder, size, timed)
    except _UNREADABLE as error:
        raise SourceError(f"{encoder.name} cannot be read as Parquet: {error}") from error


_UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What Arrow raises for a damaged file."""


def row_groups(
    file: Any, groups: Sequence[int], encoder: Encoder, size: int, timed: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of row groups.

    Columns that are known to contain only terms are not read if the query does not use them; their
    place is filled with `UNREAD`.
    """
    import pyarrow.parquet as parquet

    schema = parquet.ParquetFile(file).schema_arrow
    part = roles(schema.names, encoder, timed)
    known = known_term_columns(schema)
    unread = [part[role] for role in "so" if part[role] in known and not encoder.uses(role)]
    repetitive = [part[role] for role in "sp" if schema.field(part[role]).type == pa.string()]
    opened = parquet.ParquetFile(file, read_dictionary=repetitive)
    columns = [name for name in part.values() if name not in unread]
    for batch in opened.iter_batches(size, row_groups=list(groups), columns=columns):
        for name in unread:
            batch = batch.append_column(name, constant_column(UNREAD, batch.num_rows))
        yield batch


UNREAD = "<urn:streamsparql:unread>"
"""The placeholder of terms that the query does not use."""

TERMS_KEY = "streamsparql"
"""The metadata key of a column that contains only terms in normal form; its value is `terms`."""
_SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def constant_column(text: str, rows: int) -> pa.DictionaryArray:
    """Return a column with the same text in all rows."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([text]))


def known_term_columns(schema: pa.Schema) -> set[str]:
    """Return the columns of a file that are known to contain only terms in normal form.

    >>> field = pa.field("object", pa.string(), metadata={TERMS_KEY: "terms"})
    >>> known_term_columns(pa.schema([field, ("subject", pa.string())]))
    {'object'}
    """
    key, terms = TERMS_KEY.encode(), b"terms"
    arrow = {field.name for field in schema if (field.metadata or {}).get(key) == terms}
    written = (schema.metadata or {}).get(_SPARK)
    try:
        fields = json.loads(written)["fields"] if written else ()
        spark = {each["name"] for each in fields if each["metadata"].get(TERMS_KEY) == "terms"}
    except (ValueError, KeyError, TypeError, AttributeError):  # not what Spark writes
        return arrow
    return arrow | spark
