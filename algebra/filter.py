"""Filters and EXISTS: the operators that select rows or mark them (SEMANTICS.md section 4)."""

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
    """The rows that satisfy a condition; an error counts as false. ESWC 2008, Definition 8."""

    family = "filter"

    condition: Expression
    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Return the rows that pass (ESWC 2008, Definition 8, at one instant)."""
        return snapshots[0].where(
            lambda row: passes(self.condition, {**inputs.outer, **row}, inputs.run)
        )

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return frozenset(e for e in events[0] if event_passes(self.condition, e, inputs))


class _Exists(SnapshotOperator):
    """An operator that evaluates a pattern, its second input, for each row separately."""

    family = "filter"

    @property
    @override
    def operands(self) -> tuple[Plan, ...]:
        return self.inputs[:1]


class Mark(_Exists):
    """The input with the result of an EXISTS as a hidden boolean, for expressions. Section 4.

    `pattern` is evaluated for each row separately, with the row's bindings substituted.
    """

    variable: Variable
    input: Plan
    pattern: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Add the mark to each row (SPARQL 1.1 section 18.6, exists)."""
        return snapshots[0].map(
            lambda row: row.extend(self.variable, has_solution(self.pattern, row, t, inputs))
        )


class SemiJoin(_Exists):
    """FILTER EXISTS: the rows for which the pattern has a solution. Section 4."""

    input: Plan
    pattern: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        return snapshots[0].where(lambda row: has_solution(self.pattern, row, t, inputs) == TRUE)


class AntiJoin(_Exists):
    """FILTER NOT EXISTS: the rows for which the pattern has no solution. Section 4."""

    input: Plan
    pattern: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        return snapshots[0].where(lambda row: has_solution(self.pattern, row, t, inputs) != TRUE)


def has_solution(pattern: Plan, row: Solution, t: int, inputs: Inputs) -> Literal:
    """Return whether a pattern has a solution with the row's bindings substituted in it.

    Substitution applies at the leaves of the pattern, which bind its variables, and in expressions,
    which read them (`Inputs.outer`); never inside a window.
    """
    outer = Solution({**inputs.outer, **row})
    solutions = pattern.at(t, inputs.at_row(outer))
    return boolean(any(compatible(mu, outer) for mu, _ in solutions.entries))


def event_passes(condition: Expression | None, event: Occurrence, inputs: Inputs) -> bool:
    """Return whether an event solution satisfies a condition, which may read its occurrence."""
    if condition is None:
        return True
    row = with_occurrence(event)
    return passes(condition, {**inputs.outer, **row}, inputs.run)


def with_occurrence(event: Occurrence) -> Solution:
    """Return a solution with its occurrence, if it has one, in hidden columns. Section 7."""
    row: Solution = event.item
    if event.start is None or event.end is None:
        return row
    times = {
        OCCURRENCE["GETSTARTTIME"]: date_time_literal(event.start),
        OCCURRENCE["GETENDTIME"]: date_time_literal(event.end),
        OCCURRENCE["GETDURATION"]: duration_literal(event.end - event.start),
    }
    return Solution({**row, **times})
