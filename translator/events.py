"""The translation of event queries: EP-SPARQL's operators, and refused constructs."""

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
from streamsparql.algebra.traversal import descend
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


def create_closure(
    where: Plan,
    template: tuple[TriplePattern, ...],
    stream: IRI,
    query: s.QueryUnit,
    context: Context,
) -> Plan:
    """Return WHERE over the stream and all triples that the query, as a rule, derives from it.

    Derived triples join the first default stream; a WHERE that does not read it needs no closure.
    """
    if not _reads(where, stream):
        return where
    after = query.modifiers
    unsupported = (
        after.group,
        after.having,
        after.aggregates,
        after.limit,
        after.offset,
        query.values,
    )
    if any(part not in ((), None) for part in unsupported):
        raise UnsupportedFeature(
            "a rule's triples become part of the stream, so its rows cannot be changed after WHERE",
            (after if query.values is None else query.values).span,
            hint="move the condition into WHERE, as a FILTER or VALUES",
        )
    for optional in _optional_now(where):
        if not _reads(optional, stream):
            continue
        # the schema, which is not known yet, may relate any two triples
        if context.entailment or any(_can_match(x, optional.pattern) for x in template):
            derived = "triples that may entail a match" if context.entailment else "such triples"
            _, span = context.spans.get(id(optional), (optional, query.form.span))
            raise UnsupportedFeature(
                f"this pattern is optional in a rule that derives {derived}: its absence would"
                " depend on itself",
                span,
                hint="match earlier events only, with SEQ, or derive another predicate",
            )
    return Closure(stream, (Construct(template, where),), where)


def _reads(plan: Plan, stream: IRI) -> bool:
    return any(isinstance(node, AccessStream) and node.stream == stream for node in plan.walk())


def _optional_now(rule: Plan) -> Iterator[TriplePatternMatching]:
    """Yield the patterns that may lack a match at the instant at which a rule fires.

    The left side of a SEQ has ended before, so it is final by then.
    """
    for node, optional in descend(rule, False, _below):
        if optional and isinstance(node, TriplePatternMatching):
            yield node


def _below(node: Plan, optional: bool) -> list[tuple[Plan, bool]]:
    match node:
        case SeqJoin(_, right) | SeqRightJoin(_, right):
            return [(right, optional)]
        case LeftJoin(left, right) | EqLeftJoin(left, right):
            return [(left, optional), (right, True)]
    return [(below, optional) for below in node.inputs]


def _can_match(derived: TriplePattern, pattern: TriplePattern) -> bool:
    """Return whether a template's triple can match a pattern, for some values of its variables."""
    bound: dict[Variable, Term] = {}
    for term, place in zip(derived, pattern, strict=True):
        if isinstance(term, Variable | BlankNode):
            continue
        required = bound.setdefault(place, term) if isinstance(place, Variable) else place
        if required != term:
            return False
    return True
