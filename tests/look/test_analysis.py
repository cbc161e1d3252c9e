"""Measurements of runs: compared with counts by hand, with invariants, and with runs on Spark.

Counts of rows are compared exactly. Times differ between runs, so only their invariants are tested.
"""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.generate import EVERYTHING, queries
from support.histories import data
from support.keyed_queries import KEYED
from support.spark_in_process import Session, cut_at
from support.spark_session import embedded, item_table, nquads

import streamsparql
from streamsparql.errors import EngineError, SourceError, StreamSparqlError
from streamsparql.look.analysis import Analysis
from streamsparql.look.analysis_text import operators_box
from streamsparql.look.explain.boxes.box import Box, Measures, places
from streamsparql.look.explain.drawing.measure_columns import MEASURE_COLUMNS
from streamsparql.look.explain.drawing.palette import FAMILIES
from streamsparql.run.input import RunInput
from streamsparql.run.measured import MeasuredRun, OperatorMeasures
from streamsparql.sources import Accounting
from streamsparql.text.widths import cells

TEXT = """\
PREFIX : <http://e/>
SELECT ?x (COUNT(?z) AS ?n)
FROM STREAM <http://e/s> WINDOW RANGE 10 MS FIXED
WHERE { ?x :p ?y . ?y :q 1 OPTIONAL { ?x :r ?z } } GROUP BY ?x
"""
NUMBER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
A, B, C, D = (f"<http://e/{name}>" for name in "abcd")
P, Q, R = (f"<http://e/{name}>" for name in "pqr")
ITEMS = [
    (A, P, B, 1),
    (C, P, D, 2),
    (B, Q, NUMBER.format(1), 3),
    (A, R, NUMBER.format(5), 4),
    (A, R, NUMBER.format(6), 5),
    (B, Q, NUMBER.format(2), 6),
    (A, "<http://e/other>", B, 7),
]
QUERY = streamsparql.compile(TEXT)


def measured(query: streamsparql.Query = QUERY, **options: Any) -> Analysis:
    return query.analyze(options.pop("streams", ITEMS), **options)


def of(analysis: Analysis, kind: str, title: str = "") -> OperatorMeasures:
    """Return the only operator of a kind whose title contains a text."""
    (operator,) = (o for o in analysis.operators if o.kind == kind and title in o.title)
    return operator


def rows(operator: OperatorMeasures) -> tuple[tuple[int, ...], int]:
    return operator.rows_in, operator.rows_out


# -- counted by hand -------------------------------------------------------------------------------


def test_rows_are_counted_per_operator() -> None:
    analysis = measured()
    assert rows(of(analysis, "StreamAccess")) == ((), 6)
    assert rows(of(analysis, "TimeWindow")) == ((6,), 6)
    assert rows(of(analysis, "TriplePatternMatching", ":p")) == ((6,), 2)
    assert rows(of(analysis, "TriplePatternMatching", ":q 1")) == ((6,), 1)
    assert rows(of(analysis, "TriplePatternMatching", ":r")) == ((6,), 2)
    assert sorted(of(analysis, "Join").rows_in) == [1, 2]
    assert of(analysis, "Join").rows_out == 1
    assert rows(of(analysis, "LeftJoin")) == ((1, 2), 3)  # the gap, :r 5, :r 6
    assert rows(of(analysis, "Aggregation")) == ((3,), 3)  # 0, 1, 2
    assert rows(analysis.operators[-1]) == ((3,), 3)
    assert analysis.rows == 3
    assert analysis.span == (1, 7)
    assert analysis.terms > 5


def test_selectivity_is_the_quotient_of_rows_out_and_rows_in() -> None:
    analysis = measured()
    assert of(analysis, "TriplePatternMatching", ":p").selectivity == pytest.approx(2 / 6)
    assert of(analysis, "LeftJoin").selectivity == 1.0
    assert of(analysis, "LeftJoin").of_pairs == 1.5
    assert of(analysis, "Join").of_pairs == 0.5
    assert of(analysis, "StreamAccess").selectivity is None
    assert of(analysis, "TimeWindow").of_pairs is None


