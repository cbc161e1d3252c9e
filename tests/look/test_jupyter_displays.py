"""Notebook displays agree with the objects that they show, and are well-formed and readable.

Bars and points are read back from the pictures and compared with rows and windows. Text must be
inside the picture without overlaps, measured with the widest of the fonts. How it looks is not tested.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.explained import LISTING_1_1, NASTY, NASTY_WORDS
from support.well_formed_html import check_html

import streamsparql
from streamsparql import by_hand
from streamsparql.display.picture import Picture
from streamsparql.errors import EngineError, SourceError, StreamSparqlError
from streamsparql.look.explain.drawing.highlight import highlighted
from streamsparql.look.explain.drawing.themes import themed
from streamsparql.look.jupyter.canvas import Canvas
from streamsparql.look.jupyter.moving_window import window_positions
from streamsparql.text.instants import DisplayClock
from streamsparql.text.widths import cells, in_picture
from streamsparql.translator.lexer import Lexer
from streamsparql.translator.parse import parse

SVG = "{http://www.w3.org/2000/svg}"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
VALUES = (
    "PREFIX : <http://e/> SELECT ?x ?v FROM STREAM <s> WINDOW RANGE 100 MS SLIDE 10 MS { ?x :p ?v }"
)
STEPPED = "SELECT ?x FROM STREAM <s> [RANGE 10ms STEP 5ms] { ?x ?p ?v }"
MARCH_1 = 1_772_352_000_000  # 2026-03-01 08:00 UTC
DAY = 86_400_000
YEAR = 365 * DAY
SIZES = pytest.mark.parametrize("count", [0, 1, 3, 30, 300])


def items(count: int, step: int = 7, start: int = 0) -> list[tuple[str, str, str, int]]:
    """Return items in order, of five subjects and 40 values."""
    return [
        (
            f"<http://e/T{k * 3 % 5}>",
            "<http://e/p>",
            f'"{k * 7 % 40}"^^<{INTEGER}>',
            start + k * step,
        )
        for k in range(count)
    ]


def svg_of(picture: Picture) -> ElementTree.Element:
    """Parse a picture, and check that it has no script, links or ids that could collide."""
    root = ElementTree.fromstring(picture.svg)
    assert root.tag == f"{SVG}svg"
    assert not any(name in part.attrib for part in root.iter() for name in ("id", "href", "onload"))
    assert not list(root.iter(f"{SVG}script"))
    return root


def labels(picture: Picture) -> list[str]:
    return [text.text or "" for text in svg_of(picture).iter(f"{SVG}text")]


def shapes(picture: Picture, *tags: str) -> list[ElementTree.Element]:
    """Return the shapes of a picture that have a tooltip."""
    return [
        part
        for tag in tags
        for part in svg_of(picture).iter(f"{SVG}{tag}")
        if part.find(f"{SVG}title") is not None
    ]


def tips(picture: Picture, *tags: str) -> list[str]:
    return ["".join(part.itertext()) for part in shapes(picture, *tags)]


def validities(picture: Picture, *tags: str) -> list[str]:
    """Return the second lines of tooltips, which state when a row holds or is reported."""
    return [tip.partition("\n")[2] for tip in tips(picture, *tags)]


def check_labels(picture: Picture) -> None:
    """Check that text is inside the picture and does not overlap."""
    root = svg_of(picture)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes: list[tuple[float, float, float, float]] = []
    for text in root.iter(f"{SVG}text"):
        content = (text.text or "") + "".join(part.tail or "" for part in text)
        kinds = text.attrib.get("class", "").split()
        advance = cells(content, in_picture) * (6.6 if "code" in kinds else 6.8)
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        x -= advance if "end" in kinds else advance / 2 if "mid" in kinds else 0
        assert x >= 0, content
        assert x + advance <= width + 12, content  # the last label of the axis is centred
        assert 10 <= y <= height - 2, content
        for left, low, right, high in boxes:
            apart = x >= right or x + advance <= left or y - 9 >= high or y <= low
            assert apart, content
        if content:
            boxes.append((x, y - 9, x + advance, y))


def table_of(page: str) -> list[list[str]]:
    """Return the text of the cells of a page's first table, row by row."""
    table = re.search(r"<table.*?</table>", page, re.S)
    assert table is not None
    return [
        ["".join(cell.itertext()) for cell in line] for line in ElementTree.fromstring(table[0])
    ]


