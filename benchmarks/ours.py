"""This engine as a contender: a whole history in one call, or slide by slide.

Replay and native are `Query.run` over all items, as RSTREAM reports and as rows with validity. Live
is `Query.open`: a slide is pushed, time is advanced to its end, the report of the window that ends
there is taken as Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turbines import STATIC, STREAM, History, Item, end_of
from workloads import Row, continuous, value_of

import streamsparql


def graphs_of(history: History) -> dict[str, Any]:
    """The static graphs that a query is given."""
    return {STATIC: history.static} if history.static else {}


def whole(workload: str, history: History) -> Any:
    """A result of which nothing of the stream was read, but the static graph is indexed."""
    query = streamsparql.compile(continuous(workload))
    return query.run(history.all_items, graphs=graphs_of(history))


class Live:
    """Queries that are open, one except in W6."""

    def __init__(self, workload: str, history: History, queries: int = 0) -> None:
        asked = range(queries) if workload == "W6" else (0,)
        texts = [continuous(workload, k) for k in asked]
        graphs = graphs_of(history)
        self._open = [
            streamsparql.compile(text).open(graphs=graphs, report="rstream") for text in texts
        ]

    def step(self, k: int, slide: Sequence[Item]) -> list[Any]:
        """Takes in the k-th slide and gives the report at its end, a table per query."""
        return [self._stepped(live, k, slide) for live in self._open]

    @staticmethod
    def _stepped(live: Any, k: int, slide: Sequence[Item]) -> Any:
        live.push_many(STREAM, slide)
        live.advance(end_of(k))
        return live.to_arrow()

    @staticmethod
    def count(answer: list[Any]) -> int:
        """The rows of a report."""
        return sum(table.num_rows for table in answer)

    @staticmethod
    def rows(answer: list[Any]) -> list[Row]:
        """The rows of a report as plain values."""
        return [row for table in answer for row in plain(table)]

    @property
    def state(self) -> dict[str, int]:
        """What the operators hold."""
        return {o.operator: o.state for live in self._open for o in live.stats().operators}


def plain(table: Any) -> list[Row]:
    """The rows of a table without its times, as plain values."""
    times = ("instant", "start", "end")
    columns = [table[name].to_pylist() for name in table.column_names if name not in times]
    return [tuple(map(value_of, row)) for row in zip(*columns, strict=True)]


def by_instant(table: Any) -> dict[int, int]:
    """How many rows each report has."""
    counts = table["instant"].value_counts().to_pylist()
    return {entry["values"]: entry["counts"] for entry in counts}
