"""EP-SPARQL (WWW 2011): events on one default stream, no windows, each solution at its end."""

from __future__ import annotations

from streamsparql.errors import UnsupportedFeature
from streamsparql.translator import syntax as s
from streamsparql.translator.dialects.base import (
    Dialect,
    Windowing,
    WindowSetting,
    bracketed_clause,
)


def _no_window(clause: s.WindowClause, setting: WindowSetting) -> Windowing:
    raise UnsupportedFeature(
        "an event query has no windows",
        clause.span,
        hint='bound it in time with FILTER(getDURATION() < "PT10M"^^xsd:duration)',
    )


EPSPARQL = Dialect(
    name="epsparql",
    title="EP-SPARQL",
    bracketed=_no_window,
    window_text=bracketed_clause,
    report=None,
    has_events=True,
)
