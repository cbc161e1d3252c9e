"""`unparse` inverts `create_plan`: its text compiles to the same plan, in each dialect.

`unparse` itself verifies that, and refuses plans that it cannot express; the tests check that it
refuses no plan of a query. Not covered: whether the plan is correct.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from support.generate import Features, queries

from streamsparql.algebra.terms import IRI
from streamsparql.errors import UnsupportedFeature
from streamsparql.translator.sparql_text import DisplayWriter, Writer
from streamsparql.translator.translate import translate
from streamsparql.translator.unparse import unparse

FORMS = ("select", "select", "construct", "ask", "describe")
ALL = {
    "sparql": Features(forms=FORMS, named_graphs=True, limits=True, volatile=True),
    "streaming": Features(forms=FORMS, streams=True, limits=True, volatile=True),
    "csparql": Features(dialect="csparql", forms=FORMS, streams=True, limits=True),
    "cqels": Features(dialect="cqels", forms=FORMS, streams=True, limits=True),
    "epsparql": Features(
        dialect="epsparql",
        forms=("select", "construct", "ask"),
        exists=False,
        minus=False,
        subqueries=False,
        paths=False,
    ),
    "rspql": Features(dialect="rspql", forms=FORMS, streams=True, limits=True),
}


def round_trip(text: str, dialect: str, entailment: str | None = None) -> None:
    try:
        plan = translate(text, dialect, entailment=entailment).plan
    except UnsupportedFeature as error:
        assume("depend on itself" not in str(error))  # a random rule may contradict itself
        raise
    assert translate(unparse(plan, dialect), dialect, entailment=entailment).plan == plan


@settings(max_examples=150)
@given(queries(ALL["sparql"]))
def test_sparql_round_trips(text: str) -> None:
    round_trip(text, "streaming")


@settings(max_examples=150)
@given(queries(ALL["streaming"]))
def test_streaming_sparql_round_trips(text: str) -> None:
    round_trip(text, "streaming")


@settings(max_examples=150)
@given(queries(ALL["csparql"]))
def test_csparql_round_trips(text: str) -> None:
    round_trip(text, "csparql")


@settings(max_examples=150)
@given(queries(ALL["cqels"]))
def test_cqels_round_trips(text: str) -> None:
    round_trip(text, "cqels")


@settings(max_examples=150)
@given(queries(ALL["epsparql"]))
def test_epsparql_round_trips(text: str) -> None:
    round_trip(text, "epsparql")


@settings(max_examples=150)
@given(queries(ALL["rspql"]))
def test_rspql_round_trips(text: str) -> None:
    round_trip(text, "rspql")


@pytest.mark.parametrize("kind", ALL)
def test_queries_with_entailment_round_trip(kind: str) -> None:
    """The text does not show the entailment, which is an option."""
    dialect = "streaming" if kind == "sparql" else kind

    @settings(max_examples=30)
    @given(queries(ALL[kind]))
    def round_trips(text: str) -> None:
        round_trip(text, dialect, "rdfs")

    round_trips()


@pytest.mark.long
@settings(max_examples=5000)
@given(queries(ALL["streaming"]))
def test_streaming_sparql_round_trips_in_many_cases(text: str) -> None:
    round_trip(text, "streaming")


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (
            "csparql",
            "SELECT * FROM STREAM <s> [RANGE 9s STEP 3s] { ?a <p> ?b GRAPH ?g { ?x ?p ?o } }",
        ),
        ("streaming", "SELECT * FROM NAMED STREAM <s> WINDOW ELEMS 1 { GRAPH ?g { ?x ?p ?o } }"),
        (
            "epsparql",
            "SELECT * FROM NAMED STREAM <u> { { ?a <p> ?b } SEQ { GRAPH <u> { ?x ?p ?o } } }",
        ),
        ("cqels", "SELECT * FROM NAMED <s> [NOW] AS ?w { GRAPH ?w { ?x ?p ?o } }"),
    ],
)
def test_queries_over_sources_of_the_caller_round_trip(dialect: str, text: str) -> None:
    round_trip(text, dialect)


@pytest.mark.parametrize(
    ("text", "dialect", "why"),
    [
        ("SELECT * FROM STREAM <s> [RANGE 9s STEP 3s] { ?x ?p ?o }", "streaming", "SteppedWindow"),
        ("SELECT * { STREAM <s> [NOW] { ?x ?p ?o } }", "csparql", "NowWindow"),
        ("SELECT * FROM NAMED <s> [NOW] AS ?w { GRAPH ?w { ?x ?p ?o } }", "rspql", "such as ?w"),
        ("SELECT * { { ?x <p> ?y } SEQ { ?x <q> ?y } }", "streaming", "SEQ"),
    ],
)
def test_the_error_names_the_operator_that_a_dialect_lacks(
    text: str, dialect: str, why: str
) -> None:
    with pytest.raises(UnsupportedFeature, match="has no") as raised:
        unparse(translate(text).plan, dialect)
    assert why in str(raised.value)


@pytest.mark.parametrize("local", ["road/1", "a/b/c", "a", "", "1-/_"])
def test_iri_shortened_by_a_prefix_is_read_back(local: str) -> None:
    iri = IRI(f"http://e/{local}")
    short = Writer({"": "http://e/"}).iri(iri)
    assert short.startswith(":")
    text = "PREFIX : <http://e/> ASK {{ {} ?p ?o }}"
    assert translate(text.format(short)).plan == translate(text.format(iri)).plan
    assert DisplayWriter({"": "http://e/"}).iri(iri) == f":{local}"
