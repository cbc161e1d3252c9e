"""The W3C's formats of results: other libraries read back what is written.

pyoxigraph reads JSON, XML and TSV, Python's csv module CSV, rdflib whole results. The W3C's own
tests of these formats are run through each of them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest
import rdflib
import rdflib.query
from _pytest.mark import ParameterSet
from hypothesis import assume, given
from support import w3c
from support.external_data import over_data
from support.term_rows import ROWS, TermRow, plain_text, table
from support.w3c import Case
from support.w3c_engine import labelled, named_graphs

import streamsparql
from streamsparql.algebra.terms import IRI, XSD, Literal, Term
from streamsparql.errors import EngineError
from streamsparql.sinks import SPARQL_FORMATS, Layout, open_sink
from streamsparql.sinks.times import instant_texts

LAYOUT = Layout("select", ("x", "y"), ("start", "end"))
READERS = {
    "sparql-json": ox.QueryResultsFormat.JSON,
    "sparql-xml": ox.QueryResultsFormat.XML,
    "sparql-tsv": ox.QueryResultsFormat.TSV,
}


def written(rows: list[TermRow], kind: str) -> bytes:
    """Return what a sink writes; writing in two parts must not change it."""
    files = io.BytesIO(), io.BytesIO()
    for file, parts in zip(files, ([rows], [rows[:3], [], rows[3:]]), strict=True):
        with open_sink(file, kind, LAYOUT) as sink:
            for part in parts:
                sink.write(table(part, LAYOUT))
    assert files[0].getvalue() == files[1].getvalue()
    return files[0].getvalue()


def expected(rows: list[TermRow]) -> list[list[Term | None]]:
    """Return the rows with their times as terms."""
    return [
        [x, y, *(time_term(text) for text in instant_texts(np.array(times), "iso").to_pylist())]
        for x, y, *times in rows
    ]


def time_term(text: str | None) -> Term | None:
    return None if text is None else Literal(text, IRI(XSD + "dateTime"))


def term(value: Any) -> Term | None:
    return None if value is None else w3c._term(value)


@pytest.mark.parametrize("kind", READERS)
@given(ROWS)
def test_results_read_back(kind: str, rows: list[TermRow]) -> None:
    if kind == "sparql-xml":
        characters = "".join(x.lexical for row in rows for x in row if isinstance(x, Literal))
        assume(all(c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") for c in characters))
    results: Any = ox.parse_query_results(written(rows, kind), READERS[kind])
    names = ("x", "y", "start", "end")
    assert [variable.value for variable in results.variables] == list(names)
    assert [[term(row[name]) for name in names] for row in results] == expected(rows)


@given(ROWS)
def test_csv_reads_back(rows: list[TermRow]) -> None:
    text = written(rows, "sparql-csv").decode()
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head == ["x", "y", "start", "end"]
    assert lines == [[plain_text(cell) for cell in row] for row in expected(rows)]
    assert text.count("\r\n") >= len(rows) + 1


def test_characters_that_xml_does_not_have_are_an_error(tmp_path: Path) -> None:
    result = streamsparql.compile("SELECT ?o { ?s ?p ?o }").run(graph=[("<a>", "<p>", '"a\x01"')])
    with pytest.raises(EngineError, match=r"cannot represent the character U\+0001; use sparql-js"):
        result.write(tmp_path / "rows.srx")
    assert not list(tmp_path.iterdir())


# -- the W3C's tests ------------------------------------------------------------------------------


def cases(data: Path) -> Iterator[ParameterSet]:
    for case in w3c.cases(data):
        if case.folder.name in ("csv-tsv-res", "json-res") and case.kind == "evaluated":
            yield pytest.param(case, id=case.name)


EXTENSIONS = {
    "sparql-json": "srj",
    "sparql-xml": "srx",
    "sparql-csv": "csv",
    "sparql-tsv": "tsv",
}


@pytest.mark.parametrize("case", over_data(cases))
def test_w3c_results_in_each_format(case: Case, tmp_path: Path) -> None:
    query = streamsparql.compile(case.text, base=case.query)
    data = labelled(w3c.inputs(case, query))
    result = query.run(graph=list(data.graph), graphs=named_graphs(data))
    answers = {}
    for kind, extension in EXTENSIONS.items():
        if query.form == "ask" and kind in ("sparql-csv", "sparql-tsv"):
            with pytest.raises(EngineError, match="cannot represent the answer of ASK"):
                result.write(tmp_path / f"ours.{extension}", kind)
            continue
        result.write(tmp_path / f"ours.{extension}", kind)
        ours = replace(case, folder=tmp_path, result=f"{case.base}ours.{extension}")
        answers[kind] = w3c.expected(ours)
        if kind == "sparql-csv":  # a query of a TSV test has numbers in other lexical forms
            difference = w3c.difference(ours, query, answers["sparql-json"], answers[kind])
        else:
            difference = w3c.difference(case, query, answers[kind], w3c.expected(case))
        assert not difference, difference


# -- results --------------------------------------------------------------------------------------

STREAMED = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o } ORDER BY DESC(?o)"
ITEMS = [("<a>", "<p>", f'"{k}"', k) for k in (3, 5, 4)]
GRAPH = [(f"<{k}>", "<p>", f'"{k}"') for k in (3, 5, 4)]


def text_of(result: streamsparql.Result, kind: str, **options: Any) -> str:
    file = io.StringIO()
    result.write(file, kind, **options)
    return file.getvalue()


def test_query_without_streams_has_no_times_and_the_order_of_order_by() -> None:
    query = streamsparql.compile("SELECT ?o { ?s ?p ?o } ORDER BY DESC(?o)")
    for started in (False, True):
        result = query.run(graph=GRAPH)
        if started:
            list(result)
        assert text_of(result, "sparql-tsv").split() == ["?o", '"5"', '"4"', '"3"']
    assert text_of(query.run(graph=[]), "sparql-csv") == "o\r\n"
    assert text_of(query.run(graph=GRAPH), "sparql-csv", report="rstream").startswith("o,instant")


def test_query_over_streams_has_times_as_variables() -> None:
    query = streamsparql.compile(STREAMED)
    lines = text_of(query.run(ITEMS, max_delay=5), "sparql-csv").split()
    assert lines[:2] == ["o,start,end", "3,1970-01-01T00:00:00.003Z,1970-01-01T00:00:00.010Z"]
    reports = text_of(
        query.run(ITEMS, max_delay=5), "sparql-csv", report="rstream", timestamps="ms"
    )
    assert reports.split() == ["o,instant", "5,10", "4,10", "3,10"]
    named = streamsparql.compile(STREAMED.replace("?o", "?start"))
    assert text_of(named.run(ITEMS), "sparql-csv").startswith("start,start_,end\r\n")


def test_answers_of_ask() -> None:
    static = streamsparql.compile("ASK { ?s ?p ?o }").run(graph=GRAPH)
    json, xml = (text_of(static, kind) for kind in ("sparql-json", "sparql-xml"))
    assert json == '{"head": {}, "boolean": true}\n'
    for text, kind in ((json, "sparql-json"), (xml, "sparql-xml")):
        assert bool(ox.parse_query_results(text, READERS[kind])) is True
    streamed = streamsparql.compile("ASK FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }")
    assert text_of(streamed.run(ITEMS), "sparql-csv", timestamps="ms").split() == [
        "answer,start,end",
        "true,3,10",
        "false,10,",
    ]


def test_solutions_without_variables_are_counted() -> None:
    result = streamsparql.compile("SELECT * { <3> <p> '3' }").run(graph=GRAPH)
    for kind in READERS:
        results: Any = ox.parse_query_results(text_of(result, kind), READERS[kind])
        assert [len(row) for row in results] == [0]
    assert text_of(result, "sparql-csv") == "\r\n\r\n"


def test_triples_and_options_of_other_formats_are_errors() -> None:
    triples = streamsparql.compile("CONSTRUCT WHERE { ?s ?p ?o }").run(graph=GRAPH)
    rows = streamsparql.compile(STREAMED).run(ITEMS)
    for kind in SPARQL_FORMATS:
        with pytest.raises(
            EngineError, match=f"{kind} is for solutions, not for the triples of CO"
        ):
            text_of(triples, kind)
        with pytest.raises(EngineError, match=f"values is an option .* not of {kind}"):
            text_of(rows, kind, values="native")


def test_rdflib_results() -> None:
    result = streamsparql.compile(STREAMED).run(ITEMS, max_delay=5)
    table = result.to_rdflib()
    assert isinstance(table, rdflib.query.Result)
    assert [str(row.o) for row in table] == ["5", "4", "3"]
    assert [str(row.o) for row in result.to_rdflib(3)] == ["3"]
    assert len(result.to_rdflib(10)) == 0
    optional = streamsparql.compile("SELECT ?s ?x { ?s ?p ?o OPTIONAL { ?s <q> ?x } }")
    serialized = optional.run(graph=GRAPH[:1]).to_rdflib().serialize(format="json")
    assert isinstance(serialized, bytes)
    read = rdflib.query.Result.parse(io.BytesIO(serialized), format="json")
    assert read.vars == [rdflib.Variable("s"), rdflib.Variable("x")]
    assert [row.asdict() for row in read] == [{"s": rdflib.URIRef("3")}]
    asked = streamsparql.compile("ASK FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }")
    assert asked.run(ITEMS).to_rdflib().askAnswer is True
    with pytest.raises(EngineError, match="no answer at this instant, which is outside"):
        asked.run(ITEMS).to_rdflib(0)
    triples = streamsparql.compile("CONSTRUCT WHERE { ?s ?p ?o }").run(graph=GRAPH).to_rdflib()
    assert (triples.type, len(triples)) == ("CONSTRUCT", 3)


def test_snapshot_without_an_instant_is_that_after_all_data() -> None:
    query = streamsparql.compile(STREAMED)
    assert [str(row["o"]) for row in query.run(ITEMS, max_delay=5).snapshot()] == ["5", "4", "3"]
    assert [str(row["o"]) for row in query.run(ITEMS, max_delay=5, end=4).snapshot()] == ["3"]
    assert query.run([]).snapshot() == []
    static = streamsparql.compile("SELECT ?o { ?s ?p ?o } ORDER BY ?o").run(graph=GRAPH, start=7)
    assert [str(row["o"]) for row in static.snapshot()] == ["3", "4", "5"]
    at = datetime(1970, 1, 1, 0, 0, 0, 4000, UTC)
    assert len(query.run(ITEMS, max_delay=5).snapshot(at)) == 2
