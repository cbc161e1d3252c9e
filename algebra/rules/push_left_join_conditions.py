"""What an OPTIONAL's condition asks of the right side alone is a filter there.

Law: `LeftJoin(L, R, a && b) = LeftJoin(L, Filter(a, R), b)`.
Source: SPARQL 1.1, section 18.5, LeftJoin: a pair counts exactly if both are true of the
merged row.

Side condition: each variable that `a` reads is certainly bound on the right, or not possibly on the
left; and `a` reads no mark, which is asked of the merged row. It holds in the pattern of an EXISTS.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.join import LeftJoin
    >>> plan = LeftJoin(triples("?x p ?y"), triples("?x q ?z"), equals("?z", "1"))
    >>> print(sketch(push_left_join_conditions(plan)))
    LeftJoin(?x p ?y, Filter(?z = 1, ?x q ?z))
"""

from __future__ import annotations

from streamsparql.algebra.join import LeftJoin
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import conjunction, conjuncts, filter_by, variables_in
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Expression


def push_left_join_conditions(plan: Plan) -> Plan | None:
    """The left join with a filtered right side."""
    if not isinstance(plan, LeftJoin) or plan.condition is None:
        return None
    left, right = scope(plan.left), scope(plan.right)
    doubtful = frozenset(left.possible) - frozenset(right.certain)
    doubtful = doubtful.union(variable for variable, _ in plan.marks)
    going: list[Expression] = []
    staying: list[Expression] = []
    for one in conjuncts(plan.condition):
        (staying if variables_in(one) & doubtful else going).append(one)
    if not going:
        return None
    condition = conjunction(staying)
    marks = plan.marks if condition is not None else ()
    return LeftJoin(plan.left, filter_by(going, plan.right), condition, marks)


RULE = Rule(push_left_join_conditions, at=(LeftJoin,))
