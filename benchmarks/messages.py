"""The speed of messages: JSON objects that are pushed to an open query, on one core.

    python benchmarks/messages.py [--messages 100000] [--repeat 3] [--clock cpu]

Each message has five values, of which a mapping makes three triples. They are pushed in batches of
several sizes, and one by one; the peer is `json.loads` alone, which any program in Python needs.
All take turns, and the best turn of each counts. Plain triples, pushed one by one, are measured
next to triples of N-Triples texts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import streamsparql  # noqa: E402

BAR = 50_000
"""The least JSON messages per second in batches of 10,000."""
E = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
STREAM = f"{E}cars"
QUERY = streamsparql.compile(
    f"PREFIX : <{E}> SELECT ?v FROM STREAM :cars WINDOW RANGE 10 SECOND FIXED"
    " { ?car :speed ?v FILTER(?v > 99) }"
)
MAPPING = f"""PREFIX : <{E}> PREFIX xsd: <{XSD}>
CONSTRUCT {{ ?car :speed ?v ; :name ?name ; :on ?on }}
WHERE {{ BIND(IRI(CONCAT("{E}car/", ?id)) AS ?car) BIND(xsd:double(?speed) AS ?v) }}"""
START = 1_600_000_000_000


def records(count: int) -> list[dict[str, Any]]:
    """Return messages as dicts."""
    return [
        {
            "id": k % 500,
            "speed": (k * 7919 % 1000) / 10,
            "name": f"car {k % 500}",
            "on": k % 3 == 0,
            "t": START + k * 10,
        }
        for k in range(count)
    ]


def push_batches(messages: list[Any], size: int) -> int:
    """Push messages in batches; return the number of rows."""
    live = QUERY.open()
    for k in range(0, len(messages), size):
        live.push_many(STREAM, streamsparql.mapped(messages[k : k + size], MAPPING))
    live.close()
    return len(live.rows())


def push_records(messages: list[Any]) -> int:
    """Push messages one by one; return the number of rows."""
    live = QUERY.open(mapping=MAPPING)
    for message in messages:
        live.push_record(STREAM, message)
    live.close()
    return len(live.rows())


def push_triples(triples: list[Any]) -> int:
    """Push triples one by one; return the number of rows."""
    live = QUERY.open()
    for *triple, t in triples:
        live.push(STREAM, triple, t)
    live.close()
    return len(live.rows())


def main() -> int:
    """Measure all ways to push; return 1 if batches of JSON are below the bar."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options = parser.parse_args()
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    dicts = records(options.messages)
    texts = [json.dumps(record).encode() for record in dicts]
    plain = [(f"{E}car/{r['id']}", f"{E}speed", r["speed"], r["t"]) for r in dicts]
    terms = [(f"<{s}>", f"<{p}>", f'"{o}"^^<{XSD}double>', t) for s, p, o, t in plain]
    ways: dict[str, Callable[[], object]] = {
        "json.loads alone": lambda: list(map(json.loads, texts)),
        "JSON, batches of 1,000": lambda: push_batches(texts, 1_000),
        "JSON, batches of 10,000": lambda: push_batches(texts, 10_000),
        "JSON, one by one": lambda: push_records(texts),
        "dicts, batches of 10,000": lambda: push_batches(dicts, 10_000),
        "dicts, one by one": lambda: push_records(dicts),
        "plain triples, one by one": lambda: push_triples(plain),
        "N-Triples, one by one": lambda: push_triples(terms),
    }
    best = dict.fromkeys(ways, 0.0)
    for _ in range(options.repeat):
        for name, push in ways.items():
            before = clock()
            push()
            best[name] = max(best[name], options.messages / (clock() - before))
    peer = best["json.loads alone"]
    for name, rate in best.items():
        print(f"{name:>26}  {rate:9,.0f}/s   {rate / peer:5.2f}x json.loads", flush=True)
    met = best["JSON, batches of 10,000"] >= BAR
    print(f"bar {BAR:,}/s in batches of 10,000: {'ok' if met else 'BELOW THE BAR'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
