"""Filters over filters are one; and one filter is as many as it has conjuncts.

Law: `Filter(a, Filter(b, P)) = Filter(b && a, P)`. Read from right to left it is what lets the
rules that push filters down take each conjunct by itself.
Source: SPARQL 1.1, section 17.2: `&&` is true exactly if all operands are, errors or not.

Side condition: none. It holds in the pattern of an EXISTS, and over events.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Filter(equals("?x", "1"), Filter(equals("?y", "2"), triples("?x p ?y")))
    >>> print(sketch(plan), "->", sketch(merge_filters(plan)))
    Filter(?x = 1, Filter(?y = 2, ?x p ?y)) -> Filter(And(?y = 2, ?x = 1), ?x p ?y)
"""

from __future__ import annotations

from streamsparql.algebra.filter import Filter
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import conjuncts, filter_by
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.solutions import Expression


def merge_filters(plan: Plan) -> Plan | None:
    """One filter of a chain of them, the lowest condition first."""
    if not isinstance(plan, Filter) or not isinstance(plan.input, Filter):
        return None
    chain: list[Expression] = []
    below: Plan = plan
    while isinstance(below, Filter):
        chain.append(below.condition)
        below = below.input
    return filter_by((one for each in reversed(chain) for one in conjuncts(each)), below)


RULE = Rule(merge_filters, at=(Filter,), over_events=True)
