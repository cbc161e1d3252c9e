"""Exact sums of numbers that are added and subtracted: SUM and AVG without drift.

A sum over a window must equal a fresh evaluation of the window, however long the stream is
(SEMANTICS.md section 5). Doubles are dyadic fractions, so their exact sum is an integer, scaled by
a power of two. It is stored in *limbs* of 32 bits, each in an int64: addition and subtraction are
integer arithmetic limb by limb, 2**31 summands need no carry, and the order does not matter. A sum
is rounded only once, when it is read. Integers have an exponent of 0; decimals are counted in
millionths.

The limbs span the range of exponents of the numbers so far: a few limbs for common data, at most
66.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise

import numpy as np

from streamsparql.physical.aggregation.limb_sums import LimbSums
from streamsparql.physical.batch import BoolArray, FloatArray, IntArray
from streamsparql.physical.kernels.change_points import Sweep
from streamsparql.physical.state.key_slots import reaching

_MANTISSA_BITS = 54
LARGEST_INTEGER = 1 << 53
"""Summands are integers up to this, times a power of two."""

_BITS = 32
_MASK = (1 << _BITS) - 1
_LARGEST = 1 << 62
_FEW = 256
"""Up to this number of limbs, Python's integers are faster than arrays."""
_REACH = 800
"""Inlined doubles, which are below 2**129, are multiplied by at most 2**_REACH."""
_TOP = 62  # bits of the integer that is rounded to a double; its last bit is set for a remainder


class Exact:
    """Exact numbers, as multiples of 2**`base`; the base is not positive.

    >>> Exact(-1, [3, -4]).doubles().tolist()
    [1.5, -2.0]
    """

    def __init__(self, base: int, numbers: list[int]) -> None:
        self._base, self._numbers = base, numbers

    def integers(self) -> tuple[IntArray, BoolArray]:
        """Return the numbers, which must be integers, and a mask of those that fit."""
        exact = [number >> -self._base for number in self._numbers]
        fits = [-_LARGEST < number < _LARGEST for number in exact]
        small = [number if fit else 0 for number, fit in zip(exact, fits, strict=True)]
        return np.array(small, np.int64), np.array(fits, np.bool_)

    def doubles(self) -> FloatArray:
        """Return the nearest doubles: a quotient of Python's integers is rounded once."""
        scale = 1 << -self._base
        try:
            return np.array([number / scale for number in self._numbers], np.float64)
        except OverflowError:
            return np.array([_quotient(number, scale) for number in self._numbers], np.float64)


def _quotient(number: int, scale: int) -> float:
    try:
        return number / scale
    except OverflowError:
        return math.inf if number > 0 else -math.inf


class Limbs:
    """Exact numbers: row `i` of `limbs` counts multiples of 2**(`base` + 32 * i).

    >>> Limbs(0, np.array([[-1], [1]])).integers()[0].tolist()
    [4294967295]
    """

    def __init__(self, base: int, limbs: IntArray) -> None:
        self._base, self._limbs = base, limbs
        self._few = limbs.size <= _FEW

    @cached_property
    def _carried(self) -> tuple[BoolArray, IntArray]:
        """A mask of the negative numbers, and all magnitudes in limbs of 32 bits."""
        negative = _carried(self._limbs)[-1] < 0
        return negative, _carried(np.where(negative, -self._limbs, self._limbs))

    def integers(self) -> tuple[IntArray, BoolArray]:
        """Return the numbers, which must be integers, and a mask of those that fit."""
        if self._few:
            return Exact(self._base, _joined(self._limbs)).integers()
        negative, limbs = self._carried
        fit = np.ones(len(negative), np.bool_)
        values = np.zeros(len(negative), np.int64)
        for i, limb in enumerate(limbs):
            exponent = self._base + _BITS * i
            if exponent in (0, _BITS):
                fit &= limb < 1 << (_BITS - 2 if exponent else _BITS)
                values += (limb & _MASK) << exponent
            elif exponent > 0:
                fit &= limb == 0
        return np.where(negative, -values, values), fit

    def numbers(self, places: IntArray) -> list[int]:
        """Return some of the numbers, which must be integers."""
        return [number >> -self._base for number in _joined(self._limbs[:, places])]

    def doubles(self) -> FloatArray:
        """Return the nearest doubles, ties to even, as in IEEE 754."""
        if self._few:
            return Exact(self._base, _joined(self._limbs)).doubles()
        negative, limbs = self._carried
        size = len(negative)
        limbs = np.concatenate([np.zeros((3, size), np.int64), limbs])
        nonzero = limbs != 0
        top = len(limbs) - 1 - np.argmax(nonzero[::-1], axis=0)
        top[~nonzero.any(axis=0)] = 3
        here = np.arange(size)
        one, two, three = limbs[top, here], limbs[top - 1, here], limbs[top - 2, here]
        for lower, limb in pairwise(nonzero):
            limb |= lower
        rest = nonzero[top - 3, here]
        bits = np.frexp(one.astype(np.float64))[1].astype(np.int64)
        shift = _TOP - _BITS - bits
        back = np.maximum(-shift, 0)
        value = (one << (_TOP - bits)) + np.where(
            shift >= 0, two << np.maximum(shift, 0), two >> back
        )
        rest |= (two & ((1 << back) - 1)) != 0
        low = np.minimum(_BITS - shift, _BITS)
        value += np.where(shift > 0, three >> low, 0)
        rest |= (three & ((1 << low) - 1)) != 0
        value |= rest
        exponent = self._base + _BITS * (top - 3) + bits - _TOP
        with np.errstate(over="ignore", under="ignore"):
            result: FloatArray = np.ldexp(value.astype(np.float64), exponent.astype(np.int32))
        return np.where(negative, -result, result)


