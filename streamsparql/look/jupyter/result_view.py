"""The displays of a result: its first rows as a table, and a timeline of their validity."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from streamsparql.display.picture import Picture
from streamsparql.errors import StreamSparqlError
from streamsparql.look.emptiness.results import why_result_empty
from streamsparql.look.jupyter.display_rows import DisplayRows, cells_and_times, display_rows
from streamsparql.look.jupyter.html_table import first_rows_html, note_html
from streamsparql.look.jupyter.timeline import DrawnReport, timeline_picture, timeline_span
from streamsparql.look.jupyter.why_view import why_html
from streamsparql.run.replay import layout_of
from streamsparql.run.reports import reporting
from streamsparql.run.result import preview, rejects_note
from streamsparql.sinks import open_sink

if TYPE_CHECKING:
    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.result import Preview, Result
    from streamsparql.run.time_arguments import Duration

PREVIEW = 1000
"""The number of rows that are computed for a preview of a result that is not computed yet."""

_TEXT_ROWS = 20

_NOT_COMPUTED = (
    "This result is not computed yet: a preview would consume a source that can be read only once,"
    " or start a Spark job. Iterate over it, or call timeline() or to_arrow(), to compute its rows;"
    " they are retained."
)


def result_or_error_html(result: Result) -> str:
    """Return the display of a result, or the message of the error that computing it raised."""
    try:
        return result_html(result)
    except StreamSparqlError as error:
        return f"<pre>{escape(str(error))}</pre>"


def result_html(result: Result) -> str:
    """Return a table of the first rows, their timeline, and a note of late and rejected items."""
    first = preview(result, PREVIEW)
    if first is None:
        return f"<p>{escape(_NOT_COMPUTED)}</p>"
    rows = _display_rows(result, first, PREVIEW)
    parts = [first_rows_html(rows)]
    if rows.rows:
        parts.append(timeline_picture(rows, instants=_report_instants(result, rows)).html)
    if not first.more and result.computation.is_empty():
        parts.append(why_html(why_result_empty(result)))
    if text := rejects_note(first.rejected, first.example):
        parts.append(note_html(text))
    return "\n".join(parts)


def result_text(result: Result) -> str:
    """Return the first rows as text, as the command line prints them."""
    first = preview(result, PREVIEW)
    if first is None:
        return _NOT_COMPUTED
    rows = pa.concat_tables(first.tables)
    text = StringIO()
    with open_sink(
        text, "table", layout_of(result.computation.query, result.computation.decoder, False)
    ) as sink:
        sink.write(rows.slice(0, _TEXT_ROWS))
    lines = text.getvalue().splitlines()
    if first.more:
        lines.append(f"the first {min(len(rows), _TEXT_ROWS)} of more than {PREVIEW:,} rows")
    elif len(rows) > _TEXT_ROWS:
        lines.append(f"and {len(rows) - _TEXT_ROWS:,} more")
    if note := rejects_note(first.rejected, first.example):
        lines.append(note)
    if not first.more and result.computation.is_empty():
        lines += why_result_empty(result).lines()
    return "\n".join(lines)


def timeline_of(
    result: Result,
    limit: int,
    report: RelationToStream | None,
    every: Duration | None,
    timestamps: str | None,
) -> Picture:
    """Return the timeline of all rows, with the requested reports or the query's own."""
    everything = preview(result, None)
    assert everything is not None
    rows = _display_rows(result, everything, None)
    if report is None and every is None:
        return timeline_picture(rows, limit, _report_instants(result, rows), timestamps=timestamps)
    instants, reports = _reports(result, report, every)
    return timeline_picture(rows, limit, instants, reports, timestamps)


def _display_rows(result: Result, first: Preview, limit: int | None) -> DisplayRows:
    """Return the rows of a preview as text, up to a limit."""
    query, run_input = result.computation.query, result.computation.input
    names = result.computation.decoder.names
    rows = list(display_rows(first.tables, names, query.prefixes))
    horizon = run_input.start, run_input.end
    return DisplayRows(query.form, names, rows[:limit], not first.more, *horizon)


def _report_instants(result: Result, rows: DisplayRows) -> Sequence[int]:
    """Return the report instants that the query itself prescribes, within the time drawn."""
    wanted = reporting(result.computation.query, None, None)
    if wanted.every is None:
        return ()
    start, end = timeline_span(rows, rows.rows)
    return range(start + (wanted.origin - start) % wanted.every, end + 1, wanted.every)


def _reports(
    result: Result, kind: RelationToStream | None, every: Duration | None
) -> tuple[list[int], list[DrawnReport]]:
    """Return the instants of all requested reports, and the reports that have rows."""
    query = result.computation.query
    decoder, batches, instants = result.computation.reported(reporting(query, kind, every))
    table = decoder.table(batches, reports=True)
    cells = cells_and_times(table, len(decoder.names), query.prefixes)
    rows = sorted(cells, key=lambda row: row[1])
    groups = groupby(rows, key=lambda row: row[1])
    return instants, [(instant, [cells for cells, _ in group]) for instant, group in groups]
