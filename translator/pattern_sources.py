"""What the patterns of a plan read: the way back from operators to FROM clauses and blocks.

`unparse` asks here which streams and graphs a pattern reads and through which windows, which FROM
clauses that calls for, and which operators together are one block of triples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from streamsparql.algebra import shape
from streamsparql.algebra import window as w
from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.graph import Describe, Graph
from streamsparql.algebra.join import Join, Union
from streamsparql.algebra.match import BasicGraphPattern, TriplePatternMatching
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import IRI
from streamsparql.errors import UnsupportedFeature
from streamsparql.translator.dialects import Dialect


class Reading(NamedTuple):
    """The sources of a pattern: streams with their windows, static graphs, a group's window."""

    streams: tuple[tuple[IRI, w.Window | None], ...]
    graph: AccessGraph | None
    group_window: w.Window | None = None

    @property
    def default(self) -> bool:
        """Whether it is the default graph that is read."""
        return self.graph is not None and self.graph.background


def reading_of(plan: Plan) -> Reading:
    """The sources of a matching or a path."""
    match plan:
        case shape.Distinct(inner):
            return reading_of(inner)
        case TriplePatternMatching(_, source) | Path(input=source):
            return data_of(source)
        case w.Window(input=TriplePatternMatching(_, AccessStream(name))):
            return Reading(((name, None),), None, _bare(plan))
        case Union(branches):
            parts = [reading_of(branch) for branch in branches]
            graphs = [part.graph for part in parts if part.graph is not None]
            windows = [part.group_window for part in parts if part.group_window is not None]
            streams = tuple(stream for part in parts for stream in part.streams)
            return Reading(streams, graphs[0] if graphs else None, windows[0] if windows else None)
    raise UnsupportedFeature(f"{type(plan).__name__} does not stand where patterns are matched")


def data_of(plan: Plan) -> Reading:
    """The sources below a matching."""
    match plan:
        case shape.Distinct(inner):
            return data_of(inner)
        case Merge(sources):
            parts = [data_of(source) for source in sources]
            graphs = [part.graph for part in parts if part.graph is not None]
            streams = tuple(stream for part in parts for stream in part.streams)
            return Reading(streams, graphs[0] if graphs else None)
        case w.Window(input=AccessStream(name)):
            return Reading(((name, _bare(plan)),), None)
        case AccessStream(name):
            return Reading(((name, None),), None)
        case AccessGraph():
            return Reading((), plan)
    raise UnsupportedFeature(f"{type(plan).__name__} does not stand below a triple pattern")


def _bare(window: w.Window) -> w.Window:
    """The window over nothing in particular, so that two of them can be compared."""
    bare = window.with_inputs(shape.UNIT)
    assert isinstance(bare, w.Window)
    return bare


def is_matching(plan: Plan) -> bool:
    """Whether a plan is one triple pattern, or one path."""
    match plan:
        case TriplePatternMatching() | Path():
            return True
        case shape.Distinct(inner) | w.Window(input=inner):
            return is_matching(inner)
        case Union((*windowed, TriplePatternMatching(pattern, AccessGraph(background=True)))):
            # not a UNION of the query: one pattern, its streams through a window, the graph beside
            return all(
                isinstance(branch, w.Window) and matching_of(branch).members()[0] == pattern
                for branch in windowed
            )
    return False


def matching_of(plan: Plan) -> TriplePatternMatching | Path:
    """The triple pattern or the path of a matching."""
    while not isinstance(plan, TriplePatternMatching | Path):
        plan = plan.inputs[0]
    return plan


@dataclass(frozen=True)
class Sources:
    """The FROM clauses that a plan's readings call for."""

    default: dict[IRI, w.Window | None]
    static: tuple[IRI, ...]
    named: tuple[IRI, ...]
    streams: dict[IRI, w.Window | None]
    slots: dict[str, tuple[IRI, w.Window]]

    @classmethod
    def of(cls, plan: Plan, dialect: Dialect) -> Sources:
        """Collects the sources of all patterns of a plan."""
        default: dict[IRI, w.Window | None] = {}
        static: tuple[IRI, ...] = ()
        named: dict[IRI, None] = {}
        streams: dict[IRI, w.Window | None] = {}
        slots: dict[str, tuple[IRI, w.Window]] = {}
        # A path may have its window from a group, so patterns are heard first; and those that read
        # most streams, as they know the order of FROM.
        found = sorted(_readings(plan), key=lambda r: (r.of_path, -len(r.reading.streams)))
        for reading, wrapped, _ in found:
            if reading.default and reading.graph is not None:
                static = static or tuple(g for g in reading.graph.graphs if isinstance(g, IRI))
                for name, window in reading.streams:
                    default[name] = default.get(name) or window
            elif reading.graph is not None:
                graphs = (g for g in reading.graph.graphs if isinstance(g, IRI))
                named |= {} if wrapped else dict.fromkeys(graphs)
            for name, window in () if reading.default else reading.streams:
                if window is not None and window.name is not None:
                    slots[window.name] = (name, window)
                elif window is not None and dialect.name in ("streaming", "csparql"):
                    streams.setdefault(name, window)
                elif dialect.content == "events":
                    streams.setdefault(name, None)
        return cls(default, static, tuple(named), streams, slots)


class _Found(NamedTuple):
    """A reading, whether a `Graph` is around it, and whether it is a path's."""

    reading: Reading
    wrapped: bool
    of_path: bool


def _readings(plan: Plan) -> Iterator[_Found]:
    """The readings of all patterns of a plan."""
    pending: list[tuple[Plan, bool]] = [(plan, False)]
    while pending:
        node, wrapped = pending.pop()
        if is_matching(node):
            yield _Found(reading_of(node), wrapped, isinstance(matching_of(node), Path))
            continue
        inputs = node.inputs
        if isinstance(node, Describe):
            yield _Found(data_of(node.data), False, False)
            inputs = inputs[:1]
        pending += [(child, wrapped or isinstance(node, Graph)) for child in reversed(inputs)]


# -- blocks of triples -----------------------------------------------------------------------------


def is_block(plan: Plan) -> bool:
    """Whether a plan is what one block of triples gives: patterns, parted by paths, read alike."""
    parts = _joined_parts(plan)
    if not all(isinstance(part, BasicGraphPattern) or is_matching(part) for part in parts):
        return False
    matchings = [matching for part in parts for matching in matchings_of(part)]
    if len({_effective(matching) for matching in matchings}) > 1:
        return False
    if len({reading_of(m) for m in matchings if not isinstance(m, Path)}) > 1:
        return False  # a group's window, and FROM's window that happens to be equal
    paths = [isinstance(part, Path) for part in parts]
    return all(one or other for one, other in pairwise(paths))


def _joined_parts(plan: Plan) -> list[Plan]:
    parts: list[Plan] = []
    while isinstance(plan, Join):
        parts.append(plan.right)
        plan = plan.left
    return [plan, *reversed(parts)]


def _effective(matching: Plan) -> tuple[object, ...]:
    """What a matching reads, with a group's window counted as that of its streams."""
    streams, graph, group_window = reading_of(matching)
    return tuple((name, group_window or window) for name, window in streams), graph


def matchings_of(plan: Plan) -> list[Plan]:
    """The matchings of a block, in order."""
    found: list[Plan] = []
    for part in _joined_parts(plan):
        found += part.matchings if isinstance(part, BasicGraphPattern) else [part]
    return found
