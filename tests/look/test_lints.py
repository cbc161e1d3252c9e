"""Each lint warns where it should, at the right place, and nowhere else."""

from __future__ import annotations

import pytest
from support.golden import GOLDEN, read

import streamsparql


def warnings(text: str, **options: str) -> list[tuple[str, str]]:
    """Return the codes of the warnings about a query, each with the text that it points to."""
    query = streamsparql.compile(text, **options)
    return [(w.code, w.span.of(text) if w.span else "") for w in query.check()]


W = "FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S "
SHORT, MONTH = (
    f"FILTER(getDURATION() < '{d}'^^<http://www.w3.org/2001/XMLSchema#duration>"
    for d in ("PT5M", "P1M")
)
DOUBTFUL = [
    ("SELECT ?x ?z { ?x <p> 1 . ?z <q> 2 }", ("cartesian-product", "?z <q> 2")),
    ("SELECT ?x ?z { ?x <p> 1 OPTIONAL { ?z <q> 2 } }", ("cartesian-product", "?z <q> 2")),
    ("SELECT ?y { ?x <p> 1 }", ("never-bound", "?y")),
    ("SELECT ?x { ?x <p> 1 } ORDER BY ?z", ("never-bound", "?z")),
    ("SELECT ?x { ?x <p> 1 BIND(?z + 1 AS ?n) }", ("never-bound", "?z")),
    ("SELECT (SUM(?z) AS ?n) { ?x <p> 1 }", ("never-bound", "?z")),
    ("CONSTRUCT { ?x <q> ?z } { ?x <p> 1 }", ("never-bound", "?z")),
    ("SELECT ?x { ?x <p> 1 OPTIONAL { ?x <q> ?y FILTER(?z) } }", ("never-bound", "?z")),
    ("SELECT ?x { { ?x <p> ?y FILTER(?z) } }", ("never-bound", "?z")),
    ("SELECT ?x { ?x <p> ?y FILTER(?y + 'a' > 2) }", ("never-true", "FILTER(?y + 'a' > 2)")),
    ("SELECT ?x { ?x <p> ?y FILTER(?y < <a>) }", ("never-true", "FILTER(?y < <a>)")),
    ("SELECT ?x { ?x <p> ?y FILTER(1/0 = ?y) }", ("never-true", "FILTER(1/0 = ?y)")),
    ("SELECT ?x { ?x <p> ?y FILTER(false) }", ("never-true", "FILTER(false)")),
    ("SELECT ?x { ?x <p> ?y FILTER(1 > 2) }", ("never-true", "FILTER(1 > 2)")),
    ("SELECT ?x { ?x <p> ?y FILTER(?y IN ()) }", ("never-true", "FILTER(?y IN ())")),
    ("SELECT ?x { ?x <p> ?y OPTIONAL { ?x <q> ?z FILTER(false) } }", ("never-true", "OPTIONAL { ?x <q> ?z FILTER(false) }")),
    ("SELECT ?y { 'x' <p> ?y }", ("never-true", "'x' <p> ?y")),
    ("SELECT ?x { { ?x <p> ?y } SEQ { ?x <p> ?z } FILTER(getDURATION() < 3600) }", ("never-true", "FILTER(getDURATION() < 3600)")),
    ("SELECT ?x { { ?x <p> ?y } SEQ { ?x <p> ?z } FILTER(getDURATION() < 'PT1H') }", ("never-true", "FILTER(getDURATION() < 'PT1H')")),
    ("SELECT ?x { ?x <p> ?y FILTER(?y && !true) }", ("never-true", "FILTER(?y && !true)")),
    (f"SELECT ?x {W} {{ ?x <p> ?y WINDOW ELEMS 5 }}", ("unused-window", "WINDOW RANGE 10 S SLIDE 1 S")),
    ("SELECT ?x { ?x <p> ?y WINDOW ELEMS 5 }", ("unused-window", "WINDOW ELEMS 5")),
    (
        "SELECT ?x FROM NAMED WINDOW <w> ON <s> [RANGE 5 STEP 5] { ?x <p> ?y }",
        ("unused-window", "[RANGE 5 STEP 5]"),
    ),
    ("SELECT ?x FROM STREAM <s> { GRAPH <g> { ?x <p> ?y } }", ("unused-stream", "STREAM <s>")),
    ("SELECT ?x { STREAM <s> [ALL] { ?x <p> ?y } }", ("unbounded-state", "STREAM <s> [ALL] { ?x <p> ?y }")),
    ("SELECT ?x { { ?x <p> ?y } SEQ { ?x <p> ?z } }", ("unbounded-state", "{ ?x <p> ?y } SEQ { ?x <p> ?z }")),
    # a bound on the whole does not apply to an optional side, which decides what passes
    (f"SELECT ?x {{ {{ {{ ?x <p> 1 }} SEQ {{ ?x <p> 2 }} }} OPTIONALSEQ {{ ?x <p> ?z }} {SHORT}) }}", ("unbounded-state", "{ ?x <p> 1 } SEQ { ?x <p> 2 }")),
    ("SELECT ?x { ?x <p> ?y . ?x <q> ?z { ?x <r> 1 } EQUALS { ?x <s> 2 } }", ("unbounded-state", "{ ?x <p> ?y . ?x <q> ?z { ?x <r> 1 } EQUALS { ?x <s> 2 } }")),
    ("SELECT ?x { { ?x <p> ?y } EQUALS { ?x <q> 1 } OPTIONAL { ?x <p> 3 } }", ("unbounded-state", "OPTIONAL { ?x <p> 3 }")),
    (f"SELECT ?x {{ {{ ?x <p> ?y }} SEQ {{ ?x <p> ?z }} {MONTH}) }}", ("unbounded-state", "{ ?x <p> ?y } SEQ { ?x <p> ?z }")),
    (f"SELECT ?x {{ {{ ?x <p> ?y }} SEQ {{ ?x <p> ?z }} {MONTH} && ?y < ?z) }}", ("months-in-bound", f"{MONTH} && ?y < ?z)")),
    (f"SELECT ?x {{ {{ ?x <p> ?y {MONTH}) }} OPTIONALSEQ {{ ?x <p> ?z }} }}", ("months-in-bound", f"{{ ?x <p> ?y {MONTH}) }} OPTIONALSEQ {{ ?x <p> ?z }}")),
    (
        "SELECT ?x FROM NAMED WINDOW <w> ON <s> [RANGE 2 STEP 5] { WINDOW <w> { ?x <p> ?y } }",
        ("missed-elements", "NAMED WINDOW <w> ON <s> [RANGE 2 STEP 5]"),
    ),
    (f"SELECT ?x {W} {{ ?x <p> ?y FILTER(?y < NOW()) }}", ("now", "NOW()")),
    (
        "REGISTER STREAM s AS SELECT ?x FROM STREAM <s> [RANGE 5s STEP 5s] { ?x <p> ?y }",
        ("no-stream", "REGISTER STREAM s AS"),
    ),
]  # fmt: skip
FINE = [
    "SELECT ?x ?y { ?x <p> ?y OPTIONAL { ?y <q> ?z } FILTER(!BOUND(?z)) }",
    "SELECT ?x { ?x <p> ?a . ?y <p> ?b . ?a <q> ?b }",  # related through a third pattern
    "SELECT ?x { ?x <p> ?a . ?y <p> ?b { ?a <q> ?b } }",
    "SELECT ?x { ?x <p> 1 VALUES ?k { 1 } <a> <b> <c> }",  # a table of one row
    "SELECT ?x { ?x <p> ?y FILTER EXISTS { ?y <q> ?z FILTER(?z = ?x) } }",  # ?x of the outer row
    "SELECT ?x { ?x <p> ?y FILTER(?y + 1 > 2 || ?y = 'a') }",
    "SELECT ?x (COUNT(*) AS ?n) { ?x <p> ?y } GROUP BY ?x HAVING(?n > 2) ORDER BY ?n",
    f"SELECT ?x {W} {{ ?x <p> ?y . ?y <q> ?z }}",
    "SELECT ?x { { ?x <p> ?y } SEQ { ?x <p> ?z } FILTER(?y < ?z && getDURATION() < 'PT5M'^^<http://www.w3.org/2001/XMLSchema#duration>) }",
    f"SELECT ?x {{ {{ ?x <p> ?y }} OPTIONALSEQ {{ ?x <p> 1 }} {SHORT}) }}",
    f"SELECT ?x {{ {{ ?x <p> ?y {SHORT}) }} OPTIONALSEQ {{ ?x <p> 1 }} }}",
    "SELECT ?x FROM NAMED <g> { { ?x <p> ?y } EQUALS { ?x <q> ?z } GRAPH <g> { ?x <r> 1 . ?x <s> 2 } }",
    "SELECT ?x { ?x <p> ?y FILTER(NOW() > ?y) }",  # no stream
    "CONSTRUCT { ?x <p> ?speed } { BIND(IRI(?id) AS ?x) FILTER(?t) }",  # a mapping: columns bind
    "SELECT ?x (BNODE() AS ?b) { ?x <p> ?y }",
    "SELECT ?s { { ?s ?p ?o } UNION { ?t ?p ?o } }",
    "SELECT ?x ?n { ?x <p> 1 { SELECT (COUNT(*) AS ?n) { ?y <q> ?z } } }",
    "SELECT ?x { { ?x <p> ?y } EQUALS { ?x <q> ?z } }",
    "SELECT ?x { ?x <p> ?y FILTER(NOW() > '2020-01-01T00:00:00Z'^^<http://www.w3.org/2001/XMLSchema#dateTime>) }",
]


