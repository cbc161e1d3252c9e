"""What is worked out over a group, after each of its change points.

Aggregates read the elements of a *lane*: all elements of the input or, for DISTINCT, the pieces of
time over which a group holds a value at all. A lane's events in a step are its *flow*. What several
aggregates share, how many elements there are and what they add up to, is kept once per lane.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from streamsparql.algebra.aggregate_functions import Bag, aggregate
from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.overriding import override
from streamsparql.physical.aggregation.numeric_sums import NumberSums, Totals
from streamsparql.physical.aggregation.range_min import Ranked, least
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.kernels.change_points import SlotCounter, Sweep
from streamsparql.physical.operator import Part
from streamsparql.physical.state.queues import COMING, ByEnd, Unions, turned

HOLD = "elements"
"""What the elements are called that groups are made of."""

SLOT = ".slot"
"""The column of an element that tells its group's slot."""


class Call(NamedTuple):
    """An aggregate: the variable it binds, its function, the column of its argument.

    `COUNT(*)` has no argument. LATEST is the greatest stamp of a set's rows.
    """

    variable: str
    function: str
    argument: str | None = None
    distinct: bool = False
    separator: str | None = None


class Lane:
    """Elements by slot, with these columns; `distinct` ones hold where any equal one does."""

    def __init__(self, columns: tuple[str, ...], distinct: bool, terms: TermDictionary) -> None:
        self.columns, self.terms = (SLOT, *columns), terms
        self.live = ByEnd(self.columns)
        self.rows = SlotCounter()
        self._unbound: dict[str, SlotCounter] = {}
        self._sums: dict[str, NumberSums] = {}
        self._unions = Unions(self.columns) if distinct else None
        self._coming = ByEnd(self.columns)

    def take(self, new: Batch, watermark: int) -> tuple[Batch, Batch]:
        """What starts and what ends before the watermark; the latter turned round."""
        new = new.project(self.columns)
        if self._unions is not None:
            self._coming.push(self._unions.take(new, watermark))
            new = self._coming.release(watermark - 1)
        self.live.push(turned(new))
        return new, self.live.release(watermark - 1)

    def __len__(self) -> int:
        waiting = 0 if self._unions is None else len(self._unions)
        return len(self.live) + len(self._coming) + waiting

    def unbound_of(self, column: str) -> SlotCounter:
        """How many elements have no term in a column."""
        if column not in self._unbound:
            self._unbound[column] = SlotCounter()
        return self._unbound[column]

    def sums_of(self, column: str) -> NumberSums:
        """What a column adds up to."""
        if column not in self._sums:
            self._sums[column] = NumberSums(self.terms)
        return self._sums[column]

    def ended(self) -> None:
        """Drops what never ends: the end of the input has come."""
        self.live = ByEnd(self.columns)
        if self._unions is not None:
            self._unions = Unions(self.columns)

    def content(self) -> Iterator[Part]:
        """The elements that hold; of distinct ones also those to start, and until when they do."""
        yield HOLD, turned(self.live.rows()).ordered()
        if self._unions is not None:
            yield COMING, self._coming.rows()
            yield from self._unions.content()

    def held(self) -> list[IntArray]:
        """The term ids of the elements."""
        names = [name for name in self.columns if name != SLOT]
        runs = [*self.live.runs(), *self._coming.runs()]
        return [run.columns[name] for run in runs for name in names]


class Flow:
    """A lane's events in a sweep, of which they are a part, and what they come to."""

    def __init__(self, lane: Lane, events: tuple[Batch, Batch], sweep: Sweep, at: int) -> None:
        self.lane, self.sweep = lane, sweep
        self._new, self._ends, self._at = *events, at
        self._bound: dict[str, IntArray] = {}
        self._sums: dict[str, Totals] = {}
        self._counts = self._wide(np.concatenate([self._new.counts(), -self._ends.counts()]))
        self.rows = lane.rows.after(sweep, self._counts)
        """How many elements there are after each point."""

    def _wide(self, some: IntArray) -> IntArray:
        """Of the events of all lanes, 0 for those of others."""
        if len(some) == self.sweep.events:
            return some
        wide = np.zeros(self.sweep.events, np.int64)
        wide[self._at : self._at + len(some)] = some
        return wide

    def _ids(self, column: str) -> IntArray:
        both = [self._new.columns[column], self._ends.columns[column]]
        return self._wide(np.concatenate(both))

    def bound(self, column: str) -> IntArray:
        """How many elements have a term in a column after each point."""
        if column not in self._bound:
            none = np.where(self._ids(column) == 0, self._counts, 0)
            self._bound[column] = self.rows - self.lane.unbound_of(column).after(self.sweep, none)
        return self._bound[column]

    def sums(self, column: str) -> Totals:
        """What a column adds up to after each point."""
        if column not in self._sums:
            kept = self.lane.sums_of(column)
            self._sums[column] = kept.after(self.sweep, self._ids(column), self._counts, self.rows)
        return self._sums[column]

    def elements(self, slots: IntArray) -> Batch:
        """The elements of some slots that hold at one of the points, turned round."""
        some = np.zeros(self.sweep.capacity, np.bool_)
        some[slots] = True
        parts = self.lane.live.find(lambda run: some[run.columns[SLOT]])
        return Batch.concat([self._ends.where(some[self._ends.columns[SLOT]]), *parts])


