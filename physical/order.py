"""ORDER BY and LIMIT: ranks that change with time (SEMANTICS.md section 4, R8, R14).

`OrderBy` does not move rows, since the order of rows in a snapshot is no part of time: it adds the
hidden columns that a reader of a snapshot, or a `Slice` above, sorts by.

`Slice` sweeps over the instants at which rows come and go, and keeps the rows that hold in a sorted
list. A row that comes or goes shifts those behind it by one, so at each end of the slice at most
one row enters or leaves: a change costs O(log n), however long the slice is. The sweep is a loop in
Python because each rank depends on all changes before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from functools import total_ordering
from typing import Any, NamedTuple

import numpy as np
from sortedcontainers import SortedList

from streamsparql.algebra import shape
from streamsparql.algebra.order import comparison_key, order_key
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.expressions import Expressed
from streamsparql.physical.heap import Heap
from streamsparql.physical.operator import INFINITY, Operator, Stateless, Step
from streamsparql.physical.terms import TermDictionary


class Ranking(NamedTuple):
    """The columns that rows are sorted by: keys, each up or down, then what breaks ties."""

    keys: tuple[tuple[str, bool], ...]
    ties: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in order."""
        return (*(name for name, _ in self.keys), *self.ties)


@total_ordering
class Down:
    """A key that sorts the other way round.

    >>> sorted([Down(1), Down(2)])[0].key
    2
    """

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Down) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Down) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


def sort_keys(ranking: Ranking, batch: Batch, terms: TermDictionary) -> list[tuple[Any, ...]]:
    """What each row of a batch is sorted by, as Python values."""
    columns: list[list[Any]] = []
    for name, descending in ranking.keys:
        keys = _each(batch.columns[name], terms, comparison_key)
        columns.append([Down(key) for key in keys] if descending else keys)
    columns += [_each(batch.columns[name], terms, order_key) for name in ranking.ties]
    return list(zip(*columns, strict=True)) if columns else [()] * len(batch)


def _each(ids: IntArray, terms: TermDictionary, key: Any) -> list[Any]:
    distinct, places = np.unique(ids, return_inverse=True)
    keys = [key(terms.term_of(int(id_))) for id_ in distinct]
    return [keys[place] for place in places]


class OrderBy(Stateless):
    """Adds the columns of a `Ranking` to rows: the keys' values and copies of what breaks ties."""

    implements = (shape.OrderBy,)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        keys: Sequence[tuple[Expressed, bool]],
        columns: Sequence[str],
    ) -> None:
        self._keys = {f".key {k}": values for k, (values, _) in enumerate(keys)}
        self._ties = {f".by {name}": name for name in columns}
        down = (descending for _, descending in keys)
        self.ranking = Ranking(tuple(zip(self._keys, down, strict=True)), tuple(self._ties))
        kept = [name for name in input.names if name not in self.ranking.columns]
        super().__init__((*kept, *self.ranking.columns), input)

    def apply(self, batch: Batch) -> Batch:
        """The rows with what sorts them."""
        made: Mapping[str, IntArray] = {n: key.values(batch) for n, key in self._keys.items()}
        ties = {tie: batch.column(name) for tie, name in self._ties.items()}
        return batch.with_columns({**made, **ties}).project(self.names)

    def forget(self) -> None:
        """Passed on to the expressions."""
        for key in self._keys.values():
            key.forget()

    def facts(self) -> str:
        """Which way the keys go."""
        return ", ".join("descending" if down else "ascending" for _, down in self.ranking.keys)


Entry = tuple[tuple[Any, ...], int]
"""A row in a sorted list: what it is sorted by, and its number."""


Pieces = list[tuple[tuple[int, ...], int, int]]
"""Rows of term ids, with when they were in the slice."""


class _Ranked:
    """The rows of one slice in their order, and those that are inside."""

    def __init__(self, offset: int, end: int | None, inside: dict[int, int]) -> None:
        self.rows: SortedList = SortedList()
        self.heads: dict[tuple[int, ...], SortedList] = {}
        self.offset, self.end = offset, end
        self.inside = inside
        self.left: dict[int, int] = {}
        """The rows that went out at this instant, with when they had come in."""

    def add(self, entry: Entry, t: int) -> None:
        """A row comes: those behind it move on."""
        rows, end = self.rows, self.end
        rows.add(entry)
        place = rows.index(entry)
        if end is not None and place >= end:
            return
        if place >= self.offset:
            self._enter(entry, t)
        elif len(rows) > self.offset:
            self._enter(rows[self.offset], t)
        if end is not None and len(rows) > end:
            self._leave(rows[end])

    def remove(self, entry: Entry, t: int) -> None:
        """A row goes: those behind it move up."""
        rows, end = self.rows, self.end
        place = rows.index(entry)
        del rows[place]
        if end is not None and place >= end:
            return
        if place >= self.offset:
            self._leave(entry)
        elif len(rows) >= self.offset:
            self._leave(rows[self.offset - 1])
        if end is not None and len(rows) >= end > 0:
            self._enter(rows[end - 1], t)

    def add_distinct(self, entry: Entry, shown: tuple[int, ...], t: int) -> None:
        """A row comes; of equal rows only the first has a rank."""
        group = self.heads.setdefault(shown, SortedList())
        head = group[0] if group else None
        group.add(entry)
        if group[0] is entry:
            if head is not None:
                self.remove(head, t)
            self.add(entry, t)

    def remove_distinct(self, entry: Entry, shown: tuple[int, ...], t: int) -> None:
        """A row goes; the next of its equals takes its rank."""
        group = self.heads[shown]
        was_head = group[0] == entry
        group.remove(entry)
        if was_head:
            self.remove(entry, t)
            if group:
                self.add(group[0], t)
        if not group:
            del self.heads[shown]

    def _enter(self, entry: Entry, t: int) -> None:
        """What went and comes back within an instant has never been away."""
        self.inside[entry[1]] = self.left.pop(entry[1], t)

    def _leave(self, entry: Entry) -> None:
        self.left[entry[1]] = self.inside.pop(entry[1])


