"""`streamsparql run` over files: formats, options, rejects, mistakes, Spark."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
import pytest
from support.command_line import (
    ENVIRONMENT,
    FAST,
    FROM,
    INTEGER,
    MEAN,
    ROOT,
    SUMMARY,
    WIND,
    output_lines,
    quad,
    run,
)

import streamsparql
from streamsparql.cli import main
from streamsparql.query import Query

MEAN_OF_WIND = ("mean.rq", "--stream", "wind.nq")

# -- words -----------------------------------------------------------------------------------------

MEAN_ROWS = ["t,mean,start,end", "http://example.org/a,6,1000,4000"]
STATIC = "SELECT ?s { ?s <http://example.org/in> ?o }"


@pytest.mark.parametrize(
    "arguments",
    [
        ("mean.rq", "wind.nq"),
        ("wind.nq", "mean.rq"),
        ("--output", "csv", "mean.rq", "--quiet", "wind.nq"),
        ("mean.rq", "--stream", f"{WIND}=wind.nq"),
        ("mean.rq", "--stream", ":wind=wind.nq"),
        ("mean.rq", "wind.nq", "--time-unit", ":wind=ms"),
        ("mean.rq", "wind.nq", "rooms.nt"),
        ("-q", MEAN, "wind.nq"),
        ("wind.nq", "-q", MEAN),
    ],
)
def test_data_files_follow_the_query(folder, monkeypatch, capsys, arguments):
    """Files without an option are those of the one stream; files without timestamps are static."""
    monkeypatch.chdir(folder)
    (folder / "rooms.nt").write_text("<urn:a> <http://example.org/in> <urn:b> .\n")
    assert main(["run", *arguments, "--output", "csv", "--quiet"]) == 0
    output = capsys.readouterr()
    assert (output.out.splitlines()[:2], output.err) == (MEAN_ROWS, "")


def test_files_of_a_query_without_streams_are_static(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "rooms.nt").write_text("<urn:a> <http://example.org/in> <urn:b> .\n")
    (folder / "rooms.csv").write_text("s,p,o\n<urn:c>,<http://example.org/in>,<urn:b>\n")
    words = ("run", "-q", STATIC, "rooms.nt", "rooms.csv", "--output", "sparql-csv", "--quiet")
    assert main(words) == 0
    assert sorted(capsys.readouterr().out.split()) == ["s", "urn:a", "urn:c"]


def test_prefixed_names_are_those_of_the_query(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "rooms.nt").write_text("<urn:a> <http://example.org/in> <urn:b> .\n")
    named = "PREFIX : <http://example.org/> SELECT ?s FROM NAMED :g { GRAPH :g { ?s :in ?o } }"
    assert main(["run", "-q", named, "--named", ":g=rooms.nt", "--output", "sparql-csv"]) == 0
    assert capsys.readouterr().out.split() == ["s", "urn:a"]


def test_the_text_of_a_query_is_not_a_file_that_is_overwritten(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["run", "-q", MEAN, "wind.nq", "-o", "wind.nq", "--output", "csv"]) == 1
    assert "run reads it" in capsys.readouterr().err


# -- formats ---------------------------------------------------------------------------------------


def test_tables_are_aligned_and_shorten_iris(folder):
    assert output_lines(folder, "mean.rq", "--stream", f"{WIND}=wind.nq") == [
        "start    end  ?t  ?mean",
        " 1000   4000  :a      6",
        " 4000  10000  :a      7",
        "12000  20000  :b      5",
    ]


def test_times_are_dates_in_tables_and_milliseconds_elsewhere(folder):
    """`--timestamps` overrides the default of each format."""
    (folder / "today.nq").write_text(quad("a", 6, 1_772_352_000_250))
    mean = ("mean.rq", "--stream", "today.nq")
    assert output_lines(folder, *mean) == [
        "start (UTC)              end                  ?t  ?mean",
        "2026-03-01 08:00:00.250  2026-03-01 08:00:10  :a      6",
    ]
    lines = output_lines(folder, *mean, "--timestamps", "ms")
    assert lines[0] == "        start            end  ?t  ?mean"
    csv = (*mean, "--output", "csv")
    assert output_lines(folder, *csv)[1].endswith(",1772352000250,1772352010000")
    lines = output_lines(folder, *csv, "--timestamps", "iso")
    assert lines[1].endswith(",2026-03-01T08:00:00.250Z,2026-03-01T08:00:10Z")
    lines = output_lines(folder, *csv, "--timestamps", "local", zone="Asia/Kolkata")
    assert lines[1].endswith(",2026-03-01T13:30:00.250+05:30,2026-03-01T13:30:10+05:30")
    lines = output_lines(folder, *mean, "--output", "jsonl", "--timestamps", "iso")
    assert json.loads(lines[0])["end"] == "2026-03-01T08:00:10Z"


def test_the_extension_of_a_file_selects_its_format(folder):
    for name in ("out.csv", "out.jsonl.gz", "out.parquet", "out.csv.zst", "out.txt"):
        assert output_lines(folder, *MEAN_OF_WIND, "-o", name) == []
    assert (folder / "out.csv").read_text().startswith("t,mean,start,end\n")
    assert len(gzip.decompress((folder / "out.jsonl.gz").read_bytes()).splitlines()) == 3
    assert (folder / "out.txt").read_text().startswith("start")
    table = parquet.read_table(folder / "out.parquet")
    assert table.column_names == ["t", "mean", "start", "end"]
    assert table["end"].to_pylist() == [4000, 10000, 20000]
    assert table["t"].to_pylist()[0] == "<http://example.org/a>"
    with pyarrow.CompressedInputStream(str(folder / "out.csv.zst"), "zstd") as file:
        assert file.read() == (folder / "out.csv").read_bytes()


def test_csv_has_plain_values(folder):
    lines = output_lines(folder, *MEAN_OF_WIND, "--output", "csv")
    assert lines[:2] == ["t,mean,start,end", "http://example.org/a,6,1000,4000"]


def test_json_lines_have_terms_in_the_sparql_results_format(folder):
    lines = output_lines(folder, *MEAN_OF_WIND, "--output", "jsonl")
    assert json.loads(lines[0]) == {
        "t": {"type": "uri", "value": "http://example.org/a"},
        "mean": {
            "type": "literal",
            "value": "6",
            "datatype": "http://www.w3.org/2001/XMLSchema#decimal",
        },
        "start": 1000,
        "end": 4000,
    }


def test_all_kinds_of_terms_are_written(folder):
    terms = '"a\\nb"', '"chat"@fr', "_:b", "<http://example.org/x>", '"1 "^^<http://example.org/d>'
    items = (
        f'<http://e.org/s> <http://e.org/p> {o} "{t}"^^<{INTEGER}> .' for t, o in enumerate(terms)
    )
    text = "SELECT ?o ?end FROM STREAM <s> WINDOW RANGE 1 MS SLIDE 1 MS { ?s ?p ?o } # lint: ignore"
    (folder / "terms.rq").write_text(text)
    (folder / "terms.nq").write_text("\n".join(items))
    lines = output_lines(folder, "terms.rq", "--stream", "s=terms.nq", "--output", "jsonl")
    rows = [json.loads(line) for line in lines]
    assert [(row["start"], row["end_"]) for row in rows] == [(t, t + 1) for t in range(5)]
    assert all("end" not in row for row in rows)
    assert [row["o"].get("value") for row in rows if row["o"]["type"] != "bnode"] == [
        "a\nb",
        "chat",
        "http://example.org/x",
        "1 ",
    ]
    assert rows[1]["o"]["xml:lang"] == "fr"
    table = output_lines(folder, "terms.rq", "--stream", "s=terms.nq")
    assert table[0].split() == ["start", "end_", "?o", "?end"]
    assert table[1].split() == ["0", "1", '"a\\nb"']


def test_constructed_triples_can_be_read_as_a_stream(folder):
    fast = ("fast.rq", "--stream", "wind.nq")
    for kind in ("nq", "csv"):
        output_lines(folder, *fast, "--output", kind, "-o", f"fast.{kind}")
    output_lines(folder, *fast, "-o", "fast.parquet")
    text = FAST.replace(":fast", ":x").replace(":speed", ":fast")
    lines = output_lines(folder, "-", "--stream", "fast.nq", "--output", "csv", text=text)
    assert lines[1:3] == [
        f'<http://example.org/a>,<http://example.org/x>,"""6""^^<{INTEGER}>",1000,10000',
        f'<http://example.org/a>,<http://example.org/x>,"""8""^^<{INTEGER}>",4000,10000',
    ]
    for file in ("fast.csv", "fast.parquet"):
        assert lines == output_lines(folder, "-", "--stream", file, "--output", "csv", text=text)


