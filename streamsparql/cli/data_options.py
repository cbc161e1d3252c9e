"""The options that name data and say how it is read: those of `run` and of `explain --analyze`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.cli.options import UsageError, duration, moment, number, sources, split, text_of
from streamsparql.errors import SourceError, StreamSparqlError

if TYPE_CHECKING:
    from streamsparql.cli.interrupts import Waiting
    from streamsparql.query import Query
    from streamsparql.run.input import RunInput
    from streamsparql.run.reports import Reporting

MASTER = "Spark's: local[2], spark://host:7077, yarn, sc://host"
TIMES = "T is 2026-01-31T12:00:00Z or milliseconds since 1970; DUR is 500ms, 10s, 5m, 1h."


def data_options(parser: argparse.ArgumentParser) -> None:
    """The options of a command that reads data."""
    group = parser.add_argument_group("data and engine")
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    repeated("--stream", metavar="[IRI=]FILE", help="file or folder of a stream; - reads input")
    repeated("--graph", metavar="FILE", help="file or folder of the static default graph")
    repeated("--named", metavar="IRI=FILE", help="a static graph by its name")
    repeated("--map", metavar="[IRI=]RQ", help="a CONSTRUCT over the columns of a table")
    add("--no-header", action="store_true", help="a mapped CSV has none: columns are ?a ?b ?c ..")
    add("--delimiter", metavar="C", help="what separates the values of a mapped CSV; or: tab")
    add("--max-delay", metavar="DUR", type=duration, default=0, help="how late items may come")
    add("--strict", action="store_true", help="stop at the first late or bad item")
    add("--from", dest="start", metavar="T", type=_moment, help="answers from then on")
    add("--until", dest="end", metavar="T", type=_moment, help="answers before then")
    engines = ("embedded", "spark")
    add("--engine", choices=engines, metavar="NAME", default="embedded", help="embedded or spark")
    add("--master", metavar="URL", help=MASTER)
    add("--slabs", metavar="N", type=number, help="how many parts Spark cuts time into")


def _moment(text: str) -> int:
    t = moment(text)
    if t < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is before 1970, where time starts")
    return t


def check_data(options: argparse.Namespace) -> None:
    """What is wrong with the options whatever the query is, before anything is read."""
    if options.engine != "spark":
        for name in ("master", "slabs"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name} goes with --engine spark")
    if None not in (options.start, options.end) and options.start >= options.end:
        raise UsageError("--until is a time after that of --from")
    files = [options.query, *options.graph, *options.stream, *options.named, *options.map]
    if sum(file == "-" or file.endswith("=-") for file in files) > 1:
        raise UsageError("standard input can be read once: only one of the files can be -")
    if sys.stdin is None and any(file == "-" or file.endswith("=-") for file in files):
        raise UsageError("standard input is closed")


def open_many_files() -> None:
    """As many files may be open as the system lets there be: a folder may have hundreds."""
    try:
        import resource
    except ImportError:  # there is no such limit on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


_FILES = 10_240  # more macOS does not allow


def given(query: Query, options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `Query.run` that the options give; `check_data` has looked at them."""
    open_many_files()
    files = sources(options.stream, query.streams, "stream")
    streams = {name: _alone(some) for name, some in files.items()}
    streams = with_mappings(query, options, streams, text_of)
    if missing := [name for name in query.streams if name not in streams]:
        name = missing[0]
        raise SourceError(f"the query reads the stream <{name}>: give --stream {name}=FILE")
    named = sources(options.named, query.graphs, "named")
    return {
        "streams": streams,
        "graph": _alone(options.graph) if options.graph else None,
        "graphs": {name: _alone(files) for name, files in named.items()},
        "start": options.start,
        "end": options.end,
        "strict": options.strict,
        "max_delay": options.max_delay,
    }


class Prepared(NamedTuple):
    """What a run in this process needs to know."""

    given: RunInput
    reports: Reporting | None
    waiting: Sequence[Waiting]
    """The streams that have no end by themselves."""


