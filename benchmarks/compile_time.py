"""The time from the text of a query to its plan, compared with rdflib in the same run.

    python benchmarks/compile_time.py

Compare ratios, not milliseconds: machines differ, and are shared. rdflib's time is that of
`prepareQuery`, which parses a query and translates it to rdflib's algebra.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

TYPICAL = """PREFIX : <http://example.org/>
SELECT ?turbine (AVG(?power) AS ?mean) {
  ?turbine :partOf :north . ?reading :of ?turbine ; :power ?power .
  OPTIONAL { ?stop :stopped ?turbine } FILTER(?power > 0)
} GROUP BY ?turbine ORDER BY DESC(?mean)"""


def _query_of(count: int, part: Callable[[int], str]) -> str:
    """Return a query with `count` parts about `?x`."""
    return "SELECT * { ?x <http://e/p> ?y " + " ".join(map(part, range(count))) + " }"


QUERIES = {
    "one pattern": "SELECT * { ?s ?p ?o }",
    "typical": TYPICAL,
    "50 triple patterns": _query_of(50, lambda i: f". ?x <http://e/p{i}> ?z{i}"),
    "500 triple patterns": _query_of(500, lambda i: f". ?x <http://e/p{i}> ?z{i}"),
    "100 optionals": _query_of(100, lambda i: f"OPTIONAL {{ ?x <http://e/p{i}> ?z{i} }}"),
    "200 filters": _query_of(200, lambda i: f"FILTER(?y > {i} || ?x = <http://e/{i}>)"),
    "500 nested groups": "SELECT * " + "{" * 500 + "?s ?p ?o" + "}" * 500,
    "5,000 optionals": _query_of(5_000, lambda i: f"OPTIONAL {{ ?x <http://e/p{i}> ?z }}"),
    "5,000 unions": "SELECT * { " + " UNION ".join(["{ ?s ?p ?o }"] * 5_000) + " }",
}


def seconds(action: Callable[[], object], least: float = 0.5) -> float | None:
    """Return the median time of an action over `least` seconds; None if it recurses too deep."""
    times: list[float] = []
    end = time.perf_counter() + least
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        try:
            action()
        except RecursionError:
            return None
        times.append(time.perf_counter() - start)
    return median(times)


def first_query(program: str) -> float:
    """Return the time of a program in a fresh process, measured inside it, with warm caches."""
    code = f"import time; t = time.perf_counter(); {program}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code, TYPICAL]
    runs = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True) for _ in range(9)]
    return median(sorted(float(run.stdout) for run in runs)[:5])


def main() -> None:
    """Measure all queries and print a table."""
    from rdflib.plugins.sparql import prepareQuery

    import streamsparql

    def line(name: str, ours: float | None, theirs: float | None) -> None:
        assert ours is not None
        comparison = (
            f"{theirs * 1000:9.2f} ms {theirs / ours:7.1f}x" if theirs else "RecursionError"
        )
        print(f"{name:24}{ours * 1000:11.2f} ms {comparison}")

    print(f"{'':24}{'streamsparql':>14} {'rdflib':>12} {'ratio':>8}")
    ours = first_query("import sys, streamsparql; streamsparql.compile(sys.argv[1])")
    theirs = first_query(
        "import sys; from rdflib.plugins.sparql import prepareQuery; prepareQuery(sys.argv[1])"
    )
    line("import and first query", ours, theirs)
    for name, text in QUERIES.items():
        ours = seconds(lambda text=text: streamsparql.compile(text))
        line(name, ours, seconds(lambda text=text: prepareQuery(text)))


if __name__ == "__main__":
    main()
