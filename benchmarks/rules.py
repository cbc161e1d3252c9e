"""Queries with and without rewrite rules, as ratios of one run (README.md).

    python benchmarks/rules.py [--cases windows,graphs,aggregates] [--repeat 5] [--windows 8]
                               [--sizes 1000,10000] [--static 100,1000]

`windows` and `graphs` are figure 7 of the C-SPARQL paper (EDBT 2010): its broker query with and
without the rules that push filters, over windows and over static graphs of increasing size.
`aggregates` are queries to which the rules for aggregates apply, of its sections 2 and 5.2. There
partial aggregates are pushed below joins whatever the estimates say.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import streamsparql  # noqa: E402
from streamsparql.algebra.fixpoint import Phase  # noqa: E402
from streamsparql.algebra.rewrite import phases, rewrite  # noqa: E402
from streamsparql.algebra.rules import push_aggregates_into_joins  # noqa: E402
from streamsparql.physical import pipeline  # noqa: E402
from streamsparql.run import measured  # noqa: E402

E = "http://e/"
MARKETS = (f"{E}market1", f"{E}market2")
WINDOW = 60_000
"""The width of the windows, in milliseconds; their sizes differ by the rate of the stream."""
PUSHED_FILTERS = (
    "push_filters_into_joins",
    "push_filters_left",
    "push_filters_into_unions",
    "push_filters_down",
    "push_filters_into_prefixes",
)

Items = list[tuple[str, str, str, int]]
Triples = list[tuple[str, str, str]]


class Case(NamedTuple):
    """A query over data, and the rules with and without which it is run."""

    name: str
    query: str
    rules: tuple[str, ...]
    streams: dict[str, Items]
    graphs: dict[str, Triples]


def iri(name: object) -> str:
    """Return an IRI in N-Triples syntax."""
    return f"<{E}{name}>"


def integer(number: int) -> str:
    """Return an integer in N-Triples syntax."""
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'


# -- figure 7 --------------------------------------------------------------------------------------

BROKERS = f"""REGISTER QUERY TotalAmountPerDayAndBroker AS
PREFIX : <{E}>
SELECT DISTINCT ?broker ?total
FROM <{E}brokers>
FROM STREAM <{MARKETS[0]}> [RANGE 60s TUMBLING]
WHERE {{
  ?broker :is_from ?country .
  ?broker :does ?tx .
  ?tx :with ?amount .
  FILTER (?country = 'CH' && ?amount >= 10)
}}
AGGREGATE {{ (?total, SUM(?amount), ?broker) }}"""


def transactions(count: int, windows: int, brokers: int, seed: int = 1) -> Items:
    """Return transactions, of two triples each: `count` triples per window."""
    draw = random.Random(seed)
    items: Items = []
    number = count * windows // 2
    for k in range(number):
        t = k * WINDOW * windows // number + 1
        items.append((iri(f"b{draw.randrange(brokers)}"), iri("does"), iri(f"tx{k}"), t))
        items.append((iri(f"tx{k}"), iri("with"), integer(draw.randrange(100)), t))
    return items


def brokers_graph(count: int) -> Triples:
    """Return the countries of brokers, of whom one in twenty is from Switzerland."""
    return [
        (iri(f"b{k}"), iri("is_from"), '"CH"' if k % 20 == 0 else f'"C{k % 20}"')
        for k in range(count)
    ]


def figure_7(name: str, in_window: int, in_graph: int, windows: int) -> Case:
    """Return the broker query over windows and a static graph of these numbers of triples."""
    stream = {MARKETS[0]: transactions(in_window, windows, in_graph)}
    return Case(name, BROKERS, PUSHED_FILTERS, stream, {f"{E}brokers": brokers_graph(in_graph)})


# -- aggregates ------------------------------------------------------------------------------------

TOLLGATES = f"""PREFIX : <{E}>
SELECT DISTINCT ?tollgate ?passages
FROM STREAM <{MARKETS[0]}> [RANGE 60s STEP 10s]
WHERE {{ ?tollgate :registers ?car }}
AGGREGATE {{ (?passages, COUNT, {{?tollgate}}) }}"""
IN_CITY = f"GRAPH <{E}city> {{ ?tollgate :placedIn ?street . ?district :contains ?street }}"
DISTRICTS = f"""PREFIX : <{E}>
SELECT ?district (COUNT(*) AS ?passages)
FROM NAMED <{E}city> FROM STREAM <{MARKETS[0]}> [RANGE 60s TUMBLING]
WHERE {{ ?tollgate :registers ?car {IN_CITY} }}
GROUP BY ?district"""
TWO_STREAMS = f"""PREFIX : <{E}>
SELECT ?district (COUNT(*) AS ?passages)
FROM NAMED <{E}city> FROM NAMED STREAM <{MARKETS[0]}> [RANGE 60s TUMBLING]
FROM NAMED STREAM <{MARKETS[1]}> [RANGE 60s TUMBLING]
WHERE {{ {{ GRAPH <{MARKETS[0]}> {{ ?tollgate :registers ?car }} {IN_CITY} }}
  UNION {{ GRAPH <{MARKETS[1]}> {{ ?tollgate :registers ?car }} {IN_CITY} }} }}
