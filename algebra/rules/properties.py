"""Properties of plans that rules test; the results are memoised in the nodes."""

from __future__ import annotations

from streamsparql.algebra import access, event, filter, group, join, match, shape
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.expressions import Call
from streamsparql.algebra.node import Node
from streamsparql.algebra.parameter import parameters_in
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.conditions import reads_occurrence
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Table
from streamsparql.algebra.solutions import Variable

JOINS = (join.Join, match.BasicGraphPattern)
"""The operators that form a chain of joins."""
EXISTS = (filter.Mark, filter.SemiJoin, filter.AntiJoin)
"""The operators that test, for each of their rows, whether a pattern has a solution."""
ROW_OPERATORS = (
    filter.Filter,
    *EXISTS,
    join.Join,
    join.LeftJoin,
    join.Minus,
    join.Union,
    shape.Distinct,
    shape.Extend,
    shape.Number,
    shape.Projection,
    shape.Reduced,
    group.Aggregation,
    group.Annotate,
)
"""The operators that compute rows from rows, independently of their order."""

_KEEPS_ORDER = {
    filter.Filter,
    filter.Mark,
    filter.SemiJoin,
    filter.AntiJoin,
    shape.Extend,
    shape.Projection,
    shape.Distinct,
    shape.Reduced,
    group.Annotate,
}
_KEEPS_SET = {
    filter.Filter,
    filter.Mark,
    filter.SemiJoin,
    filter.AntiJoin,
    join.Minus,
    shape.Extend,
    shape.Reduced,
    shape.OrderBy,
    shape.Slice,
    group.Annotate,
}
_READS_STREAMS = {access.AccessStream, event.Detect, Closure}


def continues_sequence(plan: Plan, below: Plan) -> bool:
    """Return whether an input of an operator belongs to the same chain of SEQ as the operator.

    A filter between two SEQ does, unless it reads the occurrence: it can move then.
    """
    if isinstance(plan, filter.Filter):
        return isinstance(below, event.SeqJoin)
    if isinstance(below, filter.Filter) and not reads_occurrence(below.condition):
        below = below.input
    return isinstance(plan, event.SeqJoin) and isinstance(below, event.SeqJoin)


def empty_table(plan: Plan) -> Table:
    """Return the empty table with the variables of a plan."""
    return Table(scope(plan).possible, ())


def is_empty_table(plan: Plan) -> bool:
    """Return whether a plan is a table without rows."""
    return type(plan) is Table and not plan.rows


def is_unit(plan: Plan) -> bool:
    """Return whether a plan is a table of one empty row.

    >>> is_unit(Table((Variable("x"),), ((None,),)))
    True
    """
    if type(plan) is not Table or len(plan.rows) != 1:
        return False
    return all(term is None for term in plan.rows[0])


def is_static(plan: Plan) -> bool:
    """Return whether a plan has the same snapshot at every instant: it reads no stream."""
    return plan.fold(_is_static, keep="_static")


def _is_static(node: Node, parts: list[bool]) -> bool:
    return type(node) not in _READS_STREAMS and all(parts)


def reads_clock(node: Node) -> bool:
    """Return whether a node contains NOW(), which is constant in a run, but unknown before it."""
    return node.fold(_reads_clock, keep="_clock")


def _reads_clock(node: Node, parts: list[bool]) -> bool:
    return (isinstance(node, Call) and node.function == "NOW") or any(parts)


def is_ordered(plan: Plan) -> bool:
    """Return whether an ORDER BY or a slice determines the order of a plan's snapshots."""
    while keeps_order(plan):
        plan = plan.inputs[0]
    return type(plan) in (shape.OrderBy, shape.Slice)


def keeps_order(plan: Plan) -> bool:
    """Return whether an operator preserves the order of its (first) input."""
    return type(plan) in _KEEPS_ORDER


def is_set(plan: Plan) -> bool:
    """Return whether no snapshot contains a row twice, not even with different stamps.

    >>> is_set(shape.Distinct(shape.UNIT)), is_set(join.Union((shape.UNIT, shape.UNIT)))
    (True, False)
    """
    return plan.fold(_is_set, keep="_set")


def _is_set(node: Node, parts: list[bool]) -> bool:
    if not isinstance(node, Plan):
        return False
    known = [is_one for part, is_one in zip(node.parts(), parts, strict=True) if _is_plan(part)]
    match node:
        case shape.Distinct() | access.AccessGraph() | group.Aggregation() | shape.Number():
            return True
        case shape.Table(_, rows):
            return len(set(rows)) == len(rows) and not parameters_in(node)
        case match.TriplePatternMatching():
            return known[0]
        case join.Join() | match.BasicGraphPattern():
            return all(known) and all(_binds_fixed_variables(plan) for plan in node.inputs)
        case shape.Projection(variables, below):
            return known[0] and set(_identifying_variables(below)) <= set(variables)
    return type(node) in _KEEPS_SET and known[0]


def _is_plan(part: Node) -> bool:
    return isinstance(part, Plan)


def _binds_fixed_variables(plan: Plan) -> bool:
    """Return whether all rows bind the same variables: a merged row then identifies its parts."""
    variables = scope(plan)
    return set(variables.certain) >= {v for v in variables.possible if not v.stamp}


def _identifying_variables(plan: Plan) -> tuple[Variable, ...]:
    """Return variables that identify the rows of a set, without those computed from a row."""
    while isinstance(plan, filter.Filter | filter.Mark | shape.Extend):
        plan = plan.input
    if isinstance(plan, group.Aggregation):
        return plan.keys
    return tuple(v for v in scope(plan).possible if not v.stamp)


def mentioned_variables(plan: Plan) -> frozenset[Variable]:
    """Return all variables that occur in a plan, which an EXISTS with that pattern may read.

    They include the variable of a GRAPH.
    """
    members = (x for node in plan.operators() for x in node.parts() if not isinstance(x, Plan))
    return frozenset(node for part in members for node in part.walk() if isinstance(node, Variable))
