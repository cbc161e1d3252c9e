"""The commands `explain` and `check`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsparql.cli.common_options import (
    MEASURED_STAGES,
    REPORTS,
    Commands,
    HelpFormatter,
    UsageError,
    add_compile_options,
    check_output,
    period_option,
)
from streamsparql.cli.data_options import (
    add_data_options,
    check_data,
    check_targets,
    on_engine,
    prepare_run,
    run_arguments,
)
from streamsparql.cli.screen import Screen
from streamsparql.cli.words import add_words, compile_query, name_queries
from streamsparql.errors import StreamSparqlError

if TYPE_CHECKING:
    from streamsparql.look.analysis import Analysis
    from streamsparql.query import Query

EXPLAIN_STAGES = ("all", "syntax", "logical", "optimized", "physical", "spark")
EXPLAIN_FORMATS = ("text", "json", "dot", "mermaid", "svg", "html")
_EXTENSIONS = {
    ".svg": "svg",
    ".html": "html",
    ".json": "json",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".txt": "text",
    "": "text",
}
"""The formats of file name extensions, unless --format is used."""
_EXAMPLES = """\
examples:
  streamsparql explain query.rq
  streamsparql explain query.rq --stage logical -o plan.svg
  streamsparql explain query.rq --analyze --stream wind.nq --graph turbines.ttl"""


def add_explain(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `explain`."""
    parser = commands.add_parser(
        "explain",
        help="show how a query is read, its plan, and its costs",
        usage="%(prog)s QUERY ... [FILE ...] [OPTION ...]",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
        add_help=False,
    )
    title = "show how a query is read, its plan, and with --analyze its run over data"
    add_compile_options(parser, add_words, title)
    group = parser.add_argument_group("output")
    add = group.add_argument
    stages, formats = "all: syntax, logical, optimized; physical; spark", EXPLAIN_FORMATS
    add("--stage", choices=EXPLAIN_STAGES, metavar="NAME", default="all", help=stages)
    add("--format", type=_format, choices=formats, metavar="NAME", help=", ".join(formats))
    add("-o", dest="output", metavar="FILE", help="write to a file; its extension is the format")
    add("--output", metavar="FILE", help=argparse.SUPPRESS)
    add("--analyze", action="store_true", help="run the query, and show rows, state and time")
    kinds = ", ".join(REPORTS)
    add("--report", choices=REPORTS, metavar="KIND", help=f"analyze reports: {kinds}")
    add("--every", metavar="DUR", type=period_option, help="time from one report to the next")
    before = {action.dest for action in parser._actions}
    add_data_options(parser)
    data_defaults = {a.dest: a.default for a in parser._actions if a.dest not in before}
    parser.set_defaults(run=partial(_explain, data_defaults))


def _format(name: str) -> str:
    """Return the name of a format; raise an error for one that needs a converter."""
    from streamsparql.look.explain import conversion

    if advice := conversion(name):
        raise argparse.ArgumentTypeError(advice)
    return name


