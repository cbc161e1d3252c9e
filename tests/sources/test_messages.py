"""`stamp_from`: the timestamp is in the item, as a column, a value in a record, or a triple."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from support.sources import XSD, read

import streamsparql
from streamsparql.errors import EngineError, SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources import Wanted, mapped, read_stream
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import StampReader

SOSA = "http://www.w3.org/ns/sosa/"
TIME = f"<{SOSA}resultTime>"
QUERY = streamsparql.compile(
    f"PREFIX : <http://e/> PREFIX sosa: <{SOSA}>"
    " SELECT ?o ?v FROM STREAM :s WINDOW RANGE 1 MINUTE FIXED { ?o sosa:hasSimpleResult ?v }"
)


def reading(place: str = TIME) -> Reading:
    return Reading(StampReader(None), place)


def stamped(source: Any, **options: Any) -> tuple[list[tuple[str, str, int]], list[str]]:
    """Return subjects, objects and stamps of the items, and the reasons of rejects."""
    items, rejects, _ = read(source, reading=options.pop("reading", reading()), **options)
    return [(s, o, t) for s, _, o, t in items], [reject.reason for reject in rejects]


TURTLE = f"""@prefix sosa: <{SOSA}> . @prefix : <http://e/> . @prefix xsd: <{XSD}> .
:o1 a sosa:Observation ; sosa:hasResult [ :value 5 ; :unit [ :name "m" ] ] ;
    sosa:resultTime "2014-08-01T10:00:00Z"^^xsd:dateTime .
