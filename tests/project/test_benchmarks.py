"""The benchmarks of many queries and of rules run to their end, at small sizes."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RUNS = {
    "cqels": [
        "--triples=500 --instances=3,20 --separate=3 --rate=50 --seconds=4",
        "Q4'    20 inst",
    ],
    "rules": ["--cases=windows,graphs --repeat=1 --windows=1 --sizes=50 --static=50", "50 static"],
    "selection": ["--sizes=50 --kept=1 --repeat=2", "50 posts in the window"],
    "sessions": [
        "--queries=3 --separate=3 --rounds=1 --different=4 --ranges=10 --slides=12",
        "10 ranges of",
    ],
}


@pytest.mark.parametrize("program", RUNS)
def test_program_runs_to_its_end(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("pyoxigraph")
    monkeypatch.syspath_prepend(BENCHMARKS)
    module = importlib.import_module(program)
    if program == "rules":  # its main sets these
        monkeypatch.setattr(module.push_aggregates_into_joins, "LEAST_GAIN", 0.0)
        monkeypatch.setattr(module.measured, "perf_counter", module.measured.perf_counter)
        monkeypatch.setattr(module.pipeline, "perf_counter", module.pipeline.perf_counter)
    arguments, last = RUNS[program]
    module.main(arguments.split())
    printed = capsys.readouterr().out
    assert last in printed
    assert "OTHER ROWS" not in printed
