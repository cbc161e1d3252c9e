"""Property paths (SPARQL 1.1 section 9; SEMANTICS.md section 4).

The translator turns what it can into triple patterns: a link, an inverse, a sequence. What is left
is a `Path` over a source of triples, where a window stands below the path, on the triples.

`*`, `+` and `?` give each pair once; alternatives, sequences and negated sets give it as often as
there are ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from streamsparql.algebra.access import Stamped
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan, SnapshotOperator
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI, Term, Triple
from streamsparql.overriding import override


class PathExpression(Node):
    """The base of property path expressions."""


class Link(PathExpression):
    """An IRI: a triple with that predicate."""

    predicate: IRI


class Inverse(PathExpression):
    """`^p`: the path from object to subject."""

    path: PathExpression


class Sequence(PathExpression):
    """`p / q`."""

    first: PathExpression
    second: PathExpression


class Alternative(PathExpression):
    """`p | q`."""

    first: PathExpression
    second: PathExpression


class ZeroOrMore(PathExpression):
    """`p*`."""

    path: PathExpression


class OneOrMore(PathExpression):
    """`p+`."""

    path: PathExpression


class ZeroOrOne(PathExpression):
    """`p?`."""

    path: PathExpression


class NegatedSet(PathExpression):
    """`!(p | ^q)`: a triple whose predicate is none of `forward`, or, backwards, of `backward`.

    None means that the set says nothing about that direction, which then does not match.
    """

    forward: tuple[IRI, ...] | None
    backward: tuple[IRI, ...] | None

    def __post_init__(self) -> None:
        assert self.forward is not None or self.backward, "a set says something about a direction"


class Path(SnapshotOperator):
    """Pairs of nodes that a path connects. Section 4."""

    subject: Term | Variable
    path: PathExpression
    object: Term | Variable
    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Hashable]) -> Snapshot[Solution]:
        """SPARQL 1.1 section 18.5 to 18.6. What EXISTS knows of the outer row is put in first."""
        start, end = self._end(self.subject, inputs), self._end(self.object, inputs)
        triples = Counter[Triple]()
        for item, n in snapshots[0].entries:
            triples[item.triple if isinstance(item, Stamped) else item] += n  # type: ignore[index]
        ends = (_terms(start), _terms(end))
        found = evaluate_path(self.path, triples, ends)
        return Snapshot(
            (mu, n)
            for pair, n in found.items()
            if start in (pair[0], self.subject) and end in (pair[1], self.object)
            if (mu := self._solution(pair)) is not None
        )

    def _end(self, place: Term | Variable, inputs: Inputs) -> Term | Variable:
        return inputs.outer.get(place, place) if isinstance(place, Variable) else place

    def _solution(self, pair: _Pair) -> Solution | None:
        mu: dict[Variable, Term] = {}
        for place, term in zip((self.subject, self.object), pair, strict=True):
            expected = mu.setdefault(place, term) if isinstance(place, Variable) else place
            if expected != term:
                return None
        return Solution(mu)


_Pair = tuple[Term, Term]
Relation = Counter[_Pair]
_Ends = tuple[frozenset[Term], frozenset[Term]]


def _terms(place: Term | Variable) -> frozenset[Term]:
    return frozenset() if isinstance(place, Variable) else frozenset((place,))


def evaluate_path(path: PathExpression, triples: Counter[Triple], ends: _Ends) -> Relation:
    """The pairs that a path connects, with the number of ways.

    `ends` are the terms that the query itself names as start and end: a path of length zero is at
    home there too, also where the graph does not know them.
    """
    nothing: frozenset[Term] = frozenset()
    match path:
        case Link(predicate):
            return _pairs(
                ((x.subject, x.object), n) for x, n in triples.items() if x.predicate == predicate
            )
        case Inverse(inner):
            there = evaluate_path(inner, triples, (ends[1], ends[0]))
            return _pairs(((b, a), n) for (a, b), n in there.items())
        case Sequence(first, second):
            one = evaluate_path(first, triples, (ends[0], nothing))
            two = evaluate_path(second, triples, (nothing, ends[1]))
            return _pairs(
                ((a, d), n * m) for (a, b), n in one.items() for (c, d), m in two.items() if b == c
            )
        case Alternative(first, second):
            return evaluate_path(first, triples, ends) + evaluate_path(second, triples, ends)
        case NegatedSet(forward, backward):
            return _negated(forward, backward, triples)
        case ZeroOrOne(inner):
            return _once(evaluate_path(inner, triples, ends), _nothing(triples, ends))
        case OneOrMore(inner):
            return _closure(evaluate_path(inner, triples, ends))
        case ZeroOrMore(inner):
            return _once(_closure(evaluate_path(inner, triples, ends)), _nothing(triples, ends))
    raise AssertionError(path)


def _pairs(entries: Iterable[tuple[_Pair, int]]) -> Relation:
    pairs: Relation = Counter()
    for pair, n in entries:
        pairs[pair] += n
    return pairs


def _once(*relations: Iterable[_Pair]) -> Relation:
    return Counter(set().union(*relations))


def _nothing(triples: Iterable[Triple], ends: _Ends) -> set[_Pair]:
    """The paths of length zero: from each node of the graph, and each end, to itself."""
    nodes = {node for x in triples for node in (x.subject, x.object)}
    return {(node, node) for node in nodes.union(*ends)}


def _closure(step: Relation) -> Relation:
    """The pairs that one step or more connect."""
    steps: dict[Term, set[Term]] = {}
    for a, b in step:
        steps.setdefault(a, set()).add(b)
    found: set[_Pair] = set()
    for start in steps:
        pending, reached = [start], set[Term]()
        while pending:
            for node in steps.get(pending.pop(), set()) - reached:
                reached.add(node)
                pending.append(node)
        found |= {(start, node) for node in reached}
    return Counter(found)


def _negated(
    forward: tuple[IRI, ...] | None, backward: tuple[IRI, ...] | None, triples: Counter[Triple]
) -> Relation:
    pairs: Relation = Counter()
    for (a, p, b), n in triples.items():
        if forward is not None and p not in forward:
            pairs[a, b] += n
        if backward is not None and p not in backward:
            pairs[b, a] += n
    return pairs
