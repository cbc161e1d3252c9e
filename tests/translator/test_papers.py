"""Figures and claims of the papers. All listings of the five papers are in tests/golden; the tests
here compare plans with the trees of figures, and results with the text of the papers.
"""

from __future__ import annotations

import pytest
from support.engine import Data, disagreement
from support.golden import GOLDEN, read
from support.plans import (
    BACKGROUND,
    events,
    graph,
    pattern,
    plan,
    rows,
    stream,
    triple,
    with_background,
)

import streamsparql
from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.inputs import DEFAULT_STREAM, Inputs, StreamItem, item
from streamsparql.algebra.join import LeftJoin, Union
from streamsparql.algebra.match import TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.shape import Projection
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.streams import Element
from streamsparql.algebra.terms import IRI, Literal, Triple
from streamsparql.algebra.window import SlidingDeltaWindow, SlidingTupleWindow
from streamsparql.errors import QueryError, QuerySyntaxError

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")


def listing(file: str, title: str) -> str:
    """Return the text of a query from the golden file of its paper."""
    (text,) = (
        case.text
        for case in read(GOLDEN / f"{file}.txt")[1]
        if case.title == title or case.title.startswith((f"{title},", f"{title}:", f"{title} "))
    )
    return text


def without_background(plan: Plan) -> Plan:
    """Remove the default graph of the caller from a plan: the papers have no such branch."""

    def prune(node: Node, parts: list[Node]) -> Node:
        node = node.with_parts(tuple(parts)) if parts else node
        match node:
            case Merge((one, AccessGraph(graphs=()))):
                return one
            case Union((*branches, TriplePatternMatching(_, AccessGraph(graphs=())))):
                return branches[0] if len(branches) == 1 else Union(tuple(branches))
            case AccessGraph(graphs):
                return AccessGraph(graphs)
        return node

    pruned = plan.fold(prune)
    assert isinstance(pruned, Plan)
    return pruned


def project(names: str, below: Plan) -> Projection:
    return Projection(tuple(Variable(name) for name in names), below)


MY, WTUR = "http://src.net/my#", "http://iec.org/61400-25/root/ln-classes/WTUR#"


def test_eswc_2008_figure_1():
    source = AccessGraph((IRI("http://src.net/graph.rdf"),))
    expected = Union(
        (
            TriplePatternMatching(pattern(f"?w {MY}name ?x"), source),
            TriplePatternMatching(pattern(f"?y {MY}power ?z"), source),
        )
    )
    assert without_background(plan(listing("eswc2008", "Listing 1.2"))) == project("wxyz", expected)


def test_eswc_2008_figure_2():
    """A window of FROM is directly below the matching; SLIDE alone is one millisecond."""
    window = SlidingDeltaWindow(stream("http://src.net/graph.rdf"), 1000, 1)
    expected = Union(
        (
            TriplePatternMatching(pattern(f"?w {MY}name ?x"), window),
            TriplePatternMatching(pattern(f"?y {MY}power ?z"), window),
        )
    )
    assert without_background(plan(listing("eswc2008", "Listing 1.3"))) == project("wxyz", expected)


def test_eswc_2008_figure_3():
    """The window of a group is above the matching and replaces that of FROM (R5, R6)."""
    source = stream("http://iec.org/61400-25/root/td.rdf")
    left = TriplePatternMatching(
        pattern(f"?x {WTUR}StrCnt ?y"), SlidingDeltaWindow(source, 30 * 60_000, 60_000)
    )
    right = SlidingTupleWindow(TriplePatternMatching(pattern(f"?x {WTUR}StopCnt ?z"), source), 1500)
    translated = without_background(plan(listing("eswc2008", "Listing 1.1")))
    assert translated == project("xyz", LeftJoin(left, right))


def test_the_default_graph_is_merged_with_each_default_stream():
    translated = plan("SELECT * FROM STREAM <s> WINDOW RANGE 5 FIXED { ?a <p> ?b }")
    (merge,) = (node for node in translated.walk() if isinstance(node, Merge))
    assert merge == with_background(merge.sources[0])
    assert merge.sources[1] == BACKGROUND


