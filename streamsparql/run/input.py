"""The input of a run: streams, static graphs, the horizon, and how strictly they are read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any, TypeVar

from streamsparql.algebra.access import AccessGraph
from streamsparql.algebra.graph import Graph
from streamsparql.algebra.inputs import MAX_JUMP
from streamsparql.algebra.solutions import Variable
from streamsparql.compiled import CompiledQuery
from streamsparql.connectors.live_stream import LiveStream
from streamsparql.errors import EngineError, SourceError, UnsupportedFeature
from streamsparql.limits import Limits, checked_limits
from streamsparql.run.time_arguments import duration_argument, instant_argument
from streamsparql.sources import Mapped
from streamsparql.sources.decoded import ChunkSource
from streamsparql.sources.disorder import MAX_SORTED, WHOLE_INPUT, Sorter
from streamsparql.sources.local_times import zone_of
from streamsparql.sources.paths import is_endless, path_of
from streamsparql.sources.reading import Reading
from streamsparql.sources.stamps import LATEST, PER_SECOND, StampReader
from streamsparql.translator.names import WELL_KNOWN

AUTO = "auto"
"""The `max_delay` for histories in any order: the whole input is sorted, and no item is late."""

_Setting = TypeVar("_Setting")


@dataclass(frozen=True)
class RunInput:
    """The arguments of a run: its sources, the horizon, and how strictly the sources are read."""

    streams: Mapping[str, Any] = field(default_factory=dict)
    graph: Any = None
    graphs: Mapping[str, Any] = field(default_factory=dict)
    start: int | None = None
    end: int | None = None
    strict: bool = False
    max_delay: int | str = 0
    """Milliseconds, or `AUTO`: the whole input is sorted."""
    max_jump: int | None = MAX_JUMP
    time_unit: str | Mapping[str, str] | None = None
    """The unit of timestamps that are numbers, or a unit by stream; None: recognised by size."""
    time_zone: str | tzinfo | Mapping[str, str | tzinfo] | None = None
    """The time zone of timestamps without an offset, or one by stream; None: UTC."""
    stamp_from: str | Mapping[str, str] | None = None
    """The column, path or predicate with the timestamps, or one by stream; None: by its name."""
    files: str | os.PathLike[str] | Callable[[str], Any] | None = None
    """Where graphs may be read from that the query names and that are not passed; None: nowhere."""
    limits: Limits | None = None
    started: int = field(default_factory=lambda: int(time.time() * 1000))
    """The value of NOW(), in milliseconds."""

    def __post_init__(self) -> None:
        """Check the times, that the horizon is not empty, and what `files` and `limits` are."""
        checked_limits(self.limits)
        files = self.files
        if files is not None and not callable(files) and not _is_folder(files):
            raise EngineError(
                f"files must be a folder, or a function from an IRI to a source, not {files!r}"
            )
        for name in ("start", "end", "max_delay", "max_jump"):
            value = getattr(self, name)
            if (value is None and name != "max_delay") or (name, value) == ("max_delay", AUTO):
                continue
            if type(value) is not int or not 0 <= value <= LATEST:
                raise EngineError(f"{name} must be a number of milliseconds, not {value!r}")
        if type(self.strict) is not bool:
            raise EngineError(f"strict must be True or False, not {self.strict!r}")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise EngineError(f"end ({self.end}) must be after start ({self.start})")
        for unit in _values(self.time_unit):
            if unit is not None and unit not in PER_SECOND:
                raise EngineError(f"time_unit must be s, ms, us or ns, not {unit!r}")
        for place in _values(self.stamp_from):
            if place is not None and (not isinstance(place, str) or not place.strip()):
                raise EngineError(
                    f"stamp_from must be a column, a path or the IRI of a predicate, not {place!r}"
                )
        for zone in _values(self.time_zone):
            zone_of(zone)

    @property
    def sorts_all(self) -> bool:
        """Whether the whole input is sorted before the first row is computed."""
        return self.max_delay == AUTO

    @property
    def delay(self) -> int:
        """The milliseconds by which items may be out of order."""
        return WHOLE_INPUT if isinstance(self.max_delay, str) else self.max_delay

    def sorter(self, stream: str, events: bool = False) -> Sorter:
        """Return a new sorter of the items of a stream, or of its events."""
        name, strict = f"<{stream}>", self.strict
        if self.sorts_all:
            return Sorter(name, self.delay, strict, None, events=events, most=MAX_SORTED)
        return Sorter(name, self.delay, strict, self.max_jump, events=events)

    def reading_of(self, stream: str, stamps: StampReader | None = None) -> Reading:
        """Return how the timestamps of a stream are read: by a new reader, or by `stamps`."""
        zone = zone_of(_of_stream(self.time_zone, stream))
        stamps = stamps or StampReader(_of_stream(self.time_unit, stream), zone)
        return Reading(stamps, _of_stream(self.stamp_from, stream))

    @property
    def repeatable(self) -> bool:
        """Whether all sources can be read again.

        >>> RunInput({"s": []}).repeatable, RunInput({"s": iter([])}).repeatable
        (True, False)
        """
        sources = [*self.streams.values(), *self.graphs.values(), self.graph]
        return not any(map(read_once, sources))


def _values(setting: Mapping[str, _Setting] | _Setting) -> Iterable[_Setting]:
    """Return the values of an option that has one value, or one by stream."""
    return setting.values() if isinstance(setting, Mapping) else [setting]


def _of_stream(setting: Mapping[str, _Setting] | _Setting, stream: str) -> _Setting | None:
    return setting.get(stream) if isinstance(setting, Mapping) else setting


def input_of(
    query: CompiledQuery,
    streams: Any,
    graph: Any,
    graphs: Mapping[str, Any] | None,
    **options: Any,
) -> RunInput:
    """Check the arguments of `run`; return them as the input of the run."""
    streams = streams_of(query, streams)
    check_graphs(query, graphs)
    return _input_with_limits(query, streams, graph, graphs, options)


def _check_stream_names(query: CompiledQuery, options: Mapping[str, Any]) -> None:
    """Raise an error for an option of a stream that the query does not read."""
    for option in ("time_unit", "time_zone", "stamp_from"):
        setting = options.get(option)
        for name in setting if isinstance(setting, Mapping) else ():
            if name not in query.streams:
                reads = ", ".join(f"<{each}>" for each in query.streams) or "no stream"
                raise SourceError(f"{option}: unknown stream <{name}>; the query reads {reads}")


def _with_whole_iris(prefixes: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with predicates of `stamp_from` in angle brackets, without prefixes."""
    place = options.get("stamp_from")
    if isinstance(place, Mapping):
        whole: Any = {name: _whole_iri(prefixes, each) for name, each in place.items()}
    else:
        whole = _whole_iri(prefixes, place)
    return {**options, "stamp_from": whole}


