"""The formats of `explain` are well-formed, for any query of any size.

The tests check the structure of pictures: they parse, boxes do not overlap, and text of a query is
escaped. They do not see how a picture looks, such as a box that is too small for the reader's font.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.explained import LISTING_1_1, NASTY, NASTY_WORDS, any_query, every_format
from support.well_formed_html import check_html

import streamsparql
from streamsparql.look.explain.boxes.box import Reference, places
from streamsparql.look.explain.boxes.logical import plan_box
from streamsparql.look.explain.drawing.tree_layout import layout
from streamsparql.translator.translate import translate

DEEP = "SELECT * " + "{" * 500 + "?s ?p ?o" + "}" * 500
LONG = "SELECT * { ?a ?b ?c " + "OPTIONAL { ?a ?p ?o } " * 2000 + "}"
_DOT_LINE = re.compile(
    r"""\s*(digraph\ plan\ \{ | \} | subgraph\ cluster_\w+\ \{ | label="\w+";\ color="\#\w+"
      | (graph|node|edge)\ \[.*\] | \w+\ ->\ \w+(\ \[label="([^"\\]|\\.)*"\])?
      | \w+\ \[label=(<([^<>]|<(/?b|br/|/?font[^<>]*)>)*>|"[^"]*"),
            [^"]*("([^"\\]|\\.)*"[^"]*)*\])""",
    re.X,
)
_MERMAID_LINE = re.compile(
    r"""\s*(%%\{.*\}%% | flowchart\ BT | direction\ BT | end | subgraph\ \w+
      | \w+\("(<b>|</b>|<br/>|[^"<>`\[\]{}|\\&])*"\):::of_\w+ | \w+\(\("[①-⑳(\d)]+"\)\)
      | \w+\ -->(\|"[^"|<>]*"\|)?\ \w+ | classDef\ of_\w+\ fill:\#\w+,stroke:\#\w+,color:\#\w+)""",
    re.X,
)


def check(format_: str, shown: str) -> None:
    """Check that a text is well-formed in its format."""
    match format_:
        case "json":
            json.loads(shown)
        case "svg":
            ElementTree.fromstring(shown)
        case "html":
            check_html(shown)
        case "dot":
            assert [line for line in shown.splitlines() if not _DOT_LINE.fullmatch(line)] == []
        case "mermaid":
            assert [line for line in shown.splitlines() if not _MERMAID_LINE.fullmatch(line)] == []
        case "text":
            assert shown.replace("\n", "").isprintable()


@every_format
@settings(max_examples=40)
@given(any_query)
def test_every_format_is_well_formed(format_: str, text: str) -> None:
    check(format_, streamsparql.compile(text).explain(format=format_))


@every_format
def test_special_characters_are_escaped(format_: str) -> None:
    check(format_, streamsparql.compile(NASTY).explain(format=format_))


def test_special_characters_are_shown_unchanged() -> None:
    query = streamsparql.compile(NASTY)
    picture = ElementTree.fromstring(query.explain("logical", "svg"))
    text = query.explain("logical", "html")
    page = check_html(text)
    assert text.count("<script") == 1, "that of the zoom"
    facts = json.dumps(json.loads(query.explain("logical", "json"))["logical"], ensure_ascii=False)
    for words in NASTY_WORDS:
        assert words in query.explain("logical")
        assert words in "".join(picture.itertext())
        assert words in page.text
        assert json.dumps(words, ensure_ascii=False)[1:-1] in facts


def test_keywords_of_mermaid_are_escaped() -> None:
    """Mermaid removes the last semicolon of a line that contains `style`."""
    text = 'SELECT * { ?x <style:#a> "b;" ; <classDef:#a> "\\n" }'
    shown = streamsparql.compile(text).explain("logical", "mermaid")
    labels = [line for line in shown.splitlines() if ":::" in line]
    assert not re.search(r"style|classDef|\\", "".join(labels))


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("text", [LISTING_1_1, NASTY])
def test_graphviz_reads_dot(text: str) -> None:
    shown = streamsparql.compile(text).explain(format="dot")
    ran = subprocess.run(
        ["dot", "-Tcanon"], input=shown, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_page_loads_nothing() -> None:
    page = streamsparql.compile(LISTING_1_1).explain(format="html")
    assert not re.search(r"<(link|img|iframe)|@import|url\(|\bsrc=", page)


def test_pictures_of_a_page_zoom_and_those_of_notebooks_have_no_script() -> None:
    query = streamsparql.compile(LISTING_1_1)
    page = query.explain(format="html")
    assert page.count("<script>") == 1
    assert 'addEventListener("wheel"' in page
    assert "script" not in query._repr_html_()


def test_notebooks_show_a_picture() -> None:
    query = streamsparql.compile(LISTING_1_1)
    for shown in (query._repr_html_(), query.logical._repr_html_()):  # type: ignore[attr-defined]
        assert "svg" in check_html(shown).tags
    assert "wtur:StrCnt" in query._repr_html_()


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[list[int]], list[tuple[float, float]]]:
    """Draw trees, bushy or deep: the children of each box, and the sizes of the boxes."""
    count = draw(st.integers(1, 60))
    back = draw(st.sampled_from([1, 3, 60]))
    children: list[list[int]] = [[] for _ in range(count)]
    for box in range(1, count):
        children[draw(st.integers(max(0, box - back), box - 1))].append(box)
    side = st.integers(10, 300)
    return children, [(draw(side), draw(side)) for _ in range(count)]


@settings(max_examples=200)
@given(trees())
def test_boxes_are_below_their_parents_and_never_overlap(
    tree: tuple[list[list[int]], list[tuple[float, float]]],
) -> None:
    children, sizes = tree
    blocks, (width, height) = layout(children, sizes)
    boxes = {block.box: block for block in blocks if block.box is not None}
    assert set(boxes) == set(range(len(children)))
    for parent, below in enumerate(children):
        assert all(boxes[child].y >= boxes[parent].bottom for child in below)
    rectangles = [(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes.values()]
    for i, (x, y, right, bottom) in enumerate(rectangles):
        assert x >= -0.01
        assert right <= width + 0.01
        assert bottom <= height
        for x2, y2, right2, bottom2 in rectangles[:i]:
            assert right <= x2 or right2 <= x or bottom <= y2 or bottom2 <= y


def test_a_wide_plan_is_folded_to_about_the_proportions_of_a_screen() -> None:
    branches = " UNION ".join(
        f"{{ ?x <p{i}> ?y OPTIONAL {{ ?x <q> ?z{i} }} FILTER(?y > {i}) }}" for i in range(60)
    )
    picture = streamsparql.compile(f"SELECT * {{ {branches} }}").explain("logical", "svg")
    width, height = map(int, re.findall(r'(?:width|height)="(\d+)"', picture)[:2])
    assert 1 / 6 < width / height < 6


# -- large queries, and determinism ----------------------------------------------------------------


@every_format
def test_500_nested_groups(format_: str) -> None:
    check(format_, streamsparql.compile(DEEP).explain(format=format_))


@every_format
def test_499_nested_optionals(format_: str) -> None:
    text = "SELECT * " + "{ ?a ?b ?c OPTIONAL " * 499 + "{ ?s ?p ?o }" + "}" * 499
    check(format_, streamsparql.compile(text).explain(format=format_))


@every_format
def test_a_chain_of_2000_optionals(format_: str) -> None:
    check(format_, streamsparql.compile(LONG).explain(format=format_))


@every_format
def test_output_does_not_depend_on_the_hash_seed(format_: str) -> None:
    code = (
        "import sys, streamsparql;"
        "sys.stdout.buffer.write(streamsparql.compile(sys.argv[1]).explain(format=sys.argv[2]).encode())"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", code, NASTY, format_],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(shown) == 1
    assert b"0x" not in shown.pop()


def test_references_point_to_boxes_that_are_drawn_before() -> None:
    drawn: set[int] = set()
    for place in places(plan_box(translate(NASTY).plan)):
        for number in (place.reads, place.item.number if isinstance(place.item, Reference) else 0):
            assert number == 0 or number in drawn
        drawn.add(place.item.number)
