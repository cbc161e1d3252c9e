"""Bad input is rejected, with its position and a reason, and the input around it is read."""

from __future__ import annotations

import gzip
import io
import random
import re
import sys
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from support.sources import DATE_TIME, ITEMS, as_trig, lines, named, read, reasons_of, table

import streamsparql
from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources import quads, read_graph, read_stream
from streamsparql.sources.clock import interleave
from streamsparql.sources.disorder import Sorter

GOOD = b'<a> <p> "x y" <http://ex.org/t/5> .'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"rubbish", "not a line of N-Quads"),
        (b"<a> <p> <b> .", "missing timestamp"),
        (b'<a> <p> "x y" .', "timestamp"),
        (b"<a> <p> <b> <http://ex.org/g> .", "not a valid timestamp: '<http://ex.org/g>'"),
        (b'<a> <p> <b> "5"^^<http://www.w3.org/2001/XMLSchema#int', "not a line of N-Quads"),
        (b'"a" <p> <b> <http://ex.org/t/5> .', "the subject is a literal"),
        (b'<a> "p" <b> <http://ex.org/t/5> .', "the predicate is not an IRI"),
        (b"<a> _:p <b> <http://ex.org/t/5> .", "the predicate is not an IRI"),
        (b"<a> <p> b <http://ex.org/t/5> .", "the object is not an RDF term"),
        (b'<a> <p> "\xe9" <http://ex.org/t/5> .', "the line is not UTF-8"),
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_bad_line_of_quads_is_rejected_and_the_others_are_read(line, reason, size):
    items, rejects, _ = read(lines(GOOD, b"# comment", line, b"", GOOD), chunk=size)
    assert items == [("<a>", "<p>", '"x y"', 5)] * 2
    ((position, why),) = reasons_of(rejects)
    assert position == 3
    assert reason in why
    with pytest.raises(SourceError, match="in, line 3: "):
        read(lines(GOOD, b"", line), strict=True)


ODD = [
    *(b"", b"x", b"# c", b"\t", b"<a> <p> . .", GOOD + b" # c", GOOD + b"\r", b" " + GOOD),
    *(GOOD.replace(b"> <", b">  <"), GOOD.replace(b'" <', b'"  <'), GOOD.replace(b" .", b"  .")),
    *(GOOD + b" # the manual .", GOOD + b'# was "y" <http://ex.org/t/6> .', GOOD + b"\t# c ."),
    *(b"#" + GOOD, b"  # " + GOOD),
    *(GOOD.replace(b"> <", b"><"), GOOD.replace(b'> "', b'>  "'), GOOD.replace(b"x y", b"x  \ty")),
]
EMPTY = (b"", b"# c", b"\t", b"#" + GOOD, b"  # " + GOOD)


@given(st.lists(st.sampled_from([GOOD, GOOD, *ODD])), st.integers(1, 3))
def test_quads_do_not_depend_on_the_chunk_size(texts, size):
    whole = read(lines(b"# quads", *texts))
    cut = read(lines(b"# quads", *texts), chunk=size)
    assert cut[:2] == whole[:2]
    assert len(whole[0]) + len(whole[1]) == sum(text not in EMPTY for text in texts)
    assert len(whole[1]) == sum(text in (b"x", b"<a> <p> . .") for text in texts)


def test_quads_are_rejected_in_a_static_graph():
    """Statements of named graphs and items of streams are not part of a static graph."""
    text = """<a> <p> <b> .
<a> <p> "1" "5"^^<http://www.w3.org/2001/XMLSchema#integer> .
<a> <p> <c> <http://ex.org/g> .
<a> <p> "x \\" y" .
<a> <p> "2" <http://ex.org/g> ."""
    terms = TermDictionary()
    for name in ("x.nq", "x.nt"):
        batch, rejects = read_graph(named_bytes(text.encode(), name), "g", terms)
        assert terms.texts(batch.columns[".o"]).to_pylist() == ["<b>", '"x \\" y"']
        quad = "a statement in a named graph cannot be part of a static graph"
        item = "an item of a stream, with a timestamp, cannot be part of a static graph"
        assert reasons_of(rejects) == [(2, item), (3, quad), (5, quad)]


