"""An unused order is removed.

Law: `op(.. OrderBy(P) ..) = op(.. P ..)` where `op` reads its input as a multiset: joins, unions,
groupings, CONSTRUCT, ASK, DESCRIBE, and the patterns of EXISTS.
Source: SPARQL 1.1, section 15: the order of a subquery without LIMIT has no meaning outside it.

Side condition: between `op` and the OrderBy there are only operators that preserve the order; a
Slice is not one of them, since it reads the order. The order at the top of a SELECT stays. The rule
is sound in the pattern of an EXISTS.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import OrderBy
    >>> y = expression("?y")
    >>> plan = Join(OrderBy(((y, False),), (y,), triples("?x p ?y")), triples("?x q ?z"))
    >>> print(sketch(drop_order(plan)))
    Join(?x p ?y, ?x q ?z)
"""

from __future__ import annotations

from streamsparql.algebra.graph import Ask, Construct, Describe
from streamsparql.algebra.group import Aggregation
from streamsparql.algebra.join import LeftJoin, Minus, Union
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import EXISTS, JOINS, keeps_order
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Number, OrderBy


def drop_order(plan: Plan) -> Plan | None:
    """Remove the order of inputs that the operator reads as multisets."""
    inputs = plan.inputs
    first = 0
    if isinstance(plan, EXISTS):
        first = 1  # the rows keep their order; that of the pattern is unused
    elif isinstance(plan, Describe):
        inputs = inputs[:1]
    bare = [_unordered(one) if k >= first else one for k, one in enumerate(inputs)]
    if all(one is other for one, other in zip(bare, inputs, strict=True)):
        return None
    return plan.with_inputs(*bare, *plan.inputs[len(bare) :])


def _unordered(plan: Plan) -> Plan:
    chain: list[Plan] = []
    below = plan
    while keeps_order(below):
        chain.append(below)
        below = below.inputs[0]
    if not isinstance(below, OrderBy):
        return plan
    below = below.input
    for operator in reversed(chain):
        below = operator.with_inputs(below, *operator.inputs[1:])
    return below


_IGNORES_ORDER = (
    *JOINS,
    *EXISTS,
    LeftJoin,
    Minus,
    Union,
    Aggregation,
    Number,
    Ask,
    Construct,
    Describe,
)

RULE = Rule(drop_order, at=_IGNORES_ORDER)
