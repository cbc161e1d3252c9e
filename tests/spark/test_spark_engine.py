"""The Spark engine returns the rows of the embedded engine: its test cases, on Spark.

Each query of `cases/*.rq`, whose answers `tests/run/test_engine_pyoxigraph.py` compares with those
of a store, runs with its time cut into 3 slabs, and into 1 or 17 or as the engine cuts it. Streams
are in memory, files and DataFrames; some runs have a report. Each row must be a row of the embedded
engine. With `-m long`, each query runs in all cuts and with all reports. A sample of the W3C's
evaluation tests runs, too.

Not covered here: errors of both engines (the embedded engine's own tests), and cuts at arbitrary
instants (`test_spark_slabs.py`, in this process).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from _pytest.mark import ParameterSet
from support import w3c
from support.external_data import over_data
from support.spark_session import embedded, item_table, nquads, rows_of
from support.store_cases import ALL, random_data
from support.w3c_engine import (
    HOUR,
    NOW,
    STREAM,
    answer_of,
    evaluated,
    labelled,
    named_graphs,
    streamed_text,
)

import streamsparql
from streamsparql.run.input import RunInput
from streamsparql.run.reports import reporting
from streamsparql.run.result import Result
from streamsparql.run.rows import Row
from streamsparql.spark.engine import SparkRun
from streamsparql.spark.spark_result import SparkComputation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLABS = (1, 3, 17, None)
SOURCES = ("memory", "frame", "parquet", "lines")
REPORTS = (("rstream", 5), ("istream", 4), ("dstream", 3), ("istream", None), ("dstream", None))


def source(kind: str, spark: SparkSession, items: Any, folder: Path) -> Any:
    """Return a stream as a source of a kind; a DataFrame has the order of items as `sequence`."""
    match kind:
        case "memory":
            return items
        case "frame":
            rows = item_table(items)
            numbers = pa.array(range(len(rows)), pa.int64())
            return spark.createDataFrame(rows.append_column("sequence", numbers))
        case "parquet":
            file = folder / "items.parquet"
            parquet.write_table(item_table(items), file, row_group_size=4)
        case _:
            file = folder / "items.nq"
            file.write_text(nquads(items))
    return file


def sources(
    kind: str, spark: SparkSession, streams: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Return all streams as sources of a kind."""
    sources_by_name = {}
    for k, (name, items) in enumerate(streams.items()):
        place = folder / f"{kind}{k}"
        place.mkdir()
        sources_by_name[name] = source(kind, spark, items, place)
    return sources_by_name


class Way(NamedTuple):
    """A way to run a query on Spark."""

    slabs: int | None
    source: str
    report: tuple[str, int | None] | None = None


