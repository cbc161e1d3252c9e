"""Adjacent projections merge into one.

Law: `Projection(V, Projection(W, P)) = Projection(V, P)`. Source: SPARQL 1.1, section 18.5.

Side condition: V is a subset of W; else P could bind a variable of V that W hides. The rule is
sound in the pattern of an EXISTS: the variables of the outer row that are visible below both
projections are those of V.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import Projection
    >>> x, y = expression("?x"), expression("?y")
    >>> print(sketch(merge_projections(Projection((x,), Projection((x, y), triples("?x p ?y"))))))
    Projection(?x, ?x p ?y)
"""

from __future__ import annotations

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Projection


def merge_projections(plan: Plan) -> Plan | None:
    """Merge a chain of projections into the uppermost one."""
    if not isinstance(plan, Projection):
        return None
    below = plan.input
    while isinstance(below, Projection) and set(plan.variables) <= set(below.variables):
        below = below.input
    return None if below is plan.input else Projection(plan.variables, below)


RULE = Rule(merge_projections, at=(Projection,), over_events=True)
