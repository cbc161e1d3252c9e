"""rsp-js, an RSP engine in JavaScript, as a peer: a process of its own for each turn.

`rspjs/run.js` gets the history as JSON, in the terms that this engine gets, and measures by itself,
from when all of it is in memory. It mends one fault of rsp-js, without which many windows are lost.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from turbines import SLIDE, SLIDES_PER_WINDOW, STATIC, STREAM, WIDTH, History, end_of
from workloads import PREFIX, SELECTS, Row, value_of

HERE = Path(__file__).resolve().parent / "rspjs"
INSTALL = "npm install --no-package-lock --prefix benchmarks/rspjs"
INSTALLED = HERE / "node_modules" / "rsp-js" / "package.json"

ENOUGH = 4.0
"""Seconds after which a turn ends if there were some full windows."""
LEAST = SLIDES_PER_WINDOW + 2
"""The steps in which there are some full windows."""


class Answers(NamedTuple):
    """What a run gave, for as many windows as it came to in time."""

    seconds: list[float]
    """What each step took, on the clock that was asked for."""
    counts: dict[int, int]
    """Rows by the end of the window."""
    rows: dict[int, list[Row]]
    """The rows themselves, if asked for."""


def missing() -> str | None:
    """What keeps rsp-js from being measured; None if nothing does."""
    if shutil.which("node") is None:
        return f"there is no node; with it: {INSTALL}"
    if not INSTALLED.exists():
        return f"it is not installed: {INSTALL}"
    return None


def rspql(workload: str) -> str:
    """The query for rsp-js, which takes what it needs of RSP-QL line by line.

    >>> print(rspql("W5").splitlines()[5])
    WINDOW :w { ?t :WindSpeed ?v }
    """
    select, pattern, after = SELECTS[workload]
    pattern, graph, static = pattern.format().partition(" . GRAPH")
    return (
        f"{PREFIX}REGISTER RStream <out> AS\nSELECT {select}\n"
        f"FROM NAMED WINDOW :w ON STREAM <{STREAM}> [RANGE {WIDTH} STEP {SLIDE}]\nWHERE {{\n"
        f"WINDOW :w {{ {pattern} }}\n{graph[3:]}{static}\n}}{after}"
    )


def run(workload: str, data: History, rows: bool, clock: str, budget: float) -> Answers:
    """Runs a history through rsp-js, or as much as there is time for in `budget` seconds."""
    variables = {"W1": "tv", "W4": "tvp", "W5": "tca"}.get(workload, "tab")
    asked = {
        "query": rspql(workload),
        "stream": STREAM,
        "variables": list(variables),
        "graph": STATIC,
        "static": data.static,
        "slides": data.items,
        "ends": [end_of(k) for k in range(len(data.items))],
        "budget": budget,
        "enough": ENOUGH,
        "least": LEAST,
        "rows": rows,
    }
    command = ["node", str(HERE / "run.js")]
    ran = subprocess.run(
        command, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    tables = {
        end_of(k): [tuple(map(value_of, row)) for row in table]
        for k, table in enumerate(found["rows"])
    }
    counts = {end_of(k): count for k, count in enumerate(found["counts"])}
    return Answers(found[clock], counts, tables)