def some_ways(number: int) -> list[Way]:
    """Return two or three ways for a case; all cases cover every kind of source in every cut."""
    kinds = [SOURCES[(number + k) % len(SOURCES)] for k in range(3)]
    ways = [Way(3, kinds[0]), Way((1, 17, None)[number % 3], kinds[1])]
    if number % 3 == 0:
        ways.append(Way(2, kinds[2], REPORTS[number // 3 % len(REPORTS)]))
    return ways


def all_ways(number: int) -> list[Way]:
    """Return a way for every number of slabs and every report."""
    kinds = [SOURCES[(number + k) % len(SOURCES)] for k in range(10)]
    rows = [Way(slabs, kinds[k]) for k, slabs in enumerate(SLABS)]
    return rows + [Way(3, kinds[k + 1], report) for k, report in enumerate(REPORTS)]


def check(number: int, ways: list[Way], spark: SparkSession, folder: Path) -> None:
    """Check that all ways return the embedded engine's rows; Spark runs them as one job."""
    query = streamsparql.compile(ALL[number].text)
    data = random_data(ALL[number], Random(number)).of(query, every_graph=False)
    frames: dict[str, DataFrame] = {}
    expected: dict[str, list[Any]] = {}
    for k, way in enumerate(ways):
        place = folder / str(k)
        place.mkdir()
        streams = sources(way.source, spark, data.streams, place)
        report = None if way.report is None else reporting(query, *way.report)
        run_input = RunInput(streams, data.graph, data.graphs, started=0)
        run = SparkRun(spark, query, run_input, slabs=way.slabs, report=report)
        frames[str(way)] = run.frame()
        expected[str(way)] = embedded(query, RunInput(*data, started=0), report)
    rows_by_way = collect(frames)
    for name, rows in expected.items():
        assert rows_by_way[name] == rows, f"{name}, {len(rows)} rows"


def collect(frames: Mapping[str, DataFrame]) -> dict[str, list[Any]]:
    """Return the rows of each frame, which one job computes."""
    from pyspark.sql import functions

    union: DataFrame | None = None
    for name, frame in frames.items():
        if "instant" in frame.columns:
            frame = frame.withColumn("end", frame["instant"])
        named = frame.withColumn("way", functions.lit(name))
        union = named if union is None else union.unionAll(named)
    assert union is not None
    rows = union.toArrow()
    ways = rows.column("way").to_pylist()
    rows_by_way = {}
    for name, frame in frames.items():
        mask = pa.array([way == name for way in ways], pa.bool_())
        rows_of_way = rows.filter(mask).drop_columns(["way"])
        if "instant" in frame.columns:
            rows_of_way = rows_of_way.drop_columns(["end"])
        rows_by_way[name] = rows_of(rows_of_way)
    return rows_by_way


over_cases = pytest.mark.parametrize("number", range(len(ALL)), ids=[case.name for case in ALL])


@over_cases
def test_spark_returns_the_rows_of_the_embedded_engine(
    number: int, spark: SparkSession, tmp_path: Path
) -> None:
    check(number, some_ways(number), spark, tmp_path)


@pytest.mark.long
@over_cases
def test_spark_returns_the_rows_of_the_embedded_engine_in_all_cuts(
    number: int, spark: SparkSession, tmp_path: Path
) -> None:
    check(number, all_ways(number), spark, tmp_path)


# -- Results as users see them --------------------------------------------------------------------

ITEMS = [((f"<http://e/{'abc'[k % 3]}>", "<http://e/p>", f'"{k % 7}"'), k) for k in range(60)]
ORDERED = """SELECT ?x ?y FROM STREAM <s> WINDOW RANGE 12 MS SLIDE 3 MS
WHERE { ?x <http://e/p> ?y } ORDER BY DESC(?y) ?x LIMIT 5"""


def by_start(row: Row) -> tuple[int, int, str]:
    """Return a key that orders rows with the same start, whose order is not defined."""
    return row.start, row.end, str(row)


def test_a_result_of_run_is_the_result_of_the_embedded_engine(spark: SparkSession) -> None:
    query = streamsparql.compile(ORDERED)
    ours = query.run({"s": ITEMS}, engine="spark", spark=spark, slabs=3)
    theirs = query.run({"s": ITEMS})
    assert sorted(ours, key=by_start) == sorted(theirs, key=by_start)
    assert [row.start for row in ours] == [row.start for row in theirs]
    for t in (0, 7, 30, 65):
        assert ours.snapshot(t) == theirs.snapshot(t)
    assert list(ours.report("istream", 5)) == list(theirs.report("istream", 5))
    assert rows_of(ours.to_arrow()) == rows_of(theirs.to_arrow())


def test_a_query_with_no_rows_has_its_columns(spark: SparkSession) -> None:
    query = streamsparql.compile(ORDERED)
    for slabs, start in ((None, None), (3, 1_000)):
        frame = query.on_spark(spark, {"s": []}, slabs=slabs, start=start)
        assert frame.columns == ["x", "y", "start", "end"]
        assert frame.count() == 0


# -- The W3C's tests ------------------------------------------------------------------------------

EVERY = 25


def _sampled(data: Path) -> Iterator[ParameterSet]:
    yield from list(evaluated(data))[::EVERY]


@pytest.mark.parametrize("case", over_data(_sampled))
def test_spark_returns_the_answers_of_the_w3c_over_a_stream(
    case: w3c.Case, spark: SparkSession
) -> None:
    plain = streamsparql.compile(case.text, base=case.query)
    data = labelled(w3c.inputs(case, plain))
    triples, graphs = sorted(data.graph, key=str), named_graphs(data)
    if plain.translation.dataset.graphs is not None:
        run_input = RunInput({}, triples, graphs, started=NOW)
        snapshot = Result(SparkComputation(plain, run_input, spark, None)).snapshot(0)
        difference = w3c.difference(case, plain, answer_of(plain, snapshot), w3c.expected(case))
        assert not difference, difference
        return
    query = streamsparql.compile(streamed_text(case, plain, graphs), base=case.query)
    stream = [(triple, HOUR + k * 1000 // 3) for k, triple in enumerate(triples)]
    run_input = RunInput({STREAM: stream}, None, graphs, start=0, started=NOW)
    result = Result(SparkComputation(query, run_input, spark, 3))
    ours = answer_of(query, result.snapshot(2 * HOUR - 1))
    difference = w3c.difference(case, query, ours, w3c.expected(case))
    assert not difference, difference
