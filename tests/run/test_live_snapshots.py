"""Snapshots of open queries: what holds at an instant, by the definition over the pushed items.

Random queries get random calls, as in test_engine_definitions.py; a snapshot between any two calls
agrees with the definition over the items so far, and changes no later row.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from support.engine import Data, Definition, Mode, cells, disordered, modes, read, settings_of
from support.families import FAMILIES, of_family
from support.histories import dense

import streamsparql
from streamsparql.algebra.streams import Element, snapshot_equivalent
from streamsparql.algebra.terms import integer
from streamsparql.errors import EngineError
from streamsparql.run.input import RunInput
from streamsparql.run.live import Live

S = "http://e/s"
TEXT = f"SELECT ?o FROM STREAM <{S}> WINDOW RANGE 10 MS FIXED {{ ?s ?p ?o }} ORDER BY DESC(?o)"


def opened(query: streamsparql.Query, over: Data, mode: Mode) -> Live[Any]:
    static = RunInput({}, over.graph, over.graphs, max_delay=mode.max_delay, started=0)
    return Live(query, static, emit=mode.emit)


def check_snapshots(text: str, over: Data, mode: Mode) -> None:
    query = streamsparql.compile(text, optimize=mode.optimize)
    over = disordered(over, mode.max_delay, mode.seed).of(query)
    random = Random(mode.seed)
    with settings_of(mode):
        observed, plain = opened(query, over, mode), opened(query, over, mode)
        pushed: dict[str, list[Any]] = {name: [] for name in over.streams}
        arrivals = [(name, item) for name, items in over.streams.items() for item in items]
        arrivals.sort(key=lambda arrival: random.random() * mode.max_delay + arrival[1][1])
        rows: list[Any] = []
        for name, (triple, t) in arrivals:
            for live in (observed, plain):
                live.push(name, triple, t)
            pushed[name].append((triple, t))
            if random.random() < 0.2:
                rows += observed.rows()
            if random.random() < 0.3:
                check_snapshot(observed, query, over._replace(streams=pushed), random)
        for live in (observed, plain):
            live.close()
        assert observed.late == plain.late
        rows += observed.rows()
        assert snapshot_equivalent(elements(query, rows), elements(query, plain.rows()))


def check_snapshot(live: Live[Any], query: streamsparql.Query, over: Data, random: Random) -> None:
    late = {(reject.source, reject.position) for reject in live.late}
    assert not late
    last = max(live.watermark, *(t for items in over.streams.values() for _, t in items))
    t = random.choice([None, live.watermark, live.watermark + 1, last + random.randint(0, 12)])
    definition = Definition(query, over)
    wanted = definition.at(last if t is None else t)
    assert Counter(read(query, live.snapshot(t))) == wanted, (t, over, query.text)


def elements(query: streamsparql.Query, rows: list[Any]) -> list[Element[Any]]:
    return [Element(cells(query.form, row), row.start, row.end) for row in rows]


@pytest.mark.parametrize("family", FAMILIES)
def test_snapshots_agree_with_the_definition_and_change_no_row(family: str) -> None:
    @settings(max_examples=12)
    @given(of_family(family), dense, modes)
    def agrees(text: str, over: Data, mode: Mode) -> None:
        check_snapshots(text, over, mode)

    agrees()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_snapshots_of_many_queries_agree_with_the_definition(family: str) -> None:
    @settings(max_examples=600)
    @given(of_family(family), dense, modes)
    def agrees(text: str, over: Data, mode: Mode) -> None:
        check_snapshots(text, over, mode)

    agrees()


# -- cases ----------------------------------------------------------------------------------------


def push(live: Live[Any], n: int, t: int) -> None:
    live.push(S, ("<http://e/a>", "<http://e/p>", str(integer(n))), t)


def numbers(snapshot: Any) -> list[Any]:
    return [row.value("o") for row in snapshot]


@pytest.mark.parametrize("emit", ["final", "eager"])
def test_snapshot_has_the_items_so_far_in_the_order_of_order_by(emit: Any) -> None:
    live = streamsparql.compile(TEXT).open(emit=emit)
    assert live.snapshot() == []
    push(live, 1, 3)
    assert numbers(live.snapshot()) == [1]  # though the first item is not confirmed yet
    push(live, 2, 5)
    push(live, 3, 12)
    assert numbers(live.snapshot()) == [3]
    push(live, 9, 12)
    assert numbers(live.snapshot(12)) == [9, 3]
    assert numbers(live.snapshot(datetime.fromtimestamp(0.019, UTC))) == [9, 3]
    assert live.snapshot("20") == []
    live.advance(30)
    assert live.snapshot() == []
    push(live, 4, 31)
    assert numbers(live.snapshot()) == [4]
    live.close()
    ends = [(int(row["o"]), row.start, row.end) for row in live.rows()]
    assert sorted(ends)[:2] == [(1, 3, 10), (2, 5, 10)]


def test_snapshot_before_the_watermark_and_of_reports_and_after_the_end_are_errors() -> None:
    query = streamsparql.compile(TEXT)
    live = query.open()
    push(live, 1, 3)
    push(live, 2, 15)
    with pytest.raises(EngineError, match=r"t \(14\) is before the watermark \(15\): rows that"):
        live.snapshot(14)
    with pytest.raises(EngineError, match="t: not a valid timestamp: 'noon'"):
        live.snapshot("noon")
    assert numbers(live.snapshot()) == [2]
    live.close()
    with pytest.raises(EngineError, match="the query is closed"):
        live.snapshot()
    with pytest.raises(EngineError, match=r"needs rows; open the query without report= and every="):
        query.open(report="rstream").snapshot()


def test_snapshot_within_max_delay_has_items_above_the_watermark() -> None:
    live = streamsparql.compile(TEXT).open(max_delay=20)
    for n, t in ((1, 30), (2, 35), (3, 25)):
        push(live, n, t)
    assert live.watermark == 15
    assert numbers(live.snapshot()) == [2, 1]
    assert numbers(live.snapshot(29)) == [3]
    assert live.snapshot(15) == []


def test_snapshots_of_other_forms_and_of_static_queries() -> None:
    body = f"FROM STREAM <{S}> WINDOW RANGE 10 MS FIXED {{ ?s ?p ?o }}"
    ask, triples = (
        streamsparql.compile(f"{head} {body}").open() for head in ("ASK", "DESCRIBE ?s")
    )
    assert ask.snapshot() is False
    for live in (ask, triples):
        push(live, 1, 3)
    assert ask.snapshot() is True
    assert len(triples.snapshot()) == 1
    static = streamsparql.compile("SELECT ?o { ?s ?p ?o } ORDER BY ?o")
    opened = static.open(graph=[("<a>", "<p>", str(integer(n))) for n in (3, 1, 2)])
    assert numbers(opened.snapshot()) == [1, 2, 3]


def test_snapshot_calls_on_row_with_the_rows_that_are_final() -> None:
    rows: list[Any] = []
    live = streamsparql.compile(TEXT).open(on_row=rows.append)
    for t in (3, 15, 16):
        push(live, t, t)
    assert numbers(live.snapshot()) == [16, 15]
    assert [row.start for row in rows] == [3]


def test_terms_of_rows_that_were_emitted_ahead_are_not_recycled() -> None:
    """A row of a stepped window may be emitted before the watermark reaches it."""
    text = "SELECT ?o FROM STREAM <s> [RANGE 1h STEP 1h] { ?s ?p ?o }"
    live = streamsparql.compile(text).open(emit="eager")
    live.push("s", ("<a>", "<p>", '"the first hour"'), 5)
    live.push("s", ("<a>", "<p>", '"the second hour"'), 3_600_001)
    live.rows()
    for k in range(100_000):
        live.push("s", (f"<{k}>", "<p>", f'"{k}"'), 3_600_002)
    live.rows()
    assert [str(row["o"]) for row in live.snapshot()] == ["the first hour"]
