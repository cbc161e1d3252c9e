"""CSRBench Q1 to Q3: weather observations, with the exact answer at the close of each window.

The benchmark's windows are `[from, to)`, which is RSP-QL's own convention. A live-edge window
(CQELS, Streaming SPARQL) closes at `to` with the snapshot just before it (R15), which its report
shows. C-SPARQL's windows are `(from, to]`, so its stream is stamped one millisecond later.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

import streamsparql

STREAM = "http://ex.org/streams/test"
Bag = Counter[frozenset[tuple[str, str]]]

TEXTS = {
    "rspql": "rspql/query{}.rspql",
    "cqels": "cqelsql/query{}.cqels",
    "csparql": "csparql/query{}.csparql",
    "streaming": "csparql/query{}.csparql",
}


@pytest.fixture(scope="module")
def observations(data: Path) -> list[Any]:
    """Return all triples, those of file NN at NN seconds."""
    files = sorted((data / "csrbench" / "data").glob("data_*.ttl"))
    assert len(files) == 34
    return [
        ((str(quad.subject), str(quad.predicate), str(quad.object)), int(file.stem[-2:]) * 1000)
        for file in files
        for quad in ox.parse(path=file)
    ]


def _query(data: Path, dialect: str, number: int) -> streamsparql.Query:
    text = (data / "csrbench" / "queries" / TEXTS[dialect].format(number)).read_text()
    if dialect == "streaming":  # the benchmark has no query for it: C-SPARQL's, another window
        head, _, tail = text[text.index("PREFIX") :].partition("[RANGE")
        width = tail.split()[0].removesuffix("s")
        text = f"{head}WINDOW RANGE {width} S FIXED {tail.partition(']')[2]}"
    query = streamsparql.compile(text)
    assert query.dialect == dialect
    return query


def _expected(data: Path, number: int) -> dict[int, Bag]:
    runs = json.loads((data / "csrbench" / "expected" / f"q{number}.json").read_text())["runs"]
    (run,) = (run for run in runs if run["policy"] == "window_close" and run["t0"] == 0)
    return {
        each["at"]: Counter(
            frozenset((name, cell["value"]) for name, cell in row.items()) for row in each["rows"]
        )
        for each in run["evaluations"]
    }


def _bag(rows: list[Any]) -> Bag:
    return Counter(frozenset((name, str(value)) for name, value in row.items()) for row in rows)


def _check(reports: dict[int, Bag], expected: dict[int, Bag]) -> None:
    assert sum(map(len, expected.values())) > 10
    assert {at: reports.get(at) for at in expected} == expected
    assert not any(rows for at, rows in reports.items() if at not in expected)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("dialect", TEXTS)
def test_report_at_each_close_is_that_of_the_benchmark(
    data: Path, observations: list[Any], dialect: str, number: int
) -> None:
    query, later = _query(data, dialect, number), int(dialect == "csparql")
    stream = [(triple, t + later) for triple, t in observations]
    period = {1: 10_000, 2: 1000, 3: 4000}[number]
    reports = query.run({STREAM: stream}).report("rstream", every=period)
    _check({at: _bag(rows) for at, rows in reports}, _expected(data, number))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_live_query_reports_the_same(data: Path, observations: list[Any], number: int) -> None:
    live = _query(data, "rspql", number).open(report="rstream")
    reports: list[Any] = []
    for second in range(34):
        for triple, t in observations:
            if t == second * 1000:
                live.push(STREAM, triple, t)
        live.advance(second * 1000 + 1)
        reports += live.rows()
        assert not any(at > second * 1000 for at, _ in reports)
    live.close()
    reports += live.rows()
    _check({at: _bag(rows) for at, rows in reports}, _expected(data, number))