def test_every_item_is_accounted_for() -> None:
    items: list[Any] = [*ITEMS, (A, P, C, 3), ("1", P, B, 8), (A, P, B, 9), (A, P, B, "soon")]
    accounting = measured(streams=items).items
    assert accounting == Accounting(read=11, accepted=8, unmatched=1, late=1, rejected=2)
    assert accounting.read == accounting.accepted + accounting.late + accounting.rejected
    assert measured(streams=items, max_delay=10).items.late == 0
    with pytest.raises(SourceError):
        measured(streams=items, strict=True)


def test_state_is_measured_after_each_step() -> None:
    """Pushed item by item, rows are retained while they hold; a run of one step retains fewer."""
    text = "SELECT DISTINCT ?y FROM STREAM <http://e/s> WINDOW RANGE 10 MS FIXED { ?x ?p ?y }"
    items = [(A, P, B, t) for t in (1, 2, 12, 13)] + [(A, P, C, 14), (A, P, C, 35)]
    query = streamsparql.compile(text)
    live = query.open()
    peak = 0
    for *triple, t in items:
        live.push("http://e/s", triple, t)
        peak = max(peak, live.stats().state)
    in_one_step = query.analyze(items)
    assert (in_one_step.state, peak) == (2, 4)
    assert max(o.state for o in in_one_step.operators) <= in_one_step.state
    assert sum(o.state for o in in_one_step.operators) >= in_one_step.state


def test_reports_are_measured_on_request() -> None:
    analysis = measured(report="rstream", every=2)
    assert of(analysis, "Reports").rows_out == analysis.rows
    shown = QUERY.run(ITEMS).report("rstream", every=2)
    assert analysis.rows == sum(len(rows) for _, rows in shown)
    with pytest.raises(EngineError, match="report must be rstream"):
        measured(report="sometimes")


def test_reports_over_consolidated_rows_are_drawn() -> None:
    text = (
        "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> WINDOW RANGE 9 MS SLIDE 3 MS { ?x ?p 1 }"
    )
    analysis = streamsparql.compile(text).analyze(ITEMS, report="rstream", every=9)
    assert {operator.description.family for operator in analysis.operators} <= set(FAMILIES)
    assert analysis.explain("svg")


def test_static_rows_are_emitted_in_one_step() -> None:
    query = streamsparql.compile(TEXT.replace("?y :q 1", "?y :q 2"))
    analysis = query.analyze(ITEMS, graph=[(B, Q, NUMBER.format(2)), (D, Q, NUMBER.format(2))])
    static = of(analysis, "Always")
    assert (static.title, static.rows_out, static.steps) == ("?y :q 2", 2, 1)
    no_stream = streamsparql.compile("SELECT * { ?s ?p ?o }").analyze(graph=[(A, P, B)])
    assert (no_stream.rows, no_stream.items.read, no_stream.span) == (1, 0, None)
    assert "items  0 read" in str(no_stream)


# -- invariants ------------------------------------------------------------------------------------


def check_invariants(analysis: Analysis) -> None:
    """Check that rows in are the rows out of the inputs, and that shares add up to 1."""
    for operator in analysis.operators:
        below = tuple(analysis.operators[k].rows_out for k in operator.inputs)
        assert operator.rows_in == below
    shares = sum(operator.share for operator in analysis.operators)
    assert abs(shares - 1) < 1e-6
    if isinstance(analysis.items, Accounting):
        assert analysis.items.accepted == analysis.items.read - analysis.items.late