class _Row(NamedTuple):
    """A row that holds: its place in a list, its terms, what it shows, its slice."""

    entry: Entry
    terms: tuple[int, ...]
    shown: tuple[int, ...]
    part: _Ranked


class Slice(Operator):
    """OFFSET and LIMIT: a row holds while its rank is in the slice. Section 4, R8.

    With `distinct`, of rows that agree in these columns only the first has a rank: DISTINCT over an
    order. With `partition`, rows that differ in these columns rank by themselves.
    """

    implements = (shape.Slice,)
    state = "the rows that hold, ranked, and those to come"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        ranking: Ranking,
        terms: TermDictionary,
        offset: int = 0,
        limit: int | None = None,
        *,
        distinct: Sequence[str] | None = None,
        partition: Sequence[str] = (),
    ) -> None:
        super().__init__(input.names, input)
        self.ranking = ranking
        self.offset, self.limit = offset, limit
        self._end = None if limit is None else offset + limit
        self._terms = terms
        self._distinct = None if distinct is None else [self.names.index(n) for n in distinct]
        self._partition = [self.names.index(name) for name in partition]
        self._parts: dict[tuple[int, ...], _Ranked] = {}
        self._coming = Heap(self.names)
        self._going: list[tuple[int, int]] = []
        self._rows: dict[int, _Row] = {}
        self._inside: dict[int, int] = {}
        self._next = 0
        self._ready = Heap(self.names)

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """Sweeps up to the watermark."""
        (batch,), (watermark,) = batches, watermarks
        self._coming.push(batch.expanded())
        pieces: Pieces = []
        self._sweep(watermark, pieces)
        if cut or watermark == INFINITY:
            for number, since in self._inside.items():
                if since < watermark:
                    pieces.append((self._rows[number].terms, since, watermark))
                    self._inside[number] = watermark
        self._ready.push(self._batch(pieces))
        bound = min(watermark, min(self._inside.values(), default=INFINITY))
        return self._ready.release(bound), bound

    def _sweep(self, until: int, pieces: Pieces) -> None:
        """All changes before `until`, in order of time."""
        came = self._coming.release(until - 1)
        keys = sort_keys(self.ranking, came, self._terms)
        rows = list(zip(*(came.columns[name].tolist() for name in self.names), strict=True))
        rows = rows or [()] * len(came)
        starts, ends = came.start.tolist(), came.end.tolist()
        k = 0
        while k < len(starts) or (self._going and self._going[0][0] < until):
            t = starts[k] if k < len(starts) else INFINITY
            if self._going:
                t = min(t, self._going[0][0])
            changed: dict[int, _Ranked] = {}
            over: list[int] = []
            while self._going and self._going[0][0] == t:
                over.append(heapq.heappop(self._going)[1])
                part = self._go(over[-1], t)
                changed[id(part)] = part
            while k < len(starts) and starts[k] == t:
                part = self._come(rows[k], keys[k], ends[k], t)
                changed[id(part)] = part
                k += 1
            for part in changed.values():
                left = ((n, since) for n, since in part.left.items() if since < t)
                pieces += ((self._rows[n].terms, since, t) for n, since in left)
                part.left.clear()
            for number in over:
                del self._rows[number]

    def _come(self, row: tuple[int, ...], key: tuple[Any, ...], end: int, t: int) -> _Ranked:
        partition = tuple(row[k] for k in self._partition)
        if partition not in self._parts:
            self._parts[partition] = _Ranked(self.offset, self._end, self._inside)
        part = self._parts[partition]
        entry = (key, self._next)
        self._next += 1
        shown = () if self._distinct is None else tuple(row[k] for k in self._distinct)
        self._rows[entry[1]] = _Row(entry, row, shown, part)
        if end < INFINITY:
            heapq.heappush(self._going, (end, entry[1]))
        if self._distinct is None:
            part.add(entry, t)
        else:
            part.add_distinct(entry, shown, t)
        return part

    def _go(self, number: int, t: int) -> _Ranked:
        entry, _, shown, part = self._rows[number]
        if self._distinct is None:
            part.remove(entry, t)
        else:
            part.remove_distinct(entry, shown, t)
        return part

    def _batch(self, pieces: Pieces) -> Batch:
        if not pieces:
            return self.nothing()
        rows, starts, ends = zip(*pieces, strict=True)
        table = np.array(rows, np.int64).reshape(len(rows), len(self.names))
        columns = {name: table[:, k].copy() for k, name in enumerate(self.names)}
        return Batch(columns, np.array(starts, np.int64), np.array(ends, np.int64))

    def size(self) -> int:
        """The rows that hold or are to come or to be given."""
        return len(self._rows) + len(self._coming) + len(self._ready)

    def held(self) -> Iterator[IntArray]:
        """Their terms."""
        yield from self._coming.held()
        yield from self._ready.held()
        if self._rows:
            yield np.array([row.terms for row in self._rows.values()], np.int64).ravel()

    def facts(self) -> str:
        """The cut."""
        limit = "" if self.limit is None else f"limit {self.limit}"
        return f"{limit} offset {self.offset}".strip() if self.offset else limit
