"""A filter is pushed below unary operators that do not change the variables that it reads.

Law: `Filter(c, op(P)) = op(Filter(c, P))`.
Source: SPARQL 1.1, section 18.5; SEMANTICS.md section 4.

Side condition, by operator:

- `Extend`, `Mark`: c does not read the variable that they bind.
- `Projection`: c reads only variables that it keeps; below, the same name may be another variable.
- `Distinct`: c reads no stamp: rows that differ only in stamps merge, with the latest stamps.
- `OrderBy`, `Reduced`: none. The order of the rows that pass is the same.
- `Aggregation`, `Annotate`: c reads only keys, and there are keys: then it accepts or rejects whole
  groups. Without keys there is one group even if no row passes.

Never below `Slice`, which also ranks the rows that do not pass. The rule is sound over events, and
in the pattern of an EXISTS: where an operator hides a variable of the outer row, c does not read
it.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> from streamsparql.algebra.shape import Extend
    >>> bind = Extend(expression("?v"), equals("?y", "2"), triples("?x p ?y"))
    >>> plan = Filter(equals("?x", "1"), bind)
    >>> print(sketch(push_filters_down(plan)))
    Extend(?v, ?y = 2, Filter(?x = 1, ?x p ?y))
"""

from __future__ import annotations

from streamsparql.algebra.filter import Filter, Mark
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import filter_by, split_conjuncts
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Distinct, Extend, OrderBy, Projection, Reduced
from streamsparql.algebra.solutions import Expression


def push_filters_down(plan: Plan) -> Plan | None:
    """Push conjuncts of a filter below the operator; the others stay above."""
    if not isinstance(plan, Filter):
        return None
    pushed, kept = _split(plan)
    if not pushed:
        return None
    rows, *others = plan.input.inputs
    return filter_by(kept, plan.input.with_inputs(filter_by(pushed, rows), *others))


def _split(plan: Filter) -> tuple[list[Expression], list[Expression]]:
    match plan.input:
        case Extend(variable) | Mark(variable):
            return split_conjuncts(plan, None, frozenset((variable,)))
        case Projection(variables):
            return split_conjuncts(plan, frozenset(variables))
        case Distinct(rows):
            return split_conjuncts(
                plan, None, frozenset(v for v in scope(rows).possible if v.stamp)
            )
        case OrderBy() | Reduced():
            return split_conjuncts(plan, None)
        case Aggregation(keys) | Annotate(_, _, keys) if keys:
            return split_conjuncts(plan, frozenset(keys))
    return [], []


RULE = Rule(push_filters_down, at=(Filter,), over_events=True)
