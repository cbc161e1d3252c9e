"""From which size Spark pays: the embedded engine and local Spark over histories of growing size.

    python benchmarks/crossover.py [--cases count,W5] [--sizes 100k,1M,10M] [--repeat 3]
                                   [--data FOLDER] [--memory 4g] [--json FILE]

Both engines read the same Parquet file, the embedded one on one core, Spark on two. The first turn
of a process includes the imports and, for Spark, the start of its session; the later turns of both
engines alternate, and the best of them counts.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from histories import history_file
from spark import CASES, Process, _list_of, _parse_triples

ENGINES = {"embedded": "embedded", "spark": "files"}
"""The contenders of spark.py by the name of their engine."""


def measure(case: str, triples: int, options: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds of the first turn and of the best later one, by engine."""
    path = history_file(options.data, triples)
    processes: dict[str, Process] = {}
    record: dict[str, Any] = {"case": case, "triples": triples, "first": {}, "later": {}}
    try:
        for engine, contender in ENGINES.items():
            processes[engine] = Process(contender, options.memory)
            record["first"][engine] = processes[engine].take_turn(case, path).seconds
        for _ in range(options.repeat):
            for engine, process in processes.items():
                seconds = process.take_turn(case, path).seconds
                record["later"][engine] = min(seconds, record["later"].get(engine, seconds))
    finally:
        for process in processes.values():
            process.end()
    return record


def show(record: dict[str, Any]) -> None:
    """Print the seconds of both engines, and the speed of Spark relative to the embedded one."""
    cells = [f"{record['case']:6}{record['triples'] / 1e6:7g}M"]
    for turn in ("first", "later"):
        embedded, spark = record[turn]["embedded"], record[turn]["spark"]
        cells.append(f"{turn}: {embedded:7.2f} s, {spark:7.2f} s, {embedded / spark:5.2f}x")
    print("   ".join(cells), flush=True)


def main() -> None:
    """Measure the selected cases at all sizes, and print the records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=_list_of(), default=["count", "W5"])
    parser.add_argument(
        "--sizes", type=_list_of(_parse_triples), default=[100_000, 1_000_000, 10_000_000]
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--data", type=Path, help="folder of the Parquet files")
    parser.add_argument("--memory", default="4g", help="Java heap")
    parser.add_argument("--json", type=Path, help="write the records to a file")
    options = parser.parse_args()
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(CASES)}")
    if options.data is None:
        options.data = Path(tempfile.gettempdir(), "streamsparql-benchmarks")
    print("seconds of the embedded engine and of Spark, and the speed of Spark relative to it")
    records = []
    for case in options.cases:
        for triples in options.sizes:
            records.append(measure(case, triples, options))
            show(records[-1])
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
