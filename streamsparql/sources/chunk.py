"""Chunks: what a source gives, many items at once, with what it could not take.

Every item that has a usable timestamp tells the time, whatever else it is: one whose predicate no
pattern of the query can match (it is *dropped* before its other terms are looked at), one that is
no triple. So a chunk has `stamps` of all those, and rows only of some; `kept` says which. Nothing
is lost in silence: `items` is the number of rows, dropped items and rejects together, and an
`Accounting` says in the end what became of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import add
from typing import NamedTuple

import numpy as np

from streamsparql.errors import SourceError
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.operator import INFINITY


class Reject(NamedTuple):
    """An item that is not part of the answer, and why.

    `source` is the path of the file, as it was given, "standard input", or else the name of the
    stream or graph. `position` counts from 1, in units of `unit`: line, row, statement or item.
    `item` is what the source gave there.

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

    def __str__(self) -> str:
        said = f"{self.source}, {self.unit} {self.position}: {self.reason}"
        if self.item is None:
            return said
        shown = repr(self.item)
        return f"{said}: {shown if len(shown) <= _LONGEST else f'{shown[:_LONGEST]}…'}"


_LONGEST = 200


def told(item: object) -> object:
    """An item as it is told of, bytes as the text that they are meant to be.

    >>> told(b"caf\\xe9"), told((b"<a>", 5))
    ('caf\\\\xe9', ('<a>', 5))
    """
    if isinstance(item, bytes):
        return item.decode("utf-8", "backslashreplace")
    if type(item) is tuple and any(isinstance(part, bytes) for part in item):
        return tuple(map(told, item))
    return item


class Rejected(SourceError):
    """A reject that ends the reading, for it is strict."""

    def __init__(self, reject: Reject) -> None:
        super().__init__(str(reject))
        self.reject = reject


class Origin(NamedTuple):
    """Where items come from, and what their positions count."""

    source: str
    unit: str = "item"


class Accounting(NamedTuple):
    """The fate of the items of streams: `read == accepted + late + rejected`, always.

    `unmatched` of the accepted ones have a predicate that no pattern of the query matches: their
    other terms are not read. Such an item is never late and never quarantined, since the answer
    does not depend on when it arrived. `rows_without_triples` are not items: rows of tables for
    which a mapping made no triple.

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
        """Both together."""
        if not isinstance(other, Accounting):
            return NotImplemented
        return Accounting(*map(add, self, other))


@dataclass(frozen=True)
class Wanted:
    """What a query can use of a stream: of the predicates these, by id, None for any.

    `places` are those of `s`, `p` and `o` that it looks at.

    >>> Wanted(frozenset({3, 5})).mask(np.array([5, 4, 3])).tolist()
    [True, False, True]
    """

    predicates: frozenset[int] | None = None
    places: frozenset[str] = frozenset("spo")

    def mask(self, ids: IntArray) -> BoolArray:
        """Which of the predicates are wanted."""
        if self.predicates is None:
            return np.ones(len(ids), np.bool_)
        if len(self.predicates) > _FEW:
            return np.isin(ids, np.fromiter(self.predicates, np.int64))
        found = np.zeros(len(ids), np.bool_)
        for predicate in self.predicates:
            found |= ids == predicate
        return found


_FEW = 8


@dataclass(slots=True)
class Chunk:
    """Items of a stream, in the order in which they came."""

    s: IntArray
    p: IntArray
    o: IntArray
    since: IntArray | None
    """Where the items are events: the start of each row's occurrence; its end is its stamp."""
    stamps: IntArray
    """The timestamps of all items that have one, those without a row among them."""
    kept: IntArray | None
    """The places in `stamps` of the rows; None: every stamp has its row."""
    positions: IntArray
    """Where in the source the stamps are."""
    items: int
    """How many items came: rows, dropped ones and rejects."""
    rejects: list[Reject]
    original: Callable[[int], object]
    """What the source gave at a place of `stamps`."""
    origins: tuple[Origin, ...] = ()
    """Where the items come from: one file, or several that are read side by side."""
    which: IntArray | None = None
    """Of several origins that of each of the `stamps`."""
    held: Callable[[], Iterable[IntArray]] | None = None
    """The ids that the source holds beside it, for chunks that come after this one."""
    rows_without_triples: int = 0
    """Of how many rows of a table a mapping made no triple: they are no items."""
    _places: list[tuple[int, bool]] | None = None

    def reject(self, k: int, reason: str, name: str) -> Reject:
        """What is said of the item at a place of `stamps`; `name` is for what has no origin."""
        origin = Origin(name)
        if self.origins:
            origin = self.origins[0 if self.which is None else int(self.which[k])]
        position, item = int(self.positions[k]), told(self.original(k))
        return Reject(origin.source, position, reason, item, origin.unit)

    def parts(self, size: int) -> Iterator[Chunk]:
        """The same in chunks of at most so many items that have a stamp."""
        count = len(self.stamps)
        if count <= size:
            yield self
            return
        for at in range(0, count, size):
            found = self.part(at, min(at + size, count))
            found.held = None if at + size >= count else lambda: (self.s, self.p, self.o)
            yield found

    def part(self, first: int, after: int) -> Chunk:
        """The items at some places of `stamps`, with the rejects that came among them."""
        if self.kept is None:
            low, high, kept = first, after, None
        else:
            low, high = np.searchsorted(self.kept, [first, after]).tolist()
            kept = self.kept[low:high] - first
        rows, cut = slice(low, high), slice(first, after)
        if self._places is None:
            self._places = self._places_of_rejects()
        places = self._places
        here = [k for k, (place, _) in enumerate(places) if first <= place < after]
        untimed = sum(not places[k][1] for k in here)
        return Chunk(
            *(self.s[rows], self.p[rows], self.o[rows]),
            None if self.since is None else self.since[rows],
            *(self.stamps[cut], kept, self.positions[cut]),
            after - first + untimed,
            [self.rejects[k] for k in here],
            lambda k: self.original(first + k),
            self.origins,
            None if self.which is None else self.which[cut],
            rows_without_triples=0 if first else self.rows_without_triples,
        )

    def _places_of_rejects(self) -> list[tuple[int, bool]]:
        """Of each reject the place in `stamps` at or after which it came, and whether it tells the
        time, so that there is a stamp of it.
        """  # fmt: skip
        found = []
        every = np.arange(len(self.stamps))
        own = {
            origin: every if self.which is None else np.flatnonzero(self.which == k)
            for k, origin in enumerate(self.origins)
        }
        for reject in self.rejects:
            places = own.get(Origin(reject.source, reject.unit), every[:0])
            before = int(np.searchsorted(self.positions[places], reject.position, "right")) - 1
            place = int(places[max(before, 0)]) if len(places) else 0
            found.append((place, before >= 0 and self.positions[place] == reject.position))
        return found

    def __len__(self) -> int:
        return len(self.s)

    @property
    def end(self) -> IntArray:
        """The stamp of each row: when it is known."""
        return self.stamps if self.kept is None else self.stamps[self.kept]

    @property
    def start(self) -> IntArray:
        """When each row began: its stamp, where it is no event."""
        return self.end if self.since is None else self.since

    @property
    def seen(self) -> int:
        """The greatest stamp of all items; -1 where there is none."""
        return int(self.stamps.max()) if len(self.stamps) else -1

    @property
    def least(self) -> int:
        """The least stamp of all items; INFINITY where there is none."""
        return int(self.stamps.min()) if len(self.stamps) else INFINITY

    @property
    def prefiltered(self) -> int:
        """How many items no pattern of the query can match."""
        return self.items - len(self) - len(self.rejects)
