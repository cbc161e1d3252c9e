"""The visitor of a run on Spark: how it is cut into tasks, and why so.

Without data it tells what the plan alone decides: how far tasks look back, what divides the
streams, what is merged. With data (a `SparkRun`, known here by what it says of itself) it tells the
cut that was made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from streamsparql.algebra.partition import (
    common_jumps,
    element_windows,
    partition_keys,
    stream_reaches,
)
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.window import ElementWindow
from streamsparql.look.explain.boxes.box import Box, Measures
from streamsparql.look.explain.boxes.phrases import duration
from streamsparql.text.visible import visible

if TYPE_CHECKING:
    from streamsparql.look.explain import Compiled

SHOWN = 12
"""Of more slabs than that the first and the last are shown; after a run, the slowest."""

_EXCHANGE = "items on their way to the slabs that need them"
_LOOK = "when the items come, and where to cut"


class Described(Protocol):
    """How a run on Spark is cut; `streamsparql.spark.SparkRun.described` returns one."""

    @property
    def sources(self) -> Sequence[tuple[str, str]]:
        """The streams, and how each is read."""

    @property
    def statics(self) -> Sequence[str]:
        """What was done about the static graphs."""

    @property
    def reasons(self) -> Sequence[str]:
        """Why the cut is as it is."""

    @property
    def slabs(self) -> Sequence[tuple[str, str]]:
        """The slabs, and what is known of each."""


def spark_box(
    query: Compiled,
    run: Described | None = None,
    measured: Mapping[str, Measures] | None = None,
) -> Box:
    """How a query runs on Spark; `measured` has numbers by the names of stages and slabs.

    >>> import streamsparql
    >>> text = "SELECT ?s FROM STREAM <s> WINDOW RANGE 1 MINUTE SLIDE 1 SECOND { ?s <p> ?o }"
    >>> box = spark_box(streamsparql.compile(text))
    >>> box.kind, box.children[0].kind, box.children[0].children[0].title
    ('Merge', 'Slabs', '<s>; looked back at by 1 min')
    """
    plan = query.rewriting.plan
    found = measured or {}
    below = [*_before(found), *_streams(plan, run), *_cut(plan, run, found)]
    if run is not None:
        below += [Box("Static", title=visible(text), family="graph") for text in run.statics]
    title = "each task runs the physical plan over its part of time"
    slabs = Box(
        "Slabs",
        title=title,
        children=tuple(below),
        family="group",
        meaning=_SLABS,
        measures=found.get("slabs"),
    )
    merge = "rows that end where the next slab begins with their equals; reports need none"
    return Box(
        "Merge",
        title=merge,
        children=(slabs,),
        family="join",
        meaning=_MERGE,
        measures=found.get("merge"),
    )


def _before(measured: Mapping[str, Measures]) -> Iterator[Box]:
    """What happened before the slabs."""
    for name, title in (("exchange", _EXCHANGE), ("look", _LOOK)):
        if name in measured:
            yield Box(name.title(), title=title, family="graph", measures=measured[name])


def _streams(plan: Plan, run: Described | None) -> Iterator[Box]:
    how = {} if run is None else dict(run.sources)
    counts: dict[str, list[str]] = {}
    for window in element_windows(plan):
        for stream in stream_reaches(window):
            counts.setdefault(stream, []).append(_elements(window))
    for stream, reach in stream_reaches(plan).items():
        parts = [f"<{stream}>"]
        if reach >= INFINITY:
            parts.append("looked back at to its beginning")
        elif reach > 1:
            parts.append(f"looked back at by {duration(reach)}")
        parts += dict.fromkeys(counts.get(stream, []))
        if stream in how:
            parts.append(how[stream])
        yield Box("Stream", title=visible("; ".join(parts)), family="access")


def _elements(window: ElementWindow) -> str:
    steps = f" in steps of {window.moves_by}" if window.moves_by > 1 else ""
    last = f"counted for its last {window.count:,} elements{steps}"
    return f"{last}: tasks begin {window.look_back:,} before"


def _cut(plan: Plan, run: Described | None, measured: Mapping[str, Measures]) -> Iterator[Box]:
    if run is not None:
        for reason in run.reasons:
            yield Box("Because", title=visible(reason), family="filter")
        for name, what in _shown(list(run.slabs), measured):
            title = visible(f"{name}  {what}")
            yield Box("Slab", title=title, family="window", measures=measured.get(name))
        return
    jumps = common_jumps(plan)
    if jumps is not None and jumps.step > 1:
        origin = f" from {duration(jumps.origin)}" if jumps.origin else ""
        title = f"at multiples of {duration(jumps.step)}{origin}, where windows jump"
        yield Box("Cut", title=title, family="window")
    found = partition_keys(plan)
    if found and not element_windows(plan):
        names = " or ".join(f"?{v.name}" for v in found)
        title = f"or by the value of {names}, where windows are long against the data"
        yield Box("Cut", title=visible(title), family="window")


def _shown(slabs: list[tuple[str, str]], measured: Mapping[str, Measures]) -> list[tuple[str, str]]:
    """The slabs that are shown: all, or the first and the last, or those that took longest."""
    if len(slabs) <= SHOWN:
        return slabs
    if not measured:
        return [*slabs[: SHOWN - 1], slabs[-1]]
    slowest = sorted(slabs, key=lambda slab: -measured[slab[0]].seconds)[:SHOWN]
    return [slab for slab in slabs if slab in slowest]


_SLABS = (
    "A part of time. By snapshot reducibility the result in it depends on nothing but the elements"
    " that hold in it."
)
_MERGE = (
    "A second, small shuffle: the pieces of a row that goes on over a border of slabs become one."
)
