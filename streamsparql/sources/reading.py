"""How a stream is read: its timestamps, and what its sources report while they are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamsparql.sources.failed_cells import CellLog
from streamsparql.sources.stamps import StampReader


@dataclass(frozen=True, eq=False)
class Reading:
    """What all sources of one stream share: the reader of timestamps, and a log of failed cells."""

    stamps: StampReader = field(default_factory=StampReader)
    stamp_from: str | None = None
    """Where in an item its timestamp is, if not in its usual place: a column, a path, or the IRI
    of a predicate."""
    cells: CellLog = field(default_factory=CellLog)

    def probing(self) -> Reading:
        """Return the reading of items that are read ahead: cells without a value are not logged."""
        return Reading(self.stamps, self.stamp_from)