@pytest.mark.parametrize(("text", "warning"), DOUBTFUL)
def test_warning_points_to_its_place(text, warning):
    assert warning in warnings(text)


@pytest.mark.parametrize("text", FINE)
def test_correct_query_has_no_warnings(text):
    assert warnings(text) == []


def test_construct_of_another_dialect_is_named():
    text = "SELECT ?x FROM STREAM <s> WINDOW ELEMS 5 { ?x <p> ?y } AGGREGATE { (?n, COUNT, {?x}) }"
    (warning,) = streamsparql.compile(text, dialect="streaming").check()
    assert str(warning).startswith("line 1, column 68: warning: AGGREGATE belongs to C-SPARQL")


def test_unbound_variable_is_located_where_it_is_unbound():
    text = "SELECT ?x { ?x <p> ?y { ?x <q> ?z FILTER(?y > 1) } }"
    (warning,) = (w for w in streamsparql.compile(text).check() if w.code == "never-bound")
    assert warning.span.start == text.index("?y > 1")


def test_similar_variable_is_suggested():
    (warning,) = streamsparql.compile("SELECT ?nmae { ?x <p> ?name }").check()
    assert warning.hint == "did you mean ?name?"


def test_mistakes_in_papers_have_warnings():
    """EDBT 2010 selects ?Tot and binds ?tot; WWW 2011's query (6) reads an unbound variable."""
    (market,) = (c for c in read(GOLDEN / "edbt2010.txt")[1] if c.title.startswith("5.2"))
    assert warnings(market.text.replace("?tot\nWHERE", "?Tot\nWHERE"))[0] == ("never-bound", "?Tot")
    (average,) = (c for c in read(GOLDEN / "www2011.txt")[1] if c.title.startswith("(6)"))
    assert ("never-bound", "?count") in warnings(average.text)


def test_warnings_are_in_the_order_of_the_text():
    text = "SELECT ?b ?a { ?x <p> 1 FILTER(?c) }"
    assert [place for code, place in warnings(text) if code == "never-bound"] == ["?b", "?a", "?c"]
