"""Which dialect a text is in: told by what only one of them writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamsparql.errors import Span
from streamsparql.translator import syntax as s
from streamsparql.translator.dialects.base import Dialect
from streamsparql.translator.names import Names

ORDER = ("epsparql", "rspql", "cqels", "csparql", "streaming")
"""Where a text has marks of several dialects, the first of these is taken for its own."""

TIMESTAMP = "http://larkc.eu/csparql/sparql/jena/ext#timestamp"
"""The function that the C-SPARQL engine calls `f:timestamp`."""


class Foreign(NamedTuple):
    """A construct that belongs to certain dialects, and where it stands."""

    construct: str
    dialects: tuple[str, ...]
    span: Span


def detect(query: s.Query, names: Names) -> str:
    """The name of the dialect that a query is written in.

    >>> from streamsparql.translator.parse import parse
    >>> query = parse("SELECT * FROM STREAM <s> [RANGE 1m STEP 1s] { ?s ?p ?o }")
    >>> detect(query, Names(query.declarations, ""))
    'csparql'
    """
    marks = {mark.dialects[0] for mark in _marks(query, names) if len(mark.dialects) == 1}
    found = next((name for name in ORDER if name in marks), None)
    if found is None and query.register is not None:
        found = "csparql"  # REGISTER STREAM, and nothing that tells more
    return found or "streaming"


def foreign(query: s.Query, names: Names, dialect: Dialect) -> list[Foreign]:
    """The constructs of other dialects in a query."""
    return [mark for mark in _marks(query, names) if dialect.name not in mark.dialects]


def _marks(query: s.Query, names: Names) -> Iterator[Foreign]:
    if query.register is not None:
        kind = query.register.kind
        owners = {"QUERY": ("csparql",), "STREAM": ("csparql", "rspql")}.get(kind, ("rspql",))
        yield Foreign(f"REGISTER {kind}", owners, query.register.span)
    if query.operator is not None:
        yield Foreign(query.operator, ("rspql",), query.span)
    for node in query.walk():
        for construct, owners in _mark(node, names):
            yield Foreign(construct, owners, node.span)


def _mark(node: s.Node, names: Names) -> Iterator[tuple[str, tuple[str, ...]]]:
    match node:
        case s.Source(kind="stream", window=window):
            if isinstance(window, s.WindowSlide | s.WindowFixed | s.WindowElems):
                yield "FROM STREAM with a WINDOW clause", ("streaming",)
            elif window is not None:
                yield "FROM STREAM with a window in brackets", ("csparql",)
            else:
                yield "FROM STREAM", ("streaming", "epsparql")
        case s.Source(kind="bracket"):
            yield "FROM with a window in brackets", ("cqels",)
        case s.Source(kind="window"):
            yield "FROM NAMED WINDOW", ("rspql",)
        case s.Group(window=window) if window is not None:
            yield "a WINDOW clause in a group", ("streaming",)
        case s.StreamPattern():
            yield "STREAM", ("cqels",)
        case s.WindowPattern():
            yield "WINDOW <w> { .. }", ("rspql",)
        case s.Event(op):
            yield op, ("epsparql",)
        case s.Operation("GETDURATION" | "GETSTARTTIME" | "GETENDTIME" as op):
            yield f"{op}()", ("epsparql",)
        case s.Operation("TIMESTAMP"):
            yield "timestamp()", ("csparql",)
        case s.FunctionCall(function) if names.knows(function, TIMESTAMP):
            yield "f:timestamp()", ("csparql",)
        case s.AggregationPattern():
            yield "AGGREGATE", ("csparql",)
