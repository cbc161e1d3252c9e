"""Routing: from the output of a plan that many queries share to the rows of each query.

An `Emission` is the output of one step. It is divided by queries when the rows of one query are
requested for the first time: once, by a stable sort of the numbers of queries, so the rows of a
query keep their order. That costs as much as there are rows and queries with rows, however many
queries there are. A reader of all queries takes emissions undivided.

Terms are decoded once per emission, not once per query: the first query decodes its own rows, the
second one all rows, and the others take slices. An emission goes once all of its rows were taken.

A query has each report of its plan, also those without rows of its own, so the instants of reports
are a list of the plan, of which each query has read a part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.hidden import QUERY

Owner = TypeVar("Owner")
"""A query, or a set of instances of it, whose rows are taken together."""
_Item = TypeVar("_Item")
_Cut: TypeAlias = Callable[[Any, int, int], Any]
"""A function that returns the part of decoded rows between two places."""


class RoutedRows(NamedTuple):
    """The rows of one query in an emission: places in its batch, and the query's number."""

    first: int
    after: int
    number: int


class Emission(Generic[Owner]):
    """The rows that a plan has emitted in a step.

    `owner_of` returns the owner of a query by its number, None for a query that was removed. The
    rows of a plan without numbers belong to all of its `owners`.
    """

    def __init__(
        self,
        rows: Batch,
        owner_of: Callable[[int], Owner | None],
        owners: Sequence[Owner] | None = None,
    ) -> None:
        self.rows = rows
        self._owner_of, self._owners = owner_of, owners
        self._parts: dict[Owner, list[RoutedRows]] | None = None
        self._decoded: dict[object, Any] = {}
        self._asked: dict[object, int] = {}

    @property
    def parts(self) -> dict[Owner, list[RoutedRows]]:
        """The parts that were not taken yet, by owner; the rows are then ordered by query."""
        if self._parts is None:
            self._parts = {}
            if self._owners is not None:
                whole = RoutedRows(0, len(self.rows), 0)
                self._parts = {owner: [whole] for owner in self._owners}
            else:
                self._divide()
        return self._parts

    def _divide(self) -> None:
        assert self._parts is not None
        numbers = self.rows.columns[QUERY]
        order = np.argsort(numbers, kind="stable")
        self.rows = self.rows.take(order)
        present, first = np.unique(numbers[order], return_index=True)
        after = np.append(first[1:], len(numbers))
        for part in zip(first.tolist(), after.tolist(), present.tolist(), strict=True):
            owner = self._owner_of(part[2])
            if owner is not None:
                self._parts.setdefault(owner, []).append(RoutedRows(*part))

    def take(self, owner: Owner) -> list[RoutedRows]:
        """Remove and return the parts of an owner."""
        return self.parts.pop(owner, [])

    def take_all(self) -> None:
        """Remove all parts; if none was taken before, the rows need not be divided."""
        self._parts = {}

    @property
    def owners(self) -> Sequence[Owner] | None:
        """The owners of rows without numbers, if they are not divided yet."""
        return None if self.divided else self._owners

    def restore(self, parts: dict[Owner, list[RoutedRows]]) -> None:
        """Restore the parts that were not taken of rows that were divided."""
        self._parts = parts

    @property
    def divided(self) -> bool:
        """Whether the rows are divided, so that some parts may have been taken."""
        return self._parts is not None

    @property
    def taken(self) -> bool:
        """Whether all parts were taken."""
        return self._parts is not None and not self._parts

    def decoded(
        self, part: RoutedRows, decode: Callable[[Batch], Any], cut: _Cut, kind: object
    ) -> Any:
        """Return a part decoded, cut from all rows if it is not the first that is requested.

        `kind` tells apart the functions that decode.
        """
        whole = self._decoded.get(kind)
        if whole is None:
            self._asked[kind] = self._asked.get(kind, 0) + 1
            if self._asked[kind] == 1 and part.after - part.first < len(self.rows):
                return decode(self.rows.part(part.first, part.after))
            whole = self._decoded[kind] = decode(self.rows)
        return cut(whole, part.first, part.after)


class Consecutive(Generic[_Item]):
    """Things in order, with consecutive positions from 0 on; the first ones may be removed.

    >>> items = Consecutive[str]()
    >>> for item in "abc":
    ...     items.append(item)
    >>> items.popleft(), items.since(0), items.since(2), items.end
    ('a', ['b', 'c'], ['c'], 3)
    """

    def __init__(self) -> None:
        self._items: deque[_Item] = deque()
        self._first = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def begin(self) -> int:
        """The position of the first thing."""
        return self._first

    @property
    def end(self) -> int:
        """The position of the next thing."""
        return self._first + len(self._items)

    def restore(self, begin: int, items: Sequence[_Item]) -> None:
        """Restore things, the first of which has a position."""
        self._first, self._items = begin, deque(items)

    def append(self, item: _Item) -> None:
        """Add a thing at the end."""
        self._items.append(item)

    def since(self, position: int) -> list[_Item]:
        """Return the things from a position on."""
        return [*islice(self._items, max(position - self._first, 0), None)]

    def first(self) -> _Item | None:
        """Return the first thing; None without one."""
        return self._items[0] if self._items else None

    def popleft(self) -> _Item:
        """Remove and return the first thing."""
        self._first += 1
        return self._items.popleft()

    def drop_before(self, position: int) -> None:
        """Remove the things before a position."""
        while self._items and self._first < position:
            self.popleft()

    def clear(self) -> list[_Item]:
        """Remove and return all things."""
        items = [*self._items]
        self._first = self.end
        self._items.clear()
        return items


class Outbox(Generic[Owner]):
    """The emissions of a plan that were not taken completely, in order.

    Emissions have consecutive positions. A reader takes those from its own position on.

    >>> outbox = Outbox[str]()
    >>> numbers = np.array([5, 4, 5])
    >>> rows = Batch({QUERY: numbers, "x": np.array([1, 2, 3])}, np.arange(3), np.arange(1, 4))
    >>> outbox.put(Emission(rows, {4: "a", 5: "b"}.get))
    >>> [(e.take("b"), e.rows.columns["x"].tolist()) for e in outbox.emissions.since(0)]
    [([RoutedRows(first=1, after=3, number=5)], [2, 1, 3])]
    >>> [e.take("a") for e in outbox.emissions.since(0)], outbox.trim(), len(outbox.emissions)
    ([[RoutedRows(first=0, after=1, number=4)]], None, 0)
    """

    def __init__(self) -> None:
        self.emissions = Consecutive[Emission[Owner]]()
        self.instants = Consecutive[int]()
        """The instants of the reports that some query has not read yet."""

    def put(self, emission: Emission[Owner], instants: Sequence[int] = ()) -> None:
        """Add the output of a step, and the instants of the reports of that step."""
        if len(emission.rows):
            self.emissions.append(emission)
        for instant in instants:
            self.instants.append(instant)

    def trim(self) -> None:
        """Remove the emissions at the beginning that were taken."""
        while (emission := self.emissions.first()) is not None and emission.taken:
            self.emissions.popleft()

    def clear(self) -> None:
        """Remove everything: all rows were taken, and all reports read."""
        self.emissions.clear()
        self.instants.clear()

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids of the rows."""
        for emission in self.emissions.since(0):
            yield from emission.rows.columns.values()