:o2 sosa:hasResult :r2 ; sosa:resultTime "2014-08-01 10:01" . :r2 :value 6 .
:o3 :value 7 .
:o4 sosa:resultTime "soon" ; :value 8 .
:o5 sosa:resultTime 5, 6 ; :value 9 .
[] sosa:resultTime "2014-08-01T10:05:00Z"^^xsd:dateTime ; :value 10 .
[] sosa:resultTime "2014-08-01T10:06:00Z"^^xsd:dateTime ; :value 11 .
"""
MINUTE = 60_000
TEN = 1_406_887_200_000


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("name", ["x.ttl", "x.nt", "x.jsonld", "graph", "triples", "table"])
def test_triples_of_a_message_have_its_time(name: str, size: int, tmp_path: Path) -> None:
    graph = rdflib.Graph().parse(data=TURTLE)
    match name:
        case "x.ttl":
            (tmp_path / name).write_text(TURTLE)
        case "x.nt":
            lines = [" ".join(term.n3() for term in triple) for triple in turtle_order(graph)]
            (tmp_path / name).write_text("".join(f"{line} .\n" for line in lines))
        case "x.jsonld":
            (tmp_path / name).write_text(as_json_ld(turtle_order(graph)))
    triples = turtle_order(graph)
    texts = [[term.n3() for term in triple] for triple in triples]
    source: Any = {
        "graph": triples,
        "triples": [tuple(triple) for triple in texts],
        "table": pa.table(dict(zip("spo", map(list, zip(*texts)), strict=True))),
    }.get(name, tmp_path / name)
    items, reasons = stamped(source, chunk=size)
    values = {int(o.split('"')[1]): t for _, o, t in items if "integer" in o and t < 2**41}
    assert values == {5: TEN, 6: TEN + MINUTE, 10: TEN + 5 * MINUTE, 11: TEN + 6 * MINUTE}
    assert [t for _, o, t in items if o == '"m"'] == [TEN]
    assert sorted(reasons) == [
        *[f"ambiguous timestamp: its message has two {TIME}"] * 3,
        f"missing timestamp: its message has no {TIME}",
        *["not a valid timestamp: 'soon'"] * 2,
    ]


def turtle_order(graph: rdflib.Graph) -> list[Any]:
    """Return the triples of each observation together, nested nodes before or after them."""
    order: list[Any] = []

    def visit(node: Any) -> None:
        later = []
        for k, triple in enumerate(sorted(graph.triples((node, None, None)), key=str)):
            if isinstance(triple[2], rdflib.BNode) and k % 2 == 0:
                visit(triple[2])
            elif not isinstance(triple[2], rdflib.Literal):
                later.append(triple[2])
            order.append(triple)
        for inner in later:
            visit(inner)

    nested = set(graph.objects())
    for subject in sorted(set(graph.subjects()) - nested, key=str):
        visit(subject)
    return order


def as_json_ld(triples: list[Any]) -> str:
    """Return triples as JSON-LD, an object for each run of one subject."""
    nodes: list[dict[str, Any]] = []
    for s, p, o in triples:
        name = f"_:{s}" if isinstance(s, rdflib.BNode) else str(s)
        if not nodes or nodes[-1]["@id"] != name:
            nodes.append({"@id": name})
        if isinstance(o, rdflib.Literal):
            value: dict[str, str] = {"@value": str(o)}
            if o.datatype:
                value["@type"] = str(o.datatype)
        else:
            value = {"@id": f"_:{o}" if isinstance(o, rdflib.BNode) else str(o)}
        nodes[-1].setdefault(str(p), []).append(value)
    return json.dumps(nodes)


NODES = ["<http://e/a>", "<http://e/b>", "<http://e/c>", "_:x", "_:y"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(NODES),
            st.sampled_from([TIME, "<http://e/p>"]),
            st.sampled_from([*NODES, '"5"', '"6"', '"x"']),
        ),
        max_size=14,
    ),
    st.integers(1, 15),
)
def test_messages_do_not_depend_on_chunks(triples: list[Any], size: int) -> None:
    whole, apart = (stamped(triples, chunk=each) for each in (100, size))
    assert whole == apart
    assert len(whole[0]) + len(whole[1]) == len(triples)


def test_ids_of_a_pending_message_are_retained() -> None:
    """The terms of a message that continues in the next chunk are in use."""
    terms = TermDictionary()
    triples = [(f"<http://e/{k}>", "<http://e/p>", f'"value {k}"') for k in range(50)]
    timed = [each for s, p, o in triples for each in ((s, p, o), (s, TIME, '"5"'))]
    read_back = []
    for chunk in read_stream(timed, "in", terms, reading=reading(), chunk=3):
        read_back += terms.texts(chunk.o).to_pylist()
        kept = chunk.retained_ids
        assert kept is not None
        terms.recycle(kept())
    assert read_back == [o for *_, o in timed]


def test_unwanted_triples_of_messages_advance_the_time() -> None:
    terms = TermDictionary()
    wanted = Wanted(frozenset([terms.id_of(streamsparql.algebra.terms.IRI("http://e/p"), True)]))
    triples = [("<http://e/a>", "<http://e/p>", "<http://e/b>"), ("<http://e/a>", TIME, '"7"')]
    (chunk,) = (
        c for c in read_stream(triples, "in", terms, wanted=wanted, reading=reading()) if c.items
    )
    assert (len(chunk), chunk.prefiltered, chunk.stamps.tolist()) == (1, 1, [7, 7])


# -- graphs, rows, columns -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.trig", "x.nq"])
def test_message_of_a_file_of_graphs_is_a_graph(name: str, tmp_path: Path) -> None:
    def statement(text: str, graph: str) -> str:
        return f"<{graph}> {{ {text} }}\n" if name == "x.trig" else f"{text} <{graph}> .\n"

    (tmp_path / name).write_text(
        statement('<http://e/a> <http://e/v> "1"', "http://e/g1")
        + statement('<http://e/b> <http://e/v> "2"', "http://e/g1")
        + statement(f'<http://e/a> {TIME} "1970-01-01T00:00:05Z"', "http://e/g1")
        + statement(f'<http://e/a> {TIME} "soon"', "http://e/g2")
        + statement('<http://e/a> <http://e/v> "3"', "http://e/g3")
    )
    items, reasons = stamped(tmp_path / name)
    assert sorted(o for _, o, _ in items) == ['"1"', '"1970-01-01T00:00:05Z"', '"2"']
    assert {t for *_, t in items} == {5000}
    assert reasons == [
        "not a valid timestamp: 'soon'",
        f"missing timestamp: its graph <http://e/g3> has no {TIME}",
    ]


def test_message_of_a_mapped_table_is_a_row() -> None:
    mapping = (
        f"PREFIX : <http://e/> CONSTRUCT {{ ?a :v ?v . ?b :of ?a ; {TIME} ?when }}"
        " { BIND(IRI(CONCAT('http://e/', ?id)) AS ?a) BIND(BNODE() AS ?b) }"
    )
    records = [{"id": 1, "v": 5, "when": "1970-01-01T00:00:05Z"}, {"id": 2, "v": 6}]
    items, reasons = stamped(mapped(records, mapping))
    assert [t for *_, t in items] == [5000] * 3
    assert reasons == [f"missing timestamp: its message has no {TIME}"] * 2


def test_column_or_path_may_have_the_timestamps() -> None:
    mapping = "PREFIX : <http://e/> CONSTRUCT { [] :v ?v } {}"
    rows = [{"v": 1, "t": "x", "seen at": 5}, {"v": 2, "t": "x", "seen at": 6}]
    csv = io.StringIO("v,t,seen at\n1,x,5\n2,x,6\n")
    for source in (rows, csv, pa.Table.from_pylist(rows)):
        items, reasons = stamped(mapped(source, mapping), reading=reading("seen at"))
        assert ([t for *_, t in items], reasons) == ([5, 6], [])
    nested = [{"v": 1, "payload": {"at": 7}}, {"v": 2, "payload": {"at": 8}}]
    items, _ = stamped(mapped(nested, mapping), reading=reading("payload.at"))
    assert [t for *_, t in items] == [7, 8]
    table = pa.table({"s": ["<a>"], "p": ["<b>"], "o": ["<c>"], "t": ["x"], "seen": [5]})
    assert stamped(table, reading=reading("seen"))[0] == [("<a>", "<c>", 5)]
    for source, place in ((mapped(rows, "CONSTRUCT { [] <v> ?v } {}"), "no"), (table, "no")):
        if source is not table:
            source = mapped(pa.Table.from_pylist(rows), "CONSTRUCT { [] <v> ?v } {}")
        with pytest.raises(SourceError, match=r"unknown column .*no.* in stamp_from"):
            stamped(source, reading=reading(place))


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["sosa:resultTime", f"{SOSA}resultTime", TIME])
def test_predicate_may_be_written_with_a_prefix(place: str) -> None:
    triples = [
        ("http://e/o", f"{SOSA}hasSimpleResult", 5),
        ("http://e/o", f"{SOSA}resultTime", "2014-08-01T10:00:00Z"),
    ]
    for options in (place, {"http://e/s": place}):
        assert [row.start for row in QUERY.run(triples, stamp_from=options)] == [TEN]
    live = QUERY.open(stamp_from=place)
    live.push_many("http://e/s", triples)
    live.close()
    assert [row.start for row in live.rows()] == [TEN]


def test_options_of_timestamps_are_checked() -> None:
    with pytest.raises(EngineError, match="undeclared prefix x: in 'x:time'"):
        QUERY.run([], stamp_from="x:time")
    with pytest.raises(EngineError, match="stamp_from must be a column, a path or the IRI"):
        QUERY.run([], stamp_from=5)
    with pytest.raises(EngineError, match="time_unit must be s, ms, us or ns, not 'h'"):
        QUERY.run([], time_unit="h")
    with pytest.raises(EngineError, match="unknown time zone 'Mars'"):
        QUERY.run([], time_zone="Mars")
    with pytest.raises(SourceError, match="time_unit: unknown stream <x>; the query reads"):
        QUERY.run([], time_unit={"x": "s"})


def test_push_of_one_triple_has_no_message() -> None:
    live = QUERY.open(stamp_from="sosa:resultTime")
    with pytest.raises(EngineError, match="stamp_from reads the time of whole messages; use push_"):
        live.push("http://e/s", ("http://e/o", f"{SOSA}hasSimpleResult", 5), 5)
