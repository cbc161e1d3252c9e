"""OFFSET and LIMIT: ranks that change with time (SEMANTICS.md section 4, R8, R14).

`Slice` sweeps over the instants at which rows come and go, and keeps the rows that hold in a sorted
list. A row that comes or goes shifts those behind it by one, so at each end of the slice at most
one row enters or leaves: a change costs O(log n), however long the slice is. The sweep is a loop in
Python because each rank depends on all changes before it.

Of n equal rows over the same interval only the first few can make a difference. They stand one
behind the other as long as they hold, so those with `offset + limit` of their equals before them
are never inside; and with no limit, those with `offset` before them always are. These are not
ranked, so that a million duplicates cost as much as a handful.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from sortedcontainers import SortedList

from streamsparql.algebra import shape
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.sort_keys import Key, Ranking, SortKeys
from streamsparql.physical.operator import INFINITY, NEVER, Operator, Part, Step
from streamsparql.physical.operators.consolidate import collapsed
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.unions import COMING, READY

Ids = tuple[int, ...]

Pieces = list[tuple[Ids, int, int]]
"""Rows of term ids, with when they were in the slice."""


class Ranked:
    """The rows of one slice in their order, and those that are inside, with since when.

    An entry is what a row is sorted by, and last its number.

    >>> ranked = Ranked(0, 1, inside := {})
    >>> ranked.add(("b", 1), 0)
    >>> ranked.add(("a", 2), 5)
    >>> inside, ranked.left
    ({2: 5}, {1: 0})
    """

    def __init__(self, offset: int, end: int | None, inside: dict[int, int]) -> None:
        self.rows: SortedList = SortedList()
        self.offset, self.end = offset, end
        self.inside = inside
        self.left: dict[int, int] = {}
        """The rows that went out at this instant, with when they had come in."""
        self._equals: dict[Ids, SortedList] = {}

    def add(self, entry: Key, t: int) -> None:
        """A row comes: those behind it move on."""
        rows, offset, end = self.rows, self.offset, self.end
        rows.add(entry)
        held = len(rows)
        full = end is not None and held > end
        if full and entry >= rows[end]:
            return
        if not offset or (held > offset and entry >= rows[offset]):
            self._enter(entry, t)
        elif held > offset:
            self._enter(rows[offset], t)
        if full:
            self._leave(rows[end])

    def remove(self, entry: Key, t: int) -> None:
        """A row goes: those behind it move up."""
        rows, offset, end = self.rows, self.offset, self.end
        held = len(rows)
        full = end is not None and held > end
        beyond = full and entry >= rows[end]
        before = offset > 0 and (held <= offset or entry < rows[offset])
        rows.remove(entry)
        if beyond:
            return
        if not before:
            self._leave(entry)
        elif held > offset:
            self._leave(rows[offset - 1])
        if full and end:
            self._enter(rows[end - 1], t)

    def add_distinct(self, entry: Key, shown: Ids, t: int) -> None:
        """A row comes; of equal rows only the first has a rank."""
        group = self._equals.setdefault(shown, SortedList())
        head = group[0] if group else None
        group.add(entry)
        if group[0] is entry:
            if head is not None:
                self.remove(head, t)
            self.add(entry, t)

    def remove_distinct(self, entry: Key, shown: Ids, t: int) -> None:
        """A row goes; the next of its equals takes its rank."""
        group = self._equals[shown]
        was_head = group[0] == entry
        group.remove(entry)
        if was_head:
            self.remove(entry, t)
            if group:
                self.add(group[0], t)
        if not group:
            del self._equals[shown]

    def _enter(self, entry: Key, t: int) -> None:
        """What went and comes back within an instant has never been away."""
        self.inside[entry[-1]] = self.left.pop(entry[-1], t)

    def _leave(self, entry: Key) -> None:
        self.left[entry[-1]] = self.inside.pop(entry[-1])


class _Row(NamedTuple):
    """A row that holds: its place in a list, its terms, what it shows, the key of its slice."""

    entry: Key
    terms: Ids
    shown: Ids
    partition: Ids


class Slice(Operator):
    """OFFSET and LIMIT: a row holds while its rank is in the slice. Section 4, R8.

    With `distinct`, of rows that agree in these columns only the first has a rank: DISTINCT over an
    order. With `partition`, rows that differ in these columns rank by themselves.

    >>> from streamsparql.physical.operators.access import Always
    >>> terms = TermDictionary()
    >>> rows = Batch({"x": terms.encode(["<b>", "<a>"])}, np.array([0, 5]), np.array([9, 7]))
    >>> first = Slice(Always.of({"x": rows.columns["x"]}, 2), Ranking((), ("x",)), terms, limit=1)
    >>> given, _ = first.step([rows], [INFINITY], False)
    >>> terms.texts(given.columns["x"]).to_pylist(), given.start.tolist(), given.end.tolist()
    (['<b>', '<a>', '<b>'], [0, 5, 7], [5, 7, 9])
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
        self._keys = SortKeys(ranking, terms)
        self._distinct = None if distinct is None else tuple(distinct)
        self._partition = tuple(partition)
        self._parts: dict[Ids, Ranked] = {}
        self._coming = Heap(self.names)
        self._going: list[tuple[int, int]] = []
        self._rows: dict[int, _Row] = {}
        self._inside: dict[int, int] = {}
        self._next = 0
        self._ready = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        (batch,), (watermark,) = batches, watermarks
        if self.limit != 0:
            self._coming.push(batch)
        pieces: Pieces = []
        self._sweep(watermark, pieces)
        if cut or watermark == INFINITY:
            for number, since in self._inside.items():
                if since < watermark:
                    pieces.append((self._rows[number].terms, since, watermark))
                    self._inside[number] = watermark
        if watermark == INFINITY:
            self._clear()
        self._ready.push(self._batch(pieces))
        bound = min(watermark, min(self._inside.values(), default=INFINITY))
        return self._ready.release(bound), bound

    def _clear(self) -> None:
        """The input has ended: what has no end has been given."""
        for held in (self._parts, self._rows, self._inside):
            held.clear()

    def _sweep(self, until: int, pieces: Pieces) -> None:
        """All changes before `until`, in order of time."""
        came = self._ranked(self._coming.release(until - 1))
        keys, rows = self._keys.of(came), _tuples(came, self.names)
        parts = _tuples(came, self._partition)
        shown = _tuples(came, self._distinct or ())
        starts, ends = came.start.tolist(), came.end.tolist()
        going = self._going
        k = 0
        while k < len(starts) or (going and going[0][0] < until):
            t = starts[k] if k < len(starts) else INFINITY
            if going and going[0][0] < t:
                t = going[0][0]
            changed: set[Ids] = set()
            over: list[int] = []
            while going and going[0][0] == t:
                over.append(heapq.heappop(going)[1])
                changed.add(self._go(self._rows[over[-1]], t))
            while k < len(starts) and starts[k] == t:
                self._come((*keys[k], self._next), rows[k], shown[k], parts[k], t)
                if ends[k] < INFINITY:
                    heapq.heappush(going, (ends[k], self._next))
                self._next += 1
                changed.add(parts[k])
                k += 1
            self._settle(changed, t, pieces)
            for number in over:
                del self._rows[number]

    def _ranked(self, came: Batch) -> Batch:
        """Rows one by one, of equal ones no more than can make a difference."""
        if len(came) > _FEW or came.count is not None:
            came = collapsed(came)
        if came.count is None:
            return came
        most = 1 if self._distinct is not None else self._end
        if most is None:
            most = self.offset
            self._ready.push(_counted(came, came.count - most))
        return _counted(came, np.minimum(came.count, most)).expanded()

    def _come(self, entry: Key, row: Ids, shown: Ids, partition: Ids, t: int) -> None:
        part = self._parts.get(partition)
        if part is None:
            part = self._parts[partition] = Ranked(self.offset, self._end, self._inside)
        self._rows[entry[-1]] = _Row(entry, row, shown, partition)
        if self._distinct is None:
            part.add(entry, t)
        else:
            part.add_distinct(entry, shown, t)

    def _go(self, row: _Row, t: int) -> Ids:
        part = self._parts[row.partition]
        if self._distinct is None:
            part.remove(row.entry, t)
        else:
            part.remove_distinct(row.entry, row.shown, t)
        return row.partition

    def _settle(self, changed: Iterable[Ids], t: int, pieces: Pieces) -> None:
        """What went out at an instant is over; a slice with no rows is forgotten."""
        for partition in changed:
            part = self._parts[partition]
            if part.left:
                left = ((n, since) for n, since in part.left.items() if since < t)
                pieces += ((self._rows[n].terms, since, t) for n, since in left)
                part.left.clear()
            if not part.rows:
                del self._parts[partition]

    def _batch(self, pieces: Pieces) -> Batch:
        if not pieces:
            return self.nothing()
        rows, starts, ends = zip(*pieces, strict=True)
        table = np.array(rows, np.int64).reshape(len(rows), len(self.names))
        columns = {name: table[:, k].copy() for k, name in enumerate(self.names)}
        return Batch(columns, np.array(starts, np.int64), np.array(ends, np.int64))

    @override
    def size(self) -> int:
        return len(self._rows) + len(self._coming) + len(self._ready)

    @override
    def content(self) -> Iterator[Part]:
        ends = {number: end for end, number in self._going}
        inside: Pieces = []
        outside: Pieces = []
        for number, row in self._rows.items():
            since = self._inside.get(number)
            end = ends.get(number, INFINITY)
            if since is None:
                outside.append((row.terms, NEVER, end))
            else:
                inside.append((row.terms, since, end))
        yield "in the slice", self._batch(inside).ordered()
        yield "out of the slice", self._batch(outside)
        yield COMING, self._coming.rows()
        yield READY, self._ready.rows()

    @override
    def held(self) -> Iterator[IntArray]:
        yield from self._coming.held()
        yield from self._ready.held()
        if self._rows:
            yield np.array([row.terms for row in self._rows.values()], np.int64).ravel()

    @override
    def forget(self) -> None:
        self._keys.forget()

    @override
    def facts(self) -> str:
        limit = "" if self.limit is None else f"limit {self.limit}"
        return f"{limit} offset {self.offset}".strip() if self.offset else limit


_FEW = 64
"""So many rows are ranked as they are: it takes longer to see whether some are equal."""


def _tuples(batch: Batch, names: Sequence[str]) -> list[Ids]:
    if not names:
        return [()] * len(batch)
    return list(zip(*(batch.columns[name].tolist() for name in names), strict=True))


def _counted(rows: Batch, count: IntArray) -> Batch:
    """The rows, each so often."""
    kept = count > 0
    return Batch(rows.columns, rows.start, rows.end, count).where(kept)