def test_ask_has_rows_with_an_answer(folder):
    lines = output_lines(folder, "any.rq", "--stream", "wind.nq")
    assert [line.split() for line in lines] == [
        ["start", "end", "answer"],
        ["1000", "10000", "true"],
        ["10000", "…", "false"],
    ]
    lines = output_lines(folder, "any.rq", "--stream", "wind.nq", "--output", "jsonl")
    assert json.loads(lines[1]) == {"answer": False, "start": 10000, "end": None}
    lines = output_lines(folder, "any.rq", "--stream", "wind.nq", "--output", "csv")
    assert lines[2] == "false,10000,"


# -- options ---------------------------------------------------------------------------------------


def test_reports_have_instants(folder):
    csv = ("--stream", "wind.nq", "--output", "csv")
    lines = output_lines(folder, "mean.rq", *csv, "--report", "istream", "--every", "10s")
    assert lines == [
        "t,mean,instant",
        "http://example.org/a,7,10000",
        "http://example.org/b,5,20000",
    ]
    assert len(output_lines(folder, "mean.rq", *csv, "--every", "5s")) == 5
    lines = output_lines(folder, "fast.rq", *csv, "--every", "10s")
    assert [line[-6:] for line in lines[1:]] == [",10000", ",10000"]
    assert output_lines(folder, "any.rq", *csv, "--every", "10s")[1] == "true,10000"


