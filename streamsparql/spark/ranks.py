"""Ranks, for windows that count elements: the number of elements of each before a part begins.

An element's rank is its position among all elements of its window. A part needs the elements that
its window may still contain, and the rank of the first of them. So time is divided finely, at
quantiles of the data; one job counts, for each window, the elements in each of these pieces. Prefix
sums are the ranks at the edges, and determine the edge from which a part must read. No task reads
more than one split or slab of the stream.
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
"""The number of pieces of time in which elements are counted."""
COUNT_SCHEMA = "window int, piece int, elements long"
"""The schema of counts, in Spark's DDL."""


def counting_edges(histogram: TimeHistogram) -> IntArray:
    """Return the edges of the pieces of time; the first piece is before the first edge."""
    rows = [histogram.rows * k / PIECES for k in range(PIECES)]
    return np.unique(histogram.instants(rows)) if histogram.rows else np.empty(0, np.int64)


class ElementCounter:
    """A counter of the elements of a stream's windows, by pieces of time.

    With entailment the static graphs, a catalog and its dictionary, select the elements that count.
    """

    def __init__(
        self,
        plan: Plan,
        stream: str,
        edges: IntArray,
        terms: TermDictionary | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        self._stream, self._edges = stream, edges
        self.terms = TermDictionary() if terms is None else terms
        self._windows = element_windows_over(plan, stream)
        graphs = catalog or Catalog()
        below = (lower(x.input, self.terms, Run(), graphs).plain for _, x in self._windows)
        self._pipelines = [Pipeline(operator, self.terms) for operator in below]
        self._counts = np.zeros((len(self._windows), len(edges) + 1), np.int64)

    def add(self, items: pa.Table) -> None:
        """Count the elements of a table of items."""
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
        """Yield the counts, as rows of `COUNT_SCHEMA`."""
        windows, pieces = np.nonzero(self._counts)
        numbers = np.array([number for number, _ in self._windows], np.int32)
        columns = [
            pa.array(numbers[windows], pa.int32()),
            pa.array(pieces.astype(np.int32)),
            pa.array(self._counts[windows, pieces]),
        ]
        yield pa.RecordBatch.from_arrays(columns, ["window", "piece", "elements"])


def element_windows_over(plan: Plan, stream: str) -> list[tuple[int, ElementWindow]]:
    """Return the windows that count elements of a stream, with their numbers in the plan."""
    numbered = enumerate(element_windows(plan))
    return [(number, window) for number, window in numbered if reads_stream(window, stream)]


@dataclass(frozen=True)
class Ranks:
    """The number of elements of each window before each edge."""

    edges: IntArray
    before: IntArray
    """The numbers, by window and edge."""
    windows: tuple[ElementWindow, ...]

    @classmethod
    def of(cls, plan: Plan, edges: IntArray, rows: Iterable[Mapping[str, int]]) -> Ranks:
        """Return the ranks from the counts of all tasks, rows of `COUNT_SCHEMA`."""
        windows = element_windows(plan)
        counts = np.zeros((len(windows), len(edges) + 1), np.int64)
        for row in rows:
            counts[row["window"], row["piece"]] += row["elements"]
        return cls(edges, np.cumsum(counts, axis=1)[:, :-1], windows)

    def since(self, t: int, windows: Sequence[int]) -> int:
        """Return the edge from which elements determine the content of windows at `t`."""
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
        """Return the last edge at or before an instant; 0 before the first edge."""
        at = int(np.searchsorted(self.edges, t, "right")) - 1
        return int(self.edges[at]) if at >= 0 else 0

    def ranks(self, since: Mapping[int, int]) -> dict[ElementWindow, int]:
        """Return the rank of each window's first element at or after its edge in `since`."""
        ranks = {}
        for k, edge in since.items():
            at = int(np.searchsorted(self.edges, edge, "left"))
            known = at < len(self.edges) and self.edges[at] == edge
            ranks[self.windows[k]] = int(self.before[k, at]) if known else 0
        return ranks