# -- results ---------------------------------------------------------------------------------------


@SIZES
def test_a_result_shows_its_first_rows_and_the_number_of_others(count: int) -> None:
    result = streamsparql.compile(VALUES).run(items(count))
    page = result._repr_html_()
    check_html(page)
    head, *lines = table_of(page)
    assert head == ["start", "end", "?x", "?v"]
    rows = list(result)
    expected = [
        [str(row.start), str(row.end), f":{str(row['x'])[9:]}", str(row["v"])] for row in rows
    ]
    assert lines == expected[:20]
    assert ("no rows" in page) == (not rows)
    assert (f"and {len(rows) - 20} more" in page) == (len(rows) > 20)


@SIZES
def test_bars_of_a_timeline_span_the_validity_of_rows(count: int) -> None:
    result = streamsparql.compile(VALUES).run(items(count))
    picture = result.timeline(limit=1000)
    check_labels(picture)
    rows = list(result)
    bar_tips = [tip for tip in validities(picture, "rect", "path") if tip.startswith("holds")]
    assert sorted(bar_tips) == sorted(f"holds over [{row.start}, {row.end})" for row in rows)
    if rows:
        first, last = rows[0].start, max(row.end for row in rows)
        bars = [bar for bar in shapes(picture, "rect") if "holds" in "".join(bar.itertext())]
        right = max(float(bar.attrib["x"]) + float(bar.attrib["width"]) for bar in bars)
        left = min(float(bar.attrib["x"]) for bar in bars)
        scale = (right - left) / (last - first)
        for bar in bars:
            start, end = map(int, re.findall(r"\d+", "".join(bar.itertext()).partition("\n")[2]))
            x, width = float(bar.attrib["x"]), float(bar.attrib["width"])
            assert x == pytest.approx(left + (start - first) * scale, abs=0.2)
            assert width == pytest.approx((end - start) * scale, abs=1)


def test_lanes_beyond_the_limit_are_omitted_with_a_note() -> None:
    picture = streamsparql.compile(VALUES).run(items(300)).timeline(limit=12)
    assert "the first 12 of 40 solutions" in picture.note
    assert picture.note in picture.html
    assert str(picture).endswith(picture.note)
    stream = [("<http://e/a>", "<http://e/p>", f'"{t}"', t) for t in range(0, 3000, 10)]
    bars = shapes(streamsparql.compile(VALUES).run(stream).timeline(limit=5), "rect")
    assert len(bars) == 5
    assert max(float(bar.attrib["width"]) for bar in bars) > 200, "time is scaled to these lanes"


def test_equal_rows_share_a_lane_and_rows_without_end_are_arrows() -> None:
    stream = [("<http://e/a>", "<http://e/p>", '"1"', t) for t in (0, 20, 40, 300)]
    picture = streamsparql.compile(VALUES).run(stream).timeline()
    assert "×3" in labels(picture)
    assert labels(picture).count("?x") == 1
    assert len(tips(picture, "rect")) == 4
    query = streamsparql.compile(
        "SELECT ?x { STREAM <s> [ALL] { ?x <http://e/p> ?v } }  # lint: ignore"
    )
    result = query.run(items(2))
    picture = result.timeline()
    assert validities(picture, "path") == ["holds over [0, …)", "holds over [7, …)"]
    assert str(picture).count("▶") == 2
    assert table_of(result._repr_html_())[1][1] == "…"


