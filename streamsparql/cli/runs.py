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
    Period,
    UsageError,
    add_compile_options,
    add_together,
    check_output,
    duration_option,
    show_warnings,
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
from streamsparql.cli.summary import (
    Progress,
    Summary,
    show_lines,
    show_short_windows,
    show_why_empty,
)
from streamsparql.cli.words import add_words, compile_query, name_queries
from streamsparql.connectors.urls import scheme_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from streamsparql.connectors.sinks import Flushed
    from streamsparql.query import Query
    from streamsparql.sinks import Layout, Sink

OUTPUT_FORMATS = (
    *("table", "csv", "jsonl", "nq", "parquet"),
    *("sparql-json", "sparql-xml", "sparql-csv", "sparql-tsv"),
)
VALUES = ("terms", "native")
TIMESTAMP_STYLES = ("ms", "iso", "local")
_EXAMPLES = """\
examples: streamsparql run query.rq wind.nq --graph turbines.ttl
          streamsparql run queries/*.rq wind.nq -o results/"""


def add_run(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `run`."""
    parser = commands.add_parser(
        "run",
        help="run queries over files or standard input",
        usage="%(prog)s QUERY ... [FILE ...] [--stream [IRI=]FILE] [OPTION ...]",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        add_help=False,
    )
    title = "run a query, or several, over files, folders or standard input"
    add_compile_options(parser, add_words, title)
    add_data_options(parser)
    group = parser.add_argument_group("results")
    add = group.add_argument
    kinds = "rstream, istream or dstream, at report instants"
    add_together(
        "rstream, istream or dstream; the period",
        add("--report", choices=REPORTS, metavar="KIND", help=kinds),
        add("--every", metavar="DUR", action=Period, help="time from one report to the next"),
    )
    emits = "final (its end is known) or eager (at once, cut)"
    add("--emit", choices=("final", "eager"), metavar="WHEN", default="final", help=emits)
    formats = "csv, jsonl, nq, parquet, sparql-json|xml|csv|tsv"
    add("--output", choices=OUTPUT_FORMATS, metavar="FORMAT", help=formats)
    values = "in csv, jsonl and parquet: terms, or native values"
    add_together(
        "native values or terms; ms, iso or local",
        add("--values", choices=VALUES, metavar="KIND", default="terms", help=values),
        add(
            "--timestamps",
            choices=TIMESTAMP_STYLES,
            metavar="STYLE",
            help="ms, iso (UTC) or local",
        ),
    )
    formulas = "in CSV, put ' before what a spreadsheet would run"
    add("--escape-formulas", action="store_true", help=formulas)
    add("-o", dest="file", metavar="FILE", help="write to a file; its extension is the format")
    add("--rejects", metavar="FILE", help="write late and rejected items, as JSON lines")
    every = "time between two checkpoints; default: 10s"
    add_together(
        "its state; continue after kill -9",
        add("--checkpoint", metavar="DIR", help="save the state there, and continue from it"),
        add("--checkpoint-every", metavar="DUR", type=duration_option, help=every),
    )
    add("--quiet", action="store_true", help="show no progress and no summary")
    parser.set_defaults(run=_run, bare_period=False)


def _run(options: argparse.Namespace) -> int:
    name_queries(options)
    check_data(options)
    if options.checkpoint_every is not None and options.checkpoint is None:
        raise UsageError("--checkpoint-every requires --checkpoint DIR")
    if options.checkpoint is not None:
        from streamsparql.cli.checkpoints import run_with_checkpoints

        return run_with_checkpoints(options)
    if len(options.query) > 1:
        from streamsparql.cli.several import run_several

        return run_several(options)
    query = compile_query(options)
    name, options.name = options.name, "streamsparql"
    _check_options(options, query)
    arguments = run_arguments(query, options)
    _check_files(query, options, arguments)
    show_warnings(query, name, options.quiet)
    warn_of_bare_period(query, options)
    with Summary(options.rejects, options.quiet) as summary:
        if options.engine == "embedded":
            return _run_embedded(query, name, arguments, options, summary)
        with on_engine(options, arguments) as on_spark:
            return _run_on_spark(query, on_spark, options, summary)


def warn_of_bare_period(query: Query, options: argparse.Namespace) -> None:
    """Warn of a period of reports without a unit, if windows move by seconds."""
    grid = query.report.every
    if not options.bare_period or options.quiet or options.every >= _SECOND or grid is None:
        return
    if grid >= _SECOND:
        show_lines(
            [
                f"warning: --every {options.every} without a unit is {options.every} ms;"
                f" write --every {options.every}s"
            ]
        )


_SECOND = 1_000


def _check_options(options: argparse.Namespace, query: Query) -> None:
    kind = _target(options)[1]
    check_form(kind, query.form, query.form.upper())
    check_format(options, kind)
    if kind == "live":
        check_live_target(options)
    if (
        kind != "live"
        and options.file is not None
        and options.output is None
        and not _implies_format(options.file)
    ):
        raise UsageError(f"-o {options.file}: unknown extension; add --output")
    if options.emit == "eager":
        if options.report is not None or options.every is not None:
            raise UsageError("--emit eager applies to rows, not to reports, which are final")
        if options.engine == "spark":
            raise UsageError("--emit eager requires --engine embedded")


def check_live_target(options: argparse.Namespace) -> None:
    """Raise an error for options that do not apply to a live sink."""
    if options.output is not None or options.engine == "spark":
        what = "--output" if options.output is not None else "--engine spark"
        raise UsageError(f"{what} does not apply to the URL of -o, which may have ?format=")


def check_form(kind: str, form: str, shown: str) -> None:
    """Raise an error if a format does not show the results of a form of queries."""
    triples = form in ("construct", "describe")
    if kind == "nq" and not triples:
        raise UsageError(f"nq is a format for triples, not for {shown}; use jsonl")
    if kind.startswith("sparql-") and triples:
        raise UsageError(f"{kind} is a format for solutions, not for {shown}; use nq")


def check_format(options: argparse.Namespace, kind: str) -> None:
    """Raise an error if the options of the output contradict its format."""
    if options.values == "native" and kind not in ("csv", "jsonl", "parquet"):
        raise UsageError("--values native requires --output csv, jsonl or parquet")
    if options.escape_formulas and kind != "csv":
        raise UsageError("--escape-formulas requires --output csv, or -o FILE.csv")
    if options.output == "parquet" and options.file is None:
        raise UsageError("--output parquet requires -o FILE")
    check_output(options.file)


# -- embedded --------------------------------------------------------------------------------------


def _run_embedded(
    query: Query,
    name: str,
    arguments: dict[str, Any],
    options: argparse.Namespace,
    summary: Summary,
) -> int:
    """Run the query in this process, and write rows as soon as they are emitted."""
    from streamsparql.physical.operator import INFINITY
    from streamsparql.run.causes import has_no_answer
    from streamsparql.run.replay import Replay, layout_of
    from streamsparql.run.reports import SNAPSHOT, is_timeless
    from streamsparql.sinks import Incomplete

    data, reports, inputs = prepare_run(query, arguments, options)
    timeless = is_timeless(query, reports, _target(options)[1])
    reports = SNAPSHOT if timeless else reports
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
    layout = replace(layout, escape_formulas=options.escape_formulas, values=options.values)
    if timeless:
        layout = replace(layout, times=())
    progress = Progress(options.quiet)
    part = None
    with Interrupts(replay.stop, inputs) as interrupts:
        first = next(tables, None)  # a run that fails at once must not overwrite a file
        try:
            with _sink(options, layout, whole=not endless) as sink:
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
                incomplete = interrupts.signal != 0 and replay.watermark < INFINITY
                if incomplete:
                    raise Incomplete
        except Incomplete as ended:
            part = ended.part
        summary.record(replay)
        summary.show(replay, replay.watermark if incomplete else None)
    if part is not None:
        print(f"{options.file} is not written: the rows so far are in {part}", file=sys.stderr)
    if not incomplete and not options.quiet:
        if has_no_answer(replay.execution.pipeline):
            show_why_empty(query, data, replay.execution, reports)
        else:
            show_short_windows(query, replay.execution, name)
    return 128 + interrupts.signal if incomplete else 0


def _sink(
    options: argparse.Namespace, layout: Layout, whole: bool
) -> AbstractContextManager[Sink | Flushed]:
    """Open the file, or the live sink, that rows are written to."""
    from streamsparql.connectors.sinks import live_sink
    from streamsparql.sinks import open_sink

    if scheme_of(options.file) is not None:
        return live_sink(options.file, layout)
    return open_sink(*_target(options), layout, whole=whole)


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
    if scheme_of(options.file) is not None:
        return options.file, "live"
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
    from streamsparql.spark.spark_result import SparkComputation

    result = query.run(**arguments)
    target, kind = _target(options)
    rows = result.write(
        target,
        kind,
        report=options.report,
        every=options.every,
        timestamps=options.timestamps,
        escape_formulas=options.escape_formulas,
        values=options.values,
    )
    computation = result.computation
    assert isinstance(computation, SparkComputation)
    summary.show_on_spark(computation, rows)
    if not options.quiet and (not rows or result.computation.is_empty()):
        show_lines(result.why_empty(options.report, options.every).lines())
    return 0
