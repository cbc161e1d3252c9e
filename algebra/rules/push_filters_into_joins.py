"""A filter is pushed into the sides of a join that bind its variables.

Law: `Filter(c, P1 join .. join Pn) = P1 join .. Filter(c, Pk) .. join Pn`; so for SEQ and EQUALS.
Source: selection push-down, SPARQL 1.1 section 18.5; SEMANTICS.md section 2, "Rewriting".

Side condition: each variable that `c` reads is certainly bound by Pk, or possibly bound by no other
side; then it has the same value in the merged row as in Pk's row. The filter is pushed into every
such side, since fewer rows wait for matches then. A stamp that several sides bind merges by `max`
and is certain nowhere, so a filter on it stays, as does one on the occurrence of an event. The rule
is sound over events, and in the pattern of an EXISTS: variables that no side binds are read from
the outer row, above the join and below it. For SEQ without an event in between, both sides bind the
same variables in all their rows; then a row that does not pass interrupts no pair that does.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Filter(equals("?y", "1"), Join(triples("?x p ?y"), triples("?x q ?z")))
    >>> print(sketch(push_filters_into_joins(plan)))
    Join(Filter(?y = 1, ?x p ?y), ?x q ?z)
"""

from __future__ import annotations

from streamsparql.algebra.event import EqJoin, SeqJoin, SeqWithout
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.join import Join
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

_JOINS = (Join, BasicGraphPattern, SeqJoin, EqJoin, SeqWithout)


def push_filters_into_joins(plan: Plan) -> Plan | None:
    """Push conjuncts of a filter into the sides of the join; the others stay above."""
    if not isinstance(plan, Filter) or not isinstance(plan.input, _JOINS):
        return None
    sides = _sides(plan.input)
    if not sides:
        return None
    possible: dict[Variable, set[int]] = {}
    certain: dict[Variable, set[int]] = {}
    for k, side in enumerate(sides):
        for binds, variables in zip((certain, possible), scope(side), strict=True):
            for variable in variables:
                binds.setdefault(variable, set()).add(k)
    pushed: dict[int, list[Expression]] = {}
    kept: list[Expression] = []
    for conjunct in conjuncts(plan.condition):
        targets = set[int]()
        if not reads_occurrence(conjunct):
            targets = _target_sides(conjunct, possible, certain)
        for k in targets:
            pushed.setdefault(k, []).append(conjunct)
        if not targets:
            kept.append(conjunct)
    if not pushed:
        return None
    inputs = (filter_by(pushed.get(k, ()), side) for k, side in enumerate(plan.input.inputs))
    return filter_by(kept, plan.input.with_inputs(*inputs))


def _sides(plan: Plan) -> tuple[Plan, ...]:
    """Return the inputs into which filters are pushed."""
    if not isinstance(plan, SeqWithout):
        return plan.inputs
    sides = (plan.left, plan.right)
    return sides if all(scope(side).is_fixed for side in sides) else ()


def _target_sides(
    condition: Expression, possible: dict[Variable, set[int]], certain: dict[Variable, set[int]]
) -> set[int]:
    targets: set[int] | None = None
    for variable in variables_in(condition):
        if variable in possible:
            sides = possible[variable]
            binding = sides if len(sides) == 1 else certain.get(variable, set())
            targets = binding if targets is None else targets & binding
    return {0} if targets is None else targets


RULE = Rule(push_filters_into_joins, at=(Filter,), over_events=True)
