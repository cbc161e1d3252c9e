"""Rewriting preserves all snapshots, terminates, and is fast.

The oracle is the definition: `plan.at(t)` of the query's plan and of the rewritten one. Not covered:
errors that both plans share (the oracles of other tests cover them), and whether a rewritten plan is
faster (benchmarks/ measures that).
"""

from __future__ import annotations

import ast
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import golden
from support.deep_queries import CHAINS, DEEP
from support.generate import Features, queries
from support.node_classes import leaves
from support.plans import matching, stream
from support.rewriting import OUTER, check_step, check_whole, inputs, instants

import streamsparql
from streamsparql.algebra import rules
from streamsparql.algebra import window as w
from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.algebra.align import Align, align, closes_periods
from streamsparql.algebra.cost import Statistics
from streamsparql.algebra.fixpoint import Phase
from streamsparql.algebra.inputs import Inputs, item
from streamsparql.algebra.join import Join
from streamsparql.algebra.match import BasicGraphPattern, TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import phases, rewrite
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, Term, Triple, integer

STATIC = Features(named_graphs=True, volatile=True, limits=True)
FORMS = replace(STATIC, forms=("ask", "construct", "describe"), limits=False, volatile=False)
STREAMS = replace(STATIC, streams=True)
FEATURES = {
    "static": STATIC,
    "forms": FORMS,
    "streaming": STREAMS,
    "csparql": replace(STREAMS, dialect="csparql"),
    "cqels": replace(STREAMS, dialect="cqels", named_graphs=False),
    "rspql": replace(STREAMS, dialect="rspql", named_graphs=False),
    "epsparql": Features(
        dialect="epsparql",
        paths=False,
        exists=False,
        minus=False,
        forms=("select", "ask"),
        subqueries=False,
        groups=False,
    ),
}


def properties(dialect: str, examples: int, few: int) -> Callable[[], None]:
    """Return a test that each step keeps its subplan's snapshots, and the whole its order."""

    @settings(max_examples=examples)
    @given(queries(FEATURES[dialect]), inputs(), OUTER)
    def run(query: str, data: Inputs, outer: dict[Variable, Term]) -> None:
        before = streamsparql.compile(query).logical
        rewriting = rewrite(before)
        times = instants(before, data)
        for step in rewriting.trace:
            check_step(step, data, outer, times[1 : 1 + few])
        check_whole(before, rewriting.plan, data, times[: 4 * few])

    return run


@pytest.mark.parametrize("dialect", FEATURES)
def test_a_rewritten_plan_has_the_same_snapshots(dialect: str) -> None:
    properties(dialect, 25, 2)()


@pytest.mark.long
@pytest.mark.parametrize("dialect", FEATURES)
def test_many_rewritten_plans_have_the_same_snapshots(dialect: str) -> None:
    properties(dialect, 1500, 4)()


def test_random_queries_use_most_rules() -> None:
    applied: Counter[str] = Counter()
    for features in FEATURES.values():

        @settings(max_examples=40)
        @given(queries(features))
        def count(query: str) -> None:
            applied.update(step.rule for step in rewrite(streamsparql.compile(query).logical).trace)

        count()
    assert len(applied) > 15, applied


# -- the golden queries ----------------------------------------------------------------------------


def fitting(plan: Plan) -> Inputs:
    """Return data that the patterns of a plan match: their triples, with few distinct terms."""

    def term(place: Term | Variable, kinds: tuple[Term, ...]) -> Term:
        return kinds[len(place.name) % len(kinds)] if isinstance(place, Variable) else place

    nodes = (IRI("http://e/a"), IRI("http://e/b"))
    values = (IRI("http://e/a"), integer(1), integer(2))
    patterns = [x.pattern for x in plan.walk() if isinstance(x, TriplePatternMatching)]
    triples = [Triple(term(s, nodes), term(p, nodes), term(o, values)) for s, p, o in patterns]
    streams = {x.stream for x in plan.walk() if isinstance(x, AccessStream)}
    graphs = {g for x in plan.walk() if isinstance(x, AccessGraph) for g in x.graphs}
    items = [item(triple, 500 * k) for k, triple in enumerate(triples * 2)]
    return Inputs(
        streams=dict.fromkeys(streams, items),
        graph=frozenset(triples[::2]),
        graphs={g: frozenset(triples) for g in graphs if isinstance(g, IRI)},
    )


@pytest.mark.parametrize("case", list(golden.cases()))
def test_a_golden_query_has_the_same_snapshots(case: golden.Case) -> None:
    query = streamsparql.compile(case.text)
    data = fitting(query.logical)
    check_whole(query.logical, query.optimized, data, instants(query.logical, data)[:5])


# -- depth, size, time -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DEEP, *(f"a chain of {name}" for name in CHAINS)])
def test_a_deep_plan_is_rewritten(name: str) -> None:
    text = DEEP[name] if name in DEEP else CHAINS[name.removeprefix("a chain of ")]
    query = streamsparql.compile("SELECT * " + text)
    before = time.process_time()
    rewriting = rewrite(query.logical)
    assert time.process_time() - before < 5
    if name.removeprefix("a chain of ") in ("groups", "optionals", "unions", "disjunctions"):
        data = streamsparql.inputs(graph=[("<s>", "<p>", "<o>")])
        assert rewriting.plan.at(0, data) == query.logical.at(0, data)


