"""`explain` is complete, exact and readable for any query; test_pictures.py tests the pictures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.explained import LISTING_1_1, any_query
from support.node_classes import leaves

import streamsparql
from streamsparql import cli
from streamsparql.algebra import (
    access,
    align,
    entailment,
    event,
    filter,
    graph,
    group,
    join,
    match,
    path,
    shape,
)
from streamsparql.algebra import expressions as e
from streamsparql.algebra import window as w
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, Literal
from streamsparql.errors import StreamSparqlError
from streamsparql.look.explain import ALL_STAGES, RENDERERS, STAGE_BOXES, explain
from streamsparql.look.explain.boxes.box import Box, places
from streamsparql.look.explain.boxes.logical import plan_box
from streamsparql.look.explain.boxes.syntax_tree import syntax_box
from streamsparql.look.explain.drawing.palette import FAMILIES
from streamsparql.look.explain.formats.json import nodes
from streamsparql.text.widths import cells
from streamsparql.translator import syntax as s
from streamsparql.translator.parse import parse
from streamsparql.translator.translate import translate

DOCS = Path(__file__).resolve().parents[2] / "docs" / "explain.md"


def logical(text: str, dialect: str = "auto") -> str:
    return streamsparql.compile(text, dialect).explain("logical")


# -- stages and formats ----------------------------------------------------------------------------


def test_an_unknown_stage_or_format_is_an_error_that_lists_the_known_ones() -> None:
    query = streamsparql.compile(LISTING_1_1)
    with pytest.raises(
        StreamSparqlError, match="unknown stage 'phys'; expected one of syntax, logical"
    ):
        query.explain("phys")
    with pytest.raises(StreamSparqlError, match="unknown format 'gif'; expected one of text, json"):
        query.explain(format="gif")


def test_the_command_line_offers_all_stages_and_formats() -> None:
    assert set(cli.EXPLAIN_STAGES) == {"all", *STAGE_BOXES}
    assert set(cli.EXPLAIN_FORMATS) == set(RENDERERS)


def test_compiling_does_not_import_explain() -> None:
    code = (
        "import sys, streamsparql; streamsparql.compile('ASK {}');"
        "print([name for name in sys.modules if name.startswith('streamsparql.look.explain')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


# -- text ------------------------------------------------------------------------------------------


def test_the_plan_of_listing_1_1_is_the_one_in_the_documentation() -> None:
    assert f"```text\n{logical(LISTING_1_1)}\n```" in DOCS.read_text("utf-8")


def test_all_stages_have_headings_below_a_summary_of_the_query() -> None:
    lines = streamsparql.compile(LISTING_1_1).explain().splitlines()
    assert lines[:3] == ["dialect    Streaming SPARQL", "form       SELECT", "variables  ?x ?y ?z"]
    headings = [line.split()[1] for line in lines if line.startswith("── ")]
    assert headings == ["syntax", "logical"]  # no rule applies
    stages = next(line for line in lines if line.startswith("stages "))
    assert stages.split(None, 1)[1] == (
        "syntax, logical (optimized is the same); on request: physical, spark"
    )


def test_pictures_of_other_formats_are_made_by_a_converter() -> None:
    query = streamsparql.compile("ASK {}")
    with pytest.raises(StreamSparqlError, match=r"no format png; write plan.svg, and convert it"):
        query.explain(format="png")


def test_well_known_prefixes_shorten_iris_unless_the_query_declares_others() -> None:
    pattern = "{ ?x <http://www.w3.org/ns/sosa/resultTime> ?t }"
    query = streamsparql.compile(f"SELECT ?x {pattern}")
    assert "?x sosa:resultTime _" in query.explain("logical").replace("?t", "_")
    facts = json.loads(query.explain("logical", "json"))["logical"]["nodes"][1]["facts"]
    assert "<http://www.w3.org/ns/sosa/resultTime>" in facts["pattern"]
    other = streamsparql.compile(f"PREFIX sosa: <http://e.org/> SELECT ?x {pattern}")
    assert "<http://www.w3.org/ns/sosa/resultTime>" in other.explain("logical")


def test_mermaid_and_graphviz_show_the_state_of_operators_as_pictures_do() -> None:
    query = streamsparql.compile(LISTING_1_1)
    for kind in ("svg", "mermaid", "dot"):
        assert "both inputs" in query.explain("physical", kind), kind


def test_the_physical_plan_shows_operators_and_their_state() -> None:
    query = streamsparql.compile(LISTING_1_1)
    lines = query.explain("physical").splitlines()
    assert lines[0] == "LeftJoin  on x"
    assert any("TupleWindow  last 1500 elements" in line for line in lines)
    operators = json.loads(query.explain("physical", "json"))["physical"]["nodes"]
    assert any("both inputs" in node["facts"].get("state", "") for node in operators)


def test_an_optimized_plan_that_differs_is_shown_with_the_applied_rules() -> None:
    query = streamsparql.compile("ASK { ?s <p> ?o FILTER(1 + 1 = 2) }")
    lines = query.explain().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("── ")] == list(ALL_STAGES)
    assert lines[-1] == "rules  fold constants, drop constant conditions, prune columns"
    assert query.explain("optimized").splitlines()[-1] == lines[-1]
    stage = json.loads(query.explain("optimized", "json"))["optimized"]
    assert stage["rules"] == {
        "fold_constants": 1,
        "drop_constant_conditions": 1,
        "prune_columns": 1,
    }
    assert stage["nodes"][0]["kind"] == "Ask"
    assert "<p>rules: fold constants, drop constant conditions, " in query.explain(
        "optimized", "html"
    )
    for kind in ("dot", "mermaid", "svg"):
        assert "Ask" in query.explain("optimized", kind)


def test_without_optimize_the_optimized_plan_is_the_logical_one() -> None:
    query = streamsparql.compile("ASK { ?s <p> ?o FILTER(1 + 1 = 2) }", optimize=False)
    assert query.optimized is query.logical
    assert query.explain("optimized") == query.explain("logical")


def test_a_syntax_tree_shows_clauses_and_the_groups_of_exists() -> None:
    query = streamsparql.compile("ASK { ?s a <T> FILTER(?s = 1 || NOT EXISTS { ?s <p> [] }) }")
    assert query.explain("syntax").splitlines() == [
        "QueryUnit",
        "├─ AskForm",
        "└─ GroupPattern",
        "   ├─ TriplesBlock",
        "   │  TriplePath  ?s a <T>",
        "   └─ FilterClause  ((?s = 1) || (!EXISTS {..}))",
        "      EXISTS: GroupPattern",
        "      TriplesBlock",
        "      TriplePath  ?s <p> _:@52",
    ]


def test_a_shared_subplan_is_drawn_once() -> None:
    text = "SELECT * FROM STREAM <s> WINDOW ELEMS 9 { ?a <p> ?b . ?b <p> ?c . ?c <p> ?d }"
    assert logical(text).splitlines() == [
        "Projection  ?a ?b ?c ?d",
        "BasicGraphPattern",
        "├─ TriplePatternMatching  ?a <p> ?b",
        "│  ① Merge",
        "│  ├─ SlidingTupleWindow  last 9 elements",
        "│  │  AccessStream  <s>",
        "│  └─ AccessGraph  default graph",
        "├─ TriplePatternMatching  ?b <p> ?c  ← ①",
        "└─ TriplePatternMatching  ?c <p> ?d  ← ①",
    ]


def test_hidden_variables_are_named_by_their_purpose() -> None:
    text = """SELECT (RAND() AS ?r) FROM STREAM <http://e/s> [RANGE 10m STEP 1m] {
      ?a <http://e/p> [] FILTER(timestamp(?a, <http://e/s>) > 1 || EXISTS { ?a <q> 1 })
    } GROUP BY (STR(?a)) HAVING(COUNT(*) > 1)"""
    shown = logical("PREFIX e: <http://e/> " + text)
    for words in (
        "binds timestamp(?a, e:s)",
        "?a e:p _:b0",
        "(timestamp(?a, e:s) > 1) || exists#0)",
        "Mark  exists#0",
        "by key#0: aggregate#0 := COUNT(*)",
        "Number  row#1",
        "range 10 min, step 1 min, (from, to]",
    ):
        assert words in shown
    events = 'SELECT * { ?x <p> 1 FILTER(getDURATION() < "PT1S"^^<d>) }'
    assert "Filter  (getDURATION() < " in logical(events, "epsparql")


@settings(max_examples=60)
@given(any_query, st.sampled_from([60, 80, 100]))
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    shown = explain(streamsparql.compile(text), width=width)
    assert max(map(cells, shown.splitlines())) <= width


def test_long_titles_are_wrapped() -> None:
    words = " && ".join(f'CONTAINS(?name, "風車 number {i}")' for i in range(20))
    query = streamsparql.compile(f"SELECT * {{ ?s <p> ?name FILTER({words}) }}")
    lines = explain(query, "logical", width=70).splitlines()
    assert max(map(cells, lines)) <= 70
    assert words in " ".join(line.strip() for line in lines)


def test_a_branch_that_is_indented_too_far_continues_below_the_tree() -> None:
    depth = 100
    text = "SELECT * " + "{ ?a <p> ?b OPTIONAL " * depth + "{ ?s ?p ?o }" + "}" * depth
    lines = logical(text).splitlines()
    cut = [line.split()[-1] for line in lines if "↓" in line]
    assert len(cut) > 3
    assert [
        line.split()[0] for line in lines if line.endswith("LeftJoin") and line[0] in "②③④"
    ] == cut[:3]
    assert sum("LeftJoin" in line for line in lines) == depth


def test_text_is_coloured_on_request_only() -> None:
    query = streamsparql.compile(LISTING_1_1)
    plain = explain(query)
    assert "\033" not in plain
    assert re.sub(r"\033\[[\d;]*m", "", explain(query, color=True)) == plain


# -- every operator, every clause ------------------------------------------------------------------

X, Y, P, Q = Variable("x"), Variable("y"), IRI("http://e/p"), IRI("http://e/q")
MARK, DATA, STREAM = (
    Hidden(PlanKind.EXISTS),
    access.AccessGraph(background=True),
    access.AccessStream(P),
)
STAMP, STREAM_STAMP = Hidden(PlanKind.STAMP, of=(X,)), Hidden(PlanKind.STAMP, of=(X, P))
ROWS = match.TriplePatternMatching(match.TriplePattern(X, P, Y), DATA)
OTHER = match.TriplePatternMatching(match.TriplePattern(X, Q, Y), DATA)
COUNT, SUM = e.Aggregate("COUNT", None), e.Aggregate("SUM", X)
TEST = e.Call(">", (X, Y))
RAND = e.Volatile("RAND", (), (X,), 1)

# each operator with variants that differ from it in one parameter
OPERATORS: list[list[Plan]] = [
    [STREAM, access.AccessStream(Q), access.AccessStream(P, stamped=True)],
    [DATA, access.AccessGraph((P,)), access.AccessGraph((X,)), access.AccessGraph((P, Q))],
    [access.Merge((STREAM, DATA)), access.Merge((DATA, STREAM))],
    [entailment.Entailed(STREAM, DATA), entailment.Entailed(DATA, DATA)],
    [
        entailment.Entailing(ROWS.pattern, STREAM, DATA),
        entailment.Entailing(OTHER.pattern, STREAM, DATA),
    ],
    [
        w.SlidingDeltaWindow(STREAM, 10, 5),
        w.SlidingDeltaWindow(STREAM, 20, 5),
        w.SlidingDeltaWindow(STREAM, 10, 1),
        w.SlidingDeltaWindow(STREAM, 10, 5, origin=3),
        w.SlidingDeltaWindow(STREAM, 10, 5, name="<w>"),
    ],
    [w.FixedWindow(STREAM, 10), w.FixedWindow(STREAM, 11)],
    [
        w.SteppedWindow(STREAM, 10, 5, "left"),
        w.SteppedWindow(STREAM, 10, 5, "right"),
        w.SteppedWindow(STREAM, 10, 2, "left"),
    ],
    [w.NowWindow(STREAM), w.NowWindow(STREAM, name="?w")],
    [w.UnboundedWindow(STREAM)],
    [w.SlidingTupleWindow(STREAM, 1), w.SlidingTupleWindow(STREAM, 2)],
    [w.SteppedTupleWindow(STREAM, 2, 1), w.SteppedTupleWindow(STREAM, 2, 2)],
    [
        ROWS,
        OTHER,
        replace(ROWS, pattern=match.TriplePattern(X, P, Literal("y"))),
        replace(ROWS, pattern=match.TriplePattern(X, P, IRI("y"))),
        replace(ROWS, pattern=match.TriplePattern(X, P, Hidden(PlanKind.BLANK))),
        replace(ROWS, stamps=(match.Stamp(STAMP),)),
        replace(ROWS, stamps=(match.Stamp(STREAM_STAMP, P),)),
    ],
    [match.BasicGraphPattern((ROWS, OTHER)), match.BasicGraphPattern((OTHER, ROWS))],
    [
        path.Path(X, path.OneOrMore(path.Link(P)), Y, DATA),
        path.Path(X, path.ZeroOrMore(path.Link(P)), Y, DATA),
        path.Path(Y, path.OneOrMore(path.Link(P)), X, DATA),
    ],
    [join.Union((ROWS, OTHER)), join.Union((ROWS, OTHER, ROWS)), join.Union((ROWS, ROWS))],
    [join.Join(ROWS, OTHER), join.Join(OTHER, ROWS)],
    [
        join.LeftJoin(ROWS, OTHER),
        join.LeftJoin(ROWS, OTHER, TEST),
        join.LeftJoin(ROWS, OTHER, MARK, ((MARK, ROWS),)),
        join.LeftJoin(ROWS, OTHER, MARK, ((MARK, OTHER),)),
    ],
    [join.Minus(ROWS, OTHER), join.Minus(OTHER, ROWS)],
    [
        filter.Filter(TEST, ROWS),
        filter.Filter(e.Not(TEST), ROWS),
        filter.Filter(e.Or((TEST, X)), ROWS),
        filter.Filter(e.And((TEST, X)), ROWS),
        filter.Filter(e.Constant(Literal("x")), ROWS),
        filter.Filter(X, ROWS),
    ],
    [filter.Mark(MARK, ROWS, OTHER), filter.Mark(MARK, OTHER, ROWS)],
    [filter.SemiJoin(ROWS, OTHER), filter.SemiJoin(OTHER, ROWS)],
    [filter.AntiJoin(ROWS, OTHER)],
    [
        shape.UNIT,
        shape.Table((), ()),
        shape.Table((X,), ()),
        shape.Table((X,), ((None,),)),
        shape.Table((X,), ((P,),) * 9),
        shape.Table((X,), ((P,),) * 8 + ((Q,),)),
    ],
    [
        shape.Extend(X, TEST, ROWS),
        shape.Extend(Y, TEST, ROWS),
        shape.Extend(X, RAND, ROWS),
        shape.Extend(X, e.Call("IRI", (Y,)), ROWS),
        shape.Extend(X, e.Call("IRI", (Y, e.Constant(Literal("http://a/")))), ROWS),
        shape.Extend(X, replace(RAND, site=2), ROWS),
        shape.Extend(X, replace(RAND, columns=(X, Y)), ROWS),
    ],
    [shape.Number(Hidden(PlanKind.ROW, k), ROWS) for k in (0, 1)],
    [shape.Projection((X, Y), ROWS), shape.Projection((Y, X), ROWS), shape.Projection((), ROWS)],
    [shape.Distinct(ROWS), shape.Distinct(OTHER)],
    [shape.Reduced(ROWS)],
    [
        shape.OrderBy(((X, False),), (X, Y), ROWS),
        shape.OrderBy(((X, True),), (X, Y), ROWS),
        shape.OrderBy(((X, False),), (X,), ROWS),
    ],
    [
        shape.Slice(0, 1, (X,), ROWS),
        shape.Slice(1, 1, (X,), ROWS),
        shape.Slice(0, None, (X,), ROWS),
        shape.Slice(0, 1, (Y,), ROWS),
    ],
    [
        group.Aggregation((X,), ((Y, COUNT),), ROWS),
        group.Aggregation((), ((Y, COUNT),), ROWS),
        group.Aggregation((X,), ((Y, SUM),), ROWS),
        group.Aggregation((X,), ((Y, replace(SUM, distinct=True)),), ROWS),
        group.Aggregation((X,), (), ROWS),
    ],
    [group.Annotate(Y, COUNT, (X,), ROWS), group.Annotate(Y, COUNT, (), ROWS)],
    [graph.Graph(P, ROWS), graph.Graph(X, ROWS)],
    [graph.Construct((ROWS.pattern,), ROWS), graph.Construct((), ROWS)],
    [graph.Describe((P,), ROWS, DATA), graph.Describe((X,), ROWS, DATA)],
    [graph.Ask(ROWS)],
    [event.SeqJoin(ROWS, OTHER)],
    [event.EqJoin(ROWS, OTHER)],
    [event.SeqRightJoin(ROWS, OTHER), event.SeqRightJoin(ROWS, OTHER, TEST)],
    [event.EqLeftJoin(ROWS, OTHER), event.EqLeftJoin(ROWS, OTHER, TEST)],
    [event.NeverBefore(ROWS, OTHER), event.NeverBefore(ROWS, OTHER, TEST)],
    [event.SeqWithout(ROWS, OTHER, ROWS), event.SeqWithout(ROWS, OTHER, OTHER)],
    [event.Detect(ROWS)],
    [
        align.Align(ROWS, 5),
        align.Align(ROWS, 6),
        align.Align(ROWS, 5, 1),
        align.Align(ROWS, 5, 0, True),
        align.Align(ROWS, 5, 0, False, True),
    ],
    [
        Closure(P, (graph.Construct((), ROWS),), ROWS),
        Closure(Q, (graph.Construct((), ROWS),), ROWS),
        Closure(P, (graph.Construct((), ROWS),) * 2, ROWS),
    ],
]


def json_without_titles(plan: Plan) -> str:
    """Return a plan's JSON without the titles, which depend on prefixes."""
    return json.dumps([{**node, "title": ""} for node in nodes(plan_box(plan))])


