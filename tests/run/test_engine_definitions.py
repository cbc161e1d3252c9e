"""Each snapshot agrees with the definition, whatever the query, its data and the way it is run.

Two kinds of random queries. Those of `support/generate.py` combine all features, one dialect at a
time. Those of `support/families.py` are about one kind of operator each, in many forms and over
denser data, so that each operator meets hundreds of cases. A query is run in a random `Mode`
(support/engine.py): replayed or live, in pieces of any size, rewritten or not, cut or not, with
items out of order or not. Then the snapshots are compared at every instant at which the rows begin
or end, just before it, and at every instant at which the content of a window changes.

Definitions are slow, so their data is small. Over longer streams two ways of running a query are
compared with each other.

Not tested here: errors of the definitions (test_engine_pyoxigraph.py and test_engine_w3c.py compare
them with others); errors that need many rows and occur in each way; how early a row is emitted, and
how much state is retained (test_live.py has cases); doubles, on whose last digits no test here
depends; events (test_engine_events.py).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import (
    Data,
    Definition,
    Mode,
    disagreement,
    disordered,
    modes,
    read,
    result,
    run,
)
from support.families import FAMILIES, of_family
from support.generate import DIALECTS, EVERYTHING, queries
from support.histories import data, dense, long_history, short_histories

import streamsparql
from streamsparql.algebra.streams import snapshot_equivalent


def check(text: str, over: Data, mode: Mode) -> None:
    """Check that the engine agrees with the definition."""
    difference = disagreement(text, over, mode)
    assert not difference, difference


# -- all features -------------------------------------------------------------------------------


def _everything(dialect: str) -> st.SearchStrategy[str]:
    return queries(replace(EVERYTHING, dialect=dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_query_agrees_with_the_definition(dialect: str) -> None:
    @settings(max_examples=60)
    @given(_everything(dialect), data, modes)
    def agrees(text: str, over: Data, mode: Mode) -> None:
        check(text, over, mode)

    agrees()


@pytest.mark.long
@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_of_many_queries_agrees_with_the_definition(dialect: str) -> None:
    @settings(max_examples=3000)
    @given(_everything(dialect), data, modes)
    def agrees(text: str, over: Data, mode: Mode) -> None:
        check(text, over, mode)

    agrees()


@settings(max_examples=40)
@given(queries(replace(EVERYTHING, streams=False)), short_histories())
def test_any_query_over_static_data_agrees_with_the_definition(text: str, over: Data) -> None:
    check(text, over._replace(streams={}), Mode())


# -- one kind of operator at a time -------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_operators_agree_with_the_definition(family: str) -> None:
    @settings(max_examples=120)
    @given(of_family(family), dense, modes)
    def agrees(text: str, over: Data, mode: Mode) -> None:
        check(text, over, mode)

    agrees()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_operators_in_many_forms_agree_with_the_definition(family: str) -> None:
    @settings(max_examples=5000)
    @given(of_family(family), dense, modes)
    def agrees(text: str, over: Data, mode: Mode) -> None:
        check(text, over, mode)

    agrees()


@settings(max_examples=100)
@given(of_family("orders"), dense, st.booleans())
def test_snapshot_is_in_the_order_of_order_by(text: str, over: Data, optimize: bool) -> None:
    query = streamsparql.compile(text, optimize=optimize)
    over = over.of(query)
    definition, ours = Definition(query, over), result(query, over)
    for t in definition.borders():
        assert read(query, ours.snapshot(t)) == definition.read(t), f"at {t}: {over}\n{text}"


# -- longer streams -----------------------------------------------------------------------------


def check_ways(text: str, over: Data, mode: Mode) -> None:
    """Check that two ways of running a query have equal results."""
    over = disordered(over, mode.max_delay, mode.seed).of(streamsparql.compile(text))
    one = run(text, over, Mode(optimize=not mode.optimize, max_delay=mode.max_delay))
    other = run(text, over, mode)
    assert one.canonical
    assert snapshot_equivalent(one.rows, other.rows), f"{mode}\n{over}\n{text}"


@pytest.mark.parametrize("family", FAMILIES)
def test_all_ways_agree_over_longer_streams(family: str) -> None:
    @settings(max_examples=8)
    @given(of_family(family), st.integers(0, 2**32).map(long_history), modes)
    def agree(text: str, over: Data, mode: Mode) -> None:
        check_ways(text, over, mode._replace(chunk=mode.chunk * 20))

    agree()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_all_ways_agree_over_many_longer_streams(family: str) -> None:
    @settings(max_examples=300)
    @given(of_family(family), st.integers(0, 2**32).map(long_history), modes)
    def agree(text: str, over: Data, mode: Mode) -> None:
        check_ways(text, over, mode._replace(chunk=mode.chunk * 20))

    agree()
