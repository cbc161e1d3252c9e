"""The translation of event queries: EP-SPARQL's operators, and refused constructs."""

from __future__ import annotations

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.event import EqJoin, EqLeftJoin, SeqJoin, SeqRightJoin
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context

NEGATION = "write negation as the paper does: OPTIONAL { .. ?v .. } FILTER(!BOUND(?v))"


def check_event_operator(clause: s.EventPattern, context: Context) -> None:
    """Refuse an event operator in a dialect without events."""
    if not context.dialect.has_events:
        raise UnsupportedFeature(
            f"{clause.op} orders events in time, but {context.dialect.title} has no events",
            clause.span,
            hint='compile with dialect="epsparql", and without windows',
        )


def create_event_operator(
    clause: s.EventPattern, left: Plan, right: Plan, condition: Expression | None
) -> Plan:
    """Return the operator of an event pattern.

    `condition` is the conjunction of the filters of its optional side.
    """
    for operand, plan in ((clause.left, left), (clause.right, right)):
        if not occurs(plan):
            raise QueryError(
                f"{clause.op} relates events, but this side is static and never occurs",
                operand.span,
                hint="join it with an event pattern: put it inside the braces of the other side",
            )
    match clause.op:
        case "SEQ":
            return SeqJoin(left, right)
        case "EQUALS":
            return EqJoin(left, right)
        case "OPTIONALSEQ":
            return SeqRightJoin(left, right, condition)
        case "EQUALSOPTIONAL":
            return EqLeftJoin(left, right, condition)
    raise AssertionError(clause.op)


def occurs(plan: Plan) -> bool:
    """Return whether a plan reads a stream, so that its solutions have occurrences."""
    return plan.fold(_occurs, keep="_occurs")


def _occurs(node: Node, parts: list[bool]) -> bool:
    return isinstance(node, AccessStream) or any(parts)


def refuse_over_events(construct: str, hint: str, node: s.SyntaxNode, context: Context) -> None:
    """Refuse a construct that later events could falsify, or that has no meaning over events."""
    if context.dialect.has_events:
        raise UnsupportedFeature(f"{construct} is not defined over events", node.span, hint=hint)


def check_sub_select(clause: s.SubSelect, context: Context) -> None:
    """Refuse a subquery over events that groups or sorts: later events would change its rows."""
    modifiers = clause.modifiers
    if modifiers.group or modifiers.having or modifiers.aggregates or _has_aggregate(clause):
        refuse_over_events("grouping in a subquery", "group in the query itself", clause, context)
    if modifiers.order or modifiers.limit is not None or modifiers.offset:
        refuse_over_events("sorting a subquery", "sort in the query itself", clause, context)


def _has_aggregate(clause: s.SubSelect) -> bool:
    return any(isinstance(node, s.AggregateCall) for node in clause.select.walk())
