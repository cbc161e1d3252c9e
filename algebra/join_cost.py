"""Two ways to compute a chain of joins, and their estimated costs.

*In pairs*: a tree of binary joins. A new row meets the rows of the other side once, and what it
makes is retained as a row of the next join, so the work on a part of the chain is shared by all
that follows. *Together*: only the inputs are retained. A new row meets the inputs one after the
other, in an order that is chosen for each row, and whatever it makes on the way is made again for
the next row.

The cost is the number of operations on rows per millisecond: a row is inserted into a state, it
probes another, it is made. It follows from the rows that hold at an instant, N, and the rows that
begin to hold per millisecond, A: a join of the inputs S begins N(S) * sum(A(i) / N(i)) rows per
millisecond, as each of its rows begins with the last of its parts.

Both estimates assume averages. An order that is chosen for each row is better than them where rows
differ, and no estimate before the run knows whether they do. So inputs are joined together where
that costs little more by these averages, and where a new row has a choice and makes several rows:
there a fixed order can make many times as many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from math import prod
from typing import NamedTuple, TypeAlias, Union

from streamsparql.algebra.solutions import Variable

JoinTree: TypeAlias = Union[int, "tuple[JoinTree, JoinTree]"]
"""A tree of binary joins; its leaves are the places of inputs."""

TOLERANCE = 1.15
"""The factor by which the cost of a join of all inputs may exceed that of binary joins."""
AT_STAKE = 2.0
"""The least number of rows per new row, made where it has a choice, for which the choice pays."""


class JoinSide(NamedTuple):
    """Estimates of a side of a join."""

    rows: float
    """The rows that hold at an instant."""
    arrivals: float
    """The rows that begin to hold per millisecond; 0 for static data."""
    values: Mapping[Variable, float]
    """The number of distinct values of each variable."""


def join_sides(one: JoinSide, other: JoinSide) -> JoinSide:
    """Return the estimates of a join: it divides by the values of each shared variable.

    >>> x = Variable("x")
    >>> join_sides(JoinSide(100, 1, {x: 50}), JoinSide(20, 0, {x: 20})).rows
    40.0
    """
    shared = one.values.keys() & other.values.keys()
    rows = one.rows * other.rows / prod(max(one.values[v], other.values[v]) for v in shared)
    values = {**one.values, **other.values}
    values.update((v, min(one.values[v], other.values[v])) for v in shared)
    renewal = sum(side.arrivals / side.rows for side in (one, other) if side.rows)
    return JoinSide(rows, rows * renewal, values)


class JoinChoice(NamedTuple):
    """The way to compute a chain of joins, and the reason for it."""

    together: bool
    reason: str


class JoinCosts:
    """The estimated costs of a chain of joins over these inputs, computed in either way.

    >>> x, y = Variable("x"), Variable("y")
    >>> live = JoinSide(1000, 1, {x: 10, y: 1000})
    >>> other, static = JoinSide(1000, 1, {x: 10}), JoinSide(5000, 0, {x: 10, y: 1000})
    >>> costs = JoinCosts([live, other, static])
    >>> costs.in_pairs(((0, 1), 2)) > costs.in_pairs(((0, 2), 1))
    True
    """

    def __init__(self, inputs: Sequence[JoinSide]) -> None:
        self._inputs = inputs
        self._joined: dict[frozenset[int], JoinSide] = {}

    def choice(self, tree: JoinTree) -> JoinChoice:
        """Choose between a tree of binary joins and one join of all inputs."""
        new = sum(side.arrivals for side in self._inputs) or 1.0
        together, in_pairs = self.together / new, self.in_pairs(tree) / new
        if together > TOLERANCE * in_pairs:
            costs = f"{in_pairs:.3g} operations per new row, together {together:.3g}"
            return JoinChoice(False, f"in pairs, as that costs less: {costs}")
        rows = f"about {self.at_stake:.2g} per new row"
        if self.at_stake < AT_STAKE:
            return JoinChoice(False, f"in pairs, as no order makes many rows: {rows}")
        costs = f"{together:.3g} operations per new row, in pairs {in_pairs:.3g}"
        return JoinChoice(True, f"together, as a fixed order may make many rows: {rows}; {costs}")

    def in_pairs(self, tree: JoinTree) -> float:
        """Return the operations per millisecond of a tree of binary joins."""
        return self._in_pairs(tree)[1]

    def _in_pairs(self, tree: JoinTree) -> tuple[frozenset[int], float]:
        if isinstance(tree, int):
            return frozenset([tree]), 0.0
        (left, cost), (right, more) = map(self._in_pairs, tree)
        one, other = self._side(left), self._side(right)
        probing = one.arrivals * _some(other) + other.arrivals * _some(one)
        inserted = one.arrivals * (other.arrivals > 0) + other.arrivals * (one.arrivals > 0)
        made = self._side(left | right).arrivals
        return left | right, cost + more + probing + inserted + made

    @property
    def together(self) -> float:
        """The operations per millisecond of one join of all inputs."""
        streams = sum(side.arrivals > 0 for side in self._inputs)
        inserted = sum(side.arrivals * (streams > 1) for side in self._inputs)
        return inserted + sum(made.cost for made in self._ways)

    @property
    def at_stake(self) -> float:
        """The greatest number of rows that a new row makes on average where it has a choice."""
        return max((way.at_stake for way in self._ways), default=0.0)

    @cached_property
    def _ways(self) -> list[_Way]:
        return [self._way(k) for k, side in enumerate(self._inputs) if side.arrivals > 0]

    def _way(self, first: int) -> _Way:
        """Return the way of the new rows of an input through the others, the fewest rows first."""
        new = self._inputs[first]
        others = [side for k, side in enumerate(self._inputs) if k != first]
        rate = new.arrivals * prod(map(_some, others))  # nothing is probed if an input has no rows
        joined, made, cost, at_stake = frozenset([first]), 1.0, 0.0, 0.0
        while len(joined) < len(self._inputs):
            choices = self._can_ask(joined)
            best = min(choices, key=lambda k: self._side(joined | {k}).rows)
            cost += made * rate
            joined |= {best}
            made = self._side(joined).rows / new.rows if new.rows else 0.0
            cost += made * rate
            if len(choices) > 1:
                at_stake = max(at_stake, made)
        return _Way(cost, at_stake if rate else 0.0)

    def _can_ask(self, joined: frozenset[int]) -> list[int]:
        bound = self._side(joined).values.keys()
        rest = [k for k in range(len(self._inputs)) if k not in joined]
        return [k for k in rest if not bound.isdisjoint(self._inputs[k].values)] or rest

    def _side(self, joined: frozenset[int]) -> JoinSide:
        side = self._joined.get(joined)
        if side is None:
            side = reduce(join_sides, (self._inputs[k] for k in sorted(joined)))
            self._joined[joined] = side
        return side


class _Way(NamedTuple):
    cost: float
    at_stake: float


def _some(side: JoinSide) -> float:
    """Return about how often a side has rows at all."""
    return min(side.rows, 1.0)
