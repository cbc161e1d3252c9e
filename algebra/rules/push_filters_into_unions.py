"""A filter is pushed into all branches of a union.

Law: `Filter(c, P union Q) = Filter(c, P) union Filter(c, Q)`.
Source: SPARQL 1.1, section 18.5: a union does not change rows.

Side condition: none. The rule is sound in the pattern of an EXISTS, and over events.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.join import Union
    >>> plan = Filter(equals("?y", "1"), Union((triples("?x p ?y"), triples("?x q ?z"))))
    >>> print(sketch(push_filters_into_unions(plan)))
    Union(Filter(?y = 1, ?x p ?y), Filter(?y = 1, ?x q ?z))
"""

from __future__ import annotations

from streamsparql.algebra.filter import Filter
from streamsparql.algebra.join import Union
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.rule import Rule


def push_filters_into_unions(plan: Plan) -> Plan | None:
    """Push a filter into the branches of a union."""
    if not isinstance(plan, Filter) or not isinstance(plan.input, Union):
        return None
    return Union(tuple(Filter(plan.condition, branch) for branch in plan.input.branches))


RULE = Rule(push_filters_into_unions, at=(Filter,), over_events=True)
