"""What the Spark engine asks of Spark, done in this process: tables in lists, and nothing more.

`Session` takes the place of a SparkSession. Its frames do what Spark promises and no more: a
shuffle brings rows in any order, sorted rows with equal keys come in any order, partitions come in
pieces of any size, and functions and what they hold are pickled. `cut_at` makes the engine cut time
where a test wants it.
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
    """A schema as Spark writes it.

    >>> schema_of("`a b` string, n long").names
    ['a b', 'n']
    """
    found = re.findall(r"(?:`((?:[^`]|``)+)`|(\w+)) (\w+)(?:, |$)", text)
    return pa.schema([(a.replace("``", "`") or b, TYPES[kind]) for a, b, kind in found])


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
    """A DataFrame: its partitions are computed when they are asked for."""

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
        """What a function gives of each partition; columns go by position, types must match."""
        declared = schema_of(schema)
        sent = pickle.dumps(function)

        def made() -> Parts:
            return [self._mapped(part, sent, declared) for part in self.parts]

        return Frame(self.session, declared, made)

    def _mapped(self, part: pa.Table, sent: bytes, declared: pa.Schema) -> pa.Table:
        if self.session.random.random() < 0.5:
            slab._SHARED_EXECUTIONS.clear()  # as in another worker
        found = []
        for batch in pickle.loads(sent)(self._pieces(part)):
            assert isinstance(batch, pa.RecordBatch), type(batch)
            assert batch.schema.types == declared.types, (batch.schema, declared)
            found.append(pa.RecordBatch.from_arrays(batch.columns, schema=declared))
        return pa.Table.from_batches(found, declared)

    def _pieces(self, part: pa.Table) -> Iterator[pa.RecordBatch]:
        at = 0
        while at < part.num_rows:
            size = self.session.random.choice([1, 2, 5, 10_000])
            yield from part.slice(at, size).combine_chunks().to_batches()
            at += size

    def unionAll(self, other: Frame) -> Frame:  # noqa: N802
        """The partitions of both."""
        assert self.schema.types == other.schema.types

        def made() -> Parts:
            return [*self.parts, *(part.cast(self.schema) for part in other.parts)]

        return Frame(self.session, self.schema, made)

    def where(self, condition: Column) -> Frame:
        """The rows for which a condition holds."""

        def made() -> Parts:
            return [part.filter(condition.holds(part)) for part in self.parts]

        return Frame(self.session, self.schema, made)

    def repartitionById(self, count: int, column: Column) -> Frame:  # noqa: N802
        """The rows in the partitions that a column tells, in any order."""

        def made() -> Parts:
            rows = self.session.shuffled(self.toArrow())
            targets = rows.column(column.name).to_numpy()
            return [rows.filter(pa.array(targets % count == k)) for k in range(count)]

        return Frame(self.session, self.schema, made)

    def sortWithinPartitions(self, *names: str) -> Frame:  # noqa: N802
        """Each partition sorted, rows with equal keys in any order."""
        keys = [(name, "ascending") for name in names]

        def made() -> Parts:
            return [self.session.shuffled(part).sort_by(keys) for part in self.parts]

        return Frame(self.session, self.schema, made)

    def toArrow(self) -> pa.Table:  # noqa: N802
        """All rows."""
        return pa.concat_tables(self.parts) if self.parts else self.schema.empty_table()


class Context(NamedTuple):
    """What is asked of a SparkContext."""

    defaultParallelism: int = 2  # noqa: N815


class Session:
    """In place of a SparkSession."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.sparkContext = Context()

    def range(self, start: int, end: int, step: int, count: int) -> Frame:
        """Numbers, over so many partitions."""
        assert step == 1
        schema = pa.schema([("id", pa.int64())])
        edges = [start + (end - start) * k // count for k in range(count + 1)]
        ids = [list(range(b, e)) for b, e in pairwise(edges)]
        return Frame(self, schema, lambda: [pa.table({"id": x}, schema=schema) for x in ids])

    def createDataFrame(self, table: Any, schema: str) -> Frame:  # noqa: N802
        """A table as a frame, in some partitions."""
        declared = schema_of(schema)
        table = declared.empty_table() if table == [] else table
        assert table.schema.types == declared.types

        def made() -> Parts:
            at = self.random.randint(0, table.num_rows)
            return [table.slice(0, at).cast(declared), table.slice(at).cast(declared)]

        return Frame(self, declared, made)

    def shuffled(self, rows: pa.Table) -> pa.Table:
        """The rows in any order."""
        order = list(range(rows.num_rows))
        self.random.shuffle(order)
        return rows.take(pa.array(order, pa.int64()))


@contextmanager
def cut_at(places: Sequence[float], buckets: int = 0) -> Iterator[list[Cut]]:
    """Time is cut at these shares of the data's time, or its items divided by a key where one is.

    Gives the cuts that were made.
    """
    made: list[Cut] = []

    def cut(spread: TimeHistogram, options: CutOptions) -> Cut:
        made.append(
            _by_key(options, buckets) if buckets and options.keys else _in_time(spread, options)
        )
        return made[-1]

    def _in_time(spread: TimeHistogram, options: CutOptions) -> Cut:
        low = options.begin
        high = min(spread.last, options.end)
        borders = {low + round((high - low) * place) for place in places}
        edges = sorted({low, options.end, *(t for t in borders if low < t <= high)})
        parts = (TaskPart(k, b, e) for k, (b, e) in enumerate(pairwise(edges)))
        return Cut(tuple(parts), ("a test",))

    with patch("streamsparql.spark.engine.cut", cut):
        yield made


def _by_key(options: CutOptions, count: int) -> Cut:
    assert options.end <= INFINITY
    parts = tuple(TaskPart(k, options.begin, options.end, k, count) for k in range(count))
    return Cut(parts, ("a test",), options.keys[count % len(options.keys)])
