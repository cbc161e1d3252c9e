"""Timestamps in all their forms; a column is read as each of its values would be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas
import pyarrow as pa
import pyoxigraph
import pytest
import rdflib
from hypothesis import example, given
from hypothesis import strategies as st
from support.sources import DATE_TIME, INTEGER, XSD, iso, read, reasons_of

from streamsparql.algebra.terms import IRI, BlankNode, Literal
from streamsparql.errors import EngineError
from streamsparql.sources.local_times import zone_of
from streamsparql.sources.stamps import IN_MILLISECONDS, StampReader

stamp_of = IN_MILLISECONDS.stamp_of
stamps_of_values, stamps_of_column = IN_MILLISECONDS.of_values, IN_MILLISECONDS.of_column

GOOD_STAMPS = [
    (0, 0),
    (np.int32(7), 7),
    (3.0, 3),
    (Decimal("3.0"), 3),
    ("12", 12),
    (" 12 ", 12),
    (f'"12"^^{INTEGER}', 12),
    (f'"12"^^<{XSD}unsignedLong>', 12),
    ("<http://ex.org/t/12>", 12),
    (datetime(1970, 1, 1, 0, 0, 1), 1000),
    (datetime(1970, 1, 1, 1, 0, 1, tzinfo=timezone(timedelta(hours=1))), 1000),
    (datetime(1970, 1, 1, 0, 0, 0, 1999, tzinfo=UTC), 1),
    (np.datetime64("1970-01-01T00:00:02"), 2000),
    ("1970-01-01", 0),
    ("1970-01-02 00:00:00.5Z", 86_400_500),
    ("1970-01-01T02:00:00+02:00", 0),
    (f'"1970-01-01T00:00:00.0019"^^{DATE_TIME}', 1),
    (f'"1970-01-01T24:00:00Z"^^{DATE_TIME}', 86_400_000),
    (f'"1970-01-01T00:00:01Z"^^<{XSD}dateTimeStamp>', 1000),
    (f'"12026-01-01T00:00:00Z"^^{DATE_TIME}', 317_336_745_600_000),
    (Literal("12", IRI(XSD + "integer")), 12),
    (rdflib.Literal(12), 12),
    (rdflib.Literal(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)), 1000),
    (pyoxigraph.Literal(12), 12),
]
BAD_STAMPS = [
    *(None, "", float("nan"), pandas.NaT, pandas.NA, np.datetime64("NaT", "ms"), float("inf"), 1.5),
    *(-1, "-1", True, False, 2**62, 2**70, "1e3", "0x1F", "1_000", "٣", "noon", "12:00"),
    *("2026-02-30", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-01-01T25:00:00Z"),
    *('"12"', '"x"@en', f'"2026-01-01"^^<{XSD}date>', f'"1.5"^^<{XSD}decimal>', "<http://ex.org/>"),
    *("<http://ex.org/t12>", f'"x"^^{INTEGER}', f'"300"^^<{XSD}byte>', b"12", frozenset(), (1,)),
    *(Decimal("1.5"), IRI("http://ex.org/"), BlankNode("b"), rdflib.Literal("soon"), "\ud800"),
]


@pytest.mark.parametrize(("value", "stamp"), GOOD_STAMPS)
def test_stamp_has_many_forms(value, stamp):
    assert stamp_of(value) == stamp
    assert stamps_of_values([value, 3, value])[0].tolist() == [stamp, 3, stamp]
    assert stamps_of_values([value] * 3)[0].tolist() == [stamp] * 3


class Whole:
    """An integer of an unknown library."""

    def __index__(self):
        return 12


@pytest.mark.parametrize("others", [[], [7], [True], ["7"]])
def test_stamp_may_be_any_integer_type_except_a_boolean(others):
    values = [Whole(), *others, 1, False]
    stamps, why = stamps_of_values(values)
    assert stamps.tolist() == [12, *[-1 if other is True else 7 for other in others], 1, -1]
    assert set(why) == {k for k, value in enumerate(values) if isinstance(value, bool)}


@pytest.mark.parametrize("value", BAD_STAMPS, ids=repr)
def test_invalid_stamp_is_rejected_with_a_reason(value):
    items, rejects, _ = read([("<a>", "<p>", "<b>", value), ("<a>", "<p>", "<b>", 3)])
    assert [t for *_, t in items] == [3]
    ((position, reason),) = reasons_of(rejects)
    assert position == 1
    assert "timestamp" in reason


def test_time_zone_may_move_a_stamp_before_1970():
    with pytest.raises(ValueError, match="before 1970"):
        stamp_of(pandas.Timestamp("1970-01-01T00:00:01", tz="Europe/London"))


TEXT_STAMPS = st.one_of(
    st.sampled_from([v for v, _ in GOOD_STAMPS if type(v) is str]),
    st.sampled_from([v for v in BAD_STAMPS if type(v) is str and v != "\ud800"]),
    st.integers(-5, 2**64).map(str),
    st.integers(0, 4 * 10**12).map(iso),
    st.integers(0, 4 * 10**12).map(lambda t: f'"{iso(t)}"^^{DATE_TIME}'),
    st.datetimes().map(datetime.isoformat),
    st.builds(
        lambda t, zone, end: f'"{iso(t)[:-1]}{zone}"^^<{XSD}{end}>',
        st.integers(-(10**8), 10**9),
        st.from_regex(r"([+-](0[0-9]|1[0-5]):[0-6][0-9]|Z|)", fullmatch=True),
        st.sampled_from(["dateTime", "dateTimeStamp"]),
    ),
    st.none(),
)


COLUMNS = st.one_of(
    st.lists(TEXT_STAMPS, min_size=1),
    *(
        st.lists(st.integers(-(10**8), 10**9).map(form), min_size=1)
        for form in (
            str,
            iso,
            lambda t: iso(t)[:-1],
            lambda t: f"{iso(t)[:-1]}+13:59",
            lambda t: f"{iso(t)[:-1]}-01:00",
            lambda t: f'"{iso(t)[:-1]}"^^<{XSD}dateTimeStamp>',
            lambda t: f"<http://ex.org/{t}>",
        )
    ),
)


def one_by_one(values: list[Any]) -> list[int]:
    return [stamps_of_values([value, None])[0].tolist()[0] for value in values]


@given(COLUMNS, st.sampled_from([pa.string(), pa.large_string()]))
def test_column_of_texts_is_read_as_each_of_them_would_be(values, kind):
    stamps, why = stamps_of_column(pa.array(values, kind))
    assert stamps.tolist() == one_by_one(values)
    assert sorted(why) == np.flatnonzero(stamps < 0).tolist()
    assert (
        stamps_of_column(pa.array(values, kind).dictionary_encode())[0].tolist() == stamps.tolist()
    )


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_column_of_numbers_is_read_as_each_of_them_would_be(values):
    for kind in (pa.int64(), pa.timestamp("ms"), pa.timestamp("ms", "Europe/Berlin")):
        stamps, why = stamps_of_column(pa.array(values, kind))
        assert sorted(why) == np.flatnonzero(stamps < 0).tolist()
        assert stamps.tolist() == one_by_one(values)


@example([2**62 // 1000 + 1], "s")
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.sampled_from(["s", "us", "ns"]))
def test_times_of_any_unit_are_rounded_down(values, unit):
    stamps, why = stamps_of_column(pa.array(values, pa.timestamp(unit)))
    for k, value in enumerate(values):
        exact = -1 if value is None else value * {"s": 10**9, "us": 1000, "ns": 1}[unit] // 10**6
        fits = value is not None and value >= 0 and exact < 2**62
        assert stamps[k] == (exact if fits else -1)
        assert (k in why) != fits


@given(st.lists(st.none() | st.floats()))
def test_floats_are_stamps_if_they_are_integers(values):
    stamps, _ = stamps_of_column(pa.array(values, pa.float64()))
    assert stamps.tolist() == one_by_one(values)


# -- units and time zones --------------------------------------------------------------------------

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
COPENHAGEN = ZoneInfo("Europe/Copenhagen")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "form", [int, str, np.int64, rdflib.Literal, "<http://ex.org/t/{}>".format]
)
def test_unit_is_recognised_by_the_size_of_the_first_timestamp(unit, form):
    """1406851500 s are 2014-08-01T00:05:00Z."""
    number = 1_406_851_500 * UNITS[unit]
    reader = StampReader(None)
    assert reader.of_values([form(number), form(UNITS[unit])])[0].tolist()[0] == 1_406_851_500_000
    assert reader.unit == unit
    assert (reader.recognised is None) == (unit == "ms")
    assert reader.stamp_of(7 * UNITS[unit]) == 7_000
    column = pa.array([None, str(number), "soon", str(number + UNITS[unit])])
    stamps, why = StampReader(None).of_column(column)
    assert (stamps.tolist(), sorted(why)) == (
        [-1, 1_406_851_500_000, -1, 1_406_851_501_000],
        [0, 2],
    )


@pytest.mark.parametrize(
    "first",
    [0, 5, 999_999_999, 10**10, 10**14 - 1, "2014-08-01", datetime(2014, 8, 1), True, 2**63],
)
def test_numbers_count_milliseconds_unless_the_first_shows_another_unit(first):
    """A clock that starts at 0 passes the numbers of seconds of our days; that changes nothing."""
    reader = StampReader(None)
    reader.of_values([first, 5, 1_406_851_500])
    assert (reader.unit, reader.recognised) == ("ms", None)
    assert reader.stamp_of(1_406_851_500) == 1_406_851_500


@pytest.mark.parametrize(
    ("value", "stamp"),
    [
        (1406851500.123, 1_406_851_500_123),
        ("1406851500.1239999", 1_406_851_500_123),
        (Decimal("1406851500.9999"), 1_406_851_500_999),
        (f'"1406851500.5"^^<{XSD}decimal>', 1_406_851_500_500),
        (f'"1.4068515005E9"^^<{XSD}double>', 1_406_851_500_500),
    ],
)
def test_seconds_may_have_fractions(value, stamp):
    for unit in ("s", None):
        reader = StampReader(unit)
        assert reader.stamp_of(value) == stamp
        assert reader.of_values([value, value])[0].tolist() == [stamp] * 2
    with pytest.raises(ValueError, match="not a valid timestamp"):
        StampReader("ms").stamp_of(value)


ANY_NUMBER = st.one_of(st.integers(-(10**4), 10**19), st.integers(10**9, 2 * 10**9), st.none())


@given(
    st.lists(ANY_NUMBER, min_size=1, max_size=20),
    st.sampled_from([*UNITS, None]),
    st.sampled_from(["texts", "values", "floats", "integers"]),
)
def test_numbers_in_columns_are_read_as_each_of_them_would_be(numbers, unit, kind):
    if kind == "integers":
        numbers = [n if n is None or n < 2**63 else 7 for n in numbers]
    values = {
        "texts": [None if n is None else str(n) for n in numbers],
        "values": numbers,
        "floats": [None if n is None else n / 8 for n in numbers],
        "integers": numbers,
    }[kind]
    types = {"texts": pa.string(), "floats": pa.float64(), "integers": pa.int64()}
    one, other = StampReader(unit), StampReader(unit)
    stamps, why = (
        one.of_values(values) if kind == "values" else one.of_column(pa.array(values, types[kind]))
    )
    expected = []
    for value in values:
        try:
            expected.append(other.stamp_of(value))
        except ValueError:
            expected.append(-1)
    assert stamps.tolist() == expected
    assert sorted(why) == [k for k, stamp in enumerate(expected) if stamp < 0]


SAME_TIME = [
    *("2014-08-01T10:00", "2014-08-01 10:00", "2014/08/01 10:00", "2014-08-01T10:00:00"),
    *("2014-08-01T10:00Z", "2014-08-01 10:00 UTC", "2014-08-01T10:00:00,000", "2014-08-01t10:00z"),
    *("2014-08-01T12:00+02:00", "2014-08-01 12:00:00.000+0200", "2014-08-01T12:00:00+2"),
    *("2014-08-01 05:30:00-04:30", f'"2014-08-01T10:00"^^{DATE_TIME}'),
]


@pytest.mark.parametrize("text", SAME_TIME)
def test_time_may_lack_seconds_and_have_a_short_offset(text):
    assert stamp_of(text) == 1_406_887_200_000
    assert stamps_of_column(pa.array([text] * 3 + ["x"]))[0].tolist() == [1_406_887_200_000] * 3 + [
        -1
    ]


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2014-08-01T10:00:00", "2014-08-01T08:00:00"),
        ("2014-01-01T10:00:00", "2014-01-01T09:00:00"),
        ("2014-03-30T02:30:00", "2014-03-30T01:30:00"),  # skipped: as 03:30 in summer time
        ("2014-10-26T02:30:00", "2014-10-26T00:30:00"),  # twice: the first, in summer time
    ],
)
def test_local_times_are_in_the_time_zone(local, utc):
    stamp = stamp_of(utc)
    reader = StampReader("ms", COPENHAGEN)
    values = [local, local.replace("T", " "), datetime.fromisoformat(local), np.datetime64(local)]
    values += [Literal(local, IRI(XSD + "dateTime")), pandas.Timestamp(local)]
    for value in values:
        assert reader.stamp_of(value) == stamp
        assert reader.of_values([value, value])[0].tolist() == [stamp] * 2
    for column in (pa.array([local]), pa.array([np.datetime64(local)])):
        assert reader.of_column(column)[0].tolist() == [stamp]
    assert reader.stamp_of(f"{local}Z") == stamp_of(local)
    assert reader.stamp_of(5) == 5


def test_fold_of_a_datetime_is_respected():
    second = datetime(2014, 10, 26, 2, 30, fold=1)
    assert StampReader("ms", COPENHAGEN).stamp_of(second) == stamp_of("2014-10-26T01:30:00Z")


@given(
    st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1)), min_size=1, max_size=9),
    st.sampled_from(
        ["Europe/Copenhagen", "America/St_Johns", "Asia/Kathmandu", "Africa/Casablanca"]
    ),
)
def test_local_times_in_columns_are_read_as_each_of_them_would_be(times, zone):
    reader = StampReader("ms", ZoneInfo(zone))
    expected = [reader.stamp_of(time) for time in times]
    assert reader.of_column(pa.array(times))[0].tolist() == expected
    assert reader.of_column(pa.array([t.isoformat() for t in times]))[0].tolist() == expected


def test_local_times_of_years_beyond_python_have_no_zone():
    assert StampReader("ms", COPENHAGEN).stamp_of("12026-01-01T00:00:00") == 317_336_745_600_000


def test_unknown_time_zone_is_an_error():
    for name in ("Mars/Olympus", "", "../etc/passwd", 5):
        with pytest.raises(EngineError, match="unknown time zone"):
            zone_of(name)
