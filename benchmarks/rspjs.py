"""rsp-js, an RSP engine in JavaScript, as a peer, in a separate process for each turn.

`rspjs/run.js` reads the history as JSON, with the same terms as this engine, and measures in its
process, once all of it is in memory. It corrects a bug of rsp-js that loses many windows.
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

ENOUGH_SECONDS = 4.0
"""The seconds after which a turn ends if it has reached full windows."""
LEAST_STEPS = SLIDES_PER_WINDOW + 2
"""The number of steps after which a turn has reached full windows."""


class Answers(NamedTuple):
    """The output of a run, for the windows that it reached in time."""

    seconds: list[float]
    """The duration of each step, by the selected clock."""
    counts: dict[int, int]
    """The number of rows, by the end of the window."""
    rows: dict[int, list[Row]]
    """The rows by the end of the window, if requested."""


def why_unavailable() -> str | None:
    """Return why rsp-js cannot run; None if it can."""
    if shutil.which("node") is None:
        return f"node is not installed; after that: {INSTALL}"
    if not INSTALLED.exists():
        return f"rsp-js is not installed: {INSTALL}"
    return None


def rspql(workload: str) -> str:
    """Return the query for rsp-js, which parses RSP-QL line by line.

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
    """Run rsp-js over a history, or over the part that it can process in `budget` seconds."""
    variables = {"W1": "tv", "W4": "tvp", "W5": "tca"}.get(workload, "tab")
    request = {
        "query": rspql(workload),
        "stream": STREAM,
        "variables": list(variables),
        "graph": STATIC,
        "static": data.static,
        "slides": data.items,
        "ends": [end_of(k) for k in range(len(data.items))],
        "budget": budget,
        "enough": ENOUGH_SECONDS,
        "least": LEAST_STEPS,
        "rows": rows,
    }
    command = ["node", str(HERE / "run.js")]
    process = subprocess.run(
        command, input=json.dumps(request), stdout=subprocess.PIPE, text=True, check=True
    )
    output: dict[str, Any] = json.loads(process.stdout)
    tables = {
        end_of(k): [tuple(map(value_of, row)) for row in table]
        for k, table in enumerate(output["rows"])
    }
    counts = {end_of(k): count for k, count in enumerate(output["counts"])}
    return Answers(output[clock], counts, tables)
