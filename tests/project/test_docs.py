"""What the README and the docs show is what happens: each of their code blocks runs (support/pages.py)."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from support import pages
from support.pages import BLOCK, ROOT, blocks, run_page

from streamsparql.look.lints import LINTS

PICTURES: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["PICTURES"]
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SOME = [path for path in DOCS if blocks(path.read_text("utf-8"))]
"""Pages with code."""


@pytest.mark.parametrize("path", SOME, ids=lambda path: path.name)
def test_a_page_shows_what_happens(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = path.read_text("utf-8")
    if any("streamsparql.spark" in b.text for b in blocks(text) if b.kind == "python"):
        request.getfixturevalue("spark")  # the session that a page then takes for its own
    page = run_page(path, tmp_path)
    assert page.wrong == []
    assert page.text == text, "to write what is printed now: python tests/support/pages.py PAGE"


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


def test_a_page_that_is_wrong_is_told_and_mended(tmp_path: Path) -> None:
    """The runner sees what is wrong: an output, a file's content, a query, an exit status."""
    path = tmp_path / "page.md"
    path.write_text(PAGE, "utf-8")
    (folder := tmp_path / "folder").mkdir()
    page = run_page(path, folder)
    assert page.text == PAGE.replace("41", "42").replace("\na.csv\n", "\n../a.csv\n")
    told = [tuple(reason.split(": ", 2)[:2]) for reason in page.wrong]
    told = [(place, reason[:20]) for place, reason in told]
    assert told == [
        ("page.md, line 9", "no file and no outpu"),
        ("page.md, line 16", "line 1, column 10"),
        ("page.md, line 19", "exit status 1 of cat"),
        ("page.md, line 28", "missing kind of the "),
    ]


def test_the_runner_does_what_it_says() -> None:
    assert doctest.testmod(pages).failed == 0


@pytest.mark.parametrize("pattern", pages.NOT_EXECUTED)
def test_no_command_is_left_out_in_vain(pattern: str) -> None:
    texts = [b.text for path in SOME for b in blocks(path.read_text("utf-8"))]
    commands = [c for text in texts for c in re.findall(r"^\$ (.*)$", text, re.M)]
    assert any(re.fullmatch(pattern, command) for command in commands)


def test_every_fence_is_closed() -> None:
    for path in DOCS:
        left = BLOCK.sub("", path.read_text("utf-8"))
        assert "```" not in left, path.name


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_queries_answer(name: str) -> None:
    """To draw them anew: make pictures."""
    drawn = PICTURES[name]().svg()
    assert (ROOT / "docs" / "pictures" / f"{name}.svg").read_text("utf-8") == drawn
    assert f"](pictures/{name}.svg)" in (ROOT / "docs" / "time.md").read_text("utf-8")


# -- what a page refers to -------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """The names that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", path.read_text("utf-8")), re.M)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


def test_links_lead_somewhere() -> None:
    for path in DOCS:
        text = BLOCK.sub("", path.read_text("utf-8"))
        for target in re.findall(r"(?:\]\(|src=\")([^)\"]+)", text):
            if "://" in target:
                continue
            file, _, anchor = target.partition("#")
            there = path.parent / file if file else path
            assert there.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(there), f"{path.name}: {target}"


def test_what_looks_like_a_path_is_one() -> None:
    """A name in backticks with a folder of the repository in front, and a name of a function in it."""
    folders = "algebra|translator|physical|streamsparql|tests|benchmarks|docs"
    for path in [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        text = BLOCK.sub("", path.read_text("utf-8"))
        found = re.findall(rf"`((?:{folders})/[^`\s:]*)(?:::(\w+))?`", text)
        for name, part in found:
            files = sorted(ROOT.glob(name.rstrip("/")))
            assert files, f"{path.name}: {name}"
            if part:
                text = files[0].read_text("utf-8")
                assert re.search(rf"^\s*(def|class) {part}\b|^{part}\b", text, re.M), (name, part)


def test_every_lint_is_explained() -> None:
    sources = (ROOT / "streamsparql" / "look" / "lints.py").read_text("utf-8")
    codes = set(re.findall(r'(?:Warning|warn)\(\s*"([a-z-]+)"', sources))
    assert len(codes) > len(LINTS)
    page = (ROOT / "docs" / "lints.md").read_text("utf-8")
    assert codes == set(re.findall(r"^\| `([a-z-]+)` \|", page, re.M))