def add_check(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `check`."""
    parser = commands.add_parser(
        "check",
        help="report errors and warnings in queries",
        description="Compile queries, and report their errors and warnings.",
        epilog="example: streamsparql check queries/*.rq",
        formatter_class=HelpFormatter,
    )
    parser.add_argument("query", metavar="QUERY", nargs="*", help="files, or - for standard input")
    parser.add_argument("-q", dest="inline", metavar="TEXT", help="the text of a query")
    add_compile_options(parser)
    parser.set_defaults(run=_check)


def _explain(defaults: Mapping[str, Any], options: argparse.Namespace) -> int:
    """Explain a query, or several; `defaults` are the default values of the data options."""
    name_queries(options)
    data = options.stream or options.files
    over_data = options.analyze or (options.stage == "spark" and data)
    _check_options(options, {} if over_data else defaults)
    check_output(options.output)
    if options.format is None:
        extension = os.path.splitext(options.output or "")[1].lower()
        options.format = _EXTENSIONS.get(extension)
        if options.format is None:
            from streamsparql.look.explain import conversion

            why = conversion(extension[1:]) or "unknown extension; add --format"
            raise UsageError(f"-o {options.output}: {why}")
    if options.output and any(_is_same_file(options.output, file) for file in options.query):
        raise UsageError(f"-o {options.output}: would overwrite the query")
    if len(options.query) > 1:
        from streamsparql.cli.several import explain_several

        _show(explain_several(options), options)
        return 0
    query = compile_query(options)
    if not over_data:
        from streamsparql.look.explain import explain

        _show(partial(explain, query, options.stage, options.format), options)
        return 0
    options.name = "streamsparql"
    arguments = run_arguments(query, options)
    check_targets(query, options, arguments, options.output)
    if options.analyze and options.engine == "embedded":
        return _analyze(query, arguments, options)
    with on_engine(options, arguments) as on_spark:
        _on_spark(query, on_spark, options)
    return 0


def _is_same_file(one: str, other: str) -> bool:
    return os.path.isfile(one) and os.path.isfile(other) and os.path.samefile(one, other)


def _check_options(options: argparse.Namespace, unused: Mapping[str, Any]) -> None:
    """Raise an error for contradicting options, or options without effect.

    `unused` has the options that must have their defaults, since no data is read.
    """
    if options.analyze and options.stage not in MEASURED_STAGES:
        raise UsageError(
            f"--analyze measures the physical plan, not --stage {options.stage};"
            " leave out one of the two"
        )
    if options.analyze and options.stage == "spark" and options.engine != "spark":
        raise UsageError("--stage spark with --analyze requires --engine spark")
    if not options.analyze and (options.report is not None or options.every is not None):
        raise UsageError("--report and --every require --analyze")
    unread = list(options.files) if unused else []
    unread += [_flag(name) for name, value in unused.items() if getattr(options, name) != value]
    if unread:
        raise UsageError(
            f"{unread[0]} requires --analyze, which runs the query, or --stage spark with"
            " --stream, which shows how Spark would run it; other stages read no data"
        )
    if options.stage == "spark":
        options.engine = "spark"
    if not unused:
        check_data(options)


def _flag(name: str) -> str:
    return "--" + {"start": "from", "end": "until"}.get(name, name).replace("_", "-")


def _analyze(query: Query, arguments: dict[str, Any], options: argparse.Namespace) -> int:
    """Run the query in this process and show its measurements, also after an interrupt."""
    from streamsparql.cli.interrupts import Interrupts
    from streamsparql.cli.summary import Progress, show_notes
    from streamsparql.look.analysis import Analysis
    from streamsparql.run.measured import MeasuredRun

    run_input, reports, endless = prepare_run(query, arguments, options)
    measured = MeasuredRun(query, run_input, reports, endless=bool(endless))
    progress = Progress(quiet=False)
    with Interrupts(measured.stop, endless) as interrupts:
        analysis = Analysis.of(measured.run(progress.show))
        progress.clear()
        _show(partial(_explain_analysis, analysis, options), options)
    show_notes(measured.replay.execution.notes())
    return 128 + interrupts.signal if interrupts.signal else 0


def _explain_analysis(
    analysis: Analysis, options: argparse.Namespace, color: bool = False, width: int = 100
) -> str:
    return analysis.explain(options.format, options.stage, color=color, width=width)


def _on_spark(query: Query, arguments: dict[str, Any], options: argparse.Namespace) -> None:
    """Run the query on Spark and show its measurements, or show how Spark would run it."""
    if options.analyze:
        analysis = query.analyze(**arguments, report=options.report, every=options.every)
        _show(partial(_explain_analysis, analysis, options), options)
        return
    from streamsparql.look.explain import explain
    from streamsparql.spark.spark_result import SparkResult

    result = query.run(**arguments)
    assert isinstance(result, SparkResult)
    run = result.run.described()
    _show(partial(explain, query, options.stage, options.format, run=run), options)


def _show(render: Callable[..., str], options: argparse.Namespace) -> None:
    """Write an explanation to the file of `-o`, or to the screen, in its colours and width."""
    if options.output:
        text = render()
        try:
            Path(options.output).write_text(text + "\n", "utf-8")
        except OSError as error:
            options.name = "streamsparql"
            raise StreamSparqlError(f"cannot write {options.output}: {error.strerror}") from None
        return
    screen = Screen.of_stdout(narrowest=1, widest=1_000, default=100)
    screen.write(render(color=screen.color, width=screen.width))


def _check(options: argparse.Namespace) -> int:
    """Check all queries, also those after one with an error."""
    status = 0
    queries = [[name] for name in options.query]
    if options.inline is not None:
        queries.append([])
    if not queries:
        raise UsageError("missing query; name its file, or write -q 'SELECT ..'")
    for options.query in queries:
        try:
            warnings = compile_query(options).check()
        except StreamSparqlError as error:
            status = 1
            print(f"{options.name}: {error}", file=sys.stderr)
        else:
            for warning in warnings:
                print(f"{options.name}: {warning}")
            if not warnings:
                print(f"{options.name}: ok")
    return status
