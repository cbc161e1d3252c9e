"""Streaming SPARQL (ESWC 2008), the native dialect, a superset of SPARQL 1.1.

Windows have a live edge, streams are read as bags, results are rows with their validity.
"""

from __future__ import annotations

from streamsparql.errors import QueryError
from streamsparql.translator import syntax as s
from streamsparql.translator.dialects.base import Dialect, Slot, Windowing


def _bracketed(clause: s.WindowClause, slot: Slot) -> Windowing:
    raise QueryError(
        "a window in brackets means one thing in C-SPARQL, another in CQELS and in RSP-QL",
        clause.span,
        hint="write WINDOW RANGE .. SLIDE .., or say which dialect this is",
    )


STREAMING = Dialect(
    name="streaming",
    title="Streaming SPARQL",
    content="bag",
    report=None,
    bracketed=_bracketed,
)
