"""The result of `run(engine="spark")`: computed on Spark, read here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.run.execution import Execution, RunInput
from streamsparql.run.result import Result, Row, Shape
from streamsparql.sources.chunk import Reject
from streamsparql.spark.engine import SparkRun
from streamsparql.spark.failures import told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamsparql.query import Query


class SparkResult(Result):
    """A `Result` whose rows Spark computes, all of them when the first is asked for.

    They are brought here, so they have to find room in this process; `Query.on_spark` gives them as
    a DataFrame, which does not ask that.
    """

    def __init__(
        self, query: Query, given: RunInput, spark: SparkSession | None, slabs: int | None
    ) -> None:
        self._query, self._given, self._slabs = query, given, slabs
        self._spark = spark
        self._replayable = self._started = False
        self._run = Execution(query, RunInput(graphs=dict.fromkeys(query.graphs, ())))
        self._shape = Shape(query, self._run)

    @cached_property
    def run(self) -> SparkRun:
        """How Spark computes it: the cut and what it was decided by."""
        from streamsparql.spark.sessions import session

        spark = session() if self._spark is None else self._spark
        return SparkRun(spark, self._query, self._given, slabs=self._slabs, ordered=True)

    def __iter__(self) -> Iterator[Row]:
        yield from self._shape.rows(self._canonical())

    @property
    @override
    def late(self) -> list[Reject]:
        with told():
            return self.run.rejects()

    @override
    def _span(self) -> tuple[int | None, int]:
        return self.run.task.begin, self.run.task.seen

    @override
    def _all(self) -> Batch:
        if not self._started:
            with told():
                table = self.run.frame().toArrow()
            self._rows = self._batch(table)
            self._started = True
        return self._rows

    def _batch(self, table: pa.Table) -> Batch:
        """The rows with the ids of their terms."""
        names = self._run.sink.names
        texts = [table.column(k) for k in range(len(names))]
        columns = {n: self._ids(column) for n, column in zip(names, texts, strict=True)}
        start, end = (table.column(len(names) + k).to_numpy() for k in (0, 1))
        return Batch(columns, start, end).ordered()

    def _ids(self, column: pa.ChunkedArray) -> IntArray:
        if pa.types.is_boolean(column.type):
            return self._run.terms.of_booleans(column.to_numpy())
        return self._run.terms.encode(column)