HEADER = b"s,p,o,t"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"<a>,<p>,<b>", "expected 4 columns, as in the header"),
        (b"<a>,<p>,<b>,5,6", "expected 4 columns, as in the header"),
        (b"<a>,<p>,<b>,", "missing timestamp"),
        (b"<a>,<p>,<b>,soon", "not a valid timestamp: 'soon'"),
        (b"<a>,<p>,b,5", "the object is not an RDF term"),
        (b'<a>,<p>,"b",5', "the object is not an RDF term"),
        (b"<a>,<p>,\xe9,5", "the row is not UTF-8"),
        (b"<a>,<p>,<b>,\xe9", "the row is not UTF-8"),
        (b",<p>,<b>,5", "the subject is not an RDF term"),
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_bad_row_of_csv_is_rejected_and_the_others_are_read(row, reason, size):
    good = b'<a>,<p>,"""x, y""",5'
    items, rejects, _ = read(lines(HEADER, good, b"", row, good), chunk=size)
    assert items == [("<a>", "<p>", '"x, y"', 5)] * 2
    ((position, why),) = reasons_of(rejects)
    assert position == 3
    assert reason in why


def test_positions_in_csv_count_rows():
    good = b"<a>,<p>,<b>,5"
    _, rejects, _ = read(lines(HEADER, good, b"x", good, b"", b"<a>,<p>,<b>,y", good, b"z"))
    assert [r.position for r in rejects] == [3, 5, 7]


def test_unclosed_quote_is_rejected_with_its_row():
    items, rejects, _ = read(lines(HEADER, b"<a>,<p>,<b>,5", b'<a>,<p>,"b,6', b"<a>,<p>,<b>,7"))
    assert len(items) == 1
    assert [r.position for r in rejects] == [3]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"rubbish", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>"', "not valid JSON"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>"}', "missing timestamp"),
        (b'{"s": "<a>", "p": "<p>", "o": 5, "t": 5}', "the object is not an RDF term"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": 5.5}', "not a valid timestamp: 5.5"),
        (b'{"s": "<a>", "p": "<p>", "o": "\xe9", "t": 5}', "the line is not UTF-8"),
        (b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": {"x": 1}}', "timestamp"),
    ],
)
def test_bad_line_of_json_is_rejected_and_the_others_are_read(line, reason):
    good = b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": 5}'
    also = b'{"t": "5", "o": "<b>", "p": "<p>", "s": "<a>", "more": [1]}'
    items, rejects, _ = read(lines(good, b"", line, also))
    assert items == [("<a>", "<p>", "<b>", 5)] * 2
    ((position, why),) = reasons_of(rejects)
    assert position == 3
    assert reason in why


@pytest.mark.parametrize("first", ["5", "5.0"])
@pytest.mark.parametrize("size", [1, 100])
def test_first_json_object_determines_the_columns(first, size):
    good = b'{"s": "<a>", "p": "<p>", "o": "<b>", "t": %s}' % first.encode()
    items, rejects, _ = read(lines(good, b'{"s": "<a>", "p": "<p>", "o": "<b>"}', good), chunk=size)
    assert items == [("<a>", "<p>", "<b>", 5)] * 2
    assert (2, "missing timestamp") in reasons_of(rejects)


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
    items, rejects, _ = read(named(text, "x.trig"))
    assert [(o[:2], t) for _, _, o, t in items] == [('"1', 1000), ('"4', 7)]
    reasons = " ".join(why for _, why in reasons_of(rejects))
    assert len(rejects) == 4
    assert "<http://g/2> has no" in reasons
    assert "outside a named graph" in reasons
    assert "already has another timestamp" in reasons
    assert '"soon"' in reasons


