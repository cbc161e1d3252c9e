"""Estimated costs of chains of joins: where each way of computing them is the cheaper one."""

from __future__ import annotations

import pytest
from support.plans import matching, stream

from streamsparql.algebra.access import AccessGraph
from streamsparql.algebra.cost import Costs, Statistics
from streamsparql.algebra.join import Join, Union
from streamsparql.algebra.join_cost import JoinCosts, JoinSide, join_sides
from streamsparql.algebra.match import BasicGraphPattern
from streamsparql.algebra.shape import Distinct
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.window import FixedWindow, NowWindow

A, B, C, X = (Variable(name) for name in "abcx")


def live(rows: float, arrivals: float, **values: float) -> JoinSide:
    return JoinSide(rows, arrivals, {Variable(name): n for name, n in values.items()})


def static(rows: float, **values: float) -> JoinSide:
    return live(rows, 0.0, **values)


def test_the_rows_of_a_join_begin_with_the_last_of_their_parts() -> None:
    both = join_sides(live(100, 1, x=50), live(200, 4, x=20))
    assert both.rows == 400
    assert both.arrivals == pytest.approx(400 * (1 / 100 + 4 / 200))
    assert both.values[X] == 20
    assert join_sides(both, static(20, x=20)).arrivals == pytest.approx(both.arrivals)


def test_the_order_of_inputs_does_not_change_estimates() -> None:
    sides = [live(100, 1, x=50, a=10), live(200, 4, x=20), static(30, a=30)]
    one = join_sides(join_sides(sides[0], sides[1]), sides[2])
    other = join_sides(join_sides(sides[0], sides[2]), sides[1])
    assert one.rows == pytest.approx(other.rows)
    assert one.arrivals == pytest.approx(other.arrivals)


def test_rows_that_live_for_an_instant_are_joined_together_with_large_inputs() -> None:
    now, window = live(1, 1, a=1, x=1), live(30_000, 1, b=20_000, x=3_000)
    coauthors = static(400_000, a=20_000, b=20_000)
    choice = JoinCosts([now, window, coauthors]).choice(((0, 1), 2))
    assert choice.together
    assert choice.reason == (
        "together, as a fixed order may make many rows: about 10 per new row;"
        " 12 operations per new row, in pairs 12"
    )


def test_a_small_result_that_lives_long_is_retained() -> None:
    rare = live(1_000, 0.001, x=1_000)
    frequent = live(1_000, 1, x=250)
    costs = JoinCosts([rare, rare, frequent])
    choice = costs.choice(((0, 1), 2))
    assert not choice.together
    costs = "3.01 operations per new row, together 5"
    assert choice.reason == f"in pairs, as that costs less: {costs}"


def test_a_star_with_one_row_per_key_is_computed_in_pairs() -> None:
    star = [live(1_000, 1, x=1_000, **{name: 1_000}) for name in "abc"]
    choice = JoinCosts(star).choice(((0, 1), 2))
    assert not choice.together
    assert choice.reason == "in pairs, as no order makes many rows: about 1 per new row"


def test_a_chain_without_alternatives_has_nothing_at_stake() -> None:
    ends = [static(1_000, a=10), static(1_000, b=10)]
    assert JoinCosts([live(1_000, 1, a=10, b=10), *ends]).at_stake > 2
    behind = [live(1_000, 1, a=10), static(1_000, a=10, b=10), static(1_000, b=10)]
    assert JoinCosts(behind).at_stake == 0


def test_nothing_is_probed_while_an_input_is_likely_to_be_empty() -> None:
    window, other = live(1_000, 1, x=10), live(1_000, 1, x=10)
    often, seldom = JoinSide(1.0, 1.0, {X: 1.0}), JoinSide(0.001, 0.001, {X: 1.0})
    cost = JoinCosts([window, other, often]).together
    assert JoinCosts([window, other, seldom]).together < cost / 10


def test_inputs_that_share_no_variable_are_joined_last() -> None:
    costs = JoinCosts([live(10, 1, x=10), static(10, b=10), static(1_000, x=10)])
    assert costs.together == pytest.approx(1 + 100 + 100 + 1000)


# -- estimates of plans ----------------------------------------------------------------------------

WINDOW, NOW = FixedWindow(stream(), 1_000), NowWindow(stream())
COSTS = Costs(Statistics(rates={IRI("s"): 2.0}, sizes={None: 500}))


def test_the_rows_of_a_window_begin_at_the_rate_of_its_stream() -> None:
    for window in (WINDOW, NOW):
        assert COSTS.arrivals(window) == 2.0
        pattern = matching("?x p ?y", window)
        assert COSTS.arrivals(Distinct(pattern)) == pytest.approx(0.2)
        assert COSTS.side(pattern).arrivals == pytest.approx(0.2)
    assert COSTS.rows(WINDOW) > COSTS.rows(NOW)


def test_static_rows_never_begin() -> None:
    graph = AccessGraph(background=True)
    assert COSTS.arrivals(BasicGraphPattern((matching("?x p ?y", graph),) * 2)) == 0
    both = Union((matching("?x p ?y", graph), matching("?x p ?y", WINDOW)))
    assert COSTS.arrivals(both) == pytest.approx(0.2)


def test_a_join_renews_its_rows_as_often_as_its_sides() -> None:
    one, other = matching("?x p ?y", WINDOW), matching("?x q ?z", WINDOW)
    joined = Join(one, other)
    renewal = COSTS.arrivals(one) / COSTS.rows(one)
    assert COSTS.arrivals(joined) == pytest.approx(2 * renewal * COSTS.rows(joined))
