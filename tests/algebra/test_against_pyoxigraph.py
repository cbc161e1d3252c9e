"""Queries over static data agree with another SPARQL engine, pyoxigraph.

Random queries over random small graphs; our result is that of the plan's definition. Not covered:
time; errors that both engines share; LIMIT without a total order (the specification leaves the
choice open); the identity of blank nodes (all count as one).
"""

from __future__ import annotations

from hypothesis import given, settings
from support.generate import queries, triples
from support.oracle import answer, store
from support.plain_queries import KNOWN, PLAIN, ours

import streamsparql


@settings(max_examples=300)
@given(queries(PLAIN), triples(), triples(4), triples(4))
def test_definitions_agree_with_pyoxigraph(text, default, one, two):
    default, one, two = default + KNOWN, one + KNOWN, two + KNOWN
    data = streamsparql.inputs(graph=default, graphs={"http://e/g1": one, "http://e/g2": two})
    theirs = answer(store(data.graph, data.graphs), text)
    assert ours(streamsparql.compile(text), data) == theirs, text