def prepared(query: Query, kwargs: dict[str, Any], options: argparse.Namespace) -> Prepared:
    """A run in this process over the data that `given` gave; streams are opened that never end."""
    from streamsparql.cli.interrupts import Waiting
    from streamsparql.run.input import RunInput, check_graphs, streams_of
    from streamsparql.run.reports import requested_reports

    reports = requested_reports(query, options.report, options.every)
    streams = streams_of(query, kwargs["streams"])
    check_graphs(query, kwargs["graphs"])
    waiting = Waiting.in_place_of_endless(streams)
    return Prepared(RunInput(**{**kwargs, "streams": streams}), reports, waiting)


def _alone(files: Sequence[Any]) -> Any:
    """One file as it is, more of them as a list."""
    return files[0] if len(files) == 1 else list(files)


def with_mappings(
    query: Query,
    options: argparse.Namespace,
    streams: Mapping[str, Any],
    mapping_of: Callable[[str], str],
) -> dict[str, Any]:
    """The streams, those that are tables with their mapping: `mapping_of` what an option names."""
    maps: dict[str | None, str] = {}
    for given in options.map:
        name, word = split(given, query.streams) or (None, given)
        if name in maps:
            raise UsageError(f"--map {given}: there is a mapping already: write IRI=FILE for each")
        maps[name] = word
    if (options.no_header or options.delimiter is not None) and not (
        maps and any(map(_may_be_csv, streams.values()))
    ):
        raise UsageError("--no-header and --delimiter go with --map, and a stream that is CSV")
    used = {name: name if name in maps else None for name in streams}
    if unused := maps.keys() - used.values():
        raise UsageError(f"--map {maps[unused.pop()]}: there is no --stream that it is for")
    texts: dict[str | None, str] = {}
    for name, word in maps.items():
        with _about_mapping(word):
            texts[name] = mapping_of(word)
    found = dict(streams)
    for name, which in used.items():
        if which in texts:
            with _about_mapping(maps[which]):
                found[name] = _mapped(streams[name], texts[which], options)
    return found


def _mapped(source: Any, text: str, options: argparse.Namespace) -> Any:
    from streamsparql.sources.mapping import mapped

    if not _may_be_csv(source):
        return mapped(source, text)
    delimiter = _TAB.get(options.delimiter, options.delimiter)
    return mapped(source, text, header=not options.no_header, delimiter=delimiter)


def _may_be_csv(source: Any) -> bool:
    """Whether a stream is a file whose name does not say that it is another table than CSV."""
    from streamsparql.sources.paths import extension_of

    paths = source if isinstance(source, list) else [source]
    others = ("jsonl", "ndjson", "json", "parquet", "pq")
    return any(
        isinstance(path, str | os.PathLike) and extension_of(os.fspath(path)) not in others
        for path in paths
    )


@contextmanager
def _about_mapping(word: str) -> Iterator[None]:
    """Errors say which option they are about."""
    try:
        yield
    except UsageError:
        raise
    except StreamSparqlError as error:
        raise SourceError(f"--map {word}: {error}") from None


_TAB = {"tab": "\t", r"\t": "\t"}


def check_written(
    query: Query, options: argparse.Namespace, kwargs: dict[str, Any], *files: str | None
) -> None:
    """An error where one of the files that are to be written is read, too."""
    from streamsparql.run.input import graph_sources
    from streamsparql.sinks import check_target

    graphs = graph_sources(query, kwargs["graph"], kwargs["graphs"])
    maps = [(split(text, query.streams) or ("", text))[1] for text in options.map]
    for file in files:
        check_target(file, [options.query, *maps, *kwargs["streams"].values(), *graphs])


@contextmanager
def engine(options: argparse.Namespace, kwargs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments of `Query.run` with the engine that is asked for, while it is there."""
    if options.engine == "embedded":
        yield kwargs
        return
    from streamsparql.cli.spark_commands import command_session

    with command_session(options.master) as spark:
        yield {**kwargs, "engine": "spark", "spark": spark, "slabs": options.slabs}
