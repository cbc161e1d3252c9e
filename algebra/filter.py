"""What lets rows pass or marks them: filters and EXISTS (SEMANTICS.md section 4)."""

from __future__ import annotations

from streamsparql.algebra.expressions import OCCURRENCE, passes
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Elementwise, Events, Occurrence, Plan, SnapshotOperator
from streamsparql.algebra.solutions import Expression, Solution, Variable, compatible
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import TRUE, Literal, boolean
from streamsparql.algebra.xsd.values import date_time_literal, duration_literal
from streamsparql.overriding import override


class Filter(Elementwise):
    """Keeps the rows for which the condition is true; an error is not true. Definition 8."""

    condition: Expression
    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Definition 8, at one instant."""
        return snapshots[0].where(
            lambda row: passes(self.condition, {**inputs.outer, **row}, inputs.run)
        )

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return frozenset(e for e in events[0] if event_passes(self.condition, e, inputs))


class _Asking(SnapshotOperator):
    """What asks a pattern, its second input, for each row by itself."""

    @property
    @override
    def operands(self) -> tuple[Plan, ...]:
        return self.inputs[:1]


class Mark(_Asking):
    """Adds the hidden boolean of an EXISTS, so that any expression can use it. Section 4.

    `pattern` is evaluated for each row by itself, the row's bindings substituted.
    """

    variable: Variable
    input: Plan
    pattern: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """SPARQL 1.1 section 18.6, exists."""
        return snapshots[0].map(
            lambda row: row.extend(self.variable, has_solution(self.pattern, row, t, inputs))
        )


class SemiJoin(_Asking):
    """FILTER EXISTS: a filter that is just the mark. Section 4."""

    input: Plan
    pattern: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        return snapshots[0].where(lambda row: has_solution(self.pattern, row, t, inputs) == TRUE)


class AntiJoin(_Asking):
    """FILTER NOT EXISTS: a filter that is just the mark, negated. Section 4."""

    input: Plan
    pattern: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        return snapshots[0].where(lambda row: has_solution(self.pattern, row, t, inputs) != TRUE)


def has_solution(pattern: Plan, row: Solution, t: int, inputs: Inputs) -> Literal:
    """Whether the pattern has a solution once the row's bindings are substituted in it.

    Substitution happens where the pattern's variables get their values, at its leaves, and where
    expressions read them (`Inputs.outer`); never inside a window.
    """
    outer = Solution({**inputs.outer, **row})
    found = pattern.at(t, inputs.at_row(outer))
    return boolean(any(compatible(mu, outer) for mu, _ in found.entries))


def event_passes(condition: Expression | None, event: Occurrence, inputs: Inputs) -> bool:
    """Whether an event solution passes; getSTARTTIME and the like read its occurrence."""
    if condition is None:
        return True
    row = with_occurrence(event)
    return passes(condition, {**inputs.outer, **row}, inputs.run)


def with_occurrence(event: Occurrence) -> Solution:
    """The solution with its occurrence in hidden columns. Section 7."""
    row: Solution = event.item
    if event.start is None or event.end is None:
        return row
    times = {
        OCCURRENCE["GETSTARTTIME"]: date_time_literal(event.start),
        OCCURRENCE["GETENDTIME"]: date_time_literal(event.end),
        OCCURRENCE["GETDURATION"]: duration_literal(event.end - event.start),
    }
    return Solution({**row, **times})
