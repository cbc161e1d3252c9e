"""Reports: at each instant of a grid the snapshot, or its difference from the one before.

Random queries over random streams. The expected report is computed by the definition, snapshot by
snapshot: of stepped windows the one at the report's instant, of live-edge windows the one just
before it (R15). The engine emits reports in three ways, which must agree in every instant and row:
with all intervals aligned to the reports, from the rows of a run, and live.

Not tested here: how early a live report is emitted (test_live.py has cases).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import (
    Cells,
    Data,
    Definition,
    Mode,
    disordered,
    live_rows,
    modes,
    read,
    result,
    settings_of,
    windows,
)
from support.families import of_family
from support.histories import dense

import streamsparql
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.window import FixedWindow, SlidingDeltaWindow, SteppedWindow

Report = tuple[int, Counter[Cells]]

FAMILIES = [
    "windows",
    "joins",
    "optionals",
    "minus",
    "exists",
    "sets",
    "groups",
    "slices",
    "triples",
]


def closes(query: streamsparql.Query) -> bool:
    """Return whether reports show the snapshot before them: all windows on a grid have a live edge."""
    kinds = {isinstance(w, SteppedWindow) for w in windows(query.logical) if _on_grid(w)}
    return kinds == {False}


def _on_grid(window: object) -> bool:
    return isinstance(window, SlidingDeltaWindow | FixedWindow | SteppedWindow)


class Horizon(NamedTuple):
    """The part of time that has results."""

    start: int | None = None
    end: int | None = None


class Oracle:
    """The reports by the definition."""

    def __init__(
        self, query: streamsparql.Query, data: Data, max_delay: int, horizon: Horizon
    ) -> None:
        self.definition = Definition(query, data)
        self.lag = int(closes(query))
        self.begin = self.definition.start if horizon.start is None else horizon.start
        self.end = INFINITY if horizon.end is None else horizon.end
        rows = result(query, data, Mode(max_delay=max_delay), **horizon._asdict())
        edges = [t for row in rows for t in (row.start, row.end)]
        self.changes = {t for t in edges if t < INFINITY}  # test_engine_definitions.py checks them
        self.seen = max(data.stamps, default=-1)

    def shown(self, t: int) -> Counter[Cells]:
        """Return a snapshot within the horizon."""
        return self.definition.at(t) if self.begin <= t < self.end else Counter()

    def periodic(self, kind: str, every: int, origin: int) -> Iterator[Report]:
        """Yield a report at each instant of a grid, up to the last that must be emitted.

        This is the one that shows the last item, or a later one in which something changes.
        """

        def label(t: int) -> int:
            return -((origin - t - self.lag) // every) * every + origin

        last = label(max(self.changes | {self.seen}))
        grid = [r for r in range(label(self.begin), last + 1, every) if r - self.lag < self.end]
        shown = {r: self.shown(r - self.lag) for r in (label(self.begin) - every, *grid)}
        while grid and grid[-1] > label(self.seen) and shown[grid[-1]] == shown[grid[-1] - every]:
            grid.pop()
        for r in grid:
            yield r, difference(kind, shown[r], shown[r - every])

    def at_changes(self, kind: str) -> Iterator[Report]:
        """Yield a report at each change."""
        for t in sorted(self.changes | self.definition.borders()):
            now, before = self.shown(t), self.shown(t - 1)
            if now != before and t < self.end:
                report = difference(kind, now, before)
                if kind == "rstream" or report:
                    yield t, report


def difference(kind: str, now: Counter[Cells], before: Counter[Cells]) -> Counter[Cells]:
    """Return the report of a snapshot, by its difference from the one before."""
    return {"rstream": now, "istream": now - before, "dstream": before - now}[kind]


def bags(query: streamsparql.Query, reports: Any) -> list[Report]:
    """Return reports as users read them, in a form that can be compared."""
    return [(r, _bag(query, rows)) for r, rows in reports]


def _bag(query: streamsparql.Query, shown: Any) -> Counter[Cells]:
    if query.form == "ask":  # a report of ASK that shows nothing is None
        return Counter() if shown is None else Counter([shown])
    return Counter(read(query, shown))


kinds = st.sampled_from(["rstream", "istream", "dstream"])
horizons = st.builds(
    Horizon, st.sampled_from([None, None, 3, -5]), st.sampled_from([None, None, 16])
)


@pytest.mark.parametrize("family", FAMILIES)
def test_periodic_reports_agree_with_the_definition(family: str) -> None:
    @settings(max_examples=40)
    @given(of_family(family), dense, modes, kinds, st.integers(1, 12), horizons, st.integers(0, 5))
    def agree(
        text: str, data: Data, mode: Mode, kind: str, every: int, horizon: Horizon, origin: int
    ) -> None:
        check(text, data, mode, kind, every, horizon, origin)

    agree()


@pytest.mark.parametrize("family", FAMILIES)
def test_default_reports_agree_with_the_definition(family: str) -> None:
    """The query's own period; without one, at each change."""

    @settings(max_examples=40)
    @given(of_family(family), dense, modes, kinds, horizons, st.integers(0, 5))
    def agree(text: str, data: Data, mode: Mode, kind: str, horizon: Horizon, origin: int) -> None:
        check(text, data, mode, kind, None, horizon, origin)

    agree()


