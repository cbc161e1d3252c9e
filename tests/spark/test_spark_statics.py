"""Static graphs on Spark: small ones are sent to the tasks; large ones are joined by Spark.

The bound is set low here, so that a few triples are a large graph. The rows must be those of the
embedded engine, with equal labels of blank nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import rdflib
from support.spark_session import rows_of

import streamsparql
from streamsparql.errors import SourceError
from streamsparql.run.input import input_of
from streamsparql.spark import file_slices, statics
from streamsparql.spark.engine import SparkRun
from streamsparql.spark.statics import Statics, gather_statics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

Triple = tuple[str, str, str]
XSD = "http://www.w3.org/2001/XMLSchema#"

TURBINES: list[Triple] = [
    *((f"<x:t{k}>", "<x:inPark>", f"<x:park{k % 3}>") for k in range(12)),
    *((f"<x:t{k}>", "<x:model>", f"<x:Model{k % 4}>") for k in range(12)),
    *((f"<x:park{k}>", "<x:near>", f"<x:park{k + 1}>") for k in range(5)),
    *((f"<x:park{k}>", "<x:power>", f'"{10 * k}"^^<{XSD}integer>') for k in range(3)),
    ("<x:t0>", "<x:owner>", "_:someone"),
    ("<x:t3>", "<x:owner>", "_:someone"),
    ("<x:t4>", "<x:owner>", "_:other"),
    ("_:someone", "<x:name>", '"Ann"@EN'),
    ("_:other", "<x:name>", f'"Bob"^^<{XSD}string>'),
    ("<x:t5>", "<x:label>", r'"caf\u00E9"'),
    ("<x:t6>", "<x:label>", '"café"'),
    ("<x:t7>", "<x:label>", f'"01"^^<{XSD}integer>'),
    ("<x:same>", "<x:same>", "<x:same>"),
]
MORE: list[Triple] = [
    ("<x:t1>", "<x:owner>", "_:someone"),
    ("_:someone", "<x:name>", '"Cid"'),
    ("<x:t1>", "<x:inPark>", "<x:park1>"),
    ("<x:t2>", "<x:inPark>", "<x:park9>"),
]
STREAM = [
    (f"<x:t{k % 6}>", "<x:speed>", f'"{k % 7}"^^<{XSD}integer>', 10 * k) for k in range(60)
] + [
    ("<x:t4>", "<x:inPark>", "<x:elsewhere>", 700),
    ("<x:t8>", "<x:owner>", "_:someone", 710),
]
OVER = "FROM STREAM <s> WINDOW RANGE 100 MS SLIDE 50 MS"


@pytest.fixture(autouse=True)
def _graphs_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statics, "BROADCAST", 3)
    monkeypatch.setattr(file_slices, "SPLIT", 200)


def lines(triples: Sequence[Triple]) -> str:
    """Return triples as N-Triples."""
    return "".join(f"{s} {p} {o} .\n" for s, p, o in triples)


def table(triples: Sequence[Triple], names: str = "subject predicate object") -> pa.Table:
    """Return triples as a table."""
    columns = zip(*triples, strict=True)
    return pa.table([pa.array(c, pa.string()) for c in columns], names=names.split())


def compared(
    spark: SparkSession,
    text: str,
    embedded: Mapping[str, Any],
    on_spark: Mapping[str, Any],
    files: Path | None = None,
    **options: Any,
) -> Statics:
    """Compare the rows of both engines; each has its graphs. Return the static data on Spark."""
    query = streamsparql.compile(text)
    stream = {"streams": {"s": STREAM}} if query.streams else {}
    expected = rows_of(query.run(**stream, **embedded, files=files).to_arrow())
    streams = stream.get("streams")
    graphs = (on_spark.get("graph"), on_spark.get("graphs"))
    run_input = input_of(query, streams, *graphs, files=files)
    run = SparkRun(spark, query, run_input, **options)
    assert rows_of(run.frame().toArrow()) == expected
    assert expected, "the query has rows"
    return run.statics


FOUND = {
    "stream and static": f"SELECT ?t ?v ?p {OVER} {{ ?t <x:speed> ?v . ?t <x:model> <x:Model1> ; <x:inPark> ?p }}",
    "static join": "SELECT ?t ?n { ?t <x:inPark> ?p . ?p <x:near> ?q . ?q <x:power> ?n }",
    "both": f"SELECT ?t ?p {OVER} {{ ?t <x:speed> ?v . ?t <x:inPark> ?p . ?p <x:near> ?q . ?q <x:power> ?n }}",
    "count": "SELECT ?p (COUNT(*) AS ?n) { ?t <x:inPark> ?p } GROUP BY ?p",
    "optional": f"SELECT ?t ?o {OVER} {{ ?t <x:speed> 3 . OPTIONAL {{ ?t <x:owner> ?o }} }}",
    "optional statics": "SELECT * { ?t <x:model> ?m . OPTIONAL { ?t <x:owner> ?o . ?o <x:name> ?n } }",
    "not exists": f"SELECT ?t {OVER} {{ ?t <x:speed> ?v . FILTER NOT EXISTS {{ ?t <x:owner> ?o }} }}",
    "exists with outer rows": f"""SELECT ?t ?v {OVER} {{ ?t <x:speed> ?v .
        FILTER EXISTS {{ ?t <x:inPark> ?p . ?p <x:power> ?w . FILTER(?w >= ?v) }} }}""",
    "exists with a filter of its own": f"""SELECT ?t ?v {OVER} {{ ?t <x:speed> ?v .
        FILTER EXISTS {{ ?t <x:inPark> ?p . ?p <x:power> ?w . FILTER(?w > 5) }} }}""",
    "minus": "SELECT ?t { ?t <x:model> ?m MINUS { ?t <x:owner> ?o } }",
    "filter": "SELECT ?t ?n { ?t <x:inPark> ?p . ?p <x:power> ?n FILTER(?n > 5 && ?t != <x:t1>) }",
    "all": "SELECT * { ?x ?y ?z }",
    "projected": "SELECT ?p { ?t <x:inPark> ?p }",
    "distinct": "SELECT DISTINCT ?p { ?t <x:inPark> ?p }",
    "union": "SELECT * { { ?t <x:inPark> ?p } UNION { ?t <x:owner> ?o } }",
    "values": "SELECT * { VALUES ?p { <x:park1> <x:park7> } ?t <x:inPark> ?p }",
    "values with undef": "SELECT * { VALUES (?p ?t) { (<x:park1> UNDEF) (UNDEF <x:t2>) } ?t <x:inPark> ?p }",
    "no variables": "SELECT ?t { <x:t1> <x:inPark> <x:park1> . ?t <x:owner> ?o }",
    "ask": "ASK { <x:t1> <x:inPark> <x:park1> }",
    "a variable twice": "SELECT * { ?x ?x ?x }",
    "names in two cases": "SELECT * { ?x <x:inPark> ?X . ?X <x:near> ?xx }",
    "names of all kinds": "SELECT * { ?ä <x:inPark> ?_1 . ?_1 <x:near> ?unit }",
    "no variable in common": "SELECT * { ?a <x:power> ?b . ?c <x:name> ?d }",
    "spellings": 'SELECT ?t { ?t <x:label> "café" }',
    "tags": 'SELECT ?x ?t { ?x <x:name> "Ann"@en . ?t <x:owner> ?x }',
    "not the same number": f'SELECT ?t {{ ?t <x:label> "01"^^<{XSD}integer> }}',
    "blank nodes": "SELECT ?o ?n { ?t <x:owner> ?o . ?o <x:name> ?n }",
    "blank node patterns": "SELECT ?t ?n { ?t <x:owner> [ <x:name> ?n ] }",
    "plus": "SELECT * { ?a <x:near>+ ?b }",
    "star": f"SELECT ?t ?b {OVER} {{ ?t <x:speed> ?v . ?t <x:inPark>/<x:near>* ?b }}",
    "negated": "SELECT * { ?a !(<x:near>|<x:model>) ?b }",
    "construct": f"CONSTRUCT {{ ?t <x:at> [ <x:place> ?p ] }} {OVER} {{ ?t <x:speed> 3 ; <x:inPark> ?p }}",
    "describe": "DESCRIBE ?t { ?t <x:owner> ?o }",
    "limit": "SELECT ?t { ?t <x:inPark> ?p } ORDER BY DESC(?t) LIMIT 3",
    "bind": "SELECT ?t ?l { ?t <x:label> ?x BIND(STR(?x) AS ?l) }",
    "timestamps": f"""SELECT ?t ?p (timestamp(?t) AS ?w) {OVER} {{ ?t <x:speed> 3 ; <x:inPark> ?p }}""",
    "now": "SELECT ?t { ?t <x:inPark> ?p FILTER(NOW() > '2000-01-01T00:00:00Z'^^<"
    + XSD
    + "dateTime>) }",
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_a_large_graph_yields_the_rows_of_the_embedded_engine(
    spark: SparkSession, text: str
) -> None:
    sent = compared(spark, text, {"graph": TURBINES}, {"graph": TURBINES})
    assert ": it is sent to the tasks" not in sent.reasons[0]


NAMED = {
    "merged": f"SELECT ?t ?v ?p FROM <g> FROM <h> {OVER} {{ ?t <x:speed> ?v . ?t <x:inPark> ?p }}",
    "together": "SELECT * FROM <g> FROM <h> { ?t <x:inPark> ?p . OPTIONAL { ?t <x:owner> ?o } }",
    "apart": f"""SELECT ?t ?v ?q FROM NAMED <g> FROM NAMED <h> {OVER} {{ ?t <x:speed> ?v .
        GRAPH <g> {{ ?t <x:inPark> ?p . ?p <x:near> ?q }} GRAPH <h> {{ ?t <x:owner> ?o }} }}""",
    "across": """SELECT * FROM NAMED <g> FROM NAMED <h>
        { GRAPH <g> { ?t <x:inPark> ?p } GRAPH <h> { ?t <x:owner> ?o } }""",
    "owners of both": """SELECT * FROM NAMED <g> FROM NAMED <h>
        { GRAPH ?g { ?t <x:owner> ?o . ?o <x:name> ?n } }""",
    "path": "SELECT * FROM <h> FROM NAMED <g> { GRAPH <g> { ?a <x:near>+ ?b } }",
    "partners": """SELECT * FROM <h> FROM NAMED <g>
        { ?o <x:name> ?n GRAPH <g> { ?t <x:inPark> ?p . ?p <x:near> <x:park2> } }""",
}


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_each_named_graph_is_large_or_small(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(statics, "BROADCAST", len(MORE))
    graphs = {"g": TURBINES, "h": MORE}
    sent = compared(spark, text, {"graphs": graphs}, {"graphs": graphs})
    assert len(sent.graphs["h"]) == len(MORE), "a small graph is sent"
    assert len(sent.graphs["g"]) < len(TURBINES), "of a large graph only useful triples are sent"


ANY = "SELECT * { GRAPH ?g { ?t <x:owner> ?o . ?o <x:name> ?n } }"


def test_graphs_that_the_query_does_not_name(spark: SparkSession) -> None:
    graphs = {"g": TURBINES, "h": MORE}
    sent = compared(spark, ANY, {"graphs": graphs}, {"graphs": graphs})
    assert [len(table) for table in sent.graphs.values()] == [5, 2]
    assert "for GRAPH with a variable" in sent.reasons[0]


# -- Sources of graphs --------------------------------------------------------------------------

Kinds = Callable[[Path, "SparkSession"], Any]


def _written(name: str) -> Kinds:
    def write(folder: Path, spark: SparkSession) -> Path:
        (folder / name).write_text(lines(TURBINES), encoding="utf-8", newline="")
        return folder / name

    return write


def _in_parts(folder: Path, spark: SparkSession) -> str:
    for k in range(3):
        (folder / f"part-{k}.nt").write_text(lines(TURBINES[k::3] + TURBINES[:4]), "utf-8")
    (folder / "_SUCCESS").write_text("")
    return str(folder)


def _pattern(folder: Path, spark: SparkSession) -> str:
    return _in_parts(folder, spark) + "/part-*.nt"


def _parquet(folder: Path, spark: SparkSession) -> Path:
    duplicated = pa.concat_tables([table(TURBINES), table(TURBINES[:9])])
    parquet.write_table(duplicated, folder / "g.parquet", row_group_size=7)
    return folder / "g.parquet"


def _frame(folder: Path, spark: SparkSession) -> DataFrame:
    frame = spark.createDataFrame(table(TURBINES + TURBINES[:5]))
    return frame.withColumn("other", frame["subject"])


def _short_names(folder: Path, spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(table(TURBINES, "o s p").rename_columns(["s", "p", "o"]))


def _graph(folder: Path, spark: SparkSession) -> rdflib.Graph:
    return rdflib.Graph().parse(data=lines(TURBINES), format="nt")


SOURCES: dict[str, Kinds] = {
    "N-Triples": _written("g.nt"),
    "Turtle": _written("g.ttl"),
    "parts": _in_parts,
    "pattern": _pattern,
    "Parquet": _parquet,
    "DataFrame": _frame,
    "other columns": _short_names,
    "table": lambda folder, spark: table(TURBINES),
    "iterator": lambda folder, spark: iter(TURBINES),
    "rdflib": _graph,
}
EACH = "SELECT ?t ?p ?n { ?t <x:inPark> ?p OPTIONAL { ?t <x:owner> ?o . ?o <x:name> ?n } }"
WHOLE = "SELECT * { ?x <x:near>* ?y }"


@pytest.mark.parametrize("bound", [3, 1_000], ids=["large", "small"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_graph_may_be_any_source_of_run_or_a_data_frame(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    source: Kinds,
    bound: int,
) -> None:
    monkeypatch.setattr(statics, "BROADCAST", bound)
    graph = source(tmp_path, spark)
    sent = compared(spark, EACH, {"graph": TURBINES}, {"graph": graph})
    assert bool(sent.results) == (bound == 3)


@pytest.mark.parametrize("source", [_in_parts, _frame, _parquet])
def test_a_path_of_any_length_needs_the_whole_graph(
    spark: SparkSession, tmp_path: Path, source: Kinds
) -> None:
    graph = source(tmp_path, spark)
    sent = compared(spark, WHOLE, {"graph": TURBINES}, {"graph": graph})
    assert sent.graph.num_rows == len(TURBINES)
    assert "all of it, 41 triples, is sent, for a property path" in sent.reasons[0]


def test_the_driver_does_not_read_a_large_file(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(statics, "BROADCAST_BYTES", 100)
    monkeypatch.setattr(statics, "_read", None)
    graph = _written("g.nt")(tmp_path, spark)
    sent = compared(spark, EACH, {"graph": TURBINES}, {"graph": graph})
    assert "MB in 1 file: the part that can match, 12 triples, is sent" in sent.reasons[0]
    assert "MB in 1 file: 2 patterns over it joined by Spark" in sent.reasons[1]


def test_a_file_that_the_query_names_is_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must be allowed, as in the embedded engine."""
    (tmp_path / "g.nt").write_text(lines(TURBINES), "utf-8")
    monkeypatch.chdir(tmp_path)
    text = "SELECT ?t ?p FROM <g.nt> { ?t <x:inPark> ?p }"
    assert compared(spark, text, {}, {}, files=tmp_path).results
    with pytest.raises(SourceError, match=r"missing graph <g\.nt>"):
        streamsparql.compile(text).on_spark(spark)


