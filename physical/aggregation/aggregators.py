"""Aggregators: the values of aggregates over groups, after each change point.

An aggregator reads an *aggregate input*: all elements or, for DISTINCT, the unions of the
validities of equal ones. The events of an aggregate input in a step are its starting and ending
elements. Totals that several aggregates share, such as the number of elements and their sums, are
computed once per input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from streamsparql.algebra.aggregate_functions import Bag, aggregate
from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.limits import checked
from streamsparql.overriding import override
from streamsparql.physical.aggregation.numeric_sums import NumericSums, Totals
from streamsparql.physical.aggregation.range_min import TermRanks, least_ranks
from streamsparql.physical.batch import MAX_ROWS, Batch, BoolArray, IntArray, check_count
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.kernels.change_points import Sweep
from streamsparql.physical.state.heap import ByEnd, Heap, turned
from streamsparql.physical.state.key_slots import SLOT, SlotCounter
from streamsparql.physical.state.parts import TO_START, NamedRows, PartsByName, Stateful
from streamsparql.physical.state.unions import ValidityUnions

ELEMENTS = "elements"
"""The part of a state with the elements of groups."""


class ColumnAggregate(NamedTuple):
    """An aggregate of a column: the variable it binds, its function, the column.

    `COUNT(*)` has no argument. LATEST, which no query can write, is the greatest stamp.
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
    """Elements by slot, or with `distinct` the unions of the validities of equal elements."""

    def __init__(self, columns: tuple[str, ...], distinct: bool, terms: TermDictionary) -> None:
        self.columns = (SLOT, *columns)
        self.live = ByEnd(self.columns)
        self.rows = SlotCounter()
        """The number of elements of each group."""
        self.unbound: PartsByName[SlotCounter] = PartsByName(SlotCounter)
        """By column, the number of unbound elements."""
        self.sums: PartsByName[NumericSums] = PartsByName(lambda: NumericSums(terms))
        """By column, the sums of the elements."""
        self._unions = ValidityUnions(self.columns) if distinct else None
        self._upcoming = Heap(self.columns)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        parts: dict[str, Stateful] = {ELEMENTS: self.live}
        if self._unions is not None:
            parts |= {TO_START: self._upcoming, "distinct": self._unions}
        return {**parts, "rows": self.rows, "unbound": self.unbound, "sums": self.sums}

    @override
    def content(self) -> Iterator[NamedRows]:
        """Yield the elements with their slots, and distinct elements that start later."""
        yield ELEMENTS, self.live.rows()
        if self._unions is not None:
            yield TO_START, self._upcoming.rows()
            yield from self._unions.content()

    def consume(self, new: Batch, watermark: int) -> tuple[Batch, Batch]:
        """Consume rows; return the elements that start and those that end, before the watermark.

        Those that end are `turned`: their start and end are exchanged.
        """
        new = new.project(self.columns)
        if self._unions is not None:
            self._upcoming.push(self._unions.consume(new, watermark))
            new = self._upcoming.release(watermark - 1)
        self.live.push(turned(new))
        return new, self.live.release(watermark - 1)

    def end(self) -> None:
        """Evict the elements that never end: the input has ended."""
        self.live = ByEnd(self.columns)
        if self._unions is not None:
            self._unions = ValidityUnions(self.columns)


