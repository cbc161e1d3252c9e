"""`equivalent` finds a counterexample for plans that differ little, and none for equivalent ones."""

from __future__ import annotations

import random
from html.parser import HTMLParser

import pytest
from support.plans import matching
from support.rewriting import instants

import streamsparql
from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.expressions import Constant
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.join import Join, LeftJoin, Minus
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.drop_distinct import drop_distinct
from streamsparql.algebra.shape import Distinct, Extend, Projection, Slice
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI, BlankNode, integer
from streamsparql.algebra.window import (
    FixedWindow,
    SlidingDeltaWindow,
    SlidingTupleWindow,
    TimeWindow,
)
from streamsparql.by_hand import Draft, access, graph
from streamsparql.errors import EngineError
from streamsparql.look.equivalence import Equivalence, equivalent
from streamsparql.look.equivalence.difference import SnapshotComparison
from streamsparql.look.equivalence.isomorphism import are_isomorphic
from streamsparql.look.equivalence.random_inputs import InputGenerator
from streamsparql.look.equivalence.vocabulary import Vocabulary

S = "FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 5 MS"


def plan(text: str, dialect: str = "auto") -> Plan:
    return streamsparql.compile(text.replace("$S", S), dialect).logical


def window(clause: str) -> str:
    return f"SELECT * FROM STREAM <s> WINDOW {clause} {{ ?x <p> ?y }}"


def where(group: str, columns: str = "*") -> str:
    return f"SELECT {columns} $S {{ {group} }}"


DIFFERENT = {
    "slides": (window("RANGE 10 MS SLIDE 5 MS"), window("RANGE 10 MS SLIDE 4 MS")),
    "a millisecond": (window("RANGE 30 MINUTE SLIDE"), window("RANGE 1800001 MS SLIDE 60000 MS")),
    "one millisecond more": (
        window("RANGE 3600000 MS SLIDE 1 MS"),
        window("RANGE 3600001 MS SLIDE 1 MS"),
    ),
    "live edge and tumbling": (window("RANGE 10 MS SLIDE 5 MS"), window("RANGE 10 FIXED")),
    "elements": (window("ELEMS 9"), window("ELEMS 10")),
    "elements before and after the match": (
        window("ELEMS 3"),
        "SELECT * FROM STREAM <s> WINDOW ELEMS 5 { ?x <p> ?y . WINDOW ELEMS 3 }",
    ),
    "optional and join": (
        where("?x <p> ?y OPTIONAL { ?x <q> ?z }"),
        where("?x <p> ?y . ?x <q> ?z"),
    ),
    "a filter in an optional, and after it": (
        where("?x <p> ?y OPTIONAL { ?x <q> ?z FILTER(?z > 5) }"),
        where("?x <p> ?y OPTIONAL { ?x <q> ?z } FILTER(?z > 5)"),
    ),
    "a filter of the left side in an optional": (
        where("?x <p> ?y OPTIONAL { ?x <q> ?z FILTER(?y > 5) }"),
        where("?x <p> ?y FILTER(?y > 5) OPTIONAL { ?x <q> ?z }"),
    ),
    "greater or equal": (
        where("?x <p> ?y FILTER(?y > 41)"),
        where("?x <p> ?y FILTER(?y >= 41)"),
    ),
    "equal terms and equal values": (
        where("?x <p> ?y FILTER(?y = 5)"),
        where("?x <p> ?y FILTER(sameTerm(?y, 5))"),
    ),
    "texts": (
        where('?x <p> ?y FILTER(REGEX(?y, "abc"))'),
        where('?x <p> ?y FILTER(REGEX(?y, "^abc"))'),
    ),
    "distinct": (where("?x <p> ?y", "DISTINCT ?x"), where("?x <p> ?y", "?x")),
    "a count": (
        "SELECT ?x (COUNT(*) AS ?n) $S { ?x <p> ?y } GROUP BY ?x HAVING(COUNT(*) > 5)",
        "SELECT ?x (COUNT(*) AS ?n) $S { ?x <p> ?y } GROUP BY ?x HAVING(COUNT(*) > 6)",
    ),
    "an average": (
        "SELECT (AVG(?y) AS ?n) $S { ?x <p> ?y }",
        "SELECT (AVG(DISTINCT ?y) AS ?n) $S { ?x <p> ?y }",
    ),
    "minus of nothing shared": (
        where("?x <p> ?y MINUS { ?v <q> ?z }"),
        where("?x <p> ?y FILTER NOT EXISTS { ?v <q> ?z }"),
    ),
    "a chain of six": (
        where("?a <p> ?b . ?b <q> ?c . ?c <r> ?d . ?d <p> ?e . ?e <q> ?f . ?f <r> ?g"),
        where(
            "?a <p> ?b . ?b <q> ?c . ?c <r> ?d . ?d <p> ?e . ?e <q> ?f . ?f <r> ?g FILTER(?a != ?g)"
        ),
    ),
    "paths": (where("?x <p>+ ?y"), where("?x <p>/<p>? ?y")),
    "graphs": (
        where("?x <p> ?y GRAPH ?g { ?y <q> ?z }", "?x"),
        where("?x <p> ?y GRAPH <g> { ?y <q> ?z }", "?x"),
    ),
    "a stream and the default graph": (
        where("?x <p> ?y"),
        "SELECT * FROM NAMED STREAM <s> WINDOW RANGE 10 MS SLIDE 5 MS { GRAPH <s> { ?x <p> ?y } }",
    ),
    "orders": (
        "SELECT * $S { ?x <p> ?y } ORDER BY ?y",
        "SELECT * $S { ?x <p> ?y } ORDER BY DESC(?y)",
    ),
    "limits": (
        "SELECT * $S { ?x <p> ?y } ORDER BY ?y LIMIT 3",
        "SELECT * $S { ?x <p> ?y } ORDER BY ?y LIMIT 4",
    ),
    "templates": (
        "CONSTRUCT { ?x <by> ?y } $S { ?x <p> ?y }",
        "CONSTRUCT { ?y <by> ?x } $S { ?x <p> ?y }",
    ),
    "asking": ("ASK $S { ?x <p> ?y . ?y <p> ?x }", "ASK $S { ?x <p> ?y }"),
    "variables": (where("?x <p> ?y"), where("?x <p> ?z")),
}


