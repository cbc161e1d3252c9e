"""What literals are worth, and what the operators of SPARQL make of them.

Terms are written as in Turtle: `1`, `1.5`, `1e0`, `true`, `"1"^^xsd:byte`, `"chat"@fr`. Two oracles
stand outside: Python's datetime for the calendar, pyoxigraph for the operators. Where pyoxigraph
leaves the specification, the case has a name here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import product
from random import Random

import pyoxigraph as ox
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamsparql.algebra.functions import FUNCTIONS, Run
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term, integer
from streamsparql.algebra.values import (
    CAST_TARGETS,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    ExpressionError,
    Moment,
    Single,
    Time,
    Value,
    add,
    cast,
    comparison_key,
    date_time_literal,
    divide,
    duration_literal,
    duration_milliseconds,
    effective_boolean_value,
    equal,
    less,
    literal_of,
    milliseconds_of,
    multiply,
    negate,
    order_key,
    plus,
    subtract,
    value_of,
)


def from_oxigraph(found: object) -> Term:
    match found:
        case ox.NamedNode():
            return IRI(found.value)
        case ox.BlankNode():
            return BlankNode(found.value)
        case ox.Literal() if found.language:
            return Literal(found.value, language=found.language)
        case ox.Literal():
            return Literal(found.value, IRI(found.datatype.value))
    raise AssertionError(f"{found} is no term")


@cache
def term(text: str) -> Term:
    """A term as Turtle writes it."""
    turtle = f"@prefix xsd: <{XSD}> . <x:s> <x:p> {text} ."
    (triple,) = ox.parse(turtle, format=ox.RdfFormat.TURTLE)
    return from_oxigraph(triple.object)


def typed(lexical: str, name: str) -> Literal:
    return Literal(lexical, IRI(XSD + name))


def result(operator: Callable[..., Term | bool], *operands: str) -> Term | bool | None:
    """What an operator gives on operands in Turtle; None for an error."""
    try:
        return operator(*map(term, operands))
    except ExpressionError:
        return None


def ours(operator: str, *operands: Term) -> Term | None:
    try:
        return FUNCTIONS[operator].apply(Run(), *operands)
    except ExpressionError:
        return None


# -- Values -------------------------------------------------------------------------------------


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
        ('"P1Y2M3DT4H5M6.7S"^^xsd:duration', Duration(14, Decimal("273906.7"))),
        ('"-PT36H"^^xsd:dayTimeDuration', DayTimeDuration(0, Decimal(-129600))),
        ('"1970-01-01T00:00:00Z"^^xsd:dateTime', DateTime(Decimal(0), 0)),
        ('"1970-01-01T00:00:00.25-08:30"^^xsd:dateTimeStamp', DateTime(Decimal("0.25"), -510)),
        ('"1969-12-31T24:00:00"^^xsd:dateTime', DateTime(Decimal(0), None)),
    ],
)
def test_a_literal_denotes_a_value_of_its_datatype(text: str, value: Value) -> None:
    found = value_of(term(text))
    assert (type(found), found) == (type(value), value)


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


def test_terms_that_are_no_typed_literals_have_no_value() -> None:
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
def test_the_canonical_form_of_a_value_is_that_of_xpath(
    datatype: str, lexical: str, canonical: str
) -> None:
    value = value_of(typed(lexical, datatype))
    assert value is not None
    assert literal_of(value) == typed(canonical, datatype)


# -- Equality and order -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        # values of one space, whatever they are written as
        ("1", "01", True),
        ("1", "1.0", True),
        ("0.1", "0.1e0", True),
        ('"0.1"^^xsd:float', "0.1e0", False),
        ("-0e0", "0", True),
        ('"NaN"^^xsd:double', '"NaN"^^xsd:double', False),
        ('"1"^^xsd:boolean', "true", True),
        ('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T01:00:00+01:00"^^xsd:dateTime', True),
        ('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T00:00:00Z"^^xsd:dateTimeStamp', True),
        ('"08:00:00+09:00"^^xsd:time', '"17:00:00-06:00"^^xsd:time', False),
        ('"P1Y"^^xsd:yearMonthDuration', '"P12M"^^xsd:duration', True),
        ('"P1M"^^xsd:duration', '"P30D"^^xsd:duration', False),
        ('"PT0S"^^xsd:dayTimeDuration', '"P0M"^^xsd:yearMonthDuration', True),
        # disjoint value spaces
        ("1", "true", False),
        ("1", '"1"', False),
        ('"2020-01-01"^^xsd:date', '"2020-01-01T00:00:00"^^xsd:dateTime', False),
        ('"chat"@fr', '"chat"@en', False),
        ('"chat"@fr', '"chat"', False),
        ('"chat"@fr', '"chat"@FR', True),
        ("<x:a>", "<x:a>", True),
        ("<x:a>", '"x:a"', False),
        # what cannot be known (open-world-*)
        ('"a"^^<x:t>', '"a"^^<x:t>', True),
        ('"a"^^<x:t>', '"b"^^<x:t>', None),
        ('"a"^^<x:t>', '"a"', None),
        ('"a"^^<x:t>', '"a"@en', False),
        ('"a"^^<x:t>', "<x:a>", False),
        ('"300"^^xsd:byte', "300", None),
        ('"x"^^xsd:integer', '"x"^^xsd:integer', True),
        ('"2006-08-23"^^xsd:date', '"2006-08-23Z"^^xsd:date', None),
        ('"2006-08-23"^^xsd:date', '"2006-08-25Z"^^xsd:date', False),
    ],
)
def test_equality(a: str, b: str, answer: bool | None) -> None:
    assert result(equal, a, b) is answer
    assert result(equal, b, a) is answer


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ("1", "1.5", True),
        ("9007199254740992e0", "9007199254740993", False),  # equal, once promoted to double
        ('"NaN"^^xsd:double', "1", False),
        ("1", '"NaN"^^xsd:double', False),
        ("false", "true", True),
        ('"a"', '"b"', True),
        ('"\U0001f600"', '"\uffff"', False),  # by code point, not by UTF-16 unit
        ('"a"@en', '"b"@en', None),
        ("<x:a>", "<x:b>", None),
        ("1", '"2"', None),
        ('"2020"^^xsd:gYear', '"2021"^^xsd:gYear', True),
        ('"2020-01-01"^^xsd:date', '"2020-01-02T00:00:00"^^xsd:dateTime', None),
        # the order is known when it holds wherever the clock without a time zone stands
        ('"2020-01-01T00:00:00"^^xsd:dateTime', '"2020-01-01T14:00:00Z"^^xsd:dateTime', None),
        ('"2020-01-01T00:00:00"^^xsd:dateTime', '"2020-01-01T14:00:01Z"^^xsd:dateTime', True),
        ('"2020-01-01T14:00:01"^^xsd:dateTime', '"2020-01-01T00:00:00Z"^^xsd:dateTime', False),
        # and for durations when it holds wherever one starts to count (XSD 1.1, 3.3.6)
        ('"P1M"^^xsd:duration', '"P27D"^^xsd:dayTimeDuration', False),
        ('"P1M"^^xsd:yearMonthDuration', '"P28D"^^xsd:duration', None),
        ('"P1M"^^xsd:duration', '"P31D"^^xsd:duration', None),
        ('"P1M"^^xsd:duration', '"P32D"^^xsd:duration', True),
        ('"P1Y"^^xsd:duration', '"P364D"^^xsd:duration', False),
        ('"P1Y"^^xsd:duration', '"P367D"^^xsd:duration', True),
        ('"PT5M"^^xsd:duration', '"P30D"^^xsd:duration', True),
    ],
)
def test_less(a: str, b: str, answer: bool | None) -> None:
    assert result(less, a, b) is answer


SAMPLES = [  # in lines of one value space each
    *(
        "1",
        "01",
        "2",
        "0",
        "-7",
        '"1"^^xsd:byte',
        '"300"^^xsd:byte',
        "16777217",
        "9007199254740993",
    ),
    *("1.0", "2.5", "0.1", "1e0", "0.1e0", "-0e0", "1e300", "9007199254740992e0"),
    *('"1"^^xsd:float', '"0.1"^^xsd:float', '"16777216"^^xsd:float', '"-INF"^^xsd:float'),
    *('"INF"^^xsd:double', '"NaN"^^xsd:double', '"NaN"^^xsd:float'),
    *('""', '"a"', '"b"', '"1"', '"a"@en', '"a"@fr', '"b"@en'),
    *("true", "false", '"1"^^xsd:boolean'),
    *('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T01:00:00+01:00"^^xsd:dateTime'),
    *('"2020-01-01T00:00:00"^^xsd:dateTime', '"2020-01-02T00:00:00"^^xsd:dateTime'),
    *('"2020-01-01"^^xsd:date', '"2020-01-01Z"^^xsd:date', '"2020-01-03"^^xsd:date'),
    *('"00:00:00"^^xsd:time', '"01:00:00Z"^^xsd:time'),
    *('"2020"^^xsd:gYear', '"2021"^^xsd:gYear', '"2020Z"^^xsd:gYear', '"2020-02"^^xsd:gYearMonth'),
    *('"--02"^^xsd:gMonth', '"--02-28"^^xsd:gMonthDay', '"---02"^^xsd:gDay'),
    *('"P1M"^^xsd:duration', '"P30D"^^xsd:duration', '"P27D"^^xsd:duration', '"P1Y"^^xsd:duration'),
    *('"P1M"^^xsd:yearMonthDuration', '"P30D"^^xsd:dayTimeDuration', '"-P1D"^^xsd:duration'),
    *('"x"^^xsd:integer', '"y"^^xsd:integer', '"yes"^^xsd:boolean', '"2020-02-30"^^xsd:date'),
    *('"a"^^<x:t>', '"b"^^<x:t>', "<x:a>", "<x:b>", "_:a"),
]

numbers = st.one_of(
    st.integers(-(10**6), 10**6),
    st.integers(),
    st.decimals(-(10**6), 10**6, places=6),
    st.floats(),
    st.floats(width=32).map(Single),
)
moments = st.builds(
    lambda kind, local, offset: kind.at(local, offset),
    st.sampled_from([DateTime, Date, Time]),
    st.decimals(-(10**12), 10**12, places=3),
    st.none() | st.integers(-840, 840),
)
durations = st.builds(
    lambda sign, months, seconds: Duration(sign * months, sign * seconds),
    st.sampled_from([1, -1]),
    st.integers(0, 30),
    st.decimals(0, 10**8, places=3),
)
any_terms = st.one_of(
    st.sampled_from(SAMPLES).map(term),
    st.one_of(numbers, moments, durations, st.text(max_size=3)).map(literal_of),
)


@given(any_terms, any_terms)
def test_the_sort_keys_agree_with_less(a: Term, b: Term) -> None:
    try:
        smaller = less(a, b)
    except ExpressionError:
        return
    if smaller:
        assert comparison_key(a) < comparison_key(b)
        assert order_key(a) < order_key(b)


@given(any_terms, any_terms)
def test_two_terms_share_a_place_only_if_they_are_one(a: Term, b: Term) -> None:
    assert (order_key(a) < order_key(b)) + (order_key(b) < order_key(a)) == (a != b)


@given(st.lists(any_terms, max_size=6), st.randoms())
def test_sorting_does_not_depend_on_the_order_that_it_finds(
    found: list[Term], random: Random
) -> None:
    shuffled = random.sample(found, len(found))
    assert sorted(shuffled, key=order_key) == sorted(found, key=order_key)


def test_order_by_puts_unbound_first_then_blank_nodes_then_iris_then_literals() -> None:
    texts = ["_:b", "<x:a>", "<x:b>", "-1", "1.5", "2", '"a"', '"a"@en', '"b"', "true"]
    ordered = [None, *map(term, texts)]
    assert sorted(sorted(ordered, key=str), key=order_key) == ordered


@given(durations, durations, moments)
def test_a_shorter_duration_ends_earlier_wherever_it_starts(
    x: Duration, y: Duration, start: Moment
) -> None:
    a, b, moment = literal_of(x), literal_of(y), literal_of(DateTime(start.local, start.offset))
    try:
        shorter = less(a, b)
    except ExpressionError:
        return
    if shorter:
        assert less(add(moment, a), add(moment, b))


@pytest.mark.parametrize(("a", "b"), [("1", "1.0"), ("01", "1e0"), ("-0e0", "0")])
def test_what_is_equal_leaves_the_order_to_the_next_key(a: str, b: str) -> None:
    assert comparison_key(term(a)) == comparison_key(term(b))


# -- Arithmetic ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "operator", "b", "answer"),
    [
        ("1", add, "2", "3"),
        ('"100"^^xsd:byte', add, '"100"^^xsd:byte', "200"),
        ("1", add, "1.5", '"2.5"^^xsd:decimal'),
        ("0.1", add, "0.2", '"0.3"^^xsd:decimal'),
        ("0.1e0", add, "0.2e0", '"0.30000000000000004"^^xsd:double'),
        ('"0.1"^^xsd:float', add, "0.2", '"0.3"^^xsd:float'),
        ('"0.1"^^xsd:float', add, "0.1e0", '"0.20000000149011612"^^xsd:double'),
        ('"1e38"^^xsd:float', multiply, "10", '"INF"^^xsd:float'),
        ("6", divide, "3", '"2"^^xsd:decimal'),
        ("2.0", subtract, "2.0", '"0"^^xsd:decimal'),
        ("1", divide, "0", None),
        ("1", divide, "0.0", None),
        ("1", divide, "0e0", '"INF"^^xsd:double'),
        ("-1e0", divide, "0", '"-INF"^^xsd:double'),
        ("0", divide, "0e0", '"NaN"^^xsd:double'),
        ("1e0", divide, "-0e0", '"-INF"^^xsd:double'),
        ("1", add, '"1"', None),
        ("true", add, "1", None),
        ('"300"^^xsd:byte', add, "1", None),
        ("<x:a>", add, "1", None),
    ],
)
def test_numbers_are_promoted_to_the_wider_type(
    a: str, operator: Callable[..., Literal], b: str, answer: str | None
) -> None:
    assert result(operator, a, b) == (answer and term(answer))


def test_decimals_are_exact_however_long_they_are() -> None:
    long, unit = "1" + "0" * 60 + ".5", "0." + "0" * 60 + "1"
    assert result(add, long, unit) == term('"1' + "0" * 60 + ".5" + "0" * 59 + '1"^^xsd:decimal')
    assert result(multiply, unit, unit) == term('"0.' + "0" * 121 + '1"^^xsd:decimal')
    assert result(divide, long, "1") == literal_of(Decimal(long))


def test_integers_are_exact_up_to_thousands_of_digits() -> None:
    huge = literal_of(10**4000)
    assert subtract(add(huge, integer(1)), huge) == integer(1)
    assert add(huge, literal_of(0.0)) == literal_of(math.inf)
    assert multiply(negate(huge), literal_of(Single(1.0))) == literal_of(Single(-math.inf))
    with pytest.raises(ExpressionError):
        multiply(huge, huge)


def test_a_quotient_of_decimals_has_34_significant_digits() -> None:
    assert result(divide, "2", "3") == literal_of(Decimal("0." + "6" * 33 + "7"))


@given(numbers.map(literal_of), numbers.map(literal_of))
def test_addition_and_multiplication_commute(a: Literal, b: Literal) -> None:
    assert add(a, b) == add(b, a)
    assert multiply(a, b) == multiply(b, a)


@given(st.decimals(allow_nan=False, allow_infinity=False), st.decimals(-(10**9), 10**9))
def test_subtraction_undoes_addition_of_decimals(x: Decimal, y: Decimal) -> None:
    assume(abs(x.adjusted()) < 100)
    a, b = literal_of(x), literal_of(y)
    assert subtract(add(a, b), b) == a


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
        "P1Y^duration - P1D^duration = error",  # one sign for both parts
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
def test_dates_times_and_durations_add_up_as_in_xpath(line: str) -> None:
    a, operator, b, answer = line.replace(" = ", " ").split()
    operands = [typed(*text.split("^")) for text in (a, b)]
    assert ours(operator, *operands) == (None if answer == "error" else typed(*answer.split("^")))


@pytest.mark.parametrize(
    ("text", "minus"),
    [
        ("1", "-1"),
        ("-1.50", '"1.5"^^xsd:decimal'),
        ("0e0", '"-0"^^xsd:double'),
        ('"1"^^xsd:float', '"-1"^^xsd:float'),
        ('"1"', None),
    ],
)
def test_the_signs_apply_to_numbers(text: str, minus: str | None) -> None:
    assert result(negate, text) == (minus and term(minus))
    assert result(plus, text) == (minus and negate(term(minus)))


# -- Moments on the time line -------------------------------------------------------------------


@given(st.datetimes(timezones=st.just(UTC)), st.timedeltas(max_value=timedelta(days=10**6)))
def test_the_calendar_is_that_of_datetime_where_datetime_has_one(
    start: datetime, step: timedelta
) -> None:
    try:
        end = start + step
    except OverflowError:
        return
    seconds = Decimal(step // timedelta(microseconds=1)).scaleb(-6)
    a, duration = typed(start.isoformat(), "dateTime"), literal_of(DayTimeDuration(0, seconds))
    assert equal(add(a, duration), typed(end.isoformat(), "dateTime"))
    assert subtract(typed(end.isoformat(), "dateTime"), a) == duration


@given(st.integers(-(10**17), 10**17))
def test_milliseconds_make_a_date_time_and_are_read_back_from_it(milliseconds: int) -> None:
    written = date_time_literal(milliseconds)
    assert written.lexical.endswith("Z")
    assert milliseconds_of(written) == milliseconds


@given(st.integers(-(10**17), 10**17))
def test_milliseconds_make_a_duration_and_are_read_back_from_it(milliseconds: int) -> None:
    assert duration_milliseconds(duration_literal(milliseconds)) == milliseconds


def test_a_duration_literal_has_the_datatype_one_asks_for() -> None:
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


# -- Conditions and casts -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        (True, ["true", '"1"^^xsd:boolean', "1", "-0.5", "0.1e0", '"INF"^^xsd:float', '"no"@en']),
        (False, ["false", "0", "0.00", "-0e0", '"NaN"^^xsd:double', '""', '""@en']),
        (False, ['"x"^^xsd:integer', '"300"^^xsd:byte', '"yes"^^xsd:boolean', '"1e"^^xsd:float']),
        (None, ["<x:a>", "_:a", '"2020-01-01"^^xsd:date', '"true"^^<x:t>', '"P1D"^^xsd:duration']),
    ],
)
def test_the_effective_boolean_value(answer: bool | None, texts: list[str]) -> None:
    assert [result(effective_boolean_value, text) for text in texts] == [answer] * len(texts)


@pytest.mark.parametrize(
    ("target", "text", "lexical"),
    [
        ("boolean", '"1"', "true"),
        ("boolean", '"1.0"', None),
        ("boolean", '"NaN"^^xsd:float', "false"),
        ("boolean", "0.5", "true"),
        ("integer", "-2.9", "-2"),
        ("integer", "1e20", "100000000000000000000"),
        ("integer", '"1.0"', None),
        ("integer", '"INF"^^xsd:double', None),
        ("integer", "true", "1"),
        ("byte", "127.9", "127"),
        ("byte", "128", None),
        ("unsignedInt", '"-1"', None),
        ("decimal", '" 33.30\\n"', "33.3"),
        ("decimal", "0.5e0", "0.5"),
        ("decimal", '"NaN"^^xsd:float', None),
        ("float", "0.1", "0.1"),
        ("double", '"0.1"^^xsd:float', "0.10000000149011612"),
        ("double", "true", "1"),
        ("string", "<x:a>", "x:a"),
        ("string", "1.0", "1"),
        ("string", "1e6", "1.0E6"),
        ("string", '"lex"^^<x:t>', "lex"),
        ("string", "_:a", None),
        ("dateTime", '"2020-01-01Z"^^xsd:date', "2020-01-01T00:00:00Z"),
        ("dateTime", "0", None),
        ("date", '"2020-01-01T23:00:00-08:00"^^xsd:dateTime', "2020-01-01-08:00"),
        ("time", '"2020-01-01T23:00:00.5"^^xsd:dateTime', "23:00:00.5"),
        ("time", '"2020-01-01"^^xsd:date', None),
        ("duration", '"PT24H"^^xsd:dayTimeDuration', "P1D"),
        ("dayTimeDuration", '"P1Y2DT3H"^^xsd:duration', "P2DT3H"),
        ("yearMonthDuration", '"P1Y2DT3H"^^xsd:duration', "P1Y"),
        ("yearMonthDuration", '"P2D"^^xsd:dayTimeDuration', "P0M"),
        ("integer", '"1"@en', None),
        ("integer", '"1"^^<x:t>', None),
        ("anyURI", '"x:a"', None),
    ],
)
def test_casts(target: str, text: str, lexical: str | None) -> None:
    datatype = IRI(XSD + target)
    found = result(lambda source: cast(source, datatype), text)
    assert found == (None if lexical is None else Literal(lexical, datatype))


@given(st.sampled_from(sorted(CAST_TARGETS, key=str)), any_terms)
def test_a_cast_gives_a_canonical_literal_of_its_datatype_or_an_error(
    datatype: IRI, source: Term
) -> None:
    try:
        found = cast(source, datatype)
    except ExpressionError:
        return
    assert found.datatype == datatype
    assert cast(found, datatype) == found


@given(numbers)
def test_casting_to_string_and_back_keeps_the_value(number: int | Decimal | float) -> None:
    written = literal_of(number)
    assert cast(cast(written, IRI(XSD + "string")), written.datatype) == written


# -- pyoxigraph says the same -------------------------------------------------------------------

STORE = ox.Store()


def oxigraph(*expressions: str) -> list[Term | None]:
    """What pyoxigraph makes of expressions; None for an error."""
    columns = " ".join(f"({text} AS ?x{i})" for i, text in enumerate(expressions))
    solutions = STORE.query(f"PREFIX xsd: <{XSD}> SELECT {columns} {{}}")
    assert isinstance(solutions, ox.QuerySolutions)
    (row,) = solutions
    found = [row[i] for i in range(len(expressions))]
    return [None if value is None else from_oxigraph(value) for value in found]


DEVIATIONS: list[tuple[str, Callable[[str, Term, Term], bool]]] = [
    (
        "NaN has no order there; by IEEE 754 `<` is false",
        lambda relation, a, b: relation[0] in "<>" and {*terms("NaN")} & {a, b} != set(),
    ),
    (
        "the ranges of the derived integers are not looked at there",
        lambda relation, a, b: typed("300", "byte") in (a, b),
    ),
    (
        "booleans have no order there",
        lambda relation, a, b: {*terms("boolean")} >= {a, b},
    ),
    (
        "language-tagged strings have an order there",
        lambda relation, a, b: {*terms("@")} >= {a, b},
    ),
    (
        "a term is >= and <= to itself there, also where it has no order",
        lambda relation, a, b: a == b,
    ),
    (
        "a moment with a time zone differs from any without there (the W3C's date-2: not known)",
        lambda relation, a, b: relation in ("=", "!=") and ours("<", a, b) is None,
    ),
]


def terms(part: str) -> list[Term]:
    """The samples that SPARQL can write, those with a certain part."""
    found = map(term, SAMPLES)
    return [t for t in found if part in str(t) and not isinstance(t, BlankNode)]


def test_relations_are_those_of_pyoxigraph_but_for_named_deviations() -> None:
    relations = ["=", "!=", "<", "<=", ">", ">="]
    seen = set()
    for a, b in product(terms(""), repeat=2):
        theirs = oxigraph(*(f"({a}) {relation} ({b})" for relation in relations))
        for relation, answer in zip(relations, theirs, strict=True):
            if ours(relation, a, b) != answer:
                names = [name for name, holds in DEVIATIONS if holds(relation, a, b)]
                assert names, f"{a} {relation} {b}: pyoxigraph says {answer}"
                seen.add(names[0])
    assert seen == {name for name, _ in DEVIATIONS}


moderate_numbers = st.one_of(  # pyoxigraph's integers have 64 bits, its decimals 18 places in 128
    st.integers(-(10**6), 10**6),
    st.decimals(-(10**6), 10**6, places=6),
    st.floats(),
    st.floats(width=32).map(Single),
)


@given(moderate_numbers, st.sampled_from("+-*/"), moderate_numbers)
def test_arithmetic_is_that_of_pyoxigraph(
    x: int | Decimal | float, operator: str, y: int | Decimal | float
) -> None:
    a, b = literal_of(x), literal_of(y)
    (theirs,) = oxigraph(f"({a}) {operator} ({b})")
    found = ours(operator, a, b)
    if operator == "/" and theirs is None and x == 0:
        return  # 0 / 2.0 is an error there
    if found is None or theirs is None:
        assert found == theirs
        return
    left, right = value_of(found), value_of(theirs)
    assert type(left) is type(right)
    if isinstance(left, Decimal) and isinstance(right, Decimal) and operator == "/":
        assert abs(left - right) < Decimal("1e-17")  # it keeps 18 places
    else:
        assert left == right or (left != left and right != right)


@given(
    st.integers(-(10**14), 10**14).map(date_time_literal),
    st.sampled_from("+-"),
    durations.map(literal_of),
)
def test_a_date_time_moves_as_in_pyoxigraph_where_that_has_an_answer(
    moment: Literal, operator: str, by: Literal
) -> None:
    (theirs,) = oxigraph(f"{moment} {operator} {by}")
    if theirs is None:
        return  # for many such sums it has none: 1970-01-01T00:00:00Z + P1M is an error there
    assert ours(operator, moment, by) == theirs


@given(durations.map(literal_of), durations.map(literal_of))
def test_durations_compare_as_in_pyoxigraph(a: Literal, b: Literal) -> None:
    assert [ours("=", a, b), ours("<", a, b)] == oxigraph(f"{a} = {b}", f"{a} < {b}")
