"""The options that name the data of a run: those of `run` and of `explain --analyze`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.cli.common_options import (
    UsageError,
    add_together,
    files_by_name,
    instant_option,
    limits_of,
    near_file,
    parse_delay,
    parse_positive_number,
    parse_seconds,
    parse_size,
    read_text,
    split_name,
)
from streamsparql.cli.words import ReadingQuery, expand_names, place_files
from streamsparql.connectors.urls import scheme_of
from streamsparql.errors import SourceError, StreamSparqlError

if TYPE_CHECKING:
    from streamsparql.cli.interrupts import EndlessInput, EndlessSource
    from streamsparql.query import Query
    from streamsparql.run.input import RunInput
    from streamsparql.run.reports import Reporting

MASTER_HELP = "of Spark: local[2], spark://host:7077, yarn"


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that reads data."""
    group = parser.add_argument_group("data and engine")
    add = group.add_argument
    delay = "how late items may be: 10s, 5m; auto: sort all"
    since = "first instant, as 2026-01-31T12:00:00Z or in ms"
    repeated = partial(add, action="append", default=[])
    repeated(
        "--stream", metavar="[IRI=]FILE", help="file or folder of a stream; - for standard input"
    )
    add_together(
        "static graphs: the default, a named one",
        repeated("--graph", metavar="FILE", help="file or folder of the static default graph"),
        repeated("--named", metavar="IRI=FILE", help="file or folder of a static named graph"),
    )
    mapping = "file with a CONSTRUCT over the columns of a table"
    add_together(
        "CONSTRUCT over a table's columns; as head shows",
        repeated("--map", metavar="[IRI=]RQ", help=mapping),
        add("--auto", action="store_true", help="map tables without --map as `head` shows"),
    )
    header = "the mapped CSV has none: columns are ?a ?b ?c .."
    add_together(
        "of the mapped CSV: columns ?a ?b ..; separator",
        add("--no-header", action="store_true", help=header),
        add("--delimiter", metavar="C", help="separator of the mapped CSV, such as ; or tab"),
    )
    add("--no-files", action="store_true", help="read no graph that only the query names")
    add("--max-delay", metavar="DUR", type=parse_delay, default=0, help=delay)
    place = "column, path or predicate with the timestamps"
    repeated("--stamp-from", metavar="NAME", help=place)
    add_together(
        "of timestamps; default: by size, UTC",
        repeated("--time-unit", metavar="UNIT", help="of timestamps: s, ms, us, ns"),
        repeated("--time-zone", metavar="ZONE", help="of local times; default: UTC"),
    )
    add("--strict", action="store_true", help="stop at the first late or rejected item")
    until = "end, before which results are computed"
    add_together(
        "the time of results: 2026-01-31T12:00:00Z, or in ms",
        add("--from", dest="start", metavar="T", type=_parse_time, help=since),
        add("--until", dest="end", metavar="T", type=_parse_time, help=until),
    )
    engines = ("embedded", "spark")
    slabs = "number of slabs of time on Spark"
    add("--engine", choices=engines, metavar="NAME", default="embedded", help="embedded or spark")
    add_together(
        "of Spark: local[2], spark://host:7077, sc://host",
        add("--master", metavar="URL", help=MASTER_HELP),
        add("--slabs", metavar="N", type=parse_positive_number, help=slabs),
    )
    add_together(
        "end a run that exceeds one: 30s, 2GB, 1000000",
        add("--time-limit", metavar="DUR", type=parse_seconds, help="the longest time of a run"),
        add("--memory-limit", metavar="SIZE", type=parse_size, help="the largest rows and terms"),
        add("--row-limit", metavar="N", type=parse_positive_number, help="rows of a step"),
        add("--state-limit", metavar="N", type=parse_positive_number, help="rows in the state"),
        add("--string-limit", metavar="N", type=parse_positive_number, help="characters of a term"),
    )


def _parse_time(text: str) -> int:
    t = instant_option(text)
    if t < 0:
        raise argparse.ArgumentTypeError(f"must not be before 1970: {text!r}")
    return t


def check_data(options: argparse.Namespace) -> None:
    """Raise an error if the options contradict each other, before any file is read."""
    if options.engine != "spark":
        for name in ("master", "slabs"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name} requires --engine spark")
    elif options.time_limit is not None:
        raise UsageError("--time-limit requires --engine embedded")
    if None not in (options.start, options.end) and options.start >= options.end:
        raise UsageError("--until must be after --from")
    files = [*options.query, *options.files]
    files += [*options.graph, *options.stream, *options.named, *options.map]
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


