"""Failures while a query runs on Spark: a worker that dies, a part that cannot be computed."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from support.spark_session import ITEMS, item_table, rows_of

import streamsparql
from streamsparql.errors import EngineError, StreamSparqlError
from streamsparql.run.input import RunInput
from streamsparql.spark.engine import SparkRun
from streamsparql.spark.failures import raising_task_errors
from streamsparql.spark.file_slices import RowGroup
from streamsparql.spark.stream_inputs import OrderedFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = streamsparql.compile("""PREFIX : <http://e/>
SELECT * FROM STREAM :s WINDOW RANGE 9 MS SLIDE 3 MS WHERE { ?x :p ?y . ?x :q ?z }""")
S = "http://e/s"


def die_once(marker: str) -> None:
    """Kill this process at the first call, as a system out of memory would."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class Groups:
    """A stream's row groups that call `then` when a task has read the first of them."""

    def __init__(self, groups: Sequence[RowGroup], then: Callable[[], object]) -> None:
        self.groups, self.then = groups, then

    def __iter__(self) -> Iterator[RowGroup]:
        yield from self.groups[:9]
        self.then()
        yield from self.groups[9:]


def over(spark: SparkSession, folder: Path, then: Callable[[], object]) -> SparkRun:
    """Return a run over a file, in two parts; `then` is called in the middle of a part."""
    run = SparkRun(spark, QUERY, RunInput({S: _file(folder)}, started=0), slabs=2)
    (stream,) = run.streams
    assert isinstance(stream, OrderedFiles)
    groups: Any = Groups(stream.groups, then)
    run.streams = [replace(stream, groups=groups)]
    return run


def _file(folder: Path) -> Path:
    file = folder / "items.parquet"
    parquet.write_table(item_table(ITEMS), file, row_group_size=20)
    return file


@pytest.fixture(autouse=True)
def _sent_by_value() -> Iterator[None]:
    """Pickle this module by value, since workers cannot import it."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def test_a_worker_that_dies_in_the_middle_of_a_part_is_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    marker = tmp_path / "died"
    run = over(spark, tmp_path, partial(die_once, str(marker)))
    rows = rows_of(run.frame().toArrow())
    assert marker.exists()
    assert rows == rows_of(QUERY.run({S: ITEMS}).to_arrow())


def test_a_worker_that_dies_while_it_packs_items_is_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    marker = str(tmp_path / "died")

    def dying(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if (batch.column("timestamp").to_numpy() > 100).any():
                die_once(marker)
            yield batch

    frame = spark.createDataFrame(item_table(ITEMS)).repartition(3)
    frame = frame.mapInArrow(dying, frame.schema)
    # The survey of the frame runs it, too; the worker must die later, when it packs items.
    (tmp_path / "died").touch()
    rows = QUERY.on_spark(spark, {S: frame}, slabs=3)
    (tmp_path / "died").unlink()
    assert rows_of(rows.toArrow()) == rows_of(QUERY.run({S: ITEMS}).to_arrow())
    assert (tmp_path / "died").exists()


def test_a_part_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    file = _file(tmp_path)
    group = parquet.ParquetFile(file).metadata.row_group(7)
    data = bytearray(file.read_bytes())
    places = [group.column(k) for k in range(group.num_columns)]
    first = min(place.dictionary_page_offset or place.data_page_offset for place in places)
    data[first : first + 200] = b"\xff" * 200
    file.write_bytes(data)
    result = QUERY.run({S: file}, engine="spark", spark=spark, slabs=3)
    with pytest.raises(StreamSparqlError, match=r"part 2 of 3, \d+ ms to \d+ ms.*") as caught:
        list(result)
    assert str(file) in str(caught.value)


def break_next_join() -> None:
    """Make the next step of a join in this process fail, and none after it."""
    from streamsparql.physical.operators.sliced import Sliced

    original = Sliced.step

    def fails(*arguments: object) -> Any:
        Sliced.step = original  # type: ignore[method-assign]
        raise MemoryError("no room")

    Sliced.step = fails  # type: ignore[method-assign]


def test_a_part_that_cannot_be_computed_names_its_operator_and_its_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = over(spark, tmp_path, break_next_join)
    with pytest.raises(EngineError) as caught, raising_task_errors():
        run.frame().toArrow()
    message = str(caught.value)
    assert re.match(r"part [12] of 2, \d+ ms to (\d+ ms|the end), in Join .*: MemoryError", message)
