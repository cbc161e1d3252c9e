"""What runs say about their data: units, late items; and `max_delay="auto"`."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamsparql
from streamsparql.errors import DataWarning, EngineError, SourceError
from streamsparql.sources import clock, disorder
from streamsparql.sources.disorder import Sorter

QUERY = streamsparql.compile(
    "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 5 MS { ?s <p> ?o }"
)
JOIN = streamsparql.compile(
    "SELECT ?x ?n ?m FROM NAMED STREAM <s> WINDOW RANGE 20 MS FROM NAMED STREAM <t> WINDOW RANGE"
    " 20 MS { GRAPH <s> { ?x <p> ?n } OPTIONAL { GRAPH <t> { ?x <p> ?m } } }"
)
STAMPS = st.lists(st.integers(0, 200), min_size=1, max_size=30)


def items(stamps: list[int]) -> list[Any]:
    return [(f"<{k % 3}>", "<p>", k, t) for k, t in enumerate(stamps)]


def warnings_of(run: Any) -> list[str]:
    with pytest.warns(DataWarning) as warned:
        list(run)
    return [str(each.message) for each in warned]


# -- late items ------------------------------------------------------------------------------------


@given(STAMPS, st.integers(0, 60), st.integers(1, 31))
def test_the_delay_that_is_named_is_the_least_that_keeps_all_items(
    stamps: list[int], delay: int, size: int
) -> None:
    result = QUERY.run(items(stamps), max_delay=delay)
    list(result)
    needed = result.computation.notes().needed_delay
    worst = max(max(stamps[: k + 1]) - t for k, t in enumerate(stamps))
    assert needed == (worst if worst > delay else 0)
    assert max((reject.lateness for reject in result.late), default=0) == needed
    if needed:
        assert QUERY.run(items(stamps), max_delay=needed).late == []
        assert QUERY.run(items(stamps), max_delay=needed - 1).late != []


def test_run_that_lost_items_says_so_with_the_delay_that_keeps_them() -> None:
    (line,) = warnings_of(QUERY.run(items([10, 3, 90, 30, 95])))
    assert line == (
        "late: 2 of 5 items, not in the result; max_delay=60 keeps all of them,"
        " max_delay='auto' sorts the whole input"
    )
    with pytest.warns(DataWarning, match="max_delay=60 keeps all"):
        QUERY.run(items([10, 3, 90, 30, 95])).write("/dev/null", "csv")
    with pytest.warns(DataWarning, match="max_delay=60 keeps all"):
        list(QUERY.run(items([10, 3, 90, 30, 95])).report("rstream", every=5))


def test_warning_is_issued_once_and_may_be_an_error(recwarn: Any) -> None:
    result = QUERY.run(items([10, 3]))
    for _ in range(3):
        list(result)
        result.to_arrow()
    assert [each.category for each in recwarn.list] == [DataWarning]
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = QUERY.run(items([10, 3]))
        with pytest.raises(DataWarning):
            list(result)
        assert len(list(result)) == 1


def test_late_items_of_a_folder_are_judged_by_their_files(tmp_path: Path) -> None:
    for name, stamps in (("a", [1, 50, 20]), ("b", [30, 100])):
        lines = [f"<x> <p> <{t}> <t/{t}> .\n" for t in stamps]
        (tmp_path / f"{name}.nq").write_text("".join(lines))
    result = QUERY.run(tmp_path)
    list(result)
    assert result.computation.notes().needed_delay == 30
    assert QUERY.run(tmp_path, max_delay=30).late == []


# -- max_delay="auto" ------------------------------------------------------------------------------


@given(STAMPS, STAMPS, st.integers(1, 9))
def test_auto_has_the_rows_of_the_sorted_input(
    stamps: list[int], others: list[int], rows: int
) -> None:
    """Items of one instant keep their order, so sorting by time is what it means."""

    def ordered(source: list[Any]) -> list[Any]:
        return sorted(source, key=lambda item: item[3])

    one, two = items(stamps), items(others)
    before, clock.STEP_ROWS = clock.STEP_ROWS, rows
    try:
        sorted_run = JOIN.run({"s": ordered(one), "t": ordered(two)})
        auto = JOIN.run({"s": one, "t": two}, max_delay="auto")
        assert list(map(str, auto)) == list(map(str, sorted_run))
        assert auto.late == auto.rejected == []
        reports = [list(run.report("rstream", every=7)) for run in (auto, sorted_run)]
        assert reports[0] == reports[1]
    finally:
        clock.STEP_ROWS = before


def test_auto_accepts_gaps_in_any_order() -> None:
    """The quarantine judges items by their order, which says nothing here."""
    week = 7 * 86_400_000
    stamps = [k * week for k in range(50)]
    Random(5).shuffle(stamps)
    assert len(list(QUERY.run(items(stamps), max_delay="auto"))) == 50


def test_auto_is_refused_where_the_input_has_no_end(monkeypatch: Any) -> None:
    with pytest.raises(EngineError, match="max_delay='auto' sorts a whole history; an open query"):
        QUERY.open(max_delay="auto")
    with pytest.raises(EngineError, match="max_delay: not a valid duration: 'some'"):
        QUERY.run([], max_delay="some")
    monkeypatch.setattr("streamsparql.run.input.MAX_SORTED", 20)
    with pytest.raises(SourceError, match="<s>: more than 20 items are too many to sort in memory"):
        list(QUERY.run(items(list(range(30))), max_delay="auto"))


def test_sorter_without_a_limit_retains_any_number_of_rows() -> None:
    assert Sorter("s", 5)._most is None
    assert disorder.MAX_SORTED >= 10**7


# -- units -----------------------------------------------------------------------------------------

SECONDS = [("<a>", "<p>", k, 1_406_851_500 + k) for k in range(3)]
MINUTES = streamsparql.compile(
    "SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MINUTE FIXED { ?s <p> ?o }"
)


def test_recognised_unit_is_said_and_can_be_set() -> None:
    (line,) = warnings_of(MINUTES.run(SECONDS))
    assert line == (
        "<s>: timestamps are read as seconds since 1970: 1406851500 is 2014-08-01 00:05:00 UTC;"
        " time_unit='ms' if not"
    )
    for options in ({"time_unit": "s"}, {"time_unit": {"s": "s"}}):
        assert [row.start for row in MINUTES.run(SECONDS, **options)] == [
            1_406_851_500_000 + 1000 * k for k in range(3)
        ]
    assert [row.start for row in MINUTES.run(SECONDS, time_unit="ms")] == [t for *_, t in SECONDS]


def test_open_query_warns_of_a_recognised_unit_once(recwarn: Any) -> None:
    live = MINUTES.open()
    for *triple, t in SECONDS:
        live.push("s", triple, t)
        live.rows()
    live.push_many("s", [("<a>", "<p>", 9, 1_406_851_509)])
    live.close()
    assert [row.start for row in live.rows()][-1] == 1_406_851_509_000
    assert [str(each.message)[:40] for each in recwarn.list] == [
        "<s>: timestamps are read as seconds sinc"
    ]


def test_push_without_a_timestamp_has_the_time_of_the_clock_in_any_unit() -> None:
    for unit in (None, "s", "ms", "us", "ns"):
        live = MINUTES.open(time_unit=unit)
        live.push("s", ("<a>", "<p>", 1))
        live.close()
        (row,) = live.rows()
        assert 1_700_000_000_000 < row.start < 4_000_000_000_000


def test_local_times_are_in_the_time_zone_of_their_stream() -> None:
    source = [("<a>", "<p>", 1, "2014-08-01T10:00"), ("<a>", "<p>", 2, "2014-08-01T10:00:01Z")]
    rows = list(MINUTES.run(source, time_zone="Europe/Copenhagen"))
    assert [row.start for row in rows] == [1_406_880_000_000, 1_406_887_201_000]
    live = MINUTES.open(time_zone={"s": "Europe/Copenhagen"})
    live.push("s", ("<a>", "<p>", 1), "2014-08-01T10:00")
    live.close()
    assert [row.start for row in live.rows()] == [1_406_880_000_000]
