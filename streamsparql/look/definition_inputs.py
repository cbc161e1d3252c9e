"""Inputs of the definitions: streams and graphs over which `plan.at(t, inputs)` is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamsparql.algebra.functions import Run
from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.terms import IRI, Literal, Triple
from streamsparql.errors import SourceError
from streamsparql.rdflib_terms import term


def inputs(
    streams: Mapping[str, Iterable[Any]] | None = None,
    graph: Iterable[Any] = (),
    graphs: Mapping[str, Iterable[Any]] | None = None,
    run: Run | None = None,
) -> Inputs:
    """Return streams and graphs for a plan's definition, from rdflib terms or N-Triples strings.

    The items of a stream are `(s, p, o, t)`, `((s, p, o), t)` or, for events, `((s, p, o), start,
    end)`, with times in milliseconds. A graph is an iterable of `(s, p, o)`, such as an rdflib
    graph. Blank nodes are scoped to their source.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    >>> data = inputs({"s": [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 12)]})
    >>> streamsparql.compile(text).logical.at(12, data)
    Snapshot([({?o: "2"}, 1)])
    """
    if streams is not None and not isinstance(streams, Mapping):
        raise SourceError(
            "streams must be a mapping of names to items: inputs({'http://example.org/s': items})"
        )
    return Inputs(
        streams={
            _iri(name): [_item(entry, f"s{k}.") for entry in source]
            for k, (name, source) in enumerate((streams or {}).items())
        },
        graph=frozenset(_triple(entry, "d.") for entry in graph),
        graphs={
            _iri(name): frozenset(_triple(entry, f"g{k}.") for entry in source)
            for k, (name, source) in enumerate((graphs or {}).items())
        },
        run=run or Run(),
    )


def _iri(name: Any) -> IRI:
    return name if isinstance(name, IRI) else IRI(str(name))


def _triple(entry: Any, source: str) -> Triple:
    if not isinstance(entry, Sequence) or len(entry) != 3:
        raise SourceError(f"not a triple: {entry!r}; expected (s, p, o)")
    triple = Triple(*(term(value, source) for value in entry))
    if isinstance(triple.subject, Literal) or not isinstance(triple.predicate, IRI):
        raise SourceError(
            f"not a triple: {entry!r}; the subject must not be a literal, and the predicate must be"
            " an IRI"
        )
    return triple


def _item(entry: Any, source: str) -> StreamItem:
    if not isinstance(entry, Sequence) or len(entry) < 2:
        raise SourceError(f"not an item of a stream: {entry!r}; expected (s, p, o, t)")
    if len(entry) == 4:
        entry = (entry[:3], entry[3])
    triple, *times = entry
    if not 1 <= len(times) <= 2 or not all(type(t) is int and t >= 0 for t in times):
        raise SourceError(
            f"not an item of a stream: {entry!r}; expected (s, p, o, t) or ((s, p, o), start, end),"
            " with times as non-negative integers, in milliseconds"
        )
    if times[0] > times[-1]:
        raise SourceError(f"end ({times[-1]}) must not be before start ({times[0]}): {entry!r}")
    return StreamItem(_triple(triple, source), times[0], times[-1])
