"""Sessions: each query has the rows of the query alone, whatever else runs.

Random sets of queries, some of which differ in constants or in names only, are registered and
removed at random instants, while items are pushed in any batching (support/sessions.py).
"""

from __future__ import annotations

import gc
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
import rdflib
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.families import FAMILIES, of_family
from support.histories import dense, dense_history
from support.sessions import compiles, difference, run, run_instances, variants

import streamsparql
from streamsparql import (
    EngineError,
    QueryError,
    QuerySyntaxError,
    Session,
    SourceError,
    UnsupportedFeature,
)
from streamsparql.algebra.terms import XSD
from streamsparql.physical.operators.queries import LEASES
from streamsparql.physical.pipeline import Pipeline
from streamsparql.run.decoder import RowDecoder

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
"""Random queries deserve many."""

seeds = st.integers(0, 2**32)


def check(texts: list[str], over: Data, seed: int) -> None:
    random = Random(seed)
    several = [text for each in texts for text in variants(each, random, random.randint(1, 4))]
    random.shuffle(several)
    queries, pushed, _ = run(several, over, seed)
    for each in queries:
        different = difference(each, pushed)
        assert not different, different


@pytest.mark.parametrize("family", FAMILIES)
def test_each_query_of_a_session_is_as_alone(family: str) -> None:
    @settings(max_examples=5)
    @given(st.lists(of_family(family), min_size=1, max_size=3), dense, seeds)
    def agree(texts: list[str], over: Data, seed: int) -> None:
        check(texts, over, seed)

    agree()


def check_instances(text: str, over: Data, seed: int) -> None:
    assume(":a" in text and compiles(text.replace(":a", "$who")))
    instances, pushed = run_instances(text, over, seed)
    for each in instances:
        different = difference(each, pushed)
        assert not different, different


@pytest.mark.parametrize("family", FAMILIES)
def test_each_instance_of_a_query_is_as_alone(family: str) -> None:
    @settings(max_examples=5)
    @given(of_family(family), dense, seeds)
    def agree(text: str, over: Data, seed: int) -> None:
        check_instances(text, over, seed)

    agree()


def test_a_query_that_joins_has_the_rows_that_hold_at_its_start() -> None:
    """A row may have been emitted before its end; queries that join until then have it, too."""
    text = (
        "PREFIX : <http://e/> SELECT ?g (COUNT(*) AS ?c) FROM STREAM :s WINDOW ELEMS 2"
        " FROM NAMED STREAM :g1 WINDOW RANGE 8 MS SLIDE 5 MS { GRAPH ?g { ?x :q ?n } } GROUP BY ?g"
    )
    check([text], dense_history(0), 0)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_each_query_of_many_sessions_is_as_alone(family: str) -> None:
    @settings(max_examples=400)
    @given(st.lists(of_family(family), min_size=1, max_size=3), dense, seeds)
    def agree(texts: list[str], over: Data, seed: int) -> None:
        check(texts, over, seed)

    agree()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_each_of_many_instances_is_as_alone(family: str) -> None:
    @settings(max_examples=400)
    @given(of_family(family), dense, seeds)
    def agree(text: str, over: Data, seed: int) -> None:
        check_instances(text, over, seed)

    agree()


# -- What is shared

WINDOW = "FROM STREAM <s> WINDOW RANGE 10 MS FIXED"
SPEED = f"SELECT ?v {WINDOW} {{{{ <{{}}> <speed> ?v }}}}"


def item(subject: str, value: int, t: int, predicate: str = "speed") -> tuple[str, str, str, int]:
    return f"<{subject}>", f"<{predicate}>", f'"{value}"^^<{XSD}integer>', t


def operators(session: Session) -> Counter[str]:
    return Counter(each.operator for each in session.stats().operators)


def test_equal_queries_read_one_plan_whatever_their_names() -> None:
    session = Session()
    for name in ("v", "speed", "x"):
        session.register(f"SELECT ?{name} {WINDOW} {{ ?t <speed> ?{name} }}")
    assert session.stats().plans == 1
    session.push_many("s", [item("a", 7, 3)])
    session.close()
    rows = [query.rows() for query in session.queries.values()]
    assert [[*row[0].asdict()] for row in rows] == [["v"], ["speed"], ["x"]]


