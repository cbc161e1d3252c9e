"""Instance checks against a hierarchy of 40,080 classes, compared with plain patterns.

    python benchmarks/entailment.py [--items 1000000] [--repeat 5]

This is test 2 of EP-SPARQL's evaluation (WWW 2011, section 6): a stream of triples `x rdf:type C`,
where C is one of 40,080 classes of plants in a hierarchy of depth 8, and a query for the instances
of the class at the top. Queries without entailment show what a pattern costs:

- `plain` is the same query without entailment. Its stream states the top class directly, and has
  the many terms as subjects instead of objects, so that reading it costs the same;
- `as stated` is `?x a ?c` over the stream of the 40,080 classes, `all classes` the same with
  entailment: eight rows per item.

Contenders take turns, and the best turn of each counts. `strings` are runs from Python tuples of
strings to Arrow rows; `operator` is the matching alone, on batches of 65,536 triples as ids.
Compare ratios, not times.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import streamsparql  # noqa: E402
from streamsparql.algebra.entailment import SUBCLASS, TYPE  # noqa: E402
from streamsparql.algebra.match import TriplePattern  # noqa: E402
from streamsparql.algebra.solutions import Variable  # noqa: E402
from streamsparql.algebra.terms import IRI  # noqa: E402
from streamsparql.physical.batch import TRIPLE, Batch  # noqa: E402
from streamsparql.physical.dictionary.term_dictionary import TermDictionary  # noqa: E402
from streamsparql.physical.entailment.schema import Schema  # noqa: E402
from streamsparql.physical.operators.access import Always  # noqa: E402
from streamsparql.physical.operators.entailment import EntailedMatching  # noqa: E402
from streamsparql.physical.operators.match import TriplePatternMatching  # noqa: E402

CLASSES = 40_080
LEVELS = (1, 3, 20, 120, 700, 4_000, 12_000, 15_000)
"""The number of classes at each level from the top; the rest are at the lowest, level 8."""
BAR = 0.9
"""The least speed of an instance check, relative to a plain pattern."""
STREAM = "FROM STREAM <s> WINDOW RANGE 1 S FIXED"
TOP = f"SELECT (COUNT(?x) AS ?n) {STREAM} {{ ?x a <p:0> }}"
EVERY = f"SELECT ?x ?c {STREAM} {{ ?x a ?c }}"
RDF_TYPE = str(TYPE)
MEMBERS = 0.9
"""The fraction of the items that are instances of a class of the hierarchy."""
BATCH = 65_536

Triples = list[tuple[str, str, str]]


def hierarchy() -> Triples:
    """Return the statements of the hierarchy; one class in twenty has a second superclass."""
    random = Random(5)
    sizes = [*LEVELS, CLASSES - sum(LEVELS)]
    statements: Triples = []
    above, number = [0], 1
    for size in sizes[1:]:
        here = range(number, number + size)
        for one in here:
            parents = [random.choice(above), random.choice(above)][: 1 + (random.random() < 0.05)]
            statements += [(f"<p:{one}>", str(SUBCLASS), f"<p:{other}>") for other in parents]
        above, number = list(here), number + size
    return statements


def classes_of_items(count: int) -> list[str]:
    """Return the class that each item states; some are outside the hierarchy."""
    random = Random(7)
    return [
        f"<p:{random.randrange(CLASSES)}>"
        if random.random() < MEMBERS
        else f"<q:{random.randrange(CLASSES)}>"
        for _ in range(count)
    ]


def streams(count: int) -> dict[str, list[tuple[str, str, str, int]]]:
    """Return items that state one of many classes, and such that state the top class directly.

    They have the same terms, and a thousand items per second.
    """
    stated = list(enumerate(classes_of_items(count)))
    top = {True: "<p:0>", False: "<q:0>"}
    return {
        "classes": [(top[one.startswith("<p:")], RDF_TYPE, one, k) for k, one in stated],
        "direct": [(one, RDF_TYPE, top[one.startswith("<p:")], k) for k, one in stated],
    }


def turns(contenders: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Return the best time of each contender; they take turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeat):
        for name, run in contenders.items():
            gc.collect()
            before = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - before)
    return best


def runs(items: dict[str, Any], schema: pa.Table) -> dict[str, Callable[[], Any]]:
    """Return the queries, each over its stream."""
    plain, every = streamsparql.compile(TOP), streamsparql.compile(EVERY)
    check, expand = (streamsparql.compile(text, entailment="rdfs") for text in (TOP, EVERY))
    return {
        "plain": lambda: plain.run(items["direct"], schema).to_arrow("rstream"),
        "as stated": lambda: every.run(items["classes"], schema).to_arrow(),
        "instance check": lambda: check.run(items["classes"], schema).to_arrow("rstream"),
        "all classes": lambda: expand.run(items["classes"], schema).to_arrow(),
    }


def operators(items: dict[str, list[Any]], statements: Triples) -> dict[str, Callable[[], Any]]:
    """Return the matchings alone, over batches of ids."""
    terms = TermDictionary()
    columns = [terms.encode(list(column)) for column in zip(*statements, strict=True)]
    for ids in columns:
        terms.keep(ids)
    always = Always.of(dict(zip(TRIPLE, columns, strict=True)), len(columns[0]))
    schema = Schema(always.rows, terms)
    x, top = Variable("x"), IRI("p:0")
    one, every = TriplePattern(x, TYPE, top), TriplePattern(x, TYPE, Variable("c"))
    batches = {name: list(_batches(terms, stream)) for name, stream in items.items()}

    def over(name: str, operator: Any) -> Callable[[], Any]:
        return lambda: [operator.apply(batch) for batch in batches[name]]

    return {
        "plain": over("direct", TriplePatternMatching(always, one, terms)),
        "as stated": over("classes", TriplePatternMatching(always, every, terms)),
        "instance check": over("classes", EntailedMatching(always, one, schema)),
        "all classes": over("classes", EntailedMatching(always, every, schema)),
    }


def _batches(terms: TermDictionary, items: list[Any]) -> Iterable[Batch]:
    for first in range(0, len(items), BATCH):
        part = items[first : first + BATCH]
        columns = [terms.encode(list(column)) for column in list(zip(*part, strict=True))[:3]]
        start = np.arange(first, first + len(part))
        yield Batch(dict(zip(TRIPLE, columns, strict=True)), start, start + 1000)


def show(title: str, best: dict[str, float], items: int) -> None:
    """Print speeds, and the ratio of the instance check to the plain pattern."""
    ratio = best["plain"] / best["instance check"]
    verdict = "ok" if ratio >= BAR else "BELOW THE BAR"
    speeds = "  ".join(f"{name} {items / seconds / 1e6:.2f}" for name, seconds in best.items())
    print(f"{title:9} million items/s: {speeds}")
    print(f"{'':9} instance check: {ratio:.2f}x the plain pattern, {verdict}")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    statements, items = hierarchy(), streams(options.items)
    gc.freeze()
    columns = [pa.array(column) for column in zip(*statements, strict=True)]
    schema = pa.table(columns, names=["subject", "predicate", "object"])
    queries = runs(items, schema)
    results = {name: run() for name, run in queries.items()}
    for name in ("plain", "instance check"):
        counts = (int(text.split('"')[1]) for text in results[name]["n"].to_pylist())
        assert sum(counts) == sum(x[2].startswith("<p:") for x in items["classes"])
    of_open = {
        name: lambda query=query: query.open(graph=schema).close()
        for name, query in (
            ("plain", streamsparql.compile(TOP)),
            ("rdfs", streamsparql.compile(TOP, entailment="rdfs")),
        )
    }
    opened = turns(of_open, options.repeat)
    schema_time = opened["rdfs"] - opened["plain"]
    print(f"{CLASSES:,} classes, {len(statements):,} statements")
    print(f"graph read in {opened['plain'] * 1e3:.0f} ms, schema in {schema_time * 1e3:.0f} ms")
    rows = {name: results[name].num_rows for name in ("as stated", "all classes")}
    print("rows: " + ", ".join(f"{name} {count:,}" for name, count in rows.items()))
    show("strings", turns(queries, options.repeat), options.items)
    show("operator", turns(operators(items, statements), options.repeat), options.items)


if __name__ == "__main__":
    main()
