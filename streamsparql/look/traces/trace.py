"""What a trace says: operators, steps, and what each operator did and held in each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import Element, Snapshot
from streamsparql.errors import EngineError
from streamsparql.look.explain.boxes.box import Box
from streamsparql.look.explain.boxes.physical import operator_box
from streamsparql.look.traces.recording import STANDING, Frame, Recorded, record
from streamsparql.look.traces.trace_rows import Decoder, Elements, Wording, numbered
from streamsparql.physical.operator import INFINITY, Operator
from streamsparql.physical.operators.binary import MIN_HEAP
from streamsparql.physical.operators.window import INSIDE
from streamsparql.physical.state.parts import TO_BE_EMITTED
from streamsparql.sources import Accounting, Reject
from streamsparql.text.instants import DisplayClock

if TYPE_CHECKING:
    from streamsparql.compiled import CompiledQuery
    from streamsparql.display.picture import Picture
    from streamsparql.look.traces.definitions import Definitions, Disagreement, Logical
    from streamsparql.run.input import RunInput


@dataclass(frozen=True)
class TracedOperator:
    """An operator of the physical plan; those that read streams have the lowest numbers."""

    number: int
    kind: str
    title: str
    """What it is given, in the query's words."""
    state: str
    """What it remembers between steps, in a line."""
    inputs: tuple[int, ...]
    """The numbers of the operators that it reads."""
    node: Plan | None = field(repr=False)
    """The logical node that it computes, where that is just one."""
    box: Box = field(repr=False)
    """How it is drawn."""

    def __str__(self) -> str:
        return f"{self.kind} {self.title}".rstrip()


class Held(NamedTuple):
    """A row in a state: the part that it is in, and the row over the time it is needed for."""

    part: str
    element: Element[Any]


class Change(NamedTuple):
    """What became of a row in a state: entered, left, or the time changed that it is needed for."""

    before: Held | None
    after: Held | None
    why: str
    """Of one that left: "ended", "given out", "pushed out" of a window of elements, or "not
    needed", for no partner can come.
    """  # fmt: skip


class Doing(NamedTuple):
    """What an operator did in a step, and what it held afterwards."""

    operator: TracedOperator
    came: tuple[Elements, ...]
    """Per input."""
    gave: Elements
    changes: tuple[Change, ...]
    state: tuple[Held, ...]

    @property
    def entered(self) -> list[Held]:
        """The rows that the state took in."""
        return [c.after for c in self.changes if c.before is None and c.after is not None]

    @property
    def left(self) -> list[Held]:
        """The rows that the state let go."""
        return [c.before for c in self.changes if c.after is None and c.before is not None]

    def __bool__(self) -> bool:
        """Whether anything happened."""
        return bool(self.gave or self.changes or any(self.came))


class Step:
    """All that happened up to an instant, after the step before: an item or several came.

    A step is a sequence of what the operators did that did something; `step[n]` is that of the
    operator with the number n, whether or not it did.
    """

    def __init__(self, trace: Trace, number: int, frame: Frame) -> None:
        self.number = number
        self.instant = frame.instant
        """All items up to it have come; INFINITY in the last step: the streams have ended."""
        self._trace, self._frame = trace, frame

    @cached_property
    def came(self) -> Mapping[str, Elements]:
        """The items that came, by stream."""
        decode = self._trace.decoder.elements
        return {name: decode(rows) for name, rows in self._frame.offered.items()}

    def __iter__(self) -> Iterator[Doing]:
        return (doing for k in self._doings if (doing := self[k]))

    def __getitem__(self, number: int) -> Doing:
        found = self._doings[numbered(range(1, len(self._doings) + 1), number)]
        if found is None:
            found = self._doings[number] = self._doing(number)
        return found

    @cached_property
    def _doings(self) -> dict[int, Doing | None]:
        return dict.fromkeys(range(1, len(self._trace.operators) + 1))

    def gave(self, number: int) -> Elements:
        """The rows that an operator gave."""
        operator = self._trace.physical[number - 1]
        rows = self._frame.given.get(operator)
        return () if rows is None else self._trace.decoder.elements(rows)

    def state(self, number: int) -> tuple[Held, ...]:
        """What an operator held after the step."""
        parts = self._frame.content[self._trace.physical[number - 1]]
        decode = self._trace.decoder.elements
        return tuple(Held(part, element) for part, rows in parts for element in decode(rows))

    def _doing(self, number: int) -> Doing:
        trace = self._trace
        operator = trace.operators[number - 1]
        physical = trace.physical[number - 1]
        content, state = self._frame.content[physical], self.state(number)
        changes: tuple[Change, ...] = ()
        before = trace.steps[self.number - 1] if self.number else None
        if before is None or before._frame.content[physical] is not content:
            earlier = () if before is None else before.state(number)
            changes = tuple(_changes(earlier, state, self.instant))
        came = tuple(self.gave(below) for below in operator.inputs)
        return Doing(operator, came, self.gave(number), changes, state)

    def __str__(self) -> str:
        from streamsparql.look.traces.trace_text import of_step

        return of_step(self._trace, self)

    def __repr__(self) -> str:
        return f"<Step {self.number}: {self._trace.wording.instant(self.instant)}>"


