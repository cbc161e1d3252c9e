"""Memory over a long time: millions of elements with ever-new literals through a small window.

    python benchmarks/soak.py [--elements 20000000] [--window 10000] [--query join]

Each element has a literal that never came before, so what does not forget grows with the stream:
terms, state, what waits. Printed is the curve: what the process holds, how many terms the
dictionary has, how many rows the operators hold, and the speed since the line before.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from memory import status  # noqa: E402
from turbines import EX, STREAM  # noqa: E402

import streamsparql  # noqa: E402

BATCH = 10_000
LINES = 20
PATTERNS = {
    "join": "SELECT ?t ?a ?b {source} {{ ?t :said ?a . ?t :heard ?b }}",
    "count": "SELECT ?t (COUNT(DISTINCT ?a) AS ?n) {source} {{ ?t :said ?a }} GROUP BY ?t",
    "all": "SELECT * {source} {{ ?s ?p ?o }}",
}


def batch(first: int) -> list[tuple[str, str, str, int]]:
    """A batch of elements, a millisecond apart, all with new literals."""
    predicates = f"<{EX}said>", f"<{EX}heard>"
    return [
        (f"<{EX}T{n // 2 % 5_000}>", predicates[n % 2], f'"word {n}"', n)
        for n in range(first, first + BATCH)
    ]


def main() -> None:
    """Pushes, and prints a line now and then; the last says how much memory grew by."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=20_000_000)
    parser.add_argument("--window", type=int, default=10_000)
    parser.add_argument("--query", choices=PATTERNS, default="join")
    asked = parser.parse_args()
    source = f"FROM STREAM <{STREAM}> WINDOW ELEMS {asked.window}"
    text = f"PREFIX : <{EX}> " + PATTERNS[asked.query].format(source=source)
    live = streamsparql.compile(text).open()
    every = max(BATCH, asked.elements // LINES // BATCH * BATCH)
    print(
        f"{'elements':>12} {'RSS MB':>8} {'terms':>9} {'state':>9} {'rows out':>12} {'per s':>10}"
    )
    curve: list[float] = []
    rows, spent = 0, 0.0
    for first in range(0, asked.elements, BATCH):
        items = batch(first)
        before = time.perf_counter()
        live.push_many(STREAM, items)
        rows += live.to_arrow().num_rows
        spent += time.perf_counter() - before
        done = first + BATCH
        if done % every == 0:
            gc.collect()
            stats = live.stats()
            curve.append(status("VmRSS"))
            counts = f"{stats.terms:>9,} {stats.state:>9,} {rows:>12,}"
            print(f"{done:>12,} {curve[-1]:>8.1f} {counts} {every / spent:>10,.0f}", flush=True)
            spent = 0.0
    live.close()
    settled = curve[len(curve) // 4 :]
    growth = settled[-1] - settled[0]
    print(
        f"from a quarter of the way to the end memory went from {settled[0]:.1f} MB"
        f" to {settled[-1]:.1f} MB ({growth:+.1f})"
    )


if __name__ == "__main__":
    main()
