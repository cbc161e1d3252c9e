"""What tasks note of the items that they read, and how it reaches the driver as rows."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from streamsparql.sources.chunk import Accounting, Chunk, Reject
from streamsparql.sources.failed_cells import CellLog

READ_LOG_SCHEMA = (
    "source string, position long, reason string, item string, unit string, late boolean,"
    " lateness long, log binary"
)
"""The schema of logs, in Spark's DDL: a row per reject; a row without a source has the rest."""


@dataclass
class ReadLog:
    """The rejects, the cells without a value, and the counts of the items that were read."""

    rejects: list[Reject] = field(default_factory=list)
    cells: CellLog = field(default_factory=CellLog)
    items: Accounting = field(default_factory=Accounting)

    @property
    def needed_delay(self) -> int:
        """The least `max_delay` with which no item would have been late."""
        return max((reject.lateness for reject in self.rejects), default=0)

    def counted(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield chunks, and count their items; those that are rejected are counted at the end."""
        for chunk in chunks:
            self.items += Accounting(
                chunk.items,
                chunk.items,
                unmatched=chunk.prefiltered,
                rows_without_triples=chunk.rows_without_triples,
            )
            yield chunk

    def reject(self, rejects: Sequence[Reject]) -> None:
        """Add rejects, which were counted as accepted."""
        late = sum(reject.late for reject in rejects)
        self.items += Accounting(0, -len(rejects), late, len(rejects) - late)
        self.rejects += rejects

    def include(self, other: ReadLog) -> None:
        """Add what another log has."""
        self.rejects += other.rejects
        self.cells.include(other.cells)
        self.items += other.items

    def batch(self) -> pa.RecordBatch:
        """Return the log as rows of `READ_LOG_SCHEMA`."""
        rejects = [*self.rejects, Reject("", 0, "", None)]
        logs = [None] * len(self.rejects) + [pickle.dumps((self.cells, self.items))]
        items = [r.item if isinstance(r.item, str | None) else repr(r.item) for r in rejects]
        columns = [
            pa.array([r.source for r in rejects], pa.string()),
            pa.array([r.position for r in rejects], pa.int64()),
            pa.array([r.reason for r in rejects], pa.string()),
            pa.array(items, pa.string()),
            pa.array([r.unit for r in rejects], pa.string()),
            pa.array([r.late for r in rejects], pa.bool_()),
            pa.array([r.lateness for r in rejects], pa.int64()),
            pa.array(logs, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, [*Reject._fields, "log"])

    def read(self, rows: pa.Table) -> None:
        """Add the logs that tasks of this run wrote."""
        for row in rows.to_pylist():
            log = row.pop("log")
            if log is None:
                self.rejects.append(Reject(**row))
            else:
                cells, items = pickle.loads(log)  # the tasks of this run wrote it
                self.cells.include(cells)
                self.items += items
