"""Traces, moments and snapshots by definition, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from streamsparql.algebra.streams import Snapshot
from streamsparql.look.traces.trace import StateRow, is_live
from streamsparql.physical.operator import INFINITY

if TYPE_CHECKING:
    from streamsparql.look.traces.definitions import LogicalMoment
    from streamsparql.look.traces.trace import Change, Moment, OperatorStep, Trace, TraceStep
    from streamsparql.look.traces.trace_rows import TraceWording

_MAX_STEPS = 40
_MAX_LINES = 24


def trace_text(trace: Trace) -> str:
    """Return the operators of a trace, then its steps."""
    lines = [_summary(trace), *_operators(trace), ""]
    for step in trace.steps[:_MAX_STEPS]:
        lines += [step_text(trace, step), ""]
    if len(trace) > _MAX_STEPS:
        lines.append(f"and {len(trace) - _MAX_STEPS} more steps: trace[{_MAX_STEPS}:]")
    return "\n".join([*lines, trace.note]).rstrip()


def _summary(trace: Trace) -> str:
    items = "one item" if len(trace.items) == 1 else f"{len(trace.items)} items"
    return f"{items} in {len(trace)} steps through {len(trace.operators)} operators"


def _operators(trace: Trace) -> Iterator[str]:
    width = len(str(len(trace.operators)))
    for operator in trace.operators:
        reads = f"   reads {', '.join(map(str, operator.inputs))}" if operator.inputs else ""
        yield f"  {operator.number:>{width}}  {operator}{reads}"


def step_text(trace: Trace, step: TraceStep) -> str:
    """Return a step, operator by operator: the rows emitted, and the changes of the state."""
    when = trace.wording.instant(step.instant)
    lines = [f"at {when}" if 0 <= step.instant < INFINITY else when]
    width = len(str(len(trace.operators)))
    for each in step:
        head = f"  {each.operator.number:>{width}}  {each.operator.kind}"
        events = list(_events(trace.wording, each))
        if events:
            lines += [head, *(f"  {'':>{width}}    {line}" for line in events)]
    return "\n".join(lines)


def _events(wording: TraceWording, step: OperatorStep) -> Iterator[str]:
    emitted = [f"emits {wording.element(e)}" for e in step.emitted]
    return _first_lines(emitted + [change_text(wording, c) for c in step.changes])


def change_text(wording: TraceWording, change: Change) -> str:
    """Return a change of a state in a line: `+` inserted, `-` evicted, `~` validity changed."""
    if change.before is None:
        assert change.after is not None
        return f"{change.after.part} + {wording.state_row(*change.after)}"
    if change.after is None:
        return f"{change.before.part} - {wording.state_row(*change.before)}: {change.why}"
    times = wording.times(change.after.element)
    return f"{change.before.part} ~ {wording.state_row(*change.before)} now {times}"


def moment_text(moment: Moment) -> str:
    """Return the operators at an instant, each with its snapshot and, after `|`, its state."""
    wording = moment.trace.wording
    lines = [f"at {wording.moment(moment.t)}"]
    for each in moment:
        lines.append(f"  {each.operator.number}  {each.operator}")
        lines += [f"       {line}" for line in _snapshot_lines(wording, each.snapshot)]
        state = [state_row_text(moment, row) for row in each.state]
        lines += [f"       | {line}" for line in _first_lines(state)]
    return "\n".join(lines)


def state_row_text(moment: Moment, row: StateRow) -> str:
    """Return a row of a state in a line, with a note if it has expired and was not purged yet."""
    watermark = moment.t if moment.step is None else max(moment.t, moment.step.instant + 1)
    line = f"{row.part}: {moment.trace.wording.state_row(*row)}"
    return line if is_live(row, watermark) else f"{line}, expired, not yet purged"


def logical_text(logical: LogicalMoment) -> str:
    """Return the nodes of the logical plan, each with its snapshot."""
    wording = logical.trace.wording
    lines = [f"by definition at {wording.moment(logical.t)}"]
    for node in logical:
        lines.append(f"  {node.number}  {type(node.node).__name__} {node.title}".rstrip())
        lines += [f"       {line}" for line in _snapshot_lines(wording, node.snapshot)]
    return "\n".join(lines)


def _snapshot_lines(wording: TraceWording, snapshot: Snapshot[Any]) -> Iterator[str]:
    return _first_lines(
        [f"{wording.item(x)}{f'  x {n}' if n > 1 else ''}" for x, n in snapshot.entries]
    )


def _first_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first lines, and the number of those left out."""
    lines = list(lines)
    yield from lines[:_MAX_LINES]
    if len(lines) > _MAX_LINES:
        yield f"and {len(lines) - _MAX_LINES} more"
