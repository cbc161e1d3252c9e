"""C-SPARQL, CQELS and RSP-QL: windows in brackets over sets, and three readings of them.

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
    Slot,
    Windowing,
    fixed,
    length,
    rows,
    sliding,
    stepped,
)


def _common(clause: s.WindowClause, slot: Slot) -> Windowing:
    """The windows that all three read alike."""
    match clause:
        case s.WindowRows(count, step):
            return rows(count, step, clause, slot)
        case s.WindowNow():
            return lambda plan: w.NowWindow(plan, name=slot.name, origin=slot.origin)
        case s.WindowAll():
            return lambda plan: w.UnboundedWindow(plan, name=slot.name, origin=slot.origin)
    raise AssertionError(clause)


def _csparql(clause: s.WindowClause, slot: Slot) -> Windowing:
    match clause:
        case s.WindowRows(count, int() as every) if every > count:
            raise _misses(clause)
        case s.WindowRange(width, step, tumbling):
            width, d = _with_unit(width), _with_unit(width if tumbling else _step(step, clause))
            if length(d) > length(width):
                raise _misses(d)
            return stepped(width, d, "right", slot)
    return _common(clause, slot)


def _cqels(clause: s.WindowClause, slot: Slot) -> Windowing:
    match clause:
        case s.WindowRange(width, _, True):
            return fixed(_with_unit(width), slot)
        case s.WindowRange(width, None):
            return sliding(_with_unit(width), s.DurationLiteral(1, span=width.span), slot)
        case s.WindowRange(width, s.DurationLiteral() as slide):
            return sliding(_with_unit(width), _with_unit(slide), slot)
    return _common(clause, slot)


def _rspql(clause: s.WindowClause, slot: Slot) -> Windowing:
    match clause:
        case s.WindowRange(width, step, tumbling):
            return stepped(width, width if tumbling else _step(step, clause), "left", slot)
    return _common(clause, slot)


def _misses(node: s.SyntaxNode) -> QueryError:
    return QueryError(
        "a STEP longer than the RANGE would miss triples",
        node.span,
        hint="STEP may be at most as long as RANGE",
    )


def _step(step: s.DurationLiteral | None, clause: s.WindowClause) -> s.DurationLiteral:
    if step is None:
        raise QueryError(
            "this window does not say when it moves",
            clause.span,
            hint="write [RANGE .. STEP ..], or [RANGE .. TUMBLING] where it moves by its length",
        )
    return step


def _with_unit(duration: s.DurationLiteral) -> s.DurationLiteral:
    if duration.unit is None:
        raise QueryError(
            f"{duration.milliseconds} of what?",
            duration.span,
            hint=f"write a unit: {duration.milliseconds}ms, {duration.milliseconds}s ..",
        )
    return duration


CSPARQL = Dialect(
    name="csparql", title="C-SPARQL", content="set", report="rstream", bracketed=_csparql
)
CQELS = Dialect(name="cqels", title="CQELS", content="set", report="istream", bracketed=_cqels)
RSPQL = Dialect(name="rspql", title="RSP-QL", content="set", report="rstream", bracketed=_rspql)
