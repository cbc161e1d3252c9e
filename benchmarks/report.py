"""What the measurements look like in print, and which bar each ratio is held to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

BARS: dict[tuple[str, str, str], float] = {
    ("replay", "polars", "100k"): 1.0,
    ("replay", "duckdb-replay", "1k"): 1.0,
    ("live", "polars", "100k"): 0.6,
    ("live", "pyoxigraph", "1k"): 2.0,
}
"""The least ratio of a mode to a peer at a size (W1 to W5)."""
RSP_BAR = 4.0
"""The least ratio to the best RSP engine; rsp-js is the one measured here, and not the best."""

MODES = ("replay", "live")
PUSH_BAR = 300.0
"""Microseconds that a single push may cost."""
BATCH_BAR = 0.5
"""The least share of the replay's speed that batches of 1,000 reach."""
MEMORY_BAR = 2.0
"""The most that is held, in terms of what Polars holds."""


def marked(ratio: float, met: bool) -> str:
    """A ratio with its mark."""
    return f"{ratio:.2f}x {'ok' if met else 'BELOW THE BAR'}"


def show(record: Mapping[str, Any]) -> None:
    """One workload at one size: speeds, then ratios of this engine to each peer."""
    speeds: dict[str, int] = record["tps"]
    modes = [mode for mode in MODES if mode in speeds]
    print(f"\n{record['workload']} {record['size']}, {record['rows']:,} rows, triples/s:")
    print("  " + "  ".join(f"{name} {speed:,}" for name, speed in speeds.items()))
    for mode in modes:
        cells = []
        for peer, speed in speeds.items():
            if peer in ("replay", "live", "native"):
                continue
            if not speed:
                cells.append(f"{peer} came to no full window in time")
                continue
            ratio = speeds[mode] / speed
            bar = RSP_BAR if peer == "rspjs" else BARS.get((mode, peer, record["size"]))
            shown = f"{ratio:.2f}x" if bar is None else marked(ratio, ratio >= bar)
            cells.append(f"{shown} {peer}")
        print(f"  {mode:7}" + "  ".join(cells))
    if "native" in speeds:
        print(f"  rows with validity: {speeds['native'] / speeds['replay']:.2f}x the reports")


def show_single(records: Iterable[Mapping[str, Any]]) -> None:
    """Single pushes, and batches of 1,000."""
    print()
    for record in records:
        if "push_us" in record:
            cost = record["push_us"]
            met = "ok" if cost < PUSH_BAR else "ABOVE THE BAR"
            print(f"a push and its rows: {cost:.0f} us {met}; the push alone: {record['alone_us']}")
        if "batches" in record:
            ratio = record["batches"] / record["native"]
            shown = marked(ratio, ratio >= BATCH_BAR)
            print(f"{record['workload']} in batches of 1,000: {shown} of a replay in one call")


def show_memory(records: Iterable[Mapping[str, Any]]) -> None:
    """What the process grew by, live, at 100k."""
    print()
    for record in records:
        if "memory" not in record:
            continue
        sizes: dict[str, dict[str, float]] = record["memory"]
        mine, theirs = sizes["live"], sizes["polars"]
        ratio = mine["peak"] / max(theirs["peak"], 1.0)
        met = "ok" if ratio <= MEMORY_BAR else "ABOVE THE BAR"
        shown = ", ".join(
            f"{name} {size['peak']:.0f} MB (then holds {size['held']:.0f})"
            for name, size in sizes.items()
        )
        print(f"{record['workload']} 100k memory at its peak: {shown}; {ratio:.2f}x {met}")