def test_listing_1_1_has_the_results_of_the_paper():
    """Starts of the last 30 minutes, and stops if there is one among the last 1500 elements."""
    text = listing("eswc2008", "Listing 1.1")
    minute = 60_000
    items = [
        (f"t1 {WTUR}StrCnt 1", 0),
        (f"t1 {WTUR}StopCnt 5", 10 * minute),
        (f"t2 {WTUR}StrCnt 2", 20 * minute),
    ]
    data = events(*items, name="http://iec.org/61400-25/root/td.rdf")
    at = plan(text).at
    assert at(20 * minute, data) == rows({"x": "t1", "y": "1", "z": "5"}, {"x": "t2", "y": "2"})
    assert at(29 * minute, data) == at(20 * minute, data)
    assert at(30 * minute, data) == rows({"x": "t2", "y": "2"})


def test_edbt_2010_aggregates_keep_the_rows():
    """2.3: each (gate, car) row is annotated; DISTINCT then keeps one row per gate."""
    text = listing("edbt2010", "2.3")
    t = "http://linkedurbandata.org/traffic#registers"
    items = [(f"g1 {t} a", 5_000), (f"g1 {t} b", 5_000), (f"g2 {t} a", 61_000)]
    data = events(*items, name="http://streams.org/citytollgates.trdf")
    at = plan(text).at
    assert at(59_999, data) == rows()
    assert at(60_000, data) == rows({"tollgate": "g1", "passages": "2"})
    assert len(at(120_000, data)) == 2
    assert len(plan(text.replace("DISTINCT", "")).at(60_000, data)) == 2


def test_edbt_2010_compares_timestamps_of_two_patterns():
    """2.7: the second camera must register the car first."""
    text = listing("edbt2010", "2.7")
    c, t = "http://linkedurbandata.org/city#", "http://linkedurbandata.org/traffic#"
    static = [
        f"k1 {c}monitors {c}Oak-Avenue",
        f"k2 {c}monitors {c}Palm-Street",
        f"k1 {c}placedAt light",
        f"k2 {c}placedAt light",
    ]
    turned = [(f"k2 {t}registers car", 1_000), (f"k1 {t}registers car", 2_000)]
    data = events(*turned, name="http://streams.org/citycameras.trdf")
    data = Inputs(data.streams, graph=graph(*static).graph)
    assert plan(text).at(60_000, data) == rows({"car1": "car"})
    reversed_ = [(text, 3_000 - t) for text, t in turned]
    data = Inputs(
        events(*reversed_, name="http://streams.org/citycameras.trdf").streams, graph=data.graph
    )
    assert plan(text).at(60_000, data) == rows()


def test_edbt_2010_a_repeated_triple_has_the_new_timestamp():
    text = """SELECT ?x (timestamp(?x) AS ?t) FROM STREAM <s> [RANGE 10s STEP 1s] { ?x <p> ?y }"""
    data = events(("a p 1", 1_000), ("a p 1", 3_000), name="s")
    assert plan(text).at(2_000, data) == rows({"x": "a", "t": "1000"})
    assert plan(text).at(3_000, data) == rows({"x": "a", "t": "3000"})
    assert plan(text).at(12_999, data) == rows({"x": "a", "t": "3000"})


def test_edbt_2010_the_timestamp_of_a_static_triple_is_unbound():
    text = (
        """SELECT ?x FROM STREAM <s> [RANGE 10s STEP 1s] { ?x <p> ?y FILTER(timestamp(?x) > 0) }"""
    )
    data = Inputs(events(("a p 1", 1_000), name="s").streams, graph=graph("b p 1").graph)
    assert plan(text).at(1_000, data) == rows({"x": "a"})


def test_edbt_2010_full_streets_joins_a_stream_with_the_static_graph():
    text = listing("edbt2010", "2.6")
    c, t = "http://linkedurbandata.org/city#", "http://linkedurbandata.org/traffic#"
    static = [f"street {c}hasCapacity 1", f"gate {c}placedIn street"]
    cars = [(f"gate {t}registers car{k}", k) for k in range(1, 4)]
    data = events(*cars, name="http://streams.org/citytollgates.trdf")
    streams = {**data.streams, IRI("http://streams.org/citycameras.trdf"): []}
    data = Inputs(streams, graph=graph(*static).graph)
    snapshot = plan(text).at(300_000, data)
    assert snapshot == rows(*[{"street": "street", "passages": "3"}] * 3)


