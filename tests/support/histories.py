"""Random histories: streams, a default graph and named graphs, from a few items to hundreds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st
from support.engine import Data, Item
from support.generate import triples

from streamsparql.algebra.terms import XSD, integer

EPOCH = 1_700_000_000_123
NODES = ["<http://e/a>", "<http://e/b>", "<http://e/c>", "_:n"]
VALUES = [*(str(integer(n)) for n in (1, 2, 3)), f'"1.5"^^<{XSD}decimal>', '"x"', '"y"@en']


@st.composite
def short_stream(draw: Callable[..., Any]) -> list[Item]:
    """Draw a short stream, in a form that hypothesis can shrink."""
    items = draw(triples(7))
    gaps = draw(st.lists(st.integers(0, 4), min_size=len(items), max_size=len(items)))
    return [(triple, sum(gaps[: k + 1])) for k, triple in enumerate(items)]


@st.composite
def short_histories(draw: Callable[..., Any]) -> Data:
    """Draw two short streams, a default graph, two named graphs."""
    streams = {f"http://e/{name}": draw(short_stream()) for name in ("s", "g1")}
    return Data(streams, draw(triples(3)), {f"http://e/g{k}": draw(triples(3)) for k in (1, 2)})


def dense_history(seed: int) -> Data:
    """Draw two longer streams over few terms, with gaps; sometimes with present-day timestamps."""
    random = Random(seed)
    streams = {f"http://e/{name}": _items(random) for name in ("s", "g1")}
    graphs = {f"http://e/g{k}": _triples(random, 5) for k in (1, 2)}
    data = Data(streams, _triples(random, random.choice([0, 3])), graphs)
    return data.shifted(random.choice([0, 0, 0, EPOCH]))


def _items(random: Random) -> list[Item]:
    t, items = random.randint(0, 4), []
    for triple in _triples(random, random.randint(0, 20)):
        items.append((triple, t))
        t += random.choice([0, 0, 1, 1, 2, 3, 5, 13])
    return items


def _triples(random: Random, count: int) -> list[tuple[str, str, str]]:
    return [
        (
            random.choice(NODES),
            f"<http://e/{random.choice('pqr')}>",
            random.choice(random.choice([NODES, VALUES])),
        )
        for _ in range(count)
    ]


def long_history(seed: int) -> Data:
    """Draw two streams of 100 to 500 items over up to 40 subjects."""
    random = Random(seed)
    nodes = [f"<http://e/n{k}>" for k in range(random.choice([5, 40]))] + NODES[:1]

    def items() -> list[Item]:
        t, stream = random.randint(0, 4), []
        for _ in range(random.randint(100, 500)):
            value = random.choice(random.choice([nodes, VALUES]))
            stream.append(((random.choice(nodes), f"<http://e/{random.choice('pqr')}>", value), t))
            t += random.choice([0, 0, 0, 1, 1, 2])
        return stream

    graphs = {f"http://e/g{k}": _triples(random, 9) for k in (1, 2)}
    return Data({"http://e/s": items(), "http://e/g1": items()}, _triples(random, 5), graphs)


dense: st.SearchStrategy[Data] = st.integers(0, 2**32).map(dense_history)
"""Longer streams over few terms."""

data: st.SearchStrategy[Data] = st.one_of(short_histories(), dense)
"""Short histories, which shrink well, or dense ones."""
