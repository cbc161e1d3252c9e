"""W3C evaluation tests for the engine: over static data, and over a stream with a window."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from support import w3c
from support.engine import read
from support.w3c import Answer, Case

import streamsparql
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.terms import BlankNode, Triple

NOW = 1_300_000_000_000
STREAM = "urn:test:stream"
HOUR = 3_600_000

UNKNOWN_GRAPH = "sparql10/graph/graph-not-exist"
"""A case with an unknown graph, which is an error here."""


def evaluated(data: Path) -> Iterator[ParameterSet]:
    """Yield the evaluation tests as parameters of a test."""
    for case in w3c.cases(data):
        if case.kind == "evaluated" and case.name != UNKNOWN_GRAPH:
            yield pytest.param(case, id=case.name)


def answer_of(query: streamsparql.Query, snapshot: Any) -> Answer:
    """Convert a snapshot of a result to an answer."""
    rows = read(query, snapshot)
    if query.form == "ask":
        return Answer("boolean", ("answer",), ((rows[0],),))
    if query.form != "select":
        columns = ("subject", "predicate", "object")
        return Answer("graph", columns, tuple(rows))  # type: ignore[arg-type]
    names = tuple(sorted(query.variables))
    dicts = (dict(row) for row in rows)  # type: ignore[call-overload]
    return Answer("solutions", names, tuple(tuple(map(row.get, names)) for row in dicts))


def labelled(data: Inputs) -> Inputs:
    """Relabel the blank nodes of the data with labels that N-Triples permits."""
    labels: dict[BlankNode, BlankNode] = {}

    def relabel(triple: Triple) -> Triple:
        return Triple(
            *(
                labels.setdefault(x, BlankNode(f"b{len(labels)}"))
                if isinstance(x, BlankNode)
                else x
                for x in triple
            )
        )

    graphs = {name: frozenset(map(relabel, triples)) for name, triples in data.graphs.items()}
    return replace(data, graph=frozenset(map(relabel, data.graph)), graphs=graphs)


def named_graphs(data: Inputs) -> dict[str, Any]:
    """Return the named graphs of the data as an argument of `Query.run`."""
    return {name.value: sorted(triples, key=str) for name, triples in data.graphs.items()}


def streamed_text(case: Case, query: streamsparql.Query, graphs: dict[str, Any]) -> str:
    """Add a stream and the named graphs as the dataset to the text of the query."""
    text, syntax = case.text, query.translation.syntax
    clauses = f" FROM STREAM <{STREAM}> WINDOW RANGE 1 HOUR FIXED "
    clauses += "".join(f"FROM NAMED <{name}> " for name in graphs)
    if syntax.where is None:
        return text + clauses
    before = text[: syntax.where.span.start]
    head = re.sub(r"\bWHERE\s*$", "", before, flags=re.I)
    return head + clauses + text[len(head) :]