def test_blank_nodes_without_labels_are_the_same_at_each_reading(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(statics, "BROADCAST_BYTES", 10)
    text = "<x:t0> <x:owner> [ <x:name> 'Ann' ], _:o . _:o <x:name> 'Bob' . <x:t1> <x:owner> [ <x:name> 'Cid' ] ."
    (tmp_path / "g.ttl").write_text(text)
    query = streamsparql.compile(
        "SELECT ?t ?o ?n { ?t <x:owner> ?o OPTIONAL { ?o <x:name> ?n } } ORDER BY ?n"
    )
    first, again = (
        query.run(graph=tmp_path / "g.ttl", engine="spark", spark=spark).to_arrow()
        for _ in range(2)
    )
    assert first == again
    assert first.column("n").to_pylist() == ['"Ann"', '"Bob"', '"Cid"']
    assert first.column("o").to_pylist()[1] == "_:d.o"


# -- Time, rows and errors ----------------------------------------------------------------------


@pytest.mark.parametrize("slabs", [1, 5])
def test_each_slab_reads_the_same_static_rows(spark: SparkSession, slabs: int) -> None:
    text = FOUND["both"]
    compared(spark, text, {"graph": TURBINES}, {"graph": TURBINES}, slabs=slabs)


def test_reports_read_large_graphs_too(spark: SparkSession) -> None:
    query = streamsparql.compile(FOUND["stream and static"])
    expected = query.run(STREAM, TURBINES).to_arrow("rstream", 50)
    frame = query.on_spark(spark, STREAM, TURBINES, report="rstream", every=50, slabs=3)
    assert rows_of(frame.toArrow()) == rows_of(expected)


def test_only_rows_with_a_match_are_sent(spark: SparkSession) -> None:
    graphs = {"graphs": {"g": TURBINES}}
    text = """SELECT * FROM NAMED <g>
        { GRAPH <g> { ?t <x:inPark> ?p . ?p <x:near> <x:park2> . ?a <x:owner> ?b } }"""
    sent = compared(spark, text, graphs, graphs)
    assert sorted(len(rows) for rows in sent.results) == [1, 4]
    assert len(sent.graphs["g"]) == 3, "the triples of the pattern that joins with no other"


def test_a_graph_without_matches_yields_no_rows(spark: SparkSession) -> None:
    query = streamsparql.compile("SELECT * { ?x <x:nowhere> ?y . ?y <x:inPark> ?z }")
    assert not list(query.run(graph=TURBINES, engine="spark", spark=spark))
    asked = streamsparql.compile("ASK { ?x <x:nowhere> ?y }")
    assert asked.run(graph=TURBINES, engine="spark", spark=spark).snapshot(5) is False


BAD = [("<x:t>", "<x:inPark>", "<no term"), ("<x:t>", '"p"', "<x:o>"), *TURBINES]


def _bad_file(folder: Path, spark: SparkSession) -> Path:
    (folder / "bad.nt").write_text(
        lines(TURBINES) + "<x:t> <x:inPark> nothing .\n<x:a> <x:b> .\n", "utf-8"
    )
    return folder / "bad.nt"


BAD_SOURCES: dict[str, Kinds] = {
    "file": _bad_file,
    "DataFrame": lambda folder, spark: spark.createDataFrame(table(BAD)),
    "iterable": lambda folder, spark: BAD,
}


@pytest.mark.parametrize("source", BAD_SOURCES.values(), ids=BAD_SOURCES)
def test_malformed_triples_are_rejected_or_with_strict_an_error(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: Kinds
) -> None:
    monkeypatch.setattr(statics, "BROADCAST_BYTES", 10)
    graph = source(tmp_path, spark)
    sent = compared(spark, EACH, {"graph": TURBINES}, {"graph": graph})
    assert len(sent.rejects(spark)) == 2
    query = streamsparql.compile(EACH)
    with pytest.raises(SourceError, match=r"term|predicate|triple"):
        query.on_spark(spark, graph=graph, strict=True).toArrow()


def test_a_column_of_numbers_is_an_error(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [("<x:a>", "<x:b>", 5)], "subject string, predicate string, object int"
    )
    with pytest.raises(SourceError, match="column object has type int; terms must be strings"):
        streamsparql.compile(EACH).on_spark(spark, graph=frame)


def test_a_missing_file_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match=r"nowhere\.nt: no such file"):
        streamsparql.compile(EACH).on_spark(spark, graph="nowhere.nt")


def test_small_graphs_need_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statics, "BROADCAST", 1_000)
    query = streamsparql.compile(EACH)
    run_input = input_of(query, None, TURBINES, None)
    sent = gather_statics(None, query, run_input)  # type: ignore[arg-type]
    assert sent.reasons == ("the default graph has 41 triples: it is sent to the tasks",)
