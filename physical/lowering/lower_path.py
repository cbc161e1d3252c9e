"""Property paths as operators on pairs (SPARQL 1.1 section 9.3; SEMANTICS.md section 4).

A path becomes a plan whose rows have two hidden columns, the ends of a way: links are matched,
sequences joined, alternatives united, and `+` is the one operator of its own, `TransitiveClosure`.
As all of these work on intervals, nothing is computed again when an instant passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from streamsparql.algebra import path as p
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.trampoline import Steps
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import FROM, TO, VIA, variable_of
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.columns import Rename, SelectNotIn
from streamsparql.physical.operators.join import Join, Union
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.path import TransitiveClosure
from streamsparql.physical.operators.shape import Distinct


class Ends(NamedTuple):
    """Where ways of length zero are at home beside the graph: rows with one column, FROM or TO."""

    starts: tuple[Operator, ...] = ()
    stops: tuple[Operator, ...] = ()


def ways(
    path: p.PathExpression, data: Operator, ends: Ends, terms: TermDictionary
) -> Steps[Operator]:
    """The pairs that a path connects, as often as there are ways."""
    match path:
        case p.Link(predicate):
            link = TriplePattern(variable_of(FROM), predicate, variable_of(TO))
            return TriplePatternMatching(data, link, terms)
        case p.Inverse(inner):
            there = yield ways(inner, data, _swapped(ends), terms)
            return _pairs(there, TO, FROM)
        case p.Sequence(first, second):
            one = yield ways(first, data, Ends(starts=ends.starts), terms)
            two = yield ways(second, data, Ends(stops=ends.stops), terms)
            left = Rename(one, {FROM: FROM, VIA: TO})
            return _pairs(Join(left, Rename(two, {VIA: FROM, TO: TO}), terms), FROM, TO)
        case p.Alternative(first, second):
            one = yield ways(first, data, ends, terms)
            two = yield ways(second, data, ends, terms)
            return Union(one, two)
        case p.NegatedSet(forward, backward):
            return _negated(forward, backward, data, terms)
        case p.ZeroOrOne(inner):
            there = yield ways(inner, data, ends, terms)
            return _once(there, *_nothing(data, ends))
        case p.OneOrMore(inner):
            there = yield ways(inner, data, ends, terms)
            return TransitiveClosure(there, FROM, TO)
        case p.ZeroOrMore(inner):
            there = yield ways(inner, data, ends, terms)
            return _once(TransitiveClosure(there, FROM, TO), *_nothing(data, ends))
    raise AssertionError(path)


def _pairs(rows: Operator, start: str, stop: str) -> Operator:
    return Rename(rows, {FROM: start, TO: stop})


def _swapped(ends: Ends) -> Ends:
    starts = tuple(Rename(rows, {FROM: TO}) for rows in ends.stops)
    return Ends(starts, tuple(Rename(rows, {TO: FROM}) for rows in ends.starts))


def _once(*relations: Operator) -> Operator:
    return Distinct(Union(*relations), (FROM, TO))


def _nothing(data: Operator, ends: Ends) -> Sequence[Operator]:
    """The ways of length zero: from each node of the graph, and each end, to itself."""
    nodes = [_pairs(data, column, column) for column in (TRIPLE[0], TRIPLE[2])]
    starts = [_pairs(rows, FROM, FROM) for rows in ends.starts]
    return [*nodes, *starts, *(_pairs(rows, TO, TO) for rows in ends.stops)]


def _negated(
    forward: tuple[IRI, ...] | None,
    backward: tuple[IRI, ...] | None,
    data: Operator,
    terms: TermDictionary,
) -> Operator:
    found = []
    for excluded, start, stop in (
        (forward, TRIPLE[0], TRIPLE[2]),
        (backward, TRIPLE[2], TRIPLE[0]),
    ):
        if excluded is not None:
            ids = [terms.id_of(predicate, keep=True) for predicate in excluded]
            found.append(_pairs(SelectNotIn(data, TRIPLE[1], ids), start, stop))
    return found[0] if len(found) == 1 else Union(*found)
