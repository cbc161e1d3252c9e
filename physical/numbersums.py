"""SUM and AVG of terms: which numbers are added how, and how totals become terms again.

Integers up to 2**53 and finite doubles go into one exact sum, decimals into another, of millionths.
A double in a group makes its total a double, else a decimal makes it a decimal: as each summand is
exact in the wider type too, promoting first changes nothing. Decimals beside doubles are the
exception; such a group, and one with other numbers, is left to the definition.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from streamsparql.algebra.numeric import EXACT
from streamsparql.algebra.operators import divide
from streamsparql.algebra.terms import integer
from streamsparql.algebra.values import literal_of
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.numbers import DECIMAL, DOUBLE, INTEGER, NO_NUMBER
from streamsparql.physical.pieces import Sweep, Tally
from streamsparql.physical.sums import MOST, ExactSums, Limbs, parts
from streamsparql.physical.terms import TermDictionary

_MANY = 1 << 20
_ALL = 1 << 30
"""Multiplicities beyond this, of a row and of a group, are out of the ordinary: limbs overflow."""

_MILLION = 10**6
_LARGEST = 1 << 62


class NumberSums:
    """The sums of a column, by slot."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._binary, self._millionths = ExactSums(), ExactSums()
        self._bad, self._strange, self._doubles, self._decimals = (Tally() for _ in range(4))

    def after(self, sweep: Sweep, ids: IntArray, count: IntArray, rows: IntArray) -> Totals:
        """The totals after each point, of events that add a term `count` times."""
        values, kinds = self._terms.numbers(ids)
        double = (kinds == DOUBLE) & np.isfinite(values)
        if double.all():
            mantissa, exponent = parts(values)
            bad = strange = decimal = np.zeros(len(ids), np.bool_)
        else:
            mantissa, exponent = parts(np.where(double, values, 0.0))
            whole, known = self._terms.exact_integers(ids)
            known &= (kinds == INTEGER) & (whole >= -MOST) & (whole <= MOST)
            mantissa[known] = whole[known]
            millionths, fits = self._terms.decimals(ids)
            decimal = (kinds == DECIMAL) & fits
            bad = kinds == NO_NUMBER
            strange = ~(double | known | decimal | bad)
        many = np.abs(count) > _MANY
        if many.any():
            strange = strange | many & ~bad
            mantissa[strange] = 0
        scaled = None
        if self._decimals.used or decimal.any():
            scaled = np.where(decimal & ~strange, millionths, 0)
        return Totals(
            self._terms,
            rows,
            *(
                tally.after(sweep, np.where(mask, count, 0))
                for tally, mask in (
                    (self._bad, bad),
                    (self._strange, strange),
                    (self._doubles, double),
                    (self._decimals, decimal),
                )
            ),
            self._binary.after(sweep, mantissa, exponent, count),
            None
            if scaled is None
            else self._millionths.after(sweep, scaled, np.zeros(len(ids), np.int64), count),
        )


class Totals:
    """What a column adds up to after each point."""

    def __init__(
        self,
        terms: TermDictionary,
        rows: IntArray,
        bad: IntArray,
        strange: IntArray,
        doubles: IntArray,
        decimals: IntArray,
        binary: Limbs,
        millionths: Limbs | None,
    ) -> None:
        self._terms, self._rows = terms, rows
        self._error = bad > 0
        self._odd = ((strange > 0) | (rows >= _ALL) | (doubles > 0) & (decimals > 0)) & ~self._error
        plain = ~(self._odd | self._error)
        self._double = plain & (doubles > 0)
        self._whole = plain & (doubles == 0) & (decimals == 0)
        self._decimal = plain & (decimals > 0) & (doubles == 0)
        self._floats = binary.doubles() if self._double.any() else np.zeros(len(rows))
        self._exact = np.zeros(len(rows), np.int64)
        if not self._double.all():
            self._add_up(binary, millionths)

    def _add_up(self, binary: Limbs, millionths: Limbs | None) -> None:
        """The totals that are integers or decimals; what does not fit is left to the definition."""
        whole, fits = binary.integers()
        if millionths is not None:
            more, both = millionths.integers()
            small = both & (np.abs(more) < _LARGEST) & (np.abs(whole) < _LARGEST // _MILLION)
            fits = np.where(self._decimal, fits & small, fits)
            whole = np.where(self._decimal, np.where(small, whole, 0) * _MILLION + more, whole)
        self._exact = whole
        left = (self._whole | self._decimal) & ~fits
        self._odd |= left
        self._whole &= ~left
        self._decimal &= ~left

    def sums(self) -> tuple[IntArray, BoolArray]:
        """The ids of the sums, 0 for errors; and those that are to be found otherwise."""
        found = np.zeros(len(self._rows), np.int64)
        double, whole, decimal = self._double, self._whole, self._decimal
        if double.any():
            found[double] = self._terms.of_doubles(self._floats[double])
        if whole.any():
            found[whole] = self._terms.of_integers(self._exact[whole])
        if decimal.any():
            found[decimal] = self._terms.of_decimals(self._exact[decimal], 6)
        return found, self._odd

    def averages(self) -> tuple[IntArray, BoolArray]:
        """The ids of the averages likewise; that of nothing is the integer 0."""
        found = np.zeros(len(self._rows), np.int64)
        double, rows = self._double, self._rows
        if double.any():
            found[double] = self._terms.of_doubles(self._floats[double] / rows[double])
        for mask, digits in ((self._whole, 0), (self._decimal, 6)):
            some = np.flatnonzero(mask & (rows > 0))
            if len(some):
                found[some] = self._quotients(self._exact[some], digits, rows[some])
        nothing = self._whole & (rows == 0)
        if nothing.any():
            found[nothing] = self._terms.of_integers(np.zeros(1, np.int64))
        return found, self._odd

    def _quotients(self, totals: IntArray, digits: int, rows: IntArray) -> IntArray:
        """The ids of `totals` / 10**`digits` / `rows`, decimals with 34 digits at most."""
        found = np.zeros(len(totals), np.int64)
        left = np.arange(len(totals))
        for more in (0, 3, 6):
            scaled = totals[left] * 10**more
            short = (np.abs(totals[left]) < _LARGEST // 10**more) & (scaled % rows[left] == 0)
            some = left[short]
            found[some] = self._terms.of_decimals(scaled[short] // rows[some], digits + more)
            left = left[~short]
            if not len(left):
                return found
        pairs, code = np.unique(np.stack([totals[left], rows[left]]), axis=1, return_inverse=True)
        each = [
            self._terms.id_of(divide(literal_of(EXACT.scaleb(Decimal(total), -digits)), integer(n)))
            for total, n in pairs.T.tolist()
        ]
        found[left] = np.array(each, np.int64)[code.reshape(-1)]
        return found
