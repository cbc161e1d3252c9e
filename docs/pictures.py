"""The pictures of the pages, drawn from the results of queries: no position is set by hand.

`python docs/pictures.py` (or `make pictures`) updates docs/pictures/*.svg; a test checks that they
are up to date. Pictures follow the reader's light or dark theme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import streamsparql
from streamsparql.look.jupyter.canvas import Canvas
from streamsparql.text.instants import DisplayClock

FOLDER = Path(__file__).parent / "pictures"
CITY = Path(__file__).parent / "city"
"""A query, a graph and a day of traffic, which the first cells of notebook 07 generate."""
PREFIX = "PREFIX : <http://example.org/> "
NUMBER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'


class Row(NamedTuple):
    """A row of a result: its label, and its validity."""

    label: str
    start: int
    end: int


Item = tuple[str, str, int | str, int]


def items(*short_items: Item) -> list[tuple[str, str, str, int]]:
    """Expand the short names in items of a stream.

    >>> items(("a", "door", "open", 3))
    [('<http://example.org/a>', '<http://example.org/door>', '<http://example.org/open>', 3)]
    """
    name = "<http://example.org/{}>".format
    return [
        (name(s), name(p), NUMBER.format(o) if isinstance(o, int) else name(o), t)
        for s, p, o, t in short_items
    ]


HEAT = items(
    ("a", "value", 20, 1), ("b", "value", 25, 4), ("a", "value", 24, 7), ("b", "value", 30, 12)
)
DOORS = items(("a", "door", "open", 3), ("a", "door", "shut", 8))
STREAMS = {"http://example.org/heat": HEAT, "http://example.org/doors": DOORS}
TWO = "FROM STREAM :heat WINDOW RANGE 10 SLIDE 1 FROM STREAM :doors WINDOW RANGE 4 SLIDE 1 "


def short(term: object) -> str:
    """Return a term without its namespace."""
    return "no door" if term is None else str(term).rpartition("/")[2]


def rows(text: str, streams: object) -> list[Row]:
    """Return the rows of a query over streams."""
    result = streamsparql.compile(PREFIX + text).run(streams)
    return [Row(" ".join(map(short, r.values())), r.start, r.end) for r in result]


# -- drawing ---------------------------------------------------------------------------------------


def drawing(title: str, span: int, left: int = 190) -> Canvas:
    """Return a canvas with a time axis from 0 to `span`."""
    return Canvas(title, 0, span, left=left, width=720)


# -- the pictures ----------------------------------------------------------------------------------

WINDOWS = (
    ("WINDOW RANGE 10 SLIDE 5", "Streaming SPARQL, CQELS", "FROM STREAM <s> {} {{ ?k ?p ?o }}"),
    ("[RANGE 10ms STEP 5ms]", "C-SPARQL", "FROM STREAM <s> {} {{ ?k ?p ?o }}"),
    (
        "[RANGE 10 STEP 5]",
        "RSP-QL",
        "FROM NAMED WINDOW <w> ON <s> {} {{ WINDOW <w> {{ ?k ?p ?o }} }}",
    ),
    ("WINDOW RANGE 10 FIXED", "one after the other", "FROM STREAM <s> {} {{ ?k ?p ?o }}"),
    ("WINDOW ELEMS 2", "the last two items", "FROM STREAM <s> {} {{ ?k ?p ?o }}"),
)


def validities(clause: str, where: str, stamps: Sequence[int]) -> list[Row]:
    """Return the validity in a window of items with some timestamps, in their order."""
    stream = [(f"<{k}>", "<p>", "<o>", t) for k, t in enumerate(stamps)]
    query = streamsparql.compile("SELECT ?k " + where.format(clause))
    by_position = {
        int(short(r["k"])): Row(str(stamps[int(short(r["k"]))]), r.start, r.end)
        for r in query.run(stream)
    }
    return [by_position[k] for k in range(len(stamps))]


def windows() -> Canvas:
    """Draw the validity of four items in five windows."""
    picture = drawing("The validity of four items in five kinds of windows", 25)
    stamps = (1, 5, 7, 12)
    top = picture.y
    for clause, title, where in WINDOWS:
        picture.text(8, picture.y + 24, clause, "code")
        picture.text(8, picture.y + 41, title, "soft")
        for k, row in enumerate(validities(clause, where, stamps)):
            y = picture.y + 6 + 14 * k
            if row.start > stamps[k]:
                picture.line(picture.x(stamps[k]), y + 5, picture.x(row.start), y + 5, f"wait l{k}")
            picture.bar(row.start, row.end, y, f"c{k}", 10)
            picture.dot(picture.x(stamps[k]), y + 5, f"c{k}")
        picture.y += 72
    picture.ruler(top, picture.y)
    return picture


def content() -> Canvas:
    """Draw the content of windows at each instant, over a stream with an item at each instant."""
    unit, gap = 8.0, 28
    picture = drawing("The content of three windows at each instant", 1)
    side, stamps = 25, range(25)
    for k, (clause, title, where) in enumerate(WINDOWS[:3]):
        left, top = 44 + k * (side * unit + gap), 44.0
        picture.text(left, 16, title.partition(",")[0], "head")
        picture.text(left, 33, clause, "code")
        bottom = top + side * unit
        for t in range(0, side + 1, 5):
            picture.line(left + t * unit, top, left + t * unit, bottom, "grid")
            picture.line(left, bottom - t * unit, left + side * unit, bottom - t * unit, "grid")
            picture.text(left + t * unit, bottom + 15, str(t), "soft mid")
            if k == 0:
                picture.text(left - 6, bottom - t * unit + 4, str(t), "soft end")
        for row, t in zip(validities(clause, where, stamps), stamps, strict=True):
            x, end = left + row.start * unit, left + min(row.end, side) * unit
            box = f'x="{x:g}" y="{bottom - (t + 1) * unit + 1:g}" height="{unit - 1:g}"'
            colour = "c1" if t == 10 else "c0"
            picture.add(f'<rect {box} width="{max(end - x, 0):g}" class="{colour}"/>')
        picture.y = bottom + 18
    picture.text(
        44,
        picture.y + 18,
        "horizontal: the instant (ms); vertical: the timestamps of the items in the window then",
        "soft",
    )
    picture.text(44, picture.y + 35, "the item at 10, on a boundary of windows", "soft")
    picture.add(f'<rect x="28" y="{picture.y + 27:g}" width="10" height="8" class="c1"/>')
    picture.y += 44
    return picture


LEFT = 150


def law() -> Canvas:
    """Draw two streams, their join, and the snapshots at an instant."""
    query = streamsparql.compile(
        f"{PREFIX} SELECT ?x ?v ?door {TWO} {{ ?x :value ?v . ?x :door ?door }}"
    )
    picture = drawing("A snapshot is what holds at an instant", 25, LEFT)
    at, top = 9, picture.y + 14
    picture.y = top
    parts = (
        (
            "heat, 10 ms",
            rows("SELECT ?x ?v FROM STREAM :heat WINDOW RANGE 10 SLIDE 1 { ?x :value ?v }", HEAT),
            0,
        ),
        (
            "doors, 4 ms",
            rows("SELECT ?x ?d FROM STREAM :doors WINDOW RANGE 4 SLIDE 1 { ?x :door ?d }", DOORS),
            2,
        ),
        (
            "heat and doors",
            [Row(" ".join(map(short, r.values())), r.start, r.end) for r in query.run(STREAMS)],
            3,
        ),
    )
    for name, row_list, colour in parts:
        picture.text(8, picture.y + 18, name, "head" if colour == 3 else "")
        for row in row_list:
            pale = "" if row.start <= at < row.end else " pale"
            picture.bar(row.start, row.end, picture.y + 5, f"c{colour}{pale}", 16)
            before = row.end <= at  # keep the label clear of the line
            x = picture.x(row.start) - 5 if before else picture.x(row.end) + 5
            ink = ("soft" if pale else "") + (" end" if before else "")
            picture.text(x, picture.y + 17, row.label, ink)
            picture.y += 20
        picture.y += 12
    x = picture.x(at)
    picture.line(x, top - 4, x, picture.y, "mark")
    picture.text(x, top - 9, f"the instant {at}", "red mid")
    picture.ruler(top, picture.y)
    answer = " and ".join(
        " ".join(map(short, row.values())) for row in query.run(STREAMS).snapshot(at)
    )
    picture.text(
        8,
        picture.y + 14,
        f"SPARQL over the snapshots of both streams returns {answer}: the snapshot of the join.",
    )
    picture.y += 24
    return picture


def gap() -> Canvas:
    """Draw a left join: matched, unmatched in a gap, matched again."""
    picture = drawing("The gap of an OPTIONAL", 14, LEFT)
    top = picture.y
    only = [item for item in HEAT if "/a>" in item[0]][:1]
    streams = {**STREAMS, "http://example.org/heat": only}
    left = rows("SELECT ?x ?v FROM STREAM :heat WINDOW RANGE 10 SLIDE 1 { ?x :value ?v }", only)
    right = rows("SELECT ?d FROM STREAM :doors WINDOW RANGE 4 SLIDE 1 { ?x :door ?d }", DOORS)
    both = rows(f"SELECT ?v ?d {TWO} {{ ?x :value ?v OPTIONAL {{ ?x :door ?d }} }}", streams)
    for name, row_list, colour in (
        ("left side", left, 0),
        ("OPTIONAL side", right, 2),
        ("answer", both, 3),
    ):
        picture.text(8, picture.y + 20, name, "head" if colour == 3 else "")
        for row in row_list:
            unbound = "no door" in row.label
            picture.bar(
                row.start,
                row.end,
                picture.y + 6,
                f"none l{colour}" if unbound else f"c{colour}",
                20,
            )
            wide = picture.x(row.end) - picture.x(row.start) > 60
            ink = "soft mid" if unbound else "on mid"
            label = row.label if wide else ""
            picture.text(
                (picture.x(row.start) + picture.x(row.end)) / 2, picture.y + 20, label, ink
            )
        picture.y += 34
    for t in sorted({edge for row in both for edge in (row.start, row.end)}):
        picture.line(picture.x(t), top + 2, picture.x(t), picture.y, "wait axis")
    picture.ruler(top, picture.y, every=1)
    picture.text(
        LEFT,
        picture.y + 12,
        "dashed: ?d is unbound. At 7 no item of the door is valid, for one millisecond.",
        "soft",
    )
    picture.y += 22
    return picture


ARRIVALS = (2, 5, 4, 9, 7, 12, 3, 15, 14, 21, 20, 16, 24)


def watermark() -> Canvas:
    """Draw items out of order, the watermark, and the late items."""
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 SLIDE 5 { ?s <p> ?o }")
    live = query.open(max_delay=4)
    marks, late = [], set()
    for k, t in enumerate(ARRIVALS):
        before = len(live.late)
        live.push("s", ("<s>", "<p>", NUMBER.format(k)), t)
        marks.append(live.watermark)
        if len(live.late) > before:
            late.add(k)
    picture = drawing("The watermark and late items", len(ARRIVALS), 60)
    top, unit = 14.0, 8.0
    bottom = top + 25 * unit
    for t in range(0, 26, 5):
        picture.line(60, bottom - t * unit, 704, bottom - t * unit, "grid")
        picture.text(54, bottom - t * unit + 4, str(t), "soft end")
    steps = "".join(
        f"H{picture.x(k + 0.5):g}V{bottom - max(m, 0) * unit:g}" for k, m in enumerate(marks)
    )
    stair = f"M{picture.x(0):g} {bottom:g}{steps}H{picture.x(len(ARRIVALS)):g}"
    picture.add(f'<path d="{stair}" fill="none" class="l0" stroke-width="2"/>')
    for k, t in enumerate(ARRIVALS):
        x, y = picture.x(k + 0.5), bottom - t * unit
        if k in late:
            picture.add(f'<path d="M{x - 4:g} {y - 4:g}l8 8m0 -8l-8 8" class="mark"/>')
            picture.text(x + 8, y + 4, f"{t}: late", "red")
        else:
            picture.dot(x, y, "c2", 4)
            picture.text(x + 7, y + 4, str(t))
    picture.y = bottom
    picture.text(
        64,
        bottom + 18,
        "horizontal: items in the order of arrival; vertical: their timestamps (ms)",
        "soft",
    )
    picture.line(64, bottom + 33, 88, bottom + 33, "l0")
    picture.text(
        94,
        bottom + 37,
        "the watermark: the greatest timestamp so far minus max_delay, which is 4 here",
        "soft",
    )
    picture.y = bottom + 48
    return picture


def _emitted_rows(pushes: Sequence[int], **how: object) -> Iterator[tuple[int, Row]]:
    """Yield rows, or rows of reports, each with the stream's time at which it was emitted."""
    query = streamsparql.compile(
        f"{PREFIX} SELECT ?v FROM STREAM :heat WINDOW RANGE 10 SLIDE 5 {{ ?x :value ?v }}"
    )
    live = query.open(**how)  # type: ignore[arg-type]
    waiting = list(HEAT)
    for now in pushes:
        while waiting and waiting[0][3] <= now:
            *triple, t = waiting.pop(0)
            live.push("http://example.org/heat", triple, t)
        live.advance(now)
        for each in live.rows():
            if isinstance(each, tuple):
                instant, report = each
                for row in report:
                    yield now, Row(short(row["v"]), instant, instant)
            else:
                yield now, Row(short(each["v"]), each.start, each.end)


