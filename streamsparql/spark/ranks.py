"""Windows that count elements: how many came to each before a part begins.

An element's rank is its place among all that came to its window. A part needs the elements that its
window may still hold, and the rank of the first of them. So time is divided finely, at quantiles of
the data; one job counts, for each window, the elements in each of these pieces; sums give the ranks
at their edges, and where a part has to begin to see enough of them. No task ever sees more than its
share of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsparql.algebra.functions import Run
from streamsparql.algebra.partition import element_windows, reads_stream
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.window import ElementWindow
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.lowering.lower import Catalog, lower
from streamsparql.physical.pipeline import Pipeline
from streamsparql.spark.cut import TimeHistogram

PIECES = 1_024
COUNTED = "window int, piece int, elements long"


def edges_of(spread: TimeHistogram) -> IntArray:
    """Where time is divided for counting; the first piece is what comes before the first edge."""
    rows = [spread.rows * k / PIECES for k in range(PIECES)]
    return np.unique(spread.instants(rows)) if spread.rows else np.empty(0, np.int64)


class Counting:
    """Counts the elements that come to windows, by pieces of time."""

    def __init__(self, plan: Plan, stream: str, edges: IntArray) -> None:
        self._stream, self._edges = stream, edges
        self.terms = TermDictionary()
        self._windows = windows_over(plan, stream)
        below = (lower(x.input, self.terms, Run(), Catalog()).plain for _, x in self._windows)
        self._pipelines = [Pipeline(operator, self.terms) for operator in below]
        self._counts = np.zeros((len(self._windows), len(edges) + 1), np.int64)

    def add(self, items: pa.Table) -> None:
        """Counts these items, which are in order of time."""
        columns = {
            place: self.terms.encode(items.column(k).combine_chunks())
            for k, place in enumerate(TRIPLE)
        }
        stamps = items.column("timestamp").to_numpy()
        batch = Batch(columns, stamps, stamps + 1).where(np.min([*columns.values()], axis=0) != 0)
        for k, pipeline in enumerate(self._pipelines):
            rows, _ = pipeline.step({self._stream: batch}, {self._stream: 0})
            pieces = np.searchsorted(self._edges, rows.start, "right")
            np.add.at(self._counts[k], pieces, rows.counts())
        if self.terms.due():
            self.terms.recycle([])

    def rows(self) -> Iterator[pa.RecordBatch]:
        """What was counted, as rows of `COUNTED`."""
        windows, pieces = np.nonzero(self._counts)
        numbers = np.array([number for number, _ in self._windows], np.int32)
        columns = [
            pa.array(numbers[windows], pa.int32()),
            pa.array(pieces.astype(np.int32)),
            pa.array(self._counts[windows, pieces]),
        ]
        yield pa.RecordBatch.from_arrays(columns, ["window", "piece", "elements"])


def windows_over(plan: Plan, stream: str) -> list[tuple[int, ElementWindow]]:
    """The windows that count elements of a stream, by their number in the plan."""
    found = enumerate(element_windows(plan))
    return [(number, window) for number, window in found if reads_stream(window, stream)]


@dataclass(frozen=True)
class Ranks:
    """How many elements came to each window, up to each edge."""

    edges: IntArray
    before: IntArray
    """By window and edge."""
    windows: tuple[ElementWindow, ...]

    @classmethod
    def of(cls, plan: Plan, edges: IntArray, rows: Iterable[Mapping[str, int]]) -> Ranks:
        """Of what tasks have counted."""
        windows = element_windows(plan)
        counts = np.zeros((len(windows), len(edges) + 1), np.int64)
        for row in rows:
            counts[row["window"], row["piece"]] += row["elements"]
        return cls(edges, np.cumsum(counts, axis=1)[:, :-1], windows)

    def since(self, t: int, windows: Sequence[int]) -> int:
        """The edge from which on elements are needed to know what windows hold at `t`."""
        at = int(np.searchsorted(self.edges, t, "right")) - 1
        if at < 0:
            return 0
        for k in windows:
            need = self.windows[k].look_back
            enough = np.flatnonzero(self.before[k, : at + 1] <= self.before[k, at] - need)
            at = int(enough[-1]) if len(enough) else -1
            if at < 0:
                return 0
        return int(self.edges[at])

    def edge(self, t: int) -> int:
        """The last edge that is not after an instant."""
        at = int(np.searchsorted(self.edges, t, "right")) - 1
        return int(self.edges[at]) if at >= 0 else 0

    def ranks(self, since: Mapping[int, int]) -> dict[ElementWindow, int]:
        """The rank of the first element at or after an edge, by window."""
        found = {}
        for k, edge in since.items():
            at = int(np.searchsorted(self.edges, edge, "left"))
            known = at < len(self.edges) and self.edges[at] == edge
            found[self.windows[k]] = int(self.before[k, at]) if known else 0
        return found
