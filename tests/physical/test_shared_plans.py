"""Queries that differ in constants: one plan over a table of them computes what each computes alone.

A random query becomes a skeleton with some of its constants as parameters. Random instances, with
other constants, are added and removed at random instants of a run in random steps. The rows of each
instance are compared with the definition of its own plan, from its start to its end: whatever the
windows contain, an instance meets all of it (a warm start).

Not covered: sessions, which choose the constants that are shared (tests/run/test_session.py).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.families import FAMILIES, of_family
from support.generate import DIALECTS, EVERYTHING, queries
from support.histories import data, dense
from support.shared_plans import disagreement

from streamsparql.algebra.streams import INFINITY
from streamsparql.physical.batch import Batch
from streamsparql.physical.hidden import QUERY
from streamsparql.physical.operators.access import Clock
from streamsparql.physical.operators.queries import LEASES, QueryTable

seeds = st.integers(0, 2**32)


def check(text: str, over: Data, seed: int) -> None:
    difference = disagreement(text, over, seed)
    assume(difference is not None)
    assert not difference, difference


@pytest.mark.parametrize("family", FAMILIES)
def test_each_instance_of_a_shared_plan_agrees_with_its_definition(family: str) -> None:
    @settings(max_examples=12)
    @given(of_family(family), dense, seeds)
    def agree(text: str, over: Data, seed: int) -> None:
        check(text, over, seed)

    agree()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_instances_of_any_query_agree_with_their_definitions(dialect: str) -> None:
    @settings(max_examples=12)
    @given(queries(replace(EVERYTHING, dialect=dialect)), data, seeds)
    def agree(text: str, over: Data, seed: int) -> None:
        check(text, over, seed)

    agree()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_instances_of_many_shared_plans_agree_with_their_definitions(family: str) -> None:
    @settings(max_examples=1500)
    @given(of_family(family), dense, seeds)
    def agree(text: str, over: Data, seed: int) -> None:
        check(text, over, seed)

    agree()


@pytest.mark.long
@pytest.mark.parametrize("dialect", DIALECTS)
def test_instances_of_many_queries_agree_with_their_definitions(dialect: str) -> None:
    @settings(max_examples=1500)
    @given(queries(replace(EVERYTHING, dialect=dialect)), data, seeds)
    def agree(text: str, over: Data, seed: int) -> None:
        check(text, over, seed)

    agree()


# -- The table of queries


def step(table: QueryTable, watermark: int) -> list[tuple[int, int, int]]:
    nothing = Batch.empty(())
    rows, known = table.step([nothing], [watermark], False)
    assert known == watermark
    return list(zip(rows.columns[QUERY].tolist(), rows.start.tolist(), rows.end.tolist()))


def table_of(*numbers: int, reach: int = 10) -> QueryTable:
    table = QueryTable(Clock(), [], reach)
    for number in numbers:
        table.add(np.array([number]), [], 0)
    return table


def test_rows_of_queries_are_renewed_when_their_lease_ends() -> None:
    table = table_of(-1, -2)
    lease = 10 * LEASES
    assert step(table, 5) == [(-1, 0, 5 + lease), (-2, 0, 5 + lease)]
    assert step(table, 5 + lease - 1) == []
    renewed = step(table, 5 + lease)
    assert [row[:2] for row in renewed] == [(-1, 5 + lease), (-2, 5 + lease)]
    assert renewed[0][2] - renewed[0][1] == 2 * lease, "a lease without removals is longer"


def test_a_lease_with_removals_is_not_longer() -> None:
    table = table_of(-1, -2)
    ((_, _, end), _) = step(table, 5)
    table.remove(np.array([-1]))
    assert step(table, end) == [(-2, end, end + 10 * LEASES)]


def test_a_query_that_is_removed_before_the_next_step_is_never_emitted() -> None:
    table = table_of(-1)
    step(table, 5)
    table.add(np.array([-2]), [], 5)
    assert table.due()
    table.remove(np.array([-2]))
    assert not table.due()
    assert step(table, 6) == []
    assert len(table) == 1


def test_time_may_skip_many_leases() -> None:
    table = table_of(-1)
    ((_, _, end),) = step(table, 5)
    ((_, start, later),) = step(table, 10**15)
    assert (start, later > 10**15) == (end, True)


def test_the_last_lease_has_no_end() -> None:
    table = table_of(-1)
    ((_, _, end),) = step(table, 5)
    assert step(table, INFINITY) == [(-1, end, INFINITY)]
    assert step(table, INFINITY) == []


def test_a_query_starts_after_the_watermark_at_the_earliest_when_it_says_so() -> None:
    table = table_of()
    step(table, 5)
    table.add(np.array([-1]), [], 10**6)
    ((_, start, end),) = step(table, 400)
    assert start == 10**6 < end


def test_leases_over_windows_without_an_end_become_longer() -> None:
    table = table_of(-1, reach=INFINITY)
    ((_, _, end),) = step(table, 5)
    table.remove(np.array([-7]))
    ((_, start, later),) = step(table, end)
    assert later - start == 2 * (end - 5)
