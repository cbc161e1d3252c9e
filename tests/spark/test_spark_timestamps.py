"""The options of timestamps and of disorder on Spark: rows and rejects of the embedded engine."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from support.spark_session import XSD, rows_of

import streamsparql
from streamsparql.errors import DataWarning, SourceError
from streamsparql.sources import mapped
from streamsparql.spark.preparation import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = "http://e/s"
QUERY = streamsparql.compile(
    "PREFIX : <http://e/> SELECT * FROM STREAM :s WINDOW RANGE 1 MINUTE SLIDE 30 SECOND"
    " { ?x :p ?y OPTIONAL { ?x :q ?z } }"
)
START = 1_406_851_500
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
MAPPING = f"""PREFIX : <http://e/> PREFIX xsd: <{XSD}>
CONSTRUCT {{ ?x :p ?v ; :q ?n }}
WHERE {{ BIND(IRI(CONCAT("http://e/", ?id)) AS ?x) BIND(xsd:integer(?count) AS ?n)
        BIND(?at AS ?timestamp) }}"""


def both(spark: SparkSession, source: Any, **options: Any) -> tuple[Any, Any]:
    """Run the query on both engines; check that rows and rejects are equal, and the counts of files."""
    embedded = QUERY.run({S: source}, **options)
    on_spark = QUERY.run({S: source}, engine="spark", spark=spark, slabs=3, **options)
    assert rows_of(on_spark.to_arrow()) == rows_of(embedded.to_arrow())
    assert rows_of(embedded.to_arrow())

    def rejects(result: Any) -> list[Any]:
        return sorted((r.position, r.reason, r.lateness) for r in (*result.late, *result.rejected))

    assert rejects(on_spark) == rejects(embedded)
    if isinstance(source, str):
        assert on_spark.computation.notes().items == embedded.computation.notes().items
    return embedded, on_spark


def stamped(count: int, unit: str) -> list[tuple[str, str, str, int]]:
    size = TICKS[unit]
    return [
        (
            f"<http://e/{'abc'[k % 3]}>",
            f"<http://e/{'pq'[k % 2]}>",
            f'"{k}"',
            START * size + k * 5 * size,
        )
        for k in range(count)
    ]


@pytest.mark.parametrize(
    ("kind", "unit"),
    [("nq", "s"), ("parquet", "us"), ("ordered parquet", "ns"), ("frame", "ns"), ("memory", "s")],
)
def test_unit_is_recognised_as_in_the_embedded_engine(
    spark: SparkSession, kind: str, unit: str, tmp_path: Path
) -> None:
    items = stamped(40, unit)
    table = pa.table(
        dict(zip(["s", "p", "o", "t"], map(list, zip(*items, strict=True)), strict=True))
    )
    source: Any = items
    if kind == "nq":
        (tmp_path / "x.nq").write_text(
            "".join(f'{s} {p} {o} "{t}"^^<{XSD}integer> .\n' for s, p, o, t in items)
        )
        source = str(tmp_path / "x.nq")
    elif "parquet" in kind:
        if kind == "parquet":  # groups that overlap in time
            table = table.take(pa.array([*range(0, 40, 2), *range(1, 40, 2)]))
        parquet.write_table(table, tmp_path / "x.parquet", row_group_size=10)
        source = str(tmp_path / "x.parquet")
    elif kind == "frame":
        source = spark.createDataFrame(table)
        rows = rows_of(QUERY.on_spark(spark, {S: source}).toArrow())
        assert rows == rows_of(QUERY.run({S: items}).to_arrow())
        assert rows == rows_of(QUERY.on_spark(spark, {S: source}, time_unit=unit).toArrow())
        return
    delay = {"max_delay": 10**6} if kind == "parquet" else {}
    _, on_spark = both(spark, source, **delay)
    assert list(on_spark.run.recognised_units()) == [S]


def test_recognised_unit_is_said(spark: SparkSession) -> None:
    with pytest.warns(DataWarning, match="<http://e/s>: timestamps are read as seconds since 1970"):
        QUERY.run({S: stamped(9, "s")}, engine="spark", spark=spark).to_arrow()


def test_local_times_are_in_the_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    """An hour of local times around the end of summer time, and around its beginning."""
    for begin, kind in ((datetime(2014, 10, 26, 1), "parquet"), (datetime(2014, 3, 30, 1), "nq")):
        times = [begin + timedelta(minutes=10 * k) for k in range(12)]
        table = pa.table(
            {
                "s": [f"<http://e/{k}>" for k in range(12)],
                "p": ["<http://e/p>"] * 12,
                "o": ["<http://e/o>"] * 12,
                "t": times,
            }
        )
        parquet.write_table(table, tmp_path / "x.parquet", row_group_size=4)
        zone = {"time_zone": "Europe/Copenhagen", "max_delay": 3_600_000}
        lines = [
            f'<http://e/{k}> <http://e/p> <http://e/o> "{t.isoformat()}"^^<{XSD}dateTime> .\n'
            for k, t in enumerate(times)
        ]
        (tmp_path / "x.nq").write_text("".join(lines))
        both(spark, str(tmp_path / f"x.{kind}"), **zone)
    with pytest.raises(SourceError, match="time_zone does not apply to a DataFrame; convert"):
        QUERY.on_spark(spark, {S: spark.createDataFrame(table)}, time_zone="Europe/Copenhagen")


@pytest.mark.parametrize("kind", ["nq", "ordered parquet", "memory"])
def test_auto_sorts_the_whole_input(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    items = stamped(60, "ms")
    mixed = [items[k * 7 % 60] for k in range(60)]
    source: Any = mixed
    if kind == "nq":
        (tmp_path / "x.nq").write_text("".join(f"{s} {p} {o} <t/{t}> .\n" for s, p, o, t in mixed))
        source = str(tmp_path / "x.nq")
    elif kind == "ordered parquet":  # in order from group to group, not within a group
        mixed = [items[k // 20 * 20 + k * 7 % 20] for k in range(60)]
        columns = map(list, zip(*mixed, strict=True))
        table = pa.table(dict(zip(["s", "p", "o", "t"], columns, strict=True)))
        parquet.write_table(table, tmp_path / "x.parquet", row_group_size=20)
        source = str(tmp_path / "x.parquet")
    embedded, on_spark = both(spark, source, max_delay="auto")
    assert rows_of(embedded.to_arrow()) == rows_of(QUERY.run({S: items}).to_arrow())
    assert on_spark.late == []


def test_time_inside_the_message_is_the_stamp(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.ttl").write_text(
        "".join(
            f"<http://e/{k}> <http://e/p> {k} ; <http://e/at> {START + 5 * k} .\n"
            for k in range(40)
        )
    )
    both(spark, str(tmp_path / "x.ttl"), stamp_from="<http://e/at>")
    triples = [
        each
        for k in range(40)
        for each in (
            (f"<http://e/{k}>", "<http://e/p>", k),
            (f"<http://e/{k}>", "<http://e/at>", START + 5 * k),
        )
    ]
    both(spark, triples, stamp_from="<http://e/at>")
    columns = map(list, zip(*stamped(40, "s"), strict=True))
    table = pa.table(dict(zip(["s", "p", "o", "seen"], columns, strict=True)))
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=10)
    both(spark, str(tmp_path / "x.parquet"), stamp_from="seen")


def test_table_is_mapped_and_its_failed_cells_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        rows = [f"{k % 3},{k},{'n/a' if k % 10 == 3 else k},{START + k}" for k in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,v,count,at", *rows]) + "\n")
    embedded, on_spark = both(spark, mapped(tmp_path, MAPPING))
    (failed,), (same,) = embedded.failed_cells, on_spark.failed_cells
    assert (failed.rows, same.rows, same.expression) == (8, 8, "xsd:integer(?count)")
    with pytest.raises(SourceError, match=r'xsd:integer\(\?count\) has no value for "n/a"'):
        QUERY.run(
            {S: mapped(tmp_path, MAPPING)}, engine="spark", spark=spark, strict=True
        ).to_arrow()
    guessed = mapped(tmp_path)
    query = streamsparql.compile(
        f"PREFIX : <http://example.org/{tmp_path.name}#> SELECT ?v"
        " FROM STREAM <http://e/s> WINDOW RANGE 1 MINUTE FIXED { ?row :v ?v }"
    )
    on_spark = query.run({S: guessed}, engine="spark", spark=spark)
    assert rows_of(on_spark.to_arrow()) == rows_of(query.run({S: guessed}).to_arrow())


def test_records_in_memory_are_mapped(spark: SparkSession) -> None:
    records = [{"id": k % 3, "v": k, "count": k, "at": START + k} for k in range(30)]
    both(spark, mapped(records, MAPPING))
    both(spark, mapped([json.dumps(record) for record in records], MAPPING))


def test_prepared_files_are_in_milliseconds(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f'{s} {p} {o} "{t}"^^<{XSD}integer> .\n' for s, p, o, t in stamped(30, "us")]
    (tmp_path / "x.nq").write_text("".join(lines))
    for options in ({}, {"time_unit": "us"}):
        prepare(spark, str(tmp_path / "x.nq"), tmp_path / "y", overwrite=True, **options)
        table = parquet.read_table(tmp_path / "y")
        assert sorted(set(table["timestamp"].to_pylist()))[:2] == [
            START * 1000,
            START * 1000 + 5000,
        ]
