"""What the commands have in common: the options of a query, and the values that options take."""

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
MEASURED = ("all", "physical", "spark")
"""The stages that a run measures."""
DIALECT_CHOICES = ("auto", "streaming", "csparql", "cqels", "epsparql", "rspql")

Commands = argparse._SubParsersAction  # the type that add_subparsers gives has no other name


def check_output(file: str | None) -> None:
    """An error where there is nothing to write to: no file is named, and no output is open."""
    if file is None and sys.stdout is None:
        raise StreamSparqlError("standard output is closed: name a file with -o")


class UsageError(StreamSparqlError):
    """The command line is wrong in a way that its parser cannot see."""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help that fits a screen: descriptions as they are written, one line for each option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=25)


def compile_options(
    parser: argparse.ArgumentParser, query: str | None = None, does: str = "how the query is read"
) -> None:
    """The options of a command that compiles a query; with the query itself, and help, if told.

    They stand below what the command does.
    """
    group = parser.add_argument_group(does)
    add = group.add_argument
    if query:
        add("query", metavar="QUERY", help=query)
        add("-h", "--help", action="help", help="show this, and exit")
    names = ", ".join(DIALECT_CHOICES[1:])
    add("--dialect", choices=DIALECT_CHOICES, metavar="NAME", default="auto", help=names)
    add("--base", metavar="IRI", help="resolves relative IRIs")
    add("--origin", metavar="T", type=moment, default=0, help="where windows' grids start")
    add("--pedantic", action="store_true", help="constructs of another dialect are errors")


def compiled(name: str, options: argparse.Namespace) -> Query:
    """The query in a file, or in standard input where the name is `-`."""
    options.name = "standard input" if name == "-" else name
    return compiled_text(text_of(name), options)


def compiled_text(text: str, options: argparse.Namespace) -> Query:
    """The query that a text is, as the options say that it is read."""
    from streamsparql.query import compile

    return compile(
        text,
        dialect=options.dialect,
        base=options.base,
        origin=options.origin,
        pedantic=options.pedantic,
    )


def text_of(name: str) -> str:
    """The text in a file, or in standard input where the name is `-`."""
    try:
        return (_standard_input() if name == "-" else Path(name).read_bytes()).decode("utf-8")
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SourceError(f"is not UTF-8 text (byte {error.start})") from None


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise StreamSparqlError("is closed")
    return sys.stdin.buffer.read()


# -- values ----------------------------------------------------------------------------------------

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST = 1 << 62
_WHOLE = re.compile(r"-?[0-9]+")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|m|h|d)?")


def duration(text: str) -> int:
    """The milliseconds of a duration: 500ms, 10s, 1.5m, 1h, 2d; a bare number is milliseconds.

    >>> duration("500ms"), duration("1.5m"), duration("16.1s"), duration("10")
    (500, 90000, 16100, 10)
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: 500ms, 10s, 5m, 1h or 2d")
    milliseconds = Decimal(found[1]) * _UNITS[found[2] or "ms"]
    if milliseconds > _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than time is here")
    if milliseconds != int(milliseconds):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of milliseconds")
    return int(milliseconds)


def whole(text: str) -> int:
    """A whole number.

    >>> whole("12")
    12
    """
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, as 12 is")
    return int(text)


def number(text: str) -> int:
    """A whole number that is not nought."""
    if not (found := whole(text)):
        raise argparse.ArgumentTypeError("there has to be one at least")
    return found


def period(text: str) -> int:
    """A duration that is more than nothing."""
    if not (found := duration(text)):
        raise argparse.ArgumentTypeError(f"{text!r}: a report comes every so often, not at once")
    return found


def moment(text: str) -> int:
    """The milliseconds since 1970 of an instant: that number, or a date and time as in ISO 8601.

    >>> moment("1500"), moment("1970-01-01T00:01:00Z")
    (1500, 60000)
    """
    if _WHOLE.fullmatch(text):
        if len(text) > 20 or abs(int(text)) > _LONGEST:
            raise argparse.ArgumentTypeError(f"{text!r} is no milliseconds since 1970: too many")
        return int(text)
    from streamsparql.sources.stamps import stamp_of

    try:
        return stamp_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{error}: give milliseconds, or a time as 2026-01-31T12:00:00Z"
        ) from None


def sources(given: Sequence[str], names: Sequence[str], what: str) -> dict[str, list[str]]:
    """The files by IRI, of `IRI=FILE` as options have them. A sole name can be left out.

    Both IRIs and files may have an equals sign: what the query names decides.

    >>> sources(["http://e.org/?a=b=x.nq"], ["http://e.org/?a=b"], "stream")
    {'http://e.org/?a=b': ['x.nq']}
    >>> sources(["x.nq", "y.nq"], ["http://e.org/s"], "stream")
    {'http://e.org/s': ['x.nq', 'y.nq']}
    """
    found: dict[str, list[str]] = {}
    for text in given:
        name, file = _named(text, names, what)
        if not file:
            raise UsageError(f"--{what} {text}: no file is given")
        found.setdefault(name, []).append(file)
    return found


def split(text: str, names: Sequence[str]) -> tuple[str, str] | None:
    """The name before the equals sign and what follows, where it is one of the names.

    >>> split("<urn:s>=x.nq", ["urn:s"]), split("x.nq", ["urn:s"])
    (('urn:s', 'x.nq'), None)
    """
    for name in sorted(names, key=len, reverse=True):
        for written in (f"{name}=", f"<{name}>="):
            if text.startswith(written):
                return name, text[len(written) :]
    return None


def _named(text: str, names: Sequence[str], what: str) -> tuple[str, str]:
    if found := split(text, names):
        return found
    if len(names) == 1 and what == "stream" and ("=" not in text or Path(text).exists()):
        return names[0], text
    name, equals, file = text.partition("=")
    if equals:
        name = name.removeprefix("<").removesuffix(">")
        known = ", ".join(f"<{known}>" for known in names)
        if what == "stream":
            raise SourceError(f"the query does not read the stream <{name}>, but {known or 'none'}")
        return name, file
    if what == "stream" and names:
        known = ", ".join(f"<{known}>" for known in names)
        raise UsageError(f"--{what} {text}: write IRI=FILE, for the query reads {known}")
    if what == "stream":
        raise UsageError(f"--stream {text}: the query reads no stream: FROM STREAM <iri> names one")
    raise UsageError(f"--{what} {text}: write IRI=FILE")
