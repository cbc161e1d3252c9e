"""`unparse` undoes `create_plan`: what it writes compiles to the same plan, in every dialect.

`unparse` compares by itself and refuses a plan that it cannot write; so the property here is that
it refuses none that came from a text. What this cannot see: whether the plan was right to begin with.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from support.generate import Features, queries

from streamsparql.errors import UnsupportedFeature
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


def round_trip(text: str, dialect: str) -> None:
    try:
        plan = translate(text, dialect).plan
    except UnsupportedFeature as error:
        assume("depend on itself" not in str(error))  # a random rule may well contradict itself
        raise
    assert translate(unparse(plan, dialect), dialect).plan == plan


@settings(max_examples=150)
@given(queries(ALL["sparql"]))
def test_sparql(text: str) -> None:
    round_trip(text, "streaming")


@settings(max_examples=150)
@given(queries(ALL["streaming"]))
def test_streaming_sparql(text: str) -> None:
    round_trip(text, "streaming")


@settings(max_examples=150)
@given(queries(ALL["csparql"]))
def test_csparql(text: str) -> None:
    round_trip(text, "csparql")


@settings(max_examples=150)
@given(queries(ALL["cqels"]))
def test_cqels(text: str) -> None:
    round_trip(text, "cqels")


@settings(max_examples=150)
@given(queries(ALL["epsparql"]))
def test_epsparql(text: str) -> None:
    round_trip(text, "epsparql")


@settings(max_examples=150)
@given(queries(ALL["rspql"]))
def test_rspql(text: str) -> None:
    round_trip(text, "rspql")


@pytest.mark.long
@settings(max_examples=5000)
@given(queries(ALL["streaming"]))
def test_streaming_sparql_at_length(text: str) -> None:
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
def test_sources_that_only_the_caller_knows(dialect: str, text: str) -> None:
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
def test_what_a_dialect_cannot_say_is_named(text: str, dialect: str, why: str) -> None:
    with pytest.raises(UnsupportedFeature, match="has no") as caught:
        unparse(translate(text).plan, dialect)
    assert why in str(caught.value)
