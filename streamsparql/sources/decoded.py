"""Items that a connector has decoded from messages, with those messages that it rejected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from streamsparql.physical.batch import IntArray
from streamsparql.sources.chunk import Chunk, Origin, Reject
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import StampReader
from streamsparql.sources.tables import chunk_of_batch


@runtime_checkable
class ChunkSource(Protocol):
    """A source that yields chunks by itself: a live one, or what it decoded."""

    def chunks(self, encoder: Encoder, size: int) -> Iterator[Chunk]:
        """Yield the items in chunks of at most this size."""


@dataclass(frozen=True)
class Decoded:
    """Items with their places in partitions, in the order in which they count.

    `items` has the columns of `tables`, with times in milliseconds: an item has been stamped, so
    the options of the stream about timestamps do not apply again.
    """

    names: tuple[str, ...]
    """The partitions, in messages."""
    unit: str
    """The unit of the places."""
    items: pa.RecordBatch
    places: IntArray
    """The place of each item: that of its message."""
    rejects: Sequence[Reject] = ()
    which: IntArray | None = None
    """With several partitions, the index of that of each item."""

    def chunks(self, encoder: Encoder, size: int) -> Iterator[Chunk]:
        """Yield the items, and the rejects with the last of them."""
        encoder = encoder.with_unit(self.unit, self.names[0])
        encoder.reading = Reading(StampReader("ms"), cells=encoder.reading.cells)
        encoder.pending = list(self.rejects)
        for at in range(0, len(self.places), size):
            part = slice(at, at + size)
            batch = self.items.slice(at, size)
            chunk = chunk_of_batch(batch, encoder, self.places[part], True)
            chunk.origins = tuple(Origin(name, self.unit) for name in self.names)
            chunk.which = None if self.which is None else self.which[part]
            yield chunk
        yield from encoder.remaining()

    def part(self, first: int, after: int) -> Decoded:
        """Return the items from `first` to `after - 1`, without rejects."""
        items = self.items.slice(first, after - first)
        return replace(self, items=items, places=self.places[first:after], rejects=())

    @classmethod
    def merged(cls, parts: Sequence[Decoded], times: Sequence[IntArray]) -> Decoded:
        """Return the items of several partitions in the order of these times, one per item."""
        order = np.argsort(np.concatenate([*times]), kind="stable")
        table = pa.Table.from_batches([_with_texts(part.items) for part in parts])
        items = table.take(pa.array(order)).combine_chunks().to_batches()
        lengths = [len(part.places) for part in parts]
        return cls(
            tuple(part.names[0] for part in parts),
            parts[0].unit,
            items[0] if items else _with_texts(parts[0].items),
            np.concatenate([part.places for part in parts])[order],
            [reject for part in parts for reject in part.rejects],
            np.repeat(np.arange(len(parts)), lengths)[order],
        )


def _with_texts(items: pa.RecordBatch) -> pa.RecordBatch:
    """Return items whose terms are not dictionary-encoded: dictionaries differ by partition."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in items.columns
    ]
    return pa.record_batch(columns, names=items.schema.names)
