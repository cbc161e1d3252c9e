"""Arguments of `inputs` and `compile`: the accepted forms, and the errors for invalid ones."""

from __future__ import annotations

import pytest
import rdflib

import streamsparql
from streamsparql import SourceError, StreamSparqlError
from streamsparql.algebra.terms import IRI, BlankNode, Literal

TRIPLE = ("<a>", "<p>", "_:b")


def test_terms_are_of_the_algebra_of_rdflib_or_n_triples():
    number = rdflib.Literal("01", datatype=rdflib.XSD.integer, normalize=False)
    data = streamsparql.inputs(graph=[(rdflib.URIRef("a"), IRI("p"), number)])
    ((subject, _, value),) = data.graph
    assert (subject, value.lexical) == (IRI("a"), "01")
    ((_, _, text),) = streamsparql.inputs(graph=[("<a>", "<p>", '"x\\u0041"@EN')]).graph
    assert text == Literal("xA", language="en")


def test_rdflib_graph_is_a_source():
    graph = rdflib.Graph().parse(data="<urn:a> <urn:p> 1, 2 .", format="turtle")
    assert len(streamsparql.inputs(graph=graph).graph) == 2


def test_items_have_three_equivalent_forms():
    forms = [(*TRIPLE, 5), (TRIPLE, 5), (TRIPLE, 5, 5)]
    data = streamsparql.inputs({"s": forms})
    assert len(set(data.stream(IRI("s")))) == 1


def test_blank_nodes_are_scoped_to_their_source():
    data = streamsparql.inputs({"s": [(TRIPLE, 1)], "r": [(TRIPLE, 1)]}, graph=[TRIPLE])
    nodes = {data.stream(IRI(name))[0].triple.object for name in "sr"}
    nodes |= {triple.object for triple in data.graph}
    assert len(nodes) == 3
    assert all(isinstance(node, BlankNode) for node in nodes)


@pytest.mark.parametrize(
    "item",
    [
        5,
        TRIPLE,
        ("<a>", "<p>", 5),
        ("<a>", "<p>", "b", 5),
        ('"a"', "<p>", "<b>", 5),
        ("<a>", "_:p", "<b>", 5),
        (*TRIPLE, -1),
        (*TRIPLE, 1.5),
        (*TRIPLE, True),
        (TRIPLE, 7, 5),
    ],
)
def test_invalid_item_raises(item):
    with pytest.raises(SourceError):
        streamsparql.inputs({"s": [item]})


def test_missing_stream_raises():
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE 5 { ?a ?b ?c }")
    with pytest.raises(SourceError, match="missing data for the stream <s>; the input has <r>"):
        query.logical.at(0, streamsparql.inputs({"r": []}))


@pytest.mark.parametrize(
    ("text", "options"),
    [(None, {}), (b"ASK {}", {}), ("ASK {}", {"dialect": None})],
)
def test_option_of_the_wrong_type_raises(text, options):
    with pytest.raises(TypeError, match="must be of type"):
        streamsparql.compile(text, **options)


def test_unknown_dialect_raises():
    with pytest.raises(StreamSparqlError, match="unknown dialect 'sql'; the dialects are auto, "):
        streamsparql.compile("ASK {}", dialect="sql")
