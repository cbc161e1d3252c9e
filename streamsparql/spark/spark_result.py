"""The result of `run(engine="spark")`: computed on Spark, decoded in this process."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsparql.algebra.event import returns_events
from streamsparql.compiled import CompiledQuery
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import since_of
from streamsparql.run.decoder import RowDecoder
from streamsparql.run.guard import Guard
from streamsparql.run.input import RunInput
from streamsparql.run.notes import DataNotes
from streamsparql.run.reports import result_columns
from streamsparql.run.result import Computation, Result, raise_again
from streamsparql.sources.chunk import Accounting, Reject
from streamsparql.sources.failed_cells import CellLog
from streamsparql.sources.stamps import LATEST
from streamsparql.spark.engine import SparkRun, check_limits
from streamsparql.spark.failures import raising_task_errors
from streamsparql.spark.read_log import ReadLog
from streamsparql.spark.stream_inputs import is_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkComputation(Computation):
    """The rows that Spark computes, all of them when the first is requested.

    They are collected in this process and must fit into its memory; `Query.on_spark` returns a
    DataFrame, which has no such limit. After an exception each request reads the sources again, or
    raises the first error if that would read what is left of a source.
    """

    def __init__(
        self,
        query: CompiledQuery,
        run_input: RunInput,
        spark: SparkSession | None,
        slabs: int | None,
    ) -> None:
        check_limits(run_input.limits)
        decoder = RowDecoder(query.form, query.variables, TermDictionary(), query.ranking)
        super().__init__(query, run_input, decoder)
        self._spark, self._slabs = spark, slabs
        self._reading = Guard()

    @cached_property
    def run(self) -> SparkRun:
        """The run on Spark: the cut, and the reasons for it."""
        from streamsparql.spark.sessions import session

        spark = session() if self._spark is None else self._spark
        if self._reading.broken:
            raise_again(self._reading.error, self.input.repeatable)
            self._reading = Guard()
        with self._reading:  # sources in memory are read here, once
            return SparkRun(spark, self.query, self.input, slabs=self._slabs, ordered=True)

    @override
    def rows(self) -> Batch:
        if not self.started:
            with raising_task_errors():
                table = self.run.frame().toArrow()
            self.decoder.terms = TermDictionary()  # an earlier call may have left it half full
            self._rows = self._encoded(table)
            self.started = True
            DataNotes(self.run.recognised_units(), CellLog(), Accounting(), 0).issue()
        return self._rows

    @override
    def rejects(self) -> list[Reject]:
        """Return late and rejected items; the first call reads the streams once more."""
        return [*self.graph_rejects, *self.read_log.rejects]

    @cached_property
    def graph_rejects(self) -> list[Reject]:
        """The rejected triples of static graphs."""
        with raising_task_errors():
            return self.run.graph_rejects()

    @cached_property
    def read_log(self) -> ReadLog:
        """What is noted of the streams while they are read once more."""
        with raising_task_errors():
            return self.run.read_log()

    @override
    def notes(self) -> DataNotes:
        """Return the notes on the data; the first call reads the streams once more."""
        log = self.read_log
        return DataNotes(self.run.recognised_units(), log.cells, log.items, log.needed_delay)

    @override
    def span(self) -> tuple[int | None, int]:
        return self.run.task.begin, self.run.task.seen

    @override
    def sample(self, items: int) -> RunInput | None:
        """Return the input for a run in this process, with the first rows of DataFrames."""
        data = super().sample(items)
        if data is None:
            return None

        def local(source: Any) -> Any:
            return source.limit(items).toArrow() if is_frame(source) else source

        with raising_task_errors():
            return replace(
                data,
                streams={name: local(source) for name, source in data.streams.items()},
                graph=local(data.graph),
                graphs={name: local(source) for name, source in data.graphs.items()},
                # the rows of a DataFrame are in no order
                max_delay=LATEST if any(map(is_frame, data.streams.values())) else data.max_delay,
            )

    def _encoded(self, table: pa.Table) -> Batch:
        """Return rows as ids of the decoder's dictionary."""
        names = (*result_columns(self.query), *self.decoder.sort_columns)
        columns = {name: self._ids(table.column(k)) for k, name in enumerate(names)}
        start, end = (table.column(len(names) + k).to_numpy() for k in (0, 1))
        if returns_events(self.query.optimized):
            return Batch({**columns, SINCE: since_of(start)}, end, end + 1).ordered()
        return Batch(columns, start, end).ordered()

    def _ids(self, column: pa.ChunkedArray) -> IntArray:
        if pa.types.is_boolean(column.type):
            return self.decoder.terms.of_booleans(column.to_numpy())
        return self.decoder.terms.encode(column)


class SparkResult(Result):
    """A result whose rows Spark computes."""

    computation: SparkComputation

    @property
    def run(self) -> SparkRun:
        """The run on Spark, which `Query.explain` shows: the cut, and the reasons for it."""
        return self.computation.run
