"""The result of a run: rows with their validity, snapshots, reports (SEMANTICS.md section 6)."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from streamsparql.compiled import CompiledQuery
from streamsparql.display import Displayed, draw_timeline, explain_empty
from streamsparql.display.picture import Picture
from streamsparql.display.why_empty import WhyEmpty
from streamsparql.errors import EngineError, StreamSparqlError
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.report import TemporalCoalesce
from streamsparql.physical.state.heap import Heap
from streamsparql.rdflib_terms import rdflib_result
from streamsparql.run.causes import has_no_answer
from streamsparql.run.decoder import RowDecoder
from streamsparql.run.execution import Execution
from streamsparql.run.input import RunInput, graph_sources
from streamsparql.run.notes import DataNotes
from streamsparql.run.reports import (
    SNAPSHOT,
    Reporting,
    is_timeless,
    reporting,
    reports_of,
    requested_reports,
    result_columns,
)
from streamsparql.run.rows import Report, Row
from streamsparql.run.time_arguments import instant_argument
from streamsparql.sources import Accounting, Reject
from streamsparql.sources.failed_cells import CellLog, FailedCells
from streamsparql.text.visible import visible
from streamsparql.values import check_values
from streamsparql.values.frames import check_library, pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import rdflib.query

    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.replay import Replay
    from streamsparql.run.time_arguments import Duration, Instant
    from streamsparql.sinks import Layout
    from streamsparql.values import Values


class Reported(NamedTuple):
    """The rows of reports, their decoder, and the instants of all reports."""

    decoder: RowDecoder
    batches: list[Batch]
    instants: list[int]


class Computation(ABC):
    """The rows of a query over its input, computed once, on first use.

    Each engine has one. Rows are canonical by the columns of the result and those that ORDER BY
    sorts by.
    """

    started: bool = False
    """Whether any row was requested."""
    partly: bool = False
    """Whether rows were read one by one, and not to the end."""

    def __init__(self, query: CompiledQuery, run_input: RunInput, decoder: RowDecoder) -> None:
        self.query, self.input, self.decoder = query, run_input, decoder

    @abstractmethod
    def rows(self) -> Batch:
        """Return all rows."""

    @abstractmethod
    def rejects(self) -> list[Reject]:
        """Return the items that are not part of the result: late and rejected ones."""

    @property
    def repeatable(self) -> bool:
        """Whether a run can be repeated at little cost, as for a preview."""
        return False

    @abstractmethod
    def span(self) -> tuple[int | None, int]:
        """Return the start of the horizon, and the greatest timestamp of all items."""

    def final_rows(self) -> Iterator[Batch]:
        """Yield the rows by start, as they become final, in canonical form."""
        yield self.canonical()

    def reported(self, wanted: Reporting) -> Reported:
        """Return the rows of reports, computed from the rows."""
        rows = self.rows()
        end = INFINITY if self.input.end is None else self.input.end
        events = SINCE in rows.columns
        reports = reports_of(wanted, Always(rows), self.query, events, end)
        (reports.begin, reports.last), reports.clock = self.span(), INFINITY
        shown, _ = reports.step([rows], [INFINITY], True)
        return Reported(self.decoder, [shown], reports.done())

    def notes(self) -> DataNotes:
        """Return what a reader of the rows should know about the data; it computes the rows."""
        return DataNotes({}, CellLog(), Accounting(), 0)

    def replay(self, report: Reporting | None) -> Replay | None:
        """Return a run that retains nothing; None if the sources cannot be read again."""
        return None

    def retain_rejects(self, rejects: list[Reject]) -> None:  # noqa: B027 -- a no-op by default
        """Retain the rejects of a run that has ended."""

    def retain_counts(self, replay: Replay) -> None:  # noqa: B027 -- a no-op by default
        """Retain whether a replay that has ended has rows, and its counts if it has none."""

    def is_empty(self) -> bool:
        """Return whether there are no rows, besides those of empty groups; for ASK, no true."""
        rows = self.rows()
        if self.query.form != "ask":
            return not len(rows)
        return not any(row["answer"] for row in self.decoder.rows(rows))

    def finished(self) -> Execution | None:
        """Return an execution that has ended, for its counts; None if it is not in this process."""
        return None

    def sample(self, items: int) -> RunInput | None:
        """Return the input, or the first items of it; None if a source cannot be read again."""
        return self.input if self.input.repeatable else None

    def canonical(self) -> Batch:
        """Return all rows, in canonical form by the columns of the result."""
        rows = self.rows()
        if self.decoder.ranking is None or SINCE in rows.columns:
            return rows.ordered()
        shown = rows.project(result_columns(self.query))
        merged, _ = TemporalCoalesce(Always(shown)).step([shown], [INFINITY], False)
        return merged.ordered()


def raise_again(error: BaseException | None, repeatable: bool) -> None:
    """Raise the error of a computation again, unless a new run over its sources may succeed."""
    if isinstance(error, StreamSparqlError) or (isinstance(error, Exception) and not repeatable):
        raise error
    if not repeatable:
        named = "an exception" if error is None else type(error).__name__
        raise EngineError(
            f"the result is incomplete: {named} ended its computation, and a source can be read"
            " only once; pass the sources to run again"
        ) from error


class EmbeddedComputation(Computation):
    """The rows of an execution in this process.

    An execution that an exception cut short is never read again. If its sources can be read again,
    a new one takes its place; else, and after an error that another run would repeat, each
    request for rows raises the first error.
    """

    def __init__(self, query: CompiledQuery, run_input: RunInput) -> None:
        self._latest = Execution(query, run_input)
        super().__init__(query, run_input, self._latest.decoder)
        self._rejects: list[Reject] | None = None
        self._noted = False
        """Whether the notes on the data were issued."""
        self._replayed: Execution | None = None
        self._empty: bool | None = None

    @property
    def _execution(self) -> Execution:
        """The execution; a new one if an exception cut the last one short."""
        guard = self._latest.guard
        if guard.broken:
            raise_again(guard.error, self.input.repeatable)
            execution = Execution(self.query, self.input)
            self.decoder.terms = execution.terms
            self.decoder.ranking = execution.decoder.ranking
            self._rejects = self._replayed = self._empty = None
            self.started = self.partly = False
            self._latest = execution  # last: until then the old one is known to be broken
        return self._latest

    @override
    def rows(self) -> Batch:
        execution = self._execution
        self.started = True
        while execution.next_rows() is not None:
            pass
        self.partly = False
        retained = execution.retained
        if len(retained) != 1:
            retained[:] = [Batch.concat(retained, execution.sink.names).ordered()]
        self.issue_notes(execution.notes())
        return retained[0]

    def issue_notes(self, notes: DataNotes) -> None:
        """Issue the notes on the data as warnings, once."""
        if not self._noted:
            self._noted = True
            self._notes = notes
            notes.issue()

    @override
    def notes(self) -> DataNotes:
        if not self._noted:
            self.rows()
        return self._notes

    @override
    def final_rows(self) -> Iterator[Batch]:
        execution = self._execution
        if self.started or self.decoder.ranking is not None:
            yield self.canonical()
            return
        self.started = self.partly = True
        ready, emitted = Heap(execution.sink.names), 0
        for batch in execution.replay():
            ready.push(batch)
            final = ready.release(execution.pipeline.watermark)
            emitted += len(final)
            yield final
        rows = self.canonical()  # a snapshot requested meanwhile has read the rest
        yield rows.part(emitted, len(rows))

    @override
    def rejects(self) -> list[Reject]:
        execution = self._execution
        if self._rejects is None:
            self.rows()
            self._rejects = execution.rejects()
        return self._rejects

    @property
    @override
    def repeatable(self) -> bool:
        return self.input.repeatable

    @override
    def span(self) -> tuple[int | None, int]:
        return self._execution.begin, self._execution.last_stamp

    @override
    def reported(self, wanted: Reporting) -> Reported:
        """Return the rows of reports.

        If no row was computed before, a separate execution computes the reports over validities
        that are aligned to them; else they are computed from the rows.
        """
        shared = self._execution
        if wanted.every is None or self.started or not self.input.repeatable:
            return super().reported(wanted)
        execution = Execution(self.query, self.input, report=wanted, shares_terms_with=shared)
        batches = [batch for batch in execution.replay() if len(batch)]
        assert execution.reports is not None
        self._rejects = execution.rejects()
        self.issue_notes(execution.notes())
        batches = batches or [execution.sink.nothing()]
        return Reported(execution.decoder, batches, execution.reports.done())

    @override
    def replay(self, report: Reporting | None) -> Replay | None:
        from streamsparql.run.replay import Replay

        if not self.input.repeatable:
            return None
        latest = self._execution
        shared = None if self.started else latest
        return Replay(self.query, self.input, report=report, shares_terms_with=shared)

    @override
    def retain_rejects(self, rejects: list[Reject]) -> None:
        self._rejects = rejects

    @override
    def retain_counts(self, replay: Replay) -> None:
        if replay.execution.reports is None:
            self._empty = has_no_answer(replay.execution.pipeline)
            self._replayed = replay.execution if self._empty else None

    @override
    def is_empty(self) -> bool:
        if self._empty is None:
            self._empty = has_no_answer(self.finished().pipeline)
        return self._empty

    @override
    def finished(self) -> Execution:
        execution = self._execution
        if self._replayed is not None:
            return self._replayed
        self.rows()
        return execution


class Preview(NamedTuple):
    """The first rows of a result."""

    tables: list[pa.Table]
    more: bool
    """Whether there are more rows."""
    rejected: int
    """The number of items that were late or rejected so far."""
    example: Reject | None
    """The first of these."""

    def with_rejects(self, rejects: Sequence[Reject]) -> Preview:
        """Return the preview with more rejects."""
        example = next(iter(rejects), None) if self.example is None else self.example
        return self._replace(rejected=self.rejected + len(rejects), example=example)


def rejects_note(count: int, example: Reject | None) -> str:
    """Return a note on rejects, with one example; empty without rejects.

    >>> rejects_note(2, Reject("a.nq", 7, "late by 8 ms", None, "line", late=True))
    '2 items were late or rejected (result.late, result.rejected): a.nq, line 7: late by 8 ms'
    """
    if example is None:
        return ""
    items = "one item was" if count == 1 else f"{count:,} items were"
    return visible(f"{items} late or rejected (result.late, result.rejected): {example}")


class Result(Displayed):
    """The result of a query over a whole history. Rows are computed on first use.

    Iterating returns rows in canonical form, by start: the k-th row of equal ones holds where
    their multiplicity is k or more.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    >>> result = streamsparql.compile(text).run([("<a>", "<p>", '"1"', t) for t in (3, 6)])
    >>> print(result)
    start  end  ?o
        3   10  "1"
        6   10  "1"
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        """The computation of the rows."""
        self._query, self._decoder = computation.query, computation.decoder

    # -- rows

    def __iter__(self) -> Iterator[Row]:
        for batch in self.computation.final_rows():
            yield from self._decoder.rows(batch)

    def snapshot(self, t: Instant | None = None) -> Any:
        """Return the snapshot at the instant `t`, by default at the time of the last item.

        SELECT: a list of dicts (`SnapshotRow`), which is a bag, in the order of ORDER BY. ASK: a
        bool, None outside of the horizon. CONSTRUCT and DESCRIBE: an rdflib graph.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> result = streamsparql.compile(text).run([("<a>", "<p>", "<b>", 3)])
        >>> result.snapshot(), result.snapshot(10)
        ([{'o': rdflib.term.URIRef('b')}], [])
        """
        rows = self.computation.rows()
        instant = self._last_instant() if t is None else instant_argument("t", t)
        return self._decoder.snapshot(rows.where((rows.start <= instant) & (instant < rows.end)))

    def _last_instant(self) -> int:
        """Return the time of the last item, within the horizon."""
        run_input = self.computation.input
        begin, last = self.computation.span()
        first = run_input.start if begin is None else begin
        last = max(last, first or 0)
        return last if run_input.end is None else min(last, run_input.end - 1)

    def to_rdflib(self, t: Instant | None = None) -> rdflib.query.Result:
        """Return the snapshot at an instant as an rdflib result, which other tools read.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> result = streamsparql.compile(text).run([("<a>", "<p>", '"1"', 3)])
        >>> [str(row.o) for row in result.to_rdflib()]
        ['1']
        >>> result.to_rdflib(5).serialize(format="csv")
        b'o\\r\\n1\\r\\n'
        """
        return rdflib_result(self._query.form, self._decoder.names, self.snapshot(t))

    def to_arrow(
        self,
        report: RelationToStream | None = None,
        every: Duration | None = None,
        *,
        values: Values = "terms",
    ) -> pa.Table:
        """Return the rows as an Arrow table: a column per variable, terms in N-Triples syntax.

        The columns are dictionary-encoded. `start` and `end` are the validity in milliseconds; for
        reports, `instant` is the instant of the row's report. With values="native" columns have
        the types of their values, and times are timestamps in UTC.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> result = streamsparql.compile(text).run([("<a>", "<p>", "<b>", 3)])
        >>> result.to_arrow().to_pydict()
        {'o': ['<b>'], 'start': [3], 'end': [10]}
        >>> result.to_arrow(report="rstream").to_pydict()
        {'o': ['<b>'], 'instant': [10]}
        >>> [str(kind) for kind in result.to_arrow(values="native").schema.types]
        ['string', 'timestamp[ms, tz=UTC]', 'timestamp[ms, tz=UTC]']
        """
        return self._table(report, every, values)

    def to_pandas(
        self,
        report: RelationToStream | None = None,
        every: Duration | None = None,
        *,
        values: Values = "native",
    ) -> pd.DataFrame:
        """Return the rows as a frame of pandas, with native values, or with terms.

        The columns are those of `to_arrow`, and decimals are doubles.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> number = '"21.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
        >>> streamsparql.compile(text).run([("<a>", "<p>", number, 3)]).to_pandas()
              o                            start                              end
        0  21.5 1970-01-01 00:00:00.003000+00:00 1970-01-01 00:00:00.010000+00:00
        """
        check_library("pandas")
        return pandas_frame(self._table(report, every, values, exact=False))

    def to_polars(
        self,
        report: RelationToStream | None = None,
        every: Duration | None = None,
        *,
        values: Values = "native",
    ) -> pl.DataFrame:
        """Return the rows as a frame of Polars, with native values, or with terms.

        The columns are those of `to_arrow`, and decimals are doubles.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> number = '"21.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
        >>> frame = streamsparql.compile(text).run([("<a>", "<p>", number, 3)]).to_polars()
        >>> frame["o"].to_list(), frame["end"][0].isoformat()
        ([21.5], '1970-01-01T00:00:00.010000+00:00')
        """
        check_library("polars")
        return polars_frame(self._table(report, every, values, exact=False))

    def _table(
        self,
        report: RelationToStream | None,
        every: Duration | None,
        values: Values,
        exact: bool = True,
    ) -> pa.Table:
        """Return the rows, or those of reports, as a table; decimals as doubles unless `exact`."""
        check_values(values)
        wanted = requested_reports(self._query, report, every)
        if wanted is None:
            decoder, batches = self._decoder, [self.computation.canonical()]
        else:
            decoder, batches, _ = self.computation.reported(wanted)
        if values == "native":
            return decoder.native_table(Batch.concat(batches), wanted is not None, exact)
        return decoder.table(batches, wanted is not None)

    def write(
        self,
        target: str | os.PathLike[str] | IO[Any],
        format: str | None = None,  # noqa: A002 -- the public name
        *,
        report: RelationToStream | None = None,
        every: Duration | None = None,
        timestamps: str | None = None,
        escape_formulas: bool = False,
        values: Values = "terms",
    ) -> int:
        """Write the rows, or those of reports if requested; return their number.

        The format is table, csv, jsonl, nq (of triples), parquet, sparql-json, sparql-xml,
        sparql-csv or sparql-tsv; by default, that of the file's extension (`.gz` and `.zst` after
        it compress), or a table for an open file. `timestamps` are ms, iso (UTC) or local. With
        `escape_formulas`, CSV has an apostrophe before each value that a spreadsheet would execute.
        With values="native", csv, jsonl and parquet have native values and times. Rows are written
        as they become final.

        >>> import streamsparql, sys
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> result = streamsparql.compile(text).run([("<a>", "<p>", '"1"', 3)])
        >>> result.write(sys.stdout, "jsonl")
        {"o": {"type": "literal", "value": "1"}, "start": 3, "end": 10}
        1
        """
        from streamsparql.sinks import check_target, open_sink, resolved_format

        check_values(values)
        wanted = requested_reports(self._query, report, every)
        kind = resolved_format(target, format)
        timeless = is_timeless(self._query, wanted, kind)
        run_input = self.computation.input
        graphs = graph_sources(self._query.graphs, run_input)
        check_target(target, [*run_input.streams.values(), *graphs])
        tables, layout = self._tables(SNAPSHOT if timeless else wanted, timestamps)
        times = () if timeless else layout.times
        layout = replace(layout, times=times, escape_formulas=escape_formulas, values=values)
        first = next(tables, None)  # an error here leaves an existing file unchanged
        count = 0
        with open_sink(target, kind, layout) as sink:
            for table in chain(() if first is None else (first,), tables):
                sink.write(table)
                count += len(table)
        return count

    def _tables(
        self, wanted: Reporting | None, timestamps: str | None
    ) -> tuple[Iterator[pa.Table], Layout]:
        """Return the tables to write, and their layout."""
        from streamsparql.run.replay import layout_of

        computation, reports = self.computation, wanted is not None
        replay = None if computation.started else computation.replay(wanted)
        if replay is not None:
            layout = layout_of(self._query, replay.decoder, reports, timestamps)
            return self._replayed(replay), layout
        if wanted is None:
            layout = layout_of(self._query, self._decoder, reports, timestamps)
            return iter([self._decoder.table([computation.canonical()], reports)]), layout
        decoder, batches, _ = computation.reported(wanted)
        rows = decoder.in_order(Batch.concat(batches))
        layout = layout_of(self._query, decoder, reports, timestamps)
        return iter([decoder.table([rows], reports)]), layout

    def _replayed(self, replay: Replay) -> Iterator[pa.Table]:
        yield from replay.tables()
        self.computation.retain_rejects(replay.drain())
        self.computation.retain_counts(replay)
        if isinstance(self.computation, EmbeddedComputation):
            self.computation.issue_notes(replay.execution.notes())

    # -- rejects

    @property
    def late(self) -> list[Reject]:
        """The items that arrived below the watermark, with reasons; they are not in the result."""
        return [reject for reject in self.computation.rejects() if reject.late]

    @property
    def rejected(self) -> list[Reject]:
        """The items that could not be read or stamped, with reasons; they are not in the result."""
        return [reject for reject in self.computation.rejects() if not reject.late]

    @property
    def failed_cells(self) -> tuple[FailedCells, ...]:
        """The cells of mapped tables for which an expression of the mapping has no value.

        >>> import streamsparql
        >>> rows = [{"v": "7", "t": 3}, {"v": "n/a", "t": 4}]
        >>> source = streamsparql.mapped(rows, '''
        ...     PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
        ...     CONSTRUCT { [] <v> ?n } { BIND(xsd:integer(?v) AS ?n) }''')
        >>> text = "SELECT ?n FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <v> ?n }"
        >>> print(*streamsparql.compile(text).run(source).failed_cells)
        ?v: xsd:integer(?v) has no value in one row: "n/a" in record 2
        """
        return self.computation.notes().cells.failed

    def why_empty(
        self, report: RelationToStream | None = None, every: Duration | None = None
    ) -> WhyEmpty:
        """Return the reasons why there are no rows: the patterns, joins, filters that left none.

        With `report` or `every`, those of reports without rows; for ASK, why the answer is never
        true. Sources are read again, up to some number of items, if they can be. The returned
        object is false if there are rows.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o FILTER(?o > 5) }"
        >>> print(streamsparql.compile(text).run([("<a>", "<p>", '"7"', 3)]).why_empty())
        no rows: FILTER(?o > 5) is an error for the only row; cast it: xsd:decimal(?o)
           1 | SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o FILTER(?o > 5) }
             |                                                                ^^^^^^^^^^^^^^
          ?o is "7" (a string)
        """
        why: WhyEmpty = explain_empty(self, report, every)
        return why

    # -- reports

    def report(
        self, kind: RelationToStream | None = None, every: Duration | None = None
    ) -> Iterator[Report]:
        """Yield the reports, pairs of an instant and rows: rstream, istream or dstream.

        The kind and the period are by default those of the query; a query that names no kind
        reports whole snapshots. Rows are as `snapshot` returns them; for ASK, a boolean, or None if
        the answer has not changed.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> result = streamsparql.compile(text).run([("<a>", "<p>", "<b>", t) for t in (3, 12)])
        >>> [(instant, len(rows)) for instant, rows in result.report("rstream")]
        [(10, 1), (20, 1), (30, 0)]
        """
        wanted = reporting(self._query, kind, every)
        decoder, batches, instants = self.computation.reported(wanted)
        return decoder.reports(Batch.concat(batches), instants)

    # -- in a notebook

    def timeline(
        self,
        limit: int = 40,
        report: RelationToStream | None = None,
        every: Duration | None = None,
        timestamps: str | None = None,
    ) -> Picture:
        """Return a picture of when each row holds: a lane for each of the first `limit` solutions.

        Vertical lines mark the instants of the query's reports. With `report` or `every`, dots show
        which solutions are in these reports. `timestamps` are ms, iso (UTC) or local.

        >>> import streamsparql
        >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
        >>> print(streamsparql.compile(text).run([("<a>", "<p>", '"1"', 5)]).timeline())
        "1"  ████████████████████████████████████████████████████████████
             5 to 10 ms
        """
        picture: Picture = draw_timeline(self, limit, report, every, timestamps)
        return picture

    def __repr__(self) -> str:
        columns = " ".join(self._decoder.names)
        return f"<Result: {columns}, {'' if self.computation.started else 'not '}computed>"


def preview(result: Result, limit: int | None) -> Preview | None:
    """Return the first rows of a result, about `limit` or all of them.

    None if that would compute rows that were not requested, from sources that can be read only
    once.
    """
    computation, decoder = result.computation, result.computation.decoder
    if limit is None or (computation.started and not computation.partly):
        rows = computation.canonical()
        count = len(rows) if limit is None else limit
        rejects = computation.rejects()
        tables = [decoder.table([rows.part(0, count)], False)]
        return Preview(tables, len(rows) > count, len(rejects), next(iter(rejects), None))
    replay = computation.replay(None)
    if replay is None:
        return None
    shown = Preview([], False, 0, None)
    for table in replay.tables():
        shown.tables.append(table)
        shown = shown.with_rejects(replay.drain())
        if sum(map(len, shown.tables)) > limit:
            return shown._replace(more=True)
    computation.retain_counts(replay)
    return shown
