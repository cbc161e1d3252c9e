"""What a notebook shows: that it says what the objects say, in well-formed and readable pictures.

Bars and points are read back from the pictures and compared with rows and windows; texts must stand
inside of their picture and not on each other, measured as broad as the broadest of our fonts. What
this cannot see is how it looks.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from itertools import pairwise
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
from streamsparql.look.jupyter.moving_window import stands
from streamsparql.text.instants import Clock
from streamsparql.text.widths import cells, in_picture
from streamsparql.translator.lexer import Lexer
from streamsparql.translator.parse import parse

SVG = "{http://www.w3.org/2000/svg}"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
VALUES = (
    "PREFIX : <http://e/> SELECT ?x ?v FROM STREAM <s> WINDOW RANGE 100 MS SLIDE 10 MS { ?x :p ?v }"
)
SIZES = pytest.mark.parametrize("count", [0, 1, 3, 30, 300])


def items(count: int, step: int = 7, start: int = 0) -> list[tuple[str, str, str, int]]:
    """Items that come one after the other, of five subjects and with few values."""
    return [
        (
            f"<http://e/T{k * 3 % 5}>",
            "<http://e/p>",
            f'"{k * 7 % 40}"^^<{INTEGER}>',
            start + k * step,
        )
        for k in range(count)
    ]


def element(picture: Picture) -> ElementTree.Element:
    """The picture's svg; it has no ids, which would meet those of its neighbours in a notebook."""
    made = ElementTree.fromstring(picture.svg)
    assert made.tag == f"{SVG}svg"
    assert not any(name in part.attrib for part in made.iter() for name in ("id", "href", "onload"))
    assert not list(made.iter(f"{SVG}script"))
    return made


def shapes(picture: Picture, *tags: str) -> list[ElementTree.Element]:
    """The shapes of a picture that say what they mean."""
    return [
        part
        for tag in tags
        for part in element(picture).iter(f"{SVG}{tag}")
        if part.find(f"{SVG}title") is not None
    ]


def tips(picture: Picture, *tags: str) -> list[str]:
    return ["".join(part.itertext()) for part in shapes(picture, *tags)]


def check_texts(picture: Picture) -> None:
    """Texts stand inside of the picture, and not on each other."""
    root = element(picture)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    stood: list[tuple[float, float, float, float]] = []
    for text in root.iter(f"{SVG}text"):
        words = (text.text or "") + "".join(part.tail or "" for part in text)
        kinds = text.attrib.get("class", "").split()
        broad = cells(words, in_picture) * (6.6 if "code" in kinds else 6.8)
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        x -= broad if "end" in kinds else broad / 2 if "mid" in kinds else 0
        assert x >= 0, words
        assert x + broad <= width + 12, words  # a label in the middle of the last line
        assert 10 <= y <= height - 2, words
        for left, low, right, high in stood:
            apart = x >= right or x + broad <= left or y - 9 >= high or y <= low
            assert apart, words
        if words:
            stood.append((x, y - 9, x + broad, y))


def cells_of(page: str) -> list[list[str]]:
    """The texts of a table's cells, line by line."""
    table = re.search(r"<table.*?</table>", page, re.S)
    assert table is not None
    return [
        ["".join(cell.itertext()) for cell in line] for line in ElementTree.fromstring(table[0])
    ]


# -- results ---------------------------------------------------------------------------------------


@SIZES
def test_a_result_shows_its_first_rows_and_how_many_more_there_are(count: int) -> None:
    result = streamsparql.compile(VALUES).run(items(count))
    page = result._repr_html_()
    check_html(page)
    head, *lines = cells_of(page)
    assert head == ["start", "end", "?x", "?v"]
    rows = list(result)
    expected = [
        [str(row.start), str(row.end), f":{str(row['x'])[9:]}", str(row["v"])] for row in rows
    ]
    assert lines == expected[:20]
    assert ("no rows" in page) == (not rows)
    assert (f"and {len(rows) - 20} more" in page) == (len(rows) > 20)