class InputEvents:
    """The events of an aggregate input as a part of a sweep, and their running totals."""

    def __init__(
        self, source: AggregateInput, events: tuple[Batch, Batch], sweep: Sweep, at: int
    ) -> None:
        self.source, self.sweep = source, sweep
        self._new, self._ends, self._at = *events, at
        self._bound: dict[str, IntArray] = {}
        self._sums: dict[str, Totals] = {}
        self._counts = self._padded(np.concatenate([self._new.counts(), -self._ends.counts()]))
        self.rows = source.rows.after(sweep, self._counts)
        """The number of elements of each point's group after the point."""
        if self._new.count is not None:  # then sums may be beyond 64 bits
            total = np.abs(self._counts).sum(dtype=np.float64)
            check_count(max(float(total), int(self.rows.max(initial=0))), MAX_ROWS)

    def _padded(self, own: IntArray) -> IntArray:
        """Return values for all events of the sweep, 0 for those of other inputs."""
        if len(own) == self.sweep.events:
            return own
        padded = np.zeros(self.sweep.events, np.int64)
        padded[self._at : self._at + len(own)] = own
        return padded

    def _ids(self, column: str) -> IntArray:
        both = [self._new.columns[column], self._ends.columns[column]]
        return self._padded(np.concatenate(both))

    def bound(self, column: str) -> IntArray:
        """Return the number of elements with a term in a column, after each point."""
        if column not in self._bound:
            unbound = np.where(self._ids(column) == 0, self._counts, 0)
            counter = self.source.unbound[column]
            self._bound[column] = self.rows - counter.after(self.sweep, unbound)
        return self._bound[column]

    def sums(self, column: str) -> Totals:
        """Return the totals of a column after each point."""
        if column not in self._sums:
            sums, ids = self.source.sums[column], self._ids(column)
            self._sums[column] = sums.after(self.sweep, ids, self._counts, self.rows)
        return self._sums[column]

    def elements(self, slots: IntArray) -> Batch:
        """Return the elements of these slots that hold at a point of the sweep, turned."""
        wanted = np.zeros(self.sweep.capacity, np.bool_)
        wanted[slots] = True
        parts = self.source.live.find(lambda run: wanted[run.columns[SLOT]])
        return Batch.concat([self._ends.where(wanted[self._ends.columns[SLOT]]), *parts])


class Aggregator(ABC):
    """The base of the functions that compute aggregates."""

    def __init__(self, call: ColumnAggregate, terms: TermDictionary) -> None:
        self.call, self.terms = call, terms

    @abstractmethod
    def after(self, events: InputEvents) -> IntArray:
        """Return the ids of the values after each point; 0 for an error."""

    def by_bags(self, events: InputEvents, where: BoolArray) -> IntArray:
        """Return the values after points, each by the definition of the aggregate over its bag.

        `where` is a mask of the points.
        """
        slots, times = events.sweep.slots[where], events.sweep.times[where]
        elements = events.elements(slots)
        elements = elements.take(np.argsort(elements.columns[SLOT], kind="stable"))
        first = elements.columns[SLOT].searchsorted(slots, "left").tolist()
        after = elements.columns[SLOT].searchsorted(slots, "right").tolist()
        ids, counts = elements.column(self.call.argument or SLOT), elements.counts()
        values = np.zeros(len(slots), np.int64)
        for i, t in enumerate(checked(times.tolist())):
            here = slice(first[i], after[i])
            holds = (elements.end[here] <= t) & (t < elements.start[here])
            distinct, code = np.unique(ids[here][holds], return_inverse=True)
            multiplicity = np.zeros(len(distinct), np.int64)
            np.add.at(multiplicity, code, counts[here][holds])
            bag = list(zip(self.terms.terms_of(distinct), multiplicity.tolist(), strict=True))
            values[i] = aggregate_id(self.call, bag, self.terms)
        return values


def aggregate_id(call: ColumnAggregate, bag: Bag, terms: TermDictionary) -> int:
    """Return the id of the value of an aggregate over a bag; 0 for an error.

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
    def after(self, events: InputEvents) -> IntArray:
        column = self.call.argument
        return self.terms.of_integers(events.rows if column is None else events.bound(column))


class Sum(Aggregator):
    """SUM and AVG."""

    @override
    def after(self, events: InputEvents) -> IntArray:
        assert self.call.argument is not None
        totals = events.sums(self.call.argument)
        values, left = totals.averages() if self.call.function == "AVG" else totals.sums()
        if left.any():
            values[left] = self.by_bags(events, left)
        return values


class Extreme(Aggregator):
    """MIN, MAX, SAMPLE (the least value that is not an error), LATEST (the greatest)."""

    @override
    def after(self, events: InputEvents) -> IntArray:
        assert self.call.argument is not None
        sweep, function = events.sweep, self.call.function
        elements = events.elements(sweep.slots[sweep.final])
        first, after = sweep.ranges(elements.columns[SLOT], elements.end, elements.start)
        last, strict = function in ("MAX", "LATEST"), function in ("MIN", "MAX")
        ranked = TermRanks(elements.column(self.call.argument), self.terms, last, strict)
        return ranked.ids(least_ranks(len(sweep), first, after, ranked.ranks))


class Concatenation(Aggregator):
    """GROUP_CONCAT."""

    @override
    def after(self, events: InputEvents) -> IntArray:
        return self.by_bags(events, np.ones(len(events.sweep), np.bool_))


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
"""The aggregator of each function."""
