"""The printed report of the measurements, and the bar of each ratio."""

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
"""The least ratio to the best RSP engine. rsp-js is measured here, but is not the best."""

MODES = ("replay", "live")
PUSH_BAR = 300.0
"""The most microseconds that a push may take."""
BATCH_BAR = 0.5
"""The least ratio of the speed in batches of 1,000 to that of a replay."""
MEMORY_BAR = 2.0
"""The greatest ratio of the peak memory to that of Polars."""


def with_verdict(ratio: float, met: bool) -> str:
    """Return a ratio as text, with its verdict."""
    return f"{ratio:.2f}x {'ok' if met else 'BELOW THE BAR'}"


def show(record: Mapping[str, Any]) -> None:
    """Print a workload at a size: speeds, then the ratios of this engine to each peer."""
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
                cells.append(f"{peer} reached no full window in time")
                continue
            ratio = speeds[mode] / speed
            bar = RSP_BAR if peer == "rspjs" else BARS.get((mode, peer, record["size"]))
            text = f"{ratio:.2f}x" if bar is None else with_verdict(ratio, ratio >= bar)
            cells.append(f"{text} {peer}")
        print(f"  {mode:7}" + "  ".join(cells))
    if "native" in speeds:
        print(f"  rows with validity: {speeds['native'] / speeds['replay']:.2f}x the reports")


def show_single(records: Iterable[Mapping[str, Any]]) -> None:
    """Print the cost of single pushes, and the speed in batches of 1,000."""
    print()
    for record in records:
        if "push_us" in record:
            cost = record["push_us"]
            met = "ok" if cost < PUSH_BAR else "ABOVE THE BAR"
            print(f"a push and its rows: {cost:.0f} us {met}; the push alone: {record['alone_us']}")
        if "batches" in record:
            ratio = record["batches"] / record["native"]
            text = with_verdict(ratio, ratio >= BATCH_BAR)
            print(f"{record['workload']} in batches of 1,000: {text} of a replay in one call")


def show_memory(records: Iterable[Mapping[str, Any]]) -> None:
    """Print by how much the process grew, live, at 100k."""
    print()
    for record in records:
        if "memory" not in record:
            continue
        sizes: dict[str, dict[str, float]] = record["memory"]
        ratio = sizes["live"]["peak"] / max(sizes["polars"]["peak"], 1.0)
        met = "ok" if ratio <= MEMORY_BAR else "ABOVE THE BAR"
        peaks = ", ".join(
            f"{name} {size['peak']:.0f} MB (at the end {size['end']:.0f})"
            for name, size in sizes.items()
        )
        print(f"{record['workload']} 100k peak memory: {peaks}; {ratio:.2f}x {met}")
