"""COUNT, SUM and AVG over a step with a handful of events, in plain Python.

A sweep over arrays is some 150 calls of numpy, which take as long for 20 events as for 2,000; live
use has many small steps. So what most of them do, count elements and add doubles, is done here
event by event, to the same end. What groups come to is taken over from the state of the sweeps, in
Python's integers, which are as exact as limbs (sums.py). It is given back before the next sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add, itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from streamsparql.algebra.streams import INFINITY
from streamsparql.physical.aggregation.aggregators import AggregateInput, ColumnAggregate
from streamsparql.physical.aggregation.numeric_sums import LARGEST_COUNT, LARGEST_GROUP
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.inline_ids import INTEGER_BASE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary

MOST_EVENTS = 128
"""Up to so many events Python is faster than arrays."""

Ids: TypeAlias = tuple[int, ...]


class Points(NamedTuple):
    """Change points in the order of time: slots and times, what there is then, and the values."""

    at: list[tuple[int, int]]
    exists: list[bool]
    values: list[Ids]


class SmallSteps:
    """Groups by slot, as numbers that events add to.

    These are how many elements there are, how many have a term in each column that is counted and
    not summed, and the sums of the others.
    """

    def __init__(
        self, lane: AggregateInput, calls: Sequence[ColumnAggregate], terms: TermDictionary
    ) -> None:
        self._lane, self._calls, self._terms = lane, calls, terms
        arguments = [(call.function != "COUNT", call.argument) for call in calls]
        self._summed = [*dict.fromkeys(name for sums, name in arguments if sums and name)]
        counted = dict.fromkeys(name for sums, name in arguments if not sums and name)
        self._counted = [name for name in counted if name not in self._summed]
        self._groups: dict[int, Ids] = {}

    @staticmethod
    def suits(calls: Iterable[ColumnAggregate]) -> bool:
        """Whether these are calls that it can work out."""
        return all(call.function in ("COUNT", "SUM", "AVG") and not call.distinct for call in calls)

    def after(
        self, slots: list[int], times: list[int], events: tuple[Batch, Batch]
    ) -> Points | None:
        """What comes of few events, new elements and ends; None if that is for a sweep to find."""
        deltas = self._deltas(events)
        if deltas is None or not self._know(slots):
            self.settle()
            return None
        groups, found = self._groups, {}
        changes = zip(slots, times, zip(*deltas, strict=True), strict=True)
        for slot, time, change in sorted(changes, key=itemgetter(1)):
            found[slot, time] = groups[slot] = (*map(add, groups[slot], change),)
        rows, *others = zip(*found.values(), strict=True)
        if max(rows) > LARGEST_GROUP // 2:
            self.settle()
        return Points([*found], [n > 0 for n in rows], self._values(rows, others))

    def _deltas(self, events: tuple[Batch, Batch]) -> list[list[int]] | None:
        """What each event adds to the numbers of its group; None if there are uncommon ones."""
        new, ends = events
        count: list[int] = [1] * len(new) if new.count is None else new.count.tolist()
        count += [-1] * len(ends) if ends.count is None else (-ends.count).tolist()
        if max(count) > LARGEST_COUNT or min(count) < -LARGEST_COUNT:
            return None
        deltas = [count]
        for name in self._counted:
            ids = new.columns[name].tolist() + ends.columns[name].tolist()
            deltas.append([n if i else 0 for i, n in zip(ids, count, strict=True)])
        for name in self._summed:
            ids = new.columns[name].tolist() + ends.columns[name].tolist()
            numbers = self._lane.sums[name].numbers(ids)
            if numbers is None:
                return None
            deltas.append([i * n for i, n in zip(numbers, count, strict=True)])
        return deltas

    def _values(self, rows: Ids, others: list[Ids]) -> list[Ids]:
        """The ids of the values of the calls."""
        by_name = dict(zip([*self._counted, *self._summed], others, strict=True))
        found = []
        for call in self._calls:
            numbers = by_name.get(call.argument or "", rows)
            if call.function == "COUNT":
                counts = numbers if call.argument in self._counted else rows
                found.append([n + INTEGER_BASE for n in counts])
                continue
            values = self._lane.sums[call.argument or ""].exact([*numbers]).doubles()
            if call.function == "AVG":
                values = values / np.maximum(rows, 1)
            ids: list[int] = self._terms.of_doubles(values).tolist()
            if 0 in rows:
                ids = [i if n else INTEGER_BASE for i, n in zip(ids, rows, strict=True)]
            found.append(ids)
        return [*zip(*found, strict=True)] if found else [()] * len(rows)

    def _know(self, slots: list[int]) -> bool:
        """Takes over the groups of these slots, which must not be too large."""
        missed = [*dict.fromkeys(slot for slot in slots if slot not in self._groups)]
        if missed:
            at = np.array(missed, np.int64)
            rows = self._lane.rows.of(at)
            if max(rows) > LARGEST_GROUP // 2:
                return False
            unbound = (self._lane.unbound[name].of(at) for name in self._counted)
            bound = ([a - b for a, b in zip(rows, none, strict=True)] for none in unbound)
            sums = (self._lane.sums[name].of(at) for name in self._summed)
            self._groups.update(zip(missed, zip(rows, *bound, *sums, strict=True), strict=True))
        return True

    def settle(self) -> None:
        """Gives the groups back."""
        if self._groups:
            at = np.array([*self._groups], np.int64)
            rows, *others = map(list, zip(*self._groups.values(), strict=True))
            self._lane.rows.put(at, rows)
            for name, numbers in zip([*self._counted, *self._summed], others, strict=True):
                if name in self._summed:
                    self._lane.sums[name].put(at, numbers)
                else:
                    none = [a - b for a, b in zip(rows, numbers, strict=True)]
                    self._lane.unbound[name].put(at, none)
            self._groups.clear()


def turns(points: Points, standing: dict[int, tuple[int, Ids]]) -> list[Ids]:
    """The values that points end, each a slot, a start, an end and ids.

    `standing` is by slot since when values stand, and which; it becomes what it is in the end.

    >>> points = Points([(0, 5), (0, 8)], [True, True], [(1,), (2,)])
    >>> standing = {0: (3, (1,))}
    >>> turns(points, standing), standing
    ([(0, 3, 8, 1)], {0: (8, (2,))})
    """
    over: list[Ids] = []
    for (slot, time), exists, values in zip(*points, strict=True):
        since, before = standing[slot]
        if exists and since < INFINITY and values == before:
            continue
        if since < time:
            over.append((slot, since, time, *before))
        standing[slot] = (time, values) if exists else (INFINITY, before)
    return over
