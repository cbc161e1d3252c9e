"""The embedded engine beside its peers, on W1 to W6: ratios of one run (see README.md here).

    python benchmarks/embedded.py [--sizes 1k,10k,100k] [--workloads W1,W5] [--peers polars,duckdb]
                                  [--rspjs 1k] [--budget 20] [--queries 10,100] [--repeat 5]
                                  [--clock wall] [--json FILE] [--no-memory] [--no-single]

Contenders take turns, each several times, and the best turn of each counts: what else runs on the
machine disturbs all alike, and cannot make anyone faster. All must give the same rows. On a machine
that is never quiet, `--clock cpu` counts the time of the processor, of all threads together.
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
from memory import measured_memory  # noqa: E402
from peers import PEERS, DuckDB, available  # noqa: E402
from single import measured_batches, measured_pushes  # noqa: E402
from turbines import SLIDES_PER_WINDOW, History, end_of, history  # noqa: E402
from workloads import QUESTIONS, Row, same_rows  # noqa: E402

LONG_ENOUGH = 20.0
"""A contender that took so many seconds has no more turns."""
LONG_ENOUGH_FOR = {"rspjs": 3.0}
"""The same for those that would hold up the others."""
ALL_PEERS = (*PEERS, "rspjs")


@dataclass
class Turns:
    """What a contender did so far."""

    name: str
    best: float = 0.0
    """Triples per second in its best turn."""
    spent: float = 0.0
    counts: dict[int, int] = field(default_factory=dict)
    """Rows by the end of the window."""
    rows: dict[int, list[Row]] = field(default_factory=dict)
    """The rows themselves, where they are compared."""
    reached: float = inf
    """The end of the last window that there was time for."""


Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}

Turn = Callable[[Turns, bool], float]
"""One turn: fills in the rows when it is the first, and gives triples per second."""


def stepwise(make: Callable[[], Any], slides: Sequence[Any], compare: bool, clock: Clock) -> Turn:
    """Slide by slide; the median of the steps that end a full window counts."""

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


def replayed(workload: str, data: History, native: bool, clock: Clock) -> Turn:
    """The whole history in one call of this engine. Static graphs are indexed before the clock."""

    def turn(turns: Turns, first: bool) -> float:
        result = ours.whole(workload, data)
        before = clock()
        table = result.to_arrow(report=None if native else "rstream")
        seconds = clock() - before
        if first and not native:
            turns.counts = ours.by_instant(table)
        return sum(map(len, data.items)) / seconds

    return turn


def replayed_by_duckdb(workload: str, data: History, clock: Clock) -> Turn:
    """All windows of the history in one statement."""

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


def by_rspjs(workload: str, data: History, compare: bool, clock: str, budget: float) -> Turn:
    """Slide by slide in node; no speed if it came to no full window in time."""

    def turn(turns: Turns, first: bool) -> float:
        answers = rspjs.run(workload, data, compare and first, clock, budget)
        if first:
            turns.counts, turns.rows = answers.counts, answers.rows
            turns.reached = max(answers.counts)
        full = answers.seconds[SLIDES_PER_WINDOW - 1 :]
        return data.per_slide / median(full) if full else 0.0

    return turn


class Case(NamedTuple):
    """One workload at one size, and who takes part."""

    workload: str
    size: str
    data: History
    peers: Sequence[str]
    clock: str
    queries: int = 0
    budget: float = 0.0
    """The seconds that rsp-js has."""

    def contenders(self) -> dict[str, Turn]:
        """All that are measured."""
        workload, data, clock = self.workload, self.data, CLOCKS[self.clock]
        compare = self.size == "1k"
        found: dict[str, Turn] = {}
        if workload != "W6":
            found["replay"] = replayed(workload, data, False, clock)
            found["native"] = replayed(workload, data, True, clock)
        live = partial(ours.Live, workload, data, self.queries)
        found["live"] = stepwise(live, data.items, compare, clock)
        for name in self.peers:
            if name == "rspjs":
                found[name] = by_rspjs(workload, data, compare, self.clock, self.budget)
                continue
            peer = partial(PEERS[name], workload, data, self.queries)
            found[name] = stepwise(peer, data.triples, compare, clock)
        if "duckdb" in self.peers and workload != "W6":
            found["duckdb-replay"] = replayed_by_duckdb(workload, data, clock)
        return found


def measured(turns_of: dict[str, Turn], repeat: int) -> dict[str, Turns]:
    """Lets the contenders take turns."""
    found = {name: Turns(name) for name in turns_of}
    for turn in range(repeat):
        for name, take in turns_of.items():
            turns = found[name]
            if turns.spent > LONG_ENOUGH_FOR.get(name, LONG_ENOUGH):
                continue
            gc.collect()
            gc.freeze()
            before = time.perf_counter()
            turns.best = max(turns.best, take(turns, turn == 0))
            turns.spent += time.perf_counter() - before
            gc.unfreeze()
    return found


def disagreements(found: dict[str, Turns]) -> list[str]:
    """Which contenders differ from the first peer that answers slide by slide, and where."""
    out = []
    truth = found["python"] if "python" in found else found["live"]
    for name, turns in found.items():
        for end, count in turns.counts.items():
            expected = truth.counts.get(end, found["live"].counts.get(end))
            if expected is not None and expected != count:
                out.append(f"{name}: {count} rows at {end}, {truth.name} has {expected}")
                break
            rows = turns.rows.get(end)
            if rows is not None and not same_rows(rows, truth.rows[end]):
                out.append(f"{name}: other rows at {end} than {truth.name}")
                break
        missing = [
            end
            for end, count in truth.counts.items()
            if count and end not in turns.counts and end <= turns.reached
        ]
        if turns.counts and missing:
            out.append(f"{name}: no rows at {missing[0]}")
    if "duckdb-replay" in found and found["replay"].counts != found["duckdb-replay"].counts:
        out.append("replay and duckdb-replay differ in how many rows some window has")
    return out


def arguments() -> argparse.Namespace:
    """What the caller asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1k,10k,100k")
    parser.add_argument("--workloads", default=",".join(QUESTIONS))
    parser.add_argument("--peers", default=",".join(ALL_PEERS))
    parser.add_argument("--rspjs", default="1k", help="the sizes at which rsp-js takes part")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for rsp-js, each case")
    parser.add_argument("--queries", default="10,100", help="how many W6 asks")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--no-single", action="store_true", help="no single pushes and batches")
    return parser.parse_args()


