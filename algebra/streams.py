"""Streams: physical, logical, and what holds at an instant (SEMANTICS.md sections 1 and 2).

A *physical stream* is a sequence of elements `(x, [start, end))`, ordered by `start`. A *logical
stream* says of each instant how often each `x` holds there; `phi` is the map from the first to the
second, and the *snapshot* at an instant is its value there, a multiset.

    >>> stream = [Element("a", 0, 6), Element("a", 4, 10)]
    >>> snapshot(stream, 5).count("a")
    2
    >>> coalesce(stream)
    [Element(item='a', start=0, end=10), Element(item='a', start=4, end=6)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

X = TypeVar("X", bound=Hashable)
Y = TypeVar("Y", bound=Hashable)

INFINITY = 2**63 - 1
"""The end of what never ends: the largest int64."""


class Element(NamedTuple, Generic[X]):
    """An item over the right-open interval `[start, end)`, in ms (ESWC 2008, Definition 1)."""

    item: X
    start: int
    end: int

    def holds(self, t: int) -> bool:
        """Whether the instant `t` is in the interval."""
        return self.start <= t < self.end


class Snapshot(Generic[X]):
    """The multiset that holds at one instant, with the order of an ORDER BY where there is one.

    It is a logical stream (ESWC 2008, Definition 2) at an instant. Equality ignores the order.

    >>> Snapshot.of("aba") == Snapshot([("a", 2), ("b", 1)])
    True
    """

    __slots__ = ("entries", "ordered")

    def __init__(self, entries: Iterable[tuple[X, int]] = (), ordered: bool = False) -> None:
        self.ordered = ordered
        """Whether `entries` are in the order of an ORDER BY, equal items then not collected."""
        self.entries: tuple[tuple[X, int], ...] = tuple(
            entries if ordered else _collected(entries).items()
        )

    @classmethod
    def of(cls, items: Iterable[X]) -> Snapshot[X]:
        """The snapshot that holds each item as often as it comes."""
        return cls((item, 1) for item in items)

    def __iter__(self) -> Iterator[X]:
        """Each item as often as it holds."""
        return (item for item, n in self.entries for _ in range(n))

    def __len__(self) -> int:
        return sum(n for _, n in self.entries)

    def count(self, item: X) -> int:
        """How often the item holds."""
        return sum(n for other, n in self.entries if other == item)

    def map(self, function: Callable[[X], Y]) -> Snapshot[Y]:
        """The snapshot of the images, multiplicities added."""
        return Snapshot(((function(x), n) for x, n in self.entries), self.ordered)

    def where(self, test: Callable[[X], bool]) -> Snapshot[X]:
        """The items that pass."""
        return Snapshot(((x, n) for x, n in self.entries if test(x)), self.ordered)

    def __add__(self, other: Snapshot[X]) -> Snapshot[X]:
        """The union: multiplicities add."""
        return Snapshot((*self.entries, *other.entries))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and _collected(self.entries) == _collected(other.entries)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Snapshot({list(self.entries)})"


def _collected(entries: Iterable[tuple[X, int]]) -> dict[X, int]:
    counts: dict[X, int] = {}
    for item, n in entries:
        counts[item] = counts.get(item, 0) + n
    return counts


def snapshot(stream: Iterable[Element[X]], t: int) -> Snapshot[X]:
    """tau_t of a physical stream: `phi` at the instant `t`."""
    return Snapshot.of(element.item for element in stream if element.holds(t))


def phi(stream: Sequence[Element[X]]) -> Callable[[int], Snapshot[X]]:
    """Return the logical stream of a physical one, by instant (ESWC 2008, Definition 2)."""
    return lambda t: snapshot(stream, t)


def change_points(stream: Iterable[Element[X]]) -> list[int]:
    """The instants at which a snapshot can differ from the one before."""
    ends = {e.end for e in stream}
    return sorted({e.start for e in stream} | ends - {INFINITY})


def snapshot_equivalent(one: Sequence[Element[X]], other: Sequence[Element[X]]) -> bool:
    """Whether two physical streams have the same `phi`.

    >>> whole, cut = [Element("a", 0, 9)], [Element("a", 0, 4), Element("a", 4, 9)]
    >>> snapshot_equivalent(whole, cut)
    True
    """
    return Counter(coalesce(one)) == Counter(coalesce(other))


def coalesce(stream: Iterable[Element[X]]) -> list[Element[X]]:
    """The canonical form: the k-th row of an item holds exactly where its multiplicity is >= k."""
    steps: dict[X, Counter[int]] = {}
    for item, start, end in stream:
        if start < end:
            changes = steps.setdefault(item, Counter())
            changes[start] += 1
            changes[end] -= 1
    rows = [row for item, changes in steps.items() for row in _levels(item, changes)]
    return sorted(rows, key=lambda row: row.start)


def _levels(item: X, changes: Counter[int]) -> Iterator[Element[X]]:
    open_since: list[int] = []
    for t, change in sorted(changes.items()):
        for _ in range(change):
            open_since.append(t)
        for _ in range(-change):
            yield Element(item, open_since.pop(), t)
