"""Remove computed columns that nothing reads.

Law: `Projection(V, op(P)) = Projection(V, P)` where `op` adds a variable that is not in V:
`Extend`, `Mark`, `Annotate`, `Number` (which turns n equal rows into n rows); and an Aggregation
loses the aggregates that are not in V.
Source: SPARQL 1.1, section 18.5; relational projection push-down.

Side condition: not in the pattern of an EXISTS, where a BIND also hides a variable of the outer
row.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import Extend, Projection
    >>> x, v = expression("?x"), expression("?v")
    >>> plan = Projection((x,), Extend(v, equals("?x", "?y"), triples("?x p ?y")))
    >>> print(sketch(drop_unused_bindings(plan)))
    Projection(?x, ?x p ?y)
"""

from __future__ import annotations

from streamsparql.algebra.filter import Mark
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.shape import Extend, Number, Projection


def drop_unused_bindings(plan: Plan) -> Plan | None:
    """Remove bindings that the projection at the root discards."""
    if not isinstance(plan, Projection):
        return None
    below = plan.input
    if isinstance(below, Extend | Mark | Number | Annotate):
        if below.variable in plan.variables:
            return None
        return Projection(plan.variables, below.input)
    if isinstance(below, Aggregation):
        kept = tuple(pair for pair in below.aggregates if pair[0] in plan.variables)
        if len(kept) < len(below.aggregates):
            return Projection(plan.variables, Aggregation(below.keys, kept, below.input))
    return None


RULE = Rule(drop_unused_bindings, at=(Projection,), below_exists=False)
