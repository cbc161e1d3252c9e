"""The displays of an open query, as HTML and as text: its progress, and its operators' rows.

A query of a session has the same displays, with its name and the operators that compute it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsparql.algebra.streams import INFINITY
from streamsparql.look.jupyter.html_table import table_html
from streamsparql.text.instants import instant
from streamsparql.text.numbers import count
from streamsparql.text.visible import visible
from streamsparql.text.widths import cells

if TYPE_CHECKING:
    from streamsparql.run.live_stats import Stats


HEADS = ("operator", "", "rows in", "rows out", "state")
_RIGHT = (False, False, True, True, True)


def live_html(stats: Stats, closed: bool, name: str = "") -> str:
    """Return a table of the operators' rows and state, with a line of totals, as HTML."""
    return table_html(HEADS, _rows(stats), _RIGHT, _caption(stats, closed, name))


def live_text(stats: Stats, closed: bool, name: str = "") -> str:
    """Return the same table for a terminal."""
    rows = [HEADS, *_rows(stats)]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            " " * (width - cells(text)) + text if right else text + " " * (width - cells(text))
            for text, width, right in zip(row, widths, _RIGHT, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, _caption(stats, closed, name)])


def _caption(stats: Stats, closed: bool, name: str) -> str:
    """Return the line of totals, after the name of a query of a session."""
    line = totals(stats, closed)
    return f"{visible(name)}: {line}" if name else line


def _rows(stats: Stats) -> list[tuple[str, ...]]:
    return [
        (each.operator, each.facts, count(each.rows_in), count(each.rows_out), count(each.state))
        for each in reversed(stats.operators)
    ]


def totals(stats: Stats, closed: bool) -> str:
    """Return the progress, accounting and state of an open query in one line.

    >>> from streamsparql.run.live_stats import Stats
    >>> from streamsparql.sources import Accounting
    >>> items = Accounting(read=1200, accepted=1197, late=1, rejected=2)
    >>> totals(Stats(items, 0, INFINITY, 40, ()), closed=True)
    'closed; all input processed; 1,200 items, 1 late, 2 rejected; state 0; 40 terms'
    """
    progress = "no watermark yet"
    if stats.watermark >= INFINITY:
        progress = "all input processed"
    elif stats.watermark > 0:
        progress = f"watermark {instant(stats.watermark)}"
    late = f", {count(stats.late)} late" if stats.late else ""
    rejected = f", {count(stats.rejected)} rejected" if stats.rejected else ""
    items = f"{count(stats.items.read)} items{late}{rejected}"
    return (
        f"{'closed' if closed else 'open'}; {progress}; {items}; "
        f"state {count(stats.state)}; {count(stats.terms)} term{'s' * (stats.terms != 1)}"
    )
