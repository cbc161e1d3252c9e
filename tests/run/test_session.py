"""Sessions: each query has the rows of the query alone, whatever runs beside it.

Random sets of queries, some of which differ in constants or in names only, are registered and
removed at random instants, while items are pushed in any batching (support/sessions.py).
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.families import FAMILIES, of_family
from support.histories import dense
from support.sessions import compiles, difference, run, run_instances, variants

seeds = st.integers(0, 2**32)


def check(texts: list[str], over: Data, seed: int) -> None:
    random = Random(seed)
    several = [text for each in texts for text in variants(each, random, random.randint(1, 4))]
    random.shuffle(several)
    queries, pushed = run(several, over, seed)
    for each in queries:
        found = difference(each, pushed)
        assert not found, found


@pytest.mark.parametrize("family", FAMILIES)
def test_each_query_of_a_session_is_as_alone(family: str) -> None:
    @settings(max_examples=5)
    @given(st.lists(of_family(family), min_size=1, max_size=3), dense, seeds)
    def agree(texts: list[str], over: Data, seed: int) -> None:
        check(texts, over, seed)

    agree()


def check_instances(text: str, over: Data, seed: int) -> None:
    assume(":a" in text and compiles(text.replace(":a", "$who")))
    instances, pushed = run_instances(text, over, seed)
    for each in instances:
        found = difference(each, pushed)
        assert not found, found


@pytest.mark.parametrize("family", FAMILIES)
def test_each_instance_of_a_query_is_as_alone(family: str) -> None:
    @settings(max_examples=5)
    @given(of_family(family), dense, seeds)
    def agree(text: str, over: Data, seed: int) -> None:
        check_instances(text, over, seed)

    agree()
