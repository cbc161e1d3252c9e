"""What Spark calls in its workers: functions from record batches to record batches.

They are sent by name, so the package has to be there (docs/spark.md); what is sent along is the
`Task` and what each stage needs to know of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.run.execution import SLAB_CHUNK
from streamsparql.run.input import RunInput
from streamsparql.sources import read_stream
from streamsparql.sources.chunk import Reject, Wanted
from streamsparql.sources.encoder import Encoder
from streamsparql.spark import slab
from streamsparql.spark.analyze import watched_merge, watched_part
from streamsparql.spark.blocks import plain
from streamsparql.spark.cut import Part
from streamsparql.spark.exchange import Need, blocks_of, exchanged, sources_of
from streamsparql.spark.file_slices import SPLIT_ROWS, Group, Split, in_order
from streamsparql.spark.ranks import Counting
from streamsparql.spark.slab import Task
from streamsparql.spark.stream_inputs import Ordered, Splits, following, items_of_split

Batches = Iterable[pa.RecordBatch]


def run_parts(
    task: Task,
    parts: Sequence[Part],
    direct: Mapping[str, tuple[Sequence[Group], Sequence[int]]],
    *rest: Any,
) -> Iterator[pa.RecordBatch]:
    """Computes the parts whose numbers come, or the one whose blocks come."""
    batches: Batches = rest[-1]
    if len(rest) == 1:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _given_out(task, parts[number], _ranges(task, direct, parts[number]))
        return
    names, sorts = rest[0]
    iterator = iter(batches)
    for batch in iterator:
        if batch.num_rows:
            part = parts[batch.column(0)[0].as_py()]
            streams = sources_of(_chained(batch, iterator), names, sorts)
            yield from _given_out(task, part, {**_ranges(task, direct, part), **streams})
            return


def _chained(first: pa.RecordBatch, rest: Batches) -> Batches:
    yield first
    yield from rest


def _ranges(
    task: Task, direct: Mapping[str, tuple[Sequence[Group], Sequence[int]]], part: Part
) -> dict[str, Any]:
    """The streams that a task reads itself, as sources."""
    found = {}
    for name, (groups, since) in direct.items():
        run = slab.ground(task)
        reading = Encoder(f"<{name}>", run.terms, wanted=run.wanted(name), strict=task.given.strict)
        batches = in_order(
            groups, since[part.number], part.end, reading, SLAB_CHUNK, task.given.max_delay
        )
        found[name] = partial(_reader, batches)
    return found


def _reader(batches: Iterator[pa.RecordBatch]) -> Any:
    """Record batches as a source, however many there are."""
    first = next(batches, None)
    if first is None:
        return []
    return pa.RecordBatchReader.from_batches(first.schema, _chained(first, batches))


def _given_out(task: Task, part: Part, streams: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    ordered = {name: streams[name] for name in task.given.streams}
    if task.watched:
        yield from watched_part(task, part, ordered)
        return
    for table in slab.together(slab.compute(task, part, ordered)):
        if task.merges:
            yield from slab.for_merging(task, part, table)
        else:
            yield from slab.finished(task, table)


def merge_parts(task: Task, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The rows that came to one target of the merge."""
    if task.watched:
        yield from watched_merge(task, batches)
        return
    yield from slab.merged(task, batches)


def markers(batches: Batches) -> Iterator[pa.RecordBatch]:
    """A row per part, so that each part has one even where no item comes to it."""
    for batch in batches:
        count = batch.num_rows
        none = pa.nulls(count, pa.binary())
        yield exchanged(batch.column(0).cast(pa.int32()), [-1] * count, [-1] * count, none)


Share = tuple[Split, int]
"""A share of a stream's files, and the greatest timestamp before it."""


def shares_of(stream: Splits | Ordered) -> list[Share]:
    """The shares of a stream's files that one task each reads."""
    if isinstance(stream, Splits):
        return list(zip(stream.splits, stream.earlier, strict=True))
    found: list[Share] = []
    some: list[Group] = []
    seen = before = -1
    for group in stream.groups:
        if some and (
            some[0].path != group.path or sum(g.rows for g in some) + group.rows > SPLIT_ROWS
        ):
            found.append((_together(some), before))
            some, before = [], seen
        some.append(group)
        seen = max(seen, group.most)
    return [*found, (_together(some), before)] if some else found


def _together(groups: Sequence[Group]) -> Split:
    return Split(groups[0].path, groups=tuple(group.number for group in groups))


def items_of_shares(
    name: str,
    shares: Sequence[Share],
    given: RunInput,
    batches: Batches,
    wanted: Wanted | None = None,
    terms: TermDictionary | None = None,
    rejects: list[Reject] | None = None,
) -> Iterator[pa.Table]:
    """The items of the shares whose numbers come; what is rejected goes to `rejects`."""
    terms = TermDictionary() if terms is None else terms
    for batch in batches:
        for number in batch.column(0).to_pylist():
            share, seen = shares[number]
            after = following([split for split, _ in shares], number)
            yield from items_of_split(
                name, share, after, seen, number, given, terms, wanted, rejects
            )


def packed_shares(
    task: Task, name: str, shares: Sequence[Share], need: Need, stream: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """The items of shares that the query can match, packed for the parts that need them."""
    ground = slab.ground(task)
    items = items_of_shares(name, shares, task.given, batches, ground.wanted(name), ground.terms)
    yield from blocks_of(need, stream, items)


def rejects_of_shares(
    task: Task, name: str, shares: Sequence[Share], batches: Batches
) -> Iterator[pa.RecordBatch]:
    """The rejects of the shares whose numbers come, as rows of `REJECTED`."""
    run, given = slab.ground(task), replace(task.given, strict=False)
    found: list[Reject] = []
    wanted = run.wanted(name)
    for _ in items_of_shares(name, shares, given, batches, wanted, run.terms, found):
        pass
    yield as_rows(found)


def rejects_of_rows(name: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The rejects among the rows of a DataFrame; their positions are those in a batch of rows."""
    terms = TermDictionary()
    for batch in batches:
        found: list[Reject] = []
        for chunk in read_stream(batch, f"<{name}>", terms):
            found += chunk.rejects
        yield as_rows(found)
        if terms.due():
            terms.recycle([])


REJECTED = "source string, position long, reason string, item string, unit string, late boolean"
"""The schema of rejects, as Spark writes it."""


def as_rows(rejects: Sequence[Reject]) -> pa.RecordBatch:
    """Rejects as rows of `REJECTED`."""
    items = [r.item if isinstance(r.item, str | None) else repr(r.item) for r in rejects]
    columns = [
        pa.array([r.source for r in rejects], pa.string()),
        pa.array([r.position for r in rejects], pa.int64()),
        pa.array([r.reason for r in rejects], pa.string()),
        pa.array(items, pa.string()),
        pa.array([r.unit for r in rejects], pa.string()),
        pa.array([r.late for r in rejects], pa.bool_()),
    ]
    return pa.RecordBatch.from_arrays(columns, list(Reject._fields))


def count_elements(
    task: Task, stream: str, edges: Any, items: Any, batches: Any
) -> Iterator[pa.RecordBatch]:
    """How many elements of a stream come to the windows that count, by pieces of time."""
    counting = Counting(task.query.optimized, stream, edges)
    for table in items(batches):
        counting.add(plain(table))
    yield from counting.rows()
