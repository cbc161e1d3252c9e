"""Each lint warns where it should, at the right place, and nowhere else."""

from __future__ import annotations

import pickle
import warnings as python_warnings
from copy import copy
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from support.external_data import over_data
from support.golden import GOLDEN, read

import streamsparql
from streamsparql.cli import main
from streamsparql.errors import StreamSparqlError
from streamsparql.look.lints.short_windows import short_windows


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
        f"SELECT ?x (SUM(?n) AS ?t) {W} {{ ?x <speed> ?v ; <cars> ?n FILTER(?v < 30) }} GROUP BY ?x",
        ("combined-readings", "?x <speed> ?v ; <cars> ?n"),
    ),
    (
        f"SELECT ?x (COUNT(*) AS ?n) {W} {{ ?x <p> ?v OPTIONAL {{ ?x <q> ?w }} FILTER(?v > 1 && ?w < 2) }} GROUP BY ?x",
        ("combined-readings", "?x <q> ?w"),
    ),
    (
        f"SELECT ?r (AVG(?v) AS ?m) (MAX(?w) AS ?n) {W} {{ ?x <p> ?v . ?x <q> ?w GRAPH <g> {{ ?x <in> ?r }} }} GROUP BY ?r ?x",
        ("combined-readings", "?x <q> ?w"),
    ),
    ("SELECT * FROM STREAM <s> WINDOW ELEMS 9 { ?x <p> ?v ; <q> ?w }", ("counted-triples", "?x <p> ?v ; <q> ?w")),
    ("SELECT * FROM STREAM <s> [RANGE TRIPLES 9] { ?x <p> ?v . ?x <q> ?w }", ("counted-triples", "?x <p> ?v . ?x <q> ?w")),
    (f"SELECT * {W} {{ ?x <p> ?v }} LIMIT 5", ("limit-per-instant", "LIMIT 5")),
    (f"SELECT * {W} {{ ?x <p> ?v }} OFFSET 2 limit 5", ("limit-per-instant", "limit 5")),
    (f"SELECT (AVG(?v) AS ?m) {W} {{ ?x <p> ?v }}", ("empty-aggregate", "AVG(?v)")),
    (f"SELECT (2 * SUM(?v) AS ?m) {W} {{ ?x <p> ?v }}", ("empty-aggregate", "SUM(?v)")),
    (
        "SELECT * FROM STREAM <s> WINDOW RANGE 1 HOUR { ?x <p> ?v { ?x <q> ?w WINDOW RANGE 10 } }",
        ("bare-duration", "10"),
    ),
    ("SELECT * FROM STREAM <s> WINDOW RANGE 10 SECOND SLIDE 5 { ?x <p> ?v }", ("bare-duration", "5")),
    ("SELECT ?y { ?x <p> 1 } # lint: ignore nvr", ("unknown-lint", "nvr")),
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
    # readings that a node relates, are of different things, are distinct, or hold at one instant only
    f"SELECT (SUM(?n) AS ?t) (COUNT(*) AS ?c) {W} {{ ?o <speed> ?v ; <cars> ?n }} HAVING(COUNT(*) > 0)",
    f"SELECT ?x (COUNT(?y) AS ?t) {W} {{ ?x <speed> ?v ; <cars> ?n ; <on> ?r . ?y <on> ?r }} GROUP BY ?x",
    f"SELECT ?r (SUM(?n) AS ?t) {W} {{ ?o <of> ?r ; <speed> ?v ; <cars> ?n }} GROUP BY ?r",
    f"SELECT ?r (SUM(?n) AS ?t) {W} {{ ?o a <Reading> ; <of> ?r ; <speed> ?v ; <cars> ?n }} GROUP BY ?r",
    f"SELECT ?r (SUM(?n) AS ?t) {W} {{ ?s <made> ?o . ?o <speed> ?v ; <cars> ?n ; <of> ?r }} GROUP BY ?r",
    f"SELECT ?x (COUNT(DISTINCT ?n) AS ?t) (MAX(?v) AS ?m) {W} {{ ?x <p> ?v ; <q> ?n }} GROUP BY ?x",
    f"SELECT ?x (SUM(?n) AS ?t) {W} {{ ?x <cars> ?n }} GROUP BY ?x",
    f"SELECT ?x ?v ?n {W} {{ ?x <speed> ?v ; <cars> ?n }}",
    f"SELECT ?x (SUM(?n) AS ?t) {W} {{ ?x <cars> ?n GRAPH <g> {{ ?x <lanes> ?l }} }} GROUP BY ?x",
    "SELECT ?x (SUM(?n) AS ?t) (AVG(?v) AS ?m) { STREAM <s> [NOW] { ?x <speed> ?v ; <cars> ?n } } GROUP BY ?x",
    "SELECT ?x (SUM(?n) AS ?t) (AVG(?v) AS ?m) { ?x <speed> ?v ; <cars> ?n } GROUP BY ?x",  # no stream
    # a static attribute may be in the same graph pattern: a threshold, or one that only must exist
    f"SELECT ?x (COUNT(?v) AS ?n) {W} {{ ?x <speed> ?v ; <limit> ?max FILTER(?v > ?max) }} GROUP BY ?x",
    f"SELECT ?x (AVG(?v) AS ?m) {W} {{ ?x <speed> ?v ; <in> ?road }} GROUP BY ?x",
    "SELECT * FROM STREAM <s> WINDOW ELEMS 9 { ?x <p> ?v }",
    "SELECT * FROM STREAM <s> WINDOW ELEMS 9 { ?x <p> ?v . ?v <q> ?w }",
    f"SELECT * {W} {{ ?x <p> ?v }} ORDER BY ?v LIMIT 5",
    "SELECT * { ?x <p> ?v } LIMIT 5",
    "REGISTER RSTREAM <o> AS SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT9S STEP PT1S] { WINDOW <w> { ?x <p> ?v } } LIMIT 5",
    f"SELECT (AVG(?v) AS ?m) {W} {{ ?x <p> ?v }} HAVING(COUNT(*) > 0)",
    f"SELECT (COUNT(*) AS ?n) (MAX(?v) AS ?m) {W} {{ ?x <p> ?v }}",
    "SELECT (AVG(?v) AS ?m) { ?x <p> ?v }",
    "SELECT * FROM STREAM <s> WINDOW RANGE 10 SLIDE 5 { ?x <p> ?v }",
    "SELECT * FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 5 MS { ?x <p> ?v }",
    # ignored
    "SELECT ?y { ?x <p> 1 } # lint: ignore never-bound",
    "# lint: ignore now, never-bound (as in the paper)\nSELECT ?y { ?x <p> 1 }",
    "SELECT ?y { ?x <p> 1 } #lint:ignore",
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


