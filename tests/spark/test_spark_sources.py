"""Sources on Spark: files in every format, folders, DataFrames with columns of many types.

Over each, Spark returns the rows of the embedded engine over the same items, and rejects the same.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from support.spark_session import XSD, item_table, nquads, rows_of

import streamsparql
from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources.encoder import Encoder
from streamsparql.spark.file_slices import Split, split_chunks, splits_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = tuple[tuple[str, str, str], int]

QUERY = streamsparql.compile("""PREFIX : <http://e/>
SELECT * FROM STREAM :s WINDOW RANGE 9 MS SLIDE 3 MS WHERE { ?x :p ?y OPTIONAL { ?x :q ?z } }""")
LAST = streamsparql.compile(
    "PREFIX : <http://e/> SELECT * FROM STREAM :s WINDOW ELEMS 5 WHERE { ?x :p ?y }"
)
S = "http://e/s"
BASE = 1_700_000_000_000


def items(count: int = 60, base: int = 0) -> list[Item]:
    """Return items of four subjects, two at each instant."""
    values = ["<http://e/a>", '"x, \\"y\\" z"', '"é\\n"@fr', f'"7"^^<{XSD}integer>', "_:b"]
    return [
        (
            (f"<http://e/{'abcd'[k % 4]}>", f"<http://e/{'ppq'[k % 3]}>", values[k % 5]),
            base + k // 2,
        )
        for k in range(count)
    ]


def rows(query: streamsparql.Query, spark: SparkSession, source: Any, **options: Any) -> list[Any]:
    return rows_of(query.on_spark(spark, {S: source}, **options).toArrow())


def expected(query: streamsparql.Query, source: Any, **options: Any) -> list[Any]:
    rows_embedded = rows_of(query.run({S: source}, **options).to_arrow())
    assert rows_embedded
    return rows_embedded


# -- Files --------------------------------------------------------------------------------------


def _csv(stream: Iterable[Item]) -> str:
    quoted = [
        [f'"{x.replace(chr(34), chr(34) * 2)}"' for x in item] + [str(t)] for item, t in stream
    ]
    return "s,p,o,t\n" + "".join(",".join(row) + "\n" for row in quoted)


def _json_lines(stream: Iterable[Item]) -> str:
    return "".join(
        json.dumps(dict(zip("spo", item, strict=True), t=t)) + "\n" for item, t in stream
    )


FORMATS: dict[str, Callable[[Iterable[Item]], str]] = {
    "nq": nquads,
    "csv": _csv,
    "jsonl": _json_lines,
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_text_file_is_read(kind: str, packed: bool, spark: SparkSession, tmp_path: Path) -> None:
    data = FORMATS[kind](items()).encode()
    file = tmp_path / f"items.{kind}{'.gz' if packed else ''}"
    file.write_bytes(gzip.compress(data) if packed else data)
    query = LAST if packed else QUERY
    with patch("streamsparql.spark.file_slices.SPLIT", 1_500):
        assert (len(splits_of([str(file)])) > 1) == (kind != "csv" and not packed)
        assert rows(query, spark, file, slabs=2) == expected(query, file)


def test_each_line_is_read_once_wherever_a_file_is_split(tmp_path: Path) -> None:
    for end, last in (("\n", ""), ("\r\n", ""), ("\n", "\n"), ("\n\n", "")):
        text = nquads([(("<a>", "<b>", f'"{k}"'), k) for k in range(4)], end)
        text = text.removesuffix(end) if not last else text
        file = tmp_path / "items.nq"
        file.write_text(text, newline="")
        size = file.stat().st_size
        whole = _items_of([Split(str(file))])
        assert len(whole) == 4
        for at in range(1, size):
            halves = [Split(str(file), 0, at), Split(str(file), at, size)]
            assert _items_of(halves) == whole, f"{end!r}, at {at} of {size}"


def _items_of(splits: list[Split]) -> list[Any]:
    items_as_text = []
    for split in splits:
        terms = TermDictionary()
        for chunk in split_chunks(split, Encoder("<s>", terms), 3):
            assert not chunk.rejects
            columns = [terms.texts(ids).to_pylist() for ids in (chunk.s, chunk.p, chunk.o)]
            items_as_text += zip(*columns, chunk.end.tolist(), strict=True)
    return items_as_text


def test_a_folder_of_files_is_one_stream(spark: SparkSession, tmp_path: Path) -> None:
    stream = items()
    for k in range(3):
        (tmp_path / f"{k}.nq").write_text(nquads(stream[k * 20 : k * 20 + 20]))
    (tmp_path / "_SUCCESS").touch()
    for query in (QUERY, LAST):
        assert rows(query, spark, tmp_path, slabs=3) == expected(query, stream)
    assert rows(QUERY, spark, str(tmp_path / "[01].nq")) == expected(QUERY, stream[:40])


def test_late_and_rejected_items_of_files_are_listed(spark: SparkSession, tmp_path: Path) -> None:
    stream = items()
    stream[30] = (stream[30][0], 2)
    stream[41], stream[43] = stream[43], stream[41]
    text = nquads(stream).splitlines(keepends=True)
    text[20] = "<http://e/a> <http://e/p> no term .\n"
    file = tmp_path / "items.nq"
    file.write_text("".join(text))
    for delay in (0, 1, 40):
        with patch("streamsparql.spark.file_slices.SPLIT", 1_000):
            ours = QUERY.run({S: file}, engine="spark", spark=spark, slabs=2, max_delay=delay)
            ours.to_arrow()
        theirs = QUERY.run({S: file}, max_delay=delay)
        assert rows_of(ours.to_arrow()) == rows_of(theirs.to_arrow())
        assert sorted(map(str, ours.late)) == sorted(map(str, theirs.late))
        assert sorted(map(str, ours.rejected)) == sorted(map(str, theirs.rejected))
    with pytest.raises(SourceError, match=r"items\.nq, line 21: not a line"):
        list(QUERY.run({S: file}, engine="spark", spark=spark, strict=True))


def test_a_wrong_timestamp_at_the_end_of_a_split_rejects_no_other_item(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = nquads(items()).splitlines(keepends=True)
    lines.insert(30, nquads([(items()[0][0], 10**14)]))
    file = tmp_path / "items.nq"
    file.write_text("".join(lines))
    with patch("streamsparql.spark.file_slices.SPLIT", len("".join(lines[:31]).encode())):
        ours = QUERY.run({S: file}, engine="spark", spark=spark, slabs=2)
        theirs = QUERY.run({S: file})
        assert rows_of(ours.to_arrow()) == rows_of(theirs.to_arrow())
        assert [r.reason for r in ours.rejected] == [r.reason for r in theirs.rejected]
        assert (len(ours.rejected), ours.late) == (1, [])


# -- Parquet ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["ordered", "unordered", "within groups"])
def test_a_parquet_file_is_read(order: str, spark: SparkSession, tmp_path: Path) -> None:
    stream = items()
    if order == "unordered":
        stream = stream[20:] + stream[:20]
    elif order == "within groups":
        stream = [
            x for k in range(0, 60, 10) for x in (*stream[k : k + 4], *stream[k + 4 : k + 10][::-1])
        ]
    file = tmp_path / "items.parquet"
    parquet.write_table(item_table(stream, "s p o t"), file, row_group_size=10)
    for query, slabs in ((QUERY, 3), (QUERY, None), (LAST, 3)):
        for delay in (0, 2):
            ours = rows(query, spark, file, slabs=slabs, max_delay=delay)
            assert ours == expected(query, file, max_delay=delay), (slabs, delay)


# -- DataFrames ---------------------------------------------------------------------------------


def test_a_data_frame_may_have_other_column_names(spark: SparkSession) -> None:
    table = item_table(items(), "S P O T").append_column("other`s", pa.array(range(60)))
    frame = spark.createDataFrame(table)
    assert rows(QUERY, spark, frame, slabs=3) == expected(QUERY, items())


def test_a_sequence_orders_items_of_a_data_frame(spark: SparkSession) -> None:
    stream = items()
    table = item_table(stream).append_column("sequence", pa.array(range(60)))
    frame = spark.createDataFrame(table).repartition(3)
    assert rows(LAST, spark, frame, slabs=3) == expected(LAST, stream)
    by_terms = sorted(stream, key=lambda item: (item[1], item[0]))
    shuffled = spark.createDataFrame(item_table(stream)).repartition(3)
    assert rows(LAST, spark, shuffled, slabs=3) == expected(LAST, by_terms)


def _stamps(kind: str) -> pa.Array:
    times = [BASE + k // 2 for k in range(60)]
    moments = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=t) for t in times]
    match kind:
        case "timestamp":
            return pa.array(moments, pa.timestamp("us", "UTC"))
        case "timestamp_ntz":
            return pa.array([m.replace(tzinfo=None) for m in moments], pa.timestamp("us"))
        case "dates":
            return pa.array([m.isoformat(timespec="milliseconds") for m in moments])
        case "literals":
            return pa.array([f'"{t}"^^<{XSD}integer>' for t in times])
    return pa.array(times)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "dates", "literals"])
def test_a_data_frame_may_have_timestamps_of_any_type(kind: str, spark: SparkSession) -> None:
    table = item_table(items(base=BASE))
    frame = spark.createDataFrame(table.set_column(3, "timestamp", _stamps(kind)))
    assert rows(QUERY, spark, frame, slabs=3) == expected(QUERY, items(base=BASE))


def test_rejected_rows_of_a_data_frame_are_listed(spark: SparkSession) -> None:
    table = item_table(items())
    columns = [table.column(k).to_pylist() for k in range(4)]
    columns[0][3], columns[2][6], columns[3][9], columns[3][12] = None, "no term", None, -5
    wrong = pa.table(columns, table.schema)
    right = [x for k, x in enumerate(items()) if k not in (3, 6, 9, 12)]
    frame = spark.createDataFrame(wrong)
    result = QUERY.run({S: frame}, engine="spark", spark=spark, slabs=2)
    assert rows_of(result.to_arrow()) == expected(QUERY, right)
    theirs = QUERY.run({S: wrong})
    list(theirs)
    assert sorted(r.reason for r in result.rejected) == sorted(r.reason for r in theirs.rejected)
    assert (len(result.rejected), result.late) == (4, [])
    with pytest.raises(streamsparql.StreamSparqlError):
        list(QUERY.run({S: frame}, engine="spark", spark=spark, slabs=2, strict=True))


@pytest.mark.parametrize("kind", ["double", "float", "decimal", "date"])
def test_numbers_and_dates_as_timestamps_are_the_same_on_both_engines(
    kind: str, spark: SparkSession
) -> None:
    stamps: list[Any] = [float(k) for k in range(60)]
    stamps[7], stamps[20], stamps[21] = 7.5, None, -1.0
    if kind in ("double", "float"):
        stamps[59] = float("nan")
        column = pa.array(stamps, pa.float64() if kind == "double" else pa.float32())
    elif kind == "decimal":
        column = pa.array([None if t is None else Decimal(t) for t in stamps], pa.decimal128(12, 2))
    else:
        column = pa.array([k // 2 for k in range(60)], pa.int32()).cast(pa.date32())
    table = item_table(items()).set_column(3, "timestamp", column)
    theirs = QUERY.run({S: table})
    ours = QUERY.run({S: spark.createDataFrame(table)}, engine="spark", spark=spark, slabs=2)
    assert rows_of(ours.to_arrow()) == rows_of(theirs.to_arrow()) != []
    assert sorted(r.reason for r in ours.rejected) == sorted(r.reason for r in theirs.rejected)
    assert len(ours.rejected) == {"double": 4, "float": 4, "decimal": 3, "date": 0}[kind]


def test_iris_with_escapes_are_the_same_iris(spark: SparkSession) -> None:
    stream = [
        ((s.replace("/a>", "/\\u0061>"), p.replace("/p>", "/\\u0070>"), o), t)
        for (s, p, o), t in items()
    ]
    frame = spark.createDataFrame(item_table(stream))
    assert rows(QUERY, spark, frame, slabs=3) == expected(QUERY, items())


def test_columns_of_other_types_than_terms_are_errors(spark: SparkSession) -> None:
    table = item_table(items())
    numbers = table.set_column(2, "object", pa.array(range(60)))
    with pytest.raises(SourceError, match="object"):
        QUERY.on_spark(spark, {S: spark.createDataFrame(numbers)})
    stamps = table.set_column(3, "timestamp", pa.array([True] * 60))
    with pytest.raises(SourceError, match="timestamp"):
        QUERY.on_spark(spark, {S: spark.createDataFrame(stamps)})
    with pytest.raises(SourceError):
        QUERY.on_spark(spark, {S: spark.createDataFrame(table.drop_columns(["object"]))})


@pytest.mark.parametrize("slabs", [1, 2])
def test_with_strict_a_row_without_a_timestamp_is_an_error(spark: SparkSession, slabs: int) -> None:
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o }")
    rows = [("<a>", "<p>", '"1"', 5), ("<a>", "<p>", '"2"', None), ("<a>", "<p>", '"3"', 20)]
    frame = spark.createDataFrame(rows, "s string, p string, o string, t long")
    assert len(list(query.run(frame, engine="spark", spark=spark, slabs=slabs))) == 2
    with pytest.raises(SourceError, match="no valid timestamp"):
        list(query.run(frame, engine="spark", spark=spark, slabs=slabs, strict=True))


def test_with_strict_a_late_row_of_a_row_group_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s <p> ?o }")
    items = [(("<a>", "<p>", f'"{t}"'), t) for t in (5, 12, 8, 20)]
    parquet.write_table(item_table(items), tmp_path / "items.parquet")
    source = tmp_path / "items.parquet"
    assert len(list(query.run(source, engine="spark", spark=spark))) == 3
    with pytest.raises(SourceError, match="late"):
        list(query.run(source, engine="spark", spark=spark, strict=True))
    assert len(list(query.run(source, engine="spark", spark=spark, strict=True, max_delay=4))) == 4
