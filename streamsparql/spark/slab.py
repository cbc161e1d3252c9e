"""The work of a task, without Spark: the whole plan over one part of the streams.

By the law of SEMANTICS.md (section 2), a plan restricted to a slab of time is the plan over the
elements that hold in the slab, restricted to it. So a task runs the embedded engine over the
elements that can hold in its slab, with windows and results clipped to it. Rows that end where a
slab ends may continue in the next: `merge_blocks` joins the pieces of such rows.

The pieces of duplicate rows fit together for this reason: slabs emit the canonical form, in which
the k-th of equal rows holds where there are k or more, so the intervals of level k + 1 lie within
those of level k. If one of them touches a border, then the intervals of lower levels around it
touch it, too: at each instant, the pieces that touch borders are all levels from 1 up to some
level. Their canonical form is these levels over all time, and pieces that touch no border are
complete already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.event import reads_events, returns_events
from streamsparql.algebra.window import ElementWindow
from streamsparql.compiled import CompiledQuery
from streamsparql.errors import EngineError, LimitExceeded, SourceError, StreamSparqlError
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import shown_times
from streamsparql.physical.lowering.lower import TimeSlab
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.event import EventLeftJoin
from streamsparql.physical.operators.report import TemporalCoalesce
from streamsparql.run.decoder import time_columns
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput
from streamsparql.run.reports import Reporting
from streamsparql.spark.blocks import (
    compact,
    hashes,
    pack,
    row_hashes,
    split_by_target,
    unpack,
    without_dictionaries,
)
from streamsparql.spark.cut import TaskPart
from streamsparql.spark.evidence import END, START, EvidenceTables, evidence_before
from streamsparql.text.instants import instant

OUTPUT_ROWS = 65_536
"""The approximate number of rows that a task emits at a time."""
HEARTBEAT = 30.0
"""The seconds after which a task emits even an empty table, to show that it is alive."""


@dataclass(frozen=True, eq=False)
class Task:
    """The data that all parts of a run share, which is sent to the workers."""

    name: str
    """A name that no other run has."""
    query: CompiledQuery
    run_input: RunInput
    """The input and options of the run, without streams and horizon."""
    begin: int
    """The start of the horizon."""
    report: Reporting | None = None
    ordered: bool = False
    """Whether rows carry the columns that ORDER BY sorts by."""
    key: str | None = None
    """The variable by whose value the streams are divided."""
    parts: int = 1
    statics: tuple[pa.Table, ...] = ()
    """The rows of static plans that were computed beforehand."""
    seen: int = -1
    """The greatest timestamp of all streams; reports continue until then."""
    ranks: Mapping[int, Mapping[ElementWindow, int]] = field(default_factory=dict)
    """By part, the number of elements of each window before the first that the part reads."""
    measured: bool = False
    """Whether tasks emit measurements instead of rows (`analyze`)."""
    delay: int = 0
    """The milliseconds by which the items that a part reads may be out of order."""
    first: int = 0
    """The first instant of all streams."""
    evidence: EvidenceTables = field(default_factory=dict)
    """What happened before the parts, if it was computed beforehand."""

    @property
    def reads_events(self) -> bool:
        """Whether items are events, with a start and an end."""
        return reads_events(self.query.optimized)

    @property
    def returns_events(self) -> bool:
        """Whether rows are events: each occurs once, in one part."""
        return returns_events(self.query.optimized)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of terms in the result."""
        columns = {"select": self.query.variables, "ask": ("answer",)}
        return columns.get(self.query.form, ("subject", "predicate", "object"))

    @property
    def times(self) -> tuple[str, ...]:
        """The columns of times in the result."""
        names = ("start", "end") if self.report is None else ("instant",)
        return time_columns(self.columns, *names)

    @property
    def merges(self) -> bool:
        """Whether rows of different parts may be pieces of one row."""
        in_time = self.parts > 1 and self.report is None and self.key is None
        return in_time and not self.returns_events

    @property
    def margin(self) -> int:
        """The milliseconds by which a task begins before its part.

        ISTREAM and DSTREAM compare a report with the one before. A report of events shows those of
        the period before it.
        """
        if self.report is not None and self.returns_events:
            return 2 * (self.report.every or 1)
        if self.report is None or (self.report.kind == "rstream" and self.report.every):
            return 0
        return self.report.every or 1

    @property
    def lag(self) -> int:
        """The milliseconds between the instant that a report shows and its own instant."""
        return 0 if self.report is None else int(self.report.closing)

    @property
    def slack(self) -> int:
        """The milliseconds by which windows are clipped before the task begins.

        Windows that are aligned to the grid of reports look back to its last point.
        """
        return 0 if self.report is None else (self.report.every or 0) + 1

    def back(self, part: TaskPart) -> int:
        """Return the first instant at which the content of a part's windows is needed."""
        first = part.begin == self.begin
        return max(part.begin - (0 if first else self.margin) - self.slack, 0)


