"""Depth and size: what is legal is handled, however deep; what cannot be is refused by name."""

from __future__ import annotations

import pytest
from support.deep_queries import DEEP, NESTED

import streamsparql
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.terms import IRI, Triple
from streamsparql.errors import QueryError
from streamsparql.translator.unparse import unparse


@pytest.mark.parametrize("name", NESTED)
def test_a_deep_query_compiles_and_comes_back(name):
    query = streamsparql.compile("SELECT * " + NESTED[name])
    assert repr(query.logical)
    query.check()
    if name != "exists":  # each is written on one line, which is quadratic in the depth
        assert unparse(query.logical)  # compiles again and compares


def test_a_deep_query_of_events_compiles():
    chain = "{ ?s ?p ?o }" + " SEQ { ?s ?p ?o }" * DEEP
    assert streamsparql.compile(f"SELECT ?s {{ {chain} }}").dialect == "epsparql"


@pytest.mark.parametrize("name", ["groups", "optionals", "minus", "unions", "sums", "disjunctions"])
def test_a_deep_query_has_an_answer(name):
    data = Inputs(graph=frozenset([Triple(IRI("s"), IRI("p"), IRI("o"))]))
    deep = NESTED[name]
    found = streamsparql.compile("ASK " + deep).logical.at(0, data)
    assert len(found) == 1


def test_an_expression_that_cannot_be_evaluated_is_refused_when_it_is_compiled():
    with pytest.raises(QueryError, match="nests deeper than"):
        streamsparql.compile("SELECT * { FILTER(" + "!(" * DEEP + "true" + ")" * DEEP + ") }")
    streamsparql.compile("SELECT * { FILTER(" + "!(" * 100 + "true" + ")" * 100 + ") }")


def test_five_hundred_patterns_are_one_plan():
    triples = " . ".join(f"?x{k} <p> ?x{k + 1}" for k in range(500))
    text = f"SELECT * FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S {{ {triples} }}"
    query = streamsparql.compile(text)
    assert len(query.variables) == 501
    sources = {id(node.input) for node in query.logical.input.matchings}
    assert len(sources) == 1  # they share what they read
