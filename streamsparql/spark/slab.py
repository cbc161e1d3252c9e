"""What a task computes: the whole plan over one part of the streams, and nothing of Spark.

By the law of SEMANTICS.md (section 2) a plan restricted to a slab of time is the plan over what
holds in the slab, restricted to it. So a task runs the embedded engine over the elements that can
hold in its slab, with windows and results clipped to it. Rows that end where a slab ends may go on
in the next: `merged` puts such rows together again.

That the pieces fit is not obvious for rows that are there several times. Slabs give the canonical
form, in which the k-th of equal rows holds where there are k or more; so the stretches of level
k + 1 lie within those of level k. If one touches a border, then those of the lower levels around it
touch it, too: the pieces that touch borders are, at each instant, all levels from 1 up to some
level. Put into canonical form by themselves they give these levels over all time, and the pieces
that touch no border are complete beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.window import ElementWindow
from streamsparql.compiled import CompiledQuery
from streamsparql.errors import EngineError, SourceError, StreamSparqlError
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.lowering.lower import TimeSlab
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.report import TemporalCoalesce
from streamsparql.run.decoder import time_columns
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput
from streamsparql.run.reports import Reporting
from streamsparql.spark.blocks import (
    compact,
    divided,
    hashes,
    hashes_of_rows,
    packed,
    plain,
    unpacked,
)
from streamsparql.spark.cut import Part
from streamsparql.text.instants import instant

TOGETHER = 65_536
"""So many rows, about, leave a task at a time."""
PATIENCE = 30.0
"""After so many seconds a task gives what there is, even if it is nothing: it is alive."""
START, END = ".start", ".end"
"""The columns of when a row holds, or of the report that it is in, while no user sees them."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is the same for all parts of a run; it is sent to the workers."""

    name: str
    """No two runs have the same."""
    query: CompiledQuery
    given: RunInput
    """What is given beside the streams' items and the horizon."""
    begin: int
    """Where the horizon begins."""
    report: Reporting | None = None
    ordered: bool = False
    """Whether rows carry what ORDER BY sorts them by."""
    key: str | None = None
    parts: int = 1
    statics: tuple[pa.Table, ...] = ()
    """What the static plans give that were worked out beforehand."""
    seen: int = -1
    """The greatest timestamp of all streams: reports go on until then."""
    ranks: Mapping[int, Mapping[ElementWindow, int]] = field(default_factory=dict)
    """Per part, how many elements came before the first that it is given."""
    watched: bool = False
    """Whether tasks give what was measured in them in place of rows (`measured`)."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of terms, as users see them."""
        shown = {"select": self.query.variables, "ask": ("answer",)}
        return shown.get(self.query.form, ("subject", "predicate", "object"))

    @property
    def times(self) -> tuple[str, ...]:
        """The columns of times, as users see them."""
        wanted = ("start", "end") if self.report is None else ("instant",)
        return time_columns(self.columns, *wanted)

    @property
    def merges(self) -> bool:
        """Whether rows of different parts may belong together."""
        return self.parts > 1 and self.report is None and self.key is None

    @property
    def margin(self) -> int:
        """How long before its part a task begins: a difference of reports asks for the one before.
        """  # fmt: skip
        if self.report is None or (self.report.kind == "rstream" and self.report.every):
            return 0
        return self.report.every or 1

    @property
    def lag(self) -> int:
        """How long after the instant that it shows a report is."""
        return 0 if self.report is None else int(self.report.closing)

    @property
    def slack(self) -> int:
        """How much earlier windows are clipped: a report's grid looks back to its last point."""
        return 0 if self.report is None else (self.report.every or 0) + 1

    def back(self, part: Part) -> int:
        """The first instant that a part's windows have to show."""
        first = part.begin == self.begin
        return max(part.begin - (0 if first else self.margin) - self.slack, 0)


