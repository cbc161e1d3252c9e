"""What is different over events: EP-SPARQL's operators, and what has no meaning there."""

from __future__ import annotations

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.event import EqJoin, EqLeftJoin, SeqJoin, SeqRightJoin
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context

NEGATION = "say it as the paper does: OPTIONAL { .. ?v .. } FILTER(!BOUND(?v))"


def check_event_operator(clause: s.Event, context: Context) -> None:
    """Event operators need events."""
    if context.dialect.content != "events":
        raise UnsupportedFeature(
            f"{clause.op} orders events in time, and {context.dialect.title} has none",
            clause.span,
            hint='compile with dialect="epsparql", and without windows',
        )


def event_operator(clause: s.Event, left: Plan, right: Plan, condition: Expression | None) -> Plan:
    """The operator of an event pattern. `condition` comes from the filters of its optional side."""
    for operand, plan in ((clause.left, left), (clause.right, right)):
        if not plan.fold(_occurs, keep="_occurs"):
            raise QueryError(
                f"{clause.op} relates occurrences, and what is static never occurs",
                operand.span,
                hint="join it with an event pattern instead: { .. } inside the other braces",
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


def _occurs(node: Node, parts: list[bool]) -> bool:
    """Whether a stream is read somewhere below."""
    return isinstance(node, AccessStream) or any(parts)


def refuse_over_events(what: str, hint: str, node: s.Node, context: Context) -> None:
    """Refuses what is not timewise monotone, or has no definition over events."""
    if context.dialect.content == "events":
        raise UnsupportedFeature(f"{what} is not defined over events", node.span, hint=hint)


def check_sub_select(clause: s.SubSelect, context: Context) -> None:
    """A subquery over events may shape its rows; it cannot count or sort what is still to come."""
    modifiers = clause.modifiers
    if modifiers.group or modifiers.having or modifiers.aggregates or _has_aggregate(clause):
        refuse_over_events("grouping in a subquery", "group in the query itself", clause, context)
    if modifiers.order or modifiers.limit is not None or modifiers.offset:
        refuse_over_events("sorting a subquery", "sort in the query itself", clause, context)


def _has_aggregate(clause: s.SubSelect) -> bool:
    return any(isinstance(node, s.AggregateCall) for node in clause.select.walk())
