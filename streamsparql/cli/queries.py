"""The commands that look at queries: `explain` and `check`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsparql.cli.data_options import (
    TIMES,
    check_data,
    check_written,
    data_options,
    engine,
    given,
    prepared,
)
from streamsparql.cli.options import (
    MEASURED,
    REPORTS,
    Commands,
    Help,
    UsageError,
    check_output,
    compile_options,
    compiled,
    period,
)
from streamsparql.cli.screen import Screen
from streamsparql.errors import StreamSparqlError

if TYPE_CHECKING:
    from streamsparql.look.analysis import Analysis
    from streamsparql.query import Query

STAGES = ("all", "syntax", "logical", "optimized", "physical", "spark")
FORMATS = ("text", "json", "dot", "mermaid", "svg", "html")
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
"""The formats of files, where no other is asked for."""
_EXAMPLES = f"""\
{TIMES}
examples:
  streamsparql explain query.rq
  streamsparql explain query.rq --stage logical -o plan.svg
  streamsparql explain query.rq --analyze --stream wind.nq --graph turbines.ttl"""


def add_explain(commands: Commands[argparse.ArgumentParser]) -> None:
    """Adds the command `explain`."""
    parser = commands.add_parser(
        "explain",
        help="show the plan of a query, and what it costs",
        usage="%(prog)s QUERY [OPTION ...]",
        epilog=_EXAMPLES,
        formatter_class=Help,
        add_help=False,
    )
    does = "shows how a query is read, what plan it becomes, and what that does to data"
    compile_options(parser, "a file, or - for standard input", does)
    group = parser.add_argument_group("what is shown")
    add = group.add_argument
    stages, formats = (", ".join(names[1:]) for names in (STAGES, FORMATS))
    add("--stage", choices=STAGES, metavar="NAME", default="all", help=stages)
    add("--format", choices=FORMATS, metavar="NAME", help=formats)
    add("-o", dest="output", metavar="FILE", help="write there; the extension is the format")
    add("--output", metavar="FILE", help=argparse.SUPPRESS)
    add("--analyze", action="store_true", help="run the query, and show rows, state and time")
    kinds = ", ".join(REPORTS)
    add("--report", choices=REPORTS, metavar="KIND", help=f"analyze reports: {kinds}")
    add("--every", metavar="DUR", type=period, help="from one report to the next")
    shown = {action.dest for action in parser._actions}
    data_options(parser)
    needless = {a.dest: a for a in parser._actions if a.dest not in shown}
    parser.set_defaults(run=partial(_explain, {n: a.default for n, a in needless.items()}))


def add_check(commands: Commands[argparse.ArgumentParser]) -> None:
    """Adds the command `check`."""
    parser = commands.add_parser(
        "check",
        help="say what is wrong or doubtful in queries",
        description="Compiles queries, and says what is wrong with them and what is doubtful.",
        epilog="example: streamsparql check queries/*.rq",
        formatter_class=Help,
    )
    parser.add_argument("query", metavar="QUERY", nargs="+", help="files, or - for standard input")
    compile_options(parser)
    parser.set_defaults(run=_check)


def _explain(defaults: Mapping[str, Any], options: argparse.Namespace) -> int:
    """Explains a query; `defaults` are those of the options that tell of data."""
    over_data = options.analyze or (options.stage == "spark" and options.stream)
    _check_options(options, {} if over_data else defaults)
    check_output(options.output)
    query = compiled(options.query, options)
    if options.format is None:
        extension = os.path.splitext(options.output or "")[1].lower()
        options.format = _EXTENSIONS.get(extension)
        if options.format is None:
            raise UsageError(f"-o {options.output}: its extension is no format: give --format")
    if not over_data:
        from streamsparql.look.explain import explain

        if options.output and _same_file(options.output, options.query):
            raise UsageError(f"-o {options.output}: that is the query")
        _show(partial(explain, query, options.stage, options.format), options)
        return 0
    options.name = "streamsparql"
    kwargs = given(query, options)
    check_written(query, options, kwargs, options.output)
    if options.analyze and options.engine == "embedded":
        return _analyze(query, kwargs, options)
    with engine(options, kwargs) as on_spark:
        _on_spark(query, on_spark, options)
    return 0


def _same_file(one: str, other: str) -> bool:
    return os.path.isfile(one) and os.path.isfile(other) and os.path.samefile(one, other)


def _check_options(options: argparse.Namespace, unused: Mapping[str, Any]) -> None:
    """What goes with what; `unused` are the options that must be left as they are by default."""
    if options.analyze and options.stage not in MEASURED:
        raise UsageError(
            f"--analyze measures what runs, which is the physical plan: --stage {options.stage}"
            " shows what it was made of; leave out the one or the other"
        )
    if options.analyze and options.stage == "spark" and options.engine != "spark":
        raise UsageError("--stage spark with --analyze goes with --engine spark")
    if not options.analyze and (options.report is not None or options.every is not None):
        raise UsageError("--report and --every go with --analyze")
    for name, default in unused.items():
        if getattr(options, name) != default:
            option = {"start": "from", "end": "until"}.get(name, name).replace("_", "-")
            raise UsageError(
                f"--{option} goes with --analyze, which runs the query; --stage spark --stream"
                " FILE shows how Spark would; the other stages look at no data"
            )
    if options.stage == "spark":
        options.engine = "spark"
    if not unused:
        check_data(options)


def _analyze(query: Query, kwargs: dict[str, Any], options: argparse.Namespace) -> int:
    """Runs the query in this process; an interrupt ends the run, and what was measured is shown."""
    from streamsparql.cli.interrupts import Interrupts
    from streamsparql.cli.summary import Progress
    from streamsparql.look.analysis import Analysis
    from streamsparql.run.measured import MeasuredRun

    given, reports, waiting = prepared(query, kwargs, options)
    measured = MeasuredRun(query, given, reports, endless=bool(waiting))
    progress = Progress(quiet=False)
    with Interrupts(measured.stop, waiting) as interrupts:
        analysis = Analysis.of(measured.run(progress.show))
        progress.clear()
        _show(partial(_analysis, analysis, options), options)
    return 128 + interrupts.signal if interrupts.signal else 0


def _analysis(
    analysis: Analysis, options: argparse.Namespace, color: bool = False, width: int = 100
) -> str:
    return analysis.explain(options.format, options.stage, color=color, width=width)


def _on_spark(query: Query, kwargs: dict[str, Any], options: argparse.Namespace) -> None:
    """Runs the query on Spark, or shows how it would be."""
    if options.analyze:
        analysis = query.analyze(**kwargs, report=options.report, every=options.every)
        _show(partial(_analysis, analysis, options), options)
        return
    from streamsparql.look.explain import explain
    from streamsparql.spark.spark_result import SparkResult

    result = query.run(**kwargs)
    assert isinstance(result, SparkResult)
    run = result.run.described()
    _show(partial(explain, query, options.stage, options.format, run=run), options)


def _show(explained: Callable[..., str], options: argparse.Namespace) -> None:
    """Writes what is explained to the file that is asked for, or to the screen as it is."""
    if options.output:
        text = explained()
        try:
            Path(options.output).write_text(text + "\n", "utf-8")
        except OSError as error:
            options.name = "streamsparql"
            raise StreamSparqlError(f"cannot write {options.output}: {error.strerror}") from None
        return
    screen = Screen.here(narrowest=1, widest=1_000, otherwise=100)
    screen.write(explained(color=screen.color, width=screen.width))


def _check(options: argparse.Namespace) -> int:
    """Checks all queries; one that is wrong does not keep the others from being checked."""
    wrong = 0
    for name in options.query:
        try:
            warnings = compiled(name, options).check()
        except StreamSparqlError as error:
            wrong = 1
            print(f"{options.name}: {error}", file=sys.stderr)
        else:
            for warning in warnings:
                print(f"{options.name}: {warning}")
            if not warnings:
                print(f"{options.name}: fine")
    return wrong
