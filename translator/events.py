"""What is different over events: EP-SPARQL's operators, and what has no meaning there."""

from __future__ import annotations

from collections.abc import Iterator

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.event import EqJoin, EqLeftJoin, SeqJoin, SeqRightJoin
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.join import LeftJoin
from streamsparql.algebra.match import TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import BlankNode, Term
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
        if not occurs(plan):
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


def occurs(plan: Plan) -> bool:
    """Whether a stream is read somewhere below, so that solutions have occurrences."""
    return plan.fold(_occurs, keep="_occurs")


def _occurs(node: Node, parts: list[bool]) -> bool:
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


def check_rule(query: s.Query, rule: Construct) -> None:
    """A CONSTRUCT rule feeds back what it makes, so nothing may be taken from that afterwards."""
    after = query.modifiers
    if after.group or after.having or after.limit is not None or after.offset or query.values:
        raise UnsupportedFeature(
            "what a rule makes becomes part of the stream, so nothing can be dropped after WHERE",
            (after if query.values is None else query.values).span,
            hint="put the condition into WHERE, as a FILTER or VALUES",
        )
    for absent in _absent_now(rule.input):
        if any(all(map(_may_be_same, made, absent.pattern)) for made in rule.template):
            asked = " ".join(map(str, absent.pattern))
            raise UnsupportedFeature(
                f"this rule makes what it asks the absence of: {asked}",
                query.form.span,
                hint="ask for what came before, with SEQ, or make triples with another predicate",
            )


def _absent_now(rule: Plan) -> Iterator[TriplePatternMatching]:
    """The patterns that a rule may find absent at its own instant, when it is about to fire.

    What stands left of a SEQ has ended before, and is settled by then.
    """
    pending = [(rule, False)]
    while pending:
        node, optional = pending.pop()
        match node:
            case TriplePatternMatching() if optional:
                yield node
            case SeqJoin(_, right) | SeqRightJoin(_, right):
                pending.append((right, optional))
            case LeftJoin(left, right) | EqLeftJoin(left, right):
                pending += [(left, optional), (right, True)]
            case _:
                pending += [(below, optional) for below in node.inputs]


def _may_be_same(made: Term | Variable, asked: Term | Variable) -> bool:
    free = isinstance(made, Variable | BlankNode) or isinstance(asked, Variable)
    return free or made == asked