@SIZES
def test_bars_stand_where_rows_hold(count: int) -> None:
    result = streamsparql.compile(VALUES).run(items(count))
    picture = result.timeline(limit=1000)
    check_texts(picture)
    rows = list(result)
    found = sorted(tip.partition("\n")[2] for tip in tips(picture, "rect", "path"))
    told = [tip for tip in found if tip.startswith("from")]
    assert told == sorted(f"from {row.start} until before {row.end}" for row in rows)
    if rows:
        first, last = rows[0].start, max(row.end for row in rows)
        bars = [bar for bar in shapes(picture, "rect") if "from" in "".join(bar.itertext())]
        scale = max(float(bar.attrib["x"]) + float(bar.attrib["width"]) for bar in bars)
        left = min(float(bar.attrib["x"]) for bar in bars)
        for bar in bars:
            start, end = map(int, re.findall(r"\d+", "".join(bar.itertext()).partition("\n")[2]))
            x, width = float(bar.attrib["x"]), float(bar.attrib["width"])
            assert x == pytest.approx(
                left + (start - first) * (scale - left) / (last - first), abs=0.2
            )
            assert width == pytest.approx((end - start) * (scale - left) / (last - first), abs=1)


def test_many_solutions_are_cut_and_that_is_said() -> None:
    picture = streamsparql.compile(VALUES).run(items(300)).timeline(limit=12)
    assert "the first 12 of 40 solutions" in picture.note
    assert picture.note in picture.html
    assert str(picture).endswith(picture.note)


def test_equal_rows_share_a_lane() -> None:
    given = [("<http://e/a>", "<http://e/p>", '"1"', t) for t in (0, 20, 40, 300)]
    picture = streamsparql.compile(VALUES).run(given).timeline()
    labels = [text.text for text in element(picture).iter(f"{SVG}text")]
    assert "×3" in [(text.text or "") for text in element(picture).iter(f"{SVG}text")]
    assert len(tips(picture, "rect")) == 4
    assert labels.count("?x") == 1