def test_different_queries_share_equal_subplans() -> None:
    session, pattern = Session(), "?t <speed> ?v . ?t <rpm> ?r"
    session.register(f"SELECT ?t ?v ?r {WINDOW} {{ {pattern} }}")
    session.register(f"SELECT DISTINCT ?t ?v ?r {WINDOW} {{ {pattern} }}")
    session.register(f"SELECT ?t ?v ?r ?s {WINDOW} {{ {pattern} OPTIONAL {{ ?t <state> ?s }} }}")
    counts = operators(session)
    assert counts["StreamAccess"] == counts["TimeWindow"] == 1
    assert counts["TriplePatternMatching"] == 3
    assert counts["Join"] + counts["MultiJoin"] == 1


def test_queries_that_differ_in_constants_share_a_plan_from_the_second_on() -> None:
    session = Session()
    for k in range(20):
        session.register(SPEED.format(f"t{k}"))
    stats = session.stats()
    assert (stats.queries, stats.plans) == (20, 2)


def test_constants_that_are_the_same_in_all_queries_filter_before_the_table() -> None:
    session = Session()
    text = f"SELECT ?v {WINDOW} {{{{ <{{}}> <speed> ?v FILTER(?v > {{}}) }}}}"
    for k in range(5):
        session.register(text.format(f"t{k}", 20))
    assert operators(session)["BandJoin"] == 0
    (shared,) = [plan for plan in session._engine.plans if plan.table]
    assert len(shared.parameters) == 1
    session.register(text.format("t0", 30))
    assert session.stats().plans == 3, "a plan with both constants as parameters"


def test_a_query_that_joins_a_plan_starts_warm_and_another_one_cold() -> None:
    session = Session()
    for name in "ab":
        session.register(SPEED.format(name))
    session.push_many("s", [item("c", 1, 3), item("c", 2, 4), item("d", 3, 5)])
    warm = session.register(SPEED.format("c"))
    cold = session.register(f"SELECT ?t ?v {WINDOW} {{ ?t <speed> ?v FILTER(?v < 3) }}")
    session.close()
    assert (warm.start, warm.since) == (5, {"s": 0})
    assert [(int(row["v"]), row.start, row.end) for row in warm.rows()] == [(1, 5, 10), (2, 5, 10)]
    assert (cold.start, cold.since) == (5, {"s": 5})
    assert cold.rows() == []


def test_a_session_with_a_history_starts_new_plans_warm() -> None:
    session = Session(history=1_000)
    session.push_many("s", [item("c", 1, 3, "rpm"), item("c", 2, 14), item("d", 3, 15)])
    warm = session.register(f"SELECT ?t ?v {WINDOW} {{ ?t <speed> ?v }}")
    session.close()
    assert warm.start == 15
    assert [(int(row["v"]), row.start, row.end) for row in warm.rows()] == [
        (2, 15, 20),
        (3, 15, 20),
    ]


def test_items_that_were_skipped_do_not_count_for_a_new_query() -> None:
    session = Session(max_delay=100)
    session.register(SPEED.format("a"))
    session.push_many("s", [item("x", 1, 103, "rpm"), item("x", 2, 205, "rpm")])
    query = session.register(f"SELECT ?x ?v {WINDOW} {{ ?x <rpm> ?v }}")
    assert (query.start, query.since) == (206, {"s": 206})
    session.push_many("s", [item("x", 3, 204, "rpm"), item("x", 4, 207, "rpm")])
    session.close()
    assert [int(row["v"]) for row in query.rows()] == [4], "the item of 204 is one of several"


