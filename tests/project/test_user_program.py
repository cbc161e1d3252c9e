"""A program of a user under `mypy --strict`, and its output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is in the dev extra")
ROOT = Path(__file__).parents[2]

PROGRAM = '''\
"""Speeds above a limit: over a history, and as they arrive."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import assert_type

import streamsparql
from streamsparql import Live, Report, Row, SnapshotRow

Item = tuple[str, str, str, int]
ITEMS: list[Item] = [("<a>", "<speed>", f'"{n}"', 1000 * n) for n in range(8)]


def ends(rows: list[Row]) -> list[datetime | None]:
    return [row.end_time for row in rows if row.value("v") != "0"]


def history(query: streamsparql.Query) -> None:
    result = query.run(ITEMS, max_delay="5s", end=timedelta(days=1) // timedelta(milliseconds=1))
    assert_type(list(result), list[Row])
    assert_type(next(result.report("rstream", every="5 s")), Report)
    table = result.to_arrow(values="native")
    frame = result.to_pandas("istream")
    print(table.num_rows, len(frame), len(result.to_polars()), ends(list(result))[0])
    for report in result.report(every=timedelta(seconds=5)):
        row: SnapshotRow
        for row in report.rows:
            print(report.instant, row.value("v"))
            break


def newest(live: Live[Report]) -> list[Report]:
    return live.rows()


async def arriving(query: streamsparql.Query) -> None:
    async def show(report: Report) -> None:
        print(report.time, len(report.rows))

    async with query.open(report="rstream", on_row=show) as reports:
        assert_type(reports, Live[Report])
        reports.push_many("s", ITEMS[:4])
    live = query.open(emit="eager", max_delay=timedelta(seconds=1))
    assert_type(live, Live[Row])
    live.push("s", ITEMS[0][:3], datetime.fromisoformat("2026-03-01T08:00:00Z"))
    live.close()
    async for row in live:
        print(row.start_time, row["v"].n3())
    with query.open(every="1m", on_row=lambda report: print(report.instant)) as every:
        print(len(newest(every)))


query = streamsparql.compile(Path("speed.rq"), origin="1970-01-01")
history(query)
asyncio.run(arriving(query))
'''
QUERY = "SELECT ?v FROM STREAM <s> WINDOW RANGE 10 SECOND SLIDE 5 SECOND { ?x <speed> ?v }"
OUTPUT = """\
8 8 8 1970-01-01 00:00:10+00:00
5000 0
10000 0
15000 5
1970-01-01 00:00:05+00:00 4
1970-01-01 00:00:10+00:00 4
1970-01-01 00:00:15+00:00 0
2026-03-01 08:00:00+00:00 "0"
0
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "speed.rq").write_text(QUERY, "utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    return tmp_path / "program.py"


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout + done.stderr


def mypy(program: Path) -> list[str]:
    """Return the errors in the program, as a user of an installed package sees them."""
    cache = ("--cache-dir", str(ROOT / ".mypy_cache" / "user"), "--follow-imports=silent")
    lines = run("-m", "mypy", "--strict", *cache, program.name, folder=program.parent)
    return [line for line in lines.splitlines() if ": error:" in line]


def test_types_are_precise(program: Path) -> None:
    assert mypy(program) == []


def test_wrong_uses_are_found(program: Path) -> None:
    wrong = (
        "query.run(ITEMS, max_dely='5s')",
        "query.open(report='rstream', on_row=lambda row: print(row.end_time))",
        "query.run(ITEMS).to_pandas(values='terns')",
        "query.run(ITEMS, end=1.5)",
        "query.open().rows()[0].instant",
    )
    program.write_text(PROGRAM + "\n".join(wrong), "utf-8")
    first = PROGRAM.count("\n") + 1
    lines = [line.split(":")[1] for line in mypy(program)]
    assert lines == [str(first + k) for k in range(len(wrong))]


def test_program_runs(program: Path) -> None:
    assert run(program.name, folder=program.parent) == OUTPUT