def test_a_horizon_is_set_in_milliseconds_or_as_a_time(folder):
    horizon = ("--from", "5000", "--until", "1970-01-01T00:00:12Z")
    lines = output_lines(folder, *MEAN_OF_WIND, "--output", "csv", *horizon)
    assert lines[1:] == ["http://example.org/a,7,5000,10000"]


def test_a_stream_is_read_from_standard_input_and_rows_are_written_to_a_file(folder):
    text = (folder / "wind.nq").read_text()
    assert output_lines(folder, "mean.rq", "--stream", "-", "-o", "out.txt", text=text) == []
    assert len((folder / "out.txt").read_text().splitlines()) == 4


def test_static_graphs_are_read_from_files(folder):
    (folder / "parks.nt").write_text("<http://example.org/a> <http://example.org/in> <urn:p=1> .\n")
    arguments = ("-", "--stream", "wind.nq")
    text = MEAN.replace("?t :speed ?v", "?t :speed ?v . ?t :in ?p")
    assert len(output_lines(folder, *arguments, "--graph", "parks.nt", text=text)) == 3
    text = MEAN.replace("WHERE", "FROM NAMED <urn:g=1> WHERE")
    text = text.replace("?t :speed ?v", "?t :speed ?v . GRAPH <urn:g=1> { ?t :in ?p }")
    assert len(output_lines(folder, *arguments, "--named", "urn:g=1=parks.nt", text=text)) == 3


# -- tables with a mapping -------------------------------------------------------------------------


def test_a_table_without_a_header_is_mapped(folder):
    (folder / "a.csv").write_text("x|1,5|1000\ny|2,5|2000\n")
    (folder / "map.rq").write_text(
        f"""CONSTRUCT {{ ?s <http://example.org/speed> ?v }}
        {{ BIND(IRI(CONCAT("http://example.org/", ?a)) AS ?s) BIND(<{INTEGER}>(?c) AS ?timestamp)
           BIND(STRDT(REPLACE(?b, ",", "."), <http://www.w3.org/2001/XMLSchema#decimal>) AS ?v) }}"""
    )
    (folder / "all.rq").write_text(f"SELECT ?s ?v {FROM} {{ ?s ?p ?v }}")
    arguments = ("all.rq", "--stream", "a.csv", "--map", "map.rq", "--output", "csv")
    done = run(folder, *arguments)
    assert (done.returncode, "unknown column" in done.stderr) == (1, True)
    lines = output_lines(folder, *arguments, "--no-header", "--delimiter", "|")
    assert [line.split(",")[:2] for line in lines[1:]] == [
        ["http://example.org/x", "1.5"],
        ["http://example.org/y", "2.5"],
    ]
    (folder / "a.jsonl").write_text("")
    done = run(folder, "all.rq", "--stream", "a.jsonl", "--map", "map.rq", "--no-header")
    assert (done.returncode, "and a CSV stream" in done.stderr) == (2, True)


