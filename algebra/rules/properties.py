"""What the rules ask of plans. All answers are worked out once per node and kept there."""

from __future__ import annotations

from streamsparql.algebra import access, event, filter, group, join, match, shape
from streamsparql.algebra.expressions import Call
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Table
from streamsparql.algebra.solutions import Variable

JOINS = (join.Join, match.BasicGraphPattern)
"""The operators that a chain of joins is made of."""
EXISTS = (filter.Mark, filter.SemiJoin, filter.AntiJoin)
"""The operators that ask, for each of their rows, whether a pattern has a solution."""
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
"""The operators that compute rows from rows, whatever these are made of and in whatever order."""

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
_MOVES = {access.AccessStream, event.Detect, event.Closure}


def empty_table(plan: Plan) -> Table:
    """The plan with the same variables and no rows."""
    return Table(scope(plan).possible, ())


def is_empty_table(plan: Plan) -> bool:
    """Whether it is the table without rows."""
    return type(plan) is Table and not plan.rows


def is_unit(plan: Plan) -> bool:
    """Whether it is one empty row.

    >>> is_unit(Table((Variable("x"),), ((None,),)))
    True
    """
    if type(plan) is not Table or len(plan.rows) != 1:
        return False
    return all(term is None for term in plan.rows[0])


def is_static(plan: Plan) -> bool:
    """Whether a plan gives the same snapshot at every instant: it reads no stream."""
    return plan.fold(_is_static, keep="_static")


def _is_static(node: Node, parts: list[bool]) -> bool:
    return type(node) not in _MOVES and all(parts)


def reads_clock(node: Node) -> bool:
    """Whether something in it is NOW(), which is constant in a run and not before."""
    return node.fold(_reads_clock, keep="_clock")


def _reads_clock(node: Node, parts: list[bool]) -> bool:
    return (isinstance(node, Call) and node.function == "NOW") or any(parts)


def is_ordered(plan: Plan) -> bool:
    """Whether an ORDER BY, or a slice, settles the order in which its snapshots are read."""
    while keeps_order(plan):
        plan = plan.inputs[0]
    return type(plan) in (shape.OrderBy, shape.Slice)


def keeps_order(plan: Plan) -> bool:
    """Whether it hands on the order of its (first) input."""
    return type(plan) in _KEEPS_ORDER


def is_set(plan: Plan) -> bool:
    """Whether no snapshot holds a row twice, not even with other stamps.

    >>> is_set(shape.Distinct(shape.UNIT)), is_set(join.Union((shape.UNIT, shape.UNIT)))
    (True, False)
    """
    return plan.fold(_is_set, keep="_set")


def _is_set(node: Node, parts: list[bool]) -> bool:
    if not isinstance(node, Plan):
        return False
    known = [given for part, given in zip(node.parts(), parts, strict=True) if _plan(part)]
    match node:
        case shape.Distinct() | access.AccessGraph() | group.Aggregation() | shape.Number():
            return True
        case shape.Table(_, rows):
            return len(set(rows)) == len(rows)
        case match.TriplePatternMatching():
            return known[0]
        case join.Join() | match.BasicGraphPattern():
            return all(known) and all(_always_binds_the_same(plan) for plan in node.inputs)
        case shape.Projection(variables, below):
            return known[0] and set(_identity(below)) <= set(variables)
    return type(node) in _KEEPS_SET and known[0]


def _plan(part: Node) -> bool:
    return isinstance(part, Plan)


def _always_binds_the_same(plan: Plan) -> bool:
    """Then a merged row tells which rows it was made of."""
    found = scope(plan)
    return set(found.certain) >= {v for v in found.possible if not v.stamp}


def _identity(plan: Plan) -> tuple[Variable, ...]:
    """Variables that tell the rows of a set apart; what is worked out per row adds nothing."""
    while isinstance(plan, filter.Filter | filter.Mark | shape.Extend):
        plan = plan.input
    if isinstance(plan, group.Aggregation):
        return plan.keys
    return tuple(v for v in scope(plan).possible if not v.stamp)


def mentioned_variables(plan: Plan) -> frozenset[Variable]:
    """All variables that stand anywhere in a plan: what the pattern of an EXISTS can read by name.

    GRAPH's variable is among them.
    """
    own = (part for one in plan.operators() for part in one.parts() if not isinstance(part, Plan))
    return frozenset(node for part in own for node in part.walk() if isinstance(node, Variable))
