"""Streams, snapshots, phi, and the canonical form of a physical stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamsparql.algebra.streams import (
    INFINITY,
    Element,
    Snapshot,
    change_points,
    coalesce,
    phi,
    snapshot,
    snapshot_equivalent,
)

times = st.integers(0, 12)
elements = st.builds(
    lambda item, start, length: Element(item, start, INFINITY if length > 10 else start + length),
    st.sampled_from("ab"),
    times,
    st.integers(1, 12),
)
streams = st.lists(elements, max_size=8)


def test_an_interval_is_right_open():
    element = Element("x", 3, 5)
    assert [t for t in range(8) if element.holds(t)] == [3, 4]


def test_a_snapshot_contains_multiplicities():
    stream = [Element("x", 0, 9), Element("x", 2, 4), Element("y", 3, 4)]
    assert snapshot(stream, 3) == Snapshot([("x", 2), ("y", 1)])
    assert phi(stream)(3) == snapshot(stream, 3)
    assert len(snapshot(stream, 3)) == 3


def test_equality_of_snapshots_ignores_their_order():
    one = Snapshot([("a", 1), ("b", 1), ("a", 1)], ordered=True)
    assert list(one) == ["a", "b", "a"]
    assert one == Snapshot.of("aab")
    assert one != Snapshot.of("ab")


@given(streams)
def test_coalescing_changes_no_snapshot(stream):
    for t in [*change_points(stream), 30]:
        assert snapshot(coalesce(stream), t) == snapshot(stream, t)


@given(streams, st.randoms())
def test_the_canonical_form_depends_on_phi_only(stream, random):
    cut = []
    for item, start, end in stream:
        middle = random.randint(start, min(end, start + 10))
        cut += [Element(item, start, middle), Element(item, middle, end)]
    random.shuffle(cut)
    cut = [element for element in cut if element.start < element.end]
    assert sorted(coalesce(cut)) == sorted(coalesce(stream))
    assert snapshot_equivalent(cut, stream)


@given(streams)
def test_canonical_rows_have_maximal_validity(stream):
    rows = coalesce(stream)
    ends = {(row.item, row.end) for row in rows}
    assert not any((row.item, row.start) in ends for row in rows)
    assert rows == sorted(rows, key=lambda row: row.start)


@given(streams, streams)
def test_equivalent_streams_have_the_same_snapshots(one, other):
    instants = {*change_points(one), *change_points(other), 30}
    same = all(snapshot(one, t) == snapshot(other, t) for t in instants)
    assert snapshot_equivalent(one, other) == same


@given(streams)
def test_a_snapshot_changes_at_change_points_only(stream):
    points = change_points(stream)
    for t in range(30):
        before = max((p for p in points if p <= t), default=None)
        expected = Snapshot() if before is None else snapshot(stream, before)
        assert snapshot(stream, t) == expected
