"""LIMIT is pushed below a projection, to the order that it reads.

Law: `Slice(o, l, Projection(V, P)) = Projection(V, Slice(o, l, P))`.
Source: SPARQL 1.1, section 18.5; a projection preserves the order of its rows.

Side condition: P is ordered, by an ORDER BY or by another slice; else rows rank by columns that P
may not have. The slice is then right above the order and can use its sort keys. The rule is sound
in the pattern of an EXISTS, since it moves no expression.

A slice is not copied into the branches of a union: rows expire too, so each branch would have to
retain all of its rows to fill the freed places.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import OrderBy, Projection, Slice
    >>> x, y = expression("?x"), expression("?y")
    >>> ordered = OrderBy(((y, False),), (x, y), triples("?x p ?y"))
    >>> print(sketch(push_slices(Slice(0, 3, (x,), Projection((x,), ordered)))))
    Projection(?x, Slice(3, ?x, OrderBy(?y, ?x ?y, ?x p ?y)))
"""

from __future__ import annotations

from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import is_ordered
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Projection, Slice


def push_slices(plan: Plan) -> Plan | None:
    """Push a slice below a projection of ordered rows."""
    if not isinstance(plan, Slice) or not isinstance(plan.input, Projection):
        return None
    below = plan.input
    if not is_ordered(below.input):
        return None
    return Projection(below.variables, Slice(plan.offset, plan.limit, plan.columns, below.input))


RULE = Rule(push_slices, at=(Slice,))
