"""A condition with the same value for all rows is removed, or removes all rows.

Law: `Filter(true, P) = P`; `Filter(c, P)` is empty where `c` is false or an error for every row;
`LeftJoin(P, Q, true) = LeftJoin(P, Q)`; `LeftJoin(P, Q, c) = P` where `c` is never true.
Source: SPARQL 1.1, section 17.2 (an error does not pass) and 18.5 (LeftJoin).

Side condition: one of the conjuncts is constant, as defined by `fold_constants`. A conjunct that is
always an error makes the condition never true, whatever the others are. The rule is sound in the
pattern of an EXISTS and over events, since it does not depend on a row.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Filter(equals("1", "2"), triples("?x p ?y"))
    >>> print(sketch(plan), "->", sketch(drop_constant_conditions(plan)))
    Filter(1 = 2, ?x p ?y) -> Table(?x ?y: no rows)
"""

from __future__ import annotations

from streamsparql.algebra.expressions import Or
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.join import LeftJoin
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import conjunction, conjuncts
from streamsparql.algebra.rules.fold_constants import is_constant, truth
from streamsparql.algebra.rules.properties import empty_table
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.solutions import Expression


def drop_constant_conditions(plan: Plan) -> Plan | None:
    """Remove constant conditions from a filter or a left join, or replace it if never true."""
    if not isinstance(plan, Filter | LeftJoin) or plan.condition is None:
        return None
    kept: list[Expression] = []
    changed = False
    for conjunct in conjuncts(plan.condition):
        simpler = _without_false_operands(conjunct)
        changed |= simpler is not conjunct
        if not is_constant(simpler):
            kept.append(simpler)
        elif truth(simpler):
            changed = True
        else:
            return empty_table(plan) if isinstance(plan, Filter) else plan.left
    if not changed:
        return None
    condition = conjunction(kept)
    if isinstance(plan, LeftJoin):
        marks = () if condition is None else plan.marks
        return LeftJoin(plan.left, plan.right, condition, marks)
    return plan.input if condition is None else Filter(condition, plan.input)


def _without_false_operands(condition: Expression) -> Expression:
    """Remove constant operands of `||` that are false or errors, which never let a row pass."""
    if not isinstance(condition, Or):
        return condition
    kept = [arg for arg in condition.args if not is_constant(arg) or truth(arg)]
    if len(kept) == len(condition.args) or not kept:
        return condition
    return Or(tuple(kept)) if len(kept) > 1 else kept[0]


RULE = Rule(drop_constant_conditions, at=(Filter, LeftJoin), over_events=True)
