"""Property paths: those that are triple patterns in disguise, and those that are not.

SPARQL 1.1 section 18.2.2.4: an IRI is a triple pattern, an inverse swaps the ends, a sequence meets
in a variable of its own. What is left stays a path expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamsparql.algebra import path
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, Term
from streamsparql.algebra.trampoline import Steps, run
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context


class PathPattern(NamedTuple):
    """Two ends, and a path between them that is no triple pattern."""

    subject: Term | Variable
    path: path.PathExpression
    object: Term | Variable


def patterns(triple: s.TriplePath, context: Context) -> Iterator[TriplePattern | PathPattern]:
    """What a written triple pattern stands for, in order."""
    pending: list[s.TriplePath] = [triple]
    while pending:
        subject, predicate, value = pending.pop().members()
        match predicate:
            case s.Var() | s.Iri():
                yield TriplePattern(
                    context.term(subject), context.term(predicate), context.term(value)
                )
            case s.PathOperation("^", (inner,)):
                pending.append(s.TriplePath(value, inner, subject))
            case s.PathOperation("/", steps):
                pending.extend(reversed(_sequence(subject, predicate, steps, value, triple)))
            case _:
                start = context.term(subject)
                path_ = run(_expression(predicate, context))
                yield PathPattern(start, path_, context.term(value))


def _sequence(
    subject: s.GraphTerm,
    node: s.PathOperation,
    steps: tuple[s.PropertyPath, ...],
    value: s.GraphTerm,
    triple: s.TriplePath,
) -> list[s.TriplePath]:
    """One triple pattern per step, meeting in blank nodes that are this triple's own."""
    place = f"/{triple.span.end}.{node.span.start}."
    middle: list[s.GraphTerm] = [s.Blank(f"{place}{i}") for i in range(len(steps) - 1)]
    ends = zip([subject, *middle], steps, [*middle, value], strict=True)
    return [s.TriplePath(a, step, b) for a, step, b in ends]


def _expression(node: s.PropertyPath, context: Context) -> Steps[path.PathExpression]:
    if isinstance(node, s.Iri):
        return path.Link(context.names.iri(node))
    if node.op == "!":
        return _negated(node, context)
    made: list[path.PathExpression] = []
    for arg in node.args:
        made.append((yield _expression(arg, context)))
    match node.op:
        case "^":
            return path.Inverse(made[0])
        case "*":
            return path.ZeroOrMore(made[0])
        case "+":
            return path.OneOrMore(made[0])
        case "?":
            return path.ZeroOrOne(made[0])
    pair = path.Sequence if node.op == "/" else path.Alternative
    result = made[0]
    for following in made[1:]:
        result = pair(result, following)
    return result


def _negated(node: s.PathOperation, context: Context) -> path.NegatedSet:
    forward: list[IRI] = []
    backward: list[IRI] = []
    for arg in node.args:
        match arg:
            case s.Iri():
                forward.append(context.names.iri(arg))
            case s.PathOperation("^", (s.Iri() as inner,)):
                backward.append(context.names.iri(inner))
    return path.NegatedSet(
        tuple(forward) if forward or not backward else None, tuple(backward) if backward else None
    )