@settings(max_examples=40)
@given(queries(replace(EVERYTHING, volatile=False)), data)
def test_any_run_can_be_measured(text: str, over: Data) -> None:
    query = streamsparql.compile(text)
    run_input = RunInput(*over.of(query), started=0)
    analysis = Analysis.of(MeasuredRun(query, run_input).run())
    assert analysis.rows == len(embedded(query, run_input))
    assert analysis.items.read == sum(map(len, run_input.streams.values()))
    check_invariants(analysis)
    for width in (80, 120):
        lines = analysis.explain(width=width).splitlines()
        assert [line for line in lines if cells(line) > width] == []


def test_times_are_parts_of_the_whole() -> None:
    analysis = measured()
    times = analysis.times
    parts = times.preparing + times.reading + times.computing + times.writing
    assert parts == pytest.approx(times.total)
    assert 0 < sum(o.seconds for o in analysis.operators) <= times.computing
    assert analysis.rate > 0


def test_a_stopped_run_has_the_measurements_so_far() -> None:
    source = ((A, P, B, t) for t in range(200_000))
    measured_run = MeasuredRun(QUERY, RunInput({"http://e/s": source}))
    calls = []

    def after(replay: object) -> None:
        calls.append(replay)
        measured_run.stop()

    analysis = measured_run.run(after)
    assert 0 < analysis.items.read < 200_000
    assert len(calls) <= 3


# -- display ---------------------------------------------------------------------------------------

SHOWN = """\
items  7 read: 7 accepted (1 unmatched)
rows   3 emitted
time   # ms: # % preparing, # % reading, # % computing, # % writing
rate   # items/s
state  peak # rows; # terms in the dictionary
span   1 ms to 7 ms, 6 ms

                                        rows in     out   out/in   state    time
TemporalCoalesce                              3       3    100 %       1 # %
Clip                                          3       3    100 % # %
Aggregation  by ?x: ?n := COUNT(?z)           3       3    100 %       2 # %
LeftJoin  on x                                3       3    100 %       4 # %
├─ Projection  ?x                             1       1    100 % # %
│  Join  on y                                 3       1   33.3 %       3 # %
│  ├─ TriplePatternMatching  ?y :q 1          6       1   16.7 % # %
│  │  ① TimeWindow                            6       6    100 % # %
│  │      FixedWindow: range 10 ms
│  │  StreamAccess  :s                                6 # %
│  └─ TriplePatternMatching                   6       2   33.3 % # %
│         ?x :p ?y  ← ①
└─ TriplePatternMatching                      6       2   33.3 % # %
       ?x :r ?z  ← ①"""


def masked(text: str) -> str:
    """Replace the figures that differ between runs by `#`."""
    lines = []
    for line in text.splitlines():
        if line.startswith(("time ", "rate ", "state ")):
            line = re.sub(r"\d[\d.,]*( [kM](?= ))?", "#", line).replace("# s:", "# ms:")
        lines.append(re.sub(r" +[<>]?\d[\d.]* %$", " # %", line))
    return "\n".join(lines)


def test_text_is_a_tree_with_columns_of_figures() -> None:
    assert masked(measured().explain(width=80)) == SHOWN
    for width in (60, 80, 100, 120, 200):
        lines = measured().explain(width=width).splitlines()
        assert max(map(cells, lines)) <= max(width, 80)
    wide = measured().explain(width=120)
    assert all(column.head in wide for column in MEASURE_COLUMNS)


def test_colour_marks_the_largest_shares_of_time() -> None:
    analysis = measured()
    hot = replace(analysis, operators=tuple(o._replace(share=0.5) for o in analysis.operators))
    cool = replace(analysis, operators=tuple(o._replace(share=0.01) for o in analysis.operators))
    assert "\033[31m50.0 %" in hot.explain(color=True)
    assert "\033[31m" not in cool.explain(color=True)
    assert re.sub(r"\033\[[\d;]*m", "", hot.explain(color=True)) == hot.explain()
    assert 'class="of-join hot-3"' in hot.explain("svg")
    assert 'class="of-join hot-0"' in cool.explain("svg")
    assert "penwidth=4" in hot.explain("dot")
    assert "class physical_0 hot3" in hot.explain("mermaid")


