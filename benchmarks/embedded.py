"""The embedded engine compared with its peers on W1 to W6, as ratios of one run (see README.md).

    python benchmarks/embedded.py [--sizes 1k,10k,100k] [--workloads W1,W5] [--peers polars,duckdb]
                                  [--rspjs 1k] [--budget 20] [--queries 10,100] [--repeat 5]
                                  [--clock wall] [--json FILE] [--no-memory] [--no-single]

Contenders take turns, several each, and the best turn of each counts: other load on the machine
disturbs all of them alike, and makes none faster. All must emit the same rows. On a busy machine,
`--clock cpu` measures processor time, the sum over all threads.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import ours  # noqa: E402
import report  # noqa: E402
import rspjs  # noqa: E402
from memory import measure_memory  # noqa: E402
from peers import PEERS, DuckDB, why_unavailable  # noqa: E402
from single import measure_batches, measure_pushes  # noqa: E402
from turbines import SLIDES_PER_WINDOW, History, end_of, history  # noqa: E402
from workloads import DESCRIPTIONS, Row, same_rows  # noqa: E402

MAX_SECONDS = 20.0
"""A contender that has used this many seconds takes no more turns."""
MAX_SECONDS_OF = {"rspjs": 3.0}
"""Lower limits, for contenders that would delay the others."""
ALL_PEERS = (*PEERS, "rspjs")


@dataclass
class Turns:
    """The results of a contender so far."""

    name: str
    best: float = 0.0
    """Triples per second in its best turn."""
    spent: float = 0.0
    counts: dict[int, int] = field(default_factory=dict)
    """The number of rows, by the end of the window."""
    rows: dict[int, list[Row]] = field(default_factory=dict)
    """The rows by the end of the window, if they are compared."""
    reached: float = inf
    """The end of the last window that the contender reached in time."""


Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}

Turn = Callable[[Turns, bool], float]
"""A function that takes a turn and returns triples per second; the first turn records the rows."""


def slide_turn(make: Callable[[], Any], slides: Sequence[Any], compare: bool, clock: Clock) -> Turn:
    """Return a turn slide by slide; the median of the steps that end a full window counts."""

    def turn(turns: Turns, first: bool) -> float:
        engine = make()
        times = []
        for k, slide in enumerate(slides):
            before = clock()
            answer = engine.step(k, slide)
            times.append(clock() - before)
            if first:
                turns.counts[end_of(k)] = engine.count(answer)
                if compare:
                    turns.rows[end_of(k)] = engine.rows(answer)
        return len(slides[0]) / median(times[SLIDES_PER_WINDOW - 1 :])

    return turn


def replay_turn(workload: str, data: History, native: bool, clock: Clock) -> Turn:
    """Return a turn of this engine over the whole history in one call.

    Static graphs are indexed before the clock starts.
    """

    def turn(turns: Turns, first: bool) -> float:
        result = ours.lazy_result(workload, data)
        before = clock()
        table = result.to_arrow(report=None if native else "rstream")
        seconds = clock() - before
        if first and not native:
            turns.counts = ours.rows_per_instant(table)
        return sum(map(len, data.items)) / seconds

    return turn


def duckdb_replay_turn(workload: str, data: History, clock: Clock) -> Turn:
    """Return a turn of DuckDB over all windows of the history in one statement."""

    def turn(turns: Turns, first: bool) -> float:
        engine = DuckDB(workload, data)
        before = clock()
        table = engine.replay(data.triples)
        seconds = clock() - before
        if first:
            counted = table["wend"].value_counts().to_pylist()
            turns.counts = {entry["values"]: entry["counts"] for entry in counted}
        return sum(map(len, data.triples)) / seconds

    return turn


def rspjs_turn(workload: str, data: History, compare: bool, clock: str, budget: float) -> Turn:
    """Return a turn of rsp-js slide by slide in node; its speed is 0 without a full window."""

    def turn(turns: Turns, first: bool) -> float:
        answers = rspjs.run(workload, data, compare and first, clock, budget)
        if first:
            turns.counts, turns.rows = answers.counts, answers.rows
            turns.reached = max(answers.counts)
        full = answers.seconds[SLIDES_PER_WINDOW - 1 :]
        return data.per_slide / median(full) if full else 0.0

    return turn


class Case(NamedTuple):
    """A workload at a size, and its contenders."""

    workload: str
    size: str
    data: History
    peers: Sequence[str]
    clock: str
    queries: int = 0
    budget: float = 0.0
    """The seconds of a turn of rsp-js."""

    def contenders(self) -> dict[str, Turn]:
        """Return the contenders by name, each as a function that takes a turn."""
        workload, data, clock = self.workload, self.data, CLOCKS[self.clock]
        compare = self.size == "1k"
        turns: dict[str, Turn] = {}
        if workload != "W6":
            turns["replay"] = replay_turn(workload, data, False, clock)
            turns["native"] = replay_turn(workload, data, True, clock)
        live = partial(ours.OpenQueries, workload, data, self.queries)
        turns["live"] = slide_turn(live, data.items, compare, clock)
        for name in self.peers:
            if name == "rspjs":
                turns[name] = rspjs_turn(workload, data, compare, self.clock, self.budget)
                continue
            peer = partial(PEERS[name], workload, data, self.queries)
            turns[name] = slide_turn(peer, data.triples, compare, clock)
        if "duckdb" in self.peers and workload != "W6":
            turns["duckdb-replay"] = duckdb_replay_turn(workload, data, clock)
        return turns


def take_turns(contenders: dict[str, Turn], repeat: int) -> dict[str, Turns]:
    """Let the contenders take turns, and return their results."""
    results = {name: Turns(name) for name in contenders}
    for turn in range(repeat):
        for name, take in contenders.items():
            turns = results[name]
            if turns.spent > MAX_SECONDS_OF.get(name, MAX_SECONDS):
                continue
            gc.collect()
            gc.freeze()
            before = time.perf_counter()
            turns.best = max(turns.best, take(turns, turn == 0))
            turns.spent += time.perf_counter() - before
            gc.unfreeze()
    return results


def disagreements(results: dict[str, Turns]) -> list[str]:
    """Return a line for each contender whose rows differ from those of plain Python."""
    out = []
    truth = results["python"] if "python" in results else results["live"]
    for name, turns in results.items():
        for end, count in turns.counts.items():
            expected = truth.counts.get(end, results["live"].counts.get(end))
            if expected is not None and expected != count:
                out.append(f"{name}: {count} rows at {end}, expected {expected} as in {truth.name}")
                break
            rows = turns.rows.get(end)
            if rows is not None and not same_rows(rows, truth.rows[end]):
                out.append(f"{name}: rows at {end} differ from those of {truth.name}")
                break
        missing = [
            end
            for end, count in truth.counts.items()
            if count and end not in turns.counts and end <= turns.reached
        ]
        if turns.counts and missing:
            out.append(f"{name}: no rows at {missing[0]}")
    if "duckdb-replay" in results and results["replay"].counts != results["duckdb-replay"].counts:
        out.append("replay and duckdb-replay differ in the number of rows of a window")
    return out


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1k,10k,100k")
    parser.add_argument("--workloads", default=",".join(DESCRIPTIONS))
    parser.add_argument("--peers", default=",".join(ALL_PEERS))
    parser.add_argument("--rspjs", default="1k", help="sizes at which to run rsp-js")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of a turn of rsp-js")
    parser.add_argument("--queries", default="10,100", help="numbers of queries of W6")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--no-single", action="store_true", help="skip single pushes and batches")
    return parser.parse_args()


def main() -> None:
    """Measure all cases, check their rows, print ratios; exit with 1 if rows differ."""
    options = parse_arguments()
    peers = []
    for name in options.peers.split(","):
        reason = rspjs.why_unavailable() if name == "rspjs" else why_unavailable(name)
        if reason:
            print(f"skipping {name}: {reason}")
        else:
            peers.append(name)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    records: list[dict[str, Any]] = []
    differences: list[str] = []
    for case in _cases(options, peers):
        records.append(_compare(case, options.repeat, differences))
    if not options.no_single:
        records += [measure_pushes(), *measure_batches(options.workloads.split(","))]
        report.show_single(records)
    if not options.no_memory:
        records += measure_memory(options.workloads.split(","))
        report.show_memory(records)
    for line in differences:
        print("WRONG", line)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))
    sys.exit(bool(differences))


def _cases(options: argparse.Namespace, peers: Sequence[str]) -> Iterator[Case]:
    workloads = options.workloads.split(",")
    without_rspjs = [name for name in peers if name != "rspjs"]
    for size in options.sizes.split(","):
        present = peers if size in options.rspjs.split(",") else without_rspjs
        for workload in workloads:
            if workload != "W6":
                data = history(size, static=workload == "W4")
                yield Case(workload, size, data, present, options.clock, budget=options.budget)
    if "W6" in workloads:
        for queries in map(int, options.queries.split(",")):
            yield Case("W6", f"K={queries}", history("w6"), without_rspjs, options.clock, queries)


def _compare(case: Case, repeat: int, differences: list[str]) -> dict[str, Any]:
    results = take_turns(case.contenders(), repeat)
    differences += [f"{case.workload} {case.size} {line}" for line in disagreements(results)]
    speeds = {name: round(turns.best) for name, turns in results.items()}
    rows = sum(results["live"].counts.values())
    record = {"workload": case.workload, "size": case.size, "rows": rows, "tps": speeds}
    report.show(record)
    return record


if __name__ == "__main__":
    main()
