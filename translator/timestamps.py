"""timestamp(?x), and where it is known; getDURATION() and its like (SEMANTICS.md 7 and 8).

Both travel in hidden columns, which a query cannot pass on: GROUP BY and subqueries drop them. A
query that reads one where it has gone would get nothing in every row, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.event import Detect
from streamsparql.algebra.expressions import OCCURRENCE, Volatile
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import below, readable
from streamsparql.algebra.solutions import Variable
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context
from streamsparql.translator.dialects.detect import TIMESTAMP
from streamsparql.translator.events import occurs

_OCCURRENCES = frozenset(OCCURRENCE.values())


def is_timestamp(node: s.OperatorCall | s.FunctionCall, context: Context) -> bool:
    """Whether a call is one of `timestamp`, by its name or by its IRI."""
    if isinstance(node, s.FunctionCall):
        return context.names.knows(node.function, TIMESTAMP)
    return node.op == "TIMESTAMP"


def find_stamps(query: s.QueryUnit, context: Context) -> list[tuple[Variable, s.SyntaxNode]]:
    """Registers all stamps that a query asks for: the patterns will have to bind them."""
    return [
        (stamp(node, context), node)
        for node in query.walk()
        if isinstance(node, s.OperatorCall | s.FunctionCall) and is_timestamp(node, context)
    ]


def stamp(node: s.OperatorCall | s.FunctionCall, context: Context) -> Variable:
    """The hidden variable of `timestamp(?x)`, `timestamp(?x, <stream>)`, `f:timestamp(s, p, o)`."""
    if context.dialect.content == "events":
        raise UnsupportedFeature(
            "timestamp is C-SPARQL's, where triples have stamps; here solutions have occurrences",
            node.span,
            hint="write getENDTIME(), which is when the last of its events ended",
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
        "timestamp tells when a variable was bound, or when a triple came",
        node.span,
        hint="write timestamp(?x), timestamp(?x, <stream>) or f:timestamp(?s, ?p, ?o)",
    )


def check_stamps(
    plan: Plan, query: s.QueryUnit, asked: list[tuple[Variable, s.SyntaxNode]], context: Context
) -> None:
    """Every stamp that is asked for is bound by a pattern, and known where it is read."""
    streams = {node.stream for node in plan.walk() if isinstance(node, AccessStream)}
    for variable, node in asked:
        match node:
            case (
                s.OperatorCall(args=(_, s.Iri() as iri)) | s.FunctionCall(args=(_, s.Iri() as iri))
            ):
                if context.names.iri(iri) not in streams:
                    raise QueryError(f"no stream {context.names.iri(iri)} is read here", iri.span)
        if variable not in context.stamps.bound:
            raise QueryError(
                "no triple pattern binds what this timestamp is about",
                node.span,
                hint="f:timestamp(s, p, o) needs the pattern s p o in WHERE, word for word",
            )
    read = [*asked, *_occurrences(query)]
    for part, variable in _read_out_of_scope(plan) if read else ():
        places = [node.span for other, node in read if other == variable]
        within = context.spans[id(part)][1] if id(part) in context.spans else query.span
        inside = [place for place in places if within.start <= place.start < within.end]
        raise QueryError(
            "what this asks for is not known here: it belongs to the rows of another group, or of"
            " WHERE below GROUP BY",
            (inside or places)[-1],
            hint="ask there, and pass it on: (MAX(timestamp(?x)) AS ?t), or BIND(.. AS ?t)",
        )


def _occurrences(query: s.QueryUnit) -> Iterator[tuple[Variable, s.SyntaxNode]]:
    for node in query.walk():
        if isinstance(node, s.OperatorCall) and node.op in OCCURRENCE:
            yield OCCURRENCE[node.op], node


def _read_out_of_scope(plan: Plan) -> Iterator[tuple[Plan, Variable]]:
    """The stamps and occurrences that expressions read where no input has them."""
    pending: list[tuple[Plan, frozenset[Variable], bool]] = [(plan, frozenset(), False)]
    while pending:
        node, outer, events = pending.pop()
        known = readable(node, outer)
        if events and any(map(occurs, node.inputs)):
            known |= _OCCURRENCES
        if not isinstance(node, TriplePatternMatching):  # which binds them
            for variable in _free(node):
                if (variable.stamp or variable in _OCCURRENCES) and variable not in known:
                    yield node, variable
        events = events or isinstance(node, Detect)
        pending += [(child, seen, events) for child, seen in below(node, outer)]


def _free(plan: Plan) -> Iterator[Variable]:
    """The variables that the expressions of an operator read."""
    pending: list[Node] = list(plan.expressions)
    while pending:
        node = pending.pop()
        if isinstance(node, Variable):
            yield node
        pending += node.args if isinstance(node, Volatile) else node.parts()
