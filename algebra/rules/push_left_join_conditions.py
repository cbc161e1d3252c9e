"""Conjuncts of an OPTIONAL's condition that read only the right side become a filter there.

Law: `LeftJoin(L, R, a && b) = LeftJoin(L, Filter(a, R), b)`; so for EQUALSOPTIONAL, and with the
sides exchanged for OPTIONALSEQ, whose left side is optional.
Source: SPARQL 1.1, section 18.5, LeftJoin: a pair matches exactly if both are true of the merged
row.

Side condition: each variable that `a` reads is certainly bound on the right, or not possibly bound
on the left; and `a` reads no mark, and no occurrence of an event, which are those of the merged
row. The rule is sound over events, and in the pattern of an EXISTS.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.join import LeftJoin
    >>> plan = LeftJoin(triples("?x p ?y"), triples("?x q ?z"), equals("?z", "1"))
    >>> print(sketch(push_left_join_conditions(plan)))
    LeftJoin(?x p ?y, Filter(?z = 1, ?x q ?z))
"""

from __future__ import annotations

from streamsparql.algebra.event import EqLeftJoin, NeverBefore, SeqRightJoin
from streamsparql.algebra.join import LeftJoin
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import (
    conjunction,
    conjuncts,
    filter_by,
    reads_occurrence,
    variables_in,
)
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Expression


def push_left_join_conditions(plan: Plan) -> Plan | None:
    """Push conjuncts of a left join's condition into its optional side."""
    if not isinstance(plan, _OPTIONAL) or plan.condition is None:
        return None
    rows, optional = plan.left, plan.right
    if isinstance(plan, SeqRightJoin | NeverBefore):
        rows, optional = optional, rows
    ambiguous = frozenset(scope(rows).possible) - frozenset(scope(optional).certain)
    marks = plan.marks if isinstance(plan, LeftJoin) else ()
    ambiguous = ambiguous.union(variable for variable, _ in marks)
    pushed: list[Expression] = []
    kept: list[Expression] = []
    for conjunct in conjuncts(plan.condition):
        whole = reads_occurrence(conjunct) or variables_in(conjunct) & ambiguous
        (kept if whole else pushed).append(conjunct)
    if not pushed:
        return None
    optional, condition = filter_by(pushed, optional), conjunction(kept)
    match plan:
        case LeftJoin():
            return LeftJoin(rows, optional, condition, marks if kept else ())
        case EqLeftJoin():
            return EqLeftJoin(rows, optional, condition)
    return type(plan)(optional, rows, condition)


_OPTIONAL = (LeftJoin, EqLeftJoin, SeqRightJoin, NeverBefore)
RULE = Rule(push_left_join_conditions, at=_OPTIONAL, over_events=True)
