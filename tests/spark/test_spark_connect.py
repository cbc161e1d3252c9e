"""Spark Connect: the engine uses only DataFrames, so it runs on a session of Spark Connect, too."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from support.spark_session import ITEMS, MISSING, item_table, nquads

from streamsparql.errors import EngineError
from streamsparql.spark.java import find_java

ROOT = Path(__file__).parents[2]
NEEDED = [*MISSING, *(name for name in ("grpc", "grpc_status", "zstandard") if not find_spec(name))]

PROGRAM = """
import sys
import pyarrow.parquet as parquet
from pyspark.sql import SparkSession
import streamsparql

QUERY = streamsparql.compile('''PREFIX : <http://e/>
SELECT * FROM STREAM :s WINDOW RANGE 9 MS SLIDE 3 MS WHERE { ?x :p ?y . ?x :q ?z }''')
LAST = streamsparql.compile(
    "PREFIX : <http://e/> SELECT * FROM STREAM :s WINDOW ELEMS 5 { ?x :p ?y }"
)
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(spark).__module__
folder = sys.argv[1]
table = parquet.read_table(folder + "/items.parquet")

def rows(result):
    return sorted(map(repr, result.to_arrow().to_pylist()))

sources = [folder + "/items.parquet", folder + "/items.nq", spark.createDataFrame(table)]
for query in (QUERY, LAST):
    theirs = rows(query.run({"http://e/s": sources[0]}))
    assert theirs
    for source in sources[: 2 if query is LAST else 3]:
        ours = query.run({"http://e/s": source}, engine="spark", spark=spark, slabs=3)
        assert rows(ours) == theirs, (query.text, source)
print("the same")
spark.stop()
"""


@pytest.mark.long
@pytest.mark.skipif(bool(NEEDED), reason=f"not installed: {', '.join(NEEDED)}")
def test_a_query_runs_over_spark_connect(tmp_path: Path) -> None:
    try:
        home = find_java().home
    except EngineError as error:
        pytest.skip(str(error))
    parquet.write_table(item_table(ITEMS), tmp_path / "items.parquet", row_group_size=20)
    (tmp_path / "items.nq").write_text(nquads(ITEMS))
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    if home is not None:
        variables["JAVA_HOME"] = str(home)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=variables,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the same" in done.stdout
