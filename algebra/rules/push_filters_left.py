"""A filter is pushed into the left side of operators that keep or extend left rows.

Law: `Filter(c, op(L, R)) = op(Filter(c, L), R)` for `LeftJoin`, `Minus`, `SemiJoin`, `AntiJoin`.
Source: SPARQL 1.1, section 18.5; SEMANTICS.md section 4.

Side condition: none for Minus, SemiJoin and AntiJoin, whose rows are left rows. For LeftJoin: each
variable that `c` reads is certainly bound on the left, or not possibly bound on the right; then it
has the same value in a match as in the left row. The rule is sound in the pattern of an EXISTS: the
outer row is the same on both sides.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.join import LeftJoin
    >>> plan = Filter(equals("?x", "1"), LeftJoin(triples("?x p ?y"), triples("?x q ?z")))
    >>> print(sketch(push_filters_left(plan)))
    LeftJoin(Filter(?x = 1, ?x p ?y), ?x q ?z)
"""

from __future__ import annotations

from streamsparql.algebra.filter import AntiJoin, Filter, SemiJoin
from streamsparql.algebra.join import LeftJoin, Minus
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import filter_by, split_conjuncts
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope


def push_filters_left(plan: Plan) -> Plan | None:
    """Push conjuncts of a filter into the left side."""
    if not isinstance(plan, Filter):
        return None
    below = plan.input
    if isinstance(below, Minus | SemiJoin | AntiJoin):
        rows, right = below.inputs
        return below.with_inputs(Filter(plan.condition, rows), right)
    if not isinstance(below, LeftJoin):
        return None
    ambiguous = frozenset(scope(below.right).possible) - frozenset(scope(below.left).certain)
    pushed, kept = split_conjuncts(plan, None, ambiguous)
    if not pushed:
        return None
    _, *others = below.inputs
    return filter_by(kept, below.with_inputs(filter_by(pushed, below.left), *others))


RULE = Rule(push_filters_left, at=(Filter,))
