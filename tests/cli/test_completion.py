"""Shell completion offers the options and values that the commands accept; help and version."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from streamsparql.cli import main

COMPLETE = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMPREPLY=()
_streamsparql
echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def scripts(tmp_path, capsys):
    """Return a folder with the script of each shell, in a file with the name of the shell."""
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        (tmp_path / shell).write_text(capsys.readouterr().out)
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (
            "streamsparql ''",
            "run explain check head shell serve demo prepare checkpoint completion --help --version",
        ),
        ("streamsparql r", "run"),
        ("streamsparql run --eng", "--engine"),
        ("streamsparql run --engine ''", "embedded spark"),
        ("streamsparql run query.rq --timestamps l", "local"),
        ("streamsparql run --stream ''", ""),  # bash falls back to files
        ("streamsparql run ''", ""),
        ("streamsparql run query.rq --output p", "parquet"),
        (
            "streamsparql run query.rq --output =",
            "table csv jsonl nq parquet sparql-json sparql-xml sparql-csv sparql-tsv",
        ),
        ("streamsparql run query.rq --output = j", "jsonl"),
        (
            "streamsparql demo ''",
            "-h --help --only --write --pour --speed --turbines --minutes --seed --engine --master",
        ),
        ("streamsparql explain --format s", "svg"),
        ("streamsparql completion f", "fish"),
    ],
)
def test_bash_completes(scripts, words, completed):
    script = COMPLETE.format(script=scripts / "bash", words=words)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == (completed, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_zsh_and_fish_can_parse_their_scripts(scripts, shell):
    text = (scripts / shell).read_text()
    assert "SUPPRESS" not in text
    assert text.count("--timestamps") + text.count("-l timestamps") == 1
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n", scripts / shell], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_version_lists_what_affects_a_run():
    done = subprocess.run(
        [sys.executable, "-m", "streamsparql", "--version"], capture_output=True, text=True
    )
    names = [line.partition(" ")[0].rstrip(":") for line in done.stdout.splitlines()]
    assert names == ["streamsparql", "Python", "pyarrow", "pyoxigraph", "PySpark", "Java"]


def test_help_fits_40_lines_of_80_columns_and_has_examples(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in (
        [],
        ["run"],
        ["explain"],
        ["check"],
        ["shell"],
        ["demo"],
        ["prepare"],
        ["completion"],
    ):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        lines = capsys.readouterr().out.splitlines()
        assert 7 < len(lines) <= 40, command
        assert max(map(len, lines)) <= 80, command
        assert any(line.startswith("example") for line in lines), command
