"""The command line: `streamsparql run`, `explain`, `check`, `head`, `demo`, `prepare` and others.

Exit status: 0 for success, 1 if the query or the input is wrong, 2 if the command line is wrong.
Results go to standard output, errors to standard error; a user's mistake never shows a traceback.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from io import TextIOWrapper
from typing import Any, NoReturn

from streamsparql.cli import (
    checkpoints,
    completion,
    demo,
    heads,
    queries,
    runs,
    serving,
    shell,
    spark_commands,
)
from streamsparql.cli.common_options import DIALECT_CHOICES, Commands, HelpFormatter, UsageError
from streamsparql.cli.mistaken import mistaken_command
from streamsparql.cli.queries import EXPLAIN_FORMATS, EXPLAIN_STAGES
from streamsparql.cli.version import VersionAction
from streamsparql.errors import ConnectionWarning, DataWarning, StreamSparqlError

_EXAMPLES = """\
examples:
  streamsparql demo                            queries over a wind park
  streamsparql run query.rq --stream wind.nq   run a query over a file
  streamsparql explain query.rq                show the plan of a query
  streamsparql COMMAND --help                  show the options of a command"""

__all__ = ["DIALECT_CHOICES", "EXPLAIN_FORMATS", "EXPLAIN_STAGES", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # pipes and files get UTF-8, as in all text formats
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    try:
        try:
            with warnings.catch_warnings():  # the summary has the notes of a run
                warnings.simplefilter("ignore", DataWarning)
                warnings.simplefilter("always", ConnectionWarning)
                warnings.showwarning = _show_warning
                return _run(_parser(), arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe, as `| head` does
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        place = "cannot write standard output" if error.filename is None else error.filename
        _print_error(f"{place}: {error.strerror}")
        return 1
    except KeyboardInterrupt:
        return 130


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Print a warning on one line."""
    if sys.stderr is not None:
        print(f"warning: {message}", file=sys.stderr)


def _run(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        parser.print_help()
        return 0
    if mistake := mistaken_command(arguments, _commands(parser)):
        parser.error(mistake)
    options, unknown = parser.parse_known_args(arguments)
    if hasattr(options, "words") and all(not x.startswith("-") or x == "-" for x in unknown):
        options.words += unknown  # words after an option
    elif unknown:
        _reject_unknown(parser, options.command, unknown)
    try:
        status: int = options.run(options)
        return status
    except UsageError as error:
        _print_error(f"{parser.prog} {options.command}: error: {error}")
        return 2
    except StreamSparqlError as error:
        _print_error(f"{options.name}: {error}")
        return 1


def _reject_unknown(
    parser: argparse.ArgumentParser, command: str, unknown: Sequence[str]
) -> NoReturn:
    """Exit with an error about unknown arguments, with the usage of their command."""
    chosen = _commands(parser)[command]
    near = get_close_matches(unknown[0].partition("=")[0], chosen._option_string_actions, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    chosen.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands, by name."""
    (commands,) = (each for each in parser._actions if isinstance(each, Commands))
    return commands.choices


def _print_error(text: str) -> None:
    """Print an error to standard error, if that is open, without its control characters."""
    from streamsparql.text.visible import visible

    if sys.stderr is not None:
        print(re.sub(r"[^\t\n]+", lambda part: visible(part[0]), text), file=sys.stderr)


def _discard_output() -> None:
    """Redirect buffered output to the null device, so that the flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamsparql",
        description="SPARQL over streams: explain what a query means, and run it.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.set_defaults(name=parser.prog)
    parser.add_argument(
        "--version",
        action=VersionAction,
        help="show the versions of streamsparql, Python, Spark, Java",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    runs.add_run(commands)
    queries.add_explain(commands)
    queries.add_check(commands)
    heads.add_head(commands)
    shell.add_shell(commands, main)
    serving.add_serve(commands)
    demo.add_demo(commands)
    spark_commands.add_prepare(commands)
    checkpoints.add_checkpoint(commands)
    completion.add_completion(commands)
    return parser
