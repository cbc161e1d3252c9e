"""Rows about events in dictionaries, for rules that are evaluated row by row (rules_by_row.py).

A row is `(mu, since, t)`: the ids of its columns without SINCE, its SINCE, and its instant. Rows
arrive in the order of their instants, and each is retained once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Reversible, Sequence
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import NEVER, UNBOUND, Batch, IdRow
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import SHIFT
from streamsparql.physical.state.parts import RowStore

EventRow: TypeAlias = tuple[IdRow, int, int]
Pick: TypeAlias = Callable[[IdRow], IdRow]


def variables_of(names: Sequence[str]) -> list[str]:
    """Return the columns of a row: all but SINCE."""
    return [name for name in names if name != SINCE]


def picking(places: Sequence[int]) -> Pick:
    """Return the function that selects places of a tuple.

    >>> picking([2, 0])((7, 8, 9)), picking([1])((7, 8)), picking([])((7,))
    ((9, 7), (8,), ())
    """
    match places:
        case []:
            return lambda mu: ()
        case [place]:
            return lambda mu: (mu[place],)
    return itemgetter(*places)


def batch_of_rows(names: Sequence[str], rows: Sequence[EventRow]) -> Batch:
    """Return rows, which are in the order of their instants, as a batch.

    >>> batch_of_rows(["x", SINCE], [((7,), 5 - SHIFT, 6)]).columns["x"].tolist()
    [7]
    """
    if not rows:
        return Batch.empty(names)
    variables, (mus, sinces, ts) = variables_of(names), zip(*rows, strict=True)
    cells = np.fromiter(chain.from_iterable(mus), np.int64, len(rows) * len(variables))
    columns = dict(zip(variables, cells.reshape(len(rows), len(variables)).T, strict=True))
    columns[SINCE], start = np.array(sinces), np.array(ts)
    return Batch({name: columns[name] for name in names}, start, start + 1)


def rows_of_batch(batch: Batch) -> Iterator[EventRow]:
    """Yield the rows of a batch."""
    since, t = batch.columns[SINCE].tolist(), batch.start.tolist()
    columns = [column.tolist() for name, column in batch.columns.items() if name != SINCE]
    rows: Iterable[IdRow] = zip(*columns, strict=True) if columns else [()] * len(batch)
    return zip(rows, since, t, strict=True)


class EventRows(RowStore):
    """The base of these states."""

    endless = False
    """Whether all rows are retained until the input ends."""
    of_instant = False
    """Whether the rows are those of the present instant."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = (*variables_of(names), SINCE)

    @abstractmethod
    def entries(self) -> Iterable[EventRow]:
        """Return the rows."""

    @abstractmethod
    def insert(self, mu: IdRow, since: int, t: int) -> bool:
        """Insert a row; return whether it is new."""

    @abstractmethod
    def expire(self, t: int) -> None:
        """Evict what is not needed from an instant on."""

    @override
    def rows(self) -> Batch:
        return batch_of_rows(self.names, sorted(self.entries(), key=itemgetter(2)))

    @override
    def put_back(self, rows: Batch) -> None:
        for row in rows_of_batch(rows):
            self.insert(*row)


class RowsByKey(EventRows):
    """The rows of an input of a join, by the variables that it shares with the other one.

    Rows are retained while they can be part of an event shorter than the bound. With `firsts`, of
    the rows that differ only in their ends the first is retained; with `of_instant`, those of the
    present instant.

    >>> rows = RowsByKey(["x", SINCE], ["x"], 10)
    >>> rows.insert((7,), 2 - SHIFT, 3), rows.insert((7,), 2 - SHIFT, 3), len(rows)
    (True, False, 1)
    >>> rows.expire(12)
    >>> len(rows)
    0
    """

    encoded = ("_buckets",)
    derived = ("_count", "_loose", "_expiring")

    def __init__(
        self,
        names: Sequence[str],
        shared: Sequence[str],
        bound: int = INFINITY,
        *,
        firsts: bool = False,
        of_instant: bool = False,
    ) -> None:
        super().__init__(names)
        self.of_instant = of_instant
        self.key = picking([self.names.index(name) for name in shared])
        self._firsts = firsts
        self._reach = bound if bound >= SHIFT else bound + SHIFT
        self._bounded = bound < SHIFT
        self.endless = not (self._bounded or of_instant)
        self._buckets: dict[IdRow, _Found | dict[_Entry, int]] = {}
        self._count = 0
        self._loose = False  # whether a shared variable was unbound in some row
        self._expiring: list[tuple[int, IdRow, _Entry]] = []

    @override
    def __len__(self) -> int:
        return self._count

    @override
    def insert(self, mu: IdRow, since: int, t: int) -> bool:
        if self._bounded and since <= t - self._reach:
            return False
        key = self.key(mu)
        entry = (mu, since) if self._firsts else (mu, since, t)
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets[key] = (entry, t)
            self._loose = self._loose or UNBOUND in key
        elif isinstance(bucket, dict):
            if entry in bucket:
                return False
            bucket[entry] = t
        elif entry == bucket[0]:
            return False
        else:
            self._buckets[key] = {bucket[0]: bucket[1], entry: t}
        self._count += 1
        if self._bounded:
            heappush(self._expiring, (since, key, entry))
        return True

    def find(self, key: IdRow) -> Iterable[Reversible[_Found]]:
        """Return the rows that are compatible with a key, as `(mu, since, ..)` with their instants.

        The rows of each part are in the order of their instants.
        """
        if self._loose or UNBOUND in key:
            return [_found(b) for other, b in self._buckets.items() if _compatible(key, other)]
        bucket = self._buckets.get(key)
        return () if bucket is None else (_found(bucket),)

    @override
    def entries(self) -> Iterator[EventRow]:
        for bucket in self._buckets.values():
            for (mu, since, *_), t in _found(bucket):
                yield mu, since, t

    @override
    def expire(self, t: int) -> None:
        if t == INFINITY or (self.of_instant and self._precede(t)):
            self._buckets.clear()
            self._expiring.clear()
            self._count = 0
        expiring = self._expiring
        while expiring and expiring[0][0] <= t - self._reach:
            _, key, entry = heappop(expiring)
            bucket = self._buckets[key]
            if isinstance(bucket, dict) and len(bucket) > 1:
                del bucket[entry]
            else:
                del self._buckets[key]
            self._count -= 1

    def _precede(self, t: int) -> bool:
        """Return whether the rows, which are of one instant, precede another."""
        return any(next(iter(_found(bucket)))[1] < t for bucket in self._buckets.values())