@pytest.mark.parametrize("case", DIFFERENT)
@pytest.mark.parametrize("seed", [0, 1])
def test_different_queries_have_a_counterexample(case: str, seed: int) -> None:
    one, other = map(plan, DIFFERENT[case])
    result = equivalent(one, other, seed=seed)
    assert not result, case
    check_counterexample(result)


def check_counterexample(result: Equivalence) -> None:
    """Assert that the plans differ over the data of the counterexample."""
    example = result.counterexample
    assert example is not None
    data = streamsparql.inputs(
        {name: [(t[0], *t[1:]) for t in items] for name, items in example.streams.items()},
        example.graph,
        example.graphs,
    )
    one, other = result.one.at(example.t, data), result.other.at(example.t, data)
    assert one != other or list(one) != list(other)


DIALECTS = {
    "live and stepped": ("[RANGE 10ms STEP 5ms]", "csparql", "RANGE 10 MS SLIDE 5 MS"),
    "sets and bags": ("[RANGE TRIPLES 3]", "csparql", "ELEMS 3"),
}


@pytest.mark.parametrize("case", DIALECTS)
def test_windows_of_dialects_differ(case: str) -> None:
    bracket, dialect, native = DIALECTS[case]
    one = plan(f"SELECT * FROM STREAM <s> {bracket} {{ ?x <p> ?y }}", dialect)
    check_counterexample(equivalent(one, plan(window(native))))


def test_windows_closed_left_and_closed_right_differ() -> None:
    right = plan("SELECT * FROM STREAM <s> [RANGE 10ms STEP 5ms] { ?x <p> ?y }", "csparql")
    left = (
        "SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE 10ms STEP 5ms] { WINDOW <w> { ?x <p> ?y } }"
    )
    result = right.equivalent(plan(left, "rspql"))  # type: ignore[attr-defined]
    check_counterexample(result)


def test_event_operators_differ() -> None:
    pairs = [("SEQ", "EQUALS"), ("SEQ", "OPTIONALSEQ"), ("EQUALS", "EQUALSOPTIONAL")]
    for one, other in pairs:
        plans = (
            plan(f"SELECT * {{ {{ ?x <p> ?y }} {word} {{ ?x <q> ?z }} }}", "epsparql")
            for word in (one, other)
        )
        check_counterexample(equivalent(*plans))


