"""Sequences of three or more events are paired in the order that makes the fewest rows.

Law: SEQ is associative, `(A seq B) seq C = A seq (B seq C)`: both mean that A ends before B starts,
and B before C. A filter on some parts holds for the sequence if it holds for these parts:
`Filter(c, A seq B) seq C = Filter(c, (A seq B) seq C)`.
Source: SEMANTICS.md section 7; Mei and Madden, "ZStream: a cost-based query processor for
adaptively detecting composite events", SIGMOD 2009, which orders sequences in this way.

Side condition: a filter that moves does not read the occurrence of an event, and each variable that
it reads is certainly bound by the parts below it, or not possibly bound by others. Up to 64 parts
are ordered. The rule is sound over events, where these operators are.

The order is that of least cost, by dynamic programming over all ways to put brackets: the rows that
each SEQ reads and makes, estimated from the rates of the parts, the bound on the duration, shared
variables, and the filters that apply to it. Of equal costs, the first parts are paired first.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> a, b, c = streamed("?x p ?u"), streamed("?x q ?v"), streamed("?x r ?w")
    >>> plan = Filter(equals("?v", "?w"), SeqJoin(SeqJoin(a, b), c))
    >>> print(sketch(order_sequences(plan)))
    SeqJoin(?x p ?u, Filter(?v = ?w, SeqJoin(?x q ?v, ?x r ?w)))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import exp, inf, lgamma, log
from typing import NamedTuple

from streamsparql.algebra.bounds import bound_of
from streamsparql.algebra.cost import HISTORY, Costs, condition_selectivity
from streamsparql.algebra.event import SeqJoin
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import (
    conjuncts,
    filter_by,
    reads_occurrence,
    variables_in,
)
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Expression, Variable

_MOST = 64
"""The number of parts above which a sequence keeps its order."""
_SHARED = 0.1
"""The selectivity of a variable that two parts share."""
_LEAST = 1e-9
"""The least rate of a part."""
_LESS = 1 - 1e-9
"""A cost is less than another one if it is less than this part of it: sums are rounded."""
_LARGEST = 600.0
"""The logarithm of the largest number of rows, at which they are all too many."""


def order_sequences(plan: Plan, costs: Costs | None = None) -> Plan | None:
    """Order the sequence at the root of a plan, and place its filters."""
    parts, conditions, above = list[Plan](), list[Expression](), list[Expression]()
    below = plan
    if isinstance(plan, Filter):
        below = plan.input
        for conjunct in conjuncts(plan.condition):
            (above if reads_occurrence(conjunct) else conditions).append(conjunct)
    if not isinstance(below, SeqJoin):
        return None
    for node in _flatten(below):
        if isinstance(node, Filter) and _moves(node):
            conditions += conjuncts(node.condition)
        else:
            parts.append(node)
    if not 2 < len(parts) <= _MOST:
        return None
    bound = min(map(bound_of, above), default=HISTORY)
    ordered = filter_by(above, _Order(parts, conditions, bound, costs or Costs()).plan())
    return None if ordered == plan else ordered


def _flatten(plan: Plan) -> Iterator[Plan]:
    """Yield the parts of nested sequences, and the filters between these."""
    pending = [plan]
    while pending:
        node = pending.pop()
        if isinstance(node, SeqJoin):
            pending += (node.right, node.left)
            continue
        yield node
        if isinstance(node, Filter) and _moves(node):
            pending.append(node.input)


def _moves(plan: Filter) -> bool:
    """Return whether a filter between two SEQ can move; else it is above a part."""
    return isinstance(plan.input, SeqJoin) and not reads_occurrence(plan.condition)


class _Best(NamedTuple):
    """The best order of some consecutive parts."""

    cost: float
    rows: float
    split: int
    """The first of the parts that form the right side."""


class _Order:
    """The order of the parts of a sequence, and the places of its filters."""

    def __init__(
        self, parts: list[Plan], conditions: list[Expression], bound: int, costs: Costs
    ) -> None:
        self._parts = parts
        self._conditions = conditions
        streams = Costs(replace(costs.statistics, sizes={}, size=0))  # static rows never occur
        self._rates = [log(max(streams.rows(part), _LEAST)) for part in parts]
        self._bound = log(min(max(bound, 1), HISTORY))
        self._certain = [frozenset(scope(part).certain) for part in parts]
        self._possible = [frozenset(scope(part).possible) for part in parts]

    def plan(self) -> Plan:
        """Return the sequence in the order of least cost."""
        best = self._best()
        return self._joined(0, len(self._parts) - 1, self._conditions, best)

    def _best(self) -> dict[tuple[int, int], _Best]:
        """Return the best order of all consecutive parts, from the first to the last of each."""
        count = len(self._parts)
        best = {(k, k): _Best(0.0, self._rows(k, k), k) for k in range(count)}
        for length in range(1, count):
            for first in range(count - length):
                last = first + length
                cost, split = inf, last
                for k in range(last, first, -1):  # of equal costs, the first parts first
                    left, right = best[first, k - 1], best[k, last]
                    reads = left.cost + left.rows + right.cost + right.rows
                    if reads < cost * _LESS:
                        cost, split = reads, k
                rows = self._rows(first, last)
                best[first, last] = _Best(cost + rows, rows, split)
        return best

    def _rows(self, first: int, last: int) -> float:
        """Estimate how many rows consecutive parts make per millisecond."""
        inside = range(first, last + 1)
        of_times = (last - first) * self._bound - lgamma(last - first + 1)
        held = Counter(variable for k in inside for variable in self._possible[k])
        shared = sum(held.values()) - len(held)
        passing = [c for c in self._conditions if self._is_bound(c, first, last)]
        rows = sum(self._rates[k] for k in inside) + of_times
        rows += shared * log(_SHARED) + sum(log(condition_selectivity(c)) for c in passing)
        return exp(min(rows, _LARGEST))

    def _is_bound(self, condition: Expression, first: int, last: int) -> bool:
        """Return whether consecutive parts determine the variables that a condition reads."""
        inside = slice(first, last + 1)
        bound = frozenset[Variable]().union(*self._certain[inside])
        outside = frozenset[Variable]().union(*self._possible[:first], *self._possible[last + 1 :])
        read = variables_in(condition)
        every = frozenset[Variable]().union(*self._possible)
        return not (read & outside) - bound and bool(read & every)

    def _joined(
        self,
        first: int,
        last: int,
        conditions: list[Expression],
        best: dict[tuple[int, int], _Best],
    ) -> Plan:
        """Return consecutive parts in their order, each condition where it first applies."""
        if first == last:
            return filter_by(conditions, self._parts[first])
        split = best[first, last].split
        left, right, here = list[Expression](), list[Expression](), list[Expression]()
        for condition in conditions:
            if self._is_bound(condition, first, split - 1):
                left.append(condition)
            elif self._is_bound(condition, split, last):
                right.append(condition)
            else:
                here.append(condition)
        sides = (first, split - 1, left), (split, last, right)
        return filter_by(here, SeqJoin(*(self._joined(*side, best) for side in sides)))


RULE = Rule(
    order_sequences,
    at=(Filter, SeqJoin),
    below_exists=False,
    inside_chains=False,
    by_cost=True,
    over_events=True,
)
