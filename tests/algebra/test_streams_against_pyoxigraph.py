"""The result over a stream at an instant agrees with pyoxigraph over the window's content.

The content of each window is computed from the text of its clause (support/window_content.py),
independently of the implementation's windows, and loaded into pyoxigraph; the query runs there
without its streaming clauses. Not covered: windows in groups (test_windows.py covers them), events,
and the gaps of test_against_pyoxigraph.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from support.generate import queries, triples
from support.oracle import answer, store
from support.plain_queries import KNOWN, PLAIN, ours
from support.window_content import Content, content

import streamsparql
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.terms import IRI, Triple

STREAMED = replace(PLAIN, streams=True, group_windows=False, named_graphs=False)
Timed = list[tuple[tuple[str, str, str], int]]


@st.composite
def streams(draw: Callable[..., object], repeat: bool) -> Timed:
    """Generate a stream of triples; without `repeat` they are distinct, as in a set of triples."""
    drawn = draw(triples(7))
    assert isinstance(drawn, list)
    items = drawn if repeat else list(dict.fromkeys(drawn))
    gaps = draw(st.lists(st.integers(0, 4), min_size=len(items), max_size=len(items)))
    assert isinstance(gaps, list)
    return [(item, sum(gaps[: k + 1])) for k, item in enumerate(items)]


def check(
    text: str, plain: str, windows: dict[str, tuple[str, Content]], data: Inputs, default: list[str]
) -> None:
    """Compare our snapshots with pyoxigraph's results at all instants.

    `windows` are by name of their graph or window.
    """
    instants = range(22)
    snapshots = ours_at(text, data, instants)
    for t in instants:
        held: dict[str, set[Triple]] = {}
        for name, (stream, window) in windows.items():
            items = data.streams[IRI(stream)]
            positions = window([item.end for item in items], t)
            held[name] = {items[k].triple for k in positions}
        graph = set(data.graph).union(*(held[name] for name in default))
        named = {IRI(name): triples for name, triples in held.items() if name not in default}
        theirs = answer(store(graph, named), plain)
        assert snapshots[t] == theirs, f"at {t}: {text}"


def ours_at(text: str, data: Inputs, instants: range) -> list[object]:
    query = streamsparql.compile(text)
    return [ours(query, data, t) for t in instants]


@settings(max_examples=60)
@given(queries(STREAMED), streams(repeat=False), streams(repeat=False))
def test_streaming_sparql(text: str, one: Timed, two: Timed) -> None:
    data = streamsparql.inputs({"http://e/s": one, "http://e/g1": two}, graph=KNOWN)
    clauses = re.findall(r"FROM (NAMED )?STREAM :(\w+) (WINDOW .*?) (?=FROM|WHERE)", text)
    windows = {f"http://e/{s}": (f"http://e/{s}", content(w, "")) for _, s, w in clauses}
    plain = re.sub(r"FROM (NAMED )?STREAM .*? (?=WHERE)", "", text)
    check(text, plain, windows, data, ["http://e/s"])


@settings(max_examples=60)
@given(
    queries(replace(STREAMED, dialect="csparql", aggregate_clauses=False)),
    streams(True),
    streams(True),
)
def test_csparql(text: str, one: Timed, two: Timed) -> None:
    data = streamsparql.inputs({"http://e/s": one, "http://e/g1": two}, graph=KNOWN)
    clauses = re.findall(r"FROM STREAM :(\w+) (\[.*?\])", text)
    windows = {f"http://e/{s}": (f"http://e/{s}", content(w, "csparql")) for s, w in clauses}
    plain = re.sub(r"FROM STREAM .*? (?=WHERE)", "", text)
    check(text, plain, windows, data, list(windows))


@settings(max_examples=60)
@given(queries(replace(STREAMED, dialect="rspql")), streams(True))
def test_rspql(text: str, one: Timed) -> None:
    data = streamsparql.inputs({"http://e/s": one}, graph=KNOWN)
    clauses = re.findall(r"FROM NAMED WINDOW :(\w+) ON :s (\[.*?\])", text)
    windows = {f"http://e/{w}": ("http://e/s", content(c, "rspql")) for w, c in clauses}
    plain = re.sub(r"FROM NAMED WINDOW .*? (?=WHERE)", "", text).replace("WINDOW :w", "GRAPH :w")
    check(text, plain, windows, data, [])


@settings(max_examples=60)
@given(queries(replace(STREAMED, dialect="cqels")), streams(True))
def test_cqels(text: str, one: Timed) -> None:
    data = streamsparql.inputs({"http://e/s": one}, graph=KNOWN)
    clauses = re.findall(r"STREAM :s (\[.*?\])", text)
    windows = {f"http://e/b{k}": ("http://e/s", content(c, "cqels")) for k, c in enumerate(clauses)}
    plain = text
    for k in range(len(clauses)):
        plain = re.sub(r"STREAM :s \[.*?\]", f"GRAPH :b{k}", plain, count=1)
    check(text, plain, windows, data, [])
