"""Networks: queries that read the outputs of others, compared with their composition by hand."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.families import FAMILIES, of_family
from support.histories import dense
from support.networks import composed, producers, reading, without_blank_nodes
from support.sessions import compiles, difference, run

from streamsparql import EngineError, Session

seeds = st.integers(0, 2**32)


def check(texts: list[str], data: Data, seed: int) -> None:
    random = Random(seed)
    feeding = producers(random)
    # The order of the triples of one report is not defined, so windows do not count them.
    counts = re.compile("ELEMS|TRIPLES")
    texts = [reading(text, [*feeding.values()], random) for text in texts]
    texts = [text for text in texts if compiles(text) and not counts.search(text)]
    texts += feeding
    random.shuffle(texts)
    queries, pushed = run(texts, without_blank_nodes(data), seed, feeding)
    data = composed(queries, pushed)
    for each in queries:
        found = difference(each, data)
        assert not found, found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_network_is_its_composition_by_hand(family: str) -> None:
    assume_runs(family, 5)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_many_networks_are_their_composition_by_hand(family: str) -> None:
    assume_runs(family, 300)


def assume_runs(family: str, examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.lists(of_family(family), min_size=1, max_size=3), dense, seeds)
    def agree(texts: list[str], over: Data, seed: int) -> None:
        check(texts, over, seed)

    agree()
