"""A Spark session that is tuned for small jobs, and the rows that are compared with its results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from streamsparql import Query
from streamsparql.errors import EngineError
from streamsparql.run.input import RunInput
from streamsparql.run.reports import Reporting
from streamsparql.run.result import EmbeddedComputation, Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

XSD = "http://www.w3.org/2001/XMLSchema#"
NAMES = "subject predicate object timestamp"
FAST: dict[str, Any] = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.adaptive.enabled": False,
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.shuffle.compress": False,
    "spark.shuffle.spill.compress": False,
    "spark.rdd.compress": False,
    "spark.broadcast.compress": False,
    "spark.sql.ui.retainedExecutions": 1,
    "spark.ui.retainedJobs": 1,
    "spark.ui.retainedStages": 1,
    "spark.ui.retainedTasks": 1,
}
"""Tests run small jobs: compiling their plans would cost more than executing them."""

ITEMS = [
    ((f"<http://e/{'abc'[k % 3]}>", f"<http://e/{'pq'[k % 2]}>", f'"{k % 5}"'), k // 2)
    for k in range(300)
]
"""Items of three subjects and two predicates, two at each instant."""

MISSING = [name for name in ("pyspark", "pandas") if find_spec(name) is None]


def started(master: str = "local[2,4]") -> SparkSession:
    """Start a Spark session; skip the test if Spark or Java is not installed."""
    from streamsparql.spark.java import find_java
    from streamsparql.spark.sessions import session

    if MISSING:
        pytest.skip(f"{MISSING[0]} is not installed")
    try:
        find_java()
    except EngineError as error:
        pytest.skip(str(error))
    return session(master, "streamsparql's tests", **FAST)


# -- Rows that are compared ---------------------------------------------------------------------


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    """Return sorted rows: texts, None if unbound, booleans for ASK; then start and end.

    >>> rows_of(pa.table({"answer": ['"true"^^<b>'], "start": [0], "end": [5]}))
    [(True, 0, 5)]
    """
    columns = [table.column(name).to_pylist() for name in table.column_names]
    if table.column_names[:1] == ["answer"] and table.column(0).type != pa.bool_():
        columns[0] = [text.startswith('"true"') for text in columns[0]]
    return sorted(zip(*columns, strict=True), key=repr)


def embedded(query: Query, run_input: RunInput, report: Reporting | None = None) -> list[Any]:
    """Return the rows of the embedded engine, or those of its reports."""
    result = Result(EmbeddedComputation(query, run_input))
    if report is None:
        return rows_of(result.to_arrow())
    return rows_of(result.to_arrow(report.kind, report.every))


def nquads(items: Iterable[tuple[Sequence[str], int]], end: str = "\n") -> str:
    """Write items as lines of N-Quads, whose fourth term is the timestamp."""
    return "".join(f'{" ".join(item)} "{t}"^^<{XSD}integer> .{end}' for item, t in items)


def item_table(items: Sequence[tuple[Sequence[str], int]], names: str = NAMES) -> pa.Table:
    """Return items as a table."""
    schema = pa.schema(list(zip(names.split(), [pa.string()] * 3 + [pa.int64()], strict=True)))
    rows = [(*item, t) for item, t in items]
    columns = zip(*rows, strict=True) if rows else [()] * 4
    return pa.Table.from_arrays(
        [pa.array(c, kind) for c, kind in zip(columns, schema.types, strict=True)], schema=schema
    )
