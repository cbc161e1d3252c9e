"""The sources of a plan's patterns: from operators back to FROM clauses and blocks of triples.

`unparse` uses this module to determine which streams and graphs a pattern reads and through which
windows, which FROM clauses declare them, and which operators together are one block of triples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from streamsparql.algebra import shape
from streamsparql.algebra import window as w
from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.entailment import Entailed, Entailing
from streamsparql.algebra.graph import Describe, Graph
from streamsparql.algebra.join import Join, Union
from streamsparql.algebra.match import BasicGraphPattern, TriplePatternMatching
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.traversal import descend
from streamsparql.errors import UnsupportedFeature
from streamsparql.translator.dialects import Dialect


class PatternSources(NamedTuple):
    """The sources of a pattern: streams with their windows, static graphs, a group's window."""

    streams: tuple[tuple[IRI, w.Window | None], ...]
    graph: AccessGraph | None
    group_window: w.Window | None = None

    @property
    def default(self) -> bool:
        """Whether the pattern reads the default graph."""
        return self.graph is not None and self.graph.background


def sources_of_matching(plan: Plan) -> PatternSources:
    """Return the sources of a matching or a path."""
    if (window := _window_of_group(plan)) is not None:
        (stream,) = (node.stream for node in window.walk() if isinstance(node, AccessStream))
        return PatternSources(((stream, None),), None, _without_input(window))
    match plan:
        case shape.Distinct(inner):
            return sources_of_matching(inner)
        case TriplePatternMatching(_, source) | Path(input=source):
            return sources_of_data(source)
        case Union(branches):
            parts = [sources_of_matching(branch) for branch in branches]
            graphs = [part.graph for part in parts if part.graph is not None]
            windows = [part.group_window for part in parts if part.group_window is not None]
            streams = tuple(stream for part in parts for stream in part.streams)
            return PatternSources(
                streams, graphs[0] if graphs else None, windows[0] if windows else None
            )
    raise UnsupportedFeature(f"{type(plan).__name__} is not a triple pattern or a path")


def sources_of_data(plan: Plan) -> PatternSources:
    """Return the sources of the input of a matching."""
    match plan:
        case shape.Distinct(inner) | Entailed(inner):
            return sources_of_data(inner)
        case Merge(sources):
            parts = [sources_of_data(source) for source in sources]
            graphs = [part.graph for part in parts if part.graph is not None]
            streams = tuple(stream for part in parts for stream in part.streams)
            return PatternSources(streams, graphs[0] if graphs else None)
        case w.Window(input=AccessStream(name)):
            return PatternSources(((name, _without_input(plan)),), None)
        case AccessStream(name):
            return PatternSources(((name, None),), None)
        case AccessGraph():
            return PatternSources((), plan)
    raise UnsupportedFeature(f"{type(plan).__name__} is not a source of triples")


def _window_of_group(plan: Plan) -> w.Window | None:
    """Return the window of a group that is applied to one pattern over one stream."""
    match plan:
        case w.Window(input=TriplePatternMatching(_, AccessStream())):
            return plan
        case TriplePatternMatching(_, Entailed(w.Window(input=Entailing()) as window)):
            return window
    return None


def _without_input(window: w.Window) -> w.Window:
    """Return the window over the unit table, so that windows over other inputs compare equal."""
    bare = window.with_inputs(shape.UNIT)
    assert isinstance(bare, w.Window)
    return bare


def is_matching(plan: Plan) -> bool:
    """Return whether a plan is one triple pattern, or one path."""
    match plan:
        case TriplePatternMatching() | Path():
            return True
        case shape.Distinct(inner) | w.Window(input=inner):
            return is_matching(inner)
        case Union((*windowed, TriplePatternMatching(pattern, source))):
            # one pattern over windowed streams and the default graph, not a UNION of the query
            for branch in windowed:
                if _window_of_group(branch) is None:
                    return False
                if matching_of(branch).members()[0] != pattern:
                    return False
            sources = sources_of_data(source)
            return sources.default and not sources.streams
    return False


def matching_of(plan: Plan) -> TriplePatternMatching | Path:
    """Return the triple pattern or the path of a matching."""
    while not isinstance(plan, TriplePatternMatching | Path):
        plan = plan.inputs[0]
    return plan


