"""The command `run`: a query's answers, written as they become known."""

from __future__ import annotations

import argparse
import os
import sys
from typing import IO, TYPE_CHECKING, Any

from streamsparql.cli.data_options import (
    TIMES,
    check_data,
    check_written,
    data_options,
    engine,
    given,
    prepared,
)
from streamsparql.cli.interrupts import Interrupts
from streamsparql.cli.options import (
    REPORTS,
    Commands,
    Help,
    UsageError,
    check_output,
    compile_options,
    compiled,
    period,
)
from streamsparql.cli.summary import Progress, Summary

if TYPE_CHECKING:
    from streamsparql.query import Query

OUTPUTS = ("table", "csv", "jsonl", "nq", "parquet")
STYLES = ("ms", "iso", "local")
EXAMPLES = f"""\
{TIMES}
examples:
  streamsparql run query.rq --stream wind.nq --graph turbines.ttl
  streamsparql run query.rq --stream wind.csv --report rstream --every 10m
  tail -f wind.nq | streamsparql run query.rq --stream - --emit eager"""


def add_run(commands: Commands[argparse.ArgumentParser]) -> None:
    """Adds the command `run`."""
    parser = commands.add_parser(
        "run",
        help="answer a query over files or standard input",
        usage="%(prog)s QUERY [--stream [IRI=]FILE ...] [OPTION ...]",
        epilog=EXAMPLES,
        formatter_class=Help,
        add_help=False,
    )
    does = "answers a query over files, folders or standard input"
    compile_options(parser, "a file, or - for standard input", does)
    data_options(parser)
    group = parser.add_argument_group("answers")
    add = group.add_argument
    kinds = "rstream, istream or dstream: snapshots at instants"
    add("--report", choices=REPORTS, metavar="KIND", help=kinds)
    add("--every", metavar="DUR", type=period, help="from one report to the next")
    emits = "final (rows as they end) or eager (at once, in pieces)"
    add("--emit", choices=("final", "eager"), metavar="WHEN", default="final", help=emits)
    add("--output", choices=OUTPUTS, metavar="FORMAT", help="table, csv, jsonl, nq or parquet")
    add("--timestamps", choices=STYLES, metavar="STYLE", help="ms, iso (UTC) or local")
    add("-o", dest="file", metavar="FILE", help="write there; the extension is the format")
    add("--rejects", metavar="FILE", help="write what was late or bad there, as JSON lines")
    add("-q", "--quiet", action="store_true", help="no progress, no summary at the end")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    check_data(options)
    query = compiled(options.query, options)
    options.name = "streamsparql"
    _check(options, query)
    kwargs = given(query, options)
    _check_files(query, options, kwargs)
    with Summary(options.rejects, options.quiet) as summary:
        if options.engine == "embedded":
            return _embedded(query, kwargs, options, summary)
        with engine(options, kwargs) as on_spark:
            return _on_spark(query, on_spark, options, summary)


def _check(options: argparse.Namespace, query: Query) -> None:
    if _target(options)[1] == "nq" and query.form not in ("construct", "describe"):
        raise UsageError(f"nq is for triples, and this is {query.form.upper()}: use jsonl")
    if options.output == "parquet" and options.file is None:
        raise UsageError("--output parquet goes with -o FILE")
    if options.file is not None and options.output is None and not _names_format(options.file):
        raise UsageError(f"-o {options.file}: its extension is no format: give --output")
    if options.emit == "eager":
        if options.report is not None or options.every is not None:
            raise UsageError("--emit is about rows: reports are final when they come")
        if options.engine == "spark":
            raise UsageError("--emit eager is for streams that go on, which Spark does not run")
    check_output(options.file)


# -- embedded --------------------------------------------------------------------------------------


def _embedded(
    query: Query, kwargs: dict[str, Any], options: argparse.Namespace, summary: Summary
) -> int:
    """Runs the query in this process, and writes what becomes known as soon as it does."""
    from streamsparql.physical.operator import INFINITY
    from streamsparql.run.replay import Replay, layout_of
    from streamsparql.sinks import open_sink

    data, reports, waiting = prepared(query, kwargs, options)
    endless = bool(waiting)
    replay = Replay(
        *(query, data),
        report=reports,
        eager=options.emit == "eager",
        ordered=not endless,
        endless=endless,
    )
    tables = replay.tables()
    layout = layout_of(query, replay.decoder, reports is not None, options.timestamps)
    progress = Progress(options.quiet)
    with Interrupts(replay.stop, waiting) as interrupts:
        first = next(tables, None)  # a run that fails at once leaves an older file alone
        with open_sink(*_target(options), layout) as sink:
            table = first
            while table is not None:
                if len(table):
                    progress.clear()
                    sink.write(table)
                if endless:
                    sink.flush()
                summary.take(replay)
                progress.show(replay)
                table = next(tables, None)
            progress.clear()
        summary.take(replay)
        cut_short = interrupts.signal != 0 and replay.watermark < INFINITY
        summary.tell(replay, replay.watermark if cut_short else None)
    return 128 + interrupts.signal if cut_short else 0


def _check_files(query: Query, options: argparse.Namespace, kwargs: dict[str, Any]) -> None:
    """What is written is nothing that is read, and two files are not one."""
    check_written(query, options, kwargs, options.file, options.rejects)
    both = [file for file in (options.file, options.rejects) if file is not None]
    if len(both) == 2 and not _device(both[0]) and len(set(map(os.path.realpath, both))) == 1:
        raise UsageError("-o and --rejects are one file")


def _device(file: str) -> bool:
    """Whether a path is of something that can be written by two at a time, as /dev/null."""
    return os.path.exists(file) and not os.path.isfile(file)


def _target(options: argparse.Namespace) -> tuple[str | IO[str], str]:
    """Where rows go, and in which format."""
    from streamsparql.sinks import format_of

    if options.file is None:
        return sys.stdout, options.output or "table"
    return options.file, options.output or format_of(options.file) or "table"


def _names_format(file: str) -> bool:
    """Whether a file's extension names a format, or there is none, which is a table."""
    from streamsparql.sinks import format_of

    return format_of(file) is not None or not os.path.splitext(file)[1] or file == os.devnull


# -- Spark -----------------------------------------------------------------------------------------


def _on_spark(
    query: Query, kwargs: dict[str, Any], options: argparse.Namespace, summary: Summary
) -> int:
    """Runs the query on Spark, and writes all rows once they are there."""
    result = query.run(**kwargs)
    target, kind = _target(options)
    rows = result.write(
        target,
        kind,
        report=options.report,
        every=options.every,
        timestamps=options.timestamps,
    )
    if summary.asks and not options.strict:  # telling reads the streams once more
        summary.tell_rejects(result.computation.rejects(), rows)
    else:
        summary.tell_rejects([], rows)
    return 0
