"""Items in memory: any iterable of tuples, with terms of any library.

    (s, p, o, t)      ((s, p, o), t)      ((s, p, o), start, end)

A list of tuples of one form with strings in them is turned into columns by `zip`; whatever is not
so uniform is looked at one by one, to the same effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.reading import Reading, texts_of
from streamsparql.sources.stamps import of_values

_FORMS = "give (s, p, o, t), ((s, p, o), t) or ((s, p, o), start, end)"


def chunks_of_items(items: Iterable[Any], reading: Reading, size: int) -> Iterator[Chunk]:
    """The items in chunks of that size."""
    first = 1
    if isinstance(items, list):
        for first in range(0, len(items), size):
            yield chunk_of_items(items[first : first + size], reading, first + 1)
        return
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield chunk_of_items(some, reading, first)
        first += len(some)


def chunk_of_items(items: Sequence[Any], reading: Reading, first: int = 1) -> Chunk:
    """One chunk of items, the first of which is at that position."""
    columns = _columns(items)
    if columns is not None:
        s, p, o, *times = columns
        positions = np.arange(first, first + len(items))
        return _chunk((s, p, o), times, positions, items, reading, [])
    return _one_by_one(items, reading, first)


def _chunk(
    triples: tuple[Sequence[Any], Sequence[Any], Sequence[Any]],
    times: Sequence[Sequence[Any]],
    positions: Any,
    items: Sequence[Any],
    reading: Reading,
    rejects: list[Reject],
) -> Chunk:
    s, p, o = (texts_of(column) for column in triples)
    since = of_values(times[0]) if len(times) == 2 else None
    return reading.chunk(
        (s, p, o), of_values(times[-1]), positions, items.__getitem__, since, rejects
    )


def _columns(items: Sequence[Any]) -> list[Sequence[Any]] | None:
    """The columns of items that all have one form: s, p, o, and a stamp or a start and an end."""
    width = _width(items)
    if width == 4:
        return list(zip(*items, strict=True))
    if width not in (2, 3):
        return None
    triples, *times = zip(*items, strict=True)
    return [*zip(*triples, strict=True), *times] if _width(triples) == 3 else None


def _width(entries: Sequence[Any]) -> int | None:
    """How long all entries are; None where they differ, or are no tuples."""
    if not all(issubclass(kind, tuple | list) for kind in set(map(type, entries))):
        return None
    lengths = set(map(len, entries))
    return lengths.pop() if len(lengths) == 1 else None


def _one_by_one(items: Sequence[Any], reading: Reading, first: int) -> Chunk:
    rows, places, rejects = [], [], []
    events = False
    for k, item in enumerate(items):
        row = _row(item)
        if row is None:
            rejects.append(reading.reject(first + k, f"this is no item: {_FORMS}", item))
        else:
            events |= len(row) == 5
            rows.append(row)
            places.append(k)
    s, p, o, since, stamps = zip(*map(_event, rows), strict=True) if rows else ((),) * 5
    times = (since, stamps) if events else (stamps,)
    kept = [items[k] for k in places]
    positions = np.array(places, np.int64) + first
    return _chunk((s, p, o), times, positions, kept, reading, rejects)


def _row(item: Any) -> Sequence[Any] | None:
    """The four or five parts of an item; None where it has no form that we know."""
    if not isinstance(item, tuple | list):
        return None
    if len(item) == 4:
        return item
    if len(item) in (2, 3) and isinstance(item[0], tuple | list) and len(item[0]) == 3:
        return (*item[0], *item[1:])
    return None


def _event(row: Sequence[Any]) -> Sequence[Any]:
    return row if len(row) == 5 else (*row, row[3])


def chunk_of_triples(triples: Iterable[Any], reading: Reading, size: int) -> Iterator[Chunk]:
    """Triples without time, of an rdflib graph or of any iterable: as of instant 0."""
    iterator = iter(triples)
    first = 1
    while some := list(islice(iterator, size)):
        positions = np.arange(first, first + len(some))
        rejects: list[Reject] = []
        if _width(some) != 3:
            good = [k for k, entry in enumerate(some) if _width([entry]) == 3]
            wrong = sorted(set(range(len(some))) - set(good))
            rejects = [reading.reject(first + k, "this is no triple", some[k]) for k in wrong]
            positions, some = positions[good], [some[k] for k in good]
        s, p, o = zip(*some, strict=True) if some else ((),) * 3
        yield _chunk((s, p, o), [[0] * len(some)], positions, some, reading, rejects)
        first += len(some) + len(rejects)