def test_variables_that_do_not_fit_are_omitted_from_labels_but_not_from_tooltips() -> None:
    patterns = " . ".join(f"?x <http://e/p{k}> ?variable_{k}" for k in range(30))
    query = streamsparql.compile(
        f"SELECT * FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 5 MS {{ {patterns} }}"
    )
    stream = [("<http://e/a>", f"<http://e/p{k}>", f'"{k * 1000}"', k // 10) for k in range(30)]
    picture = query.run(stream).timeline()
    check_labels(picture)
    assert "the first 4 of 31 variables" in picture.note
    (bar,) = shapes(picture, "rect")
    assert float(bar.attrib["width"]) > 300
    assert '"29000"' in "".join(bar.itertext())


def test_lines_mark_the_reports_of_the_query_and_the_horizon() -> None:
    text = "SELECT ?x FROM STREAM <s> [RANGE 40ms STEP 20ms] { ?x <http://e/p> ?v }"
    picture = streamsparql.compile(text).run(items(10), start=0, end=100).timeline()
    lines = [tip for tip in tips(picture, "path") if tip.startswith("report")]
    assert lines == [f"report at {t}" for t in (0, 20, 40, 60, 80, 100)]
    assert sum("horizon" in tip for tip in tips(picture, "path")) == 2


@pytest.mark.parametrize("kind", ["rstream", "istream", "dstream"])
def test_dots_are_the_rows_of_requested_reports(kind: str) -> None:
    query = streamsparql.compile(VALUES)
    expected = sorted(
        f":{str(row['x'])[9:]}  {row['v']} {instant}"
        for instant, rows in query.run(items(20)).report(kind, every=25)
        for row in rows
    )
    dots = tips(query.run(items(20)).timeline(report=kind, every=25), "circle")
    assert sorted(dot.replace("\nreported at", "") for dot in dots) == expected


def test_a_legend_says_what_a_timeline_draws() -> None:
    """It has only what the picture has: colours, arrows, equal rows, reports."""
    picture = streamsparql.compile(VALUES).run(items(20)).timeline(report="rstream", every=25)
    assert labels(picture)[-2:] == ["the row holds; a colour per ?x", "reported"]
    query = streamsparql.compile(
        "SELECT ?x { STREAM <s> [ALL] { ?x <http://e/p> ?v } }  # lint: ignore"
    )
    assert labels(query.run(items(1)).timeline())[-3:] == ["the row holds", "▶", "beyond the end"]
    equal = [("<http://e/a>", "<http://e/p>", '"1"', t) for t in (0, 1)]
    shown = labels(streamsparql.compile(VALUES).run(equal).timeline())
    assert shown[-2:] == ["the row holds", "×n: equal rows at once"]
    empty = streamsparql.compile(VALUES).run([]).timeline()
    assert "the row holds" not in labels(empty)


def test_reports_that_are_too_dense_are_counted_and_not_drawn() -> None:
    """A stray stamp near 1970 makes a span of decades: no object may exist for each report."""
    picture = streamsparql.compile(VALUES).run(items(300)).timeline(every=1)
    assert "reports, too close together to be drawn" in picture.note
    stray = [("<a>", "<p>", f'"{t}"', t) for t in (5, 1_767_225_600_000)]
    text = "SELECT * FROM STREAM <s> WINDOW RANGE 600000 SLIDE 1 { ?x <p> ?y }"
    page = streamsparql.compile(text).run(stray)._repr_html_()
    assert "reports, too close together to be drawn" in page


def test_displayed_objects_print_as_text() -> None:
    query = streamsparql.compile(VALUES)
    assert str(query).startswith(f"{VALUES}\n\nProjection  ?x ?v\n")
    assert repr(query) == "<Query: select, read as streaming, over <s>>"
    for stage in ("logical", "optimized", "physical"):
        plan = getattr(query, stage)
        assert str(plan) == query.explain(stage)
        assert "?x :p ?v" in plan._repr_html_()
    result = query.run(items(2))
    assert repr(result) == "<Result: x v, not computed>"
    assert str(result).splitlines() == [
        "start  end  ?x   ?v",
        "    0  100  :T0   0",
        "    7  100  :T3   7",
    ]
    assert str(query.run(items(300))).splitlines()[-1] == "and 280 more"
    assert "not computed yet" in str(query.run(iter(items(2))))
    live = query.open()
    live.push_many("s", items(3))
    live.close()
    lines = str(live).splitlines()
    assert lines[0].split() == ["operator", "rows", "in", "rows", "out", "state"]
    assert lines[-2].split() == ["StreamAccess", "<s>", "0", "3", "0"]
    assert lines[-1].startswith("closed; all input processed; 3 items; ")
    assert repr(live) == "<Live: closed, watermark all>"


def test_a_preview_neither_consumes_a_source_nor_disturbs_an_iteration() -> None:
    query = streamsparql.compile(VALUES)
    result = query.run(iter(items(5)))
    assert "not computed yet" in result._repr_html_()
    assert next(iter(result)) is not None
    assert "not computed yet" in result._repr_html_()
    assert len(list(result)) == 5
    assert len(table_of(result._repr_html_())) == 6
    drawn = query.run(iter(items(5)))
    assert len(tips(drawn.timeline(), "rect")) == 5
    assert len(list(drawn)) == 5
    result = query.run(items(30))
    rows = iter(result)
    first = next(rows)
    page = result._repr_html_()
    assert [first, *rows] == list(query.run(items(30)))
    assert result._repr_html_() == page


def test_a_preview_computes_the_first_rows_only() -> None:
    page = streamsparql.compile(VALUES).run(items(3000))._repr_html_()
    assert "the first 20 of more than 1,000 rows" in page
    assert "the first 40 of at least 40 solutions" in page
    assert len(page) < 300_000


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        ("ASK FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 10 MS { ?x ?p 7 }", ["answer"]),
        (
            "CONSTRUCT { ?x <q> ?v } FROM STREAM <s> WINDOW RANGE 9 MS SLIDE 1 MS { ?x ?p ?v }",
            ["subject", "predicate", "object"],
        ),
        (VALUES + " ORDER BY DESC(?v) LIMIT 2", ["?x", "?v"]),
        ("SELECT * FROM STREAM <s> WINDOW RANGE 9 MS SLIDE 1 MS { <http://e/T0> ?p 0 }", ["?p"]),
    ],
)
def test_every_form_of_query_has_a_display(text: str, heads: list[str]) -> None:
    result = streamsparql.compile(text).run(items(12), start=0, end=90)
    page = result._repr_html_()
    check_html(page)
    assert table_of(page)[0][2:] == heads
    assert len(table_of(page)) == 1 + len(list(result))
    check_labels(result.timeline())


