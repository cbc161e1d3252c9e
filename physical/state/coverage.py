"""The coverage of left rows by matches, for the left join, MINUS and EXISTS.

Each left row `[start, end)` has matches, each over a part of its validity. Where a match holds, the
row is *covered*; the other parts are its *gaps*. So

    SemiJoin  = the covered parts            AntiJoin, Minus = the gaps
    Mark      = both, each with its boolean  LeftJoin        = the matches, and the gaps

A match with a later right row starts at D, the watermark of the right input, or after it. So all
matches before D are known, and a single instant per row is enough: `covered`, up to which its parts
were emitted. The matches that start before D are visited in the order of their start:

          start                                              D      end
    row     |===================================================......|
    matches      |------|  |---|     |--|
                    |---------|
    parts   ^gap^|covered  |cov|^gap^|co|^ open gap ...
                                        ^ covered

A match that starts after `covered` ends a gap. A match that ends after `covered` adds a covered
part and moves `covered` to the *greatest* end of the matches so far, since a short match may follow
a long one (SEMANTICS.md R9). Matches that start at D or later wait. When a row ends by D, its
remaining part is its last gap, and the row is evicted.

A gap is emitted once its end is known, so it may start long before other parts of the same step.
While a gap is open, no result that starts after it may be released: the *release bound* is the
least of the watermarks of the inputs and the starts of the open gaps. With `cut`, open gaps are
emitted up to D, and continue from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, BoolArray, IntArray
from streamsparql.physical.kernels.intervals import RowSpans, split_by_coverage
from streamsparql.physical.state.heap import Heap
from streamsparql.physical.state.parts import (
    NamedRows,
    Stateful,
    arrays_of,
    table_of_arrays,
)

LEFT_ROW = "#left row"
"""The column with which rows of a sweep area refer to rows of the coverage."""
FIRST_ROW = -(1 << 62)
"""The first row number: numbers are negative, so they are never ids of dictionary entries."""

UNDECIDED = "undecided"
"""The part with the rows that may still be covered."""

COVERAGE = "coverage"
"""The name of this part of a state."""

_END, _COUNT, _COVERED, _NUMBER = _OWN = ("#end", "#count", "#covered", "#number")
_TO_START = "pending matches"


class Emitted(NamedTuple):
    """The output of a step: gaps and covered parts of rows, and the release bound."""

    gaps: Batch
    covered: Batch
    bound: int


class Coverage(Stateful):
    """The live left rows, each with the instant up to which its parts were emitted.

    This instant is the covered end of ESWC 2008, Algorithm 5, corrected (R9).

    >>> coverage = Coverage(["x"])
    >>> coverage.add(Batch({"x": np.array([7])}, np.array([0]), np.array([10])), np.array([1]))
    >>> coverage.match(np.array([1]), np.array([2]), np.array([4]))
    >>> emitted = coverage.emit((6, 6), cut=False)
    >>> emitted.gaps, emitted.gaps.end.tolist(), emitted.bound
    (Batch(1 rows of x), [2], 4)
    >>> coverage.emit((INFINITY, INFINITY), cut=False).gaps.start.tolist()
    [4]
    """

    scalars = ("_counted",)
    encoded = ("_live",)
    derived = ("_ascending", "_at", "_bound", "_ended")

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._live = _Table((*names, *_OWN))
        self._ended = 0
        self._counted = False
        self._ascending = True
        self._matches: list[Batch] = []
        self._waiting = Heap([LEFT_ROW])
        self._at: tuple[int, int] | None = None
        self._bound = 0
        self._nothing = Batch.empty(names)

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {_TO_START: self._waiting}

    @override
    def size(self) -> int:
        return len(self._live) - self._ended + len(self._waiting)

    @override
    def content(self) -> Iterator[NamedRows]:
        """Yield the undecided rest of each live row, and the matches that start later."""
        numbers, end = self._live[_NUMBER], self._live[_END]
        columns = {name: self._live[name] for name in self._names}
        live = Batch(columns, self._live[_COVERED], end, self._live[_COUNT])
        yield UNDECIDED, live.take(self._alive())
        waiting = self._waiting.rows()
        order = np.argsort(numbers, kind="stable")
        at = order[np.searchsorted(numbers, waiting.columns[LEFT_ROW], sorter=order)]
        matched = {name: column[at] for name, column in columns.items()}
        yield _TO_START, Batch(matched, waiting.start, waiting.end)

    @override
    def retained_ids(self) -> Iterator[IntArray]:
        return (self._live[name] for name in self._names)

    def _alive(self) -> IntArray:
        """Return the places of the rows that have not ended."""
        return self._live[_COUNT].nonzero()[0]

    @override
    def own_table(self) -> pa.Table:
        alive = self._alive()
        named = {f"?{name}": self._live[name][alive] for name in self._names}
        return table_of_arrays({**named, **{own: self._live[own][alive] for own in _OWN}})

    @override
    def restore_own(self, table: pa.Table) -> None:
        arrays = arrays_of(table)
        if list(arrays) != [*(f"?{name}" for name in self._names), *_OWN]:
            self._refuse(f"the columns are {', '.join(arrays)}")
        self._live.append([*arrays.values()])
        numbers = arrays[_NUMBER]
        self._ascending = bool((numbers[1:] > numbers[:-1]).all())

    def add(self, rows: Batch, numbers: IntArray) -> None:
        """Add left rows, each with a number that no other live row has."""
        if not len(rows):
            return
        self._at = None
        self._counted = self._counted or rows.count is not None
        last = self._live[_NUMBER][-1:]
        followed = np.concatenate([last, numbers])
        self._ascending = self._ascending and bool((followed[1:] > followed[:-1]).all())
        own = [rows.end, rows.counts(), rows.start, numbers]
        self._live.append([*(rows.column(name) for name in self._names), *own])

    def match(self, numbers: IntArray, start: IntArray, end: IntArray) -> None:
        """Add matches: the numbers of their left rows, and the parts of time in which they hold."""
        if len(numbers):
            self._at = None
            self._matches.append(Batch({LEFT_ROW: numbers}, start, end))

    def emit(self, watermarks: tuple[int, int], cut: bool) -> Emitted:
        """Emit the parts that became final, in any order."""
        if self._at == watermarks and not cut:
            return Emitted(self._nothing, self._nothing, self._bound)
        known = watermarks[1]
        gaps, covered = self._visit(known)
        gaps.append(self._end(known))
        covered_until = self._live[_COVERED]
        if cut:
            (open_gaps,) = (covered_until < known).nonzero()
            until = np.full(len(open_gaps), known)
            gaps.append(self._rows((open_gaps, covered_until[open_gaps], until)))
            covered_until[open_gaps] = known
        self._at = watermarks
        self._bound = min(*watermarks, int(covered_until.min(initial=INFINITY)))
        return Emitted(Batch.concat(gaps), covered, self._bound)

    def _visit(self, known: int) -> tuple[list[Batch], Batch]:
        """Visit the matches that start before `known`; the others wait."""
        if len(self._waiting):
            self._matches.append(self._waiting.release(known - 1))
        if not self._matches:
            return [], self._nothing
        matches = Batch.concat(self._matches)
        self._matches = []
        early = matches.start < known
        if not early.all():
            self._waiting.push(matches.where(~early))
            matches = matches.where(early)
        covered_until = self._live[_COVERED]
        place = self._places(matches.columns[LEFT_ROW])
        parts = split_by_coverage(place, matches.start, matches.end, covered_until)
        covered_until[parts.place] = parts.until
        return [self._rows(parts.gaps)], self._rows(parts.covered)

    def _places(self, numbers: IntArray) -> IntArray:
        """Return the places of the live rows with these numbers."""
        known = self._live[_NUMBER]
        if self._ascending:
            if int(known[-1]) - int(known[0]) < len(known):
                places: IntArray = numbers - known[0]
                return places
            return np.searchsorted(known, numbers)
        order = np.argsort(known, kind="stable")
        return np.asarray(order[np.searchsorted(known, numbers, sorter=order)])

    def _end(self, known: int) -> Batch:
        """Evict the rows that end by `known`; return their last gaps.

        Evicted rows have a count of 0, and are removed once they are more than half of all.
        """
        end, covered_until, count = (self._live[name] for name in (_END, _COVERED, _COUNT))
        (ended,) = (end <= known).nonzero()
        if not len(ended):
            return self._nothing
        gap = ended[covered_until[ended] < end[ended]]
        last_gaps = self._rows((gap, covered_until[gap], end[gap]))
        end[ended] = covered_until[ended] = INFINITY
        count[ended] = 0
        self._ended += len(ended)
        if known == INFINITY:
            self._live.clear()
            self._ended, self._ascending = 0, True
        elif 2 * self._ended > len(self._live):
            self._live.keep(count > 0)
            self._ended = 0
        return last_gaps

    def _rows(self, spans: RowSpans) -> Batch:
        place, start, end = spans
        if not len(place):
            return self._nothing
        columns = {name: self._live[name][place] for name in self._names}
        return Batch(columns, start, end, self._live[_COUNT][place] if self._counted else None)


class _Table:
    """Columns that grow at their end, in arrays with spare room: a row costs O(1) amortised."""

    def __init__(self, names: Sequence[str]) -> None:
        self._size = 0
        self._arrays = {name: np.empty(64, np.int64) for name in names}

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, name: str) -> IntArray:
        return self._arrays[name][: self._size]

    def append(self, columns: Sequence[IntArray]) -> None:
        """Add rows at the end, with their columns in order."""
        at, self._size = self._size, self._size + len(columns[0])
        for (name, array), column in zip(self._arrays.items(), columns, strict=True):
            if len(array) < self._size:
                array = np.empty(2 * self._size, np.int64)
                array[:at] = self._arrays[name][:at]
                self._arrays[name] = array
            array[at : self._size] = column

    def keep(self, mask: BoolArray) -> None:
        """Remove the rows where the mask is false."""
        kept = {name: self[name][mask] for name in self._arrays}
        self._size = int(mask.sum())
        self._arrays = kept

    def clear(self) -> None:
        """Remove all rows."""
        self._size = 0
        self._arrays = {name: np.empty(64, np.int64) for name in self._arrays}
