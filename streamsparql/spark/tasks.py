"""The functions that Spark calls in its workers, from record batches to record batches.

They are pickled by name, so the workers need this package (docs/spark.md). The `Task`, and the data
that a stage needs from other stages, are pickled with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from streamsparql.algebra.entailment import reads_entailed
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.run.execution import SLAB_CHUNK
from streamsparql.run.input import RunInput
from streamsparql.sources import read_stream
from streamsparql.sources.chunk import Wanted
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import StampReader
from streamsparql.spark import slab
from streamsparql.spark.analyze import measure_merge, measure_part
from streamsparql.spark.blocks import without_dictionaries
from streamsparql.spark.cut import TaskPart
from streamsparql.spark.evidence import EvidenceQuery, first_of_keys
from streamsparql.spark.exchange import Need, block_batch, pack_blocks, sources_from_blocks
from streamsparql.spark.file_slices import SPLIT_ROWS, RowGroup, Split, read_in_order
from streamsparql.spark.ranks import ElementCounter
from streamsparql.spark.read_log import ReadLog
from streamsparql.spark.slab import Task
from streamsparql.spark.stream_inputs import OrderedFiles, SplitFiles, items_of_split, next_split

Batches = Iterable[pa.RecordBatch]


def compute_parts(
    task: Task,
    parts: Sequence[TaskPart],
    direct: Mapping[str, tuple[Sequence[RowGroup], Sequence[int]]],
    *rest: Any,
) -> Iterator[pa.RecordBatch]:
    """Compute the parts whose numbers arrive, or the one part whose blocks arrive.

    `direct` has the streams that tasks read from files: their row groups, and the instant from
    which each part needs them. `rest` is either the batches of numbers, or the names and sorts of
    exchanged streams followed by the batches of blocks.
    """
    batches: Batches = rest[-1]
    if len(rest) == 1:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _emit_part(task, parts[number], _ranges(task, direct, parts[number]))
        return
    names, sorts = rest[0]
    iterator = iter(batches)
    for batch in iterator:
        if batch.num_rows:
            part = parts[batch.column(0)[0].as_py()]
            blocks = _chained(batch, iterator)
            streams = sources_from_blocks(blocks, names, sorts, task.reads_events)
            yield from _emit_part(task, part, {**_ranges(task, direct, part), **streams})
            return


def _chained(first: pa.RecordBatch, rest: Batches) -> Batches:
    yield first
    yield from rest


def _ranges(
    task: Task, direct: Mapping[str, tuple[Sequence[RowGroup], Sequence[int]]], part: TaskPart
) -> dict[str, Any]:
    """Return the streams of which a task reads its own time range, as sources."""
    sources = {}
    for name, (groups, since) in direct.items():
        run = slab.shared_execution(task)
        encoder = Encoder(
            f"<{name}>",
            run.terms,
            wanted=run.wanted(name),
            strict=task.run_input.strict,
            reading=task.run_input.reading_of(name),
        )
        batches = read_in_order(
            groups, since[part.number], part.end, encoder, SLAB_CHUNK, task.run_input.delay
        )
        sources[name] = partial(_reader, batches)
    return sources


def _reader(batches: Iterator[pa.RecordBatch]) -> Any:
    """Return record batches as a source; an empty list without any."""
    first = next(batches, None)
    if first is None:
        return []
    return pa.RecordBatchReader.from_batches(first.schema, _chained(first, batches))


def _emit_part(task: Task, part: TaskPart, streams: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    ordered = {name: streams[name] for name in task.run_input.streams}
    if task.measured:
        yield from measure_part(task, part, ordered)
        return
    if isinstance(task.query, EvidenceQuery):
        firsts = first_of_keys(slab.compute_part(task, part, ordered), task.query)
        yield from slab.result_batches(task, firsts)
        return
    for table in slab.combine_output(slab.compute_part(task, part, ordered)):
        if task.merges:
            yield from slab.merge_input(task, part, table)
        else:
            yield from slab.result_batches(task, table)


def merge_parts(task: Task, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Merge the rows of one target."""
    if task.measured:
        yield from measure_merge(task, batches)
        return
    yield from slab.merge_blocks(task, batches)