def test_removing_a_query_frees_what_no_other_one_reads() -> None:
    session = Session()
    kept = session.register(f"SELECT ?t ?v {WINDOW} {{ ?t <speed> ?v . ?t <rpm> ?r }}")
    session.push_many("s", [item("a", 1, 3), item("a", 2, 3, "rpm")])
    session.advance(4)
    before = session.stats()
    others = [
        session.register(f"SELECT ?t {WINDOW} {{ ?t <speed> ?v . ?t <state> ?r }}"),
        session.register(f"SELECT (COUNT(*) AS ?n) {WINDOW} {{ ?t <rpm> ?v }}"),
        *(session.register(SPEED.format(k)) for k in range(30)),
    ]
    session.push_many("s", [item("b", 1, 5), item("b", 2, 5, "rpm"), item("3", 2, 6)])
    session.advance(20)
    for query in others:
        query.close()
    after = session.stats()
    assert after._replace(items=before.items, watermarks={}, terms=0) == before._replace(
        watermarks={}, terms=0, operators=after.operators
    )
    assert [(o.operator, o.facts) for o in after.operators] == [
        (o.operator, o.facts) for o in before.operators
    ]
    assert after.state == 0
    kept.close()
    assert session.stats().operators == ()


def test_terms_of_queries_that_were_removed_are_recycled() -> None:
    session = Session()
    kept = session.register(SPEED.format("kept"))
    for k in range(50):
        session.register(f'SELECT ?v {WINDOW} {{ ?x <p{k}> ?v FILTER(?v != "{k}") }}').close()
    session._engine.pipeline.terms.recycle(session._engine.pipeline.retained_ids())
    texts = {text for text in session.terms._texts.tolist() if text is not None}
    assert texts == {"<kept>", "<speed>"}
    session.push_many("s", [item("kept", 7, 3)])
    session.close()
    assert len(kept.rows()) == 1


@pytest.mark.parametrize("cycles", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_queries_that_come_and_go_leave_nothing(cycles: int) -> None:
    session = Session()
    kept = session.register(SPEED.format("kept"))
    session.register(SPEED.format("kept-too"))
    sizes, objects = [], []
    for k in range(cycles):
        query = session.register(SPEED.format(f"t{k}"))
        other = session.register(f"SELECT ?x {WINDOW} {{ ?x <p{k % 7}> ?v FILTER(?v > {k}) }}")
        session.push_many("s", [item("kept", k, 10 * k), item(f"t{k}", k, 10 * k)])
        assert len(kept.rows()) <= 1
        query.close()
        other.close()
        if k % (cycles // 10) == cycles // 10 - 1:
            stats = session.stats()
            assert (stats.queries, stats.plans) == (2, 2)
            sizes.append(stats.state)
            gc.collect()
            objects.append(len(gc.get_objects()))
    assert max(objects[5:]) <= max(objects[:5]) + 2_000, objects
    engine = session._engine
    assert max(sizes) <= 2 * LEASES + 200, sizes
    assert len(engine._families) == 1
    assert len(engine._constants) == len(engine.pipeline.operators)
    for low in engine._lowerings.values():
        assert len(low._lowered) <= len(engine.pipeline.operators)


# -- Instances


def test_instances_are_added_from_tables_and_have_their_terms_in_arrow() -> None:
    session = Session()
    query = session.register(f"SELECT ?v {WINDOW} {{ $t <speed> ?v FILTER(?v >= $least) }}")
    integer = f'"{{}}"^^<{XSD}integer>'
    table = {"t": ["<a>", "<b>", "<a>"], "least": [integer.format(n) for n in (1, 2, 9)]}
    keys = query.add_many(pa.table(table))
    session.push_many("s", [item("a", 5, 3), item("b", 2, 4), item("c", 7, 5)])
    session.close()
    assert query.to_arrow().to_pydict() == {
        "key": keys[:2],
        "t": ["<a>", "<b>"],
        "least": [integer.format(1), integer.format(2)],
        "v": [integer.format(5), integer.format(2)],
        "start": [3, 4],
        "end": [10, 10],
    }


def test_reports_of_instances_are_reports_with_the_rows_of_each() -> None:
    session = Session()
    query = session.register(f"SELECT ?v {WINDOW} {{ $t <speed> ?v }}", report="rstream")
    a, b = query.add(t="<a>"), query.add(t="<b>")
    session.push_many("s", [item("a", 5, 3), item("b", 6, 12), item("a", 7, 25)])
    reports = [(at, {k: len(own) for k, own in shown.items()}) for at, shown in query.rows()]
    assert reports == [(10, {a: 1}), (20, {b: 1})]


def test_an_instance_ends_when_it_is_removed() -> None:
    session = Session()
    query = session.register(f"SELECT ?v {WINDOW} {{ $t <speed> ?v }}")
    a, b = query.add_many([{"t": "<a>"}, {"t": "<b>"}])
    session.push_many("s", [item("a", 5, 3), item("b", 6, 4)])
    session.advance(7)
    query.remove(a)
    session.close()
    assert {key: [(r.start, r.end) for r in own] for key, own in query.rows().items()} == {
        a: [(3, 7)],
        b: [(4, 10)],
    }


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({}, "missing parameter $t; the query has $t, $u"),
        ({"t": "<a>", "u": "<b>", "v": "<c>"}, "unknown parameter $v; the query has $t, $u"),
        ({"t": "a", "u": "<b>"}, "$t: 'a' is not an RDF term"),
        ({"t": "_:b", "u": "<b>"}, "$t: '_:b' is a blank node"),
        ({"t": '"x"', "u": "<b>"}, "$t: '\"x\"' is a literal, which cannot be a subject"),
    ],
)
def test_invalid_terms_of_parameters_are_errors(terms: dict[str, str], message: str) -> None:
    session = Session()
    query = session.register(f"SELECT ?v {WINDOW} {{ $t <speed> ?v . ?v <p> $u }}")
    with pytest.raises(EngineError, match=re.escape(message)):
        query.add(**terms)
    assert len(query.instances) == 0
    query.add(t="<a>", u='"x"')


