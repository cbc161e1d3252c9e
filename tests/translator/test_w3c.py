"""The W3C test suites for SPARQL 1.0 and 1.1, evaluated by the definitions of the algebra.

Static data holds at all instants, so the answer of a query over it is the snapshot of its plan at
any instant. The last section tests the comparison itself, which must reject wrong answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from hypothesis import given
from hypothesis import strategies as st
from support import w3c
from support.external_data import over_data
from support.w3c import Answer, Case, Kind, Row

import streamsparql
from streamsparql import QueryError, QuerySyntaxError, UnsupportedFeature
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term
from streamsparql.translator.checks import check
from streamsparql.translator.parse import parse

DEVIATIONS: dict[str, str] = {}
"""Tests that we fail intentionally, by name, each with the relevant text of the specification."""


def _cases_of_kind(kind: Kind) -> Callable[[Path], Iterator[ParameterSet]]:
    def matching_cases(data: Path) -> Iterator[ParameterSet]:
        for case in w3c.cases(data):
            if case.kind == kind:
                reason = DEVIATIONS.get(case.name)
                marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
                yield pytest.param(case, id=case.name, marks=marks)

    return matching_cases


@pytest.mark.parametrize("case", over_data(_cases_of_kind("accepted")))
def test_a_query_is_accepted(case: Case) -> None:
    try:
        streamsparql.compile(case.text, base=case.query)
    except UnsupportedFeature:  # an unknown function is not a syntax error
        check(parse(case.text))


@pytest.mark.parametrize("case", over_data(_cases_of_kind("refused")))
def test_an_invalid_query_is_refused(case: Case) -> None:
    with pytest.raises((QuerySyntaxError, QueryError)):
        streamsparql.compile(case.text, base=case.query)


@pytest.mark.parametrize("stage", ["logical", "optimized"])
@pytest.mark.parametrize("case", over_data(_cases_of_kind("evaluated")))
def test_a_query_has_the_expected_answer(case: Case, stage: str) -> None:
    query = streamsparql.compile(case.text, base=case.query)
    plan: Plan = getattr(query, stage)
    ours = w3c.answer(query, plan.at(0, w3c.inputs(case, query)))
    difference = w3c.difference(case, query, ours, w3c.expected(case))
    assert not difference, difference


# -- the comparison --------------------------------------------------------------------------------


def test_a_missing_row_is_detected(data: Path) -> None:
    for case in w3c.cases(data):
        if case.kind == "evaluated":
            theirs = w3c.expected(case)
            assert w3c.agree(theirs, theirs, case.lax), case.name
            for i in range(len(theirs.rows)):
                fewer = replace(theirs, rows=theirs.rows[:i] + theirs.rows[i + 1 :])
                assert not w3c.agree(fewer, theirs), case.name


NODES = [BlankNode(label) for label in "abcd"]
CELLS: st.SearchStrategy[Term | None] = st.sampled_from([*NODES, IRI("i"), None])
ROWS = st.lists(st.tuples(CELLS, CELLS), max_size=7)
RENAMINGS = [dict(zip(NODES, nodes, strict=True)) for nodes in permutations(NODES)]


def _renamed(rows: Iterable[Row], renaming: dict[BlankNode, BlankNode]) -> list[Row]:
    return [tuple(renaming[x] if isinstance(x, BlankNode) else x for x in row) for row in rows]


def _solutions(rows: Iterable[Row], ordered: bool = False) -> Answer:
    return Answer("solutions", ("x", "y"), tuple(rows), ordered)


@given(ROWS, st.sampled_from(RENAMINGS), st.data())
def test_labels_of_blank_nodes_and_the_order_of_rows_are_ignored(
    rows: list[Row], renaming: dict[BlankNode, BlankNode], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(_renamed(rows, renaming)))
    assert w3c.agree(_solutions(rows), _solutions(shuffled))


@given(ROWS, st.integers(0, 6), st.tuples(CELLS, CELLS))
def test_answers_agree_exactly_if_a_renaming_makes_them_equal(
    rows: list[Row], changed: int, row: Row
) -> None:
    others = [row if i == changed else old for i, old in enumerate(rows)]
    expected = any(Counter(_renamed(rows, one)) == Counter(others) for one in RENAMINGS)
    assert w3c.agree(_solutions(rows), _solutions(others)) == expected


X, Y = (IRI("x"), None), (IRI("y"), None)


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ([X, X, Y], [X, X, Y], True),
        ([X, Y], [X, X, Y], True),
        ([X, X, X, Y], [X, X, Y], False),
        ([X, X], [X, X, Y], False),
    ],
)
def test_reduced_may_only_remove_duplicates(ours: list[Row], theirs: list[Row], same: bool) -> None:
    assert w3c.agree(_solutions(ours), _solutions(theirs), lax=True) == same


def test_numbered_rows_must_be_in_order() -> None:
    theirs = _solutions([X, Y, X], ordered=True)
    assert w3c.agree(_solutions([X, Y, X]), theirs)
    assert not w3c.agree(_solutions([X, X, Y]), theirs)


def _difference(text: str, ours: list[Term], theirs: list[Term], file: str = "a.srx") -> str:
    """Return the difference of two answers with one variable ?x."""
    case = Case("test", "evaluated", Path(), "", "", result=file)
    one, other = (Answer("solutions", ("x",), tuple((x,) for x in xs)) for xs in (ours, theirs))
    return w3c.difference(case, streamsparql.compile(text), one, other)


def _decimals(*lexical: str) -> list[Term]:
    return [Literal(x, IRI(XSD + "decimal")) for x in lexical]


def test_terms_of_the_data_are_compared_by_lexical_form_and_computed_terms_by_value() -> None:
    short, long = _decimals("0.5"), _decimals("0.50")
    assert _difference("SELECT ?x { ?s ?p ?x }", short, long)
    assert not _difference("SELECT ?x { BIND(1/2 AS ?x) }", short, long)
    assert not _difference("SELECT (AVG(?y) AS ?x) { ?s ?p ?y }", short, long)
    assert not _difference("SELECT ?x { ?s ?p ?x }", short, long, "a.tsv")
    assert _difference("SELECT ?x { BIND(1/2 AS ?x) }", short, _decimals("0.51"))
    assert _difference("SELECT ?x { BIND(1/2 AS ?x) }", short, [Literal("0.5")])


def test_rows_must_be_in_the_order_of_order_by() -> None:
    one, other = _decimals("1", "2"), _decimals("2", "1")
    assert _difference("SELECT ?x { ?s ?p ?x } ORDER BY ?x LIMIT 9", other, one)
    assert not _difference("SELECT ?x { ?s ?p ?x } ORDER BY ?x", one, other)  # an unsorted file
    assert not _difference("SELECT ?x { ?s ?p ?x } ORDER BY (?x * 0)", one, other)
    assert not _difference("SELECT ?x { ?s ?p ?x }", one, other)


def test_projected_variables_are_columns_even_if_unbound() -> None:
    """SPARQL 1.1, section 18.2.1: they are in scope and in the head of the results."""
    inner = "{ SELECT ?x ?z { ?x ?p ?y } }"
    assert streamsparql.compile("SELECT ?x ?z { ?x ?p ?y }").variables == ("x", "z")
    assert streamsparql.compile(f"SELECT * {inner}").variables == ("x", "z")
    assert streamsparql.compile("SELECT ?x ?z { ?x ?p ?y MINUS { ?z ?p ?y } }").variables == (
        "x",
        "z",
    )
