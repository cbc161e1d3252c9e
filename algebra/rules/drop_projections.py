"""A projection that removes no column is an identity.

Law: `op(.. Projection(V, P) ..) = op(.. P ..)` where V has all variables that P possibly binds.
Source: SPARQL 1.1, section 18.5.

Side condition: there is an operator above, since at the top a projection defines the columns and
their order. Not in the pattern of an EXISTS, where a projection also determines which variables of
the outer row are visible.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import Projection
    >>> x, y = expression("?x"), expression("?y")
    >>> plan = Join(Projection((y, x), triples("?x p ?y")), triples("?x q ?z"))
    >>> print(sketch(drop_projections(plan)))
    Join(?x p ?y, ?x q ?z)
"""

from __future__ import annotations

from streamsparql.algebra.filter import Filter
from streamsparql.algebra.graph import Ask, Construct, Describe
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.join import LeftJoin, Minus, Union
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import EXISTS, JOINS
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Extend, Number, Projection


def drop_projections(plan: Plan) -> Plan | None:
    """Remove identity projections from the inputs of an operator."""
    inputs = plan.inputs
    if all(type(one) is not Projection for one in inputs):
        return None
    rows = len(plan.operands)
    bare = [_without_identities(one) if k < rows else one for k, one in enumerate(inputs)]
    if all(one is other for one, other in zip(bare, inputs, strict=True)):
        return None
    return plan.with_inputs(*bare)


def _without_identities(plan: Plan) -> Plan:
    while isinstance(plan, Projection):
        if not set(scope(plan.input).possible) <= set(plan.variables):
            break
        plan = plan.input
    return plan


_READS_COLUMNS_BY_NAME = (
    Filter,
    *JOINS,
    *EXISTS,
    LeftJoin,
    Minus,
    Union,
    Extend,
    Number,
    Aggregation,
    Annotate,
    Ask,
    Construct,
    Describe,
)

RULE = Rule(drop_projections, at=_READS_COLUMNS_BY_NAME, below_exists=False)
