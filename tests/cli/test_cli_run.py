"""`streamsparql run` and `prepare`, as a user meets them: in a process of their own."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet
import pytest

import streamsparql
from streamsparql.cli import main
from streamsparql.cli.interrupts import Interrupts
from streamsparql.query import Query
from streamsparql.run.input import RunInput
from streamsparql.run.replay import Replay

ROOT = Path(__file__).parents[2]
WIND = "http://example.org/wind"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
PREFIX = "PREFIX : <http://example.org/>\n"
FROM = f"FROM STREAM <{WIND}> WINDOW RANGE 10 SECOND SLIDE 5 SECOND\n"
MEAN = f"{PREFIX}SELECT ?t (AVG(?v) AS ?mean) {FROM} WHERE {{ ?t :speed ?v }} GROUP BY ?t"
FAST = f"{PREFIX}CONSTRUCT {{ ?t :fast ?v }} {FROM} WHERE {{ ?t :speed ?v FILTER(?v > 5) }}"
ANY = f"{PREFIX}ASK {FROM} WHERE {{ ?t :speed ?v FILTER(?v > 5) }}"
SUMMARY = re.compile(
    r"[0-9,]+ items?: [0-9,]+ accepted.*, 0 late, 0 rejected; [0-9,]+ rows? in .*s\n"
)
ITEMS = (("a", 6, 1_000), ("a", 8, 4_000), ("b", 5, 12_000))


def quad(turbine: str, speed: int, t: int) -> str:
    subject, predicate = f"<http://example.org/{turbine}>", "<http://example.org/speed>"
    return f'{subject} {predicate} "{speed}"^^<{INTEGER}> "{t}"^^<{INTEGER}> .\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a stream and queries over it."""
    (tmp_path / "wind.nq").write_text("".join(quad(*item) for item in ITEMS))
    for name, text in (("mean", MEAN), ("fast", FAST), ("any", ANY), ("none", "ASK {}")):
        (tmp_path / f"{name}.rq").write_text(text)
    return tmp_path


def run(
    cwd: Path, *arguments: str, text: str = "", zone: str = "UTC"
) -> subprocess.CompletedProcess[str]:
    """Runs `python -m streamsparql run` in the folder."""
    return subprocess.run(
        [sys.executable, "-m", "streamsparql", "run", *arguments],
        input=text,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TZ": zone},
        timeout=120,
    )


def printed(cwd: Path, *arguments: str, text: str = "", zone: str = "UTC") -> list[str]:
    """What it prints, when nothing is wrong."""
    done = run(cwd, *arguments, text=text, zone=zone)
    assert done.returncode == 0
    assert SUMMARY.fullmatch(done.stderr), done.stderr
    return done.stdout.splitlines()


# -- formats ---------------------------------------------------------------------------------------


def test_a_table_is_aligned_and_shortens_iris(folder):
    assert printed(folder, "mean.rq", "--stream", f"{WIND}=wind.nq") == [
        "start    end  ?t  ?mean",
        " 1000   4000  :a      6",
        " 4000  10000  :a      7",
        "12000  20000  :b      5",
    ]


def test_times_are_milliseconds_or_utc_or_local(folder):
    """A table shows what people read, the others what programs do, unless told else."""
    (folder / "today.nq").write_text(quad("a", 6, 1_772_352_000_250))
    given = ("mean.rq", "--stream", "today.nq")
    assert printed(folder, *given) == [
        "start (UTC)              end                  ?t  ?mean",
        "2026-03-01 08:00:00.250  2026-03-01 08:00:10  :a      6",
    ]
    assert (
        printed(folder, *given, "--timestamps", "ms")[0]
        == "        start            end  ?t  ?mean"
    )
    csv = (*given, "--output", "csv")
    assert printed(folder, *csv)[1].endswith(",1772352000250,1772352010000")
    lines = printed(folder, *csv, "--timestamps", "iso")
    assert lines[1].endswith(",2026-03-01T08:00:00.250Z,2026-03-01T08:00:10Z")
    lines = printed(folder, *csv, "--timestamps", "local", zone="Asia/Kolkata")
    assert lines[1].endswith(",2026-03-01T13:30:00.250+05:30,2026-03-01T13:30:10+05:30")
    lines = printed(folder, *given, "--output", "jsonl", "--timestamps", "iso")
    assert json.loads(lines[0])["end"] == "2026-03-01T08:00:10Z"


