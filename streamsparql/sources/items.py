"""Items in memory: any iterable of tuples, with terms of any library.

    (s, p, o, t)      ((s, p, o), t)      ((s, p, o), start, end)

The fields of tuples of one form are read as columns; of items that the query does not read, only
the predicate and the stamp are. Tuples of mixed forms are converted to one form first.
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
from streamsparql.sources.stamps import ParsedStamps

_FORMS = "expected (s, p, o, t), ((s, p, o), t) or ((s, p, o), start, end)"

Tuples = Sequence[Sequence[Any]]


def chunks_of_items(items: Iterable[Any], encoder: Encoder, size: int) -> Iterator[Chunk]:
    """Yield the items in chunks of this size."""
    first = encoder.first
    for part in _parts(items, size):
        yield chunk_of_items(part, encoder, first)
        first += len(part)


def _parts(items: Iterable[Any], size: int) -> Iterator[Sequence[Any]]:
    if isinstance(items, list):
        for first in range(0, len(items), size):
            yield items[first : first + size]
        return
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


def chunk_of_items(items: Sequence[Any], encoder: Encoder, first: int = 1) -> Chunk:
    """Return one chunk of items, the first of which has this position."""
    width = _width(items)
    positions = np.arange(first, first + len(items))
    if width == 4:
        times = [encoder.stamps.of_values(_field(items, 3))]
        return _chunk(items, times, positions, items, encoder)
    if width in (2, 3):
        triples = _field(items, 0)
        if _width(triples) == 3:
            times = [encoder.stamps.of_values(_field(items, k)) for k in range(1, width)]
            return _chunk(triples, times, positions, items, encoder)
    return _one_by_one(items, encoder, first)


def _field(tuples: Tuples, place: int) -> list[Any]:
    return list(map(itemgetter(place), tuples))


def _width(entries: Sequence[Any]) -> int | None:
    """Return the length of all entries; None if they differ, or are not tuples."""
    if countOf(map(type, entries), tuple) != len(entries):
        if not all(issubclass(kind, tuple | list) for kind in set(map(type, entries))):
            return None
    width = len(entries[0]) if entries else 0
    return width if countOf(map(len, entries), width) == len(entries) else None


def _chunk(
    triples: Tuples,
    times: Sequence[ParsedStamps],
    positions: IntArray,
    items: Sequence[Any],
    encoder: Encoder,
    rejects: Sequence[Reject] = (),
) -> Chunk:
    """Return the chunk of tuples that begin with a triple."""
    fields = Field(triples, 0), Field(triples, 1), Field(triples, 2)
    since = times[0] if len(times) == 2 else None
    return encoder.chunk(fields, times[-1], positions, items.__getitem__, since, rejects)


def _one_by_one(items: Sequence[Any], encoder: Encoder, first: int) -> Chunk:
    """Return the chunk of items of mixed forms; those of unknown form are rejected."""
    rows: list[Sequence[Any]] = []
    places: list[int] = []
    rejects: list[Reject] = []
    for k, item in enumerate(items):
        row = _row(item)
        if row is None:
            rejects.append(encoder.reject(first + k, f"not an item; {_FORMS}", item))
        else:
            rows.append(row)
            places.append(k)
    events = any(len(row) == 5 for row in rows)
    times = [encoder.stamps.of_values(_field(rows, k)) for k in ((3, -1) if events else (3,))]
    positions = np.array(places, np.int64) + first
    return _chunk(rows, times, positions, [items[k] for k in places], encoder, rejects)


def _row(item: Any) -> Sequence[Any] | None:
    """Return the four or five parts of an item; None if it has none of the known forms."""
    if not isinstance(item, tuple | list):
        return None
    if len(item) == 4:
        return item
    if len(item) in (2, 3) and isinstance(item[0], tuple | list) and len(item[0]) == 3:
        return (*item[0], *item[1:])
    return None


def chunks_of_triples(triples: Iterable[Any], encoder: Encoder, size: int) -> Iterator[Chunk]:
    """Yield triples without time, of an rdflib graph or any iterable, with the stamp 0."""
    first = 1
    for part in _parts(triples, size):
        good = [k for k, entry in enumerate(part) if _width([entry]) == 3]
        wrong = sorted(set(range(len(part))) - set(good))
        rejects = [encoder.reject(first + k, "not a triple", part[k]) for k in wrong]
        positions = np.array(good, np.int64) + first
        first += len(part)
        part = [part[k] for k in good]
        always: ParsedStamps = np.zeros(len(part), np.int64), {}
        yield _chunk(part, [always], positions, part, encoder, rejects)
