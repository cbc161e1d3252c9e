"""GROUP BY and AGGREGATE: a sweep over change points per group (SEMANTICS.md section 5).

Each element is two events: its start adds it to its group, its end removes it. In a step the events
before the watermark are sorted by group and time; between two change points of a group its values
are constant. COUNT, SUM and AVG are running sums over the events, which are exact (exact_sums.py),
so the cost of a step is that of its events. MIN, MAX and SAMPLE read the elements of the changing
groups. Other aggregates, such as GROUP_CONCAT or a sum of very large numbers, are evaluated by the
definition (`algebra.aggregate_functions`) over the bag of each piece.

A value is emitted when the next one is known, or at a cut. So the watermark stays at the start of
the oldest current value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import ClassVar

import numpy as np

from streamsparql.algebra import group
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY
from streamsparql.limits import check_rows
from streamsparql.overriding import override
from streamsparql.physical.aggregation.aggregators import (
    AGGREGATORS,
    AggregateInput,
    ColumnAggregate,
    InputEvents,
    aggregate_id,
)
from streamsparql.physical.aggregation.group_values import GroupValues
from streamsparql.physical.aggregation.small_steps import MOST_EVENTS, SmallSteps, replaced_values
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import is_hidden
from streamsparql.physical.kernels.change_points import Sweep
from streamsparql.physical.kernels.intervals import firsts, pairs_in_blocks
from streamsparql.physical.kernels.keys import stable_order
from streamsparql.physical.operator import Operator, StepResult
from streamsparql.physical.state.heap import ByEnd, Heap, turned
from streamsparql.physical.state.key_slots import SLOT, KeySlots
from streamsparql.physical.state.parts import TO_BE_EMITTED, TO_START, NamedRows, Stateful, Tables

__all__ = ["Aggregation", "Annotate", "ColumnAggregate"]

_LEAST = 1024  # the number of slots before idle ones are freed
_HOLD = "rows that hold"


class Aggregation(Operator):
    """One row per group and piece of time over which its values are constant.

    Without keys there is one group, which exists even while it is empty. If `whole`, each row is
    emitted as soon as it ends, though rows with an earlier start may follow, and no row is cut.
    """

    implements: ClassVar[tuple[type[Plan], ...]] = (group.Aggregation,)
    state = "the elements that hold; per group its sums, its values and their start"
    encoded = ("_small_steps",)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        keys: Sequence[str],
        calls: Sequence[ColumnAggregate],
        terms: TermDictionary,
    ) -> None:
        super().__init__((*keys, *(call.variable for call in calls)), input)
        self.keys, self.calls = tuple(keys), tuple(calls)
        self.whole = False
        self._groups = GroupValues(len(self.keys), list(map(str, calls)))
        self._elements = [AggregateInput(_arguments(calls), False, terms)]
        self._aggregators = [
            (self._elements_of(call, terms), AGGREGATORS[call.function](call, terms))
            for call in calls
        ]
        self._small_steps = (
            SmallSteps(self._elements[0], calls, terms) if SmallSteps.supports(calls) else None
        )
        read = (name for one in self._elements for name in one.columns if name != SLOT)
        self._upcoming_names = tuple(dict.fromkeys((*keys, *read)))
        self._upcoming = Heap(self._upcoming_names)
        self._none = Batch.empty((*self._upcoming_names, SLOT))
        self._ready = Heap(self.names)
        self._out: list[Batch] = []
        if self._always_exists():
            self._groups.slots_of([], 1)
            self._groups.since[0] = 0
            self._groups.values[:, 0] = [aggregate_id(call, [], terms) for call in calls]

    @override
    def parts(self) -> Mapping[str, Stateful]:
        parts = {TO_START: self._upcoming, TO_BE_EMITTED: self._ready, "groups": self._groups}
        return {**parts, **{f"input {k}": one for k, one in enumerate(self._elements)}}

    @override
    def save(self) -> Tables:
        if self._small_steps is not None:
            self._small_steps.settle()
        return super().save()

    @override
    def content(self) -> Iterator[NamedRows]:
        for name, rows in super().content():
            yield name, self._keyed(rows) if SLOT in rows.columns else rows

    def _always_exists(self) -> bool:
        """Return whether the only group exists even without rows."""
        return not self.keys

    def _elements_of(self, call: ColumnAggregate, terms: TermDictionary) -> int:
        """Return the place of the elements that an aggregate reads."""
        if not _has_own_elements(call):
            return 0
        visible = (name for name in self.inputs[0].names if not is_hidden(name))
        columns = tuple(visible) if call.argument is None else (call.argument,)
        for place, elements in enumerate(self._elements[1:], 1):
            if elements.columns == (SLOT, *columns):
                return place
        self._elements.append(AggregateInput(columns, True, terms))
        return len(self._elements) - 1

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        (watermark,) = watermarks
        batch = batches[0].project(self._upcoming_names)
        self._advance(self._upcoming.through([batch], watermark - 1), watermark)
        bound = min(watermark, self._groups.first())
        if bound < watermark and ((cut and not self.whole) or watermark == INFINITY):
            self._cut(watermark)
            bound = watermark
        if watermark == INFINITY:
            for elements in self._elements:
                elements.end()
        return self._released(INFINITY if self.whole else bound), bound

    def _released(self, bound: int) -> Batch:
        """Return the results that start up to the bound; the last batch may pass through."""
        if not self._out:
            return self._ready.release(bound)
        for batch in self._out[:-1]:
            self._ready.push(batch)
        last = self._out[-1].ordered()
        self._out.clear()
        return self._ready.through([last], bound)

    def _advance(self, new: Batch, watermark: int) -> None:
        """Apply the events before the watermark."""
        if len(new):
            slots = self._groups.slots_of([new.columns[key] for key in self.keys], len(new))
            new = new.with_columns({SLOT: slots})
        else:
            new = self._none
        events = [elements.consume(new, watermark) for elements in self._elements]
        parts = [batch for pair in events for batch in pair if len(batch)]
        if not parts:
            return
        slots, times = parts[0].columns[SLOT], parts[0].start
        if len(parts) > 1:
            slots = np.concatenate([batch.columns[SLOT] for batch in parts])
            times = np.concatenate([batch.start for batch in parts])
        if not self._small_step(slots, times, events[0]):
            self._sweep(Sweep(slots, times, self._groups.slots.capacity), events)

    def _small_step(self, slots: IntArray, times: IntArray, events: tuple[Batch, Batch]) -> bool:
        """Apply events without a sweep if there are few, all common; return whether it did."""
        if self._small_steps is None:
            return False
        if len(slots) > MOST_EVENTS:
            self._small_steps.settle()
            return False
        points = self._small_steps.after(slots.tolist(), times.tolist(), events)
        if points is None:
            return False
        if self._always_exists():
            points = points._replace(exists=[True] * len(points.exists))
        touched = [*dict.fromkeys(slot for slot, _ in points.at)]
        at = np.array(touched, np.int64)
        groups = self._groups
        before = zip(groups.since[at].tolist(), map(tuple, groups.values.take(at, 1).T.tolist()))
        current = dict(zip(touched, before))
        ended = replaced_values(points, current)
        if ended:
            width = 3 + len(self.calls)
            flat = np.fromiter(chain.from_iterable(ended), np.int64, width * len(ended))
            columns = flat.reshape(-1, width).T.copy()
            self._append_output(columns[0], columns[1], columns[2], columns[3:])
        since, values = zip(*current.values(), strict=True)
        groups.since[at], groups.values[:, at] = since, np.array(values, np.int64).T
        groups.end(since.count(INFINITY))
        return True

    def _sweep(self, sweep: Sweep, events: Sequence[tuple[Batch, Batch]]) -> None:
        """Apply events by a sweep."""
        inputs, at = [], 0
        for elements, pair in zip(self._elements, events, strict=True):
            inputs.append(InputEvents(elements, pair, sweep, at))
            at += len(pair[0]) + len(pair[1])
        values = np.empty((len(self._aggregators), len(sweep)), np.int64)
        for row, (place, aggregator) in zip(values, self._aggregators, strict=True):
            row[:] = aggregator.after(inputs[place])
        exists = np.ones(len(sweep), np.bool_) if self._always_exists() else inputs[0].rows > 0
        self._emit(sweep, exists, values)
        self._groups.end(int(np.count_nonzero(~exists[sweep.final])))

    def _emit(self, sweep: Sweep, exists: BoolArray, values: IntArray) -> None:
        """Emit the values that end at the points; the values after the last points are current."""
        current_since, current = self._groups.since, self._groups.values
        opened = sweep.slots[sweep.first]
        existed = np.empty(len(sweep), np.bool_)
        existed[1:] = exists[:-1]
        existed[sweep.first] = current_since[opened] < INFINITY
        before = np.empty_like(values)
        before[:, 1:] = values[:, :-1]
        before[:, sweep.first] = current[:, opened]
        changed = (values != before).any(axis=0)
        changed &= exists
        changed |= exists != existed
        points = changed.nonzero()[0]
        if not len(points):
            return
        slots, times = sweep.slots[points], sweep.times[points]
        first = firsts(slots)
        since = np.empty(len(points), np.int64)
        since[1:] = times[:-1]
        since[first] = current_since[slots[first]]
        ended = (existed[points] & (since < times)).nonzero()[0]
        if len(ended):
            self._append_output(slots[ended], since[ended], times[ended], before[:, points[ended]])
        last = np.empty(len(points), np.bool_)
        last[:-1], last[-1] = first[1:], True
        final, slots = points[last], slots[last]
        current_since[slots] = np.where(exists[final], times[last], INFINITY)
        current[:, slots] = values[:, final]

    def _cut(self, watermark: int) -> None:
        """Emit the current values up to the watermark."""
        groups = self._groups
        slots = groups.standing(watermark)
        end = np.full(len(slots), watermark)
        self._append_output(slots, groups.since[slots], end, groups.values[:, slots])
        groups.since[slots] = watermark

    def _append_output(
        self, slots: IntArray, start: IntArray, end: IntArray, values: IntArray
    ) -> None:
        columns = [*(key[slots] for key in self._groups.slots.columns), *values]
        if len(slots):
            self._out.append(Batch(dict(zip(self.names, columns, strict=True)), start, end))

    def values(self) -> Batch:
        """Return the groups with their current values, and since when these hold."""
        groups = self._groups
        slots = groups.standing()
        columns = [*(key[slots] for key in groups.slots.columns), *groups.values[:, slots]]
        until = np.full(len(slots), INFINITY)
        named = dict(zip(self.names, columns, strict=True))
        return Batch(named, groups.since[slots], until).ordered()

    def _keyed(self, rows: Batch) -> Batch:
        """Return rows with the keys of their slots."""
        slots = rows.columns[SLOT]
        keys = {n: key[slots] for n, key in zip(self.keys, self._groups.slots.columns, strict=True)}
        columns = {name: ids for name, ids in rows.columns.items() if name != SLOT}
        return Batch({**keys, **columns}, rows.start, rows.end, rows.count)


class Annotate(Operator):
    """The rows with the value of their group, which consists of the same rows.

    A value is joined with the rows of its group when it ends: all rows that start before its end
    are known then. So values are not retained, and a row is retained until the values are known up
    to its end.
    """

    implements = (group.Annotate,)
    state = "the rows that hold, twice, and per group its sums and its value"
    scalars = ("_used_slots",)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        keys: Sequence[str],
        call: ColumnAggregate,
        terms: TermDictionary,
    ) -> None:
        super().__init__((*input.names, call.variable), input)
        self._groups = Aggregation(input, keys, [call], terms)
        self._slots = KeySlots(len(keys))
        self._used_slots = 0  # the number of slots after idle ones were last freed
        self._upcoming, self._rows = Heap(input.names), ByEnd((*input.names, SLOT))
        self._ready = Heap(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        batch = batches[0].project(self.inputs[0].names)
        new = self._upcoming.through([batch], watermarks[0] - 1)
        if len(new):
            self._rows.push(turned(new.with_columns({SLOT: self._slots_of(new)})))
        values, known = self._groups.step(batches, watermarks, cut)
        if len(values):
            self._join(values)
        self._rows.release(known)
        if len(self._slots) > 2 * self._used_slots + _LEAST:
            self._free_slots()
        return self._ready.release(known), known

    def _slots_of(self, rows: Batch) -> IntArray:
        return self._slots.of([rows.columns[key] for key in self._groups.keys], len(rows))

    def _free_slots(self) -> None:
        """Free the slots of groups without rows."""
        alive = np.zeros(self._slots.capacity, np.bool_)
        for run in self._rows.runs():
            alive[run.columns[SLOT]] = True
        self._slots.keep(alive)
        self._used_slots = len(self._slots)

    def _join(self, values: Batch) -> None:
        """Emit each row with each value of its group, over the intersection."""
        of_value = self._slots_of(values)
        changed = np.zeros(self._slots.capacity, np.bool_)
        changed[of_value] = True
        rows = Batch.concat(self._rows.find(lambda run: changed[run.columns[SLOT]]))
        order = stable_order(of_value, self._slots.capacity)
        first = of_value[order].searchsorted(rows.columns[SLOT], "left")
        count = of_value[order].searchsorted(rows.columns[SLOT], "right") - first
        rows, (call,) = rows.project(self.inputs[0].names), self._groups.calls
        for row, place in pairs_in_blocks(first, count):
            check_rows(len(row), len(self.names))
            value = order[place]
            start = np.maximum(rows.end[row], values.start[value])
            end = np.minimum(rows.start[row], values.end[value])
            overlap = start < end
            joined = rows.take(row[overlap]).over(start[overlap], end[overlap])
            ids = values.columns[call.variable][value[overlap]]
            self._ready.push(joined.with_columns({call.variable: ids}))

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {
            TO_START: self._upcoming,
            _HOLD: self._rows,
            TO_BE_EMITTED: self._ready,
            "keys": self._slots,
            "groups": self._groups,
        }

    @override
    def content(self) -> Iterator[NamedRows]:
        for name, part in self.parts().items():
            for inner, rows in part.content_as(name):
                yield f"{name}: {inner}" if part is self._groups else inner, rows

    def values(self) -> Batch:
        """Return the groups with their current values, and since when these hold."""
        return self._groups.values()


def _has_own_elements(call: ColumnAggregate) -> bool:
    """Return whether an aggregate reads its own set of distinct elements."""
    return call.distinct and call.function not in ("MIN", "MAX", "SAMPLE")


def _arguments(calls: Sequence[ColumnAggregate]) -> tuple[str, ...]:
    """Return the columns of arguments that are read from all rows."""
    return tuple(
        dict.fromkeys(c.argument for c in calls if c.argument and not _has_own_elements(c))
    )