def compute_part(
    task: Task,
    part: TaskPart,
    streams: Mapping[str, Any],
    execution: Callable[..., Execution] = Execution,
) -> Iterator[pa.Table]:
    """Yield the rows of a part: dictionary-encoded terms, `START` and, without reports, `END`.

    `streams` are sources as in `Query.run`, or functions that return one, of the elements that can
    hold in the part. `execution` creates the execution; measuring passes its own.
    """
    try:
        sources = {n: source() if callable(source) else source for n, source in streams.items()}
        run = _execution(task, part, sources, execution)
        for _ in run.replay():
            rows = sum(map(len, run.retained))
            if rows >= OUTPUT_ROWS or not rows:
                yield _take_rows(task, part, run)
        yield _take_rows(task, part, run)
    except Exception as error:
        raise part_error(task, part, error) from error


def _execution(
    task: Task, part: TaskPart, streams: Mapping[str, Any], execution: Callable[..., Execution]
) -> Execution:
    start = max(part.begin - task.margin, task.begin)
    end = None if part.end == INFINITY else part.end
    run_input = replace(
        task.run_input,
        streams=streams,
        start=start,
        end=end,
        max_delay=task.delay,
        time_unit="ms",
        time_zone=None,
        stamp_from=None,  # they were read before
    )
    shared = shared_execution(task)
    begin = task.back(part)
    slab = TimeSlab(
        begin,
        part.end,
        task.ranks.get(part.number, {}),
        evidence_before(task.query, task.evidence, begin, shared.terms),
        (task.first, task.begin),
    )
    run = execution(
        task.query,
        run_input,
        report=task.report,
        ordered=task.ordered,
        shares_terms_with=shared,
        slab=slab,
    )
    if run.reports is not None:
        run.reports.last = task.seen + task.lag
    return run


_SHARED_EXECUTIONS: dict[str, Execution] = {}
"""The dictionary and static graphs that the tasks of a run share in a worker, by the run's name.

Workers serve one run after another, so only the last is retained."""


def shared_execution(task: Task) -> Execution:
    """Return the execution whose dictionary and static graphs all parts in this process share."""
    shared = _SHARED_EXECUTIONS.get(task.name)
    if shared is None or shared.guard.broken:  # by a task that failed, and may be tried again
        _SHARED_EXECUTIONS.clear()
        _SHARED_EXECUTIONS[task.name] = _new_shared_execution(task)
    return _SHARED_EXECUTIONS[task.name]


def _new_shared_execution(task: Task) -> Execution:
    from streamsparql.spark.statics import with_static_results

    execution = Execution(task.query, task.run_input, ordered=task.ordered)
    return with_static_results(execution, task.statics)


def has_static_rows(task: Task) -> bool:
    """Return whether the query has rows without any items: those of static data alone."""
    return any(map(len, _without_items(task).replay()))


def _without_items(task: Task) -> Execution:
    silent: dict[str, Any] = dict.fromkeys(task.run_input.streams, ())
    run_input = replace(task.run_input, streams=silent)
    return Execution(task.query, run_input, shares_terms_with=_new_shared_execution(task))


def decides_static_rows(task: Task) -> bool:
    """Return whether an OPTIONAL over events has left rows of static data alone.

    These are decided by the items of the first instant.
    """
    run = _without_items(task)
    for _ in run.replay():
        pass
    return any(
        run.pipeline.counts[operator.inputs[0]].rows_out
        for operator in run.pipeline.operators
        if isinstance(operator, EventLeftJoin)
    )


def _take_rows(task: Task, part: TaskPart, run: Execution) -> pa.Table:
    """Return the part's own rows as a table, and evict them from the execution."""
    rows = Batch.concat(run.retained, run.sink.names)
    run.retained.clear()
    if run.reports is not None:
        run.reports.done()  # rows carry the instants of their reports; the list is not needed
    if task.report is not None and task.margin:
        rows = rows.where(rows.start >= part.begin + task.lag)
    start, end = shown_times(rows)
    ids = [column for name, column in rows.columns.items() if name != SINCE]
    names = [*task.columns, *hidden_columns(len(ids) - len(task.columns))]
    columns = {name: run.terms.dictionary(x) for name, x in zip(names, ids, strict=True)}
    times = {START: rows.start} if task.report is not None else {START: start, END: end}
    return _in_bucket(task, part, pa.table({**columns, **times}))


def hidden_columns(count: int) -> list[str]:
    """Return the names of the columns that only sort rows.

    >>> hidden_columns(2)
    ['_order0', '_order1']
    """
    return [f"_order{k}" for k in range(count)]


def _in_bucket(task: Task, part: TaskPart, table: pa.Table) -> pa.Table:
    """Return the rows whose value of the key is in the part's bucket; all rows without a key."""
    if task.key is None:
        return table
    in_bucket = hashes(table.column(task.key)) % part.buckets == part.bucket
    return table.filter(pa.array(in_bucket))