def test_every_operator_has_a_box() -> None:
    assert {type(variants[0]) for variants in OPERATORS} == leaves(Plan)
    for variants in OPERATORS:
        for plan in variants:
            box = plan_box(plan)
            assert box.kind == type(variants[0]).__name__
            assert box.family in FAMILIES
            assert box.meaning


def test_every_operator_is_documented() -> None:
    rows = re.findall(r"^\| `(\w+)` \| \w", DOCS.read_text("utf-8"), re.M)
    operators = {name for name in rows if name[0].isupper()}
    assert operators == {cls.__name__ for cls in leaves(Plan)}


def test_any_two_plans_differ_in_json() -> None:
    plans = [plan for variants in OPERATORS for plan in variants]
    assert len(set(plans)) == len(plans) == len({json_without_titles(plan) for plan in plans})


@settings(max_examples=60)
@given(any_query, any_query)
def test_json_is_equal_exactly_for_equal_plans(one: str, other: str) -> None:
    plans = translate(one).plan, translate(other).plan
    assert (plans[0] == plans[1]) == (
        json_without_titles(plans[0]) == json_without_titles(plans[1])
    )
    assert json_without_titles(plans[0]) == json_without_titles(translate(one).plan)


@settings(max_examples=60)
@given(any_query)
def test_json_has_the_shape_of_the_plan(text: str) -> None:
    plan = translate(text).plan
    objects = nodes(plan_box(plan))
    pending: list[tuple[Plan, int]] = [(plan, 0)]
    while pending:
        operator, number = pending.pop()
        node = objects[number]
        assert (node["id"], node["kind"]) == (number, type(operator).__name__)
        below = [entry["node"] for entry in node["inputs"]]
        pending += zip(operator.inputs, below, strict=True)


