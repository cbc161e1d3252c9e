"""Empty tables propagate through operators.

Law: with 0 for the table without rows,

    0 join P = 0            P union 0 = P           0 minus P = 0       P minus 0 = P
    P leftjoin 0 = P        0 leftjoin P = 0        op(0) = 0 for filter, extend, projection, ..

and grouping 0 by keys is 0 (without keys it is one row, so such a grouping stays).
Source: SPARQL 1.1, section 18.5; SEMANTICS.md section 4.

Side condition: none. The rule is sound over events, and in the pattern of an EXISTS, where 0 is
empty for any outer row.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Join(triples("?x p ?y"), inline_data("?y"))
    >>> print(sketch(plan), "->", sketch(propagate_empty(plan)))
    Join(?x p ?y, Table(?y: no rows)) -> Table(?x ?y: no rows)
"""

from __future__ import annotations

from streamsparql.algebra import filter, graph, group, join, match, shape, window
from streamsparql.algebra.access import AccessGraph
from streamsparql.algebra.expressions import Constant
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import ROW_OPERATORS, empty_table, is_empty_table
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.terms import FALSE


def propagate_empty(plan: Plan) -> Plan | None:
    """Simplify an operator with an empty input."""
    if not any(map(is_empty_table, plan.inputs)):
        return empty_table(plan) if _is_empty(plan) else None
    match plan:
        case join.Join() | match.BasicGraphPattern():
            return empty_table(plan) if any(map(is_empty_table, plan.inputs)) else None
        case join.Union(branches):
            return _simplify_union(plan, tuple(one for one in branches if not is_empty_table(one)))
        case join.LeftJoin(left, right) | join.Minus(left, right):
            if is_empty_table(left):
                return empty_table(plan)
            return left if is_empty_table(right) else None
        case filter.SemiJoin(rows, pattern) | filter.AntiJoin(rows, pattern):
            if is_empty_table(pattern):
                return rows if isinstance(plan, filter.AntiJoin) else empty_table(plan)
            return empty_table(plan) if is_empty_table(rows) else None
        case filter.Mark(variable, rows, pattern) if is_empty_table(pattern):
            return shape.Extend(variable, Constant(FALSE), rows)
        case group.Aggregation(()):
            return None
        case graph.Construct() | graph.Describe() | graph.Ask() | window.Window():
            return None
    return empty_table(plan) if is_empty_table(plan.inputs[0]) else None


def _is_empty(plan: Plan) -> bool:
    """Return whether a plan is a LIMIT 0, or a pattern over a merge of no graphs."""
    if type(plan) is shape.Slice:
        return plan.limit == 0
    if type(plan) is match.TriplePatternMatching and type(plan.input) is AccessGraph:
        return not plan.input.graphs and not plan.input.background
    return False


def _simplify_union(plan: join.Union, branches: tuple[Plan, ...]) -> Plan | None:
    if len(branches) == len(plan.branches):
        return None
    if not branches:
        return empty_table(plan)
    return branches[0] if len(branches) == 1 else join.Union(branches)


_CAN_BE_EMPTY = (
    *ROW_OPERATORS,
    match.BasicGraphPattern,
    match.TriplePatternMatching,
    shape.OrderBy,
    shape.Slice,
    graph.Graph,
)

RULE = Rule(propagate_empty, at=_CAN_BE_EMPTY, bottom_up=True, over_events=True)
