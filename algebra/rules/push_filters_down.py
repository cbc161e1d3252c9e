"""A filter goes below operators with one input that do not change what it reads.

Law: `Filter(c, op(P)) = op(Filter(c, P))`.
Source: SPARQL 1.1, section 18.5; SEMANTICS.md section 4.

Side condition, by operator:

- `Extend`, `Mark`: c does not read the variable that they bind.
- `Projection`: c reads none but what is kept; another variable of the same name may be below.
- `Distinct`: c reads no stamp, since of rows that differ in stamps only the latest stamp stays.
- `OrderBy`, `Reduced`: none. The order of the rows that pass is the same.
- `Aggregation`, `Annotate`: c reads none but keys, and there are some: then it lets whole groups
  pass or none of a group. With no keys at all, one group is there even when nothing passes.

Never below `Slice`, which ranks the rows that did not pass too. All this holds in the pattern of an
EXISTS: where an operator hides a variable of the outer row, c does not read it.

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
    """The operator over filtered rows, below a filter with what must stay above."""
    if not isinstance(plan, Filter):
        return None
    going, staying = _parted(plan)
    if not going:
        return None
    rows, *others = plan.input.inputs
    return filter_by(staying, plan.input.with_inputs(filter_by(going, rows), *others))


def _parted(plan: Filter) -> tuple[list[Expression], list[Expression]]:
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


RULE = Rule(push_filters_down, at=(Filter,))
