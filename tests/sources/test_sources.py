"""Sources yield their items: in every format, with every form of term and of stamp.

The law of all of them: items = rows + prefiltered items + rejects, whatever the input.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.parquet as parquet
import pyoxigraph
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from support.sources import (
    DATE_TIME,
    INTEGER,
    ITEMS,
    XSD,
    Item,
    as_trig,
    iso,
    read,
    reasons_of,
    table,
)

from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.terms import IRI, BlankNode, Literal
from streamsparql.errors import SourceError
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.rdflib_terms import to_rdflib
from streamsparql.sources import Wanted, read_graph, read_stream


def as_quads(items: list[Item], stamp: Callable[[int], str], end: str = "\n") -> str:
    return "".join(f"{s} {p} {o} {stamp(t)} .{end}" for s, p, o, t in items)


def as_csv(items: list[Item], header: str = "subject,predicate,object,timestamp") -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header.split(","), *items])
    return out.getvalue()


def as_tsv(items: list[Item]) -> str:
    return "?s\t?p\t?o\t?t\n" + "".join("\t".join(map(str, item)) + "\n" for item in items)


def as_json(items: list[Item], stamp: Callable[[int], object] = int) -> str:
    keys = ("subject", "predicate", "object")
    rows = [
        {"id": 5, **dict(zip(keys, i[:3], strict=True)), "timestamp": stamp(i[3])} for i in items
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


TEXTS = {
    "integers.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}'),
    "times.nq": as_quads(ITEMS, lambda t: f'"{iso(t)}"^^{DATE_TIME}'),
    "names.nq": as_quads(ITEMS, lambda t: f"<http://ex.org/t/{t}>"),
    "windows.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}', "\r\n"),
    "tabs.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}').replace("> <", ">\t \t<"),
    "tight.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}').replace(" .\n", ".# so\n"),
    "marked.nq": "\ufeff# items\n\n" + as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}'),
    "open.nq": as_quads(ITEMS, lambda t: f'"{t}"^^{INTEGER}').rstrip("\n"),
    "long.csv": as_csv(ITEMS),
    "short.csv": as_csv(ITEMS, "S,P,O,T"),
    "windows.csv": as_csv(ITEMS).replace("\n", "\r\n"),
    "times.csv": as_csv([(*item[:3], iso(item[3])) for item in ITEMS]),
    "plain.tsv": as_tsv(ITEMS),
    "numbers.jsonl": as_json(ITEMS),
    "times.jsonl": as_json(ITEMS, iso),
    "blank.jsonl": as_json(ITEMS).replace("\n", "\r\n\n"),
    "graphs.trig": as_trig(ITEMS),
}


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", TEXTS)
def test_file_of_any_format_yields_its_items(name, compression, size, tmp_path):
    path = tmp_path / (name + compression)
    data = TEXTS[name].encode()
    path.write_bytes(
        gzip.compress(data)
        if compression == ".gz"
        else pa.compress(data, "zstd", asbytes=True)
        if compression
        else data
    )
    items, rejects, chunks = read(path, chunk=size)
    assert (items, rejects) == (ITEMS, [])
    assert max(map(len, chunks)) <= size
    assert read(str(path))[0] == ITEMS


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_yields_its_items_with_times_of_any_unit(unit, zone, tmp_path):
    whole = [(*item[:3], item[3] // 1000 * 1000) for item in ITEMS]
    scale = {"s": 1 / 1000, "ms": 1, "us": 1000, "ns": 1_000_000}[unit]
    stamps = pa.array([int(t * scale) for *_, t in whole]).cast(pa.timestamp(unit, zone))
    path = tmp_path / "x.parquet"
    parquet.write_table(table(whole).set_column(3, "timestamp", stamps), path)
    assert read(path)[:2] == (whole, [])
    assert read(path, chunk=2)[0] == whole
    with path.open("rb") as file:
        assert read(file)[0] == whole


def polars() -> Any:
    """Return the library, which the package does not need."""
    return pytest.importorskip("polars", reason="polars comes with the test extra")


def test_frame_with_unsupported_columns_is_an_error():
    row = [*(rdflib.URIRef("urn:a"),) * 3, 5]
    names = (list("sppt"), [0, 1, 2, 3], pandas.MultiIndex.from_tuples([("a", n) for n in "spot"]))
    for columns in names:
        with pytest.raises(SourceError):
            read(pandas.DataFrame([row], columns=columns))
    own = pandas.DataFrame([[*row, row[0]]], columns=[*"spot", "self"])
    assert len(read(own)[0]) == 1


@pytest.mark.parametrize(
    "make",
    [
        table,
        lambda items: table(items).to_batches()[0],
        lambda items: table(items).to_reader(),
        lambda items: table(items).to_pandas(),
        lambda items: polars().from_arrow(table(items)),
        lambda items: pandas.DataFrame(items, columns=list("spot")).astype({"p": "category"}),
        lambda items: pandas.DataFrame(
            [(*(to_rdflib(parse_term(text)) for text in texts), t) for *texts, t in items],
            columns=list("spot"),
        ),
    ],
)
def test_table_of_any_library_yields_its_items(make):
    assert read(make(ITEMS))[:2] == (ITEMS, [])
    assert read(make(ITEMS), chunk=2)[0] == ITEMS


def rdflib_term(text: str) -> Any:
    return rdflib.util.from_n3(text) if not text.startswith("_") else rdflib.BNode(text[2:])


OURS = [
    (IRI("http://ex.org/a"), IRI("http://ex.org/p"), Literal("x y")),
    (BlankNode("b0"), IRI("http://ex.org/p"), Literal("01", IRI(XSD + "integer"))),
]
THEIRS = [
    (rdflib.URIRef("http://ex.org/a"), rdflib.URIRef("http://ex.org/p"), rdflib.Literal("x y")),
    (
        rdflib.BNode("b0"),
        rdflib.URIRef("http://ex.org/p"),
        rdflib.Literal("01", datatype=XSD + "integer", normalize=False),
    ),
]
OXIGRAPHS = [
    (
        pyoxigraph.NamedNode("http://ex.org/a"),
        pyoxigraph.NamedNode("http://ex.org/p"),
        pyoxigraph.Literal("x y"),
    ),
    (
        pyoxigraph.BlankNode("b0"),
        pyoxigraph.NamedNode("http://ex.org/p"),
        pyoxigraph.Literal("01", datatype=pyoxigraph.NamedNode(XSD + "integer")),
    ),
]
WRITTEN = [tuple(map(str, triple)) for triple in OURS]


@pytest.mark.parametrize("triples", [OURS, THEIRS, OXIGRAPHS, WRITTEN, [OURS[0], THEIRS[1]]])
@pytest.mark.parametrize("kind", [list, iter, tuple])
@pytest.mark.parametrize(
    "form",
    [
        lambda s, p, o: (s, p, o, 5),
        lambda s, p, o: [s, p, o, 5],
        lambda s, p, o: ((s, p, o), 5),
        lambda s, p, o: ((s, p, o), 2, 5),
    ],
)
def test_items_in_memory_have_any_form_and_terms_of_any_library(triples, kind, form):
    items, rejects, chunks = read(kind([form(*triple) for triple in triples]))
    assert items == [(*triple, 5) for triple in WRITTEN]
    assert rejects == []
    start = 2 if len(form(1, 2, 3)) == 3 else 5
    assert [t for chunk in chunks for t in chunk.start.tolist()] == [start, start]


def test_items_of_several_forms_may_be_mixed():
    a, p, b = "<a>", "<p>", "<b>"
    items = [(a, p, b, 1), ((a, p, b), 2), ((a, p, b), 0, 3), "abcd", (a, p), 7, [a, p, b, 4]]
    read_items, rejects, (chunk,) = read(items)
    assert [t for *_, t in read_items] == [1, 2, 3, 4]
    assert chunk.start.tolist() == [1, 2, 0, 4]
    assert [(r.position, r.item) for r in rejects] == [(4, "abcd"), (5, (a, p)), (6, 7)]


def test_columns_of_any_text_type_are_read(tmp_path):
    rows = table([("<a>", "<p>", '"l"', 5)] * 2)
    kinds = [pa.large_string(), pa.binary(), pa.large_binary()]
    if int(pa.__version__.partition(".")[0]) >= 20:  # earlier ones cannot cast to views
        kinds.append(pa.string_view())
    for kind in kinds:
        columns = [rows[name].combine_chunks().cast(kind) for name in "spo"]
        assert read(pa.table([*columns, rows["t"]], list("spot")))[0] == rows_of(rows)
    wrong = pa.array([b"<a>", b"\xff", None])
    bad = pa.table({"s": wrong, "p": ["<p>"] * 3, "o": ["<b>"] * 3, "t": [1, 2, 3]})
    for source in (bad, bad.set_column(0, "s", wrong.dictionary_encode())):
        assert [r.position for r in read(source)[1]] == [2, 3]
    parquet.write_table(bad, tmp_path / "x.parquet")
    assert [r.position for r in read(tmp_path / "x.parquet")[1]] == [2, 3]


def test_column_of_categories_is_read():
    rows = table([("<a>", "<p>", '"l"', 5)] * 2)
    column = polars().col("p").cast(polars().Categorical)
    assert read(polars().from_arrow(rows).with_columns(column))[0] == rows_of(rows)


def rows_of(rows: pa.Table) -> list[Item]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_events_in_columns_have_a_start_and_an_end():
    events = pa.table({"s": ["<a>"] * 3, "p": ["<p>"] * 3, "o": ["<b>"] * 3})
    events = events.append_column("start", [[1, 5, 9]]).append_column("end", [[4, 5, 7]])
    _, rejects, (chunk,) = read(events)
    assert (chunk.start.tolist(), chunk.end.tolist()) == ([1, 5], [4, 5])
    assert reasons_of(rejects) == [(3, "the event ends before it starts")]


def test_format_of_standard_input_is_detected_from_its_first_line(monkeypatch):
    for name in ("integers.nq", "long.csv", "plain.tsv", "numbers.jsonl"):
        raw = io.BytesIO(TEXTS[name].encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(raw)))
        assert read("-")[:2] == (ITEMS, [])
        assert read(io.StringIO(TEXTS[name]))[0] == ITEMS
        assert read(io.BytesIO(TEXTS[name].encode()))[0] == ITEMS


def test_pipe_is_read_as_data_arrives():
    """What has been written is yielded before the other side has closed."""

    class Pipe(io.RawIOBase):
        parts = TEXTS["integers.nq"].encode().splitlines(keepends=True)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            part = self.parts.pop(0) if self.parts else b""
            buffer[: len(part)] = part
            return len(part)

    first = next(read_stream(Pipe(), "in", TermDictionary()))
    assert len(first) == 1
    assert len(Pipe.parts) == len(ITEMS) - 1


# -- wanted predicates -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["integers.nq", "long.csv", "numbers.jsonl", "graphs.trig", ""])
def test_unwanted_items_are_prefiltered_and_still_advance_the_watermark(name, tmp_path):
    (tmp_path / (name or "x")).write_text(TEXTS[name or "long.csv"], "utf-8")
    terms = TermDictionary()
    wanted = Wanted(frozenset([terms.id_of(IRI("http://ex.org/p"))]))
    source = tmp_path / name if name else ITEMS
    (chunk,) = read_stream(source, "in", terms, wanted=wanted)
    assert (len(chunk), chunk.prefiltered, chunk.items) == (4, 2, 6)
    assert (chunk.seen, chunk.least) == (ITEMS[-1][3], ITEMS[0][3])
    assert chunk.end.tolist() == [t for _, p, _, t in ITEMS if p.endswith("p>")]
    assert f'"7"^^{INTEGER}' not in terms.texts(chunk.o).to_pylist()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["<a>", "_:b", '"l"', "nonsense", None, ""]),
            st.sampled_from(["<p>", "<q>", "_:p", '"p"', None, "p"]),
            st.sampled_from(["<a>", "_:b", '"l"', "nonsense", None]),
            st.sampled_from([0, 5, -1, None, "x", "2020-01-01", float("nan"), 2**70, True, 1.5]),
        )
    ),
    st.integers(1, 9),
    st.booleans(),
)
def test_all_items_are_accounted_for(items, size, all_wanted):
    terms = TermDictionary()
    p = terms.id_of(IRI("p"))
    wanted = None if all_wanted else Wanted(frozenset([p]))
    rows = prefiltered = 0
    rejected = []
    for chunk in read_stream(items, "in", terms, wanted=wanted, chunk=size):
        rows, prefiltered = rows + len(chunk), prefiltered + chunk.prefiltered
        rejected += [r.position for r in chunk.rejects]
        assert all(r.item is items[r.position - 1] for r in chunk.rejects)
    assert rows + prefiltered + len(rejected) == len(items)
    timed = [
        k
        for k, item in enumerate(items, 1)
        if item[3] in (0, 5, "2020-01-01") and item[3] is not True
    ]
    timed = [k for k in timed if items[k - 1][3] is not False]
    good = [
        k
        for k in timed
        if items[k - 1][0] in ("<a>", "_:b")
        and items[k - 1][1] in ("<p>", "<q>")
        and items[k - 1][2] in ("<a>", "_:b", '"l"', "nonsense")
    ]
    unwanted = [k for k in timed if items[k - 1][1] == "<q>" and not all_wanted]
    assert prefiltered == len(unwanted)
    assert rows == len(set(good) - set(unwanted))
    assert rejected == sorted(set(range(1, len(items) + 1)) - set(good) - set(unwanted))


# -- graphs ------------------------------------------------------------------------------------------

GRAPH = {
    "x.nt": '<http://a> <http://p> "x y" .\n_:b <http://p> <http://a>.\n# end\n',
    "x.ttl": '<http://a> <http://p> "x y" . _:b <http://p> <http://a> .',
    "x.nq": '<http://a> <http://p> "x y" .\n_:b <http://p> <http://a> .\n',
    "x.csv": 's,p,o\n<http://a>,<http://p>,"""x y"""\n_:b,<http://p>,<http://a>\n',
    "x.jsonl": '{"s": "<http://a>", "p": "<http://p>", "o": "\\"x y\\""}\n'
    '{"s": "_:b", "p": "<http://p>", "o": "<http://a>"}\n',
    "x.jsonld": '[{"@id": "http://a", "http://p": "x y"}, {"@id": "_:b", "http://p": {"@id": "http://a"}}]',
    "x.rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:h="http://">'
    '<rdf:Description rdf:about="http://a"><h:p>x y</h:p></rdf:Description>'
    '<rdf:Description rdf:nodeID="b"><h:p rdf:resource="http://a"/></rdf:Description></rdf:RDF>',
}


def triples(batch: Any, terms: TermDictionary) -> Iterator[tuple[str, ...]]:
    columns = (terms.texts(batch.columns[name]).to_pylist() for name in TRIPLE)
    return zip(*columns, strict=True)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", GRAPH)
def test_graph_of_any_format_yields_its_triples(name, compressed, tmp_path):
    data = GRAPH[name].encode()
    path = tmp_path / (name + ".gz" * compressed)
    path.write_bytes(gzip.compress(data) if compressed else data)
    terms = TermDictionary()
    batch, rejects = read_graph(path, "g", terms)
    rows = {tuple("_:" if t.startswith("_:") else t for t in row) for row in triples(batch, terms)}
    assert rows == {("<http://a>", "<http://p>", '"x y"'), ("_:", "<http://p>", "<http://a>")}
    assert rejects == []
    assert set(batch.start) == {0}
    assert set(batch.end) == {INFINITY}


@pytest.mark.parametrize(
    "source",
    [
        rdflib.Graph().parse(data=GRAPH["x.nt"], format="nt"),
        WRITTEN * 2,
        iter(THEIRS),
        table([(*triple, 0) for triple in WRITTEN]),
        pandas.DataFrame(WRITTEN, columns=["subject", "predicate", "object"]),
    ],
    ids=lambda source: type(source).__name__,
)
def test_graph_in_memory_yields_each_triple_once(source):
    batch, rejects = read_graph(source, "g", TermDictionary())
    assert (len(batch), rejects) == (2, [])


def test_invalid_triple_of_a_graph_is_rejected():
    bad = [("<a>", "<p>"), '<a> <p> "x" .', ('"a"', "<p>", "<b>"), ("<a>", "_:p", "<b>"), 7]
    batch, rejects = read_graph([*WRITTEN, *bad], "g", TermDictionary())
    assert len(batch) == 2
    assert [r.position for r in rejects] == [3, 4, 5, 6, 7]
    with pytest.raises(SourceError, match="g, item 1: not a triple"):
        read_graph(bad, "g", TermDictionary(), strict=True)


def test_statements_of_named_graphs_are_rejected_in_a_static_graph(tmp_path):
    (tmp_path / "x.nq").write_text(GRAPH["x.nq"] + "<http://a> <http://p> <http://b> <http://g> .")
    batch, rejects = read_graph(tmp_path / "x.nq", "g", TermDictionary())
    assert len(batch) == 2
    assert "in a named graph" in rejects[0].reason
    assert read_graph(rdflib.Graph(), "g", TermDictionary())[1] == []
