"""A history, read once from its first item to its last: rows are emitted and not retained.

`Result` retains its rows, so that they can be read again; a `Replay` does not, so it can run on
endless streams. `run` on the command line, `Result.write` and `explain --analyze` are replays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from streamsparql.algebra.event import returns_events
from streamsparql.compiled import CompiledQuery
from streamsparql.physical.batch import Batch
from streamsparql.physical.entailment.schema import NO_SCHEMA
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.state.heap import Heap
from streamsparql.run.decoder import RowDecoder
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput
from streamsparql.run.notes import DataNotes
from streamsparql.run.reports import Reporting
from streamsparql.sinks import Layout
from streamsparql.sources import Accounting, Reject


class Stopped(Exception):
    """Raised by a source if the run that waits for it was stopped."""


class Replay:
    """A run of a query whose rows are read once, when they become final.

    Rows that are `ordered` are emitted by start, so that a long row delays those after it;
    else each is emitted when it has ended. With a `report` the rows are those of the reports,
    in the order of ORDER BY. Over `endless` streams the run ends at the end of the horizon, and no
    row that is final waits for another. `execution` constructs the execution, by default a plain
    one.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MS FIXED {?s ?p ?o}")
    >>> items = [("<a>", "<p>", '"1"', 3), ("<a>", "<p>", '"2"', 7)]
    >>> replay = Replay(query, RunInput({"s": items}))
    >>> pa.concat_tables(replay.tables()).to_pydict()
    {'o': ['"1"', '"2"'], 'start': [3, 7], 'end': [4, 8]}
    >>> replay.accounting.read, replay.accounting.late
    (2, 0)
    """

    def __init__(
        self,
        query: CompiledQuery,
        run_input: RunInput,
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
            run_input,
            report=report,
            ordered=report is not None,
            eager=eager,
            prompt=endless,
            shares_terms_with=shares_terms_with,
        )
        self.watermark = -1
        """The instant before which all items have been processed."""
        self.rows = 0
        """The number of rows that were emitted."""
        self.graph_rejects = len(self.execution.graph_rejects)
        """The number of triples of static graphs that were rejected."""
        self._reports = report is not None
        self._ordered = ordered
        self._endless = endless
        self._until = run_input.end if endless else None
        self._stopping = False

    @property
    def decoder(self) -> RowDecoder:
        """The decoder of the rows."""
        return self.execution.decoder

    @property
    def accounting(self) -> Accounting:
        """The counts of the items that were read so far, over all streams."""
        return self.execution.accounting

    def notes(self) -> DataNotes:
        """Return what a reader of the results should know about the data."""
        return self.execution.notes()

    def without_schema(self) -> list[CompiledQuery]:
        """Return the query if it has entailment, and the static graphs no schema."""
        execution = self.execution
        return [execution.query] if execution.catalog.schema == NO_SCHEMA else []

    def tables(self) -> Iterator[pa.Table]:
        """Emit the rows as tables, as `Result.to_arrow` returns them; one after each step.

        An empty table shows that the watermark advanced.
        """
        for batch in self._batches():
            self.rows += len(batch)
            yield self.decoder.table([batch], self._reports)

    def stop(self) -> None:
        """End the run after the current step, as if the horizon ended there."""
        self._stopping = True

    def drain(self) -> list[Reject]:
        """Return the rejects since the last call, those of static graphs first."""
        return self.execution.drain()

    # -- inside

    def _batches(self) -> Iterator[Batch]:
        execution = self.execution
        ready = Heap(execution.sink.names)
        steps = execution.input_steps()
        while not self._stopping:
            with execution.guard:
                try:
                    step = next(steps, None)
                except Stopped:
                    break
                if step is None:
                    return
                rows = execution.sink.nothing()
                if not self._stopping:
                    rows = self._step(ready, *step)
                    self.watermark = step.watermark
            yield rows
            if self._until is not None and self.watermark >= self._until:
                self.stop()
        if self._stopping and self.watermark < INFINITY:
            with execution.guard:
                for sorter in execution.sorters.values():
                    sorter.advance(INFINITY)  # no later item can confirm the quarantined ones
                rows = self._cut_short(ready)
            yield rows

    def _step(self, ready: Heap, batches: Mapping[str, Batch], watermark: int) -> Batch:
        """Return the rows that are final after a step, in the order in which they are emitted."""
        execution = self.execution
        execution.retained = ready.runs()
        rows = execution.step(batches, watermark, prompt=self._endless)
        if self._reports:
            return self.decoder.in_order(rows)
        if not self._ordered:
            return rows.ordered()
        ready.push(rows)
        return ready.release(execution.pipeline.watermark)

    def _cut_short(self, ready: Heap) -> Batch:
        """Return all rows cut at the watermark; reports are emitted only when they are due."""
        if self._reports or self.watermark < 0:
            return self.execution.sink.nothing()
        ready.push(self._step(ready, {}, INFINITY))
        rows = ready.release(INFINITY)
        rows = rows.over(rows.start, np.minimum(rows.end, self.watermark))
        return rows.where(rows.start < rows.end)


def layout_of(
    query: CompiledQuery, decoder: RowDecoder, reports: bool, timestamps: str | None = None
) -> Layout:
    """Return the layout of the rows of a run, for a sink."""
    times = decoder.time_names(reports)
    events = not reports and returns_events(query.optimized)
    return Layout(query.form, decoder.names, times, query.prefixes, timestamps, events=events)