def test_a_mapping_without_an_iri_applies_to_all_streams(folder):
    (folder / "two.rq").write_text(
        "SELECT ?v FROM STREAM <urn:a> WINDOW RANGE 1 MS FIXED"
        " FROM STREAM <urn:b> WINDOW RANGE 1 MS FIXED { ?x <p> ?v }"
    )
    for name in "ab":
        (folder / f"{name}.csv").write_text(f"v,t\n{name},5\n")
    streams = ("--stream", "urn:a=a.csv", "--stream", "urn:b=b.csv")
    done = run(
        *(folder, "two.rq", *streams, "--map", "-", "--output", "csv"),
        text="CONSTRUCT { <x> <p> ?v } {}",
    )
    assert sorted(done.stdout.split()[1:]) == ["a,5,6", "b,5,6"]


def test_table_rows_without_triples_are_counted(folder):
    lines = [f'{{"n": {n}, "t": {n}}}\n' for n in range(1, 5)]
    (folder / "a.jsonl").write_text(lines[0] + lines[2])
    (folder / "b.jsonl").write_text(lines[1] + lines[3])
    query = f"SELECT ?n FROM STREAM <{WIND}> WINDOW RANGE 1 MS FIXED {{ ?x <n> ?n }}"
    (folder / "n.rq").write_text(query)
    (folder / "map.rq").write_text("CONSTRUCT { <x> <n> ?n } { FILTER(?n > 2) }")
    arguments = ("--stream", "a.jsonl", "--stream", "b.jsonl", "--map", "map.rq")
    summary = run(folder, "n.rq", *arguments).stderr
    assert summary.startswith(
        "2 items: 2 accepted, 0 late, 0 rejected, 2 table rows without triples;"
    )
    (folder / "map.rq").write_text("CONSTRUCT { <x> <n> ?m } {}")
    summary, note, *_ = run(folder, "n.rq", *arguments).stderr.splitlines()
    assert note == (
        "note: a.jsonl: no record has the key m, which the mapping reads; the first has n, t"
    )
    assert summary.startswith(
        "0 items: 0 accepted, 0 late, 0 rejected, 4 table rows without triples;"
    )


# -- late and rejected items -----------------------------------------------------------------------


def test_late_and_rejected_items_are_counted_and_listed(folder):
    with (folder / "wind.nq").open("a") as file:
        file.write("so what\n" * 3 + quad("b", 5, 2_000))
    done = run(folder, *MEAN_OF_WIND)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4)
    summary, *rejects = done.stderr.splitlines()
    assert summary.startswith("7 items: 3 accepted, 1 late, 3 rejected; 3 rows in ")
    assert rejects == [
        *(f"  wind.nq, line {n}: not a line of N-Quads: 'so what'" for n in (4, 5, 6)),
        "  … and 1 more; --rejects FILE writes all",
        "note: late: 1 of 7 items, not in the result; --max-delay 10s keeps all of them,"
        " --max-delay auto sorts the whole input",
    ]
    done = run(folder, *MEAN_OF_WIND, "--max-delay", "10s")
    assert done.stderr.startswith("7 items: 4 accepted, 0 late, 3 rejected")
    run(folder, *MEAN_OF_WIND, "--rejects", "bad.jsonl")
    *_, last = map(json.loads, (folder / "bad.jsonl").read_text().splitlines())
    assert (last["source"], last["position"], last["reason"]) == ("wind.nq", 7, "late by 10 s")
    assert run(folder, *MEAN_OF_WIND, "--quiet").stderr == ""
    done = run(folder, *MEAN_OF_WIND, "--strict", "-o", "out.txt")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "streamsparql: wind.nq, line 4: not a line of N-Quads: 'so what'\n"


