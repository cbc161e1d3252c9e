"""Each rule separately: where it applies, where its side condition forbids it, and its soundness.

Each rule has queries to which it applies (support/rule_queries.py). It runs alone on their plans,
over random small streams, and the snapshots before and after are compared at all change points;
subplans also for random outer rows, as in the pattern of an EXISTS. test_rewrite.py does the same
for all rules together on random queries.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plans import X, Y, Z, matching, plan, rows, stream
from support.rewriting import OUTER, check_step, check_whole, inputs, inputs_of, instants
from support.rule_queries import ENTAILED, QUERIES, WINDOW
from support.schemas import entailing

from streamsparql.algebra.cost import Costs, Statistics
from streamsparql.algebra.expressions import And, Bound, Call, Constant, Expression, If, Not, Or
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.fixpoint import Phase, Rewriting
from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.join import Join, LeftJoin
from streamsparql.algebra.match import (
    BasicGraphPattern,
    Stamp,
    TriplePattern,
    TriplePatternMatching,
)
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import phases, rewrite
from streamsparql.algebra.rules.fold_constants import fold_expression
from streamsparql.algebra.rules.order_joins import order_joins
from streamsparql.algebra.rules.push_filters_below_windows import push_filters_below_windows
from streamsparql.algebra.rules.push_filters_down import push_filters_down
from streamsparql.algebra.rules.push_filters_into_joins import push_filters_into_joins
from streamsparql.algebra.rules.push_filters_left import push_filters_left
from streamsparql.algebra.rules.sketch import sketch
from streamsparql.algebra.shape import Projection, Slice, Table
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import FALSE, IRI, TRUE, Term, integer
from streamsparql.algebra.window import FixedWindow, SlidingTupleWindow

FAST = Statistics(rate=1000.0)
"""Streams that are so fast that short windows have many rows."""
RULES = {rule.name: rule for phase in phases(FAST) for rule in phase.rules}

WHERE = WINDOW + "WHERE {"


def is_about_events(query: str) -> bool:
    """Return whether a query is EP-SPARQL, whose streams have no windows."""
    return "SEQ" in query or "EQUALS" in query


def plans_of(query: str, entailment: str | None = None) -> list[Plan]:
    """Return the plans of a query over static data and over a stream; one of a query of events."""
    texts = [query]
    if "FROM" not in query and not is_about_events(query):
        template = query.startswith("CONSTRUCT")
        streamed = (
            query.replace("} {", "} " + WHERE, 1) if template else query.replace("{", WHERE, 1)
        )
        texts.append(streamed)
    return [plan("PREFIX : <http://e/> " + text, entailment=entailment) for text in texts]


CASES = [pytest.param(n, q, id=f"{n}: {q}") for n, queries in QUERIES.items() for q in queries]


def test_there_are_cases_for_every_rule() -> None:
    assert set(QUERIES) == set(RULES)


@pytest.mark.parametrize(("name", "query"), CASES)
def test_a_rule_preserves_snapshots(name: str, query: str) -> None:
    for before in plans_of(query, "rdfs" if name in ENTAILED else None):
        rewriting = rewrite(before, (Phase(RULES[name]),))
        if not rewriting.trace:  # it applies only after other rules
            rewriting = rewrite(before, statistics=FAST)
        assert name in rewriting.counts(), sketch(before)
        _check(name, before, rewriting)


def _check(name: str, before: Plan, rewriting: Rewriting) -> None:
    fired = [step for step in rewriting.trace if step.rule == name]

    @settings(max_examples=5)
    @given(entailing.map(inputs_of) if name in ENTAILED else inputs(), OUTER)
    def run(data: Inputs, outer: dict[Variable, Term]) -> None:
        for step in fired:
            check_step(step, data, outer, instants(before, data)[:3])
        check_whole(before, rewriting.plan, data, instants(before, data)[:6])

    run()


NOT_APPLICABLE = [
    ("push_filters_into_joins", "{ { OPTIONAL { ?x :p ?y } } { ?z :q ?y } FILTER(?x = ?z) }"),
    ("push_filters_left", "{ OPTIONAL { ?x :p ?y } OPTIONAL { ?x :q ?y } FILTER(?y = 1) }"),
    ("push_filters_left", "{ ?x :p ?y OPTIONAL { ?x :q ?z } FILTER(!BOUND(?z)) }"),
    ("push_filters_down", "{ { SELECT ?x { ?x :q ?z } } FILTER(?z = 1) }"),
    ("push_filters_down", "{ { SELECT ?x { ?x :q ?z } LIMIT 2 } FILTER(?x = :a) }"),
    (
        "push_filters_down",
        "{ ?w :r ?w FILTER EXISTS { { SELECT ?x { ?x :q ?w } } FILTER(?w = 1) } }",
    ),
    ("push_left_join_conditions", "{ ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?z = ?y) } }"),
    (
        "push_left_join_conditions",
        "{ ?x :p ?y OPTIONAL { ?x :q ?z FILTER(EXISTS { ?z :p ?y } || ?z = 1) } }",
    ),
    ("drop_order", "{ ?x :p ?y { SELECT ?y { ?y :q ?z } ORDER BY ?z LIMIT 1 } }"),
    ("drop_distinct", "{ { SELECT DISTINCT ?x { ?x :p ?y } } }"),
    ("group_annotations", "{ ?x :p ?y } AGGREGATE { (?n, COUNT, {?x}) }"),
    ("push_slices", "{ { SELECT ?x { ?x :p ?y } LIMIT 2 } }"),
    ("fold_constants", "{ ?x :p ?y FILTER(NOW() = NOW() || RAND() < 1/0) }"),
    ("drop_units", "{ VALUES ?x { UNDEF UNDEF } ?x :p ?y }"),
]


@pytest.mark.parametrize(("name", "where"), NOT_APPLICABLE)
def test_a_rule_does_not_apply_against_its_side_condition(name: str, where: str) -> None:
    for before in plans_of("SELECT * " + where):
        assert rewrite(before, (Phase(RULES[name]),)).plan is before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT ?y ?n {w} AGGREGATE { (?n, COUNT, {?x}) }",
        "SELECT DISTINCT * {w} AGGREGATE { (?n, COUNT, {?x}) }",
        "SELECT DISTINCT ?n {w} AGGREGATE { (?n, COUNT, {?x}) FILTER(?y > ?n) }",
        "SELECT DISTINCT ?x (?n + ?y AS ?m) {w} AGGREGATE { (?n, COUNT, {?x}) }",
        "CONSTRUCT { ?x :r [] } {w} AGGREGATE { (?n, COUNT, {?x}) }",
        "CONSTRUCT { ?x :r ?y } {w} AGGREGATE { (?n, COUNT, {?x}) }",
    ],
)
def test_annotations_stay_where_their_rows_are_read(query: str) -> None:
    where = "FROM STREAM :s [RANGE 7ms STEP 2ms] { ?x :p ?y }"
    before = plan("PREFIX : <http://e/> " + query.replace("{w}", where))
    assert rewrite(before, (Phase(RULES["group_annotations"]),)).plan is before


PUSHED = "streamsparql.algebra.rules.push_aggregates_into_joins"
TUMBLING = "FROM STREAM :s [RANGE 4ms TUMBLING] "


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("unions", "SELECT (MAX(?y) AS ?n) {w}{ { ?x :p ?y } UNION { ?x :q ?y } }"),
        ("unions", "SELECT ?x (SUM(?y) AS ?n) {w}{ { ?x :p ?y } UNION { ?x :q ?y } } GROUP BY ?x"),
        (
            "unions",
            "SELECT ?x (COUNT(DISTINCT ?y) AS ?n) {w}{ { ?x :p ?y } UNION { ?x :q ?y } } GROUP BY ?x",
        ),
        (
            "unions",
            "SELECT ?m (SUM(?y) AS ?n) {w}{ { ?x :p ?y BIND(1 AS ?m) }"
            " UNION { ?x :q ?y OPTIONAL { ?y :r ?y BIND(2 AS ?m) } } } GROUP BY ?m",
        ),
        ("joins", "SELECT ?z (COUNT(DISTINCT ?y) AS ?n) {w}{ ?x :p ?y . ?x :q ?z } GROUP BY ?z"),
        ("joins", "SELECT ?z (SUM(?y) AS ?n) {w}{ ?x :p ?y . ?x :q ?z } GROUP BY ?z"),
        ("joins", "SELECT ?z (COUNT(?y + ?z) AS ?n) {w}{ ?x :p ?y . ?x :q ?z } GROUP BY ?z"),
        ("joins", "SELECT (COUNT(*) AS ?n) {w}{ ?x :p ?y . ?v :q ?z }"),
        (
            "joins",
            "SELECT ?z (COUNT(?w) AS ?n) {w}{ { ?x :p ?y OPTIONAL { ?y :r ?w } } ?x :q ?z } GROUP BY ?z",
        ),
        (
            "joins",
            "SELECT ?z (MAX(timestamp(?y)) AS ?n) {w}{ ?x :p ?y . ?x :q ?z } GROUP BY ?z",
        ),
        (
            "joins",
            "SELECT ?z (COUNT(*) AS ?n) FROM STREAM :s WINDOW RANGE 4 MS SLIDE 4 MS"
            " { ?x :p ?y . ?x :q ?z } GROUP BY ?z",
        ),
    ],
)
def test_aggregates_that_are_not_distributable_stay_above(name: str, query: str) -> None:
    before = plan("PREFIX : <http://e/> " + query.replace("{w}", TUMBLING))
    assert rewrite(before, (Phase(RULES[f"push_aggregates_into_{name}"]),)).plan is before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?w ?y (COUNT(*) AS ?n) {w}{ { ?y :p ?x OPTIONAL { ?x :p ?v } }"
        " { ?z :q ?x OPTIONAL { ?z :r ?w } } } GROUP BY ?w ?y",
        "SELECT ?z (SAMPLE(?y) AS ?n) (MAX(?l) AS ?m) {w}{ ?x ?l ?y"
        " VALUES (?x ?z) { (:a 1) (UNDEF 2) (:a 1) (UNDEF UNDEF) } } GROUP BY ?z",
        "SELECT ?y (COUNT(?x) AS ?n) (AVG(STRLEN(STR(?x))) AS ?a) {w}{ { ?x :p ?z OPTIONAL { ?x :q ?y } }"
        " { ?v :r ?z OPTIONAL { ?v :q ?y } } } GROUP BY ?y",
        "SELECT (MIN(?x) AS ?n) (SUM(1) AS ?m) {w}{ ?x :p ?z . ?z :q ?y . ?y ?l ?v }",
    ],
)
def test_aggregates_are_pushed_below_any_join(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{PUSHED}.LEAST_GAIN", 0.01)
    name = "push_aggregates_into_joins"
    for where in (TUMBLING, "FROM STREAM :s WINDOW RANGE 7 MS SLIDE 2 MS "):
        before = plan("PREFIX : <http://e/> " + query.replace("{w}", where))
        rewriting = rewrite(before, (Phase(RULES[name]),))
        assert rewriting.trace
        _check(name, before, rewriting)


def test_columns_that_determine_blank_nodes_are_not_pruned() -> None:
    for before in plans_of("CONSTRUCT { ?x :r [] } { ?x :p ?y . ?y :q ?z }"):
        assert rewrite(before, (Phase(RULES["prune_columns"]),)).plan is before


# -- side conditions -------------------------------------------------------------------------------

XY, YZ = matching("?x p ?y"), matching("?y q ?z")
IS_ONE = {v: Call("=", (v, Constant(integer(1)))) for v in (X, Y, Z)}


def test_a_filter_stays_above_a_join_if_no_side_certainly_binds_its_variables() -> None:
    optional = LeftJoin(matching("?x p ?x"), YZ)
    other = LeftJoin(matching("?x q ?x"), matching("?y r ?w"))
    assert push_filters_into_joins(Filter(IS_ONE[Y], Join(optional, other))) is None


def test_a_filter_on_an_optional_variable_stays_above() -> None:
    assert push_filters_left(Filter(Not(Bound(Z)), LeftJoin(XY, YZ))) is None


def test_a_filter_stays_above_a_window_that_counts_elements() -> None:
    window = SlidingTupleWindow(matching("?x p ?y", stream()), 3)
    assert push_filters_below_windows(Filter(IS_ONE[Y], window)) is None


def test_a_filter_on_an_unbound_variable_stays_above_a_window() -> None:
    window = FixedWindow(matching("?x p ?y", stream()), 3)
    assert push_filters_below_windows(Filter(IS_ONE[Z], window)) is None


def test_a_filter_stays_above_a_slice_and_a_projection_of_other_variables() -> None:
    assert push_filters_down(Filter(IS_ONE[X], Slice(0, 1, (X,), XY))) is None
    assert push_filters_down(Filter(IS_ONE[Y], Projection((X,), XY))) is None


def test_a_filter_on_a_stamp_of_both_sides_stays_above_the_join() -> None:
    at = Hidden(PlanKind.STAMP, of=(X,))
    one = TriplePatternMatching(TriplePattern(X, IRI("p"), Y), stream(), (Stamp(at),))
    two = TriplePatternMatching(TriplePattern(X, IRI("q"), Z), stream(), (Stamp(at),))
    condition = Call("<", (at, Constant(integer(5))))
    assert push_filters_into_joins(Filter(condition, Join(one, two))) is None


def test_now_is_not_folded() -> None:
    now = Call("=", (Call("NOW", ()), Call("NOW", ())))
    assert fold_expression(now) is now


T, F = Constant(TRUE), Constant(FALSE)
ERROR = Call("/", (Constant(integer(1)), Constant(integer(0))))


@pytest.mark.parametrize(
    ("expression", "folded"),
    [
        (And((F, X)), F),
        (Or((X, T)), T),
        (And((F, ERROR)), F),
        (And((T, X)), And((T, X))),  # the value is a boolean, ?x need not be one
        (And((T, Bound(X))), Bound(X)),
        (Or((ERROR, X)), Or((ERROR, X))),
        (If(ERROR, X, Y), If(ERROR, X, Y)),
        (If(T, X, ERROR), X),
        (Not(Not(T)), T),
        (Not(ERROR), Not(ERROR)),
    ],
)
def test_folding_follows_three_valued_logic(expression: Expression, folded: Expression) -> None:
    assert fold_expression(expression) == folded


# -- the order of joins ----------------------------------------------------------------------------


def test_stars_precede_chains_and_chains_precede_unconnected_patterns() -> None:
    star, chain, unconnected = matching("?x q ?w"), matching("?y q ?v"), matching("?a q ?b")
    ordered = order_joins(BasicGraphPattern((XY, unconnected, chain, star)))
    assert ordered == BasicGraphPattern((XY, star, chain, unconnected))


def test_the_most_selective_pattern_is_first() -> None:
    rare = Statistics(predicates={IRI("q"): 0.001})
    assert order_joins(Join(XY, YZ), Costs(rare)) == BasicGraphPattern((YZ, XY))


def test_static_parts_form_one_subplan() -> None:
    live = matching("?x p ?y", FixedWindow(stream(), 9))
    one, two = matching("?y q ?z"), matching("?z r ?w")
    ordered = order_joins(BasicGraphPattern((one, live, two)))
    assert isinstance(ordered, Join)
    assert {ordered.left, ordered.right} == {live, BasicGraphPattern((one, two))}


def test_a_plan_that_occurs_twice_in_a_join_is_joined_twice() -> None:
    live = matching("?x p ?y", FixedWindow(stream(), 9))
    ordered = order_joins(Join(Join(YZ, live), Join(YZ, live)))
    assert ordered is not None
    assert [node for node in ordered.walk() if node == YZ] == [YZ, YZ]


@given(st.permutations(["?a p ?b", "?b p ?c", "?c q 1", "?c p ?d", "?a q ?d", "?e p ?f"]))
def test_ordering_is_idempotent(patterns: list[str]) -> None:
    first = BasicGraphPattern(tuple(map(matching, patterns)))
    ordered = order_joins(first) or first
    assert order_joins(ordered) is None


def test_a_large_product_of_tables_is_not_folded() -> None:
    many = tuple((integer(k),) for k in range(100))
    product = Join(Table((X,), many), Table((Y,), many))
    assert not rewrite(product).counts().keys() & {"fold_tables"}


def test_the_group_of_an_empty_input_is_a_row() -> None:
    for before in plans_of("SELECT (COUNT(*) AS ?n) { ?x :p ?y FILTER(false) }"):
        after = rewrite(before).plan
        assert after.at(0, Inputs()) == rows({"n": "0"})
