"""`prepare`: a history sorted by time, once, and the columns of such files that are not read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow.parquet as parquet
import pytest
from support.spark_session import nquads, rows_of

import streamsparql
from streamsparql.errors import EngineError, SourceError
from streamsparql.spark import prepare
from streamsparql.spark.file_slices import paths_of
from streamsparql.spark.stream_inputs import FrameInput, OrderedFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "SELECT ?s ?o FROM STREAM <s> WINDOW RANGE 9 MS SLIDE 3 MS { ?s <p> ?o }"
COUNT = "SELECT (COUNT(*) AS ?n) FROM STREAM <s> WINDOW RANGE 9 MS SLIDE 3 MS { ?s <p> ?o }"
ITEMS = [((f"<a{k % 3}>", "<p>" if k % 4 else "<q>", f'"{k}"'), k // 2) for k in range(200)]


@pytest.fixture
def unordered(tmp_path: Path) -> Path:
    """Write the items into two files, shuffled, with a malformed line."""
    shuffled = Random(1).sample(ITEMS, len(ITEMS))
    folder = tmp_path / "history"
    folder.mkdir()
    (folder / "one.nq").write_text(nquads(shuffled[:90]) + "no line\n")
    (folder / "two.nq").write_text(nquads(shuffled[90:]))
    return folder


def test_prepared_files_have_all_items_in_order(
    spark: SparkSession, unordered: Path, tmp_path: Path
) -> None:
    prepared = prepare(spark, unordered, tmp_path / "ordered")
    assert [(r.position, r.item) for r in prepared.rejects] == [(91, "no line")]
    tables = [parquet.read_table(path) for path in paths_of(prepared.path)]
    stamps = [t for table in tables for t in table.column("timestamp").to_pylist()]
    assert stamps == sorted(t for _, t in ITEMS)
    query = streamsparql.compile(QUERY)
    result = query.run(prepared.path, engine="spark", spark=spark, slabs=3)
    assert isinstance(result.run.streams[0], OrderedFiles)  # type: ignore[attr-defined]
    assert rows_of(result.to_arrow()) == rows_of(query.run(ITEMS).to_arrow())


@pytest.mark.parametrize("kind", ["files", "frame"])
def test_columns_that_a_query_does_not_use_are_not_read(
    spark: SparkSession, unordered: Path, tmp_path: Path, kind: str
) -> None:
    prepared = prepare(spark, unordered, tmp_path / "ordered")
    source = prepared.path if kind == "files" else spark.read.parquet(prepared.path)
    query = streamsparql.compile(COUNT)
    result = query.run(source, engine="spark", spark=spark, slabs=3)
    assert rows_of(result.to_arrow()) == rows_of(query.run(ITEMS).to_arrow())
    stream = result.run.streams[0]  # type: ignore[attr-defined]
    if isinstance(stream, FrameInput):
        assert stream.frame.columns == ["predicate", "timestamp"]


def test_late_items_are_rejected_with_a_max_delay(
    spark: SparkSession, unordered: Path, tmp_path: Path
) -> None:
    prepared = prepare(spark, unordered, tmp_path / "ordered", max_delay=20)
    late = [reject for reject in prepared.rejects if "late" in reject.reason]
    rows = sum(parquet.read_table(path).num_rows for path in paths_of(prepared.path))
    assert late
    assert rows + len(late) == len(ITEMS)
    with pytest.raises(SourceError):
        prepare(spark, unordered, tmp_path / "strict", strict=True)


def test_a_folder_that_is_not_empty_is_not_overwritten(
    spark: SparkSession, unordered: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "ordered"
    folder.mkdir()
    (folder / "mine").write_text("")
    with pytest.raises(SourceError, match="the folder is not empty"):
        prepare(spark, unordered, folder)
    with pytest.raises(EngineError, match="max_delay"):
        prepare(spark, unordered, tmp_path / "other", max_delay=-1)


def test_preparing_into_a_file_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "b.nq").write_text("")
    with pytest.raises(SourceError, match=r"b\.nq: not a folder"):
        prepare(spark, tmp_path / "b.nq", tmp_path / "b.nq")


def test_the_command_prepares_files(spark: SparkSession, unordered: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "ordered")
    command = [sys.executable, "-m", "streamsparql", "prepare", str(unordered), "-o", folder]
    done = subprocess.run(
        [*command, "--master", "local[1]"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "no line" in done.stderr
    assert sum(parquet.read_table(path).num_rows for path in paths_of(folder)) == len(ITEMS)
