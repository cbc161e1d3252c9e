"""A filter is placed between the joins of a basic graph pattern, once its variables are bound.

Law: `Filter(c, P1 join .. join Pn) = Filter(c, P1 join .. join Pk) join Pk+1 .. join Pn`, by
associativity of the join and `push_filters_into_joins`. Source: SPARQL 1.1 section 18.5.

Side condition: that of `push_filters_into_joins`, for the join of the first `k` patterns; so the
order of the patterns must be final. The rule is sound over events.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.match import BasicGraphPattern
    >>> patterns = triples("?x p ?y"), triples("?x q ?z"), triples("?x r ?w")
    >>> plan = Filter(equals("?y", "?z"), BasicGraphPattern(patterns))
    >>> print(sketch(push_filters_into_prefixes(plan)))
    BasicGraphPattern(Filter(?y = ?z, BasicGraphPattern(?x p ?y, ?x q ?z)), ?x r ?w)
"""

from __future__ import annotations

from streamsparql.algebra.filter import Filter
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import (
    conjuncts,
    filter_by,
    reads_occurrence,
    variables_in,
)
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Expression, Variable


def push_filters_into_prefixes(plan: Plan) -> Plan | None:
    """Place the conjuncts of a filter between the joins of a basic graph pattern."""
    if not isinstance(plan, Filter) or not isinstance(plan.input, BasicGraphPattern):
        return None
    matchings = plan.input.matchings
    first: dict[Variable, int] = {}
    last: dict[Variable, int] = {}
    for k, matching in enumerate(matchings):
        certain, possible = scope(matching)
        for variable in certain:
            first.setdefault(variable, k)
        for variable in possible:
            last[variable] = k
    places: dict[int, list[Expression]] = {}
    for conjunct in conjuncts(plan.condition):
        after = max((_bound_after(v, first, last) for v in variables_in(conjunct)), default=0)
        if reads_occurrence(conjunct):
            after = len(matchings) - 1
        places.setdefault(max(after, 1), []).append(conjunct)
    return _with_filters(matchings, places) if min(places) < len(matchings) - 1 else None


def _bound_after(variable: Variable, first: dict[Variable, int], last: dict[Variable, int]) -> int:
    """Return the pattern after which the variable's value is final."""
    if variable in first:
        return first[variable]
    return last.get(variable, 0)


def _with_filters(matchings: tuple[Plan, ...], places: dict[int, list[Expression]]) -> Plan:
    joined: list[Plan] = []
    for k, matching in enumerate(matchings):
        joined.append(matching)
        if k in places:
            joined = [filter_by(places[k], BasicGraphPattern(tuple(joined)))]
    return joined[0] if len(joined) == 1 else BasicGraphPattern(tuple(joined))


RULE = Rule(push_filters_into_prefixes, at=(Filter,), over_events=True)