def test_a_finding_has_all_its_places():
    text = "SELECT ?b { ?x <p> 1 FILTER(?b > 1) BIND(?b + 1 AS ?c) }"
    (first,) = (w for w in streamsparql.compile(text).check() if w.code == "never-bound")
    places = [first.span.start, *(span.start for span in first.others)]
    assert places == [at for at in range(len(text)) if text[at : at + 2] == "?b"]
    assert "also at line 1, column 29; line 1, column 42" in str(first)


def test_a_node_per_reading_is_suggested():
    text = f"PREFIX : <http://e/> SELECT ?x (SUM(?n) AS ?t) (AVG(?v) AS ?m) {W} {{ ?x :speed ?v ; :cars ?n }} GROUP BY ?x"
    (warning,) = streamsparql.compile(text).check()
    assert warning.hint.endswith("?reading <of> ?x ; :speed ?v ; :cars ?n")
    assert "SUM counts pairs" in warning.message


# -- queries of others -----------------------------------------------------------------------------

NEW = (
    "combined-readings",
    "counted-triples",
    "limit-per-instant",
    "bare-duration",
    "empty-aggregate",
)
WARNED = {
    "aggregates.rq": {"empty-aggregate"},
    "query4.rspql": {"empty-aggregate"},
    "query4.csparql": {"empty-aggregate"},
    "query4.cqels": {"empty-aggregate"},
}
"""The published queries that a lint of streams is about: means over windows that may be empty."""


