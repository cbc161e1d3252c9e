"""Partitioning of a plan by time (partition_keys.py: by the value of a variable).

Each operator of section 4 of SEMANTICS.md is snapshot-reducible, so the result for a part of time
depends only on the elements that hold there. Windows state how long elements hold: `reach` bounds
the length of an element's validity after its timestamp. Windows that count elements have no such
bound; their look-back is a number of elements, `look_back`. Events are not defined by snapshots:
event_reach.py determines how far back they reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, lcm

from streamsparql.algebra import match, shape
from streamsparql.algebra import window as w
from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.event_reach import event_reach
from streamsparql.algebra.graph import Describe
from streamsparql.algebra.grid import Grid
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Variable


def stream_reaches(plan: Plan) -> dict[str, int]:
    """Return the greatest reach of each stream's items; INFINITY if they never expire.

    Items reach as far as windows and events do.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> stream_reaches(streamed("?x p ?y"))
    {'s': 10}
    """
    reaches: dict[str, int] = {}
    for stream in _streams(plan):
        reaches.setdefault(stream, 1)
    for window in windows(plan):
        for stream in _streams(window):
            reaches[stream] = max(reaches[stream], window.reach)
    for stream, reach in event_reach(plan).streams.items():
        reaches[stream] = max(reaches[stream], reach)
    return reaches


def windows(plan: Plan) -> Iterator[w.Window]:
    """Yield the distinct windows of a plan, including those in the patterns of EXISTS."""
    seen = {node: None for node in plan.operators() if isinstance(node, w.Window)}
    return iter(seen)


def element_windows(plan: Plan) -> tuple[w.ElementWindow, ...]:
    """Return the windows that count elements, which `look_back` bounds instead of `reach`.

    >>> from streamsparql.algebra.shape import UNIT
    >>> [window.look_back for window in element_windows(w.SteppedTupleWindow(UNIT, 10, step=4))]
    [14]
    """
    return tuple(window for window in windows(plan) if isinstance(window, w.ElementWindow))


def common_jumps(plan: Plan) -> Grid | None:
    """Return a grid of instants at which all time windows of a plan jump; None without windows.

    A cut there crosses the fewest windows. If the windows' steps have no common multiple within the
    longest reach, it is the grid of the window with the longest step.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> common_jumps(streamed("?x p ?y"))
    Grid(step=1, origin=0)
    """
    grids = [(window.grid, window.reach) for window in windows(plan) if window.grid is not None]
    if not grids:
        return None
    longest = max(reach for _, reach in grids)
    step, origin = max(grid for grid, _ in grids)
    for (other_step, other_origin), _ in grids:
        if (other_origin - origin) % gcd(step, other_step):
            continue
        common = lcm(step, other_step)
        if common <= longest:
            both = range(origin, origin + common, step)
            origin = next(o for o in both if (o - other_origin) % other_step == 0)
            step = common
    return Grid(step, origin % step)


def all_jumps(plan: Plan) -> Grid | None:
    """Return the coarsest grid that contains all instants at which windows of a plan jump.

    >>> from streamsparql.algebra.shape import UNIT
    >>> all_jumps(w.FixedWindow(w.SlidingDeltaWindow(UNIT, 10, 4), 6))
    Grid(step=2, origin=0)
    """
    grids = [x.grid for x in plan.operators() if isinstance(x, w.Window) and x.grid]
    if not grids:
        return None
    first = grids[0].origin
    step = gcd(*(grid.step for grid in grids), *(grid.origin - first for grid in grids))
    return Grid(step, first % step)


def reads_stream(plan: Plan, stream: str) -> bool:
    """Return whether a plan reads a stream.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> reads_stream(streamed("?x p ?y"), "s"), reads_stream(streamed("?x p ?y"), "t")
    (True, False)
    """
    return stream in _streams(plan)


def _streams(plan: Plan) -> list[str]:
    return [node.stream.value for node in plan.operators() if isinstance(node, AccessStream)]


def positions_read(plan: Plan) -> dict[str, frozenset[str]]:
    """Return the places of each stream's triples that a plan reads, of `s`, `p` and `o`.

    A place is not read if it only binds a variable that is projected away at once.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> read = positions_read(shape.Projection((Variable("x"),), streamed("?x p ?y")))
    >>> sorted(read["s"])
    ['p', 's']
    """
    kept: dict[int, set[Variable] | None] = {}
    sources: dict[int, tuple[Plan, set[str]]] = {}
    for node in plan.operators():
        variables = set(node.variables) if isinstance(node, shape.Projection) else None
        for child in node.inputs:
            before = kept.get(id(child), set())
            kept[id(child)] = None if variables is None or before is None else before | variables
    for node in plan.operators():
        if isinstance(node, match.TriplePatternMatching):
            _, places = sources.setdefault(id(node.input), (node.input, set()))
            places.update(_pattern_positions(node.pattern, kept.get(id(node))))
        elif isinstance(node, Path | Describe):
            for source in node.inputs:
                sources.setdefault(id(source), (source, set()))[1].update(_ALL)
    positions = {stream: set[str]() for stream in _streams(plan)}
    for source, places in sources.values():
        if not all(isinstance(below, _PASSES_TRIPLES) for below in source.operators()):
            places.update(_ALL)
        for stream in _streams(source):
            positions[stream].update(places)
    return {stream: frozenset(places) for stream, places in positions.items()}


_ALL = frozenset("spo")
_PASSES_TRIPLES = (w.TimeWindow, AccessStream, AccessGraph, Merge)
"""Operators that emit triples without reading their terms."""


def _pattern_positions(pattern: match.TriplePattern, kept: set[Variable] | None) -> Iterator[str]:
    for name, place in zip("spo", pattern, strict=True):
        free = isinstance(place, Variable) and tuple(pattern).count(place) == 1
        if kept is None or not free or place in kept:
            yield name