def test_a_file_s_extension_is_its_format(folder):
    given = ("mean.rq", "--stream", "wind.nq")
    for name in ("out.csv", "out.jsonl.gz", "out.parquet", "out.csv.zst", "out.txt"):
        assert printed(folder, *given, "-o", name) == []
    assert (folder / "out.csv").read_text().startswith("t,mean,start,end\n")
    assert len(gzip.decompress((folder / "out.jsonl.gz").read_bytes()).splitlines()) == 3
    assert (folder / "out.txt").read_text().startswith("start")
    table = parquet.read_table(folder / "out.parquet")
    assert table.column_names == ["t", "mean", "start", "end"]
    assert table["end"].to_pylist() == [4000, 10000, 20000]
    assert table["t"].to_pylist()[0] == "<http://example.org/a>"
    with pyarrow.CompressedInputStream(str(folder / "out.csv.zst"), "zstd") as file:
        assert file.read() == (folder / "out.csv").read_bytes()


def test_what_is_read_is_not_written(folder):
    """Nor is it emptied: not the mapping, not a graph that the query names."""
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


def test_what_is_no_triple_of_a_graph_is_told_and_counted(folder):
    (folder / "lab.nt").write_text("so what\n" * 5 + "<http://e/a> <http://e/in> <http://e/b> .\n")
    given = ("mean.rq", "--stream", "wind.nq", "--graph", "lab.nt")
    said, *rejects = run(folder, *given).stderr.splitlines()
    assert ", 0 rejected, 5 triples of graphs rejected; 3 rows in " in said
    assert rejects[0] == "  lab.nt, line 1: not a line of N-Triples: 'so what'"
    assert rejects[-1] == "  … and 2 more: --rejects FILE has them all"
    found = streamsparql.compile(MEAN).analyze(folder / "wind.nq", folder / "lab.nt")
    assert found.graph_rejects == 5
    assert "5 triples of graphs rejected" in str(found)


def test_what_is_told_moves_no_cursor(folder):
    text = f'<http://e/a> <http://e/p> <http://e/b> "\x1b[2Jsoon\x07"^^<{INTEGER}> .\n'
    (folder / "wind.nq").write_text(text)
    done = run(folder, "mean.rq", "--stream", "wind.nq")
    assert "1 rejected" in done.stderr
    assert not {"\x1b", "\x07"} & set(done.stderr)
    done = run(folder, "mean.rq", "--stream", "\x1b[31mno.nq")
    assert (done.returncode, "\x1b" in done.stderr) == (1, False)


def test_devices_take_rejects_and_rows(folder):
    null = (os.devnull, "--rejects", os.devnull, "--output", "csv")
    done = run(folder, "mean.rq", "--stream", "wind.nq", "-o", *null)
    assert (done.returncode, SUMMARY.fullmatch(done.stderr) is not None) == (0, True)


def test_rejects_of_an_earlier_run_are_left_alone_by_one_that_fails_at_once(folder):
    (folder / "rejects.jsonl").write_text("old\n")
    given = ("mean.rq", "--rejects", "rejects.jsonl", "--stream")
    assert run(folder, *given, "none.nq").returncode == 1
    assert (folder / "rejects.jsonl").read_text() == "old\n"
    assert run(folder, *given, "wind.nq").returncode == 0
    assert (folder / "rejects.jsonl").read_text() == ""


def test_csv_has_values(folder):
    lines = printed(folder, "mean.rq", "--stream", "wind.nq", "--output", "csv")
    assert lines[:2] == ["t,mean,start,end", "http://example.org/a,6,1000,4000"]


