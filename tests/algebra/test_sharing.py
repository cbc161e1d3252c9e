"""Skeletons: what is lifted, what is not, which queries have the same one, and that nothing is lost.

A skeleton with the constants bound again is the plan itself, up to names: it is compared with the
plan by definition, over random data. A plan that is rewritten with parameters and bound afterwards
has the snapshots of the bound plan, so no rule assumes anything of a parameter's value.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.families import FAMILIES, of_family
from support.generate import PREFIX
from support.plans import plan
from support.rewriting import inputs, instants

from streamsparql.algebra.canonical_names import canonical
from streamsparql.algebra.expressions import Call, Constant
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.parameter import Parameter, as_term, parameters_in
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import rewrite
from streamsparql.algebra.rules.fold_constants import is_constant
from streamsparql.algebra.rules.fold_tables import fold_tables
from streamsparql.algebra.rules.properties import is_set
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import UNIT, Extend, Table
from streamsparql.algebra.sharing import bind, is_shareable, skeleton, with_parameters
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.terms import IRI, Term, integer

STREAM = "FROM STREAM :s WINDOW RANGE 9 MS SLIDE 3 MS"


def shared(text: str) -> str:
    """Return the skeleton of a query as text, for comparisons."""
    return repr(skeleton(plan(PREFIX + text)).plan)


def constants(text: str) -> list[str]:
    """Return the constants that are lifted from a query, by the order of their parameters."""
    lifted = skeleton(plan(PREFIX + text)).constants
    return [
        str(lifted[str(k + 1)]).removeprefix("<http://e/").rstrip(">") for k in range(len(lifted))
    ]


# -- Which queries have the same skeleton

SAME = [
    ("SELECT ?x {w} {{ ?x :p :a }}", "SELECT ?y {w} {{ ?y :p :b }}"),
    (
        "SELECT ?x {w} {{ ?x :p ?v FILTER(?v > 1) }}",
        "SELECT ?s {w} {{ ?s :p ?o FILTER(?o > 2.5) }}",
    ),
    ("SELECT * {w} {{ _:x :p ?v }}", "SELECT * {w} {{ [] :p ?w }}"),
    ("ASK {w} {{ ?x :p ?v MINUS {{ ?x :q 1 }} }}", "ASK {w} {{ ?a :p ?b MINUS {{ ?a :q 2 }} }}"),
    ("SELECT ?x {w} {{ VALUES ?x {{ :a }} }}", "SELECT ?y {w} {{ VALUES ?y {{ :b }} }}"),
    ("CONSTRUCT {{ ?x :p :a }} {w} {{ ?x :p 1 }}", "CONSTRUCT {{ ?y :p :b }} {w} {{ ?y :p 2 }}"),
    ("SELECT * {w} {{ :a :p* ?x }}", "SELECT * {w} {{ :b :p* ?y }}"),
]
DIFFERENT = [
    ("SELECT ?x {w} {{ ?x :p :a }}", "SELECT ?x {w} {{ ?x :q :a }}"),
    ("SELECT ?x {w} {{ ?x :p :a }} LIMIT 1", "SELECT ?x {w} {{ ?x :p :a }} LIMIT 2"),
    ("SELECT ?x {w} {{ ?x :p :a ; :q :a }}", "SELECT ?x {w} {{ ?x :p :a ; :q :b }}"),
    ('SELECT ?x {w} {{ ?x :p ?v FILTER REGEX(?v, "a", "i") }}',
     'SELECT ?x {w} {{ ?x :p ?v FILTER REGEX(?v, "a", "s") }}'),
    ("SELECT ?x {w} {{ ?x :p ?x }}", "SELECT ?x {w} {{ ?x :p ?y }}"),
    ("SELECT ?x {w} {{ ?x :p 1 WINDOW ELEMS 5 }}", "SELECT ?x {w} {{ ?x :p 2 WINDOW ELEMS 5 }}"),
    ("SELECT ?x {w} {{ GRAPH :g {{ ?x :p 1 }} }}", "SELECT ?x {w} {{ GRAPH :h {{ ?x :p 1 }} }}"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_queries_that_differ_in_names_and_constants_have_the_same_skeleton(
    one: str, other: str
) -> None:
    assert shared(one.format(w=STREAM)) == shared(other.format(w=STREAM))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_queries_that_differ_otherwise_have_different_skeletons(one: str, other: str) -> None:
    assert shared(one.format(w=STREAM)) != shared(other.format(w=STREAM))


@pytest.mark.parametrize(
    ("text", "lifted"),
    [
        ("SELECT * {w} {{ :a :p ?x . ?x :q 1 }}", ["a", "1"]),
        ("SELECT * {w} {{ ?x :p :a . ?y :q :a }}", ["a"]),
        ('SELECT * {w} {{ ?x :p ?v FILTER REGEX(?v, "k", "i") }}', ['"k"']),
        ("SELECT * {w} {{ ?x :p ?v BIND(?v + 1 AS ?w) }} ORDER BY ?w LIMIT 3", ["1"]),
        ('SELECT (GROUP_CONCAT(?v; SEPARATOR="+") AS ?c) {w} {{ ?x :p ?v }}', []),
        ("SELECT ?x {w} {{ ?x :p ?v }} GROUP BY ?x HAVING (COUNT(*) > 3)", ["3"]),
        ("SELECT * {w} {{ ?x :p ?v {{ ?x :q 1 WINDOW RANGE 5 FIXED }} }}", ["1"]),
        ("DESCRIBE :a {w} {{ ?x :p 1 }}", []),
        ('SELECT (BNODE("k") AS ?b) {w} {{ ?x :p 1 }}', ["1"]),
        (
            "SELECT * {w} {{ ?x :p 1 FILTER EXISTS {{ ?x :q 2 OPTIONAL {{ ?x :r 3 }} }} }}",
            list("123"),
        ),
    ],
)
def test_constants_that_do_not_shape_a_plan_are_lifted(text: str, lifted: list[str]) -> None:
    numbers = [
        c.partition("^")[0].strip('"') if "integer" in c else c
        for c in constants(text.format(w=STREAM))
    ]
    assert sorted(numbers) == sorted(lifted)


def test_variables_keep_their_names_where_values_depend_on_them() -> None:
    volatile = plan(f"{PREFIX}SELECT ?x (RAND() AS ?r) {STREAM} {{ ?x :p ?v }}")
    template = plan(f"{PREFIX}CONSTRUCT {{ _:b :of ?x }} {STREAM} {{ ?x :p ?v }}")
    assert dict(canonical(volatile).variables)["x"] == "x"
    assert dict(canonical(template).variables)["x"] == "x"


# -- Nothing is lost


def snapshot(node: Plan, t: int, data: Inputs, names: dict[str, str]) -> Counter[Any]:
    """Return a snapshot with the visible variables by the names of the original plan."""
    rows = Counter[Any]()
    for row, n in node.at(t, data).entries:
        if isinstance(row, Solution):
            visible = ((names.get(v.name, v.name), x) for v, x in row.items() if not v.hidden)
            rows[frozenset(visible)] += n
        else:
            rows[row] += n
    return rows


@pytest.mark.parametrize("family", FAMILIES)
def test_a_skeleton_with_its_constants_is_the_query(family: str) -> None:
    @settings(max_examples=15)
    @given(of_family(family), inputs())
    def same(text: str, data: Inputs) -> None:
        original = plan(text)
        lifted = skeleton(original)
        bound = bind(lifted.plan, lifted.constants)
        assert not parameters_in(bound)
        names = {new: old for old, new in lifted.variables.items()}
        for t in instants(original, data):
            assert snapshot(original, t, data, {}) == snapshot(bound, t, data, names), f"at {t}"

    same()


TERMS: list[Term] = [IRI("http://e/a"), IRI("http://e/b"), integer(1), integer(3)]


@pytest.mark.parametrize("family", FAMILIES)
def test_rules_assume_nothing_of_parameters(family: str) -> None:
    @settings(max_examples=15)
    @given(of_family(family), inputs(), st.integers(0, 2**32))
    def same(text: str, data: Inputs, seed: int) -> None:
        random, lifted = Random(seed), skeleton(plan(text))
        terms = {
            name: random.choice([x for x in TERMS if isinstance(x, IRI)])
            if isinstance(term, IRI)
            else random.choice([term, *TERMS])
            for name, term in lifted.constants.items()
        }
        rewritten = bind(rewrite(lifted.plan).plan, terms)
        bound = bind(lifted.plan, terms)
        for t in instants(bound, data):
            assert snapshot(bound, t, data, {}) == snapshot(rewritten, t, data, {}), f"at {t}"

    same()


# -- Parameters

X = Variable("x")


def test_variables_become_parameters_wherever_they_are() -> None:
    query = plan(
        f"""{PREFIX}SELECT * {STREAM} {{ ?x :at ?p . ?p :q* ?z
        {{ SELECT ?x (COUNT(*) AS ?n) {{ ?x :r ?p }} GROUP BY ?x }}
        FILTER(?z != ?p && BOUND(?p) && EXISTS {{ ?p :s ?x }}) }} ORDER BY ?x LIMIT 2"""
    )
    lifted = with_parameters(query, {"p"})
    names = {v.name for node in lifted.walk() for v in node.walk() if isinstance(v, Variable)}
    assert "p" not in names
    assert parameters_in(lifted) == {"p"}
    assert "p" not in {v.name for v in scope(lifted).possible}


def test_bind_replaces_parameters_at_places_and_in_expressions() -> None:
    query = plan(f"{PREFIX}CONSTRUCT {{ ?x :is ?p }} {STREAM} {{ ?x :at ?p BIND(?p AS ?y) }}")
    bound = bind(with_parameters(query, {"p"}), {"p": integer(1)})
    assert isinstance(bound, Construct)
    assert bound.template[0].object == integer(1)
    assert [node.expression for node in bound.walk() if isinstance(node, Extend)] == [
        Constant(integer(1))
    ]


def test_a_parameter_is_not_a_constant_that_rules_know() -> None:
    table = Table((X,), ((as_term(Parameter("a")),), (as_term(Parameter("b")),)))
    condition = Call("=", (Parameter("a"), Constant(integer(1))))
    assert not is_constant(condition)
    assert fold_tables(Filter(condition, UNIT)) is None
    assert not is_set(table), "two parameters may have the same value"
    assert scope(Extend(X, Parameter("a"), UNIT)).certain == (X,)


@pytest.mark.parametrize(
    ("text", "shareable"),
    [
        ("SELECT * {w} {{ ?x :p ?p }}", True),
        ("SELECT * {w} {{ ?x :p ?v {{ ?x :q ?p WINDOW ELEMS 5 }} }}", False),
        ("SELECT * FROM STREAM :s WINDOW ELEMS 5 {{ ?x :p ?p }}", True),
        ("DESCRIBE ?x {w} {{ ?x :p ?p }}", False),
    ],
)
def test_plans_with_parameters_below_windows_and_descriptions_are_not_shared(
    text: str, shareable: bool
) -> None:
    lifted = with_parameters(plan(PREFIX + text.format(w=STREAM)), {"p"})
    assert is_shareable(skeleton(lifted).plan) is shareable
