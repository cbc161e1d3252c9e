"""A recorded run: it consumes its items instant by instant, and retains every row and state.

All items of an instant are consumed in one step, after which the watermark is the next instant. So
the state after a step is what the operators need of the past once all items up to that instant are
known. The last step ends all streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamsparql.errors import EngineError
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import since_of
from streamsparql.physical.operator import INFINITY, NEVER, Operator
from streamsparql.physical.operators.group import Aggregation, Annotate
from streamsparql.physical.state.parts import NamedRows
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput
from streamsparql.sources import Chunk, Wanted

if TYPE_CHECKING:
    from streamsparql.compiled import CompiledQuery

GROUP_VALUES = "values"
"""The part of a state with each group's value, valid since its last change."""

MAX_STEPS = 5_000
"""The number of steps above which a trace with `step` is refused."""

MAX_STATE_ROWS = 300_000
"""The number of rows of states, over all steps, at which a trace is cut off."""


class RecordedStep(NamedTuple):
    """A step: the items consumed, each operator's output, and its state afterwards."""

    instant: int
    """All items up to it were consumed; NEVER in the step of the items before the start."""
    consumed: Mapping[str, Batch]
    emitted: Mapping[Operator, Batch]
    states: Mapping[Operator, tuple[NamedRows, ...]]


class RecordedRun(NamedTuple):
    """A run and its steps."""

    run: Recording
    steps: tuple[RecordedStep, ...]
    until: int | None
    """The instant at which too many items or rows of states cut off the trace; None if whole."""
    too_many_rows: bool
    """Whether the trace was cut off for the rows of states."""


class Recorder:
    """An observer of a pipeline that retains the output of each operator in a step.

    >>> from streamsparql.physical.operators.access import Always
    >>> recorder, one = Recorder(), Always.of({"x": np.array([5, 6])}, 2)
    >>> recorder.observe(one, [], one.rows)
    >>> recorder.emitted[one].columns["x"].tolist()
    [5, 6]
    """

    def __init__(self) -> None:
        self.emitted: dict[Operator, Batch] = {}

    def observe(self, operator: Operator, inputs: Sequence[Batch], output: Batch) -> None:
        """Retain a copy of an operator's output."""
        self.emitted[operator] = _copy(output)


class Recording(Execution):
    """An execution that records every step, and reads items that no pattern can match too.

    Unmatched items bypass the sorters, so that the same items are late as in any other run.
    """

    def __init__(self, query: CompiledQuery, run_input: RunInput) -> None:
        self.steps: list[RecordedStep] = []
        self.items: Mapping[str, Batch] = {}
        """The items that were read, consumed or not: their terms stay in the dictionary."""
        self._unmatched: dict[str, list[Batch]] = {}
        self.state_rows = 0
        """The number of rows of states that were recorded."""
        self._recorder = Recorder()
        super().__init__(query, run_input, observer=self._recorder)

    @override
    def wanted(self, stream: str) -> Wanted | None:
        return None

    @override
    def reader(
        self,
        stream: str,
        source: Any,
        first: int = 1,
        failures: list[BaseException] | None = None,
    ) -> Iterator[Chunk]:
        wanted = super().wanted(stream)
        for chunk in super().reader(stream, source, first, failures):
            matched = None if wanted is None else wanted.mask(chunk.p)
            if matched is None or matched.all():
                yield chunk
                continue
            columns = dict(zip(TRIPLE, (chunk.s, chunk.p, chunk.o), strict=True))
            rows = Batch(columns, chunk.end, chunk.end + 1).where(~matched)
            if self.sorters[stream].events:
                rows = rows.with_columns({SINCE: since_of(chunk.start[~matched])})
            self._unmatched.setdefault(stream, []).append(rows)
            kept = np.arange(len(chunk)) if chunk.kept is None else chunk.kept
            since = None if chunk.since is None else chunk.since[matched]
            s, p, o = (ids[matched] for ids in columns.values())
            yield replace(chunk, s=s, p=p, o=o, since=since, kept=kept[matched])

    def unmatched(self) -> dict[str, list[Batch]]:
        """Return the unmatched items that were read since the last call, by stream."""
        unmatched, self._unmatched = self._unmatched, {}
        return unmatched

    def record_step(self, instant: int, watermark: int, consumed: Mapping[str, Batch]) -> None:
        """Execute a step and record it."""
        emitted = self._recorder.emitted = {}
        self.step(consumed, watermark)
        before = self.steps[-1].states if self.steps else {}
        states = {
            operator: _state(operator) if operator in emitted else before.get(operator, ())
            for operator in self.pipeline.operators
        }
        self.state_rows += sum(len(rows) for o in emitted for _, rows in states[o])
        self.steps.append(RecordedStep(instant, consumed, emitted, states))

    def cut_off(self, t: int) -> None:
        """End the horizon at an instant."""
        self._clip.end = min(self._clip.end, t)

    @override
    def _ids(self) -> Iterator[IntArray]:
        yield from super()._ids()
        for rows in self.items.values():
            yield from rows.columns.values()
        for step in self.steps:
            parts = (rows for state in step.states.values() for _, rows in state)
            for rows in chain(step.consumed.values(), step.emitted.values(), parts):
                yield from rows.columns.values()


