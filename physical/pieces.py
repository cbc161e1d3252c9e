"""Kernels that sweep over change points per key: pure functions over arrays.

Rows of one key overlap and adjoin in any way; what is wanted is where, and how often, the key
holds. Each row is two events, one that adds its count and one that takes it away. In order of key
and time a running sum is the multiplicity, of all keys in one pass: each key's events sum to zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsparql.physical.batch import IntArray
from streamsparql.physical.intervals import Clock, firsts
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.slots import order_by


class Levels(NamedTuple):
    """Rows in canonical form: `row` is the place of some row that equals it."""

    row: IntArray
    start: IntArray
    end: IntArray
    level: IntArray
    """The k-th level of a row holds exactly where its multiplicity is k or more."""


def coalesced(
    keys: IntArray, start: IntArray, end: IntArray, count: IntArray | None = None
) -> Levels:
    """The canonical form by level sets of rows that are equal where their keys are, by start.

    >>> both = coalesced(np.array([5, 5]), np.array([0, 4]), np.array([6, 10]))
    >>> both.start.tolist(), both.end.tolist(), both.level.tolist()
    ([0, 4], [10, 6], [1, 2])
    """
    order = np.argsort(keys, kind="stable")
    group = np.cumsum(firsts(keys[order])) - 1
    some = order[firsts(group)]
    start, end = start[order], end[order]
    times = np.concatenate([start, end])
    clock = Clock(times[times < INFINITY], len(some))
    adds = np.ones(len(keys), np.int64) if count is None else count[order]
    point = np.concatenate([group, group]) * clock.span + clock.number(times)
    at = np.argsort(point, kind="stable")
    point, times = point[at], times[at]
    last = np.append(firsts(point)[1:], True)
    depth = np.cumsum(np.concatenate([adds, -adds])[at])[last]
    return _paired(some, point[last] // clock.span, times[last], depth)


def _paired(some: IntArray, group: IntArray, times: IntArray, depth: IntArray) -> Levels:
    """Levels from the multiplicities at change points: the end of each is the next that closes it.

    Within a level of a group, what opens and what closes it take turns.
    """
    before = np.concatenate([[0], depth[:-1]])
    low, high = np.minimum(before, depth), np.maximum(before, depth)
    deepest = np.maximum.reduceat(depth, np.flatnonzero(firsts(group)))
    offset = np.cumsum(deepest) - deepest
    times = np.repeat(times, high - low)
    point = np.repeat(np.arange(len(depth)), high - low)
    level = np.arange(len(point)) - np.repeat(np.cumsum(high - low) - high, high - low)
    order = order_by(offset[group[point]] + level, int(deepest.sum()) + 1)
    opens, closes = order[::2], order[1::2]
    back = np.argsort(times[opens], kind="stable")
    opens, closes = opens[back], closes[back]
    return Levels(some[group[point[opens]]], times[opens], times[closes], level[opens] + 1)
