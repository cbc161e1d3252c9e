"""The detection of a query's dialect by its *marks*: constructs that only certain dialects have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamsparql.errors import Span
from streamsparql.translator import syntax as s
from streamsparql.translator.dialects.base import Dialect
from streamsparql.translator.dialects.bracketed import CQELS, CSPARQL, RSPQL
from streamsparql.translator.dialects.epsparql import EPSPARQL
from streamsparql.translator.dialects.streaming import STREAMING
from streamsparql.translator.names import Names

DETECTION_ORDER = (EPSPARQL, RSPQL, CQELS, CSPARQL, STREAMING)
"""The order in which dialects are chosen if a text has marks of several of them."""

TIMESTAMP = "http://larkc.eu/csparql/sparql/jena/ext#timestamp"
"""The function that the C-SPARQL engine calls `f:timestamp`."""

Owners = tuple[Dialect, ...]


class ForeignConstruct(NamedTuple):
    """A construct that only certain dialects have, with its place in the text."""

    construct: str
    dialects: Owners
    span: Span


def detect(query: s.QueryUnit, names: Names) -> Dialect:
    """Return the dialect of a query.

    >>> from streamsparql.translator.parse import parse
    >>> query = parse("SELECT * FROM STREAM <s> [RANGE 1m STEP 1s] { ?s ?p ?o }")
    >>> detect(query, Names(query.declarations, "")).title
    'C-SPARQL'
    """
    for marks in (_marks_of_body(query, names), _marks_of_report(query)):
        own = [mark.dialects[0] for mark in marks if len(mark.dialects) == 1]
        if own:
            return next(dialect for dialect in DETECTION_ORDER if dialect in own)
    # A REGISTER STREAM with no other mark is C-SPARQL's.
    return CSPARQL if query.register is not None else STREAMING


def foreign_constructs(
    query: s.QueryUnit, names: Names, dialect: Dialect
) -> list[ForeignConstruct]:
    """Return the constructs of other dialects in a query."""
    marks = (*_marks_of_report(query), *_marks_of_body(query, names), *_marks_of_style(query))
    return [mark for mark in marks if dialect not in mark.dialects]


def _marks_of_report(query: s.QueryUnit) -> Iterator[ForeignConstruct]:
    """Yield the marks of reporting, which decide only if no window or pattern does."""
    if query.register is not None:
        kind = query.register.kind
        owners = {"QUERY": (CSPARQL,), "STREAM": (CSPARQL, RSPQL)}.get(kind, (RSPQL,))
        yield ForeignConstruct(f"REGISTER {kind}", owners, query.register.span)
    if query.operator is not None:
        yield ForeignConstruct(query.operator, (RSPQL,), query.span)


def _marks_of_body(query: s.QueryUnit, names: Names) -> Iterator[ForeignConstruct]:
    for node in query.walk():
        for construct, owners in _marks_of_node(node, names):
            yield ForeignConstruct(construct, owners, node.span)


def _marks_of_style(query: s.QueryUnit) -> Iterator[ForeignConstruct]:
    """Yield the marks of style, which do not decide: old queries of all dialects have them."""
    for node in query.walk():
        if isinstance(node, s.SelectItem) and node.loose:
            yield ForeignConstruct(
                "AS without brackets, or with its variable first", (EPSPARQL,), node.span
            )


def _marks_of_node(node: s.SyntaxNode, names: Names) -> Iterator[tuple[str, Owners]]:
    match node:
        case s.FromClause(kind="stream", window=window):
            if isinstance(window, s.WindowSlide | s.WindowFixed | s.WindowElems):
                yield "FROM STREAM with a WINDOW clause", (STREAMING,)
            elif window is not None:
                yield "FROM STREAM with a window in brackets", (CSPARQL,)
            else:
                yield "FROM STREAM", (STREAMING, EPSPARQL)
        case s.FromClause(kind="bracket"):
            yield "FROM with a window in brackets", (CQELS,)
        case s.FromClause(kind="window"):
            yield "FROM NAMED WINDOW", (RSPQL,)
        case s.GroupPattern(window=window) if window is not None:
            yield "a WINDOW clause in a group", (STREAMING,)
        case s.StreamPattern():
            yield "STREAM", (CQELS,)
        case s.WindowPattern():
            yield "WINDOW <w> { .. }", (RSPQL,)
        case s.EventPattern(op):
            yield op, (EPSPARQL,)
        case s.OperatorCall("GETDURATION" | "GETSTARTTIME" | "GETENDTIME" as op):
            yield f"{op}()", (EPSPARQL,)
        case s.OperatorCall("TIMESTAMP"):
            yield "timestamp()", (CSPARQL,)
        case s.FunctionCall(function) if names.knows(function, TIMESTAMP):
            yield "f:timestamp()", (CSPARQL,)
        case s.AggregationPattern():
            yield "AGGREGATE", (CSPARQL,)
