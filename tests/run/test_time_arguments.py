"""Durations and instants in arguments: each form means the same everywhere, mistakes are named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamsparql
from streamsparql.cli import main
from streamsparql.errors import EngineError, QuerySyntaxError, SourceError

TEXT = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 S FIXED { ?s ?p ?o }"
QUERY = streamsparql.compile(TEXT)
NOON = 1_772_366_400_000
ITEMS = [("<a>", "<p>", f'"{k}"', NOON + 1000 * (k ^ 2)) for k in range(30)]

INSTANTS: list[Any] = [
    NOON,
    np.int64(NOON),
    str(NOON),
    "2026-03-01T12:00:00Z",
    "2026-03-01 12:00:00",
    "2026-03-01T13:00:00+01:00",
    datetime(2026, 3, 1, 12, tzinfo=UTC),
    datetime(2026, 3, 1, 12),
    datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1))),
]
DURATIONS: list[Any] = [5000, "5s", "5 s", " 5.0s ", "5000", "PT5S", "0h 5s", timedelta(seconds=5)]


@pytest.mark.parametrize("noon", INSTANTS, ids=repr)
def test_each_form_of_an_instant_means_the_same(noon: Any) -> None:
    expected = list(QUERY.run(ITEMS, start=NOON, max_delay=5000))
    assert list(QUERY.run(ITEMS, start=noon, max_delay=5000)) == expected
    assert not list(QUERY.run(ITEMS, end=noon))
    live = QUERY.open()
    live.push("s", ("<a>", "<p>", "<b>"), noon)
    live.advance(noon)
    assert live.watermark == NOON
    aligned = [streamsparql.compile(TEXT, origin=t).logical for t in (noon, NOON)]
    assert aligned[0] == aligned[1]
    trace = QUERY.trace(ITEMS[:3], max_delay=5000)
    assert trace.at(noon).t == trace.logical(noon).t == NOON


@pytest.mark.parametrize("five", DURATIONS, ids=repr)
def test_each_form_of_a_duration_means_the_same(five: Any) -> None:
    expected = list(QUERY.run(ITEMS, max_delay=5000))
    result = QUERY.run(ITEMS, max_delay=five, max_jump=five)
    assert list(result) == expected
    reports = list(range(NOON + 5000, NOON + 45_001, 5000))
    assert [t for t, _ in result.report(every=five)] == reports
    assert result.to_arrow(every=five).equals(result.to_arrow(every=5000))
    live = QUERY.open(idle=five, every=five, max_delay=five)
    live.push_many("s", ITEMS)
    live.close()
    assert [t for t, _ in live.rows()] == reports
    stepped = [[s.instant for s in QUERY.trace(ITEMS, step=n, limit=3)] for n in (five, 5000)]
    assert stepped[0] == stepped[1]


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: QUERY.run([], start="soon"), "start: not a valid timestamp: 'soon'; write milli"),
    (lambda: QUERY.run([], end=1.5), "end: not a valid instant: 1.5; pass milliseconds since 1970"),
    (lambda: QUERY.run([], start=True), "start: not a valid instant: True"),
    (lambda: QUERY.run([], start=-1), "start must not be before 1970: -1"),
    (lambda: QUERY.run([], start="1969-12-31"), "start: the timestamp 1969-12-31 is before 1970"),
    (lambda: QUERY.run([], end=1 << 63), "end: milliseconds since 1970 out of range"),
    (lambda: QUERY.run([], start="2026-03-01", end=5), r"end \(5\) must be after start \(17723"),
    (lambda: QUERY.run([], max_delay="5 parsecs"), "max_delay: not a valid duration: '5 parsecs'"),
    (lambda: QUERY.run([], max_delay=None), "max_delay must be a number of milliseconds"),
    (lambda: QUERY.run([], max_delay=timedelta(seconds=-5)), "max_delay: duration out of range"),
    (lambda: QUERY.run([], max_delay=timedelta(microseconds=5)), "max_delay: not a whole number"),
    (lambda: QUERY.run([], max_jump="P1M"), "max_jump: years and months have no fixed length"),
    (lambda: QUERY.open(idle="0s"), "idle must be longer than 0, not '0s'"),
    (lambda: QUERY.open(every=0.5), "every: not a valid duration: 0.5"),
    (lambda: QUERY.trace([], step="1 parsec"), "step: not a valid duration"),
    (lambda: streamsparql.compile(TEXT, origin="noon"), "origin: not a valid timestamp: 'noon'"),
    (lambda: streamsparql.compile(TEXT, origin=1.5), "origin: not a valid instant: 1.5"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(EngineError, match=f"^{message}"):
        call()


def test_origin_may_be_before_1970() -> None:
    assert (
        streamsparql.compile(TEXT, origin=-7).logical
        == streamsparql.compile(TEXT, origin="-7").logical
    )


# -- files of queries -----------------------------------------------------------------------------


def test_compile_reads_the_file_of_a_path(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(TEXT, "utf-8")
    query = streamsparql.compile(tmp_path / "q.rq")
    assert (query.text, query.logical) == (TEXT, QUERY.logical)


def test_errors_in_a_file_name_it(tmp_path: Path) -> None:
    path = tmp_path / "q.rq"
    path.write_text("SELECT ?x\nWHERE { ?x a ?y FLITER(?y > 5) }", "utf-8")
    with pytest.raises(QuerySyntaxError, match=r"q\.rq: line 2, column 17: ") as raised:
        streamsparql.compile(path)
    assert (raised.value.file, raised.value.line) == (str(path), 2)
    path.write_bytes(b"ASK { <a> <b> \xff }")
    with pytest.raises(SourceError, match=r"q\.rq: is not UTF-8 text \(byte 14\)"):
        streamsparql.compile(path)
    with pytest.raises(SourceError, match=r"none\.rq: cannot be read: No such file"):
        streamsparql.compile(tmp_path / "none.rq")


def test_the_command_line_names_a_file_once(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "q.rq"
    path.write_text("SELECT ?x {", "utf-8")
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().err.count("q.rq: ") == 1


@pytest.mark.parametrize("name", ["query.rq", "queries/mean.sparql"])
def test_name_of_a_file_as_text_has_a_hint(name: str) -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        streamsparql.compile(name)
    assert raised.value.hint == f"to read the query in a file, pass pathlib.Path({name!r})"