def part_error(task: Task, part: TaskPart, error: Exception) -> StreamSparqlError:
    """Return the error of a part that failed: it names the part, its time and the operator."""
    where = f"part {part.number + 1} of {task.parts}, {instant(part.begin)} to {instant(part.end)}"
    if part.buckets > 1:
        where += f", bucket {part.bucket + 1} of {part.buckets} of ?{task.key}"
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    message = (
        str(error) if isinstance(error, StreamSparqlError) else f"{type(error).__name__}: {error}"
    )
    if isinstance(error, LimitExceeded):
        return LimitExceeded(f"{where}: {error.args[0]}", error.limit, error.value, error.operator)
    kind = SourceError if isinstance(error, SourceError) else EngineError
    return kind(f"{where}{notes}: {message}")


# -- The output of a task -----------------------------------------------------------------------


def combine_output(tables: Iterable[pa.Table], rows: int = OUTPUT_ROWS) -> Iterator[pa.Table]:
    """Yield the same rows in fewer tables; after `HEARTBEAT` seconds, even an empty table."""
    pending: list[pa.Table] = []
    count, last = 0, monotonic()
    for table in tables:
        if table.num_rows or not pending:
            pending.append(table)
        count += table.num_rows
        if count >= rows or monotonic() - last > HEARTBEAT:
            yield pa.concat_tables(pending)
            pending, count, last = [], 0, monotonic()
    if pending:
        yield pa.concat_tables(pending)


def result_batches(task: Task, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows as the result's DataFrame has them: strings, and booleans for ASK."""
    table = without_dictionaries(table)
    if task.query.form == "ask":
        true = pc.starts_with(table.column("answer"), '"true"')
        table = table.set_column(table.column_names.index("answer"), "answer", true)
    terms = table.column_names[: -len(task.times)]
    table = table.rename_columns([*terms, *task.times])
    if not table.num_rows:
        yield pa.RecordBatch.from_pylist([], table.schema)
    yield from table.combine_chunks().to_batches(max_chunksize=OUTPUT_ROWS)


def merge_input(task: Task, part: TaskPart, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows packed into blocks, as rows of `MERGE_SCHEMA`.

    Rows that touch a border go to targets by their hashes, so that equal rows of all slabs meet.
    """
    start, end = table.column(START).to_numpy(), table.column(END).to_numpy()
    touching = np.zeros(len(start), np.bool_)
    if part.number > 0:
        touching |= start == part.begin
    if part.number < task.parts - 1:
        touching |= end == part.end
    inside = table.filter(pa.array(~touching))
    if inside.num_rows or not table.num_rows:
        yield merge_batch(part.number, False, inside)
    border = compact(table.filter(pa.array(touching)))
    names = [name for name in border.column_names if name not in (START, END)]
    targets = row_hashes(border, names) % np.uint32(task.parts)
    for target, rows in split_by_target(border, targets.astype(np.int64)):
        yield merge_batch(target, True, rows)


def merge_batch(target: int, border: bool, table: pa.Table) -> pa.RecordBatch:
    """Return a batch of `MERGE_SCHEMA` with one block."""
    columns = {
        "target": pa.array([target], pa.int32()),
        "border": pa.array([border]),
        "block": pa.array([pack(table)], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


MERGE_SCHEMA = "target int, border boolean, block binary"
"""The schema of blocks for the merge, in Spark's DDL."""


def merge_blocks(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all slabs at a target, with the pieces of a row at borders merged."""
    border: list[pa.Table] = []
    for batch in batches:
        flags, blocks = batch.column("border"), batch.column("block")
        for flag, block in zip(flags, blocks, strict=True):
            if flag.as_py():
                border.append(unpack(block.as_buffer()))
            else:
                yield from result_batches(task, unpack(block.as_buffer()))
    if border:
        yield from result_batches(task, coalesce_rows(border))


def coalesce_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the canonical form of rows.

    >>> first, second = ({"x": ["<a>"], START: [s], END: [s + 5]} for s in (0, 5))
    >>> coalesce_rows([pa.table(first), pa.table(second)]).to_pylist()
    [{'x': '<a>', '.start': 0, '.end': 10}]
    """
    terms = TermDictionary()
    table = pa.concat_tables(map(without_dictionaries, tables))
    names = [name for name in table.column_names if name not in (START, END)]
    columns = {name: terms.encode(table.column(name)) for name in names}
    rows = Batch(columns, table.column(START).to_numpy(), table.column(END).to_numpy())
    canonical, _ = TemporalCoalesce(Always(rows)).step([rows.ordered()], [INFINITY], False)
    terms_of = {name: terms.dictionary(canonical.columns[name]) for name in names}
    return pa.table({**terms_of, START: canonical.start, END: canonical.end})