def _joined(limbs: IntArray) -> list[int]:
    """Return each number as one integer."""
    rows = limbs.tolist()
    if not rows:
        return [0] * limbs.shape[1]
    numbers: list[int] = rows.pop()
    while rows:
        numbers = [(high << _BITS) + low for high, low in zip(numbers, rows.pop(), strict=True)]
    return numbers


def _split(numbers: list[int], limbs: int) -> IntArray:
    """Return numbers as limbs, all but the top one in [0, 2**32)."""
    rows = []
    for _ in range(limbs - 1):
        rows.append([number & _MASK for number in numbers])
        numbers = [number >> _BITS for number in numbers]
    return np.array([*rows, numbers], np.int64)


def _carried(limbs: IntArray) -> IntArray:
    """Return the numbers with all limbs but a new top one in [0, 2**32)."""
    carried = np.empty((len(limbs) + 1, limbs.shape[1]), np.int64)
    carry = np.zeros(limbs.shape[1], np.int64)
    for i, limb in enumerate(limbs):
        total = limb + carry
        np.bitwise_and(total, _MASK, out=carried[i])
        carry = total >> _BITS
    carried[-1] = carry
    return carried


def mantissas_and_exponents(values: FloatArray) -> tuple[IntArray, IntArray]:
    """Return finite doubles as mantissa * 2**exponent.

    >>> [array.tolist() for array in mantissas_and_exponents(np.array([1.5, 0.0]))]
    [[6755399441055744, 0], [-52, 0]]
    """
    fraction, exponent = np.frexp(values)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    return mantissa, np.where(mantissa == 0, 0, exponent.astype(np.int64) - 53)


class ExactSums(LimbSums):
    """A sum per slot, of numbers that are mantissa * 2**exponent."""

    scalars = ("_base",)

    def __init__(self) -> None:
        super().__init__()
        self._base = 0

    def after(self, sweep: Sweep, mantissa: IntArray, exponent: IntArray, count: IntArray) -> Limbs:
        """Add numbers, each `count` times; return the sums after each point of the sweep."""
        self._state = reaching(self._state, sweep.capacity)
        if len(exponent):
            self._reach(int(exponent.min()), int(exponent.max()) + _MANTISSA_BITS)
        bases = self._base + _BITS * np.arange(len(self._state))
        shift = exponent - bases[:, np.newaxis]
        deltas = np.abs(mantissa) << np.minimum(np.maximum(shift, 0), 63)
        deltas >>= np.minimum(np.maximum(-shift, 0), 63)
        deltas &= _MASK
        deltas *= np.where(mantissa < 0, -count, count)
        return Limbs(self._base, sweep.after(self._state, deltas))

    def scaled(self, values: FloatArray) -> list[int] | None:
        """Return inlined doubles as multiples of 2**base; None if the limbs do not span them.

        The limbs that earlier numbers needed span most later numbers.
        """
        if self._base < -_REACH:
            return None
        scaled = values * 2.0**-self._base
        bound = 2.0 ** min(_BITS * len(self._state), _REACH)
        if not ((scaled == np.rint(scaled)) & (np.abs(scaled) < bound)).all():
            return None
        return [*map(int, scaled.tolist())]

    def exact(self, numbers: list[int]) -> Exact:
        """Return multiples of 2**base as numbers."""
        return Exact(self._base, numbers)

    def of(self, slots: IntArray) -> list[int]:
        """Return the sums of slots, as multiples of 2**base."""
        self._state = reaching(self._state, int(slots.max()) + 1)
        return _joined(self._state[:, slots])

    def put(self, slots: IntArray, numbers: list[int]) -> None:
        """Replace the sums of slots for which `of` was called."""
        self._state[:, slots] = _split(numbers, len(self._state))

    def _reach(self, low: int, high: int) -> None:
        """Extend the limbs to span these bits."""
        below = max(0, -((low - self._base) // _BITS))
        more = max(0, -((self._base + _BITS * len(self._state) - high) // _BITS))
        if below or more:
            width = self._state.shape[1]
            new = (np.zeros((rows, width), np.int64) for rows in (below, more))
            self._state = np.concatenate([next(new), self._state, next(new)])
            self._base -= _BITS * below
