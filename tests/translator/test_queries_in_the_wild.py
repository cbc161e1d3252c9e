"""Third-party queries: each compiles in its dialect, or is refused for a reason listed here.

The sources are examples, benchmarks and drafts of C-SPARQL, CQELS, RSP-QL and SPARQLstream, as files
and as blocks in Markdown. Some are not queries at all. SPARQLstream is a sixth language: its windows
are parsed only to name them in the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from support.external_data import over_data

import streamsparql
from streamsparql import QueryError, QuerySyntaxError, UnsupportedFeature
from streamsparql.algebra.access import AccessStream
from streamsparql.errors import TextError

FOLDERS = ("rspql-queries", "csrbench/queries", "citybench/queries")
LANGUAGES = {
    ".rspql": "rspql",
    ".csparql": "csparql",
    ".cqels": "cqels",
    ".sparqlstream": "sparqlstream",
    ".sparql": "sparqlstream",
    "cqels": "cqels",
    "csparql": "csparql",
    "cqels-2": "cqels",
    "rsp4j": "rspql",
    "w3c-rsp-cg": "rspql",
}
"""The language of a file by its suffix, else by its folder."""

PREFIXES = "".join(
    f"PREFIX {name}: <http://example.org/{name}#> "
    for name in ("", "ex", "rdf", "srbench", "units", "vss", "xsd")
)
"""Prefixes that blocks in Markdown use without declaring them."""


@dataclass(frozen=True)
class Refusal:
    """The reason why queries are refused, the class of the error, and a part of its message."""

    reason: str
    error: type[TextError]
    says: str
    queries: tuple[str, ...]


_SAMPLES = "rspql-queries/rsp-spin-samples"
_DRAFTS = "rspql-queries/w3c-rsp-cg"

REFUSED = (
    Refusal(
        "the output of a serializer that failed",
        QuerySyntaxError,
        "Could",
        (f"{_SAMPLES}/csparql/query7.csparql", f"{_SAMPLES}/sparqlstream/query7.sparqlstream"),
    ),
    Refusal(
        "a serializer omitted the stream of a STREAM block",
        QuerySyntaxError,
        "unexpected '}'",
        (f"{_SAMPLES}/cqelsql/query3.cqels", f"{_SAMPLES}/cqelsql/query7.cqels"),
    ),
    Refusal(
        "missing dot between two triple patterns",
        QuerySyntaxError,
        "write a '.'",
        (
            f"{_SAMPLES}/csparql/query2.csparql",
            f"{_SAMPLES}/sparqlstream/query2.sparqlstream",
            f"{_DRAFTS}/RSP-QL_Sample_Queries.md#7",
        ),
    ),
    Refusal(
        "CONSTRUCT builds triples here, not quads",
        QuerySyntaxError,
        "GRAPH",
        (
            f"{_SAMPLES}/rspql/extra.rspql",
            "rspql-queries/rsp4j/example-queries.md#1",
            "rspql-queries/rsp4j/example-queries.md#2",
        ),
    ),
    Refusal(
        "a CONSTRUCT inside a query; according to its authors no engine supports it",
        QuerySyntaxError,
        "a subquery is a SELECT",
        (f"{_SAMPLES}/rspql/query8.rspql",),
    ),
    Refusal(
        "FROM inside a subquery",
        QuerySyntaxError,
        "unexpected 'FROM'",
        (f"{_DRAFTS}/RSP-QL_Sample_Queries.md#8",),
    ),
    Refusal(
        "unclosed bracket",
        QuerySyntaxError,
        "unexpected 'FROM'",
        (f"{_DRAFTS}/RSP-QL_Sample_Queries.md#2",),
    ),
    Refusal(
        "missing brackets around an expression in SELECT and its name",
        QuerySyntaxError,
        "expected: AS",
        (f"{_DRAFTS}/RSP-QL_Sample_Queries.md#5",),
    ),
    Refusal(
        "missing brackets around an aggregate in SELECT and its name",
        QueryError,
        "needs brackets",
        (f"{_DRAFTS}/RSP-QL_Sample_Queries.md#1",),
    ),
    Refusal(
        "the name of a stream is an IRI, not a bare word",
        QuerySyntaxError,
        "names here are IRIs",
        (
            f"{_DRAFTS}/RSP-QL_Sample_Queries.md#3",
            *(f"rspql-queries/cqels-2/CQELS-QL_SPEC.md#{i}" for i in (1, 2, 4, 5, 6, 7)),
        ),
    ),
    Refusal(
        "three dots in place of a pattern",
        QuerySyntaxError,
        "unexpected '…'",
        ("rspql-queries/cqels-2/CQELS-QL_SPEC.md#3",),
    ),
    Refusal(
        "the draft of the RSP group has an entailment regime, among other clauses that were abandoned",
        QuerySyntaxError,
        "unexpected 'UNDER'",
        (f"{_DRAFTS}/Example_of_RSP-QL_query.md#1",),
    ),
    Refusal(
        "a window without a step",
        QueryError,
        "STEP",
        (f"{_DRAFTS}/srbench_queries.md#1", f"{_DRAFTS}/srbench_queries.md#4"),
    ),
    Refusal(
        "?p is projected and is not a grouping key",
        QueryError,
        "?p is not a grouping key",
        ("citybench/queries/rspql/q12.rspql",),
    ),
    Refusal(
        "GeoSPARQL's functions are not supported",
        UnsupportedFeature,
        "http://www.opengis.net/def/geosparql/function/distance",
        (
            f"{_SAMPLES}/cqelsql/query4.cqels",
            f"{_SAMPLES}/csparql/query4.csparql",
            f"{_SAMPLES}/rspql/query4.rspql",
            f"{_DRAFTS}/RSP-QL_Sample_Queries.md#4",
        ),
    ),
    Refusal(
        "a window that ends in the past",
        UnsupportedFeature,
        "SPARQLstream",
        (f"{_SAMPLES}/rspql/query7.rspql",),
    ),
)

SPARQLSTREAM = Refusal("SPARQLstream's windows", UnsupportedFeature, "SPARQLstream", ())
_SPARQLSTREAM_WINDOW = re.compile(r"\[\s*NOW\s*-")

_REFUSALS = {query: refusal for refusal in REFUSED for query in refusal.queries}


# -- collection ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WildQuery:
    """A third-party query, with its location and its language."""

    name: str
    text: str
    language: str

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects that it is compiled in."""
        return ("auto",) if self.language == "sparqlstream" else ("auto", self.language)

    @property
    def refusal(self) -> Refusal | None:
        """Why it is refused, or None if it compiles."""
        unsupported = self.language == "sparqlstream" and _SPARQLSTREAM_WINDOW.search(self.text)
        return _REFUSALS.get(self.name, SPARQLSTREAM if unsupported else None)


