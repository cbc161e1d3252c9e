"""How much memory a contender takes: each in a process of its own, live, at 100k.

    python benchmarks/memory.py live W1

What is counted is how much the process grows from when the data are there and the libraries are
loaded: at its peak, and at the end, when the last window is still held.
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


def measured_memory(workloads: Iterable[str]) -> list[dict[str, Any]]:
    """This engine and Polars, a process for each workload."""
    out = []
    for workload in workloads:
        if workload == "W6":
            continue
        sizes = {name: _of(name, workload) for name in ("live", "polars")}
        out.append({"workload": workload, "size": "100k", "memory": sizes})
    return out


def _of(name: str, workload: str) -> dict[str, float]:
    command = [sys.executable, __file__, name, workload]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(run.stdout)
    return found


def status(entry: str) -> float:
    """An entry of what the system says of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(entry):
            return int(line.split()[1]) / MEGABYTE
    raise LookupError(entry)


def _given_back() -> None:
    """What was freed goes back to the system, so that growth into it is seen."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def main(name: str, workload: str) -> None:
    """Runs a contender and prints what it took, in MB."""
    sys.path[:0] = [str(HERE.parent), str(HERE)]
    from turbines import history

    data = history("100k", static=workload == "W4")
    engine: Any
    if name == "live":
        import ours

        warm, kind = history("1k"), ours.Live
        slides: Any = data.items
        first: Any = warm.items
    else:
        from peers import PEERS

        warm, kind = history("1k"), PEERS[name]  # type: ignore[assignment]
        slides, first = data.triples, warm.triples
    if workload != "W4":
        kind(workload, warm).step(0, first[0])  # what libraries take when they first run
    _given_back()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
    base = status("VmRSS")
    engine = kind(workload, data)
    for k, slide in enumerate(slides):
        engine.step(k, slide)
    peak = status("VmHWM")
    _given_back()
    held = status("VmRSS")
    print(json.dumps({"peak": round(peak - base, 1), "held": round(held - base, 1)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
