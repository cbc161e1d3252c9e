"""The values of literals, and the canonical literals of values."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expressions import term, typed

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.terms import IRI, XSD, Literal, Term
from streamsparql.algebra.xsd.durations import DayTimeDuration, XsdDuration
from streamsparql.algebra.xsd.moments import DateTime
from streamsparql.algebra.xsd.numeric import Single
from streamsparql.algebra.xsd.values import (
    XsdValue,
    date_time_literal,
    duration_literal,
    duration_milliseconds,
    literal_of,
    milliseconds_of,
    value_of,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ('"0"^^xsd:boolean', False),
        ('"+007"^^xsd:integer', 7),
        ('"-0"^^xsd:nonNegativeInteger', 0),
        ('"255"^^xsd:unsignedByte', 255),
        ('"18446744073709551615"^^xsd:unsignedLong', 2**64 - 1),
        ('".50"^^xsd:decimal', Decimal("0.5")),
        ('"7."^^xsd:decimal', Decimal(7)),
        ('"-INF"^^xsd:double', -math.inf),
        ('"1.5E+2"^^xsd:double', 150.0),
        ('"16777217"^^xsd:float', Single(16777216.0)),
        ('"1e39"^^xsd:float', Single(math.inf)),
        ('"a"', "a"),
        ('"P1Y2M3DT4H5M6.7S"^^xsd:duration', XsdDuration(14, Decimal("273906.7"))),
        ('"-PT36H"^^xsd:dayTimeDuration', DayTimeDuration(0, Decimal(-129600))),
        ('"1970-01-01T00:00:00Z"^^xsd:dateTime', DateTime(Decimal(0), 0)),
        ('"1970-01-01T00:00:00.25-08:30"^^xsd:dateTimeStamp', DateTime(Decimal("0.25"), -510)),
        ('"1969-12-31T24:00:00"^^xsd:dateTime', DateTime(Decimal(0), None)),
    ],
)
def test_a_literal_denotes_a_value_of_its_datatype(text: str, value: XsdValue) -> None:
    actual = value_of(term(text))
    assert (type(actual), actual) == (type(value), value)


@pytest.mark.parametrize(
    ("datatype", "lexicals"),
    [
        ("boolean", ["TRUE", "yes", ""]),
        ("integer", ["1.0", "1e0", " 1", "1_000", "٣", "9" * 5000]),
        ("byte", ["128", "-129"]),
        ("unsignedInt", ["-1", "4294967296"]),
        ("positiveInteger", ["0"]),
        ("negativeInteger", ["0"]),
        ("decimal", ["1e0", ".", "INF", "1,5"]),
        ("double", ["inf", "nan", "1e", "0x1"]),
        ("dateTime", ["2020-01-01", "2020-1-1T00:00:00", "02020-01-01T00:00:00"]),
        ("dateTime", ["2021-02-29T00:00:00", "2020-01-01T24:00:01", "2020-01-01T00:00:60"]),
        ("dateTime", ["2020-01-01T00:00:00+14:01", "2020-01-01T00:00:00+1:00"]),
        ("dateTimeStamp", ["2020-01-01T00:00:00"]),
        ("date", ["2020-02-30", "2020-02-01T00:00:00"]),
        ("time", ["24:00:01", "12:00"]),
        ("gMonthDay", ["--02-30", "02-01"]),
        ("duration", ["P", "PT", "P1YT", "P1H", "1D", "P1.5D", "P-1D", f"P{'9' * 5000}Y"]),
        ("dayTimeDuration", ["P1Y", "P1M"]),
        ("yearMonthDuration", ["P1D", "PT1M"]),
    ],
)
def test_an_ill_typed_literal_has_no_value(datatype: str, lexicals: list[str]) -> None:
    assert [value_of(typed(lexical, datatype)) for lexical in lexicals] == [None] * len(lexicals)


def test_other_terms_and_unknown_datatypes_have_no_value() -> None:
    assert {value_of(term(text)) for text in ["<x:a>", "_:b", '"a"@en', '"1"^^<x:t>']} == {None}


@pytest.mark.parametrize(
    ("datatype", "lexical", "canonical"),
    [
        ("boolean", "1", "true"),
        ("integer", "+01", "1"),
        ("decimal", "+02.50", "2.5"),
        ("decimal", "100.0", "100"),
        ("decimal", "-0.0", "0"),
        ("double", "1.0", "1"),
        ("double", "-0", "-0"),
        ("double", "0.1", "0.1"),
        ("double", "999999.5", "999999.5"),
        ("double", "1000000", "1.0E6"),
        ("double", "0.000001", "0.000001"),
        ("double", "-0.00000012", "-1.2E-7"),
        ("double", "NaN", "NaN"),
        ("float", "0.1", "0.1"),
        ("float", "3.4028235e38", "3.4028235E38"),
        ("float", "1e39", "INF"),
        ("dateTime", "-0044-03-15T12:00:00.500+01:00", "-0044-03-15T12:00:00.5+01:00"),
        ("dateTime", "1999-12-31T24:00:00-00:00", "2000-01-01T00:00:00Z"),
        ("dateTime", "12020-01-01T00:00:00", "12020-01-01T00:00:00"),
        ("date", "2020-02-29+14:00", "2020-02-29+14:00"),
        ("time", "24:00:00Z", "00:00:00Z"),
        ("gYear", "0000", "0000"),
        ("gYearMonth", "-0001-12Z", "-0001-12Z"),
        ("gMonth", "--02", "--02"),
        ("gMonthDay", "--02-29", "--02-29"),
        ("gDay", "---31Z", "---31Z"),
        ("duration", "P13MT3600.50S", "P1Y1MT1H0.5S"),
        ("duration", "-P0D", "PT0S"),
        ("dayTimeDuration", "PT36H", "P1DT12H"),
        ("yearMonthDuration", "P0Y", "P0M"),
    ],
)
def test_values_have_the_canonical_form_of_xpath(
    datatype: str, lexical: str, canonical: str
) -> None:
    value = value_of(typed(lexical, datatype))
    assert value is not None
    assert literal_of(value) == typed(canonical, datatype)


# -- Milliseconds -------------------------------------------------------------------------------


@given(st.integers(-(10**17), 10**17))
def test_milliseconds_round_trip_through_a_date_time(milliseconds: int) -> None:
    written = date_time_literal(milliseconds)
    assert written.lexical.endswith("Z")
    assert milliseconds_of(written) == milliseconds


@given(st.integers(-(10**17), 10**17))
def test_milliseconds_round_trip_through_a_duration(milliseconds: int) -> None:
    assert duration_milliseconds(duration_literal(milliseconds)) == milliseconds


def test_a_duration_literal_has_the_requested_datatype() -> None:
    day_time = IRI(XSD + "dayTimeDuration")
    assert duration_literal(1).datatype == IRI(XSD + "duration")
    assert duration_literal(1, day_time) == Literal("PT0.001S", day_time)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (milliseconds_of, '"2020-01-01"^^xsd:date'),
        (milliseconds_of, '"2020-01-01T00:00:00Z"'),
        (duration_milliseconds, '"P1M"^^xsd:duration'),
        (duration_milliseconds, "5"),
    ],
)
def test_only_date_times_and_durations_without_months_have_milliseconds(
    function: Callable[[Term], int], text: str
) -> None:
    with pytest.raises(ExpressionError):
        function(term(text))
