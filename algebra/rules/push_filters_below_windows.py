"""A filter goes below a window that looks at stamps only.

Law: `Filter(c, W(P)) = W(Filter(c, P))` for a time window W.
Source: SEMANTICS.md section 3 and R6: for time windows the place makes no difference.

Side condition: W is a time window; one that counts elements would count others. `c` reads none but
what the matching below certainly binds: a window is a border that no outer row of an EXISTS passes.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.access import AccessStream
    >>> from streamsparql.algebra.window import SlidingDeltaWindow
    >>> from streamsparql.algebra.terms import IRI
    >>> stream = AccessStream(IRI("s"))
    >>> plan = Filter(equals("?y", "1"), SlidingDeltaWindow(triples("?x p ?y", stream), 9, 3))
    >>> print(sketch(push_filters_below_windows(plan)))
    SlidingDeltaWindow(Filter(?y = 1, ?x p ?y), 9, 3)
"""

from __future__ import annotations

from streamsparql.algebra.filter import Filter
from streamsparql.algebra.match import TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import filter_by, split_conjuncts
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.window import TimeWindow


def push_filters_below_windows(plan: Plan) -> Plan | None:
    """The window over filtered matches."""
    if not isinstance(plan, Filter) or not isinstance(plan.input, TimeWindow):
        return None
    rows = plan.input.input
    if not isinstance(rows, TriplePatternMatching | Filter):
        return None
    going, staying = split_conjuncts(plan, frozenset(scope(rows).certain))
    if not going:
        return None
    return filter_by(staying, plan.input.with_inputs(filter_by(going, rows)))


RULE = Rule(push_filters_below_windows, at=(Filter,))
