"""The exchange: how the items of streams come to the tasks that need them.

What is not in order of time already goes through one shuffle. Each task of the first stage reads a
share of the input and packs it: the items that a part of the run needs, sorted by time, as blocks.
Spark brings a part's blocks together, sorted by when they begin, and the task of the second stage
reads its streams from them, block by block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.disorder import Sorter
from streamsparql.spark.blocks import divided, hashes, packed, unpacked
from streamsparql.spark.cut import Part

PACK = 1 << 18
"""So many items are sorted and divided at a time."""

ITEMS = pa.schema(
    [
        ("subject", pa.dictionary(pa.int32(), pa.string())),
        ("predicate", pa.dictionary(pa.int32(), pa.string())),
        ("object", pa.dictionary(pa.int32(), pa.string())),
        ("timestamp", pa.int64()),
        ("sequence", pa.int64()),
    ]
)
"""Items on their way: terms in N-Triples syntax, and what orders those of one timestamp."""

EXCHANGED = "target int, stream int, first long, block binary"
"""The schema of blocks on their way, as Spark writes it."""


@dataclass(frozen=True)
class Need:
    """What the parts of a run need of a stream: from when on, up to the parts' ends."""

    since: IntArray
    until: IntArray
    key: tuple[str, ...] | None = None
    """Where the streams are divided by a key: the columns of an item that can hold its value."""
    buckets: int = 1
    scope: str = ""
    """What the labels of its blank nodes are scoped by."""

    @classmethod
    def of(cls, parts: Sequence[Part], since: Sequence[int]) -> Need:
        """Of parts of time, each from an instant on."""
        ends = [part.end for part in parts]
        return cls(np.array(since, np.int64), np.array(ends, np.int64))

    def divided(self, items: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The items of each part, sorted by time."""
        items = in_order_of_time(items)
        stamps = items.column("timestamp").to_numpy()
        if self.key is not None:
            yield from self._by_key(items, stamps)
            return
        low = np.searchsorted(stamps, self.since, "left").tolist()
        high = np.searchsorted(stamps, self.until, "left").tolist()
        for target, (begin, end) in enumerate(zip(low, high, strict=True)):
            if begin < end:
                yield target, items.slice(begin, end - begin)

    def _by_key(self, items: pa.Table, stamps: IntArray) -> Iterator[tuple[int, pa.Table]]:
        keys = [hashes(items.column(name), self.scope) % self.buckets for name in self.key or ()]
        inside = (stamps >= self.since[0]) & (stamps < self.until[0])
        rows, targets = [], []
        for k, bucket in enumerate(keys):
            new = inside.copy()
            for earlier in keys[:k]:
                new &= bucket != earlier
            rows.append(np.flatnonzero(new))
            targets.append(bucket[new].astype(np.int64))
        order = np.concatenate(rows)
        whole = items.take(pa.array(order))
        for target, some in divided(whole, np.concatenate(targets)):
            yield target, in_order_of_time(some)


def in_order_of_time(items: pa.Table) -> pa.Table:
    """Items by timestamp, those of one by sequence."""
    stamps = items.column("timestamp").to_numpy()
    sequence = items.column("sequence").to_numpy()
    later = (stamps[1:] > stamps[:-1]) | (
        (stamps[1:] == stamps[:-1]) & (sequence[1:] >= sequence[:-1])
    )
    if later.all():
        return items
    return items.combine_chunks().take(pa.array(np.lexsort((sequence, stamps))))


# -- The first stage ----------------------------------------------------------------------------


def blocks_of(need: Need, stream: int, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Items packed for the parts that need them, as rows of `EXCHANGED`."""
    for table in gathered(tables, PACK):
        rows = [
            (target, stream, some.column("timestamp")[0].as_py(), packed(some))
            for target, some in need.divided(table)
        ]
        if rows:
            yield exchanged(*zip(*rows, strict=True))


def exchanged(target: Any, stream: Any, first: Any, block: Any) -> pa.RecordBatch:
    """Rows of `EXCHANGED`."""
    columns = [
        pa.array(target, pa.int32()),
        pa.array(stream, pa.int32()),
        pa.array(first, pa.int64()),
        pa.array(block, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, ["target", "stream", "first", "block"])


def gathered(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of about that size."""
    some: list[pa.Table] = []
    count = 0
    for table in tables:
        if table.num_rows:
            some.append(table)
            count += table.num_rows
        if count >= rows:
            yield pa.concat_tables(some).combine_chunks()
            some, count = [], 0
    if some:
        yield pa.concat_tables(some).combine_chunks()


def items_of_chunks(
    chunks: Iterable[Chunk],
    sorter: Sorter,
    terms: TermDictionary,
    first: int = 0,
    ended: Callable[[], object] | None = None,
) -> Iterator[pa.Table]:
    """The items that a sorter lets in, numbered from `first` on in the order of their source.

    `ended` is called when all chunks are in; by default what the sorter holds aside is let in then.
    """
    for chunk in chunks:
        sorter.push(chunk)
        rows = sorter.release(INFINITY)
        if len(rows):
            yield _table(rows, terms, first)
            first += len(rows)
        if terms.due():
            terms.recycle(sorter.held())
    if ended is not None:
        ended()
    sorter.advance(INFINITY)
    rows = sorter.release(INFINITY)
    if len(rows):
        yield _table(rows, terms, first)


def _table(rows: Batch, terms: TermDictionary, first: int) -> pa.Table:
    columns = [terms.dictionary(rows.columns[name]) for name in (".s", ".p", ".o")]
    numbers = np.arange(first, first + len(rows))
    return pa.table([*columns, rows.start, numbers], schema=ITEMS)


# -- The second stage ---------------------------------------------------------------------------


class Arriving:
    """The streams of a part, read from blocks as they come, in order of their first items."""

    def __init__(self, batches: Iterable[pa.RecordBatch], streams: Sequence[str]) -> None:
        self._rows = self._read(batches)
        self._waiting: dict[int, deque[tuple[int, Any]]] = {k: deque() for k in range(len(streams))}

    def _read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, Any]]:
        for batch in batches:
            columns = [batch.column(k) for k in (1, 2, 3)]
            for stream, first, block in zip(*columns, strict=True):
                if block.is_valid:
                    yield stream.as_py(), first.as_py(), block.as_buffer()

    def _next(self, stream: int) -> tuple[int, Any] | None:
        """The next block of a stream; those of others wait."""
        while not self._waiting[stream]:
            found = next(self._rows, None)
            if found is None:
                return None
            self._waiting[found[0]].append(found[1:])
        return self._waiting[stream].popleft()

    def items(self, stream: int, sort: Sort | None = None) -> pa.RecordBatchReader:
        """The items of a stream in order of time, as a source."""
        return pa.RecordBatchReader.from_batches(ITEMS, self._batches(stream, sort or _by_sequence))

    def _batches(self, stream: int, sort: Sort) -> Iterator[pa.RecordBatch]:
        held: list[pa.Table] = []
        rows = enough = 0
        while (found := self._next(stream)) is not None:
            first, block = found
            if held and rows >= enough:
                done, rest = _before(sort(pa.concat_tables(held)), first)
                yield from _encoded(done)
                held, rows = [rest] if rest.num_rows else [], rest.num_rows
                enough = 2 * rows
            table = unpacked(block)
            held.append(table)
            rows += table.num_rows
        if held:
            yield from _encoded(sort(pa.concat_tables(held)))


Sort = Callable[[pa.Table], pa.Table]
"""What puts items in order."""


def _by_sequence(items: pa.Table) -> pa.Table:
    return in_order_of_time(items.combine_chunks())


def by_terms(items: pa.Table) -> pa.Table:
    """Items by timestamp, those of one by their terms: where nothing else orders them."""
    names = ("timestamp", "subject", "predicate", "object")
    texts = pa.table({n: items.column(n).cast(_kind(n)) for n in names})
    return items.combine_chunks().take(
        pc.sort_indices(texts, sort_keys=[(name, "ascending") for name in names])
    )


def _kind(name: str) -> pa.DataType:
    return pa.int64() if name == "timestamp" else pa.string()


def _before(items: pa.Table, t: int) -> tuple[pa.Table, pa.Table]:
    """Sorted items stamped before an instant, and the others."""
    at = int(np.searchsorted(items.column("timestamp").to_numpy(), t, "left"))
    return items.slice(0, at), items.slice(at)


def _encoded(items: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from items.cast(ITEMS).to_batches()


def sources_of(
    batches: Iterable[pa.RecordBatch], streams: Sequence[str], sorts: Mapping[str, Sort]
) -> dict[str, pa.RecordBatchReader]:
    """What `compute` reads, of the streams that came by blocks."""
    arriving = Arriving(batches, streams)
    return {name: arriving.items(k, sorts.get(name)) for k, name in enumerate(streams)}