def test_a_dollar_is_a_variable_without_parameters() -> None:
    session = Session()
    query = session.register(f"SELECT $v {WINDOW} {{ <a> <speed> $v }}", parameters=())
    named = session.register(f"SELECT ?v {WINDOW} {{ ?t <speed> ?v }}", parameters=["t"])
    key = named.add(t="<a>")
    session.run({"s": [item("a", 5, 3)]})
    assert [int(row["v"]) for row in query.rows()] == [5]
    assert [int(row["v"]) for row in named.rows()[key]] == [5]


def test_parameters_where_one_plan_cannot_compute_all_instances() -> None:
    text = f"SELECT ?o {WINDOW} {{ ?s <p> ?o {{ ?s <q> $v WINDOW ELEMS 2 }} }}"
    session = Session()
    query = session.register(text)
    keys = [query.add(v=f"<{name}>") for name in "ab"]
    assert session.stats().plans == 2
    items = [("<x>", "<q>", f"<{name}>", t) for t, name in enumerate("abaacb", 1)]
    session.run({"s": [*items, ("<x>", "<p>", "<o>", 8)]})
    alone = [streamsparql.compile(text.replace("$v", f"<{n}>")) for n in "ab"]
    expected = [[*each.run([*items, ("<x>", "<p>", "<o>", 8)])] for each in alone]
    rows = query.rows()
    assert [rows.get(key, []) for key in keys] == expected


# -- Errors, and the moment after them


def test_errors_say_who() -> None:
    session = Session()
    query = session.register(SPEED.format("a"), "speed")
    for call, message in [
        (lambda: session.register(SPEED.format("b"), "speed"), "a query is registered as 'speed'"),
        (lambda: session.unregister("sped"), "unknown query 'sped'; registered: speed"),
        (lambda: session.push("t", ("<a>", "<p>", "<b>"), 3), "unknown stream <t>; the queries"),
        (lambda: query.add(t="<a>"), "the query 'speed' has no parameters"),
        (lambda: session.advance(-1), "t must not be before 1970: -1"),
        (
            lambda: session.register("SELECT ?x { ?x <p> ?y }", on_row=5),
            "on_row must be a function",
        ),
        (lambda: Session(history=-1), "history: duration out of range"),
    ]:
        with pytest.raises(EngineError, match=re.escape(message)):
            call()
    query.close()
    with pytest.raises(EngineError, match="unknown query 'speed'; registered: none"):
        query.close()
    session.close()
    with pytest.raises(EngineError, match="the session is closed"):
        session.register(SPEED.format("a"))


