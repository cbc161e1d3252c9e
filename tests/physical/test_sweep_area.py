"""Sweep areas, compared with a list of rows that is searched row by row."""

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
from streamsparql.physical.state import key_index, sweep_area
from streamsparql.physical.state.sweep_area import SweepArea

NAMES, OTHERS = ("x", "y", "a"), ("y", "b", "x")
ids = st.sampled_from([0, 1, 1, 2, 3])
rows = st.lists(st.one_of(rows_over([ids] * 3), rows_over([st.integers(1, 2)] * 3)), max_size=12)


INDEXED = {"_BRUTE": -1, "_SMALL": 0}
SEARCH_SETTINGS = {
    "as it is": ({}, {}),
    "indexed": (INDEXED, {}),
    "by time": (INDEXED, {"_FEW": 0, "_WASTE": 0.5}),
    "exact searches": (INDEXED, {"_FEW": 0, "_WASTE": 0}),
}
"""Thresholds of areas and of indexes that select each way of searching, even for few rows."""


@contextmanager
def search_settings(setting: str, block: int = intervals.BLOCK) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "BLOCK", block)
        for module, values in zip((sweep_area, key_index), SEARCH_SETTINGS[setting], strict=True):
            for name, value in values.items():
                patch.setattr(module, name, value)
        yield


def compatible(one: Row, other: Row, sharing: bool) -> bool:
    """Check by definition whether a row of the area and a probe are compatible."""
    (x, y, _), (y2, _, x2) = one.ids, other.ids
    pairs = [(x, x2), (y, y2)]
    return all(a == b or 0 in (a, b) for a, b in pairs) and (
        not sharing or any(a and b for a, b in pairs)
    )


def overlap(one: Row, other: Row) -> bool:
    return max(one.start, other.start) < min(one.end, other.end)


def query(area: SweepArea, probes: list[Row], sharing: bool) -> Counter[tuple[int, Row]]:
    """Query the area; return the pairs of a probe's position and a row, with multiplicities."""
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
@pytest.mark.parametrize("setting", SEARCH_SETTINGS)
@settings(max_examples=150)
@given(steps=st.lists(step, max_size=14), block=st.sampled_from([2, intervals.BLOCK]))
def test_an_area_returns_the_matches_of_a_list_of_rows(
    setting: str, exact: bool, steps: list[tuple[str, list[Row], int]], block: int
) -> None:
    with search_settings(setting, block):
        apply_steps(exact, steps)


def apply_steps(exact: bool, steps: list[tuple[str, list[Row], int]]) -> None:
    """Apply steps to an area and to a list; compare the results of queries."""
    area, model, purged = SweepArea(NAMES, ["x", "y"], exact), list[Row](), -1
    for action, step_rows, t in steps:
        if action == "insert":
            alive = [row for row in step_rows if row.end > purged]
            area.insert(batch_of(NAMES, alive))
            model += alive
        elif action in ("query", "share"):
            sharing = action == "share"
            probes = [row for row in step_rows if row.start >= purged]
            matches = equal_keys if exact else compatible
            expected = Counter(
                (i, row)
                for (i, probe), row in product(enumerate(probes), model)
                if overlap(row, probe) and matches(row, probe, sharing)
            )
            assert query(area, probes, sharing) == expected
        else:
            area.purge(t)
            purged = max(purged, t)
            model = [row for row in model if row.end > t]
        area._check()
        assert len(model) <= len(area) <= 2 * len(model)


def equal_keys(one: Row, other: Row, sharing: bool) -> bool:
    return (one.ids[0], one.ids[1]) == (other.ids[2], other.ids[0])


def test_keys_in_the_same_bucket_are_distinguished() -> None:
    area = SweepArea(("x",), ("x",))
    keys = np.arange(1, 3001) * 7919
    validity = np.zeros(3000, np.int64), np.full(3000, 9)
    area.insert(Batch({"x": keys}, *validity))
    probes = np.concatenate([keys[::2], keys[::2] + 1])
    matches = list(area.query(Batch({"x": probes}, *validity)))
    assert sum(len(i) for i, _, _ in matches) == 1500
    assert all((probes[i] == rows.columns["x"][j]).all() for i, rows, j in matches)