def test_rejected_triples_of_graphs_are_counted_and_listed(folder):
    (folder / "lab.nt").write_text("so what\n" * 5 + "<http://e/a> <http://e/in> <http://e/b> .\n")
    summary, *rejects = run(folder, *MEAN_OF_WIND, "--graph", "lab.nt").stderr.splitlines()
    assert ", 0 rejected, 5 triples of graphs rejected; 3 rows in " in summary
    assert rejects[0] == "  lab.nt, line 1: not a line of N-Triples: 'so what'"
    assert rejects[-1] == "  … and 2 more; --rejects FILE writes all"
    analysis = streamsparql.compile(MEAN).analyze(folder / "wind.nq", folder / "lab.nt")
    assert analysis.graph_rejects == 5
    assert "5 graph triples rejected" in str(analysis)


def test_messages_have_no_control_characters(folder):
    text = f'<http://e/a> <http://e/p> <http://e/b> "\x1b[2Jsoon\x07"^^<{INTEGER}> .\n'
    (folder / "wind.nq").write_text(text)
    done = run(folder, *MEAN_OF_WIND)
    assert "1 rejected" in done.stderr
    assert not {"\x1b", "\x07"} & set(done.stderr)
    done = run(folder, "mean.rq", "--stream", "\x1b[31mno.nq")
    assert (done.returncode, "\x1b" in done.stderr) == (1, False)


def test_csv_without_formulas(folder):
    (folder / "f.rq").write_text("SELECT ('=1+1' AS ?x) ('-1' AS ?y) {}")
    done = run(folder, "f.rq", "--output", "csv", "--escape-formulas")
    assert (done.returncode, done.stdout.splitlines()[1][:10]) == (0, "'=1+1,-1,0")
    done = run(folder, "f.rq", "--output", "jsonl", "--escape-formulas")
    assert (done.returncode, "requires --output csv" in done.stderr) == (2, True)


def test_output_formats_of_sparql_and_native_values(folder):
    done = run(folder, *MEAN_OF_WIND, "--output", "sparql-csv", "--quiet")
    head, first, *_ = done.stdout.splitlines()
    assert head.split(",")[-2:] == ["start", "end"]
    assert first.split(",")[-2].endswith("Z")
    (folder / "o.rq").write_text("SELECT ?n { VALUES ?n { 2 1 } } ORDER BY ?n")
    done = run(folder, "o.rq", "-o", "n.tsv")
    assert (done.returncode, (folder / "n.tsv").read_text().split()[0]) == (0, "?n")
    assert run(folder, "o.rq", "--output", "sparql-csv", "--quiet").stdout.split() == [
        "n",
        "1",
        "2",
    ]
    done = run(folder, "o.rq", "--output", "jsonl", "--values", "native")
    assert sorted(json.loads(line)["n"] for line in done.stdout.splitlines()) == [1, 2]
    for options, message in (
        (("--values", "native"), "--values native requires --output csv, jsonl or parquet"),
        (("--values", "python", "--output", "csv"), "invalid choice: 'python'"),
    ):
        done = run(folder, "o.rq", *options)
        assert (done.returncode, message in done.stderr) == (2, True)
    (folder / "c.rq").write_text("CONSTRUCT { <a> <b> <c> } {}")
    done = run(folder, "c.rq", "--output", "sparql-json")
    message = "sparql-json is a format for solutions, not for CONSTRUCT; use nq"
    assert (done.returncode, message in done.stderr) == (2, True)


# -- files that the query names --------------------------------------------------------------------


def test_a_user_may_name_graphs_in_the_query(folder):
    """The query is the user's own; `--no-files` runs that of a stranger."""
    (folder / "lab.nt").write_text("<http://e/a> <http://e/in> <http://e/b> .\nroot:s3cret:0\n")
    (folder / "lab.rq").write_text("SELECT ?y FROM <lab.nt> { ?x <http://e/in> ?y }")
    (folder / "gone.rq").write_text("SELECT ?y FROM <gone.nt> { ?x <http://e/in> ?y }")
    done = run(folder, "lab.rq")
    assert (done.returncode, "<http://e/b>" in done.stdout) == (0, True)
    assert "1 triple of graphs rejected" in done.stderr
    assert "s3cret" not in done.stderr
    done = run(folder, "gone.rq")
    assert (done.returncode, done.stderr) == (
        1,
        "streamsparql: missing graph <gone.nt>; add --named gone.nt=FILE\n",
    )
    refused = "; --no-files forbids a file that only the query names\n"
    for name in ("lab", "gone"):
        done = run(folder, f"{name}.rq", "--no-files")
        expected = f"streamsparql: missing graph <{name}.nt>; add --named {name}.nt=FILE{refused}"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
    done = run(folder, "lab.rq", "--no-files", "--named", "lab.nt=lab.nt")
    assert (done.returncode, "s3cret" in done.stderr) == (0, True)  # it is an input