def test_a_text_that_is_refused_leaves_the_session_as_it_was() -> None:
    session = Session()
    query = session.register(SPEED.format("a"))
    before = session.stats()
    for text, error in [
        ("SELECT ?x WHERE {", QuerySyntaxError),
        ("SELECT ?x FROM <unknown> { ?x <p> ?y }", SourceError),
        ("SELECT ?s { { ?s ?p ?o } SEQ { ?s ?q ?z } }", UnsupportedFeature),
        (f"SELECT $x {WINDOW} {{ $x <p> ?y }}", QueryError),
    ]:
        with pytest.raises(error):
            session.register(text)
    assert session.stats()._replace(terms=0) == before._replace(terms=0)
    session.run({"s": [item("a", 5, 3)]})
    assert len(query.rows()) == 1


def test_an_on_row_that_raises_does_not_harm_other_queries() -> None:
    session, seen = Session(), {"a": [], "c": []}

    def fail(row: Any) -> None:
        seen["a"].append(int(row["v"]))
        if row["v"].toPython() == 1:
            raise ValueError("no")

    session.register(SPEED.format("a"), "a", on_row=fail)
    other = session.register(SPEED.format("b"), "b")
    session.register(SPEED.format("c"), "c", on_row=lambda row: seen["c"].append(int(row["v"])))
    session.push_many("s", [item(name, n, n) for n in (1, 2) for name in "abc"])
    with pytest.raises(ValueError, match="no") as raised:
        session.advance(20)
    assert raised.value.__notes__ == ["in on_row of the query 'a'"]
    assert seen == {"a": [1], "c": [1, 2]}
    session.advance(21)
    assert seen["a"] == [1, 2], "the rows after the one that failed follow"
    assert len(other.rows()) == 2


def test_errors_of_several_on_rows_are_raised_together() -> None:
    session = Session()

    def fail(row: Any) -> None:
        raise ValueError(str(row["v"]))

    for name in "ab":
        session.register(SPEED.format(name), name, on_row=fail)
    session.push_many("s", [item("a", 1, 1), item("b", 2, 2)])
    with pytest.raises(ValueError, match="1") as raised:
        session.close()
    assert raised.value.__notes__ == [
        "in on_row of the query 'a'",
        "ValueError 2: in on_row of the query 'b'",
    ]
    assert session.closed


def test_an_on_row_may_register_and_push() -> None:
    session, seen = Session(), []

    def react(row: Any) -> None:
        query = session.register(SPEED.format("b"))
        session.push("s", item("b", 2, 30)[:3], 30)
        seen.append(query.name)

    session.register(SPEED.format("a"), on_row=react)
    session.push("s", item("a", 1, 1)[:3], 1)
    session.push("s", item("x", 1, 25)[:3], 25)
    assert seen == ["q2"]
    session.close()
    assert len(session.queries["q2"].rows()) == 1


def test_an_exception_in_the_middle_of_a_step_makes_a_session_unusable() -> None:
    session = Session()
    query = session.register(SPEED.format("a"))
    session.push("s", item("a", 1, 1)[:3], 1)
    interrupted = patch.object(Pipeline, "step", side_effect=KeyboardInterrupt)
    with interrupted, pytest.raises(KeyboardInterrupt):
        session.advance(20)
    for call in (query.rows, session.close, session.rows, lambda: session.register("ASK {}")):
        with pytest.raises(EngineError, match="KeyboardInterrupt ended a step in the middle"):
            call()
    assert repr(session) == "<Session: unusable, 1 queries>"


