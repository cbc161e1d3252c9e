"""Many queries in a session, compared with separate queries and with a program by hand.

    python benchmarks/sessions.py [--queries 10,100,1000,5000] [--separate 100] [--clock cpu]
                                  [--different 20] [--ranges 5000] [--history w6] [--slides 40]

The history is that of W6 in `embedded.py`. Times are medians over the slides after the first
window, the best of several rounds, in which the contenders take turns: only ratios within a run
count.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter, process_time
from typing import Any

from turbines import (
    EX,
    SIZES,
    SLIDE,
    SLIDES_PER_WINDOW,
    STREAM,
    WIDTH,
    XSD,
    History,
    end_of,
    history,
)
from workloads import PREFIX, continuous

import streamsparql

SOURCE = f"FROM STREAM <{STREAM}> WINDOW RANGE {WIDTH} MS SLIDE {SLIDE} MS"
PARAMETRIC = f"{PREFIX}SELECT ?v {SOURCE} WHERE {{ $t :WindSpeed ?v }}"
RANGES = f"{PREFIX}SELECT ?t {SOURCE} {{ ?t :WindSpeed ?v FILTER(?v >= $low && ?v < $high) }}"

Step = Callable[[int], int]
"""Process the k-th slide; return the number of rows of its report."""


class Contender:
    """A way to answer all queries: its steps take turns with those of others."""

    def __init__(self, name: str, start: Callable[[History], Step]) -> None:
        self.name, self._start = name, start
        self.seconds, self.setup, self.rows = float("inf"), float("inf"), 0

    def run(self, data: History, clock: Callable[[], float]) -> None:
        """Measure a round."""
        before = clock()
        step = self._start(data)
        self.setup = min(self.setup, clock() - before)
        times = []
        for k in range(len(data.items)):
            before = clock()
            self.rows = step(k)
            times.append(clock() - before)
        self.seconds = min(self.seconds, median(times[SLIDES_PER_WINDOW + 1 :]))


# -- contenders ------------------------------------------------------------------------------------


def _stepping(session: Any, data: History) -> Step:
    def step(k: int) -> int:
        session.push_many(STREAM, data.items[k])
        session.advance(end_of(k))
        return int(session.to_arrow(values="native").num_rows)

    return step


def registered(texts: Sequence[str]) -> Callable[[History], Step]:
    """Return a session in which each text is registered."""

    def start(data: History) -> Step:
        session = streamsparql.Session()
        for text in texts:
            session.register(text, report="rstream")
        return _stepping(session, data)

    return start


def instances(text: str, rows: Sequence[dict[str, str]]) -> Callable[[History], Step]:
    """Return a session with instances of one text."""

    def start(data: History) -> Step:
        session = streamsparql.Session()
        session.register(text, report="rstream").add_many(rows)
        return _stepping(session, data)

    return start


def separate(texts: Sequence[str]) -> Callable[[History], Step]:
    """Return an open query for each text."""

    def start(data: History) -> Step:
        opened = [streamsparql.compile(text).open(report="rstream") for text in texts]

        def step(k: int) -> int:
            rows = 0
            for live in opened:
                live.push_many(STREAM, data.items[k])
                live.advance(end_of(k))
                rows += live.to_arrow(values="native").num_rows
            return rows

        return step

    return start


def polars_by_hand(queries: int) -> Callable[[History], Step]:
    """Return a Polars program for W6 that joins the window with a table of all queries."""

    def start(data: History) -> Step:
        import polars as pl

        names = [f"{EX}T{k}" for k in range(queries)]
        table = pl.DataFrame({"s": names, "q": list(range(queries))}).lazy()
        window: deque[Any] = deque(maxlen=SLIDES_PER_WINDOW)
        schema = {"ts": pl.Int64, "s": pl.String, "p": pl.String, "v": pl.Float64}

        def step(k: int) -> int:
            stamps, subjects, predicates, objects = zip(*data.triples[k], strict=True)
            values = [float(text[1 : text.index('"', 1)]) for text in objects]
            columns = {"ts": stamps, "s": subjects, "p": predicates, "v": values}
            window.append(pl.DataFrame(columns, schema=schema))
            winds = pl.concat(list(window)).lazy().filter(pl.col("p") == EX + "WindSpeed")
            return len(winds.select("s", "v").join(table, on="s").collect())

        return step

    return start


# -- measurements ----------------------------------------------------------------------------------


def different(count: int) -> list[str]:
    """Return queries that differ in more than constants."""
    patterns = [
        "?t :WindSpeed ?v FILTER(?v > {})",
        "?t :WindSpeed ?v . ?t :Power ?p FILTER(?p > {})",
        "?t :WindSpeed ?v OPTIONAL {{ ?t :Power ?p FILTER(?p > {}) }}",
        "?t :WindSpeed ?v FILTER NOT EXISTS {{ ?t :Power ?p FILTER(?p > {}) }}",
        "?t :Power ?v . ?t :StrCnt ?p FILTER(?v > {})",
    ]
    selects = ["?t ?v", "DISTINCT ?t", "(COUNT(*) AS ?n)", "?t (MAX(?v) AS ?n)"]
    texts = []
    for k in range(count):
        select, pattern = selects[k // len(patterns) % len(selects)], patterns[k % len(patterns)]
        group = " GROUP BY ?t" if "MAX" in select else ""
        texts.append(f"{PREFIX}SELECT {select} {SOURCE} {{ {pattern.format(k)} }}{group}")
    return texts


def comparisons(options: argparse.Namespace) -> Iterator[tuple[str, list[Contender]]]:
    """Yield what is compared."""
    for queries in map(int, options.queries.split(",")):
        texts = [continuous("W6", k) for k in range(queries)]
        turbines = [{"t": f"<{EX}T{k}>"} for k in range(queries)]
        contenders = [
            Contender("session", registered(texts)),
            Contender("instances", instances(PARAMETRIC, turbines)),
        ]
        if options.polars:
            contenders.append(Contender("polars by hand", polars_by_hand(queries)))
        if queries <= options.separate:
            contenders.append(Contender("separate", separate(texts)))
        yield f"W6, {queries:,} queries", contenders
    texts = different(options.different)
    both = [Contender("session", registered(texts)), Contender("separate", separate(texts))]
    yield f"{options.different} different queries", both
    count = options.ranges
    number = f'"{{}}"^^<{XSD}decimal>'
    ranges = [
        {"low": number.format(k / count * 25), "high": number.format((k + 1) / count * 25)}
        for k in range(count)
    ]
    yield f"{count:,} ranges of values", [Contender("session", instances(RANGES, ranges))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", default="10,100,1000,5000", help="numbers of queries of W6")
    parser.add_argument(
        "--separate", type=int, default=100, help="most queries that run separately"
    )
    parser.add_argument("--different", type=int, default=20, help="queries with other patterns")
    parser.add_argument("--ranges", type=int, default=5_000, help="ranges of values")
    parser.add_argument("--history", default="w6", choices=SIZES, help="the size of a window")
    parser.add_argument("--slides", type=int, help="slides of the history, at least 12")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--without-polars", dest="polars", action="store_false")
    options = parser.parse_args(arguments)
    clock = process_time if options.clock == "cpu" else perf_counter
    data = history(options.history)
    if options.slides is not None:
        del data.items[options.slides :], data.triples[options.slides :]
    for title, contenders in comparisons(options):
        for _ in range(options.rounds):
            for contender in contenders:
                contender.run(data, clock)
        print(f"\n{title}, {data.per_slide:,} triples per slide:")
        first = contenders[0]
        for each in contenders:
            same = "" if each.rows == first.rows else f", OTHER ROWS THAN {first.name}"
            print(
                f"  {each.name:14} {data.per_slide / each.seconds:11,.0f} triples/s"
                f"  {each.rows:7,} rows  set up in {each.setup:6.2f} s"
                f"  {each.seconds / first.seconds:6.2f} x the time of {first.name}{same}",
                flush=True,
            )


if __name__ == "__main__":
    main()
