"""What `demo` shows: the park, a query of the paper with its plan and answers, and what follows.

Each part is a few lines of words and what a command would print. Nothing of it is written down
beforehand: queries are compiled and answered, on the engine that was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from streamsparql.cli.bars import Bar, bars
from streamsparql.cli.screen import Screen
from streamsparql.look.explain import explain
from streamsparql.query import Query, compile
from streamsparql.windpark import PREFIXES, STREAM, iri
from streamsparql.windpark.folder import said, time_of

if TYPE_CHECKING:
    from streamsparql.run.decoder import Row
    from streamsparql.run.result import Result
    from streamsparql.windpark import Item, WindPark

_LEFT = f"""PREFIX : <{PREFIXES[""]}>
PREFIX wtur: <{PREFIXES["wtur"]}>
SELECT ?turbine ?starts
FROM STREAM <{STREAM}> WINDOW RANGE 60 MINUTE SLIDE
WHERE {{ ?turbine :field :north ; wtur:StrCnt ?starts }}"""
_RIGHT = f"""PREFIX : <{PREFIXES[""]}>
SELECT ?turbine ?reason
FROM STREAM <{STREAM}> WINDOW RANGE 10 MINUTE SLIDE
WHERE {{ ?turbine :stopReason ?reason }}"""
"""The two sides of the left join of stops.rq."""

_LEVELS = "▁▂▃▄▅▆▇█"
_ITEMS = 8


class Tour:
    """The parts of the demonstration, in their order."""

    def __init__(self, park: WindPark, given: dict[str, Any], screen: Screen | None = None) -> None:
        self._park, self._given = park, given
        self._screen = Screen.here() if screen is None else screen

    def show(self) -> None:
        """Writes all parts."""
        self._the_park()
        self._the_paper()
        self._optional()
        self._aggregate()
        self._gap()
        self._next()

    # -- the park

    def _the_park(self) -> None:
        park, screen = self._park, self._screen
        screen.heading("1  A wind park")
        screen.prose(
            f"{_counted(park.turbines, 'turbine')} told wind and power once a minute for"
            f" {_counted(park.minutes, 'minute')}, and when they stopped and started again:"
            f" {len(park.items):,} RDF triples, each with its time. Some of them:"
        )
        screen.write()
        for subject, predicate, value, t in _interesting(park.items):
            cells = f"{time_of(t)[11:19]}  {short(subject):5}{short(predicate):14}{short(value)}"
            screen.write(f"  {cells}")
        screen.write()
        screen.prose(
            "The words are those of IEC 61400-25: WdSpd is the wind in m/s, W the power in kW,"
            " StopCnt how often the turbine stopped so far, StrCnt how often it started."
        )
        screen.write()
        screen.prose("The power of each turbine; where there is a gap it stood still:")
        screen.write()
        self._power()

    def _power(self) -> None:
        """A line for each turbine, a sign for its power in each of the park's parts of time."""
        park, room = self._park, min(self._screen.width - 20, 60)
        fields = {s: short(o)[1:] for s, p, o in park.graph if p == iri(":field")}
        shown = [iri(f":T{k + 1}") for k in range(min(park.turbines, 12))]
        row = {name: k for k, name in enumerate(shown)}
        count = min(room, park.minutes)
        kilowatts, told = np.zeros((len(shown), count)), np.zeros((len(shown), count))
        for subject, predicate, value, t in park.items:
            if predicate == iri("wtur:W") and subject in row:
                place = (t - park.start) * count // (park.end - park.start)
                kilowatts[row[subject], place] += int(short(value))
                told[row[subject], place] += 1
        mean = kilowatts / np.maximum(told, 1)
        levels = np.ceil(mean / max(1.0, mean.max()) * len(_LEVELS)).astype(int)
        for name, line in zip(shown, levels.tolist(), strict=True):
            signs = "".join(_LEVELS[level - 1] if level else " " for level in line)
            label = f"  {short(name):5}{fields[name]:7}"
            self._screen.write(label + self._screen.paint(signs, 32))
        first, last = (time_of(t)[11:16] for t in (park.start, park.end))
        self._screen.write(f"{'':14}{first}{last:>{max(count - 5, 6)}}")

    # -- queries

    def _the_paper(self) -> None:
        query = self._introduced("2  A query, its plan, its answers", "listing-1.1")
        screen = self._screen
        screen.write()
        screen.prose(
            "This is its plan: above the result, below the stream. Each line is an operator of the"
            " paper, and what it works on is below it. (AccessGraph is static data beside the"
            " stream, if there is any.)"
        )
        screen.write()
        screen.write(explain(query, "logical", "text", color=screen.color, width=screen.width))
        screen.write()
        screen.prose(
            "And these are its answers. A row holds from its start to its end; it is computed once,"
            " and not again in each window that it is in. Where ?z is empty, the turbine has not"
            " stopped yet:"
        )
        self._answers(query, 9)

    def _optional(self) -> None:
        query = self._introduced("3  OPTIONAL, with a window of its own", "stops")
        self._screen.write()
        self._screen.prose(
            "The window in a group counts for that group: a start is remembered for an hour, a stop"
            " for ten minutes. :field comes from a static graph, which holds at all times."
        )
        self._answers(query, 8)

    def _aggregate(self) -> None:
        query = self._introduced("4  An aggregate, reported every 10 minutes", "power")
        self._screen.write()
        self._screen.prose(
            "A report shows what holds at an instant, here each time the window is full:"
        )
        self._answers(query, 8, report="rstream")

    def _introduced(self, title: str, name: str) -> Query:
        text = self._park.queries[name]
        self._screen.heading(title)
        self._screen.prose(said(text))
        self._screen.write()
        self._screen.query("\n".join(x for x in text.splitlines() if not x.startswith("#")))
        return compile(text)

    def _run(self, query: Query) -> Result:
        return query.run(**self._given)

    def _answers(self, query: Query, most: int, report: str | None = None) -> None:
        """The first rows as a table, and how many there are more."""
        text = StringIO()
        count = self._run(query).write(text, "table", report=report, timestamps="iso")
        self._screen.write()
        head, *rows = text.getvalue().splitlines()
        self._screen.write(self._screen.paint(f"  {head}", 1))
        for row in rows[:most]:
            self._screen.write(f"  {row}")
        if count > most:
            self._screen.write(self._screen.paint(f"  … and {count - most} more", 2))

    # -- the gap of a left join

    def _gap(self) -> None:
        found = self._story()
        self._screen.heading("5  What OPTIONAL is over time")
        if found is None:
            self._screen.prose(
                "In this park no turbine of the northern field stopped within an hour of its start:"
                " try another --seed."
            )
            return
        left, right, answers = found
        turbine, starts = left.label.split()
        self._screen.prose(
            f"One row of part 3, over time: start number {starts} of {turbine}. It is there for as"
            " long as the start is in its window. While a stop is in the window of OPTIONAL, the"
            " row has its ?reason; in the gaps between, it has none. Such pieces are what a left"
            " join has to get right."
        )
        self._screen.write()
        groups = (
            ("in the window of 60 minutes", [left]),
            ("in that of 10 minutes", right),
            ("in the answers", answers),
        )
        for line in bars(groups, self._screen):
            self._screen.write(line)

    def _story(self) -> tuple[Bar, list[Bar], list[Bar]] | None:
        """The start with the most changes: it, the stops in its time, and its rows."""
        lefts, rights, rows = (
            list(self._run(compile(text))) for text in (_LEFT, _RIGHT, self._park.queries["stops"])
        )

        def of(left: Row) -> list[Row]:
            return [r for r in rows if all(r[name] == left[name] for name in ("turbine", "starts"))]

        left = max(lefts, key=lambda left: len(of(left)), default=None)
        if left is None or len(of(left)) < 2:
            return None
        turbine = _local(left["turbine"])
        start = f"{turbine}  {left['starts']}"
        stops = [
            Bar(f"{turbine}  {_local(r['reason'])}", r.start, r.end)
            for r in rights
            if r["turbine"] == left["turbine"] and r.start < left.end and left.start < r.end
        ]
        answers = [
            Bar(f"{start}  {_local(r['reason'])}", r.start, r.end)
            if r["reason"] is not None
            else Bar(f"{start}  -", r.start, r.end, bound=False)
            for r in of(left)
        ]
        return Bar(start, left.start, left.end), stops, answers

    # -- the end

    def _next(self) -> None:
        screen = self._screen
        screen.heading("Go on from here")
        for purpose, command in NEXT.items():
            screen.write(screen.paint(f"# {purpose}", 2))
            screen.write(screen.paint(command, 1))
        screen.write()


