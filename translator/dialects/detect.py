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


def detect(query: s.QueryUnit, names: Names) -> str:
    """The name of the dialect that a query is written in.

    >>> from streamsparql.translator.parse import parse
    >>> query = parse("SELECT * FROM STREAM <s> [RANGE 1m STEP 1s] { ?s ?p ?o }")
    >>> detect(query, Names(query.declarations, ""))
    'csparql'
    """
    for marks in (_of_body(query, names), _of_report(query)):
        own = {mark.dialects[0] for mark in marks if len(mark.dialects) == 1}
        if own:
            return next(name for name in ORDER if name in own)
    return "csparql" if query.register is not None else "streaming"  # REGISTER STREAM


def foreign(query: s.QueryUnit, names: Names, dialect: Dialect) -> list[Foreign]:
    """The constructs of other dialects in a query."""
    marks = (*_of_report(query), *_of_body(query, names), *_of_style(query))
    return [mark for mark in marks if dialect.name not in mark.dialects]


def _of_report(query: s.QueryUnit) -> Iterator[Foreign]:
    """How results are reported: it tells the dialect only where no window or pattern does."""
    if query.register is not None:
        kind = query.register.kind
        owners = {"QUERY": ("csparql",), "STREAM": ("csparql", "rspql")}.get(kind, ("rspql",))
        yield Foreign(f"REGISTER {kind}", owners, query.register.span)
    if query.operator is not None:
        yield Foreign(query.operator, ("rspql",), query.span)


def _of_body(query: s.QueryUnit, names: Names) -> Iterator[Foreign]:
    for node in query.walk():
        for construct, owners in _mark(node, names):
            yield Foreign(construct, owners, node.span)


def _of_style(query: s.QueryUnit) -> Iterator[Foreign]:
    """Ways of writing that do not tell the dialect: old queries of all have them."""
    for node in query.walk():
        if isinstance(node, s.SelectItem) and node.loose:
            yield Foreign(
                "AS without brackets, or with its variable first", ("epsparql",), node.span
            )


def _mark(node: s.SyntaxNode, names: Names) -> Iterator[tuple[str, tuple[str, ...]]]:
    match node:
        case s.FromClause(kind="stream", window=window):
            if isinstance(window, s.WindowSlide | s.WindowFixed | s.WindowElems):
                yield "FROM STREAM with a WINDOW clause", ("streaming",)
            elif window is not None:
                yield "FROM STREAM with a window in brackets", ("csparql",)
            else:
                yield "FROM STREAM", ("streaming", "epsparql")
        case s.FromClause(kind="bracket"):
            yield "FROM with a window in brackets", ("cqels",)
        case s.FromClause(kind="window"):
            yield "FROM NAMED WINDOW", ("rspql",)
        case s.GroupPattern(window=window) if window is not None:
            yield "a WINDOW clause in a group", ("streaming",)
        case s.StreamPattern():
            yield "STREAM", ("cqels",)
        case s.WindowPattern():
            yield "WINDOW <w> { .. }", ("rspql",)
        case s.EventPattern(op):
            yield op, ("epsparql",)
        case s.OperatorCall("GETDURATION" | "GETSTARTTIME" | "GETENDTIME" as op):
            yield f"{op}()", ("epsparql",)
        case s.OperatorCall("TIMESTAMP"):
            yield "timestamp()", ("csparql",)
        case s.FunctionCall(function) if names.knows(function, TIMESTAMP):
            yield "f:timestamp()", ("csparql",)
        case s.AggregationPattern():
            yield "AGGREGATE", ("csparql",)
