"""Aggregates are computed on one side of a join, before it.

Law: `Aggregation(K, F, P join Q) = Aggregation(K, F2, Aggregation(G, F1, P) join Q)` where F1 are
the aggregates of parts of a group, F2 combine them, and G are the variables of P that Q has or that
are in K. The rows of such a part have the same matches, so they are joined as one.
Source: EDBT 2010, section 5.2, for partially distributable aggregates: the argument and a part of
the keys are those of a stream; Yan and Larson, "Eager aggregation and lazy aggregation", VLDB 1995.

Side condition: each aggregate can be divided into those of parts
(`partial_aggregates.divide_aggregates`), and reads only variables that P certainly binds. There are
variables G, as without them a P without rows has a part. No key and no aggregate reads a stamp,
which a join may change. It pays where the groups of a window are fewer than its rows, and where a
row has several matches; an estimate decides, also which input of several is P.

    >>> from streamsparql.algebra.expressions import Aggregate
    >>> from streamsparql.algebra.match import TriplePatternMatching
    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.window import SteppedWindow
    >>> stream = streamed("?x p ?y").input.input
    >>> live = triples("?x p ?y", SteppedWindow(stream, 60_000, 60_000, "right"))
    >>> counted = ((expression("?n"), Aggregate("COUNT", None)),)
    >>> plan = Aggregation((expression("?z"),), counted, Join(live, triples("?x ?q ?z")))
    >>> print(sketch(push_aggregates_into_joins(plan).input))
    Join(Aggregation(?x, ?.part0, Aggregate(COUNT), ?x p ?y), ?x ?q ?z)
"""

from __future__ import annotations

from functools import reduce

from streamsparql.algebra.cost import Costs
from streamsparql.algebra.group import Aggregation
from streamsparql.algebra.join import Join
from streamsparql.algebra.node import flatten
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.partial_aggregates import Division, divide_aggregates, is_grouped
from streamsparql.algebra.rules.properties import JOINS
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Variable

LEAST_GAIN = 1.5
"""The quotient of the estimated costs from which on the rule applies."""


def push_aggregates_into_joins(plan: Plan, costs: Costs | None = None) -> Plan | None:
    """Compute the groups of an input of a join before the join."""
    if not isinstance(plan, Aggregation) or not isinstance(plan.input, JOINS):
        return None
    division = divide_aggregates(plan.aggregates)
    if division is None or any(v.stamp for v in division.read.union(plan.keys)):
        return None
    costs = costs or Costs()
    chain: Plan = plan.input
    inputs = list(flatten(chain, _joined))
    gains = {
        k: _gain(rows, keys, costs.arrivals(plan.input), costs)
        for k, rows in enumerate(inputs)
        if (keys := _keys(plan, division, inputs, k))
    }
    best = max(gains, key=gains.__getitem__, default=None)
    if best is None or gains[best] < LEAST_GAIN:
        return None
    keys = _keys(plan, division, inputs, best)
    parts = division.parts(keys, inputs.pop(best))
    return division.combined(plan.keys, plan.aggregates, reduce(Join, inputs, parts))


def _joined(plan: Plan) -> tuple[Plan, ...] | None:
    return plan.inputs if isinstance(plan, JOINS) else None


def _keys(
    plan: Aggregation, division: Division, inputs: list[Plan], place: int
) -> tuple[Variable, ...]:
    """Return the keys by which an input can be grouped; none if it cannot, or gains nothing."""
    rows = inputs[place]
    others = (other for k, other in enumerate(inputs) if k != place)
    wanted = {*plan.keys, *(v for other in others for v in scope(other).possible)}
    own = [v for v in scope(rows).possible if not v.stamp]
    keys = tuple(v for v in own if v in wanted)
    if len(keys) == len(own) or is_grouped(rows, keys):
        return ()
    return keys if division.read <= set(scope(rows).certain) else ()


def _gain(rows: Plan, keys: tuple[Variable, ...], joined: float, costs: Costs) -> float:
    """Return the quotient of the estimated costs without and with grouping rows first.

    Per row, grouping takes about four times as long as probing, or as merging a pair. The rows of a
    group have the same matches, so a group has as many as a row.
    """
    row, group = costs.arrivals(rows), costs.arrivals(Aggregation(keys, (), rows))
    if not row:
        return 0.0
    without, with_groups = 0.5 * row + 2.5 * joined, 0.5 * group + 2.5 * joined * group / row
    return without / (2 * row + with_groups)


RULE = Rule(push_aggregates_into_joins, at=(Aggregation,), below_exists=False, by_cost=True)
