"""Event queries on Spark return the detections of the embedded engine.

Random trees of all event operators, and random CONSTRUCT rules, run over random slabs of time, or
are divided by a key, on the substitute for Spark that runs in this process
(`support/spark_in_process.py`). Items are points and longer events, in memory, files and frames. A
few queries run on Spark.

Not covered here: whether the embedded engine is right (`tests/run/test_engine_events.py`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv
from support.events import PREFIX, EventWriter, random_events
from support.rule_writers import RecursiveWriter, RuleWriter
from support.spark_in_process import Session
from support.spark_session import embedded, rows_of
from test_spark_slabs import FrameSource, Way, cut_small

import streamsparql
from streamsparql.algebra.event_reach import event_reach
from streamsparql.algebra.partition_keys import partition_keys
from streamsparql.errors import UnsupportedFeature
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput, input_of
from streamsparql.run.reports import reporting
from streamsparql.spark import stream_inputs
from streamsparql.spark.cut import TimeHistogram
from streamsparql.spark.engine import SparkRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

Item = tuple[tuple[str, str, str], int, int]
NAMES = ("subject", "predicate", "object", "start", "end")


def event_table(items: list[Item]) -> pa.Table:
    """Return items as a table, by their ends."""
    rows = [(*triple, start, end) for triple, start, end in items]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    kinds = [pa.string()] * 3 + [pa.int64()] * 2
    return pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], NAMES)


class EventFrame(FrameSource):
    """Occurrences as a DataFrame."""

    def stream(self, name: str) -> stream_inputs.FrameInput:
        """Return the stream, as a survey of the DataFrame would."""
        rows = self.session.shuffled(
            event_table(self.items).rename_columns([*NAMES[:4], "timestamp"])
        )
        kinds = "subject string, predicate string, object string, start long, timestamp long"
        frame = self.session.createDataFrame(rows, kinds)
        stamps = rows.column("timestamp").to_numpy()
        spread = TimeHistogram.of_samples([stamps], [len(stamps)])
        least, most = (stamps.min(), stamps.max()) if len(stamps) else (INFINITY, -1)
        return stream_inputs.FrameInput(
            name, spread, int(least), int(most), frame, frame, False  # type: ignore[arg-type]
        )  # fmt: skip


KINDS = ["memory", "memory", "frame", "ordered", "csv"]


def source(kind: str, items: list[Item], place: Path, session: Any) -> Any:
    """Return items as a source of a kind."""
    match kind:
        case "memory":
            return items
        case "frame":
            return EventFrame(session, items, False)
        case "ordered":
            parquet.write_table(event_table(items), place.with_suffix(".parquet"), row_group_size=3)
            return place.with_suffix(".parquet")
    csv.write_csv(event_table(items), place.with_suffix(".csv"))
    return place.with_suffix(".csv")


# -- random queries, random slabs ---------------------------------------------------------------

SEEDS = st.integers(0, 2**32).map(Random)


def check_many(examples: int, check: Callable[[Random], None]) -> None:
    """Check random cases."""

    @settings(max_examples=examples)
    @given(SEEDS)
    def holds(random: Random) -> None:
        check(random)

    holds()


def bounded(where: str, random: Random) -> str:
    """Return a pattern, most often with a bound."""
    if random.random() < 0.3:
        return where
    bound = random.choice([2, 3, 6])
    return f'{{ {where} FILTER(getDURATION() < "PT0.00{bound}S"^^xsd:duration) }}'


def with_bounds(writer: EventWriter, random: Random) -> EventWriter:
    """Return a writer whose patterns have a bound, most often."""
    where = writer.where
    writer.where = lambda depth=3: bounded(where(depth), random)  # type: ignore[method-assign]
    return writer


def check_events(random: Random) -> None:
    writer = with_bounds(EventWriter(random), random)
    if random.random() < 0.3:
        where = bounded(random.choice([writer.absence(), writer.pair("OPTIONALSEQ")]), random)
        text = f"SELECT * FROM STREAM :s FROM NAMED STREAM :g {where}"
    else:
        text = writer.query().replace("RAND() < 0.5", "1")
    compared(text, [], random)


def check_optional(random: Random) -> None:
    """Check what depends on all items before a slab."""
    link = random.choice(["OPTIONALSEQ", "OPTIONALSEQ", "OPTIONAL"])
    where = bounded(EventWriter(random).pair(link), random)
    compared(f"SELECT * FROM STREAM :s FROM NAMED STREAM :g {where}", [], random)


def check_keyed(random: Random) -> None:
    """Check queries whose patterns share a variable."""
    writer = EventWriter(random)
    writer.leaf = lambda: f"?x {random.choice([':p', ':q'])} {random.choice(['?y', '?z'])} . "  # type: ignore[method-assign]
    compared(f"SELECT * FROM STREAM :s FROM NAMED STREAM :g {writer.where()}", [], random, 3)


def check_rules(random: Random) -> None:
    kind = random.choice([RuleWriter, RuleWriter, RecursiveWriter])
    writer = with_bounds(kind(random), random)
    rules = [writer.rule() for _ in range(random.randint(1, 3))]
    where = bounded(random.choice(["{ ?x :r ?y }", "{ ?x ?l ?y }", writer.where(1)]), random)
    compared(f"SELECT * FROM STREAM :s FROM NAMED STREAM :g {where}", rules, random)


def compared(text: str, rules: list[str], random: Random, buckets: int = 0) -> None:
    """Compare the rows of a query on the substitute with those of the embedded engine."""
    try:
        query = streamsparql.compile(
            PREFIX + text,
            "epsparql",
            rules=[PREFIX + rule for rule in rules],
            optimize=random.random() < 0.8,
        )
    except UnsupportedFeature as error:
        assert "would depend on itself" in str(error)
        return
    data = random_events(random, random.choice([5, 14, 25]), random.choice([5, 12, 30]))
    streams = {
        name: sorted(
            (
                (tuple(f"<{word}>" for word in text.split()), start, end)
                for text, start, end in items
            ),
            key=lambda item: item[2],
        )
        for name, items in data.streams.items()
        if name in query.streams
    }
    static = [tuple(f"<{word}>" for word in text.split()) for text in data.static]
    way = Way(
        tuple(random.random() for _ in range(random.choice([1, 2, 5]))),
        random.choice([0, buckets]),
        seed=random.randrange(10**6),
    )
    times = {}
    if random.random() < 0.2:
        times = {"start": random.randint(0, 9), "end": random.choice([None, 11, 20])}
    report = None
    if random.random() < 0.2:
        kind = random.choice(["rstream", "istream", "dstream"])
        report = reporting(query, kind, random.choice([None, 1, 3, 7]))
    run_input = RunInput(streams, static, started=0, **times)
    expected = embedded(query, run_input, report)
    session: Any = Session(way.seed)
    kinds = {name: random.choice(KINDS) for name in streams}
    with tempfile.TemporaryDirectory() as folder, cut_small(way):
        sources = {
            name: source(kinds[name], items, Path(folder) / str(k), session)
            for k, (name, items) in enumerate(streams.items())
        }
        run = SparkRun(session, query, RunInput(sources, static, started=0, **times), report=report)
        rows = rows_of(run.frame().toArrow())
    described = "\n".join([text, *rules, str(streams), str(static), str(way), str(kinds)])
    missing = [row for row in expected if row not in rows]
    extra = [row for row in rows if row not in expected]
    assert rows == expected, (
        f"missing {missing}, extra {extra}\n{described}\n{times} {report} {run.cut}"
    )


def test_any_event_query_over_any_slabs() -> None:
    check_many(60, check_events)


def test_any_optional_side_over_any_slabs() -> None:
    check_many(60, check_optional)


def test_any_event_query_divided_by_a_key() -> None:
    check_many(20, check_keyed)


def test_any_rules_over_any_slabs() -> None:
    check_many(40, check_rules)


@pytest.mark.long
def test_many_event_queries_over_any_slabs() -> None:
    check_many(8_000, check_events)
    check_many(8_000, check_optional)
    check_many(2_000, check_keyed)
    check_many(4_000, check_rules)


# -- cases --------------------------------------------------------------------------------------

XSD = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
SHORT = 'FILTER(getDURATION() < "PT0.01S"^^xsd:duration)'
PAIR = "SELECT * { { ?x <a> ?v } SEQ { ?x <b> ?w } }"
ALONE = "SELECT ?x ?w { { ?x <a> ?v } OPTIONALSEQ { ?x <b> ?w } FILTER(!BOUND(?v)) }"


def reach(text: str, rules: tuple[str, ...] = (), optimize: bool = True) -> int:
    rules = tuple(XSD + rule for rule in rules)
    query = streamsparql.compile(XSD + text, "epsparql", rules=rules, optimize=optimize)
    return event_reach(query.optimized).longest


def test_a_slab_reads_as_far_back_as_events_reach() -> None:
    assert reach("SELECT * { ?x <a> ?y BIND(getDURATION() AS ?d) }") == 1
    assert reach(PAIR) == INFINITY
    assert reach(f"SELECT * {{ {{ ?x <a> ?v }} SEQ {{ ?x <b> ?w }} {SHORT} }}") == 10
    chain = "{ ?x <a> ?u } SEQ { ?x <b> ?v } SEQ { ?x <c> ?w }"
    assert reach(f"SELECT * {{ {chain} {SHORT} }}") == 10
    assert reach("SELECT * { { ?x <a> ?v } EQUALS { ?x <b> ?w } }") == 1
    assert reach(ALONE) == 1


def test_evidence_with_a_bound_adds_to_the_reach() -> None:
    late = f"{{ ?x <a> ?v {SHORT} }} OPTIONALSEQ {{ ?x <b> ?w }}"
    assert reach(f"SELECT * {{ {late} }}", optimize=False) == 10
    assert reach(f"SELECT * {{ {{ {late} }} SEQ {{ ?x <c> ?y }} {SHORT} }}") == 19


def test_rules_reach_as_far_back_as_their_longest_chain() -> None:
    pair = "{ { ?x <%s> ?y } SEQ { ?y <a> ?z } " + SHORT + " }"
    first = "CONSTRUCT { ?x <b> ?z } " + pair % "a"
    second = "CONSTRUCT { ?x <c> ?z } " + pair % "b"
    text = "SELECT * { ?x <c> ?z }"
    assert reach(text, (first, second)) == 10
    alone = f"CONSTRUCT {{ ?x <%s> ?z }} {{ {{ ?x <%s> ?y {SHORT} }} OPTIONALSEQ {{ ?x <e> ?z }} }}"
    assert reach(text, (alone % ("b", "a"), alone % ("c", "b"))) == 19
    endless = "CONSTRUCT { ?x <c> ?z } { { ?x <c> ?y } SEQ { ?y <c> ?z } }"
    assert reach(text, (endless,)) == INFINITY
    assert reach(f"SELECT * {{ ?x <c> ?z {SHORT} }}", (endless,)) == 10


def keys(text: str, rules: tuple[str, ...] = ()) -> list[str]:
    plan = streamsparql.compile(XSD + text, "epsparql", rules=rules).optimized
    return [variable.name for variable in partition_keys(plan)]


def test_events_are_divided_by_what_all_sides_share() -> None:
    assert keys(PAIR) == ["x"]
    assert keys(ALONE) == ["x"]
    assert keys("SELECT * { { ?x <a> ?v } SEQ { ?y <b> ?w } }") == []
    assert keys("SELECT * { { ?x <a> ?v } OPTIONALSEQ { ?y <b> ?w } }") == []


def test_a_key_is_followed_through_rules() -> None:
    rule = "CONSTRUCT { ?s <b> ?n } { { ?s <c> ?n } SEQ { ?s <d> ?m } }"
    assert keys(PAIR, (rule,)) == ["x"]
    assert keys(PAIR, (rule, "CONSTRUCT { ?s <c> ?t } { ?s <e> ?t }")) == ["x"]
    assert keys(PAIR, (rule, "CONSTRUCT { ?t <c> ?s } { { ?s <e> ?t } SEQ { ?s <f> ?o } }")) == []
    assert keys(PAIR, (rule, "CONSTRUCT { <k> <c> ?s } { ?s <e> ?t }")) == []


def items_of(count: int) -> list[Item]:
    links = ["a", "b", "c"]
    return [
        ((f"<s{k % 7}>", f"<{links[k % 3 if k % 11 else 1]}>", f"<o{k % 5}>"), 3 * k - k % 4, 3 * k)
        for k in range(1, count)
    ]


def run_of(text: str, spark: Any, items: Any, **options: Any) -> SparkRun:
    query = streamsparql.compile(XSD + text, "epsparql")
    return SparkRun(spark, query, input_of(query, items, None, None), **options)


def test_a_query_without_a_bound_is_divided_by_a_key_or_is_one_task() -> None:
    keyed = run_of(PAIR, Session(), items_of(400_000))
    assert keyed.cut.key == "x"
    text = "SELECT * { { ?x <a> ?v } SEQ { <s0> <b> <o9> } }"
    alone = run_of(text, Session(), items_of(150_000))
    assert len(alone.cut.parts) == 1
    assert any("write FILTER(getDURATION() <" in reason for reason in alone.cut.reasons)
    bounded_ = run_of(text.replace("<o9> }", f"<o9> }} {SHORT}"), Session(), items_of(150_000))
    assert len(bounded_.cut.parts) == 2


def test_static_rows_of_an_optional_are_decided_once() -> None:
    query = streamsparql.compile(
        "SELECT * FROM STREAM <s> { { { ?x <k> ?y } OPTIONAL { ?x <a> ?z } } { ?x <b> ?w } }",
        "epsparql",
    )
    graph = [(f"<s{k}>", "<k>", "<o>") for k in range(7)]
    items = [(("<s1>", "<a>", "<o>"), 1, 1), *items_of(40)]
    expected = rows_of(query.run({"s": items}, graph).to_arrow())
    run_input = input_of(query, {"s": items}, graph, None)
    for slabs in (1, 3, 17):
        run = SparkRun(Session(slabs), query, run_input, slabs=slabs)  # type: ignore[arg-type]
        assert rows_of(run.frame().toArrow()) == expected


# -- on Spark -----------------------------------------------------------------------------------

LONGER = SHORT.replace("0.01", "0.2")
RULE = f"CONSTRUCT {{ ?x <d> ?w }} {{ {{ ?x <a> ?v }} SEQ {{ ?x <b> ?w }} {LONGER} }}"
QUERIES = {
    "sequence": (f"SELECT * {{ {{ ?x <a> ?v }} SEQ {{ ?y <b> ?w }} {SHORT} }}", ()),
    "alone": (ALONE.replace("<a>", "<c>"), ()),
    "rules": (f"SELECT * {{ {{ ?x <d> ?v }} SEQ {{ ?x <b> ?w }} {LONGER} }}", (RULE,)),
    "endless": (PAIR, ()),
    "counts": (f"SELECT ?x (COUNT(*) AS ?n) {{ {{ ?x <a> ?v }} SEQ {{ ?y <b> ?w }} {SHORT} }}"
               " GROUP BY ?x", ()),
}  # fmt: skip


def spark_source(kind: str, items: list[Item], spark: SparkSession, folder: Path) -> Any:
    if kind == "frame":
        return spark.createDataFrame(event_table(items))
    if kind == "times":
        rows = event_table(items)
        for place, name in ((3, "start"), (4, "end")):
            times = rows.column(name).cast(pa.timestamp("ms", "UTC"))
            rows = rows.set_column(place, name, times)
        return spark.createDataFrame(rows)
    return source(kind, items, folder / "items", None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("sequence", "frame"), ("alone", "times"), ("rules", "ordered"), ("endless", "csv"),
     ("counts", "memory")],
)  # fmt: skip
def test_spark_returns_the_events_of_the_embedded_engine(
    name: str, kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    text, rules = QUERIES[name]
    rules = tuple(XSD + rule for rule in rules)
    query = streamsparql.compile(XSD + text, "epsparql", rules=rules)
    items = items_of(200)
    over = spark_source(kind, items, spark, tmp_path)
    expected = rows_of(query.run(items).to_arrow())
    assert len(expected) > 5
    assert rows_of(query.on_spark(spark, over, slabs=3).toArrow()) == expected
    if name == "alone":
        return
    result = query.run(over, engine="spark", spark=spark, slabs=3)
    theirs = query.run(items)
    assert rows_of(result.to_arrow()) == expected
    assert sorted(map(str, result)) == sorted(map(str, theirs))
    assert result.snapshot(items[-5][2]) == theirs.snapshot(items[-5][2])


def test_entailed_events_on_spark(spark: SparkSession) -> None:
    query = streamsparql.compile(XSD + QUERIES["sequence"][0], "epsparql", entailment="rdfs")
    graph = [("<c>", "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>", "<a>")]
    expected = rows_of(query.run(items_of(60), graph).to_arrow())
    frame = query.on_spark(spark, spark.createDataFrame(event_table(items_of(60))), graph, slabs=2)
    assert rows_of(frame.toArrow()) == expected


def test_an_analysis_of_events_on_spark_has_no_merge(spark: SparkSession) -> None:
    query = streamsparql.compile(XSD + QUERIES["sequence"][0], "epsparql")
    analysis = query.analyze(items_of(60), engine="spark", spark=spark, slabs=2)
    assert "merge" not in str(analysis).lower()
    assert "2/2" in str(analysis)
