"""The current values of groups, and the instants at which they started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.state.key_slots import SLOT, KeySlots, grown
from streamsparql.physical.state.parts import Stateful, arrays_of, table_of_arrays


class GroupValues(Stateful):
    """Groups by slot: their keys, the values of their aggregates, and the starts of the values.

    >>> groups = GroupValues(1, ["COUNT(*)"])
    >>> slots = groups.slots_of([np.array([7])], 1)
    >>> groups.since[slots], groups.values[:, slots] = 5, 9
    >>> groups.standing().tolist() == slots.tolist(), groups.first()
    (True, 5)
    """

    scalars = ("_ended",)
    encoded = ("since", "values")

    def __init__(self, keys: int, aggregates: Sequence[str]) -> None:
        self.slots = KeySlots(keys)
        self._aggregates = tuple(aggregates)
        self.since = np.full(self.slots.capacity, INFINITY)
        """The instants at which the values started, by slot; INFINITY for slots without a group."""
        self.values = np.zeros((len(aggregates), self.slots.capacity), np.int64)
        """The term ids of the values, a row for each aggregate."""
        self._ended = 0

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {"keys": self.slots}

    def slots_of(self, keys: Sequence[IntArray], rows: int) -> IntArray:
        """Return the slots of rows with these keys; a new group gets a new slot."""
        slots = self.slots.of(keys, rows)
        capacity = self.slots.capacity
        if len(self.since) < capacity:
            self.since = grown(self.since, capacity, INFINITY)
            self.values = grown(self.values, capacity, 0)
        return slots

    def first(self) -> int:
        """Return the instant at which the oldest value started; INFINITY without groups."""
        return int(self.since[: self.slots.top].min(initial=INFINITY))

    def standing(self, before: int = INFINITY) -> IntArray:
        """Return the slots of the groups whose values started before an instant."""
        return (self.since[: self.slots.top] < before).nonzero()[0]

    def end(self, groups: int) -> None:
        """Count groups that have ended; free their slots once many have."""
        self._ended += groups
        if 8 * self._ended > len(self.slots):
            self.slots.keep(self._exist())
            self._ended = 0

    def _exist(self) -> BoolArray:
        return self.since < INFINITY

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        exist = self._exist()
        yield from self.slots.retained(exist)
        yield from self.values[:, exist]

    @override
    def own_table(self) -> pa.Table:
        slots = self.slots.used()
        names = self._table_names()
        values = dict(zip(names, self.values[:, slots], strict=True))
        return table_of_arrays({SLOT: slots, "since": self.since[slots], **values})

    def _table_names(self) -> list[str]:
        return [f"?{k} {aggregate}" for k, aggregate in enumerate(self._aggregates)]

    @override
    def restore_own(self, table: pa.Table) -> None:
        arrays = arrays_of(table)
        slots, since, *values = arrays.values()
        names = list(arrays)[2:]
        if names != self._table_names():
            self._refuse(f"the values are {names}; expected {self._table_names()}")
        self.since = grown(self.since[:0], self.slots.capacity, INFINITY)
        self.values = grown(self.values[:, :0], self.slots.capacity, 0)
        self.since[slots] = since
        for mine, ids in zip(self.values, values, strict=True):
            mine[slots] = ids
