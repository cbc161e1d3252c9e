"""The command `streamsparql run` over a folder of one stream, in its own process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WIND = "http://example.org/wind"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
PREFIX = "PREFIX : <http://example.org/>\n"
FROM = f"FROM STREAM <{WIND}> WINDOW RANGE 10 SECOND SLIDE 5 SECOND\n"
MEAN = f"{PREFIX}SELECT ?t (AVG(?v) AS ?mean) {FROM} WHERE {{ ?t :speed ?v }} GROUP BY ?t"
FAST = f"{PREFIX}CONSTRUCT {{ ?t :fast ?v }} {FROM} WHERE {{ ?t :speed ?v FILTER(?v > 5) }}"
ANY = f"{PREFIX}ASK {FROM} WHERE {{ ?t :speed ?v FILTER(?v > 5) }}"
QUERIES = {"mean": MEAN, "fast": FAST, "any": ANY, "none": "ASK {}"}
ITEMS = (("a", 6, 1_000), ("a", 8, 4_000), ("b", 5, 12_000))
SUMMARY = re.compile(
    r"[0-9,]+ items?: [0-9,]+ accepted.*, 0 late, 0 rejected; [0-9,]+ rows? in .*s\n"
)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def quad(turbine: str, speed: int, t: int) -> str:
    """Return an item of the stream as a line of N-Quads."""
    subject, predicate = f"<http://example.org/{turbine}>", "<http://example.org/speed>"
    return f'{subject} {predicate} "{speed}"^^<{INTEGER}> "{t}"^^<{INTEGER}> .\n'


def write_wind(folder: Path) -> None:
    """Write the stream (wind.nq) and the queries over it (mean.rq, fast.rq, ...) to a folder."""
    (folder / "wind.nq").write_text("".join(quad(*item) for item in ITEMS))
    for name, text in QUERIES.items():
        (folder / f"{name}.rq").write_text(text)


def run(
    cwd: Path, *arguments: str, text: str = "", zone: str = "UTC"
) -> subprocess.CompletedProcess[str]:
    """Run `streamsparql run` in a folder, with `text` on standard input."""
    return subprocess.run(
        [sys.executable, "-m", "streamsparql", "run", *arguments],
        input=text,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**ENVIRONMENT, "TZ": zone},
        timeout=120,
    )


def output_lines(cwd: Path, *arguments: str, text: str = "", zone: str = "UTC") -> list[str]:
    """Return the lines that a run prints; check that it rejects nothing and ends well."""
    done = run(cwd, *arguments, text=text, zone=zone)
    assert done.returncode == 0
    assert SUMMARY.fullmatch(done.stderr), done.stderr
    return done.stdout.splitlines()


@contextmanager
def running(
    folder: Path, *arguments: str, command: str = "run", stream: str = "-"
) -> Iterator[Any]:
    """Start a command over mean.rq with pipes to it, and wait for its end."""
    words = [sys.executable, "-m", "streamsparql", command, "mean.rq", "--stream", stream]
    with subprocess.Popen(
        [*words, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=ENVIRONMENT,
    ) as process:
        yield process