def emit() -> Canvas:
    """Draw the times at which rows are emitted: final, eager, and as reports."""
    calls = (3, 6, 9, 12, 15, 18, 21)
    picture = drawing("When rows are emitted", 23, 150)
    colours = {"20": 0, "25": 1, "24": 2, "30": 3}
    top = picture.y + 14
    picture.y = top
    ways: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("final", "rows that have ended", {}),
        ("eager", "all, cut at each call", {"emit": "eager"}),
        ("report", "snapshots", {"report": "rstream"}),
    )
    for name, title, how in ways:
        picture.text(8, picture.y + 22, name, "head")
        picture.text(8, picture.y + 38, title, "soft")
        for now, row in _emitted_rows(calls, **how):
            k = colours[row.label]
            y = picture.y + 10 + 15 * k
            if name == "report":
                picture.line(picture.x(row.start), y + 5, picture.x(now), y + 5, f"wait l{k}")
                picture.dot(picture.x(row.start), y + 5, f"c{k}", 4.5)
            else:
                picture.line(picture.x(row.end), y + 5, picture.x(now), y + 5, f"wait l{k}")
                picture.bar(row.start, row.end, y, f"c{k}", 10, cut=3)
            if now > row.end:
                picture.add(f'<path d="M{picture.x(now):g} {y + 5:g}l-6 -4.5v9z" class="c{k}"/>')
        picture.y += 78
    for t in calls:
        picture.line(picture.x(t), top, picture.x(t), picture.y, "axis")
        picture.text(picture.x(t), top - 6, f"call at {t}" if t == calls[0] else str(t), "soft mid")
    picture.ruler(top, picture.y)
    return picture