def test_json_has_the_measurements_as_fields() -> None:
    document = json.loads(measured().explain("json"))
    assert list(document) == ["format", "query", "analysis", "physical"]
    analysis = document["analysis"]
    assert list(analysis) == [
        *"engine items graph_rejects rows seconds rate state terms schema span".split()
    ]
    assert analysis["items"] == Accounting(read=7, accepted=7, unmatched=1)._asdict()
    assert list(analysis["seconds"]) == "total preparing reading computing writing".split()
    assert (analysis["engine"], analysis["rows"], analysis["span"]) == ("embedded", 3, [1, 7])
    (join,) = (node for node in document["physical"]["nodes"] if node["kind"] == "LeftJoin")
    times = {name: join["measured"].pop(name) for name in ("seconds", "share")}
    assert all(isinstance(value, float) for value in times.values())
    assert join["measured"] == {
        "rows_in": [1, 2],
        "rows_out": 3,
        "selectivity": 1.0,
        "of_pairs": 1.5,
        "state": 4,
        "steps": join["measured"]["steps"],
    }
    (window,) = (node for node in document["physical"]["nodes"] if node["kind"] == "TimeWindow")
    assert window["facts"]["computes"] == "FixedWindow"
    page = (Path(__file__).parents[2] / "docs" / "explain.md").read_text("utf-8")
    for name in [*analysis, *analysis["items"], *analysis["seconds"], *join["measured"]]:
        assert f"`{name}`" in page


def test_an_operator_with_several_readers_is_drawn_once() -> None:
    analysis = measured()
    boxes = [p.item for p in places(operators_box(analysis)) if isinstance(p.item, Box)]
    assert len(boxes) == len(analysis.operators)
    assert [box.kind for box in boxes if box.number] == ["TimeWindow"]


@pytest.mark.parametrize("format_", ["svg", "html"])
def test_pictures_are_well_formed_and_show_the_measurements(format_: str) -> None:
    analysis = measured()
    picture = analysis.explain(format_)
    svg = picture[picture.index("<svg") : picture.rindex("</svg>") + 6]
    words = " ".join(ElementTree.fromstring(svg).itertext())
    assert "1 + 2 → 3 rows, 100 %" in words
    assert "steps: " in words
    assert "nothing" not in analysis._repr_html_()
    ElementTree.fromstring(f"<div>{analysis._repr_html_()}</div>")


def test_mermaid_and_graphviz_show_the_measurements() -> None:
    analysis = measured()
    assert "1 + 2 → 3 rows" in analysis.explain("dot")
    assert "1 + 2 #8594; 3 rows" in analysis.explain("mermaid")


def test_an_analysis_can_be_pickled() -> None:
    analysis = measured()
    copy = pickle.loads(pickle.dumps(analysis))
    assert copy.operators[0].rows_out == 6
    assert copy.explain() == analysis.explain()
    assert repr(analysis).startswith("<Analysis: 7 items, 3 rows, ")


def test_errors_name_what_is_unknown_or_missing() -> None:
    analysis = measured()
    with pytest.raises(StreamSparqlError, match="no measurements for stage 'logical'"):
        analysis.explain(stage="logical")
    with pytest.raises(StreamSparqlError, match="was not on Spark"):
        analysis.explain(stage="spark")
    with pytest.raises(StreamSparqlError, match="unknown format 'gif'"):
        analysis.explain("gif")
    with pytest.raises(EngineError, match="embedded or spark, not 'flink'"):
        measured(engine="flink")
    with pytest.raises(EngineError, match="options of engine='spark'"):
        measured(slabs=3)
    with pytest.raises(SourceError, match="missing stream"):
        QUERY.analyze({})


