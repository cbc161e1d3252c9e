"""Plans by hand: they equal the plans of `create_plan`, and invalid ones raise."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
import rdflib

import streamsparql
from streamsparql.algebra.event import SeqJoin
from streamsparql.algebra.join import Join
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.window import SlidingDeltaWindow, SlidingTupleWindow, SteppedWindow
from streamsparql.by_hand import Draft, access, draft, graph, unit, values
from streamsparql.errors import (
    QueryError,
    QuerySyntaxError,
    StreamSparqlError,
    UnsupportedFeature,
)

P = {"": "http://e/"}
HEAD = "PREFIX : <http://e/> "
STREAM = "FROM STREAM :s WINDOW RANGE 10 S SLIDE 5 S "


def compiled(text: str, dialect: str = "auto", origin: int = 0) -> Plan:
    return streamsparql.compile(HEAD + text, dialect, origin=origin).logical


def source() -> Draft:
    return access(":s", P).window("RANGE 10 S SLIDE 5 S").merge(graph())


def static() -> Draft:
    return graph(prefixes=P)


def match(pattern: str) -> Draft:
    return source().match(pattern)


def test_a_plan_with_entailment_is_that_of_the_query() -> None:
    text = f"SELECT ?x {STREAM}{{ ?x a :C }}"
    query = streamsparql.compile(HEAD + text, entailment="rdfs")
    window = access(":s", P).window("RANGE 10 S SLIDE 5 S").entailed()
    draft = window.merge(graph().entailed().distinct()).match("?x a :C").project("?x")
    assert draft.plan == query.logical
    assert draft.query().entailment == "rdfs"
    assert draft.query().logical == query.logical
    of_other = access(":s", P).entailed(graph("urn:schema")).match("?x a :C")
    assert "schema: AccessGraph  <urn:schema>" in str(of_other)
    with pytest.raises(QueryError, match="a schema must be static graphs, not AccessStream"):
        access(":s", P).entailed(access(":t", P))
    with pytest.raises(QueryError, match="expected triples here"):
        match("?x :p ?y").entailed()


HAND: dict[str, Callable[[], Draft]] = {
    f"SELECT ?x {STREAM}{{ ?x :p ?y }}": lambda: match("?x :p ?y").project("?x"),
    f"SELECT * {STREAM}{{ ?x :p ?y . ?y :q ?z }}": lambda: match("?x :p ?y . ?y :q ?z").project(),
    f"SELECT * {STREAM}{{ ?x :p ?y {{ ?y :q ?z }} }}": lambda: (
        match("?x :p ?y").join(match("?y :q ?z")).project()
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y OPTIONAL {{ ?x :q ?z }} }}": lambda: (
        match("?x :p ?y").left_join(match("?x :q ?z")).project()
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y OPTIONAL {{ ?x :q ?z FILTER(?z > ?y) }} }}": lambda: (
        match("?x :p ?y").left_join(match("?x :q ?z"), "?z > ?y").project()
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y OPTIONAL {{ ?x :q ?z FILTER(EXISTS {{ ?z :r ?y }} || ?z = 1) }} }}": lambda: (
        match("?x :p ?y").left_join(match("?x :q ?z"), "EXISTS { ?z :r ?y } || ?z = 1").project()
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y MINUS {{ ?x :q ?z }} }}": lambda: (
        match("?x :p ?y").minus(match("?x :q ?z")).project()
    ),
    f"SELECT * {STREAM}{{ {{ ?x :p ?y }} UNION {{ ?x :q ?y }} UNION {{ ?x :r ?y }} }}": lambda: (
        match("?x :p ?y").union(match("?x :q ?y"), match("?x :r ?y")).project()
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y FILTER(?y > 5 && ?x != :a) }}": lambda: (
        match("?x :p ?y").filter("?y > 5 && ?x != :a").project()
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y FILTER NOT EXISTS {{ ?x :q ?z }} }}": lambda: (
        match("?x :p ?y").filter("NOT EXISTS { ?x :q ?z }").project()
    ),
    f"SELECT ?x {STREAM}{{ ?x :p ?y FILTER EXISTS {{ ?y :q ?x }} }}": lambda: (
        match("?x :p ?y").semi_join(match("?y :q ?x")).project("?x")
    ),
    f"SELECT ?y {STREAM}{{ ?x :p ?y FILTER NOT EXISTS {{ ?y :q ?x }} }}": lambda: (
        match("?x :p ?y").anti_join(match("?y :q ?x")).project("?y")
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y FILTER(?y = 1 || EXISTS {{ ?x :q [] }}) }}": lambda: (
        match("?x :p ?y").filter("?y = 1 || EXISTS { ?x :q [] }").project()
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y BIND(?y * 2 AS ?z) }}": lambda: (
        match("?x :p ?y").extend("?z", "?y * 2").project()
    ),
    f"SELECT ?x (COUNT(*) AS ?n) (AVG(?y) AS ?m) {STREAM}{{ ?x :p ?y }} GROUP BY ?x": lambda: (
        match("?x :p ?y").aggregate("?x", "COUNT(*) AS ?n", "AVG(?y) AS ?m").project("?x ?n ?m")
    ),
    f"SELECT ?x (SUM(?y) + 1 AS ?n) {STREAM}{{ ?x :p ?y }} GROUP BY ?x HAVING(COUNT(*) > 2)": lambda: (
        match("?x :p ?y")
        .aggregate("?x", "SUM(?y) + 1 AS ?n", having="COUNT(*) > 2")
        .project("?x ?n")
    ),
    f"SELECT (COUNT(*) AS ?n) {STREAM}{{ ?x :p ?y }}": lambda: (
        match("?x :p ?y").aggregate("", "COUNT(*) AS ?n").project("?n")
    ),
    f"SELECT DISTINCT ?x {STREAM}{{ ?x :p ?y }} ORDER BY DESC(?y) ?x LIMIT 3 OFFSET 1": lambda: (
        match("?x :p ?y").order_by("DESC(?y) ?x").project("?x").distinct().slice(3, 1)
    ),
    f"SELECT REDUCED ?x {STREAM}{{ ?x :p ?y }}": lambda: match("?x :p ?y").project("?x").reduced(),
    "SELECT * { VALUES (?x ?y) { (:a 1) (UNDEF 2) } ?x :p ?y }": lambda: (
        values("(?x ?y) { (:a 1) (UNDEF 2) }", P).join(static().match("?x :p ?y")).project()
    ),
    f"ASK {STREAM}{{ ?x :p ?y }}": lambda: match("?x :p ?y").ask(),
    f"CONSTRUCT {{ ?x :by ?y . _:b :of ?x }} {STREAM}{{ ?x :p ?y }}": lambda: match(
        "?x :p ?y"
    ).construct("?x :by ?y . _:b :of ?x"),
    f"SELECT * {STREAM}{{ ?x :p [] {{ ?x :q [] }} }}": lambda: (
        match("?x :p []").join(match("?x :q []")).project()
    ),
    f"SELECT * {STREAM}{{ ?x :p [ :q ?y ] OPTIONAL {{ ?y :r [ :q [] ] }} }}": lambda: (
        match("?x :p [ :q ?y ]").left_join(match("?y :r [ :q [] ]")).project()
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y BIND(RAND() AS ?a) {{ ?x :q ?z BIND(UUID() AS ?b) }} }}": lambda: (
        match("?x :p ?y")
        .extend("?a", "RAND()")
        .join(match("?x :q ?z").extend("?b", "UUID()"))
        .project()
    ),
    f"SELECT * {STREAM}{{ ?x :p/:q* ?y }}": lambda: match("?x :p/:q* ?y").project(),
    "SELECT * { ?x :p ?y GRAPH ?g { ?x :q ?z } }": lambda: (
        static()
        .match("?x :p ?y")
        .join(graph("?g", prefixes=P).match("?x :q ?z").graph("?g"))
        .project()
    ),
    "SELECT * FROM :one FROM :two { ?x :p ?y }": lambda: (
        graph(":one", ":two", prefixes=P, background=True).match("?x :p ?y").project()
    ),
    "SELECT * FROM STREAM :s WINDOW ELEMS 3 { ?x :p ?y { ?x :q ?z . WINDOW ELEMS 5 } }": lambda: (
        access(":s", P)
        .window("ELEMS 3")
        .merge(graph())
        .match("?x :p ?y")
        .join(access(":s", P).match("?x :q ?z").window("ELEMS 5").union(static().match("?x :q ?z")))
        .project()
    ),
    f"SELECT * {STREAM}{{ ?x :p ?y OPTIONAL {{ ?x :q ?z OPTIONAL {{ ?z :r ?w }} }} }}": lambda: (
        match("?x :p ?y OPTIONAL { ?x :q ?z OPTIONAL { ?z :r ?w } }").project()
    ),
}
"""Queries, and the equivalent drafts."""


@pytest.mark.parametrize("text", HAND)
def test_draft_equals_the_logical_plan_of_the_query(text: str) -> None:
    by_hand = HAND[text]()
    plan = compiled(text)
    assert str(draft(by_hand.plan)) == str(draft(plan))
    assert by_hand == plan


def test_windows_of_other_dialects() -> None:
    window = access(":s", P).window("[RANGE 10s STEP 5s]", dialect="csparql").merge(graph())
    by_hand = window.distinct().match("?x :p ?y").project()
    text = "SELECT * FROM STREAM :s [RANGE 10s STEP 5s] { ?x :p ?y }"
    assert by_hand == compiled(text, "csparql")
    shifted = access(":s", P).window("[RANGE 10s STEP 5s]", dialect="csparql", origin=7)
    by_hand = shifted.merge(graph()).distinct().match("?x :p ?y").project()
    assert by_hand == compiled(text, "csparql", origin=7)
    now = access(":s", P).window("[NOW]", dialect="cqels").distinct().match("?x :p ?y").project()
    assert now == compiled("SELECT * { STREAM :s [NOW] { ?x :p ?y } }", "cqels")


def test_window_is_a_string_a_class_or_a_node() -> None:
    stream = access("s")
    expected = SlidingDeltaWindow(stream.plan, 10, 5)
    assert stream.window("RANGE 10 SLIDE 5") == expected
    assert stream.window(SlidingDeltaWindow, 10, 5) == expected
    assert stream.window(SlidingDeltaWindow(unit().plan, 10, 5)) == expected
    assert stream.window(lambda plan: SlidingTupleWindow(plan, 3)) == stream.window("ELEMS 3")


def test_annotate_keeps_the_rows() -> None:
    by_hand = (
        access(":s", P)
        .window("[RANGE 10s STEP 5s]", dialect="csparql")
        .merge(graph())
        .distinct()
        .match("?x :p ?y")
        .annotate("(?n, COUNT, {?x}) FILTER(?n > 1)")
        .project("?x ?n")
    )
    text = (
        "SELECT ?x ?n FROM STREAM :s [RANGE 10s STEP 5s] { ?x :p ?y }"
        " AGGREGATE { (?n, COUNT, {?x}) FILTER(?n > 1) }"
    )
    assert by_hand == compiled(text, "csparql")


def test_event_operators() -> None:
    one, two = (access().merge(graph()).match(f"?x <{p}> ?{v}") for p, v in ("pa", "qb"))
    by_hand = one.seq(two)
    assert isinstance(by_hand.plan, SeqJoin)
    text = "SELECT * { { ?x <p> ?a } SEQ { ?x <q> ?b } }"
    assert by_hand.detect().project() == streamsparql.compile(text, "epsparql").logical
    filtered = by_hand.filter('getDURATION() > "PT1S"^^<http://www.w3.org/2001/XMLSchema#duration>')
    filtered_text = (
        text[:-1] + 'FILTER(getDURATION() > "PT1S"^^<http://www.w3.org/2001/XMLSchema#duration>) }'
    )
    assert filtered.detect().project() == streamsparql.compile(filtered_text, "epsparql").logical


def test_draft_is_evaluated_over_small_streams() -> None:
    by_hand = access("s").window("RANGE 10 SLIDE 5").match("?x <p> ?y").project("?x")
    items = [("<a>", "<p>", "1", 2), ("<a>", "<p>", "<o>", 3)][1:]
    assert list(by_hand.at(3, items)) == list(by_hand.at(9, {"s": items}))
    assert len(by_hand.at(10, items)) == 0
    assert len(by_hand.at(0)) == 0
    joined = by_hand.join(graph().match("?x <q> ?z"))
    (row,) = joined.at(3, items, graph=[("<a>", "<q>", "<b>")])
    assert str(row[Variable("z")]) == "<b>"


def test_draft_is_made_from_a_query_and_converted_to_one() -> None:
    query = streamsparql.compile(HEAD + f"SELECT ?x {STREAM}{{ ?x :p ?y }}")
    more = draft(query).join(values("?x { :a }", P))
    assert isinstance(more.plan, Join)
    assert draft(query).query().logical == query.logical
    assert draft(query).equivalent(query)
    assert not draft(query).equivalent(more, trials=50)
    assert draft(query).optimized == query.optimized


def test_draft_has_text_and_html() -> None:
    by_hand = match("?x :p ?y")
    assert str(by_hand).startswith("TriplePatternMatching  ?x :p ?y\nMerge")
    html = by_hand._repr_html_()
    assert "<svg" in html
    assert "?x :p ?y" in html


def test_hidden_variables_of_two_drafts_differ() -> None:
    one = graph().match("?x <p> []")
    joined = one.join(graph().match("?x <q> []"))
    data = [("<a>", "<p>", "<b>"), ("<a>", "<q>", "<c>")]
    assert len(joined.at(0, graph=data)) == 1


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "a window over a join": (lambda: match("?x :p ?y").window("ELEMS 3"), "over a stream"),
    "a join of triples": (lambda: source().join(match("?x :p ?y")), "match a pattern first"),
    "matching rows": (lambda: match("?x :p ?y").match("?x :q ?z"), "join"),
    "merging rows": (lambda: source().merge(match("?x :p ?y")), "union"),
    "no variable": (lambda: match("?x :p ?y").project("x"), "?x ?y"),
    "a bound variable": (lambda: match("?x :p ?y").extend("?y", "1"), "new"),
    "an alias that is there": (
        lambda: match("?x :p ?y").aggregate("?x", "COUNT(*) AS ?y"),
        "already bound",
    ),
    "brackets without a dialect": (lambda: access("s").window("[RANGE 1s STEP 1s]"), "dialect="),
    "an empty window": (lambda: access("s").window("ELEMS 0"), "0 elements"),
    "timestamps": (lambda: match("?x :p ?y").filter("timestamp(?x) > 5"), "hidden column"),
    "a pattern with no source": (
        lambda: values("?x { 1 }").filter("EXISTS { ?x ?p ?o }"),
        "source",
    ),
    "a negative limit": (lambda: match("?x :p ?y").slice(-1), "non-negative integers"),
    "more than a condition": (
        lambda: match("?x :p ?y").filter("?y > 5) FILTER(?y < 3"),
        "unexpected clauses in",
    ),
    "more than an expression": (
        lambda: match("?x :p ?y").extend("?z", "1 AS ?a) BIND(2"),
        "unexpected clauses in",
    ),
    "more than an order": (
        lambda: match("?x :p ?y").order_by("?x LIMIT 2"),
        "unexpected clauses in",
    ),
    "more than keys": (
        lambda: match("?x :p ?y").aggregate("?x HAVING (?x > 1)", "COUNT(*) AS ?n"),
        "unexpected clauses in",
    ),
    "more than calls": (
        lambda: match("?x :p ?y").aggregate("?x", "COUNT(*) AS ?n) (SUM(?y) AS ?m"),
        "unexpected clauses in",
    ),
    "more than a having": (
        lambda: match("?x :p ?y").aggregate("?x", "COUNT(*) AS ?n", having="?n > 1) (?n < 5"),
        "unexpected clauses in",
    ),
    "more than an annotation": (
        lambda: match("?x :p ?y").annotate("(?n, COUNT, {?x}) } AGGREGATE { (?m, SUM(?y), {?x})"),
        "unexpected clauses in",
    ),
    "more than a pattern": (
        lambda: source().match("?x :p ?y } VALUES ?x { 1"),
        "unexpected clauses in",
    ),
    "more than a table": (lambda: values("?x { 1 } } VALUES ?y { 1"), "unexpected clauses in"),
    "more than a condition of OPTIONAL": (
        lambda: match("?x :p ?y").left_join(match("?x :q ?z"), "?z > 1) FILTER(?y > 1"),
        "unexpected clauses in",
    ),
    "a window in a pattern": (
        lambda: source().match("?x :p ?y . WINDOW ELEMS 5"),
        "access(..).window(..)",
    ),
    "a window in an EXISTS": (
        lambda: match("?x :p ?y").filter("EXISTS { ?x :q ?z . WINDOW ELEMS 5 }"),
        "access(..).window(..)",
    ),
    "more than a window": (
        lambda: access("s").window("RANGE 10 SLIDE 5 FROM <g>"),
        "unexpected clauses in",
    ),
    "a string with parameters": (lambda: access("s").window("RANGE 10 SLIDE 5", 9), "a class with"),
    "a node with a name": (
        lambda: access("s").window(SlidingDeltaWindow(UNIT, 10, 5), name="w"),
        "are for a string or a class",
    ),
    "a class with too few parameters": (
        lambda: access("s").window(SlidingDeltaWindow, 10),
        "takes input, width, slide, name=, origin=",
    ),
    "a window that would miss elements": (
        lambda: access("s").window(SlidingDeltaWindow, 5, 10),
        "d <= w",
    ),
    "not a draft": (lambda: match("?x :p ?y").join("?x :p ?y"), "draft"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_plan_raises(case: str) -> None:
    make, message = WRONG[case]
    with pytest.raises((QueryError, UnsupportedFeature), match="(?s)" + re.escape(message)):
        make()


def test_errors_point_into_the_fragment() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        match("?x :p ?y").filter("?x FLITER 5")
    assert (caught.value.line, caught.value.column) == (1, 4)
    assert "FLITER" in str(caught.value)
    assert "SELECT" not in str(caught.value)
    with pytest.raises(QueryError) as prefix:
        match("?x ex:p ?y")
    assert prefix.value.column == 4
    with pytest.raises(QuerySyntaxError) as open_brace:
        match("{ ?x :p ?y")
    assert "SELECT" not in str(open_brace.value)


def test_plans_by_hand_need_neither_numpy_nor_pyarrow() -> None:
    code = """if True:
        from streamsparql.by_hand import access
        one, other = (access("s").window(f"RANGE 10 SLIDE {d}").match("?x <p> ?y").plan for d in (5, 4))
        assert not one.equivalent(other)
        assert "<svg" in one._repr_html_()
        import sys
        assert not {"numpy", "pyarrow", "streamsparql.query"} & sys.modules.keys()"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


