"""Property paths (SPARQL 1.1 section 9; SEMANTICS.md section 4).

The translator rewrites links, inverses and sequences to triple patterns. The others are a `Path`
over a source of triples; a window applies below the path, to the triples.

`*`, `+` and `?` yield distinct pairs; alternatives, sequences and negated sets yield each pair once
per way to connect it.
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
    """An IRI: the triples with that predicate."""

    predicate: IRI


class Inverse(PathExpression):
    """`^p`: the path in the opposite direction."""

    path: PathExpression


class Sequence(PathExpression):
    """`p / q`: a pair of `p` followed by one of `q`."""

    first: PathExpression
    second: PathExpression


class Alternative(PathExpression):
    """`p | q`: the pairs of `p` and those of `q`."""

    first: PathExpression
    second: PathExpression


class ZeroOrMore(PathExpression):
    """`p*`: any number of steps of `p`, or none."""

    path: PathExpression


class OneOrMore(PathExpression):
    """`p+`: one or more steps of `p`."""

    path: PathExpression


class ZeroOrOne(PathExpression):
    """`p?`: a step of `p`, or none."""

    path: PathExpression


class NegatedSet(PathExpression):
    """`!(p | ^q)`: the triples with a predicate outside `forward`; backwards, outside `backward`.

    None means that the set does not mention that direction, which then does not match.
    """

    forward: tuple[IRI, ...] | None
    backward: tuple[IRI, ...] | None

    def __post_init__(self) -> None:
        assert self.forward is not None or self.backward, "a negated set needs a direction"


class Path(SnapshotOperator):
    """The pairs of nodes that a path connects. Section 4."""

    family = "path"

    subject: Term | Variable
    path: PathExpression
    object: Term | Variable
    input: Plan

    @override
    def static(self, t: int, inputs: Inputs, *snapshots: Snapshot[Hashable]) -> Snapshot[Solution]:
        """Match the path, with the outer row substituted first (SPARQL 1.1 section 18.6)."""
        start, end = self._substituted(self.subject, inputs), self._substituted(self.object, inputs)
        triples = Counter[Triple]()
        for item, n in snapshots[0].entries:
            triples[item.triple if isinstance(item, Stamped) else item] += n  # type: ignore[index]
        ends = (_terms(start), _terms(end))
        relation = evaluate_path(self.path, triples, ends)
        return Snapshot(
            (mu, n)
            for pair, n in relation.items()
            if start in (pair[0], self.subject) and end in (pair[1], self.object)
            if (mu := self._solution(pair)) is not None
        )

    def _substituted(self, place: Term | Variable, inputs: Inputs) -> Term | Variable:
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
    """Return the pairs that a path connects, with the number of ways.

    `ends` are the terms that the query has as start and end: paths of length zero exist there too,
    even if the graph does not contain the terms.
    """
    no_terms: frozenset[Term] = frozenset()
    match path:
        case Link(predicate):
            return _pairs(
                ((x.subject, x.object), n) for x, n in triples.items() if x.predicate == predicate
            )
        case Inverse(inner):
            forward = evaluate_path(inner, triples, (ends[1], ends[0]))
            return _pairs(((b, a), n) for (a, b), n in forward.items())
        case Sequence(first, second):
            one = evaluate_path(first, triples, (ends[0], no_terms))
            two = evaluate_path(second, triples, (no_terms, ends[1]))
            return _pairs(
                ((a, d), n * m) for (a, b), n in one.items() for (c, d), m in two.items() if b == c
            )
        case Alternative(first, second):
            return evaluate_path(first, triples, ends) + evaluate_path(second, triples, ends)
        case NegatedSet(forward, backward):
            return _negated(forward, backward, triples)
        case ZeroOrOne(inner):
            return _distinct(evaluate_path(inner, triples, ends), _zero_length(triples, ends))
        case OneOrMore(inner):
            return _transitive_closure(evaluate_path(inner, triples, ends))
        case ZeroOrMore(inner):
            return _distinct(
                _transitive_closure(evaluate_path(inner, triples, ends)),
                _zero_length(triples, ends),
            )
    raise AssertionError(path)


def _pairs(entries: Iterable[tuple[_Pair, int]]) -> Relation:
    pairs: Relation = Counter()
    for pair, n in entries:
        pairs[pair] += n
    return pairs


def _distinct(*relations: Iterable[_Pair]) -> Relation:
    return Counter(set().union(*relations))


def _zero_length(triples: Iterable[Triple], ends: _Ends) -> set[_Pair]:
    """Return the paths of length zero: from each node of the graph, and each end, to itself."""
    nodes = {node for x in triples for node in (x.subject, x.object)}
    return {(node, node) for node in nodes.union(*ends)}


def _transitive_closure(step: Relation) -> Relation:
    """Return the pairs that one or more steps connect."""
    steps: dict[Term, set[Term]] = {}
    for a, b in step:
        steps.setdefault(a, set()).add(b)
    pairs: set[_Pair] = set()
    for start in steps:
        pending, reached = [start], set[Term]()
        while pending:
            for node in steps.get(pending.pop(), set()) - reached:
                reached.add(node)
                pending.append(node)
        pairs |= {(start, node) for node in reached}
    return Counter(pairs)


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
