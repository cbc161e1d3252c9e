"""A history, read once from its first item to its last: what is known is given out, nothing kept.

`Result` remembers, so that one can ask again; a `Replay` forgets, so that it can go on for ever. It
is what `run` on the command line, `Result.write` and `explain --analyze` are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from streamsparql.physical.batch import Batch
from streamsparql.physical.expressions.sort_keys import sort_keys
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.state.heap import Heap
from streamsparql.run.execution import Execution, Reporting, RunInput
from streamsparql.run.result import Shape
from streamsparql.sinks import Layout
from streamsparql.sources import Reject
from streamsparql.sources.chunk import Accounting

if TYPE_CHECKING:
    from streamsparql.query import Query


class Stopped(Exception):
    """What a source raises where somebody has ended the run that waits for it."""


class Replay:
    """A run of a query whose rows can be taken once, as they become known.

    Rows that are `ordered` come by their start, so that one that lasts holds back those after it;
    else each comes when it has ended. With a `report` there are its rows, report by report, in the
    order of ORDER BY. Over `endless` streams the run ends where the horizon does, for what comes
    after it may never end. `execution` makes the run, if not just any will do.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MS FIXED {?s ?p ?o}")
    >>> items = [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 7)]
    >>> replay = Replay(query, RunInput({"s": items}))
    >>> pa.concat_tables(replay.tables()).to_pydict()
    {'o': ['"1"', '"2"'], 'start': [3, 7], 'end': [4, 8]}
    >>> replay.accounting.items, replay.accounting.late
    (2, 0)
    """

    def __init__(
        self,
        query: Query,
        given: RunInput,
        *,
        report: Reporting | None = None,
        eager: bool = False,
        ordered: bool = True,
        endless: bool = False,
        shares_terms_with: Execution | None = None,
        execution: Callable[..., Execution] = Execution,
    ) -> None:
        self.execution = execution(
            query,
            given,
            report=report,
            ordered=report is not None,
            eager=eager,
            shares_terms_with=shares_terms_with,
        )
        self.shape = Shape(query, self.execution)
        self.watermark = -1
        """All that happened before this instant is known."""
        self.rows = 0
        """How many rows were given."""
        self.unread = len(self.execution.rejects)
        """How many triples of the static graphs were rejected."""
        self._reports = report is not None
        self._ordered = ordered
        self._rejects: list[Reject] = []
        self._until = given.end if endless else None
        self._stopping = False

    # -- out

    def tables(self) -> Iterator[pa.Table]:
        """The rows as tables, as `Result.to_arrow` has them; one after each round of reading.

        A table without rows says that time has gone on.
        """
        for batch in self._batches():
            self.rows += len(batch)
            yield self.shape.table([batch], self._reports)

    def stop(self) -> None:
        """Ends the run when its present round is over, as though the horizon ended there."""
        self._stopping = True

    @property
    def accounting(self) -> Accounting:
        """What became of the items that were read so far, of all streams."""
        return sum((sorter.accounting for sorter in self.execution.sorters.values()), Accounting())

    def drain(self) -> list[Reject]:
        """What was rejected since the last call, static graphs' triples first."""
        found, self._rejects = self._rejects, []
        if self.execution.rejects:
            found += self.execution.rejects
            self.execution.rejects = []
        for sorter in self.execution.sorters.values():
            found += sorter.drain()
        return found

    # -- inside

    def _batches(self) -> Iterator[Batch]:
        run = self.execution
        ready = Heap(run.sink.names)
        rounds = run.rounds()
        while not self._stopping:
            try:
                batches, watermark = next(rounds)
            except StopIteration:
                return
            except Stopped:
                break
            if not self._stopping:
                rows = self._round(ready, batches, watermark)
                self.watermark = watermark
                yield rows
                if self._until is not None and watermark >= self._until:
                    self.stop()
        if self._stopping and self.watermark < INFINITY:
            for sorter in run.sorters.values():
                sorter.advance(INFINITY)  # what is held aside is decided on: no more comes
            yield self._cut_short(ready)

    def _round(self, ready: Heap, batches: Mapping[str, Batch], watermark: int) -> Batch:
        """What is known after a round, in the order in which it is to be given."""
        run = self.execution
        run.parts = ready.runs()
        rows = run.round(batches, watermark)
        if self._reports:
            return in_order(self.shape, rows)
        if not self._ordered:
            return rows.ordered()
        ready.push(rows)
        return ready.release(run.pipeline.watermark)

    def _cut_short(self, ready: Heap) -> Batch:
        """The rest of what is known, up to the watermark: reports are given when they are due."""
        if self._reports or self.watermark < 0:
            return self.execution.sink.nothing()
        ready.push(self._round(ready, {}, INFINITY))
        rows = ready.release(INFINITY)
        rows = rows.over(rows.start, np.minimum(rows.end, self.watermark))
        return rows.where(rows.start < rows.end)


def in_order(shape: Shape, rows: Batch) -> Batch:
    """The rows of reports as a reader expects them: by ORDER BY, or triples by their text."""
    if not len(rows):
        return rows
    starts = rows.start.tolist()
    if shape.ranking is not None:
        keys = sort_keys(shape.ranking, rows, shape.terms)
        order = sorted(range(len(rows)), key=lambda k: (starts[k], keys[k]))
    elif shape.form in ("construct", "describe"):
        texts = [shape.terms.texts(ids).to_pylist() for ids in rows.columns.values()]
        triples = list(zip(starts, *texts, strict=True))
        order = sorted(range(len(rows)), key=triples.__getitem__)
    else:
        return rows.ordered()
    return rows.take(np.array(order, np.int64))


def layout_of(query: Query, shape: Shape, reports: bool, timestamps: str | None = None) -> Layout:
    """What a sink knows of the rows of a run."""
    times = shape.time_names(reports)
    prefixes = query.prefixes
    return Layout(query.form, tuple(shape.names), times, prefixes, timestamps)