def compute(
    task: Task,
    part: Part,
    streams: Mapping[str, Any],
    execution: Callable[..., Execution] = Execution,
) -> Iterator[pa.Table]:
    """The rows of a part: terms dictionary-encoded, with `start` and `end`, or `instant`.

    `streams` are sources as `Query.run` takes them, or what gives one when it is called, of the
    elements that can hold in the part. `execution` makes the run, if not just any will do.
    """
    try:
        sources = {n: source() if callable(source) else source for n, source in streams.items()}
        run = _execution(task, part, sources, execution)
        for _ in run.replay():
            rows = sum(map(len, run.retained))
            if rows >= TOGETHER or not rows:
                yield _shown(task, part, run)
        yield _shown(task, part, run)
    except Exception as error:
        raise failure(task, part, error) from error


def _execution(
    task: Task, part: Part, streams: Mapping[str, Any], execution: Callable[..., Execution]
) -> Execution:
    start = max(part.begin - task.margin, task.begin)
    end = None if part.end == INFINITY else part.end
    given = replace(task.given, streams=streams, start=start, end=end)
    share = TimeSlab(task.back(part), part.end, task.ranks.get(part.number, {}))
    run = execution(
        task.query,
        given,
        report=task.report,
        ordered=task.ordered,
        shares_terms_with=ground(task),
        slab=share,
    )
    if run.reports is not None:
        run.reports.last = task.seen + task.lag
    return run


_GROUNDS: dict[str, Execution] = {}
"""What the tasks of a run share in a worker: the dictionary and the static graphs. Workers serve
one run after another, so only the last is kept."""


def ground(task: Task) -> Execution:
    """The run of a task that has no part: what all parts in this process share."""
    if task.name not in _GROUNDS:
        _GROUNDS.clear()
        _GROUNDS[task.name] = _ground(task)
    return _GROUNDS[task.name]


def _ground(task: Task) -> Execution:
    from streamsparql.spark.statics import with_results

    made = Execution(task.query, task.given, ordered=task.ordered)
    return with_results(made, task.statics)


def stands(task: Task) -> bool:
    """Whether there are rows although no item comes: those that static data alone gives."""
    silent: dict[str, Any] = dict.fromkeys(task.given.streams, ())
    run = Execution(
        task.query, replace(task.given, streams=silent), shares_terms_with=_ground(task)
    )
    return any(map(len, run.replay()))


def _shown(task: Task, part: Part, run: Execution) -> pa.Table:
    """The rows that are this part's own, as a table; they are kept no longer."""
    rows = Batch.concat(run.retained, run.sink.names)
    run.retained.clear()
    if run.reports is not None:
        run.reports.done()  # which reports there were is of no use here: the rows tell
    if task.report is not None and task.margin:
        rows = rows.where(rows.start >= part.begin + task.lag)
    names = [*task.columns, *hidden_columns(len(rows.columns) - len(task.columns))]
    made = {
        name: run.terms.dictionary(ids)
        for name, ids in zip(names, rows.columns.values(), strict=True)
    }
    times = {START: rows.start} if task.report is not None else {START: rows.start, END: rows.end}
    return _own(task, part, pa.table({**made, **times}))


def hidden_columns(count: int) -> list[str]:
    """The names of the columns that only order rows.

    >>> hidden_columns(2)
    ['_order0', '_order1']
    """
    return [f"_order{k}" for k in range(count)]


def _own(task: Task, part: Part, table: pa.Table) -> pa.Table:
    """Where the streams are divided by a key: the rows with the values of this part."""
    if task.key is None:
        return table
    mine = hashes(table.column(task.key)) % part.buckets == part.bucket
    return table.filter(pa.array(mine))


def failure(task: Task, part: Part, error: Exception) -> StreamSparqlError:
    """What to say of a part that cannot be computed: which it is, and where in the plan."""
    where = f"part {part.number + 1} of {task.parts}, {instant(part.begin)} to {instant(part.end)}"
    if part.buckets > 1:
        where += f", bucket {part.bucket + 1} of {part.buckets} of ?{task.key}"
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    what = (
        str(error) if isinstance(error, StreamSparqlError) else f"{type(error).__name__}: {error}"
    )
    kind = SourceError if isinstance(error, SourceError) else EngineError
    return kind(f"{where}{notes}: {what}")


