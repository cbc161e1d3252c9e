"""Adjacent filters merge into one; conversely, a filter splits into its conjuncts.

Law: `Filter(a, Filter(b, P)) = Filter(b && a, P)`. From right to left, the law allows the rules
that push filters down to move each conjunct separately.
Source: SPARQL 1.1, section 17.2: `&&` is true exactly if all operands are, errors or not.

Side condition: none. The rule is sound in the pattern of an EXISTS, and over events.

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
    """Merge a chain of filters into one, the lowest condition first."""
    if not isinstance(plan, Filter) or not isinstance(plan.input, Filter):
        return None
    chain: list[Expression] = []
    below: Plan = plan
    while isinstance(below, Filter):
        chain.append(below.condition)
        below = below.input
    return filter_by((x for condition in reversed(chain) for x in conjuncts(condition)), below)


RULE = Rule(merge_filters, at=(Filter,), over_events=True)
