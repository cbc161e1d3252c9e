"""ASK and EXISTS test for a row; they do not depend on its values or its multiplicity.

Law: `Ask(op(P)) = Ask(P)` where `op` has a row exactly if P has one: projections, BIND, marks,
DISTINCT, orders, numbers, annotations. `SemiJoin(R, op(P)) = SemiJoin(R, P)`, and the same for
AntiJoin and Mark, where `op` is DISTINCT or an order.
Source: SPARQL 1.1, sections 16.3 and 18.6.

Side condition: an EXISTS tests for a row that is compatible with the outer row, so its pattern
loses only operators that leave rows unchanged. The rule is sound in the pattern of an EXISTS.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.graph import Ask
    >>> from streamsparql.algebra.shape import Distinct, Projection
    >>> plan = Ask(Distinct(Projection((expression("?x"),), triples("?x p ?y"))))
    >>> print(sketch(simplify_existence_tests(plan)))
    Ask(?x p ?y)
"""

from __future__ import annotations

from streamsparql.algebra.filter import AntiJoin, Mark, SemiJoin
from streamsparql.algebra.graph import Ask
from streamsparql.algebra.group import Annotate
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import EXISTS
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Distinct, Extend, Number, OrderBy, Projection, Reduced

_KEEPS_ROWS = (Distinct, OrderBy, Reduced)
_KEEPS_EXISTENCE = (*_KEEPS_ROWS, Projection, Extend, Mark, Number, Annotate)


def simplify_existence_tests(plan: Plan) -> Plan | None:
    """Remove operators that do not affect whether a row exists."""
    if isinstance(plan, Ask):
        below = _skip(plan.input, _KEEPS_EXISTENCE)
        return None if below is plan.input else Ask(below)
    if not isinstance(plan, SemiJoin | AntiJoin | Mark):
        return None
    below = _skip(plan.pattern, _KEEPS_ROWS)
    return None if below is plan.pattern else plan.with_inputs(plan.input, below)


def _skip(plan: Plan, kinds: tuple[type[Plan], ...]) -> Plan:
    while isinstance(plan, kinds):
        plan = plan.inputs[0]
    return plan


RULE = Rule(simplify_existence_tests, at=(Ask, *EXISTS))
