"""The exchange: how the items of streams reach the tasks that need them.

Streams that are not files in order of time go through one shuffle. Each task of the first stage
reads one split of the input, sorts its items by time, and packs those that a part of the run needs
into blocks. Spark's shuffle collects the blocks of a part, sorted by their first timestamp; the
task of the second stage reads its streams from them, block by block.
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
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import starts_of
from streamsparql.physical.operator import INFINITY
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.disorder import Sorter
from streamsparql.spark.blocks import hashes, pack, split_by_target, unpack
from streamsparql.spark.cut import TaskPart

PACK = 1 << 18
"""The number of items that are sorted and divided at a time."""

ITEM_SCHEMA = pa.schema(
    [
        ("subject", pa.dictionary(pa.int32(), pa.string())),
        ("predicate", pa.dictionary(pa.int32(), pa.string())),
        ("object", pa.dictionary(pa.int32(), pa.string())),
        ("timestamp", pa.int64()),
        ("sequence", pa.int64()),
    ]
)
"""Items in the exchange: terms in N-Triples syntax; `sequence` orders items of one timestamp."""

EVENT_SCHEMA = ITEM_SCHEMA.insert(3, pa.field("start", pa.int64()))
"""Items of a query about events; the timestamp of an item is its end."""

_EVENTS_READ = pa.schema(
    [field.with_name("end") if field.name == "timestamp" else field for field in EVENT_SCHEMA]
)
"""These items as a source has them (`sources/tables.py`)."""

BLOCK_SCHEMA = "target int, stream int, first long, block binary"
"""The schema of blocks in the exchange, in Spark's DDL."""