def test_measures_without_rows_have_no_ratios() -> None:
    unknown = Measures((), None, 0.5)
    assert (unknown.selectivity, unknown.of_pairs, unknown.heat) == (None, None, 0)
    assert Measures((0, 4), 0, 0.5).of_pairs is None
    assert Measures((0,), 0, 0.5).selectivity is None


# -- on Spark --------------------------------------------------------------------------------------

MANY = [((f"<http://e/n{k % 7}>", (P, R)[k % 2], f"<http://e/n{k % 3}>"), k) for k in range(300)]
OVER_TIME = (
    "PREFIX : <http://e/> SELECT ?x ?y ?z "
    "FROM STREAM <http://e/s> WINDOW RANGE 20 MS SLIDE 5 MS { ?x :p ?y OPTIONAL { ?y :r ?z } }"
)


def on_spark(query: streamsparql.Query, places_: tuple[float, ...], **options: Any) -> Analysis:
    with cut_at(places_, options.pop("buckets", 0)):
        session: Any = Session(len(places_))
        return query.analyze({"http://e/s": MANY}, engine="spark", spark=session, **options)


def test_one_slab_measures_the_same_rows_as_the_embedded_engine() -> None:
    query = streamsparql.compile(OVER_TIME)
    one_slab, whole = on_spark(query, ()), query.analyze({"http://e/s": MANY})
    assert [stage.name for stage in one_slab.stages] == ["survey", "exchange", "slabs"]
    counts = [(o.kind, o.title, rows(o)) for o in one_slab.operators if o.kind != "Clip"]
    assert counts == [(o.kind, o.title, rows(o)) for o in whole.operators if o.kind != "Clip"]
    assert one_slab.rows == whole.rows


def test_slabs_add_up_except_for_rows_cut_at_borders() -> None:
    query = streamsparql.compile(OVER_TIME)
    analysis, whole = on_spark(query, (0.2, 0.5, 0.6)), query.analyze({"http://e/s": MANY})
    look, exchange, slabs, merge = analysis.stages
    assert [stage.name for stage in analysis.stages] == ["survey", "exchange", "slabs", "merge"]
    assert analysis.rows == merge.rows_out == whole.rows
    assert merge.rows_in == slabs.rows_out == sum(slab.rows for slab in analysis.slabs)
    assert slabs.rows_in == exchange.rows_out == sum(slab.items for slab in analysis.slabs)
    assert slabs.rows_out >= whole.rows
    assert [slab.number for slab in analysis.slabs] == [0, 1, 2, 3]
    for one, other in zip(
        (o for o in analysis.operators if o.kind != "Clip"),
        (o for o in whole.operators if o.kind != "Clip"),
        strict=True,
    ):
        assert (one.kind, one.title) == (other.kind, other.title)
        assert one.rows_out >= other.rows_out
    check_invariants(analysis)
    assert analysis.skew is not None
    assert analysis.skew >= 1
    assert analysis.state == max(slab.state for slab in analysis.slabs)
    assert analysis.times.preparing == look.seconds


@settings(max_examples=25)
@given(
    st.sampled_from(sorted(KEYED)),
    st.lists(st.floats(0, 1), max_size=4).map(tuple),
    st.sampled_from([0, 0, 3]),
    st.sampled_from([None, None, 7]),
)
def test_spark_counts_the_rows_of_the_embedded_engine(
    kind: str, cut: tuple[float, ...], buckets: int, every: int | None
) -> None:
    window = "FROM STREAM <http://e/s> WINDOW RANGE 20 MS SLIDE 5 MS "
    text = KEYED[kind].replace("<stream>", window).replace(":q", ":r")
    query = streamsparql.compile(f"PREFIX : <http://e/> {text}")
    analysis = on_spark(query, cut, buckets=buckets, every=every)
    assert analysis.rows == query.analyze({"http://e/s": MANY}, every=every).rows
    check_invariants(analysis)


