"""COUNT, SUM and AVG over a step with few events, in plain Python.

A sweep over arrays needs some 150 calls of numpy, which take as long for 20 events as for 2,000;
live runs have many small steps. The most common work, counting elements and adding doubles, is done
here event by event, with the same results. The totals of groups are copied from the state of the
sweeps as Python integers, which are as exact as limbs (exact_sums.py), and written back before the
next sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add, itemgetter
from typing import NamedTuple

import numpy as np

from streamsparql.algebra.streams import INFINITY
from streamsparql.physical.aggregation.aggregators import AggregateInput, ColumnAggregate
from streamsparql.physical.aggregation.numeric_sums import LARGEST_COUNT, LARGEST_GROUP
from streamsparql.physical.batch import Batch, IdRow
from streamsparql.physical.dictionary.inline_ids import INTEGER_BASE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary

MOST_EVENTS = 128
"""Up to this number of events, Python is faster than arrays."""


class Points(NamedTuple):
    """Change points in the order of time: slot and time, whether the group exists, its values."""

    at: list[tuple[int, int]]
    exists: list[bool]
    values: list[IdRow]


class SmallSteps:
    """The totals of groups by slot, to which events are added.

    They are the number of elements, the number of terms in each column that is counted and not
    summed, and the sums of the other columns.
    """

    def __init__(
        self, elements: AggregateInput, calls: Sequence[ColumnAggregate], terms: TermDictionary
    ) -> None:
        self._elements, self._calls, self._terms = elements, calls, terms
        arguments = [(call.function != "COUNT", call.argument) for call in calls]
        self._summed = [*dict.fromkeys(name for sums, name in arguments if sums and name)]
        counted = dict.fromkeys(name for sums, name in arguments if not sums and name)
        self._counted = [name for name in counted if name not in self._summed]
        self._groups: dict[int, IdRow] = {}

    @staticmethod
    def supports(calls: Iterable[ColumnAggregate]) -> bool:
        """Return whether small steps can compute these aggregates."""
        return all(call.function in ("COUNT", "SUM", "AVG") and not call.distinct for call in calls)

    def after(
        self, slots: list[int], times: list[int], events: tuple[Batch, Batch]
    ) -> Points | None:
        """Apply the events of a small step; return None if they require a sweep."""
        deltas = self._deltas(events)
        if deltas is None or not self._copy(slots):
            self.settle()
            return None
        groups, after = self._groups, {}
        changes = zip(slots, times, zip(*deltas, strict=True), strict=True)
        for slot, time, change in sorted(changes, key=itemgetter(1)):
            after[slot, time] = groups[slot] = (*map(add, groups[slot], change),)
        rows, *others = zip(*after.values(), strict=True)
        if max(rows) > LARGEST_GROUP // 2:
            self.settle()
        return Points([*after], [n > 0 for n in rows], self._values(rows, others))

    def _deltas(self, events: tuple[Batch, Batch]) -> list[list[int]] | None:
        """Return the change of the group's totals by each event; None for uncommon events."""
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
            numbers = self._elements.sums[name].numbers(ids)
            if numbers is None:
                return None
            deltas.append([i * n for i, n in zip(numbers, count, strict=True)])
        return deltas

    def _values(self, rows: IdRow, others: list[IdRow]) -> list[IdRow]:
        """Return the ids of the values of the aggregates."""
        by_name = dict(zip([*self._counted, *self._summed], others, strict=True))
        values_of: list[list[int]] = []
        for call in self._calls:
            numbers = by_name.get(call.argument or "", rows)
            if call.function == "COUNT":
                counts = numbers if call.argument in self._counted else rows
                values_of.append([n + INTEGER_BASE for n in counts])
                continue
            values = self._elements.sums[call.argument or ""].exact([*numbers]).doubles()
            if call.function == "AVG":
                values = values / np.maximum(rows, 1)
            ids: list[int] = self._terms.of_doubles(values).tolist()
            if 0 in rows:
                ids = [i if n else INTEGER_BASE for i, n in zip(ids, rows, strict=True)]
            values_of.append(ids)
        return [*zip(*values_of, strict=True)] if values_of else [()] * len(rows)

    def _copy(self, slots: list[int]) -> bool:
        """Copy the totals of these slots; return False if groups are too large."""
        missed = [*dict.fromkeys(slot for slot in slots if slot not in self._groups)]
        if missed:
            at = np.array(missed, np.int64)
            rows = self._elements.rows.of(at)
            if max(rows) > LARGEST_GROUP // 2:
                return False
            unbound = (self._elements.unbound[name].of(at) for name in self._counted)
            bound = ([a - b for a, b in zip(rows, none, strict=True)] for none in unbound)
            sums = (self._elements.sums[name].of(at) for name in self._summed)
            self._groups.update(zip(missed, zip(rows, *bound, *sums, strict=True), strict=True))
        return True

    def settle(self) -> None:
        """Write the totals of the groups back."""
        if self._groups:
            at = np.array([*self._groups], np.int64)
            rows, *others = map(list, zip(*self._groups.values(), strict=True))
            self._elements.rows.put(at, rows)
            for name, numbers in zip([*self._counted, *self._summed], others, strict=True):
                if name in self._summed:
                    self._elements.sums[name].put(at, numbers)
                else:
                    none = [a - b for a, b in zip(rows, numbers, strict=True)]
                    self._elements.unbound[name].put(at, none)
            self._groups.clear()


def replaced_values(points: Points, current: dict[int, tuple[int, IdRow]]) -> list[IdRow]:
    """Return the values that end at points, as tuples of slot, start, end and ids.

    `current` has the start and the ids of the values by slot; it is updated to the end of the step.

    >>> points = Points([(0, 5), (0, 8)], [True, True], [(1,), (2,)])
    >>> current = {0: (3, (1,))}
    >>> replaced_values(points, current), current
    ([(0, 3, 8, 1)], {0: (8, (2,))})
    """
    ended: list[IdRow] = []
    for (slot, time), exists, values in zip(*points, strict=True):
        since, before = current[slot]
        if exists and since < INFINITY and values == before:
            continue
        if since < time:
            ended.append((slot, since, time, *before))
        current[slot] = (time, values) if exists else (INFINITY, before)
    return ended
