"""Chunks: what a source gives, many items at once, with what it could not take.

Every item that has a usable timestamp tells the time, whatever else it is: one whose predicate no
pattern of the query can match (it is *dropped* before its other terms are looked at), one that is
no triple. So a chunk has `stamps` of all those, and rows only of some; `kept` says which. Nothing
is lost in silence: `items` is the number of rows, dropped items and rejects together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.operator import INFINITY


class Reject(NamedTuple):
    """An item that is not part of the answer, and why.

    `position` counts from 1: the line of a text file, the row of a table, else the item. `item` is
    what the source gave there.
    """

    source: str
    position: int
    reason: str
    item: object

    def __str__(self) -> str:
        shown = repr(self.item)
        shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
        return f"{self.source}, {self.position}: {self.reason}: {shown}"


_LONGEST = 200


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
    def dropped(self) -> int:
        """How many items no pattern of the query can match."""
        return self.items - len(self) - len(self.rejects)
