"""Evaluation tests of the W3C for the engine: as static data, and as a stream with a window."""

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

NOT_GIVEN = "sparql10/graph/graph-not-exist"
"""A case that asks for a graph that does not exist, which is an error here."""


def evaluated(data: Path) -> Iterator[ParameterSet]:
    """Yield the evaluation tests, as parameters of a test."""
    for case in w3c.cases(data):
        if case.kind == "evaluated" and case.name != NOT_GIVEN:
            yield pytest.param(case, id=case.name)


def answer_of(query: streamsparql.Query, shown: Any) -> Answer:
    """Return a snapshot as users get it, as an answer."""
    rows = read(query, shown)
    if query.form == "ask":
        return Answer("boolean", ("answer",), ((rows[0],),))
    if query.form != "select":
        columns = ("subject", "predicate", "object")
        return Answer("graph", columns, tuple(rows))  # type: ignore[arg-type]
    names = tuple(sorted(query.variables))
    dicts = (dict(row) for row in rows)  # type: ignore[call-overload]
    return Answer("solutions", names, tuple(tuple(map(row.get, names)) for row in dicts))


def labelled(data: Inputs) -> Inputs:
    """Relabel the blank nodes of the data with labels that can be written."""
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


def named_graphs(data: Inputs) -> dict[str, Any]:
    """Return the named graphs of the data as `Query.run` takes them."""
    return {name.value: sorted(found, key=str) for name, found in data.graphs.items()}


def streamed_text(case: Case, query: streamsparql.Query, graphs: dict[str, Any]) -> str:
    """Return the query's text with the stream, and the static named graphs, as its dataset."""
    text, syntax = case.text, query.translation.syntax
    clauses = f" FROM STREAM <{STREAM}> WINDOW RANGE 1 HOUR FIXED "
    clauses += "".join(f"FROM NAMED <{name}> " for name in graphs)
    if syntax.where is None:
        return text + clauses
    before = text[: syntax.where.span.start]
    head = re.sub(r"\bWHERE\s*$", "", before, flags=re.I)
    return head + clauses + text[len(head) :]
