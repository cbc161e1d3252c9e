"""Streaming SPARQL (ESWC 2008), the native dialect, a superset of SPARQL 1.1.

Windows have a live edge, streams are read as bags, results are rows with their validity.
"""

from __future__ import annotations

from streamsparql.errors import QueryError
from streamsparql.translator import syntax as s
from streamsparql.translator.dialects.base import (
    Dialect,
    Windowing,
    WindowSetting,
    native_clause,
)


def _bracketed(clause: s.WindowClause, setting: WindowSetting) -> Windowing:
    raise QueryError(
        "ambiguous window: its meaning in brackets differs between C-SPARQL, CQELS and RSP-QL",
        clause.span,
        hint='write WINDOW RANGE .. SLIDE .., or compile with dialect="csparql"',
    )


STREAMING = Dialect(
    name="streaming",
    title="Streaming SPARQL",
    aliases=("native", "streamingsparql", "sparql"),
    bracketed=_bracketed,
    window_text=native_clause,
    report=None,
    has_named_streams=True,
)
