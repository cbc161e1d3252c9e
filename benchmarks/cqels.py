"""Tables 2 and 3 of CQELS (DERI TR 2010, section 6.2): thousands of instances of one query.

    python benchmarks/cqels.py [--queries Q1,Q2,Q3,Q4] [--instances 10,100,1000,5000]
                               [--triples 1000000] [--rate 1000] [--seconds 45] [--separate 10]

Authors send where they are, `rate` updates per second, and each instance concerns one author of a
bibliography. What is measured is the time that all instances together take for a second of the
stream, once the windows are full: updates are pushed as Python tuples, and the new rows are fetched
as one table. `separate` is the number of instances up to which open queries, one per author, are
measured, too; they must have as many rows.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import streamsparql  # noqa: E402

E, LOC, FOAF = "http://e/", "http://deri.org/loc#", "http://xmlns.com/foaf/0.1/"
DC, DCTERMS = "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"
STREAM, PLACES = "http://deri.org/locstreams", "http://deri.org/localization/"
LOCATIONS, WINDOW = 500, 30
PREFIXES = f"""PREFIX loc: <{LOC}> PREFIX foaf: <{FOAF}> PREFIX dc: <{DC}>
PREFIX dcterms: <{DCTERMS}>
"""
RECENT = f"FROM NAMED <{STREAM}> [RANGE {WINDOW} seconds] AS ?recent"
NOW = f"FROM NAMED <{STREAM}> [NOW] AS ?now {RECENT}"
CITES = "?p1 dc:creator ?me . ?p2 dc:creator ?other . ?p1 dcterms:references ?p2"
QUERIES = {
    "Q1": f"""SELECT ?person ?place {RECENT} FROM NAMED <{PLACES}> {{
        GRAPH ?recent {{ ?person loc:at ?loc }} GRAPH <{PLACES}> {{ ?loc loc:name ?place }}
        ?person foaf:name $name }}""",
    "Q2": f"""SELECT ?otherName {NOW} {{
        GRAPH ?now {{ ?me loc:at ?loc }} GRAPH ?recent {{ ?other loc:at ?loc }}
        ?other foaf:name ?otherName . ?me foaf:name $name . {CITES} }}""",
    "Q3": f"""SELECT ?otherName ?place {NOW} FROM NAMED <{PLACES}> {{
        GRAPH ?now {{ ?me loc:at ?loc }} GRAPH ?recent {{ ?other loc:at ?loc }}
        GRAPH <{PLACES}> {{ ?loc loc:name ?place }}
        ?me foaf:name $name . ?other foaf:name ?otherName .
        {{ {CITES} }} UNION {{ ?p dc:creator ?me . ?p dc:creator ?other }} }}""",
    "Q4": f"""SELECT ?place (COUNT(?other) AS ?count)
        FROM NAMED <{STREAM}> [RANGE 15 seconds] AS ?recent FROM NAMED <{PLACES}> {{
        GRAPH ?recent {{ ?other loc:at ?loc }} GRAPH <{PLACES}> {{ ?loc loc:name ?place }}
        ?me foaf:name $name . {CITES} }} GROUP BY ?place ORDER BY DESC(?count) LIMIT 1""",
}
PAPER = {
    "Q1": {10: 1.2, 100: 1.9, 1_000: 14.5, 5_000: 70.1},
    "Q2": {10: 64.0, 100: 105.0, 1_000: 420.0, 5_000: 1551.0},
}
"""The milliseconds of one execution of CQELS in the paper, on other hardware."""

Triple = tuple[str, str, str]


class Data(NamedTuple):
    """A bibliography, the names of places, and the updates of each second."""

    authors: int
    graph: list[Triple]
    places: list[Triple]
    updates: list[list[tuple[str, str, str, int]]]


def author(number: int) -> str:
    """Return an author."""
    return f"<{E}author{number}>"


def name_of(number: int) -> str:
    """Return the name of an author."""
    return f'"Author {number}"'


def generated(triples: int, rate: int, seconds: int) -> Data:
    """Return a bibliography of about this many triples: 3 authors and 5 references per paper."""
    draw = random.Random(4)
    papers = max(triples * 3 // 26, 5)
    authors = max(papers * 2 // 3, 3)
    graph = [(author(k), f"<{FOAF}name>", name_of(k)) for k in range(authors)]
    for k in range(papers):
        paper = f"<{E}paper{k}>"
        graph += [(paper, f"<{DC}creator>", author(x)) for x in draw.sample(range(authors), 3)]
        cited = (f"<{E}paper{x}>" for x in draw.sample(range(papers), 5))
        graph += [(paper, f"<{DCTERMS}references>", other) for other in cited]
    places = [(f"<{E}place{k}>", f"<{LOC}name>", f'"Place {k}"') for k in range(LOCATIONS)]

    def update(t: int) -> tuple[str, str, str, int]:
        place = f"<{E}place{draw.randrange(LOCATIONS)}>"
        return author(draw.randrange(authors)), f"<{LOC}at>", place, t

    updates = [
        [update(t) for t in sorted(draw.randrange(1_000) + 1_000 * k for _ in range(rate))]
        for k in range(seconds)
    ]
    return Data(authors, graph, places, updates)


Step = Callable[[int], int]
"""Process a second of the stream; return the number of new rows."""


def instances(text: str, data: Data, names: Sequence[str]) -> Step:
    """Return the steps of a session with an instance of the query for each name."""
    session = streamsparql.Session(data.graph, {PLACES: data.places})
    session.register(PREFIXES + text).add_many([{"name": name} for name in names])

    def step(k: int) -> int:
        session.push_many(STREAM, data.updates[k])
        session.advance(1_000 * (k + 1))
        return int(session.to_arrow().num_rows)

    return step


def separate(text: str, data: Data, names: Sequence[str]) -> Step:
    """Return the steps of an open query for each name."""
    graphs = {PLACES: data.places} if PLACES in text else {}
    opened = [
        streamsparql.compile(PREFIXES + text.replace("$name", name)).open(data.graph, graphs)
        for name in names
    ]

    def step(k: int) -> int:
        rows = 0
        for live in opened:
            live.push_many(STREAM, data.updates[k])
            live.advance(1_000 * (k + 1))
            rows += live.to_arrow().num_rows
        return rows

    return step


def measured(start: Callable[[], Step], data: Data) -> tuple[float, float, int]:
    """Return the time of the start, that of a second of the stream, and the number of rows."""
    before = time.process_time()
    step = start()
    step(0)
    set_up = time.process_time() - before
    times, rows = [], 0
    for k in range(1, len(data.updates)):
        before = time.process_time()
        rows += step(k)
        times.append(time.process_time() - before)
    return set_up, median(times[min(WINDOW, len(times) - 1) :]), rows


def lines(options: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each query and number of instances."""
    data = generated(options.triples, options.rate, options.seconds)
    yield f"{len(data.graph):,} static triples, {options.rate:,} updates per second"
    draw = random.Random(5)
    for query in options.queries.split(","):
        text = QUERIES[query]
        for count in map(int, options.instances.split(",")):
            names = [name_of(k) for k in draw.choices(range(data.authors), k=count)]
            set_up, spent, rows = measured(lambda t=text, n=names: instances(t, data, n), data)  # type: ignore[misc]
            line = (
                f"{query}' {count:5,} instances: {spent * 1e3:8.1f} ms per second of stream,"
                f" {rows:9,} rows, set up in {set_up:5.1f} s"
            )
            paper: Any = PAPER.get(query, {}).get(count)
            if paper:
                line += f"; {paper:,} ms per execution in the paper: {paper / spent / 1e3:.1f}x"
            if count <= options.separate:
                alone = measured(lambda t=text, n=names: separate(t, data, n), data)  # type: ignore[misc]
                assert alone[2] == rows, f"{query}: {alone[2]} rows alone, {rows} in the session"
                line += f"; separate queries {alone[1] / spent:.1f}x the time"
            yield line


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", default="Q1,Q2,Q3,Q4")
    parser.add_argument("--instances", default="10,100,1000,5000")
    parser.add_argument("--triples", type=int, default=1_000_000, help="of the bibliography")
    parser.add_argument("--rate", type=int, default=1_000, help="updates per second")
    parser.add_argument("--seconds", type=int, default=WINDOW + 15, help="of the stream")
    parser.add_argument(
        "--separate", type=int, default=0, help="most instances that run as separate queries"
    )
    options = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, processor time")
    for line in lines(options):
        print(line, flush=True)


if __name__ == "__main__":
    main()
