"""Small data for the definitions: what `plan.at(t, inputs)` is evaluated over."""

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
    """Streams and graphs for a plan's definition, from terms of rdflib or N-Triples strings.

    A stream's items are `(s, p, o, t)`, `((s, p, o), t)` or, for events, `((s, p, o), start, end)`,
    times in milliseconds; a graph's are `(s, p, o)`, an rdflib graph among them.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    >>> data = inputs({"s": [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 12)]})
    >>> streamsparql.compile(text).logical.at(12, data)
    Snapshot([({?o: "2"}, 1)])
    """
    if streams is not None and not isinstance(streams, Mapping):
        raise SourceError("give the streams by name: inputs({'http://example.org/s': items})")
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
        raise SourceError(f"{entry!r} is no triple")
    triple = Triple(*(term(value, source) for value in entry))
    if isinstance(triple.subject, Literal) or not isinstance(triple.predicate, IRI):
        raise SourceError(f"{entry!r} is no triple: a subject is no literal, a predicate is an IRI")
    return triple


def _item(entry: Any, source: str) -> StreamItem:
    if not isinstance(entry, Sequence) or len(entry) < 2:
        raise SourceError(f"{entry!r} is no item of a stream: give (s, p, o, t)")
    if len(entry) == 4:
        entry = (entry[:3], entry[3])
    triple, *times = entry
    if not 1 <= len(times) <= 2 or not all(type(t) is int and t >= 0 for t in times):
        raise SourceError(
            f"{entry!r} is no item: give (s, p, o, t) or ((s, p, o), start, end), with times in"
            " whole milliseconds from 0 on"
        )
    if times[0] > times[-1]:
        raise SourceError(f"{entry!r} ends before it starts")
    return StreamItem(_triple(triple, source), times[0], times[-1])
