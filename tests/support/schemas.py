"""Random schemas of classes and properties, and histories whose triples they entail others from.

Schemas have cycles, diamonds and several parents; properties of the vocabulary itself have sub- and
superproperties, domains and ranges. Classes and properties are the terms of `support/generate.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st
from support.engine import Data, Item

from streamsparql.algebra.entailment import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, TYPE

Triple = tuple[str, str, str]

NODES = ["<http://e/a>", "<http://e/b>", "<http://e/c>", "_:n"]
PROPERTIES = [f"<http://e/{name}>" for name in "pqr"]
LITERALS = ['"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"x"']
VOCABULARY = [str(iri) for iri in (SUBCLASS, SUBPROPERTY, DOMAIN, RANGE)]


def random_schema(random: Random, size: int) -> list[Triple]:
    """Return statements about classes and properties; one in ten is about the vocabulary."""
    return [_statement(random) for _ in range(random.randint(0, size))]


def _statement(random: Random) -> Triple:
    kind = random.choice([SUBCLASS, SUBCLASS, SUBPROPERTY, DOMAIN, RANGE])
    one = random.choice(NODES if kind == SUBCLASS else PROPERTIES)
    if random.random() < 0.1 and kind != SUBCLASS:
        one = random.choice([str(TYPE), *VOCABULARY])
    if kind != SUBPROPERTY:
        other = random.choice([*NODES, *NODES, LITERALS[0]])
    elif one == str(TYPE):  # not a subproperty of the vocabulary, which is refused
        other = random.choice(PROPERTIES[:1])
    else:
        other = random.choice([*PROPERTIES[one in VOCABULARY :], "_:n"])
        if random.random() < 0.15 and one != PROPERTIES[0]:
            other = random.choice([str(TYPE), *VOCABULARY])
    return one, str(kind), other


def _triple(random: Random) -> Triple:
    predicate = random.choice([str(TYPE), str(TYPE), *PROPERTIES, *VOCABULARY[:2]])
    pool = NODES if predicate == str(TYPE) or random.random() < 0.6 else [*PROPERTIES, *LITERALS]
    return random.choice(NODES), predicate, random.choice(pool)


def entailing_history(seed: int) -> Data:
    """Draw two streams, and static graphs with schemas."""
    random = Random(seed)

    def items() -> list[Item]:
        t, stream = random.randint(0, 4), []
        for _ in range(random.randint(0, 14)):
            stream.append((_triple(random), t))
            t += random.choice([0, 0, 1, 1, 2, 3, 5])
        return stream

    def graph(statements: int) -> list[Triple]:
        about = [_triple(random) for _ in range(random.randint(0, 3))]
        return [*random_schema(random, statements), *about]

    graphs = {f"http://e/g{k}": graph(2) for k in (1, 2)}
    return Data({"http://e/s": items(), "http://e/g1": items()}, graph(6), graphs)


entailing: st.SearchStrategy[Data] = st.integers(0, 2**32).map(entailing_history)
"""Histories over which patterns match entailed triples."""

Draw = Callable[..., Any]
