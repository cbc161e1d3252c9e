"""Figures of an open query: the counts of its items, the rows and the state of its operators."""

from __future__ import annotations

from typing import NamedTuple

from streamsparql.sources import Accounting
from streamsparql.sources.failed_cells import FailedCells


class OperatorStats(NamedTuple):
    """The rows that an operator has consumed and emitted, and that it retains."""

    operator: str
    facts: str
    """Its parameters, as the query writes them."""
    rows_in: int
    rows_out: int
    state: int


class Stats(NamedTuple):
    """Figures of an open query: the counts of its items, its watermark, its state."""

    items: Accounting
    graph_rejects: int
    """Triples of static graphs that were rejected."""
    watermark: int
    terms: int
    """Terms in the dictionary."""
    operators: tuple[OperatorStats, ...]
    """Those that read streams first, the sink last."""
    failed_cells: tuple[FailedCells, ...] = ()
    """The cells of records for which an expression of their mapping has no value."""

    @property
    def late(self) -> int:
        """Items that arrived below the watermark."""
        return self.items.late

    @property
    def rejected(self) -> int:
        """Items that could not be read or stamped, and triples of static graphs."""
        return self.items.rejected + self.graph_rejects

    @property
    def state(self) -> int:
        """Rows that all operators retain."""
        return sum(each.state for each in self.operators)
