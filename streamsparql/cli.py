"""The command line: `streamsparql explain` and `streamsparql check`.

Exit status: 0 fine, 1 the query is wrong, 2 the command line is wrong. What is asked for goes to
standard output, errors to standard error; a user's mistake never shows a traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from streamsparql import __version__
from streamsparql.errors import StreamSparqlError

if TYPE_CHECKING:
    from streamsparql.query import Query

DIALECTS = ("auto", "streaming", "csparql", "cqels", "epsparql", "rspql")
STAGES = ("all", "syntax", "logical", "optimized", "physical")
FORMATS = ("text", "json", "dot", "mermaid", "svg", "html")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and gives its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a pipe or a file gets UTF-8, as our files have it
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except StreamSparqlError as error:
        print(f"{options.name}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        print(f"standard output: cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _discard_output() -> None:
    """What is still to be written goes nowhere, so that Python's own last flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamsparql",
        description="SPARQL over streams: what a query means, before it runs.",
        epilog="QUERY is a file, or - for standard input.",
    )
    parser.add_argument("--version", action="version", version=f"streamsparql {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    explain = commands.add_parser(
        "explain",
        help="show the plan of a query",
        description="Shows how a query is read and what plan it becomes.",
        epilog="example: streamsparql explain query.rq --stage logical --format svg -o plan.svg",
    )
    explain.add_argument("query", metavar="QUERY", help="a file, or - for standard input")
    explain.add_argument("--stage", choices=STAGES, default="all", help="default: all")
    explain.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    explain.add_argument("-o", "--output", metavar="FILE", help="write there instead of the screen")
    _compile_options(explain)
    explain.set_defaults(run=_explain)

    check = commands.add_parser(
        "check",
        help="say what is wrong or doubtful in queries",
        description="Compiles queries, and says what is wrong with them and what is doubtful.",
        epilog="example: streamsparql check queries/*.rq",
    )
    check.add_argument("query", metavar="QUERY", nargs="+", help="files, or - for standard input")
    _compile_options(check)
    check.set_defaults(run=_check)
    return parser


def _compile_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dialect", choices=DIALECTS, default="auto", help="default: auto")
    parser.add_argument("--base", metavar="IRI", help="resolves relative IRIs")
    parser.add_argument(
        "--origin", metavar="MS", type=int, default=0, help="where window grids start; default: 0"
    )
    parser.add_argument(
        "--pedantic", action="store_true", help="constructs of another dialect are errors"
    )


def _explain(options: argparse.Namespace) -> int:
    from streamsparql.explain import explain

    query = _compile(options.query, options)
    if options.output:
        text = explain(query, options.stage, options.format)
        try:
            Path(options.output).write_text(text + "\n", "utf-8")
        except OSError as error:
            raise StreamSparqlError(f"cannot write {options.output}: {error.strerror}") from None
        return 0
    terminal = sys.stdout is not None and sys.stdout.isatty()
    color = terminal and "NO_COLOR" not in os.environ
    width = os.get_terminal_size().columns if terminal else 100
    print(explain(query, options.stage, options.format, color=color, width=width))
    return 0


def _check(options: argparse.Namespace) -> int:
    """Checks all queries; one that is wrong does not keep the others from being checked."""
    wrong = 0
    for name in options.query:
        try:
            warnings = _compile(name, options).check()
        except StreamSparqlError as error:
            wrong = 1
            print(f"{options.name}: {error}", file=sys.stderr)
        else:
            for warning in warnings:
                print(f"{options.name}: {warning}")
            if not warnings:
                print(f"{options.name}: fine")
    return wrong


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise StreamSparqlError("is closed")
    return sys.stdin.buffer.read()


def _compile(name: str, options: argparse.Namespace) -> Query:
    from streamsparql.query import compile

    options.name = "standard input" if name == "-" else name
    try:
        text = (_standard_input() if name == "-" else Path(name).read_bytes()).decode("utf-8")
    except OSError as error:
        raise StreamSparqlError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise StreamSparqlError(f"is not UTF-8 text (byte {error.start})") from None
    return compile(
        text,
        dialect=options.dialect,
        base=options.base,
        origin=options.origin,
        pedantic=options.pedantic,
    )
