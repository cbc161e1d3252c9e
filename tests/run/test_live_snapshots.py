"""Snapshots of open queries: what holds at an instant, by the definition over the pushed items.

Random queries get random calls, as in test_engine_definitions.py; a snapshot between any two calls
agrees with the definition over the items so far, and changes no later row.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from support.engine import Data, Definition, Mode, cells, chunks_and_cuts, disordered, modes, read
from support.families import FAMILIES, of_family
from support.histories import dense

import streamsparql
from streamsparql.algebra.streams import Element, snapshot_equivalent
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
    with chunks_and_cuts(mode):
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
