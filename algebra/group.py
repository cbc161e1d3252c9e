"""Grouping and aggregation: GROUP BY and C-SPARQL's AGGREGATE."""

from __future__ import annotations

from collections.abc import Iterable

from streamsparql.algebra.aggregate_functions import aggregate
from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.expressions import Aggregate, value_or_none
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Plan, SnapshotOperator
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import TRUE, Term
from streamsparql.overriding import override

Entry = tuple[Solution, int]


class Aggregation(SnapshotOperator):
    """GROUP BY: one row per group, with the keys and the aggregates. Section 4.

    Without keys there is one group, even over an empty input. An aggregate that is an error leaves
    its variable unbound.
    """

    family = "group"

    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, Aggregate], ...]
    input: Plan

    @override
    def exposes(self, variable: Variable) -> bool:
        return all(variable != name for name, _ in self.aggregates)

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Return a row per group (SPARQL 1.1 section 18.5.1)."""
        groups = _groups(snapshots[0].entries, self.keys)
        if not self.keys and not groups:
            groups[Solution()] = []
        return Snapshot.of(self._row(key, group, inputs) for key, group in groups.items())

    def _row(self, key: Solution, group: list[Entry], inputs: Inputs) -> Solution:
        for variable, call in self.aggregates:
            value = aggregate_value(call, group, inputs)
            if value is not None:
                key = key.extend(variable, value)
        return key


class Annotate(SnapshotOperator):
    """C-SPARQL's AGGREGATE: the rows with their group's value. Section 4; EDBT 2010, 3.1.

    Unlike GROUP BY it keeps the rows, so several AGGREGATE clauses apply to the same WHERE rows.
    """

    family = "group"

    variable: Variable
    aggregate: Aggregate
    keys: tuple[Variable, ...]
    input: Plan

    @override
    def exposes(self, variable: Variable) -> bool:
        return variable != self.variable

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        groups = _groups(snapshots[0].entries, self.keys)
        values = {key: aggregate_value(self.aggregate, g, inputs) for key, g in groups.items()}

        def annotate(row: Solution) -> Solution:
            value = values[row.project(self.keys)]
            return row if value is None else row.extend(self.variable, value)

        return snapshots[0].map(annotate)


def aggregate_value(call: Aggregate, group: Iterable[Entry], inputs: Inputs) -> Term | None:
    """Return an aggregate's value over a group; None if it is an error."""
    values: list[tuple[Term | None, int]]
    if call.argument is None:
        values = [(TRUE, n) for n in _counts(group, call.distinct)]
        return aggregate("COUNT", values, False, None)
    values = [
        (value_or_none(call.argument, {**inputs.outer, **row}, inputs.run), n) for row, n in group
    ]
    try:
        return aggregate(call.function, values, call.distinct, call.separator)
    except ExpressionError:
        return None


def _counts(group: Iterable[Entry], distinct: bool) -> list[int]:
    """Return multiplicities for COUNT(*); COUNT(DISTINCT *) ignores hidden columns."""
    if not distinct:
        return [n for _, n in group]
    visible = {row.project(v for v in row if not v.hidden) for row, _ in group}
    return [1] * len(visible)


def _groups(rows: Iterable[Entry], keys: tuple[Variable, ...]) -> dict[Solution, list[Entry]]:
    groups: dict[Solution, list[Entry]] = {}
    for row, n in rows:
        groups.setdefault(row.project(keys), []).append((row, n))
    return groups