def test_larkc_counts_users_per_topic():
    text = listing("larkc2009", "5: CountHowManyGlueUsersAreInterestedInEachTopic")
    topic = "http://rdfs.org/sioc/ns#topic"
    posts = [(f"p1 {topic} x", 1_000), (f"p2 {topic} x", 2_000), (f"p3 {topic} y", 9_000)]
    data = events(*posts, name="http://c-sparql.cefriel.it/sdow-demo/interactions.trdf")
    assert plan(text).at(10_000, data) == rows(
        {"topic": "x", "number": "2"}, {"topic": "y", "number": "1"}
    )


def test_cqels_q1_joins_a_window_with_two_graphs():
    text = listing("cqels2010", "Q1")
    name = triple("p http://xmlns.com/foaf/0.1/name ann")
    data = events(("p http://loc/at room", 1_000), name="http://deri.org/locstreams")
    place = {IRI("http://deri.org/localization/"): frozenset([triple("room http://loc/name r")])}
    data = Inputs(data.streams, graph=frozenset([name]), graphs=place)
    expected = rows({"name": "ann", "locName": "r"})
    assert [plan(text).at(t, data) == expected for t in (999, 1_000, 30_999, 31_000)] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "printed",
    [
        """SELECT ?person1 ?person2 max(?numPub)
        WHERE { { SELECT ?person1 ?person2 (count(?p2) AS ?numPub)
                  WHERE { ?p1 <c> ?person1 .?p2 <c> ?person2. ?p1 <r> ?p2 } } GROUP BY ?person1 ?person2 }
        GROUP BY ?person2""",
        "SELECT ?locName max(count(?citedAuthor)) WHERE { ?citedAuthor <at> ?loc } GROUP BY ?loc",
    ],
    ids=["Q4", "Q4'"],
)
def test_cqels_q4_as_printed_is_refused(printed):
    with pytest.raises((QueryError, QuerySyntaxError)):
        plan(printed)


def test_cqels_error_has_a_hint_how_to_write_an_aggregate():
    with pytest.raises(QueryError) as raised:
        plan("SELECT ?x max(?n) { ?x <p> ?n } GROUP BY ?x")
    assert "(MAX(..) AS ?max)" in raised.value.hint
    with pytest.raises(QueryError) as raised:
        plan("SELECT max(count(?n)) { ?x <p> ?n } GROUP BY ?x")
    assert "subquery" in raised.value.hint


def price(company: str, value: str, t: int) -> StreamItem:
    number = Literal(value, IRI("http://www.w3.org/2001/XMLSchema#decimal"))
    return item(Triple(IRI(company), IRI("http://stock/hasStockPrice"), number), t)


DAY = 86_400_000


def detected(text, items, rules=()):
    """Run a query about events; return its rows, with their occurrences in days, in order."""
    detections = []
    for row in run(text, items, rules):
        values = tuple(None if x is None else str(x).rsplit("/", 1)[-1] for x in row.values())
        detections.append((values, row.start / DAY, row.end / DAY))
    return sorted(detections, key=str)


def test_www_2011_query_1_detects_a_drop_and_a_rise_within_30_days():
    text = listing("www2011", "(1)")
    quick = [price("c", "100", 0), price("c", "60", 5 * DAY), price("c", "110", 20 * DAY)]
    slow = [price("d", "100", 0), price("d", "60", 5 * DAY), price("d", "110", 31 * DAY)]
    data = Inputs({DEFAULT_STREAM: quick + slow})
    assert plan(text).at(20 * DAY, data) == rows({"company": "c"})
    assert plan(text).at(31 * DAY, data) == rows()
    assert detected(text, quick + slow) == [(("c",), 0, 20)]


def test_www_2011_query_2_shows_who_downrated_before_a_drop():
    text = listing("www2011", "(2)")
    prices = [
        price(c, p, t * DAY) for c, p, t in (("c", "100", 1), ("d", "100", 1), ("c", "40", 5))
    ]
    later = [price("d", "40", 6 * DAY), price("c", "41", 7 * DAY)]
    ratings = [
        item(triple(f"c http://stock/downratedby {agency}"), t)
        for agency, t in (("moody", 0), ("poor", DAY), ("fitch", 3 * DAY))
    ]
    detections = [(("c", "moody"), 0, 5), (("c", "moody"), 0, 7), (("d", None), 1, 6)]
    assert detected(text, [*prices, *later, *ratings]) == detections
    data = Inputs({DEFAULT_STREAM: [*prices, *later, *ratings]})
    assert plan(text).at(6 * DAY, data) == rows({"company": "d"})


