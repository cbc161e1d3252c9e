"""The tour of `streamsparql demo`: a wind park, three queries with their results, and a left join.

Each part is a few sentences and the output of a command. The output is not canned: the queries are
compiled and run on the selected engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsparql.cli.bars import ValidityBar, bar_chart
from streamsparql.cli.screen import Screen
from streamsparql.look.explain import explain
from streamsparql.query import Query, compile
from streamsparql.windpark import PREFIXES, STREAM, park_iri
from streamsparql.windpark.folder import date_time_text, query_comment

if TYPE_CHECKING:
    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.result import Result
    from streamsparql.run.rows import Row
    from streamsparql.windpark import ParkItem, WindPark

_STARTS = f"""PREFIX : <{PREFIXES[""]}>
PREFIX wtur: <{PREFIXES["wtur"]}>
SELECT ?turbine ?starts
FROM STREAM <{STREAM}> WINDOW RANGE 60 MINUTE SLIDE
WHERE {{ ?turbine :field :north ; wtur:StrCnt ?starts }}"""
_STOPS = f"""PREFIX : <{PREFIXES[""]}>
SELECT ?turbine ?reason
FROM STREAM <{STREAM}> WINDOW RANGE 10 MINUTE SLIDE
WHERE {{ ?turbine :stopReason ?reason }}"""
"""The right side of the left join in stops.rq; `_STARTS` is the left side."""

_POWER_LEVELS = "▁▂▃▄▅▆▇█"
_ITEMS_SHOWN = 8
_TURBINES_SHOWN = 12


class Tour:
    """The demonstration, part by part, over a park and with the arguments of `Query.run`."""

    def __init__(
        self, park: WindPark, arguments: dict[str, Any], screen: Screen | None = None
    ) -> None:
        self._park, self._arguments = park, arguments
        self._screen = Screen.of_stdout() if screen is None else screen

    def show(self) -> None:
        """Write all parts to the screen."""
        self._show_park()
        self._show_listing()
        self._show_optional()
        self._show_aggregate()
        self._show_gap()
        self._show_next_commands()

    # -- the park

    def _show_park(self) -> None:
        park, screen = self._park, self._screen
        screen.heading("1  A wind park")
        screen.prose(
            f"{_counted(park.turbines, 'turbine')} reported wind and power once a minute for"
            f" {_counted(park.minutes, 'minute')}, and each stop and start:"
            f" {len(park.items):,} RDF triples, each with a timestamp. Some of them:"
        )
        screen.write()
        for subject, predicate, value, t in _sample(park.items):
            triple = f"{shorten(subject):5}{shorten(predicate):14}{shorten(value)}"
            screen.write(f"  {date_time_text(t)[11:19]}  {triple}")
        screen.write()
        screen.prose(
            "The vocabulary is that of IEC 61400-25: WdSpd is the wind speed in m/s, W the power"
            " in kW; StopCnt and StrCnt count the stops and the starts of the turbine."
        )
        screen.write()
        screen.prose("The power of each turbine; a gap means that it stood still:")
        screen.write()
        self._show_power()

    def _show_power(self) -> None:
        """Write a line per turbine, with a character for its mean power in each time slot."""
        park, room = self._park, min(self._screen.width - 20, 60)
        fields = {s: shorten(o)[1:] for s, p, o in park.graph if p == park_iri(":field")}
        shown = [park_iri(f":T{k + 1}") for k in range(min(park.turbines, _TURBINES_SHOWN))]
        row = {name: k for k, name in enumerate(shown)}
        count = min(room, park.minutes)
        kilowatts, readings = np.zeros((len(shown), count)), np.zeros((len(shown), count))
        for subject, predicate, value, t in park.items:
            if predicate == park_iri("wtur:W") and subject in row:
                column = (t - park.start) * count // (park.end - park.start)
                kilowatts[row[subject], column] += int(shorten(value))
                readings[row[subject], column] += 1
        mean = kilowatts / np.maximum(readings, 1)
        levels = np.ceil(mean / max(1.0, mean.max()) * len(_POWER_LEVELS)).astype(int)
        for name, line in zip(shown, levels.tolist(), strict=True):
            bar = "".join(_POWER_LEVELS[level - 1] if level else " " for level in line)
            label = f"  {shorten(name):5}{fields[name]:7}"
            self._screen.write(label + self._screen.paint(bar, 32))
        first, last = (date_time_text(t)[11:16] for t in (park.start, park.end))
        self._screen.write(f"{'':14}{first}{last:>{max(count - 5, 6)}}")

    # -- queries

    def _show_listing(self) -> None:
        query = self._introduce("2  A query, its plan, its results", "listing-1.1")
        screen = self._screen
        screen.write()
        screen.prose(
            "This is its plan, with the result at the top and the stream at the bottom. Each line"
            " is an operator of the paper, whose input is below it. (AccessGraph reads static"
            " data, if there is any.)"
        )
        screen.write()
        screen.write(explain(query, "logical", "text", color=screen.color, width=screen.width))
        screen.write()
        screen.prose(
            "And these are its results. A row holds from its start to its end; it is computed once,"
            " not once per window that contains it. Where ?z is empty, the turbine has not stopped"
            " yet:"
        )
        self._show_rows(query, 9)

    def _show_optional(self) -> None:
        query = self._introduce("3  OPTIONAL with its own window", "stops")
        self._screen.write()
        self._screen.prose(
            "A window in a group applies to that group: a start is valid for an hour, a stop for"
            " ten minutes. :field is in a static graph, which holds at all times."
        )
        self._show_rows(query, 8)

    def _show_aggregate(self) -> None:
        query = self._introduce("4  An aggregate, reported every 10 minutes", "power")
        self._screen.write()
        self._screen.prose(
            "A report shows the rows that hold at an instant, here whenever the window is full:"
        )
        self._show_rows(query, 8, report="rstream")

    def _introduce(self, title: str, name: str) -> Query:
        """Write the heading, the comment and the text of a query; return it compiled."""
        text = self._park.queries[name]
        self._screen.heading(title)
        self._screen.prose(query_comment(text))
        self._screen.write()
        self._screen.query("\n".join(x for x in text.splitlines() if not x.startswith("#")))
        return compile(text)

    def _run(self, query: Query) -> Result:
        return query.run(**self._arguments)

    def _show_rows(self, query: Query, limit: int, report: RelationToStream | None = None) -> None:
        """Write the first rows as a table, and the number of further rows."""
        text = StringIO()
        count = self._run(query).write(text, "table", report=report, timestamps="iso")
        self._screen.write()
        head, *rows = text.getvalue().splitlines()
        self._screen.write(self._screen.paint(f"  {head}", 1))
        for row in rows[:limit]:
            self._screen.write(f"  {row}")
        if count > limit:
            self._screen.write(self._screen.paint(f"  … and {count - limit} more", 2))

    # -- the gap of a left join

    def _show_gap(self) -> None:
        example = self._gap_example()
        self._screen.heading("5  OPTIONAL over time")
        if example is None:
            self._screen.prose(
                "In this park, no turbine of the northern field stopped within an hour of its"
                " start; try another --seed."
            )
            return
        start, stops, rows = example
        turbine, number = start.label.split()
        self._screen.prose(
            f"One row of part 3, over time: start number {number} of {turbine}. It is valid as long"
            " as the start is in its window. While a stop is in the window of OPTIONAL, ?reason is"
            " bound; in the gaps between, it is unbound. A left join must get these pieces right."
        )
        self._screen.write()
        groups = (
            ("in the window of 60 minutes", [start]),
            ("in the window of 10 minutes", stops),
            ("in the result", rows),
        )
        for line in bar_chart(groups, self._screen):
            self._screen.write(line)

    def _gap_example(
        self,
    ) -> tuple[ValidityBar, list[ValidityBar], list[ValidityBar]] | None:
        """Return the start with the most rows, the stops that overlap it, and its rows.

        None if no start has two rows or more.
        """
        starts, stops, rows = (
            list(self._run(compile(text)))
            for text in (_STARTS, _STOPS, self._park.queries["stops"])
        )

        def rows_of(start: Row) -> list[Row]:
            keys = ("turbine", "starts")
            return [row for row in rows if all(row[key] == start[key] for key in keys)]

        start = max(starts, key=lambda each: len(rows_of(each)), default=None)
        if start is None or len(rows_of(start)) < 2:
            return None
        turbine = _shorten_iri(start["turbine"])
        label = f"{turbine}  {start['starts']}"
        stop_bars = [
            ValidityBar(f"{turbine}  {_shorten_iri(r['reason'])}", r.start, r.end)
            for r in stops
            if r["turbine"] == start["turbine"] and r.start < start.end and start.start < r.end
        ]
        row_bars = [
            ValidityBar(f"{label}  {_shorten_iri(r['reason'])}", r.start, r.end)
            if r["reason"] is not None
            else ValidityBar(f"{label}  -", r.start, r.end, bound=False)
            for r in rows_of(start)
        ]
        return ValidityBar(label, start.start, start.end), stop_bars, row_bars

    # -- the end

    def _show_next_commands(self) -> None:
        screen = self._screen
        screen.heading("What to try next")
        for purpose, command in NEXT_COMMANDS.items():
            screen.write(screen.paint(f"# {purpose}", 2))
            screen.write(screen.paint(command, 1))
        screen.write()


NEXT_COMMANDS = {
    "write the data and the queries to a folder, with a README of more commands": (
        "streamsparql demo --write park"
    ),
    "run one of the queries; then change its text": (
        "streamsparql run park/power.rq --stream park/wind.nq --graph park/turbines.ttl"
    ),
    "run a continuous query on an endless stream, a minute per second, until Ctrl-C": (
        "streamsparql demo --pour | streamsparql run park/now.rq --stream - --every 1m"
    ),
}
"""The commands that the tour proposes at its end, by purpose."""


def shorten(text: str) -> str:
    """Return a prefixed name for an IRI of the park, the value of a literal.

    >>> shorten("<http://example.org/windpark#T1>"), shorten('"7"^^<http://example.org/x>')
    (':T1', '7')
    """
    if text.startswith('"'):
        return text[1:].partition('"')[0]
    for prefix, namespace in PREFIXES.items():
        if text.startswith(f"<{namespace}"):
            return f"{prefix}:{text[len(namespace) + 1 : -1]}"
    return text


def _shorten_iri(value: object) -> str:
    return shorten(f"<{value}>")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _sample(items: Sequence[ParkItem]) -> Sequence[ParkItem]:
    """Return a few consecutive items, around the first stop if there is one."""
    predicate = park_iri(":stopReason")
    stops = (k for k, item in enumerate(items) if item[1] == predicate)
    last = min(len(items), next(stops, _ITEMS_SHOWN - 3) + 3)
    return items[max(0, last - _ITEMS_SHOWN) : last]
