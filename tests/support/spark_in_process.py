"""An in-process substitute for the part of Spark that the engine uses: lists of Arrow tables.

`Session` replaces a SparkSession. Its frames guarantee only what Spark guarantees: a shuffle
returns rows in any order, a sort leaves rows with equal keys in any order, partitions arrive in
batches of any size, and functions are pickled with all that they reference. `cut_at` makes the
engine cut time at positions of the test's choice.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.physical.operator import INFINITY
from streamsparql.spark import slab
from streamsparql.spark.cut import Cut, CutOptions, TaskPart, TimeHistogram

TYPES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
Function = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]
Parts = list[pa.Table]


def schema_of(text: str) -> pa.Schema:
    """Parse a schema in Spark's notation.

    >>> schema_of("`a b` string, n long").names
    ['a b', 'n']
    """
    fields = re.findall(r"(?:`((?:[^`]|``)+)`|(\w+)) (\w+)(?:, |$)", text)
    return pa.schema([(a.replace("``", "`") or b, TYPES[kind]) for a, b, kind in fields])


@dataclass(frozen=True)
class Column:
    """A column of a frame, or a condition on one."""

    name: str
    holds: Callable[[pa.Table], Any] = bool

    def __ge__(self, value: Any) -> Column:
        return Column(self.name, lambda rows: pc.greater_equal(rows.column(self.name), value))

    def __lt__(self, value: Any) -> Column:
        return Column(self.name, lambda rows: pc.less(rows.column(self.name), value))


@dataclass(eq=False)
class Frame:
    """A DataFrame whose partitions are computed on first use."""

    session: Session
    schema: pa.Schema
    make: Callable[[], Parts]

    @cached_property
    def parts(self) -> Parts:
        """The partitions."""
        return self.make()

    def __getitem__(self, name: str) -> Column:
        assert name in self.schema.names
        return Column(name)

    def mapInArrow(self, function: Function, schema: str) -> Frame:  # noqa: N802
        """Apply a function to each partition; columns match by position, their types must be equal."""
        declared = schema_of(schema)
        sent = pickle.dumps(function)

        def compute() -> Parts:
            return [self._map(part, sent, declared) for part in self.parts]

        return Frame(self.session, declared, compute)

    def _map(self, part: pa.Table, sent: bytes, declared: pa.Schema) -> pa.Table:
        if self.session.random.random() < 0.5:
            slab._SHARED_EXECUTIONS.clear()  # as in another worker
        batches = []
        for batch in pickle.loads(sent)(self._batches(part)):
            assert isinstance(batch, pa.RecordBatch), type(batch)
            assert batch.schema.types == declared.types, (batch.schema, declared)
            batches.append(pa.RecordBatch.from_arrays(batch.columns, schema=declared))
        return pa.Table.from_batches(batches, declared)

    def _batches(self, part: pa.Table) -> Iterator[pa.RecordBatch]:
        at = 0
        while at < part.num_rows:
            size = self.session.random.choice([1, 2, 5, 10_000])
            yield from part.slice(at, size).combine_chunks().to_batches()
            at += size

    def unionAll(self, other: Frame) -> Frame:  # noqa: N802
        """Return the partitions of both frames."""
        assert self.schema.types == other.schema.types

        def compute() -> Parts:
            return [*self.parts, *(part.cast(self.schema) for part in other.parts)]

        return Frame(self.session, self.schema, compute)

    def where(self, condition: Column) -> Frame:
        """Return the rows for which a condition holds."""

        def compute() -> Parts:
            return [part.filter(condition.holds(part)) for part in self.parts]

        return Frame(self.session, self.schema, compute)

    def repartitionById(self, count: int, column: Column) -> Frame:  # noqa: N802
        """Move rows to the partition whose number a column has, modulo `count`, in any order."""

        def compute() -> Parts:
            rows = self.session.shuffled(self.toArrow())
            targets = rows.column(column.name).to_numpy()
            return [rows.filter(pa.array(targets % count == k)) for k in range(count)]

        return Frame(self.session, self.schema, compute)

    def sortWithinPartitions(self, *names: str) -> Frame:  # noqa: N802
        """Sort each partition, rows with equal keys in any order."""
        keys = [(name, "ascending") for name in names]

        def compute() -> Parts:
            return [self.session.shuffled(part).sort_by(keys) for part in self.parts]

        return Frame(self.session, self.schema, compute)

    def toArrow(self) -> pa.Table:  # noqa: N802
        """Return all rows."""
        return pa.concat_tables(self.parts) if self.parts else self.schema.empty_table()


class Context(NamedTuple):
    """The properties of a SparkContext that the engine reads."""

    defaultParallelism: int = 2  # noqa: N815


class Session:
    """A substitute for a SparkSession; `seed` decides all that Spark leaves open."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.sparkContext = Context()

    def range(self, start: int, end: int, step: int, count: int) -> Frame:
        """Return a frame of numbers in `count` partitions."""
        assert step == 1
        schema = pa.schema([("id", pa.int64())])
        edges = [start + (end - start) * k // count for k in range(count + 1)]
        ids = [list(range(b, e)) for b, e in pairwise(edges)]
        return Frame(self, schema, lambda: [pa.table({"id": x}, schema=schema) for x in ids])

    def createDataFrame(self, table: Any, schema: str) -> Frame:  # noqa: N802
        """Convert a table to a frame of two partitions."""
        declared = schema_of(schema)
        table = declared.empty_table() if table == [] else table
        assert table.schema.types == declared.types

        def compute() -> Parts:
            at = self.random.randint(0, table.num_rows)
            return [table.slice(0, at).cast(declared), table.slice(at).cast(declared)]

        return Frame(self, declared, compute)

    def shuffled(self, rows: pa.Table) -> pa.Table:
        """Shuffle rows."""
        order = list(range(rows.num_rows))
        self.random.shuffle(order)
        return rows.take(pa.array(order, pa.int64()))


@contextmanager
def cut_at(places: Sequence[float], buckets: int = 0) -> Iterator[list[Cut]]:
    """Cut time at fractions of the data's time span, or partition by a key if the query has one.

    Yield the list of cuts, which grows as the engine cuts.
    """
    cuts: list[Cut] = []

    def cut(spread: TimeHistogram, options: CutOptions) -> Cut:
        cuts.append(
            _by_key(options, buckets) if buckets and options.keys else _in_time(spread, options)
        )
        return cuts[-1]

    def _in_time(spread: TimeHistogram, options: CutOptions) -> Cut:
        low = options.begin
        high = min(spread.last, options.end)
        borders = {low + round((high - low) * place) for place in places}
        edges = sorted({low, options.end, *(t for t in borders if low < t <= high)})
        parts = (TaskPart(k, b, e) for k, (b, e) in enumerate(pairwise(edges)))
        return Cut(tuple(parts), ("a test",))

    with patch("streamsparql.spark.engine.cut", cut):
        yield cuts


def _by_key(options: CutOptions, count: int) -> Cut:
    assert options.end <= INFINITY
    parts = tuple(TaskPart(k, options.begin, options.end, k, count) for k in range(count))
    return Cut(parts, ("a test",), options.keys[count % len(options.keys)])
