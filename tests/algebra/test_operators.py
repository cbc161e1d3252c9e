"""The definitions of the operators, on cases small enough to check by eye."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans import (
    X,
    Y,
    events,
    graph,
    matching,
    plan,
    row,
    rows,
    stream,
    triple,
    with_background,
)

from streamsparql.algebra import expressions as e
from streamsparql.algebra.access import AccessGraph
from streamsparql.algebra.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.algebra.graph import Ask, Construct, Graph
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.inputs import Inputs, item
from streamsparql.algebra.join import Join, LeftJoin, Minus, Union
from streamsparql.algebra.match import BasicGraphPattern, TriplePattern
from streamsparql.algebra.shape import (
    UNIT,
    Distinct,
    Extend,
    Number,
    OrderBy,
    Projection,
    Slice,
    Table,
)
from streamsparql.algebra.solutions import Solution, Variable, compatible, merge_solutions
from streamsparql.algebra.terms import FALSE, IRI, TRUE, BlankNode, integer
from streamsparql.algebra.window import SlidingDeltaWindow
from streamsparql.errors import EngineError

N = Variable("n")
DATA = graph("a p 1", "a p 2", "b p 1", "a q c", "c r c")
ROWS = matching("?x p ?y")


def at(operator, data=DATA, t=0):
    return operator.at(t, data)


def test_a_matching_binds_variables_and_compares_terms():
    assert at(matching("a p ?y")) == rows({"y": "1"}, {"y": "2"})
    assert at(matching("?x r ?x")) == rows({"x": "c"})
    assert at(matching("a q c")) == rows({})
    assert at(matching("?x q 1")) == rows()


def test_matchings_keep_duplicates_of_streams_and_merge_the_graph():
    data = Inputs(
        {IRI("s"): [item(triple("a p 1"), 0), item(triple("a p 1"), 0)]},
        graph=frozenset([triple("a p 1")]),
    )
    window = SlidingDeltaWindow(stream(), 5, 5)
    assert at(matching("a p ?y", window), data) == rows({"y": "1"}, {"y": "1"})
    assert len(at(matching("a p ?y", with_background(window)), data)) == 3
    assert at(matching("a p ?y", Distinct(with_background(window))), data) == rows({"y": "1"})


def test_a_join_merges_compatible_rows_and_multiplies():
    two = Union((ROWS, ROWS))
    assert len(at(Join(two, two))) == 12
    assert at(Join(matching("a p ?y"), matching("b p ?y"))) == rows({"y": "1"})
    assert at(BasicGraphPattern((matching("a p ?y"), matching("?x p ?y")))) == rows(
        {"y": "1", "x": "a"}, {"y": "1", "x": "b"}, {"y": "2", "x": "a"}
    )


def test_a_left_join_emits_unmatched_rows():
    condition = e.Call(">", (Y, e.Constant(integer(1))))
    left, right = matching("?x p 1"), matching("?x p ?y")
    assert at(LeftJoin(left, right, condition)) == rows({"x": "a", "y": "2"}, {"x": "b"})
    assert len(at(LeftJoin(left, right))) == 3


def test_a_left_joins_condition_may_contain_exists():
    mark = Hidden(PlanKind.EXISTS)
    left, right = matching("?x p 1"), matching("?x p ?y")
    joined = LeftJoin(left, right, mark, ((mark, matching("?x q ?z")),))
    assert at(joined) == rows({"x": "a", "y": "1"}, {"x": "a", "y": "2"}, {"x": "b"})


def test_minus_needs_a_shared_bound_variable():
    assert at(Minus(ROWS, matching("?x q ?w"))) == rows({"x": "b", "y": "1"})
    assert at(Minus(ROWS, matching("?v q ?w"))) == at(ROWS)
    assert at(Minus(ROWS, UNIT)) == at(ROWS)


def test_a_filter_treats_an_error_as_false():
    unbound = e.Call("=", (Variable("nowhere"), Y))
    assert at(Filter(unbound, ROWS)) == rows()
    assert at(Filter(e.Or((unbound, e.Constant(TRUE))), ROWS)) == at(ROWS)
    assert at(Filter(e.Not(unbound), ROWS)) == rows()


def test_exists_is_evaluated_per_row():
    pattern = matching("?x q ?z")
    assert at(SemiJoin(ROWS, pattern)) == rows({"x": "a", "y": "1"}, {"x": "a", "y": "2"})
    assert at(AntiJoin(ROWS, pattern)) == rows({"x": "b", "y": "1"})
    mark = Hidden(PlanKind.EXISTS)
    marked = {r[mark] for r in at(Mark(mark, ROWS, pattern))}
    assert marked == {TRUE, FALSE}


def test_exists_substitutes_in_expressions():
    """The inner filter reads the outer ?y, which no pattern inside binds."""
    inner = Filter(e.Call("=", (Y, e.Constant(integer(2)))), matching("?x q ?z"))
    assert at(SemiJoin(ROWS, inner)) == rows({"x": "a", "y": "2"})


def test_exists_does_not_substitute_below_a_window():
    """`ELEMS 1` counts all matches of the pattern, not only those of the outer row."""
    text = """SELECT ?x FROM STREAM <s> WINDOW RANGE 100 FIXED
        WHERE { ?x <p> 1 FILTER EXISTS { ?x <q> ?y WINDOW ELEMS 1 } }"""
    items = [("a p 1", 1), ("b p 1", 2), ("a q 1", 3), ("b q 1", 4)]
    data = Inputs({IRI("s"): [item(triple(text), t) for text, t in items]})
    assert at(plan(text), data, 3) == rows({"x": "a"})
    assert at(plan(text), data, 4) == rows({"x": "b"})


def test_extend_leaves_the_variable_of_an_error_unbound():
    error = e.Call("/", (Y, e.Constant(integer(0))))
    assert at(Extend(N, error, ROWS)) == at(ROWS)
    assert at(Extend(N, e.Constant(IRI("k")), matching("b p ?y"))) == rows({"y": "1", "n": "k"})


def test_values_always_hold_and_undef_is_unbound():
    table = Table((X, Y), ((IRI("a"), None), (None, integer(3))))
    assert at(table) == rows({"x": "a"}, {"y": "3"})
    assert table.at(10**12, Inputs()) == at(table)


def test_grouping_an_empty_input_without_keys_has_one_group():
    count = e.Aggregate("COUNT", None)
    assert at(Aggregation((), ((N, count),), matching("?x nothing ?y"))) == rows({"n": "0"})
    assert at(Aggregation((X,), ((N, count),), matching("?x nothing ?y"))) == rows()
    assert at(Aggregation((X,), ((N, count),), ROWS)) == rows(
        {"x": "a", "n": "2"}, {"x": "b", "n": "1"}
    )


def test_an_aggregate_error_affects_its_group_only():
    total = e.Aggregate("SUM", Variable("y"))
    data = graph("a p 1", "b p c")
    assert at(Aggregation((X,), ((N, total),), ROWS), data) == rows(
        {"x": "a", "n": "1"}, {"x": "b"}
    )


def test_annotate_keeps_the_rows():
    assert at(Annotate(N, e.Aggregate("COUNT", None), (X,), ROWS)) == rows(
        {"x": "a", "y": "1", "n": "2"},
        {"x": "a", "y": "2", "n": "2"},
        {"x": "b", "y": "1", "n": "1"},
    )


def test_order_by_is_total_and_slices_apply_to_it():
    ordered = OrderBy(((Y, True),), (X, Y), ROWS)
    assert list(at(ordered)) == [row(x="a", y="2"), row(x="a", y="1"), row(x="b", y="1")]
    assert list(at(Slice(1, 1, (), Projection((Y,), ordered)))) == [row(y="1")]
    assert at(Slice(0, 2, (X, Y), ROWS)) == rows({"x": "a", "y": "1"}, {"x": "a", "y": "2"})
    assert at(Slice(2, None, (X, Y), ROWS)) == rows({"x": "b", "y": "1"})
    assert at(Slice(0, 0, (X, Y), ROWS)) == rows()


def test_a_slice_may_split_equal_rows():
    same = Projection((), ROWS)
    assert len(at(Slice(1, 1, (), same))) == 1
    assert len(at(Slice(1, 5, (), same))) == 2


def test_distinct_keeps_the_order_of_its_input():
    ordered = Projection((Y,), OrderBy(((Y, True),), (X, Y), ROWS))
    assert list(at(Distinct(ordered))) == [row(y="2"), row(y="1")]


def test_equal_rows_are_numbered():
    numbered = at(Number(N, Projection((), ROWS)))
    assert sorted(r[N].lexical for r in numbered) == ["1", "2", "3"]


def test_random_numbers_are_a_function_of_the_row():
    text = "SELECT ?x (RAND() AS ?n) { ?x <p> ?y }"
    once = at(plan(text))
    assert once == at(plan(text))
    assert len({r[N] for r in once}) == 3


def test_bnode_of_a_name_returns_one_node_per_row():
    text = 'SELECT (BNODE("k") AS ?a) (BNODE("k") AS ?b) (BNODE() AS ?c) { ?x <p> ?y }'
    solutions = list(at(plan(text)))
    assert all(r[Variable("a")] == r[Variable("b")] != r[Variable("c")] for r in solutions)
    assert len({r[Variable("a")] for r in solutions}) == 3


def test_a_template_has_new_blank_nodes_for_each_row():
    template = (
        TriplePattern(BlankNode("b"), IRI("of"), X),
        TriplePattern(BlankNode("b"), IRI("val"), Y),
        TriplePattern(Y, IRI("no"), X),  # a literal cannot be a subject
    )
    constructed = at(Construct(template, ROWS))
    assert len(constructed) == 6
    assert len({t.subject for t in constructed}) == 3
    doubled = at(Construct(template, Union((ROWS, ROWS))))
    assert len({t.subject for t in doubled}) == 6


def test_a_constructed_graph_is_a_set():
    assert len(at(Construct((TriplePattern(X, IRI("is"), IRI("here")),), ROWS))) == 2


def test_describe_follows_blank_nodes():
    data = Inputs(
        graph=frozenset(
            [
                *map(triple, ["a p 1", "c p 1"]),
                triple("a q b")._replace(object=BlankNode("n")),
                triple("b r c")._replace(subject=BlankNode("n")),
            ]
        )
    )
    assert len(at(plan("DESCRIBE <a>"), data)) == 3
    assert len(at(plan("DESCRIBE ?x { ?x <p> 1 }"), data)) == 4


def test_ask_is_true_if_there_is_a_row():
    assert list(at(Ask(ROWS))) == [TRUE]
    assert list(at(Ask(matching("?x nothing ?y")))) == [FALSE]


def test_graph_ranges_over_the_named_graphs():
    data = Inputs(graphs={IRI("g"): frozenset([triple("a p 1")]), IRI("h"): frozenset()})
    inside = matching("?x p ?y", AccessGraph((Variable("g"),)))
    assert at(Graph(Variable("g"), inside), data) == rows({"g": "g", "x": "a", "y": "1"})
    assert at(Graph(Variable("g"), UNIT), data) == rows({"g": "g"}, {"g": "h"})
    assert at(Graph(IRI("h"), UNIT), data) == rows({})
    assert at(Graph(IRI("unknown"), UNIT), data) == rows()


def test_solutions_that_disagree_are_not_compatible():
    assert compatible(row(x="a"), row(y="b"))
    assert not compatible(row(x="a"), row(x="b"))
    assert merge_solutions(row(x="a"), row(y="b")) == row(x="a", y="b")


def test_compatibility_ignores_stamps_and_merging_keeps_the_later():
    stamp = Hidden(PlanKind.STAMP, of=(X,))
    early, late = Solution({X: IRI("a"), stamp: integer(9)}), Solution({stamp: integer(10)})
    assert compatible(early, late)
    assert merge_solutions(early, late)[stamp] == integer(10)
    assert early.domain == {X}


def test_a_rebuilt_plan_is_equal_and_has_the_same_hash():
    first = Filter(e.Call("=", (X, Y)), Join(ROWS, matching("?x q ?z")))
    again = first.with_inputs(*first.inputs)
    assert first == again
    assert hash(first) == hash(again)
    assert first != Filter(e.Call("!=", (X, Y)), first.input)
    assert repr(first) == repr(again)


def test_a_window_above_a_join_is_rejected():
    with pytest.raises(EngineError, match="cannot be applied to Join"):
        SlidingDeltaWindow(Join(ROWS, ROWS), 5, 5).at(0, DATA)


@given(st.lists(st.sampled_from(["a p 1", "a p 2", "b p 1", "b q c"]), unique=True))
def test_filters_of_unions_are_snapshot_reducible(triples):
    """tau(filter(S1 + S2)) = filter(tau(S1)) + filter(tau(S2))."""
    data = graph(*triples)
    condition = e.Call("=", (Y, e.Constant(integer(1))))
    both = Union((ROWS, matching("?x q ?y")))
    parts = [at(Filter(condition, branch), data) for branch in both.branches]
    assert at(Filter(condition, both), data) == parts[0] + parts[1]


def test_rows_that_differ_in_hidden_columns_have_distinct_random_values():
    """R16: because of the pattern's blank node they are two solutions."""
    data = graph("a p 1", "a p 2")
    (count,) = plan("SELECT (COUNT(DISTINCT UUID()) AS ?n) { ?x <p> [] }").at(0, data)
    assert count == row(n="2")
    nodes = [mu[Variable("b")] for mu in plan("SELECT (BNODE() AS ?b) { ?x <p> [] }").at(0, data)]
    assert len(set(nodes)) == 2


def test_exists_substitutes_above_a_window():
    """Section 3: a window in FROM and one in the group have the same result."""
    data = events(("a p 1", 1), ("b q 2", 1), name="s")
    window = "WINDOW RANGE 9 SLIDE 1"
    texts = [
        f"SELECT ?x FROM STREAM <s> {window} {{ ?x <p> ?y FILTER EXISTS {{ OPTIONAL {{ ?x <q> ?z }} }} }}",
        f"SELECT ?x FROM STREAM <s> {window} {{ ?x <p> ?y FILTER EXISTS {{ OPTIONAL {{ ?x <q> ?z {window} }} }} }}",
    ]
    assert [plan(text).at(1, data) for text in texts] == [rows({"x": "a"})] * 2