SAME = {
    "joins commute": (where("{ ?x <p> ?y } { ?x <q> ?z }"), where("{ ?x <q> ?z } { ?x <p> ?y }")),
    "fixed is d = w": (window("RANGE 10 MS FIXED"), window("RANGE 10 MS SLIDE 10 MS")),
    "a bound optional is a join": (
        where("?x <p> ?y OPTIONAL { ?x <q> ?z } FILTER(BOUND(?z))"),
        where("?x <p> ?y . ?x <q> ?z"),
    ),
    "minus is not exists where something is shared": (
        where("?x <p> ?y MINUS { ?x <q> ?z }"),
        where("?x <p> ?y FILTER NOT EXISTS { ?x <q> ?z }"),
    ),
    "a time window may stand above": (
        "SELECT * FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?x <p> ?y }",
        "SELECT * FROM STREAM <s> WINDOW ELEMS 5 { ?x <p> ?y . WINDOW RANGE 9 MS FIXED }",
    ),
    "de Morgan": (
        where("?x <p> ?y FILTER(!(?y > 5 || ?x = ?y))"),
        where("?x <p> ?y FILTER(!(?y > 5) && !(?x = ?y))"),
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_equivalent_queries_have_no_counterexample(case: str) -> None:
    one, other = map(plan, SAME[case])
    result = equivalent(one, other, trials=60)
    assert result
    assert str(result) == "no difference in 60 trials"


P = matching("?x p ?y", FixedWindow(AccessStream(IRI("s")), 5))
Q = matching("?x q ?z")
CONDITION = plan("ASK { ?x ?p ?y FILTER(?y > 5) }").input.condition  # type: ignore[attr-defined]


def _push_filter_right(plan: Plan) -> Plan:
    """Apply a wrong rule: push a filter into the right side."""
    assert isinstance(plan, Filter)
    left, right = plan.input.inputs
    return plan.input.with_inputs(left, Filter(plan.condition, right))


WRONG = {
    "a filter into the right side of a left join": (
        Filter(CONDITION, LeftJoin(P, matching("?x q ?y"))),
        _push_filter_right,
    ),
    "a filter into the right side of minus": (
        Filter(CONDITION, Minus(P, matching("?x q ?y"))),
        _push_filter_right,
    ),
    "a filter above its variable's BIND": (
        Filter(CONDITION, Extend(CONDITION.args[0], Constant(integer(9)), Q)),
        lambda one: one.input.with_inputs(Filter(one.condition, one.input.input)),
    ),
    "a filter below a slice": (
        Filter(CONDITION, Slice(0, 1, (), P)),
        lambda one: one.input.with_inputs(Filter(one.condition, one.input.input)),
    ),
    "a filter below a window that counts": (
        Filter(CONDITION, SlidingTupleWindow(matching("?x p ?y", AccessStream(IRI("s"))), 2)),
        lambda one: one.input.with_inputs(Filter(one.condition, one.input.input)),
    ),
    "a projection that hides is lost": (
        Projection((Variable("x"), Variable("y")), Projection((Variable("x"),), P)),
        lambda one: Projection(one.variables, one.input.input),
    ),
    "left joins do not associate": (
        LeftJoin(LeftJoin(P, Q), matching("?z r ?y")),
        lambda one: LeftJoin(P, LeftJoin(Q, one.right)),
    ),
    "distinct is lost": (
        Distinct(Projection((CONDITION.args[0],), Join(P, Q))),
        lambda one: one.input,
    ),
    "the left join is a join": (LeftJoin(P, Q), lambda one: Join(one.left, one.right)),
}
"""Wrong rules, with plans that they apply to."""


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rules_have_a_small_counterexample(case: str) -> None:
    before, rule = WRONG[case]
    result = equivalent(before, rule(before))
    assert not result
    example = result.counterexample
    assert example is not None
    size = sum(map(len, example.streams.values())) + len(example.graph)
    assert size <= 4


def test_correct_rule_has_no_counterexample() -> None:
    before = Distinct(Projection((CONDITION.args[0],), Distinct(P)))
    after = drop_distinct(before)
    assert after is not None
    assert equivalent(before, after, trials=80)


# -- the search ------------------------------------------------------------------------------------


def test_equal_plans_need_no_trial() -> None:
    result = equivalent(P, P)
    assert (bool(result), result.trials) == (True, 0)
    assert str(result) == "equal: the two plans are the same"


def test_same_seed_has_the_same_counterexample() -> None:
    one, other = map(plan, DIFFERENT["a filter in an optional, and after it"])
    assert str(equivalent(one, other, seed=7)) == str(equivalent(one, other, seed=7))


def test_counterexample_is_small_and_simple() -> None:
    one, other = map(plan, DIFFERENT["slides"])
    assert str(equivalent(one, other)).splitlines()[1:3] == [
        "    stream <s>",
        "        0 ms  <urn:a> <p> <urn:a>",
    ]


def test_invalid_arguments_raise() -> None:
    with pytest.raises(EngineError, match="not a str"):
        equivalent(P, "SELECT")  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="must be a positive integer"):
        equivalent(P, Q, trials=0)


def test_all_instants_at_which_a_snapshot_changes_are_compared() -> None:
    texts = [side for pair in DIFFERENT.values() for side in pair]
    for seed, text in enumerate(texts):
        one = plan(text)
        data = InputGenerator(Vocabulary.of(one), seed).inputs(4)
        points = SnapshotComparison(one, one).instants(data)
        assert set(points) <= set(instants(one, data)) | {0}
        last, compared = points[-1] + 3, set(points)
        if last < 200:
            before: Snapshot[object] | None = None
            for t in range(last):
                now = one.at(t, data)
                assert t in compared or now == before
                before = now


def test_random_items_are_ordered_and_apart_by_lengths_of_windows() -> None:
    one = plan(window("RANGE 1 HOUR SLIDE 7 MINUTE"))
    (delta,) = {node for node in one.walk() if isinstance(node, SlidingDeltaWindow)}
    vocabulary = Vocabulary.of(one)
    distances: set[int] = set()
    for seed in range(60):
        data: Inputs = InputGenerator(vocabulary, seed).inputs(5)
        stamps = [item.end for item in data.streams[IRI("s")]]
        assert stamps == sorted(stamps)
        assert all(t >= 0 for t in stamps)
        distances |= {b - a for a in stamps for b in stamps}
    width, slide = delta.width, delta.slide
    assert {0, 1, slide, width - 1, width, width + 1} <= distances


def test_windows_with_different_origins_differ() -> None:
    one, other = (
        streamsparql.compile(window("RANGE 10 S SLIDE 10 S"), origin=origin).logical
        for origin in (0, 3_000)
    )
    assert isinstance(next(x for x in other.walk() if isinstance(x, TimeWindow)), TimeWindow)
    check_counterexample(equivalent(one, other))


# -- displays --------------------------------------------------------------------------------------


class Texts(HTMLParser):
    """The text of a page's elements, by tag, and the tags that are not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]][-1] += data


def test_notebook_shows_the_counterexample() -> None:
    one = plan(where('?x <p> ?y FILTER(?y = "<b>")'))
    other = plan(where("?x <p> ?y FILTER(?y = 5)"))
    page = Texts(equivalent(one, other)._repr_html_())
    assert page.open == []
    assert page.texts["th"] == ["row", "this plan", "the other"]
    assert page.texts["span"][0].startswith("✗ not equivalent: found in trial")
    assert any("stream <s>" in text for text in page.texts["h5"])
    assert not any(tag in page.texts for tag in ("b", "script"))


def test_notebook_shows_that_there_is_no_difference() -> None:
    one, other = map(plan, SAME["joins commute"])
    page = Texts(equivalent(one, other, trials=3)._repr_html_())
    assert page.texts["span"] == ["✓ no difference in 3 trials"]


def test_shrinking_terminates() -> None:
    for seed in random.Random(1).sample(range(1000), 5):
        one, other = map(plan, DIFFERENT["a chain of six"])
        result = equivalent(one, other, seed=seed)
        assert result.counterexample is not None
        assert sum(map(len, result.counterexample.streams.values())) <= 6


@pytest.mark.parametrize("condition", ["false", "?v1 != ?v2"])
def test_joins_of_many_patterns_have_rows(condition: str) -> None:
    patterns = " . ".join(f"?x <p{k}> ?v{k}" for k in range(12))
    text = "SELECT * FROM STREAM <s> WINDOW RANGE 10 SLIDE 5 { %s }"
    one = streamsparql.compile(text % patterns).logical
    other = streamsparql.compile(text % f"{patterns} FILTER({condition})").logical
    assert not one.equivalent(other)


STREAM, ROWS = access("s"), access("s").window("RANGE 10 SLIDE 5").match("?x <p> ?y")
WRONG_LAWS: dict[str, tuple[Draft, Draft]] = {
    "windows alone": (STREAM.window("RANGE 10 SLIDE 5"), STREAM.window("RANGE 10 SLIDE 1")),
    "windows of elements": (STREAM.window("RANGE 10 SLIDE 5"), STREAM.window("ELEMS 1")),
    "streams alone": (STREAM, access("t")),
    "graphs alone": (graph(), graph("urn:g1")),
    "a bag and a set": (ROWS, ROWS.distinct()),
}
CONDITIONS = [
    ("ABS(?y) > 3", "?y > 3"),
    ("CEIL(?y) = 2", "FLOOR(?y) = 2"),
    ("?y * ?y > 9", "?y > 3"),
    ("?y IN (1)", "SAMETERM(?y, 1)"),
    ("DATATYPE(?y) = <http://www.w3.org/2001/XMLSchema#integer>", "ISNUMERIC(?y)"),
    ("STRLEN(?y) > 3", "STRLEN(?y) >= 3"),
    ('REGEX(?y, "ab+c")', 'REGEX(?y, "ab*c")'),
    ("LANG(?y) = 'de'", "LANG(?y) = 'fr'"),
    ("LANGMATCHES(LANG(?y), 'en')", "LANG(?y) = 'en'"),
    ("YEAR(?y) = 2020", "YEAR(?y) >= 2020"),
    ("MONTH(?y) = 3", "MONTH(?y) IN (3, 4)"),
]
WRONG_LAWS |= {f"{p}, {q}": (ROWS.filter(p), ROWS.filter(q)) for p, q in CONDITIONS}
OTHER = STREAM.window("RANGE 10 SLIDE 5").match("?z <p> ?w")
WRONG_LAWS |= {
    "equal values, one term": (
        ROWS.join(OTHER).filter("?y = ?w").project("?x ?z"),
        ROWS.join(STREAM.window("RANGE 10 SLIDE 5").match("?z <p> ?y")).project("?x ?z"),
    ),
    "a path of any length, up to three steps": (
        STREAM.window("RANGE 10 SLIDE 5").match("?x <p>+ ?y").distinct(),
        STREAM.window("RANGE 10 SLIDE 5").match("?x <p>/<p>?/<p>? ?y").distinct(),
    ),
}


@pytest.mark.parametrize("case", WRONG_LAWS)
def test_laws_that_hold_for_small_numbers_only_have_a_counterexample(case: str) -> None:
    one, other = WRONG_LAWS[case]
    assert not one.equivalent(other, trials=1_000)


NEW = "CONSTRUCT { %s } FROM STREAM <s> WINDOW RANGE 10 SLIDE 5 { ?x <p> ?y }"


def test_labels_of_new_nodes_do_not_matter() -> None:
    one, other, wrong = (
        streamsparql.compile(NEW % template).logical
        for template in (
            "?x <r> _:a . ?x <k> _:b . _:a <o> _:b",
            "?x <k> _:b . _:a <o> _:b . ?x <r> _:a",
            "?x <k> _:b . _:b <o> _:a . ?x <r> _:a",
        )
    )
    assert one.equivalent(other)
    assert not one.equivalent(wrong)


def test_snapshots_with_many_new_nodes_are_compared() -> None:
    one, other = (
        Snapshot.of(Solution({Variable("x"): BlankNode(f"{name}{k}")}) for k in range(2_000))
        for name in "ab"
    )
    assert are_isomorphic(one, other)


def test_difference_in_order_is_reported() -> None:
    one, other = (ROWS.order_by(keys) for keys in ("?y", "DESC(?y)"))
    result = one.equivalent(other)
    assert not result
    assert "the same rows, in another order" in str(result)
    page = result._repr_html_()
    assert "the same rows, in another order" in page
    assert page.count("class=differs") >= 2


# -- entailment ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["?x a :C", "?x :p ?y", "?x a ?c . ?x :q ?y"])
@pytest.mark.parametrize("window", ["WINDOW RANGE 10 MS FIXED", "[RANGE 10ms STEP 5ms]"])
def test_data_for_plans_with_entailment_entails_matches(pattern: str, window: str) -> None:
    text = f"PREFIX : <http://e/> SELECT * FROM STREAM :s {window} {{ {pattern} }}"
    plain, entailed = (streamsparql.compile(text, entailment=one) for one in (None, "rdfs"))
    assert not plain.logical.equivalent(entailed.logical)
    assert entailed.logical.equivalent(entailed.optimized, trials=60)


def test_a_static_graph_that_entails_a_triple_twice_is_distinguished() -> None:
    one, other = (
        source.match("?x a :C", {"": "http://e/"}).project()
        for source in (graph().entailed(), graph().entailed().distinct())
    )
    assert not one.equivalent(other)
