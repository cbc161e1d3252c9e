"""The reports that a run emits: those that the caller requests, by default those of the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streamsparql.algebra.align import closes_periods
from streamsparql.compiled import CompiledQuery
from streamsparql.errors import EngineError
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.hidden import ANSWER
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.queries import QueryTable
from streamsparql.physical.operators.report import Clip, RelationToStream, Reports
from streamsparql.run.time_arguments import period_argument
from streamsparql.sinks import SPARQL_FORMATS

if TYPE_CHECKING:
    from streamsparql.run.time_arguments import Duration


def result_columns(query: CompiledQuery) -> tuple[str, ...]:
    """Return the columns of a query's result: its variables, a triple's places, or ASK's answer."""
    if query.form == "select":
        return query.variables
    return (ANSWER,) if query.form == "ask" else TRIPLE


class Reporting(NamedTuple):
    """A kind of report, its period, and whether it shows the snapshot before its instant (R15)."""

    kind: RelationToStream
    every: int | None
    origin: int
    closing: bool


def requested_reports(
    query: CompiledQuery, kind: RelationToStream | None, every: Duration | None
) -> Reporting | None:
    """Return the reports that a caller requests; None, for rows, if neither argument is set."""
    return None if kind is None and every is None else reporting(query, kind, every)


def reporting(
    query: CompiledQuery, kind: RelationToStream | None, every: Duration | None
) -> Reporting:
    """Return the reports of a query; an argument that is None defaults to that of the query."""
    chosen = kind or query.report.kind or "rstream"
    if chosen not in ("rstream", "istream", "dstream"):
        raise EngineError(f"report must be rstream, istream or dstream, not {chosen!r}")
    period, origin = query.report.every, query.report.origin
    if every is not None:
        period = period_argument("every", every)
        origin %= period
    closes = period is not None and bool(closes_periods(query.logical))
    return Reporting(chosen, period, origin, closes)


SNAPSHOT = Reporting("rstream", None, 0, False)
"""The report of a query that reads no stream: its only snapshot, in the order of ORDER BY."""


def is_timeless(query: CompiledQuery, requested: Reporting | None, kind: str) -> bool:
    """Return whether a format shows the only snapshot of a query, and no times.

    The formats of the W3C do for a query without streams, which is a query as SPARQL knows it.
    """
    return kind in SPARQL_FORMATS and requested is None and not query.streams


def fed_reports(query: CompiledQuery) -> Reporting:
    """Return the reports that a query feeds to a stream: those of its text, by default ISTREAM."""
    return reporting(query, query.report.kind or "istream", None)


def reports_of(
    reporting: Reporting,
    rows: Operator,
    query: CompiledQuery,
    events: bool,
    end: int = INFINITY,
) -> Reports:
    """Return the operator that emits reports of the rows of a query, which may be events."""
    distinct = events and query.form == "construct"
    columns = result_columns(query)
    reports = report_operator(reporting, rows, columns, events=events, distinct=distinct)
    if not isinstance(rows, Clip):
        reports.end = end
    return reports


def report_operator(
    reporting: Reporting,
    rows: Operator,
    columns: tuple[str, ...],
    queries: QueryTable | None = None,
    *,
    events: bool = False,
    distinct: bool = False,
) -> Reports:
    """Return the operator that emits reports of rows; `columns` are those of the result.

    The rows may be those of the `queries` that share a plan.
    """
    kind, every, origin, closing = reporting
    reports = Reports(
        rows, kind, every, origin, closing, columns, queries, events=events, distinct=distinct
    )
    if isinstance(rows, Clip):
        reports.end = rows.end
    return reports
