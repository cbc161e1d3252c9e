"""GROUP BY and AGGREGATE: a sweep over change points per group (SEMANTICS.md section 5).

Each element is two events: its start adds it to its group, its end takes it away. In a step the
events before the watermark are put in order of group and time; between two change points of a group
its values stand. COUNT, SUM and AVG are running sums over the events, exact ones (sums.py), so a
step costs what changes in it. MIN, MAX and SAMPLE look at the elements that the changing groups
hold. What is neither, as GROUP_CONCAT or a sum of numbers that are too large, is worked out by
`algebra.aggregate_functions` from the bag of each piece.

A value is a row when the next one is known, or when it is cut. So the watermark trails behind the
oldest value that still stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import ClassVar

import numpy as np

from streamsparql.algebra import group
from streamsparql.algebra.plan import Plan
from streamsparql.overriding import override
from streamsparql.physical.aggregation.aggregates import SLOT, VALUES, Call, Flow, Lane, value_of
from streamsparql.physical.aggregation.small_steps import FEW, Handful, turns
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import is_hidden
from streamsparql.physical.kernels.change_points import Sweep
from streamsparql.physical.kernels.intervals import blocks, firsts
from streamsparql.physical.operator import INFINITY, Operator, Part, Step
from streamsparql.physical.state.key_slots import Slots, grown, order_by
from streamsparql.physical.state.queues import COMING, READY, ByEnd, Queue, in_time, turned

__all__ = ["Aggregation", "Annotate", "Call"]

_MANY = 1024


class Aggregation(Operator):
    """One row per group and piece of time over which its values stand.

    With no keys there is one group from the instant `begin` on, also while it is empty.
    """

    implements: ClassVar[tuple[type[Plan], ...]] = (group.Aggregation,)
    state = "the elements that hold; per group its sums, its values and since when they stand"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        keys: Sequence[str],
        calls: Sequence[Call],
        terms: TermDictionary,
        begin: int = 0,
    ) -> None:
        super().__init__((*keys, *(call.variable for call in calls)), input)
        self.keys, self.calls, self._begin = tuple(keys), tuple(calls), begin
        self._slots = Slots(len(self.keys))
        self._lanes = [Lane(_arguments(calls), False, terms)]
        self._values = [
            (self._lane_of(call, terms), VALUES[call.function](call, terms)) for call in calls
        ]
        self._handful = Handful(self._lanes[0], calls, terms) if Handful.suits(calls) else None
        read = (name for lane in self._lanes for name in lane.columns if name != SLOT)
        self._coming_names = tuple(dict.fromkeys((*keys, *read)))
        self._coming = Queue(self._coming_names)
        self._none = Batch.empty((*self._coming_names, SLOT))
        self._ready = Queue(self.names)
        self._out: list[Batch] = []
        self._since = np.full(self._slots.capacity, INFINITY)
        self._standing = np.zeros((len(calls), self._slots.capacity), np.int64)
        self._gone = 0  # groups, since idle slots were looked for
        if self._always():
            self._slots.of([], 1)
            self._since[0] = begin
            self._standing[:, 0] = [value_of(call, [], terms) for call in calls]

    def _always(self) -> bool:
        """Whether there is a group while there is no row."""
        return not self.keys

    def _lane_of(self, call: Call, terms: TermDictionary) -> int:
        """The place of the lane that a call reads."""
        if not _apart(call):
            return 0
        visible = (name for name in self.inputs[0].names if not is_hidden(name))
        columns = tuple(visible) if call.argument is None else (call.argument,)
        for place, lane in enumerate(self._lanes[1:], 1):
            if lane.columns == (SLOT, *columns):
                return place
        self._lanes.append(Lane(columns, True, terms))
        return len(self._lanes) - 1

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        (watermark,) = watermarks
        batch = batches[0].project(self._coming_names)
        self._advance(in_time(self._coming, batch, watermark - 1), watermark)
        bound = min(watermark, int(self._since[: self._slots.top].min(initial=INFINITY)))
        if bound < watermark and (cut or watermark == INFINITY):
            self._cut(watermark)
            bound = watermark
        if watermark == INFINITY:
            for lane in self._lanes:
                lane.ended()
        return self._released(bound), bound

    def _released(self, bound: int) -> Batch:
        """What starts no later than the bound, of what was put out; the last goes right through."""
        if not self._out:
            return self._ready.release(bound)
        for batch in self._out[:-1]:
            self._ready.push(batch)
        last = self._out[-1].ordered()
        self._out.clear()
        return in_time(self._ready, last, bound)

    def _advance(self, new: Batch, watermark: int) -> None:
        """Takes in what happens before the watermark."""
        if len(new):
            slots = self._slots.of([new.columns[key] for key in self.keys], len(new))
            self._grow()
            new = new.with_columns({SLOT: slots})
        else:
            new = self._none
        events = [lane.take(new, watermark) for lane in self._lanes]
        parts = [batch for pair in events for batch in pair if len(batch)]
        if not parts:
            return
        slots, times = parts[0].columns[SLOT], parts[0].start
        if len(parts) > 1:
            slots = np.concatenate([batch.columns[SLOT] for batch in parts])
            times = np.concatenate([batch.start for batch in parts])
        if self._always():
            times = np.maximum(times, self._begin)
        if not self._by_hand(slots, times, events[0]):
            self._sweep(Sweep(slots, times, self._slots.capacity), events)
        if 8 * self._gone > len(self._slots):
            self._slots.keep(self._since < INFINITY)
            self._gone = 0

    def _by_hand(self, slots: IntArray, times: IntArray, events: tuple[Batch, Batch]) -> bool:
        """Takes in events without a sweep, if they are few and common; says whether they are."""
        if self._handful is None:
            return False
        if len(slots) > FEW:
            self._handful.settle()
            return False
        points = self._handful.after(slots.tolist(), times.tolist(), events)
        if points is None:
            return False
        if self._always():
            points = points._replace(exists=[True] * len(points.exists))
        touched = [*dict.fromkeys(slot for slot, _ in points.at)]
        at = np.array(touched, np.int64)
        before = zip(self._since[at].tolist(), map(tuple, self._standing.take(at, 1).T.tolist()))
        standing = dict(zip(touched, before))
        over = turns(points, standing)
        if over:
            width = 3 + len(self.calls)
            flat = np.fromiter(chain.from_iterable(over), np.int64, width * len(over))
            columns = flat.reshape(-1, width).T.copy()
            self._put(columns[0], columns[1], columns[2], columns[3:])
        since, values = zip(*standing.values(), strict=True)
        self._since[at], self._standing[:, at] = since, np.array(values, np.int64).T
        self._gone += since.count(INFINITY)
        return True

    def _sweep(self, sweep: Sweep, events: Sequence[tuple[Batch, Batch]]) -> None:
        """Takes in the events of each lane."""
        flows, at = [], 0
        for lane, pair in zip(self._lanes, events, strict=True):
            flows.append(Flow(lane, pair, sweep, at))
            at += len(pair[0]) + len(pair[1])
        values = np.empty((len(self._values), len(sweep)), np.int64)
        for row, (place, value) in zip(values, self._values, strict=True):
            row[:] = value.after(flows[place])
        exists = np.ones(len(sweep), np.bool_) if self._always() else flows[0].rows > 0
        self._emit(sweep, exists, values)
        self._gone += int(np.count_nonzero(~exists[sweep.final]))

    def _emit(self, sweep: Sweep, exists: BoolArray, values: IntArray) -> None:
        """Puts out the values that the points end, and keeps those that stand after the last."""
        opened = sweep.slots[sweep.first]
        existed = np.empty(len(sweep), np.bool_)
        existed[1:] = exists[:-1]
        existed[sweep.first] = self._since[opened] < INFINITY
        before = np.empty_like(values)
        before[:, 1:] = values[:, :-1]
        before[:, sweep.first] = self._standing[:, opened]
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
        since[first] = self._since[slots[first]]
        over = (existed[points] & (since < times)).nonzero()[0]
        if len(over):
            self._put(slots[over], since[over], times[over], before[:, points[over]])
        last = np.empty(len(points), np.bool_)
        last[:-1], last[-1] = first[1:], True
        final, slots = points[last], slots[last]
        self._since[slots] = np.where(exists[final], times[last], INFINITY)
        self._standing[:, slots] = values[:, final]

    def _cut(self, watermark: int) -> None:
        """Puts out what stands, up to the watermark."""
        slots = (self._since[: self._slots.top] < watermark).nonzero()[0]
        end = np.full(len(slots), watermark)
        self._put(slots, self._since[slots], end, self._standing[:, slots])
        self._since[slots] = watermark

    def _put(self, slots: IntArray, start: IntArray, end: IntArray, values: IntArray) -> None:
        columns = [*(key[slots] for key in self._slots.columns), *values]
        if len(slots):
            self._out.append(Batch(dict(zip(self.names, columns, strict=True)), start, end))

    def _grow(self) -> None:
        capacity = self._slots.capacity
        if len(self._since) < capacity:
            self._since = grown(self._since, capacity, INFINITY)
            self._standing = grown(self._standing, capacity, 0)

    @override
    def size(self) -> int:
        return len(self._coming) + len(self._ready) + sum(map(len, self._lanes))

    @override
    def content(self) -> Iterator[Part]:
        yield COMING, self._coming.rows()
        yield READY, self._ready.rows()
        for lane in self._lanes:
            for name, rows in lane.content():
                yield name, self._keyed(rows)

    def values(self) -> Batch:
        """The groups that there are: their values, and since when these stand."""
        slots = (self._since[: self._slots.top] < INFINITY).nonzero()[0]
        columns = [*(key[slots] for key in self._slots.columns), *self._standing[:, slots]]
        until = np.full(len(slots), INFINITY)
        named = dict(zip(self.names, columns, strict=True))
        return Batch(named, self._since[slots], until).ordered()

    def _keyed(self, rows: Batch) -> Batch:
        """The rows with the keys of their slots."""
        slots = rows.columns[SLOT]
        keys = {n: key[slots] for n, key in zip(self.keys, self._slots.columns, strict=True)}
        columns = {name: ids for name, ids in rows.columns.items() if name != SLOT}
        return Batch({**keys, **columns}, rows.start, rows.end, rows.count)

    @override
    def held(self) -> Iterator[IntArray]:
        yield from self._coming.held()
        yield from self._ready.held()
        yield from self._slots.held(self._since < INFINITY)
        yield from self._standing[:, self._since < INFINITY]
        for lane in self._lanes:
            yield from lane.held()


class Annotate(Operator):
    """Adds to each row the value of its group, which the rows themselves make up.

    A value of a group is joined with the rows of the group when it is over: all rows that started
    before its end are known by then. So the values need not be kept, and a row is kept until the
    values are known up to its end.
    """

    implements = (group.Annotate,)
    state = "the rows that hold, twice, and per group its sums and its value"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        keys: Sequence[str],
        call: Call,
        terms: TermDictionary,
    ) -> None:
        super().__init__((*input.names, call.variable), input)
        self._groups = Aggregation(input, keys, [call], terms)
        self._slots = Slots(len(keys))
        self._settled = 0  # how many slots there were when idle ones were last looked for
        self._coming, self._rows = Queue(input.names), ByEnd((*input.names, SLOT))
        self._ready = Queue(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        batch = batches[0].project(self.inputs[0].names)
        new = in_time(self._coming, batch, watermarks[0] - 1)
        if len(new):
            self._rows.push(turned(new.with_columns({SLOT: self._slots_of(new)})))
        values, known = self._groups.step(batches, watermarks, cut)
        if len(values):
            self._meet(values)
        self._rows.release(known)
        if len(self._slots) > 2 * self._settled + _MANY:
            self._settle()
        return self._ready.release(known), known

    def _slots_of(self, rows: Batch) -> IntArray:
        return self._slots.of([rows.columns[key] for key in self._groups.keys], len(rows))

    def _settle(self) -> None:
        """Frees the slots of groups that have no rows."""
        alive = np.zeros(self._slots.capacity, np.bool_)
        for run in self._rows.runs():
            alive[run.columns[SLOT]] = True
        self._slots.keep(alive)
        self._settled = len(self._slots)

    def _meet(self, values: Batch) -> None:
        """Puts out each row with each value of its group, for as long as both hold."""
        of_value = self._slots_of(values)
        changed = np.zeros(self._slots.capacity, np.bool_)
        changed[of_value] = True
        rows = Batch.concat(self._rows.find(lambda run: changed[run.columns[SLOT]]))
        order = order_by(of_value, self._slots.capacity)
        first = of_value[order].searchsorted(rows.columns[SLOT], "left")
        count = of_value[order].searchsorted(rows.columns[SLOT], "right") - first
        rows, (call,) = rows.project(self.inputs[0].names), self._groups.calls
        for row, place in blocks(first, count):
            value = order[place]
            start = np.maximum(rows.end[row], values.start[value])
            end = np.minimum(rows.start[row], values.end[value])
            some = start < end
            met = rows.take(row[some]).over(start[some], end[some])
            found = values.columns[call.variable][value[some]]
            self._ready.push(met.with_columns({call.variable: found}))

    @override
    def size(self) -> int:
        return len(self._coming) + len(self._rows) + len(self._ready) + self._groups.size()

    @override
    def content(self) -> Iterator[Part]:
        names = self.inputs[0].names
        yield COMING, self._coming.rows()
        yield "rows that hold", turned(self._rows.rows()).project(names).ordered()
        yield READY, self._ready.rows()
        for name, rows in self._groups.content():
            yield f"groups: {name}", rows

    def values(self) -> Batch:
        """The groups that there are: their values, and since when these stand."""
        return self._groups.values()

    @override
    def held(self) -> Iterator[IntArray]:
        for part in (self._coming, self._ready, self._groups):
            yield from part.held()
        for run in self._rows.runs():
            yield from (run.columns[name] for name in self.inputs[0].names)


def _apart(call: Call) -> bool:
    """Whether DISTINCT makes a difference."""
    return call.distinct and call.function not in ("MIN", "MAX", "SAMPLE")


def _arguments(calls: Sequence[Call]) -> tuple[str, ...]:
    """The columns that are read of all rows."""
    return tuple(dict.fromkeys(c.argument for c in calls if c.argument and not _apart(c)))
