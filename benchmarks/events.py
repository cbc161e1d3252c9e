"""The speed of queries about events: sequences, and absence in between.

    python benchmarks/events.py [--events 1000000] [--repeat 3] [--siddhi FOLDER] [--json FILE]

A million events of three kinds, of 10,000 keys, are in sequence if they follow each other with one
key within 30 seconds. `strings` are Python tuples in N-Triples syntax, read in one call; `ids` are
columns of term ids, in batches of 10,000, as sources deliver them to the engine. In `next`, each
event is paired with the next one of its key: no other lies between, within a bound or without.

In `rules`, CONSTRUCT rules feed themselves: query (5) of WWW 2011, which counts and sums the prices
of a stock, one sum from the one before; and a transitive sequence within 3 seconds. They are
evaluated as the engine chooses, row by row, and by column; query (5) by column in fewer events.

The peers are a function in plain Python, which reads integers and retains a deque per key, and
Siddhi 5, which reads integers, too. Siddhi takes part if there are `java`, `javac` and its jars:
those of the package pysiddhi, if it is installed, or in the folder `--siddhi`. It finds the first
match of each event only.

Contenders take turns, and the best turn of each counts. Times are processor times.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import streamsparql  # noqa: E402
from streamsparql.algebra.functions import Run  # noqa: E402
from streamsparql.physical import rule_closure  # noqa: E402
from streamsparql.physical.batch import TRIPLE, Batch  # noqa: E402
from streamsparql.physical.dictionary.term_dictionary import TermDictionary  # noqa: E402
from streamsparql.physical.hidden import SINCE  # noqa: E402
from streamsparql.physical.kernels.occurrences import since_of  # noqa: E402
from streamsparql.physical.lowering.lower import Catalog, lower  # noqa: E402
from streamsparql.physical.operator import INFINITY  # noqa: E402
from streamsparql.physical.operators.event_sets import Detect  # noqa: E402
from streamsparql.physical.pipeline import Pipeline  # noqa: E402

KEYS, KINDS, VALUES, BOUND = 10_000, 3, 1_000, 30_000
BATCH = 10_000
XSD = "http://www.w3.org/2001/XMLSchema#"
BARS = {
    "three in sequence, strings": 0.5,
    "three in sequence, ids": 5.0,
    "next, within 30 s, ids": 0.5,
    "next, within 2000 s, ids": 0.5,
    "next, ids": 0.5,
}
"""The least million events per second of these contenders."""
TIMES_SIDDHI = 4.0
"""The least ratio of three in sequence, from strings, to Siddhi."""
PUSH = 500.0
"""The most microseconds of a push that completes three events in sequence."""


def query(steps: str, bound: int | None) -> str:
    """Return a query whose events are shorter than a bound."""
    limit = f'"PT{bound}S"^^<{XSD}duration>'
    short = "" if bound is None else f"FILTER(getDURATION() < {limit})"
    return f"SELECT ?x ?u ?v ?w {{ {steps} {short} }}"


TWO = query("{ ?x <a> ?u } SEQ { ?x <b> ?v }", BOUND // 1000)
THREE = query("{ ?x <a> ?u } SEQ { ?x <b> ?v } SEQ { ?x <c> ?w }", BOUND // 1000)
NEXT = (
    "{ { ?x <a> ?u } SEQ { ?x <a> ?w } } EQUALSOPTIONAL"
    " { { ?x <a> ?u } SEQ { ?x <a> ?v } SEQ { ?x <a> ?w } } FILTER(!BOUND(?v))"
)


class Data(NamedTuple):
    """Events: keys, kinds, values and times, which are in order."""

    keys: np.ndarray
    kinds: np.ndarray
    values: np.ndarray
    times: np.ndarray

    @classmethod
    def generate(cls, count: int) -> Data:
        """Return random events, about one per millisecond."""
        random = np.random.default_rng(7)
        times = np.sort(random.integers(0, count, count))
        return cls(*(random.integers(0, most, count) for most in (KEYS, KINDS, VALUES)), times)

    def items(self) -> list[tuple[str, str, str, int]]:
        """Return the events as tuples of strings and their timestamps."""
        columns = (column.tolist() for column in self)
        return [
            (f"<k{key}>", f"<{'abc'[kind]}>", f'"{value}"^^<{XSD}integer>', t)
            for key, kind, value, t in zip(*columns, strict=True)
        ]


# -- this engine -----------------------------------------------------------------------------------


def from_strings(text: str, items: list[Any]) -> Callable[[], int]:
    """Return a run over tuples of strings, to rows of term ids."""
    return lambda: len(streamsparql.compile(text).run(items).computation.rows())


def from_ids(text: str, data: Data, kinds: int = KINDS) -> Callable[[], int]:
    """Return a run over columns of term ids, batch by batch."""
    terms = TermDictionary()
    keys = terms.encode([f"<k{k}>" for k in range(KEYS)])
    links = terms.encode([f"<{letter}>" for letter in "abc"[:kinds]])
    columns = keys[data.keys], links[data.kinds % kinds], terms.of_integers(data.values)
    batches = list(_batches(columns, data.times))
    compiled = streamsparql.compile(text)
    (stream,) = compiled.streams

    def run() -> int:
        lowered = lower(compiled.optimized, terms, Run(), Catalog())
        pipeline = Pipeline(lowered.operator, terms)
        for operator in pipeline.operators:
            if isinstance(operator, Detect):
                operator.begin = 0
        rows = 0
        for batch, watermark in batches:
            detected, _ = pipeline.step({stream: batch}, {stream: watermark})
            rows += len(detected)
        return rows

    return run


def _batches(columns: tuple[np.ndarray, ...], times: np.ndarray) -> Iterator[tuple[Batch, int]]:
    for first in range(0, len(times), BATCH):
        part = slice(first, first + BATCH)
        t = times[part]
        named = dict(zip(TRIPLE, (column[part] for column in columns), strict=True))
        last = first + BATCH >= len(times)
        yield Batch({**named, SINCE: since_of(t)}, t, t + 1), INFINITY if last else int(t[-1])


def pushes(items: list[Any]) -> dict[str, float]:
    """Return the median microseconds of a push and `rows`, and of those that find rows."""
    history, rest = items[:30_000], items[30_000:40_000]
    compiled = streamsparql.compile(THREE)
    (stream,) = compiled.streams
    every: list[float] = []
    completing: list[float] = []
    with compiled.open() as live:
        live.push_many(stream, history)
        live.rows()
        for s, p, o, t in rest:
            before = time.perf_counter()
            live.push(stream, (s, p, o), t)
            rows = live.rows()
            spent = time.perf_counter() - before
            every.append(spent)
            if rows:
                completing.append(spent)
    return {"push_us": median(every) * 1e6, "completing_us": median(completing) * 1e6}


# -- rules -----------------------------------------------------------------------------------------

SUM = """CONSTRUCT { _:n <count> ?count . _:n <sum> ?sum } {
  { SELECT ?count AS ?before + 1 ?sum AS ?sumbefore + ?price
    WHERE { { ?n <count> ?before . ?n <sum> ?sumbefore } SEQ { <ACME> <price> ?price } }
  EQUALSOPTIONAL
  { { ?n <count> ?before . ?n <sum> ?sumbefore }
    SEQ { <ACME> <price> ?between } SEQ { <ACME> <price> ?price } }
  FILTER(!BOUND(?between)) } }"""
TRANSITIVE = f"""CONSTRUCT {{ ?x <next> ?z }} {{
  {{ ?x <next> ?y }} SEQ {{ ?y <next> ?z }} FILTER(getDURATION() < "PT3S"^^<{XSD}duration>) }}"""
RULES_BAR = 30_000
"""The least events per second of query (5)."""


def prices(count: int) -> list[tuple[str, str, str, int]]:
    """Return a count and a sum of nothing, and prices."""
    start = [("<start>", f"<{name}>", f'"0"^^<{XSD}integer>', 1) for name in ("count", "sum")]
    return start + [
        ("<ACME>", "<price>", f'"{10 + k % 7}"^^<{XSD}integer>', 3 + 2 * k) for k in range(count)
    ]


def edges(count: int) -> list[tuple[str, str, str, int]]:
    """Return random edges between 5,000 nodes, one per millisecond."""
    draw = np.random.default_rng(5).integers(0, 5_000, (count, 2)).tolist()
    return [(f"<n{x}>", "<next>", f"<n{y}>", t) for t, (x, y) in enumerate(draw)]


def measure_rules(repeat: int) -> dict[str, float]:
    """Return the events per second of the best turn of rules, in each way to evaluate them."""
    best: dict[str, float] = {}
    cases = {
        "query (5)": (SUM, "SELECT * { ?n <count> ?count . ?n <sum> ?sum }", prices, 1_000),
        "transitive": (TRANSITIVE, "SELECT * { ?x <next> ?y }", edges, 20_000),
    }
    few = rule_closure.FEW_ROWS
    for name, (rule, text, items, by_column) in cases.items():
        compiled = streamsparql.compile(text, rules=[rule])
        outcomes = []
        for _ in range(repeat):
            for way, at_most, count in (
                ("as chosen", few, 20_000),
                ("row by row", 1 << 60, 20_000),
                ("by column", 0, by_column),
            ):
                rule_closure.FEW_ROWS = at_most
                data = items(count)
                gc.collect()
                before = time.process_time()
                rows = len(compiled.run(data).computation.rows())
                speed = count / (time.process_time() - before)
                best[f"{name}, {way}"] = max(best.get(f"{name}, {way}", 0.0), speed)
                outcomes.append((count, rows))
        assert len(set(outcomes)) == len(dict(outcomes)), "all ways find the same rows"
    rule_closure.FEW_ROWS = few
    return best


# -- peers -----------------------------------------------------------------------------------------


Found = tuple[int, ...]
"""A result of three events in sequence: the key, three values, the start and the end."""


def three_in_python(rows: Iterable[tuple[int, int, int, int]]) -> Iterator[list[Found]]:
    """Yield the results of each third event: a deque of first events, and one of pairs, per key."""
    firsts: dict[int, deque[Any]] = defaultdict(deque)
    pairs: dict[int, deque[Any]] = defaultdict(deque)
    for key, kind, value, t in rows:
        if kind == 0:
            firsts[key].append((t, value))
        elif kind == 1:
            retained = firsts.get(key)
            while retained and retained[0][0] <= t - BOUND:
                retained.popleft()
            if retained:
                pairs[key].extend((a, u, t, value) for a, u in retained if a < t)
        else:
            begun = pairs.get(key)
            while begun and begun[0][0] <= t - BOUND:
                begun.popleft()
            if begun:
                yield [(key, u, v, value, a, t) for a, u, b, v in begun if b < t and a > t - BOUND]


def in_python(data: Data) -> Callable[[], int]:
    """Return a run in plain Python, over integers."""
    rows = list(zip(*(column.tolist() for column in data), strict=True))
    return lambda: sum(map(len, three_in_python(rows)))


def distinct_in_python(data: Data) -> int:
    """Return the number of distinct results: equal solutions with equal times are one event."""
    rows = zip(*(column.tolist() for column in data), strict=True)
    return len(set(chain.from_iterable(three_in_python(rows))))


SIDDHI = """@app:playback define stream Items (k long, kind long, v long);
partition with (k of Items) begin
from every a=Items[kind == 0] -> b=Items[kind == 1] -> c=Items[kind == 2] within 30 sec
select a.k as k, a.v as u, b.v as v, c.v as w insert into Found;
end;"""


def siddhi_jars(folder: Path | None) -> list[Path]:
    """Return the jars of Siddhi, in a folder or in the package pysiddhi; none if it is missing."""
    package = find_spec("__PySiddhiProxy") if folder is None else None
    if folder is None and package is not None and package.submodule_search_locations:
        folder = Path(package.submodule_search_locations[0])
    return [] if folder is None else sorted(folder.rglob("*.jar"))


def measure_siddhi(data: Data, jars: list[Path]) -> dict[str, Any] | None:
    """Run Siddhi in a process of its own; return its rows and times, None without java."""
    if not jars or shutil.which("java") is None or shutil.which("javac") is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.stack(data, axis=1).astype("<i8").tofile(folder / "items")
        (folder / "app.siddhi").write_text(SIDDHI)
        path = ":".join(map(str, [*jars, folder]))
        source = HERE / "siddhi" / "Sequences.java"
        subprocess.run(["javac", "-proc:none", "-cp", path, "-d", name, str(source)], check=True)
        command = ["java", "-cp", path, "Sequences", str(folder / "items")]
        command.append(str(folder / "app.siddhi"))
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


# -- measuring -------------------------------------------------------------------------------------


def measure(contenders: dict[str, Callable[[], int]], repeat: int, count: int) -> dict[str, Any]:
    """Return the million events per second, and the rows, of the best turn of each contender."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(repeat):
        for name, run in contenders.items():
            gc.collect()
            before = time.process_time()
            rows = run()
            speed = count / (time.process_time() - before) / 1e6
            if speed > best.get(name, {"meps": 0.0})["meps"]:
                best[name] = {"meps": speed, "rows": rows}
    return best


