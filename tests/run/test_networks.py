"""Networks: queries that read the outputs of others, compared with their composition by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.families import FAMILIES, of_family
from support.histories import dense
from support.networks import composed, producers, reading, without_blank_nodes
from support.sessions import compiles, difference, run

from streamsparql import EngineError, Session
from streamsparql.run.replay import Stopped
from streamsparql.run.session_replay import SessionReplay
from streamsparql.sources import read_stream

seeds = st.integers(0, 2**32)


def check(texts: list[str], data: Data, seed: int) -> None:
    random = Random(seed)
    feeding = producers(random)
    # The order of the triples of one report is not defined, so windows do not count them.
    counts = re.compile("ELEMS|TRIPLES")
    texts = [reading(text, [*feeding.values()], random) for text in texts]
    texts = [text for text in texts if compiles(text) and not counts.search(text)]
    texts += feeding
    random.shuffle(texts)
    ran = run(texts, without_blank_nodes(data), seed, feeding)
    data = composed(ran)
    for each in ran.queries:
        different = difference(each, data)
        assert not different, different


@pytest.mark.parametrize("family", FAMILIES)
def test_a_network_is_its_composition_by_hand(family: str) -> None:
    check_networks(family, 5)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_many_networks_are_their_composition_by_hand(family: str) -> None:
    check_networks(family, 300)


def check_networks(family: str, examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.lists(of_family(family), min_size=1, max_size=3), dense, seeds)
    def agree(texts: list[str], over: Data, seed: int) -> None:
        check(texts, over, seed)

    agree()


# -- What is fed to a stream, and when

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
"""Random queries deserve many."""

CONSTRUCT = "CONSTRUCT {{ ?x <is> <hot> }} FROM STREAM <{}> [RANGE 10ms STEP 10ms] {{ ?x <t> ?v }}"
SELECT = "SELECT ?x FROM STREAM <{}> [RANGE 20ms STEP 10ms] {{ ?x ?p ?y }}"
WARM, COLD = ("<a>", "<t>", '"9"'), ("<a>", "<is-cold>", '"9"')


def hot(name: str, source: str = "s") -> str:
    return f"REGISTER STREAM <{name}> AS {CONSTRUCT.format(source)}"


def test_an_output_has_the_name_of_the_clause_or_else_of_the_query() -> None:
    session = Session()
    named = session.register(hot("h"))
    assert (named.name, named.output) == ("h", "h")
    renamed = session.register(hot("i"), "other")
    assert (renamed.name, renamed.output) == ("other", "i")
    plain = session.register(CONSTRUCT.format("s"), "j")
    assert (plain.name, plain.output) == ("j", "j")
    assert session.register(CONSTRUCT.format("s")).output is None
    query = session.register(f"REGISTER QUERY q AS {CONSTRUCT.format('s')}")
    assert (query.name, query.output) == ("q", None)
    assert session.register(SELECT.format("s"), "k").output is None


@pytest.mark.parametrize("consumer_first", [True, False])
def test_reports_without_triples_move_the_time_of_readers(consumer_first: bool) -> None:
    session = Session()
    reader = None
    if consumer_first:
        reader = session.register(SELECT.format("h"))
    session.register(hot("h"))
    reader = reader or session.register(SELECT.format("h"))
    session.push("s", WARM, 3)
    session.advance(10)
    assert session.watermarks == {"s": 10, "h": 10}
    session.push("s", COLD, 25)
    session.push("s", COLD, 39)
    assert reader.watermark == session.watermarks["h"] == 40
    assert [(row.start, row.end) for row in reader.rows()] == [(10, 30)]


def test_the_rows_of_a_query_that_feeds_a_stream_are_those_of_any_query() -> None:
    session = Session()
    rows = session.register(hot("h"))
    reports = session.register(hot("i"), report="rstream")
    session.run({"s": [(*WARM, 3)]})
    assert [(row.start, row.end) for row in rows.rows()] == [(10, 20)]
    assert [(t, len(shown)) for t, shown in reports.rows()] == [(10, 1), (20, 0)]


def test_a_window_of_a_reader_spans_reports() -> None:
    session = Session()
    session.register(hot("h"))
    text = "SELECT (COUNT(*) AS ?n) FROM STREAM <h> WINDOW RANGE 30 MS FIXED { ?x ?p ?y }"
    reader = session.register(text)
    session.run({"s": [(*WARM, 3), ("<b>", "<t>", '"1"', 12), ("<c>", "<t>", '"1"', 14)]})
    assert [(int(row["n"]), row.start) for row in reader.rows()] == [
        (1, 10),
        (3, 20),
        (0, 30),
    ]


def test_a_reader_that_is_registered_later_starts_with_the_next_report() -> None:
    session = Session()
    session.register(hot("h"))
    session.push_many("s", [(*WARM, 3), (*COLD, 15)])
    reader = session.register(SELECT.format("h"))
    session.push_many("s", [("<b>", "<t>", '"1"', 17)])
    session.close()
    assert (reader.start, reader.since) == (20, {"h": 20})
    assert [str(row["x"]) for row in reader.rows()] == ["b"]


def test_a_history_of_reports_makes_a_reader_warm() -> None:
    session = Session(history=100)
    session.register(hot("h"))
    session.push_many("s", [(*WARM, 3), (*COLD, 15)])
    reader = session.register(SELECT.format("h"))
    session.close()
    assert reader.start == 20
    assert [(str(row["x"]), row.start, row.end) for row in reader.rows()] == [("a", 20, 30)]


def test_all_instances_of_a_query_feed_its_output() -> None:
    session = Session()
    query = session.register(hot("h").replace("?x <t>", "$who <t>").replace("?x", "$who"))
    reader = session.register(SELECT.format("h"))
    key = query.add(who="<a>")
    query.add(who="<b>")
    session.push_many("s", [(*WARM, 3), ("<b>", "<t>", '"1"', 4), ("<c>", "<t>", '"1"', 5)])
    session.advance(11)
    query.remove(key)
    session.push_many("s", [(*WARM, 13), ("<b>", "<t>", '"1"', 14)])
    session.close()
    rows = sorted((str(row["x"]), row.start, row.end) for row in reader.rows())
    assert rows == [("a", 10, 30), ("b", 10, 40)]


def test_blank_nodes_of_a_template_are_those_of_one_query() -> None:
    session, text = Session(), CONSTRUCT.format("s").replace("?x <is> <hot>", "_:alarm <of> ?x")
    for name in "hi":
        session.register(text, name)
    both = "SELECT DISTINCT ?x FROM STREAM <h> [RANGE 20ms STEP 10ms] FROM STREAM <i>"
    reader = session.register(f"{both} [RANGE 20ms STEP 10ms] {{ ?x <of> ?y }}")
    session.run({"s": [(*WARM, 3)]})
    assert len(reader.rows()) == 2


def test_state_and_terms_are_freed_with_the_queries_of_a_network() -> None:
    session = Session()
    for order in (("h", "i", None), (None, "i", "h")):
        queries = {
            name: session.register(SELECT.format("i") if name is None else _one(name), name)
            for name in order
        }
        session.push_many("s", [(*WARM, 3), (*COLD, 55)])
        for name in (None, "i", "h"):
            queries[name].close()
        assert session.stats().operators == ()
        session._engine.pipeline.terms.recycle([])
        assert not any(session.terms._texts.tolist())
        session = Session()


def _one(name: str) -> str:
    source = {"h": "s", "i": "h"}[name]
    return CONSTRUCT.format(source).replace("<t>", "?p")


# -- Errors


def test_a_cycle_is_refused_and_named() -> None:
    session = Session()
    session.register(CONSTRUCT.format("c"), "a")
    session.register(CONSTRUCT.format("a"), "b")
    message = "a cycle: c reads <b>, the output of b, which reads <a>, the output of a, which"
    with pytest.raises(EngineError, match=message + " reads <c>, the output of c"):
        session.register(CONSTRUCT.format("b"), "c")
    with pytest.raises(EngineError, match="a cycle: d reads <d>, the output of d"):
        session.register(CONSTRUCT.format("d"), "d")
    assert [*session.queries] == ["a", "b"]
    assert "d" not in session.watermarks
    session.register(CONSTRUCT.format("s"), "c")
    session.push("s", WARM, 3)
    session.close()


def test_names_are_given_once() -> None:
    session = Session()
    session.register(hot("h"))
    with pytest.raises(EngineError, match="a query is registered as 'h' already"):
        session.register(hot("h"))
    with pytest.raises(EngineError, match="<h> is the output of h already"):
        session.register(hot("h"), "other")
    session.register(SELECT.format("s"))
    session.push("s", WARM, 3)
    with pytest.raises(EngineError, match="<s> cannot be the output of x: items were pushed to it"):
        session.register(hot("s", "t"), "x")
    assert [*session.queries] == ["h", "q2"]


def test_an_output_is_not_pushed() -> None:
    session = Session()
    session.register(hot("h"))
    session.register(SELECT.format("h"))
    for call in (
        lambda: session.push("h", WARM, 3),
        lambda: session.push_many("h", []),
        lambda: session.advance(3, "h"),
        lambda: session.run({"s": [], "h": []}),
    ):
        with pytest.raises(EngineError, match="<h> is the output of h: only that feeds it"):
            call()


def test_a_query_whose_output_others_read_is_not_removed() -> None:
    session = Session()
    query = session.register(hot("h"), "alarms")
    readers = [session.register(SELECT.format("h")) for _ in range(2)]
    message = "alarms feeds <h>, which q2 and q3 read: unregister these first"
    with pytest.raises(EngineError, match=message):
        query.close()
    for reader in readers:
        reader.close()
    query.close()
    assert not session.queries


def test_instances_that_need_plans_of_their_own_cannot_feed_a_stream() -> None:
    text = "CONSTRUCT { ?x <is> $who } { STREAM <s> [RANGE 9ms] { ?x <t> $who } }"
    session = Session()
    session.register(f"REGISTER ISTREAM <in> AS {text}")
    with pytest.raises(EngineError, match="out cannot feed <out>: each instance"):
        session.register(f"REGISTER RSTREAM <out> AS {text}")
    assert [*session.queries] == ["in"]
    assert session.stats().plans == 1


# -- A replay of several queries


def test_a_replay_that_is_stopped_ends_the_rows_that_hold_at_the_watermark() -> None:
    session = Session()
    session.register(hot("h"))
    for name in ("s", "h"):
        session.register(SELECT.format(name), f"of {name}")

    def items() -> Iterator[tuple[str, str, str, int]]:
        yield (*WARM, 3)
        yield (*COLD, 15)
        raise Stopped

    replay = SessionReplay(session, {"s": items()})
    emitted: dict[str, list[tuple[int, int]]] = {}
    with patch("streamsparql.run.engine.read_stream", partial(read_stream, chunk=1)):
        for rows in replay.tables():
            for query, table in rows.items():
                spans = zip(*(table[name].to_pylist() for name in ("start", "end")), strict=True)
                emitted.setdefault(query.name, []).extend(spans)
    assert replay.watermark == 15
    assert emitted == {"h": [(10, 15)], "of s": [(10, 15)], "of h": [(10, 20)]}
    assert session.closed
    assert replay.rows == 3


def test_a_closed_reader_of_a_closed_stream_has_a_watermark() -> None:
    session, window = Session(), "FROM STREAM <{}> [RANGE 10ms STEP 10ms]"
    text = f"REGISTER STREAM <t> AS CONSTRUCT {{ ?s <p> ?v }} {window.format('s')} {{ ?s ?p ?v }}"
    feed = session.register(text)
    reader = session.register(f"SELECT ?s {window.format('t')} {{ ?s ?p ?o }}")
    session.push("s", ("<a>", "<p>", 1), 25)
    mark = reader.watermark
    reader.close()
    feed.close()
    assert reader.watermark == mark