def _whole_iri(prefixes: Mapping[str, str], place: Any) -> Any:
    """Return a predicate as an IRI in angle brackets; a column or a path as it is."""
    if not isinstance(place, str) or place.startswith("<") or ":" not in place:
        return place
    prefix, _, local = place.partition(":")
    if local.startswith("//") or prefix == "urn":
        return f"<{place}>"
    start = prefixes.get(prefix, WELL_KNOWN.get(prefix))
    if start is None:
        raise EngineError(
            f"stamp_from: undeclared prefix {prefix}: in {place!r}; write the whole IRI"
        )
    return f"<{start}{local}>"


def live_input_of(
    query: CompiledQuery, graph: Any, graphs: Mapping[str, Any] | None, **options: Any
) -> RunInput:
    """Check the arguments of `open`; return them without streams, which are pushed later."""
    _check_own_output(query)
    check_graphs(query, graphs)
    _check_delay("an open query", options)
    return _input_with_limits(query, {}, graph, graphs, options)


def session_input_of(graph: Any, graphs: Mapping[str, Any] | None, **options: Any) -> RunInput:
    """Check the arguments of a session; its queries name the streams later."""
    _check_delay("a session", options)
    return RunInput({}, graph, _by_iri(graphs), **_in_milliseconds(_with_whole_iris({}, options)))


def _check_delay(what: str, options: Mapping[str, Any]) -> None:
    if options.get("max_delay") == AUTO:
        raise EngineError(
            f"max_delay='auto' sorts a whole history; {what} has no end: pass the longest"
            " delay of its items"
        )


