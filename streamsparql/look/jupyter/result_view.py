"""How a notebook shows a result: its first rows, and when they hold."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from streamsparql.display.picture import Picture
from streamsparql.errors import StreamSparqlError
from streamsparql.look.jupyter.html_table import first_rows, note
from streamsparql.look.jupyter.solution_texts import Solutions, cells_of, solutions
from streamsparql.look.jupyter.timeline import Report, span, timeline
from streamsparql.run.replay import layout_of
from streamsparql.run.reports import reporting
from streamsparql.run.result import preview, rejects_note
from streamsparql.sinks import open_sink

if TYPE_CHECKING:
    from streamsparql.run.result import Preview, Result

PEEK = 1000
"""So many rows are computed for a look, if the result was not computed before."""

_ROWS = 20

_UNKNOWN = (
    "A result whose rows are not computed yet: that would use up a source which can be read once,"
    " or be a job on Spark. Iterating, timeline() and to_arrow() compute it; the rows are kept."
)


def shown(result: Result) -> str:
    """The table of the first rows, and the timeline; or what is wrong with a source."""
    try:
        return computed(result)
    except StreamSparqlError as error:
        return f"<pre>{escape(str(error))}</pre>"


def computed(result: Result) -> str:
    """The table of the first rows, and the timeline."""
    first = preview(result, PEEK)
    if first is None:
        return f"<p>{escape(_UNKNOWN)}</p>"
    found = _solutions(result, first, PEEK)
    parts = [first_rows(found)]
    if found.rows:
        parts.append(timeline(found, instants=_instants(result, found)).html)
    if text := rejects_note(first.rejected, first.example):
        parts.append(note(text))
    return "\n".join(parts)


def as_text(result: Result) -> str:
    """The first rows, as the command line shows them."""
    first = preview(result, PEEK)
    if first is None:
        return _UNKNOWN
    rows = pa.concat_tables(first.tables)
    text = StringIO()
    with open_sink(
        text, "table", layout_of(result.computation.query, result.computation.decoder, False)
    ) as sink:
        sink.write(rows.slice(0, _ROWS))
    lines = text.getvalue().splitlines()
    if first.more:
        lines.append(f"the first {min(len(rows), _ROWS)} of more than {PEEK:,} rows")
    elif len(rows) > _ROWS:
        lines.append(f"and {len(rows) - _ROWS:,} more")
    if said := rejects_note(first.rejected, first.example):
        lines.append(said)
    return "\n".join(lines)


def timeline_of(
    result: Result, limit: int, report: str | None, every: int | None, timestamps: str | None
) -> Picture:
    """The timeline of all rows."""
    first = preview(result, None)
    assert first is not None
    found = _solutions(result, first, None)
    if report is None and every is None:
        return timeline(found, limit, _instants(result, found), timestamps=timestamps)
    instants, reports = _reports(result, report, every)
    return timeline(found, limit, instants, reports, timestamps)


def _solutions(result: Result, first: Preview, most: int | None) -> Solutions:
    """The first rows as texts."""
    query, given = result.computation.query, result.computation.input
    names = result.computation.decoder.names
    rows = list(solutions(first.tables, names, query.prefixes))
    return Solutions(query.form, names, rows[:most], not first.more, given.start, given.end)


def _instants(result: Result, found: Solutions) -> Sequence[int]:
    """When the query reports, by its own words, within what is drawn."""
    wanted = reporting(result.computation.query, None, None)
    if wanted.every is None:
        return ()
    start, end = span(found, found.rows)
    return range(start + (wanted.origin - start) % wanted.every, end + 1, wanted.every)


def _reports(result: Result, kind: str | None, every: int | None) -> tuple[list[int], list[Report]]:
    """The instants of the reports that are asked for, and those that have rows."""
    query = result.computation.query
    decoder, batches, instants = result.computation.reported(reporting(query, kind, every))
    table = decoder.table(batches, reports=True)
    cells = cells_of(table, len(decoder.names), query.prefixes)
    rows = sorted(cells, key=lambda row: row[1])
    found = groupby(rows, key=lambda row: row[1])
    return instants, [(instant, [cells for cells, _ in group]) for instant, group in found]
