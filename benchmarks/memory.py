"""The memory of a contender, in a separate process, live, at 100k.

    python benchmarks/memory.py live W1

It measures by how much the process grows once the data and the libraries are loaded: at its peak,
and at the end, when the engine still retains the last window.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MEGABYTE = 1024.0


def measure_memory(workloads: Iterable[str]) -> list[dict[str, Any]]:
    """Measure this engine and Polars, each in a process per workload."""
    out = []
    for workload in workloads:
        if workload == "W6":
            continue
        sizes = {name: _measure(name, workload) for name in ("live", "polars")}
        out.append({"workload": workload, "size": "100k", "memory": sizes})
    return out


def _measure(name: str, workload: str) -> dict[str, float]:
    command = [sys.executable, __file__, name, workload]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    megabytes: dict[str, float] = json.loads(run.stdout)
    return megabytes


def process_memory(entry: str) -> float:
    """Return an entry of the memory statistics of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(entry):
            return int(line.split()[1]) / MEGABYTE
    raise LookupError(entry)


def _release_freed_memory() -> None:
    """Return freed memory to the system, so that reuse of it counts as growth."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def main(name: str, workload: str) -> None:
    """Run a contender and print by how much the process grew, in MB."""
    sys.path[:0] = [str(HERE.parent), str(HERE)]
    from turbines import history

    data = history("100k", static=workload == "W4")
    engine: Any
    if name == "live":
        import ours

        warm, kind = history("1k"), ours.OpenQueries
        slides: Any = data.items
        first: Any = warm.items
    else:
        from peers import PEERS

        warm, kind = history("1k"), PEERS[name]  # type: ignore[assignment]
        slides, first = data.triples, warm.triples
    if workload != "W4":
        kind(workload, warm).step(0, first[0])  # libraries allocate on first use
    _release_freed_memory()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
    base = process_memory("VmRSS")
    engine = kind(workload, data)
    for k, slide in enumerate(slides):
        engine.step(k, slide)
    peak = process_memory("VmHWM")
    _release_freed_memory()
    end = process_memory("VmRSS")
    print(json.dumps({"peak": round(peak - base, 1), "end": round(end - base, 1)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
