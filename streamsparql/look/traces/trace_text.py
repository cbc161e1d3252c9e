"""Traces, moments and definitions as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from streamsparql.algebra.streams import Snapshot
from streamsparql.look.traces.trace import Held, living
from streamsparql.physical.operator import INFINITY

if TYPE_CHECKING:
    from streamsparql.look.traces.definitions import Logical
    from streamsparql.look.traces.trace import Change, Doing, Moment, Step, Trace
    from streamsparql.look.traces.trace_rows import Wording

_STEPS = 40
_ROWS = 24


def of_trace(trace: Trace) -> str:
    """The operators, then step by step what happened."""
    lines = [_head(trace), *_operators(trace), ""]
    for step in trace.steps[:_STEPS]:
        lines += [of_step(trace, step), ""]
    if len(trace) > _STEPS:
        lines.append(f"and {len(trace) - _STEPS} more steps: trace[{_STEPS}:]")
    return "\n".join([*lines, trace.note]).rstrip()


def _head(trace: Trace) -> str:
    items = "one item" if len(trace.items) == 1 else f"{len(trace.items)} items"
    return f"{items} in {len(trace)} steps through {len(trace.operators)} operators"


def _operators(trace: Trace) -> Iterator[str]:
    width = len(str(len(trace.operators)))
    for operator in trace.operators:
        reads = f"   reads {', '.join(map(str, operator.inputs))}" if operator.inputs else ""
        yield f"  {operator.number:>{width}}  {operator}{reads}"


def of_step(trace: Trace, step: Step) -> str:
    """What happened in a step, operator by operator."""
    when = trace.wording.instant(step.instant)
    lines = [f"at {when}" if 0 <= step.instant < INFINITY else when]
    width = len(str(len(trace.operators)))
    for doing in step:
        head = f"  {doing.operator.number:>{width}}  {doing.operator.kind}"
        told = list(_told(trace.wording, doing))
        if told:
            lines += [head, *(f"  {'':>{width}}    {line}" for line in told)]
    return "\n".join(lines)


def _told(wording: Wording, doing: Doing) -> Iterator[str]:
    some = [f"gives {wording.element(e)}" for e in doing.gave]
    some += [change(wording, c) for c in doing.changes]
    yield from some[:_ROWS]
    if len(some) > _ROWS:
        yield f"and {len(some) - _ROWS} more"


def change(wording: Wording, what: Change) -> str:
    """What became of a row in a state, in a line."""
    if what.before is None:
        assert what.after is not None
        return f"{what.after.part} + {wording.held(*what.after)}"
    if what.after is None:
        return f"{what.before.part} - {wording.held(*what.before)}: {what.why}"
    times = wording.times(what.after.element)
    return f"{what.before.part} ~ {wording.held(*what.before)} now {times}"


def of_moment(moment: Moment) -> str:
    """What holds at an instant, and what is held."""
    wording = moment.trace.wording
    lines = [f"at {wording.moment(moment.t)}"]
    for standing in moment:
        lines.append(f"  {standing.operator.number}  {standing.operator}")
        lines += [f"       {row}" for row in _bag(wording, standing.snapshot)]
        held = [held_row(moment, h) for h in standing.state]
        lines += [f"       | {row}" for row in _few(held)]
    return "\n".join(lines)


def held_row(moment: Moment, held: Held) -> str:
    """A row in a state, in a line."""
    known = moment.t if moment.step is None else max(moment.t, moment.step.instant + 1)
    ended = not living(held, known)
    row = f"{held.part}: {moment.trace.wording.held(*held)}"
    return f"{row}, ended, still there" if ended else row


def of_logical(logical: Logical) -> str:
    """The nodes with their snapshots."""
    wording = logical.trace.wording
    lines = [f"by definition at {wording.moment(logical.t)}"]
    for node in logical:
        lines.append(f"  {node.number}  {type(node.node).__name__} {node.title}".rstrip())
        lines += [f"       {row}" for row in _bag(wording, node.snapshot)]
    return "\n".join(lines)


def _bag(wording: Wording, snapshot: Snapshot[Any]) -> Iterator[str]:
    return _few([f"{wording.item(x)}{f'  x {n}' if n > 1 else ''}" for x, n in snapshot.entries])


def _few(lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    yield from found[:_ROWS]
    if len(found) > _ROWS:
        yield f"and {len(found) - _ROWS} more"
