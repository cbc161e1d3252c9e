"""The commands that look at queries: `explain` and `check`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from streamsparql.cli.options import Commands, UsageError, compile_options, compiled, sources
from streamsparql.errors import StreamSparqlError

if TYPE_CHECKING:
    from streamsparql.explain.spark import Described
    from streamsparql.query import Query

STAGES = ("all", "syntax", "logical", "optimized", "physical", "spark")
FORMATS = ("text", "json", "dot", "mermaid", "svg", "html")


def add_explain(commands: Commands[argparse.ArgumentParser]) -> None:
    """Adds the command `explain`."""
    parser = commands.add_parser(
        "explain",
        help="show the plan of a query",
        description="Shows how a query is read and what plan it becomes.",
        epilog="example: streamsparql explain query.rq --stage logical --format svg -o plan.svg",
    )
    parser.add_argument("query", metavar="QUERY", help="a file, or - for standard input")
    parser.add_argument("--stage", choices=STAGES, default="all", help="default: all")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument(
        "--stream",
        metavar="IRI=FILE",
        action="append",
        default=[],
        help="what the spark stage is to cut",
    )
    parser.add_argument("--graph", metavar="FILE", help="the static default graph, with --stream")
    parser.add_argument("--master", metavar="URL", help="Spark's master, with --stream")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of the screen")
    compile_options(parser)
    parser.set_defaults(run=_explain)


def add_check(commands: Commands[argparse.ArgumentParser]) -> None:
    """Adds the command `check`."""
    parser = commands.add_parser(
        "check",
        help="say what is wrong or doubtful in queries",
        description="Compiles queries, and says what is wrong with them and what is doubtful.",
        epilog="example: streamsparql check queries/*.rq",
    )
    parser.add_argument("query", metavar="QUERY", nargs="+", help="files, or - for standard input")
    compile_options(parser)
    parser.set_defaults(run=_check)


def _explain(options: argparse.Namespace) -> int:
    query = compiled(options.query, options)
    if not options.stream:
        _show(query, options)
        return 0
    if options.stage != "spark":
        raise UsageError("--stream goes with --stage spark: the other stages look at no data")
    from streamsparql.cli.runs import session
    from streamsparql.spark.results import SparkResult

    options.name = "streamsparql"
    streams = sources(options.stream, query.streams, "stream")
    with session(options.master) as spark:
        result = query.run(streams, graph=options.graph, engine="spark", spark=spark)
        assert isinstance(result, SparkResult)
        _show(query, options, result.run.described())
    return 0


def _show(query: Query, options: argparse.Namespace, run: Described | None = None) -> None:
    from streamsparql.explain import explain

    if options.output:
        text = explain(query, options.stage, options.format, run=run)
        try:
            Path(options.output).write_text(text + "\n", "utf-8")
        except OSError as error:
            raise StreamSparqlError(f"cannot write {options.output}: {error.strerror}") from None
        return
    terminal = sys.stdout is not None and sys.stdout.isatty()
    color = terminal and "NO_COLOR" not in os.environ
    width = os.get_terminal_size().columns if terminal else 100
    print(explain(query, options.stage, options.format, color=color, width=width, run=run))


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
