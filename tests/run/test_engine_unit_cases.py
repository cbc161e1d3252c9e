"""Cases from the tests of two RSP-QL engines, RSP-JS and RSP4J: the reports at each instant.

Their windows are half open and aligned to 0, and windows that begin before 0 are reported, as here.
They do not flush at the end of a stream, this engine does: reports at or after the last event are
not compared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from _pytest.mark import ParameterSet
from support.external_data import over_data

import streamsparql

Bag = Counter[frozenset[tuple[str, str]]]


def _cases(data: Path) -> Iterator[ParameterSet]:
    for path in sorted((data / "unit-cases").glob("*.json")):
        content = json.loads(path.read_text())
        for case in content["cases"]:
            yield pytest.param((content.get("base", ""), case), id=case["id"])


def _triples(text: str) -> list[tuple[str, str, str]]:
    quads = ox.parse(text, ox.RdfFormat.N_TRIPLES)
    return [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads]


def _bag(rows: list[Any]) -> Bag:
    return Counter(frozenset((name, str(value)) for name, value in row.items()) for row in rows)


@pytest.mark.parametrize("base_and_case", over_data(_cases))
@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_query_reports_what_the_other_engine_does(
    base_and_case: tuple[str, dict[str, Any]],
) -> None:
    base, case = base_and_case
    query = streamsparql.compile(case["query"], base=base or None)
    streams = {
        name: [(triple, item["t"]) for item in items for triple in _triples(item["triples"])]
        for name, items in case["streams"].items()
    }
    graph = _triples(case["static_triples"]) if "static_triples" in case else None
    last = max(t for items in streams.values() for _, t in items)
    expected = {each["at"]: _bag(each["rows"]) for each in case["expected"]}
    result = query.run(streams, graph)
    reports = {at: _bag(rows) for at, rows in result.report() if at < last}
    assert {at: reports.get(at) for at in expected} == expected
    assert not any(rows for at, rows in reports.items() if at not in expected)
