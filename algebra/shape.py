"""Columns, duplicates and order of rows: VALUES, BIND, projection, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from streamsparql.algebra.access import Stamped
from streamsparql.algebra.expressions import value_or_none
from streamsparql.algebra.filter import with_occurrence
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.order import comparison_key, order_key
from streamsparql.algebra.plan import Elementwise, Events, Occurrence, Plan, SnapshotOperator
from streamsparql.algebra.solutions import (
    Expression,
    Solution,
    Variable,
    compatible,
    merge_solutions,
    number_equal_rows,
)
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import Term, integer
from streamsparql.overriding import override


class Table(SnapshotOperator):
    """VALUES: rows that always hold; None is UNDEF. Section 4."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Term | None, ...], ...]

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.variables) for row in self.rows)

    def _solutions(self, inputs: Inputs) -> list[Solution]:
        solutions = (
            Solution({v: x for v, x in zip(self.variables, row, strict=True) if x is not None})
            for row in self.rows
        )
        return [mu for mu in solutions if compatible(mu, inputs.outer)]

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        return Snapshot.of(self._solutions(inputs))

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return frozenset(Occurrence(mu) for mu in self._solutions(inputs))


UNIT = Table((), ((),))
"""The table of one empty row: the meaning of an empty group."""


class Extend(Elementwise):
    """BIND, and each `(expression AS ?v)`; an error leaves the variable unbound. Section 4."""

    variable: Variable
    expression: Expression
    input: Plan

    @override
    def exposes(self, variable: Variable) -> bool:
        return variable != self.variable

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Add the value to each row (SPARQL 1.1 section 18.5, Extend)."""
        return snapshots[0].map(lambda row: self._extend(row, row, inputs))

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return frozenset(
            e._replace(item=self._extend(e.item, with_occurrence(e), inputs)) for e in events[0]
        )

    def _extend(self, row: Solution, read: Solution, inputs: Inputs) -> Solution:
        value = value_or_none(self.expression, {**inputs.outer, **read}, inputs.run)
        return row if value is None else row.extend(self.variable, value)


class Number(SnapshotOperator):
    """A hidden column that numbers equal rows, so that RAND and BNODE can distinguish them (R16).

    The k-th of n equal rows has the number k. It holds where the multiplicity is at least k, like
    the k-th row of an item in `coalesce`.
    """

    variable: Variable
    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        rows = number_equal_rows(snapshots[0].entries)
        return Snapshot((row.extend(self.variable, integer(k)), 1) for row, k in rows)


class Projection(Elementwise):
    """The rows restricted to some variables. Section 4."""

    variables: tuple[Variable, ...]
    input: Plan

    @override
    def exposes(self, variable: Variable) -> bool:
        return variable in self.variables

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Project the rows, in their order (SPARQL 1.1 section 18.5, Project)."""
        return snapshots[0].map(lambda row: row.project(self.variables))

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return frozenset(e._replace(item=e.item.project(self.variables)) for e in events[0])


class Distinct(SnapshotOperator):
    """The distinct rows. Section 4.

    Rows that differ only in stamps become one row with the latest stamps.
    """

    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Any]:
        """Remove duplicates, in order of first occurrence (SPARQL 1.1 section 18.5, Distinct)."""
        kept: dict[Hashable, Any] = {}
        for item, _ in snapshots[0].entries:
            key = _without_stamps(item)
            kept[key] = _merge_stamps(kept[key], item) if key in kept else item
        return Snapshot(((item, 1) for item in kept.values()), snapshots[0].ordered)

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return events[0]


class Reduced(SnapshotOperator):
    """REDUCED: it permits, but does not require, removing duplicates; all rows stay. Section 4."""

    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Any]) -> Snapshot[Any]:
        return snapshots[0]

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return events[0]


class OrderBy(SnapshotOperator):
    """ORDER BY: the order in which a snapshot is read. Section 4, R8, R14.

    `keys` are pairs of an expression and whether it is descending. `columns` break ties, in
    SPARQL's total order, so that the order depends only on the rows.
    """

    keys: tuple[tuple[Expression, bool], ...]
    columns: tuple[Variable, ...]
    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Sort the rows (SPARQL 1.1 section 15.1)."""
        rows = list(_by_columns(snapshots[0], self.columns))
        for expression, descending in reversed(self.keys):
            rows.sort(
                key=lambda entry: comparison_key(
                    value_or_none(expression, {**inputs.outer, **entry[0]}, inputs.run)
                ),
                reverse=descending,
            )
        return Snapshot(rows, ordered=True)


class Slice(SnapshotOperator):
    """OFFSET and LIMIT: the rows whose rank is in the slice. Section 4, R8, R14.

    Without an ORDER BY below, rows rank by `columns`.
    """

    offset: int
    limit: int | None
    columns: tuple[Variable, ...]
    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Return the rows of the slice (SPARQL 1.1 section 18.5, Slice)."""
        (rows,) = snapshots
        entries = rows.entries if rows.ordered else _by_columns(rows, self.columns)
        kept, rank = [], 0
        end = None if self.limit is None else self.offset + self.limit
        for row, n in entries:
            first = max(rank, self.offset)
            after = rank + n if end is None else min(rank + n, end)
            if first < after:
                kept.append((row, after - first))
            rank += n
        return Snapshot(kept, ordered=True)


def _by_columns(
    rows: Snapshot[Solution], columns: tuple[Variable, ...]
) -> list[tuple[Solution, int]]:
    return sorted(rows.entries, key=lambda entry: [order_key(entry[0].get(v)) for v in columns])


def _without_stamps(item: Any) -> Hashable:
    if isinstance(item, Stamped):
        return item.triple
    return item.project(item.domain) if isinstance(item, Solution) else item


def _merge_stamps(one: Any, other: Any) -> Any:
    if isinstance(one, Stamped):
        stamps = dict(one.stamps)
        for stream, at in other.stamps:
            stamps[stream] = max(at, stamps.get(stream, at))
        return Stamped(one.triple, tuple(sorted(stamps.items(), key=str)))
    return merge_solutions(one, other) if isinstance(one, Solution) else one