def _wild_queries(data: Path) -> Iterator[WildQuery]:
    for folder in FOLDERS:
        for path in sorted((data / folder).rglob("*.*")):
            language = LANGUAGES.get(path.suffix, LANGUAGES.get(path.parent.name))
            if language is None:
                continue
            name, text = path.relative_to(data).as_posix(), path.read_bytes().decode()
            if path.suffix == ".md":
                for number, block in enumerate(filter(_QUERY.match, _blocks(text)), 1):
                    yield WildQuery(f"{name}#{number}", PREFIXES + block, language)
            else:
                yield WildQuery(name, text, language)


_QUERY = re.compile(
    r"\s*(?=(?:PREFIX|BASE|REGISTER|SELECT|CONSTRUCT)\b)(?=.*\b(?:SELECT|CONSTRUCT)\b)",
    re.IGNORECASE | re.DOTALL,
)


def _blocks(markdown: str) -> Iterator[str]:
    """Yield the code blocks, fenced and indented."""
    block: list[str] = []
    fenced = False
    for line in [*markdown.splitlines(), "the end"]:
        fence = line.lstrip().startswith("```")
        indented = line.expandtabs(4).startswith("    ") or (bool(block) and not line.strip())
        if not fence and (fenced or indented):
            block.append(line)
            continue
        if block:
            yield "\n".join(block)
        block, fenced = [], fenced ^ fence


def _compiling(data: Path) -> Iterator[ParameterSet]:
    return (pytest.param(x, id=x.name) for x in _wild_queries(data) if x.refusal is None)


def _refused(data: Path) -> Iterator[ParameterSet]:
    return (pytest.param(x, id=x.name) for x in _wild_queries(data) if x.refusal is not None)


# -- tests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wild", over_data(_compiling))
def test_a_query_compiles_in_its_dialect_which_is_detected(wild: WildQuery) -> None:
    queries = [streamsparql.compile(wild.text, dialect) for dialect in wild.dialects]
    dialects = {query.dialect for query in queries}
    assert dialects == {wild.language} or wild.language == "sparqlstream"
    assert all(query.logical == queries[0].logical for query in queries)


@pytest.mark.parametrize("wild", over_data(_compiling))
def test_a_query_reads_the_streams_that_it_names(wild: WildQuery) -> None:
    query = streamsparql.compile(wild.text)
    read = {node.stream.value for node in query.logical.walk() if isinstance(node, AccessStream)}
    unread = set(query.streams) - read
    assert read or unread
    assert bool(unread) == any(warning.code == "unused-window" for warning in query.check())


@pytest.mark.parametrize("wild", over_data(_refused))
def test_a_query_is_refused_for_the_listed_reason(wild: WildQuery) -> None:
    assert wild.refusal is not None
    for dialect in wild.dialects:
        with pytest.raises(TextError) as raised:
            streamsparql.compile(wild.text, dialect)
        assert type(raised.value) is wild.refusal.error, wild.refusal.reason
        assert wild.refusal.says in str(raised.value), wild.refusal.reason
        assert raised.value.line is not None


def test_listed_refusals_are_queries_of_the_data(data: Path) -> None:
    listed = {name for name in _REFUSALS if (data / name.split("/")[0]).is_dir()}
    assert listed <= {wild.name for wild in _wild_queries(data)}
