"""The options that name the data of a run: those of `run` and of `explain --analyze`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from streamsparql.cli.common_options import (
    UsageError,
    files_by_name,
    parse_duration,
    parse_instant,
    parse_positive_number,
    read_text,
    split_name,
)
from streamsparql.errors import SourceError, StreamSparqlError

if TYPE_CHECKING:
    from streamsparql.cli.interrupts import EndlessInput
    from streamsparql.query import Query
    from streamsparql.run.input import RunInput
    from streamsparql.run.reports import Reporting

MASTER_HELP = "of Spark: local[2], spark://host:7077, yarn, sc://host"


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that reads data."""
    group = parser.add_argument_group("data and engine")
    add = group.add_argument
    delay = "how late items may arrive: 500ms, 10s, 5m, 1h"
    since = "first instant, as 2026-01-31T12:00:00Z or in ms"
    repeated = partial(add, action="append", default=[])
    repeated(
        "--stream", metavar="[IRI=]FILE", help="file or folder of a stream; - for standard input"
    )
    repeated("--graph", metavar="FILE", help="file or folder of the static default graph")
    repeated("--named", metavar="IRI=FILE", help="file or folder of a static named graph")
    repeated("--map", metavar="[IRI=]RQ", help="file with a CONSTRUCT over the columns of a table")
    add("--no-header", action="store_true", help="the mapped CSV has none: columns are ?a ?b ?c ..")
    add("--delimiter", metavar="C", help="separator of the mapped CSV, such as ; or tab")
    add("--no-files", action="store_true", help="read no graph that only the query names")
    add("--max-delay", metavar="DUR", type=parse_duration, default=0, help=delay)
    add("--strict", action="store_true", help="stop at the first late or rejected item")
    add("--from", dest="start", metavar="T", type=_parse_time, help=since)
    add(
        "--until",
        dest="end",
        metavar="T",
        type=_parse_time,
        help="end, before which results are computed",
    )
    engines = ("embedded", "spark")
    slabs = "number of slabs of time on Spark"
    add("--engine", choices=engines, metavar="NAME", default="embedded", help="embedded or spark")
    add("--master", metavar="URL", help=MASTER_HELP)
    add("--slabs", metavar="N", type=parse_positive_number, help=slabs)


def _parse_time(text: str) -> int:
    t = parse_instant(text)
    if t < 0:
        raise argparse.ArgumentTypeError(f"must not be before 1970: {text!r}")
    return t


def check_data(options: argparse.Namespace) -> None:
    """Raise an error if the options contradict each other, before any file is read."""
    if options.engine != "spark":
        for name in ("master", "slabs"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name} requires --engine spark")
    if None not in (options.start, options.end) and options.start >= options.end:
        raise UsageError("--until must be after --from")
    files = [*options.query, *options.graph, *options.stream, *options.named, *options.map]
    if sum(file == "-" or file.endswith("=-") for file in files) > 1:
        raise UsageError("standard input can only be read once; pass - for one file only")
    if sys.stdin is None and any(file == "-" or file.endswith("=-") for file in files):
        raise UsageError("standard input is closed")


def raise_open_file_limit() -> None:
    """Allow this process as many open files as the system permits: a folder may have hundreds."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


_MAX_FILES = 10_240  # the maximum on macOS


def run_arguments(query: Reading, options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `Query.run` for options that `check_data` has checked."""
    from streamsparql.run.input import existing_file

    raise_open_file_limit()
    paths_by_stream = files_by_name(options.stream, query.streams, "stream")
    streams = {name: _unwrap_single(paths) for name, paths in paths_by_stream.items()}
    streams = with_mappings(query, options, streams, read_text)
    if missing := [name for name in query.streams if name not in streams]:
        name = missing[0]
        raise SourceError(f"missing stream <{name}>; add --stream {name}=FILE")
    named = files_by_name(options.named, query.graphs, "named")
    files = None if options.no_files else existing_file
    for name in query.graphs:
        if name not in named and (files is None or files(name) is None):
            why = "; --no-files forbids a file that only the query names" if files is None else ""
            raise SourceError(f"missing graph <{name}>; add --named {name}=FILE{why}")
    return {
        "streams": streams,
        "graph": _unwrap_single(options.graph) if options.graph else None,
        "graphs": {name: _unwrap_single(some) for name, some in named.items()},
        "start": options.start,
        "end": options.end,
        "strict": options.strict,
        "max_delay": options.max_delay,
        "files": files,
    }