def test_a_source_that_raises_leaves_the_session_usable() -> None:
    session = Session()
    query = session.register(SPEED.format("a"))

    def broken() -> Iterator[Any]:
        yield item("a", 1, 1)
        raise ConnectionError("the line went dead")

    with pytest.raises(ConnectionError) as raised:
        session.push_many("s", broken())
    assert raised.value.__notes__ == ["<s>: 1 items were read before this error"]
    session.push_many("s", [item("a", 2, 2)])
    session.close()
    assert [int(row["v"]) for row in query.rows()] == [1, 2]


# -- Reading


def test_terms_are_decoded_once_for_all_queries() -> None:
    session = Session()
    queries = [session.register(SPEED.format(f"t{k % 50}")) for k in range(200)]
    items = [item(f"t{k}", k, k) for k in range(50)]
    session.push_many("s", items)
    session.close()
    with patch.object(RowDecoder, "rows", autospec=True, side_effect=RowDecoder.rows) as decode:
        rows = [query.rows() for query in queries]
    assert [len(own) for own in rows] == [1] * 200
    assert decode.call_count <= 4, "for each plan: the first query alone, then all rows"


def test_rows_of_all_queries_are_read_at_once() -> None:
    session = Session()
    for name in "abc":
        session.register(SPEED.format(name), name)
    session.push_many("s", [item("a", 1, 1), item("c", 2, 2), item("a", 3, 11)])
    session.advance(15)
    first = session.rows()
    assert {name: len(rows) for name, rows in first.items()} == {"a": 1, "c": 1}
    assert session.rows() == {}
    session.close()
    table = session.to_arrow().to_pydict()
    assert (table["query"], table["start"]) == (["a"], [11])
    assert session.queries["a"].rows() == []


def test_reports_and_rows_of_different_queries_are_in_one_table() -> None:
    session = Session()
    session.register(SPEED.format("a"), "rows")
    session.register(f"SELECT ?t {WINDOW} {{ ?t <speed> ?v }}", "reports", report="rstream")
    query = session.register(f"ASK {WINDOW} {{ $t <speed> 1 }}", "asked")
    key = query.add(t="<a>")
    session.run({"s": [item("a", 1, 1)]})
    rows = session.to_arrow().to_pylist()
    by_query = {row["query"]: row for row in rows if row.get("answer") != FALSE}
    assert by_query["rows"]["start"] == 1
    assert (by_query["rows"]["instant"], by_query["rows"]["t"]) == (None, None)
    assert (by_query["reports"]["instant"], by_query["reports"]["t"]) == (10, "<a>")
    assert (by_query["asked"]["key"], by_query["asked"]["t"]) == (key, "<a>")


FALSE = f'"false"^^<{XSD}boolean>'


def test_a_query_keeps_the_order_of_its_rows() -> None:
    text = f"SELECT ?v {WINDOW} {{{{ <{{}}> <speed> ?v }}}} ORDER BY DESC(?v)"
    session, calls = Session(), []
    queries = [session.register(text.format(n), report="rstream") for n in "ab"]
    session.register(text.format("c"), report="rstream", on_row=calls.append)
    session.push_many("s", [item(n, v, t) for t, v in enumerate((3, 5, 4)) for n in "abc"])
    session.close()
    for reports in [*(query.rows() for query in queries), calls]:
        assert [int(row["v"]) for row in reports[0][1]] == [5, 4, 3]


def test_streams_of_different_queries_do_not_wait_for_each_other() -> None:
    session = Session()
    one = session.register(SPEED.format("a"))
    session.register("SELECT ?v FROM STREAM <other> WINDOW RANGE 10 MS FIXED { <a> <speed> ?v }")
    session.push_many("s", [item("a", 1, 1), item("a", 1, 30)])
    assert len(one.rows()) == 1
    assert session.watermarks == {"s": 30, "other": 0}


def test_an_idle_stream_does_not_hold_back_a_query() -> None:
    text = """SELECT ?x FROM STREAM <s> WINDOW RANGE 10 MS FIXED
        FROM STREAM <other> WINDOW RANGE 10 MS FIXED { ?x <speed> ?v }"""
    session = Session(idle=50)
    query = session.register(text)
    for t in (1, 30, 60, 90):
        session.push_many("s", [item("a", 1, t)])
        assert session.watermarks["other"] <= t
    assert len(query.rows()) == 3


