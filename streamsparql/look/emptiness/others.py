"""Reasons other than patterns, filters and joins: windows, the horizon, reports, LIMIT, EXISTS."""

from __future__ import annotations

from streamsparql.algebra import shape
from streamsparql.algebra import window as w
from streamsparql.display.why_empty import Reason
from streamsparql.look.emptiness.evidence import Evidence, count_of
from streamsparql.look.explain.boxes.phrases import with_units
from streamsparql.look.explain.boxes.physical import description_of
from streamsparql.look.lints import lint
from streamsparql.physical.hidden import FROM, TO
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.access import Always, StreamAccess
from streamsparql.physical.operators.columns import SelectEqual
from streamsparql.physical.operators.filter import AntiJoin, SemiJoin
from streamsparql.physical.operators.graph import Construct
from streamsparql.physical.operators.join import Minus
from streamsparql.physical.operators.report import Clip, Reports
from streamsparql.physical.operators.slice import Slice
from streamsparql.physical.operators.window import AlignToReports, ElementWindow, TimeWindow
from streamsparql.text.instants import instant

GRAPH_HINT = "if it is static data, pass --graph FILE, or graph= in Python"


def other_reason(evidence: Evidence, operator: Operator) -> Reason:
    """Return the reason why an operator emits no rows, though it consumes some."""
    match operator:
        case Clip():
            return _outside_horizon(evidence, operator)
        case AlignToReports() | Reports():
            return _between_reports(evidence, operator)
        case TimeWindow() | ElementWindow():
            return _window(evidence, operator)
        case Always():
            return _static(evidence, operator)
        case StreamAccess():
            return _stream(evidence, operator)
        case SelectEqual() if {FROM, TO} & {name for name, _ in operator.pairs}:
            return Reason("join", "no way along the property path ends where the query says")
    return _removed(evidence, operator)


def _removed(evidence: Evidence, operator: Operator) -> Reason:
    """Return the reason of an operator that removes rows."""
    count = count_of(max(evidence.rows_in(operator), default=0), "row")
    rows = f"{count} of {evidence.patterns_below(operator.inputs[0])}"
    match operator:
        case Slice():
            skipped = f"OFFSET {operator.offset:,} skips all rows of each instant"
            return Reason("slice", "LIMIT 0 keeps no row" if operator.limit == 0 else skipped)
        case AntiJoin():
            return Reason("not-exists", f"NOT EXISTS removes all {rows}")
        case SemiJoin():
            return Reason("exists", f"EXISTS is false for all {rows}")
        case Minus():
            return Reason("minus", f"MINUS removes all {rows}")
        case Construct():
            hint = "all places must be bound, the subject to an IRI or a blank node"
            return Reason("template", f"none of {count} makes a triple of the template", hint=hint)
    described = description_of(operator, evidence.write)
    title = f"{described.kind} {described.title}".strip()
    return Reason("operator", f"{title} consumes {count} and emits none")


def _outside_horizon(evidence: Evidence, operator: Clip) -> Reason:
    start, end = evidence.execution.input.start, evidence.execution.input.end
    horizon = "" if start is None else f" from {instant(start)}"
    horizon += "" if end is None else f" until {instant(end)}"
    rows = max(evidence.rows_in(operator))
    which = "the only row holds" if rows == 1 else f"all {rows:,} rows hold"
    return Reason(
        "horizon",
        f"{which} outside of the horizon{horizon}",
        _times(evidence, operator),
        "change --from and --until, or start= and end= in Python",
    )


def _between_reports(evidence: Evidence, operator: AlignToReports | Reports) -> Reason:
    count = count_of(max(evidence.rows_in(operator)), "row")
    if isinstance(operator, Reports) and operator.kind == "dstream":
        return Reason("report", f"none of {count} ends during the run, as DSTREAM reports")
    every = operator.align.period if isinstance(operator, AlignToReports) else operator.every
    period = "" if every is None else f", every {with_units(every)}"
    return Reason(
        "report",
        f"none of {count} holds at the instant of a report{period}",
        _times(evidence, operator),
        "report more often: --every, or every= in Python",
    )


def _times(evidence: Evidence, operator: Operator) -> tuple[str, ...]:
    """Return when the rows hold that an operator consumed, if a probe noted it."""
    same, probe = evidence.like(operator), evidence.probe
    span = probe.samples.spans.get(same) if probe is not None and same is not None else None
    if span is None:
        return ()
    return (f"they hold from {instant(span.start)} to {instant(span.end)}",)


def _window(evidence: Evidence, operator: TimeWindow | ElementWindow) -> Reason:
    window, rows = operator.window, max(evidence.rows_in(operator))
    items = count_of(rows, "item")
    if isinstance(window, w.SteppedTupleWindow):
        message = f"the window emits at each {window.step:,}th triple, and the stream has {rows:,}"
        return Reason("window", message, hint="set a smaller STEP")
    if window.misses_elements:
        message = f"{items} of the stream {'falls' if rows == 1 else 'fall'} between two windows"
        return Reason("window", message, hint="set STEP to RANGE or less")
    return Reason("window", f"no window has any of {items}")


def _static(evidence: Evidence, operator: Always) -> Reason:
    """Return the reason for a static subplan that is known to be empty."""
    if isinstance(operator.node, shape.Table):
        return _rewritten_to_nothing(evidence)
    what = description_of(operator, evidence.write).title.removesuffix(", 0 rows")
    missing = evidence.execution.input.graph is None
    hint = GRAPH_HINT if missing else ""
    return Reason("no-match", f"no static triple matches {what}".rstrip(), hint=hint)


def _rewritten_to_nothing(evidence: Evidence) -> Reason:
    """Return the reason why the rewritten plan has no rows, whatever the data."""
    if any(isinstance(node, shape.Slice) and node.limit == 0 for node in evidence.written()):
        return Reason("never-true", "LIMIT 0 keeps no row")
    for warning in lint(evidence.query.translation):
        if warning.code == "never-true":
            return Reason("never-true", warning.message, hint=warning.hint, span=warning.span)
    return Reason("never-true", "a condition of the query is never true")


def _stream(evidence: Evidence, operator: StreamAccess) -> Reason:
    counts = evidence.execution.sorters[operator.stream].accounting
    name = description_of(operator, evidence.write).title
    if not counts.read:
        return Reason("no-items", f"the stream {name} has no items")
    return Reason("no-items", f"no pattern matches the {count_of(counts.read, 'item')} of {name}")