# -- What leaves a task -------------------------------------------------------------------------


def together(tables: Iterable[pa.Table], rows: int = TOGETHER) -> Iterator[pa.Table]:
    """The same rows in fewer tables; an empty one where nothing comes for long."""
    some: list[pa.Table] = []
    count, last = 0, monotonic()
    for table in tables:
        if table.num_rows or not some:
            some.append(table)
        count += table.num_rows
        if count >= rows or monotonic() - last > PATIENCE:
            yield pa.concat_tables(some)
            some, count, last = [], 0, monotonic()
    if some:
        yield pa.concat_tables(some)


def finished(task: Task, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows as a DataFrame has them: plain texts, and booleans for ASK."""
    table = plain(table)
    if task.query.form == "ask":
        true = pc.starts_with(table.column("answer"), '"true"')
        table = table.set_column(table.column_names.index("answer"), "answer", true)
    terms = table.column_names[: -len(task.times)]
    table = table.rename_columns([*terms, *task.times])
    if not table.num_rows:
        yield pa.RecordBatch.from_pylist([], table.schema)
    yield from table.combine_chunks().to_batches(max_chunksize=TOGETHER)


def for_merging(task: Task, part: Part, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows packed, those that touch a border apart, each where its equals of other slabs go."""
    start, end = table.column(START).to_numpy(), table.column(END).to_numpy()
    touching = np.zeros(len(start), np.bool_)
    if part.number > 0:
        touching |= start == part.begin
    if part.number < task.parts - 1:
        touching |= end == part.end
    inside = table.filter(pa.array(~touching))
    if inside.num_rows or not table.num_rows:
        yield block_row(part.number, False, inside)
    border = compact(table.filter(pa.array(touching)))
    names = [name for name in border.column_names if name not in (START, END)]
    targets = hashes_of_rows(border, names) % np.uint32(task.parts)
    for target, rows in divided(border, targets.astype(np.int64)):
        yield block_row(target, True, rows)


def block_row(target: int, border: bool, table: pa.Table) -> pa.RecordBatch:
    """A block on its way to the merge."""
    columns = {
        "target": pa.array([target], pa.int32()),
        "border": pa.array([border]),
        "block": pa.array([packed(table)], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


MERGING = "target int, border boolean, block binary"
"""The schema of rows on their way to the merge, as Spark writes it."""


def merged(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of all slabs that came to this target, those that belong together as one."""
    border: list[pa.Table] = []
    for batch in batches:
        flags, blocks = batch.column("border"), batch.column("block")
        for flag, block in zip(flags, blocks, strict=True):
            if flag.as_py():
                border.append(unpacked(block.as_buffer()))
            else:
                yield from finished(task, unpacked(block.as_buffer()))
    if border:
        yield from finished(task, coalesced(border))


def coalesced(tables: Sequence[pa.Table]) -> pa.Table:
    """The canonical form of rows.

    >>> one, next_one = ({"x": ["<a>"], START: [s], END: [s + 5]} for s in (0, 5))
    >>> coalesced([pa.table(one), pa.table(next_one)]).to_pylist()
    [{'x': '<a>', '.start': 0, '.end': 10}]
    """
    terms = TermDictionary()
    table = pa.concat_tables(map(plain, tables))
    names = [name for name in table.column_names if name not in (START, END)]
    columns = {name: terms.encode(table.column(name)) for name in names}
    rows = Batch(columns, table.column(START).to_numpy(), table.column(END).to_numpy())
    found, _ = TemporalCoalesce(Always(rows)).step([rows.ordered()], [INFINITY], False)
    made = {name: terms.dictionary(found.columns[name]) for name in names}
    return pa.table({**made, START: found.start, END: found.end})
