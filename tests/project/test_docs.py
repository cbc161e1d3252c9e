"""The code blocks of README and docs run, and print what the pages show (support/pages.py)."""

from __future__ import annotations

import doctest
import re
import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import pages
from support.pages import BLOCK, ROOT, blocks, run_page

from streamsparql.cli import main
from streamsparql.look.lints.text import CODES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PICTURES: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["PICTURES"]
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [path for path in DOCS if blocks(path.read_text("utf-8"))]
"""The pages with code blocks."""


def _text(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_code_blocks_print_what_the_page_shows(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = path.read_text("utf-8")
    if any("streamsparql.spark" in b.text for b in blocks(text) if b.kind == "python"):
        request.getfixturevalue("spark")  # the session that the page then uses
    page = run_page(path, tmp_path)
    assert page.wrong == []
    assert page.text == text, "update the page with: python tests/support/pages.py PAGE"


def test_readme_command_on_spark_returns_the_rows_of_the_one_before(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def shared(master: str | None, quiet: bool = False) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("streamsparql.cli.spark_commands.spark_session", shared)
    monkeypatch.chdir(ROOT)
    commands = re.findall(r"^\$ streamsparql (run .*)$", _text(ROOT / "README.md"), re.M)
    embedded, on_spark = commands[:2]
    assert on_spark.replace(" --engine spark", "") == embedded
    outputs = []
    for command in (embedded, on_spark):
        assert main(command.split()) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


PAGE = """
```python
>>> 6 * 7
41
>>> from pathlib import Path
>>> Path("a.csv").write_text("x\\n1\\n")
4
```
```csv
2
```
```nonsense
x
1
```
```sparql
SELECT ?x
```
```console
$ cat a.csv
x
...
$ mkdir b; cd b; false  # exit status 1
$ ls ../*.csv
a.csv
$ cat b.csv 2>/dev/null
```
```
what is this?
```
"""


def test_wrong_blocks_are_reported_and_outputs_updated(tmp_path: Path) -> None:
    """The runner detects a wrong output, file content, query and exit status."""
    path = tmp_path / "page.md"
    path.write_text(PAGE, "utf-8")
    (folder := tmp_path / "folder").mkdir()
    page = run_page(path, folder)
    assert page.text == PAGE.replace("41", "42").replace("\na.csv\n", "\n../a.csv\n")
    reasons = [tuple(reason.split(": ", 2)[:2]) for reason in page.wrong]
    assert [(place, reason[:20]) for place, reason in reasons] == [
        ("page.md, line 9", "no file and no outpu"),
        ("page.md, line 16", "line 1, column 10"),
        ("page.md, line 19", "exit status 1 of cat"),
        ("page.md, line 28", "missing kind of the "),
    ]


def test_doctests_of_the_runner_pass() -> None:
    assert doctest.testmod(pages).failed == 0


@pytest.mark.parametrize("pattern", pages.NOT_EXECUTED)
def test_every_excluded_command_pattern_is_used(pattern: str) -> None:
    texts = [b.text for path in PAGES for b in blocks(path.read_text("utf-8"))]
    commands = [c for text in texts for c in re.findall(r"^\$ (.*)$", text, re.M)]
    assert any(re.fullmatch(pattern, command) for command in commands)


def test_every_fence_is_closed() -> None:
    for path in DOCS:
        without_blocks = BLOCK.sub("", path.read_text("utf-8"))
        assert "```" not in without_blocks, path.name


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_show_the_rows_of_queries(name: str) -> None:
    """`make pictures` updates them."""
    drawn = PICTURES[name]().svg()
    assert (ROOT / "docs" / "pictures" / f"{name}.svg").read_text("utf-8") == drawn
    links = re.findall(r"\]\((?:docs/)?pictures/(\w+)\.svg\)", "".join(map(_text, DOCS)))
    assert name in links


# -- references ------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub derives them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", path.read_text("utf-8")), re.M)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


def test_links_have_a_target() -> None:
    for path in DOCS:
        text = BLOCK.sub("", path.read_text("utf-8"))
        for target in re.findall(r"(?:\]\(|src=\")([^)\"]+)", text):
            if "://" in target:
                continue
            file, _, anchor = target.partition("#")
            page = path.parent / file if file else path
            assert page.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(page), f"{path.name}: {target}"


def test_paths_and_functions_in_backticks_exist() -> None:
    folders = "algebra|translator|physical|streamsparql|tests|benchmarks|docs"
    for path in [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        text = BLOCK.sub("", path.read_text("utf-8"))
        paths = re.findall(rf"`((?:{folders})/[^`\s:]*)(?:::(\w+))?`", text)
        for name, part in paths:
            files = sorted(ROOT.glob(name.rstrip("/")))
            assert files, f"{path.name}: {name}"
            if part:
                text = files[0].read_text("utf-8")
                assert re.search(rf"^\s*(def|class) {part}\b|^{part}\b", text, re.M), (name, part)


def test_every_lint_is_documented() -> None:
    files = (ROOT / "streamsparql" / "look" / "lints").glob("*.py")
    sources = "\n".join(path.read_text("utf-8") for path in files)
    codes = set(re.findall(r'(?:Warning|warn)\(\s*"([a-z-]+)"', sources))
    assert codes == {*CODES, "unknown-lint"}
    page = (ROOT / "docs" / "lints.md").read_text("utf-8")
    assert codes == set(re.findall(r"^\| `([a-z-]+)` \|", page, re.M))
