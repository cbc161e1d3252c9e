"""Items in memory: any iterable of tuples, with terms of any library.

    (s, p, o, t)      ((s, p, o), t)      ((s, p, o), start, end)

The fields of tuples that are all of one form are read as columns, and of items that nobody wants
just the predicate and the stamp. Tuples that differ are brought into one form first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import countOf, itemgetter
from typing import Any

import numpy as np

from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.encoder import Encoder, Field
from streamsparql.sources.stamps import Stamps, of_values

_FORMS = "give (s, p, o, t), ((s, p, o), t) or ((s, p, o), start, end)"

Tuples = Sequence[Sequence[Any]]


def chunks_of_items(items: Iterable[Any], reading: Encoder, size: int) -> Iterator[Chunk]:
    """The items in chunks of that size."""
    first = reading.first
    for some in _parts(items, size):
        yield chunk_of_items(some, reading, first)
        first += len(some)


def _parts(items: Iterable[Any], size: int) -> Iterator[Sequence[Any]]:
    if isinstance(items, list):
        for first in range(0, len(items), size):
            yield items[first : first + size]
        return
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield some


def chunk_of_items(items: Sequence[Any], reading: Encoder, first: int = 1) -> Chunk:
    """One chunk of items, the first of which is at that position."""
    width = _width(items)
    positions = np.arange(first, first + len(items))
    if width == 4:
        times = [of_values(_field(items, 3))]
        return _chunk(items, times, positions, items, reading)
    if width in (2, 3):
        triples = _field(items, 0)
        if _width(triples) == 3:
            times = [of_values(_field(items, k)) for k in range(1, width)]
            return _chunk(triples, times, positions, items, reading)
    return _one_by_one(items, reading, first)


def _field(tuples: Tuples, place: int) -> list[Any]:
    return list(map(itemgetter(place), tuples))


def _width(entries: Sequence[Any]) -> int | None:
    """How long all entries are; None where they differ, or are no tuples."""
    if countOf(map(type, entries), tuple) != len(entries):
        if not all(issubclass(kind, tuple | list) for kind in set(map(type, entries))):
            return None
    width = len(entries[0]) if entries else 0
    return width if countOf(map(len, entries), width) == len(entries) else None


def _chunk(
    triples: Tuples,
    times: Sequence[Stamps],
    positions: IntArray,
    items: Sequence[Any],
    reading: Encoder,
    rejects: Sequence[Reject] = (),
) -> Chunk:
    """The chunk of tuples that begin with a triple."""
    fields = Field(triples, 0), Field(triples, 1), Field(triples, 2)
    since = times[0] if len(times) == 2 else None
    return reading.chunk(fields, times[-1], positions, items.__getitem__, since, rejects)


def _one_by_one(items: Sequence[Any], reading: Encoder, first: int) -> Chunk:
    """Brings what is an item into one form; what is none is rejected."""
    rows: list[Sequence[Any]] = []
    places: list[int] = []
    rejects: list[Reject] = []
    for k, item in enumerate(items):
        row = _row(item)
        if row is None:
            rejects.append(reading.reject(first + k, f"this is no item: {_FORMS}", item))
        else:
            rows.append(row)
            places.append(k)
    events = any(len(row) == 5 for row in rows)
    times = [of_values(_field(rows, k)) for k in ((3, -1) if events else (3,))]
    positions = np.array(places, np.int64) + first
    return _chunk(rows, times, positions, [items[k] for k in places], reading, rejects)


def _row(item: Any) -> Sequence[Any] | None:
    """The four or five parts of an item; None where it has no form that we know."""
    if not isinstance(item, tuple | list):
        return None
    if len(item) == 4:
        return item
    if len(item) in (2, 3) and isinstance(item[0], tuple | list) and len(item[0]) == 3:
        return (*item[0], *item[1:])
    return None


def chunks_of_triples(triples: Iterable[Any], reading: Encoder, size: int) -> Iterator[Chunk]:
    """Triples without time, of an rdflib graph or of any iterable: as of instant 0."""
    first = 1
    for some in _parts(triples, size):
        good = [k for k, entry in enumerate(some) if _width([entry]) == 3]
        wrong = sorted(set(range(len(some))) - set(good))
        rejects = [reading.reject(first + k, "this is no triple", some[k]) for k in wrong]
        positions = np.array(good, np.int64) + first
        first += len(some)
        some = [some[k] for k in good]
        always: Stamps = np.zeros(len(some), np.int64), {}
        yield _chunk(some, [always], positions, some, reading, rejects)
