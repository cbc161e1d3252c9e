"""Nexmark's queries, and tests of windows and watermarks, with the rows that RisingWave expects."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

import streamsparql
from tests.support.engine_cases import Answered, answers, line, lines, reported
from tests.support.external_data import over_data

NEXMARK = "http://example.org/nexmark/"
TABLES = "http://example.org/t#"

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")


def _queries(data: Path) -> list[ParameterSet]:
    folder = data / "nexmark"
    cases = json.loads((folder / "queries.json").read_text())
    assert len(cases) == 26
    expected = json.loads((folder / "expected.json").read_text())
    return [
        pytest.param(folder, name, case, expected[name], id=name) for name, case in cases.items()
    ]


@pytest.mark.parametrize(("folder", "name", "case", "expected"), over_data(_queries))
def test_nexmark(folder: Path, name: str, case: dict[str, Any], expected: list[str]) -> None:
    query = streamsparql.compile(folder / "queries" / f"{name}.rq")
    streams = {
        NEXMARK + table: streamsparql.mapped(
            folder / f"{table}.jsonl", (folder / f"{table}.map.rq").read_text()
        )
        for table in ("person", "auction", "bid")
    }
    rows = answers(query, streams, case["answer"])
    assert lines(rows, case["columns"], case.get("range", 0)) == Counter(map(line, expected))


def _windows(data: Path) -> list[ParameterSet]:
    folder = data / "nexmark" / "windows"
    cases = json.loads((folder / "cases.json").read_text())
    assert len(cases) == 28
    return [pytest.param(folder, case, id=case["name"]) for case in cases]


@pytest.mark.parametrize(("folder", "case"), over_data(_windows))
def test_windows(folder: Path, case: dict[str, Any]) -> None:
    query = streamsparql.compile(folder / f"{case['name']}.rq", origin=case.get("origin", 0))
    mappings = {
        TABLES + table: (folder / f"{table}.map.rq").read_text() for table in case["tables"]
    }
    if "steps" in case:
        _check_live(query, mappings, case)
        return
    streams = {
        TABLES + table: streamsparql.mapped(
            [dict(zip(rows["columns"], row, strict=True)) for row in rows["rows"]],
            mappings[TABLES + table],
        )
        for table, rows in case["tables"].items()
    }
    rows = answers(query, streams, case["answer"])
    expected = Counter(map(line, case["expect"]))
    assert lines(rows, case["columns"], case.get("range", 0)) == expected


def _check_live(query: streamsparql.Query, mappings: dict[str, str], case: dict[str, Any]) -> None:
    """Insert rows into an open query; after each step, all rows until then are the expected ones."""
    report = "rstream" if case["answer"] == "reports" else None
    rows: list[Answered] = []
    with query.open(max_delay=case["max_delay"], mapping=mappings, report=report) as live:
        for step in case["steps"]:
            if "insert" in step:
                columns = case["tables"][step["insert"]]["columns"]
                for row in step["rows"]:
                    record = dict(zip(columns, row, strict=True))
                    live.push_record(TABLES + step["insert"], record)
            else:
                rows += reported(live.rows()) if report else map(Answered, live.rows())
                expected = Counter(map(line, step["expect"]))
                assert lines(rows, case["columns"], case.get("range", 0)) == expected
