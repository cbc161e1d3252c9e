"""HTML tables: the first rows of a result, and other facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from streamsparql.look.explain.drawing.palette import MONO, SANS
from streamsparql.look.jupyter.display_rows import DisplayRows
from streamsparql.sinks.cells import DisplayCell
from streamsparql.text.instants import DisplayClock

MAX_CELL = 60
"""The length, in characters, beyond which a cell is cut; its tooltip has the whole text."""

_LINE = "border-bottom:1px solid rgba(128,128,128,.3)"
_CELLS = ".streamsparql-table.streamsparql-table"  # twice: stronger than JupyterLab's own rules
_STYLE = (
    f".streamsparql-table{{border-collapse:collapse;font:13px/1.5 {SANS};margin:.3rem 0 .6rem}}"
    f"{_CELLS} th{{font-weight:600;text-align:left;padding:2px 12px 2px 4px;white-space:nowrap;"
    f"{_LINE}}}"
    f"{_CELLS} td{{text-align:left;padding:2px 12px 2px 4px;white-space:nowrap;{_LINE};"
    f"font-family:{MONO};font-size:12px;font-variant-numeric:tabular-nums}}"
    f"{_CELLS} .right{{text-align:right}}"
    f".streamsparql-more{{font:13px/1.5 {SANS};opacity:.75;margin-bottom:.6rem}}"
    ".streamsparql-rows{overflow-x:auto}"
    f"@media print{{.streamsparql-rows{{overflow:visible}}{_CELLS} td,{_CELLS} th"
    "{white-space:normal;overflow-wrap:anywhere}}"
)
"""The style sheet of tables; text and background colours are those of the page."""


def table_html(
    heads: Sequence[str],
    rows: Iterable[Sequence[str | DisplayCell]],
    right: Sequence[bool] = (),
    more: str = "",
) -> str:
    """Return an HTML table; `right` selects right-aligned columns, `more` is a note below it.

    >>> print(table_html(["?x"], [["<a>"]]).partition("</style>")[2])
    <div class="streamsparql-rows"><table class="streamsparql-table"><tr><th>?x</th></tr>
    <tr><td>&lt;a&gt;</td></tr></table></div>
    """
    sides = [*right, *[False] * (len(heads) - len(right))]
    top = "".join(_cell("th", head, side) for head, side in zip(heads, sides, strict=True))
    lines = [
        "".join(_cell("td", text, side) for text, side in zip(row, sides, strict=True))
        for row in rows
    ]
    body = "\n".join(f"<tr>{line}</tr>" for line in [top, *lines])
    below = f"\n{note_html(more)}" if more else ""
    table = f'<div class="streamsparql-rows"><table class="streamsparql-table">{body}</table></div>'
    return f"<style>{_STYLE}</style>{table}{below}"


def note_html(text: str) -> str:
    """Return a line of text to be shown below a table."""
    return f'<div class="streamsparql-more">{escape(text)}</div>'


def _cell(tag: str, value: str | DisplayCell, right: bool) -> str:
    """Return a cell; if its text is cut, the tooltip is the whole text."""
    whole, short = (value.text, value.short) if isinstance(value, DisplayCell) else (value, value)
    short = short if len(short) <= MAX_CELL else f"{short[: MAX_CELL - 1]}…"
    side = ' class="right"' if right else ""
    tip = "" if short == whole else f' title="{escape(whole)}"'
    return f"<{tag}{side}{tip}>{escape(short)}</{tag}>"


def first_rows_html(shown: DisplayRows, limit: int = 20, timestamps: str | None = None) -> str:
    """Return a table of a result's first rows: validity, then terms."""
    clock = DisplayClock.of(timestamps, shown.first())
    zone = "" if clock.style == "ms" else f" ({clock.zone})"
    rows: list[list[str | DisplayCell]] = [
        [clock.moment(row.start), "…" if row.never_ends else clock.moment(row.end), *row.cells]
        for row in shown.rows[:limit]
    ]
    number = clock.style == "ms"
    heads = [f"start{zone}", "end", *shown.heads]
    return table_html(heads, rows, [number, number, *shown.numeric], _omitted(shown, limit))


def _omitted(shown: DisplayRows, limit: int) -> str:
    count = len(shown.rows)
    if not count:
        return "no rows"
    if not shown.whole:
        return f"the first {min(limit, count)} of more than {count:,} rows"
    return f"and {count - limit:,} more" if count > limit else ""