GROUP BY ?district"""
BY_MARKET = f"""PREFIX : <{E}>
SELECT ?seller ?market (SUM(?amount) AS ?total)
FROM <{E}none> FROM STREAM <{MARKETS[0]}> [RANGE 60s TUMBLING]
FROM STREAM <{MARKETS[1]}> [RANGE 60s TUMBLING]
WHERE {{ GRAPH ?market {{ ?seller :sells ?amount }} }}
GROUP BY ?seller ?market"""


def readings(link: str, windows: int, seed: int, count: int = 20_000) -> Items:
    """Return items of 500 subjects: `count` per window."""
    draw = random.Random(seed)
    number = count * windows
    return [
        (
            iri(f"x{draw.randrange(500)}"),
            iri(link),
            integer(draw.randrange(1_000_000)),
            k * WINDOW * windows // number + 1,
        )
        for k in range(number)
    ]


def city(matches: int) -> dict[str, Triples]:
    """Return a city in which each tollgate is in this number of districts."""
    streets = [(iri(f"x{k}"), iri("placedIn"), iri(f"s{k % 100}")) for k in range(500)]
    districts = [
        (iri(f"d{(k + n) % 40}"), iri("contains"), iri(f"s{k}"))
        for k in range(100)
        for n in range(matches)
    ]
    return {f"{E}city": streets + districts}


def aggregate_cases(windows: int) -> Iterator[Case]:
    """Yield queries for each rule about aggregates."""
    cars = {market: readings("registers", windows, k) for k, market in enumerate(MARKETS)}
    sales = {market: readings("sells", windows, k) for k, market in enumerate(MARKETS)}
    one = {MARKETS[0]: cars[MARKETS[0]]}
    yield Case("DISTINCT AGGREGATE", TOLLGATES, ("group_annotations",), one, {})
    into_unions, into_joins = "push_aggregates_into_unions", "push_aggregates_into_joins"
    yield Case("total, below a union", BY_MARKET, (into_unions,), sales, {f"{E}none": []})
    for n in (1, 3, 8):
        name = f"partial, below a join, {n} match{'es' * (n > 1)}"
        yield Case(name, DISTRICTS, (into_joins,), one, city(n))
    name = "partial, below unions of joins, 3 matches"
    yield Case(name, TWO_STREAMS, (into_unions, into_joins), cars, city(3))


# -- measuring -------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """The seconds of a run: in all, and in operators; and its rows."""

    whole: float
    computing: float
    rows: int


def compiled(text: str, without: Sequence[str] = ()) -> Any:
    """Compile a query, and rewrite it without some rules."""
    query = streamsparql.compile(text)
    kept = (Phase(*(r for r in p.rules if r.name not in without)) for p in phases())
    query.__dict__["rewriting"] = rewrite(query.logical, tuple(kept))
    return query


def take(query: Any, case: Case) -> Turn:
    """Run a query over the history, and measure it."""
    gc.collect()
    analysis = query.analyze(case.streams, graphs=case.graphs, report="rstream")
    times = analysis.times
    return Turn(times.total - times.preparing, times.computing, analysis.rows)


def compare(case: Case, repeat: int, windows: int) -> str:
    """Return a line with the times of a case, per window, with and without the rules."""
    queries = {
        "with": compiled(case.query),
        "without": compiled(case.query, case.rules),
        "without any": streamsparql.compile(case.query, optimize=False),
    }
    assert queries["with"].optimized != queries["without"].optimized, (
        f"{case.name}: no rule applies"
    )
    best: dict[str, Turn] = {}
    for _ in range(repeat):
        for name, query in queries.items():
            turn = take(query, case)
            best[name] = min(best.get(name, turn), turn)
    assert len({turn.rows for turn in best.values()}) == 1, "the rows are the same"
    fast, slow, plain = best.values()
    return (
        f"{case.name:41} {fast.whole / windows * 1e3:7.1f} ms per window;"
        f" without the rules {slow.whole / fast.whole:5.2f}x,"
        f" in operators {slow.computing / fast.computing:5.2f}x;"
        f" without any rule {plain.whole / fast.whole:5.2f}x,"
        f" in operators {plain.computing / fast.computing:5.2f}x"
    )


def use_processor_time() -> None:
    """Let runs measure processor time, as the machine may have other load."""
    measured.perf_counter = pipeline.perf_counter = time.process_time


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare all cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default="windows,graphs,aggregates")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--sizes", default="1000,10000,50000,100000", help="triples per window")
    parser.add_argument("--static", default="100,1000,10000,100000", help="static triples")
    options = parser.parse_args(arguments)
    use_processor_time()
    push_aggregates_into_joins.LEAST_GAIN = 0.0  # whatever the estimates are
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, processor time")
    chosen = options.cases.split(",")
    cases: list[Case] = []
    if "windows" in chosen:
        for size in map(int, options.sizes.split(",")):
            cases.append(figure_7(f"{size:,} triples per window", size, 2_000, options.windows))
    if "graphs" in chosen:
        for size in map(int, options.static.split(",")):
            cases.append(figure_7(f"{size:,} static triples", 10_000, size, options.windows))
    if "aggregates" in chosen:
        cases += aggregate_cases(options.windows)
    for case in cases:
        print(compare(case, options.repeat, options.windows), flush=True)


if __name__ == "__main__":
    main()