_Entry: TypeAlias = tuple[IdRow, int] | EventRow
_Found: TypeAlias = tuple[_Entry, int]
"""A row and its instant. Most keys have one row: it is retained without a dictionary."""


def _found(bucket: _Found | dict[_Entry, int]) -> Reversible[_Found]:
    return bucket.items() if isinstance(bucket, dict) else (bucket,)


def _compatible(one: IdRow, other: IdRow) -> bool:
    return all(a == b or UNBOUND in (a, b) for a, b in zip(one, other, strict=True))


class RowsOfInstant(EventRows):
    """The rows of the present instant; with `lasts` of those that differ in their starts the last.

    >>> rows = RowsOfInstant(["x", SINCE], lasts=True)
    >>> [rows.insert((7,), since, 5) for since in (-9, -8, -9)], len(rows)
    ([True, True, False], 1)
    """

    of_instant = True
    encoded = ("_rows",)

    def __init__(self, names: Sequence[str], lasts: bool = False) -> None:
        super().__init__(names)
        self._lasts = lasts
        self._rows: dict[IdRow | tuple[IdRow, int], EventRow] = {}

    @override
    def __len__(self) -> int:
        return len(self._rows)

    @override
    def insert(self, mu: IdRow, since: int, t: int) -> bool:
        key = mu if self._lasts else (mu, since)
        before = self._rows.get(key)
        if before is not None and before[1] >= since:
            return False
        self._rows[key] = mu, since, t
        return True

    @override
    def entries(self) -> Iterable[EventRow]:
        return self._rows.values()

    @override
    def expire(self, t: int) -> None:
        if self._rows and next(iter(self._rows.values()))[2] < t:
            self._rows.clear()


class AbsentRows(EventRows):
    """Per key, the latest start of the rows that ended before an instant.

    >>> rows = AbsentRows(["x", SINCE], INFINITY)
    >>> added = [rows.insert((7,), start - SHIFT, end) for start, end in ((2, 4), (3, 9))]
    >>> rows.latest((7,), 9), rows.latest((7,), 10), rows.latest((8,), 10) == NEVER
    (2, 3, True)
    """

    encoded = ("_ends",)
    derived = ("_count", "_expiring")

    def __init__(self, names: Sequence[str], bound: int) -> None:
        super().__init__(names)
        self.within = bound
        self.endless = bound >= SHIFT
        self._ends: dict[IdRow, deque[tuple[int, int]]] = {}  # ends and starts, both ascending
        self._count = 0
        self._expiring: list[tuple[int, IdRow]] = []

    @override
    def __len__(self) -> int:
        return self._count

    @override
    def insert(self, mu: IdRow, since: int, t: int) -> bool:
        start, ends = since + SHIFT, self._ends.get(mu)
        if ends is None:
            ends = self._ends[mu] = deque()
        elif ends[-1][1] >= start:
            return False
        ends.append((t, start))
        self._count += 1
        if not self.endless:
            heappush(self._expiring, (start, mu))
        return True

    def latest(self, key: IdRow, t: int) -> int:
        """Return the latest start of the rows that ended before an instant; NEVER without any."""
        for end, start in reversed(self._ends.get(key, ())):
            if end < t:
                return start
        return NEVER

    @override
    def entries(self) -> Iterator[EventRow]:
        for mu, ends in self._ends.items():
            for t, start in ends:
                yield mu, start - SHIFT, t

    @override
    def expire(self, t: int) -> None:
        if t == INFINITY:
            self._ends.clear()
            self._expiring.clear()
            self._count = 0
        expiring = self._expiring
        while expiring and expiring[0][0] <= t - self.within:
            _, mu = heappop(expiring)
            ends = self._ends[mu]
            ends.popleft()
            if not ends:
                del self._ends[mu]
            self._count -= 1