def test_run_reads_all_streams_side_by_side() -> None:
    text = """SELECT ?x ?y FROM STREAM <s> WINDOW RANGE 10 MS SLIDE
        FROM STREAM <t> WINDOW RANGE 10 MS SLIDE { ?x <speed> ?v . ?y <rpm> ?v }"""
    session = Session()
    query = session.register(text)
    one = [item("a", k, 10 * k) for k in range(100)]
    other = [item("b", k, 10 * k + 3, "rpm") for k in range(100)]
    session.run({"s": one, "t": other})
    assert len(query.rows()) == 100
    assert session.closed
    session = Session()
    session.register(text)
    with pytest.raises(SourceError, match="missing stream <s>"):
        session.run({})


# -- options, as those of an open query ------------------------------------------------------------


def test_times_are_written_as_people_write_them() -> None:
    session = Session(max_delay="2ms", history="1s", idle="1 min", start="1970-01-01T00:00:00Z")
    query = session.register(SPEED.format("a"), report="rstream", every="5ms")
    session.push("s", ("<a>", "<speed>", 5), "1970-01-01T00:00:00.003Z")
    session.advance("1970-01-01T00:00:00.006Z")
    assert query.rows() == [(5, [{"v": rdflib.Literal(5)}])]


def test_a_bad_item_is_an_error_at_once() -> None:
    session = Session()
    session.register(SPEED.format("a"))
    with pytest.raises(SourceError, match="<s>: expected a triple"):
        session.push("s", ("<a>", "<speed>"), 3)
    with pytest.raises(SourceError, match="<s>"):
        session.push("s", ("<a>", "<speed>", 5), "soon")
    assert session.stats().items.read == 0


def test_records_are_pushed_with_a_mapping() -> None:
    session = Session()
    query = session.register(SPEED.format("a"))
    mapping = "CONSTRUCT { <a> <speed> ?v } {}"
    session.push_record("s", {"v": 5, "t": 3}, mapping)
    session.push("s", ("<a>", "<speed>", 6), 4)
    session.push_many("s", [("<a>", "<speed>", 7, 5)])
    session.push_record("s", b'{"v": 8, "t": 6}', mapping)
    with pytest.raises(SourceError, match="missing timestamp"):
        session.push_record("s", {"v": 5}, mapping)
    session.close()
    assert [row.value("v") for row in query.rows()] == [5, 6, 7, 8]


def test_timestamps_are_read_as_for_one_query() -> None:
    session = Session(time_unit="s")
    query = session.register(SPEED.format("a"))
    session.run({"s": [("<a>", "<speed>", 5, 3)]})
    assert [row.start for row in query.rows()] == [3000]
    session = Session()
    session.register(SPEED.format("a"))
    with pytest.warns(streamsparql.DataWarning, match="<s>: timestamps are read as seconds"):
        session.run({"s": [("<a>", "<speed>", 5, 1_700_000_000)]})
    assert [*session.notes().units] == ["s"]


def test_native_values_of_instances_and_reports() -> None:
    for options in ({}, {"report": "rstream"}):
        session = Session()
        query = session.register(f"SELECT ?v {WINDOW} {{ $x <speed> ?v }}", **options)
        query.add_many([{"x": "<a>"}, {"x": "<b>"}])
        session.run({"s": [("<b>", "<speed>", 5, 3), ("<a>", "<speed>", 6, 4)]})
        frame = query.to_pandas()
        shown = frame[["key", "x", "v"]].drop_duplicates().sort_values("key").values.tolist()
        assert shown == [[1, "a", 6], [2, "b", 5]]
        assert query.to_pandas().empty


