"""Moments and durations: comparison and arithmetic.

The calendar is compared with Python's datetime, the rest with pyoxigraph.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expressions import durations, moments, ours, oxigraph, typed

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.terms import Literal
from streamsparql.algebra.xsd.durations import DayTimeDuration, XsdDuration
from streamsparql.algebra.xsd.literal_operators import add, equal, less, subtract
from streamsparql.algebra.xsd.moments import DateTime, XsdMoment
from streamsparql.algebra.xsd.values import date_time_literal, literal_of


@pytest.mark.parametrize(
    "line",
    [
        "2020-01-31^date + P1M^duration = 2020-02-29^date",
        "2020-01-31^date + PT36H^dayTimeDuration = 2020-02-01^date",
        "2020-01-01^date - PT1S^duration = 2019-12-31^date",
        "P1Y^duration + 2020-02-29T12:00:00Z^dateTime = 2021-02-28T12:00:00Z^dateTime",
        "0000-01-01T00:00:00Z^dateTime - PT1S^duration = -0001-12-31T23:59:59Z^dateTime",
        "2020-03-31T01:00:00^dateTime - P13M^yearMonthDuration = 2019-02-28T01:00:00^dateTime",
        "23:30:00Z^time + PT45M^dayTimeDuration = 00:15:00Z^time",
        "23:30:00Z^time + P1M^yearMonthDuration = error",
        "2020-03-01T00:00:00Z^dateTime - 2020-02-28T23:00:00-01:00^dateTime = P1D^dayTimeDuration",
        "2020-03-01^date - 2020-02-28^date = P2D^dayTimeDuration",
        "11:00:00^time - 12:30:00^time = -PT1H30M^dayTimeDuration",
        "2020-03-01^date - 2020-02-28Z^date = error",
        "2020-03-01^date + 2020-02-28^date = error",
        "PT36H^dayTimeDuration + PT12H^dayTimeDuration = P2D^dayTimeDuration",
        "P11M^yearMonthDuration + P1M^yearMonthDuration = P1Y^yearMonthDuration",
        "P1Y^yearMonthDuration + P1D^dayTimeDuration = P1Y1D^duration",
        "P1Y^duration - P1D^duration = error",  # both parts must have the same sign
        "PT1H^dayTimeDuration * 1.5^decimal = PT1H30M^dayTimeDuration",
        "3^integer * P5M^yearMonthDuration = P1Y3M^yearMonthDuration",
        "P1M^yearMonthDuration * 2.5^decimal = P3M^yearMonthDuration",
        "PT1H^dayTimeDuration / 4^integer = PT15M^dayTimeDuration",
        "PT1H^duration / INF^double = PT0S^duration",
        "PT1H^duration / 0^double = error",
        "PT1H^duration / NaN^double = error",
        "PT1H^duration * NaN^double = error",
        "PT1H^duration * INF^double = error",
    ],
)
def test_arithmetic_of_dates_times_and_durations_follows_xpath(line: str) -> None:
    a, operator, b, answer = line.replace(" = ", " ").split()
    operands = [typed(*text.split("^")) for text in (a, b)]
    assert ours(operator, *operands) == (None if answer == "error" else typed(*answer.split("^")))


@given(st.datetimes(timezones=st.just(UTC)), st.timedeltas(max_value=timedelta(days=10**6)))
def test_the_calendar_agrees_with_datetime(start: datetime, step: timedelta) -> None:
    try:
        end = start + step
    except OverflowError:
        return
    seconds = Decimal(step // timedelta(microseconds=1)).scaleb(-6)
    a, duration = typed(start.isoformat(), "dateTime"), literal_of(DayTimeDuration(0, seconds))
    assert equal(add(a, duration), typed(end.isoformat(), "dateTime"))
    assert subtract(typed(end.isoformat(), "dateTime"), a) == duration


@given(durations, durations, moments)
def test_a_shorter_duration_ends_earlier_wherever_it_starts(
    x: XsdDuration, y: XsdDuration, start: XsdMoment
) -> None:
    a, b, moment = literal_of(x), literal_of(y), literal_of(DateTime(start.local, start.offset))
    try:
        shorter = less(a, b)
    except ExpressionError:
        return
    if shorter:
        assert less(add(moment, a), add(moment, b))


@given(
    st.integers(-(10**14), 10**14).map(date_time_literal),
    st.sampled_from("+-"),
    durations.map(literal_of),
)
def test_date_time_arithmetic_agrees_with_pyoxigraph(
    moment: Literal, operator: str, by: Literal
) -> None:
    (theirs,) = oxigraph(f"{moment} {operator} {by}")
    if theirs is None:
        return  # pyoxigraph raises errors for some: 1970-01-01T00:00:00Z + P1M
    assert ours(operator, moment, by) == theirs


@given(durations.map(literal_of), durations.map(literal_of))
def test_comparison_of_durations_agrees_with_pyoxigraph(a: Literal, b: Literal) -> None:
    assert [ours("=", a, b), ours("<", a, b)] == oxigraph(f"{a} = {b}", f"{a} < {b}")
