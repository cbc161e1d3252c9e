"""The lowering of property paths (SPARQL 1.1 section 9.3; SEMANTICS.md section 4).

A path becomes a plan whose rows have two hidden columns: the ends of a *way*, a walk through the
graph that the path matches. Links are matched, sequences are joined, alternatives are united, and
`+` has an operator, `TransitiveClosure`. All of them work on intervals, so nothing is recomputed as
time passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from streamsparql.algebra import path as p
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.terms import IRI
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import FROM, TO, VIA, variable_of
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.columns import Rename, SelectNotIn
from streamsparql.physical.operators.join import Join, Union
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.path import TransitiveClosure
from streamsparql.physical.operators.shape import Distinct


class PathEnds(NamedTuple):
    """Terms with a way of length zero even if the graph lacks them: operators with one column."""

    starts: tuple[Operator, ...] = ()
    stops: tuple[Operator, ...] = ()


def lower_path(
    path: p.PathExpression, data: Operator, ends: PathEnds, terms: TermDictionary
) -> Operator:
    """Return the operator of the pairs that a path connects, each counted once per way."""
    match path:
        case p.Link(predicate):
            link = TriplePattern(variable_of(FROM), predicate, variable_of(TO))
            return TriplePatternMatching(data, link, terms)
        case p.Inverse(inner):
            return _pairs(lower_path(inner, data, _swapped(ends), terms), TO, FROM)
        case p.Sequence():
            return _sequence(_chain(path, p.Sequence), data, ends, terms)
        case p.Alternative():
            first, *others = _chain(path, p.Alternative)
            ways = lower_path(first, data, ends, terms)
            for other in others:
                ways = Union(ways, lower_path(other, data, ends, terms))
            return ways
        case p.NegatedSet(forward, backward):
            return _negated(forward, backward, data, terms)
        case p.ZeroOrOne(inner):
            return _distinct_pairs(lower_path(inner, data, ends, terms), *_zero_length(data, ends))
        case p.OneOrMore(inner):
            return TransitiveClosure(lower_path(inner, data, ends, terms), FROM, TO)
        case p.ZeroOrMore(inner):
            closure = TransitiveClosure(lower_path(inner, data, ends, terms), FROM, TO)
            return _distinct_pairs(closure, *_zero_length(data, ends))
    raise AssertionError(path)


def _chain(
    path: p.PathExpression, kind: type[p.Sequence | p.Alternative]
) -> list[p.PathExpression]:
    """Return the parts of a chain: a left-deep tree, which may have thousands of parts."""
    parts: list[p.PathExpression] = []
    while isinstance(path, kind):
        parts.append(path.second)
        path = path.first
    return [path, *reversed(parts)]


def _sequence(
    steps: list[p.PathExpression], data: Operator, ends: PathEnds, terms: TermDictionary
) -> Operator:
    ways = lower_path(steps[0], data, PathEnds(starts=ends.starts), terms)
    for number, step in enumerate(steps[1:], 2):
        last = number == len(steps)
        following = lower_path(step, data, PathEnds(stops=ends.stops if last else ()), terms)
        left = Rename(ways, {FROM: FROM, VIA: TO})
        right = Rename(following, {VIA: FROM, TO: TO})
        ways = _pairs(Join(left, right, terms), FROM, TO)
    return ways


def _pairs(rows: Operator, start: str, stop: str) -> Operator:
    return Rename(rows, {FROM: start, TO: stop})


def _swapped(ends: PathEnds) -> PathEnds:
    starts = tuple(Rename(rows, {FROM: TO}) for rows in ends.stops)
    return PathEnds(starts, tuple(Rename(rows, {TO: FROM}) for rows in ends.starts))


def _distinct_pairs(*relations: Operator) -> Operator:
    return Distinct(Union(*relations), (FROM, TO))


def _zero_length(data: Operator, ends: PathEnds) -> Sequence[Operator]:
    """Return the ways of length zero: from each node of the graph, and each end, to itself."""
    nodes = [_pairs(data, column, column) for column in (TRIPLE[0], TRIPLE[2])]
    starts = [_pairs(rows, FROM, FROM) for rows in ends.starts]
    return [*nodes, *starts, *(_pairs(rows, TO, TO) for rows in ends.stops)]


def _negated(
    forward: tuple[IRI, ...] | None,
    backward: tuple[IRI, ...] | None,
    data: Operator,
    terms: TermDictionary,
) -> Operator:
    ways = []
    for excluded, start, stop in (
        (forward, TRIPLE[0], TRIPLE[2]),
        (backward, TRIPLE[2], TRIPLE[0]),
    ):
        if excluded is not None:
            ids = [terms.id_of(predicate, keep=True) for predicate in excluded]
            ways.append(_pairs(SelectNotIn(data, TRIPLE[1], ids), start, stop))
    return ways[0] if len(ways) == 1 else Union(*ways)
