"""Checkpoints: what was saved and restored at any moment goes on as what was not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.families import FAMILIES, of_family
from support.histories import dense
from support.networks import producers, reading
from support.sessions import compiles, variants
from support.twins import run_twin_instances, run_twins

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

seeds = st.integers(0, 2**32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.ckpt"


# -- Sessions --------------------------------------------------------------------------------------


def check_sessions(family: str, file: Path, examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.lists(of_family(family), min_size=1, max_size=3), dense, seeds)
    def agree(texts: list[str], data: Data, seed: int) -> None:
        random = Random(seed)
        several = [text for each in texts for text in variants(each, random, random.randint(1, 4))]
        random.shuffle(several)
        run_twins(several, data, seed, file)

    agree()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restored_session_goes_on_as_an_undisturbed_one(family: str, file: Path) -> None:
    check_sessions(family, file, 6)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_many_restored_sessions_go_on_as_undisturbed_ones(family: str, file: Path) -> None:
    check_sessions(family, file, 300)


def check_instances(family: str, file: Path, examples: int) -> None:
    @settings(max_examples=examples)
    @given(of_family(family), dense, seeds)
    def agree(text: str, data: Data, seed: int) -> None:
        text = re.sub(r":a\b", "$who", text)
        assume("$who" in text and compiles(text))
        run_twin_instances(text, data, seed, file)

    agree()


@pytest.mark.parametrize("family", FAMILIES)
def test_instances_of_a_restored_session_go_on(family: str, file: Path) -> None:
    check_instances(family, file, 4)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_instances_of_many_restored_sessions_go_on(family: str, file: Path) -> None:
    check_instances(family, file, 200)


def check_networks(family: str, file: Path, examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.lists(of_family(family), min_size=1, max_size=3), dense, seeds)
    def agree(texts: list[str], data: Data, seed: int) -> None:
        random = Random(seed)
        feeding = producers(random)
        counts = re.compile("ELEMS|TRIPLES")  # the order of the triples of a report is not defined
        texts = [reading(text, [*feeding.values()], random) for text in texts]
        texts = [text for text in texts if compiles(text) and not counts.search(text)]
        texts += feeding
        random.shuffle(texts)
        run_twins(texts, data, seed, file, feeding)

    agree()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restored_network_goes_on_as_an_undisturbed_one(family: str, file: Path) -> None:
    check_networks(family, file, 4)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_many_restored_networks_go_on_as_undisturbed_ones(family: str, file: Path) -> None:
    check_networks(family, file, 200)
