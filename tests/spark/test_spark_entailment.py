"""Entailment on Spark: streams in files and DataFrames, schemas in small and in large graphs.

The rows must be those of the embedded engine. DataFrames are filtered by Spark, and of large graphs
only a part is sent, so what entails a match must not be lost there. test_spark_slabs.py compares
both engines on random queries, without Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.spark_session import item_table, nquads, rows_of

import streamsparql
from streamsparql.algebra.entailment import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, TYPE
from streamsparql.errors import SourceError
from streamsparql.run.input import input_of
from streamsparql.spark import statics
from streamsparql.spark.engine import SparkRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

KIND, SUB, SUBPROP = str(TYPE), str(SUBCLASS), str(SUBPROPERTY)


def iri(name: str) -> str:
    return f"<http://e/{name}>"


SCHEMA = [
    (iri("Dog"), SUB, iri("Animal")),
    (iri("Cat"), SUB, iri("Animal")),
    (iri("walks"), SUBPROP, iri("knows")),
    (iri("walks"), str(DOMAIN), iri("Person")),
    (iri("walks"), str(RANGE), iri("Dog")),
    (iri("narrower"), SUBPROP, SUB),
    (iri("Puppy"), iri("narrower"), iri("Dog")),
    (iri("isA"), SUBPROP, KIND),
]
FACTS = [
    (iri("tom"), KIND, iri("Cat")),
    (iri("zoe"), iri("walks"), iri("fido")),
    (iri("bob"), iri("owns"), iri("tom")),
]
ITEMS = [
    ((iri(f"x{k % 5}"), *rest), k)
    for k, rest in enumerate(
        [(KIND, iri("Dog")), (iri("isA"), iri("Puppy")), (iri("walks"), iri("rex")), (KIND, '"x"')]
        * 6
    )
] + [((iri("x1"), iri("owns"), iri("rex")), 30)]
OVER = "FROM STREAM :s WINDOW RANGE 9 MS SLIDE 3 MS"
QUERIES = {
    "class": f"SELECT ?x {OVER} {{ ?x a :Animal }}",
    "classes": f"SELECT ?x ?c {OVER} {{ ?x a ?c }}",
    "property": f"SELECT * {OVER} {{ ?x :knows ?y }}",
    "join": f"SELECT * {OVER} {{ ?x a :Person ; :knows ?y . ?y a :Animal }}",
    "static join": "SELECT * { ?x :owns ?y . ?y a :Animal }",
    "any": f"SELECT * {OVER} {{ ?x ?p ?y }}",
    "path": f"SELECT * {OVER} {{ ?x :knows/a ?c }}",
    "set": "SELECT ?x FROM STREAM :s [RANGE 9ms STEP 3ms] { ?x a :Animal }",
    "elements": f"SELECT ?x ?c {OVER} {{ ?x a ?c WINDOW ELEMS 3 }}",
    "describe": f"DESCRIBE ?x {OVER} {{ ?x a :Cat }}",
}


def compared(spark: SparkSession, text: str, source: Any, graph: Any, **options: Any) -> SparkRun:
    """Compare the rows of both engines, where Spark has its own sources; return its run."""
    query = streamsparql.compile("PREFIX : <http://e/> " + text, entailment="rdfs")
    streamed = bool(query.streams)
    expected = rows_of(query.run(ITEMS if streamed else None, [*SCHEMA, *FACTS]).to_arrow())
    run_input = input_of(query, source if streamed else None, graph, None)
    run = SparkRun(spark, query, run_input, **options)
    assert rows_of(run.frame().toArrow()) == expected
    assert expected, "the query has rows"
    return run


def frame(spark: SparkSession) -> Any:
    table = item_table(ITEMS)
    return spark.createDataFrame(table.append_column("sequence", pa.array(range(len(table)))))


CASES = [
    *((name, False) for name in ("class", "classes", "join", "elements")),
    *((name, True) for name in QUERIES if name != "classes"),
]


@pytest.mark.parametrize(("name", "large"), CASES)
def test_spark_returns_the_rows_of_the_embedded_engine(
    name: str,
    large: bool,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph: Any = [*SCHEMA, *FACTS]
    if large:
        monkeypatch.setattr(statics, "BROADCAST", 3)
    if large and name in ("class", "join"):
        graph = tmp_path / "g.nt"
        graph.write_text("".join(f"{' '.join(triple)} .\n" for triple in [*SCHEMA, *FACTS]))
    if name in ("class", "property", "elements"):
        source: Any = frame(spark)
    else:
        source = tmp_path / "items.nq"
        source.write_text(nquads(ITEMS))
    run = compared(spark, QUERIES[name], source, graph, slabs=3)
    if large and name in ("class", "property"):
        sent = run.statics.graph
        assert sent is not None
        assert sent.num_rows < len(SCHEMA) + len(FACTS), "the part that can match is sent"
        schema, part = run.statics.reasons
        assert schema.startswith("entailment: 3 subclasses, 3 subproperties, 1 domain, 1 range")
        assert "patterns over entailed triples" in part


def test_spark_reads_only_the_rows_of_a_data_frame_that_can_entail_a_match(
    spark: SparkSession,
) -> None:
    run = compared(spark, QUERIES["property"], frame(spark), [*SCHEMA, *FACTS])
    (stream,) = run.streams
    predicates = {iri("walks"), iri("knows")}
    assert set(stream.predicates) == predicates  # type: ignore[attr-defined]
    assert stream.frame.count() == sum(x[0][1] in predicates for x in ITEMS)  # type: ignore[attr-defined]


def test_a_schema_that_types_would_extend_is_refused_before_tasks_start(
    spark: SparkSession,
) -> None:
    query = streamsparql.compile("SELECT ?x { ?x a <C> }", entailment="rdfs")
    with pytest.raises(SourceError, match="a subproperty of a property of the schema"):
        query.on_spark(spark, graph=[(KIND, SUBPROP, SUB)])
