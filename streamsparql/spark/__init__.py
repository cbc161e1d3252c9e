"""The Spark engine: the same plans and the same results, for data beyond one machine.

`Query.on_spark` returns a query's result as a DataFrame, `Query.run(engine="spark")` as a `Result`.
This package also has `session`, which finds or creates a Spark session; `prepare`, which sorts a
history by time once for many queries; `archive` and `ship`, which send this package to a cluster's
workers; and `SparkRun`, which shows how a run is cut and why. docs/spark.md is the guide.

Importing this package does not import pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession

    from streamsparql.spark.engine import SparkRun
    from streamsparql.spark.preparation import prepare
    from streamsparql.spark.sessions import session
    from streamsparql.spark.shipping import archive, ship

__all__ = ["SparkRun", "archive", "prepare", "session", "ship"]

_HOMES = {
    "SparkRun": "engine",
    "archive": "shipping",
    "prepare": "preparation",
    "session": "sessions",
    "ship": "shipping",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
