"""HTML tables of a trace: its steps, and the operators or definitions at an instant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from streamsparql.algebra.streams import Snapshot
from streamsparql.look.explain.drawing.palette import FAINT, INK, LINE, MONO, PAPER, SANS
from streamsparql.look.explain.drawing.themes import themed
from streamsparql.physical.operator import INFINITY

if TYPE_CHECKING:
    from streamsparql.look.traces.definitions import LogicalMoment
    from streamsparql.look.traces.trace import Moment, Trace, TraceStep
    from streamsparql.look.traces.trace_rows import TraceWording

MAX_TABLE_STEPS = 30
"""The number of steps that a table shows."""
_STEP_LINES, _MOMENT_LINES = 8, 30
"""The number of lines that a cell shows, in a table of steps and in a table of an instant."""


def _rules() -> Iterator[str]:
    paper, ink, faint, line = map("/".join, (PAPER, INK, FAINT, LINE))
    yield f"&{{font:13px {SANS};color:{ink};background:{paper};max-width:1000px}}"
    yield "& .frame{overflow:auto;max-height:80vh}"
    yield "&& .frame svg{max-width:none}"
    yield f"& table{{border-collapse:collapse;font-size:12px;margin:6px 0;background:{paper}}}"
    yield (  # && is more specific than the rules of JupyterLab for cells and code
        f"&& td,&& th{{text-align:left;vertical-align:top;padding:2px 10px 2px 0;"
        f"border-top:1px solid {line};background:{paper};color:{ink};white-space:normal;"
        f"overflow-wrap:anywhere}}"
    )
    yield "&& th,&& .soft{white-space:nowrap}"
    yield "&& td:first-child,&& .soft+td{overflow-wrap:normal;min-width:5em}"
    yield f"&& code{{font:12px {MONO};color:{ink};background:none;padding:0}}"
    yield f"& .soft,& .note{{color:{faint}}}"
    yield f"& .controls{{position:sticky;top:0;z-index:1;padding:6px 0;background:{paper}}}"
    yield "& .controls[hidden],& .state[hidden]{display:none}"
    yield "& input{width:min(480px,50vw);vertical-align:middle}"


_ROOT = "streamsparql-trace"
_PRINTED = (
    f"@media print{{.{_ROOT} .frame{{max-height:none;overflow:visible}}.{_ROOT} .controls,"
    f".{_ROOT} .state{{display:none}}.{_ROOT}.{_ROOT} .frame svg{{max-width:100%;height:auto}}}}"
)
"""The rules for print, where nothing scrolls and the controls are useless."""
PAGE_STYLE = f"{themed(_ROOT, chr(10).join(_rules()))}\n{_PRINTED}"
"""The style sheet of the tables and controls around the picture of a trace."""


def steps_table(trace: Trace) -> str:
    """Return a table of the steps: items read, changes of state, rows that the query emitted."""
    shown = list(islice((step for step in trace if _eventful(trace, step)), MAX_TABLE_STEPS))
    rows = "".join(_step_row(trace, step) for step in shown)
    after = shown[-1].number + 1 if len(shown) == MAX_TABLE_STEPS else len(trace)
    more = len(trace) - after
    rest = f'<p class="note">and {more} more steps: trace[{after}:]</p>' if more > 0 else ""
    heads = "".join(f"<th>{head}</th>" for head in ("instant", "items", "state changes", "output"))
    return (
        f'<table class="steps"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{rest}'
    )


def _eventful(trace: Trace, step: TraceStep) -> bool:
    """Return whether anything happened in a step; most steps only advance time."""
    return bool(
        any(step.consumed.values())
        or step.emitted(len(trace.operators))
        or any(each.changes for each in step)
        or step.instant >= INFINITY
    )


def _step_row(trace: Trace, step: TraceStep) -> str:
    from streamsparql.look.traces.trace_text import change_text

    wording = trace.wording
    items = [wording.item(e.item) for rows in step.consumed.values() for e in rows]
    changes = [
        f"{operator_step.operator.number} {change_text(wording, change)}"
        for operator_step in step
        for change in operator_step.changes
    ]
    output = [wording.element(e) for e in step.emitted(len(trace.operators))]
    cells = (_cell(each, _STEP_LINES) for each in (items, changes, output))
    return _table_row(wording.instant(step.instant), *cells)


def moment_html(moment: Moment) -> str:
    """Return a table of the operators at an instant: rows that hold, state, last changes."""
    from streamsparql.look.traces.trace_text import change_text, state_row_text

    wording = moment.trace.wording
    rows = "".join(
        _table_row(
            str(each.operator),
            _cell(_snapshot_lines(wording, each.snapshot)),
            _cell(state_row_text(moment, row) for row in each.state),
            _cell(change_text(wording, change) for change in each.changes),
            number=each.operator.number,
        )
        for each in moment
    )
    title = f"at {wording.moment(moment.t)}"
    return _table(title, ("", "operator", "holds", "state", "last changes"), rows)


def logical_html(logical: LogicalMoment) -> str:
    """Return a table of the nodes of the logical plan at an instant, with their snapshots."""
    wording = logical.trace.wording
    rows = "".join(
        _table_row(
            f"{type(node.node).__name__} {node.title}".rstrip(),
            _cell(_snapshot_lines(wording, node.snapshot)),
            number=node.number,
        )
        for node in logical
    )
    return _table(f"by definition at {wording.moment(logical.t)}", ("", "node", "holds"), rows)


def _table(title: str, heads: Iterable[str], rows: str) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    return (
        f'<div class="streamsparql-trace"><style>{PAGE_STYLE}</style><b>{escape(title)}</b>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _table_row(head: str, *cells: str, number: int | None = None) -> str:
    first = "" if number is None else f'<td class="soft">{number}</td>'
    rest = "".join(f"<td>{cell}</td>" for cell in cells)
    return f"<tr>{first}<td>{escape(head)}</td>{rest}</tr>"


def _cell(texts: Iterable[str], limit: int = _MOMENT_LINES) -> str:
    lines = list(texts)
    shown = "<br>".join(f"<code>{escape(line)}</code>" for line in lines[:limit])
    more = len(lines) - limit
    return f'{shown}<br><span class="soft">and {more} more</span>' if more > 0 else shown


def _snapshot_lines(wording: TraceWording, snapshot: Snapshot[Any]) -> Iterator[str]:
    for item, multiplicity in snapshot.entries:
        yield f"{wording.item(item)}{f'  x {multiplicity}' if multiplicity > 1 else ''}"
