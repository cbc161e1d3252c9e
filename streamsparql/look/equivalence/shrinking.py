"""Shrinking of counterexamples: fewer items, earlier times, simpler terms.

Each step tries smaller candidates and keeps the first over which the plans still differ. So the
result is always a counterexample, but not always the smallest one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.solutions import Solution
from streamsparql.algebra.terms import IRI, Literal, Term, Triple, integer

MAX_CANDIDATES = 600
"""The number of candidates that are tried, at most."""

T = TypeVar("T")
Differs = Callable[[Inputs, Solution], bool]
Example = tuple[Inputs, Solution]


def shrink(example: Example, differs: Differs, lengths: tuple[int, ...] = ()) -> Example:
    """Return the smallest counterexample found, from one over which two plans differ.

    `lengths` are the distances in time, such as ranges of windows, that are tried between items.

    >>> from streamsparql.algebra.terms import IRI
    >>> triples = frozenset(Triple(IRI(x), IRI("p"), IRI("o")) for x in "abc")
    >>> small, _ = shrink((Inputs(graph=triples), Solution()), lambda data, row: bool(data.graph))
    >>> len(small.graph)
    1
    """
    left = MAX_CANDIDATES
    smaller = True
    while smaller:
        smaller = False
        for step in (_with_fewer_items, _with_earlier_items(lengths), _with_simpler_terms):
            for candidate in step(*example):
                left -= 1
                if left < 0:
                    return example
                if differs(*candidate):
                    example, smaller = candidate, True
                    break
            if smaller:
                break
    return example


# -- fewer items -----------------------------------------------------------------------------------


def _with_fewer_items(data: Inputs, row: Solution) -> Iterator[Example]:
    """Yield the example without half of a source, one item, one triple or one binding."""
    for name, items in data.streams.items():
        for fewer in _parts_of(list(items)):
            yield replace(data, streams={**data.streams, name: fewer}), row
    for kept in _parts_of(sorted(data.graph, key=str)):
        yield replace(data, graph=frozenset(kept)), row
    for name, triples in data.graphs.items():
        yield replace(data, graphs={n: g for n, g in data.graphs.items() if n != name}), row
        for kept in _parts_of(sorted(triples, key=str)):
            yield replace(data, graphs={**data.graphs, name: frozenset(kept)}), row
    for variable in row:
        yield data, row.project(v for v in row if v != variable)


def _parts_of(items: list[T]) -> Iterator[list[T]]:
    """Yield either half of a list, then the list without each of its items."""
    if len(items) > 3:
        half = len(items) // 2
        yield items[:half]
        yield items[half:]
    for k in range(len(items)):
        yield items[:k] + items[k + 1 :]


# -- earlier times ---------------------------------------------------------------------------------


def _with_earlier_items(
    lengths: tuple[int, ...],
) -> Callable[[Inputs, Solution], Iterator[Example]]:
    def steps(data: Inputs, row: Solution) -> Iterator[Example]:
        """Yield the example with all items from one on moved to earlier times."""
        times = sorted({item.end for items in data.streams.values() for item in items})
        for k, t in enumerate(times):
            least = times[k - 1] if k else 0
            for new in dict.fromkeys(_earlier_times(t, least, lengths)):
                yield _moved(data, t, new - t), row
        for name, items in data.streams.items():
            for k, item in enumerate(items):
                if item.start < item.end:
                    instant = [*items[:k], item._replace(start=item.end), *items[k + 1 :]]
                    yield replace(data, streams={**data.streams, name: instant}), row

    return steps


def _earlier_times(t: int, least: int, lengths: tuple[int, ...]) -> Iterator[int]:
    """Yield candidates for times from `least` to before `t`, in ascending order."""
    distances = [n + k for n in (0, *lengths) for k in (0, 1)]
    times = (0, least, *(least + x for x in distances), *distances, (t + least) // 2, t - 1)
    yield from sorted(x for x in times if least <= x < t)


def _moved(data: Inputs, since: int, by: int) -> Inputs:
    """Return the data with all items from a time on moved by `by` milliseconds."""

    def moved(item: StreamItem) -> StreamItem:
        if item.end < since:
            return item
        return StreamItem(item.triple, max(item.start + by, 0), item.end + by)

    streams = {name: [moved(item) for item in items] for name, items in data.streams.items()}
    return replace(data, streams=streams)


# -- simpler terms ---------------------------------------------------------------------------------

_SIMPLE: tuple[Term, ...] = (IRI("urn:a"), IRI("urn:b"), integer(0), integer(1), integer(2))


def _with_simpler_terms(data: Inputs, row: Solution) -> Iterator[Example]:
    """Yield the example with one subject or object replaced by a simpler one everywhere."""
    triples = [item.triple for items in data.streams.values() for item in items]
    triples += [*data.graph, *(x for graph in data.graphs.values() for x in graph)]
    known = {term for triple in triples for term in (triple.subject, triple.object)}
    known |= set(row.values())
    for term in sorted(known, key=str):
        for simple in _SIMPLE:
            if _weight(simple) < _weight(term) and isinstance(simple, IRI) >= isinstance(term, IRI):
                yield _with_term(data, term, simple), _row_with_term(row, term, simple)


def _weight(term: Term) -> tuple[int, str]:
    """Return a sort key: the simplest terms first."""
    if term in _SIMPLE:
        return 0, str(_SIMPLE.index(term))
    return (1 if isinstance(term, IRI) else 2), str(term)


def _with_term(data: Inputs, term: Term, new: Term) -> Inputs:
    def replaced(triple: Triple) -> Triple:
        subject = new if triple.subject == term else triple.subject
        value = new if triple.object == term else triple.object
        return triple if isinstance(subject, Literal) else Triple(subject, triple.predicate, value)

    streams = {
        name: [item._replace(triple=replaced(item.triple)) for item in items]
        for name, items in data.streams.items()
    }
    graphs = {name: frozenset(map(replaced, graph)) for name, graph in data.graphs.items()}
    return replace(data, streams=streams, graph=frozenset(map(replaced, data.graph)), graphs=graphs)


def _row_with_term(row: Solution, term: Term, new: Term) -> Solution:
    return Solution({v: new if x == term else x for v, x in row.items()})
