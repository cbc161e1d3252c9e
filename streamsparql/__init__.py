"""SPARQL over streams, compiled to one temporal algebra.

    import streamsparql

    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 S SLIDE { ?x ?p ?o }")
    print(query.explain())
    for row in query.run(items):  # (subject, predicate, object, timestamp)
        print(row.value("o"), row.start_time, row.end_time)

Names are imported on first use, so that `import streamsparql` costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsparql.errors import (
    ConnectionWarning,
    DataWarning,
    EngineError,
    LimitExceeded,
    QueryError,
    QuerySyntaxError,
    SourceError,
    StreamSparqlError,
    UnsupportedFeature,
)

if TYPE_CHECKING:
    from streamsparql.display.picture import Picture
    from streamsparql.limits import Limits
    from streamsparql.look.analysis import Analysis
    from streamsparql.look.definition_inputs import inputs
    from streamsparql.look.head import Head, head
    from streamsparql.look.jupyter.stream_view import show
    from streamsparql.look.lints.warning import LintWarning
    from streamsparql.query import Query, compile
    from streamsparql.run.async_session import AsyncRegistered, AsyncSession
    from streamsparql.run.checkpoint.opening import restore
    from streamsparql.run.live import Live
    from streamsparql.run.registered import Registered
    from streamsparql.run.result import Result
    from streamsparql.run.rows import Report, Row, SnapshotRow
    from streamsparql.run.session import Session
    from streamsparql.sources.mapping import mapped
    from streamsparql.windpark import wind_park

__version__ = "0.1.0"

__all__ = [
    "Analysis",
    "AsyncRegistered",
    "AsyncSession",
    "ConnectionWarning",
    "DataWarning",
    "EngineError",
    "Head",
    "LimitExceeded",
    "Limits",
    "LintWarning",
    "Live",
    "Picture",
    "Query",
    "QueryError",
    "QuerySyntaxError",
    "Registered",
    "Report",
    "Result",
    "Row",
    "Session",
    "SnapshotRow",
    "SourceError",
    "StreamSparqlError",
    "UnsupportedFeature",
    "compile",
    "head",
    "inputs",
    "mapped",
    "restore",
    "show",
    "wind_park",
]

_MODULES = {
    "Analysis": "look.analysis",
    "AsyncRegistered": "run.async_session",
    "AsyncSession": "run.async_session",
    "Head": "look.head",
    "Limits": "limits",
    "LintWarning": "look.lints.warning",
    "Live": "run.live",
    "Picture": "display.picture",
    "Query": "query",
    "Registered": "run.registered",
    "Report": "run.rows",
    "Result": "run.result",
    "Row": "run.rows",
    "Session": "run.session",
    "SnapshotRow": "run.rows",
    "compile": "query",
    "head": "look.head",
    "inputs": "look.definition_inputs",
    "load_ipython_extension": "cli.magics",
    "mapped": "sources.mapping",
    "restore": "run.checkpoint.opening",
    "show": "look.jupyter.stream_view",
    "unload_ipython_extension": "cli.magics",
    "wind_park": "windpark",
}
"""The modules from which names are imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