class Value(ABC):
    """An aggregate as it is worked out."""

    def __init__(self, call: Call, terms: TermDictionary) -> None:
        self.call, self.terms = call, terms

    @abstractmethod
    def after(self, flow: Flow) -> IntArray:
        """The ids of its values after each point; 0 where it is an error."""

    def by_bags(self, flow: Flow, some: BoolArray) -> IntArray:
        """The values after some of the points, each from all that holds there."""
        slots, times = flow.sweep.slots[some], flow.sweep.times[some]
        found = flow.elements(slots)
        found = found.take(np.argsort(found.columns[SLOT], kind="stable"))
        first = found.columns[SLOT].searchsorted(slots, "left").tolist()
        after = found.columns[SLOT].searchsorted(slots, "right").tolist()
        ids, counts = found.column(self.call.argument or SLOT), found.counts()
        values = np.zeros(len(slots), np.int64)
        for i, t in enumerate(times.tolist()):
            here = slice(first[i], after[i])
            holds = (found.end[here] <= t) & (t < found.start[here])
            distinct, code = np.unique(ids[here][holds], return_inverse=True)
            times_ = np.zeros(len(distinct), np.int64)
            np.add.at(times_, code, counts[here][holds])
            bag = list(zip(self.terms.terms_of(distinct), times_.tolist(), strict=True))
            values[i] = value_of(self.call, bag, self.terms)
        return values


def value_of(call: Call, bag: Bag, terms: TermDictionary) -> int:
    """The id of an aggregate's value over a bag; 0 where it is an error.

    >>> value_of(Call("n", "MIN", "x"), [], TermDictionary())
    0
    """
    try:
        return terms.id_of(aggregate(call.function, bag, False, call.separator))
    except ExpressionError:
        return 0


class Count(Value):
    """COUNT: errors do not count."""

    @override
    def after(self, flow: Flow) -> IntArray:
        column = self.call.argument
        return self.terms.of_integers(flow.rows if column is None else flow.bound(column))


class Sum(Value):
    """SUM and AVG."""

    @override
    def after(self, flow: Flow) -> IntArray:
        assert self.call.argument is not None
        totals = flow.sums(self.call.argument)
        values, some = totals.averages() if self.call.function == "AVG" else totals.sums()
        if some.any():
            values[some] = self.by_bags(flow, some)
        return values


class Extreme(Value):
    """MIN, MAX, SAMPLE, which is the first of what is no error, and LATEST, the last of that."""

    @override
    def after(self, flow: Flow) -> IntArray:
        assert self.call.argument is not None
        sweep, function = flow.sweep, self.call.function
        found = flow.elements(sweep.slots[sweep.final])
        first, after = sweep.ranges(found.columns[SLOT], found.end, found.start)
        last, strict = function in ("MAX", "LATEST"), function in ("MIN", "MAX")
        ranked = Ranked(found.column(self.call.argument), self.terms, last, strict)
        return ranked.ids(least(len(sweep), first, after, ranked.ranks))


class Concatenation(Value):
    """GROUP_CONCAT."""

    @override
    def after(self, flow: Flow) -> IntArray:
        return self.by_bags(flow, np.ones(len(flow.sweep), np.bool_))


VALUES: dict[str, type[Value]] = {
    "COUNT": Count,
    "SUM": Sum,
    "AVG": Sum,
    "MIN": Extreme,
    "MAX": Extreme,
    "SAMPLE": Extreme,
    "LATEST": Extreme,
    "GROUP_CONCAT": Concatenation,
}
"""How each function is worked out."""
