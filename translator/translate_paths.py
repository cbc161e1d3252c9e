"""The translation of property paths: some are triple patterns, the others path expressions.

SPARQL 1.1 section 18.2.2.4: an IRI becomes a triple pattern, an inverse swaps the ends, and new
variables link the steps of a sequence. All other paths stay path expressions.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from streamsparql.algebra import path
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.node import Node
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, Term
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context


class PathPattern(NamedTuple):
    """Two ends, and a path between them that is not a triple pattern."""

    subject: Term | Variable
    path: path.PathExpression
    object: Term | Variable


def split_path(triple: s.TriplePath, context: Context) -> list[TriplePattern | PathPattern]:
    """Return the patterns that a triple of the query abbreviates, in order."""
    subject, predicate, value = triple.members()
    match predicate:
        case s.Var() | s.Iri():
            terms = [context.term(node) for node in (subject, predicate, value)]
            return [TriplePattern(*terms)]
        case s.PathOperation("^", (inner,)):
            return split_path(s.TriplePath(value, inner, subject), context)
        case s.PathOperation("/", steps):
            patterns: list[TriplePattern | PathPattern] = []
            for step in _sequence(subject, predicate, steps, value, triple):
                patterns += split_path(step, context)
            return patterns
    start = context.term(subject)
    return [PathPattern(start, _path_expression(predicate, context), context.term(value))]


def _sequence(
    subject: s.GraphTerm,
    node: s.PathOperation,
    steps: tuple[s.PropertyPath, ...],
    value: s.GraphTerm,
    triple: s.TriplePath,
) -> list[s.TriplePath]:
    """Return a triple per step, linked by blank nodes that occur in no other triple."""
    place = f"/{triple.span.end}.{node.span.start}."
    middle: list[s.GraphTerm] = [s.Blank(f"{place}{i}") for i in range(len(steps) - 1)]
    ends = zip([subject, *middle], steps, [*middle, value], strict=True)
    return [s.TriplePath(a, step, b) for a, step, b in ends]


def _path_expression(node: s.PropertyPath, context: Context) -> path.PathExpression:
    def translated(node: Node, parts: list[path.PathExpression]) -> path.PathExpression:
        if isinstance(node, s.Iri):
            return path.Link(context.names.iri(node))
        assert isinstance(node, s.PathOperation)
        match node.op:
            case "!":
                return _negated(node, context)
            case "^":
                return path.Inverse(parts[0])
            case "*":
                return path.ZeroOrMore(parts[0])
            case "+":
                return path.OneOrMore(parts[0])
            case "?":
                return path.ZeroOrOne(parts[0])
        pair = path.Sequence if node.op == "/" else path.Alternative
        return reduce(pair, parts)

    return node.fold(translated)


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
