"""The command line: `explain`, `check`, help and errors, each run in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamsparql.cli import main

ROOT = Path(__file__).parents[2]
GOOD = "SELECT ?x FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S WHERE { ?x <p> ?y }\n"
WRONG = "SELECT ?x {\n  ?x <p> 1 .\n  FILTRE(?x)\n}\n"


def run(*arguments: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m streamsparql`."""
    return subprocess.run(
        [sys.executable, "-m", "streamsparql", *arguments],
        input=text,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=60,
    )


@pytest.fixture
def query(tmp_path: Path) -> str:
    file = tmp_path / "query.rq"
    file.write_text(GOOD)
    return str(file)


def test_explain_shows_all_stages(query):
    done = run("explain", query)
    assert done.returncode == 0
    assert "TriplesBlock" in done.stdout
    assert "SlidingDeltaWindow  range 10 s, slide 1 s" in done.stdout
    assert "\x1b[" not in done.stdout
    assert done.stderr == ""


def test_explain_reads_standard_input():
    done = run("explain", "-", "--stage", "logical", "--format", "json", text=GOOD)
    assert json.loads(done.stdout)["logical"]["nodes"][0]["kind"] == "Projection"


def test_explain_writes_a_file(query, tmp_path):
    done = run("explain", query, "-o", str(tmp_path / "plan.pdf"))
    assert (done.returncode, "rsvg-convert -f pdf -o plan.pdf plan.svg" in done.stderr) == (2, True)
    done = run("explain", query, "-o", str(tmp_path / "plan.xyz"))
    assert (done.returncode, "unknown extension" in done.stderr) == (2, True)
    done = run("explain", query, "--format", "svg", "-o", str(tmp_path / "plan.svg"))
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    for name, begin in (
        ("a.svg", "<svg"),
        ("a.html", "<!DOCTYPE"),
        ("a.json", "{"),
        ("a.txt", "dialect"),
    ):
        assert run("explain", query, "-o", str(tmp_path / name)).returncode == 0
        assert (tmp_path / name).read_text("utf-8").startswith(begin)
    done = run("explain", query, "-o", str(tmp_path / "nowhere" / "plan.txt"))
    assert done.returncode == 1
    assert "cannot write" in done.stderr


def test_errors_in_a_query_show_their_place():
    done = run("explain", "-", text=WRONG)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[:3] == [
        "standard input: line 3, column 3: unexpected 'FILTRE'",
        "   3 |   FILTRE(?x)",
        "     |   ^^^^^^",
    ]
    assert "did you mean FILTER?" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_reports_on_all_files(query, tmp_path):
    (tmp_path / "wrong.rq").write_text(WRONG)
    (tmp_path / "doubtful.rq").write_text("SELECT ?y { ?x <p> 1 }")
    (tmp_path / "latin.rq").write_bytes(b"SELECT ?x { ?x <p> '\xe9' }")
    names = [query, *(str(tmp_path / name) for name in ("wrong.rq", "doubtful.rq", "latin.rq"))]
    done = run("check", *names, str(tmp_path / "absent.rq"))
    assert done.returncode == 1
    assert f"{query}: ok" in done.stdout
    assert (
        "doubtful.rq: line 1, column 8: warning: nothing binds ?y here [never-bound]" in done.stdout
    )
    assert "wrong.rq: line 3" in done.stderr
    assert "latin.rq: is not UTF-8" in done.stderr
    assert "absent.rq: cannot be read" in done.stderr


def test_warnings_do_not_change_the_exit_status():
    assert run("check", "-", text="SELECT ?y { ?x <p> 1 }").returncode == 0


def test_options_reach_the_compiler():
    text = "SELECT ?x FROM STREAM <s> WINDOW RANGE 10 FIXED { ?x <p> 1 } AGGREGATE { (?n, COUNT, {?x}) }"
    assert "foreign" in run("check", "-", "--dialect", "streaming", text=text).stdout
    assert run("check", "-", "--dialect", "streaming", "--pedantic", text=text).returncode == 1
    shown = run("explain", "-", "--base", "http://b/", "--origin", "7", text=GOOD).stdout
    assert "<http://b/s>" in shown
    assert "origin 7" in shown


def test_entailment_is_an_option_of_each_command_that_compiles():
    shown = run("explain", "-", "--entailment", "rdfs", text=GOOD).stdout
    assert "entailment  RDFS" in shown
    assert "Entailed  RDFS" in shown
    physical = run("explain", "-", "--entailment", "rdfs", "--stage", "physical", text=GOOD).stdout
    assert "EntailedMatching" in physical
    assert run("check", "-", "--entailment", "rdfs", text=GOOD).returncode == 0
    done = run("explain", "-", "--entailment", "owl", text=GOOD)
    assert (done.returncode, "invalid choice: 'owl'" in done.stderr) == (2, True)


def test_usage_errors_exit_with_status_2():
    for arguments in (["explain"], ["explain", "-", "--format", "png"], ["fly", "-"]):
        done = run(*arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_a_bare_command_prints_the_help():
    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (0, run("--help").stdout, "")


def test_queries_can_be_text(capsys):
    assert main(["check", "-q", GOOD]) == 0
    assert capsys.readouterr().out == "the query: ok\n"
    assert main(["explain", "-q", GOOD, "--stage", "logical"]) == 0
    assert capsys.readouterr().out.startswith("Projection  ?x\n")
    assert main(["check", "-q", WRONG]) == 1
    assert capsys.readouterr().err.startswith("the query: line 3, column 3: unexpected 'FILTRE'")


def test_help_and_version_exit_with_status_0():
    for arguments in (["--help"], ["explain", "--help"], ["check", "--help"]):
        done = run(*arguments)
        assert (done.returncode, done.stdout[:7], done.stderr) == (0, "usage: ", "")
    assert run("--version").stdout.startswith("streamsparql 0.")


def test_a_closed_pipe_is_not_an_error(query):
    done = subprocess.run(
        f"{sys.executable} -m streamsparql explain {query} --format html | head -c 10",
        shell=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert done.stderr == ""


def test_output_and_input_work_in_any_encoding_and_locale(query):
    """Trees have characters that are not ASCII; queries are read as UTF-8 in every locale."""
    done = run("explain", query, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    command = [sys.executable, "-m", "streamsparql", "check", "-"]
    text = "SELECT ?é { ?é <p> 1 }".encode()
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
    checked = subprocess.run(command, input=text, capture_output=True, cwd=ROOT, env=environment)
    assert checked.stdout == b"standard input: ok\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is missing")
def test_unwritable_output_is_an_error_in_one_line(query):
    command = [sys.executable, "-m", "streamsparql", "explain", query]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_explain_does_not_overwrite_its_input(tmp_path):
    text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 1 MS SLIDE { ?s ?p ?o }"
    item = "<urn:a> <urn:p> <urn:b> <urn:t/5> .\n"
    query, wind = tmp_path / "q.rq", tmp_path / "w.nq"
    query.write_text(text)
    wind.write_text(item)
    for arguments in (
        (query, "-o", query),
        (query, "-o", f"{tmp_path}/./q.rq"),
        (query, "--analyze", "--stream", wind, "-o", wind),
        (query, "--analyze", "--stream", wind, "-o", query),
    ):
        assert run("explain", *map(str, arguments)).returncode in (1, 2)
    assert (query.read_text(), wind.read_text()) == (text, item)