def test_json_lines_have_terms_as_sparql_has_them(folder):
    lines = printed(folder, "mean.rq", "--stream", "wind.nq", "--output", "jsonl")
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


def test_all_kinds_of_terms_and_none(folder):
    terms = '"a\\nb"', '"chat"@fr', "_:b", "<http://example.org/x>", '"1 "^^<http://example.org/d>'
    made = (
        f'<http://e.org/s> <http://e.org/p> {o} "{t}"^^<{INTEGER}> .' for t, o in enumerate(terms)
    )
    text = "SELECT ?o ?end FROM STREAM <s> WINDOW RANGE 1 MS SLIDE 1 MS { ?s ?p ?o }"
    (folder / "terms.rq").write_text(text)
    (folder / "terms.nq").write_text("\n".join(made))
    lines = printed(folder, "terms.rq", "--stream", "s=terms.nq", "--output", "jsonl")
    found = [json.loads(line) for line in lines]
    assert [(row["start"], row["end_"]) for row in found] == [(t, t + 1) for t in range(5)]
    assert all("end" not in row for row in found)
    assert [row["o"].get("value") for row in found if row["o"]["type"] != "bnode"] == [
        "a\nb",
        "chat",
        "http://example.org/x",
        "1 ",
    ]
    assert found[1]["o"]["xml:lang"] == "fr"
    table = printed(folder, "terms.rq", "--stream", "s=terms.nq")
    assert table[0].split() == ["start", "end_", "?o", "?end"]
    assert table[1].split() == ["0", "1", '"a\\nb"']


def test_triples_can_be_a_source_again(folder):
    for kind in ("nq", "csv"):
        printed(folder, "fast.rq", "--stream", "wind.nq", "--output", kind, "-o", f"fast.{kind}")
    text = FAST.replace(":fast", ":x").replace(":speed", ":fast")
    again = printed(folder, "-", "--stream", "fast.nq", "--output", "csv", text=text)
    assert again[1:3] == [
        f'<http://example.org/a>,<http://example.org/x>,"""6""^^<{INTEGER}>",1000,10000',
        f'<http://example.org/a>,<http://example.org/x>,"""8""^^<{INTEGER}>",4000,10000',
    ]
    same = ("--output", "csv")
    assert again == printed(folder, "-", "--stream", "fast.csv", *same, text=text)
    printed(folder, "fast.rq", "--stream", "wind.nq", "-o", "fast.parquet")
    assert again == printed(folder, "-", "--stream", "fast.parquet", *same, text=text)


def test_ask_has_answers(folder):
    lines = printed(folder, "any.rq", "--stream", "wind.nq")
    assert [line.split() for line in lines] == [
        ["start", "end", "answer"],
        ["1000", "10000", "true"],
        ["10000", "…", "false"],
    ]
    lines = printed(folder, "any.rq", "--stream", "wind.nq", "--output", "jsonl")
    assert json.loads(lines[1]) == {"answer": False, "start": 10000, "end": None}
    assert printed(folder, "any.rq", "--stream", "wind.nq", "--output", "csv")[2] == "false,10000,"


# -- options ---------------------------------------------------------------------------------------


def test_reports_have_instants(folder):
    given = ("mean.rq", "--stream", "wind.nq", "--output", "csv")
    lines = printed(folder, *given, "--report", "istream", "--every", "10s")
    assert lines == [
        "t,mean,instant",
        "http://example.org/a,7,10000",
        "http://example.org/b,5,20000",
    ]
    assert len(printed(folder, *given, "--every", "5s")) == 5
    lines = printed(folder, "fast.rq", *given[1:], "--every", "10s")
    assert [line[-6:] for line in lines[1:]] == [",10000", ",10000"]
    assert printed(folder, "any.rq", *given[1:], "--every", "10s")[1] == "true,10000"


def test_a_horizon_is_milliseconds_or_a_time(folder):
    given = ("mean.rq", "--stream", "wind.nq", "--output", "csv")
    lines = printed(folder, *given, "--from", "5000", "--until", "1970-01-01T00:00:12Z")
    assert lines[1:] == ["http://example.org/a,7,5000,10000"]
    assert run(folder, *given, "--from", "soon").returncode == 2
    assert run(folder, *given, "--from", "7", "--until", "6").returncode == 2