def test_of_thirty_variables_as_many_are_labels_as_can_be_read() -> None:
    patterns = " . ".join(f"?x <http://e/p{k}> ?variable_{k}" for k in range(30))
    query = streamsparql.compile(
        f"SELECT * FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 5 MS {{ {patterns} }}"
    )
    given = [("<http://e/a>", f"<http://e/p{k}>", f'"{k * 1000}"', k // 10) for k in range(30)]
    picture = query.run(given).timeline()
    check_texts(picture)
    assert "the first 4 of 31 variables" in picture.note
    (bar,) = shapes(picture, "rect")
    assert float(bar.attrib["width"]) > 300
    assert '"29000"' in "".join(bar.itertext())


def test_of_many_solutions_time_is_that_of_those_that_are_drawn() -> None:
    given = [("<http://e/a>", "<http://e/p>", f'"{t}"', t) for t in range(0, 3000, 10)]
    picture = streamsparql.compile(VALUES).run(given).timeline(limit=5)
    bars = shapes(picture, "rect")
    assert len(bars) == 5
    assert max(float(bar.attrib["width"]) for bar in bars) > 200


@pytest.mark.parametrize("limit", [0, -1])
def test_a_timeline_of_no_lane_is_refused(limit: int) -> None:
    with pytest.raises(EngineError, match="a number from 1 on"):
        streamsparql.compile(VALUES).run(items(3)).timeline(limit=limit)


def test_rows_that_never_end_are_arrows() -> None:
    result = streamsparql.compile("SELECT ?x { STREAM <s> [ALL] { ?x <http://e/p> ?v } }").run(
        items(2)
    )
    picture = result.timeline()
    assert [tip.partition("\n")[2] for tip in tips(picture, "path")] == ["from 0 on", "from 7 on"]
    assert str(picture).count("▶") == 2
    assert cells_of(result._repr_html_())[1][1] == "…"


def test_lines_stand_at_the_reports_of_the_query() -> None:
    text = "SELECT ?x FROM STREAM <s> [RANGE 40ms STEP 20ms] { ?x <http://e/p> ?v }"
    picture = streamsparql.compile(text).run(items(10), start=0, end=100).timeline()
    lines = [tip for tip in tips(picture, "path") if tip.startswith("report")]
    assert lines == [f"report at {t}" for t in (0, 20, 40, 60, 80, 100)]
    assert sum("horizon" in tip for tip in tips(picture, "path")) == 2


@pytest.mark.parametrize("kind", ["rstream", "istream", "dstream"])
def test_dots_are_the_rows_of_the_reports_that_are_asked_for(kind: str) -> None:
    query = streamsparql.compile(VALUES)
    result = query.run(items(20))
    expected = sorted(
        f":{str(row['x'])[9:]}  {row['v']} {instant}"
        for instant, rows in query.run(items(20)).report(kind, every=25)
        for row in rows
    )
    dots = tips(result.timeline(report=kind, every=25), "circle")
    assert sorted(dot.replace("\nreported at", "") for dot in dots) == expected


def test_reports_that_are_too_many_are_counted() -> None:
    picture = streamsparql.compile(VALUES).run(items(300)).timeline(every=1)
    assert "reports, too close to each other" in picture.note


def test_what_is_shown_is_printed_too() -> None:
    query = streamsparql.compile(VALUES)
    assert str(query).startswith(f"{VALUES}\n\nProjection  ?x ?v\n")
    assert repr(query) == "<Query: select, read as streaming, over <s>>"
    assert str(query.logical) == query.explain("logical")
    assert str(query.optimized) == query.explain("optimized")
    assert str(query.physical) == query.explain("physical")
    assert "?x :p ?v" in query.logical._repr_html_()
    assert "?x :p ?v" in query.physical._repr_html_()
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
    assert lines[-1].startswith("closed; all is known; 3 items; ")
    assert repr(live) == "<Live: closed, watermark all>"


def test_looking_does_not_use_up_a_source() -> None:
    query = streamsparql.compile(VALUES)
    result = query.run(iter(items(5)))
    assert "not computed yet" in result._repr_html_()
    assert next(iter(result)) is not None
    assert "not computed yet" in result._repr_html_()
    assert len(list(result)) == 5
    assert len(cells_of(result._repr_html_())) == 6
    asked = query.run(iter(items(5)))
    assert len(tips(asked.timeline(), "rect")) == 5
    assert len(list(asked)) == 5


def test_looking_at_a_result_that_can_be_read_again_leaves_it_as_it_was() -> None:
    query = streamsparql.compile(VALUES)
    result = query.run(items(30))
    rows = iter(result)
    first = next(rows)
    page = result._repr_html_()
    assert [first, *rows] == list(query.run(items(30)))
    assert result._repr_html_() == page


def test_a_look_at_a_long_result_computes_its_beginning() -> None:
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
    assert cells_of(page)[0][2:] == heads
    assert len(cells_of(page)) == 1 + len(list(result))
    check_texts(result.timeline())


def test_times_are_written_as_asked_for() -> None:
    result = streamsparql.compile(VALUES).run(items(3, start=1_772_352_000_000))
    assert cells_of(result._repr_html_())[0][0] == "start (UTC)"
    assert cells_of(result._repr_html_())[1][0] == "2026-03-01 08:00:00"
    assert "1772352000000" in str(result.timeline(timestamps="ms"))
    with pytest.raises(EngineError, match="ms, iso, local"):
        result.timeline(timestamps="utc")


def test_nothing_breaks_out_of_a_result() -> None:
    text = (
        'SELECT ?o ("<script>alert(1)</script>\\u202E" AS ?s)'
        " FROM STREAM <s> WINDOW RANGE 9 SLIDE 1 {?x ?p ?o}"
    )
    given = [("<a>", "<p>", f'"</svg>]]>&amp;{"x" * 300}"', 1)]
    result = streamsparql.compile(text).run(given)
    page = check_html(result._repr_html_())
    assert "script" not in page.tags
    assert "<script>alert" in page.text
    check_texts(result.timeline())


def test_an_error_of_a_source_is_shown_and_not_raised() -> None:
    result = streamsparql.compile(VALUES).run("no/such/file.nq")
    assert "no/such/file.nq" in result._repr_html_()
    with pytest.raises(StreamSparqlError):
        result.timeline()


# -- queries and plans -----------------------------------------------------------------------------


def test_a_query_shows_its_text_its_doubts_and_its_plan() -> None:
    query = streamsparql.compile("SELECT ?y FROM STREAM <s> [RANGE 5m STEP 1m] { ?x <p> 1 }")
    page = query._repr_html_()
    found = check_html(page)
    assert query.text in found.text
    assert "line 1, column 8: nothing binds ?y" in found.text
    assert "read as csparql, over <s>" in found.text
    assert "range 5 min, step 1 min" in found.text


def test_nothing_breaks_out_of_a_query() -> None:
    page = check_html(streamsparql.compile(NASTY)._repr_html_())
    assert "script" not in page.tags
    for words in NASTY_WORDS:
        assert words in page.text


def test_showing_a_query_loads_nothing_that_runs_plans() -> None:
    code = (
        "import sys, streamsparql;"
        "q = streamsparql.compile(sys.argv[1]); q._repr_html_(); q.logical._repr_html_();"
        "sys.exit(bool({'numpy', 'pyarrow', 'IPython', 'rdflib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code, LISTING_1_1], check=False).returncode == 0


def test_an_operator_of_a_plan_says_on_hover_what_it_means_and_what_it_holds() -> None:
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW ELEMS 5 { ?x ?p ?o . ?o ?q ?y }")
    assert "omega^count_c(S, t) contains" in query.logical._repr_html_()  # type: ignore[attr-defined]
    shown = query.physical._repr_html_()  # type: ignore[attr-defined]
    check_html(shown)
    assert "state = both inputs, while they can still meet" in shown


def test_a_large_plan_can_be_fitted_and_begins_with_its_root() -> None:
    branches = " UNION ".join(f"{{ ?x <p{i}> ?y FILTER(?y > {i}) }}" for i in range(100))
    shown = streamsparql.compile(f"SELECT ?x {{ {branches} }}").logical._repr_html_()  # type: ignore[attr-defined]
    assert "fit to the window" in shown
    svg = re.search(r"<svg.*</svg>", shown, re.S)
    assert svg is not None
    found = ElementTree.fromstring(svg[0]).iter(f"{SVG}g")
    first = {
        kind: float(place.attrib["transform"][10:].partition(" ")[0])
        for place in found
        for kind in [place.findtext(f"{SVG}g/{SVG}text")]
        if kind is not None
    }
    assert first["Projection"] < 300
    small = streamsparql.compile("ASK {}").logical._repr_html_()  # type: ignore[attr-defined]
    assert "fit to the window" not in small


GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.txt"))
_TAGS = {"VAR": "var", "IRIREF": "cite", "PNAME_LN": "cite", "PNAME_NS": "cite"}
_OTHERS = ("BLANK_NODE_LABEL", "LANGTAG")


HARD = (
    "PREFIX HR: <http://e/\\u0078#> SELECT ?a { ?a HR:resume\u0301 1 FILTER(?a < 3 && ?b>2) }",
    "SELECT ?a-b (?c AS ?d) { ?a-b ?p ?c . FILTER(?a-b -1 > ?x-abs(?c) || ?p-true) }",
    'PREFIX a.b-c: <u> SELECT * { _:x.y a.b-c:%20\\,z.9 \'it\\\'s\', """"q"""@en-GB, 5.e3 . # ?no\n }',
)


def _queries(path: Path) -> list[str]:
    parts = re.split(r"^=== .*\n", path.read_text("utf-8"), flags=re.M)[1:]
    return [re.split(r"^--- ", part, flags=re.M)[0] for part in parts]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_words_have_the_colours_of_what_the_grammar_reads(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[Any] = []
    token = Lexer.token

    def noted(*arguments: Any) -> Any:
        tokens.append(token(*arguments))
        return tokens[-1]

    monkeypatch.setattr(Lexer, "token", noted)
    for text in [*_queries(path), *HARD, NASTY, LISTING_1_1]:
        tokens.clear()
        try:
            parse(text)
        except StreamSparqlError:
            assert text not in HARD
            continue
        shown = ElementTree.fromstring(f"<pre>{highlighted(text)}</pre>")
        assert "".join(shown.itertext()) == text
        coloured = dict[int, tuple[str, str]]()
        at = len(shown.text or "")
        for part in shown:
            coloured[at] = part.tag, part.text or ""
            at += len(part.text or "") + len(part.tail or "")
        for one in tokens:
            tag, words = coloured.get(one.span.start, ("", ""))
            if one.type in _TAGS:
                assert (tag, words) == (_TAGS[one.type], text[one.span.start : one.span.end])
            elif one.type.startswith("STRING"):
                assert (tag, words) == ("q", text[one.span.start : one.span.end])
            else:
                assert tag not in ("var", "cite", "q") or one.type in _OTHERS, one


# -- streams ---------------------------------------------------------------------------------------

STEPPED = "SELECT ?x FROM STREAM <s> [RANGE 10ms STEP 5ms] { ?x ?p ?v }"


@SIZES
def test_a_stream_is_points(count: int) -> None:
    picture = streamsparql.show(items(count), "RANGE 100 MS SLIDE 10 MS")
    check_texts(picture)
    dots = tips(picture, "circle")
    others = sum(
        int(found[1]) for dot in dots if (found := re.search(r"and (\d+) more close", dot))
    )
    assert len(dots) + others == count


def test_a_live_edge_and_a_stepped_window() -> None:
    given = [("<a>", "<p>", "<o>", t) for t in (1, 5, 7, 12)]
    picture = streamsparql.show(given, ["RANGE 10 SLIDE 5", streamsparql.compile(STEPPED)])
    told = [tip.partition("\n")[2].partition("\n")[2] for tip in tips(picture, "rect")]
    live = [tip.rpartition(": ")[2] for tip in told if tip.startswith("Sliding")]
    stepped = [tip.rpartition(": ")[2] for tip in told if tip.startswith("Stepped")]
    assert live == ["[1, 10)", "[5, 15)", "[7, 15)", "[12, 20)"]
    assert stepped == ["[5, 15)", "[5, 15)", "[10, 20)", "[15, 25)"]
    waits = [part for part in element(picture).iter(f"{SVG}path") if part.get("class") == "wait l1"]
    assert len(waits) == 3  # that of 5 is seen at once
    check_texts(picture)
    assert "5  <a> <p> <o>  ① [5, 15)  ② [5, 15)" in str(picture)


def test_windows_that_count_count_what_their_pattern_matches() -> None:
    text = "SELECT ?x FROM STREAM <s> { ?x <p> ?v . WINDOW ELEMS 2 }"
    given = [("<a>", f"<{'pq'[k % 2]}>", "<o>", k) for k in range(6)]
    lines = str(streamsparql.show(given, streamsparql.compile(text))).splitlines()
    assert lines[1:] == [
        "0  <a> <p> <o>  ① [0, 4)",
        "1  <a> <q> <o>  in no window",
        "2  <a> <p> <o>  ① [2, …)",
        "3  <a> <q> <o>  in no window",
        "4  <a> <p> <o>  ① [4, …)",
        "5  <a> <q> <o>  in no window",
    ]


def test_a_window_that_moves_all_the_time_is_not_drawn_step_by_step() -> None:
    """Nor is each of its places looked at: in a day it has 86 million of them."""
    day = 86_400_000
    picture = streamsparql.show(items(10, day // 9), "RANGE 10 MINUTE SLIDE 1 MS")
    assert "where it stands" not in "".join(element(picture).itertext())


def test_items_that_cannot_be_read_are_told() -> None:
    given = [*items(2), ("<a>", "<p>", "<o>", -5), ("<a>", '"p"', "<o>", 3)]
    picture = streamsparql.show(given, "RANGE 10 MS SLIDE 5 MS")
    assert "2 items could not be read: the stream, item 3: " in picture.note
    assert str(picture).endswith(picture.note)
    nothing = streamsparql.show(given[2:])
    assert "2 items could not be read" in nothing.note
    check_texts(nothing)


@pytest.mark.parametrize("text", ["\ufffe", "\ud800", "a\u202eb", "\u0627\u0644"])
def test_letters_that_cannot_be_seen_or_go_leftwards_stay_where_they_are(
    text: str, tmp_path: Path
) -> None:
    """A picture is well-formed and can be saved, and what stands beside is not turned around."""
    query = streamsparql.compile(VALUES)
    given = [("<http://e/a>", "<http://e/p>", f'"{text}"', 3), *items(2, start=4)]
    trace = query.trace(given)
    pictures = [streamsparql.show(given, query), query.run(given).timeline(), trace.picture()]
    for picture in pictures:
        element(picture)
        for name in ("a.svg", "a.html"):
            picture.save(tmp_path / name)
    shown = [str(pictures[0]), str(trace), pictures[2].html, trace.at(3)._repr_html_()]
    for page in shown:
        assert "\u202e" not in page
        assert ("\u2066" in page) == ("\u0627" in text)


def test_where_a_window_stands_holds_what_it_holds() -> None:
    stream = by_hand.access("s")
    for window in (
        stream.window("RANGE 12 SLIDE 5"),
        stream.window("[RANGE 12ms STEP 5ms]", dialect="csparql"),
        stream.window("[RANGE 12 STEP 5]", dialect="rspql"),
    ):
        node: Any = window.plan
        for place, after in pairwise(stands(node, 0, 60)):
            for t in range(max(place.live, 0), after.live):
                inside = range(place.start, place.end)  # RSP-QL's window is closed on the left
                if place.live < place.end:
                    inside = range(place.start, t + 1)
                elif node.closed == "right":
                    inside = range(place.start + 1, place.end + 1)
                for stamp in range(t + 1):
                    assert node.holds(t, stamp) == (stamp in inside), (node, t, stamp)


def test_of_many_items_a_window_shows_how_many_it_holds() -> None:
    picture = streamsparql.show(items(300), "RANGE 100 MS SLIDE 10 MS")
    areas = [
        part for part in element(picture).iter(f"{SVG}path") if "area" in part.get("class", "")
    ]
    assert len(areas) == 1
    assert "15" in [text.text for text in element(picture).iter(f"{SVG}text")]
    assert "and 276 more" in str(picture)


def test_a_stream_is_not_used_up_by_showing_it() -> None:
    with pytest.raises(SourceError, match="give a list"):
        streamsparql.show(iter(items(3)))


def test_show_says_what_it_wants() -> None:
    two = "SELECT * { STREAM <s> [NOW] { ?x ?p ?y } STREAM <t> [ALL] { ?x ?q ?z } }"
    query = streamsparql.compile(two)
    with pytest.raises(EngineError, match="the query reads <s>, <t>"):
        streamsparql.show(items(3), query)
    assert "UnboundedWindow" in str(streamsparql.show(items(3), query, stream="t"))
    with pytest.raises(EngineError, match="does not read the stream <u>"):
        streamsparql.show(items(3), query, stream="u")
    assert "NowWindow" not in str(streamsparql.show(items(3), query, stream="t"))
    with pytest.raises(EngineError, match="windows are those of a query"):
        streamsparql.show(items(3), 5)


def test_events_are_shown_over_their_time() -> None:
    picture = streamsparql.show([(("<a>", "<p>", "<o>"), 3, 9)])
    assert "3 to 9" in str(picture)
    assert "at 3 to 9" in tips(picture, "circle")[0]


# -- open queries ----------------------------------------------------------------------------------


def test_an_open_query_shows_how_far_it_is() -> None:
    live = streamsparql.compile(VALUES).open()
    assert "open; nothing came" in live._repr_html_()
    live.push_many("s", items(20))
    page = live._repr_html_()
    check_html(page)
    assert "all before 133 ms is known; 20 items" in page
    lines = {line[0]: line[2:] for line in cells_of(page)[1:]}
    stats = {each.operator: each for each in live.stats().operators}
    assert lines.keys() == stats.keys()
    assert lines["TimeWindow"] == ["20", "20", "0"]
    live.close()
    assert "closed; all is known" in live._repr_html_()


# -- pictures and style sheets ---------------------------------------------------------------------


def test_a_picture_is_saved_as_it_is_shown(tmp_path: Path) -> None:
    picture = streamsparql.show(items(3))
    assert picture.save(tmp_path / "a.svg").read_text("utf-8") == picture._repr_svg_()
    page = picture.save(tmp_path / "a.html").read_text("utf-8")
    assert picture._repr_html_() in page
    with pytest.raises(EngineError, match=r"\.svg or \.html"):
        picture.save(tmp_path / "a.png")


def test_a_style_sheet_reaches_nothing_but_its_own() -> None:
    sheet = themed("our", "text,.soft{fill:#000/#fff}\n&{margin:0}")
    for line in sheet.splitlines():
        for selector in line.removeprefix("@media print{").partition("{")[0].split(","):
            assert ".our" in selector or line.startswith("@supports") or line == "}"
    assert ".our text,.our .soft{fill:light-dark(#000,#fff)}" in sheet
    assert '[data-jp-theme-light="false"] .our' in sheet


YEAR = 365 * 86_400_000


def test_ticks_are_round_and_few() -> None:
    for style in ("iso", "local", "ms"):
        clock = Clock(style)
        for span in (1, 7, 50, 999, 60_000, 3_600_000, 86_400_000, 10**12, 900 * YEAR):
            for most in (2, 5, 9):
                found = clock.ticks(1_772_352_000_123, 1_772_352_000_123 + span, most)
                assert len(found) <= most + 1
                labels = [label for _, label in clock.labels(found)]
                assert len(set(labels)) == len(labels)


def labelled(start: int, span: int, most: int, style: str = "iso") -> list[str]:
    clock = Clock(style)
    return [label for _, label in clock.labels(clock.ticks(start, start + span, most))]


def test_ticks_say_which_day_and_year_it_is() -> None:
    noon = 1_772_352_000_000 + 4 * 3_600_000  # of the 1st of March 2026
    assert labelled(noon + 1, 2 * 86_400_000, 5) == "03-02 12:00 03-03 12:00".split()
    assert labelled(noon, 12 * 86_400_000, 13)[:2] == ["03-02", "03-03"]
    assert labelled(noon, 2 * YEAR, 8) == "2026-07 2027-01 2027-07 2028-01".split()
    assert labelled(noon, 12 * YEAR, 8) == ["2028", "2030", "2032", "2034", "2036", "2038"]
    assert "12-21 2027-01-04 01-18" in " ".join(labelled(noon, 330 * 86_400_000, 30))


def test_ticks_of_a_local_clock_are_round_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        noon = 1_772_352_000_000
        assert labelled(noon, 86_400_000, 5, "local") == ["18:00", "03-02", "06:00", "12:00"]
        assert labelled(noon, 3 * 86_400_000, 3, "local") == ["03-02", "03-04"]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("style", ["ms", "iso", "local"])
@pytest.mark.parametrize("span", [3, 45, 4_000, 86_400_000, 400 * 86_400_000])
def test_labels_of_an_axis_do_not_touch(style: str, span: int) -> None:
    for start in (0, 10**9, 1_772_352_000_007):
        canvas = Canvas("", start, start + span, left=190, width=480)
        canvas.ruler(0, 10, Clock(style))
        places = re.findall(r'<text x="([\d.]+)" y="25" class="soft mid">([^<]*)', canvas.svg())
        edges = [(float(x) - 3.4 * len(t), float(x) + 3.4 * len(t)) for x, t in places]
        assert edges
        assert edges[-1][1] <= canvas.width
        assert all(before[1] < after[0] for before, after in pairwise(edges))


def test_reports_that_are_too_many_to_draw_are_counted_only() -> None:
    """A stray stamp near 1970 makes a span of decades: nothing may be made for each report."""
    items = [("<a>", "<p>", f'"{t}"', t) for t in (5, 1_767_225_600_000)]
    query = streamsparql.compile(
        "SELECT * FROM STREAM <s> WINDOW RANGE 600000 SLIDE 1 { ?x <p> ?y }"
    )
    page = query.run(items)._repr_html_()
    assert "reports, too close to each other to be drawn" in page


def test_a_result_says_what_was_left_out() -> None:
    query = streamsparql.compile("SELECT * FROM STREAM <s> WINDOW RANGE 9 FIXED { ?x <p> ?y }")
    result = query.run([("a", "<p>", "<b>", 3), ("<a>", "<p>", "<b>", 5), ("<a>", "<p>", "<b>", 4)])
    for _ in range(2):  # as a look, and computed
        for shown in (result._repr_html_(), str(result)):
            assert "2 items were late or rejected (result.late, result.rejected): " in shown
        assert len(list(result)) == 1
