"""A sweep area is a list of rows that is searched well: it always answers as the list would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.steps import Row, batch_of, rows_of, rows_over

from streamsparql.physical.batch import Batch
from streamsparql.physical.kernels import intervals
from streamsparql.physical.state import sweep_area
from streamsparql.physical.state.sweep_area import SweepArea

NAMES, OTHERS = ("x", "y", "a"), ("y", "b", "x")
ids = st.sampled_from([0, 1, 1, 2, 3])
rows = st.lists(st.one_of(rows_over([ids] * 3), rows_over([st.integers(1, 2)] * 3)), max_size=12)


WAYS = {
    "as it is": {},
    "indexed": {"_BRUTE": -1, "_SMALL": 0},
    "by time": {"_BRUTE": -1, "_SMALL": 0, "_FEW": 0, "_WASTE": 0.5},
    "exact searches": {"_BRUTE": -1, "_SMALL": 0, "_FEW": 0, "_WASTE": 0},
}
"""The ways of searching, also where few rows would not be worth them."""


@contextmanager
def searched(way: str, block: int = intervals.BLOCK) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "BLOCK", block)
        for name, value in WAYS[way].items():
            patch.setattr(sweep_area, name, value)
        yield


def compatible(one: Row, other: Row, sharing: bool) -> bool:
    """A row of the area and a probe, by the definition."""
    (x, y, _), (y2, _, x2) = one.ids, other.ids
    pairs = [(x, x2), (y, y2)]
    return all(a == b or 0 in (a, b) for a, b in pairs) and (
        not sharing or any(a and b for a, b in pairs)
    )


def overlap(one: Row, other: Row) -> bool:
    return max(one.start, other.start) < min(one.end, other.end)


def found(area: SweepArea, probes: list[Row], sharing: bool) -> Counter[tuple[int, Row]]:
    """What the area answers: which probe meets which row."""
    pairs: Counter[tuple[int, Row]] = Counter()
    for i, batch, j in area.query(batch_of(OTHERS, probes), sharing):
        assert len(i) == len(j) > 0
        pairs.update(zip(i.tolist(), rows_of(batch.take(j)), strict=True))
    return pairs


step = st.tuples(
    st.sampled_from(["insert", "insert", "query", "query", "share", "purge"]),
    rows,
    st.integers(0, 20),
)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=150)
@given(steps=st.lists(step, max_size=14), block=st.sampled_from([2, intervals.BLOCK]))
def test_an_area_answers_as_a_list_of_rows_would(
    way: str, exact: bool, steps: list[tuple[str, list[Row], int]], block: int
) -> None:
    with searched(way, block):
        play(exact, steps)


def play(exact: bool, steps: list[tuple[str, list[Row], int]]) -> None:
    """Does the same to an area and to a list, and compares what they answer."""
    area, model, purged = SweepArea(NAMES, ["x", "y"], exact), list[Row](), -1
    for what, given_rows, t in steps:
        if what == "insert":
            alive = [row for row in given_rows if row.end > purged]
            area.insert(batch_of(NAMES, alive))
            model += alive
        elif what in ("query", "share"):
            sharing = what == "share"
            probes = [row for row in given_rows if row.start >= purged]
            meets = same if exact else compatible
            expected = Counter(
                (i, row)
                for (i, probe), row in product(enumerate(probes), model)
                if overlap(row, probe) and meets(row, probe, sharing)
            )
            assert found(area, probes, sharing) == expected
        else:
            area.purge(t)
            purged = max(purged, t)
            model = [row for row in model if row.end > t]
        area._check()
        assert len(model) <= len(area) <= 2 * len(model)


def same(one: Row, other: Row, sharing: bool) -> bool:
    return (one.ids[0], one.ids[1]) == (other.ids[2], other.ids[0])


def test_keys_that_share_a_bucket_are_told_apart() -> None:
    area = SweepArea(("x",), ("x",))
    keys = np.arange(1, 3001) * 7919
    forever = np.zeros(3000, np.int64), np.full(3000, 9)
    area.insert(Batch({"x": keys}, *forever))
    asked = np.concatenate([keys[::2], keys[::2] + 1])
    found = list(area.query(Batch({"x": asked}, *forever)))
    assert sum(len(i) for i, _, _ in found) == 1500
    assert all((asked[i] == rows.columns["x"][j]).all() for i, rows, j in found)