@dataclass(frozen=True)
class Need:
    """The items of a stream that the parts of a run need: stamped in `[since, until)` of each."""

    since: IntArray
    until: IntArray
    key: tuple[str, ...] | None = None
    """Where the streams are divided by a key: the columns of an item that can contain its value."""
    buckets: int = 1
    scope: str = ""
    """The prefix of the labels of the stream's blank nodes."""

    @classmethod
    def of(cls, parts: Sequence[TaskPart], since: Sequence[int]) -> Need:
        """Return the need of slabs of time, each from an instant of `since` to its end."""
        ends = [part.end for part in parts]
        return cls(np.array(since, np.int64), np.array(ends, np.int64))

    def divide(self, items: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Yield the items that each part needs, sorted by time, for the parts that need any."""
        items = sort_by_time(items)
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
        if not keys:  # no pattern reads the stream
            return
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
        for target, table in split_by_target(whole, np.concatenate(targets)):
            yield target, sort_by_time(table)


def sort_by_time(items: pa.Table) -> pa.Table:
    """Return items sorted by timestamp, then by sequence."""
    stamps = items.column("timestamp").to_numpy()
    sequence = items.column("sequence").to_numpy()
    in_order = (stamps[1:] > stamps[:-1]) | (
        (stamps[1:] == stamps[:-1]) & (sequence[1:] >= sequence[:-1])
    )
    if in_order.all():
        return items
    return items.combine_chunks().take(pa.array(np.lexsort((sequence, stamps))))


# -- The first stage ----------------------------------------------------------------------------


def pack_blocks(need: Need, stream: int, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Pack items into blocks for the parts that need them: rows of `BLOCK_SCHEMA`."""
    for table in rebatch(tables, PACK):
        rows = [
            (target, stream, items.column("timestamp")[0].as_py(), pack(items))
            for target, items in need.divide(table)
        ]
        if rows:
            yield block_batch(*zip(*rows, strict=True))


def block_batch(target: Any, stream: Any, first: Any, block: Any) -> pa.RecordBatch:
    """Return a batch of `BLOCK_SCHEMA` from its columns."""
    columns = [
        pa.array(target, pa.int32()),
        pa.array(stream, pa.int32()),
        pa.array(first, pa.int64()),
        pa.array(block, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, ["target", "stream", "first", "block"])


def rebatch(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of at least `rows` rows, except the last."""
    pending: list[pa.Table] = []
    count = 0
    for table in tables:
        if table.num_rows:
            pending.append(table)
            count += table.num_rows
        if count >= rows:
            yield pa.concat_tables(pending).combine_chunks()
            pending, count = [], 0
    if pending:
        yield pa.concat_tables(pending).combine_chunks()


def items_of_chunks(
    chunks: Iterable[Chunk],
    sorter: Sorter,
    terms: TermDictionary,
    first: int = 0,
    ended: Callable[[], object] | None = None,
) -> Iterator[pa.Table]:
    """Yield the items that a sorter accepts, numbered from `first` on in the order of the source.

    `ended` is called after the last chunk; then the items in quarantine are accepted, too.
    """
    for chunk in chunks:
        sorter.push(chunk)
        rows = sorter.release(INFINITY)
        if len(rows):
            yield _table(rows, terms, first)
            first += len(rows)
        if terms.due():
            terms.recycle(sorter.retained_ids())
    if ended is not None:
        ended()
    sorter.advance(INFINITY)
    rows = sorter.release(INFINITY)
    if len(rows):
        yield _table(rows, terms, first)


def _table(rows: Batch, terms: TermDictionary, first: int) -> pa.Table:
    columns = [terms.dictionary(rows.columns[name]) for name in (".s", ".p", ".o")]
    numbers = np.arange(first, first + len(rows))
    if SINCE not in rows.columns:
        return pa.table([*columns, rows.start, numbers], schema=ITEM_SCHEMA)
    starts = starts_of(rows.columns[SINCE])
    return pa.table([*columns, starts, rows.start, numbers], schema=EVENT_SCHEMA)


# -- The second stage ---------------------------------------------------------------------------


class BlockReader:
    """The streams of a part, read from its blocks, which arrive in order of their first items."""

    def __init__(
        self, batches: Iterable[pa.RecordBatch], streams: Sequence[str], events: bool = False
    ) -> None:
        self._schema = _EVENTS_READ if events else ITEM_SCHEMA
        self._rows = self._read(batches)
        self._waiting: dict[int, deque[tuple[int, Any]]] = {k: deque() for k in range(len(streams))}

    def _read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, Any]]:
        for batch in batches:
            columns = [batch.column(k) for k in (1, 2, 3)]
            for stream, first, block in zip(*columns, strict=True):
                if block.is_valid:
                    yield stream.as_py(), first.as_py(), block.as_buffer()

    def _next(self, stream: int) -> tuple[int, Any] | None:
        """Return the next block of a stream; blocks of other streams wait."""
        while not self._waiting[stream]:
            row = next(self._rows, None)
            if row is None:
                return None
            self._waiting[row[0]].append(row[1:])
        return self._waiting[stream].popleft()

    def items(self, stream: int, sort: Sort | None = None) -> pa.RecordBatchReader:
        """Return the items of a stream in order of time, as a source."""
        return pa.RecordBatchReader.from_batches(
            self._schema, self._batches(stream, sort or _by_sequence)
        )

    def _batches(self, stream: int, sort: Sort) -> Iterator[pa.RecordBatch]:
        retained: list[pa.Table] = []
        rows = enough = 0
        while (row := self._next(stream)) is not None:
            first, block = row
            if retained and rows >= enough:
                done, rest = _split_at(sort(pa.concat_tables(retained)), first)
                yield from self._items(done)
                retained, rows = [rest] if rest.num_rows else [], rest.num_rows
                enough = 2 * rows
            table = unpack(block)
            retained.append(table)
            rows += table.num_rows
        if retained:
            yield from self._items(sort(pa.concat_tables(retained)))

    def _items(self, items: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from items.rename_columns(self._schema.names).cast(self._schema).to_batches()


Sort = Callable[[pa.Table], pa.Table]
"""A function that sorts items by timestamp."""


def _by_sequence(items: pa.Table) -> pa.Table:
    return sort_by_time(items.combine_chunks())


def sort_by_terms(items: pa.Table) -> pa.Table:
    """Return items sorted by timestamp, then by terms, for sources without any other order."""
    names = ("timestamp", "subject", "predicate", "object")
    texts = pa.table({n: items.column(n).cast(_type(n)) for n in names})
    return items.combine_chunks().take(
        pc.sort_indices(texts, sort_keys=[(name, "ascending") for name in names])
    )


def _type(name: str) -> pa.DataType:
    return pa.int64() if name == "timestamp" else pa.string()


def _split_at(items: pa.Table, t: int) -> tuple[pa.Table, pa.Table]:
    """Return the sorted items stamped before an instant, and the others."""
    at = int(np.searchsorted(items.column("timestamp").to_numpy(), t, "left"))
    return items.slice(0, at), items.slice(at)


def sources_from_blocks(
    batches: Iterable[pa.RecordBatch],
    streams: Sequence[str],
    sorts: Mapping[str, Sort],
    events: bool = False,
) -> dict[str, pa.RecordBatchReader]:
    """Return the exchanged streams of a part as sources, for `slab.compute_part`."""
    reader = BlockReader(batches, streams, events)
    return {name: reader.items(k, sorts.get(name)) for k, name in enumerate(streams)}