def main() -> None:
    """Measures, checks, prints."""
    asked = arguments()
    peers = []
    for name in asked.peers.split(","):
        reason = rspjs.missing() if name == "rspjs" else available(name)
        if reason:
            print(f"without {name}: {reason}")
        else:
            peers.append(name)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    records: list[dict[str, Any]] = []
    wrong: list[str] = []
    for case in _cases(asked, peers):
        records.append(_compared(case, asked.repeat, wrong))
    if not asked.no_single:
        records += [measured_pushes(), *measured_batches(asked.workloads.split(","))]
        report.show_single(records)
    if not asked.no_memory:
        records += measured_memory(asked.workloads.split(","))
        report.show_memory(records)
    for line in wrong:
        print("WRONG", line)
    if asked.json:
        asked.json.write_text(json.dumps(records, indent=1))
    sys.exit(bool(wrong))


def _cases(asked: argparse.Namespace, peers: Sequence[str]) -> Iterator[Case]:
    workloads = asked.workloads.split(",")
    without = [name for name in peers if name != "rspjs"]
    for size in asked.sizes.split(","):
        present = peers if size in asked.rspjs.split(",") else without
        for workload in workloads:
            if workload != "W6":
                data = history(size, static=workload == "W4")
                yield Case(workload, size, data, present, asked.clock, budget=asked.budget)
    if "W6" in workloads:
        for queries in map(int, asked.queries.split(",")):
            yield Case("W6", f"K={queries}", history("w6"), without, asked.clock, queries)


def _compared(case: Case, repeat: int, wrong: list[str]) -> dict[str, Any]:
    found = measured(case.contenders(), repeat)
    wrong += [f"{case.workload} {case.size} {line}" for line in disagreements(found)]
    speeds = {name: round(turns.best) for name, turns in found.items()}
    rows = sum(found["live"].counts.values())
    record = {"workload": case.workload, "size": case.size, "rows": rows, "tps": speeds}
    report.show(record)
    return record


if __name__ == "__main__":
    main()