class Standing(NamedTuple):
    """An operator at an instant: what holds of all that it gives, what it held when that came."""

    operator: TracedOperator
    snapshot: Snapshot[Any]
    state: tuple[Held, ...]
    changes: tuple[Change, ...]
    """What happened at this very instant."""


@dataclass(frozen=True, repr=False)
class Moment:
    """All operators at an instant: `print` it, or `moment[n]` for the operator with number n."""

    trace: Trace
    t: int
    step: Step | None
    """The last step up to the instant; None before the first."""
    standings: tuple[Standing, ...]

    def __iter__(self) -> Iterator[Standing]:
        return iter(self.standings)

    def __getitem__(self, number: int) -> Standing:
        return numbered(self.standings, number)

    def __str__(self) -> str:
        from streamsparql.look.traces.trace_text import of_moment

        return of_moment(self)

    def __repr__(self) -> str:
        return f"<Moment at {self.trace.wording.moment(self.t)}>"

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from streamsparql.look.jupyter.trace_tables import moment_html

        return moment_html(self)


class Trace(Sequence[Step]):
    """What passed each operator of a query, and what each held: a sequence of steps.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED {?s ?p ?o}")
    >>> trace = query.trace([("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 5)])
    >>> [step.instant for step in trace][:2]
    [3, 5]
    >>> print(trace.at(4)[2].snapshot.entries[0][0], len(trace.at(4)[2].snapshot))
    <a> <p> "1" 1
    """

    def __init__(self, query: CompiledQuery, given: RunInput, limit: int, step: int | None) -> None:
        for name, value in (("limit", limit), ("step", step)):
            if value is not None and (type(value) is not int or value < 1):
                raise EngineError(f"{name} is a whole number from 1 on, not {value!r}")
        self.query, self.given, self.limit = query, given, limit
        self._recorded: Recorded = record(query, given, limit, step)
        run = self._recorded.run
        self.decoder = Decoder(run.terms)
        self.physical: tuple[Operator, ...] = tuple(run.pipeline.operators)
        prefixes = query.prefixes
        self.clock = DisplayClock.of(None, self.first)
        self.wording = Wording(prefixes, self._moment)
        numbers = {operator: k for k, operator in enumerate(self.physical, 1)}
        self.operators = tuple(self._described(o, numbers) for o in self.physical)
        self.steps = tuple(Step(self, k, f) for k, f in enumerate(self._recorded.frames))

    def _described(self, operator: Operator, numbers: Mapping[Operator, int]) -> TracedOperator:
        box = operator_box(operator, self.wording.write)
        inputs = tuple(numbers[below] for below in operator.inputs)
        kind, title = type(operator).__name__, box.title
        return TracedOperator(
            numbers[operator], kind, title, operator.state, inputs, operator.node, box
        )

    def _moment(self, t: int) -> str:
        """An instant: where it is on the day on which the trace begins, without the date."""
        day, own = self.clock.day(self.first), self.clock.moment(t)
        return own[11:] if day and own[:10] == day[:10] else own

    # -- steps

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        return self.steps[index]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    # -- the whole

    @cached_property
    def first(self) -> int:
        """The first instant of the trace."""
        instants = [f.instant for f in self._recorded.frames if 0 <= f.instant < INFINITY]
        start = self.given.start
        return min(instants, default=0) if start is None else start

    @property
    def until(self) -> int | None:
        """Where the trace was broken off: too many items, or too many rows in states."""
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
        """The fate of the items that were read."""
        return self._recorded.run.accounting

    @cached_property
    def items(self) -> tuple[tuple[str, Element[Any]], ...]:
        """The items with their streams, in the order in which they came."""
        found = ((s, e) for step in self.steps for s, rows in step.came.items() for e in rows)
        return tuple(sorted(found, key=lambda pair: pair[1].start))

    def given_by(self, number: int) -> list[tuple[Step, Element[Any]]]:
        """The rows that an operator gave, with the steps in which it did."""
        numbered(self.operators, number)
        return [(step, element) for step in self.steps for element in step.gave(number)]

    @cached_property
    def _given(self) -> tuple[tuple[Element[Any], ...], ...]:
        numbers = range(1, len(self.operators) + 1)
        return tuple(tuple(e for _, e in self.given_by(n)) for n in numbers)

    # -- instants

    def at(self, t: int) -> Moment:
        """Every operator at an instant.

        That is what holds then of all that it gives, and what it held once everything that happens
        up to that instant had come: of the sweep areas, of the heap, of the window.
        """
        _checked(t)
        steps = [step for step in self.steps if step.instant <= t]
        step = steps[-1] if steps else None
        standings = []
        for operator, elements in zip(self.operators, self._given, strict=True):
            snapshot = Snapshot.of(e.item for e in elements if e.holds(t))
            state = () if step is None else step.state(operator.number)
            here = step is not None and step.instant == t
            changes = step[operator.number].changes if step is not None and here else ()
            standings.append(Standing(operator, snapshot, state, changes))
        return Moment(self, t, step, tuple(standings))

    @cached_property
    def instants(self) -> tuple[int, ...]:
        """Those of the steps, and those at which a row that was given begins or ends."""
        found = {step.instant for step in self.steps}
        for elements in self._given:
            found.update(t for e in elements for t in (e.start, e.end))
        last = INFINITY if self.given.end is None else self.given.end
        last = last if self.until is None else min(last, self.until)
        return tuple(sorted(t for t in found if self.first <= t < last))

    # -- definitions

    @cached_property
    def definitions(self) -> Definitions:
        """What the logical plans say of the same data."""
        from streamsparql.look.traces.definitions import Definitions

        recorded = self._recorded
        return Definitions(self, recorded.run.catalog, recorded.run.input.started)

    def logical(self, t: int) -> Logical:
        """The snapshot of each node of the logical plan at an instant, by its definition."""
        _checked(t)
        return self.definitions.logical(t)

    def check(self) -> list[Disagreement]:
        """Where an operator and the definition of the node that it computes do not agree.

        They are compared at all instants of the trace; an empty list says that they do agree.
        """
        return self.definitions.check()

    # -- display

    def picture(self) -> Picture:
        """The timelines of all operators under each other, those below first."""
        from streamsparql.look.jupyter.trace_view import trace_picture

        return trace_picture(self)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return self.picture().html

    def __str__(self) -> str:
        from streamsparql.look.traces.trace_text import of_trace

        return of_trace(self)

    def __repr__(self) -> str:
        return (
            f"<Trace: {len(self.items)} items, {len(self)} steps, {len(self.operators)} operators>"
        )

    @property
    def note(self) -> str:
        """What is not in the trace; nothing if it is whole."""
        notes = []
        if self.until is not None:
            until = self.wording.moment(self.until)
            notes.append(
                f"The operators hold very many rows: this is up to {until}. Shorter windows,"
                " a filter or fewer items make room for more."
                if self._recorded.heavy
                else f"There are more than {self.limit} items: this is up to {until}."
                " limit= traces more, start= later ones."
            )
        if rejects := len(self._recorded.run.rejects()):
            items = "One item was" if rejects == 1 else f"{rejects} items were"
            notes.append(f"{items} late or rejected: see trace.late, trace.rejected.")
        return " ".join(notes)