def run_arguments(query: ReadingQuery, options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `Query.run` for options that `check_data` has checked."""
    from streamsparql.run.input import existing_file

    raise_open_file_limit()
    place_files(query, options)
    expand_names(query, options)
    paths_by_stream = files_by_name(options.stream, query.streams, "stream")
    named = files_by_name(options.named, query.graphs, "named")
    for path in chain(*paths_by_stream.values(), *named.values(), options.graph):
        if scheme_of(path) is None and (hint := near_file(path)):
            raise SourceError(f"{path}: No such file or directory{hint}")
    streams = {name: _unwrap_single(paths) for name, paths in paths_by_stream.items()}
    streams = with_mappings(query, options, streams, read_text)
    if missing := [name for name in query.streams if name not in streams]:
        name = missing[0]
        raise SourceError(f"missing stream <{name}>; add --stream {name}=FILE")
    files = None if options.no_files else existing_file
    for name in query.graphs:
        if name not in named and (files is None or files(name) is None):
            why = "; --no-files forbids a file that only the query names" if files is None else ""
            raise SourceError(f"missing graph <{name}>; add --named {name}=FILE{why}")
    graphs = {name: _unwrap_single(auto_mapped(some, options)) for name, some in named.items()}
    return {
        "streams": streams,
        "graph": _unwrap_single(auto_mapped(options.graph, options)) if options.graph else None,
        "graphs": graphs,
        "start": options.start,
        "end": options.end,
        "strict": options.strict,
        "max_delay": options.max_delay,
        **stamp_options(query, options),
        "files": files,
        "limits": limits_of(options),
    }


def stamp_options(query: ReadingQuery, options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of timestamps as `Query.run` accepts them: one value, or by stream."""
    read: dict[str, Any] = {}
    for name in ("time_unit", "time_zone", "stamp_from"):
        values: dict[str | None, str] = {}
        option = f"--{name.replace('_', '-')}"
        for argument in getattr(options, name):
            stream, value = split_name(argument, query.streams) or (None, argument)
            if stream in values:
                raise UsageError(f"{option} {argument}: duplicate option; write IRI=.. for each")
            if name == "time_unit" and value not in ("s", "ms", "us", "ns"):
                raise UsageError(f"{option} {argument}: expected s, ms, us or ns")
            values[stream] = value
        if None in values and len(values) > 1:
            raise UsageError(f"{option} {values[None]}: write IRI=.. for each stream")
        read[name] = values.get(None) if None in values or not values else values
    return read


class EmbeddedRun(NamedTuple):
    """The input of a run in this process, its reports, and its endless streams."""

    input: RunInput
    reports: Reporting | None
    endless: Sequence[EndlessInput | EndlessSource]


def prepare_run(
    query: Query, arguments: dict[str, Any], options: argparse.Namespace
) -> EmbeddedRun:
    """Prepare a run in this process with its `run_arguments`, and open its endless streams."""
    from streamsparql.cli.interrupts import EndlessInput
    from streamsparql.run.input import input_of, streams_of
    from streamsparql.run.reports import requested_reports

    reports = requested_reports(query, options.report, options.every)
    streams = streams_of(query, arguments["streams"])
    endless = EndlessInput.replace_endless(streams)
    run_input = input_of(query, **{**arguments, "streams": streams})
    if endless and run_input.sorts_all:
        raise UsageError(
            "--max-delay auto sorts a whole history, and a stream is read as its data arrives;"
            " pass a duration"
        )
    return EmbeddedRun(run_input, reports, endless)


def _unwrap_single(files: Sequence[Any]) -> Any:
    """Return a single file itself, several files as a list."""
    return files[0] if len(files) == 1 else list(files)


def with_mappings(
    query: ReadingQuery,
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
        (maps or options.auto) and any(map(_may_be_csv, streams.values()))
    ):
        raise UsageError("--no-header and --delimiter require --map or --auto, and a CSV stream")
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
        elif options.auto:
            mapped_streams[name] = auto_mapped([streams[name]], options)[0]
    return mapped_streams


def auto_mapped(sources: Sequence[Any], options: argparse.Namespace) -> list[Any]:
    """Return sources, with `--auto` those that are tables with a mapping guessed from them."""
    from streamsparql.sources.mapped_tables import needs_mapping
    from streamsparql.sources.mapping import Mapped

    if not options.auto:
        return list(sources)
    return [
        Mapped(each, None)
        if scheme_of(each) is not None
        else _mapped(each, None, options)
        if needs_mapping(each)
        else each
        for each in sources
    ]


def _mapped(source: Any, text: str | None, options: argparse.Namespace) -> Any:
    from streamsparql.sources.mapping import mapped

    if not _may_be_csv(source):
        return mapped(source, text)
    delimiter = CSV_DELIMITERS.get(options.delimiter, options.delimiter)
    return mapped(source, text, header=False if options.no_header else None, delimiter=delimiter)


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


CSV_DELIMITERS = {"tab": "\t", r"\t": "\t"}
"""Delimiters by the names that a shell can pass."""


def check_targets(
    query: ReadingQuery, options: argparse.Namespace, arguments: dict[str, Any], *files: str | None
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

    with spark_session(options.master, getattr(options, "quiet", False)) as spark:
        yield {**arguments, "engine": "spark", "spark": spark, "slabs": options.slabs}
