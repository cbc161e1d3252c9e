"""A filter goes into the sides of a join that bind what it reads.

Law: `Filter(c, P1 join .. join Pn) = P1 join .. Filter(c, Pk) .. join Pn`.
Source: selection push-down, SPARQL 1.1 section 18.5; SEMANTICS.md section 2, "Rewriting".

Side condition: each variable that `c` reads is certainly bound by Pk, or possibly bound by no other
side; then the merged row has it exactly as Pk's row has it. It goes into every side for which that
is so: the fewer rows wait for partners, the better. A stamp that several sides bind merges by `max`
and is certain nowhere, so it never goes. It holds in the pattern of an EXISTS: what is in no side
is read from the outer row above the join and below it.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Filter(equals("?y", "1"), Join(triples("?x p ?y"), triples("?x q ?z")))
    >>> print(sketch(push_filters_into_joins(plan)))
    Join(Filter(?y = 1, ?x p ?y), ?x q ?z)
"""

from __future__ import annotations

from streamsparql.algebra.filter import Filter
from streamsparql.algebra.join import Join
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import conjuncts, filter_by, variables_in
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.solutions import Expression, Variable


def push_filters_into_joins(plan: Plan) -> Plan | None:
    """The join of filtered sides, below a filter with what none of them can take."""
    if not isinstance(plan, Filter) or not isinstance(plan.input, Join | BasicGraphPattern):
        return None
    sides = plan.input.inputs
    possible: dict[Variable, set[int]] = {}
    certain: dict[Variable, set[int]] = {}
    for k, side in enumerate(sides):
        for binds, variables in zip((certain, possible), scope(side), strict=True):
            for variable in variables:
                binds.setdefault(variable, set()).add(k)
    taken: dict[int, list[Expression]] = {}
    staying: list[Expression] = []
    for one in conjuncts(plan.condition):
        takers = _takers(one, possible, certain)
        for k in takers:
            taken.setdefault(k, []).append(one)
        if not takers:
            staying.append(one)
    if not taken:
        return None
    inputs = (filter_by(taken.get(k, ()), side) for k, side in enumerate(sides))
    return filter_by(staying, plan.input.with_inputs(*inputs))


def _takers(
    condition: Expression, possible: dict[Variable, set[int]], certain: dict[Variable, set[int]]
) -> set[int]:
    takers: set[int] | None = None
    for variable in variables_in(condition):
        if variable in possible:
            sides = possible[variable]
            able = sides if len(sides) == 1 else certain.get(variable, set())
            takers = able if takers is None else takers & able
    return {0} if takers is None else takers


RULE = Rule(push_filters_into_joins, at=(Filter,))