def test_standard_input_is_a_stream_and_a_file_gets_the_output(folder):
    text = (folder / "wind.nq").read_text()
    assert printed(folder, "mean.rq", "--stream", "-", "-o", "out.txt", text=text) == []
    assert len((folder / "out.txt").read_text().splitlines()) == 4
    done = run(folder, "-", "--stream", "-", text=text)
    assert (done.returncode, "read once" in done.stderr) == (2, True)
    done = run(folder, "mean.rq", "--stream", "wind.nq", "-o", str(folder / "no" / "out.txt"))
    assert (done.returncode, "cannot write" in done.stderr) == (1, True)


def test_static_graphs(folder):
    (folder / "parks.nt").write_text("<http://example.org/a> <http://example.org/in> <urn:p=1> .\n")
    text = MEAN.replace("?t :speed ?v", "?t :speed ?v . ?t :in ?p")
    assert len(printed(folder, "-", "--stream", "wind.nq", "--graph", "parks.nt", text=text)) == 3
    text = MEAN.replace("WHERE", "FROM NAMED <urn:g=1> WHERE")
    text = text.replace("?t :speed ?v", "?t :speed ?v . GRAPH <urn:g=1> { ?t :in ?p }")
    named = ("--named", "urn:g=1=parks.nt")
    assert len(printed(folder, "-", "--stream", "wind.nq", *named, text=text)) == 3


# -- what is wrong ---------------------------------------------------------------------------------


def test_what_is_late_or_bad_is_told(folder):
    with (folder / "wind.nq").open("a") as file:
        file.write("so what\n" * 3 + quad("b", 5, 2_000))
    done = run(folder, "mean.rq", "--stream", "wind.nq")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4)
    said, *rejects = done.stderr.splitlines()
    assert said.startswith("7 items: 3 accepted, 1 late, 3 rejected; 3 rows in ")
    assert rejects == [
        *(f"  wind.nq, line {n}: not a line of N-Quads: 'so what'" for n in (4, 5, 6)),
        "  … and 1 more: --rejects FILE has them all",
    ]
    done = run(folder, "mean.rq", "--stream", "wind.nq", "--max-delay", "10s")
    assert done.stderr.startswith("7 items: 4 accepted, 0 late, 3 rejected")
    run(folder, "mean.rq", "--stream", "wind.nq", "--rejects", "bad.jsonl")
    *_, last = map(json.loads, (folder / "bad.jsonl").read_text().splitlines())
    assert (last["source"], last["position"], last["reason"]) == ("wind.nq", 7, "late by 10000 ms")
    assert run(folder, "mean.rq", "--stream", "wind.nq", "--quiet").stderr == ""
    done = run(folder, "mean.rq", "--stream", "wind.nq", "--strict", "-o", "out.txt")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "streamsparql: wind.nq, line 4: not a line of N-Quads: 'so what'\n"


def test_a_table_without_a_header_is_mapped(folder):
    """What is said of CSV is for CSV: it is refused where no stream is."""
    (folder / "a.csv").write_text("x|1,5|1000\ny|2,5|2000\n")
    (folder / "map.rq").write_text(
        f"""CONSTRUCT {{ ?s <http://example.org/speed> ?v }}
        {{ BIND(IRI(CONCAT("http://example.org/", ?a)) AS ?s) BIND(<{INTEGER}>(?c) AS ?timestamp)
           BIND(STRDT(REPLACE(?b, ",", "."), <http://www.w3.org/2001/XMLSchema#decimal>) AS ?v) }}"""
    )
    (folder / "all.rq").write_text(f"SELECT ?s ?v {FROM} {{ ?s ?p ?v }}")
    given = ("all.rq", "--stream", "a.csv", "--map", "map.rq", "--output", "csv")
    done = run(folder, *given)
    assert (done.returncode, "unknown column" in done.stderr) == (1, True)
    lines = printed(folder, *given, "--no-header", "--delimiter", "|")
    assert [line.split(",")[:2] for line in lines[1:]] == [
        ["http://example.org/x", "1.5"],
        ["http://example.org/y", "2.5"],
    ]
    (folder / "a.jsonl").write_text("")
    done = run(folder, "all.rq", "--stream", "a.jsonl", "--map", "map.rq", "--no-header")
    assert (done.returncode, "a stream that is CSV" in done.stderr) == (2, True)


