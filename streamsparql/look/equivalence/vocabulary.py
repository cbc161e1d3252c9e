"""The vocabulary of plans: the sources, patterns, terms and times that random data is drawn from.

Data that is independent of two plans hardly ever distinguishes them: it misses the predicate, the
constant of a filter, the border of a window. So triples are instances of the plans' patterns, a
variable is bound to the terms that it is compared with, and items are as far apart as windows are
long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streamsparql.algebra import path as p
from streamsparql.algebra import window as w
from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.algebra.align import Align
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.entailment import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, TYPE, Entailed
from streamsparql.algebra.event import Detect
from streamsparql.algebra.expressions import Aggregate, Call, Constant, In
from streamsparql.algebra.graph import Construct, Describe, Graph
from streamsparql.algebra.grid import Grid
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.hidden_variables import Hidden, HiddenKind
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.shape import OrderBy, Slice, Table
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, Literal, Term
from streamsparql.look.equivalence.random_values import is_number_literal, small_whole_number

TripleSource = AccessStream | AccessGraph
OTHER_GRAPHS = (IRI("urn:g1"), IRI("urn:g2"))
"""Graphs for `GRAPH ?g`, besides those that the plans name."""
_NUMERIC_FUNCTIONS = frozenset(
    ("<", ">", "<=", ">=", "+", "-", "*", "/", "u-", "ABS", "ROUND", "CEIL", "FLOOR", "SUM", "AVG")
)
_MAX_COUNT = 30


@dataclass(frozen=True)
class Vocabulary:
    """The sources, patterns, terms and times of plans.

    `patterns` are triple patterns with the sources that they are matched against, `chains` the
    predicates of paths of arbitrary length with theirs. `compared_with` are the terms that a
    variable is compared with, `numeric` the variables in arithmetic, `functions` the functions and
    aggregates. `lengths` are the lengths and steps of windows, `grids` steps with their origins,
    `count` the greatest number of elements in a window or slice. `events` is whether there are
    event operators.
    """

    patterns: tuple[tuple[TriplePattern, tuple[TripleSource, ...]], ...]
    chains: tuple[tuple[IRI, tuple[TripleSource, ...]], ...]
    streams: tuple[IRI, ...]
    graph_names: tuple[IRI, ...]
    compared_with: Mapping[Variable, tuple[Term, ...]]
    terms: tuple[Term, ...]
    numeric: frozenset[Variable]
    functions: frozenset[str]
    lengths: tuple[int, ...]
    grids: tuple[tuple[int, int], ...]
    count: int
    events: bool

    @classmethod
    def of(cls, *plans: Plan) -> Vocabulary:
        """Return the joint vocabulary of plans.

        >>> import streamsparql
        >>> text = "ASK FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 4 MS { ?x <p> ?y FILTER(?y > 5) }"
        >>> vocabulary = Vocabulary.of(streamsparql.compile(text).logical)
        >>> vocabulary.streams, vocabulary.lengths, [str(term) for term in vocabulary.terms]
        ((IRI(value='s'),), (4, 10), ['"5"^^<http://www.w3.org/2001/XMLSchema#integer>', '<p>'])
        """
        nodes = list(dict.fromkeys(node for plan in plans for node in plan.walk()))
        compared: dict[Variable, list[Term]] = {}
        for variable, term in _comparisons(nodes):
            compared.setdefault(variable, []).append(term)
        patterns = tuple(dict.fromkeys((*_patterns(nodes), *_entailing_patterns(nodes))))
        patterns += tuple(_any_patterns(nodes, patterns))
        terms = dict.fromkeys(_constants(nodes, patterns))
        return cls(
            patterns=patterns,
            chains=tuple(dict.fromkeys(_chains(nodes))),
            streams=tuple(dict.fromkeys(_streams(nodes))),
            graph_names=_graph_names(nodes),
            compared_with={v: tuple(dict.fromkeys(ts)) for v, ts in compared.items()},
            terms=tuple(sorted(terms, key=str)),
            numeric=frozenset(_numeric(nodes)),
            functions=frozenset(_functions(nodes)),
            lengths=tuple(sorted(set(_lengths(nodes)))) or (1,),
            grids=tuple(sorted(set(_grids(nodes)))) or ((1, 0),),
            count=max((n for n in _counts(nodes) if n <= _MAX_COUNT), default=1),
            events=any(isinstance(node, Detect | Closure) for node in nodes),
        )


# -- triples ---------------------------------------------------------------------------------------


class _PatternKind(HiddenKind):
    """The kinds of the variables in the patterns below."""

    ANY = ".any{number}"
    ENTAILING = ".entailing {number} {of}"
    """A class or a property, narrower than that of the pattern `of`."""


_ANY = tuple(Hidden(_PatternKind.ANY, k) for k in range(3))


def _patterns(nodes: list[Node]) -> Iterator[tuple[TriplePattern, tuple[TripleSource, ...]]]:
    for node in nodes:
        match node:
            case TriplePatternMatching(pattern, source):
                yield pattern, _sources(source)
            case Path(subject, path, value, source):
                for predicate in _predicates(path):
                    yield TriplePattern(subject, predicate, _ANY[1]), _sources(source)
                    yield TriplePattern(_ANY[0], predicate, value), _sources(source)
            case Describe(resources, _, data):
                for resource in resources:
                    yield TriplePattern(resource, _ANY[1], _ANY[2]), _sources(data)


def _entailing_patterns(
    nodes: list[Node],
) -> Iterator[tuple[TriplePattern, tuple[TripleSource, ...]]]:
    """Yield patterns of triples that entail a match, and of the statements that this requires.

    The narrower class or property is a variable: a match assigns the same term to it in both.
    """
    for node in nodes:
        if not isinstance(node, TriplePatternMatching):
            continue
        schemas = [each.schema for each in node.input.walk() if isinstance(each, Entailed)]
        if not schemas:
            continue
        (x, predicate, y), data = node.pattern, _sources(node.input)
        narrower, classed, owner, owned = (
            Hidden(_PatternKind.ENTAILING, k, node.pattern) for k in range(4)
        )
        statements = [TriplePattern(narrower, SUBPROPERTY, predicate)]
        triples = [TriplePattern(x, narrower, y)]
        if predicate == TYPE:
            statements += [
                TriplePattern(classed, SUBCLASS, y),
                TriplePattern(owner, DOMAIN, y),
                TriplePattern(owned, RANGE, y),
            ]
            triples += [
                TriplePattern(x, TYPE, classed),
                TriplePattern(x, owner, _ANY[0]),
                TriplePattern(_ANY[0], owned, x),
            ]
        yield from ((statement, tuple(schemas[:1])) for statement in statements)
        yield from ((triple, data) for triple in triples)


def _any_patterns(
    nodes: list[Node], patterns: tuple[tuple[TriplePattern, tuple[TripleSource, ...]], ...]
) -> Iterator[tuple[TriplePattern, tuple[TripleSource, ...]]]:
    """Yield a pattern that matches any triple, for each source that no other pattern reads."""
    matched = {source for _, sources in patterns for source in sources}
    for node in nodes:
        if isinstance(node, AccessStream | AccessGraph) and node not in matched:
            yield TriplePattern(*_ANY), (node,)


def _sources(plan: Plan) -> tuple[TripleSource, ...]:
    accesses = (node for node in plan.walk() if isinstance(node, AccessStream | AccessGraph))
    return tuple(dict.fromkeys(accesses))


def _chains(nodes: list[Node]) -> Iterator[tuple[IRI, tuple[TripleSource, ...]]]:
    for node in nodes:
        if isinstance(node, Path):
            for part in node.path.walk():
                if isinstance(part, p.ZeroOrMore | p.OneOrMore):
                    yield from ((iri, _sources(node.input)) for iri in _predicates(part))


def _predicates(path: p.PathExpression) -> Iterator[IRI]:
    for node in path.walk():
        match node:
            case p.Link(predicate):
                yield predicate
            case p.NegatedSet(forward, backward):
                yield from (*(forward or ()), *(backward or ()), IRI("urn:other"))


def _streams(nodes: list[Node]) -> Iterator[IRI]:
    for node in nodes:
        if isinstance(node, AccessStream | Closure):
            yield node.stream


def _graph_names(nodes: list[Node]) -> tuple[IRI, ...]:
    graphs = [g for node in nodes if isinstance(node, AccessGraph) for g in node.graphs]
    graphs += [node.name for node in nodes if isinstance(node, Graph)]
    names = dict.fromkeys(name for name in graphs if isinstance(name, IRI))
    if any(isinstance(name, Variable) for name in graphs):
        names |= dict.fromkeys(OTHER_GRAPHS)
    return tuple(names)


# -- terms -----------------------------------------------------------------------------------------


def _constants(
    nodes: list[Node], patterns: tuple[tuple[TriplePattern, object], ...]
) -> Iterator[Term]:
    yield from (node.term for node in nodes if isinstance(node, Constant))
    for node in nodes:
        if isinstance(node, Table):
            yield from (term for row in node.rows for term in row if term is not None)
        elif isinstance(node, Construct):
            places = (place for pattern in node.template for place in pattern)
            yield from (place for place in places if isinstance(place, IRI | Literal))
    for pattern, _ in patterns:
        yield from (place for place in pattern if not isinstance(place, Variable))


def _comparisons(nodes: list[Node]) -> Iterator[tuple[Variable, Term]]:
    """Yield each variable with each constant in the same call, IN or column of VALUES."""
    for node in nodes:
        if isinstance(node, Call | In):
            inside = list(node.walk())
            constants = [part.term for part in inside if isinstance(part, Constant)]
            yield from ((v, c) for v in inside if isinstance(v, Variable) for c in constants)
        elif isinstance(node, Table):
            for row in node.rows:
                for variable, term in zip(node.variables, row, strict=True):
                    if term is not None:
                        yield variable, term


def _numeric(nodes: list[Node]) -> Iterator[Variable]:
    for node in nodes:
        if isinstance(node, Call | Aggregate) and node.function in _NUMERIC_FUNCTIONS:
            yield from (part for part in node.walk() if isinstance(part, Variable))


def _functions(nodes: list[Node]) -> Iterator[str]:
    """Yield the functions and aggregates; `=` for the comparisons of IN and ORDER BY."""
    for node in nodes:
        if isinstance(node, Call | Aggregate):
            yield str(node.function)
        elif isinstance(node, In | OrderBy):
            yield "="


# -- times -----------------------------------------------------------------------------------------


def _lengths(nodes: list[Node]) -> Iterator[int]:
    for node in nodes:
        match node:
            case w.TimeWindow(grid=Grid(step)):
                yield from (node.length, step)
            case Align():
                yield node.period


def _grids(nodes: list[Node]) -> Iterator[tuple[int, int]]:
    for node in nodes:
        match node:
            case w.TimeWindow(grid=Grid(step)):
                yield from ((step, node.origin), (node.length, node.origin))
                yield step, node.origin + node.length
            case Align():
                yield node.period, node.origin


def _counts(nodes: list[Node]) -> Iterator[int]:
    """Yield sizes of counting windows and slices, and numbers that counts are compared with."""
    for node in nodes:
        match node:
            case w.ElementWindow():
                yield from (node.look_back, node.moves_by)
            case Slice():
                yield node.offset + (node.limit or 0)
    if any(isinstance(node, Aggregation | Annotate) for node in nodes):
        numbers = (n.term for n in nodes if isinstance(n, Constant) and is_number_literal(n.term))
        yield from (n for n in map(small_whole_number, numbers) if n is not None)