def test_five_hundred_patterns_are_ordered_within_a_second() -> None:
    triples = " . ".join(f"?x{k} <p> ?x{k + 1}" for k in range(500))
    text = f"SELECT ?x0 FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S {{ {triples} }}"
    plan = streamsparql.compile(text).logical
    before = time.process_time()
    assert rewrite(plan).counts()["prune_columns"]
    assert time.process_time() - before < 1


def test_compiling_does_not_rewrite() -> None:
    query = streamsparql.compile("SELECT * { ?x <p> ?y FILTER(true) }")
    assert "rewriting" not in vars(query)
    assert query.optimized is query.optimized


def test_a_shared_subplan_stays_shared() -> None:
    text = "SELECT ?x FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?x <p> ?y . ?y <q> ?z }"
    plan = streamsparql.compile(text).optimized
    sources = {id(node) for node in plan.walk() if isinstance(node, w.FixedWindow)}
    assert len(sources) == 1


def test_rules_that_undo_each_other_are_stopped() -> None:
    def swap(plan: Plan) -> Plan | None:
        return Join(plan.right, plan.left) if isinstance(plan, Join) else None

    plan = Join(matching("?x p ?y"), matching("?y q ?z"))
    with pytest.raises(AssertionError, match="swap"):
        rewrite(plan, (Phase(Rule(swap, (Join,))),))


def test_each_file_of_a_rule_ends_with_its_declaration() -> None:
    declared = {rule.name: rule.function for phase in phases() for rule in phase.rules}
    files = set()
    for path in sorted(Path(rules.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text())
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if path.stem not in names or path.stem == "sketch":  # a rule is named after its file
            continue
        last = tree.body[-1]
        assert isinstance(last, ast.Assign), path
        assert ast.unparse(last.targets[0]) == "RULE", path
        rule = import_module(f"{rules.__name__}.{path.stem}").RULE
        assert rule.name == path.stem
        assert declared[path.stem] is rule.apply, f"{path.stem} is in no phase"
        files.add(path.stem)
    assert files == set(declared)


def test_rules_that_choose_by_cost_use_the_statistics() -> None:
    patterns = matching("?x p ?y"), matching("?x q ?y")
    plan = BasicGraphPattern(patterns)
    for rare, order in (("p", patterns), ("q", patterns[::-1])):
        known = Statistics(predicates={IRI(rare): 0.001})
        assert rewrite(plan, statistics=known).plan == BasicGraphPattern(order)


def test_rules_are_declared_at_plan_classes() -> None:
    for phase in phases():
        for rule in phase.rules:
            assert set(rule.at) <= leaves(Plan)


# -- report alignment ------------------------------------------------------------------------------

GRID = st.tuples(st.integers(1, 7), st.integers(0, 9))


@given(GRID, st.booleans(), st.integers(0, 20), st.integers(1, 15))
def test_the_aligned_interval_agrees_with_the_definition(
    grid: tuple[int, int], shown_before: bool, start: int, length: int
) -> None:
    class Held(Plan):
        def at(self, t: int, inputs: Inputs) -> object:  # type: ignore[override]
            return start <= t < start + length

    period, origin = grid
    aligned = Align(Held(), period, origin, shown_before)
    first, after = aligned.interval(start, start + length)
    for t in range(60):
        assert bool(aligned.at(t, Inputs())) == (first <= t < after)


@settings(max_examples=25)
@given(queries(FEATURES["streaming"]), inputs(), GRID, st.booleans())
def test_an_aligned_plan_has_the_same_reports(
    query: str, data: Inputs, grid: tuple[int, int], shown_before: bool
) -> None:
    period, origin = grid
    plan = streamsparql.compile(query).optimized
    aligned = align(plan, period, origin, shown_before)
    for r in range(origin or period, 24, period):
        expected = plan.at(r - shown_before, data)
        assert aligned.at(r, data) == expected
        assert aligned.at(r + period - 1, data) == expected


def test_windows_determine_the_reported_snapshot() -> None:
    live = matching("?x p ?y", w.SlidingDeltaWindow(stream(), 9, 3))
    stepped = matching("?x p ?y", w.SteppedWindow(stream(), 9, 3, "left"))
    counted = matching("?x p ?y", w.SlidingTupleWindow(stream(), 3))
    assert closes_periods(Join(live, counted)) is True
    assert closes_periods(Join(stepped, counted)) is False
    assert closes_periods(Join(live, stepped)) is None
    assert closes_periods(counted) is None


def test_rows_projected_before_an_aggregation_are_consolidated() -> None:
    text = "SELECT (COUNT(*) AS ?n) FROM STREAM <s> WINDOW RANGE 9 MS SLIDE 3 MS { ?x <p> ?y }"
    query = streamsparql.compile(text)
    for plan, expected in ((query.optimized, True), (query.logical, False)):
        aligned = [node for node in align(plan, 3).walk() if isinstance(node, Align)]
        assert [node.consolidate for node in aligned] == [expected]
