"""Sums that are exact at each change point, whatever was added before, and rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamsparql.physical.aggregation.exact_sums import ExactSums, Limbs, mantissas_and_exponents
from streamsparql.physical.kernels.change_points import Sweep

doubles = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-40, 40),
    st.integers(-9, 9).map(float),
    st.sampled_from([5e-324, 2.0**-1022, -(2.0**-1074), 1.7976931348623157e308, 2.0**53, 2.0**-53]),
    st.sampled_from([1.0, 1 + 2.0**-52, -1.0, 2.0**-54, 3 * 2.0**-54, 2.0**970, -(2.0**970)]),
)
events = st.lists(st.tuples(doubles, st.sampled_from([1, 1, 1, 2, 1000])), min_size=1, max_size=40)


def rounded(exact: Fraction) -> float:
    """Return the nearest double, or an infinity on overflow."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def check(steps: list[list[tuple[float, int]]], many: bool) -> None:
    """Add events to two slots in turn; compare the sums after each.

    With `many` points arrays are rounded, else integers of Python.
    """
    sums, exact = ExactSums(), [Fraction(0), Fraction(0)]
    for step in steps:
        step = step * (20 if many else 1)
        values = np.array([value for value, _ in step])
        count = np.array([times for _, times in step])
        slots, times = np.arange(len(step)) % 2, np.arange(len(step))
        sums_after = sums.after(
            Sweep(slots, times, 2), *mantissas_and_exponents(values), count
        ).doubles()
        expected = np.empty(len(step))
        for i, (value, n) in enumerate(step):
            exact[i % 2] += Fraction(value) * n
            expected[i] = rounded(exact[i % 2])
        in_order = np.lexsort((times, slots))
        assert sums_after.tobytes() == (expected[in_order] + 0.0).tobytes()


@pytest.mark.parametrize("many", [False, True])
def test_sums_of_doubles_are_rounded_once(many: bool) -> None:
    @given(st.lists(events, min_size=1, max_size=3))
    @settings(max_examples=60)
    @example([[(1e308, 1), (1e308, 1)], [(-1e308, 1), (5e-324, 1)]])
    @example([[(2.0**53, 1), (1.0, 1), (2.0**-1074, 1)]])
    def test(steps: list[list[tuple[float, int]]]) -> None:
        check(steps, many)

    test()


@pytest.mark.long
@pytest.mark.parametrize("many", [False, True])
def test_many_sums_of_doubles_are_rounded_once(many: bool) -> None:
    @given(st.lists(events, min_size=1, max_size=6))
    @settings(max_examples=5000)
    def test(steps: list[list[tuple[float, int]]]) -> None:
        check(steps, many)

    test()


@given(
    st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3), min_size=1),
    st.sampled_from([0, -32, -64]),
    st.booleans(),
)
def test_integers_are_exact_or_reported_not_to_fit(
    numbers: list[list[int]], base: int, many: bool
) -> None:
    below = -base // 32
    rows = [[0] * below + number for number in numbers] * (20 if many else 1)
    values, fits = Limbs(base, np.array(rows, np.int64).T).integers()
    for row, value, fit in zip(rows, values.tolist(), fits.tolist(), strict=True):
        exact = sum(limb << (32 * i) for i, limb in enumerate(row)) >> (32 * below)
        assert fit == (-(2**62) < exact < 2**62)
        assert not fit or value == exact


@given(doubles)
def test_mantissa_and_exponent_are_those_of_the_double(value: float) -> None:
    mantissa, exponent = (int(array[0]) for array in mantissas_and_exponents(np.array([value])))
    assert Fraction(mantissa) * Fraction(2) ** exponent == Fraction(value)


def test_a_sum_is_zero_after_all_values_expired() -> None:
    sums = ExactSums()
    random = np.random.default_rng(1)
    values = random.random(500) * 10.0 ** random.integers(-300, 300, 500)
    for sign in (1, -1):
        order = random.permutation(500)
        sweep = Sweep(np.zeros(500, np.int64), np.arange(500), 1)
        sums_after = sums.after(
            sweep, *mantissas_and_exponents(values[order]), np.full(500, sign)
        ).doubles()
        assert sums_after[-1] == (math.fsum(values) if sign > 0 else 0)