MINUTE, HOUR = 60_000, 3_600_000
PANEL = 74


def jams() -> Canvas:
    """Draw readings of three streets, their means, and the rows of the query for traffic jams."""
    text = (CITY / "jams.rq").read_text("utf-8")
    roads = streamsparql.mapped(CITY / "traffic.csv")
    graph = CITY / "streets.ttl"
    jammed = streamsparql.compile(text).run(roads, graph)
    head = text[text.index("PREFIX") : text.index("SELECT")]
    means = streamsparql.compile(
        f"{head} SELECT ?street ?limit (AVG(?speed) AS ?mean) "
        f"{text[text.index('FROM') : text.index('HAVING')]}"
    ).run(roads, graph)
    readings = streamsparql.compile(
        f"{head} SELECT ?street ?speed FROM STREAM <http://example.org/traffic> WINDOW RANGE 1 MS "
        "WHERE { ?reading :street ?street ; :speed ?speed }"
    ).run(roads)
    starts = [row.start for row in readings]
    start = min(starts)
    picture = Canvas("Traffic jams of a day", start, max(starts) + 5 * MINUTE, left=78, width=720)
    picture.text(8, picture.y + 12, "km/h", "soft")
    x, y = picture.left, picture.y + 8
    picture.dot(x + 8, y, "c7 faint", 1.5)
    picture.text(x + 16, y + 4, "readings", "soft")
    picture.line(x + 100, y, x + 114, y, "l0 thick")
    picture.text(x + 120, y + 4, "mean of 20 minutes", "soft")
    picture.line(x + 260, y, x + 274, y, "mark wait")
    picture.text(x + 280, y + 4, "half of the speed limit", "soft")
    picture.box(x + 430, y - 6, 14, 12, "report pale")
    picture.text(x + 450, y + 4, "a row of the answer", "soft")
    picture.y += 24
    top = picture.y
    for street, limit in sorted(
        {(str(row.value("street")), int(str(row.value("limit")))) for row in means}
    ):
        base = picture.y + PANEL - 8

        def height(speed: float, base: float = base, limit: int = limit) -> float:
            return round(base - (PANEL - 14) * min(speed / limit, 1.15) / 1.15, 1)

        for row in jammed:
            if row.value("street") == street:
                left, right = picture.x(row.start), picture.x(row.end or picture.end)
                picture.box(left, picture.y + 2, right - left, PANEL - 10, "report pale")
        dots = "".join(
            f"M{picture.x(row.start):g} {height(float(row['speed'])):g}h0"
            for row in readings
            if row.value("street") == street
        )
        picture.add(
            f'<path d="{dots}" class="l7 faint" stroke-width="2.4" stroke-linecap="round"/>'
        )
        steps = "".join(
            f"L{picture.x(row.start):g} {height(float(row['mean'])):g}H{picture.x(row.end):g}"
            for row in sorted(means, key=lambda row: row.start)
            if row.value("street") == street and row.start < picture.end
        )
        picture.add(f'<path d="M{steps[1:]}" class="l0 thick" fill="none"/>')
        picture.line(picture.left, height(limit / 2), picture.right, height(limit / 2), "mark wait")
        picture.text(8, picture.y + 16, street, "head")
        picture.text(picture.left - 6, height(limit / 2) + 4, str(limit // 2), "soft end")
        picture.y += PANEL
    picture.ruler(top, picture.y - 4, DisplayClock("iso"))
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {
    "jams": jams,
    "windows": windows,
    "content": content,
    "law": law,
    "gap": gap,
    "watermark": watermark,
    "emit": emit,
}


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), "utf-8")


if __name__ == "__main__":
    main()
