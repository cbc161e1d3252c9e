"""Aggregates are computed on one side of a join, before it.

Law: `Aggregation(K, F, P join Q) = Aggregation(K, F2, Aggregation(G, F1, P) join Q)` where F1 are
the aggregates of parts of a group, F2 combine them, and G are the variables of P that Q has or that
are in K. The rows of such a part have the same matches, so they are joined as one.
Source: EDBT 2010, section 5.2, for partially distributable aggregates: the argument and a part of
the keys are those of a stream; Yan and Larson, "Eager aggregation and lazy aggregation", VLDB 1995.

Side condition: each aggregate can be divided into those of parts (`partial_aggregates.divide`), and
reads only variables that P certainly binds. There are variables G, as without them a P without rows
has a part. No key and no aggregate reads a stamp, which a join may change. It pays where the groups
of a window are fewer than its rows; an estimate decides, also which input of several is P.

    >>> from streamsparql.algebra.expressions import Aggregate
    >>> from streamsparql.algebra.match import TriplePatternMatching
    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.window import SteppedWindow
    >>> stream = streamed("?x p ?y").input.input
    >>> live = triples("?x p ?y", SteppedWindow(stream, 60_000, 60_000, "right"))
    >>> counted = ((expression("?n"), Aggregate("COUNT", None)),)
    >>> plan = Aggregation((expression("?z"),), counted, Join(live, triples("?x q ?z")))
    >>> print(sketch(push_aggregates_into_joins(plan).input))
    Join(Aggregation(?x, ?.part0, Aggregate(COUNT), ?x p ?y), ?x q ?z)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

from streamsparql.algebra.cost import Costs
from streamsparql.algebra.group import Aggregation
from streamsparql.algebra.join import Join
from streamsparql.algebra.node import flatten
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.partial_aggregates import LEAST_GAIN, Division, divide, gain
from streamsparql.algebra.rules.properties import JOINS
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Variable


def push_aggregates_into_joins(plan: Plan, costs: Costs | None = None) -> Plan | None:
    """Compute the groups of an input of a join before the join."""
    if not isinstance(plan, Aggregation) or not isinstance(plan.input, JOINS):
        return None
    division = divide(plan.aggregates)
    if division is None or any(v.stamp for v in division.read.union(plan.keys)):
        return None
    costs = costs or Costs()
    inputs = list(_inputs(plan.input))
    options = _divisible(plan, division, inputs)
    best = max(options, key=lambda one: gain(one.keys, inputs[one.place], costs), default=None)
    if best is None or gain(best.keys, inputs[best.place], costs) < LEAST_GAIN:
        return None
    joined = division.parts(best.keys, inputs.pop(best.place))
    return division.combined(plan.keys, plan.aggregates, reduce(Join, inputs, joined))


def _inputs(plan: Plan) -> Iterator[Plan]:
    """Yield the inputs of a chain of joins."""
    return flatten(plan, lambda one: one.inputs if isinstance(one, JOINS) else None)


class _Input(NamedTuple):
    """An input of a chain that can be grouped before the join, and the keys of its groups."""

    place: int
    keys: tuple[Variable, ...]


def _divisible(plan: Aggregation, division: Division, inputs: list[Plan]) -> Iterator[_Input]:
    """Yield the inputs that can be grouped."""
    for place, one in enumerate(inputs):
        others = (each for k, each in enumerate(inputs) if k != place)
        wanted = {*plan.keys, *(v for other in others for v in scope(other).possible)}
        keys = tuple(v for v in scope(one).possible if v in wanted and not v.stamp)
        if keys and division.read <= set(scope(one).certain):
            yield _Input(place, keys)


RULE = Rule(push_aggregates_into_joins, at=(Aggregation,), below_exists=False, by_cost=True)
