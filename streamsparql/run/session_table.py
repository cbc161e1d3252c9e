"""The rows of all queries of a session as one table, without a Python object per row or query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.inline_ids import INTEGER_BASE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import QUERY
from streamsparql.run.decoder import time_columns
from streamsparql.run.plan_reader import PlanReader
from streamsparql.run.shared_plan import SharedPlan
from streamsparql.values.columns import native_column
from streamsparql.values.time_columns import instant_column

if TYPE_CHECKING:
    from streamsparql.values import Values

NAME, KEY = "query", "key"


class _Rows(NamedTuple):
    """Rows of queries that have the same variables and parameters; the query of each by place."""

    rows: Batch
    readers: Sequence[PlanReader]
    reader_of: IntArray
    names: pa.Array
    """The names of the queries."""


def session_table(
    plans: Iterable[SharedPlan], terms: TermDictionary, values: Values = "terms", exact: bool = True
) -> pa.Table:
    """Return the rows that queries have not read yet, and remove them.

    The columns are the name of the query, the key and the terms of an instance, the variables of
    all queries, and the times of rows or reports. Each variable is one column, for all queries: its
    terms are written once, and native values have one type.
    """
    alike = [rows for plan in plans for rows in _alike(plan)]
    queries = [rows.readers[int(rows.reader_of[0])].query for rows in alike]
    variables = dict.fromkeys(
        name for query in queries for name in (*query.decoder.names, *query.parameters)
    )
    name = time_columns([*variables], NAME)[0]
    key = time_columns([*variables], KEY)[0]
    if not alike:
        return pa.table({name: pa.array([], pa.dictionary(pa.int32(), pa.string()))})
    groups = [_group(rows, name, key) for rows in alike]
    columns = _columns(groups, terms, values, exact)
    tables = [_table(group, columns, values == "native") for group in groups]
    return pa.concat_tables(tables, promote_options="default")


class _Group(NamedTuple):
    """Rows of queries that have the same variables: names and keys, term ids, times."""

    first: Mapping[str, pa.Array]
    terms: Mapping[str, IntArray]
    times: Mapping[str, IntArray]


_Column = tuple[pa.Field, Iterator[pa.Array | pa.ChunkedArray]]
"""A variable of all queries: its field, and its values in each group that has it."""


def _columns(
    groups: Sequence[_Group], terms: TermDictionary, values: Values, exact: bool
) -> dict[str, _Column]:
    """Return the columns of the variables of all groups."""
    parts: dict[str, list[IntArray]] = {}
    for group in groups:
        for name, ids in group.terms.items():
            parts.setdefault(name, []).append(ids)
    columns = {}
    for name, ids_of_groups in parts.items():
        ids = np.concatenate(ids_of_groups)
        if values == "native":
            native = native_column(ids, terms, exact)
            field, column = native.field(name), native.values
        else:
            column = terms.dictionary(ids)
            field = pa.field(name, column.type)
        columns[name] = field, _sliced(column, [*map(len, ids_of_groups)])
    return columns


def _sliced(
    column: pa.Array | pa.ChunkedArray, lengths: Sequence[int]
) -> Iterator[pa.Array | pa.ChunkedArray]:
    first = 0
    for length in lengths:
        yield column.slice(first, length)
        first += length


def _table(group: _Group, columns: Mapping[str, _Column], native: bool) -> pa.Table:
    """Return the rows of a group as a table; it takes the next part of each column."""
    times = {n: instant_column(t) if native else pa.array(t) for n, t in group.times.items()}
    terms = [columns[name] for name in group.terms]
    fields = [
        *(pa.field(name, values.type) for name, values in group.first.items()),
        *(field for field, _ in terms),
        *(pa.field(name, values.type) for name, values in times.items()),
    ]
    arrays = [*group.first.values(), *(next(parts) for _, parts in terms), *times.values()]
    return pa.table(arrays, pa.schema(fields))


def _alike(plan: SharedPlan) -> Iterator[_Rows]:
    """Yield the rows of a plan, those of queries with equal columns together."""
    directory = plan.directory
    readers, place = directory.readers, directory.place
    batches: list[Batch] = []
    owners: list[IntArray] = []

    def add(rows: Batch, owner: IntArray) -> None:
        batches.append(rows)
        owners.append(owner)

    for reader in plan.with_rest:
        for rows in reader.rest():
            add(rows, np.full(len(rows), place[reader]))
    plan.with_rest.clear()
    for emission in plan.outbox.emissions.since(0):
        if plan.table is not None and not emission.divided:
            owner = directory.owners.of(emission.rows.columns[QUERY])
            add(emission.rows.where(owner >= 0), owner[owner >= 0])
            continue
        for reader in [*emission.parts]:
            for part in emission.take(reader):
                rows = reader.clipped(emission.rows.part(part.first, part.after))
                add(rows, np.full(len(rows), place[reader]))
    plan.outbox.clear()
    if not any(map(len, batches)):
        return
    rows, owner = Batch.concat(batches, plan.names), np.concatenate(owners)
    for alike in directory.alike:
        mask = alike[owner]
        if mask.any():
            yield _Rows(rows.where(mask), readers, owner[mask], directory.names)


def _group(group: _Rows, name: str, key: str) -> _Group:
    rows, readers, reader_of, _ = group
    query = readers[int(reader_of[0])].query
    names = pa.DictionaryArray.from_arrays(pa.array(reader_of, pa.int32()), group.names)
    first, terms = {name: names}, dict[str, IntArray]()
    if query.parameters:
        keys, values = _instances(group, len(query.parameters))
        first[key] = pa.array(keys)
        terms = dict(zip(query.parameters, values, strict=True))
    terms.update(zip(query.decoder.names, rows.columns.values(), strict=False))
    times = (rows.start,) if query.reports else (rows.start, rows.end)
    return _Group(
        first, terms, dict(zip(query.decoder.time_names(query.reports), times, strict=True))
    )


def _instances(group: _Rows, parameters: int) -> tuple[IntArray, list[IntArray]]:
    """Return the keys of the instances that rows belong to, and their terms."""
    rows, readers, reader_of, _ = group
    numbers = rows.columns.get(QUERY)
    keys = np.zeros(len(rows), np.int64) if numbers is None else numbers - INTEGER_BASE
    values = [np.zeros(len(rows), np.int64) for _ in range(parameters)]
    for place in np.unique(reader_of).tolist():
        reader = readers[place]
        (own,) = (reader_of == place).nonzero()
        keys[own] = reader.query.readers[reader] or keys[own]
        assert reader.query.instances is not None
        for column, ids in zip(values, reader.query.instances.values_of(keys[own]), strict=True):
            column[own] = ids
    return keys, values