class Reading(Protocol):
    """What reads streams and graphs: a query, or several."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""

    @property
    def graphs(self) -> tuple[str, ...]:
        """The static graphs that it names."""


class EmbeddedRun(NamedTuple):
    """The input of a run in this process, its reports, and its endless streams."""

    input: RunInput
    reports: Reporting | None
    endless: Sequence[EndlessInput]


def prepare_run(
    query: Query, arguments: dict[str, Any], options: argparse.Namespace
) -> EmbeddedRun:
    """Prepare a run in this process with its `run_arguments`, and open its endless streams."""
    from streamsparql.cli.interrupts import EndlessInput
    from streamsparql.run.input import RunInput, check_graphs, streams_of
    from streamsparql.run.reports import requested_reports

    reports = requested_reports(query, options.report, options.every)
    streams = streams_of(query, arguments["streams"])
    check_graphs(query, arguments["graphs"])
    endless = EndlessInput.replace_endless(streams)
    return EmbeddedRun(RunInput(**{**arguments, "streams": streams}), reports, endless)


def _unwrap_single(files: Sequence[Any]) -> Any:
    """Return a single file itself, several files as a list."""
    return files[0] if len(files) == 1 else list(files)


def with_mappings(
    query: Reading,
    options: argparse.Namespace,
    streams: Mapping[str, Any],
    read_mapping: Callable[[str], str],
) -> dict[str, Any]:
    """Return the streams, each table with its mapping applied.

    `read_mapping` returns the text of the mapping that `--map` names.
    """
    maps: dict[str | None, str] = {}
    for argument in options.map:
        name, mapping = split_name(argument, query.streams) or (None, argument)
        if name in maps:
            raise UsageError(f"--map {argument}: duplicate mapping; write IRI=FILE for each")
        maps[name] = mapping
    if (options.no_header or options.delimiter is not None) and not (
        maps and any(map(_may_be_csv, streams.values()))
    ):
        raise UsageError("--no-header and --delimiter require --map and a CSV stream")
    used = {name: name if name in maps else None for name in streams}
    if unused := maps.keys() - used.values():
        raise UsageError(f"--map {maps[unused.pop()]}: missing its --stream")
    texts: dict[str | None, str] = {}
    for name, mapping in maps.items():
        with _naming_mapping(mapping):
            texts[name] = read_mapping(mapping)
    mapped_streams = dict(streams)
    for name, key in used.items():
        if key in texts:
            with _naming_mapping(maps[key]):
                mapped_streams[name] = _mapped(streams[name], texts[key], options)
    return mapped_streams


def _mapped(source: Any, text: str, options: argparse.Namespace) -> Any:
    from streamsparql.sources.mapping import mapped

    if not _may_be_csv(source):
        return mapped(source, text)
    delimiter = _TAB_NAMES.get(options.delimiter, options.delimiter)
    return mapped(source, text, header=not options.no_header, delimiter=delimiter)


def _may_be_csv(source: Any) -> bool:
    """Return whether a stream has a file that may be CSV, by its extension."""
    from streamsparql.sources.paths import extension_of

    paths = source if isinstance(source, list) else [source]
    others = ("jsonl", "ndjson", "json", "parquet", "pq")
    return any(
        isinstance(path, str | os.PathLike) and extension_of(os.fspath(path)) not in others
        for path in paths
    )


@contextmanager
def _naming_mapping(mapping: str) -> Iterator[None]:
    """Prefix errors with the `--map` option that they are about."""
    try:
        yield
    except UsageError:
        raise
    except StreamSparqlError as error:
        raise SourceError(f"--map {mapping}: {error}") from None


_TAB_NAMES = {"tab": "\t", r"\t": "\t"}


def check_targets(
    query: Reading, options: argparse.Namespace, arguments: dict[str, Any], *files: str | None
) -> None:
    """Raise an error if the run reads one of the files that it writes."""
    from streamsparql.run.input import RunInput, graph_sources
    from streamsparql.sinks import check_target

    graphs = graph_sources(query.graphs, RunInput(**arguments))
    maps = [(split_name(text, query.streams) or ("", text))[1] for text in options.map]
    for file in files:
        check_target(file, [*options.query, *maps, *arguments["streams"].values(), *graphs])


@contextmanager
def on_engine(options: argparse.Namespace, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `Query.run` on the selected engine; end its Spark session after."""
    if options.engine == "embedded":
        yield arguments
        return
    from streamsparql.cli.spark_commands import spark_session

    with spark_session(options.master) as spark:
        yield {**arguments, "engine": "spark", "spark": spark, "slabs": options.slabs}
