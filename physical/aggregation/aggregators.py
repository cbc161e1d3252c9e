"""What is worked out over a group, after each of its change points.

Aggregates read the elements of a *lane*: all elements of the input or, for DISTINCT, the pieces of
time over which a group holds a value at all. A lane's events in a step are its *flow*. What several
aggregates share, how many elements there are and what they add up to, is kept once per lane.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from streamsparql.algebra.aggregates import Bag, aggregate
from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.overriding import override
from streamsparql.physical.aggregation.numeric_sums import NumericSums, Totals
from streamsparql.physical.aggregation.range_min import TermRanks, least_ranks
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.kernels.change_points import Sweep
from streamsparql.physical.state.heap import ByEnd, Heap, turned
from streamsparql.physical.state.key_slots import SLOT, SlotCounter
from streamsparql.physical.state.parts import TO_START, NamedRows, PartsByName, Stateful
from streamsparql.physical.state.unions import ValidityUnions

ELEMENTS = "elements"
"""The part of a state with the elements that groups consist of."""


class ColumnAggregate(NamedTuple):
    """An aggregate: the variable it binds, its function, the column of its argument.

    `COUNT(*)` has no argument. LATEST is the greatest stamp of a set's rows.
    """

    variable: str
    function: str
    argument: str | None = None
    distinct: bool = False
    separator: str | None = None

    def __str__(self) -> str:
        distinct = "DISTINCT " if self.distinct else ""
        separator = "" if self.separator is None else f"; {self.separator!r}"
        return f"{self.function}({distinct}{self.argument or '*'}{separator}) AS {self.variable}"


class AggregateInput(Stateful):
    """Elements by slot, with these columns; `distinct` ones hold where any equal one does."""

    def __init__(self, columns: tuple[str, ...], distinct: bool, terms: TermDictionary) -> None:
        self.columns = (SLOT, *columns)
        self.live = ByEnd(self.columns)
        self.rows = SlotCounter()
        """How many elements each group has."""
        self.unbound: PartsByName[SlotCounter] = PartsByName(SlotCounter)
        """By column, how many elements have no term there."""
        self.sums: PartsByName[NumericSums] = PartsByName(lambda: NumericSums(terms))
        """By column, what the elements add up to."""
        self._unions = ValidityUnions(self.columns) if distinct else None
        self._coming = Heap(self.columns)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        parts: dict[str, Stateful] = {ELEMENTS: self.live}
        if self._unions is not None:
            parts |= {TO_START: self._coming, "distinct": self._unions}
        return {**parts, "rows": self.rows, "unbound": self.unbound, "sums": self.sums}

    @override
    def content(self) -> Iterator[NamedRows]:
        """Yield the elements, with their slots; of distinct ones also those to start."""
        yield ELEMENTS, self.live.rows()
        if self._unions is not None:
            yield TO_START, self._coming.rows()
            yield from self._unions.content()

    def take(self, new: Batch, watermark: int) -> tuple[Batch, Batch]:
        """What starts and what ends before the watermark; the latter turned round."""
        new = new.project(self.columns)
        if self._unions is not None:
            self._coming.push(self._unions.consume(new, watermark))
            new = self._coming.release(watermark - 1)
        self.live.push(turned(new))
        return new, self.live.release(watermark - 1)

    def ended(self) -> None:
        """Drops what never ends: the end of the input has come."""
        self.live = ByEnd(self.columns)
        if self._unions is not None:
            self._unions = ValidityUnions(self.columns)


class InputEvents:
    """A lane's events in a sweep, of which they are a part, and what they come to."""

    def __init__(
        self, lane: AggregateInput, events: tuple[Batch, Batch], sweep: Sweep, at: int
    ) -> None:
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
            self._bound[column] = self.rows - self.lane.unbound[column].after(self.sweep, none)
        return self._bound[column]

    def sums(self, column: str) -> Totals:
        """What a column adds up to after each point."""
        if column not in self._sums:
            kept = self.lane.sums[column]
            self._sums[column] = kept.after(self.sweep, self._ids(column), self._counts, self.rows)
        return self._sums[column]

    def elements(self, slots: IntArray) -> Batch:
        """The elements of some slots that hold at one of the points, turned round."""
        some = np.zeros(self.sweep.capacity, np.bool_)
        some[slots] = True
        parts = self.lane.live.find(lambda run: some[run.columns[SLOT]])
        return Batch.concat([self._ends.where(some[self._ends.columns[SLOT]]), *parts])


class Aggregator(ABC):
    """An aggregate as it is worked out."""

    def __init__(self, call: ColumnAggregate, terms: TermDictionary) -> None:
        self.call, self.terms = call, terms

    @abstractmethod
    def after(self, flow: InputEvents) -> IntArray:
        """The ids of its values after each point; 0 where it is an error."""

    def by_bags(self, flow: InputEvents, some: BoolArray) -> IntArray:
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
            values[i] = aggregate_id(self.call, bag, self.terms)
        return values


def aggregate_id(call: ColumnAggregate, bag: Bag, terms: TermDictionary) -> int:
    """The id of an aggregate's value over a bag; 0 where it is an error.

    >>> aggregate_id(ColumnAggregate("n", "MIN", "x"), [], TermDictionary())
    0
    """
    try:
        return terms.id_of(aggregate(call.function, bag, False, call.separator))
    except ExpressionError:
        return 0


class Count(Aggregator):
    """COUNT: errors do not count."""

    @override
    def after(self, flow: InputEvents) -> IntArray:
        column = self.call.argument
        return self.terms.of_integers(flow.rows if column is None else flow.bound(column))


class Sum(Aggregator):
    """SUM and AVG."""

    @override
    def after(self, flow: InputEvents) -> IntArray:
        assert self.call.argument is not None
        totals = flow.sums(self.call.argument)
        values, some = totals.averages() if self.call.function == "AVG" else totals.sums()
        if some.any():
            values[some] = self.by_bags(flow, some)
        return values


class Extreme(Aggregator):
    """MIN, MAX, SAMPLE, which is the first of what is no error, and LATEST, the last of that."""

    @override
    def after(self, flow: InputEvents) -> IntArray:
        assert self.call.argument is not None
        sweep, function = flow.sweep, self.call.function
        found = flow.elements(sweep.slots[sweep.final])
        first, after = sweep.ranges(found.columns[SLOT], found.end, found.start)
        last, strict = function in ("MAX", "LATEST"), function in ("MIN", "MAX")
        ranked = TermRanks(found.column(self.call.argument), self.terms, last, strict)
        return ranked.ids(least_ranks(len(sweep), first, after, ranked.ranks))


class Concatenation(Aggregator):
    """GROUP_CONCAT."""

    @override
    def after(self, flow: InputEvents) -> IntArray:
        return self.by_bags(flow, np.ones(len(flow.sweep), np.bool_))


AGGREGATORS: dict[str, type[Aggregator]] = {
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