def record(query: CompiledQuery, run_input: RunInput, limit: int, step: int | None) -> RecordedRun:
    """Run a query over up to `limit` items of the horizon, and record each step.

    With `step`, the watermark also advances between items, by that many milliseconds.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MS FIXED {?s ?p ?o}")
    >>> items = [("<a>", "<p>", '"1"', t) for t in (3, 5, 5, 9)]
    >>> recorded = record(query, RunInput({"s": items}), 3, None)
    >>> [step.instant for step in recorded.steps][:2], recorded.until
    ([3, 5], 9)
    """
    run = Recording(query, run_input)
    with run.guard:
        return _recorded(run, limit, step)


def _recorded(run: Recording, limit: int, step: int | None) -> RecordedRun:
    """Execute a run, and record each step."""
    run_input = run.input
    rows, until = _read_items(run, run_input, limit)
    run.items = rows
    if until is not None:
        run.cut_off(until)
    any_before, stamps = _stamps(rows, run_input.start)
    if any_before:
        assert run_input.start is not None
        run.record_step(NEVER, run_input.start, _between(rows, 0, run_input.start))
    if step is not None:
        first = stamps[0] if run_input.start is None and stamps else run_input.start or 0
        ticks = range(-(-first // step) * step, stamps[-1] if stamps else first, step)
        _check_step_count(len(ticks), step)
        stamps = sorted({*stamps, *ticks})
    too_many_rows = False
    for t in stamps:
        too_many_rows = run.state_rows > MAX_STATE_ROWS
        if too_many_rows:
            until = t
            run.cut_off(t)
            break
        run.record_step(t, t + 1, _between(rows, t, t + 1))
    if step is not None and not too_many_rows:
        _advance_to_last_end(run, step, run_input.end if until is None else until)
    run.record_step(INFINITY, INFINITY, {})
    return RecordedRun(run, tuple(run.steps), until, too_many_rows)


def _read_items(
    run: Recording, run_input: RunInput, limit: int
) -> tuple[dict[str, Batch], int | None]:
    """Read the items before the end of the horizon.

    If there are more than `limit`, return those before an instant, and the instant. All items of
    the first instant are returned, whatever the limit.
    """
    first = 0 if run_input.start is None else run_input.start
    end = INFINITY if run_input.end is None else run_input.end
    parts: dict[str, list[Batch]] = {name: [] for name in run.streams}
    stamps: list[int] = []
    until = None
    for batches, watermark in run.input_steps():
        unmatched = ((n, b) for n, listed in run.unmatched().items() for b in listed)
        for name, batch in chain(batches.items(), unmatched):
            parts[name].append(batch)
            stamps += batch.start[(batch.start >= first) & (batch.start < end)].tolist()
        if len(stamps) > limit:
            stamps.sort()
            until = stamps[limit] if stamps[limit] > stamps[0] else stamps[0] + 1
            if watermark >= until:
                break
        if watermark >= end:
            break
    last = end if until is None else until
    rows = {name: Batch.concat(batches).ordered() for name, batches in parts.items() if batches}
    kept = {name: batch.where(batch.start < last) for name, batch in rows.items()}
    return kept, until


def _stamps(rows: Mapping[str, Batch], start: int | None) -> tuple[bool, list[int]]:
    """Return whether there are items before the start, and the distinct stamps of the others."""
    stamps = sorted({t for batch in rows.values() for t in batch.start.tolist()})
    if start is None:
        return False, stamps
    kept = [t for t in stamps if t >= start]
    return len(kept) < len(stamps), kept


def _between(rows: Mapping[str, Batch], begin: int, end: int) -> dict[str, Batch]:
    """Return the items stamped in `[begin, end)`, by stream."""
    inside = {}
    for name, batch in rows.items():
        first, after = np.searchsorted(batch.start, [begin, end]).tolist()
        if first < after:
            inside[name] = batch.part(first, after)
    return inside


def _advance_to_last_end(run: Recording, step: int, end: int | None) -> None:
    """Advance the watermark in steps until all rows with an end have ended."""
    t = 0 if not run.steps else (max(run.steps[-1].instant, 0) // step + 1) * step
    last = INFINITY if end is None else end
    while t < last and t <= _last_end(run.steps):
        run.record_step(t, t + 1, {})
        _check_step_count(len(run.steps), step)
        t += step


def _last_end(steps: Sequence[RecordedStep]) -> int:
    """Return the greatest finite end of the rows that were emitted or are retained; -1 if none."""
    retained = (rows for state in steps[-1].states.values() for _, rows in state) if steps else ()
    emitted = (rows for step in steps for rows in step.emitted.values())
    ends = [rows.end[rows.end < INFINITY].max(initial=-1) for rows in chain(retained, emitted)]
    return int(max(ends, default=-1))


def _check_step_count(steps: int, step: int) -> None:
    if steps > MAX_STEPS:
        raise EngineError(
            f"step={step} makes more than {MAX_STEPS} steps: use a longer step, or trace a part of"
            " the time with start= and end="
        )


def _state(operator: Operator) -> tuple[NamedRows, ...]:
    """Return copies of the parts of an operator's state, with the values of its groups."""
    parts = [(name, _copy(rows)) for name, rows in operator.content()]
    if isinstance(operator, Aggregation | Annotate):
        parts.append((GROUP_VALUES, _copy(operator.values())))
    return tuple(parts)


def _copy(rows: Batch) -> Batch:
    columns = {name: column.copy() for name, column in rows.columns.items()}
    count = None if rows.count is None else rows.count.copy()
    return Batch(columns, rows.start.copy(), rows.end.copy(), count)
