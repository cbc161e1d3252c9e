"""Queries that others wrote: each compiles to what it says, or is refused for a reason given here.

They come from the examples, benchmarks and drafts of C-SPARQL, CQELS, RSP-QL and SPARQLstream, as
files and as blocks in Markdown. Some are no queries at all. SPARQLstream is a sixth language: we
read its windows, so as to refuse them by name.
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
"""The language of a file: by its suffix, else by the folder that it is in."""

PREFIXES = "".join(
    f"PREFIX {name}: <http://example.org/{name}#> "
    for name in ("", "ex", "rdf", "srbench", "units", "vss", "xsd")
)
"""Prefixes that blocks in Markdown use and leave to the reader."""


@dataclass(frozen=True)
class Refusal:
    """Why queries are refused, the error's class, and a word that its message must have."""

    reason: str
    error: type[TextError]
    says: str
    queries: tuple[str, ...]


_SAMPLES = "rspql-queries/rsp-spin-samples"
_DRAFTS = "rspql-queries/w3c-rsp-cg"

REFUSED = (
    Refusal(
        "what a serializer wrote where it failed",
        QuerySyntaxError,
        "Could",
        (f"{_SAMPLES}/csparql/query7.csparql", f"{_SAMPLES}/sparqlstream/query7.sparqlstream"),
    ),
    Refusal(
        "a serializer left the stream of a STREAM block out",
        QuerySyntaxError,
        "unexpected '}'",
        (f"{_SAMPLES}/cqelsql/query3.cqels", f"{_SAMPLES}/cqelsql/query7.cqels"),
    ),
    Refusal(
        "there is no dot between two triple patterns",
        QuerySyntaxError,
        "write a '.'",
        (
            f"{_SAMPLES}/csparql/query2.csparql",
            f"{_SAMPLES}/sparqlstream/query2.sparqlstream",
            f"{_DRAFTS}/RSP-QL_Sample_Queries.md#7",
        ),
    ),
    Refusal(
        "CONSTRUCT makes triples here, no quads",
        QuerySyntaxError,
        "GRAPH",
        (
            f"{_SAMPLES}/rspql/extra.rspql",
            "rspql-queries/rsp4j/example-queries.md#1",
            "rspql-queries/rsp4j/example-queries.md#2",
        ),
    ),
    Refusal(
        "a CONSTRUCT inside a query; its authors say that no engine has it",
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
        "a bracket is never closed",
        QuerySyntaxError,
        "unexpected 'FROM'",
        (f"{_DRAFTS}/RSP-QL_Sample_Queries.md#2",),
    ),
    Refusal(
        "an expression in SELECT has no brackets around it and its name",
        QuerySyntaxError,
        "expected: AS",
        (f"{_DRAFTS}/RSP-QL_Sample_Queries.md#5",),
    ),
    Refusal(
        "an aggregate in SELECT has no brackets around it and its name",
        QueryError,
        "needs brackets",
        (f"{_DRAFTS}/RSP-QL_Sample_Queries.md#1",),
    ),
    Refusal(
        "the name of a stream is an IRI, no bare word",
        QuerySyntaxError,
        "names here are IRIs",
        (
            f"{_DRAFTS}/RSP-QL_Sample_Queries.md#3",
            *(f"rspql-queries/cqels-2/CQELS-QL_SPEC.md#{i}" for i in (1, 2, 4, 5, 6, 7)),
        ),
    ),
    Refusal(
        "three dots stand for a pattern",
        QuerySyntaxError,
        "unexpected '…'",
        ("rspql-queries/cqels-2/CQELS-QL_SPEC.md#3",),
    ),
    Refusal(
        "the draft of the RSP group had an entailment regime, and more that came to nothing",
        QuerySyntaxError,
        "unexpected 'UNDER'",
        (f"{_DRAFTS}/Example_of_RSP-QL_query.md#1",),
    ),
    Refusal(
        "a window that does not say when it moves",
        QueryError,
        "STEP",
        (f"{_DRAFTS}/srbench_queries.md#1", f"{_DRAFTS}/srbench_queries.md#4"),
    ),
    Refusal(
        "?p is shown and not grouped by",
        QueryError,
        "?p is not a grouping key",
        ("citybench/queries/rspql/q12.rspql",),
    ),
    Refusal(
        "GeoSPARQL's functions are not done here",
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
_ITS_WINDOW = re.compile(r"\[\s*NOW\s*-")

_REFUSALS = {query: refusal for refusal in REFUSED for query in refusal.queries}


# -- finding them ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wild:
    """A query as it was found, with its place and its language."""

    name: str
    text: str
    language: str

    @property
    def dialects(self) -> tuple[str, ...]:
        """What it is compiled as."""
        return ("auto",) if self.language == "sparqlstream" else ("auto", self.language)

    @property
    def refusal(self) -> Refusal | None:
        """Why it is refused; None where it compiles."""
        sixth = self.language == "sparqlstream" and _ITS_WINDOW.search(self.text)
        return _REFUSALS.get(self.name, SPARQLSTREAM if sixth else None)


def _wild(data: Path) -> Iterator[Wild]:
    for folder in FOLDERS:
        for path in sorted((data / folder).rglob("*.*")):
            language = LANGUAGES.get(path.suffix, LANGUAGES.get(path.parent.name))
            if language is None:
                continue
            name, text = path.relative_to(data).as_posix(), path.read_bytes().decode()
            if path.suffix == ".md":
                for number, block in enumerate(filter(_QUERY.match, _blocks(text)), 1):
                    yield Wild(f"{name}#{number}", PREFIXES + block, language)
            else:
                yield Wild(name, text, language)


_QUERY = re.compile(
    r"\s*(?=(?:PREFIX|BASE|REGISTER|SELECT|CONSTRUCT)\b)(?=.*\b(?:SELECT|CONSTRUCT)\b)",
    re.IGNORECASE | re.DOTALL,
)


def _blocks(markdown: str) -> Iterator[str]:
    """The blocks of code, those in fences and those that are indented."""
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
    return (pytest.param(x, id=x.name) for x in _wild(data) if x.refusal is None)


def _refused(data: Path) -> Iterator[ParameterSet]:
    return (pytest.param(x, id=x.name) for x in _wild(data) if x.refusal is not None)


# -- what becomes of them --------------------------------------------------------------------------


@pytest.mark.parametrize("wild", over_data(_compiling))
def test_a_query_compiles_in_its_dialect_which_is_found_without_telling(wild: Wild) -> None:
    queries = [streamsparql.compile(wild.text, dialect) for dialect in wild.dialects]
    found = {query.dialect for query in queries}
    assert found == {wild.language} or wild.language == "sparqlstream"
    assert all(query.logical == queries[0].logical for query in queries)


@pytest.mark.parametrize("wild", over_data(_compiling))
def test_a_query_reads_the_streams_that_it_names(wild: Wild) -> None:
    query = streamsparql.compile(wild.text)
    read = {node.stream.value for node in query.logical.walk() if isinstance(node, AccessStream)}
    unread = set(query.streams) - read
    assert read or unread
    assert bool(unread) == any(warning.code == "unused-window" for warning in query.check())


@pytest.mark.parametrize("wild", over_data(_refused))
def test_a_query_is_refused_for_its_reason(wild: Wild) -> None:
    assert wild.refusal is not None
    for dialect in wild.dialects:
        with pytest.raises(TextError) as refused:
            streamsparql.compile(wild.text, dialect)
        assert type(refused.value) is wild.refusal.error, wild.refusal.reason
        assert wild.refusal.says in str(refused.value), wild.refusal.reason
        assert refused.value.line is not None


def test_what_is_said_to_be_refused_is_there(data: Path) -> None:
    said = {name for name in _REFUSALS if (data / name.split("/")[0]).is_dir()}
    assert said <= {wild.name for wild in _wild(data)}