NEXT = {
    "leave the data and queries in a folder, with a README that has more to try": (
        "streamsparql demo --write park"
    ),
    "run a query of them; then change its text": (
        "streamsparql run park/power.rq --stream park/wind.nq --graph park/turbines.ttl"
    ),
    "a standing query, on a stream that goes on: a minute in a second, until Ctrl-C": (
        "streamsparql demo --pour | streamsparql run park/now.rq --stream - --every 1m"
    ),
}
"""The commands at the end, and what each is for."""


def short(text: str) -> str:
    """A term of the park for readers.

    >>> short("<http://example.org/windpark#T1>"), short('"7"^^<http://example.org/x>')
    (':T1', '7')
    """
    if text.startswith('"'):
        return text[1:].partition('"')[0]
    for prefix, namespace in PREFIXES.items():
        if text.startswith(f"<{namespace}"):
            return f"{prefix}:{text[len(namespace) + 1 : -1]}"
    return text


def _local(value: object) -> str:
    return short(f"<{value}>")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _interesting(items: Sequence[Item]) -> Sequence[Item]:
    """Some items in a row, a stop among them where there is one."""
    stop = iri(":stopReason")
    found = next((k for k, item in enumerate(items) if item[1] == stop), _ITEMS - 3)
    last = min(len(items), found + 3)
    return items[max(0, last - _ITEMS) : last]