def published(folder: Path) -> list[ParameterSet]:
    """Return the folders of queries of other projects."""
    kinds = (".rq", ".sparql", ".csparql", ".cqels", ".rspql")
    inside = sorted({path.parent for path in folder.rglob("*") if path.suffix in kinds})
    own = [path for path in inside if "w3c" not in path.parts]
    return [pytest.param(path, id=str(path.relative_to(folder))) for path in own]


@pytest.mark.parametrize("folder", over_data(published))
def test_published_queries_have_no_wrong_warnings(folder):
    for path in sorted(folder.iterdir()):
        try:
            query = streamsparql.compile(path.read_text("utf-8", "replace"))
        except (OSError, StreamSparqlError):  # other tests are about what is accepted
            continue
        codes = {w.code for w in query.check() if w.code in NEW}
        assert codes == WARNED.get(path.name, set()), path.name


# -- runs ------------------------------------------------------------------------------------------

TYPO = "SELECT ?nmae { ?x <p> ?name }"


def issued(call) -> list[str]:
    """Return the codes of the warnings that a call issues."""
    with python_warnings.catch_warnings(record=True) as caught:
        python_warnings.simplefilter("always")
        call()
    return [each.message.code for each in caught]


@pytest.mark.parametrize("method", ["run", "open", "analyze", "trace"])
def test_the_first_run_of_a_query_issues_its_warnings(method):
    query = streamsparql.compile(TYPO)
    assert issued(getattr(query, method)) == ["never-bound"]
    assert issued(query.run) == []
    assert issued(streamsparql.compile(TYPO).run) == ["never-bound"]


def test_a_warning_is_about_the_line_that_runs_the_query():
    with pytest.warns(streamsparql.LintWarning, match="nothing binds") as caught:
        streamsparql.compile(TYPO).run()
    assert caught[0].filename == __file__


def test_a_warning_that_is_an_error_is_raised_by_each_run():
    query = streamsparql.compile(TYPO)
    for _ in range(2):
        with pytest.raises(streamsparql.LintWarning, match="nothing binds"):
            query.run()


def test_a_wrong_argument_is_an_error_before_any_warning():
    query = streamsparql.compile(TYPO)
    with pytest.raises(streamsparql.SourceError):
        query.run({"http://e/s": []})


def test_warnings_can_be_pickled():
    (warning,) = streamsparql.compile(TYPO).check()
    assert pickle.loads(pickle.dumps(warning)) == warning
    assert {warning, copy(warning)} == {warning}


def test_the_command_line_shows_warnings_once(tmp_path, capsys):
    (tmp_path / "q.rq").write_text(TYPO)
    command = ["run", str(tmp_path / "q.rq")]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert shown.err.count("[never-bound]") == 1
    assert "never-bound" not in shown.out
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


# -- windows that are too short for the data -------------------------------------------------------

DAY = 1_700_000_000_000
SHORT = "SELECT * FROM STREAM <s> WINDOW RANGE 60 SLIDE 10 { ?x <p> ?v }"


@pytest.mark.parametrize(
    ("text", "first", "last", "items", "expected"),
    [
        (SHORT, DAY, DAY + 100_000, 11, ["60"]),
        (SHORT, DAY, DAY + 100_000, 1_001, []),  # an item every 100 ms
        (SHORT, 0, 100_000, 11, []),  # timestamps of an example
        (SHORT, DAY, DAY, 1, []),
        (SHORT.replace("60", "60 MS").replace("10", "10 MS"), DAY, DAY + 100_000, 11, []),
        (SHORT + " # lint: ignore bare-duration", DAY, DAY + 100_000, 11, []),
    ],
)
def test_windows_without_a_unit_that_are_too_short_for_the_data(text, first, last, items, expected):
    short = short_windows(streamsparql.compile(text).translation, first, last, items)
    assert [warning.span.of(text) for warning in short] == expected


def test_warnings_are_in_the_order_of_the_text():
    text = "SELECT ?b ?a { ?x <p> 1 FILTER(?c) }"
    assert [place for code, place in warnings(text) if code == "never-bound"] == ["?b", "?a", "?c"]
