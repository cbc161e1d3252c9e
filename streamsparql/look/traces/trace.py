"""A trace of a query: its operators, its steps, and what each operator did in each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import Element, Snapshot
from streamsparql.display import Displayed, draw_trace
from streamsparql.errors import EngineError
from streamsparql.look.explain.boxes.box import Box
from streamsparql.look.explain.boxes.physical import operator_box
from streamsparql.look.traces.recording import GROUP_VALUES, RecordedRun, RecordedStep, record
from streamsparql.look.traces.trace_rows import (
    ElementDecoder,
    Elements,
    TraceWording,
    numbered,
)
from streamsparql.overriding import override
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.binary import MIN_HEAP
from streamsparql.physical.operators.window import INSIDE
from streamsparql.physical.state.parts import TO_BE_EMITTED
from streamsparql.run.time_arguments import instant_argument, period_argument
from streamsparql.sources import Accounting, Reject
from streamsparql.text.instants import DisplayClock

if TYPE_CHECKING:
    from streamsparql.compiled import CompiledQuery
    from streamsparql.display.picture import Picture
    from streamsparql.look.traces.definitions import Definitions, Disagreement, LogicalMoment
    from streamsparql.run.input import RunInput
    from streamsparql.run.time_arguments import Duration, Instant


@dataclass(frozen=True)
class TracedOperator:
    """An operator of the physical plan; those that read streams have the lowest numbers."""

    number: int
    kind: str
    title: str
    """Its parameters, as the query writes them."""
    state: str
    """A one-line description of its state."""
    inputs: tuple[int, ...]
    """The numbers of the operators that it reads."""
    node: Plan | None = field(repr=False)
    """The logical node that it computes; None if it computes a part of one, or several."""
    box: Box = field(repr=False)
    """Its box in a drawing of the plan."""

    def __str__(self) -> str:
        return f"{self.kind} {self.title}".rstrip()


class StateRow(NamedTuple):
    """A row in a state: the part of the state, and the row over the time for which it is needed."""

    part: str
    element: Element[Any]


class Change(NamedTuple):
    """A change of a state: a row was inserted, was evicted, or is needed for another time."""

    before: StateRow | None
    """None for an inserted row."""
    after: StateRow | None
    """None for an evicted row."""
    why: str
    """Of an evicted row: "expired", "emitted", "pushed out" by newer elements of its window, or
    "purged", because no later row can match it. Empty for other changes.
    """  # fmt: skip


class OperatorStep(NamedTuple):
    """The input and output of an operator in a step, and the changes of its state."""

    operator: TracedOperator
    consumed: tuple[Elements, ...]
    """Per input."""
    emitted: Elements
    changes: tuple[Change, ...]
    state: tuple[StateRow, ...]
    """The rows that it retains after the step."""

    @property
    def inserted(self) -> list[StateRow]:
        """The rows that entered the state."""
        return [c.after for c in self.changes if c.before is None and c.after is not None]

    @property
    def evicted(self) -> list[StateRow]:
        """The rows that left the state."""
        return [c.before for c in self.changes if c.after is None and c.before is not None]

    def __bool__(self) -> bool:
        """Return whether the operator consumed or emitted rows, or changed its state."""
        return bool(self.emitted or self.changes or any(self.consumed))


class TraceStep:
    """One step of the trace: all items after the step before it, up to its instant.

    Iteration yields an `OperatorStep` for each operator that did something; `step[n]` returns that
    of the operator with number n, even if it did nothing.
    """

    def __init__(self, trace: Trace, number: int, recorded: RecordedStep) -> None:
        self.number = number
        self.instant = recorded.instant
        """All items up to it were consumed; INFINITY in the last step: the streams have ended."""
        self._trace, self._recorded = trace, recorded

    @cached_property
    def consumed(self) -> Mapping[str, Elements]:
        """The items of the step, by stream."""
        decode = self._trace.decoder.elements
        return {name: decode(rows) for name, rows in self._recorded.consumed.items()}

    def __iter__(self) -> Iterator[OperatorStep]:
        return (each for k in self._operator_steps if (each := self[k]))

    def __getitem__(self, number: int) -> OperatorStep:
        step = self._operator_steps[numbered(range(1, len(self._operator_steps) + 1), number)]
        if step is None:
            step = self._operator_steps[number] = self._operator_step(number)
        return step

    @cached_property
    def _operator_steps(self) -> dict[int, OperatorStep | None]:
        """A cache of the operators' steps; None for those that were not decoded yet."""
        return dict.fromkeys(range(1, len(self._trace.operators) + 1))

    def emitted(self, number: int) -> Elements:
        """Return the rows that an operator emitted in this step."""
        operator = self._trace.physical[number - 1]
        rows = self._recorded.emitted.get(operator)
        return () if rows is None else self._trace.decoder.elements(rows)

    def state(self, number: int) -> tuple[StateRow, ...]:
        """Return the rows that an operator retains after this step."""
        parts = self._recorded.states[self._trace.physical[number - 1]]
        decode = self._trace.decoder.elements
        return tuple(StateRow(part, element) for part, rows in parts for element in decode(rows))

    def _operator_step(self, number: int) -> OperatorStep:
        trace = self._trace
        operator = trace.operators[number - 1]
        physical = trace.physical[number - 1]
        parts, state = self._recorded.states[physical], self.state(number)
        changes: tuple[Change, ...] = ()
        before = trace.steps[self.number - 1] if self.number else None
        if before is None or before._recorded.states[physical] is not parts:
            earlier = () if before is None else before.state(number)
            changes = tuple(_changes(earlier, state, self.instant))
        consumed = tuple(self.emitted(below) for below in operator.inputs)
        return OperatorStep(operator, consumed, self.emitted(number), changes, state)

    def __str__(self) -> str:
        from streamsparql.look.traces.trace_text import step_text

        return step_text(self._trace, self)

    def __repr__(self) -> str:
        return f"<TraceStep {self.number}: {self._trace.wording.instant(self.instant)}>"


