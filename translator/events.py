"""What is different over events: EP-SPARQL's operators, and what has no meaning there."""

from __future__ import annotations

from collections.abc import Iterator

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.event import Closure, EqJoin, EqLeftJoin, SeqJoin, SeqRightJoin
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.join import LeftJoin
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, BlankNode, Term
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context

NEGATION = "say it as the paper does: OPTIONAL { .. ?v .. } FILTER(!BOUND(?v))"


def check_event_operator(clause: s.EventPattern, context: Context) -> None:
    """Event operators need events."""
    if context.dialect.content != "events":
        raise UnsupportedFeature(
            f"{clause.op} orders events in time, and {context.dialect.title} has none",
            clause.span,
            hint='compile with dialect="epsparql", and without windows',
        )


def event_operator(
    clause: s.EventPattern, left: Plan, right: Plan, condition: Expression | None
) -> Plan:
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


def refuse_over_events(what: str, hint: str, node: s.SyntaxNode, context: Context) -> None:
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


def closed_under_rule(
    where: Plan,
    template: tuple[TriplePattern, ...],
    stream: IRI,
    query: s.QueryUnit,
    context: Context,
) -> Plan:
    """WHERE over the stream with all that the query, as a rule, makes of it.

    It joins the first default stream; a WHERE that does not read that one needs no closure.
    """
    if not _reads(where, stream):
        return where
    after = query.modifiers
    dropped = (after.group, after.having, after.aggregates, after.limit, after.offset, query.values)
    if any(part not in ((), None) for part in dropped):
        raise UnsupportedFeature(
            "what a rule makes becomes part of the stream, so nothing can be changed after WHERE",
            (after if query.values is None else query.values).span,
            hint="put the condition into WHERE, as a FILTER or VALUES",
        )
    for optional in _optional_now(where):
        if not _reads(optional, stream):
            continue
        if any(_may_make(made, optional.pattern) for made in template):
            _, span = context.spans.get(id(optional), (optional, query.form.span))
            raise UnsupportedFeature(
                "this is optional in a rule that makes such triples: whether it is there would"
                " depend on itself",
                span,
                hint="ask for what came before, with SEQ, or make triples with another predicate",
            )
    return Closure(stream, (Construct(template, where),), where)


def _reads(plan: Plan, stream: IRI) -> bool:
    return any(isinstance(node, AccessStream) and node.stream == stream for node in plan.walk())


def _optional_now(rule: Plan) -> Iterator[TriplePatternMatching]:
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


def _may_make(made: TriplePattern, asked: TriplePattern) -> bool:
    """Whether a template's triple can match a pattern, for some values of its variables."""
    bound: dict[Variable, Term] = {}
    for term, place in zip(made, asked, strict=True):
        if isinstance(term, Variable | BlankNode):
            continue
        wanted = bound.setdefault(place, term) if isinstance(place, Variable) else place
        if wanted != term:
            return False
    return True
