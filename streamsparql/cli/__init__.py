"""The command line: `streamsparql run`, `explain`, `check`, `demo`, `prepare`, `completion`.

Exit status: 0 fine, 1 the query or the input is wrong, 2 the command line is wrong. What is asked
for goes to standard output, errors to standard error; a user's mistake never shows a traceback.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from io import TextIOWrapper
from typing import NoReturn

from streamsparql.cli import completion, demo, queries, runs, spark_commands
from streamsparql.cli.options import DIALECT_CHOICES, Help, UsageError
from streamsparql.cli.queries import FORMATS, STAGES
from streamsparql.cli.version import Version
from streamsparql.errors import StreamSparqlError

EXAMPLES = """\
examples:
  streamsparql demo                            a wind park, to see what this is
  streamsparql run query.rq --stream wind.nq   answers
  streamsparql explain query.rq                how a query is read, and its plan
  streamsparql COMMAND --help                  the options of a command"""

__all__ = ["DIALECT_CHOICES", "FORMATS", "STAGES", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and gives its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a pipe or a file gets UTF-8, as our files have it
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    try:
        try:
            return _run(_parser(), arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        place = "standard output: cannot be written" if error.filename is None else error.filename
        _complain(f"{place}: {error.strerror}")
        return 1
    except KeyboardInterrupt:
        return 130


def _run(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        _refuse(parser, options.command, unknown)
    try:
        status: int = options.run(options)
        return status
    except UsageError as error:
        _complain(f"{parser.prog} {options.command}: error: {error}")
        return 2
    except StreamSparqlError as error:
        _complain(f"{options.name}: {error}")
        return 1


def _refuse(parser: argparse.ArgumentParser, command: str, unknown: Sequence[str]) -> NoReturn:
    """Ends with an error about arguments that no option takes, in the words of their command."""
    (commands,) = (each for each in parser._actions if each.dest == "command" and each.choices)
    assert isinstance(commands.choices, dict)
    chosen: argparse.ArgumentParser = commands.choices[command]
    near = get_close_matches(unknown[0].partition("=")[0], chosen._option_string_actions, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    chosen.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


def _complain(text: str) -> None:
    """Says what is wrong on standard error, if that is open; nothing in it moves the cursor."""
    from streamsparql.text.visible import visible

    if sys.stderr is not None:
        print(re.sub(r"[^\t\n]+", lambda part: visible(part[0]), text), file=sys.stderr)


def _discard_output() -> None:
    """What is still to be written goes nowhere, so that Python's own last flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamsparql",
        description="SPARQL over streams: what a query means, and what it answers.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    parser.set_defaults(name=parser.prog)
    parser.add_argument("--version", action=Version, help="versions of this, Python, Spark, Java")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    runs.add_run(commands)
    queries.add_explain(commands)
    queries.add_check(commands)
    demo.add_demo(commands)
    spark_commands.add_prepare(commands)
    completion.add_completion(commands, parser)
    return parser