def test_json_has_the_facts_about_the_query() -> None:
    document = json.loads(streamsparql.compile(LISTING_1_1).explain(format="json"))
    assert list(document) == ["format", "query", "syntax", "logical"]
    assert document["format"] == 1
    assert document["query"] == {
        "text": LISTING_1_1,
        "dialect": "streaming",
        "entailment": None,
        "form": "select",
        "variables": ["x", "y", "z"],
        "streams": ["http://iec.org/61400-25/root/td.rdf"],
        "graphs": [],
        "report": {"kind": None, "every": 60_000, "origin": 0, "name": None},
        "prefixes": {"wtur": "http://iec.org/61400-25/root/ln-classes/WTUR#"},
    }
    window = document["logical"]["nodes"][4]
    assert json.dumps(window) in re.sub(r"\s*\n\s*", " ", DOCS.read_text("utf-8")).replace(
        "{ ", "{"
    ).replace(" }", "}")


CLAUSES = [
    "REGISTER STREAM q COMPUTED EVERY 1m AS SELECT DISTINCT ?x (COUNT(DISTINCT ?y) AS ?n) "
    "FROM NAMED <g> FROM STREAM <s> [RANGE 10m STEP 1m] FROM STREAM <t> [RANGE TRIPLES 3 STEP 2] "
    "{ ?x <p>/^<q>|!(<p>|^<q>)* ?y . GRAPH ?g { [] <p> ( 1 2.5 true 'x'@en '1'^^<d> ) } "
    "{ ?x <p> _:b } UNION {} MINUS { ?x <p> 1 } OPTIONAL { ?x <p> 2 FILTER EXISTS { ?x <p> 3 } } "
    "SERVICE <e> { ?a <b> ?c } BIND(-?x + 1 AS ?z) VALUES (?u ?v) { (1 UNDEF) } "
    "{ SELECT * { ?q <p> 1 } } FILTER(<f>(?x) && ?x NOT IN (1, 2)) } "
    "AGGREGATE { (?m, SUM(?y), {?x}) FILTER(?m > 1) } "
    "GROUP BY ?x (STR(?y) AS ?s) HAVING(?n > 1) ORDER BY DESC(?n) LIMIT 1 OFFSET 2",
    "CONSTRUCT { ?x <p> _:b } FROM STREAM <s> WINDOW RANGE 1 H SLIDE 90 S "
    "FROM STREAM <t> WINDOW RANGE 1500 MS FIXED { ?x <p> ?y WINDOW ELEMS 3 }",
    "BASE <http://e/> PREFIX : <b> DESCRIBE ?x :y { ?x <p> ?y }",
    "SELECT (GROUP_CONCAT(?x; SEPARATOR=',') AS ?y) { { ?x <p> 1 } SEQ { ?y <p> 2 } }",
    "REGISTER RSTREAM <o> AS SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT5S] { WINDOW <w> {} }",
    "SELECT ?x max(?y) { STREAM <s> [NOW] { ?x <p> ?y } STREAM <s> [ALL] { ?x <p> ?y } }",
    "ASK FROM NAMED STREAM <s> [NOW - 10 S SLIDE 1 S] {}",
]


