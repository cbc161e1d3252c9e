"""Timestamps in all their forms; a column is read as each of its values would be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

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
from streamsparql.sources.stamps import IN_MILLISECONDS

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