@dataclass(frozen=True)
class PlanSources:
    """The sources of all patterns of a plan, by the kind of FROM clause that declares them."""

    default: dict[IRI, w.Window | None]
    static: tuple[IRI, ...]
    named: tuple[IRI, ...]
    streams: dict[IRI, w.Window | None]
    windows: dict[str, tuple[IRI, w.Window]]

    @classmethod
    def of(cls, plan: Plan, dialect: Dialect) -> PlanSources:
        """Collect the sources of all patterns of a plan."""
        default: dict[IRI, w.Window | None] = {}
        static: tuple[IRI, ...] = ()
        named: dict[IRI, None] = {}
        streams: dict[IRI, w.Window | None] = {}
        windows: dict[str, tuple[IRI, w.Window]] = {}
        # Paths are read last, since the window of a path may be that of its group. Patterns with
        # more streams are read first, since they have the streams in the order of FROM.
        read = sorted(_reads(plan), key=lambda r: (r.by_path, -len(r.sources.streams)))
        for sources, wrapped, _ in read:
            if sources.default and sources.graph is not None:
                static = static or tuple(g for g in sources.graph.graphs if isinstance(g, IRI))
                for name, window in sources.streams:
                    default[name] = default.get(name) or window
            elif sources.graph is not None:
                graphs = (g for g in sources.graph.graphs if isinstance(g, IRI))
                named |= {} if wrapped else dict.fromkeys(graphs)
            for name, window in () if sources.default else sources.streams:
                if window is not None and window.name is not None:
                    windows[window.name] = (name, window)
                elif window is not None and dialect.has_named_streams:
                    streams.setdefault(name, window)
                elif dialect.has_events:
                    streams.setdefault(name, None)
        return cls(default, static, tuple(named), streams, windows)


class _Read(NamedTuple):
    """The sources of a pattern, whether it is inside a `Graph`, and whether it is a path."""

    sources: PatternSources
    wrapped: bool
    by_path: bool


def _reads(plan: Plan) -> Iterator[_Read]:
    for node, wrapped in descend(plan, False, _below):
        if is_matching(node):
            by_path = isinstance(matching_of(node), Path)
            yield _Read(sources_of_matching(node), wrapped, by_path)
        elif isinstance(node, Describe):
            yield _Read(sources_of_data(node.data), False, False)


def _below(node: Plan, wrapped: bool) -> list[tuple[Plan, bool]]:
    """Return the plans below an operator, none below a matching."""
    if is_matching(node):
        return []
    inputs = node.inputs[:1] if isinstance(node, Describe) else node.inputs
    return [(child, wrapped or isinstance(node, Graph)) for child in inputs]


# -- blocks of triples -----------------------------------------------------------------------------


def is_block(plan: Plan) -> bool:
    """Return whether a plan is one block of triples: patterns and paths over the same sources."""
    if isinstance(plan, Join):
        last, before = plan.right, plan.left.right if isinstance(plan.left, Join) else plan.left
        if not (isinstance(last, Path) or isinstance(before, Path)):
            return False  # so that a long chain of joined groups takes constant time
    parts = _joined_parts(plan)
    if not all(isinstance(part, BasicGraphPattern) or is_matching(part) for part in parts):
        return False
    matchings = [matching for part in parts for matching in matchings_of(part)]
    if len({_effective(matching) for matching in matchings}) > 1:
        return False
    if len({sources_of_matching(m) for m in matchings if not isinstance(m, Path)}) > 1:
        return False  # a group's window is not FROM's window, even if they are equal
    paths = [isinstance(part, Path) for part in parts]
    return all(first or second for first, second in pairwise(paths))


def _joined_parts(plan: Plan) -> list[Plan]:
    parts: list[Plan] = []
    while isinstance(plan, Join):
        parts.append(plan.right)
        plan = plan.left
    return [plan, *reversed(parts)]


def _effective(matching: Plan) -> tuple[object, ...]:
    """Return the streams and graphs of a matching, each stream with the window that applies."""
    streams, graph, group_window = sources_of_matching(matching)
    return tuple((name, group_window or window) for name, window in streams), graph


def matchings_of(plan: Plan) -> list[Plan]:
    """Return the matchings of a block, in order."""
    matchings: list[Plan] = []
    for part in _joined_parts(plan):
        matchings += part.matchings if isinstance(part, BasicGraphPattern) else [part]
    return matchings
