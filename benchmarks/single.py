"""Small steps: single items, and batches of 1,000, compared with a history in one call."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from ours import graphs_of, lazy_result
from turbines import STREAM, History, Item, history
from workloads import continuous

import streamsparql

BATCH = 1_000
TURNS = 3


def measure_pushes() -> dict[str, Any]:
    """Measure the microseconds of a push (W1), with a call of `rows` after it, and alone."""
    items = history("1k").all_items
    with_rows: list[float] = []
    alone: list[float] = []
    query = streamsparql.compile(continuous("W1"))
    for _ in range(TURNS):
        for times, read_rows in ((with_rows, True), (alone, False)):
            with query.open() as live:
                times.append(median(_push_times(live, items, read_rows)))
    return {
        "workload": "W1",
        "push_us": min(with_rows) * 1e6,
        "alone_us": round(min(alone) * 1e6, 2),
    }


def _push_times(live: Any, items: Sequence[Item], read_rows: bool) -> list[float]:
    times = []
    for s, p, o, t in items:
        before = time.perf_counter()
        live.push(STREAM, (s, p, o), t)
        if read_rows:
            live.rows()
        times.append(time.perf_counter() - before)
    return times


def measure_batches(workloads: Iterable[str]) -> list[dict[str, Any]]:
    """Measure triples per second in batches of 1,000 and in one call, without reports, at 100k."""
    out = []
    for workload in workloads:
        if workload == "W6":
            continue
        data = history("100k", static=workload == "W4")
        turns = [
            (_batch_speed(workload, data), _one_call_speed(workload, data)) for _ in range(TURNS)
        ]
        batched, at_once = (max(speeds) for speeds in zip(*turns, strict=True))
        out.append({"workload": workload, "batches": round(batched), "native": round(at_once)})
    return out


def _batch_speed(workload: str, data: History) -> float:
    items = data.all_items
    live = streamsparql.compile(continuous(workload)).open(graphs=graphs_of(data))
    gc.collect()
    before = time.perf_counter()
    for first in range(0, len(items), BATCH):
        live.push_many(STREAM, items[first : first + BATCH])
        live.to_arrow()
    live.close()
    live.to_arrow()
    return len(items) / (time.perf_counter() - before)


def _one_call_speed(workload: str, data: History) -> float:
    result = lazy_result(workload, data)
    gc.collect()
    before = time.perf_counter()
    result.to_arrow()
    return sum(map(len, data.items)) / (time.perf_counter() - before)
