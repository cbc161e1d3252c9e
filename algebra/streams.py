"""Physical streams, logical streams and snapshots (SEMANTICS.md sections 1 and 2).

A *physical stream* is a sequence of elements `(x, [start, end))`, ordered by `start`. A *logical
stream* maps each instant to the multiplicity of each `x` there. `phi` maps a physical stream to its
logical stream; the *snapshot* at an instant is the logical stream's value there, a multiset.

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
"""The end of an unbounded validity: the largest int64."""


class Element(NamedTuple, Generic[X]):
    """An item that holds over the right-open interval `[start, end)` of milliseconds.

    ESWC 2008, Definition 1.
    """

    item: X
    start: int
    end: int

    def holds(self, t: int) -> bool:
        """Return whether the instant `t` is in the interval."""
        return self.start <= t < self.end


class Snapshot(Generic[X]):
    """The multiset of items that hold at one instant; if it was sorted, in that order.

    It is a logical stream (ESWC 2008, Definition 2) at that instant. Equality is that of multisets
    and ignores the order.

    >>> Snapshot.of("aba") == Snapshot([("a", 2), ("b", 1)])
    True
    """

    __slots__ = ("entries", "ordered")

    def __init__(self, entries: Iterable[tuple[X, int]] = (), ordered: bool = False) -> None:
        self.ordered = ordered
        """Whether `entries` are sorted by an ORDER BY; equal items are then not consolidated."""
        self.entries: tuple[tuple[X, int], ...] = tuple(
            entries if ordered else _consolidate(entries).items()
        )

    @classmethod
    def of(cls, items: Iterable[X]) -> Snapshot[X]:
        """Return the snapshot of items, in which a repeated item has its multiplicity."""
        return cls((item, 1) for item in items)

    def __iter__(self) -> Iterator[X]:
        """Iterate over the items, each repeated by its multiplicity."""
        return (item for item, n in self.entries for _ in range(n))

    def __len__(self) -> int:
        return sum(n for _, n in self.entries)

    def count(self, item: X) -> int:
        """Return the multiplicity of an item."""
        return sum(n for other, n in self.entries if other == item)

    def map(self, function: Callable[[X], Y]) -> Snapshot[Y]:
        """Return the snapshot of the images; multiplicities add."""
        return Snapshot(((function(x), n) for x, n in self.entries), self.ordered)

    def where(self, test: Callable[[X], bool]) -> Snapshot[X]:
        """Return the items that satisfy a test."""
        return Snapshot(((x, n) for x, n in self.entries if test(x)), self.ordered)

    def __add__(self, other: Snapshot[X]) -> Snapshot[X]:
        """Return the union; multiplicities add."""
        return Snapshot((*self.entries, *other.entries))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Snapshot):
            return False
        return _consolidate(self.entries) == _consolidate(other.entries)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Snapshot({list(self.entries)})"


def _consolidate(entries: Iterable[tuple[X, int]]) -> dict[X, int]:
    counts: dict[X, int] = {}
    for item, n in entries:
        counts[item] = counts.get(item, 0) + n
    return counts


def snapshot(stream: Iterable[Element[X]], t: int) -> Snapshot[X]:
    """Return tau_t of a physical stream: the value of `phi` at the instant `t`."""
    return Snapshot.of(element.item for element in stream if element.holds(t))


def phi(stream: Sequence[Element[X]]) -> Callable[[int], Snapshot[X]]:
    """Return the logical stream of a physical one, by instant (ESWC 2008, Definition 2)."""
    return lambda t: snapshot(stream, t)


def change_points(stream: Iterable[Element[X]]) -> list[int]:
    """Return the instants at which the snapshot may differ from the one before."""
    ends = {e.end for e in stream}
    return sorted({e.start for e in stream} | ends - {INFINITY})


def snapshot_equivalent(one: Sequence[Element[X]], other: Sequence[Element[X]]) -> bool:
    """Return whether two physical streams have the same `phi`.

    >>> whole, cut = [Element("a", 0, 9)], [Element("a", 0, 4), Element("a", 4, 9)]
    >>> snapshot_equivalent(whole, cut)
    True
    """
    return Counter(coalesce(one)) == Counter(coalesce(other))


def coalesce(stream: Iterable[Element[X]]) -> list[Element[X]]:
    """Return the canonical form: the k-th row of an item holds where its multiplicity is >= k."""
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
