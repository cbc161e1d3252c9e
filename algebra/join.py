"""Union, join, left join and minus (SEMANTICS.md section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamsparql.algebra.expressions import passes
from streamsparql.algebra.filter import event_passes, has_solution
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import Events, Occurrence, Plan, SnapshotOperator
from streamsparql.algebra.solutions import (
    Expression,
    Solution,
    Variable,
    compatible,
    merge_solutions,
)
from streamsparql.algebra.streams import Snapshot
from streamsparql.overriding import override


class Union(SnapshotOperator):
    """All rows of all inputs: multiplicities add. ESWC 2008, Definition 9; section 4."""

    family = "join"

    branches: tuple[Plan, ...]

    def __post_init__(self) -> None:
        assert len(self.branches) > 1, "a union needs at least two branches"

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Add the multiplicities (ESWC 2008, Definition 9)."""
        return Snapshot(entry for snapshot in snapshots for entry in snapshot.entries)

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        return frozenset().union(*events)


class Join(SnapshotOperator):
    """`merge(mu1, mu2)` of each compatible pair. ESWC 2008, Definition 10; section 4."""

    family = "join"

    left: Plan
    right: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Join two snapshots (ESWC 2008, Definition 10)."""
        left, right = snapshots
        return join_snapshots(left, right)

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        """Join event solutions, from the least start to the greatest end. Section 7."""
        left, right = events
        return join_events(left, right)


class LeftJoin(SnapshotOperator):
    """OPTIONAL: the matches for which `condition` is true, and each unmatched left row.

    ESWC 2008, Definition 13 (R7); section 4. Over events a right row matches only if it is known by
    the left row's end (R18). `marks` are the EXISTS that the condition reads, with their hidden
    variables; they are evaluated on the merged row.
    """

    family = "join"

    left: Plan
    right: Plan
    condition: Expression | None = None
    marks: tuple[tuple[Variable, Plan], ...] = ()

    @property
    @override
    def operands(self) -> tuple[Plan, ...]:
        return self.left, self.right

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Return matches and unmatched left rows: ESWC 2008, Definition 13, at one instant.

        That is ESWC 2008, Definition 12, on multisets. The engine computes it by ESWC 2008,
        Algorithm 4 and Algorithm 5.
        """
        left, right = snapshots
        return Snapshot(self._rows(left, right, t, inputs))

    def _rows(
        self, left: Snapshot[Solution], right: Snapshot[Solution], t: int, inputs: Inputs
    ) -> Iterator[tuple[Solution, int]]:
        for mu1, n1 in left.entries:
            matches = [
                (merge_solutions(mu1, mu2), n1 * n2)
                for mu2, n2 in right.entries
                if compatible(mu1, mu2) and self._passes(merge_solutions(mu1, mu2), t, inputs)
            ]
            yield from matches or [(mu1, n1)]

    def _passes(self, row: Solution, t: int, inputs: Inputs) -> bool:
        if self.condition is None:
            return True
        for variable, pattern in self.marks:
            row = row.extend(variable, has_solution(pattern, row, t, inputs))
        return passes(self.condition, {**inputs.outer, **row}, inputs.run)

    @override
    def occur(self, t: int, inputs: Inputs, *events: Events) -> Events:
        """Return matches that are known in time, and unmatched left solutions. Section 7."""
        left, right = events
        start = inputs.start

        def known_in_time(one: Occurrence, two: Occurrence) -> bool:
            """Return whether `two` is known by the end of `one` (R18)."""
            return two.end is None or two.end <= (start if one.end is None else one.end)

        return left_join_events(left, right, self.condition, inputs, known_in_time)


class Minus(SnapshotOperator):
    """The left rows without a compatible right row that shares a bound variable. Section 4."""

    family = "join"

    left: Plan
    right: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Solution]) -> Snapshot[Solution]:
        """Remove the matching left rows (SPARQL 1.1 section 18.5, Minus)."""
        left, right = snapshots
        return left.where(
            lambda mu1: (
                not any(
                    compatible(mu1, mu2) and mu1.domain & mu2.domain for mu2, _ in right.entries
                )
            )
        )


def join_snapshots(left: Snapshot[Solution], right: Snapshot[Solution]) -> Snapshot[Solution]:
    """Return the join of two multisets: multiplicities multiply (ESWC 2008, Definition 10)."""
    return Snapshot(
        (merge_solutions(mu1, mu2), n1 * n2)
        for mu1, n1 in left.entries
        for mu2, n2 in right.entries
        if compatible(mu1, mu2)
    )


Related = Callable[[Occurrence, Occurrence], bool]


def join_events(left: Events, right: Events, related: Related = lambda one, two: True) -> Events:
    """Return the merged pairs of compatible event solutions that `related` accepts. Section 7."""
    return frozenset(
        merge_events(one, two)
        for one in left
        for two in right
        if compatible(one.item, two.item) and related(one, two)
    )


def left_join_events(
    left: Events, right: Events, condition: Expression | None, inputs: Inputs, related: Related
) -> Events:
    """Return the merged pairs that satisfy the condition, and the unmatched left solutions."""
    solutions: set[Occurrence] = set()
    for one in left:
        pairs = (two for two in right if compatible(one.item, two.item) and related(one, two))
        merged = [
            pair for two in pairs if event_passes(condition, pair := merge_events(one, two), inputs)
        ]
        solutions.update(merged or [one])
    return frozenset(solutions)


def merge_events(one: Occurrence, two: Occurrence) -> Occurrence:
    """Merge two event solutions over the least interval that covers both.

    A static solution does not extend the interval.
    """
    starts = [event.start for event in (one, two) if event.start is not None]
    ends = [event.end for event in (one, two) if event.end is not None]
    return Occurrence(
        merge_solutions(one.item, two.item), min(starts, default=None), max(ends, default=None)
    )
