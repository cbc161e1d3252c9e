"""docs/paper.md leads from the papers to the code: its rows are complete, and what they name exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from support.golden import read
from support.pages import ROOT

PAGE = ROOT / "docs" / "paper.md"
PAPERS = {
    "Streaming SPARQL, ESWC 2008": "ESWC 2008",
    "C-SPARQL, EDBT 2010": "EDBT 2010",
    "CQELS, DERI technical report 2010": "CQELS",
    "EP-SPARQL, WWW 2011": "WWW 2011",
    "Social C-SPARQL, LarKC D2.6.1": "LarKC",
}
COLUMNS = ["Paper", "Says", "Defined", "Computed", "Tested"]
NUMBERED = [f"Definition {n}" for n in range(1, 14)] + [f"Algorithm {n}" for n in range(1, 6)]

LOCATION = re.compile(r"`([\w/.]+\.(?:py|lark)):([\w.]+)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
GOLDEN_CASE = re.compile(r"`(tests/golden/\w+\.txt):([^`]+)`")
REFERENCE = re.compile(r"\[((?:R|section )\d+)\]")
CODE = re.compile(r"`[^`]+`")


class Location(NamedTuple):
    """A name in a file; in a grammar file that of a rule."""

    file: str
    name: str


class Row(NamedTuple):
    """A row of the page, with the paper of its table."""

    paper: str
    title: str
    says: str
    defined: str
    computed: str
    tested: str

    @property
    def locations(self) -> list[Location]:
        """Where the row is defined and computed."""
        cells = f"{self.defined} {self.computed}"
        return [Location(*match) for match in LOCATION.findall(cells)]


def rows_of(text: str) -> Iterator[Row]:
    """Yield the rows of all tables of a page, each with the heading of its paper."""
    paper = ""
    for line in text.splitlines():
        if line.startswith("## "):
            paper = PAPERS[line.removeprefix("## ")]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or set(line) <= set("|-") or cells == COLUMNS:
            continue
        yield Row(paper, *cells)


TEXT = PAGE.read_text("utf-8")
ROWS = list(rows_of(TEXT))
ESWC = [row for row in ROWS if row.title in NUMBERED]


def named(row: Row) -> str:
    return f"{row.paper}: {row.title}"


# -- names in files --------------------------------------------------------------------------------


@cache
def tree_of(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text("utf-8"))


def definitions(body: list[ast.stmt], names: list[str]) -> Iterator[ast.stmt]:
    """Yield the definitions of a name with dots: a class, a function, a method, a constant."""
    first, *rest = names
    for node in body:
        match node:
            case ast.ClassDef(name=name) if name == first and rest:
                yield from definitions(node.body, rest)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) if name == first:
                yield node
            case ast.Assign(targets=[ast.Name(id=name)]) if [name] == names:
                yield node


def exists(location: Location) -> bool:
    file, name = location
    if not (ROOT / file).is_file():
        return False
    if file.endswith(".lark"):
        rule = rf"^(%extend |%override )?[?!]*{name}(\.\d+)?:"
        return re.search(rule, (ROOT / file).read_text("utf-8"), re.M) is not None
    return any(definitions(tree_of(file).body, name.split(".")))


def source_of(location: Location) -> str:
    """Return the source of a definition, and the docstring of its module, on one line."""
    tree = tree_of(location.file)
    text = (ROOT / location.file).read_text("utf-8")
    (node, *_) = definitions(tree.body, location.name.split("."))
    source = ast.get_source_segment(text, node) or ""
    return " ".join(f"{ast.get_docstring(tree)} {source}".split())


def is_test(file: str, name: str) -> bool:
    if not (ROOT / file).is_file():
        return False
    return any(
        isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(tree_of(file))
    )


def is_golden_case(file: str, title: str) -> bool:
    """Return whether a title, or its beginning up to a punctuation mark, is that of one case."""
    titles = [case.title for case in read(ROOT / file)[1]]
    return len([t for t in titles if re.match(rf"{re.escape(title)}(?:$|[,:;] | )", t)]) == 1


# -- the page --------------------------------------------------------------------------------------


def test_each_paper_has_a_table() -> None:
    assert {row.paper for row in ROWS} == set(PAPERS.values())
    assert [line for line in TEXT.splitlines() if line.startswith("## ")] == [
        f"## {title}" for title in PAPERS
    ]
    titles = [named(row) for row in ROWS]
    assert sorted(titles) == sorted(set(titles))


def test_each_definition_and_algorithm_of_eswc_2008_has_a_row() -> None:
    assert [row.title for row in ESWC] == NUMBERED
    assert {row.paper for row in ESWC} == {"ESWC 2008"}
    for row in ESWC:
        assert LOCATION.search(row.defined), row.title
        assert LOCATION.search(row.computed) or row.computed == "translation", row.title
        assert TEST.search(row.tested), row.title


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_a_row_is_complete(row: Row) -> None:
    assert row.says
    assert LOCATION.search(row.defined) or row.defined.startswith(("not defined", "[section"))
    assert LOCATION.search(row.computed) or row.computed.startswith(("not computed", "translation"))
    tests = TEST.findall(row.tested) + GOLDEN_CASE.findall(row.tested)
    assert tests or row.tested == "no test"
    for cell in (row.defined, row.computed, row.tested):
        known = {match[0] for p in (LOCATION, TEST, GOLDEN_CASE) for match in p.finditer(cell)}
        assert not set(CODE.findall(cell)) - known, "neither a location nor a test"


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_what_a_row_names_exists(row: Row) -> None:
    assert [location for location in row.locations if not exists(location)] == []
    assert [test for test in TEST.findall(row.tested) if not is_test(*test)] == []
    assert [case for case in GOLDEN_CASE.findall(row.tested) if not is_golden_case(*case)] == []


def test_what_the_text_between_tables_names_exists() -> None:
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith("|"))
    assert all(exists(Location(*match)) for match in LOCATION.findall(prose))
    assert all(is_test(*test) for test in TEST.findall(prose))


def test_names_that_do_not_exist_are_noticed() -> None:
    assert exists(Location("algebra/join.py", "LeftJoin.static"))
    assert not exists(Location("algebra/join.py", "LeftJoin.dynamic"))
    assert not exists(Location("algebra/nowhere.py", "LeftJoin"))
    assert exists(Location("translator/grammar/streaming.lark", "window"))
    assert not exists(Location("translator/grammar/streaming.lark", "windows"))
    assert is_test("tests/project/test_paper.py", "test_a_row_is_complete")
    assert not is_test("tests/project/test_paper.py", "test_a_row")
    assert is_golden_case("tests/golden/cqels2010.txt", "Q1")
    assert not is_golden_case("tests/golden/cqels2010.txt", "Q")


def test_references_lead_to_semantics() -> None:
    semantics = (ROOT / "docs" / "SEMANTICS.md").read_text("utf-8")
    headings = re.findall(r"^## (.*)$", semantics, re.M)
    anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-"): h for h in headings}
    targets = dict(re.findall(r"^\[([^\]]+)\]: SEMANTICS\.md#(.*)$", TEXT, re.M))
    assert set(REFERENCE.findall(re.sub(r"^\[.*\]: .*$", "", TEXT, flags=re.M))) == set(targets)
    for name, anchor in targets.items():
        assert anchor in anchors, name
        if name.startswith("R"):
            assert f"- **{name}** " in semantics, name
        else:
            assert anchors[anchor].startswith(f"{name.removeprefix('section ')}. "), name


# -- the code --------------------------------------------------------------------------------------


def cites(source: str, number: str) -> bool:
    """Return whether a text cites `ESWC 2008, Definition 4`, or a list that has it."""
    listed = r"(?:(?:Definition|Algorithm) \d+(?:, and |, | and ))*"
    return re.search(rf"\bESWC 2008, {listed}{number}\b", source) is not None


def test_citations_are_recognized() -> None:
    assert cites("the heap (ESWC 2008, Algorithm 4 and Algorithm 5)", "Algorithm 5")
    assert not cites("ESWC 2008, Definition 12", "Definition 1")
    assert not cites("SEMANTICS.md R9, Algorithm 5", "Algorithm 5")


@pytest.mark.parametrize("row", ESWC, ids=named)
def test_each_location_cites_its_definition(row: Row) -> None:
    missing = [where for where in row.locations if not cites(source_of(where), row.title)]
    assert missing == [], f"cite ESWC 2008, {row.title}"


def test_no_citation_is_in_the_plural() -> None:
    plural = re.compile(r"\b(?:Definition|Algorithm)s\s+\d")
    folders = ("algebra", "translator", "physical", "streamsparql", "tests", "docs", "notebooks")
    files = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".ipynb", ".lark")
    ]
    assert [str(path) for path in files if plural.search(path.read_text("utf-8"))] == []


# -- the way to the page ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "link"), [("README.md", "(docs/paper.md)"), ("docs/internals.md", "(paper.md)")]
)
def test_the_page_is_linked(page: str, link: str) -> None:
    assert link in Path(ROOT / page).read_text("utf-8")
