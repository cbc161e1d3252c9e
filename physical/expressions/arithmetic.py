"""Vectorised numeric operators: `=`, `<` and arithmetic on columns of numbers.

Each function here is a part of `algebra.xsd.literal_operators` on arrays, with exactly the same
results. Where arrays of doubles and of int64 do not decide (two decimals with one nearest double,
an integer of more than 64 bits, a literal that is not a number), the result is NOT_VECTORISED, and
the caller evaluates these rows one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from streamsparql.physical.batch import UNBOUND, BoolArray, FloatArray, IntArray
from streamsparql.physical.dictionary.inline_ids import KindArray
from streamsparql.physical.dictionary.term_dictionary import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    LITERAL_SORT,
    TermDictionary,
)

TruthArray: TypeAlias = npt.NDArray[np.int8]

IS_FALSE, IS_TRUE, IS_ERROR, NOT_VECTORISED = 0, 1, 2, 3
"""The truth of a row: the three values of SPARQL, and undecided by arrays."""

NO_VALUE, UNKNOWN = -2, -1
"""Kinds besides those of numbers: the row is an error; the row is evaluated separately."""

_EXACT = float(1 << 53)
"""Up to this magnitude, different integers have different nearest doubles."""

_COMPARISONS: dict[str, Callable[..., BoolArray]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
}
COMPARED = frozenset(_COMPARISONS)
CALCULATED = frozenset("+-*/")
ROUNDED = frozenset({"u-", "u+", "ABS", "CEIL", "FLOOR", "ROUND"})


class Decimals(NamedTuple):
    """Decimals: `scaled` / 10**`digits` where `exact`, with `scaled` below 2**53."""

    scaled: IntArray
    exact: BoolArray
    digits: int = 6

    def take(self, index: IntArray) -> Decimals:
        """Return the rows at these places."""
        return Decimals(self.scaled[index], self.exact[index], self.digits)

    def shortened(self) -> Decimals:
        """Return the decimals with as few digits as possible: a product adds the digits."""
        digits = _digits(self.scaled[:50], self.digits)  # the first few mostly decide
        if (self.scaled % 10 ** (self.digits - digits)).any():
            digits = _digits(self.scaled, self.digits)
        return Decimals(self.scaled // 10 ** (self.digits - digits), self.exact, digits)


def _digits(scaled: IntArray, digits: int) -> int:
    fewer = range(digits)
    return next((d for d in fewer if not (scaled % 10 ** (digits - d)).any()), digits)


class NumericOperand:
    """The numbers of one argument of an operator: by row, or one for all rows.

    `values` are the nearest doubles of the numbers, `kinds` their types. `ids` are the terms, None
    if the argument was calculated. `integers` and `decimals` are exact values of xsd:integers, and
    of decimals and integers, with a mask of the rows that have one.
    """

    __slots__ = ("_decimals", "_integers", "ids", "kinds", "terms", "values")

    def __init__(
        self,
        terms: TermDictionary,
        values: FloatArray,
        kinds: KindArray,
        ids: IntArray | None = None,
        integers: tuple[IntArray, BoolArray] | None = None,
        decimals: Decimals | None = None,
    ) -> None:
        self.terms, self.values, self.kinds, self.ids = terms, values, kinds, ids
        self._integers, self._decimals = integers, decimals

    @classmethod
    def of(cls, terms: TermDictionary, ids: IntArray) -> NumericOperand:
        """Return the operand of terms."""
        values, kinds = terms.numbers(ids)
        return cls(terms, values, kinds, ids)

    @property
    def integers(self) -> tuple[IntArray, BoolArray]:
        """The exact values of integers of 64 bits, and a mask of the rows that have one."""
        if self._integers is None:
            if self.ids is None:
                none = np.zeros(len(self.kinds), np.bool_)
                self._integers = none.astype(np.int64), none
            else:
                self._integers = self.terms.exact_integers(self.ids)
        return self._integers

    @property
    def decimals(self) -> Decimals:
        """The exact values of decimals and integers that are short enough."""
        if self._decimals is None:
            if self.ids is None:
                values, exact = self.integers
                self._decimals = Decimals(values, exact & (np.abs(self.values) < _EXACT), 0)
            else:
                self._decimals = Decimals(*self.terms.decimals(self.ids)).shortened()
        return self._decimals

    def take(self, index: IntArray) -> NumericOperand:
        """Return the rows at these places."""
        if len(self.kinds) == 1:
            return self
        integers, decimals = self._integers, self._decimals
        return NumericOperand(
            self.terms,
            self.values[index],
            self.kinds[index],
            None if self.ids is None else self.ids[index],
            None if integers is None else (integers[0][index], integers[1][index]),
            None if decimals is None else decimals.take(index),
        )

    def arguments(self) -> KindArray:
        """Return the kinds for a strict operator: other terms are NO_VALUE or UNKNOWN."""
        if self.ids is None or self.kinds.all():
            return self.kinds
        literal = self.terms.sorts(self.ids) == LITERAL_SORT
        others = np.where(literal, UNKNOWN, NO_VALUE).astype(np.int8)
        return np.where(self.kinds > 0, self.kinds, others)


# -- Comparisons --------------------------------------------------------------------------------


def compare_numbers(symbol: str, a: NumericOperand, b: NumericOperand) -> TruthArray:
    """Return `a symbol b` by row, for a symbol in COMPARED.

    >>> terms = TermDictionary()
    >>> a, b = (NumericOperand.of(terms, terms.of_integers(np.array(x))) for x in ([1, 2], [2]))
    >>> compare_numbers("<", a, b).tolist()
    [1, 0]
    """
    with np.errstate(invalid="ignore"):
        truth = _COMPARISONS[symbol](a.values, b.values).view(np.int8)
    low, high = np.minimum(a.kinds, b.kinds), np.maximum(a.kinds, b.kinds)
    if not len(low) or (low.min() > 0 and high.min() == DOUBLE):
        return truth
    _compare_singles(truth, symbol, a, b, (low > 0) & (high == FLOAT))
    doubtful = (low > 0) & (high <= DECIMAL) & (a.values == b.values)
    _compare_exactly(truth, symbol, a, b, np.flatnonzero(doubtful))
    others = np.flatnonzero(low <= 0)
    if len(others):
        truth[others] = _compare_others(symbol, a.take(others), b.take(others))
    return truth


def _compare_singles(
    truth: TruthArray, symbol: str, a: NumericOperand, b: NumericOperand, where: BoolArray
) -> None:
    index = np.flatnonzero(where)
    if len(index):
        one, other = _singles(a.take(index).values), _singles(b.take(index).values)
        truth[index] = _COMPARISONS[symbol](one, other)


def _singles(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32).astype(np.float64)


def _compare_exactly(
    truth: TruthArray, symbol: str, a: NumericOperand, b: NumericOperand, index: IntArray
) -> None:
    """Compare exact numbers with one nearest double; doubles already order all other numbers."""
    if not len(index):
        return
    a, b = a.take(index), b.take(index)
    small = (a.kinds == INTEGER) & (b.kinds == INTEGER) & (np.abs(a.values) < _EXACT)
    if a.ids is not None and b.ids is not None:
        small |= a.ids == b.ids
    if small.all():
        return
    (one, one_fits), (other, other_fits) = a.integers, b.integers
    exact = np.where(one_fits & other_fits, _COMPARISONS[symbol](one, other), NOT_VECTORISED)
    if (exact == NOT_VECTORISED).any():
        one, other, fits, _ = _aligned(a.decimals, b.decimals)
        exact = np.where(fits & (exact == NOT_VECTORISED), _COMPARISONS[symbol](one, other), exact)
    truth[index] = np.where(small, truth[index], exact)


def _compare_others(symbol: str, a: NumericOperand, b: NumericOperand) -> TruthArray:
    """Return the truth of rows with at least one operand that may not be a number."""
    one, other = a.arguments(), b.arguments()
    unbound = _unbound(a) | _unbound(b)
    if symbol not in ("=", "!="):
        no_value = (one == NO_VALUE) | (other == NO_VALUE)
        return np.where(no_value, IS_ERROR, NOT_VECTORISED).astype(np.int8)
    same = np.zeros(len(unbound), np.bool_)
    if a.ids is not None and b.ids is not None:
        same = a.ids == b.ids
    # A term that is not a number equals itself; an IRI or a blank node equals nothing else. But a
    # calculated value that is unknown may be an error.
    resource = (one == NO_VALUE) | (other == NO_VALUE)
    for operand, kinds in ((a, one), (b, other)):
        if operand.ids is None:
            resource &= kinds != UNKNOWN
    differ = resource | (_valued(a) & _valued(b))
    equal = np.where(same, IS_TRUE, np.where(differ, IS_FALSE, NOT_VECTORISED))
    if symbol == "!=":
        equal = np.where(equal == NOT_VECTORISED, NOT_VECTORISED, 1 - equal)
    return np.where(unbound, IS_ERROR, equal).astype(np.int8)


def _valued(operand: NumericOperand) -> BoolArray:
    """Return a mask of numbers, strings and canonical booleans: two of different kinds differ."""
    known: BoolArray = operand.kinds > 0
    if operand.ids is None:
        return known
    return known | (operand.ids < 0) | operand.terms.plain_strings(operand.ids)


def _unbound(operand: NumericOperand) -> BoolArray:
    unbound: BoolArray = operand.kinds == NO_VALUE
    return unbound if operand.ids is None else operand.ids == UNBOUND


# -- Arithmetic ---------------------------------------------------------------------------------


def calculate(symbol: str, a: NumericOperand, b: NumericOperand) -> NumericOperand:
    """Return `a symbol b` by row, for a symbol in CALCULATED.

    >>> terms = TermDictionary()
    >>> a, b = (NumericOperand.of(terms, terms.of_integers(np.array(x))) for x in ([1, 2], [2]))
    >>> calculate("*", a, b).values.tolist()
    [2.0, 4.0]
    """
    values = _in_doubles(symbol, a.values, b.values)
    one, other = a.arguments(), b.arguments()
    low, high = np.minimum(one, other), np.maximum(one, other)
    if not len(low) or (low.min() > 0 and high.min() == DOUBLE):
        return NumericOperand(a.terms, values, high)
    kinds = np.where(low > 0, high, low)
    single = np.flatnonzero(kinds == FLOAT)
    if len(single):
        x, y = _singles(a.take(single).values), _singles(b.take(single).values)
        values[single] = _singles(_in_doubles(symbol, x, y))
    if symbol == "/":
        kinds[kinds == INTEGER] = DECIMAL
    integers = _in_integers(symbol, a, b) if (kinds == INTEGER).any() else None
    decimals = _in_decimals(symbol, a, b) if (kinds == DECIMAL).any() else None
    return _exactly(a.terms, values, kinds, integers, decimals)


def _exactly(
    terms: TermDictionary,
    values: FloatArray,
    kinds: KindArray,
    integers: tuple[IntArray, BoolArray] | None,
    decimals: Decimals | None,
) -> NumericOperand:
    """Return calculated numbers, with the exact values for exact types."""
    if integers is not None:
        whole, exact = integers
        kinds[(kinds == INTEGER) & ~exact] = UNKNOWN
        integers = whole, kinds == INTEGER
        values = np.where(kinds == INTEGER, whole.astype(np.float64), values)
    if decimals is not None:
        kinds[(kinds == DECIMAL) & ~decimals.exact] = UNKNOWN
        values = np.where(kinds == DECIMAL, decimals.scaled / 10.0**decimals.digits, values)
    return NumericOperand(terms, values, kinds, None, integers, decimals)


def _in_doubles(symbol: str, x: FloatArray, y: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        match symbol:
            case "+":
                return x + y
            case "-":
                return x - y
            case "*":
                return x * y
        return x / y


def _in_integers(symbol: str, a: NumericOperand, b: NumericOperand) -> tuple[IntArray, BoolArray]:
    """Return results in 64 bits, and where they are exact."""
    (x, x_fits), (y, y_fits) = a.integers, b.integers
    fits = x_fits & y_fits
    if symbol == "*":
        if _most(x) * _most(y) >= 1 << 62:
            fits &= np.abs(x.astype(np.float64) * y.astype(np.float64)) < float(1 << 62)
        return x * y, fits
    result = x + y if symbol == "+" else x - y
    if _most(x) + _most(y) >= 1 << 63:
        other = y if symbol == "+" else ~y
        fits &= ((x ^ result) & (other ^ result)) >= 0
    return result, fits


def _most(values: IntArray) -> int:
    """Return the greatest magnitude."""
    return max(-int(values.min(initial=0)), int(values.max(initial=0)))


def _in_decimals(symbol: str, a: NumericOperand, b: NumericOperand) -> Decimals:
    """Return results whose scaled values are below 2**53, so that their doubles are the nearest."""
    if symbol == "*":
        (x, x_exact, x_digits), (y, y_exact, y_digits) = a.decimals, b.decimals
        digits = x_digits + y_digits
        if digits > _MOST_DIGITS:
            return Decimals(x, x_exact & False, 0)
        exact = x_exact & y_exact
        if _most(x) * _most(y) >= 1 << 53:
            exact &= np.abs(x.astype(np.float64) * y.astype(np.float64)) < _EXACT
        return Decimals(x * y, exact, digits)
    x, y, exact, digits = _aligned(a.decimals, b.decimals)
    if symbol == "/":
        return _quotients(x, y, exact)
    result = x + y if symbol == "+" else x - y
    if _most(result) >= 1 << 53:
        exact &= np.abs(result) < 1 << 53
    return Decimals(result, exact, digits)


def _quotients(x: IntArray, y: IntArray, exact: BoolArray) -> Decimals:
    """Return quotients in millionths; others are not exact."""
    x, fits = _scaled_up(x, 6)
    nonzero = y != 0
    result, rest = np.divmod(x, np.where(nonzero, y, 1))
    exact = exact & fits & nonzero & (rest == 0) & (np.abs(result) < 1 << 53)
    return Decimals(result, exact, 6)


def _aligned(a: Decimals, b: Decimals) -> tuple[IntArray, IntArray, BoolArray, int]:
    """Return two decimals with the same number of digits, and where both are exact."""
    digits = max(a.digits, b.digits)
    (x, x_fits), (y, y_fits) = (_scaled_up(d.scaled, digits - d.digits) for d in (a, b))
    return x, y, a.exact & b.exact & x_fits & y_fits, digits


def _scaled_up(values: IntArray, digits: int) -> tuple[IntArray, BoolArray]:
    bound = (1 << 62) // 10**digits
    return values * 10**digits, (values < bound) & (values > -bound)


def round_numbers(name: str, a: NumericOperand) -> NumericOperand:
    """Apply a function of one number, for a name in ROUNDED; the type stays the same.

    >>> terms = TermDictionary()
    >>> half = NumericOperand.of(terms, terms.of_doubles(np.array([1.5])))
    >>> round_numbers("FLOOR", half).values.tolist()
    [1.0]
    """
    kinds = a.arguments().copy()
    values = a.values if name == "u+" else _ROUNDINGS[name](a.values)
    integers = decimals = None
    if (kinds == INTEGER).any():
        whole, exact = a.integers
        integers = _rounded_decimals(name, whole, 0), exact & (whole != _LEAST)
    if (kinds == DECIMAL).any():
        scaled, exact, digits = a.decimals
        keeps = name in ("u-", "u+", "ABS")
        decimals = Decimals(_rounded_decimals(name, scaled, digits), exact, digits if keeps else 0)
    return _exactly(a.terms, values, kinds, integers, decimals)


def _rounded_decimals(name: str, scaled: IntArray, digits: int) -> IntArray:
    one, result = 10**digits, scaled
    match name:
        case "u-":
            result = -scaled
        case "ABS":
            result = np.abs(scaled)
        case "CEIL":
            result = -(-scaled // one)
        case "FLOOR":
            result = scaled // one
        case "ROUND" if digits:
            result = (2 * scaled + one) // (2 * one)
    return result


def _half_up(values: FloatArray) -> FloatArray:
    """Return fn:round, which preserves the sign of zero."""
    below = np.floor(values)
    with np.errstate(invalid="ignore"):  # infinity less infinity
        return np.copysign(np.where(values - below >= 0.5, below + 1.0, below), values)


_MOST_DIGITS = 18
_LEAST = np.iinfo(np.int64).min
_ROUNDINGS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "u-": np.negative,
    "ABS": np.abs,
    "CEIL": np.ceil,
    "FLOOR": np.floor,
    "ROUND": _half_up,
}


def terms_of(operand: NumericOperand) -> tuple[IntArray, BoolArray]:
    """Return the ids of calculated numbers, and which rows are undecided."""
    kinds, terms = operand.kinds, operand.terms
    if len(kinds) and kinds.min() == DOUBLE:
        return terms.of_doubles(operand.values), np.zeros(len(kinds), np.bool_)
    ids = np.zeros(len(kinds), np.int64)
    doubles = np.flatnonzero(kinds == DOUBLE)
    if len(doubles):
        ids[doubles] = terms.of_doubles(operand.values[doubles])
    integers = np.flatnonzero(kinds == INTEGER)
    if len(integers):
        ids[integers] = terms.of_integers(operand.integers[0][integers])
    decimals = np.flatnonzero(kinds == DECIMAL)
    if len(decimals):
        scaled, _, digits = operand.decimals
        ids[decimals] = terms.of_decimals(scaled[decimals], digits)
    return ids, (kinds == UNKNOWN) | (kinds == FLOAT)