def _in_milliseconds(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with their instants and durations in milliseconds."""
    parsed = dict(options)
    for name, parse in _TIMES.items():
        if parsed.get(name) is not None and (name, parsed[name]) != ("max_delay", AUTO):
            parsed[name] = parse(name, parsed[name])
    return parsed


_TIMES = {
    "start": instant_argument,
    "end": instant_argument,
    "max_delay": duration_argument,
    "max_jump": duration_argument,
}


def _input_with_limits(
    query: CompiledQuery,
    streams: Mapping[str, Any],
    graph: Any,
    graphs: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> RunInput:
    """Return the input of a run, whose limits are by default those of `compile`."""
    _check_stream_names(query, options)
    options = _in_milliseconds(_with_whole_iris(query.prefixes, options))
    run_input = RunInput(streams, graph, _by_iri(graphs), **options)
    if run_input.limits is None:
        return replace(run_input, limits=query.recipe.limits)
    return run_input


def _by_iri(graphs: Mapping[str, Any] | None) -> dict[str, Any]:
    return {str(name): source for name, source in (graphs or {}).items()}


def streams_of(query: CompiledQuery, streams: Any) -> dict[str, Any]:
    """Return the sources of the streams by IRI; raise an error if one is missing or unknown."""
    _check_own_output(query)
    named = _named(query, streams)
    reads = ", ".join(f"<{name}>" for name in query.streams) or "no stream"
    for name in named:
        if name not in query.streams:
            raise SourceError(f"unknown stream <{name}>; the query reads {reads}")
    for name in query.streams:
        if name not in named:
            passed = ", ".join(f"<{other}>" for other in named) or "none"
            raise SourceError(f"missing stream <{name}>: the query reads it; passed: {passed}")
    return named


def _named(query: CompiledQuery, streams: Any) -> dict[str, Any]:
    if streams is None:
        return {}
    if isinstance(streams, Mapping):
        return {str(name): LiveStream.of(source) for name, source in streams.items()}
    if len(query.streams) != 1:
        names = ", ".join(f"<{name}>" for name in query.streams) or "no stream"
        raise SourceError(f"pass streams as a dict by IRI: the query reads {names}")
    return {query.streams[0]: LiveStream.of(streams)}


def _check_own_output(query: CompiledQuery) -> None:
    if query.report.name in query.streams:
        raise UnsupportedFeature(
            f"the query reads the stream <{query.report.name}> that it is registered as",
            hint="run it, and push its results to a second query",
        )


def check_graphs(query: CompiledQuery, graphs: Mapping[Any, Any] | None) -> None:
    """Raise an error for a graph that the query does not read."""
    any_graph = any(
        isinstance(node, Graph)
        or (isinstance(node, AccessGraph) and any(isinstance(g, Variable) for g in node.graphs))
        for node in query.logical.walk()
    )
    reads = ", ".join(f"<{name}>" for name in query.graphs) or "no graph by name"
    for graph in graphs or {}:
        if str(graph) not in query.graphs and not any_graph:
            raise SourceError(f"unknown graph <{graph}>; the query reads {reads}")


def graph_sources(names: Iterable[str], run_input: RunInput) -> list[Any]:
    """Return the sources of a query's graphs: those passed, and those that `files` allows."""
    passed = run_input.graphs
    allowed = [_allowed(name, run_input.files) for name in names if name not in passed]
    return [run_input.graph, *passed.values(), *allowed]


def graph_named_by_query(name: str, run_input: RunInput) -> Any:
    """Return the source that `files` allows for the IRI of a graph that was not passed.

    Whether there is such a file elsewhere is not disclosed: the query may be a stranger's.
    """
    source = _allowed(name, run_input.files)
    if source is None and run_input.files is None:
        raise SourceError(
            f"missing graph <{name}>: pass it in graphs=; files that a query names are read only"
            " if files= allows it"
        )
    if source is None:
        raise SourceError(f"missing graph <{name}>: it is neither in graphs= nor in files=")
    return source


def _allowed(name: str, files: Any) -> Any:
    """Return what `files` allows to read for an IRI: a source, or None."""
    if files is None:
        return None
    return files(name) if callable(files) else _file_in(os.fspath(files), name)


def _is_folder(path: Any) -> bool:
    return isinstance(path, str | os.PathLike) and os.path.isdir(path)


def _file_in(folder: str, name: str) -> Path | None:
    """Return the regular file that an IRI names in a folder; None if it is not inside.

    A relative IRI is relative to the folder. Symbolic links are followed first, so that none leads
    out of it.
    """
    root = os.path.realpath(folder)
    path = existing_file(os.path.join(root, path_of(name)))
    if path is None:
        return None
    real = path.resolve()
    return real if real.is_relative_to(root) else None


def existing_file(iri: str) -> Path | None:
    """Return the regular file at a path or a `file:` IRI; None if there is none.

    >>> existing_file("file:///nowhere.nt"), existing_file("a\\0b")
    (None, None)
    """
    path = Path(path_of(iri))
    try:
        return path if path.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def read_once(source: Any) -> bool:
    """Return whether a source can be read only once: an iterator, an open file, a pipe."""
    source = source.source if isinstance(source, Mapped) else source
    if isinstance(source, list | tuple):
        sources = bool(source) and isinstance(source[0], str | os.PathLike | Mapped)
        return sources and any(map(read_once, source))
    if isinstance(source, str | os.PathLike):
        return is_endless(path_of(source))
    return isinstance(source, Iterator | ChunkSource) or hasattr(source, "read")