def part_markers(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield a row per part, so that each part is computed even without items."""
    for batch in batches:
        count = batch.num_rows
        none = pa.nulls(count, pa.binary())
        yield block_batch(batch.column(0).cast(pa.int32()), [-1] * count, [-1] * count, none)


MarkedSplit = tuple[Split, int]
"""A split of a stream's files, and the greatest timestamp before it."""


def marked_splits(stream: SplitFiles | OrderedFiles) -> list[MarkedSplit]:
    """Return the splits of a stream's files, one per task."""
    if isinstance(stream, SplitFiles):
        return list(zip(stream.splits, stream.earlier, strict=True))
    splits: list[MarkedSplit] = []
    pending: list[RowGroup] = []
    seen = before = -1
    for group in stream.groups:
        if pending and (
            pending[0].path != group.path or sum(g.rows for g in pending) + group.rows > SPLIT_ROWS
        ):
            splits.append((_split_of(pending), before))
            pending, before = [], seen
        pending.append(group)
        seen = max(seen, group.most)
    return [*splits, (_split_of(pending), before)] if pending else splits


def _split_of(groups: Sequence[RowGroup]) -> Split:
    return Split(groups[0].path, groups=tuple(group.number for group in groups))


def items_of_splits(
    name: str,
    splits: Sequence[MarkedSplit],
    run_input: RunInput,
    batches: Batches,
    wanted: Wanted | None = None,
    terms: TermDictionary | None = None,
    log: ReadLog | None = None,
    events: bool = False,
) -> Iterator[pa.Table]:
    """Yield the items of the splits whose numbers arrive; note in a log what was read."""
    terms = TermDictionary() if terms is None else terms
    for batch in batches:
        for number in batch.column(0).to_pylist():
            split, seen = splits[number]
            after = next_split([each for each, _ in splits], number)
            yield from items_of_split(
                *(name, split, after, seen, number, run_input, terms, wanted, log),
                events=events,
            )


def pack_splits(
    task: Task, name: str, splits: Sequence[MarkedSplit], need: Need, stream: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Pack the items of splits that the query can match into blocks for the parts."""
    run = slab.shared_execution(task)
    wanted, events = run.wanted(name), task.reads_events
    items = items_of_splits(name, splits, task.run_input, batches, wanted, run.terms, events=events)
    yield from pack_blocks(need, stream, items)


def log_of_splits(
    task: Task, name: str, splits: Sequence[MarkedSplit], batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Yield the log of the splits whose numbers arrive, as rows of `READ_LOG_SCHEMA`."""
    run, log = slab.shared_execution(task), ReadLog()
    lenient = replace(task.run_input, strict=False)
    for _ in items_of_splits(name, splits, lenient, batches, run.wanted(name), run.terms, log):
        pass
    yield log.batch()


def log_of_frame(name: str, unit: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the logs of the rows of a DataFrame; positions are those in a batch of rows."""
    terms, reading = TermDictionary(), Reading(StampReader(unit))
    for batch in batches:
        log = ReadLog()
        for chunk in log.counted(read_stream(batch, f"<{name}>", terms, reading=reading)):
            log.reject(chunk.rejects)
        yield log.batch()
        if terms.due():
            terms.recycle([])


def count_elements(
    task: Task, stream: str, edges: Any, items: Any, batches: Any
) -> Iterator[pa.RecordBatch]:
    """Count the elements of a stream's windows, by pieces of time: rows of `COUNT_SCHEMA`."""
    graphs: tuple[Any, ...] = ()
    if reads_entailed(task.query.optimized):
        run = slab.shared_execution(task)
        graphs = run.terms, run.catalog
    counting = ElementCounter(task.query.optimized, stream, edges, *graphs)
    for table in items(batches):
        counting.add(without_dictionaries(table))
    yield from counting.rows()
