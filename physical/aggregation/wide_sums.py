"""Exact sums of integers and decimals of any size, and of any number of digits after the point.

A number is written in *limbs* of nine decimal digits, each in an int64, all with the number's sign.
Sums are added limb by limb and need no carry, as a group has fewer than 2**30 elements. Numbers
beyond `_MOST_DIGITS` before or after the point are left to the definition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsparql.physical.aggregation.limb_sums import LimbSums
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.dictionary.inline_ids import (
    DECIMAL,
    INTEGER,
    TAG_DECIMAL,
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
    texts = terms.texts(distinct).to_pylist()
    parts = [
        _parts(text) if kind in (INTEGER, DECIMAL) else None
        for text, kind in zip(texts, kinds.tolist(), strict=True)
    ]
    digits = max(short.digits, *(len(part[1]) for part in parts if part is not None), 0)
    low = max(_SHORT_LOW, -(-digits // _DIGITS))
    scaled = [0 if p is None else int(p[0] + p[1].ljust(low * _DIGITS, "0")) for p in parts]
    own = _split(scaled)
    rows = max(low - _SHORT_LOW + _SHORT, own.shape[1])
    limbs = np.zeros((len(ids), rows), np.int64)
    limbs[:, low - _SHORT_LOW : low - _SHORT_LOW + _SHORT] = short.limbs
    limbs[others, : own.shape[1]] = own[code]
    known, decimal = short.known.copy(), short.decimal.copy()
    known[others] = np.array([part is not None for part in parts])[code]
    decimal[others] = (kinds == DECIMAL)[code]
    return WideNumbers(limbs, low, digits, known, decimal)


def _parts(text: str) -> tuple[str, str] | None:
    """Return the digits before and after the point of a number; None for very long ones.

    >>> _parts('"-1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>')
    ('-1', '5')
    """
    whole, _, fraction = text[1 : text.rindex('"')].strip().partition(".")
    fraction = fraction.rstrip("0")
    return (whole, fraction) if max(len(whole), len(fraction)) <= _MOST_DIGITS else None


def _split(numbers: list[int]) -> IntArray:
    """Return integers in limbs, a row for each, two limbs at a time.

    >>> _split([-(10**9), 5]).tolist()
    [[0, -1], [5, 0]]
    """
    negative = np.array([number < 0 for number in numbers])
    rest, columns = [abs(number) for number in numbers], list[IntArray]()
    while any(rest):
        columns += np.divmod(np.array([number % _LIMB**2 for number in rest]), _LIMB)[::-1]
        rest = [number // _LIMB**2 for number in rest]
    limbs = np.stack(columns, axis=1) if columns else np.zeros((len(numbers), 2), np.int64)
    limbs[negative] *= -1
    return limbs


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