def test_the_stages_are_shown_with_their_slabs() -> None:
    analysis = on_spark(streamsparql.compile(OVER_TIME), tuple(k / 20 for k in range(1, 20)))
    shown = analysis.explain()
    assert [line.split()[1] for line in shown.splitlines() if line[:2] == "──"] == [
        "physical",
        "spark",
    ]
    assert "skew " in shown
    tree = analysis.explain(stage="spark")
    assert re.search(r"^Merge .* [\d.]+ %", tree, re.M)
    assert tree.count("Slab  ") == 12  # the slowest of 20
    document = json.loads(analysis.explain("json"))
    assert len(document["analysis"]["slabs"]) == 20
    assert {node["kind"] for node in document["spark"]["nodes"] if "measured" in node} == {
        "Merge",
        "Slabs",
        "Exchange",
        "Survey",
        "Slab",
    }
    ElementTree.fromstring(analysis.explain("svg"))
    assert pickle.loads(pickle.dumps(analysis)).explain() == shown


def test_a_horizon_before_all_items_measures_nothing() -> None:
    query = streamsparql.compile(OVER_TIME)
    session: Any = Session()
    late = [(item, t + 1000) for item, t in MANY]
    analysis = query.analyze({"http://e/s": late}, engine="spark", spark=session, end=5)
    assert (analysis.rows, analysis.slabs, analysis.operators) == (0, (), ())
    assert analysis.explain()


def test_a_run_in_a_spark_session_is_measured(spark: Any, tmp_path: Path) -> None:
    """A file that is sorted by time, which tasks read themselves."""
    file = tmp_path / "s.parquet"
    parquet.write_table(item_table(MANY), file, row_group_size=20)
    query = streamsparql.compile(OVER_TIME)
    analysis = query.analyze(file, engine="spark", spark=spark, slabs=3)
    assert analysis.rows == query.analyze(file).rows
    assert len(analysis.slabs) == 3
    assert [stage.name for stage in analysis.stages] == ["survey", "slabs", "merge"]
    assert sum(stage.seconds for stage in analysis.stages) > 0
    check_invariants(analysis)


# -- the command line ------------------------------------------------------------------------------


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streamsparql", "explain", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "q.rq").write_text(TEXT)
    (tmp_path / "s.nq").write_text(nquads([(item[:3], item[3]) for item in ITEMS]))
    return str(tmp_path / "q.rq"), str(tmp_path / "s.nq")


def test_explain_analyze_prints_the_analysis(files: tuple[str, str]) -> None:
    query, stream = files
    done = command(query, "--analyze", "--stream", stream)
    assert (done.returncode, done.stderr) == (0, "")
    assert "rows   3 emitted" in done.stdout
    assert re.search(r"LeftJoin  on x +3 +3 +100 %", done.stdout)
    done = command(query, "--analyze", "--stream", stream, "--every", "5ms", "--format", "json")
    assert json.loads(done.stdout)["physical"]["nodes"][0]["kind"] == "Reports"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--analyze",), 1, "missing stream <http://e/s>; add --stream"),
        (("--stream", "STREAM"), 2, "--stream requires --analyze, which runs the query"),
        (("--from", "0"), 2, "--from requires --analyze"),
        (("--engine", "spark"), 2, "--engine requires --analyze"),
        (("--every", "5s"), 2, "--report and --every require --analyze"),
        (
            ("--analyze", "--stage", "logical", "--stream", "STREAM"),
            2,
            "--analyze measures the physical plan",
        ),
        (("--analyze", "--stage", "spark", "--stream", "STREAM"), 2, "requires --engine spark"),
        (("--analyze", "--slabs", "2", "--stream", "STREAM"), 2, "--slabs requires --engine"),
        (("--analyze", "--stream", "nowhere.nq"), 1, "nowhere.nq"),
    ],
)
def test_invalid_arguments_of_explain_analyze_are_errors(
    files: tuple[str, str], arguments: tuple[str, ...], status: int, message: str
) -> None:
    query, stream = files
    done = command(query, *(stream if a == "STREAM" else a for a in arguments))
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
