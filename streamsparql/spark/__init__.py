"""The Spark engine: the same plan and the same answers, where one machine is not enough.

`Query.on_spark` gives a query's result as a DataFrame, `Query.run(engine="spark")` as a `Result`.
Here is what belongs to it: `session` makes or finds a session, `prepare` puts a history in order of
time once for many queries, `archive` packs this package for a cluster's workers, and `SparkRun`
tells how a run is cut and why. docs/spark.md is the guide.

Nothing here imports pyspark before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamsparql.spark.archive import archive
    from streamsparql.spark.engine import SparkRun
    from streamsparql.spark.preparation import prepare
    from streamsparql.spark.session import session

__all__ = ["SparkRun", "archive", "prepare", "session"]

_HOMES = {"SparkRun": "engine", "archive": "archive", "prepare": "preparation", "session": "session"}


def __getattr__(name: str) -> Any:
    """The public names, each loaded when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
