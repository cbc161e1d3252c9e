"""Reasons why a join has no results: no common values, or none at the same time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamsparql.algebra.window import TimeWindow
from streamsparql.display.why_empty import Reason
from streamsparql.look.emptiness.evidence import Evidence, windows_below
from streamsparql.look.emptiness.nearest import nearest
from streamsparql.look.emptiness.probe import ROWS, JoinSample, Probe
from streamsparql.look.explain.boxes.phrases import with_units
from streamsparql.physical.batch import UNBOUND, Batch
from streamsparql.physical.hidden import VIA, is_hidden
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.operators.join import Join
from streamsparql.text.instants import instant
from streamsparql.translator import syntax as s


def joined(evidence: Evidence, operator: Join) -> Reason:
    """Return the reason why the rows of two inputs never join."""
    left, right = (evidence.patterns_below(side) for side in operator.inputs)
    probe, same = evidence.probe, evidence.like(operator)
    sample = None
    if probe is not None and probe is evidence.execution and same is not None:
        sample = probe.samples.joins.get(same)
    if sample is not None and VIA in sample.names:
        return Reason("join", "no two steps of the property path meet")
    sides = f"{left} and {right}"
    if probe is None or sample is None:
        counts = " and ".join(f"{n:,}" for n in evidence.rows_in(operator))
        return Reason("join", f"the rows of {sides} never join: {counts} rows")
    for name in sample.names:
        reason = _different_values(evidence, probe, sample, name, sides)
        if reason is not None:
            return reason
    return _different_times(evidence, probe, sample, operator, sides)


def _different_values(
    evidence: Evidence, probe: Probe, sample: JoinSample, name: str, sides: str
) -> Reason | None:
    """Return a reason if a shared variable has no value on both sides."""
    left, right = (np.unique(sample.side(k).columns[name]) for k in (0, 1))
    incomplete = any(len(sample.side(k)) >= ROWS for k in (0, 1))
    if incomplete or UNBOUND in left or UNBOUND in right or is_hidden(name):
        return None
    if len(np.intersect1d(left, right)):
        return None
    values = [[t for t in probe.terms.terms_of(ids) if t is not None] for ids in (left, right)]
    details = tuple(f"?{name} is {evidence.values(terms)}" for terms in values)
    hint = ""
    for term in values[0][:100]:
        if (near := nearest(term, values[1][:1000])) is not None:
            hint = f"{evidence.term(term)} is not the same term as {evidence.term(near)}"
            break
    return Reason("join", f"{sides} have no value of ?{name} in common", details, hint)


class _Gap(NamedTuple):
    """The least time between a row of one side and a row of the other with equal values."""

    length: int
    ended: int
    """The end of the earlier row."""
    started: int
    """The start of the later row."""


def _different_times(
    evidence: Evidence, probe: Probe, sample: JoinSample, operator: Join, sides: str
) -> Reason:
    gap = _least_gap(sample)
    message = f"{sides} match, but never at the same time"
    if gap is None:
        names = " and ".join(f"?{name}" for name in sample.names if not is_hidden(name))
        together = f" have no values of {names} in common" if names else " never join"
        return Reason("join", f"{sides}{together}")
    details = [
        f"the nearest rows are {with_units(gap.length)} apart: one ends at {instant(gap.ended)},"
        f" the other starts at {instant(gap.started)}"
        if gap.length
        else f"the nearest rows meet at {instant(gap.started)}: one ends where the other starts"
    ]
    windows = [w for w in windows_below(operator) if isinstance(w, TimeWindow)]
    lengths = dict.fromkeys(with_units(w.length) for w in windows if w.length < INFINITY)
    if lengths:
        details.append(f"the windows are {' and '.join(lengths)} long")
    return Reason("join", message, tuple(details), _window_hint(evidence, gap))


def _window_hint(evidence: Evidence, times: _Gap) -> str:
    """Return a hint on windows that are shorter than a gap: their unit, or their length."""
    gap = times.length
    if times.ended < _SECONDS_AS_MILLISECONDS < _FIRST_DATE < times.started:
        return (
            "the timestamps of one stream may be in seconds; pass --time-unit s, or time_unit= in"
            " Python"
        )
    for node in evidence.query.translation.syntax.walk():
        if isinstance(node, s.DurationLiteral) and node.unit is None and node.milliseconds <= gap:
            number = node.span.of(evidence.query.text)
            return f"{number} without a unit is {number} ms; write {number} SECOND"
    return "make the windows longer than that" if gap < _DAY else "the data are of different times"


_DAY = 86_400_000
_SECONDS_AS_MILLISECONDS = 1 << 32
"""A number of seconds that is a date of this century is less, read as milliseconds."""
_FIRST_DATE = 1 << 37


def _least_gap(sample: JoinSample) -> _Gap | None:
    """Return the least gap between rows with equal values of the shared variables."""
    left, right = (_by_key(sample, k) for k in (0, 1))
    gaps = [_gap(left[key], right[key]) for key in left.keys() & right.keys()]
    return min((gap for gap in gaps if gap is not None), default=None)


def _by_key(sample: JoinSample, k: int) -> dict[tuple[int, ...], Batch]:
    rows = sample.side(k)
    keys = list(zip(*(rows.columns[name].tolist() for name in sample.names), strict=True))
    places: dict[tuple[int, ...], list[int]] = {}
    for place, key in enumerate(keys or [()] * len(rows)):
        places.setdefault(key, []).append(place)
    return {key: rows.take(np.array(at)) for key, at in places.items()}


def _gap(one: Batch, other: Batch) -> _Gap | None:
    """Return the least gap between rows of two sides, none of which overlap."""
    gaps = []
    for early, late in ((one, other), (other, one)):
        ends = np.sort(early.end)
        before = np.searchsorted(ends, late.start, "right")
        after = np.flatnonzero(before)
        if len(after):
            ended = ends[before[after] - 1]
            nearest_row = int(np.argmin(late.start[after] - ended))
            start, end = int(late.start[after][nearest_row]), int(ended[nearest_row])
            gaps.append(_Gap(start - end, end, start))
    return min(gaps, default=None)
