"""Occurrences: rows about events, and the validities by which they are joined (SEMANTICS.md 7).

An event solution `(mu, ta, tw)` is a row over the instant `[tw, tw + 1)`, at whose start it is
known. The hidden column SINCE has `ta`, as a negative number: `ta - 2**62`, which does not occur
as the id of a term. A *static* solution has no occurrence: its SINCE is -1, and it holds from some
instant on, for ever. So the occurrence of a merged row is the least SINCE and the greatest start of
its parts, without special cases; 0 is a missing SINCE, as in every other column.

Event operators are joins in time over other validities of the same rows:

    instant   [tw, tw + 1)        when the solution becomes known
    held      [tw, ta + X)        while it can be part of an event shorter than the bound X
    after     [tw + 1, ta + X)    while an event that starts after it can complete such an event

`held` rows overlap exactly if their merged row is shorter than X, and the intersection is the
`held` validity of the merged row. An instant is within an `after` row exactly if the pair is in
sequence and shorter than X, if the second event takes no time (else its start decides too).
"""

from __future__ import annotations

import numpy as np

from streamsparql.algebra.streams import INFINITY
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.hidden import SINCE

SHIFT = 1 << 62
"""The difference between the start of an event and its SINCE; stamps are below it."""
STATIC = -1
"""The SINCE of a solution without an occurrence."""


def since_of(starts: IntArray) -> IntArray:
    """Return the SINCE of events that start at these instants.

    >>> starts_of(since_of(np.array([0, 7]))).tolist()
    [0, 7]
    """
    return starts - SHIFT


def starts_of(since: IntArray) -> IntArray:
    """Return the starts of events; meaningless numbers for static solutions."""
    return since + SHIFT


def shown_times(rows: Batch) -> tuple[IntArray, IntArray]:
    """Return the times that users see: the validities of rows, or the occurrences of events.

    >>> rows = Batch({SINCE: since_of(np.array([2]))}, np.array([3]), np.array([4]))
    >>> [times.tolist() for times in shown_times(rows)]
    [[2], [3]]
    """
    if SINCE not in rows.columns:
        return rows.start, rows.end
    return starts_of(rows.columns[SINCE]), rows.start


def with_since(rows: Batch) -> Batch:
    """Return static rows with their SINCE."""
    return rows.with_columns({SINCE: np.full(len(rows), STATIC)})


def static_rows(rows: Batch) -> BoolArray:
    """Return which rows have no occurrence."""
    static: BoolArray = rows.columns[SINCE] == STATIC
    return static


def moving(rows: Batch) -> Batch:
    """Return the rows that have an occurrence."""
    static = static_rows(rows)
    return rows.where(~static) if static.any() else rows


def instants(rows: Batch) -> Batch:
    """Return rows over the instants at which they are known; static ones hold on.

    >>> rows = Batch({SINCE: since_of(np.array([2, 5]))}, np.array([3, 5]), np.array([9, 9]))
    >>> instants(rows).end.tolist()
    [4, 6]
    """
    end = rows.start + 1
    static = static_rows(rows)
    if static.any():
        end[static] = INFINITY
    return rows.over(rows.start, end)


def at_instant(rows: Batch, t: int) -> Batch:
    """Return rows over one instant."""
    start = np.full(len(rows), t)
    return rows.over(start, start + 1)


def held(rows: Batch, bound: int) -> Batch:
    """Return rows over the time in which they can be part of an event shorter than the bound.

    >>> rows = Batch({SINCE: np.array([2 - SHIFT, STATIC])}, np.array([3, 3]), np.array([4, 9]))
    >>> held(rows, 10).end.tolist() == [12, INFINITY]
    True
    """
    end = _until(rows, bound)
    static = static_rows(rows)
    if static.any():
        end[static] = INFINITY
    return _nonempty(rows.over(rows.start, end))


def after(rows: Batch, bound: int) -> Batch:
    """Return rows over the time in which a later event can complete one shorter than the bound.

    Nothing happens after a static row, so there are none.

    >>> rows = Batch({SINCE: np.array([2 - SHIFT, STATIC])}, np.array([3, 3]), np.array([4, 9]))
    >>> later = after(rows, 10)
    >>> later.start.tolist(), later.end.tolist()
    ([4], [12])
    """
    rows = moving(rows)
    return _nonempty(rows.over(rows.start + 1, _until(rows, bound)))


def watermark_after(watermark: int) -> int:
    """Return the watermark of `after` rows, which start one instant later.

    >>> watermark_after(3), watermark_after(INFINITY) == INFINITY
    (4, True)
    """
    return watermark if watermark == INFINITY else watermark + 1


def _until(rows: Batch, bound: int) -> IntArray:
    """Return `ta + bound` of each row; INFINITY without a bound."""
    if bound >= SHIFT:
        return np.full(len(rows), INFINITY)
    return rows.columns[SINCE] + (SHIFT + bound)


def _nonempty(rows: Batch) -> Batch:
    return rows.where(rows.end > rows.start)


def start_in_sequence(one: Batch, i: IntArray, two: Batch, j: IntArray) -> BoolArray:
    """Return which pairs of an `after` row and an instant are in sequence.

    An event that takes time may have started before the first one ended.
    """
    in_sequence: BoolArray = two.columns[SINCE][j] >= one.start[i] - SHIFT
    return in_sequence
