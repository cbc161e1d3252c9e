"""How a notebook shows a query that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsparql.algebra.streams import INFINITY
from streamsparql.look.jupyter.html_table import table
from streamsparql.text.instants import instant
from streamsparql.text.numbers import count
from streamsparql.text.widths import cells

if TYPE_CHECKING:
    from streamsparql.run.live import Stats


HEADS = ("operator", "", "rows in", "rows out", "state")
_RIGHT = (False, False, True, True, True)


def shown(stats: Stats, closed: bool) -> str:
    """How far the query is, and what each operator did and holds."""
    return table(HEADS, _rows(stats), _RIGHT, facts(stats, closed))


def as_text(stats: Stats, closed: bool) -> str:
    """The same for a terminal."""
    rows = [HEADS, *_rows(stats)]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            " " * (width - cells(text)) + text if right else text + " " * (width - cells(text))
            for text, width, right in zip(row, widths, _RIGHT, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, facts(stats, closed)])


def _rows(stats: Stats) -> list[tuple[str, ...]]:
    return [
        (each.operator, each.facts, count(each.rows_in), count(each.rows_out), count(each.state))
        for each in reversed(stats.operators)
    ]


def facts(stats: Stats, closed: bool) -> str:
    """The whole, in a line.

    >>> from streamsparql.run.live import Stats
    >>> from streamsparql.sources import Accounting
    >>> items = Accounting(read=1200, accepted=1197, late=1, rejected=2)
    >>> facts(Stats(items, 0, INFINITY, 40, ()), closed=True)
    'closed; all is known; 1,200 items, 1 late, 2 rejected; state 0; 40 terms'
    """
    known = "nothing came"
    if stats.watermark >= INFINITY:
        known = "all is known"
    elif stats.watermark > 0:
        known = f"all before {instant(stats.watermark)} is known"
    late = f", {count(stats.late)} late" if stats.late else ""
    rejected = f", {count(stats.rejected)} rejected" if stats.rejected else ""
    items = f"{count(stats.items.read)} items{late}{rejected}"
    return (
        f"{'closed' if closed else 'open'}; {known}; {items}; "
        f"state {count(stats.state)}; {count(stats.terms)} term{'s' * (stats.terms != 1)}"
    )
