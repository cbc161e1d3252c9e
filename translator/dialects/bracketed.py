"""C-SPARQL, CQELS and RSP-QL: windows in brackets, which are sets and differ by dialect.

|                       | C-SPARQL              | CQELS                  | RSP-QL                |
|-----------------------|-----------------------|------------------------|-----------------------|
| `[RANGE w STEP d]`    | stepped, `(t - w, t]` | live edge, slides by d | stepped, `[o, o + w)` |
| `[RANGE w]`           | an error              | live edge, every ms    | an error              |
| `[RANGE w TUMBLING]`  | stepped, d = w        | live edge, d = w       | stepped, d = w        |
| a number with no unit | an error              | an error               | milliseconds          |
"""

from __future__ import annotations

from streamsparql.algebra import window as w
from streamsparql.errors import QueryError
from streamsparql.translator import syntax as s
from streamsparql.translator.dialects.base import (
    Dialect,
    Windowing,
    WindowSetting,
    bracketed_clause,
    fixed,
    last_elements,
    length,
    sliding,
    stepped,
)


def _common(clause: s.WindowClause, setting: WindowSetting) -> Windowing:
    """Return a window that has the same meaning in all three dialects."""
    match clause:
        case s.WindowRows(count, step):
            return last_elements(count, step, clause, setting)
        case s.WindowNow():
            return lambda plan: w.NowWindow(plan, name=setting.name, origin=setting.origin)
        case s.WindowAll():
            return lambda plan: w.UnboundedWindow(plan, name=setting.name, origin=setting.origin)
    raise AssertionError(clause)


def _csparql(clause: s.WindowClause, setting: WindowSetting) -> Windowing:
    match clause:
        case s.WindowRows(count, int() as every) if every > count:
            raise _step_too_long(clause)
        case s.WindowRange(width, step, tumbling):
            width, d = _with_unit(width), _with_unit(width if tumbling else _step(step, clause))
            if length(d) > length(width):
                raise _step_too_long(d)
            return stepped(width, d, "right", setting)
    return _common(clause, setting)


def _cqels(clause: s.WindowClause, setting: WindowSetting) -> Windowing:
    match clause:
        case s.WindowRange(width, _, True):
            return fixed(_with_unit(width), setting)
        case s.WindowRange(width, None):
            return sliding(_with_unit(width), s.DurationLiteral(1, span=width.span), setting)
        case s.WindowRange(width, s.DurationLiteral() as slide):
            return sliding(_with_unit(width), _with_unit(slide), setting)
    return _common(clause, setting)


def _rspql(clause: s.WindowClause, setting: WindowSetting) -> Windowing:
    match clause:
        case s.WindowRange(width, step, tumbling):
            return stepped(width, width if tumbling else _step(step, clause), "left", setting)
    return _common(clause, setting)


def _step_too_long(node: s.SyntaxNode) -> QueryError:
    return QueryError(
        "a STEP longer than the RANGE would miss triples",
        node.span,
        hint="STEP may be at most as long as RANGE",
    )


def _step(step: s.DurationLiteral | None, clause: s.WindowClause) -> s.DurationLiteral:
    if step is None:
        raise QueryError(
            "missing STEP: this window does not say when it moves",
            clause.span,
            hint="write [RANGE .. STEP ..], or [RANGE .. TUMBLING] if it moves by its length",
        )
    return step


def _with_unit(duration: s.DurationLiteral) -> s.DurationLiteral:
    if duration.unit is None:
        raise QueryError(
            f"missing time unit after {duration.milliseconds}",
            duration.span,
            hint=f"write a unit: {duration.milliseconds}ms, {duration.milliseconds}s ..",
        )
    return duration


CSPARQL = Dialect(
    name="csparql",
    title="C-SPARQL",
    bracketed=_csparql,
    window_text=bracketed_clause,
    report="rstream",
    windows_hold_sets=True,
    graph_reads_default_streams=True,
    has_named_streams=True,
    streams_carry_triples=True,
)
CQELS = Dialect(
    name="cqels",
    title="CQELS",
    bracketed=_cqels,
    window_text=bracketed_clause,
    report="istream",
    windows_hold_sets=True,
    reports_every_change=True,
    has_stream_blocks=True,
    window_names="variable",
)
RSPQL = Dialect(
    name="rspql",
    title="RSP-QL",
    bracketed=_rspql,
    window_text=bracketed_clause,
    report="rstream",
    windows_hold_sets=True,
    window_names="iri",
)
