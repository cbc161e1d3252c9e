"""Memory over a long run: millions of elements with unique literals through a small window.

    python benchmarks/soak.py [--elements 20000000] [--window 10000] [--query join]

Each element has a new literal, so whatever is not released grows with the stream: terms, state,
buffers. The program prints a curve: the resident memory, the number of terms in the dictionary, the
number of rows that the operators retain, and the speed since the last line.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from memory import process_memory  # noqa: E402
from turbines import EX, STREAM  # noqa: E402

import streamsparql  # noqa: E402

BATCH = 10_000
LINES = 20
PATTERNS = {
    "join": "SELECT ?t ?a ?b {source} {{ ?t :said ?a . ?t :heard ?b }}",
    "count": "SELECT ?t (COUNT(DISTINCT ?a) AS ?n) {source} {{ ?t :said ?a }} GROUP BY ?t",
    "all": "SELECT * {source} {{ ?s ?p ?o }}",
}


def new_elements(first: int) -> list[tuple[str, str, str, int]]:
    """Return a batch of elements, a millisecond apart, all with new literals."""
    predicates = f"<{EX}said>", f"<{EX}heard>"
    return [
        (f"<{EX}T{n // 2 % 5_000}>", predicates[n % 2], f'"word {n}"', n)
        for n in range(first, first + BATCH)
    ]


def main() -> None:
    """Push batches, and print lines of the curve; the last line has the growth of the memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=20_000_000)
    parser.add_argument("--window", type=int, default=10_000)
    parser.add_argument("--query", choices=PATTERNS, default="join")
    options = parser.parse_args()
    source = f"FROM STREAM <{STREAM}> WINDOW ELEMS {options.window}"
    text = f"PREFIX : <{EX}> " + PATTERNS[options.query].format(source=source)
    live = streamsparql.compile(text).open()
    every = max(BATCH, options.elements // LINES // BATCH * BATCH)
    print(
        f"{'elements':>12} {'RSS MB':>8} {'terms':>9} {'state':>9} {'rows out':>12} {'per s':>10}"
    )
    curve: list[float] = []
    rows, spent = 0, 0.0
    for first in range(0, options.elements, BATCH):
        items = new_elements(first)
        before = time.perf_counter()
        live.push_many(STREAM, items)
        rows += live.to_arrow().num_rows
        spent += time.perf_counter() - before
        done = first + BATCH
        if done % every == 0:
            gc.collect()
            stats = live.stats()
            curve.append(process_memory("VmRSS"))
            counts = f"{stats.terms:>9,} {stats.state:>9,} {rows:>12,}"
            print(f"{done:>12,} {curve[-1]:>8.1f} {counts} {every / spent:>10,.0f}", flush=True)
            spent = 0.0
    live.close()
    settled = curve[len(curve) // 4 :]
    growth = settled[-1] - settled[0]
    print(
        f"memory after the first quarter of the run: from {settled[0]:.1f} MB"
        f" to {settled[-1]:.1f} MB ({growth:+.1f})"
    )


if __name__ == "__main__":
    main()
