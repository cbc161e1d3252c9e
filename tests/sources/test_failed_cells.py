"""Cells for which an expression of their mapping has no value are counted, with examples."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sources import XSD, read

import streamsparql
from streamsparql.errors import DataWarning, SourceError
from streamsparql.sources import mapped
from streamsparql.sources.failed_cells import CellLog
from streamsparql.sources.reading import Reading

PREFIXES = f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> "
COUNT = PREFIXES + "CONSTRUCT { [] :n ?n ; :on :x } { BIND(xsd:integer(?v) AS ?n) }"
QUERY = streamsparql.compile(
    "PREFIX : <http://e/> SELECT ?n FROM STREAM :s WINDOW RANGE 10 MS FIXED { ?x :n ?n }"
)


def log_of(source: Any, mapping: str, **options: Any) -> CellLog:
    reading = Reading()
    read(mapped(source, mapping), reading=reading, **options)
    return reading.cells


def csv(*cells: str) -> io.StringIO:
    return io.StringIO("v,t\n" + "".join(f"{cell},{k}\n" for k, cell in enumerate(cells)))


@given(
    st.lists(st.sampled_from(["1", "-7", "", "n/a", "2.5", " 3 ", "x"]), max_size=20),
    st.integers(1, 25),
)
def test_cells_that_fail_a_cast_are_counted(cells: list[str], size: int) -> None:
    log = log_of(csv(*cells), COUNT, chunk=size)
    bad = [(k + 2, cell) for k, cell in enumerate(cells) if cell in ("n/a", "2.5", "x")]
    assert [failed.rows for failed in log.failed] == [len(bad)] * bool(bad)
    for failed in log.failed:
        assert (failed.columns, failed.expression) == (("v",), "xsd:integer(?v)")
        assert [(each.position, each.value) for each in failed.examples] == [
            (position, f'"{cell}"') for position, cell in bad[:3]
        ]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("BIND(xsd:integer(?v) * 2 AS ?n)", "?v: (xsd:integer(?v) * 2) has no value in one row"),
        ("FILTER(xsd:integer(?v) > 0)", "?v: FILTER(xsd:integer(?v) > 0) has no value in one row"),
        ("FILTER(?v > 0)", "?v: FILTER(?v > 0) has no value in 2 rows"),
        ("BIND(xsd:integer(?v) AS ?n) FILTER(?n > 0)", "?v: xsd:integer(?v) has no value in one"),
        ("BIND(COALESCE(xsd:integer(?v), 0) AS ?n)", None),
        ("BIND(IF(?v = 'n/a', 0, xsd:integer(?v)) AS ?n)", None),
        ("BIND(xsd:integer(?w) AS ?n)", None),
        ("OPTIONAL { BIND(xsd:integer(?v) AS ?n) }", None),
        ("BIND(IRI(CONCAT('http://e/', ?v, ' ')) AS ?n)", "?v: IRI(CONCAT("),
    ],
)
def test_expression_without_a_value_is_shown(where: str, expected: str | None) -> None:
    value = "?n" if "?n" in where else "?v"
    text = PREFIXES + f"CONSTRUCT {{ [] :n {value} }} {{ {where} }}"
    table = io.StringIO("v,w,t\n5,,1\nn/a,,2\n,,3\n")
    shown = list(map(str, log_of(table, text).failed))
    assert len(shown) == (expected is not None)
    if expected is not None:
        assert shown[0].startswith(expected)


def test_strict_run_ends_at_the_first_failed_cell() -> None:
    for make in (lambda: csv("5", "n/a"), lambda: [{"v": "5", "t": 1}, {"v": "n/a", "t": 2}]):
        unit = "record 2" if isinstance(make(), list) else "row 3"
        with pytest.raises(
            SourceError, match=rf'{unit}: xsd:integer\(\?v\) has no value for "n/a"'
        ):
            read(mapped(make(), COUNT), strict=True)
    with pytest.raises(SourceError, match="has no value"):
        list(QUERY.run(mapped(csv("n/a"), COUNT), strict=True))


def test_result_and_open_query_have_the_failed_cells() -> None:
    records = [{"v": "5", "t": 1}, {"v": "n/a", "t": 2}, {"v": "?", "t": 3}]
    shown = '?v: xsd:integer(?v) has no value in 2 rows: "n/a" in record 2, "?" in record 3'
    result = QUERY.run(mapped(records, COUNT))
    with pytest.warns(DataWarning, match=r"has no value in 2 rows") as warned:
        assert len(list(result)) == 1
    assert [str(each.message) for each in warned] == [shown]
    assert list(map(str, result.failed_cells)) == [shown]
    live = QUERY.open(mapping=COUNT)
    for record in records:
        live.push_record("http://e/s", record)
    assert list(map(str, live.stats().failed_cells)) == [shown]
    assert QUERY.run(mapped([{"v": "5", "t": 1}], COUNT)).failed_cells == ()


def test_failed_cells_of_a_static_graph_are_counted() -> None:
    query = streamsparql.compile("PREFIX : <http://e/> SELECT ?n { ?x :n ?n }")
    graph = mapped([{"v": "5"}, {"v": "n/a"}], COUNT)
    assert [each.rows for each in query.run(graph=graph).failed_cells] == [1]


def test_rows_without_triples_have_a_reason() -> None:
    text = PREFIXES + "CONSTRUCT { [] :n ?speed } { FILTER(?v != 'x') }"
    records = [{"v": "a", "spede": 5, "t": 1}, {"v": "b", "t": 2}, {"v": "x", "t": 3}]
    result = QUERY.run(mapped(records, text))
    with pytest.warns(DataWarning) as warned:
        list(result)
    assert [str(each.message) for each in warned] == [
        "<http://e/s>: no record has the key speed, which the mapping reads; the first has v,"
        " spede, t",
        "3 table rows have no triples: ?speed is unbound in 2, its WHERE clause has no solution for 1",
    ]