class OperatorMoment(NamedTuple):
    """An operator at an instant: the snapshot of its output, and its state."""

    operator: TracedOperator
    snapshot: Snapshot[Any]
    """Of all rows that it emits in the whole trace, those that hold at the instant."""
    state: tuple[StateRow, ...]
    """The rows that it retains after the last step up to the instant."""
    changes: tuple[Change, ...]
    """The changes of its state in a step at this very instant."""


@dataclass(frozen=True, repr=False)
class Moment(Displayed):
    """All operators at an instant; `moment[n]` is the operator with number n."""

    trace: Trace
    t: int
    step: TraceStep | None
    """The last step up to the instant; None before the first."""
    operators: tuple[OperatorMoment, ...]

    def __iter__(self) -> Iterator[OperatorMoment]:
        return iter(self.operators)

    def __getitem__(self, number: int) -> OperatorMoment:
        return numbered(self.operators, number)

    @override
    def __str__(self) -> str:
        from streamsparql.look.traces.trace_text import moment_text

        return moment_text(self)

    def __repr__(self) -> str:
        return f"<Moment at {self.trace.wording.moment(self.t)}>"


class Trace(Sequence[TraceStep]):
    """The rows that pass each operator of a query, and its states: a sequence of steps.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {?s ?p ?o}")
    >>> trace = query.trace([("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 5)])
    >>> [step.instant for step in trace][:2]
    [3, 5]
    >>> print(trace.at(4)[2].snapshot.entries[0][0], len(trace.at(4)[2].snapshot))
    <a> <p> "1" 1
    """

    def __init__(
        self, query: CompiledQuery, run_input: RunInput, limit: int, step: Duration | None
    ) -> None:
        if type(limit) is not int or limit < 1:
            raise EngineError(f"limit must be a positive integer, not {limit!r}")
        period = None if step is None else period_argument("step", step)
        self.query, self.run_input, self.limit = query, run_input, limit
        self._recorded: RecordedRun = record(query, run_input, limit, period)
        run = self._recorded.run
        self.decoder = ElementDecoder(run.terms)
        self.physical: tuple[Operator, ...] = tuple(run.pipeline.operators)
        prefixes = query.prefixes
        self.clock = DisplayClock.of(None, self.first)
        self.wording = TraceWording(prefixes, self._moment)
        numbers = {operator: k for k, operator in enumerate(self.physical, 1)}
        self.operators = tuple(self._describe(o, numbers) for o in self.physical)
        self.steps = tuple(TraceStep(self, k, r) for k, r in enumerate(self._recorded.steps))

    def _describe(self, operator: Operator, numbers: Mapping[Operator, int]) -> TracedOperator:
        box = operator_box(operator, self.wording.write)
        inputs = tuple(numbers[below] for below in operator.inputs)
        kind, title = type(operator).__name__, box.title
        return TracedOperator(
            numbers[operator], kind, title, operator.state, inputs, operator.node, box
        )

    def _moment(self, t: int) -> str:
        """Return an instant as text, without the date on the day on which the trace begins."""
        first_day, text = self.clock.day(self.first), self.clock.moment(t)
        return text[11:] if first_day and text[:10] == first_day[:10] else text

    # -- steps

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        return self.steps[index]

    def __iter__(self) -> Iterator[TraceStep]:
        return iter(self.steps)

    # -- the whole

    @cached_property
    def first(self) -> int:
        """The first instant of the trace."""
        instants = [s.instant for s in self._recorded.steps if 0 <= s.instant < INFINITY]
        start = self.run_input.start
        return min(instants, default=0) if start is None else start

    @property
    def until(self) -> int | None:
        """The instant at which too many items or rows cut off the trace; None if it is whole."""
        return self._recorded.until

    @property
    def late(self) -> list[Reject]:
        """The items that arrived below the watermark, with reasons."""
        return [reject for reject in self._recorded.run.rejects() if reject.late]

    @property
    def rejected(self) -> list[Reject]:
        """The items that could not be read or stamped, with reasons."""
        return [reject for reject in self._recorded.run.rejects() if not reject.late]

    @property
    def accounting(self) -> Accounting:
        """The counts of the items that were read."""
        return self._recorded.run.accounting

    @cached_property
    def items(self) -> tuple[tuple[str, Element[Any]], ...]:
        """The items with their streams, by time."""
        pairs = ((s, e) for step in self.steps for s, rows in step.consumed.items() for e in rows)
        return tuple(sorted(pairs, key=lambda pair: pair[1].start))

    def emitted_by(self, number: int) -> list[tuple[TraceStep, Element[Any]]]:
        """Return the rows that an operator emitted, each with the step in which it did."""
        numbered(self.operators, number)
        return [(step, element) for step in self.steps for element in step.emitted(number)]

    @cached_property
    def _emitted(self) -> tuple[tuple[Element[Any], ...], ...]:
        """All rows that each operator emitted."""
        numbers = range(1, len(self.operators) + 1)
        return tuple(tuple(e for _, e in self.emitted_by(n)) for n in numbers)

    # -- instants

    def at(self, t: Instant) -> Moment:
        """Return every operator at an instant: the snapshot of its output, and its state.

        The snapshot contains all rows that hold at the instant, also those emitted later. The state
        (sweep areas, heap, window) is the one after the last step up to the instant.
        """
        t = instant_argument("t", t)
        steps = [step for step in self.steps if step.instant <= t]
        step = steps[-1] if steps else None
        operators = []
        for operator, elements in zip(self.operators, self._emitted, strict=True):
            snapshot = Snapshot.of(e.item for e in elements if e.holds(t))
            state = () if step is None else step.state(operator.number)
            here = step is not None and step.instant == t
            changes = step[operator.number].changes if step is not None and here else ()
            operators.append(OperatorMoment(operator, snapshot, state, changes))
        return Moment(self, t, step, tuple(operators))

    @cached_property
    def instants(self) -> tuple[int, ...]:
        """The instants of steps, and those at which an emitted row starts or ends, in order."""
        instants = {step.instant for step in self.steps}
        for elements in self._emitted:
            instants.update(t for e in elements for t in (e.start, e.end))
        last = INFINITY if self.run_input.end is None else self.run_input.end
        last = last if self.until is None else min(last, self.until)
        return tuple(sorted(t for t in instants if self.first <= t < last))

    # -- definitions

    @cached_property
    def definitions(self) -> Definitions:
        """The definitions of the logical plan, over the data of the trace."""
        from streamsparql.look.traces.definitions import Definitions

        recorded = self._recorded
        return Definitions(self, recorded.run.catalog, recorded.run.input.started)

    def logical(self, t: Instant) -> LogicalMoment:
        """Return the snapshot of each node of the logical plan at an instant, by its definition."""
        return self.definitions.logical(instant_argument("t", t))

    def check(self) -> list[Disagreement]:
        """Compare the operators with the definitions of their nodes, at all instants of the trace.

        An empty list means that they agree.
        """
        return self.definitions.check()

    # -- display

    def picture(self) -> Picture:
        """Draw the timelines of all operators below each other, in the order of their numbers."""
        picture: Picture = draw_trace(self)
        return picture

    def _repr_html_(self) -> str:
        return self.picture().html

    def __str__(self) -> str:
        from streamsparql.look.traces.trace_text import trace_text

        return trace_text(self)

    def __repr__(self) -> str:
        return (
            f"<Trace: {len(self.items)} items, {len(self)} steps, {len(self.operators)} operators>"
        )

    @property
    def note(self) -> str:
        """A note on the items that the trace does not contain; empty if it contains all."""
        notes = []
        if self.until is not None:
            until = self.wording.moment(self.until)
            notes.append(
                f"The states have too many rows: the trace ends at {until}. To trace more, use"
                " shorter windows, a filter, or fewer items."
                if self._recorded.too_many_rows
                else f"There are more than {self.limit} items: the trace ends at {until}."
                " limit= traces more items, start= later ones."
            )
        if rejects := len(self._recorded.run.rejects()):
            items = "One item was" if rejects == 1 else f"{rejects} items were"
            notes.append(f"{items} late or rejected: see trace.late, trace.rejected.")
        return " ".join(notes)