def _changes(before: Sequence[Held], after: Sequence[Held], instant: int) -> Iterator[Change]:
    """What became of the rows of a state; of those that stay as they are nothing is said."""
    gone, new = Counter(before), Counter(after)
    gone, new = gone - new, new - gone
    came: dict[tuple[str, Any], list[Held]] = {}
    for held in new.elements():
        came.setdefault((held.part, held.element.item), []).append(held)
    for held in gone.elements():
        same = came.get((held.part, held.element.item))
        if same:
            yield Change(held, same.pop(0), "")
        else:
            yield Change(held, None, _why(held, instant))
    for rest in came.values():
        for held in rest:
            yield Change(None, held, "")


def _why(held: Held, instant: int) -> str:
    if held.part in (MIN_HEAP, TO_BE_EMITTED):
        return "given out"
    if held.part == STANDING or instant == INFINITY:
        return "ended"
    if held.part == INSIDE:
        return "pushed out"
    return "ended" if held.element.end <= instant + 1 else "not needed"


def _checked(t: int) -> None:
    if type(t) is not int or t < 0:
        raise EngineError(f"an instant is a number of milliseconds, not {t!r}")


def living(held: Held, known: int) -> bool:
    """Whether a row in a state can still matter, when all before an instant is known.

    >>> living(Held("left area", Element("x", 3, 10)), 10)
    False
    """
    return held.part in (MIN_HEAP, TO_BE_EMITTED, STANDING) or held.element.end > known
