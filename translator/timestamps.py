"""The functions timestamp(?x), getDURATION() .., and where they are bound (SEMANTICS.md 7 and 8).

They read hidden columns, which GROUP BY and subqueries remove. A removed column would be unbound in
every row, so a query that reads it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.event import Detect
from streamsparql.algebra.expressions import OCCURRENCE, Volatile
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import inputs_with_outer, readable_variables
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.traversal import descend
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context
from streamsparql.translator.dialects.detect import TIMESTAMP
from streamsparql.translator.events import occurs

_OCCURRENCES = frozenset(OCCURRENCE.values())


def is_timestamp(node: s.OperatorCall | s.FunctionCall, context: Context) -> bool:
    """Return whether a node calls `timestamp`, by its name or by its IRI."""
    if isinstance(node, s.FunctionCall):
        return context.names.knows(node.function, TIMESTAMP)
    return node.op == "TIMESTAMP"


def request_stamps(query: s.QueryUnit, context: Context) -> list[tuple[Variable, s.SyntaxNode]]:
    """Register all stamps that a query reads, which the patterns must bind."""
    return [
        (stamp_variable(node, context), node)
        for node in query.walk()
        if isinstance(node, s.OperatorCall | s.FunctionCall) and is_timestamp(node, context)
    ]


def stamp_variable(node: s.OperatorCall | s.FunctionCall, context: Context) -> Variable:
    """Return the hidden variable of `timestamp(?x)` or `f:timestamp(s, p, o)`."""
    if context.dialect.has_events:
        raise UnsupportedFeature(
            "timestamp() reads the stamps of triples; solutions of an event query have occurrences",
            node.span,
            hint="write getENDTIME(), which is when the last of a solution's events ended",
        )
    match node.args:
        case (s.Var(name),):
            return context.stamps.of_variable(Variable(name), None)
        case (s.Var(name), s.Iri() as stream):
            return context.stamps.of_variable(Variable(name), context.names.iri(stream))
        case (
            (s.Var() | s.Iri() | s.Lit()) as subject,
            (s.Var() | s.Iri()) as predicate,
            (s.Var() | s.Iri() | s.Lit()) as value,
        ):
            terms = map(context.term, (subject, predicate, value))
            return context.stamps.of_triple(TriplePattern(*terms))
    raise QueryError(
        "invalid arguments of timestamp(): expected a variable, or the terms of a triple pattern",
        node.span,
        hint="write timestamp(?x), timestamp(?x, <stream>) or f:timestamp(?s, ?p, ?o)",
    )


def check_stamps(
    plan: Plan, query: s.QueryUnit, requested: list[tuple[Variable, s.SyntaxNode]], context: Context
) -> None:
    """Check that each stamp that is read is bound by a pattern, and in scope where it is read."""
    streams = {node.stream for node in plan.walk() if isinstance(node, AccessStream)}
    for variable, node in requested:
        match node:
            case (
                s.OperatorCall(args=(_, s.Iri() as iri)) | s.FunctionCall(args=(_, s.Iri() as iri))
            ):
                if context.names.iri(iri) not in streams:
                    raise QueryError(f"unknown stream {context.names.iri(iri)}", iri.span)
        if variable not in context.stamps.bound:
            raise QueryError(
                "no triple pattern binds the argument of this timestamp()",
                node.span,
                hint="f:timestamp(s, p, o) needs the same pattern s p o in WHERE",
            )
    read = [*requested, *_occurrences(query)]
    for part, variable in _reads_out_of_scope(plan) if read else ():
        places = [node.span for other, node in read if other == variable]
        within = context.spans[id(part)][1] if id(part) in context.spans else query.span
        inside = [place for place in places if within.start <= place.start < within.end]
        raise QueryError(
            "this is unbound here: it belongs to the rows of another group, or of WHERE below"
            " GROUP BY",
            (inside or places)[-1],
            hint="bind it there, and use the variable: (MAX(timestamp(?x)) AS ?t), BIND(.. AS ?t)",
        )


def _occurrences(query: s.QueryUnit) -> Iterator[tuple[Variable, s.SyntaxNode]]:
    for node in query.walk():
        if isinstance(node, s.OperatorCall) and node.op in OCCURRENCE:
            yield OCCURRENCE[node.op], node


class _Place(NamedTuple):
    """A place of a plan: the variables of outer rows, and whether it is below a `Detect`."""

    outer: frozenset[Variable]
    events: bool


def _reads_out_of_scope(plan: Plan) -> Iterator[tuple[Plan, Variable]]:
    """Yield the stamps and occurrences that expressions read where no input binds them."""
    for node, (outer, events) in descend(plan, _Place(frozenset(), False), _places_below):
        known = readable_variables(node, outer)
        if events and any(map(occurs, node.inputs)):
            known |= _OCCURRENCES
        if not isinstance(node, TriplePatternMatching):  # a matching binds stamps
            for variable in _variables_read(node):
                if (variable.stamp or variable in _OCCURRENCES) and variable not in known:
                    yield node, variable


def _places_below(node: Plan, place: _Place) -> list[tuple[Plan, _Place]]:
    events = place.events or isinstance(node, Detect)
    return [(child, _Place(outer, events)) for child, outer in inputs_with_outer(node, place.outer)]


def _variables_read(plan: Plan) -> Iterator[Variable]:
    """Yield the variables that the expressions of an operator read."""
    for expression in plan.expressions:
        for node, _ in descend(expression, None, _arguments):
            if isinstance(node, Variable):
                yield node


def _arguments(expression: Expression, _: None) -> list[tuple[Expression, None]]:
    parts = expression.args if isinstance(expression, Volatile) else expression.parts()
    return [(part, None) for part in parts if isinstance(part, Expression)]
