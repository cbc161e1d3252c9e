"""What users give: queries, options, small data. What makes no sense is refused with a reason."""

from __future__ import annotations

import pytest
import rdflib

import streamsparql
from streamsparql import SourceError, StreamSparqlError
from streamsparql.algebra.terms import IRI, BlankNode, Literal

TRIPLE = ("<a>", "<p>", "_:b")


def test_terms_may_be_ours_or_those_of_rdflib_or_n_triples():
    number = rdflib.Literal("01", datatype=rdflib.XSD.integer, normalize=False)
    made = streamsparql.inputs(graph=[(rdflib.URIRef("a"), IRI("p"), number)])
    ((subject, _, value),) = made.graph
    assert (subject, value.lexical) == (IRI("a"), "01")
    ((_, _, text),) = streamsparql.inputs(graph=[("<a>", "<p>", '"x\\u0041"@EN')]).graph
    assert text == Literal("xA", language="en")


def test_a_graph_of_rdflib_is_a_source():
    graph = rdflib.Graph().parse(data="<urn:a> <urn:p> 1, 2 .", format="turtle")
    assert len(streamsparql.inputs(graph=graph).graph) == 2


def test_an_item_is_written_in_three_ways():
    ways = [(*TRIPLE, 5), (TRIPLE, 5), (TRIPLE, 5, 5)]
    data = streamsparql.inputs({"s": ways})
    assert len(set(data.stream(IRI("s")))) == 1


def test_a_blank_node_belongs_to_its_source():
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
def test_what_is_no_item_is_refused(item):
    with pytest.raises(SourceError):
        streamsparql.inputs({"s": [item]})


def test_a_stream_that_is_read_must_be_given():
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE 5 { ?a ?b ?c }")
    with pytest.raises(SourceError, match="missing data for the stream <s>; the input has <r>"):
        query.logical.at(0, streamsparql.inputs({"r": []}))


@pytest.mark.parametrize(
    ("text", "options"),
    [(None, {}), (b"ASK {}", {}), ("ASK {}", {"dialect": None}), ("ASK {}", {"origin": 1.5})],
)
def test_what_is_no_option_is_refused(text, options):
    with pytest.raises(TypeError, match="must be of type"):
        streamsparql.compile(text, **options)


def test_an_unknown_dialect_is_named():
    with pytest.raises(StreamSparqlError, match="unknown dialect 'sql'; the dialects are auto, "):
        streamsparql.compile("ASK {}", dialect="sql")