def test_every_clause_has_a_text() -> None:
    trees = [parse(text) for text in CLAUSES]
    covered: set[type[Node]] = {type(node) for tree in trees for node in tree.walk()}
    assert covered >= leaves(s.SyntaxNode)
    kinds = [
        place.item.kind
        for tree in trees
        for place in places(syntax_box(tree))
        if isinstance(place.item, Box)
    ]
    assert "Modifiers" in kinds


def test_a_syntax_tree_shows_expressions_and_windows_as_parsed() -> None:
    titles = [box.title for box in all_boxes(syntax_box(parse(CLAUSES[0])))]
    for title in (
        "DISTINCT ?x (COUNT(DISTINCT ?y) AS ?n)",
        "FROM STREAM <s> [RANGE 10 min STEP 1 min]",
        "FROM STREAM <t> [RANGE TRIPLES 3 STEP 2]",
        "?x ((<p>/^<q>)|!(<p>|^<q>)*) ?y",
        "?z := ((-?x) + 1)",
        "?u ?v: (1 UNDEF)",
        "(<f>(?x) && (?x NOT IN (1, 2)))",
        "EXISTS {..}",
    ):
        assert title in titles


def all_boxes(root: Box) -> list[Box]:
    return [place.item for place in places(root) if isinstance(place.item, Box)]
