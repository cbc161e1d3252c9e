"""Streams are sorted: late items, the guard against bogus stamps, the clock of several streams.

The reference below implements the rules of `sources/disorder.py` literally, one item at a time,
without chunks or arrays. It does not see the terms of rows; test_sources.py checks these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsparql.errors import SourceError
from streamsparql.physical.batch import TRIPLE
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import starts_of
from streamsparql.physical.operator import INFINITY
from streamsparql.sources.chunk import Chunk
from streamsparql.sources.clock import StreamClock, interleave
from streamsparql.sources.disorder import MAX_JUMP, Sorter
from streamsparql.text.numbers import lag


def chunk(stamps: list[int], first: int = 1, rows: list[bool] | None = None) -> Chunk:
    """Return items with these stamps; the ids of a row are its position; the rest are prefiltered."""
    positions = np.arange(first, first + len(stamps))
    kept = None if rows is None else np.flatnonzero(np.array(rows, np.bool_))
    ids = positions if kept is None else positions[kept]
    when = np.array(stamps, np.int64)
    return Chunk(
        ids, ids, ids, None, when, kept, positions, len(stamps), [], lambda k: int(positions[k])
    )


def cut(stamps: list[int], cuts: list[int], rows: list[bool]) -> Iterator[Chunk]:
    """Yield the items in chunks that end at the cuts."""
    ends = sorted({c for c in cuts if c < len(stamps)} | {len(stamps)})
    begin = 0
    for end in ends:
        part = rows[begin:end]
        yield chunk(stamps[begin:end], begin + 1, None if all(part) else part)
        begin = end


class Reference:
    """The rules, applied to one item at a time."""

    def __init__(self, max_delay: int, max_jump: int | None) -> None:
        self.delay, self.max_jump, self.time = max_delay, max_jump, -1
        self.quarantine: list[tuple[int, int]] = []
        self.accepted: list[tuple[int, int]] = []
        self.rejected: dict[int, str] = {}

    def push(self, position: int, stamp: int) -> None:
        watermark = max(0, self.time - self.delay)
        if stamp < watermark:
            self.rejected[position] = f"late by {lag(watermark - stamp)}"
        elif self.max_jump is None:
            self.accept(position, stamp)
        elif self.quarantine and stamp >= min(self.quarantine)[0] - self.delay - self.max_jump:
            for held, where in sorted(self.quarantine):
                if held <= stamp + self.delay + self.max_jump:
                    self.accept(where, held)
                else:
                    self.reject(where)
            self.quarantine = []
            self.push(position, stamp)
        elif self.time < 0 or stamp > self.time + self.delay + self.max_jump:
            if len(self.quarantine) == 16:
                self.reject(max(self.quarantine)[1])
                self.quarantine.remove(max(self.quarantine))
            self.quarantine.append((stamp, position))
        else:
            for _, where in self.quarantine:
                self.reject(where)
            self.quarantine = []
            self.accept(position, stamp)

    def end(self) -> None:
        for stamp, position in sorted(self.quarantine):
            self.accept(position, stamp)

    def accept(self, position: int, stamp: int) -> None:
        self.accepted.append((stamp, position))
        self.time = max(self.time, stamp)

    def reject(self, position: int) -> None:
        self.rejected[position] = "implausible"


def reference(stamps: list[int], max_delay: int, max_jump: int | None) -> Reference:
    expected = Reference(max_delay, max_jump)
    for k, stamp in enumerate(stamps):
        expected.push(k + 1, stamp)
    expected.end()
    return expected


def sorted_by(sorter: Sorter, chunks: Iterator[Chunk]) -> list[tuple[int, int]]:
    """Return what a sorter releases, step by step, as pairs of stamp and position."""
    released = []
    before = 0
    for part in chunks:
        sorter.push(part)
        assert sorter.watermark >= before
        batch = sorter.release(sorter.watermark)
        assert all(before <= start <= sorter.watermark for start in batch.start)
        before = sorter.watermark
        released += pairs(batch)
    sorter.advance(INFINITY)
    return released + pairs(sorter.release(INFINITY))


def pairs(batch) -> list[tuple[int, int]]:
    assert (batch.end == batch.start + 1).all()
    return list(zip(batch.start.tolist(), batch.columns[TRIPLE[0]].tolist(), strict=True))


def reasons(sorter: Sorter) -> dict[int, str]:
    return {r.position: r.reason.split(" timestamp")[0] for r in sorter.rejects}


STAMPS = st.lists(
    st.one_of(st.integers(0, 40), st.integers(0, 400), st.sampled_from([10_000, 10_003, 20_000])),
    max_size=40,
)
NEARLY_ORDERED = st.lists(st.integers(-3, 9), max_size=60).map(
    lambda steps: [max(0, int(t)) for t in np.cumsum(steps)]
)
CUTS = st.lists(st.integers(1, 60), max_size=6)
DELAY = st.integers(0, 30)
GUARD = st.one_of(st.none(), st.integers(0, 60), st.just(MAX_JUMP))


@given(STAMPS | NEARLY_ORDERED, CUTS, DELAY, GUARD, st.data())
def test_sorter_agrees_with_the_rules_for_any_cut_into_chunks(stamps, cuts, delay, max_jump, data):
    rows = data.draw(st.lists(st.booleans(), min_size=len(stamps), max_size=len(stamps)))
    expected = reference(stamps, delay, max_jump)
    sorter = Sorter("s", delay, max_jump=max_jump)
    released = sorted_by(sorter, cut(stamps, cuts, rows))
    assert released == sorted(pair for pair in expected.accepted if rows[pair[1] - 1])
    assert reasons(sorter) == {k: why for k, why in expected.rejected.items() if rows[k - 1]}
    assert sorter.late == sum("late" in why for why in reasons(sorter).values())
    assert sorter.seen == expected.time
    assert sorter.least == min((stamp for stamp, _ in expected.accepted), default=INFINITY)
    assert len(sorter) == 0


@given(NEARLY_ORDERED, CUTS, GUARD, st.integers(1, 10**9))
def test_stream_that_keeps_its_bound_loses_no_item(steps, cuts, max_jump, scale):
    """However small the jump: each item confirms the quarantined items before it."""
    stamps = [t * scale for t in steps]
    delay = max((max(stamps[: k + 1]) - t for k, t in enumerate(stamps)), default=0)
    sorter = Sorter("s", delay, max_jump=max_jump)
    released = sorted_by(sorter, cut(stamps, cuts, [True] * len(stamps)))
    assert not sorter.rejects
    assert released == sorted(zip(stamps, range(1, len(stamps) + 1), strict=True))


@given(NEARLY_ORDERED, st.integers(0, 59), CUTS, DELAY)
def test_one_bogus_stamp_changes_no_other_item(stamps, where, cuts, delay):
    where = min(where, len(stamps))
    if len(stamps) < 2:
        return
    plain, guarded = Sorter("s", delay, max_jump=None), Sorter("s", delay)
    without = [t for t, _ in sorted_by(plain, cut(stamps, cuts, [True] * len(stamps)))]
    bogus = stamps[:where] + [4_070_908_800_000] + stamps[where:]
    stamped = [t for t, _ in sorted_by(guarded, cut(bogus, cuts, [True] * len(bogus)))]
    accepted = [t for t in stamped if t < 4_070_908_800_000]
    assert accepted == without
    assert guarded.late == plain.late
    if where < len(stamps) - 1 or stamped == accepted:
        implausible = [r.position for r in guarded.rejects if "implausible" in r.reason]
        assert implausible in ([where + 1], [])


def test_bogus_stamp_in_the_middle_is_rejected_with_its_reason():
    sorter = Sorter("s")
    sorter.push(chunk([10, 20, 4_070_908_800_000, 30, 40]))
    (reject,) = sorter.rejects
    assert (reject.position, reject.item) == (3, 3)
    assert "4070908800000" in reject.reason
    assert sorter.watermark == 40


def test_bogus_first_stamp_is_rejected():
    sorter = Sorter("s")
    sorter.push(chunk([4_070_908_800_000, 10, 11]))
    assert sorter.watermark == 11
    assert [r.position for r in sorter.rejects] == [1]


def test_real_gap_is_accepted_once_it_is_confirmed():
    sorter = Sorter("s")
    night = 3 * MAX_JUMP
    sorter.push(chunk([10, 20, night]))
    assert (sorter.watermark, len(sorter)) == (20, 3)
    sorter.push(chunk([night + 5], 4))
    assert sorter.watermark == night + 5
    assert not sorter.rejects


def test_without_the_guard_one_bogus_stamp_makes_all_others_late():
    sorter = Sorter("s", max_jump=None)
    sorter.push(chunk([10, 4_070_908_800_000, 30, 40]))
    assert [r.reason.split(" by")[0] for r in sorter.rejects] == ["late", "late"]


def test_advance_confirms_quarantined_items():
    sorter = Sorter("s")
    sorter.push(chunk([5 * MAX_JUMP]))
    assert sorter.watermark == 0
    sorter.advance(5 * MAX_JUMP)
    assert pairs(sorter.release(sorter.watermark)) == [(5 * MAX_JUMP, 1)]


def test_items_below_an_announced_time_are_late():
    sorter = Sorter("s", max_delay=50)
    sorter.advance(100)
    sorter.push(chunk([99, 100]))
    assert reasons(sorter) == {1: "late by 1 ms"}


def test_first_late_item_of_a_strict_run_is_an_error():
    sorter = Sorter("plant", strict=True)
    with pytest.raises(SourceError, match="plant, item 2: late by 10 ms: 2"):
        sorter.push(chunk([20, 10]))


def test_prefiltered_items_advance_the_watermark_and_are_never_late():
    sorter = Sorter("s")
    sorter.push(chunk([20, 90, 10, 50], rows=[True, False, False, True]))
    assert (sorter.watermark, reasons(sorter)) == (90, {4: "late by 40 ms"})


def test_events_are_sorted_by_their_ends_and_keep_their_starts():
    sorter = Sorter("s", max_delay=100, events=True)
    items = chunk([30, 20, 25])
    items.since = np.array([5, 20, 1])
    sorter.push(items)
    sorter.advance(INFINITY)
    batch = sorter.release(INFINITY)
    assert batch.start.tolist() == [20, 25, 30]
    assert starts_of(batch.columns[SINCE]).tolist() == [20, 1, 5]


def test_terms_of_retained_items_are_reported():
    sorter = Sorter("s", max_delay=100)
    sorter.push(chunk([30, 20, 9 * MAX_JUMP], 7))
    assert {int(i) for ids in sorter.retained_ids() for i in ids} == {7, 8, 9}


# -- several streams ------------------------------------------------------------------------------


def test_idle_stream_is_left_out_of_the_watermark():
    clock = StreamClock(["a", "b"], idle=100)
    clock.advance("a", 1000)
    clock.advance("b", 910)
    clock.advance("a", 1099)
    assert (clock.watermark(), clock.silent()) == (910, [])
    clock.advance("a", 1100)
    assert (clock.watermark(), clock.silent()) == (1100, ["b"])
    clock.advance("b", 920)
    assert clock.silent() == []
    assert clock.watermark() == 1100


def test_without_idle_a_silent_stream_holds_the_watermark():
    clock = StreamClock(["a", "b"])
    clock.advance("a", 10**12)
    assert (clock.watermark(), clock.silent()) == (0, [])


def test_silence_is_measured_from_the_first_report_of_another_stream():
    """Epochs are large: the first stamp of one stream does not make the other idle."""
    clock = StreamClock(["a", "b"], idle=100)
    clock.advance("a", 0)
    clock.advance("a", 1_600_000_000_000)
    assert clock.silent() == []
    clock.advance("a", 1_600_000_000_100)
    assert clock.silent() == ["b"]


def test_ended_stream_is_left_out_of_the_watermark():
    clock = StreamClock(["a", "b"])
    clock.advance("a", 50)
    clock.end("b")
    assert (clock.watermark(), clock.behind()) == (50, "a")
    clock.end("a")
    assert (clock.watermark(), clock.behind()) == (INFINITY, None)


@given(st.lists(NEARLY_ORDERED, min_size=1, max_size=3), st.integers(1, 20), DELAY)
def test_several_streams_are_read_side_by_side(streams, size, delay):
    names = [f"s{k}" for k in range(len(streams))]
    sorters = {name: Sorter(name, delay) for name in names}
    readers = {
        name: cut(stamps, list(range(size, 60, size)), [True] * len(stamps))
        for name, stamps in zip(names, streams, strict=True)
    }
    released: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    before = 0
    for batches, watermark in interleave(readers, sorters):
        assert watermark >= before
        for name, batch in batches.items():
            assert all(before <= start <= watermark for start in batch.start)
            released[name] += pairs(batch)
        before = watermark
    assert before == INFINITY
    for name, stamps in zip(names, streams, strict=True):
        assert released[name] == sorted(reference(stamps, delay, MAX_JUMP).accepted)


def test_reading_side_by_side_retains_few_rows():
    """Rows of a dense stream do not accumulate while a sparse one is read."""
    size, most = 100, 0
    sorters = {"dense": Sorter("dense"), "sparse": Sorter("sparse")}
    dense = (chunk(list(range(k, k + size)), k + 1) for k in range(0, 10_000, size))
    sparse = (
        chunk(list(range(k, k + 100 * size, 100)), k + 1) for k in range(0, 10_000, 100 * size)
    )
    for _ in interleave({"dense": dense, "sparse": sparse}, sorters):
        most = max(most, sum(map(len, sorters.values())))
    assert most <= 3 * size


@pytest.mark.parametrize("shape", ["ties", "backwards", "gaps"])
def test_long_chunks_of_any_shape_are_sorted_quickly(shape):
    n = 20_000
    stamps = {
        "ties": [7] * n,
        "backwards": list(range(n, 0, -1)),
        "gaps": [k * 10 * MAX_JUMP for k in range(n)],
    }[shape]
    sorter = Sorter("s")
    released = sorted_by(sorter, iter([chunk(stamps)]))
    assert len(released) + len(sorter.rejects) == n
    assert len(released) == (1 if shape == "backwards" else n)


@pytest.mark.long
@given(st.lists(st.integers(0, 3000), max_size=400), CUTS, DELAY, GUARD)
def test_long_streams_agree_with_the_rules(stamps, cuts, delay, max_jump):
    expected = reference(stamps, delay, max_jump)
    sorter = Sorter("s", delay, max_jump=max_jump)
    assert sorted_by(sorter, cut(stamps, cuts, [True] * len(stamps))) == sorted(expected.accepted)
    assert reasons(sorter) == expected.rejected
