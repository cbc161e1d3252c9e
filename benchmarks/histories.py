"""Long histories of wind turbines as Parquet, for the benchmark of the Spark engine.

They are what `turbines.py` makes, longer, made by arrays, and kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from turbines import EX, PREDICATES, SIZES, SLIDE, SLIDES_PER_WINDOW, START, XSD

WINDOW = SIZES["100k"]
"""A full window holds 100,000 triples of 12,500 turbines."""
ROW_GROUP = 250_000


def made(folder: Path, triples: int) -> str:
    """The Parquet file with so many triples; it is made where it is not there."""
    path = folder / f"readings-{triples}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        tables = map(vouched, readings(triples))
        first = next(tables)
        with parquet.ParquetWriter(beside, first.schema, compression="zstd") as writer:
            writer.write_table(first, ROW_GROUP)
            for table in tables:
                writer.write_table(table, ROW_GROUP)
        beside.rename(path)
    return str(path)


def vouched(table: pa.Table) -> pa.Table:
    """The rows, said to be terms, as `streamsparql prepare` leaves them."""
    fields = [
        {
            "name": name,
            "type": "long" if name == "timestamp" else "string",
            "nullable": True,
            "metadata": {} if name == "timestamp" else {"streamsparql": "terms"},
        }
        for name in table.column_names
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    return table.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": schema})


def readings(triples: int) -> Iterator[pa.Table]:
    """The readings of wind turbines as in `turbines.py`, in order of time, a row group at a time.

    A shorter history is where a longer one begins.

    >>> next(readings(3)).column_names
    ['subject', 'predicate', 'object', 'timestamp']
    """
    chance = np.random.default_rng(WINDOW.seed)
    counters = chance.integers(0, 100, WINDOW.turbines * 2)
    turbines = pa.array([f"<{EX}T{i}>" for i in range(WINDOW.turbines)])
    predicates = pa.array([f"<{EX}{name}>" for name in PREDICATES])
    for first in range(0, triples, ROW_GROUP):
        stamps = _stamps(chance, first)
        turbine = chance.integers(0, WINDOW.turbines, ROW_GROUP)
        kind = chance.integers(0, len(PREDICATES), ROW_GROUP)
        columns = {
            "subject": turbines.take(pa.array(turbine)),
            "predicate": predicates.take(pa.array(kind)),
            "object": _objects(chance, turbine, kind, counters),
            "timestamp": stamps,
        }
        yield pa.table(columns).slice(0, triples - first)


def _stamps(chance: np.random.Generator, first: int) -> Any:
    """None is on a border of a slide or right behind one, so all windows hold the same."""
    slide = (first + np.arange(ROW_GROUP)) * SLIDES_PER_WINDOW // WINDOW.window
    within = chance.integers(2, SLIDE, ROW_GROUP)
    within += np.where(within % 1000 < 2, 2, 0)
    return np.sort(START + slide * SLIDE + within)


def _objects(chance: np.random.Generator, turbine: Any, kind: Any, counters: Any) -> pa.Array:
    """Literals in N-Triples syntax: counters count on, other readings are drawn."""
    counting = np.flatnonzero(kind < 2)
    key = turbine[counting] * 2 + kind[counting]
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    sizes = np.diff(np.append(starts, len(ranked)))
    values = np.zeros(len(kind), np.int64)
    rank = np.arange(len(ranked)) - np.repeat(starts, sizes)
    values[counting[order]] = counters[ranked] + 1 + rank
    counters[ranked[starts]] += sizes
    drawn = (chance.random(len(kind)) * np.where(kind == 2, 25e6, 3000e6)).astype(np.int64)
    doubles = pc.binary_join_element_wise(
        '"',
        _text(drawn // 1_000_000),
        ".",
        pc.utf8_lpad(_text(drawn % 1_000_000), 6, "0"),
        f'"^^<{XSD}double>',
        "",
    )
    integers = pc.binary_join_element_wise('"', _text(values), f'"^^<{XSD}integer>', "")
    return pc.if_else(pa.array(kind < 2), integers, doubles)


def _text(values: Any) -> pa.Array:
    return pc.cast(pa.array(values), pa.string())
