"""The W3C's evaluation tests a second time, by the engine: over static data, and over a stream.

A test's query that has no dataset of its own gets a stream with a window. The triples of the
default graph come one after the other within that window; named graphs are static. At the end of
the window the answer is the W3C's; when it has passed, that of an empty default graph. Each
test runs the plan as it was written and the rewritten one.

What this cannot see: what test_w3c.py cannot see; queries that describe their dataset are asked
over static data only. A blank node that two graphs of a test share is two nodes here, since labels
are scoped to sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import w3c
from _pytest.mark import ParameterSet
from conftest import over_data
from engine import read
from w3c import Answer, Case

import streamsparql
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.terms import BlankNode, Triple
from streamsparql.engine import Given
from streamsparql.errors import SourceError
from streamsparql.results import Result

NOW = 1_300_000_000_000
STREAM = "urn:test:stream"
HOUR = 3_600_000


NOT_GIVEN = "sparql10/graph/graph-not-exist"
"""It asks for a graph that does not exist. A graph that nobody gives is an error here."""


def _evaluated(data: Path) -> Iterator[ParameterSet]:
    for case in w3c.cases(data):
        if case.kind == "evaluated" and case.name != NOT_GIVEN:
            yield pytest.param(case, id=case.name)


def test_a_graph_that_the_query_names_must_be_given(data: Path) -> None:
    (case,) = (case for case in w3c.cases(data) if case.name == NOT_GIVEN)
    query = streamsparql.compile(case.text, base=case.query)
    with pytest.raises(SourceError, match="unknown"):
        query.run(graphs=_graphs(w3c.inputs(case, query))).snapshot(0)


with_and_without_rules = pytest.mark.parametrize("rules", [True, False], ids=["rules", "plain"])


def _found(query: streamsparql.Query, shown: Any) -> Answer:
    """A snapshot as users get it, as an answer."""
    rows = read(query, shown)
    if query.form == "ask":
        return Answer("boolean", ("answer",), ((rows[0],),))
    if query.form != "select":
        columns = ("subject", "predicate", "object")
        return Answer("graph", columns, tuple(rows))  # type: ignore[arg-type]
    names = tuple(sorted(query.variables))
    dicts = (dict(row) for row in rows)  # type: ignore[call-overload]
    return Answer("solutions", names, tuple(tuple(map(row.get, names)) for row in dicts))


def _labelled(data: Inputs) -> Inputs:
    """The data with labels for its blank nodes that can be written."""
    labels: dict[BlankNode, BlankNode] = {}

    def plain(triple: Triple) -> Triple:
        return Triple(
            *(
                labels.setdefault(x, BlankNode(f"b{len(labels)}"))
                if isinstance(x, BlankNode)
                else x
                for x in triple
            )
        )

    graphs = {name: frozenset(map(plain, found)) for name, found in data.graphs.items()}
    return replace(data, graph=frozenset(map(plain, data.graph)), graphs=graphs)


def _graphs(data: Inputs) -> dict[str, Any]:
    return {name.value: sorted(found, key=str) for name, found in data.graphs.items()}


@with_and_without_rules
@pytest.mark.parametrize("case", over_data(_evaluated))
def test_the_engine_gives_the_answer_over_static_data(case: Case, rules: bool) -> None:
    query = streamsparql.compile(case.text, base=case.query, optimize=rules)
    data = _labelled(w3c.inputs(case, query))
    given = Given({}, list(data.graph), _graphs(data), started=NOW)
    ours = _found(query, Result(query, given, True).snapshot(0))
    difference = w3c.difference(case, query, ours, w3c.expected(case))
    assert not difference, difference


def _streamed(case: Case, query: streamsparql.Query, graphs: dict[str, Any]) -> str:
    """The query's text with the stream, and the static named graphs, as its dataset."""
    text, syntax = case.text, query.translation.syntax
    clauses = f" FROM STREAM <{STREAM}> WINDOW RANGE 1 HOUR FIXED "
    clauses += "".join(f"FROM NAMED <{name}> " for name in graphs)
    if syntax.where is None:
        return text + clauses
    before = text[: syntax.where.span.start]
    head = re.sub(r"\bWHERE\s*$", "", before, flags=re.I)
    return head + clauses + text[len(head) :]


@with_and_without_rules
@pytest.mark.parametrize("case", over_data(_evaluated))
def test_the_engine_gives_the_answer_over_a_stream(case: Case, rules: bool) -> None:
    plain = streamsparql.compile(case.text, base=case.query)
    if plain.translation.dataset.graphs is not None:
        pytest.skip("the query describes its dataset itself")
    data = _labelled(w3c.inputs(case, plain))
    text = _streamed(case, plain, _graphs(data))
    query = streamsparql.compile(text, base=case.query, optimize=rules)
    triples = sorted(data.graph, key=str)
    stream = [(triple, HOUR + k * 1000 // 3) for k, triple in enumerate(triples)]
    given = Given({STREAM: stream}, None, _graphs(data), start=0, started=NOW)
    result = Result(query, given, True)
    ours = _found(query, result.snapshot(2 * HOUR - 1))
    difference = w3c.difference(case, query, ours, w3c.expected(case))
    assert not difference, difference
    empty = w3c.answer(plain, plain.logical.at(0, replace(data, graph=frozenset())))
    for t in (HOUR - 1, 2 * HOUR):
        assert not w3c.difference(case, query, _found(query, result.snapshot(t)), empty), t
