"""Chunks: many items of a source as columns, with the items that were rejected among them.

Every item with a valid timestamp advances the watermark, even one that is not a triple, or whose
predicate no pattern of the query can match (it is *prefiltered*: its other terms are not read). So
a chunk has `stamps` of all those items, and rows of some; `kept` maps rows to stamps. Every item is
accounted for: `items` counts rows, prefiltered items and rejects, and `Accounting` has their
totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any, NamedTuple

import numpy as np

from streamsparql.errors import SourceError, escape_controls
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.operator import INFINITY


class Reject(NamedTuple):
    """An item that is not part of the result, and why.

    `source` is the path of the file as the caller wrote it, "standard input", or else the name of
    the stream or graph. `position` counts from 1, in units of `unit`: line, row, statement or item.
    `item` is what the source contains there.

    >>> print(Reject("wind.nq", 17, "the subject is a literal", '"a" <p> <b> .', "line"))
    wind.nq, line 17: the subject is a literal: '"a" <p> <b> .'
    """

    source: str
    position: int
    reason: str
    item: object
    unit: str = "item"
    late: bool = False
    """Whether it arrived below the watermark; else it could not be read or stamped."""
    lateness: int = 0
    """If it is late: the least `max_delay` with which it would not have been, in milliseconds."""

    def __str__(self) -> str:
        place = f"{self.source}, {self.unit} {self.position}"
        message = escape_controls(f"{place}: {self.reason}")
        if self.item is None:
            return message
        item = repr(self.item)
        shown = item if len(item) <= _MAX_ITEM_LENGTH else f"{item[:_MAX_ITEM_LENGTH]}…"
        return f"{message}: {shown}"


_MAX_ITEM_LENGTH = 200


def printable(item: object) -> object:
    """Return an item as messages show it: bytes are decoded, invalid ones escaped.

    >>> printable(b"caf\\xe9"), printable((b"<a>", 5))
    ('caf\\\\xe9', ('<a>', 5))
    """
    if isinstance(item, bytes):
        return item.decode("utf-8", "backslashreplace")
    if type(item) is tuple and any(isinstance(part, bytes) for part in item):
        return tuple(map(printable, item))
    return item


def saved_reject(reject: Reject) -> list[Any]:
    """Return a reject as JSON; an item that JSON cannot represent is saved as its text.

    >>> restored_reject(saved_reject(Reject("s", 7, "late by 2 ms", (("<a>", "<p>", 1), 5))))
    Reject(source='s', position=7, reason='late by 2 ms', item=(('<a>', '<p>', 1), 5), \
unit='item', late=False, lateness=0)
    """
    return [*reject._replace(item=_saved_item(reject.item))]


def restored_reject(saved: Sequence[Any]) -> Reject:
    """Return the reject that `saved_reject` saved."""
    reject = Reject(*saved)
    return reject._replace(item=_restored_item(reject.item))


def _saved_item(item: Any) -> Any:
    if isinstance(item, tuple | list):
        return {type(item).__name__: [_saved_item(part) for part in item]}
    if item is None or type(item) in (str, int, float, bool):
        return item
    return str(item)


def _restored_item(saved: Any) -> Any:
    if isinstance(saved, Mapping):
        ((kind, parts),) = saved.items()
        restored = map(_restored_item, parts)
        return tuple(restored) if kind == "tuple" else list(restored)
    return saved


class Rejected(SourceError):
    """A reject that ends a strict run."""

    def __init__(self, reject: Reject) -> None:
        super().__init__(str(reject))
        self.reject = reject


class Origin(NamedTuple):
    """The file, stream or graph that items are read from, and the unit of their positions."""

    source: str
    unit: str = "item"


class Accounting(NamedTuple):
    """Counts of the items of streams; `read == accepted + late + rejected` always holds.

    `unmatched` of the accepted ones have a predicate that no pattern of the query matches: their
    other terms are not read. Such an item is never late and never quarantined, since the result
    does not depend on when it arrived. `rows_without_triples` are not items: rows of tables for
    which a mapping produced no triple.

    >>> Accounting(10, 7, 2, 1, 4) + Accounting(5, 5, 0, 0, 0, 2)
    Accounting(read=15, accepted=12, late=2, rejected=1, unmatched=4, rows_without_triples=2)
    """

    read: int = 0
    accepted: int = 0
    late: int = 0
    rejected: int = 0
    unmatched: int = 0
    rows_without_triples: int = 0

    def __add__(self, other: object) -> Accounting:
        """Return the sum of two accountings."""
        if not isinstance(other, Accounting):
            return NotImplemented
        return Accounting(*map(add, self, other))


@dataclass(frozen=True)
class Wanted:
    """The part of a stream that a query reads: items with one of these predicates; None for any.

    `places` are those of `s`, `p` and `o` that the query reads.

    >>> Wanted(frozenset({3, 5})).mask(np.array([5, 4, 3])).tolist()
    [True, False, True]
    """

    predicates: frozenset[int] | None = None
    places: frozenset[str] = frozenset("spo")

    def mask(self, ids: IntArray) -> BoolArray:
        """Return a mask of the predicates that are wanted."""
        if self.predicates is None:
            return np.ones(len(ids), np.bool_)
        if len(self.predicates) > _MAX_COMPARISONS:
            return np.isin(ids, np.fromiter(self.predicates, np.int64))
        mask = np.zeros(len(ids), np.bool_)
        for predicate in self.predicates:
            mask |= ids == predicate
        return mask


_MAX_COMPARISONS = 8


@dataclass(slots=True)
class Chunk:
    """Items of a stream, in the order of arrival."""

    s: IntArray
    p: IntArray
    o: IntArray
    since: IntArray | None
    """If the items are events: the start of each row's occurrence; its end is its stamp."""
    stamps: IntArray
    """The timestamps of all items that have one, including those without a row."""
    kept: IntArray | None
    """The places in `stamps` of the rows; None if every stamp has a row."""
    positions: IntArray
    """The positions in the source, per stamp."""
    items: int
    """The number of items: rows, prefiltered items and rejects."""
    rejects: list[Reject]
    original: Callable[[int], object]
    """Returns the item at a place of `stamps` as the source contains it."""
    origins: tuple[Origin, ...] = ()
    """Where the items are read from: one file, or several that are read side by side."""
    which: IntArray | None = None
    """With several origins, the index of the origin of each stamp."""
    retained_ids: Callable[[], Iterable[IntArray]] | None = None
    """Yields further ids that the source retains, for chunks that follow this one."""
    rows_without_triples: int = 0
    """The number of rows of a table for which a mapping produced no triple; they are not items."""
    _places: list[tuple[int, bool]] | None = None

    def reject(self, k: int, reason: str, name: str) -> Reject:
        """Return a reject for the item at a place of `stamps`.

        `name` is reported as its source if the chunk has no origin.
        """
        origin = Origin(name)
        if self.origins:
            origin = self.origins[0 if self.which is None else int(self.which[k])]
        position, item = int(self.positions[k]), printable(self.original(k))
        return Reject(origin.source, position, reason, item, origin.unit)

    def parts(self, size: int) -> Iterator[Chunk]:
        """Yield the chunk in parts of at most `size` stamps."""
        count, further = len(self.stamps), self.retained_ids
        if count <= size:
            yield self
            return

        def behind() -> Iterator[IntArray]:
            yield from (self.s, self.p, self.o)
            if further is not None:
                yield from further()

        for at in range(0, count, size):
            part = self.part(at, min(at + size, count))
            part.retained_ids = further if at + size >= count else behind
            yield part

    def part(self, first: int, after: int) -> Chunk:
        """Return the items at places `first` to `after - 1` of `stamps`, and rejects among them."""
        if self.kept is None:
            low, high, kept = first, after, None
        else:
            low, high = np.searchsorted(self.kept, [first, after]).tolist()
            kept = self.kept[low:high] - first
        rows, cut = slice(low, high), slice(first, after)
        if self._places is None:
            self._places = self._places_of_rejects()
        places = self._places
        inside = [k for k, (place, _) in enumerate(places) if first <= place < after]
        untimed = sum(not places[k][1] for k in inside)
        return Chunk(
            *(self.s[rows], self.p[rows], self.o[rows]),
            None if self.since is None else self.since[rows],
            *(self.stamps[cut], kept, self.positions[cut]),
            after - first + untimed,
            [self.rejects[k] for k in inside],
            lambda k: self.original(first + k),
            self.origins,
            None if self.which is None else self.which[cut],
            rows_without_triples=0 if first else self.rows_without_triples,
        )

    def _places_of_rejects(self) -> list[tuple[int, bool]]:
        """Return per reject the place in `stamps` at or after which it was read.

        The second value says whether that stamp is the reject's own.
        """
        located = []
        every = np.arange(len(self.stamps))
        places_of_origin = {
            origin: every if self.which is None else np.flatnonzero(self.which == k)
            for k, origin in enumerate(self.origins)
        }
        for reject in self.rejects:
            places = places_of_origin.get(Origin(reject.source, reject.unit), every[:0])
            before = int(np.searchsorted(self.positions[places], reject.position, "right")) - 1
            place = int(places[max(before, 0)]) if len(places) else 0
            located.append((place, before >= 0 and self.positions[place] == reject.position))
        return located

    def __len__(self) -> int:
        return len(self.s)

    @property
    def end(self) -> IntArray:
        """The stamp of each row: for events the end of the occurrence."""
        return self.stamps if self.kept is None else self.stamps[self.kept]

    @property
    def start(self) -> IntArray:
        """The start of each row's occurrence; its stamp if the items are not events."""
        return self.end if self.since is None else self.since

    @property
    def seen(self) -> int:
        """The greatest stamp of all items; -1 without stamps."""
        return int(self.stamps.max()) if len(self.stamps) else -1

    @property
    def least(self) -> int:
        """The least stamp of all items; INFINITY without stamps."""
        return int(self.stamps.min()) if len(self.stamps) else INFINITY

    @property
    def prefiltered(self) -> int:
        """The number of items that no pattern of the query can match."""
        return self.items - len(self) - len(self.rejects)
