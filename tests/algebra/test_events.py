"""EP-SPARQL: event solutions, when they are known, and that they are never retracted.

The paper's definitions are sets of event solutions. The expected results of the cases are computed
by hand from them (SEMANTICS.md section 7); the properties are tested on random streams.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generate import Features, queries
from support.plans import events, graph, plan, rows, triple

from streamsparql.algebra.event import Detect
from streamsparql.algebra.inputs import DEFAULT_STREAM, Inputs
from streamsparql.algebra.terms import IRI, BlankNode, Triple
from streamsparql.errors import EngineError, UnsupportedFeature

INSTANTS = range(30)


def detected(text: str, data: Inputs) -> dict[int, object]:
    """Return the snapshots of a query that are not empty, by instant."""
    query = plan(text, "epsparql")
    at = {t: query.at(t, data) for t in INSTANTS}
    return {t: snapshot for t, snapshot in at.items() if len(snapshot)}


def test_seq_needs_strictly_later_events():
    text = "SELECT ?x { { ?x <p> 1 } SEQ { ?x <p> 2 } }"
    assert detected(text, events(("a p 1", 3), ("a p 2", 5))) == {5: rows({"x": "a"})}
    assert detected(text, events(("a p 1", 5), ("a p 2", 5))) == {}
    assert detected(text, events(("a p 2", 3), ("a p 1", 5))) == {}


def test_seq_rejects_intervals_that_touch():
    text = "SELECT ?x { { ?x <p> 1 } SEQ { ?x <p> 2 } }"
    assert detected(text, events(("a p 1", 1, 4), ("a p 2", 4, 6))) == {}
    assert detected(text, events(("a p 1", 1, 4), ("a p 2", 5, 6))) == {6: rows({"x": "a"})}


def test_equals_needs_the_same_start_and_end():
    text = "SELECT ?x { { ?x <p> 1 } EQUALS { ?x <q> 2 } }"
    assert detected(text, events(("a p 1", 1, 4), ("a q 2", 1, 4))) == {4: rows({"x": "a"})}
    assert detected(text, events(("a p 1", 1, 4), ("a q 2", 2, 4))) == {}


def test_a_pattern_occurs_from_its_first_triple_to_its_last():
    functions = "(getSTARTTIME() AS ?s) (getENDTIME() AS ?e) (getDURATION() AS ?d)"
    text = f"SELECT {functions} {{ <a> <p> ?y . <a> <q> ?z }}"
    (only,) = plan(text, "epsparql").at(5_000, events(("a q 2", 2_000), ("a p 1", 5_000)))
    texts = {variable.name: term.lexical for variable, term in only.items()}
    assert texts == {"s": "1970-01-01T00:00:02Z", "e": "1970-01-01T00:00:05Z", "d": "PT3S"}


def test_repeated_events_are_detected_again_and_duplicate_items_once():
    text = "SELECT ?x { ?x <p> 1 }"
    data = events(("a p 1", 3), ("a p 1", 3), ("a p 1", 7))
    assert detected(text, data) == {3: rows({"x": "a"}), 7: rows({"x": "a"})}


def test_optionalseq_has_an_optional_left_side():
    text = "SELECT ?x ?y { { ?x <before> ?y } OPTIONALSEQ { ?x <p> 1 } }"
    assert detected(text, events(("a before b", 2), ("a p 1", 5))) == {
        5: rows({"x": "a", "y": "b"})
    }
    assert detected(text, events(("a p 1", 5), ("a before b", 5))) == {5: rows({"x": "a"})}


def test_the_filter_of_an_optional_side_restricts_its_matches():
    text = """PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
        SELECT ?x ?y {
          { ?x <before> ?y FILTER(getDURATION() < "PT0.003S"^^xsd:duration) }
          OPTIONALSEQ { ?x <p> 1 } }"""
    assert detected(text, events(("a before b", 3), ("a p 1", 5))) == {
        5: rows({"x": "a", "y": "b"})
    }
    assert detected(text, events(("a before b", 1), ("a p 1", 5))) == {5: rows({"x": "a"})}


def test_equalsoptional_has_an_optional_right_side():
    text = "SELECT ?x ?y { { ?x <p> 1 } EQUALSOPTIONAL { ?x <q> ?y } }"
    assert detected(text, events(("a p 1", 5), ("a q b", 5))) == {5: rows({"x": "a", "y": "b"})}
    assert detected(text, events(("a p 1", 5), ("a q b", 6))) == {5: rows({"x": "a"})}


def test_optional_is_decided_at_the_end_of_its_left_side():
    text = "SELECT ?x ?y { ?x <p> 1 OPTIONAL { ?x <q> ?y } }"
    assert detected(text, events(("a q b", 5), ("a p 1", 5))) == {5: rows({"x": "a", "y": "b"})}
    assert detected(text, events(("a q b", 6), ("a p 1", 5))) == {5: rows({"x": "a"})}


def test_static_triples_join_at_any_time_and_never_occur():
    text = "SELECT ?x ?k { { ?x <kind> ?k . ?x <p> 1 } SEQ { ?x <p> 2 } }"
    data = events(("a p 1", 3), ("a p 2", 5))
    data = Inputs(data.streams, graph=graph("a kind k").graph)
    assert detected(text, data) == {5: rows({"x": "a", "k": "k"})}
    only = Inputs(data.streams, graph=graph("a p 9", "a p 1").graph)
    assert detected("SELECT ?x { { ?x <p> 9 } SEQ { ?x <p> 2 } }", only) == {}


def test_derived_triples_are_input_of_the_rules():
    """next(x, z) <- next(x, y) SEQ next(y, z): the closure is transitive."""
    text = "CONSTRUCT { ?x <next> ?z } { { ?x <next> ?y } SEQ { ?y <next> ?z } }"
    data = events(("a next b", 1), ("b next c", 2), ("c next d", 3))
    derived = {
        t: sorted(f"{x.subject.value}{x.object.value}" for x in snapshot)
        for t, snapshot in detected(text, data).items()
    }
    assert derived == {2: ["ac"], 3: ["ad", "bd"]}


def test_paper_query_5_counts_and_sums():
    text = """
        CONSTRUCT { _:aaa <count> ?count . _:aaa <sum> ?sum . }
        { SELECT ?count AS ?prevcount + 1 ?sum AS ?prevsum + ?price
          WHERE {{ ?point <count> ?prevcount . ?point <sum> ?prevsum . }
           SEQ { <ACME> <price> ?price . }}
          EQUALSOPTIONAL
          {{ ?point <count> ?prevcount . ?point <sum> ?prevsum . }
           SEQ { <ACME> <price> ?inbetween . } SEQ { <ACME> <price> ?price . }}
          FILTER ( !BOUND(?inbetween ) ) }"""
    data = events(
        ("start count 0", 1), ("start sum 0", 1), ("ACME price 10", 3), ("ACME price 20", 5)
    )
    snapshots = detected(text, data)
    last = {x.object.lexical for x in snapshots[5] if isinstance(x, Triple)}
    assert {x.object.lexical for x in snapshots[3]} == {"1", "10"}
    assert last == {"2", "30"}


def test_rules_that_do_not_terminate_raise_an_error(monkeypatch):
    monkeypatch.setattr("streamsparql.algebra.closure.MAX_CLOSURE_ROUNDS", 40)
    text = "CONSTRUCT { ?y <next> _:new } { ?x <next> ?y }"
    with pytest.raises(EngineError, match="do not terminate at the instant 1"):
        detected(text, events(("a next b", 1)))


def test_a_rule_may_test_for_the_absence_of_earlier_derived_events():
    """The left side of SEQ has ended before, so its absence is known then, as in query 5."""
    text = """CONSTRUCT { ?x <first> ?y } {
        { { ?x <first> ?before } OPTIONALSEQ { ?x <seen> ?y } }
        FILTER(!BOUND(?before)) }"""
    data = events(("a seen 1", 1), ("a seen 2", 2), ("b seen 3", 2), ("a seen 4", 4))
    snapshots = detected(text, data)
    assert set(snapshots[1]) == {triple("a first 1")}
    assert set(snapshots[2]) == {triple("b first 3")}
    assert not snapshots.get(4)


@pytest.mark.parametrize(
    "text",
    [
        "CONSTRUCT { ?x <bad> 1 } { ?x <p> ?y OPTIONAL { ?x <bad> ?k } FILTER(!BOUND(?k)) }",
        "CONSTRUCT { ?x <bad> 1 } { { ?x <p> ?y } EQUALSOPTIONAL { ?x ?any ?k } }",
        "CONSTRUCT { ?x <go> 1 } { { ?x <p> ?y } SEQ { ?x <q> ?z } } HAVING(?y = 1)",
        "CONSTRUCT { ?x <go> 1 } { { ?x <p> ?y } SEQ { ?x <q> ?z } } LIMIT 1",
        "CONSTRUCT { ?x <go> ?n } { ?x <p> ?y } AGGREGATE { (?n, COUNT, {?x}) }",
        "CONSTRUCT { ?x <go> 1 } { { ?x <p> ?y } SEQ { ?x <q> ?z } } VALUES ?x { <a> }",
        "SELECT ?x { { ?x <p> ?y } SEQ { ?x <q> ?z } FILTER(timestamp(?x) > 3) }",
    ],
)
def test_constructs_without_a_meaning_over_events_are_rejected(text):
    with pytest.raises(UnsupportedFeature) as caught:
        plan(text, "epsparql")
    assert "hint" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "CONSTRUCT { ?x <r> ?z } { ?x <p> ?z OPTIONAL { GRAPH <g> { ?x <r> ?k } } }",
        "CONSTRUCT { <a> <r> <b> } { ?x <p> ?z OPTIONAL { ?z <r> ?z } }",
        "CONSTRUCT { ?x <r> ?z } FROM STREAM <s> FROM NAMED STREAM <t> "
        "{ ?x <p> ?z OPTIONAL { GRAPH <t> { ?x <r> ?k } } }",
    ],
)
def test_a_rule_may_test_for_the_absence_of_triples_it_cannot_derive(text):
    assert plan(text, "epsparql")


def test_a_rule_that_does_not_read_its_output_needs_no_default_stream():
    text = "CONSTRUCT { ?x <r> ?z } FROM NAMED STREAM <s> { GRAPH <s> { ?x <p> ?z } }"
    snapshot = plan(text, "epsparql").at(1, events(("a p b", 1), name="s"))
    assert set(snapshot) == {triple("a r b")}


def test_limit_is_allowed_if_the_output_is_not_an_input():
    text = "CONSTRUCT { ?x <r> ?z } FROM NAMED STREAM <s> { GRAPH <s> { ?x <p> ?z } } LIMIT 1"
    snapshot = plan(text, "epsparql").at(1, events(("a p b", 1), ("a p c", 1), name="s"))
    assert set(snapshot) == {triple("a r b")}


def test_each_optional_event_has_its_own_random_number():
    """R16 applies in the conditions of event operators, too."""
    text = "SELECT ?x ?z { { ?x <p> ?y } EQUALSOPTIONAL { ?x <q> ?z FILTER(RAND() < 0.5) } }"
    items = [(f"s{i} {p} 1", 1) for i in range(40) for p in "pq"]
    matched = sum(len(mu.domain) == 2 for mu in plan(text).at(1, events(*items)))
    assert 5 < matched < 35


def test_a_derived_blank_node_is_the_same_in_the_stream_and_the_result():
    text = "CONSTRUCT { ?x <n> _:b . ?z <got> ?w } { { ?x <p> ?y } UNION { ?z <n> ?w } }"
    derived = set(detected(text, events(("a p 1", 1)))[1])
    assert {x.predicate for x in derived} == {IRI("n"), IRI("got")}
    (node,) = {x.object for x in derived}
    assert isinstance(node, BlankNode)


EVENTS = Features(
    dialect="epsparql",
    exists=False,
    minus=False,
    subqueries=False,
    paths=False,
    groups=False,
    reduced=False,
)
triples = st.builds(
    lambda s, p, o: f"http://e/{s} http://e/{p} http://e/{o}",
    st.sampled_from("ab"),
    st.sampled_from("pqr"),
    st.sampled_from("abc"),
)
timed = st.lists(st.tuples(triples, st.integers(0, 9), st.integers(0, 2)), max_size=6)


@settings(max_examples=60)
@given(queries(EVENTS), timed)
def test_later_input_retracts_nothing(text, items):
    """Timewise monotonicity: the events known at t do not depend on later input, and stay known."""
    pattern = next(node for node in plan(text, "epsparql").walk() if isinstance(node, Detect)).input
    data = events(*((text, t, t + length) for text, t, length in items))
    whole = pattern.events(100, data)
    for t in range(data.start, 13):  # the horizon starts with the first item
        so_far = Inputs({DEFAULT_STREAM: [x for x in data.streams[DEFAULT_STREAM] if x.end <= t]})
        known = pattern.events(t, so_far)
        assert known == pattern.events(t, data)
        assert known == {event for event in whole if event.end is None or event.end <= t}


@settings(max_examples=60)
@given(queries(EVENTS), st.lists(triples, max_size=5, unique=True))
def test_plain_sparql_has_its_meaning_over_simultaneous_events(text, data_triples):
    """Downward compatibility: all triples have one timestamp; event operators are excluded."""
    if any(word in text for word in ("SEQ", "EQUALS")):
        return
    data = events(*((triple, 7) for triple in data_triples))
    ours = plan(text, "epsparql").at(data.start, data)
    assert set(ours) == set(plan(text).at(0, graph(*data_triples)))


def test_the_default_stream_has_a_name():
    assert IRI("urn:streamsparql:default-stream") == DEFAULT_STREAM