def test_bad_statement_of_trig_is_rejected_and_the_others_are_read():
    items, rejects, _ = read(named(as_trig(ITEMS) + "\nrubbish .\n", "x.trig"))
    assert len(items) == len(ITEMS)
    assert "not a statement" in rejects[0].reason


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.zip", b"PK\x03\x04\0\0", r"x\.zip: unknown format; expected nq, "),
        ("x.nq.gz", b"<a> <p> <b> <c/5> .", "cannot be decompressed as gzip"),
        ("x.nq.zst", b"<a> <p> <b> <c/5> .", "cannot be decompressed as Zstandard"),
        ("x.nq.gz", b"", r"x\.nq\.gz is empty; expected gzip"),
        ("x.csv.zst", b"", r"x\.csv\.zst is empty; expected Zstandard"),
        ("x.gz", b"", r"x\.gz is empty; expected gzip"),
        ("x.ttl", b"", r"\.ttl is not a format of streams, whose items have timestamps; use nq"),
        ("x.csv", b"a,b\n1,2\n", "has the columns a, b; expected subject"),
        ("x.csv", b"s,subject,p,o,t\n", "ambiguous columns s and subject: each names the subject"),
        ("x.csv", b"", "is empty; expected a header"),
        ("x.jsonl", b'{"a": 1}\n', "has the columns a; expected subject"),
        ("x.parquet", b"rubbish", "cannot be read as Parquet"),
        ("x.nq", "<a>".encode("utf-16"), "expected UTF-8"),
        ("x.csv", b"\xe9,p,o,t\n", "not UTF-8"),
    ],
)
def test_unreadable_file_is_an_error(name, content, reason, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=reason):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("nowhere.nq", "No such file"),
        (Path(__file__).parent / "nowhere", "No such file"),
        (7, "a int is not a source"),
        ({"s": 1}, "a dict is not a source"),
        (rdflib.Graph(), "an rdflib graph has no timestamps"),
        (pa.table({"s": [1], "p": ["<p>"], "o": ["<o>"], "t": [1]}), "int64; expected terms"),
        (pa.table({"s": [["<a>"]], "p": ["<p>"], "o": ["<o>"], "t": [1]}), "has the type list"),
        (pandas.DataFrame({"s": ["<a>", 5], "p": 1, "o": 1, "t": 1}), "cannot be read as Arrow"),
    ],
)
def test_invalid_source_is_an_error_with_a_reason(source, reason):
    with pytest.raises(SourceError, match=reason):
        read(source)


def test_empty_source_has_no_items():
    for source in ([], iter(()), table([]), io.BytesIO(b"")):
        assert read(source)[:2] == ([], [])


def test_compressed_file_of_nothing_has_no_items(tmp_path):
    for kind, packing in (("gz", gzip.compress), ("zst", zstd)):
        (tmp_path / f"x.nq.{kind}").write_bytes(packing(b""))
        assert read(tmp_path / f"x.nq.{kind}")[:2] == ([], [])


