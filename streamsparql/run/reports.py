"""The reports that a run emits: those that the caller requests, by default those of the query."""

from __future__ import annotations

from typing import NamedTuple

from streamsparql.algebra.align import closes_periods
from streamsparql.compiled import CompiledQuery
from streamsparql.errors import EngineError
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.queries import QueryTable
from streamsparql.physical.operators.report import Clip, RelationToStream, Reports
from streamsparql.sources.stamps import LATEST


class Reporting(NamedTuple):
    """A kind of report, its period, and whether it shows the snapshot before its instant (R15)."""

    kind: RelationToStream
    every: int | None
    origin: int
    closing: bool


def requested_reports(
    query: CompiledQuery, kind: str | None, every: int | None
) -> Reporting | None:
    """Return the reports that a caller requests; None, for rows, if neither argument is set."""
    return None if kind is None and every is None else reporting(query, kind, every)


def reporting(query: CompiledQuery, kind: str | None, every: int | None) -> Reporting:
    """Return the reports of a query; an argument that is None defaults to that of the query."""
    chosen = kind or query.report.kind or "rstream"
    if chosen not in ("rstream", "istream", "dstream"):
        raise EngineError(f"report must be rstream, istream or dstream, not {chosen!r}")
    if every is not None and (type(every) is not int or not 0 < every <= LATEST):
        raise EngineError(f"every must be a positive number of milliseconds, not {every!r}")
    period = query.report.every if every is None else every
    origin = query.report.origin if every is None else query.report.origin % every
    closes = period is not None and bool(closes_periods(query.logical))
    return Reporting(chosen, period, origin, closes)  # type: ignore[arg-type]


def fed_reports(query: CompiledQuery) -> Reporting:
    """Return the reports that a query feeds to a stream: those of its text, by default ISTREAM."""
    return reporting(query, query.report.kind or "istream", None)


def reports_of(
    reporting: Reporting,
    rows: Operator,
    columns: tuple[str, ...],
    end: int = INFINITY,
    queries: QueryTable | None = None,
) -> Reports:
    """Return the operator that emits reports of rows; `columns` are those of the result.

    The rows may be those of the `queries` that share a plan.
    """
    kind, every, origin, closing = reporting
    reports = Reports(rows, kind, every, origin, closing, columns, queries)
    reports.end = rows.end if isinstance(rows, Clip) else end
    return reports
