"""The visitor of a run on Spark: how it is cut into tasks, and why.

Without data the boxes show what the plan alone determines: the look-back of tasks, the keys that
can divide the streams, the merge. With data (a `SparkRun`, known here by a protocol) they show the
actual cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from streamsparql.algebra.event import reads_events, returns_events
from streamsparql.algebra.event_reach import event_reach, how_to_bound
from streamsparql.algebra.partition import common_jumps, element_windows, stream_reaches
from streamsparql.algebra.partition_keys import partition_keys
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.window import ElementWindow
from streamsparql.look.explain.boxes.box import Box, Measures
from streamsparql.look.explain.boxes.phrases import with_units
from streamsparql.text.visible import visible

if TYPE_CHECKING:
    from streamsparql.look.explain import ExplainedQuery

MAX_SLABS = 12
"""The number of slabs that are shown: the first ones and the last; after a run, the slowest."""

_EXCHANGE = "shuffle of the items to the slabs that need them"
_SURVEY = "time ranges of the sources, and where to cut"


class CutDescription(Protocol):
    """The cut of a run into slabs; `streamsparql.spark.SparkRun.described` returns one."""

    @property
    def sources(self) -> Sequence[tuple[str, str]]:
        """The streams, each with how it is read."""

    @property
    def statics(self) -> Sequence[str]:
        """Notes on the static graphs."""

    @property
    def reasons(self) -> Sequence[str]:
        """The reasons for the cut."""

    @property
    def slabs(self) -> Sequence[tuple[str, str]]:
        """The slabs, each with its time range."""


def spark_box(
    query: ExplainedQuery,
    run: CutDescription | None = None,
    measured: Mapping[str, Measures] | None = None,
) -> Box:
    """Return the boxes of a query on Spark; `measured` has numbers by names of stages and slabs.

    >>> import streamsparql
    >>> text = "SELECT ?s FROM STREAM <s> WINDOW RANGE 1 MINUTE SLIDE 1 SECOND { ?s <p> ?o }"
    >>> box = spark_box(streamsparql.compile(text))
    >>> box.kind, box.children[0].kind, box.children[0].children[0].title
    ('Merge', 'Slabs', '<s>; look-back 1 min')
    """
    plan = query.rewriting.plan
    measures = measured or {}
    below = [*_preparation(measures), *_streams(plan, run), *_cut(plan, run, measures)]
    if run is not None:
        below += [Box("Static", title=visible(text), family="graph") for text in run.statics]
    title = "each task runs the physical plan over its slab of time"
    if returns_events(plan):
        title += ", and emits the events that end in it"
    slabs = Box(
        "Slabs",
        title=title,
        children=tuple(below),
        family="group",
        meaning=_SLABS,
        measures=measures.get("slabs"),
    )
    if returns_events(plan):
        return slabs
    merge = "reunites rows that a border between slabs cuts; not needed for reports"
    return Box(
        "Merge",
        title=merge,
        children=(slabs,),
        family="join",
        meaning=_MERGE,
        measures=measures.get("merge"),
    )


def _preparation(measured: Mapping[str, Measures]) -> Iterator[Box]:
    """Yield the stages that ran before the slabs."""
    for name, title in (("exchange", _EXCHANGE), ("survey", _SURVEY)):
        if name in measured:
            yield Box(name.title(), title=title, family="graph", measures=measured[name])


def _streams(plan: Plan, run: CutDescription | None) -> Iterator[Box]:
    reads = {} if run is None else dict(run.sources)
    counts: dict[str, list[str]] = {}
    for window in element_windows(plan):
        for stream in stream_reaches(window):
            counts.setdefault(stream, []).append(_elements(window))
    for stream, reach in stream_reaches(plan).items():
        parts = [f"<{stream}>"]
        if reach >= INFINITY:
            parts.append("look-back to its start")
        elif reach > 1:
            parts.append(f"look-back {with_units(reach)}")
        parts += dict.fromkeys(counts.get(stream, []))
        if stream in reads:
            parts.append(reads[stream])
        yield Box("Stream", title=visible("; ".join(parts)), family="access")


def _elements(window: ElementWindow) -> str:
    steps = f" in steps of {window.moves_by}" if window.moves_by > 1 else ""
    last = f"counted for its last {window.count:,} elements{steps}"
    return f"{last}: tasks start {window.look_back:,} elements earlier"


def _cut(plan: Plan, run: CutDescription | None, measured: Mapping[str, Measures]) -> Iterator[Box]:
    if run is not None:
        for reason in run.reasons:
            yield Box("Reason", title=visible(reason), family="filter")
        for name, text in _selected(list(run.slabs), measured):
            title = visible(f"{name}  {text}")
            yield Box("Slab", title=title, family="window", measures=measured.get(name))
        return
    jumps = common_jumps(plan)
    if jumps is not None and jumps.step > 1:
        origin = f" from {with_units(jumps.origin)}" if jumps.origin else ""
        title = f"at multiples of {with_units(jumps.step)}{origin}, where windows jump"
        yield Box("Cut", title=title, family="window")
    endless = how_to_bound(plan)
    variables = partition_keys(plan)
    names = " or ".join(f"?{v.name}" for v in variables)
    if endless:
        title = f"by the value of {names}" if names else "one task computes everything"
        yield Box("Cut", title=visible(title), family="window")
        yield Box("Reason", title=visible(endless), family="filter")
        return
    if reads_events(plan):
        for evidence in event_reach(plan).evidence:
            keys = " and ".join(f"?{v.name}" for v in evidence.variables)
            title = (
                f"the first match of an optional side{f' by {keys}' if keys else ''}, in all slabs"
            )
            yield Box("FirstPass", title=visible(title), family="join")
    if names and not element_windows(plan):
        title = f"or by the value of {names}, where windows are long compared with the data"
        if reads_events(plan):
            title = f"in time, or by the value of {names}, where events are long"
        yield Box("Cut", title=visible(title), family="window")


def _selected(
    slabs: list[tuple[str, str]], measured: Mapping[str, Measures]
) -> list[tuple[str, str]]:
    """Return the slabs that are shown: all, or the first and the last, or the slowest."""
    if len(slabs) <= MAX_SLABS:
        return slabs
    if not measured:
        return [*slabs[: MAX_SLABS - 1], slabs[-1]]
    slowest = sorted(slabs, key=lambda slab: -(measured[slab[0]].seconds or 0))[:MAX_SLABS]
    return [slab for slab in slabs if slab in slowest]


_SLABS = (
    "A part of time. By snapshot reducibility the result in it depends only on the elements that"
    " hold in it."
)
_MERGE = (
    "A second, small shuffle: the parts of a row that holds across a border between slabs become"
    " one row."
)
