"""`streamsparql run` and `explain` with several queries, in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import PREFIX, quad

from streamsparql.cli import main

HOT = f"{PREFIX}CONSTRUCT {{ ?t :is :hot }} FROM STREAM :wind [RANGE 10ms STEP 10ms] {{ ?t ?p ?v }}"
COUNT = "SELECT (COUNT(*) AS ?n) FROM STREAM <hot> [RANGE 20ms STEP 10ms] { ?t ?p ?o }"
PLAIN = f"{PREFIX}SELECT ?t ?start FROM STREAM :wind WINDOW RANGE 5 MS FIXED {{ ?t :speed ?start }}"


@pytest.fixture
def queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    for name, text in (("hot", HOT), ("count", COUNT), ("plain", PLAIN)):
        Path(f"{name}.rq").write_text(text)
    Path("wind.nq").write_text(quad("a", 90, 3) + quad("b", 70, 14))
    return ["hot.rq", "count.rq", "plain.rq"]


def test_rows_have_the_names_of_their_queries(queries, capsys):
    options = ["--stream", "wind.nq", "--output", "csv", "--until", "60"]
    assert main(["run", *queries, *options]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "query,subject,predicate,object,n,t,start,start_,end",
        "plain,,,,,http://example.org/a,90,3,5",
        "hot,http://example.org/a,http://example.org/is,http://example.org/hot,,,,10,20",
        "count,,,,1,,,10,20",
        "plain,,,,,http://example.org/b,70,14,15",
        "hot,http://example.org/b,http://example.org/is,http://example.org/hot,,,,20,30",
        "count,,,,2,,,20,30",
        "count,,,,1,,,30,40",
        "count,,,,0,,,40,60",
    ]
    assert err.startswith("2 items: 2 accepted, 0 late, 0 rejected; 8 rows in ")


def test_a_folder_has_a_file_for_each_query(queries, capsys):
    options = ["--stream", "wind.nq", "--until", "60", "--quiet", "-o", "rows/"]
    assert main(["run", *queries, *options, "--report", "rstream", "--every", "20"]) == 0
    assert capsys.readouterr() == ("", "")
    assert sorted(path.name for path in Path("rows").iterdir()) == [
        "count.csv",
        "hot.csv",
        "plain.csv",
    ]
    assert Path("rows/count.csv").read_text().splitlines() == ["n,instant", "1,20", "0,40"]
    assert main(["run", *queries, *options, "--output", "jsonl"]) == 0
    lines = Path("rows/count.jsonl").read_text().splitlines()
    assert [json.loads(line)["n"]["value"] for line in lines] == [*"1210"]


def test_rejects_of_streams_and_graphs_are_listed(queries, capsys):
    Path("graph.nt").write_text("<http://e/a> <http://e/p> what .\n")
    Path("wind.nq").write_text(quad("a", 90, 3) + "what\n" + quad("b", 70, 1))
    options = ["--stream", "wind.nq", "--graph", "graph.nt", "--rejects", "rejects.jsonl"]
    assert main(["run", *queries, *options]) == 0
    rejects = [json.loads(line) for line in Path("rejects.jsonl").read_text().splitlines()]
    assert sorted(reject["source"] for reject in rejects) == ["graph.nt", "wind.nq", "wind.nq"]
    counts = "3 items: 1 accepted, 1 late, 1 rejected, 1 triple of graphs rejected; "
    assert capsys.readouterr().err.startswith(counts)


def test_several_queries_are_explained_as_one_plan(queries, capsys):
    assert main(["explain", *queries]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Session  3 queries, 3 plans"
    assert sum("StreamAccess" in line for line in lines) == 1
    assert main(["explain", *queries, "-o", "plans.json"]) == 0
    plans = json.loads(Path("plans.json").read_text())
    assert [query["name"] for query in plans["queries"]] == ["hot", "count", "plain"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["run", "hot.rq", "other/hot.rq"], 2, "2 queries are called 'hot'; rename a file"),
        (["run", "hot.rq", "plain.rq", "--engine", "spark"], 2, "--engine spark runs one query"),
        (["run", "hot.rq", "plain.rq", "--emit", "eager"], 2, "--emit eager applies to one query"),
        (["run", "hot.rq", "plain.rq", "-o", "x.nq"], 2, "nq has no names of queries"),
        (["run", "hot.rq", "plain.rq", "-o", "x.what"], 2, "-o x.what: unknown extension"),
        (["run", "hot.rq", "plain.rq", "-o", "d/", "--output", "nq"], 2, "not for the SELECT of"),
        (["run", "hot.rq", "plain.rq", "-o", "wind.nq", "--output", "csv"], 1, "the run reads it"),
        (["run", "hot.rq", "count.rq", "--stream", "hot=wind.nq"], 1, "unknown stream <hot>"),
        (["run", "hot.rq", "loop.rq"], 1, "loop.rq: a cycle"),
        (
            ["explain", "hot.rq", "plain.rq", "--stage", "logical"],
            2,
            "--stage logical explains one",
        ),
        (
            ["explain", "hot.rq", "plain.rq", "--format", "svg", "-o", "plain.rq"],
            2,
            "would overwrite",
        ),
    ],
)
def test_mistakes_are_named(queries, capsys, arguments, status, message):
    Path("other").mkdir()
    Path("other/hot.rq").write_text(HOT)
    Path("loop.rq").write_text(COUNT.replace("SELECT (COUNT(*) AS ?n)", "CONSTRUCT { ?t ?p ?o }"))
    if "loop.rq" in arguments:
        Path("hot.rq").write_text(HOT.replace(":wind", "<loop>"))
    if "--stream" not in arguments and arguments[0] == "run" and "loop.rq" not in arguments:
        arguments = [*arguments, "--stream", "wind.nq"]
    before = Path("wind.nq").read_text()
    assert main(arguments) == status
    assert message in capsys.readouterr().err
    assert Path("wind.nq").read_text() == before
