"""Sort keys: the columns by which rows are sorted, and Python values of their terms (R8, R14).

Terms are sorted by Python values (`algebra/order.py`). The key of a row is one flat tuple, which
Python compares without calls; numbers of a descending key are negated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import total_ordering
from numbers import Rational
from operator import add
from typing import Any, NamedTuple

from streamsparql.algebra.order import comparison_key, order_key
from streamsparql.algebra.terms import Term
from streamsparql.limits import checked
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.state.ranked_rows import RowSortKey


class Ranking(NamedTuple):
    """The columns by which rows are sorted: keys with a flag for descending order, tie breakers."""

    keys: tuple[tuple[str, bool], ...]
    ties: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in order."""
        return (*(name for name, _ in self.keys), *self.ties)

    def others(self, names: Iterable[str]) -> list[str]:
        """Return the columns by which rows are not sorted.

        >>> Ranking((("x", False),), ("y",)).others(["x", "z"])
        ['z']
        """
        own = frozenset(self.columns)
        return [name for name in names if name not in own]


@total_ordering
class Down:
    """A part of a key with the reverse order.

    >>> sorted([Down(1), Down(2)])[0].part
    2
    """

    __slots__ = ("part",)

    def __init__(self, part: Any) -> None:
        self.part = part

    def __lt__(self, other: Down) -> bool:
        return bool(other.part < self.part)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Down) and bool(self.part == other.part)

    def __hash__(self) -> int:
        return hash(self.part)


def descending_key(term: Term | None) -> RowSortKey:
    """Return the `comparison_key` of a term for descending order.

    >>> from streamsparql.algebra.terms import integer
    >>> descending_key(integer(2)) < descending_key(integer(1)) < descending_key(None)
    True
    """
    return tuple(map(_down, comparison_key(term)))


def _down(part: Any) -> Any:
    """Return a part of a key reversed: numbers negated exactly, others as `Down`."""
    if isinstance(part, float | Rational):
        return -part
    return part.copy_negate() if isinstance(part, Decimal) else Down(part)


class SortKeys:
    """The sort keys of rows; those of terms are memoised.

    >>> import numpy as np
    >>> from streamsparql.algebra.terms import integer
    >>> terms = TermDictionary()
    >>> ids = np.array([terms.id_of(integer(k)) for k in (1, 3, 2)])
    >>> rows = Batch({"x": ids}, np.zeros(3, np.int64), np.ones(3, np.int64))
    >>> up, down = (Ranking((("x", way),), ()) for way in (False, True))
    >>> keys = [SortKeys(ranking, terms).of(rows) for ranking in (up, down)]
    >>> [sorted(range(3), key=each.__getitem__) for each in keys]
    [[0, 2, 1], [1, 2, 0]]
    """

    def __init__(self, ranking: Ranking, terms: TermDictionary) -> None:
        self._terms = terms
        ways = [(name, descending_key if down else comparison_key) for name, down in ranking.keys]
        ways += [(name, order_key) for name in ranking.ties]
        self._columns = ways
        self._known: dict[Callable[..., RowSortKey], dict[int, RowSortKey]] = {
            way: {} for _, way in ways
        }

    def of(self, batch: Batch) -> list[RowSortKey]:
        """Return the key of each row; no part of a key is a prefix of the same part of another."""
        keys: list[RowSortKey] = [()] * len(batch)
        for name, way in self._columns:
            keys = list(map(add, keys, self._of_terms(batch.columns[name], way)))
        return keys

    def _of_terms(
        self, ids: IntArray, way: Callable[[Term | None], RowSortKey]
    ) -> list[RowSortKey]:
        known = self._known[way]
        if len(known) > _MAX_MEMOISED:
            known.clear()
        listed = ids.tolist()
        for term in checked(listed):
            if term not in known:
                known[term] = way(self._terms.term_of(term))
        return [known[term] for term in listed]

    def forget(self) -> None:
        """Drop the keys that are memoised by id."""
        for known in self._known.values():
            known.clear()


_MAX_MEMOISED = 1 << 15


def sort_keys(ranking: Ranking, batch: Batch, terms: TermDictionary) -> list[RowSortKey]:
    """Return the sort key of each row of a batch."""
    return SortKeys(ranking, terms).of(batch)
