"""The event operators of EP-SPARQL (SEMANTICS.md section 7; WWW 2011 section 4.2).

They are not snapshot operators. An event solution `(mu, start, end)` is emitted once, at its end,
and later input never retracts it: the set of solutions known at `t` only grows with `t`. The other
operators of a pattern (`TriplePatternMatching`, `Join`, `Union`, `Filter`, ..) are also defined
over such sets, and `Detect` converts events to snapshots.
"""

from __future__ import annotations

from typing import Any

from streamsparql.algebra import shape
from streamsparql.algebra.filter import Filter, event_passes, with_occurrence
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.group import Annotate
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.join import Join, join_events, left_join_events, merge_events
from streamsparql.algebra.plan import Events, Occurrence, Plan, SnapshotOperator
from streamsparql.algebra.solutions import Expression, Solution, compatible
from streamsparql.algebra.streams import Snapshot
from streamsparql.errors import EngineError
from streamsparql.overriding import override


class EventPair(SnapshotOperator):
    """The base of the binary event operators, which are defined by `occur`."""

    family = "event"

    left: Plan
    right: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Any]:
        raise EngineError(f"{type(self).__name__} emits events and has no snapshots")


def precedes(one: Occurrence, two: Occurrence) -> bool:
    """Return whether `two` starts strictly after the end of `one`; False for static solutions.

    >>> precedes(Occurrence(None, 0, 4), Occurrence(None, 5, 5))
    True
    """
    return one.end is not None and two.start is not None and one.end < two.start


def simultaneous(one: Occurrence, two: Occurrence) -> bool:
    """Return whether both have the same occurrence; False for static solutions."""
    return one.end is not None and (one.start, one.end) == (two.start, two.end)


class SeqJoin(EventPair):
    """`SEQ`: compatible pairs with `end1 < start2`, over `[start1, end2]`. Section 7."""

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        left, right = events
        return join_events(left, right, precedes)


class EqJoin(EventPair):
    """`EQUALS`: compatible pairs with the same occurrence. Section 7."""

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        left, right = events
        return join_events(left, right, simultaneous)


class SeqRightJoin(EventPair):
    """`OPTIONALSEQ`: `SEQ`, and each unmatched right solution. Section 7."""

    condition: Expression | None = None

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        left, right = events
        return left_join_events(
            right, left, self.condition, inputs, lambda two, one: precedes(one, two)
        )


class EqLeftJoin(EventPair):
    """`EQUALSOPTIONAL`: `EQUALS`, and each unmatched left solution. Section 7."""

    condition: Expression | None = None

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        left, right = events
        return left_join_events(left, right, self.condition, inputs, simultaneous)


class NeverBefore(EventPair):
    """`OPTIONALSEQ` with an absent left side: the right solutions that no left one precedes.

    Section 7. `condition` is that of the pairs; the left variables are unbound in the result.
    """

    condition: Expression | None = None

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        left, right = events
        return frozenset(
            two
            for two in right
            if not any(
                compatible(one.item, two.item)
                and precedes(one, two)
                and event_passes(self.condition, merge_events(one, two), inputs)
                for one in left
            )
        )


class SeqWithout(EventPair):
    """`SEQ` without an event in between. Section 7.

    The pairs of `SEQ` without those that have, with their variables and their occurrence, a
    sequence of a left solution, an `absent` one and a right one.
    """

    absent: Plan

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        left, right, absent = events
        pairs = join_events(left, right, precedes)
        interrupted = join_events(join_events(left, absent, precedes), right, precedes)
        return frozenset(
            pair
            for pair in pairs
            if not any(
                compatible(pair.item, other.item) and simultaneous(pair, other)
                for other in interrupted
            )
        )


class Detect(Plan):
    """The snapshots of events: each solution holds at the instant of its end. Section 7.

    Hidden columns carry its occurrence. A solution of static triples alone holds at the first
    instant of the input.
    """

    family = "event"

    input: Plan

    @override
    def at(self, t: int, inputs: Inputs) -> Snapshot[Solution]:
        return Snapshot.of(
            with_occurrence(event)
            for event in self.input.events(t, inputs)
            if event.end == t or (event.end is None and t == inputs.start)
        )


def reads_events(plan: Plan) -> bool:
    """Return whether a plan is about events: whether it reads when items started, too.

    >>> from streamsparql.algebra.shape import UNIT
    >>> reads_events(Detect(UNIT)), reads_events(UNIT)
    (True, False)
    """
    return any(isinstance(node, Detect) for node in plan.operators())


def returns_events(plan: Plan) -> bool:
    """Return whether each row of a plan is an event: `Detect`, below operators that keep rows.

    GROUP BY and ASK read snapshots, and so have rows that hold.

    >>> from streamsparql.algebra.shape import UNIT, Projection
    >>> returns_events(Projection((), Detect(UNIT))), returns_events(UNIT)
    (True, False)
    """
    while isinstance(plan, _KEEPS_ROWS):
        plan = plan.inputs[0]
    if isinstance(plan, Join):
        return any(map(returns_events, plan.inputs))
    return isinstance(plan, Detect)


_KEEPS_ROWS = (
    Filter,
    Construct,
    Annotate,
    shape.Extend,
    shape.Projection,
    shape.Distinct,
    shape.Reduced,
    shape.OrderBy,
    shape.Slice,
)