def check(
    text: str, data: Data, mode: Mode, kind: str, every: int | None, horizon: Horizon, origin: int
) -> None:
    """Check that the reports of all ways are those of the definition."""
    query = streamsparql.compile(text, origin=origin, optimize=mode.optimize)
    data = disordered(data, mode.max_delay, mode.seed).of(query)
    first = min(data.stamps, default=0)
    horizon = Horizon(*(None if t is None else max(t + first, 0) for t in horizon))
    oracle, period = Oracle(query, data, mode.max_delay, horizon), every or query.report.every
    if period is None:
        theirs = list(oracle.at_changes(kind))
    else:  # the grid has the same anchor as the query's own
        theirs = list(oracle.periodic(kind, period, query.report.origin % period))
    about = f"{mode}\n{horizon}\n{data}\n{kind} every {every} from {origin}: {text}"
    options: dict[str, Any] = horizon._asdict()
    with settings_of(mode):
        aligned = bags(query, result(query, data, mode, **options).report(kind, every))
        _assert_same("aligned", aligned, theirs, about)
        started = result(query, data, mode, **options)
        started.snapshot(0)
        from_rows = bags(query, started.report(kind, every))
        _assert_same("from rows", from_rows, theirs, about)
        live = bags(query, live_rows(query, data, mode, report=kind, every=every, **options))
        _assert_same("live", live, theirs, about)


def _assert_same(way: str, ours: list[Report], theirs: list[Report], about: str) -> None:
    """Assert that the reports are equal; further ones at the end must show no change."""
    rest = [report for _, report in ours[len(theirs) :]]
    assert ours[: len(theirs)] == theirs, f"{way} {_first_difference(ours, theirs)}\n{about}"
    still = [theirs[-1][1], Counter()] if theirs else [Counter()]
    assert all(report in still for report in rest), f"{way} {rest} at last\n{about}"


def _first_difference(ours: list[Report], theirs: list[Report]) -> str:
    """Return the first pair of reports that differ."""
    for mine, other in zip(ours, theirs, strict=False):
        if mine != other:
            return f"{mine} for {other}"
    return f"{[r for r, _ in ours]} for {[r for r, _ in theirs]}"


@pytest.mark.parametrize("instants", [[], [3], [7], [7, 12], [1_700_000_000_000]])
def test_time_that_passes_without_an_item_takes_no_report_away(instants: list[int]) -> None:
    text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 6 MS SLIDE 5 MS { <a> <p> ?o }"
    live = streamsparql.compile(text).open(graph=[("<a>", "<p>", '"1"')], report="rstream")
    for t in instants:
        live.advance(t)
    live.close()
    assert [(t, len(shown)) for t, shown in live.rows()] == [(5, 1)]