def test_limits_apply_to_each_step_of_a_session() -> None:
    session = Session(limits=streamsparql.Limits(rows=3, text=200))
    query = session.register(f"SELECT * {WINDOW} {{ ?a <p> ?b . ?c <q> ?d }}")
    with pytest.raises(streamsparql.LimitExceeded, match="characters in the text"):
        session.register(f"SELECT * {WINDOW} {{ ?a <p> ?b }} #{200 * '-'}")
    items = [(f"<{k}>", predicate, k, 3) for k in range(3) for predicate in ("<p>", "<q>")]
    session.push_many("s", items)
    with pytest.raises(streamsparql.LimitExceeded, match="more than 3 rows in one step"):
        session.close()
    with pytest.raises(EngineError, match="unusable"):
        query.rows()


def test_a_query_has_the_limits_of_its_session() -> None:
    limits = streamsparql.Limits(rows=3)
    query = streamsparql.compile(SPEED.format("a"), limits=limits)
    with pytest.raises(EngineError, match="the session has no limits"):
        Session().register(query)
    assert Session(limits=limits).register(query).name == "q1"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Session(max_delay="auto"), "a session has no end"),
        (lambda: Session(limits=5), "limits must be"),
        (lambda: Session(stamp_from=" "), "stamp_from must be"),
        (lambda: Session().register(7), "query must be a text or a compiled query"),
        (lambda: Session().register("SELECT ?s { { ?s ?p ?o } SEQ { ?s ?q ?z } }"), "the events"),
        (
            lambda: Session().register(streamsparql.compile("ASK { ?s ?p ?o }", "epsparql")),
            "the events of EP-SPARQL",
        ),
        (
            lambda: Session().register(
                streamsparql.compile(
                    "SELECT ?s { ?s <q> ?o }",
                    "epsparql",
                    rules=["CONSTRUCT { ?s <q> ?o } { ?s <p> ?o }"],
                )
            ),
            "the events of EP-SPARQL",
        ),
    ],
)
def test_what_a_session_does_not_support_is_refused(call, message) -> None:
    with pytest.raises((EngineError, UnsupportedFeature, TypeError), match=message):
        call()


def test_warnings_on_a_query_are_issued_once() -> None:
    session, text = Session(), f"SELECT ?v ?w {WINDOW} {{ ?a <speed> ?v . ?b <heat> ?w }}"
    query = streamsparql.compile(text)
    with pytest.warns(streamsparql.LintWarning, match="shares no variable"):
        session.register(query)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(streamsparql.LintWarning):
            session.register(text)
        assert len(session.queries) == 1
        session.register(query)
        least = session.register(f"SELECT ?v {WINDOW} {{ ?x <speed> ?v FILTER(?v > $least) }}")
    assert least.parameters == ("least",)


# -- background knowledge --------------------------------------------------------------------------

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SCHEMA = [
    ("<fast>", "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>", "<speed>"),
    ("<Gale>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<Wind>"),
    ("<Storm>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<Gale>"),
]


@pytest.mark.parametrize("each", [f"?x a <{c}>" for c in ("Wind", "Gale", "Storm")])
def test_entailment_of_queries_that_share_a_plan(each: str) -> None:
    others = ["?x a <Gale>", "?x a <Wind>", "<a> <speed> ?x", "<b> <speed> ?x", "<a> ?p ?x"]
    items = [("<a>", TYPE, "<Storm>", 3), ("<b>", TYPE, "<Gale>", 4), ("<a>", "<fast>", 9, 5)]
    session = Session(graph=SCHEMA)
    patterns = [each, *others]
    compiled = [
        streamsparql.compile(f"SELECT ?x {WINDOW} {{ {pattern} }}", entailment="rdfs")
        for pattern in patterns
    ]
    queries = [session.register(query) for query in compiled]
    plain = session.register(f"SELECT ?x {WINDOW} {{ {each} }}")
    session.run({"s": items})
    for query, registered in zip(compiled, queries, strict=True):
        alone = query.run({"s": items}, graph=SCHEMA)
        assert sorted(map(str, registered.rows())) == sorted(map(str, alone)), query.text
    assert len(plain.rows()) == (0 if "Wind" in each else 1)
