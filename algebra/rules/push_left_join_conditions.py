"""Conjuncts of an OPTIONAL's condition that read only the right side become a filter there.

Law: `LeftJoin(L, R, a && b) = LeftJoin(L, Filter(a, R), b)`.
Source: SPARQL 1.1, section 18.5, LeftJoin: a pair matches exactly if both are true of the merged
row.

Side condition: each variable that `a` reads is certainly bound on the right, or not possibly bound
on the left; and `a` reads no mark, which is evaluated on the merged row. The rule is sound in the
pattern of an EXISTS.

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
    """Push conjuncts of a left join's condition into its right side."""
    if not isinstance(plan, LeftJoin) or plan.condition is None:
        return None
    left, right = scope(plan.left), scope(plan.right)
    ambiguous = frozenset(left.possible) - frozenset(right.certain)
    ambiguous = ambiguous.union(variable for variable, _ in plan.marks)
    pushed: list[Expression] = []
    kept: list[Expression] = []
    for conjunct in conjuncts(plan.condition):
        (kept if variables_in(conjunct) & ambiguous else pushed).append(conjunct)
    if not pushed:
        return None
    condition = conjunction(kept)
    marks = plan.marks if condition is not None else ()
    return LeftJoin(plan.left, filter_by(pushed, plan.right), condition, marks)


RULE = Rule(push_left_join_conditions, at=(LeftJoin,))
