"""Random networks: queries whose outputs other queries read, and their composition by hand.

By hand, each query that feeds a stream runs alone; the triples of its reports, stamped with the
instants of these, are then items like any others for the queries that read the stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import assume
from support.engine import Data, Item
from support.families import PREFIX
from support.sessions import Ran, Returned, read_by

import streamsparql
from streamsparql.run.input import RunInput
from streamsparql.run.live import Live

_REGISTERED = """
REGISTER STREAM {out} AS CONSTRUCT {{ {template} }} FROM STREAM {stream} {bracket} {{ {pattern} }}
REGISTER STREAM {out} COMPUTED EVERY {few}ms AS
    CONSTRUCT {{ {template} }} FROM STREAM {stream} {bracket} {{ {pattern} }}
REGISTER {kind} {out} AS CONSTRUCT {{ {template} }}
    FROM NAMED WINDOW :w ON {stream} {bracket} {{ WINDOW :w {{ {pattern} }} }}
CONSTRUCT {{ {template} }} FROM STREAM {stream} WINDOW RANGE {few} MS FIXED {{ {pattern} }}
CONSTRUCT {{ {template} }} FROM STREAM {stream} WINDOW RANGE {few} MS SLIDE {{ {pattern} }}
CONSTRUCT {{ {template} }} {{ STREAM {stream} [RANGE {few}ms] {{ {pattern} }} }}
CONSTRUCT {{ {template} }} {{ STREAM {stream} [NOW] {{ {pattern} }} }}
DESCRIBE ?x FROM STREAM {stream} WINDOW RANGE {few} MS SLIDE {{ {pattern} }}
"""
_TEXTS = [line.replace("\n    ", " ") for line in re.split(r"\n(?! )", _REGISTERED.strip())]
_PATTERNS = [
    "?x ?l ?y",
    "?x :p ?y",
    "?x :p ?y . ?x :q ?z",
    "?x :p ?y OPTIONAL { ?x :q ?z }",
    "?x :q ?y FILTER(?y != 2)",
    "{ SELECT ?x (COUNT(*) AS ?y) { ?x ?l ?z } GROUP BY ?x }",
]
_TEMPLATES = ["?x :p ?y", "?x :q ?y . ?y :p ?x", "?x :r ?z . ?x :p ?y", ":a :p ?x"]


def producers(random: Random) -> dict[str, str]:
    """Return random texts that feed streams, with their names: each reads others before it."""
    texts: dict[str, str] = {}
    streams = [":s", ":g1"]
    for k in range(random.randint(1, 3)):
        width = random.randint(1, 12)
        stepped = f"[RANGE {width}ms STEP {random.randint(1, width)}ms]"
        text = PREFIX + random.choice(_TEXTS).format(
            out=f"<http://e/out{k}>",
            stream=random.choice(streams),
            bracket=random.choice([stepped, f"[RANGE {width}ms TUMBLING]"]),
            kind=random.choice(["RSTREAM", "ISTREAM", "DSTREAM"]),
            few=random.randint(1, 9),
            template=random.choice(_TEMPLATES),
            pattern=random.choice(_PATTERNS),
        )
        if text not in texts:
            texts[text] = f"http://e/out{k}"
            streams += [f"<http://e/out{k}>"] * 2
    return texts


def reading(text: str, outputs: Sequence[str], random: Random) -> str:
    """Return a text that reads outputs instead of some of its streams."""
    for stream in (":s", ":g1"):
        if random.random() < 0.7:
            output = f"<{random.choice(outputs)}>"
            text = re.sub(rf"(STREAM|ON) {stream}\b", rf"\1 {output}", text)
    return text


def without_blank_nodes(data: Data) -> Data:
    """Return data with IRIs instead of blank nodes: those of two runs are different."""
    return Data(
        {n: [(_named(x), t) for x, t in items] for n, items in data.streams.items()},
        [_named(x) for x in data.graph],
        {n: [_named(x) for x in graph] for n, graph in data.graphs.items()},
    )


def _named(triple: tuple[str, str, str]) -> tuple[str, str, str]:
    s, p, o = (re.sub(r"^_:(\w+)$", r"<http://e/\1>", term) for term in triple)
    return s, p, o


def composed(ran: Ran) -> Data:
    """Return the data with the output of each query that feeds a stream, by hand.

    The reports of static rows have no end: there are as many as time has passed, which passes
    through streams without items.
    """
    feeding, data = [each for each in ran.queries if each.query.output], ran.data
    feeding.sort(key=lambda each: str(each.query.output))
    for each in feeding:
        items = _output(each, data, ran.watermarks)
        data = data._replace(streams={**data.streams, each.query.output: items})
    return data


def _output(each: Returned, data: Data, watermarks: Mapping[str, int]) -> list[Item]:
    query, own = streamsparql.compile(each.text), read_by(each, data)
    options: dict[str, Any] = each.options or {"report": query.report.kind or "istream"}
    static = own._replace(streams={})
    run_input = RunInput(*static, start=each.query.start, max_jump=None, max_delay=1_000)
    live = Live(query, run_input, **options)
    for name, items in own.streams.items():
        live.push_many(name, items)
    for name in own.streams:
        live.advance(watermarks[name], name)
    live.close()
    if not any(own.streams.values()):  # its reports of static data may be late for the readers
        assume(not any(shown for _, shown in live.rows()))
        return []
    return [(triple, instant) for instant, shown in live.rows() for triple in shown]
