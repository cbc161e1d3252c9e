"""Small steps: one item at a time, and batches of 1,000, beside a whole history in one call."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from ours import graphs_of, whole
from turbines import STREAM, History, Item, history
from workloads import continuous

import streamsparql

BATCH = 1_000
TURNS = 3


def measured_pushes() -> dict[str, Any]:
    """What a push costs in microseconds, with taking out what is known, and by itself (W1)."""
    items = history("1k").all_items
    taken: list[float] = []
    alone: list[float] = []
    query = streamsparql.compile(continuous("W1"))
    for _ in range(TURNS):
        for times, take in ((taken, True), (alone, False)):
            with query.open() as live:
                times.append(median(_pushed(live, items, take)))
    return {"workload": "W1", "push_us": min(taken) * 1e6, "alone_us": round(min(alone) * 1e6, 2)}


def _pushed(live: Any, items: Sequence[Item], take: bool) -> list[float]:
    times = []
    for s, p, o, t in items:
        before = time.perf_counter()
        live.push(STREAM, (s, p, o), t)
        if take:
            live.rows()
        times.append(time.perf_counter() - before)
    return times


def measured_batches(workloads: Iterable[str]) -> list[dict[str, Any]]:
    """Triples per second in batches of 1,000 and in one call, rows with validity, at 100k."""
    out = []
    for workload in workloads:
        if workload == "W6":
            continue
        data = history("100k", static=workload == "W4")
        turns = [(_batched(workload, data), _at_once(workload, data)) for _ in range(TURNS)]
        batched, at_once = (max(speeds) for speeds in zip(*turns, strict=True))
        out.append({"workload": workload, "batches": round(batched), "native": round(at_once)})
    return out


def _batched(workload: str, data: History) -> float:
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


def _at_once(workload: str, data: History) -> float:
    result = whole(workload, data)
    gc.collect()
    before = time.perf_counter()
    result.to_arrow()
    return sum(map(len, data.items)) / (time.perf_counter() - before)