S, ROWS = access("s"), access("s").window("RANGE 10 SLIDE 5").match("?x <p> ?y")
MISTAKES: list[tuple[str, Callable[[], object]]] = [
    ("a union needs at least two plans", lambda: ROWS.union()),
    ("expected one variable", lambda: ROWS.extend("?z ?w", "1")),
    ("expected a string", lambda: access(5)),  # type: ignore[arg-type]
    ("expected a string", lambda: S.match(5)),  # type: ignore[arg-type]
    ("expected a plan or a query", lambda: draft("SELECT")),  # type: ignore[arg-type]
    ("expected a plan or a query", lambda: ROWS.equivalent(None)),  # type: ignore[arg-type]
    ("an instant must be a number", lambda: ROWS.at("3")),  # type: ignore[arg-type]
    ("Ask must be the last operator", lambda: ROWS.ask().project("?x")),
    ("Construct must be the last operator", lambda: ROWS.construct("?x <q> ?y").filter("?x")),
    ("unbound graph variable ?g", lambda: graph("?g").match("?x <p> ?y").at(0)),
    ("numbers of a window must be integers", lambda: S.window(SlidingDeltaWindow, 10.5, 5)),
    ("numbers of a window must be integers", lambda: S.window("RANGE 10 SLIDE 5", origin="x")),  # type: ignore[arg-type]
    ("unknown stream <t>; the plan reads <s>", lambda: ROWS.at(3, {"t": []})),
    ("pass the prefixes", lambda: S.match("?x ex:p ?y")),
    ("unexpected end", lambda: S.match("?x <p>")),
    ("missing name for", lambda: ROWS.aggregate("?x", "COUNT(*)")),
]


def test_names_of_streams_and_closed_windows_are_accepted() -> None:
    stepped = S.window(SteppedWindow, 10, 5, "left").plan
    assert isinstance(stepped, SteppedWindow)
    assert (stepped.width, stepped.step, stepped.closed) == (10, 5, "left")
    named = access(IRI("http://e/s")).window("RANGE 10 SLIDE 5").match("?x <p> ?y")
    items = [("<a>", "<p>", "<b>", 2)]
    for name in (IRI("http://e/s"), "http://e/s", rdflib.URIRef("http://e/s")):
        assert len(named.at(3, {name: items})) == 1
        assert len(named.plan.at(3, streamsparql.inputs({name: items}))) == 1  # type: ignore[dict-item]


@pytest.mark.parametrize(("message", "mistake"), MISTAKES)
def test_mistakes_raise(message: str, mistake: Callable[[], object]) -> None:
    with pytest.raises(StreamSparqlError, match=re.escape(message)):
        mistake()