def test_missing_pyoxigraph_is_an_error_with_a_hint(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    (tmp_path / "x.ttl").write_text("")
    with pytest.raises(SourceError, match="pip install pyoxigraph"):
        read_graph(tmp_path / "x.ttl", "g", TermDictionary())
    (tmp_path / "x.nt").write_text("<a> <b> <c> .\n")
    assert len(read_graph(tmp_path / "x.nt", "g", TermDictionary())[0]) == 1


def test_blank_nodes_are_local_to_their_source():
    terms = TermDictionary()
    items = [("_:b", "<p>", "_:b", 1), ("_:b", "<p>", "<x>", 2)]
    (one,) = read_stream(items, "one", terms, scope="s0.")
    (two,) = read_stream(items, "two", terms, scope="s1.")
    assert one.s.tolist() == [one.o[0]] * 2
    assert set(one.s.tolist()).isdisjoint(two.s.tolist())


# -- damaged files ---------------------------------------------------------------------------------

JSON = b'{"s": "<a>", "p": "<p>", "o": "\\"x y\\"", "t": 5}'
CSV_ROW = b'<a>,<p>,"""x y""",5'
FORMS = {"nq": (GOOD, b""), "csv": (CSV_ROW, HEADER + b"\n"), "jsonl": (JSON, b"")}
ITEM = ("<a>", "<p>", '"x y"', 5)


def compressed_as(kind: str, data: bytes) -> bytes:
    return gzip.compress(data, 0) if kind == "gz" else pa.compress(data, "zstd", asbytes=True)


@pytest.mark.parametrize("kind", ["gz", "zst"])
@pytest.mark.parametrize("form", FORMS)
def test_truncated_compressed_file_is_read_up_to_its_end(form, kind, tmp_path):
    line, header = FORMS[form]
    noise = random.Random(1)
    lines = [line.replace(b"x y", noise.randbytes(30).hex().encode()) for _ in range(20_000)]
    data = header + b"\n".join(lines) + b"\n"
    path = tmp_path / f"x.{form}.{kind}"
    whole = compressed_as(kind, data)
    path.write_bytes(whole[: 3 * len(whole) // 4])
    items, rejects, _ = read(path)
    assert len(items) > 10_000
    assert [item[2].strip('"') for item in items] == [text_in(line) for line in lines[: len(items)]]
    (reject,) = rejects
    assert (reject.source, reject.unit) == (str(path), "line")
    assert reject.position == len(items) + 1 + bool(header)
    assert reject.reason.startswith("the file is truncated or damaged: ")
    if reject.item is not None:
        assert lines[len(items)].decode().startswith(reject.item)
    with pytest.raises(SourceError, match=rf"x\.{form}\.{kind}, line \d+: the file is truncated"):
        read(path, strict=True)


def text_in(line: bytes) -> str:
    return max(re.findall(r"[0-9a-f]+", line.decode()), key=len)


def test_gzip_is_read_to_the_last_byte_and_over_all_members(tmp_path):
    path = tmp_path / "x.nq.gz"
    lines = [GOOD.replace(b"x y", b"%d" % k) + b"\n" for k in range(1000)]
    path.write_bytes(gzip.compress(b"".join(lines[:500])) + gzip.compress(b"".join(lines[500:])))
    assert len(read(path)[0]) == 1000
    path.write_bytes(gzip.compress(b"".join(lines) + b"<a> <p>", 0)[:-12])
    items, (reject,), _ = read(path)
    assert (len(items), reject.position) == (1000, 1001)
    assert "<a> <p>".startswith(reject.item or "")


def test_truncated_compressed_graph_is_read_up_to_its_end(tmp_path):
    text = "".join(f"<http://a/{k}> <http://p> {k} .\n" for k in range(5000))
    path = tmp_path / "x.ttl.gz"
    path.write_bytes(gzip.compress(text.encode(), 0)[:100_000])
    batch, (reject,) = read_graph(path, "g", TermDictionary())
    assert len(batch) > 1000
    assert (reject.unit, reject.position) == ("statement", len(batch) + 1)
    assert "the file is truncated" in reject.reason


def test_truncated_compressed_trig_is_read_up_to_its_end(tmp_path):
    path = tmp_path / "x.trig.gz"
    path.write_bytes(gzip.compress(as_trig(ITEMS * 100).encode(), 0)[:50_000])
    items, rejects, _ = read(path)
    assert len(items) > 100
    assert items == (ITEMS * 100)[: len(items)]
    assert "the file is truncated" in rejects[-1].reason
    assert rejects[-1].unit == "statement"


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_truncated_parquet_file_is_an_error(keep, tmp_path):
    path = tmp_path / "x.parquet"
    parquet.write_table(table([ITEM] * 100), path)
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(SourceError, match=r"x\.parquet cannot be read as Parquet"):
        read(path)


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("form", FORMS)
def test_line_ends_may_be_mixed_in_one_file(form, size):
    line, header = FORMS[form]
    ends = [b"\r\n", b"\n", b"\r", b"\r\n", b"\r", b"\n", b"\r\r\n", b""]
    data = header + b"".join(line + end for end in ends)
    items, rejects, _ = read(named_bytes(data, f"x.{form}"), chunk=size)
    assert (items, rejects) == ([ITEM] * 8, [])
    bad = header + b"".join((b"x" if k == 5 else line) + end for k, end in enumerate(ends))
    items, (reject,), _ = read(named_bytes(bad, f"x.{form}"), chunk=size)
    assert (len(items), reject.position) == (7, 6 + bool(header))


def named_bytes(data: bytes, name: str) -> io.BytesIO:
    file = io.BytesIO(data)
    file.name = name
    return file


@pytest.mark.parametrize("form", FORMS)
def test_incomplete_last_line_is_rejected(form):
    line, header = FORMS[form]
    data = header + line + b"\n" + line[:-9]
    items, (reject,), _ = read(named_bytes(data, f"x.{form}"))
    assert items == [ITEM]
    assert str(reject).startswith(f"x.{form}, {'row' if header else 'line'} {2 + bool(header)}: ")


@pytest.mark.parametrize("form", FORMS)
def test_invalid_utf8_rejects_only_its_line(form):
    line, header = FORMS[form]
    latin = line.replace(b"x y", "\u00e9".encode("latin-1"))
    data = header + b"\n".join([line, latin, line])
    items, (reject,), _ = read(named_bytes(data, f"x.{form}"))
    assert items == [ITEM] * 2
    assert reject.reason.endswith("is not UTF-8")
    assert reject.position == 2 + bool(header)
    with pytest.raises(SourceError, match="is UTF-16"):
        read(named_bytes(data.decode("latin-1").encode("utf-16"), f"x.{form}"))


@pytest.mark.parametrize("form", FORMS)
def test_nul_bytes_reject_only_their_line(form):
    line, header = FORMS[form]
    data = header + b"\n".join([line, b"\0" * 10, line])
    items, rejects, _ = read(named_bytes(data, f"x.{form}"))
    assert items == [ITEM] * 2
    assert [r.position for r in rejects] == [2 + bool(header)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 1000])
def test_overlong_line_rejects_only_itself(form, size, monkeypatch):
    line, header = FORMS[form]
    monkeypatch.setattr("streamsparql.sources.lines.LONGEST", 1000)
    data = header + b"\n".join([line, b"x" * 5000, line])
    items, (reject,), _ = read(named_bytes(data, f"x.{form}"), chunk=size)
    assert items == [ITEM] * 2
    assert reject.position == 2 + bool(header)


def test_long_literal_is_read():
    long = GOOD.replace(b"x y", b"x" * 3_000_000)
    items, rejects, _ = read(lines(GOOD, long, GOOD), chunk=10)
    assert ([len(item[2]) for item in items], rejects) == ([5, 3_000_002, 5], [])


def test_rejects_name_their_file_as_the_caller_wrote_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wind.nq").write_bytes(GOOD + b'\n"a" <p> <b> <c/5> .\n')
    (reject,) = read("wind.nq")[1]
    assert str(reject) == ("wind.nq, line 2: the subject is a literal: '\"a\" <p> <b> <c/5> .'")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<rubbish>\n" + GOOD)))
    (reject,) = read("-")[1]
    assert reject.source == "standard input"
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE 5 MS SLIDE { ?s ?p ?o }")
    (tmp_path / "late.nq").write_bytes(b"\n".join(GOOD.replace(b"5", t) for t in (b"9", b"7")))
    assert [str(r) for r in query.run("late.nq").late] == [
        "late.nq, line 2: late by 2 ms: '<a> <p> \"x y\" <http://ex.org/t/7> .'"
    ]
    assert str(read([("<a>", "<p>", "<b", 1)])[1][0]).startswith("in, item 1: ")
    assert str(read(table([("<a>", "<p>", "b", 1)]))[1][0]).startswith("in, row 1: ")


def test_times_beyond_python_are_rejected_with_their_number():
    """Microseconds read as milliseconds, nanoseconds, an unknown time zone."""
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MS SLIDE { ?s ?p ?o }")
    for kind, far in (("ms", 1_772_352_000_000_000), ("ns", 2_000_000_001)):
        stamps = pa.array(
            [5_000_000_000, far, 1_000_000_000] if kind == "ns" else [1000, 2000, far, 3000]
        )
        items = len(stamps)
        table = pa.table(
            {
                **{name: [f"<{name}>"] * items for name in "sp"},
                "o": [f'"{k}"' for k in range(items)],
                "t": stamps.cast(pa.timestamp(kind, "Mars/Olympus")),
            }
        )
        result = query.run(table)
        assert len(list(result)) < items
        rejects = [*result.late, *result.rejected]
        assert all(reject.item[3] in stamps.to_pylist() for reject in rejects)
        assert rejects


def test_duplicate_column_is_an_error(tmp_path):
    row = [pa.array([text]) for text in ("<a>", "<p>", "<b>", "5", "<c>")]
    table = pa.Table.from_arrays(row, ["s", "p", "o", "t", "o"])
    parquet.write_table(table, tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("s,p,o,t,o\n<a>,<p>,<b>,5,<c>\n")
    for source in (tmp_path / "x.parquet", tmp_path / "x.csv", table):
        with pytest.raises(SourceError, match="ambiguous columns o and o"):
            read(source)


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_row_truncated_within_a_character_is_one_reject(tmp_path, kind, capfd):
    mark = b"," if kind == "csv" else b"\t"
    rows = [
        b"s,p,o,t",
        b"<a>,<p>,<b>,1",
        b"<a>,<p>,\xff",
        b"<a>,<p>,<caf\xc3\xa9>,5",
        b"<a>,<p>,<caf\xc3",
    ]
    path = tmp_path / f"x.{kind}"
    path.write_bytes(b"\n".join(rows).replace(b",", mark))
    items, rejects, _ = read(path)
    assert [(o, t) for *_, o, t in items] == [("<b>", 1), ("<café>", 5)]
    assert [reject.position for reject in rejects] == [3, 5]
    assert rejects[0].item.endswith("\\xff")
    assert capfd.readouterr() == ("", "")


def zstd(data: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as file:
        file.write(data)
    return bytes(out.getvalue())


@pytest.mark.parametrize("count", [50, 20_000])
@pytest.mark.parametrize(
    "damage",
    [
        ("x.nq.gz", lambda data: gzip.compress(data)[:-8] + b"another checksum"[:8]),
        ("x.nq.gz", lambda data: gzip.compress(data) + b"garbage"),
        ("x.nq.zst", lambda data: zstd(data) + b"garbage"),
    ],
    ids=["checksum", "after gzip", "after zstd"],
)
def test_damaged_compressed_file_is_read_up_to_the_damage(tmp_path, count, damage):
    name, compress = damage
    (tmp_path / name).write_bytes(compress(b'<a> <p> "x" <t/1> .\n' * count))
    items, (reject,), _ = read(tmp_path / name)
    assert (len(items), reject.position) == (count, count + 1)
    assert reject.reason.startswith("the file is truncated or damaged: ")


class Dripping(io.RawIOBase):
    """A file that arrives in small pieces."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__()
        self._data, self._size = io.BytesIO(data), size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        data = self._data.read(min(self._size, len(buffer)))
        buffer[: len(data)] = data
        return len(data)


def _as_parquet() -> bytes:
    out = io.BytesIO()
    row = dict(zip("spot", (["<u:a>"], ["<u:p>"], ["<u:b>"], [5]), strict=True))
    parquet.write_table(pa.table(row), out)
    return out.getvalue()


NAMELESS = {
    "nq": lambda: b"<u:a> <u:p> <u:b> <t/5> .",
    "jsonl": lambda: b'\n\n{"s": "<u:a>", "p": "<u:p>", "o": "<u:b>", "t": 5}\n',
    "csv": lambda: b"s,p,o,t\n<u:a>,<u:p>,<u:b>,5",
    "tsv": lambda: b"s\tp\to\tt\n<u:a>\t<u:p>\t<u:b>\t5\n",
    "trig": lambda: (
        b"PREFIX prov: <http://www.w3.org/ns/prov#>\n<u:g> prov:generatedAtTime 5 . <u:g> { <u:a> <u:p> <u:b> }"
    ),
    "parquet": _as_parquet,
    "with a mark": lambda: b"\xef\xbb\xbf<u:a> <u:p> <u:b> <t/5> .\n",
}


@pytest.mark.parametrize("size", [1, 3, 10_000])
@pytest.mark.parametrize("packing", [bytes, gzip.compress, zstd])
@pytest.mark.parametrize("kind", NAMELESS)
def test_format_of_a_nameless_file_is_detected(kind, packing, size):
    items, rejects, _ = read(Dripping(packing(NAMELESS[kind]()), size))
    assert (items, rejects) == ([("<u:a>", "<u:p>", "<u:b>", 5)], [])


def test_format_of_a_nameless_graph_is_detected():
    text = b"@prefix : <http://e/> .\n:a :p :b, :c ."
    for size in (1, 100):
        batch, rejects = read_graph(Dripping(text, size), "g", TermDictionary())
        assert (len(batch), rejects) == (2, [])


# -- streams of nothing but rejects, or of nothing -------------------------------------------------

BAD_LINES = {"nq": b"x\n", "csv": b"x\n", "tsv": b"x\n", "jsonl": b"x\n"}
BAD_LINES |= {f"{kind} not UTF-8": b"\xff\n" for kind in ("nq", "csv", "tsv", "jsonl")}
BAD_LINES |= {f"{kind} late": b"" for kind in ("nq", "csv", "jsonl")}


def all_rejected(form: str, count: int) -> io.BytesIO:
    kind, _, sort = form.partition(" ")
    line, header = FORMS.get(kind, (b"", b"s\tp\to\tt\n"))
    if sort == "late":
        data = line.replace(b"5", b"9") + b"\n" + (line + b"\n") * count
    else:
        data = line + b"\n" * bool(line) + BAD_LINES[form] * count
    return named_bytes(header + data, f"x.{kind}")


@pytest.mark.parametrize("form", BAD_LINES)
def test_memory_is_flat_over_a_stream_of_nothing_but_rejects(form):
    """However short the lines are, a chunk has few rejects; and each can be drained at once."""
    size, peaks = 50, []
    for count in (4000, 12_000):
        sorters, drained, most, objects = {"s": Sorter("s")}, 0, 0, 0
        chunks = read_stream(all_rejected(form, count), "s", TermDictionary(), chunk=size)
        before = sys.getallocatedblocks()
        for _ in interleave({"s": chunks}, sorters):
            objects = max(objects, sys.getallocatedblocks() - before)
            rejects = sorters["s"].drain()
            drained, most = drained + len(rejects), max(most, len(rejects))
        peaks.append(objects)
        assert drained == count
        assert most <= 3 * size
    assert peaks[1] < 1.5 * peaks[0] + 1000


def test_empty_lines_of_quads_are_not_parsed_one_by_one(monkeypatch):
    parsed = []
    monkeypatch.setattr(quads, "_parsed", lambda lines, *_: parsed.append(lines))
    items, rejects, chunks = read(lines(GOOD, *[b""] * 100_000, GOOD, *[b"\r"] * 1000, GOOD, b"\n"))
    assert (len(items), rejects, parsed) == (3, [], [])
    assert [k for chunk in chunks for k in chunk.positions.tolist()] == [1, 100_002, 101_003]


# -- entities of RDF/XML ---------------------------------------------------------------------------

RDF_XML = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ {} <!ENTITY e "http://e/?a&amp;b=" > ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<rdf:Description rdf:about="&e;1"><e:p>{}</e:p></rdf:Description></rdf:RDF>
"""


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_entities_for_namespaces_are_replaced(size):
    data = RDF_XML.format('<!ENTITY x "http://x/" >', "&x;").encode()
    terms = TermDictionary()
    file = io.BufferedReader(Dripping(data, size))
    file.raw.name = "x.rdf"
    batch, rejects = read_graph(file, "g", terms)
    assert rejects == []
    assert terms.texts(batch.columns[".s"]).to_pylist() == ["<http://e/?a&b=1>"]
    assert terms.texts(batch.columns[".o"]).to_pylist() == ['"http://x/"']


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ('<!ENTITY x "&e;&e;">', "x.rdf: the entity x refers to other entities"),
        ('<!ENTITY % x "&e;&e;">', "x.rdf: the entity x refers to other entities"),
        (f'<!ENTITY x "{"a" * 600}">', "entity x is longer than 512 bytes"),
        ('<!ENTITY x "a">' + " " * 600 + '<!ENTITY y "a">', "entity x is longer than 512 bytes"),
    ],
)
def test_entities_that_multiply_are_an_error(declared, reason, size):
    file = io.BufferedReader(Dripping(RDF_XML.format(declared, "&x;").encode(), size))
    file.raw.name = "x.rdf"
    with pytest.raises(SourceError, match=reason):
        read_graph(file, "g", TermDictionary())


# -- deep nesting ----------------------------------------------------------------------------------


def nested(kind: str, depth: int) -> bytes:
    if kind == "jsonld":
        start, end = b'{"@id": "u:a", "u:q": "{[\\\\\\"{", "u:p": ', b"}"
        return start * (depth - 1) + b'{"@id": "u:x"}' + end * (depth - 1)
    term = b"<u:a> <u:p> " + b"<<( <u:a#b> <u:p> # )>>\n" * depth + b"<u:o>" + b")>>" * depth
    return term + b" .\n" + b'<u:a> <u:p> <<( <u:a> <u:p> "<<(" )>>, ":-<<(" .\n' * 300


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("kind", ["jsonld", "ttl"])
def test_deep_nesting_is_an_error_before_it_crashes_the_parser(kind, size):
    for depth in (100, 1000) if size > 1 else (100,):
        file = io.BufferedReader(Dripping(nested(kind, depth), size), max(size, 2))
        file.raw.name = f"x.{kind}"
        if depth > 500:
            with pytest.raises(SourceError, match=rf"x\.{kind}: more than 500 levels of nesting"):
                read_graph(file, "g", TermDictionary())
        else:
            assert len(read_graph(file, "g", TermDictionary())[0]) >= 1