def show(name: str, value: str, bar: str, met: bool) -> bool:
    """Print a line; return whether the bar is met."""
    verdict = f"   bar {bar}: {'ok' if met else 'MISSED'}" if bar else ""
    print(f"{name:>34}  {value}{verdict}", flush=True)
    return met


def main() -> int:
    """Measure all contenders; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--siddhi", type=Path, metavar="FOLDER", help="that has Siddhi's jars")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    data = Data.generate(options.events)
    items = data.items()
    gc.freeze()
    contenders = {
        "two in sequence, ids": from_ids(TWO, data),
        "three in sequence, ids": from_ids(THREE, data),
        "three in sequence, strings": from_strings(THREE, items),
        "three in sequence, plain Python": in_python(data),
        "next, within 30 s, ids": from_ids(query(NEXT, 30), data, 1),
        "next, within 2000 s, ids": from_ids(query(NEXT, 2_000), data, 1),
        "next, ids": from_ids(query(NEXT, None), data, 1),
    }
    best = measure(contenders, options.repeat, options.events)
    met = True
    for name, one in best.items():
        value = f"{one['meps']:6.2f} M events/s, {one['rows']:9,.0f} rows"
        bar = BARS.get(name)
        met &= show(name, value, f"{bar}" if bar else "", bar is None or one["meps"] >= bar)
    ours = best["three in sequence, strings"]
    assert ours["rows"] == distinct_in_python(data), "both find all events"
    rules = measure_rules(options.repeat)
    for name, speed in rules.items():
        bar = RULES_BAR if name == "query (5), as chosen" else 0
        value = f"{speed:9,.0f} events/s"
        met &= show(f"rules: {name}", value, f"{bar:,}" if bar else "", speed >= bar)
    push = pushes(items)
    value = f"{push['completing_us']:6.0f} us; any push {push['push_us']:.0f} us"
    met &= show("a push that completes three", value, f"{PUSH:.0f}", push["completing_us"] < PUSH)
    siddhi = measure_siddhi(data, siddhi_jars(options.siddhi))
    if siddhi is None:
        print("Siddhi is skipped: it needs java, javac and its jars (pip download pysiddhi)")
    else:
        speed = options.events / siddhi["cpu"] / 1e6
        ratio = ours["meps"] / speed
        value = f"{speed:6.2f} M events/s, {siddhi['rows']:9,} rows; strings are {ratio:.1f}x"
        met &= show(
            "three in sequence, Siddhi", value, f"{TIMES_SIDDHI:.0f}x", ratio >= TIMES_SIDDHI
        )
    if options.json:
        record = {"speeds": best, "rules": rules, "push": push, "siddhi": siddhi}
        options.json.write_text(json.dumps(record, indent=1))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