def test_instants_are_dates_by_default_and_milliseconds_on_request() -> None:
    result = streamsparql.compile(VALUES).run(items(3, start=MARCH_1))
    assert table_of(result._repr_html_())[0][0] == "start (UTC)"
    assert table_of(result._repr_html_())[1][0] == "2026-03-01 08:00:00"
    assert "1772352000000" in str(result.timeline(timestamps="ms"))


def test_invalid_options_of_a_timeline_are_errors() -> None:
    result = streamsparql.compile(VALUES).run(items(3))
    for limit in (0, -1):
        with pytest.raises(EngineError, match="limit must be a positive number of lanes"):
            result.timeline(limit=limit)
    with pytest.raises(EngineError, match="ms, iso or local"):
        result.timeline(timestamps="utc")


def test_text_cannot_break_out_of_a_display() -> None:
    text = (
        'SELECT ?o ("<script>alert(1)</script>\\u202E" AS ?s)'
        " FROM STREAM <s> WINDOW RANGE 9 SLIDE 1 {?x ?p ?o}"
    )
    stream = [("<a>", "<p>", f'"</svg>]]>&amp;{"x" * 300}"', 1)]
    result = streamsparql.compile(text).run(stream)
    page = check_html(result._repr_html_())
    assert "script" not in page.tags
    assert "<script>alert" in page.text
    check_labels(result.timeline())
    page = check_html(streamsparql.compile(NASTY)._repr_html_())
    assert "script" not in page.tags
    for words in NASTY_WORDS:
        assert words in page.text


def test_an_error_of_a_source_is_displayed_and_not_raised() -> None:
    result = streamsparql.compile(VALUES).run("no/such/file.nq")
    assert "no/such/file.nq" in result._repr_html_()
    with pytest.raises(StreamSparqlError):
        result.timeline()


def test_late_and_rejected_items_are_noted_before_and_after_computing() -> None:
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE 9 FIXED { ?x <p> ?y }")
    result = query.run([("a", "<p>", "<b>", 3), ("<a>", "<p>", "<b>", 5), ("<a>", "<p>", "<b>", 4)])
    for _ in range(2):  # the second time, the rows are computed
        for shown in (result._repr_html_(), str(result)):
            assert "2 items were late or rejected (result.late, result.rejected): " in shown
        assert len(list(result)) == 1


