"""The latest start of the events that ended before an instant, per key.

It decides whether an event lies between two others: there is one exactly if, of the events with
its key that ended before the second one starts, the latest start is after the end of the first.

Events that ended before a *cut* are folded into one number per key. Later ones are retained, with
the latest start so far of their key. Questions are about instants from the cut on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import NEVER, Batch, BoolArray, IntArray
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.intervals import (
    TimeCodes,
    by_group_and_time,
    firsts,
    running_max,
)
from streamsparql.physical.kernels.occurrences import starts_of
from streamsparql.physical.state.key_slots import SLOT, KeySlots, grown
from streamsparql.physical.state.parts import (
    NamedRows,
    RowBuffer,
    Stateful,
    arrays_of,
    is_of_terms,
    table_of_arrays,
)

_START = "#start"


class LatestStarts(Stateful):
    """The latest starts of events with the columns `keys`.

    >>> from streamsparql.physical.kernels.occurrences import since_of
    >>> starts = LatestStarts(["x"])
    >>> rows = {"x": np.array([7, 7]), SINCE: since_of(np.array([3, 5]))}
    >>> starts.add(Batch(rows, np.array([3, 6]), np.array([4, 7])))
    >>> starts.before([np.array([7, 7, 8])], np.array([6, 7, 9])).tolist() == [3, 5, NEVER]
    True
    """

    scalars = ("_entered",)
    encoded = ("_latest",)

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._slots = KeySlots(len(keys))
        self._latest = np.full(self._slots.capacity, NEVER)
        self._recent = RowBuffer((SLOT, _START))
        self._entered = 0  # the number of events since idle keys were dropped

    def add(self, rows: Batch) -> None:
        """Add events, in any order."""
        if not len(rows):
            return
        slots = self._slots.of([rows.columns[name] for name in self._keys], len(rows))
        if len(self._latest) < self._slots.capacity:
            self._latest = grown(self._latest, self._slots.capacity, NEVER)
        self._entered += len(rows)
        columns = {SLOT: slots, _START: starts_of(rows.columns[SINCE])}
        recent = Batch(columns, rows.start, rows.end)
        self._recent.batch = Batch.concat([self._recent.batch, recent])

    def fold(self, cut: int) -> None:
        """Fold the events that ended before `cut`."""
        recent = self._recent.batch
        old = recent.start < cut
        if old.any():
            np.maximum.at(self._latest, recent.columns[SLOT][old], recent.columns[_START][old])
            self._recent.batch = recent.where(~old)

    def forget_before(self, t: int) -> None:
        """Drop the keys without an event that started at `t` or later, from time to time."""
        if 8 * self._entered <= len(self._slots) and t < INFINITY - 1:
            return
        self._entered = 0
        alive = self._latest >= t
        alive[self._recent.batch.columns[SLOT]] = True
        self._latest[~alive] = NEVER
        self._slots.keep(alive)

    def folded(self, columns: Sequence[IntArray], rows: int) -> IntArray:
        """Return the latest starts of the folded events with these keys; NEVER without one."""
        slots = self._slots.find(columns, rows)
        return np.where(slots < 0, NEVER, self._latest[slots])

    def before(self, columns: Sequence[IntArray], instants: IntArray) -> IntArray:
        """Return the latest starts of the events with these keys that ended before instants."""
        slots = self._slots.find(columns, len(instants))
        latest = np.where(slots < 0, NEVER, self._latest[slots])
        recent = self._recent.batch
        if not len(recent) or not len(instants):
            return latest
        order = by_group_and_time(recent.columns[SLOT], recent.start)
        of_recent, ends = recent.columns[SLOT][order], recent.start[order]
        groups = np.cumsum(firsts(of_recent)) - 1
        so_far = running_max(groups, recent.columns[_START][order])
        codes = TimeCodes(ends, self._slots.capacity)
        composite = of_recent * codes.span + codes.of(ends)
        place = composite.searchsorted(slots * codes.span + codes.of(instants)) - 1
        known = (place >= 0) & (slots >= 0)
        known &= of_recent[place] == slots
        return np.where(known, np.maximum(latest, so_far[place]), latest)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"keys": self._slots, "recent": self._recent}

    def _known(self) -> BoolArray:
        return self._latest > NEVER

    @override
    def size(self) -> int:
        return int(np.count_nonzero(self._known())) + len(self._recent)

    @override
    def content_as(self, name: str) -> Iterator[NamedRows]:
        (known,) = self._known().nonzero()
        recent = self._recent.batch
        slots = np.concatenate([known, recent.columns[SLOT]])
        start = np.concatenate([self._latest[known], recent.columns[_START]])
        keys = zip(self._keys, self._slots.columns, strict=True)
        columns = {key: column[slots] for key, column in keys}
        yield name, Batch(columns, start, np.full(len(slots), INFINITY)).ordered()

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        alive = self._known()
        alive[self._recent.batch.columns[SLOT]] = True
        for name, ids in zip(self._keys, self._slots.retained(alive), strict=True):
            if is_of_terms(name):
                yield ids

    @override
    def own_table(self) -> pa.Table:
        slots = self._slots.used()
        return table_of_arrays({SLOT: slots, "latest": self._latest[slots]})

    @override
    def restore_own(self, table: pa.Table) -> None:
        slots, latest = arrays_of(table).values()
        self._latest = np.full(self._slots.capacity, NEVER)
        self._latest[slots] = latest