# -- files that are written ------------------------------------------------------------------------


def test_a_run_does_not_write_what_it_reads(folder):
    """Files of mappings, and of graphs that only the query names, are not overwritten either."""
    (folder / "map.rq").write_text(
        "CONSTRUCT { ?s <http://example.org/speed> ?v } { BIND(IRI(?a) AS ?s) BIND(?t AS ?timestamp) }"
    )
    (folder / "wind.csv").write_text("a,v,t\nhttp://e/a,1,5\n")
    (folder / "lab.nt").write_text("<http://e/a> <http://e/in> <http://e/b> .\n")
    (folder / "lab.rq").write_text(MEAN.replace(FROM, f"FROM <lab.nt>\n{FROM}"))
    mapped = ("mean.rq", "--stream", "wind.csv", "--map", "map.rq")
    for arguments, file in (
        ((*mapped, "--rejects", "map.rq"), "map.rq"),
        (("lab.rq", "--stream", "wind.nq", "--output", "csv", "-o", "lab.nt"), "lab.nt"),
        (("lab.rq", "--stream", "wind.nq", "--rejects", "./lab.nt"), "lab.nt"),
    ):
        before = (folder / file).read_text()
        done = run(folder, *arguments)
        assert (done.returncode, "the run reads it" in done.stderr) == (1, True)
        assert (folder / file).read_text() == before


def test_a_run_that_fails_at_once_overwrites_nothing(folder):
    files = ("-o", "out.txt", "--rejects", "rejects.jsonl")
    for name in files[1::2]:
        (folder / name).write_text("old\n")
    assert run(folder, "mean.rq", "--stream", "gone.nq", *files).returncode == 1
    assert {(folder / name).read_text() for name in files[1::2]} == {"old\n"}
    assert run(folder, *MEAN_OF_WIND, *files).returncode == 0
    assert (folder / "rejects.jsonl").read_text() == ""


def test_rows_and_rejects_can_go_to_one_device(folder):
    null = ("-o", os.devnull, "--rejects", os.devnull, "--output", "csv")
    done = run(folder, *MEAN_OF_WIND, *null)
    assert (done.returncode, SUMMARY.fullmatch(done.stderr) is not None) == (0, True)


