"""The W3C's evaluation tests a second time, by the engine: over static data, and over a stream.

A test's query without a dataset gets a stream with a window. The triples of the default graph
arrive one by one within that window; named graphs are static. At the end of the window the result
is the W3C's; after it, that of an empty default graph. Each test runs the original plan and the
rewritten one.

Not tested here: what tests/translator/test_w3c.py cannot test; queries that describe their dataset
run over static data only. A blank node that two graphs of a test share is two nodes here, since
labels are scoped to sources.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support import w3c
from support.external_data import over_data
from support.w3c import Case
from support.w3c_engine import (
    HOUR,
    NOW,
    STREAM,
    UNKNOWN_GRAPH,
    answer_of,
    evaluated,
    labelled,
    named_graphs,
    streamed_text,
)

import streamsparql
from streamsparql.errors import SourceError
from streamsparql.run.input import RunInput
from streamsparql.run.result import EmbeddedComputation, Result


def test_missing_named_graph_is_an_error(data: Path) -> None:
    (case,) = (case for case in w3c.cases(data) if case.name == UNKNOWN_GRAPH)
    query = streamsparql.compile(case.text, base=case.query)
    with pytest.raises(SourceError, match="unknown"):
        query.run(graphs=named_graphs(w3c.inputs(case, query))).snapshot(0)


with_and_without_rules = pytest.mark.parametrize("rules", [True, False], ids=["rules", "plain"])


@with_and_without_rules
@pytest.mark.parametrize("case", over_data(evaluated))
def test_engine_agrees_with_the_w3c_over_static_data(case: Case, rules: bool) -> None:
    query = streamsparql.compile(case.text, base=case.query, optimize=rules)
    data = labelled(w3c.inputs(case, query))
    run_input = RunInput({}, list(data.graph), named_graphs(data), started=NOW)
    ours = answer_of(query, Result(EmbeddedComputation(query, run_input)).snapshot(0))
    difference = w3c.difference(case, query, ours, w3c.expected(case))
    assert not difference, difference


@with_and_without_rules
@pytest.mark.parametrize("case", over_data(evaluated))
def test_engine_agrees_with_the_w3c_over_a_stream(case: Case, rules: bool) -> None:
    plain = streamsparql.compile(case.text, base=case.query)
    if plain.translation.dataset.graphs is not None:
        pytest.skip("the query describes its dataset")
    data = labelled(w3c.inputs(case, plain))
    text = streamed_text(case, plain, named_graphs(data))
    query = streamsparql.compile(text, base=case.query, optimize=rules)
    triples = sorted(data.graph, key=str)
    stream = [(triple, HOUR + k * 1000 // 3) for k, triple in enumerate(triples)]
    run_input = RunInput({STREAM: stream}, None, named_graphs(data), start=0, started=NOW)
    result = Result(EmbeddedComputation(query, run_input))
    ours = answer_of(query, result.snapshot(2 * HOUR - 1))
    difference = w3c.difference(case, query, ours, w3c.expected(case))
    assert not difference, difference
    empty = w3c.answer(plain, plain.logical.at(0, replace(data, graph=frozenset())))
    for t in (HOUR - 1, 2 * HOUR):
        assert not w3c.difference(case, query, answer_of(query, result.snapshot(t)), empty), t
