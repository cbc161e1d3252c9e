"""The absence of earlier events is a test of existence, not a pairing.

Law: `Filter(!BOUND(?v), SeqRightJoin(L, R, c)) = NeverBefore(L, R, c)`. In a pair `?v` is bound, so
only right rows without a partner pass; which pairs there are does not matter.
Source: SEMANTICS.md section 7, SeqRightJoin; WWW 2011, query (3).

Side condition: `?v` is certainly bound by L, and not possibly bound by R. The rule is sound over
events, where these operators are.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.expressions import Bound, Not
    >>> pairs = SeqRightJoin(streamed("?x p ?y"), streamed("?x q ?z"))
    >>> print(sketch(absence_before(Filter(Not(Bound(expression("?y"))), pairs))))
    NeverBefore(?x p ?y, ?x q ?z)
"""

from __future__ import annotations

from streamsparql.algebra.event import NeverBefore, SeqRightJoin
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import filter_by, split_absent
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope


def absence_before(plan: Plan) -> Plan | None:
    """Replace OPTIONALSEQ and a test of its absence by the latter."""
    if not isinstance(plan, Filter) or not isinstance(plan.input, SeqRightJoin):
        return None
    left, right, condition = plan.input.members()
    certain = frozenset(scope(left).certain) - frozenset(scope(right).possible)
    absent, others = split_absent(plan.condition, certain)
    return filter_by(others, NeverBefore(left, right, condition)) if absent else None


RULE = Rule(absence_before, at=(Filter,), below_exists=False, over_events=True)
