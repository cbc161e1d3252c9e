"""Exact sums of integers and decimals of any size, and of any number of digits after the point.

A number is written in *limbs* of nine decimal digits, each in an int64, all with the number's sign.
Sums are added limb by limb and need no carry, as a group has fewer than 2**30 elements. Numbers
beyond `_MOST_DIGITS` before or after the point are left to the definition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.physical.aggregation.limb_sums import LimbSums
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.dictionary.inline_ids import (
    DECIMAL,
    INTEGER,
    TAG_DECIMAL,
    bools_of,
    numpy_of,
    scaled_parts,
    tags,
)
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.kernels.change_points import Sweep
from streamsparql.physical.state.key_slots import reaching

_DIGITS = 9
_LIMB = 10**_DIGITS
_SHORT_LOW, _SHORT = 2, 5
"""The limbs after the point, and all limbs, of inlined decimals and of integers of 64 bits."""
_MOST_DIGITS = 90
_LARGEST = 1 << 62
_SAFE = 2.0**58  # the magnitude of a summand: up to 16 of them stay below 2**62


class WideNumbers(NamedTuple):
    """Numbers in limbs, a row for each: limb `i` counts multiples of 10**(9 * (i - `low`))."""

    limbs: IntArray
    low: int
    digits: int
    """The most digits after the point."""
    known: BoolArray
    decimal: BoolArray

    def where_known(self) -> WideNumbers:
        """Return the numbers that are known."""
        known = self.known
        limbs, decimal = self.limbs[known], self.decimal[known]
        return self._replace(limbs=limbs, known=known[known], decimal=decimal)


def wide_numbers(terms: TermDictionary, ids: IntArray) -> WideNumbers:
    """Split integers and decimals into limbs; other terms are not known.

    >>> terms = TermDictionary()
    >>> number = '"-1.0000000025"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    >>> wide = wide_numbers(terms, terms.encode([number, "<x>"]))
    >>> wide.limbs[0].tolist(), wide.low, wide.digits, wide.known.tolist()
    ([-500000000, -2, -1, 0, 0], 2, 10, [True, False])
    """
    size = len(ids)
    whole, fraction, negative = (np.zeros(size, np.int64) for _ in range(3))
    decimal = (ids < 0) & (tags(ids) == TAG_DECIMAL)
    digits = 0
    if decimal.any():
        mantissa, scale = scaled_parts(ids[decimal])
        negative[decimal] = mantissa < 0
        whole[decimal], rest = np.divmod(np.abs(mantissa), 10**scale)
        fraction[decimal] = rest * 10 ** (_SHORT_LOW * _DIGITS - scale)
        digits = int(scale.max())
    integers, known = terms.exact_integers(ids)
    whole[known], negative[known] = np.abs(integers[known]), integers[known] < 0
    known |= decimal
    limbs = np.zeros((size, _SHORT), np.int64)
    limbs[:, 1], limbs[:, 0] = np.divmod(fraction, _LIMB)
    whole, limbs[:, 2] = np.divmod(whole, _LIMB)
    limbs[:, 4], limbs[:, 3] = np.divmod(whole, _LIMB)
    limbs[negative != 0] *= -1
    short = WideNumbers(limbs, _SHORT_LOW, digits, known, decimal)
    return short if known.all() else _with_others(terms, ids, short)


def _with_others(terms: TermDictionary, ids: IntArray, short: WideNumbers) -> WideNumbers:
    """Add the numbers that are not inlined, nor integers of 64 bits."""
    others = np.flatnonzero(~short.known)
    distinct, code = np.unique(ids[others], return_inverse=True)
    kinds = terms.numbers(distinct).kinds
    own = _written_limbs(terms.texts(distinct), np.isin(kinds, (INTEGER, DECIMAL)))
    rows = max(own.low - _SHORT_LOW + _SHORT, own.limbs.shape[1])
    limbs = np.zeros((len(ids), rows), np.int64)
    limbs[:, own.low - _SHORT_LOW : own.low - _SHORT_LOW + _SHORT] = short.limbs
    limbs[others, : own.limbs.shape[1]] = own.limbs[code]
    known, decimal = short.known.copy(), short.decimal.copy()
    known[others] = own.known[code]
    decimal[others] = (kinds == DECIMAL)[code]
    return WideNumbers(limbs, own.low, max(short.digits, own.digits), known, decimal)


class _Written(NamedTuple):
    limbs: IntArray
    low: int
    digits: int
    known: BoolArray


_NUMBER = r'^"\s*(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*?)0*)?\s*"'


def _written_limbs(texts: pa.Array, numbers: BoolArray) -> _Written:
    """Split numbers into limbs by their digits; very long ones, and other texts, are not known.

    >>> texts = pa.array(['"-12345678901.50"^^<d>', "<x>"])
    >>> written = _written_limbs(texts, np.array([True, False]))
    >>> written.limbs.tolist(), written.low, written.digits, written.known.tolist()
    ([[0, -500000000, -345678901, -12], [0, 0, 0, 0]], 2, 1, [True, False])
    """
    parts = pc.extract_regex(texts, _NUMBER)
    sign, whole, fraction = (pc.fill_null(part, "") for part in parts.flatten())
    known = numbers & bools_of(parts.is_valid())
    before, after = (
        numpy_of(pc.binary_length(part)).astype(np.int64) for part in (whole, fraction)
    )
    known &= np.maximum(before, after) <= _MOST_DIGITS
    mask = pa.array(known)
    whole, fraction = pc.if_else(mask, whole, ""), pc.if_else(mask, fraction, "")
    digits = int(after[known].max(initial=0))
    low = max(_SHORT_LOW, -(-digits // _DIGITS))
    high = max(1, -(-int(before[known].max(initial=0)) // _DIGITS))
    whole = pc.ascii_lpad(whole, width=high * _DIGITS, padding="0")
    fraction = pc.ascii_rpad(fraction, width=low * _DIGITS, padding="0")
    written = pc.binary_join_element_wise(whole, fraction, "")
    places = np.frombuffer(written.buffers()[2], np.uint8).reshape(len(known), -1, _DIGITS)
    limbs = ((places - _ZERO) @ _POWERS)[:, ::-1]
    limbs[bools_of(pc.equal(sign, "-"))] *= -1
    return _Written(limbs, low, digits, known)


_ZERO = ord("0")
_POWERS = 10 ** np.arange(_DIGITS - 1, -1, -1)


class WideTotals(NamedTuple):
    """Sums after each point of a sweep: row `i` counts multiples of 10**(9 * (i - `low`))."""

    limbs: IntArray
    low: int
    digits: int

    def scaled(self, digits: int) -> tuple[IntArray, BoolArray]:
        """Return the sums as multiples of 10**-`digits`, and where int64 arithmetic is exact."""
        total = np.zeros(self.limbs.shape[1], np.int64)
        fits = np.ones(len(total), np.bool_)
        for i, limb in enumerate(self.limbs):
            power = (i - self.low) * _DIGITS + digits
            if power < 0:
                total += limb // 10 ** min(-power, _DIGITS)  # no digits follow the last one
            else:
                small = np.abs(limb) * 10.0**power < _SAFE
                fits &= small
                total += np.where(small, limb, 0) * (10**power if power < 18 else 0)
        return total, fits & (np.abs(total) < _LARGEST)

    def numbers(self, places: IntArray, digits: int) -> list[int]:
        """Return some of the sums as multiples of 10**-`digits`."""
        rows = self.limbs[:, places].tolist()
        numbers: list[int] = [0] * len(places)
        for row in reversed(rows):
            numbers = [n * _LIMB + limb for n, limb in zip(numbers, row, strict=True)]
        power = self.low * _DIGITS - digits
        if power > 0:
            return [n // 10**power for n in numbers]
        return [n * 10**-power for n in numbers]


class WideSums(LimbSums):
    """A sum per slot of integers and decimals of any size."""

    scalars = ("_low", "_digits")

    def __init__(self) -> None:
        super().__init__()
        self._low = self._digits = 0

    @property
    def used(self) -> bool:
        """Whether a number was added."""
        return len(self._state) > 0

    def after(
        self, sweep: Sweep, at: IntArray, numbers: WideNumbers, count: IntArray
    ) -> WideTotals:
        """Add numbers, those of the events `at`; return the sums after each point of the sweep."""
        self._state = reaching(self._state, sweep.capacity)
        self._reach(numbers.low, numbers.limbs.shape[1] - numbers.low)
        self._digits = max(self._digits, numbers.digits)
        deltas = np.zeros((len(self._state), sweep.events), np.int64)
        first = self._low - numbers.low
        rows = slice(first, first + numbers.limbs.shape[1])
        deltas[rows, at] = numbers.limbs.T * count[at]
        return WideTotals(sweep.after(self._state, deltas), self._low, self._digits)

    def _reach(self, low: int, high: int) -> None:
        """Extend the limbs to `low` after the point and `high` before it."""
        below = max(0, low - self._low)
        above = max(0, high - (len(self._state) - self._low))
        if below or above:
            self._state = np.pad(self._state, ((below, above), (0, 0)))
            self._low += below