def _changes(
    before: Sequence[StateRow], after: Sequence[StateRow], instant: int
) -> Iterator[Change]:
    """Yield the differences of two states.

    An old and a new row that differ in their times only are one change of the same row.
    """
    old, new = Counter(before), Counter(after)
    old, new = old - new, new - old
    new_by_item: dict[tuple[str, Any], list[StateRow]] = {}
    for row in new.elements():
        new_by_item.setdefault((row.part, row.element.item), []).append(row)
    for row in old.elements():
        same = new_by_item.get((row.part, row.element.item))
        if same:
            yield Change(row, same.pop(0), "")
        else:
            yield Change(row, None, _eviction_reason(row, instant))
    for inserted in new_by_item.values():
        for row in inserted:
            yield Change(None, row, "")


def _eviction_reason(row: StateRow, instant: int) -> str:
    if row.part in (MIN_HEAP, TO_BE_EMITTED):
        return "emitted"
    if row.part == GROUP_VALUES or instant == INFINITY:
        return "expired"
    if row.part == INSIDE:
        return "pushed out"
    return "expired" if row.element.end <= instant + 1 else "purged"


def is_live(row: StateRow, watermark: int) -> bool:
    """Return whether a row in a state can still affect the output at a watermark.

    >>> is_live(StateRow("left area", Element("x", 3, 10)), 10)
    False
    """
    return row.part in (MIN_HEAP, TO_BE_EMITTED, GROUP_VALUES) or row.element.end > watermark
