"""DISTINCT is redundant over a set, and below another DISTINCT.

Law: `Distinct(P) = P` where P is a set; `Distinct(op(.. Distinct(P) ..)) = Distinct(op(.. P ..))`
where `op` is a projection or a union, or several of them.
Source: SPARQL 1.1, section 18.5; a Distinct retains every live row, so fewer are better.

Side condition: `properties.is_set` decides whether P is a set: tables without duplicates, groups,
the matches of a pattern over a set of triples and their joins, projections of a set that keep an
identifying set of columns. Stamps are unaffected, since the maximum of maxima is the maximum. The
rule is sound in the pattern of an EXISTS.

A Distinct is not pushed into unions or joins, although `Distinct(P union Q)` equals
`Distinct(Distinct(P) union Distinct(Q))`: over streams that adds state.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import Distinct, Projection
    >>> x = expression("?x")
    >>> plan = Distinct(Projection((x,), Distinct(triples("?x p ?y"))))
    >>> print(sketch(drop_distinct(plan)))
    Distinct(Projection(?x, ?x p ?y))
"""

from __future__ import annotations

from streamsparql.algebra.join import Union
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import is_set
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Distinct, Projection


def drop_distinct(plan: Plan) -> Plan | None:
    """Remove a redundant Distinct at the root, or one that the root makes redundant."""
    if not isinstance(plan, Distinct):
        return None
    if is_set(plan.input):
        return plan.input
    below = _without_distinct(plan.input)
    return None if below is plan.input else Distinct(below)


def _without_distinct(plan: Plan) -> Plan:
    """Return the plan without a Distinct at its top or below leading projections and a union."""
    chain: list[Projection] = []
    while isinstance(plan, Projection):
        chain.append(plan)
        plan = plan.input
    bare = plan
    if isinstance(plan, Distinct):
        bare = plan.input
    elif isinstance(plan, Union) and any(isinstance(x, Distinct) for x in plan.branches):
        bare = Union(tuple(x.input if isinstance(x, Distinct) else x for x in plan.branches))
    if bare is plan:
        return chain[0] if chain else plan
    for projection in reversed(chain):
        bare = Projection(projection.variables, bare)
    return bare


RULE = Rule(drop_distinct, at=(Distinct,))