def test_a_closed_pipe_is_not_an_error(folder):
    (folder / "long.nq").write_text("".join(quad("a", 9 + t, 100 * t) for t in range(50_000)))
    done = subprocess.run(
        f"{sys.executable} -m streamsparql run fast.rq --stream long.nq --output nq | head -n 2",
        shell=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=ENVIRONMENT,
        timeout=60,
    )
    assert (len(done.stdout.splitlines()), done.stderr) == (2, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is missing")
def test_a_full_disk_is_an_error_that_names_the_file(folder):
    done = run(folder, *MEAN_OF_WIND, "-o", "/dev/full", "--output", "csv")
    assert done.stderr == "streamsparql: cannot write /dev/full: No space left on device\n"
    assert done.returncode == 1
    (folder / "bad.nq").write_text("rubbish\n" * 10_000)
    rejects = ("--rejects", "/dev/full", "-o", "out.csv")
    done = run(folder, "mean.rq", "--stream", "bad.nq", *rejects)
    assert done.stderr == "streamsparql: cannot write /dev/full: No space left on device\n"
    assert (done.returncode, (folder / "out.csv").exists()) == (1, False)
    for arguments in ("--version", "--help", "run --help"):
        command = f"{sys.executable} -m streamsparql {arguments} > /dev/full"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr


# -- mistakes --------------------------------------------------------------------------------------

WRONG_ARGUMENTS = [
    ("mean.rq", 1, f"missing stream <{WIND}>; add --stream {WIND}=FILE"),
    ("mean.rq --stream gone.nq", 1, "gone.nq: No such file"),
    ("mean.rq --stream urn:x=wind.nq", 1, f"unknown stream <urn:x>; the query reads <{WIND}>"),
    (f"mean.rq --stream {WIND}=", 2, "missing file name"),
    ("gone.rq --stream wind.nq", 1, "gone.rq: cannot be read"),
    ("none.rq --stream wind.nq", 2, "the query reads no stream"),
    ("- --stream -", 2, "read once"),
    ("mean.rq --stream - --map -", 2, "read once"),
    ("mean.rq --stream . -o wind.nq --output csv", 1, "run reads it"),
]
WRONG_OPTIONS = [
    ("--graph gone.nt", 1, "gone.nt: No such file"),
    ("--named urn:x=wind.nq", 1, "unknown graph <urn:x>"),
    ("--named wind.nq", 2, "--named wind.nq: write IRI=FILE"),
    ("--stream wind.nq", 1, "wind.nq: duplicate file"),
    ("--stream ./wind.nq", 1, "wind.nq: duplicate file"),
    ("--map mean.rq", 1, "--map mean.rq: a mapping must be a"),
    ("--map fast.rq", 1, "a mapping cannot have FROM"),
    ("--map a=b.rq", 1, "a=b.rq: cannot be read"),
    ("--no-header", 2, "require --map"),
    ("--output nq", 2, "nq is a format for triples"),
    ("-o rows.nq", 2, "nq is a format for triples"),
    ("-o rows.foo", 2, "-o rows.foo: unknown extension"),
    ("--output parquet", 2, "requires -o FILE"),
    ("-o no/out.txt", 1, "cannot write"),
    ("--rejects no/bad", 1, "cannot write no/bad"),
    ("-o wind.nq --output csv", 1, "run reads it"),
    ("--rejects wind.nq", 1, "run reads it"),
    ("-o mean.rq --output csv", 1, "run reads it"),
    ("-o a.csv --rejects ./a.csv", 2, "the same file"),
    ("--every 1x", 2, "not a valid duration: '1x'"),
    ("--every 0s", 2, "must be longer than 0"),
    (f"--every {10**20}d", 2, "duration out of range"),
    ("--emit eager --every 1s", 2, "not to reports"),
    ("--slabs 0", 2, "must be at least 1"),
    ("--slabs 3", 2, "requires --engine spark"),
    ("--from soon", 2, "soon"),
    ("--from -5", 2, "before 1970"),
    (f"--from {'9' * 5_000}", 2, "out of range"),
    (f"--from {1 << 63}", 2, "out of range"),
    ("--from 9 --until 9", 2, "--until must be after --from"),
    ("--from 7 --until 6", 2, "--until must be after --from"),
    ("--evry 5s", 2, "did you mean --every?"),
    ("-q", 2, "missing text of a query after -q; did you mean --quiet?"),
]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        *WRONG_ARGUMENTS,
        *((f"{shlex.join(MEAN_OF_WIND)} {options}", *rest) for options, *rest in WRONG_OPTIONS),
    ],
)
def test_mistakes_are_errors_with_a_message(
    folder, monkeypatch, capsys, arguments, status, message
):
    monkeypatch.chdir(folder)
    try:
        assert main(["run", *shlex.split(arguments)]) == status
    except SystemExit as end:  # argparse exits
        assert end.code == status
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err


def test_triples_of_a_late_row_are_shown_once(folder):
    (folder / "late.csv").write_text("time,t,speed\n2026-05-04T06:05,a,3\n2026-05-04T06:00,a,4\n")
    query = "SELECT * { STREAM <s> [RANGE 1h] { ?x ?p ?o } }"
    done = run(folder, "-q", query, "--stream", "late.csv", "--auto")
    first, late, *_ = done.stderr.splitlines()
    assert "3 accepted, 3 late" in first
    assert late.startswith("  late.csv, row 3: late by 5 min: {'time': '2026-05-04T06:00'")
    assert late.endswith("} (3 items)")


