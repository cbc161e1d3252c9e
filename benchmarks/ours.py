"""This engine as a contender: over a whole history in one call, or slide by slide.

Replay and native are `Query.run` over all items, with RSTREAM reports and with rows and their
validity. Live is `Query.open`: a step pushes a slide, advances time to its end, and returns the
report of the window that ends there as Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turbines import STATIC, STREAM, History, Item, end_of
from workloads import Row, continuous, value_of

import streamsparql


def graphs_of(history: History) -> dict[str, Any]:
    """Return the static graphs of a history, as an argument of `Query.run`."""
    return {STATIC: history.static} if history.static else {}


def lazy_result(workload: str, history: History) -> Any:
    """Return a result that has indexed the static graph, but read nothing of the stream."""
    query = streamsparql.compile(continuous(workload))
    return query.run(history.all_items, graphs=graphs_of(history))


class OpenQueries:
    """The open queries of a workload: several in W6, else one."""

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        constants = range(queries) if workload == "W6" else (0,)
        texts = [continuous(workload, k) for k in constants]
        graphs = graphs_of(history)
        self._open = [
            streamsparql.compile(text).open(graphs=graphs, report="rstream") for text in texts
        ]

    def step(self, k: int, slide: Sequence[Item]) -> list[Any]:
        """Push the k-th slide and return the report at its end, a table per query."""
        return [self._step(live, k, slide) for live in self._open]

    @staticmethod
    def _step(live: Any, k: int, slide: Sequence[Item]) -> Any:
        live.push_many(STREAM, slide)
        live.advance(end_of(k))
        return live.to_arrow()

    @staticmethod
    def count(report: list[Any]) -> int:
        """Return the number of rows of a report."""
        return sum(table.num_rows for table in report)

    @staticmethod
    def rows(report: list[Any]) -> list[Row]:
        """Return the rows of a report as plain values."""
        return [row for table in report for row in plain_rows(table)]

    @property
    def state(self) -> dict[str, int]:
        """The number of rows that each operator retains."""
        return {o.operator: o.state for live in self._open for o in live.stats().operators}


def plain_rows(table: Any) -> list[Row]:
    """Return the rows of a table as plain values, without its columns of time."""
    times = ("instant", "start", "end")
    columns = [table[name].to_pylist() for name in table.column_names if name not in times]
    return [tuple(map(value_of, row)) for row in zip(*columns, strict=True)]


def rows_per_instant(table: Any) -> dict[int, int]:
    """Return the number of rows of each report, by its instant."""
    counts = table["instant"].value_counts().to_pylist()
    return {entry["values"]: entry["counts"] for entry in counts}