# -- queries and plans -----------------------------------------------------------------------------


def test_a_query_shows_its_text_its_warnings_and_its_plan() -> None:
    query = streamsparql.compile("SELECT ?y FROM STREAM <s> [RANGE 5m STEP 1m] { ?x <p> 1 }")
    page = check_html(query._repr_html_())
    assert query.text in page.text
    assert "line 1, column 8: nothing binds ?y" in page.text
    assert "read as csparql, over <s>" in page.text
    assert "range 5 min, step 1 min" in page.text


def test_showing_a_query_does_not_import_the_engine() -> None:
    code = (
        "import sys, streamsparql;"
        "q = streamsparql.compile(sys.argv[1]); q._repr_html_(); q.logical._repr_html_();"
        "sys.exit(bool({'numpy', 'pyarrow', 'IPython', 'rdflib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code, LISTING_1_1], check=False).returncode == 0


def test_the_tooltip_of_an_operator_has_its_definition_and_its_state() -> None:
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW ELEMS 5 { ?x ?p ?o . ?o ?q ?y }")
    assert "omega^count_c(S, t) contains" in query.logical._repr_html_()  # type: ignore[attr-defined]
    page = query.physical._repr_html_()  # type: ignore[attr-defined]
    check_html(page)
    assert "state = both inputs, until no match can follow" in page


def test_a_large_plan_can_be_fitted_and_starts_with_its_root() -> None:
    branches = " UNION ".join(f"{{ ?x <p{i}> ?y FILTER(?y > {i}) }}" for i in range(100))
    page = streamsparql.compile(f"SELECT ?x {{ {branches} }}").logical._repr_html_()  # type: ignore[attr-defined]
    assert "fit to the window" in page
    svg = re.search(r"<svg.*</svg>", page, re.S)
    assert svg is not None
    x_by_kind = {
        kind: float(group.attrib["transform"][10:].partition(" ")[0])
        for group in ElementTree.fromstring(svg[0]).iter(f"{SVG}g")
        for kind in [group.findtext(f"{SVG}g/{SVG}text")]
        if kind is not None
    }
    assert x_by_kind["Projection"] < 300
    small = streamsparql.compile("ASK {}").logical._repr_html_()  # type: ignore[attr-defined]
    assert "fit to the window" not in small


GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.txt"))
TAGS = {"VAR": "var", "IRIREF": "cite", "PNAME_LN": "cite", "PNAME_NS": "cite"}
COLOURED_PARTS = ("BLANK_NODE_LABEL", "LANGTAG")  # the highlighter colours them as names or strings
HARD = (
    "PREFIX HR: <http://e/\\u0078#> SELECT ?a { ?a HR:resume\u0301 1 FILTER(?a < 3 && ?b>2) }",
    "SELECT ?a-b (?c AS ?d) { ?a-b ?p ?c . FILTER(?a-b -1 > ?x-abs(?c) || ?p-true) }",
    'PREFIX a.b-c: <u> SELECT * { _:x.y a.b-c:%20\\,z.9 \'it\\\'s\', """"q"""@en-GB, 5.e3 . # ?no\n }',
)


def golden_queries(path: Path) -> list[str]:
    parts = re.split(r"^=== .*\n", path.read_text("utf-8"), flags=re.M)[1:]
    return [re.split(r"^--- ", part, flags=re.M)[0] for part in parts]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_highlighting_agrees_with_the_tokens_of_the_parser(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[Any] = []
    token = Lexer.token

    def recorded(*arguments: Any) -> Any:
        tokens.append(token(*arguments))
        return tokens[-1]

    monkeypatch.setattr(Lexer, "token", recorded)
    for text in [*golden_queries(path), *HARD, NASTY, LISTING_1_1]:
        tokens.clear()
        try:
            parse(text)
        except StreamSparqlError:
            assert text not in HARD
            continue
        root = ElementTree.fromstring(f"<pre>{highlighted(text)}</pre>")
        assert "".join(root.itertext()) == text
        coloured = dict[int, tuple[str, str]]()
        offset = len(root.text or "")
        for part in root:
            coloured[offset] = part.tag, part.text or ""
            offset += len(part.text or "") + len(part.tail or "")
        for each in tokens:
            tag, content = coloured.get(each.span.start, ("", ""))
            if each.type in TAGS:
                assert (tag, content) == (TAGS[each.type], text[each.span.start : each.span.end])
            elif each.type.startswith("STRING"):
                assert (tag, content) == ("q", text[each.span.start : each.span.end])
            else:
                assert tag not in ("var", "cite", "q") or each.type in COLOURED_PARTS, each


# -- streams ---------------------------------------------------------------------------------------


@SIZES
def test_every_item_is_a_point_or_counted_with_a_close_one(count: int) -> None:
    picture = streamsparql.show(items(count), "RANGE 100 MS SLIDE 10 MS")
    check_labels(picture)
    dots = tips(picture, "circle")
    close = (re.search(r"and (\d+) more next to it", dot) for dot in dots)
    assert len(dots) + sum(int(match[1]) for match in close if match) == count


def test_bars_are_the_validity_of_items_in_each_window() -> None:
    stream = [("<a>", "<p>", "<o>", t) for t in (1, 5, 7, 12)]
    picture = streamsparql.show(stream, ["RANGE 10 SLIDE 5", streamsparql.compile(STEPPED)])
    bars = [tip.partition("\n")[2] for tip in validities(picture, "rect")]
    sliding = [bar.rpartition(": ")[2] for bar in bars if bar.startswith("Sliding")]
    stepped = [bar.rpartition(": ")[2] for bar in bars if bar.startswith("Stepped")]
    assert sliding == ["[1, 10)", "[5, 15)", "[7, 15)", "[12, 20)"]
    assert stepped == ["[5, 15)", "[5, 15)", "[10, 20)", "[15, 25)"]
    waits = [part for part in svg_of(picture).iter(f"{SVG}path") if part.get("class") == "wait l1"]
    assert len(waits) == 3  # the item at 5 is in the stepped window at once
    check_labels(picture)
    assert "5  <a> <p> <o>  ① [5, 15)  ② [5, 15)" in str(picture)


def test_element_windows_count_the_items_that_match_their_pattern() -> None:
    text = "SELECT ?x FROM STREAM <s> { ?x <p> ?v . WINDOW ELEMS 2 }"
    stream = [("<a>", f"<{'pq'[k % 2]}>", "<o>", k) for k in range(6)]
    lines = str(streamsparql.show(stream, streamsparql.compile(text))).splitlines()
    assert lines[1:] == [
        "0  <a> <p> <o>  ① [0, 4)",
        "1  <a> <q> <o>  in no window",
        "2  <a> <p> <o>  ① [2, …)",
        "3  <a> <q> <o>  in no window",
        "4  <a> <p> <o>  ① [4, …)",
        "5  <a> <q> <o>  in no window",
    ]


def test_a_window_with_too_many_positions_is_not_drawn_step_by_step() -> None:
    """The 86 million positions in a day are not enumerated either."""
    picture = streamsparql.show(items(10, DAY // 9), "RANGE 10 MINUTE SLIDE 1 MS")
    assert "window positions" not in labels(picture)
    assert "window positions" in labels(streamsparql.show(items(10), "RANGE 10 SLIDE 5"))


def test_positions_of_a_window_agree_with_its_definition() -> None:
    stream = by_hand.access("s")
    for window in (
        stream.window("RANGE 12 SLIDE 5"),
        stream.window("[RANGE 12ms STEP 5ms]", dialect="csparql"),
        stream.window("[RANGE 12 STEP 5]", dialect="rspql"),
    ):
        node: Any = window.plan
        for position, after in pairwise(window_positions(node, 0, 60)):
            for t in range(max(position.live, 0), after.live):
                content = range(position.start, position.end)  # RSP-QL's windows are left-closed
                if position.live < position.end:
                    content = range(position.start, t + 1)
                elif node.closed == "right":
                    content = range(position.start + 1, position.end + 1)
                for stamp in range(t + 1):
                    assert node.holds(t, stamp) == (stamp in content), (node, t, stamp)


def test_many_items_are_shown_as_a_curve_per_window() -> None:
    picture = streamsparql.show(items(300), "RANGE 100 MS SLIDE 10 MS")
    paths = svg_of(picture).iter(f"{SVG}path")
    assert sum("area" in path.get("class", "") for path in paths) == 1
    assert "15" in labels(picture)
    assert "and 276 more" in str(picture)


def test_rejected_items_are_noted() -> None:
    stream = [*items(2), ("<a>", "<p>", "<o>", -5), ("<a>", '"p"', "<o>", 3)]
    picture = streamsparql.show(stream, "RANGE 10 MS SLIDE 5 MS")
    assert "2 items rejected: the stream, item 3: " in picture.note
    assert str(picture).endswith(picture.note)
    empty = streamsparql.show(stream[2:])
    assert "2 items rejected" in empty.note
    check_labels(empty)


@pytest.mark.parametrize("text", ["\ufffe", "\ud800", "a\u202eb", "\u0627\u0644"])
def test_invisible_and_right_to_left_letters_do_not_disturb_their_neighbours(
    text: str, tmp_path: Path
) -> None:
    query = streamsparql.compile(VALUES)
    stream = [("<http://e/a>", "<http://e/p>", f'"{text}"', 3), *items(2, start=4)]
    trace = query.trace(stream)
    pictures = [streamsparql.show(stream, query), query.run(stream).timeline(), trace.picture()]
    for picture in pictures:
        svg_of(picture)
        for name in ("a.svg", "a.html"):
            picture.save(tmp_path / name)
    for page in (str(pictures[0]), str(trace), pictures[2].html, trace.at(3)._repr_html_()):
        assert "\u202e" not in page
        assert ("\u2066" in page) == ("\u0627" in text)


def test_invalid_arguments_of_show_are_errors() -> None:
    two = "SELECT * { STREAM <s> [NOW] { ?x ?p ?y } STREAM <t> [ALL] { ?x ?q ?z } }"
    query = streamsparql.compile(two)
    with pytest.raises(SourceError, match="pass a list of items"):
        streamsparql.show(iter(items(3)))
    with pytest.raises(EngineError, match="ambiguous stream; the query reads <s>, <t>"):
        streamsparql.show(items(3), query)
    with pytest.raises(EngineError, match="unknown stream <u>; the query reads <s>, <t>"):
        streamsparql.show(items(3), query, stream="u")
    with pytest.raises(EngineError, match="windows must be a query, a plan"):
        streamsparql.show(items(3), 5)
    selected = str(streamsparql.show(items(3), query, stream="t"))
    assert "UnboundedWindow" in selected
    assert "NowWindow" not in selected


def test_events_are_drawn_over_their_occurrence() -> None:
    picture = streamsparql.show([(("<a>", "<p>", "<o>"), 3, 9)])
    assert "3 to 9" in str(picture)
    assert "at 3 to 9" in tips(picture, "circle")[0]


# -- open queries ----------------------------------------------------------------------------------


def test_an_open_query_shows_its_watermark_and_its_operators() -> None:
    live = streamsparql.compile(VALUES).open()
    assert "open; no watermark yet" in live._repr_html_()
    live.push_many("s", items(20))
    page = live._repr_html_()
    check_html(page)
    assert "watermark 133 ms; 20 items" in page
    lines = {line[0]: line[2:] for line in table_of(page)[1:]}
    stats = {each.operator: each for each in live.stats().operators}
    assert lines.keys() == stats.keys()
    assert lines["TimeWindow"] == ["20", "20", "0"]
    live.close()
    assert "closed; all input processed" in live._repr_html_()


def test_a_query_of_a_session_shows_its_own_operators() -> None:
    session = streamsparql.Session()
    values = session.register(VALUES, "values")
    other = session.register("SELECT ?p FROM STREAM <s> WINDOW RANGE 9 MS FIXED { ?x ?p 3 }", "<b>")
    session.push_many("s", items(20))
    page = values._repr_html_()
    check_html(page)
    assert "values: open; watermark 133 ms; 20 items" in page
    lines = {line[0]: line[2:] for line in table_of(page)[1:]}
    assert lines["TimeWindow"] == ["19", "19", "0"]  # the last one waits for the watermark
    assert lines.keys() == {each.operator for each in values.stats().operators}
    assert len(values.stats().operators) < len(session.stats().operators)
    assert "&lt;b&gt;: open; " in other._repr_html_()
    with_parameters = VALUES.replace("?x ?v", "?v").replace("?x", "$x")
    several = session.register(with_parameters, "several")
    several.add_many([{"x": "<a>"}, {"x": "<b>"}])
    assert str(several).splitlines()[-1].startswith("several, 2 instances: open; ")
    other.close()
    assert "closed; watermark 133 ms; 20 items; state 0" in str(other)
    session.close()
    assert "values: closed; all input processed; 20 items" in values._repr_html_()
    assert repr(values) == "<Registered: values, closed>"


# -- pictures, style sheets and time axes ----------------------------------------------------------


def test_a_picture_is_saved_as_it_is_shown(tmp_path: Path) -> None:
    picture = streamsparql.show(items(3))
    assert picture.save(tmp_path / "a.svg").read_text("utf-8") == picture._repr_svg_()
    page = picture.save(tmp_path / "a.html").read_text("utf-8")
    assert picture._repr_html_() in page
    with pytest.raises(EngineError, match=r"\.svg or \.html"):
        picture.save(tmp_path / "a.png")


def test_a_style_sheet_applies_to_its_own_elements_only() -> None:
    sheet = themed("our", "text,.soft{fill:#000/#fff}\n&{margin:0}")
    for line in sheet.splitlines():
        for selector in line.removeprefix("@media print{").partition("{")[0].split(","):
            assert ".our" in selector or line.startswith("@supports") or line == "}"
    assert ".our text,.our .soft{fill:light-dark(#000,#fff)}" in sheet
    assert '[data-jp-theme-light="false"] .our' in sheet


def tick_labels(start: int, span: int, most: int, style: str = "iso") -> list[str]:
    clock = DisplayClock(style)
    return [label for _, label in clock.labels(clock.ticks(start, start + span, most))]


@pytest.mark.parametrize("style", ["iso", "local", "ms"])
def test_ticks_are_few_and_have_distinct_labels(style: str) -> None:
    for span in (1, 7, 50, 999, 60_000, 3_600_000, DAY, 10**12, 900 * YEAR):
        for most in (2, 5, 9):
            texts = tick_labels(MARCH_1 + 123, span, most, style)
            assert len(texts) <= most + 1
            assert len(set(texts)) == len(texts)


def test_tick_labels_have_the_day_and_year_where_these_change() -> None:
    noon = MARCH_1 + 4 * 3_600_000
    assert tick_labels(noon + 1, 2 * DAY, 5) == "03-02 12:00 03-03 12:00".split()
    assert tick_labels(noon, 12 * DAY, 13)[:2] == ["03-02", "03-03"]
    assert tick_labels(noon, 2 * YEAR, 8) == "2026-07 2027-01 2027-07 2028-01".split()
    assert tick_labels(noon, 12 * YEAR, 8) == ["2028", "2030", "2032", "2034", "2036", "2038"]
    assert "12-21 2027-01-04 01-18" in " ".join(tick_labels(noon, 330 * DAY, 30))


def test_ticks_of_a_local_clock_are_round_in_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert tick_labels(MARCH_1, DAY, 5, "local") == ["18:00", "03-02", "06:00", "12:00"]
        assert tick_labels(MARCH_1, 3 * DAY, 3, "local") == ["03-02", "03-04"]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("style", ["ms", "iso", "local"])
def test_labels_of_an_axis_do_not_overlap(style: str) -> None:
    for start, span in product((0, 10**9, MARCH_1 + 7), (3, 45, 4_000, DAY, 400 * DAY)):
        canvas = Canvas("", start, start + span, left=190, width=480)
        canvas.ruler(0, 10, DisplayClock(style))
        texts = re.findall(r'<text x="([\d.]+)" y="25" class="soft mid">([^<]*)', canvas.svg())
        edges = [(float(x) - 3.4 * len(t), float(x) + 3.4 * len(t)) for x, t in texts]
        assert edges
        assert edges[-1][1] <= canvas.width
        assert all(before[1] < after[0] for before, after in pairwise(edges))
