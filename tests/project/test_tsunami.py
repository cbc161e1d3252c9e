"""The detector of tsunamis finds the planted waves, by the formula computed in NumPy, and no others."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from streamsparql.cli import main
from streamsparql.cli.screen import Screen
from streamsparql.cli.tsunami_tour import TSUNAMI_COMMANDS, TsunamiTour
from streamsparql.errors import SourceError
from streamsparql.tsunami import COEFFICIENTS, FIRST_READING, READING_INTERVAL, Gauge, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = 3_600_000 // READING_INTERVAL
PAUSE = 4 * HOUR
"""The least readings from one wave to the next: two predictions with their readings take 7 hours."""


def deviations(gauge: Gauge) -> dict[int, float]:
    """Return by how many millimetres each reading differs from its prediction."""
    above = gauge.heights - gauge.heights[0]
    total = np.concatenate([[0.0], np.cumsum(above)])
    number = np.arange(len(above))
    first = np.maximum(number - 39, 0)
    mean = (total[number + 1] - total[first]) / (number + 1 - first) + gauge.heights[0]
    now = number[3 * HOUR : -1]
    predicted = sum(w * mean[now - i * HOUR] for i, w in enumerate(COEFFICIENTS))
    difference = 1000 * (gauge.heights[now + 1] - predicted)
    return dict(zip((now + 1).tolist(), difference.tolist(), strict=True))


def first_readings(numbers: list[int]) -> list[int]:
    """Return the numbers that follow no other within the pause."""
    return numbers[:1] + [b for a, b in pairwise(numbers) if b - a >= PAUSE]


def test_exactly_the_three_planted_waves_are_detected(capsys: pytest.CaptureFixture[str]) -> None:
    gauge = Gauge()
    assert len(gauge.heights) == 44_310
    by_number = deviations(gauge)
    high = first_readings([k for k, mm in by_number.items() if abs(mm) > 30])
    assert len(high) == len(gauge.waves) == 3
    for k, wave in zip(high, gauge.waves, strict=True):
        assert 0 < k - wave.first < 12
    assert min(abs(abs(mm) - 30) for mm in by_number.values()) > 1e-6
    expected = [
        [
            str(np.datetime64(FIRST_READING + k * READING_INTERVAL, "ms"))[:19].replace("T", " "),
            f"{by_number[k]:.0f}",
        ]
        for k in high
    ]
    TsunamiTour(gauge, screen=Screen(80)).show()
    shown = capsys.readouterr().out
    rows = re.findall(r"^  [-\d]+ [:\d]+  ([-\d]+ [:\d]+)  :gauge +(-?\d+)$", shown, re.M)
    assert [list(row) for row in rows] == expected
    for text in (
        *(t.partition("\n")[2].strip("\n") for t in texts().values()),
        *TSUNAMI_COMMANDS.values(),
    ):
        assert text in shown


def test_the_coefficients_of_the_rules_are_those_of_the_formula() -> None:
    terms = re.findall(r"([-+] )?(\d\.\d{14})e0 \* \?h(\d)", texts()["prediction.rules.rq"])
    weights = {int(n): float(f"{sign.strip() or '+'}{number}") for sign, number, n in terms}
    assert tuple(weights[n] for n in range(4)) == COEFFICIENTS
    assert sum(COEFFICIENTS) == pytest.approx(1, abs=1e-6)


def test_commands_run_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A few hours of readings, with waves at another place."""
    monkeypatch.chdir(tmp_path)
    gauge = Gauge(1_600)
    high = [k for k, mm in deviations(gauge).items() if abs(mm) > 30]
    gauge.write("ocean")
    write, *commands = TSUNAMI_COMMANDS.values()
    assert write.endswith("--write ocean")
    for command in commands:
        assert main(command.split()[1:]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(":gauge" in line for line in lines) == len(first_readings(high)) > 0


def test_the_tour_on_spark_prints_the_same(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    gauge = Gauge(2_400)
    TsunamiTour(gauge, screen=Screen(80)).show()
    expected = capsys.readouterr().out
    assert ":gauge" in expected
    TsunamiTour(gauge, {"engine": "spark", "spark": spark, "slabs": 2}, Screen(80)).show()
    assert capsys.readouterr().out == expected


def test_files_are_written_once_and_edited_ones_are_kept(tmp_path: Path) -> None:
    gauge = Gauge(10)
    assert sorted(path.name for path in gauge.write(tmp_path)) == sorted([*texts(), "readings.csv"])
    gauge.write(tmp_path)
    (tmp_path / "means.rq").write_text("ASK {}")
    with pytest.raises(SourceError, match="exists with other content"):
        gauge.write(tmp_path)


@pytest.mark.parametrize("option", ["--pour", "--turbines 3", "--minutes 5"], ids=str)
def test_options_of_the_park_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--only", "tsunami", *option.split()]) == 2
    assert f"--only tsunami cannot be combined with {option.split()[0]}" in capsys.readouterr().err
