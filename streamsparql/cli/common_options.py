"""Options that several commands share, such as those of a query, and parsers of their values."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from streamsparql.errors import SourceError, StreamSparqlError

if TYPE_CHECKING:
    from streamsparql.query import Query

REPORTS = ("rstream", "istream", "dstream")
MEASURED_STAGES = ("all", "physical", "spark")
"""The stages that `--analyze` can show: those that run, and so are measured."""
DIALECT_CHOICES = ("auto", "streaming", "csparql", "cqels", "epsparql", "rspql")

Commands = argparse._SubParsersAction  # the return type of add_subparsers has no public name


def check_output(file: str | None) -> None:
    """Raise an error if there is nowhere to write: no file, and standard output is closed."""
    if file is None and sys.stdout is None:
        raise StreamSparqlError("standard output is closed; name a file with -o")


class UsageError(StreamSparqlError):
    """A mistake on the command line that argparse cannot detect. The exit status is 2."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help that fits a screen: descriptions are kept as written, an option takes one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=25)


def add_compile_options(
    parser: argparse.ArgumentParser,
    query: str | None = None,
    title: str = "how the query is read",
) -> None:
    """Add the options of a command that compiles a query, as a group below `title`.

    `query` is the help text of the QUERY arguments; without it, the caller adds QUERY and --help.
    """
    group = parser.add_argument_group(title)
    add = group.add_argument
    if query:
        add("query", metavar="QUERY", nargs="+", help=query)
        add("-h", "--help", action="help", help="show this help and exit")
    names = ", ".join(DIALECT_CHOICES[1:])
    add("--dialect", choices=DIALECT_CHOICES, metavar="NAME", default="auto", help=names)
    add("--base", metavar="IRI", help="resolve relative IRIs against this one")
    add("--origin", metavar="T", type=parse_instant, default=0, help="start of the window grids")
    add("--pedantic", action="store_true", help="reject constructs of other dialects")


def compile_file(name: str, options: argparse.Namespace) -> Query:
    """Compile the query in a file, or on standard input if the name is `-`."""
    options.name = "standard input" if name == "-" else name
    return compile_text(read_text(name), options)


def compile_text(text: str, options: argparse.Namespace) -> Query:
    """Compile a query with the options that `add_compile_options` added."""
    from streamsparql.query import compile

    return compile(
        text,
        dialect=options.dialect,
        base=options.base,
        origin=options.origin,
        pedantic=options.pedantic,
    )


def read_text(name: str) -> str:
    """Read the UTF-8 text in a file, or on standard input if the name is `-`."""
    try:
        return (_read_standard_input() if name == "-" else Path(name).read_bytes()).decode("utf-8")
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SourceError(f"is not UTF-8 text (byte {error.start})") from None


def _read_standard_input() -> bytes:
    if sys.stdin is None:
        raise StreamSparqlError("is closed")
    return sys.stdin.buffer.read()


# -- values ----------------------------------------------------------------------------------------

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_MAX_MILLISECONDS = 1 << 62
_INTEGER = re.compile(r"-?[0-9]+")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|m|h|d)?")


def parse_duration(text: str) -> int:
    """Parse a duration (500ms, 10s, 1.5m, 1h, 2d) to milliseconds; they are the default unit.

    >>> parse_duration("500ms"), parse_duration("1.5m"), parse_duration("16.1s")
    (500, 90000, 16100)
    >>> parse_duration("10")
    10
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(
            f"not a valid duration: {text!r}; write it as 500ms, 10s, 5m, 1h or 2d"
        )
    milliseconds = Decimal(match[1]) * _UNITS[match[2] or "ms"]
    if milliseconds > _MAX_MILLISECONDS:
        raise argparse.ArgumentTypeError(f"duration out of range: {text!r}")
    if milliseconds != int(milliseconds):
        raise argparse.ArgumentTypeError(f"not a whole number of milliseconds: {text!r}")
    return int(milliseconds)


def parse_whole_number(text: str) -> int:
    """Parse an integer from 0 to 999,999,999.

    >>> parse_whole_number("12")
    12
    """
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"not a whole number: {text!r}")
    return int(text)


def parse_positive_number(text: str) -> int:
    """Parse an integer from 1 to 999,999,999."""
    if not (number := parse_whole_number(text)):
        raise argparse.ArgumentTypeError("must be at least 1, not 0")
    return number


def parse_period(text: str) -> int:
    """Parse a duration that is longer than 0, the time between two reports."""
    if not (milliseconds := parse_duration(text)):
        raise argparse.ArgumentTypeError(f"must be longer than 0, not {text!r}")
    return milliseconds


def parse_instant(text: str) -> int:
    """Parse an instant to milliseconds since 1970: that number, or an ISO 8601 date and time.

    >>> parse_instant("1500"), parse_instant("1970-01-01T00:01:00Z")
    (1500, 60000)
    """
    if _INTEGER.fullmatch(text):
        if len(text) > 20 or abs(int(text)) > _MAX_MILLISECONDS:
            raise argparse.ArgumentTypeError(f"milliseconds since 1970 out of range: {text!r}")
        return int(text)
    from streamsparql.sources.stamps import stamp_of

    try:
        return stamp_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{error}; write milliseconds since 1970, or a time as 2026-01-31T12:00:00Z"
        ) from None


def files_by_name(
    arguments: Sequence[str], names: Sequence[str], option: str
) -> dict[str, list[str]]:
    """Group the files of `IRI=FILE` arguments by IRI, which can be omitted if there is one stream.

    Both IRIs and files may contain an equals sign: the names in the query determine the split.

    >>> files_by_name(["http://e.org/?a=b=x.nq"], ["http://e.org/?a=b"], "stream")
    {'http://e.org/?a=b': ['x.nq']}
    >>> files_by_name(["x.nq", "y.nq"], ["http://e.org/s"], "stream")
    {'http://e.org/s': ['x.nq', 'y.nq']}
    """
    files: dict[str, list[str]] = {}
    for text in arguments:
        name, file = _name_and_file(text, names, option)
        if not file:
            raise UsageError(f"--{option} {text}: missing file name")
        files.setdefault(name, []).append(file)
    return files


def split_name(text: str, names: Sequence[str]) -> tuple[str, str] | None:
    """Split `IRI=FILE` after one of the names; return None if it starts with none of them.

    >>> split_name("<urn:s>=x.nq", ["urn:s"]), split_name("x.nq", ["urn:s"])
    (('urn:s', 'x.nq'), None)
    """
    for name in sorted(names, key=len, reverse=True):
        for prefix in (f"{name}=", f"<{name}>="):
            if text.startswith(prefix):
                return name, text[len(prefix) :]
    return None


def _name_and_file(text: str, names: Sequence[str], option: str) -> tuple[str, str]:
    if parts := split_name(text, names):
        return parts
    if len(names) == 1 and option == "stream" and ("=" not in text or Path(text).exists()):
        return names[0], text
    name, equals, file = text.partition("=")
    known = ", ".join(f"<{each}>" for each in names)
    if equals:
        name = name.removeprefix("<").removesuffix(">")
        if option == "stream":
            raise SourceError(f"unknown stream <{name}>; the query reads {known or 'no stream'}")
        return name, file
    if option == "stream" and names:
        raise UsageError(f"--stream {text}: write IRI=FILE; the query reads {known}")
    if option == "stream":
        raise UsageError(
            f"--stream {text}: the query reads no stream; name one with FROM STREAM <iri>"
        )
    raise UsageError(f"--{option} {text}: write IRI=FILE")
