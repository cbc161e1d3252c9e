"""SUM and AVG of terms: how terms are added to exact sums, and how totals become terms.

Integers up to 2**53 and finite doubles are added to one exact sum, decimals to another, in
millionths; longer integers and decimals to a third (`wide_sums`). A double in a group makes its
total a double, otherwise a decimal makes it a decimal: as each summand is exact in the wider type
too, promoting first changes nothing. Groups with doubles and with decimals or long integers are the
exception; these, and groups with other numbers, are left to the definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Context, Decimal
from operator import add
from typing import NamedTuple

import numpy as np

from streamsparql.algebra.terms import XSD
from streamsparql.algebra.xsd.numeric import decimal_text, quotient
from streamsparql.overriding import override
from streamsparql.physical.aggregation.exact_sums import (
    LARGEST_INTEGER,
    Exact,
    ExactSums,
    Limbs,
    mantissas_and_exponents,
)
from streamsparql.physical.aggregation.wide_sums import WideSums, WideTotals, wide_numbers
from streamsparql.physical.batch import BoolArray, FloatArray, IntArray
from streamsparql.physical.dictionary.inline_ids import (
    BASES,
    DECIMAL,
    DOUBLE,
    INTEGER,
    MANTISSA_BASE,
    NO_NUMBER,
    SCALES,
    TAG_DECIMAL,
    TAG_DOUBLE,
    TAG_OTHER,
    TRUE_ID,
    double_values,
)
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.kernels.change_points import Sweep
from streamsparql.physical.state.key_slots import SlotCounter
from streamsparql.physical.state.parts import Stateful

LARGEST_COUNT = 1 << 20
LARGEST_GROUP = 1 << 30
"""The largest multiplicities, of a row and of a group, for which limbs do not overflow."""

_MILLION = 10**6
_MOST_CACHED = 1 << 14
_QUOTIENTS = Context(prec=34)
_LARGEST = 1 << 62


class Summands(NamedTuple):
    """The contributions of terms to the two sums, and the kinds of the terms."""

    mantissa: IntArray
    exponent: IntArray
    millionths: IntArray
    errors: BoolArray
    irregular: BoolArray
    double: BoolArray
    decimal: BoolArray


def summands(terms: TermDictionary, ids: IntArray) -> Summands:
    """Split numbers into mantissas, exponents and millionths.

    >>> terms = TermDictionary()
    >>> split = summands(terms, terms.of_decimals(np.array([25]), 1))
    >>> split.millionths.tolist(), split.decimal.tolist()
    ([2500000], [True])
    """
    values, kinds = terms.numbers(ids)
    double = (kinds == DOUBLE) & np.isfinite(values)
    if double.all():
        zeros, false = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)
        return Summands(*mantissas_and_exponents(values), zeros, false, false, double, false)
    mantissa, exponent = mantissas_and_exponents(np.where(double, values, 0.0))
    whole, known = terms.exact_integers(ids)
    known &= (kinds == INTEGER) & (whole >= -LARGEST_INTEGER) & (whole <= LARGEST_INTEGER)
    mantissa[known] = whole[known]
    millionths, fits = terms.decimals(ids)
    decimal = (kinds == DECIMAL) & fits
    errors = kinds == NO_NUMBER
    irregular = ~(double | known | decimal | errors)
    millionths = np.where(decimal, millionths, 0)
    return Summands(mantissa, exponent, millionths, errors, irregular, double, decimal)


class NumericSums(Stateful):
    """The sums of a column, by slot."""

    derived = ("_known",)

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._binary, self._millionths = ExactSums(), ExactSums()
        self._errors, self._irregular = SlotCounter(), SlotCounter()
        self._decimals, self._not_doubles = SlotCounter(), SlotCounter()
        self._wide, self._wides = WideSums(), SlotCounter()
        self._known: dict[int, int] = {}

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return {
            "binary": self._binary,
            "millionths": self._millionths,
            "errors": self._errors,
            "irregular": self._irregular,
            "decimals": self._decimals,
            "not doubles": self._not_doubles,
            "wide": self._wide,
            "wide numbers": self._wides,
        }

    def after(self, sweep: Sweep, ids: IntArray, count: IntArray, rows: IntArray) -> Totals:
        """Add terms, each `count` times; return the totals after each point."""
        self._known.clear()
        added = summands(self._terms, ids)
        large = np.abs(count) > LARGEST_COUNT
        if added.double.all() and not self._not_doubles.used and not large.any():
            return Totals(
                self._terms,
                rows,
                None,
                self._binary.after(sweep, added.mantissa, added.exponent, count),
                None,
                None,
            )
        irregular, decimal = added.irregular | large & ~added.errors, added.decimal
        at = np.flatnonzero(added.irregular & ~large)
        wide = None
        if len(at) or self._wide.used:
            numbers = wide_numbers(self._terms, ids[at])
            at, numbers = at[numbers.known], numbers.where_known()
            wide = self._wide.after(sweep, at, numbers, count)
            irregular[at] = False
            decimal = decimal.copy()
            decimal[at] = numbers.decimal
        is_wide = np.zeros(len(ids), np.bool_)
        is_wide[at] = True
        kinds = KindCounts(
            self._errors.after(sweep, np.where(added.errors, count, 0)),
            self._irregular.after(sweep, np.where(irregular, count, 0)),
            self._decimals.after(sweep, np.where(decimal, count, 0)),
            self._wides.after(sweep, np.where(is_wide, count, 0)),
            rows - self._not_doubles.after(sweep, np.where(added.double, 0, count)),
        )
        plain = np.where(large, 0, count)
        binary = self._binary.after(sweep, added.mantissa, added.exponent, plain)
        exact = None
        if self._decimals.used:
            zero = np.zeros(len(ids), np.int64)
            exact = self._millionths.after(sweep, added.millionths, zero, plain)
        return Totals(self._terms, rows, kinds, binary, exact, wide)

    def numbers(self, ids: list[int]) -> list[int] | None:
        """Return inlined doubles as integers to add; None if there are, or were, other terms.

        Results are cached until the next sweep: an element is read when it starts and when it ends.
        """
        known = self._known
        new = [i for i in ids if i not in known]
        if new:
            values = None if self._not_doubles.used else inlined_doubles(new)
            numbers = None if values is None else self._binary.scaled(values)
            if numbers is None:
                return None
            if len(known) > _MOST_CACHED:
                known.clear()
                return self.numbers(ids)
            known.update(zip(new, numbers, strict=True))
        return [known[i] for i in ids]

    def of(self, slots: IntArray) -> list[int]:
        """Return the sums of slots, as integers of the scale of `numbers`."""
        return self._binary.of(slots)

    def put(self, slots: IntArray, numbers: list[int]) -> None:
        """Replace the sums of slots for which `of` was called."""
        self._binary.put(slots, numbers)

    def exact(self, numbers: list[int]) -> Exact:
        """Return the exact values of integers of the scale of `numbers`."""
        return self._binary.exact(numbers)


def inlined_doubles(ids: list[int]) -> FloatArray | None:
    """Return the values of inlined doubles; None if there are other terms.

    >>> terms = TermDictionary()
    >>> number = '"{}"^^<http://www.w3.org/2001/XMLSchema#double>'.format
    >>> ids = terms.encode([number("2.5"), number("2.50")]).tolist()
    >>> inlined_doubles(ids), inlined_doubles([*ids, 7])
    (array([2.5, 2.5]), None)
    """
    if not BASES[TAG_DOUBLE] <= min(ids) <= max(ids) < 0:
        return None
    values = double_values(np.array(ids, np.int64))
    for k, term in enumerate(ids):
        if term >= BASES[TAG_DECIMAL]:
            if term <= TRUE_ID:
                return None
            mantissa, scale = divmod(term - BASES[TAG_OTHER], SCALES)
            values[k] = (mantissa - MANTISSA_BASE) / 10**scale
    return values


class KindCounts(NamedTuple):
    """The number of summands of each kind after each point."""

    errors: IntArray
    irregular: IntArray
    decimals: IntArray
    wides: IntArray
    doubles: IntArray


class Totals:
    """The totals of a column after each point."""

    def __init__(
        self,
        terms: TermDictionary,
        rows: IntArray,
        kinds: KindCounts | None,
        binary: Limbs,
        millionths: Limbs | None,
        wide: WideTotals | None,
    ) -> None:
        self._terms, self._rows = terms, rows
        self._left = rows >= LARGEST_GROUP
        self._only_doubles = kinds is None
        if kinds is None:
            self._floats = binary.doubles()
            return
        errors, irregular, decimals, wides, doubles = kinds
        self._left |= (irregular > 0) | (doubles > 0) & ((decimals > 0) | (wides > 0))
        self._left &= errors == 0
        plain = ~(self._left | (errors > 0))
        self._double = plain & (doubles > 0)
        self._whole = plain & (doubles == 0) & (decimals == 0)
        self._decimal = plain & (decimals > 0) & (doubles == 0)
        self._floats = binary.doubles() if self._double.any() else np.zeros(len(rows))
        self._exact = np.zeros(len(rows), np.int64)
        self._digits = 6 if wide is None else max(6, wide.digits)
        self._long_whole = self._long_decimal = np.zeros(len(rows), np.bool_)
        self._parts = (binary, millionths, wide)
        if not self._double.all():
            self._add_up()

    def _add_up(self) -> None:
        """Compute the totals that are integers or decimals."""
        binary, millionths, wide = self._parts
        whole, fits = binary.integers()
        scaled, small = whole, fits
        more = 10 ** (self._digits - 6)
        if millionths is not None and more < _LARGEST // _MILLION:
            part, both = millionths.integers()
            small = fits & both & (np.abs(part) < _LARGEST // more)
            small &= np.abs(whole) < _LARGEST // (_MILLION * more)
            scaled = np.where(small, whole, 0) * (_MILLION * more) + np.where(small, part, 0) * more
        elif self._decimal.any():
            small = np.zeros(len(whole), np.bool_)
        if wide is not None:
            long, both = wide.scaled(0)
            fits = fits & both & (np.abs(whole) < _LARGEST)
            whole = np.where(fits, whole, 0) + np.where(fits, long, 0)
            long, both = wide.scaled(self._digits)
            small = small & both & (np.abs(scaled) < _LARGEST)
            scaled = np.where(small, scaled, 0) + np.where(small, long, 0)
            fits, small = fits & (np.abs(whole) < _LARGEST), small & (np.abs(scaled) < _LARGEST)
        self._exact = np.where(self._decimal, scaled, whole)
        self._long_whole, self._long_decimal = self._whole & ~fits, self._decimal & ~small
        self._whole &= fits
        self._decimal &= small

    def _long_totals(self) -> Iterator[tuple[IntArray, list[int], int]]:
        """Yield the places of the totals that `_exact` cannot hold, the totals, their digits."""
        binary, millionths, wide = self._parts
        for mask, digits in ((self._long_whole, 0), (self._long_decimal, self._digits)):
            places = np.flatnonzero(mask)
            if not len(places):
                continue
            totals = [n * 10**digits for n in binary.numbers(places)]
            if millionths is not None and digits:
                more = 10 ** (digits - 6)
                parts = millionths.numbers(places)
                totals = [n + part * more for n, part in zip(totals, parts, strict=True)]
            if wide is not None:
                totals = list(map(add, totals, wide.numbers(places, digits)))
            yield places, totals, digits

    def sums(self) -> tuple[IntArray, BoolArray]:
        """Return the ids of the sums, 0 for errors, and a mask of those left to the definition."""
        if self._only_doubles:
            return self._of_doubles(self._floats)
        ids = np.zeros(len(self._rows), np.int64)
        double, whole, decimal = self._double, self._whole, self._decimal
        if double.any():
            ids[double] = self._terms.of_doubles(self._floats[double])
        if whole.any():
            ids[whole] = self._terms.of_integers(self._exact[whole])
        if decimal.any():
            ids[decimal] = self._terms.of_decimals(self._exact[decimal], self._digits)
        for places, totals, digits in self._long_totals():
            ids[places] = self._terms.encode([_sum_text(total, digits) for total in totals])
        return ids, self._left

    def averages(self) -> tuple[IntArray, BoolArray]:
        """Return the ids of the averages, and a mask of those that are left to the definition.

        The average of no terms is the integer 0.
        """
        if self._only_doubles:
            return self._of_doubles(self._floats / np.maximum(self._rows, 1))
        ids = np.zeros(len(self._rows), np.int64)
        double, rows = self._double, self._rows
        if double.any():
            ids[double] = self._terms.of_doubles(self._floats[double] / rows[double])
        for mask, digits in ((self._whole, 0), (self._decimal, self._digits)):
            places = np.flatnonzero(mask & (rows > 0))
            if len(places):
                ids[places] = self._quotients(self._exact[places], digits, rows[places])
        for places, totals, digits in self._long_totals():
            pairs = zip(totals, rows[places].tolist(), strict=True)
            texts = [_average_text(total, digits, count) for total, count in pairs]
            ids[places] = self._terms.encode(texts)
        empty = self._whole & (rows == 0)
        if empty.any():
            ids[empty] = self._terms.of_integers(np.zeros(1, np.int64))
        return ids, self._left

    def _of_doubles(self, values: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the ids of doubles; the integer 0 for groups without rows."""
        ids = self._terms.of_doubles(values)
        empty = self._rows == 0
        if empty.any():
            ids[empty] = self._terms.of_integers(np.zeros(1, np.int64))
        return ids, self._left

    def _quotients(self, totals: IntArray, digits: int, rows: IntArray) -> IntArray:
        """Return the ids of `totals` / 10**`digits` / `rows`, decimals of at most 34 digits."""
        ids = np.zeros(len(totals), np.int64)
        left = np.arange(len(totals))
        for more in (0, 3, 6):
            scaled = totals[left] * 10**more
            short = (np.abs(totals[left]) < _LARGEST // 10**more) & (scaled % rows[left] == 0)
            places = left[short]
            ids[places] = self._terms.of_decimals(scaled[short] // rows[places], digits + more)
            left = left[~short]
            if not len(left):
                return ids
        pairs, code = np.unique(np.stack([totals[left], rows[left]]), axis=1, return_inverse=True)
        texts = [_quotient_text(total, n * 10**digits) for total, n in pairs.T.tolist()]
        ids[left] = self._terms.encode(texts)[code.reshape(-1)]
        return ids


def _sum_text(total: int, digits: int) -> str:
    """Return the integer `total`, or with `digits` the decimal `total` / 10**`digits`.

    >>> _sum_text(-125, 2)
    '"-1.25"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """
    return f'"{_digits_text(total, digits)}"^^<{XSD}{"decimal" if digits else "integer"}>'


def _digits_text(total: int, digits: int) -> str:
    if not digits:
        return str(total)
    text = str(abs(total)).zfill(digits + 1)
    fraction = text[-digits:].rstrip("0")
    return f"{'-' * (total < 0)}{text[:-digits]}{'.' * bool(fraction)}{fraction}"


def _average_text(total: int, digits: int, rows: int) -> str:
    """Return an average as `algebra.xsd.numeric` computes it: of a long total, with its digits.

    >>> _average_text(10**40 + 1, 0, 1)[:15]
    '"10000000000000'
    """
    value = quotient(Decimal(_digits_text(total, digits)), rows)
    return f'"{decimal_text(value)}"^^<{XSD}decimal>'


def _quotient_text(total: int, rows: int) -> str:
    """Return a quotient in N-Triples, rounded and written as in `algebra.xsd.numeric`.

    >>> _quotient_text(1, 8)
    '"0.125"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """
    quotient = _QUOTIENTS.divide(Decimal(total), rows).normalize(_QUOTIENTS)
    return f'"{quotient:f}"^^<{XSD}decimal>'
