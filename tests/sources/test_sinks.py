"""Sinks: the written file has the content of the rows, whatever the terms are."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from support.term_rows import ROWS, TermRow, plain_text, table

import streamsparql
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term
from streamsparql.errors import EngineError
from streamsparql.physical.operator import INFINITY
from streamsparql.sinks import Layout, open_sink
from streamsparql.text.widths import cells

LAYOUT = Layout("select", ("x", "é y"), ("start", "end"))


def written(rows: list[TermRow], kind: str, layout: Layout = LAYOUT) -> str:
    """Return what a sink writes; writing in two parts must not change it."""
    whole, parts = io.BytesIO(), io.StringIO(newline="")
    with open_sink(whole, kind, layout) as sink:
        sink.write(table(rows, LAYOUT))
    with open_sink(parts, kind, layout) as sink:
        sink.write(table(rows[:3], LAYOUT))
        sink.write(table(rows[3:], LAYOUT))
    assert whole.getvalue().decode() == parts.getvalue()
    return parts.getvalue()


@given(ROWS)
def test_csv_reads_back(rows):
    head, *lines = csv.reader(io.StringIO(written(rows, "csv"), newline=""))
    assert head == ["x", "é y", "start", "end"]
    assert lines == [
        [plain_text(x), plain_text(y), str(start), "" if end == INFINITY else str(end)]
        for x, y, start, end in rows
    ]


def as_object(term: Term) -> dict[str, str]:
    match term:
        case IRI(value):
            return {"type": "uri", "value": value}
        case BlankNode(label):
            return {"type": "bnode", "value": label}
    plain = {"type": "literal", "value": term.lexical}
    if term.language is not None:
        return {**plain, "xml:lang": term.language}
    kind = term.datatype.value
    return plain if kind == XSD + "string" else {**plain, "datatype": kind}


@given(ROWS)
def test_json_lines_read_back(rows):
    lines = written(rows, "jsonl").split("\n")
    assert lines.pop() == ""
    expected = []
    for x, y, start, end in rows:
        cells = {"x": x, "é y": y}
        objects = {name: as_object(term) for name, term in cells.items() if term is not None}
        times = {"start": start, "end": None if end == INFINITY else end}
        expected.append({**objects, **times})
    assert list(map(json.loads, lines)) == expected


@given(ROWS)
def test_parquet_reads_back(rows):
    file = io.BytesIO()
    with open_sink(file, "parquet", LAYOUT) as sink:
        sink.write(table(rows, LAYOUT))
    columns = parquet.read_table(io.BytesIO(file.getvalue()))
    assert columns["x"].to_pylist() == [None if row[0] is None else str(row[0]) for row in rows]
    assert columns["end"].to_pylist() == [None if r[3] == INFINITY else r[3] for r in rows]


@given(ROWS)
def test_table_has_a_line_per_row_without_trailing_blanks(rows):
    lines = written(rows[:3], "table").split("\n")
    assert lines.pop() == ""
    assert len(lines) == 1 + len(rows[:3])
    assert all(line == line.rstrip() and line.isprintable() for line in lines)


def test_table_is_aligned_by_its_first_rows():
    """A thousand rows determine the widths; longer cells in later rows shift those after them."""
    rows = [(IRI("urn:a"), Literal("x"), t, t + 1) for t in range(1_001)]
    later = (IRI("urn:" + "long" * 9), Literal("x"), 5_000, 5_001)
    file = io.StringIO()
    with open_sink(file, "table", LAYOUT) as sink:
        sink.write(table(rows, LAYOUT))
        sink.write(table([later], LAYOUT))
    head, *lines = file.getvalue().splitlines()
    assert head == "start   end  ?x       ?é y"
    assert lines[0] == '    0     1  <urn:a>  "x"'
    assert lines[-1] == f' 5000  5001  <urn:{"long" * 9}>  "x"'


def test_table_shows_values_without_noise():
    terms = [
        Literal("55.33333333333333333333333333333333", IRI(XSD + "decimal")),
        Literal("0.30000000000000004", IRI(XSD + "double")),
        Literal("2026-03-01T08:00:00Z", IRI(XSD + "dateTime")),
        Literal("P1DT2H", IRI(XSD + "dayTimeDuration")),
        Literal("noon", IRI(XSD + "dateTime")),
        Literal("2026-03-01T08:00:00Z"),
        IRI("http://example.org/road/1"),
        IRI("http://example.org/road/"),
    ]
    layout = Layout("select", ("x",), ("start", "end"), {"": "http://example.org/"})
    shown = []
    for term in terms:
        file = io.StringIO()
        with open_sink(file, "table", layout) as sink:
            sink.write(table([(term, None, 1, 2)], LAYOUT).drop_columns(["é y"]))
        shown.append(file.getvalue().splitlines()[1].split()[-1])
    assert shown == [
        "55.33333333",
        "0.3",
        "2026-03-01T08:00:00Z",
        "P1DT2H",
        f'"noon"^^<{XSD}dateTime>',
        '"2026-03-01T08:00:00Z"',
        ":road/1",
        "<http://example.org/road/>",
    ]


def test_missing_end_is_aligned_like_numbers():
    rows = [(IRI("urn:a"), Literal("x"), 5, 9), (IRI("urn:b"), Literal("x"), 100, INFINITY)]
    assert written(rows, "table").split("\n")[1:3] == [
        '    5    9  <urn:a>  "x"',
        '  100    …  <urn:b>  "x"',
    ]


def test_reports_are_written_in_the_order_of_order_by():
    text = """SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 10 MS { ?s ?p ?o } ORDER BY DESC(?o)"""
    items = [("<a>", "<p>", f'"{n}"', t) for n, t in ((2, 3), (9, 4), (5, 5), (1, 12))]
    file = io.StringIO()
    query = streamsparql.compile(text)
    assert query.run(items).write(file, "csv", report="rstream") == 4
    assert file.getvalue().split() == ["o,instant", "9,10", "5,10", "2,10", "1,20"]
    once = io.StringIO()
    assert query.run(iter(items)).write(once, "csv", report="rstream") == 4
    assert once.getvalue() == file.getvalue()


def test_written_rows_are_those_of_the_result(tmp_path):
    text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    items = [("<a>", "<p>", f'"{n}"', n) for n in range(25)]
    result = streamsparql.compile(text).run([*items, ("<a>", "<p>", '"x"', 3)])
    assert result.write(tmp_path / "rows.parquet") == 25
    assert [reject.reason for reject in result.late] == ["late by 21 ms"]
    assert parquet.read_table(tmp_path / "rows.parquet") == result.to_arrow().cast(
        parquet.read_schema(tmp_path / "rows.parquet")
    )
    assert result.write(tmp_path / "rows.jsonl.zst") == len(list(result)) == 25


def test_interrupted_file_is_complete_up_to_the_interruption(tmp_path):
    path = tmp_path / "rows.parquet"
    with suppress(KeyError), open_sink(path, None, LAYOUT, whole=False) as sink:
        sink.write(table([(IRI("urn:a"), None, 1, 2)], LAYOUT))
        raise KeyError
    assert parquet.read_table(path)["start"].to_pylist() == [1]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl.gz", "rows.csv.zst", "rows.parquet"])
def test_file_appears_under_its_name_once_it_is_whole(name, tmp_path):
    path, rows = tmp_path / name, table([(IRI("urn:a"), None, 1, 2)], LAYOUT)
    with suppress(KeyError), open_sink(path, None, LAYOUT) as sink:
        sink.write(rows)
        sink.flush()
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with open_sink(path, None, LAYOUT) as sink:
        sink.write(rows)
        sink.flush()
        assert [file.suffix for file in tmp_path.iterdir()] == [".part"]
    assert list(tmp_path.iterdir()) == [path]
    before = path.read_bytes()
    with suppress(KeyError), open_sink(path, None, LAYOUT) as sink:
        sink.write(rows)
        raise KeyError
    assert (list(tmp_path.iterdir()), path.read_bytes()) == ([path], before)


def test_file_that_is_replaced_keeps_its_links_and_permissions(tmp_path):
    path, link = tmp_path / "rows.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    with open_sink(link, None, LAYOUT) as sink:
        sink.write(table([], LAYOUT))
    assert link.is_symlink()
    assert path.read_text() == "x,é y,start,end\n"
    assert path.stat().st_mode & 0o777 == 0o640
    with open_sink(tmp_path / f"{'n' * 240}.csv", None, LAYOUT) as sink:
        sink.write(table([], LAYOUT))
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is missing")
@pytest.mark.parametrize(
    "name", ["x.csv", "x.jsonl", "x.txt", "x.parquet", "x.csv.gz", "x.csv.zst", "x.txt.gz"]
)
def test_full_disk_is_an_error_that_names_the_file(name, tmp_path):
    (tmp_path / name).symlink_to("/dev/full")
    many = [(IRI(f"urn:{k}"), IRI(f"urn:{k * k}"), k, k + 1) for k in range(20_000)]
    rows = table(many, LAYOUT)
    for some in (rows, rows.slice(0, 1)):
        error = pytest.raises(EngineError, match=rf"cannot write .*{name}: No space left on device")
        with error, open_sink(tmp_path / name, None, LAYOUT) as sink:
            sink.write(some)


def test_unpaired_surrogates_are_written_as_escapes():
    """UTF-8 cannot encode unpaired surrogates; JSON can escape them."""
    rows = pa.table(
        {"x": ['"a\\uD83Db"'], "é y": ["<urn:a>"], "start": [1], "end": [2]},
    )
    texts = []
    for kind in ("csv", "jsonl"):
        file = io.StringIO()
        with open_sink(file, kind, LAYOUT) as sink:
            sink.write(rows)
        texts.append(file.getvalue())
    assert texts[0].splitlines()[1] == "a\\uD83Db,urn:a,1,2"
    assert json.loads(texts[1])["x"]["value"] == "a\ud83db"


def test_any_file_of_bytes_or_text_is_a_target(tmp_path):
    rows = table([(IRI("urn:a"), None, 1, 2)], LAYOUT)
    with gzip.open(tmp_path / "a.gz", "wb") as file, open_sink(file, "csv", LAYOUT) as sink:
        sink.write(rows)
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()).endswith(b"urn:a,,1,2\n")
    with codecs.open(tmp_path / "a.txt", "w", "utf-16") as file:  # noqa: SIM117
        with open_sink(file, "csv", LAYOUT) as sink:
            sink.write(rows)
    assert (tmp_path / "a.txt").read_text("utf-16").endswith("urn:a,,1,2\n")


def test_file_that_is_read_cannot_be_written(tmp_path):
    path = tmp_path / "s.nq"
    path.write_text('<a> <p> <b> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    result = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE 1 MS FIXED {?s ?p ?o}")
    for source in (path, [path], tmp_path):
        with pytest.raises(EngineError, match=r"cannot write .*: the run reads it"):
            result.run(source).write(path, "csv")
    assert path.stat().st_size > 9


def test_invalid_target_is_an_error_with_a_reason(tmp_path):
    result = streamsparql.compile("SELECT ?s { ?s ?p ?o }").run(graph=[("<a>", "<p>", "<b>")])
    with pytest.raises(EngineError, match="no known extension; the formats are table, csv"):
        result.write(tmp_path / "rows")
    with pytest.raises(EngineError, match="unknown format 'xml'; the formats are table"):
        result.write(tmp_path / "rows", "xml")
    with pytest.raises(EngineError, match="nq needs triples, not rows of SELECT"):
        result.write(tmp_path / "rows.nq")
    with pytest.raises(EngineError, match="timestamps must be ms, iso, local, not 'utc'"):
        result.write(tmp_path / "rows.csv", timestamps="utc")
    with pytest.raises(EngineError, match="cannot write"):
        result.write(tmp_path / "no" / "rows.csv")
    with pytest.raises(EngineError, match="parquet is compressed already"):
        result.write(tmp_path / "rows.parquet.gz")
    with pytest.raises(EngineError, match="a file of bytes"):
        result.write(io.StringIO(), "parquet")
    with pytest.raises(EngineError, match="a path or an open file, not None"):
        result.write(None)
    with pytest.raises(EngineError, match=r"every: not a valid duration: 1\.5"):
        result.write(tmp_path / "rows.csv", every=1.5)
    assert not list(tmp_path.iterdir())


def test_table_is_aligned_whatever_its_characters_are(tmp_path):
    """Wide and combining characters, invalid numbers, and one cell that is much too long."""
    integer = f"<{XSD}integer>"
    values = [
        '"風車"',
        '"e\\u0301"',
        '"\\U0001F32C"',
        f'"1\\u001B[31m\\n2"^^{integer}',
        f'""^^{integer}',
    ]
    items = [("<urn:a>", f"<urn:{k}>", o, k) for k, o in enumerate([*values, f'"{"x" * 500}"'])]
    query = streamsparql.compile(
        f"SELECT (?o AS ?{'風車' * 9}) ?p FROM STREAM <s> WINDOW RANGE 1 MS SLIDE {{ ?x ?p ?o }}"
    )
    out = io.StringIO()
    query.run(items).write(out, "table")
    head, *lines = out.getvalue().splitlines()
    assert len(lines) == 6
    place = cells(head[: head.index("?p")])
    assert {cells(line[: line.index("<urn:")]) for line in lines[:5]} == {place}
    assert place < 120
    assert "\\u001B[31m" in lines[3]
    assert '""^^' in lines[4]
    assert "\x1b" not in out.getvalue()


FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1",
    '=HYPERLINK("a","b")',
]


def test_csv_can_be_written_without_formulas(tmp_path):
    """Numbers are not formulas, and IRIs can be; the other formats have no formulas to escape."""
    numbers = [
        Literal("-1", IRI(XSD + "integer")),
        Literal("+1.5", IRI(XSD + "decimal")),
        Literal("-2"),
    ]
    terms = [*map(Literal, FORMULAS), *numbers, Literal("a=1"), IRI("@a")]
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?s ?p ?o }")
    result = query.run([("<a>", "<p>", str(term), 1) for term in terms])
    escaped = [*(f"'{text}" for text in FORMULAS), "-1", "+1.5", "-2", "a=1", "'@a"]
    plain = [text.removeprefix("'") for text in escaped]
    for escape, expected in ((True, escaped), (False, plain)):
        assert result.write(tmp_path / "a.csv", escape_formulas=escape) == len(terms)
        with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
            assert {row[0] for row in list(csv.reader(file))[1:]} == set(expected)
    with pytest.raises(EngineError, match="escape_formulas is an option of csv, not of jsonl"):
        result.write(tmp_path / "a.jsonl", escape_formulas=True)