def test_www_2011_query_3_detects_absence():
    text = listing("www2011", "(3)").replace("hasStockprice", "hasStockPrice")
    bought = item(triple("c http://stock/hasAcquired other"), 2 * DAY)
    prices = [price("c", "100", DAY), price("c", "120", 5 * DAY)]
    assert plan(text).at(5 * DAY, Inputs({DEFAULT_STREAM: prices})) == rows({"company": "c"})
    assert plan(text).at(5 * DAY, Inputs({DEFAULT_STREAM: [*prices, bought]})) == rows()
    assert detected(text, prices) == [(("c",), 1, 5)]
    assert detected(text, [*prices, bought]) == []


def test_www_2011_query_3_reaches_back_before_its_first_event():
    """By its prose an acquisition matters "during that period"; by the semantics, ever before."""
    text = listing("www2011", "(3)").replace("hasStockprice", "hasStockPrice")
    bought = item(triple("c http://stock/hasAcquired other"), 0)
    assert detected(text, [bought, price("c", "100", DAY), price("c", "120", 5 * DAY)]) == []


def test_www_2011_query_6_without_its_rule_averages_what_is_derived_elsewhere():
    """It reads ?count and ?sum where it means ?prevcount and ?prevsum, which are bound."""
    text = listing("www2011", "(6)").replace("?sum / ?count", "?prevsum / ?prevcount")
    derived = [
        item(triple(f"point{t} http://stock/{link} {value}"), t * DAY)
        for t, count, total in ((5, 2, 30), (14, 4, 80))
        for link, value in (("hasCount", count), ("hasSum", total))
    ]
    prices = [price("http://stock/ACME", "10", t * DAY) for t in (1, 3)]
    assert detected(text, [*prices, *derived]) == [(("20",), 3, 14)]


def test_www_2011_query_4_derives_what_query_2_reads():
    items = [
        item(triple(f"http://e/{s} http://stock/{p} {o}"), t * DAY)
        for s, p, o, t in (
            ("r1", "rater", "poor", 0), ("r1", "rated", "c", 0), ("r1", "score", "9", 0),
            ("r2", "rater", "poor", 3), ("r2", "rated", "c", 3), ("r2", "score", "4", 3),
        )
    ]  # fmt: skip
    items = [*items, price("c", "100", 5 * DAY), price("c", "40", 7 * DAY)]
    rule = listing("www2011", "(4)")
    assert [values for values, *_ in detected(rule, items)] == [("c", "downratedby", "poor")]
    rows = detected(listing("www2011", "(2)"), items, rules=[rule])
    assert rows == [(("c", "poor"), 0, 7)]


