"""CQELS's Q2 while its data drifts: an order chosen for each row, and fixed orders (README.md).

    python benchmarks/drift.py [--data crowd,stars,drift,mixed] [--repeat 3] [--seconds 45]

Who is where now, and was with a coauthor in the last 30 seconds? A person who arrives can be joined
with those at the same place first, or with all coauthors. In a *crowd* there are three places, and
people have few coauthors; *stars* have 400 coauthors each and meet hardly anyone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import streamsparql  # noqa: E402
from streamsparql.physical import pipeline  # noqa: E402
from streamsparql.physical.lowering import lower_joins  # noqa: E402
from streamsparql.physical.operators.join import Join  # noqa: E402
from streamsparql.physical.operators.multi_join import MultiJoin  # noqa: E402

PERSONS, PLACES, HALLS, ARRIVALS = 20_000, 4_000, 3, 1_000
"""The number of persons, of places, of places in a crowd, and of arrivals in a second."""
WARM = 5
"""The seconds of the stream before the clock starts: indexes of the static graph are built."""
PHASE = 10
"""The seconds after which the data changes from a crowd to stars, or back."""

QUERY = """PREFIX : <http://e/> SELECT ?a ?b ?place
FROM NAMED <http://e/s> [NOW] AS ?now FROM NAMED <http://e/s> [RANGE 30s] AS ?last
WHERE { %s }"""
NOW, LAST = "GRAPH ?now { ?a :at ?place }", "GRAPH ?last { ?b :at ?place }"
COAUTHORS = "{ ?a :writes ?paper . ?b :writes ?paper FILTER(?a != ?b) }"


class Contender(NamedTuple):
    """A query, and how its joins are computed."""

    text: str
    joins: str
    optimize: bool = True


CONTENDERS = {
    "place first": Contender(QUERY % f"{NOW} {LAST} {COAUTHORS}", "in pairs", False),
    "coauthors first": Contender(QUERY % f"{NOW} {COAUTHORS} {LAST}", "in pairs", False),
    "together": Contender(QUERY % f"{NOW} {LAST} {COAUTHORS}", "together"),
    "by cost": Contender(QUERY % f"{NOW} {LAST} {COAUTHORS}", "by cost"),
}


class World:
    """Persons and their papers: a few have hundreds of coauthors."""

    def __init__(self) -> None:
        random = np.random.default_rng(11)
        is_star = random.random(PERSONS) < 0.05
        self.stars, self.others = np.flatnonzero(is_star), np.flatnonzero(~is_star)
        papers = np.where(is_star, 400, random.integers(0, 3, PERSONS))
        authors = np.repeat(np.arange(PERSONS), papers)
        coauthors = random.integers(0, PERSONS, len(authors))
        self.graph = [
            (f"<http://e/p{person}>", "<http://e/writes>", f"<http://e/paper{k}>")
            for k, pair in enumerate(zip(authors.tolist(), coauthors.tolist()))
            for person in set(pair)
        ]

    def arrivals(self, data: str, second: int, random: np.random.Generator) -> list[Any]:
        """Return the arrivals of a second as items."""
        if data == "drift":
            data = ("crowd", "stars")[second // PHASE % 2]
        crowd = {"crowd": ARRIVALS, "stars": 0, "mixed": ARRIVALS // 2}[data]
        persons = np.concatenate(
            [random.choice(self.others, crowd), random.choice(self.stars, ARRIVALS - crowd)]
        )
        places = np.concatenate(
            [random.integers(0, HALLS, crowd), random.integers(0, PLACES, ARRIVALS - crowd)]
        )
        order = random.permutation(ARRIVALS)
        stamps = second * 1000 + np.arange(ARRIVALS) * 1000 // ARRIVALS
        return [
            (f"<http://e/p{person}>", "<http://e/at>", f"<http://e/at{place}>", t)
            for person, place, t in zip(
                persons[order].tolist(), places[order].tolist(), stamps.tolist()
            )
        ]


class Turn(NamedTuple):
    """The result of a contender: seconds in all and in joins, the rows, the orders taken."""

    seconds: float
    in_joins: float
    rows: int
    orders: Counter[tuple[int, ...]]


def measured_pipelines() -> Any:
    """Let pipelines measure their operators."""
    original = pipeline.Pipeline.__init__

    def init(self: pipeline.Pipeline, *args: Any, **options: Any) -> None:
        original(self, *args, **{**options, "measured": True})

    return mock.patch.object(pipeline.Pipeline, "__init__", init)


def take(contender: Contender, world: World, history: list[list[Any]]) -> Turn:
    """Push the history, second by second; measure the seconds after the first few."""
    query = streamsparql.compile(contender.text, optimize=contender.optimize)
    with mock.patch.object(lower_joins, "MODE", contender.joins), measured_pipelines():
        live = query.open(graph=world.graph, report=None)
    counts = live._execution.pipeline.counts
    joins = [operator for operator in counts if isinstance(operator, Join | MultiJoin)]
    rows, begun, before = 0, 0.0, 0.0
    for second, items in enumerate(history):
        if second == WARM:
            begun, before = time.process_time(), sum(counts[join].seconds for join in joins)
        live.push_many("http://e/s", items)
        live.advance((second + 1) * 1000)
        rows += live.to_arrow().num_rows
    spent = time.process_time() - begun
    orders = Counter[tuple[int, ...]]()
    for join in joins:
        orders.update({taken.order: taken.rows for taken in join.orders()})
    return Turn(spent, sum(counts[join].seconds for join in joins) - before, rows, orders)


def compare(data: str, world: World, seconds: int, repeat: int) -> Iterator[str]:
    """Yield the results of the contenders over one kind of data."""
    random = np.random.default_rng(3)
    history = [world.arrivals(data, second, random) for second in range(seconds)]
    best: dict[str, Turn] = {}
    for _ in range(repeat):
        for name, contender in CONTENDERS.items():
            if name in best and best[name].seconds > 10:
                continue
            turn = take(contender, world, history)
            best[name] = min(best.get(name, turn), turn)
    assert len({turn.rows for turn in best.values()}) == 1, "all contenders have the same rows"
    items = (seconds - WARM) * ARRIVALS
    fixed = min((best[name] for name in list(CONTENDERS)[:2]), key=lambda turn: turn.seconds)
    yield f"{data}, {fixed.rows:,} rows"
    for name, turn in best.items():
        whole, joins = fixed.seconds / turn.seconds, fixed.in_joins / turn.in_joins
        yield (
            f"  {name:16} {items / turn.seconds:9,.0f} updates/s, {whole:5.2f} of the best fixed"
            f" order; in joins alone {items / turn.in_joins:11,.0f}/s, {joins:6.2f}"
        )
        if turn.orders and name == "by cost":
            yield f"    orders: {dict(turn.orders.most_common(4))}"


def main() -> None:
    """Compare the contenders over each kind of data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="crowd,stars,drift,mixed")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=45)
    options = parser.parse_args()
    pipeline.perf_counter = time.process_time
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, processor time")
    world = World()
    for data in options.data.split(","):
        for line in compare(data, world, options.seconds, options.repeat):
            print(line, flush=True)


if __name__ == "__main__":
    main()
