"""The rows of all queries of a session as one table, without a Python object per row or query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.inline_ids import INTEGER_BASE
from streamsparql.physical.hidden import QUERY
from streamsparql.run.decoder import time_columns
from streamsparql.run.plan_reader import PlanReader
from streamsparql.run.shared_plan import SharedPlan

NAME, KEY = "query", "key"


class _Rows(NamedTuple):
    """Rows of queries that have the same variables and parameters; the query of each by place."""

    rows: Batch
    readers: Sequence[PlanReader]
    reader_of: IntArray
    names: pa.Array
    """The names of the queries."""


def session_table(plans: Iterable[SharedPlan]) -> pa.Table:
    """Return the rows that queries have not read yet, and remove them.

    The columns are the name of the query, the key and the terms of an instance, the variables of
    all queries, and the times of rows or reports.
    """
    alike = [rows for plan in plans for rows in _alike(plan)]
    queries = [rows.readers[int(rows.reader_of[0])].query for rows in alike]
    variables = dict.fromkeys(
        name for query in queries for name in (*query.decoder.names, *query.parameters)
    )
    name = time_columns([*variables], NAME)[0]
    key = time_columns([*variables], KEY)[0]
    tables = [_table(rows, name, key) for rows in alike]
    if not tables:
        return pa.table({name: pa.array([], pa.dictionary(pa.int32(), pa.string()))})
    return pa.concat_tables(tables, promote_options="default")


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
            owner = directory.owners_of(emission.rows.columns[QUERY])
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


def _table(group: _Rows, name: str, key: str) -> pa.Table:
    rows, readers, reader_of, _ = group
    query = readers[int(reader_of[0])].query
    columns = {name: pa.DictionaryArray.from_arrays(pa.array(reader_of, pa.int32()), group.names)}
    if query.parameters:
        keys, values = _instances(group, len(query.parameters))
        columns[key] = pa.array(keys)
        for parameter, ids in zip(query.parameters, values, strict=True):
            columns[parameter] = query.decoder.terms.dictionary(ids)
    table = query.decoder.table([rows], query.reports)
    columns.update(zip(table.column_names, table.columns, strict=True))
    return pa.table(columns)


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
