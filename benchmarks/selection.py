"""Windows, and a store with filters: the comparison of LarKC D2.6.1, section 5 (README.md).

    python benchmarks/selection.py [--sizes 100,500,1000,2500,36000] [--kept 1,10] [--repeat 9]

How many posts of the last three minutes are about each topic? A C-SPARQL query over a stream,
renewed every ten seconds, and its equivalent in SPARQL: a store retains the posts with their
dates, and a filter selects those of the last three minutes. `sizes` are the numbers of posts in
the window; the store retains one or ten times as many. An answer is computed from the posts of the
last ten seconds: they are pushed, or inserted, before the clock starts for the stores.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import rdflib
from pyoxigraph import Literal, NamedNode, Quad, Store

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import streamsparql  # noqa: E402

STREAM = "http://c-sparql.cefriel.it/sdow-demo/interactions.trdf"
SIOC, DCTERMS = "http://rdfs.org/sioc/ns#", "http://purl.org/dc/terms/"
XSD = "http://www.w3.org/2001/XMLSchema#"
RANGE, STEP, TOPICS = 180_000, 10_000, 50
EPOCH = datetime(2009, 7, 20, 22, 47, tzinfo=UTC)

WINDOW_QUERY = f"""REGISTER QUERY CountHowManyGlueUsersAreInterestedInEachTopic AS
PREFIX sioc: <{SIOC}>
SELECT DISTINCT ?topic ?number
FROM STREAM <{STREAM}> [ RANGE 3m STEP 10s ]
WHERE {{ ?post sioc:topic ?topic . }}
AGGREGATE {{(?number , COUNT , {{?topic }})}}"""
FILTER_QUERY = f"""PREFIX sioc: <{SIOC}> PREFIX dcterms: <{DCTERMS}> PREFIX xsd: <{XSD}>
SELECT ?topic (COUNT(?topic) AS ?number) WHERE {{
  ?post sioc:topic ?topic .
  ?post dcterms:created ?date .
  FILTER (?date > "%s"^^xsd:dateTime && ?date <= "%s"^^xsd:dateTime ) }}
GROUP BY ?topic"""

Post = tuple[str, str, int]
"""A post, its topic, and its time in milliseconds."""


def posts(in_window: int, windows: float) -> list[Post]:
    """Return the posts of a number of windows."""
    draw = random.Random(7)
    number = int(in_window * windows)
    return [
        (f"http://e/post{k}", f"http://e/topic{draw.randrange(TOPICS)}", k * RANGE // in_window + 1)
        for k in range(number)
    ]


def date(t: int) -> str:
    """Return an instant as the lexical form of an xsd:dateTime."""
    return (EPOCH + timedelta(milliseconds=t)).isoformat(timespec="milliseconds")


def window_answers(history: list[Post], ends: list[int]) -> Iterator[tuple[float, int]]:
    """Yield the time and the number of rows of the report at each of the last instants."""
    live = streamsparql.compile(WINDOW_QUERY).open(report="rstream")
    items = [(f"<{post}>", f"<{SIOC}topic>", f"<{topic}>", t) for post, topic, t in history]
    done = sum(item[3] <= ends[0] - STEP for item in items)
    live.push_many(STREAM, items[:done])
    live.advance(ends[0] - STEP + 1)
    live.to_arrow()
    for end in ends:
        step = [item for item in items[done:] if item[3] <= end]
        done += len(step)
        before = time.process_time()
        live.push_many(STREAM, step)
        live.advance(end + 1)
        table = live.to_arrow()
        yield time.process_time() - before, table.num_rows


def store_answers(history: list[Post], ends: list[int]) -> Iterator[tuple[float, int]]:
    """Yield the same for a pyoxigraph store that retains the history."""
    store = Store()
    store.extend(
        Quad(NamedNode(post), NamedNode(p), value)
        for post, topic, t in history
        for p, value in (
            (f"{SIOC}topic", NamedNode(topic)),
            (f"{DCTERMS}created", Literal(date(t), datatype=NamedNode(f"{XSD}dateTime"))),
        )
    )
    for end in ends:
        before = time.process_time()
        text = FILTER_QUERY % (date(end - RANGE), date(end))
        rows = len(list(store.query(text)))  # type: ignore[arg-type]
        yield time.process_time() - before, rows


def rdflib_answers(history: list[Post], ends: list[int]) -> Iterator[tuple[float, int]]:
    """Yield the same for an rdflib graph; one answer, as it is slow."""
    graph = rdflib.Graph()
    for post, topic, t in history:
        graph.add((rdflib.URIRef(post), rdflib.URIRef(f"{SIOC}topic"), rdflib.URIRef(topic)))
        created = rdflib.Literal(date(t), datatype=rdflib.URIRef(f"{XSD}dateTime"))
        graph.add((rdflib.URIRef(post), rdflib.URIRef(f"{DCTERMS}created"), created))
    for end in ends[-1:]:
        before = time.process_time()
        rows = len(list(graph.query(FILTER_QUERY % (date(end - RANGE), date(end)))))
        yield time.process_time() - before, rows


CONTENDERS: dict[str, Any] = {
    "window": window_answers,
    "pyoxigraph": store_answers,
    "rdflib": rdflib_answers,
}


def compare(in_window: int, kept: int, repeat: int) -> str:
    """Return a line with the median time of an answer of each contender."""
    history = posts(in_window, max(kept, 2) + 0.5)
    last = history[-1][2] // STEP * STEP
    ends = list(range(last - STEP * (repeat - 1), last + STEP, STEP))
    retained = [post for post in history if post[2] > last - kept * RANGE - STEP * repeat]
    cells, first = [], 0.0
    counts = set()
    for name, answers in CONTENDERS.items():
        if name == "rdflib" and len(retained) > 5_000:
            continue
        times, rows = zip(*answers(history if name == "window" else retained, ends), strict=True)
        counts.add(rows[-1])
        spent = median(times)
        first = first or spent
        cells.append(f"{name} {spent * 1e3:8.2f} ms ({spent / first:6.1f}x)")
    assert len(counts) == 1, "all contenders have the same rows"
    return f"{in_window:7,} posts in the window, {len(retained):8,} retained: " + ", ".join(cells)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the contenders for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="100,500,1000,2500,36000")
    parser.add_argument("--kept", default="1,10", help="the windows that the store retains")
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, processor time")
    for size in map(int, options.sizes.split(",")):
        for kept in map(int, options.kept.split(",")):
            print(compare(size, kept, options.repeat), flush=True)


if __name__ == "__main__":
    main()
