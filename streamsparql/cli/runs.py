"""The command `run`: write the results of a query as soon as they are known."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from streamsparql.cli.common_options import (
    REPORTS,
    Commands,
    HelpFormatter,
    UsageError,
    add_compile_options,
    check_output,
    compile_file,
    parse_period,
)
from streamsparql.cli.data_options import (
    add_data_options,
    check_data,
    check_targets,
    on_engine,
    prepare_run,
    run_arguments,
)
from streamsparql.cli.interrupts import Interrupts
from streamsparql.cli.summary import Progress, Summary

if TYPE_CHECKING:
    from streamsparql.query import Query

OUTPUT_FORMATS = ("table", "csv", "jsonl", "nq", "parquet")
TIMESTAMP_STYLES = ("ms", "iso", "local")
_EXAMPLES = """\
examples:
  streamsparql run query.rq --stream wind.nq --graph turbines.ttl
  streamsparql run queries/*.rq --stream wind.nq -o results/
  tail -f wind.nq | streamsparql run query.rq --stream - --emit eager"""


def add_run(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `run`."""
    parser = commands.add_parser(
        "run",
        help="run queries over files or standard input",
        usage="%(prog)s QUERY ... [--stream [IRI=]FILE ...] [OPTION ...]",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        add_help=False,
    )
    title = "run a query, or several that share their streams, over files or standard input"
    add_compile_options(parser, "files, or - for standard input", title)
    add_data_options(parser)
    group = parser.add_argument_group("results")
    add = group.add_argument
    kinds = "rstream, istream or dstream, at report instants"
    add("--report", choices=REPORTS, metavar="KIND", help=kinds)
    add("--every", metavar="DUR", type=parse_period, help="time from one report to the next")
    emits = "final (once the end is known) or eager (at once, cut)"
    add("--emit", choices=("final", "eager"), metavar="WHEN", default="final", help=emits)
    add(
        "--output",
        choices=OUTPUT_FORMATS,
        metavar="FORMAT",
        help="table, csv, jsonl, nq or parquet",
    )
    add("--timestamps", choices=TIMESTAMP_STYLES, metavar="STYLE", help="ms, iso (UTC) or local")
    formulas = "in CSV, put ' before what a spreadsheet would run"
    add("--escape-formulas", action="store_true", help=formulas)
    add("-o", dest="file", metavar="FILE", help="write to a file; its extension is the format")
    add("--rejects", metavar="FILE", help="write late and rejected items, as JSON lines")
    add("-q", "--quiet", action="store_true", help="show no progress and no summary")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    check_data(options)
    if len(options.query) > 1:
        from streamsparql.cli.several import run_several

        return run_several(options)
    query = compile_file(options.query[0], options)
    options.name = "streamsparql"
    _check_options(options, query)
    arguments = run_arguments(query, options)
    _check_files(query, options, arguments)
    with Summary(options.rejects, options.quiet) as summary:
        if options.engine == "embedded":
            return _run_embedded(query, arguments, options, summary)
        with on_engine(options, arguments) as on_spark:
            return _run_on_spark(query, on_spark, options, summary)


def _check_options(options: argparse.Namespace, query: Query) -> None:
    if _target(options)[1] == "nq" and query.form not in ("construct", "describe"):
        raise UsageError(f"nq is a format for triples, not for {query.form.upper()}; use jsonl")
    check_format(options, _target(options)[1])
    if options.file is not None and options.output is None and not _implies_format(options.file):
        raise UsageError(f"-o {options.file}: unknown extension; add --output")
    if options.emit == "eager":
        if options.report is not None or options.every is not None:
            raise UsageError("--emit eager applies to rows, not to reports, which are final")
        if options.engine == "spark":
            raise UsageError("--emit eager requires --engine embedded")


def check_format(options: argparse.Namespace, kind: str) -> None:
    """Raise an error if the options of the output contradict its format."""
    if options.escape_formulas and kind != "csv":
        raise UsageError("--escape-formulas requires --output csv, or -o FILE.csv")
    if options.output == "parquet" and options.file is None:
        raise UsageError("--output parquet requires -o FILE")
    check_output(options.file)


# -- embedded --------------------------------------------------------------------------------------


def _run_embedded(
    query: Query, arguments: dict[str, Any], options: argparse.Namespace, summary: Summary
) -> int:
    """Run the query in this process, and write rows as soon as they are emitted."""
    from streamsparql.physical.operator import INFINITY
    from streamsparql.run.replay import Replay, layout_of
    from streamsparql.sinks import open_sink

    data, reports, inputs = prepare_run(query, arguments, options)
    endless = bool(inputs)
    replay = Replay(
        *(query, data),
        report=reports,
        eager=options.emit == "eager",
        ordered=not endless,
        endless=endless,
    )
    tables = replay.tables()
    layout = layout_of(query, replay.decoder, reports is not None, options.timestamps)
    layout = replace(layout, escape_formulas=options.escape_formulas)
    progress = Progress(options.quiet)
    with Interrupts(replay.stop, inputs) as interrupts:
        first = next(tables, None)  # a run that fails at once must not overwrite a file
        with open_sink(*_target(options), layout, whole=not endless) as sink:
            table = first
            while table is not None:
                if len(table):
                    progress.clear()
                    sink.write(table)
                if endless:
                    sink.flush()
                summary.record(replay)
                progress.show(replay)
                table = next(tables, None)
            progress.clear()
        summary.record(replay)
        incomplete = interrupts.signal != 0 and replay.watermark < INFINITY
        summary.show(replay, replay.watermark if incomplete else None)
    return 128 + interrupts.signal if incomplete else 0


def _check_files(query: Query, options: argparse.Namespace, arguments: dict[str, Any]) -> None:
    """Raise an error if the run would write a file that it reads, or one file twice."""
    check_targets(query, options, arguments, options.file, options.rejects)
    both = [file for file in (options.file, options.rejects) if file is not None]
    if len(both) == 2 and not _is_device(both[0]) and len(set(map(os.path.realpath, both))) == 1:
        raise UsageError("-o and --rejects are the same file")


def _is_device(file: str) -> bool:
    """Return whether two writers can share a path, as they can share /dev/null."""
    return os.path.exists(file) and not os.path.isfile(file)


def _target(options: argparse.Namespace) -> tuple[str | IO[str], str]:
    """Return the file that rows are written to, and the format."""
    from streamsparql.sinks import format_of

    if options.file is None:
        return sys.stdout, options.output or "table"
    return options.file, options.output or format_of(options.file) or "table"


def _implies_format(file: str) -> bool:
    """Return whether a file name implies a format; one without an extension implies a table."""
    from streamsparql.sinks import format_of

    return format_of(file) is not None or not os.path.splitext(file)[1] or file == os.devnull


# -- Spark -----------------------------------------------------------------------------------------


def _run_on_spark(
    query: Query, arguments: dict[str, Any], options: argparse.Namespace, summary: Summary
) -> int:
    """Run the query on Spark, and write all rows at its end."""
    result = query.run(**arguments)
    target, kind = _target(options)
    rows = result.write(
        target,
        kind,
        report=options.report,
        every=options.every,
        timestamps=options.timestamps,
        escape_formulas=options.escape_formulas,
    )
    if summary.needs_rejects and not options.strict:  # listing them reads the streams again
        summary.show_rejects(result.computation.rejects(), rows)
    else:
        summary.show_rejects([], rows)
    return 0
