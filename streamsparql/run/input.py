"""The input of a run: streams, static graphs, the horizon, and how strictly they are read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamsparql.algebra.access import AccessGraph
from streamsparql.algebra.graph import Graph
from streamsparql.algebra.inputs import MAX_JUMP
from streamsparql.algebra.solutions import Variable
from streamsparql.compiled import CompiledQuery
from streamsparql.errors import EngineError, SourceError, UnsupportedFeature
from streamsparql.sources import Mapped
from streamsparql.sources.paths import is_endless, path_of
from streamsparql.sources.stamps import LATEST


@dataclass(frozen=True)
class RunInput:
    """The arguments of a run: its sources, the horizon, and how strictly the sources are read."""

    streams: Mapping[str, Any] = field(default_factory=dict)
    graph: Any = None
    graphs: Mapping[str, Any] = field(default_factory=dict)
    start: int | None = None
    end: int | None = None
    strict: bool = False
    max_delay: int = 0
    max_jump: int | None = MAX_JUMP
    files: str | os.PathLike[str] | Callable[[str], Any] | None = None
    """Where graphs may be read from that the query names and that are not passed; None: nowhere."""
    started: int = field(default_factory=lambda: int(time.time() * 1000))
    """The value of NOW(), in milliseconds."""

    def __post_init__(self) -> None:
        """Check the times, that the horizon is not empty, and what `files` is."""
        files = self.files
        if files is not None and not callable(files) and not _is_folder(files):
            raise EngineError(
                f"files must be a folder, or a function from an IRI to a source, not {files!r}"
            )
        for name in ("start", "end", "max_delay", "max_jump"):
            value = getattr(self, name)
            if value is None and name != "max_delay":
                continue
            if type(value) is not int or not 0 <= value <= LATEST:
                raise EngineError(f"{name} must be a number of milliseconds, not {value!r}")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise EngineError(f"end ({self.end}) must be after start ({self.start})")

    @property
    def repeatable(self) -> bool:
        """Whether all sources can be read again.

        >>> RunInput({"s": []}).repeatable, RunInput({"s": iter([])}).repeatable
        (True, False)
        """
        sources = [*self.streams.values(), *self.graphs.values(), self.graph]
        return not any(map(read_once, sources))


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
    return RunInput(streams, graph, _by_iri(graphs), **options)


def live_input_of(
    query: CompiledQuery, graph: Any, graphs: Mapping[str, Any] | None, **options: Any
) -> RunInput:
    """Check the arguments of `open`; return them without streams, which are pushed later."""
    _check_own_output(query)
    check_graphs(query, graphs)
    return RunInput({}, graph, _by_iri(graphs), **options)


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
        return {str(name): source for name, source in streams.items()}
    if len(query.streams) != 1:
        names = ", ".join(f"<{name}>" for name in query.streams) or "no stream"
        raise SourceError(f"pass streams as a dict by IRI: the query reads {names}")
    return {query.streams[0]: streams}


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
    return isinstance(source, Iterator) or hasattr(source, "read")
