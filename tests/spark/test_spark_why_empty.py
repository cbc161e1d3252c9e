"""An empty result of Spark says why: from the first items of its sources, read in the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.spark_session import ITEMS, item_table

import streamsparql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = "SELECT * FROM STREAM <http://e/s> WINDOW RANGE 9 MS FIXED "
TYPO = TEXT + "{ ?x <http://e/P> ?v }"
REASON = "no rows: nothing matches ?x <http://e/P> ?v; did you mean <http://e/p>?"


def why(text: str, spark: SparkSession, source: Any) -> Any:
    """Return why a result that Spark computes is empty."""
    return streamsparql.compile(text).run(source, engine="spark", spark=spark, slabs=2).why_empty()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file with the items."""
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format
    lines = (f"{' '.join(triple)} {number(t)} .\n" for triple, t in ITEMS)
    (path := tmp_path / "s.nq").write_text("".join(lines))
    return path


def test_files_frames_and_items_in_memory_are_read_again(spark: SparkSession, file: Path) -> None:
    frame = spark.createDataFrame(item_table(ITEMS))
    for source in (str(file), frame, [(*triple, t) for triple, t in ITEMS]):
        reason = why(TYPO, spark, source)
        assert str(reason).splitlines()[0] == REASON
        assert reason.notes == ()


def test_a_result_with_rows_has_no_reasons(spark: SparkSession, file: Path) -> None:
    assert not why(TEXT + "{ ?x <http://e/p> ?v }", spark, str(file))


def test_an_answer_that_is_never_true_has_a_reason(spark: SparkSession, file: Path) -> None:
    ask = TYPO.replace("SELECT *", "ASK")
    assert str(why(ask, spark, str(file))).startswith("false at every instant: nothing matches")
    assert not why(ask.replace("/P>", "/p>"), spark, str(file))


def test_without_sources_to_read_again_the_reason_is_not_known(spark: SparkSession) -> None:
    def items() -> Iterator[tuple[str, str, str, int]]:
        return ((*triple, t) for triple, t in ITEMS)

    reason = why(TYPO, spark, items())
    assert reason
    assert str(reason) == "no rows: a source can be read only once, and Spark has read it"
