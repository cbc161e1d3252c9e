"""A filter is pushed into the left side of operators that keep or extend left rows.

Law: `Filter(c, op(L, R)) = op(Filter(c, L), R)` for `LeftJoin`, `Minus`, `SemiJoin`, `AntiJoin`;
so for EQUALSOPTIONAL, and with the sides exchanged for OPTIONALSEQ, whose right rows are kept.
Source: SPARQL 1.1, section 18.5; SEMANTICS.md section 4.

Side condition: none for Minus, SemiJoin and AntiJoin, whose rows are left rows, nor for
NeverBefore. For the others: each variable that `c` reads is certainly bound on the left, or not
possibly bound on the right; then it has the same value in a match as in the left row. And `c` does
not read the occurrence of an event, which is that of the match. The rule is sound over events, and
in the pattern of an EXISTS: the outer row is the same on both sides.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.join import LeftJoin
    >>> plan = Filter(equals("?x", "1"), LeftJoin(triples("?x p ?y"), triples("?x q ?z")))
    >>> print(sketch(push_filters_left(plan)))
    LeftJoin(Filter(?x = 1, ?x p ?y), ?x q ?z)
"""

from __future__ import annotations

from streamsparql.algebra.event import EqLeftJoin, NeverBefore, SeqRightJoin
from streamsparql.algebra.filter import AntiJoin, Filter, SemiJoin
from streamsparql.algebra.join import LeftJoin, Minus
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import OCCURRENCES, filter_by, split_conjuncts
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope


def push_filters_left(plan: Plan) -> Plan | None:
    """Push conjuncts of a filter into the side whose rows the operator keeps."""
    if not isinstance(plan, Filter):
        return None
    below = plan.input
    if isinstance(below, Minus | SemiJoin | AntiJoin):
        rows, right = below.inputs
        return below.with_inputs(Filter(plan.condition, rows), right)
    match below:
        case NeverBefore(left, right):
            return below.with_inputs(left, Filter(plan.condition, right))
        case LeftJoin(rows, optional) | EqLeftJoin(rows, optional):
            pass
        case SeqRightJoin(optional, rows):
            pass
        case _:
            return None
    ambiguous = frozenset(scope(optional).possible) - frozenset(scope(rows).certain)
    pushed, kept = split_conjuncts(plan, None, ambiguous | OCCURRENCES)
    if not pushed:
        return None
    filtered = filter_by(pushed, rows)
    if isinstance(below, SeqRightJoin):
        return filter_by(kept, below.with_inputs(optional, filtered))
    _, *others = below.inputs
    return filter_by(kept, below.with_inputs(filtered, *others))


RULE = Rule(push_filters_left, at=(Filter,), over_events=True)
