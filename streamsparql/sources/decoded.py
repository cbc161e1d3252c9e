"""Items that a connector has decoded from messages, with those messages that it rejected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Chunk, Reject
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import StampReader
from streamsparql.sources.tables import chunk_of_batch


@dataclass(frozen=True)
class Decoded:
    """Items with their places in a partition, in the order of its messages.

    `items` has the columns of `tables`, with times in milliseconds: an item has been stamped, so
    the options of the stream about timestamps do not apply again.
    """

    name: str
    """The partition, in messages."""
    unit: str
    """The unit of the places."""
    items: pa.RecordBatch
    places: IntArray
    """The place of each item: that of its message."""
    rejects: Sequence[Reject] = ()

    def chunks(self, encoder: Encoder, size: int) -> Iterator[Chunk]:
        """Yield the items in chunks of at most this size."""
        encoder = encoder.with_unit(self.unit, self.name)
        encoder.reading = Reading(StampReader("ms"), cells=encoder.reading.cells)
        encoder.pending = list(self.rejects)
        for at in range(0, len(self.places), size):
            part = self.items.slice(at, size)
            yield chunk_of_batch(part, encoder, self.places[at : at + size], True)
        yield from encoder.remaining()

    def part(self, first: int, after: int) -> Decoded:
        """Return the items from `first` to `after - 1`, without rejects."""
        items = self.items.slice(first, after - first)
        return replace(self, items=items, places=self.places[first:after], rejects=())
