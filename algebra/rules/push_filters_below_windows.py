"""A filter is pushed below a time window.

Law: `Filter(c, W(P)) = W(Filter(c, P))` for a time window W.
Source: SEMANTICS.md section 3 and R6: for time windows the place makes no difference.

Side condition: W is a time window; one that counts elements would count other elements. `c` reads
only variables that the matching below certainly binds: the outer row of an EXISTS is not visible
below a window.

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
    """Push conjuncts of a filter below a time window."""
    if not isinstance(plan, Filter) or not isinstance(plan.input, TimeWindow):
        return None
    rows = plan.input.input
    if not isinstance(rows, TriplePatternMatching | Filter):
        return None
    pushed, kept = split_conjuncts(plan, frozenset(scope(rows).certain))
    if not pushed:
        return None
    return filter_by(kept, plan.input.with_inputs(filter_by(pushed, rows)))


RULE = Rule(push_filters_below_windows, at=(Filter,))