def test_one_mapping_from_standard_input_is_for_all_streams(folder):
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


def test_rows_of_which_a_mapping_makes_no_triple_are_told(folder):
    lines = [f'{{"n": {n}, "t": {n}}}\n' for n in range(1, 5)]
    (folder / "a.jsonl").write_text(lines[0] + lines[2])
    (folder / "b.jsonl").write_text(lines[1] + lines[3])
    query = f"SELECT ?n FROM STREAM <{WIND}> WINDOW RANGE 1 MS FIXED {{ ?x <n> ?n }}"
    (folder / "n.rq").write_text(query)
    (folder / "map.rq").write_text("CONSTRUCT { <x> <n> ?n } { FILTER(?n > 2) }")
    arguments = ("--stream", "a.jsonl", "--stream", "b.jsonl", "--map", "map.rq")
    said = run(folder, "n.rq", *arguments).stderr
    assert said.startswith(
        "2 items: 2 accepted, 0 late, 0 rejected, no triple made of 2 rows of tables;"
    )
    (folder / "map.rq").write_text("CONSTRUCT { <x> <n> ?m } {}")
    said = run(folder, "n.rq", *arguments).stderr
    assert said.startswith(
        "0 items: 0 accepted, 0 late, 0 rejected, no triple made of 4 rows of tables;"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["mean.rq"], 1, f"give --stream {WIND}=FILE"),
        (["mean.rq", "--stream", "gone.nq"], 1, "gone.nq: No such file"),
        (["mean.rq", "--stream", "urn:x=wind.nq"], 1, f"the stream <urn:x>, but <{WIND}>"),
        (["mean.rq", "--stream", "wind.nq", "--graph", "gone.nt"], 1, "gone.nt: No such file"),
        (
            ["mean.rq", "--stream", "wind.nq", "--named", "urn:x=wind.nq"],
            1,
            "unknown graph <urn:x>",
        ),
        (["mean.rq", "--stream", "wind.nq", "--named", "wind.nq"], 2, "write IRI=FILE"),
        (["mean.rq", "--stream", f"{WIND}="], 2, "no file is given"),
        (["mean.rq", "--stream", "wind.nq", "--stream", "wind.nq"], 1, "duplicate file"),
        (["mean.rq", "--stream", "wind.nq", "--output", "nq"], 2, "nq is for triples"),
        (["mean.rq", "--stream", "wind.nq", "--every", "1x"], 2, "'1x' is no duration"),
        (["mean.rq", "--stream", "wind.nq", "--slabs", "0"], 2, "there has to be one at least"),
        (["mean.rq", "--stream", "wind.nq", "--no-header"], 2, "go with --map"),
        (["none.rq", "--stream", "wind.nq"], 2, "the query reads no stream"),
        (["mean.rq", "--stream", "wind.nq", "--slabs", "3"], 2, "goes with --engine spark"),
        (["mean.rq", "--stream", "wind.nq", "--from", "9", "--until", "9"], 2, "--until is a time"),
        (["mean.rq", "--stream", "wind.nq", "--from", "9" * 5_000], 2, "too many"),
        (["mean.rq", "--stream", "wind.nq", "-o", "rows.nq"], 2, "nq is for triples"),
        (["mean.rq", "--stream", "wind.nq", "--output", "parquet"], 2, "goes with -o FILE"),
        (["mean.rq", "--stream", "wind.nq", "--rejects", "no/bad"], 1, "cannot write no/bad"),
        (["mean.rq", "--stream", "wind.nq", "-o", "wind.nq", "--output", "csv"], 1, "run reads it"),
        (["mean.rq", "--stream", ".", "-o", "wind.nq", "--output", "csv"], 1, "run reads it"),
        (["mean.rq", "--stream", "wind.nq", "--rejects", "wind.nq"], 1, "run reads it"),
        (["mean.rq", "--stream", "wind.nq", "-o", "mean.rq", "--output", "csv"], 1, "run reads it"),
        (["mean.rq", "--stream", "wind.nq", "-o", "a.csv", "--rejects", "./a.csv"], 2, "one file"),
        (["mean.rq", "--stream", "wind.nq", "--stream", "./wind.nq"], 1, "duplicate file"),
        (["mean.rq", "--stream", "wind.nq", "--from", "-5"], 2, "before 1970"),
        (["mean.rq", "--stream", "wind.nq", "--every", "0s"], 2, "every so often"),
        (
            ["mean.rq", "--stream", "wind.nq", "--map", "mean.rq"],
            1,
            "--map mean.rq: a mapping must be a",
        ),
        (["mean.rq", "--stream", "wind.nq", "-o", "rows.foo"], 2, "is no format"),
        (["mean.rq", "--stream", "wind.nq", "--map", "fast.rq"], 1, "a mapping cannot have FROM"),
        (["mean.rq", "--stream", "-", "--map", "-"], 2, "read once"),
        (["mean.rq", "--stream", "wind.nq", "--map", "a=b.rq"], 1, "a=b.rq: cannot be read"),
        (["mean.rq", "--stream", "wind.nq", "--every", f"{10**20}d"], 2, "longer than time"),
        (["mean.rq", "--stream", "wind.nq", "--from", str(1 << 63)], 2, "too many"),
        (
            ["mean.rq", "--stream", "wind.nq", "--emit", "eager", "--every", "1s"],
            2,
            "reports are final",
        ),
        (["gone.rq", "--stream", "wind.nq"], 1, "gone.rq: cannot be read"),
        (["mean.rq", "--stream", "wind.nq", "--evry", "5s"], 2, "did you mean --every?"),
    ],
)
def test_mistakes_are_told_without_a_traceback(folder, arguments, status, message):
    done = run(folder, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_fails_leaves_an_older_file_alone(folder):
    (folder / "out.txt").write_text("older")
    assert run(folder, "mean.rq", "--stream", "gone.nq", "-o", "out.txt").returncode == 1
    assert (folder / "out.txt").read_text() == "older"


# -- how it ends -----------------------------------------------------------------------------------


def test_a_reader_that_has_gone_is_no_error(folder):
    (folder / "long.nq").write_text("".join(quad("a", 9 + t, 100 * t) for t in range(50_000)))
    done = subprocess.run(
        f"{sys.executable} -m streamsparql run fast.rq --stream long.nq --output nq | head -n 2",
        shell=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert (len(done.stdout.splitlines()), done.stderr) == (2, "")


def test_a_row_comes_when_it_ends_or_at_once_in_pieces(folder):
    """Standard input is endless: what is known is there to be read while it waits for more."""
    text = "".join(quad("a", 5, t) for t in range(1_000, 16_000, 1_000))
    for emit in ("final", "eager"):
        with live(folder, "--output", "csv", "--emit", emit) as running:
            running.stdin.write(text)
            running.stdin.flush()
            assert running.stdout.readline() == "t,mean,start,end\n"
            rows = [running.stdout.readline()] if emit == "eager" else []
            running.stdin.write(quad("a", 6, 40_000))
            running.stdin.flush()
            rows += [running.stdout.readline()]  # while standard input is open
            running.stdin.close()
            rows += running.stdout.readlines()
            assert running.wait(30) == 0
        cells = [row.rstrip().split(",")[1:] for row in rows]
        assert (cells[0][:2], cells[-1]) == (["5", "1000"], ["6", "40000", "50000"])
        assert (len(cells) > 2) == (emit == "eager")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk here")
def test_a_full_disk_is_told_by_its_name(folder):
    done = run(folder, "mean.rq", "--stream", "wind.nq", "-o", "/dev/full", "--output", "csv")
    assert done.stderr == "streamsparql: cannot write /dev/full: No space left on device\n"
    assert done.returncode == 1
    for arguments in ("--version", "--help", "run --help"):
        command = f"{sys.executable} -m streamsparql {arguments} > /dev/full"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr


def as_trig(item: tuple[Any, ...]) -> str:
    """An item in a graph of its own, which says when it was generated."""
    *triple, stamp, _ = quad(*item).rsplit(" ", 2)
    graph = f"<http://e/graph/{item[-1]}>"
    generated = "<http://www.w3.org/ns/prov#generatedAtTime>"
    return f"{graph} {generated} {stamp} .\n{graph} {{ {' '.join(triple)} }}\n"


COMING: dict[str, Callable[[], bytes]] = {
    "nq": lambda: "".join(quad(*item) for item in ITEMS).encode(),
    "nq.gz": lambda: gzip.compress("".join(quad(*item) for item in ITEMS).encode()),
    "trig": lambda: "".join(map(as_trig, ITEMS)).encode(),
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
@pytest.mark.parametrize("kind", COMING)
def test_a_named_pipe_is_read_as_it_comes(folder, kind):
    """And what is packed is known by how it begins, where no name tells it."""
    pipe_name = f"pipe.{kind}"
    os.mkfifo(folder / pipe_name)
    command = [sys.executable, "-m", "streamsparql", "run", "mean.rq", "--stream", pipe_name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [*command, "--output", "csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
    ) as running:
        assert running.stdout is not None
        with (folder / pipe_name).open("wb") as pipe:
            pipe.write(COMING[kind]())
            pipe.flush()
            assert [running.stdout.readline() for _ in range(3)][2].endswith(",7,4000,10000\n")
            running.send_signal(signal.SIGINT)
            assert running.wait(30) == 130
    packed = gzip.compress((folder / "wind.nq").read_bytes())
    done = subprocess.run(
        [*command[:-1], "-"], input=packed, capture_output=True, cwd=folder, env=environment
    )
    assert len(done.stdout.splitlines()) == 4


@contextmanager
def live(folder: Path, *arguments: str, command: str = "run") -> Iterator[Any]:
    """The command with a stream that comes from here, as it runs."""
    words = [sys.executable, "-m", "streamsparql", command, "mean.rq", "--stream", "-"]
    with subprocess.Popen(
        [*words, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as running:
        yield running


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_gives_out_what_is_known_and_says_how_far_that_is(folder, number):
    """What was cut short is the same as what a run until then gives."""
    items = "".join(quad("a", t * t, 100 * t) for t in range(1_000))  # each is another mean
    with live(folder, "--output", "csv") as running:
        running.stdin.write(items)
        running.stdin.flush()
        lines = []
        while not lines or not lines[-1].endswith(",99700\n"):  # known when the last item has come
            lines.append(running.stdout.readline())
            assert lines[-1]
        running.send_signal(number)
        assert running.wait(30) == 128 + number
        said = running.stderr.read()
        lines += running.stdout.readlines()
    known = re.match(r"interrupted, complete up to ([0-9,]+) ms: 1,000 items", said)
    assert known, said
    (folder / "all.nq").write_text(items)
    until = known[1].replace(",", "")
    given = ("mean.rq", "--stream", "all.nq", "--output", "csv", "--until", until)
    assert sorted(map(str.rstrip, lines)) == sorted(printed(folder, *given))


def test_what_a_join_holds_open_is_given_where_the_horizon_ends():
    query = streamsparql.compile(
        f"{PREFIX}SELECT * {FROM} {{ ?t :speed ?v OPTIONAL {{ ?t :stop ?w }} }}"
    )
    speed, stop = (f"<http://example.org/{name}>" for name in ("speed", "stop"))
    items = [
        ("<a>", speed, "<x>", 1_000),
        ("<b>", speed, "<y>", 2_000),
        ("<b>", stop, "<z>", 3_000),
    ]
    endless = chain(items, (("<c>", speed, "<x>", t) for t in count(5_000, 5_000)))
    replay = Replay(query, RunInput({WIND: endless}, end=5_000), ordered=False, endless=True)
    found = pyarrow.concat_tables(replay.tables()).to_pylist()
    expected = query.run(items, end=5_000).to_arrow().to_pylist()
    assert len(expected) == 3
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_where_the_horizon_ends_nobody_waits_for_more(folder):
    given = ("--output", "csv", "--until", "5000")
    for report in ((), ("--every", "2s")):
        with live(folder, *given, *report) as running:
            running.stdin.write("".join(quad(*item) for item in ITEMS))
            running.stdin.flush()
            assert running.wait(30) == 0  # standard input is still open
            lines = running.stdout.read().splitlines()
            assert re.match("3 items: 3 accepted", running.stderr.read())
        assert lines == printed(folder, "mean.rq", "--stream", "wind.nq", *given, *report)
        assert len(lines) == 3
    with live(folder, "--analyze", "--until", "5000", command="explain") as running:
        running.stdin.write("".join(quad(*item) for item in ITEMS))
        running.stdin.flush()
        assert running.wait(30) == 0
        assert "3 read: 3 accepted" in running.stdout.read()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_a_signal_that_is_sent_twice_at_once_is_one(monkeypatch):
    """As `timeout` does. A second one that somebody sends later ends the process."""
    stops = []
    with Interrupts(lambda: stops.append(1), []) as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert (interrupts.signal, stops) == (signal.SIGINT, [1])
        monkeypatch.setattr("streamsparql.cli.interrupts._SAME", -1.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_an_interrupt_before_anything_came_has_nothing_to_give(folder, monkeypatch, capsys):
    reader, writer = os.pipe()
    before = signal.getsignal(signal.SIGINT)

    def interrupt() -> None:
        deadline = time.monotonic() + 30
        while signal.getsignal(signal.SIGINT) is before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with os.fdopen(writer, "w"), os.fdopen(reader) as standard_input:
        monkeypatch.setattr(sys, "stdin", standard_input)
        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        assert main(["run", str(folder / "mean.rq"), "--stream", "-"]) == 130
        thread.join()
    assert capsys.readouterr().err.startswith("interrupted, complete up to nothing: 0 items")
    assert signal.getsignal(signal.SIGINT) is before


# -- Spark -----------------------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
@pytest.mark.skipif(
    "spark" not in inspect.signature(Query.run).parameters, reason="there is no Spark engine"
)
def test_spark_answers_the_same_and_is_quiet(folder):
    """The session is made for the command, and says nothing where no terminal shows it."""
    given = ("mean.rq", "--stream", "wind.nq", "--output", "csv")
    spark = ("--engine", "spark", "--master", "local[1]", "--slabs", "2")
    done = run(folder, *given, *spark)
    assert done.stdout.splitlines() == printed(folder, *given)
    assert re.fullmatch(r"3 rows; 0 late or rejected; .* s\n", done.stderr), done.stderr


@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("seconds", [1.2, 4.5])
def test_an_interrupt_ends_spark_too_and_says_nothing(folder, seconds):
    """Whether its Java process is about to start or answers already."""
    command = [sys.executable, "-m", "streamsparql", "run", "slow.rq", "--stream", "many.nq"]
    (folder / "slow.rq").write_text(MEAN.replace("AVG(?v)", "GROUP_CONCAT(?v)"))
    (folder / "many.nq").write_text("".join(quad("a", t, t // 50) for t in range(50_000)))
    with subprocess.Popen(
        [*command, "--engine", "spark", "--master", "local[1]", "-o", "out.csv"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    ) as running:
        time.sleep(seconds)
        os.killpg(running.pid, signal.SIGINT)
        status = running.wait(60)
        assert (status, running.stderr.read()) == (
            130,
            "",
        )  # read to its end: Java has gone as well