# -- Spark -----------------------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
@pytest.mark.skipif(
    "spark" not in inspect.signature(Query.run).parameters, reason="the Spark engine is missing"
)
def test_spark_prints_the_same_rows_and_summary(folder):
    """Spark starts a session for the command, and shows its progress only on a terminal."""
    csv = (*MEAN_OF_WIND, "--output", "csv")
    spark = ("--engine", "spark", "--master", "local[1]", "--slabs", "2")
    with open(folder / "wind.nq", "a") as file:
        other = quad("a", 30_000, 2).replace("speed", "heat")
        file.write(f"no line\n{quad('a', 20, 2)}{other}")
    embedded, done = run(folder, *csv), run(folder, *csv, *spark)
    assert done.stdout == embedded.stdout
    lines = [re.sub(r" in \d.* s$", "", line) for line in embedded.stderr.splitlines()]
    assert lines[0].endswith("accepted (1 unmatched), 1 late, 1 rejected; 3 rows"), lines
    *printed, note = (re.sub(r" in \d.* s$", "", line) for line in done.stderr.splitlines())
    progress, summary = printed[: -len(lines)], printed[-len(lines) :]
    assert summary == lines
    assert all(re.fullmatch(r"\d+ s: stage .*", line) for line in progress), progress
    assert note.startswith("note: this is little data for Spark; --engine embedded")


@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
@pytest.mark.skipif(os.name == "nt", reason="Windows lacks these signals")
@pytest.mark.parametrize("seconds", [1.2, 4.5])
def test_an_interrupt_ends_spark_quietly(folder, seconds):
    """The interrupt arrives while the Java process starts, or while it runs the query."""
    command = [sys.executable, "-m", "streamsparql", "run", "slow.rq", "--stream", "many.nq"]
    (folder / "slow.rq").write_text(MEAN.replace("AVG(?v)", "GROUP_CONCAT(?v)"))
    (folder / "many.nq").write_text("".join(quad("a", t, t // 50) for t in range(50_000)))
    with subprocess.Popen(
        [*command, "--engine", "spark", "--master", "local[1]", "-o", "out.csv"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=ENVIRONMENT,
        start_new_session=True,
    ) as process:
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        try:
            status = process.wait(60)
        finally:
            process.kill()
        errors = process.stderr.read()  # to its end, when Java has exited as well
        assert (status, errors) == (130, "")


# -- entailment ------------------------------------------------------------------------------------


def test_entailment_needs_a_schema(folder):
    rdfs = "http://www.w3.org/2000/01/rdf-schema#"
    (folder / "kinds.ttl").write_text(
        f"<http://example.org/speed> <{rdfs}domain> <http://example.org/Turbine> ."
    )
    (folder / "kind.rq").write_text(
        f"PREFIX : <http://example.org/> SELECT ?t {FROM} WHERE {{ ?t a :Turbine }}"
    )
    kind = ("kind.rq", "--stream", "wind.nq", "--entailment", "rdfs")
    lines = output_lines(folder, *kind, "--graph", "kinds.ttl")
    assert [line.split()[-1] for line in lines] == ["?t", ":a", ":a", ":b"]
    done = run(folder, *kind)
    assert done.stdout.split() == ["start", "end", "?t"]
    warning = "warning: the static graphs have no schema, so nothing is entailed [no-schema]\nhint:"
    assert warning in done.stderr
    assert "warning" not in run(folder, *kind, "--quiet").stderr
    plain = run(folder, *kind[:3], "--graph", "kinds.ttl")
    assert "warning" not in plain.stderr


# -- rules -----------------------------------------------------------------------------------------


def test_rules_are_read_from_files(folder):
    (folder / "rules.rq").write_text(
        "PREFIX : <http://example.org/> CONSTRUCT { ?t :seen ?v } { ?t :speed ?v }\n"
        "CONSTRUCT { ?t :again ?v } { { ?t :seen ?u } SEQ { ?t :seen ?v } } # lint: ignore"
    )
    (folder / "again.rq").write_text("SELECT ?t { ?t <http://example.org/again> ?v }")
    (folder / "items.nq").write_text(
        "".join(
            f'<http://example.org/a> <http://example.org/speed> "{v}" <urn:x/{v}> .\n'
            for v in (1, 2)
        )
    )
    again = ("again.rq", "--stream", "items.nq", "--rules")
    lines = output_lines(folder, *again, "rules.rq")
    assert [line.split()[-1] for line in lines[1:]] == ["<http://example.org/a>"]
    done = run(folder, *again, "missing.rq")
    assert (done.returncode, done.stderr.count("missing.rq")) == (1, 1)
