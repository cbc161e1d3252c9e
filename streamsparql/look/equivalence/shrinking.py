"""From a counterexample to a small one: fewer items, earlier times, plainer terms.

Each step tries something smaller and keeps it where the plans still differ. A step that would be
right but is not tried costs a reader a look, never the truth: what is shown is always an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.solutions import Solution
from streamsparql.algebra.terms import IRI, Literal, Term, Triple, integer

MOST_TRIALS = 600
"""How many smaller examples are tried at most."""

T = TypeVar("T")
Differs = Callable[[Inputs, Solution], bool]
Example = tuple[Inputs, Solution]


def shrunk(example: Example, differs: Differs, lengths: tuple[int, ...] = ()) -> Example:
    """The smallest example that is found, from one over which two plans differ.

    `lengths` are distances in time that may be worth being tried.

    >>> from streamsparql.algebra.terms import IRI
    >>> triples = frozenset(Triple(IRI(x), IRI("p"), IRI("o")) for x in "abc")
    >>> small, _ = shrunk((Inputs(graph=triples), Solution()), lambda data, row: bool(data.graph))
    >>> len(small.graph)
    1
    """
    left = MOST_TRIALS
    smaller = True
    while smaller:
        smaller = False
        for step in (_without, _earlier(lengths), _plainer):
            tried = step(*example)
            for candidate in tried:
                left -= 1
                if left < 0:
                    return example
                if differs(*candidate):
                    example, smaller = candidate, True
                    break
            if smaller:
                break
    return example


# -- fewer -----------------------------------------------------------------------------------------


def _without(data: Inputs, row: Solution) -> Iterator[Example]:
    """The example without a half of a source, or without one item, or triple, or binding."""
    for name, items in data.streams.items():
        for fewer in _fewer(list(items)):
            yield replace(data, streams={**data.streams, name: fewer}), row
    for kept in _fewer(sorted(data.graph, key=str)):
        yield replace(data, graph=frozenset(kept)), row
    for name, triples in data.graphs.items():
        yield replace(data, graphs={n: g for n, g in data.graphs.items() if n != name}), row
        for kept in _fewer(sorted(triples, key=str)):
            yield replace(data, graphs={**data.graphs, name: frozenset(kept)}), row
    for variable in row:
        yield data, row.project(v for v in row if v != variable)


def _fewer(items: list[T]) -> Iterator[list[T]]:
    if len(items) > 3:
        half = len(items) // 2
        yield items[:half]
        yield items[half:]
    for k in range(len(items)):
        yield items[:k] + items[k + 1 :]


# -- earlier ---------------------------------------------------------------------------------------


def _earlier(lengths: tuple[int, ...]) -> Callable[[Inputs, Solution], Iterator[Example]]:
    def steps(data: Inputs, row: Solution) -> Iterator[Example]:
        """The example with all items, or those from one on, closer to the beginning."""
        times = sorted({item.end for items in data.streams.values() for item in items})
        for k, t in enumerate(times):
            least = times[k - 1] if k else 0
            for new in dict.fromkeys(_times(t, least, lengths)):
                yield _moved(data, t, new - t), row
        for name, items in data.streams.items():
            for k, item in enumerate(items):
                if item.start < item.end:
                    instant = [*items[:k], item._replace(start=item.end), *items[k + 1 :]]
                    yield replace(data, streams={**data.streams, name: instant}), row

    return steps


def _times(t: int, least: int, lengths: tuple[int, ...]) -> Iterator[int]:
    """Times before `t`, the earliest first."""
    exact = [n + k for n in (0, *lengths) for k in (0, 1)]
    options = (0, least, *(least + x for x in exact), *exact, (t + least) // 2, t - 1)
    yield from sorted(x for x in options if least <= x < t)


def _moved(data: Inputs, since: int, by: int) -> Inputs:
    """All items from a time on moved by so much."""

    def moved(item: StreamItem) -> StreamItem:
        if item.end < since:
            return item
        return StreamItem(item.triple, max(item.start + by, 0), item.end + by)

    streams = {name: [moved(item) for item in items] for name, items in data.streams.items()}
    return replace(data, streams=streams)


# -- plainer ---------------------------------------------------------------------------------------

_PLAIN: tuple[Term, ...] = (IRI("urn:a"), IRI("urn:b"), integer(0), integer(1), integer(2))


def _plainer(data: Inputs, row: Solution) -> Iterator[Example]:
    """The example with one subject or object taken for a plainer one, everywhere."""
    triples = [item.triple for items in data.streams.values() for item in items]
    triples += [*data.graph, *(x for graph in data.graphs.values() for x in graph)]
    known = {term for triple in triples for term in (triple.subject, triple.object)}
    known |= set(row.values())
    for term in sorted(known, key=str):
        for plain in _PLAIN:
            if _weight(plain) < _weight(term) and isinstance(plain, IRI) >= isinstance(term, IRI):
                yield _swapped(data, term, plain), _row(row, term, plain)


def _weight(term: Term) -> tuple[int, str]:
    """How plain a term is."""
    if term in _PLAIN:
        return 0, str(_PLAIN.index(term))
    return (1 if isinstance(term, IRI) else 2), str(term)


def _swapped(data: Inputs, term: Term, plain: Term) -> Inputs:
    def swap(triple: Triple) -> Triple:
        subject = plain if triple.subject == term else triple.subject
        value = plain if triple.object == term else triple.object
        return triple if isinstance(subject, Literal) else Triple(subject, triple.predicate, value)

    streams = {
        name: [item._replace(triple=swap(item.triple)) for item in items]
        for name, items in data.streams.items()
    }
    graphs = {name: frozenset(map(swap, graph)) for name, graph in data.graphs.items()}
    return replace(data, streams=streams, graph=frozenset(map(swap, data.graph)), graphs=graphs)


def _row(row: Solution, term: Term, plain: Term) -> Solution:
    return Solution({v: plain if x == term else x for v, x in row.items()})
