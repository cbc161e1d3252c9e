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

    @property
    def predicate(self) -> str | None:
        """The predicate of the triples with the timestamps, in N-Triples syntax, if there is one.

        >>> Reading(stamp_from="<http://www.w3.org/ns/sosa/resultTime>").predicate
        '<http://www.w3.org/ns/sosa/resultTime>'
        """
        place = self.stamp_from
        return place if place is not None and place.startswith("<") else None

    @property
    def column(self) -> str | None:
        """The column, or the path in a record, with the timestamps, if it is named."""
        return None if self.predicate is not None else self.stamp_from

    def probing(self) -> Reading:
        """Return the reading of items that are read ahead: cells without a value are not logged."""
        return Reading(self.stamps, self.stamp_from)
