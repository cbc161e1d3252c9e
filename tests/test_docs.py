"""What the README and the docs show is what happens."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import streamsparql
from streamsparql.lints import LINTS

ROOT = Path(__file__).parents[1]
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks(path: Path, kind: str) -> list[str]:
    """The code blocks of one kind."""
    return [text for found, text in BLOCK.findall(path.read_text("utf-8")) if found == kind]


def shown() -> list[tuple[str, str]]:
    """Commands that compile a text given by echo, with the output that a page shows."""
    found = []
    for path in DOCS:
        for block in blocks(path, "console"):
            for command, output in re.findall(r"^\$ (echo .*)\n((?:(?!\$ ).*\n)*)", block, re.M):
                found.append((command, output))
    return found


def test_the_example_of_the_readme_is_the_file_and_its_plan() -> None:
    text = (ROOT / "docs" / "examples" / "windpark.rq").read_text("utf-8")
    readme = ROOT / "README.md"
    assert text in blocks(readme, "sparql")
    assert streamsparql.compile(text).explain("logical") + "\n" in blocks(readme, "text")


def test_the_program_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks(ROOT / "README.md", "python")
    exec(compile(program, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("http://example.org/a 20 1 7\nhttp://example.org/a 30 7 15\n")
    assert "[(5, [{'sensor': " in printed
    assert "Snapshot([({?sensor: <http://example.org/a>, ?max: " in printed


def test_the_wind_park_prints_what_the_readme_shows() -> None:
    example = ROOT / "docs" / "examples" / "windpark.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shown = [text for text in blocks(ROOT / "README.md", "text") if "MW" in text]
    assert done.stdout.startswith(shown[0])


def test_the_examples_of_running_run() -> None:
    page = ROOT / "docs" / "running.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (failed, tried > 5) == (0, True)


def test_the_examples_of_spark_run(spark: object) -> None:
    page = ROOT / "docs" / "spark.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (failed, tried > 5) == (0, True)


@pytest.mark.parametrize(("command", "output"), shown())
def test_a_command_prints_what_is_shown(command: str, output: str) -> None:
    echo, arguments = command.split(" | streamsparql ")
    text = shlex.split(echo)[1]
    done = subprocess.run(
        [sys.executable, "-m", "streamsparql", *shlex.split(arguments)],
        input=f"{text}\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert done.stdout + done.stderr == output


def test_links_lead_somewhere() -> None:
    for path in DOCS:
        for target in re.findall(r"\]\(([^)#]+)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_lint_is_explained() -> None:
    sources = (ROOT / "streamsparql" / "lints.py").read_text("utf-8")
    codes = set(re.findall(r'(?:Warning|warn)\(\s*"([a-z-]+)"', sources))
    assert len(codes) > len(LINTS)
    page = (ROOT / "docs" / "lints.md").read_text("utf-8")
    assert codes == set(re.findall(r"^\| `([a-z-]+)` \|", page, re.M))