def test_www_2011_queries_5_and_6_average_the_prices_of_10_days():
    """The rule counts and sums from a point on; query (6) means ?prevcount and ?prevsum."""
    text = listing("www2011", "(6)").replace("?sum / ?count", "?prevsum / ?prevcount")
    rule = listing("www2011", "(5)")
    start = [item(triple(f"start http://stock/{x} 0"), 0) for x in ("hasCount", "hasSum")]
    prices = [price("http://stock/ACME", p, t * DAY) for p, t in (("10", 2), ("20", 5), ("60", 9))]
    derived = sorted((str(row["object"]), row.end // DAY) for row in run(rule, [*start, *prices]))
    assert derived == [("1", 2), ("10", 2), ("2", 5), ("3", 9), ("30", 5), ("90", 9)]
    late = [*prices, price("http://stock/ACME", "50", 11 * DAY)]
    assert len(run(rule, [*start, *late])) == 6  # the chain of the start is 10 days long
    acme = [price("http://stock/ACME", p, t * DAY) for p, t in (("5", 0), ("10", 2), ("12", 9))]
    later = [item(triple(f"start http://stock/{x} 0"), DAY) for x in ("hasCount", "hasSum")]
    assert detected(text, [*acme, *later], rules=[rule]) == []
    shorter = text.replace("P10D", "P8D")
    assert detected(shorter, [*acme, *later], rules=[rule]) == [(("11",), 0, 9)]


def run(text, items, rules=()):
    """Run a query of events; return its rows."""
    triples = [(tuple(map(str, each.triple)), each.start, each.end) for each in items]
    triples.sort(key=lambda each: each[2])
    return list(streamsparql.compile(text, "epsparql", rules=rules).run(triples))


def test_www_2011_test_3_finds_another_route_where_connections_are_inaccessible():
    """The transitive closure is that of the connections that are open when an agent asks."""
    prefix = "PREFIX : <http://e/> "
    rules = (
        prefix
        + """
        CONSTRUCT { ?x :open ?y }
        { { ?report :from ?x . ?report :to ?y }
          OPTIONALSEQ { ?agent :asks ?goal . ?x :connects ?y } FILTER(!BOUND(?report)) }
        CONSTRUCT { ?x :reaches ?y } { ?x :open ?y }
        CONSTRUCT { ?x :reaches ?z } { { ?x :open ?y } EQUALS { ?y :reaches ?z } }"""
    )
    text = (
        prefix
        + """SELECT ?agent ?next
        { { ?agent :asks ?goal . ?agent :at ?here }
          EQUALS { ?here :open ?next } EQUALS { ?next :reaches ?goal } }"""
    )
    roads = ["a b", "b c", "c d", "a e", "e d"]
    graph = [tuple(f"<http://e/{x}>" for x in (*road.split(), "")) for road in roads]
    graph = [(x, "<http://e/connects>", y) for x, y, _ in graph]
    asked = lambda t: [("agent asks d", t), ("agent at a", t)]  # noqa: E731
    reported = lambda k, x, y, t: [(f"r{k} from {x}", t), (f"r{k} to {y}", t)]  # noqa: E731
    items = [*asked(1), *reported(1, "b", "c", 2), *asked(3), *reported(2, "e", "d", 4), *asked(5)]
    stream = [(tuple(f"<http://e/{x}>" for x in text.split()), t) for text, t in items]
    query = streamsparql.compile(text, rules=[rules])
    routes = [(str(row["next"])[-1], row.end) for row in query.run(stream, graph)]
    assert sorted(routes) == [("b", 1), ("e", 1), ("e", 3)]


def test_www_2011_has_no_seqoptional():
    """SEQOPTIONAL would have to retract results (section 4.2, query (7))."""
    with pytest.raises(QuerySyntaxError):
        plan("SELECT ?x ?y WHERE { ?x ?x ?x } SEQOPTIONAL { ?y ?y ?y }")


def test_definition_1_a_physical_stream_is_a_sequence_of_intervals():
    element = Element(triple("a p 1"), 3, 9)
    assert (element.start, element.end) == (3, 9)
    assert AccessStream(IRI("s")).elements(events(("a p 1", 3), name="s")) == [
        Element(triple("a p 1"), 3, 4)
    ]


def test_definition_6_a_blank_node_stands_for_one_term():
    """The matchings of a basic graph pattern share the instance mapping; labels are not compared."""
    text = """SELECT ?x ?y FROM STREAM <http://e/s> WINDOW RANGE 10 FIXED
        { _:a <http://e/p> ?x . _:a <http://e/q> ?y }"""
    items = [
        ("http://e/a http://e/p http://e/1", 1),
        ("http://e/a http://e/q http://e/2", 2),
        ("http://e/b http://e/q http://e/3", 3),
    ]
    at = plan(text).at
    assert at(3, events(*items, name="http://e/s")) == rows({"x": "http://e/1", "y": "http://e/2"})
    assert disagreement(text, over(items)) == ""


def test_definition_12_a_left_row_without_a_match_stays():
    """The row stays even if the filter rejects its only match, or the right side is empty."""
    text = """SELECT ?x ?y { ?x <http://e/p> <http://e/1>
        OPTIONAL { ?x <http://e/q> ?y FILTER(?y != <http://e/no>) } }"""
    left = [f"http://e/{x} http://e/p http://e/1" for x in "abc"]
    right = ["http://e/a http://e/q http://e/2", "http://e/b http://e/q http://e/no"]
    kept = [{"x": f"http://e/{x}"} for x in "abc"]
    matched = [{**kept[0], "y": "http://e/2"}, *kept[1:]]
    for triples, expected in ((left, kept), (left + right, matched), (right, [])):
        assert plan(text).at(0, graph(*triples)) == rows(*expected)
        assert disagreement(text, Data(graph=list(map(terms, triples)))) == ""


def terms(triple: str) -> tuple[str, str, str]:
    """Split a triple into its IRIs, as N-Triples."""
    subject, predicate, value = (f"<{iri}>" for iri in triple.split())
    return subject, predicate, value


def over(items: list[tuple[str, int]]) -> Data:
    """Return data with one stream."""
    return Data({"http://e/s": [(terms(triple), t) for triple, t in items]})
