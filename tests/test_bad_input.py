"""Bad input is rejected, with its place and a reason, and what is around it is read."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pandas
import pyarrow as pa
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from sources import (
    DATE_TIME,
    ITEMS,
    as_trig,
    lines,
    named,
    read,
    table,
    told,
)

from streamsparql.errors import SourceError
from streamsparql.physical.terms import TermDictionary
from streamsparql.sources import read_graph, read_stream

GOOD = b'<a> <p> "x y" <http://ex.org/t/5> .'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"rubbish", "this is no line of N-Quads"),
        (b"<a> <p> <b> .", "there is no timestamp"),
        (b'<a> <p> "x y" .', "timestamp"),
        (b"<a> <p> <b> <http://ex.org/g> .", "<http://ex.org/g> is no timestamp"),
        (b'<a> <p> <b> "5"^^<http://www.w3.org/2001/XMLSchema#int', "this is no line of N-Quads"),
        (b'"a" <p> <b> <http://ex.org/t/5> .', "the subject is a literal"),
        (b'<a> "p" <b> <http://ex.org/t/5> .', "the predicate is no IRI"),
        (b"<a> _:p <b> <http://ex.org/t/5> .", "the predicate is no IRI"),
        (b"<a> <p> b <http://ex.org/t/5> .", "the object is no RDF term"),
        (b'<a> <p> "\xe9" <http://ex.org/t/5> .', "the line is not UTF-8"),
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_a_bad_line_of_quads_is_rejected_and_the_others_are_read(line, reason, size):
    found, rejects, _ = read(lines(GOOD, b"# comment", line, b"", GOOD), chunk=size)
    assert found == [("<a>", "<p>", '"x y"', 5)] * 2
    ((position, why),) = told(rejects)
    assert position == 3
    assert reason in why
    with pytest.raises(SourceError, match="in, 3: "):
        read(lines(GOOD, b"", line), strict=True)


ODD = [
    *(b"", b"x", b"# c", b"\t", b"<a> <p> . .", GOOD + b" # c", GOOD + b"\r", b" " + GOOD),
    *(GOOD.replace(b"> <", b">  <"), GOOD.replace(b'" <', b'"  <'), GOOD.replace(b" .", b"  .")),
    *(GOOD.replace(b"> <", b"><"), GOOD.replace(b'> "', b'>  "'), GOOD.replace(b"x y", b"x  \ty")),
]
NOTHING = (b"", b"# c", b"\t")


@given(st.lists(st.sampled_from([GOOD, GOOD, *ODD])), st.integers(1, 3))
def test_quads_are_read_the_same_in_any_cut(texts, size):
    whole = read(lines(b"# quads", *texts))
    cut = read(lines(b"# quads", *texts), chunk=size)
    assert cut[:2] == whole[:2]
    assert len(whole[0]) + len(whole[1]) == sum(text not in NOTHING for text in texts)
    assert len(whole[1]) == sum(text in (b"x", b"<a> <p> . .") for text in texts)


HEADER = b"s,p,o,t"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"<a>,<p>,<b>", "the header has 4 columns"),
        (b"<a>,<p>,<b>,5,6", "the header has 4 columns"),
        (b"<a>,<p>,<b>,", "there is no timestamp"),
        (b"<a>,<p>,<b>,soon", "soon is no timestamp"),
        (b"<a>,<p>,b,5", "the object is no RDF term"),
        (b'<a>,<p>,"b",5', "the object is no RDF term"),
        (b"<a>,<p>,\xe9,5", "the object is no RDF term"),
        (b",<p>,<b>,5", "the subject is no RDF term"),
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_a_bad_row_of_csv_is_rejected_and_the_others_are_read(row, reason, size):
    good = b'<a>,<p>,"""x, y""",5'
    found, rejects, _ = read(lines(HEADER, good, b"", row, good), chunk=size)
    assert found == [("<a>", "<p>", '"x, y"', 5)] * 2
    ((position, why),) = told(rejects)
    assert position == 3
    assert reason in why


def test_positions_in_csv_are_rows():
    good = b"<a>,<p>,<b>,5"
    _, rejects, _ = read(lines(HEADER, good, b"x", good, b"", b"<a>,<p>,<b>,y", good, b"z"))
    assert [r.position for r in rejects] == [3, 5, 7]


def test_a_quote_that_is_never_closed_loses_nothing():
    found, rejects, _ = read(lines(HEADER, b"<a>,<p>,<b>,5", b'<a>,<p>,"b,6', b"<a>,<p>,<b>,7"))
    assert len(found) == 1
    assert [r.position for r in rejects] == [3]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"rubbish", "this is no JSON"),
        (b"[1]", "this is no JSON object"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>"', "this is no JSON"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>"}', "there is no timestamp"),
        (b'{"s": "<a>", "p": "<p>", "o": 5, "t": 5}', "the object is no RDF term"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": 5.5}', "5.5 is no timestamp"),
        (b'{"s": "<a>", "p": "<p>", "o": "\xe9", "t": 5}', "the line is not UTF-8"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": {"x": 1}}', "timestamp"),
    ],
)
def test_a_bad_line_of_json_is_rejected_and_the_others_are_read(line, reason):
    good = b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": 5}'
    also = b'{"t": "5", "o": "<b>", "p": "<p>", "s": "<a>", "more": [1]}'
    found, rejects, _ = read(lines(good, b"", line, also))
    assert found == [("<a>", "<p>", "<b>", 5)] * 2
    ((position, why),) = told(rejects)
    assert position == 3
    assert reason in why


def test_graphs_without_a_stamp_and_statements_without_a_graph_are_rejected():
    at = "<http://www.w3.org/ns/prov#generatedAtTime>"
    text = f"""
        <http://g/1> {{ <http://a> <http://p> 1 . <http://g/1> {at} "1970-01-01T00:00:01Z"^^{DATE_TIME} }}
        <http://g/2> {{ <http://a> <http://p> 2 }}
        <http://a> <http://p> 3 .
        <http://g/3> {at} 7 .
        <http://g/3> {at} 8 .
        <http://g/3> {{ <http://a> <http://p> 4 }}
        <http://g/4> {at} "soon" .
    """
    found, rejects, _ = read(named(text, "x.trig"))
    assert [(o[:2], t) for _, _, o, t in found] == [('"1', 1000), ('"4', 7)]
    reasons = " ".join(why for _, why in told(rejects))
    assert len(rejects) == 4
    assert "<http://g/2> has no" in reasons
    assert "in no graph" in reasons
    assert "another timestamp already" in reasons
    assert '"soon"' in reasons


def test_a_bad_statement_of_trig_is_rejected_and_the_others_are_read():
    found, rejects, _ = read(named(as_trig(ITEMS) + "\nrubbish .\n", "x.trig"))
    assert len(found) == len(ITEMS)
    assert "this is no statement" in rejects[0].reason


@pytest.mark.parametrize("packed", [".gz", ".zst"])
def test_a_file_that_is_cut_off_is_an_error_that_says_so(packed, tmp_path):
    data = (GOOD + b"\n") * 10_000
    whole = gzip.compress(data) if packed == ".gz" else pa.compress(data, "zstd", asbytes=True)
    path = tmp_path / f"x.nq{packed}"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"in, after line \d+: Truncated"):
        read(path)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.zip", b"", r"\.zip is no format of a stream"),
        ("x.ttl", b"", r"\.ttl is no format of a stream, whose items have timestamps"),
        ("x.csv", b"a,b\n1,2\n", "has the columns a, b: give subject"),
        ("x.csv", b"s,subject,p,o,t\n", "two columns for one"),
        ("x.csv", b"", "the first row names the columns"),
        ("x.jsonl", b'{"a": 1}\n', "has the columns a: give subject"),
        ("x.parquet", b"rubbish", "no Parquet file"),
        ("x.nq", "<a>".encode("utf-16"), "must be UTF-8"),
        ("x.csv", b"\xe9,p,o,t\n", "not UTF-8"),
    ],
)
def test_a_file_that_is_none_is_an_error(name, content, reason, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=reason):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("nowhere.nq", "No such file"),
        (Path(__file__).parent, "directory"),
        (7, "a int is no source"),
        ({"s": 1}, "a dict is no source"),
        (rdflib.Graph(), "an rdflib graph has no timestamps"),
        (pa.table({"s": [1], "p": ["<p>"], "o": ["<o>"], "t": [1]}), "holds int64, not terms"),
        (pa.table({"s": [["<a>"]], "p": ["<p>"], "o": ["<o>"], "t": [1]}), "holds list"),
        (pandas.DataFrame({"s": ["<a>", 5], "p": 1, "o": 1, "t": 1}), "cannot be read as Arrow"),
    ],
)
def test_what_is_no_source_is_an_error_that_says_what_is(source, reason):
    with pytest.raises(SourceError, match=reason):
        read(source)


def test_an_empty_source_has_no_items():
    for source in ([], iter(()), table([]), io.BytesIO(b"")):
        assert read(source)[:2] == ([], [])


def test_files_need_pyoxigraph_and_say_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    (tmp_path / "x.ttl").write_text("")
    with pytest.raises(SourceError, match=r"pip install streamsparql\[files\]"):
        read_graph(tmp_path / "x.ttl", "g", TermDictionary())
    (tmp_path / "x.nt").write_text("<a> <b> <c> .\n")
    assert len(read_graph(tmp_path / "x.nt", "g", TermDictionary())[0]) == 1


def test_blank_nodes_are_those_of_their_source():
    terms = TermDictionary()
    items = [("_:b", "<p>", "_:b", 1), ("_:b", "<p>", "<x>", 2)]
    (one,) = read_stream(items, "one", terms, scope="s0.")
    (two,) = read_stream(items, "two", terms, scope="s1.")
    assert one.s.tolist() == [one.o[0]] * 2
    assert set(one.s.tolist()).isdisjoint(two.s.tolist())
