"""Areas of rows and of bands: which of many range conditions a value satisfies.

A *band* is a row with borders, such as a query with `?v > $low && ?v < $high`. A value meets bands
by the double that is nearest to it: a run of bands has a segment tree. That decides exactly for
doubles and small integers. For other numbers it leaves too many pairs, never too few, as rounding
keeps the order. A value that is not a number meets the bands whose borders are not numbers; if one
of these is an equality, terms without a value of their own, such as IRIs, meet equal terms only.
`BandAreas.exact` says whether pairs are exact; if not, the condition itself decides on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, Batch, BoolArray, FloatArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import (
    DECIMAL,
    INTEGER,
    LITERAL_SORT,
    NO_NUMBER,
    TermDictionary,
)
from streamsparql.physical.kernels.intervals import pairs_in_blocks
from streamsparql.physical.kernels.segment_tree import SegmentTree
from streamsparql.physical.state.paired_areas import PairedAreas
from streamsparql.physical.state.sweep_area import AreaRun, Pairs, SweepArea

_EXACT_INTEGERS = float(1 << 53)


class Border(NamedTuple):
    """A border of bands: its column, and whether values at the border are outside."""

    column: str
    strict: bool


class Borders:
    """The borders of bands, and the column of the values that are compared with them."""

    def __init__(
        self,
        value: str,
        lower: Sequence[Border],
        upper: Sequence[Border],
        terms: TermDictionary,
    ) -> None:
        self.value, self.lower, self.upper = value, tuple(lower), tuple(upper)
        self._terms = terms

    def values(self, ids: IntArray) -> tuple[FloatArray, BoolArray, bool]:
        """Return the nearest doubles of terms, which are numbers, and whether all are exact."""
        values, kinds = self._terms.numbers(ids)
        inexact = (kinds == DECIMAL) | ((kinds == INTEGER) & (np.abs(values) > _EXACT_INTEGERS))
        return values, kinds != NO_NUMBER, not inexact.any()

    @property
    def equal(self) -> str | None:
        """The column of a border that values must be equal to, if any."""
        lower = {border.column for border in self.lower if not border.strict}
        both = (border.column for border in self.upper if not border.strict)
        return next((column for column in both if column in lower), None)

    @property
    def several(self) -> bool:
        """Whether there is more than one condition."""
        columns = {border.column for border in (*self.lower, *self.upper)}
        return len(columns) > 1

    def are_simple(self, ids: IntArray) -> BoolArray:
        """Return which terms are equal to no other term: IRIs, blank nodes and plain strings."""
        simple: BoolArray = self._terms.sorts(ids) != LITERAL_SORT
        return simple | self._terms.plain_strings(ids)

    def bands(self, rows: Batch, strictly: bool) -> tuple[FloatArray, FloatArray, BoolArray, bool]:
        """Return the bands of rows as closed intervals, which are of numbers, and whether exact.

        Bands with other borders contain no number: their interval is NaN. Unless `strictly`, a
        value at a strict border is inside.
        """
        low, high = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
        numeric, exact = np.ones(len(rows), np.bool_), True
        for (column, strict), is_lower in (
            *((border, True) for border in self.lower),
            *((border, False) for border in self.upper),
        ):
            values, numbers, are_exact = self.values(rows.columns[column])
            numeric &= numbers
            exact &= are_exact
            if strict and strictly:
                values = np.nextafter(values, np.inf if is_lower else -np.inf)
            if is_lower:
                low = np.maximum(low, values)
            else:
                high = np.minimum(high, values)
        low[~numeric] = np.nan
        return low, high, numeric, exact


class _Bands:
    """The bands of some rows, indexed."""

    def __init__(self, borders: Borders, rows: Batch) -> None:
        self._borders, self._rows = borders, rows
        self._trees: dict[bool, SegmentTree] = {}
        _, _, numeric, self._exact = borders.bands(rows, strictly=False)
        self._others = (~numeric).nonzero()[0]
        self._equal = borders.equal
        if self._equal is not None:
            ids = rows.columns[self._equal][self._others]
            simple = borders.are_simple(ids)
            by_id = np.argsort(ids[simple])
            self._simple, self._others = self._others[simple][by_id], self._others[~simple]
            self._simple_ids = ids[simple][by_id]

    def _tree(self, strictly: bool) -> SegmentTree:
        if strictly not in self._trees:
            low, high, *_ = self._borders.bands(self._rows, strictly)
            self._trees[strictly] = SegmentTree(low, high)
        return self._trees[strictly]

    def meet(self, ids: IntArray) -> Iterator[tuple[IntArray, IntArray, bool]]:
        """Yield the pairs (value, band) that may meet, in blocks, and whether they are exact."""
        values, numbers, exact = self._borders.values(ids)
        exact = exact and self._exact
        if not numbers.all():
            yield from self._meet_others(ids, (~numbers & (ids != UNBOUND)).nonzero()[0])
            values = np.where(numbers, values, np.nan)
        for i, j in self._tree(exact).stab(values):
            yield i, j, exact

    def _meet_others(
        self, ids: IntArray, places: IntArray
    ) -> Iterator[tuple[IntArray, IntArray, bool]]:
        """Yield the pairs of values that are not numbers, at these places."""
        if self._equal is not None:
            simple = self._borders.are_simple(ids[places])
            equal, places = places[simple], places[~simple]
            first = np.searchsorted(self._simple_ids, ids[equal])
            count = np.searchsorted(self._simple_ids, ids[equal], "right") - first
            for i, j in pairs_in_blocks(first, count):
                yield equal[i], self._simple[j], not self._borders.several
        count = np.full(len(places), len(self._others))
        for i, j in pairs_in_blocks(np.zeros_like(count), count):
            yield places[i], self._others[j], False


class _BandRun(AreaRun):
    """A run of bands."""

    def __init__(self, rows: Batch, borders: Borders) -> None:
        super().__init__(rows)
        self._borders = borders
        self._bands: _Bands | None = None

    @property
    def bands(self) -> _Bands:
        """The bands, indexed at first use."""
        if self._bands is None:
            self._bands = _Bands(self._borders, self.rows)
        return self._bands


class BandArea(SweepArea):
    """Rows with values, which bands probe; or with `banded`, bands, which rows with values probe.

    >>> terms = TermDictionary()
    >>> area = BandArea(["p"], Borders("v", [Border("p", True)], [], terms), banded=True)
    >>> low = terms.of_integers(np.array([3, 5]))
    >>> area.insert(Batch({"p": low}, np.array([0, 0]), np.array([9, 9])))
    >>> probes = Batch({"v": terms.of_integers(np.array([5]))}, np.array([1]), np.array([2]))
    >>> [(pairs.probe.tolist(), pairs.place.tolist()) for pairs in area.query(probes)]
    [([0], [0])]
    """

    derived = ("_last",)

    def __init__(
        self, names: Sequence[str], borders: Borders, banded: bool, last: _Last | None = None
    ) -> None:
        super().__init__(names, ())
        self._borders, self._banded = borders, banded
        self._last = last or _Last()

    @override
    def another(self) -> BandArea:
        return BandArea(self.names, self._borders, self._banded, self._last)

    @override
    def _run(self, rows: Batch) -> AreaRun:
        return _BandRun(rows, self._borders) if self._banded else AreaRun(rows)

    @override
    def query(self, batch: Batch, sharing: bool = False) -> Iterator[Pairs]:
        """Yield the pairs of a value and a band that may meet and that overlap, in blocks."""
        value = self._borders.value
        probing = None if self._banded or not self._runs else _Bands(self._borders, batch)
        for run in self.all_runs():
            if probing is None:
                assert isinstance(run, _BandRun)
                pairs = run.bands.meet(batch.columns[value])
            else:
                pairs = ((i, j, e) for j, i, e in probing.meet(run.rows.columns[value]))
            for i, j, self._last.exact in pairs:
                meets = batch.start[i] < run.rows.end[j]
                meets &= batch.end[i] > run.rows.start[j]
                yield Pairs(i, run.rows, j) if meets.all() else Pairs(i[meets], run.rows, j[meets])


class _Last:
    """The pairs that were yielded last by any of several areas: whether they are exact."""

    exact = True


class BandAreas(PairedAreas):
    """The areas of an input with values and of one with bands."""

    derived = ("_last",)

    def __init__(self, values: Sequence[str], bands: Sequence[str], borders: Borders) -> None:
        super().__init__(values, bands, ())
        self._last = _Last()
        self._left = BandArea(values, borders, False, self._last)
        self._right = BandArea(bands, borders, True, self._last)

    @property
    def exact(self) -> bool:
        """Whether the pairs that were yielded last are exact."""
        return self._last.exact
