"""Options that several commands share, such as those of a query, and parsers of their values."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any

from streamsparql.connectors.urls import scheme_of
from streamsparql.errors import SourceError, StreamSparqlError
from streamsparql.limits import Limits
from streamsparql.overriding import override
from streamsparql.run.time_arguments import parse_instant
from streamsparql.text.durations import parse_duration
from streamsparql.text.files import decode_utf8, read_utf8

if TYPE_CHECKING:
    from streamsparql.query import Query

REPORTS = ("rstream", "istream", "dstream")
MEASURED_STAGES = ("all", "physical", "spark")
"""The stages that `--analyze` can show: those that run, and so are measured."""
DIALECT_CHOICES = ("auto", "streaming", "csparql", "cqels", "epsparql", "rspql")
ENTAILMENT_CHOICES = ("rdfs",)

Commands = argparse._SubParsersAction  # the return type of add_subparsers has no public name


def check_output(file: str | None) -> None:
    """Raise an error if there is nowhere to write: no file, and standard output is closed."""
    if file is None and sys.stdout is None:
        raise StreamSparqlError("standard output is closed; name a file with -o")


class UsageError(StreamSparqlError):
    """A mistake on the command line that argparse cannot detect. The exit status is 2."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help that fits a screen: descriptions are kept as written, an option takes one line.

    Options that `add_together` added share an entry.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=27)

    @override
    def add_argument(self, action: argparse.Action) -> None:
        if not hasattr(action, "shown_with"):
            super().add_argument(action)

    @override
    def _format_action_invocation(self, action: argparse.Action) -> str:
        together = [action, *getattr(action, "followed_by", ())]
        return ", ".join(map(super()._format_action_invocation, together))

    @override
    def _format_action(self, action: argparse.Action) -> str:
        invocation = self._format_action_invocation(action)
        if len(invocation) < _LONG_INVOCATION:
            return super()._format_action(action)
        text = fill(f"{invocation}   {self._expand_help(action)}", self._width - 2)
        return indent(text, "  ") + "\n"

    @override
    def _expand_help(self, action: argparse.Action) -> str:
        shared: str | None = getattr(action, "shared_help", None)
        return super()._expand_help(action) if shared is None else shared


_LONG_INVOCATION = 24


def add_together(shared_help: str, first: argparse.Action, *others: argparse.Action) -> None:
    """Let options share an entry of the help, with this text."""
    first.__dict__.update(followed_by=others, shared_help=shared_help)
    for other in others:
        other.__dict__["shown_with"] = first


def add_compile_options(
    parser: argparse.ArgumentParser,
    add_query: Callable[[argparse._ArgumentGroup], None] | None = None,
    title: str = "how the query is read",
) -> None:
    """Add the options of a command that compiles a query, as a group below `title`.

    `add_query` adds the query to the group, before --help; without it, the caller adds both.
    """
    group = parser.add_argument_group(title)
    add = group.add_argument
    if add_query:
        add_query(group)
        add("-h", "--help", action="help", help="show this help and exit")
    names = ", ".join(DIALECT_CHOICES[1:])
    add("--dialect", choices=DIALECT_CHOICES, metavar="NAME", default="auto", help=names)
    origin = "start of the window grids"
    add_together(
        "of relative IRIs in the query; of the window grids",
        add("--base", metavar="IRI", help="resolve relative IRIs against this one"),
        add("--origin", metavar="T", type=instant_option, default=0, help=origin),
    )
    add("--pedantic", action="store_true", help="reject constructs of other dialects")
    entailed = "rdfs: match what triples entail, too"
    rules = "CONSTRUCT rules of EP-SPARQL, one or several; may be repeated"
    add_together(
        "rdfs; CONSTRUCT rules of events",
        add("--entailment", choices=ENTAILMENT_CHOICES, metavar="NAME", help=entailed),
        add("--rules", action="append", default=[], metavar="FILE", help=rules),
    )


def compile_file(name: str, options: argparse.Namespace) -> Query:
    """Compile the query in a file, or on standard input if the name is `-`."""
    options.name = "standard input" if name == "-" else name
    return compile_text(read_text(name), options)


def show_warnings(query: Query, name: str, quiet: bool) -> None:
    """Print the warnings about a query of this name to standard error, unless `quiet`."""
    from streamsparql.query import new_warnings

    for warning in new_warnings(query):
        if not quiet and sys.stderr is not None:
            print(f"{name}: {warning}", file=sys.stderr)


def compile_text(text: str, options: argparse.Namespace) -> Query:
    """Compile a query with the options that `add_compile_options` added."""
    from streamsparql.query import compile

    return compile(
        text,
        dialect=options.dialect,
        base=options.base,
        origin=options.origin,
        pedantic=options.pedantic,
        entailment=options.entailment,
        rules=_read_rules(options),
        limits=limits_of(options),
    )


def _read_rules(options: argparse.Namespace) -> list[str]:
    """Read the files of rules; errors name the file."""
    texts = []
    for name in options.rules:
        try:
            texts.append(read_text(name))
        except StreamSparqlError as error:
            raise type(error)(f"{name}: {error}") from None
    return texts


def limits_of(options: argparse.Namespace) -> Limits | None:
    """Return the limits that options set; None without any."""
    chosen = {name: getattr(options, f"{option}_limit", None) for name, option in LIMITS.items()}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    return Limits(**chosen) if chosen else None


LIMITS = {"time": "time", "memory": "memory", "rows": "row", "state": "state", "string": "string"}
"""The limits that options set, with the names of the options."""


def read_text(name: str) -> str:
    """Read the UTF-8 text in a file, or on standard input if the name is `-`."""
    if name != "-":
        try:
            return read_utf8(name)
        except SourceError as error:
            raise SourceError(f"{error}{near_file(name)}") from None
    if sys.stdin is None:
        raise StreamSparqlError("is closed")
    return decode_utf8(sys.stdin.buffer.read())


def near_file(name: str) -> str:
    """Return a hint with the file that a name of a missing one resembles; empty if there is none.

    >>> near_file("nowhere/at/all.rq")
    ''
    """
    path = Path(name)
    try:
        inside = [] if path.exists() else path.parent.iterdir()
        others = [other.name for other in inside if other.suffix == path.suffix]
    except OSError:
        return ""
    near = get_close_matches(path.name, others, 1, 0.6)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""


# -- values ----------------------------------------------------------------------------------------

_LARGEST_SIZE = 1 << 62
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(?:([KMGT])(I)?)?B?", re.I)


def duration_option(text: str) -> int:
    """Parse a duration (500ms, 10s, 1.5m, 1h, 2d, PT5S) to milliseconds, the default unit.

    >>> duration_option("500ms"), duration_option("16.1s"), duration_option("10")
    (500, 16100, 10)
    """
    return _parsed(parse_duration, text)


def written_duration(milliseconds: int) -> str:
    """Return a duration as `duration_option` reads it.

    >>> written_duration(90_000), written_duration(7_200_000), written_duration(1_500)
    ('90s', '2h', '1500ms')
    """
    units = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}
    for unit, size in units.items():
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def parse_delay(text: str) -> int | str:
    """Parse the bound on disorder: a duration, or `auto`.

    >>> parse_delay("10s"), parse_delay("auto")
    (10000, 'auto')
    """
    return text if text == "auto" else duration_option(text)


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


def parse_seconds(text: str) -> float:
    """Parse a duration that is longer than 0 to seconds.

    >>> parse_seconds("1.5m")
    90.0
    """
    return period_option(text) / 1000


def parse_size(text: str) -> int:
    """Parse a number of bytes: 500MB, 1.5GB or 2GiB.

    >>> parse_size("1.5GB"), parse_size("2KiB"), parse_size("7")
    (1500000000, 2048, 7)
    """
    match = _SIZE.fullmatch(text.strip())
    size = Decimal(0)
    if match is not None:
        base = 1024 if match[3] else 1000
        size = Decimal(match[1]) * base ** " KMGT".index((match[2] or " ").upper())
    if not 1 <= size <= _LARGEST_SIZE:
        raise argparse.ArgumentTypeError(
            f"not a valid size: {text!r}; write it as 500MB, 2GB or 1.5GiB"
        )
    return int(size)


def period_option(text: str) -> int:
    """Parse a duration that is longer than 0, the time between two reports."""
    if not (milliseconds := duration_option(text)):
        raise argparse.ArgumentTypeError(f"must be longer than 0, not {text!r}")
    return milliseconds


class Period(argparse.Action):
    """The action of `--every`: store the period, and whether it was written without a unit."""

    @override
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        try:
            setattr(namespace, self.dest, period_option(values))
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        namespace.bare_period = values.strip().isdigit()


def instant_option(text: str) -> int:
    """Parse an instant to milliseconds since 1970: that number, or an ISO 8601 date and time.

    >>> instant_option("1500"), instant_option("1970-01-01T00:01:00Z")
    (1500, 60000)
    """
    return _parsed(parse_instant, text)


def _parsed(parse: Callable[[str], int], text: str) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


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


def _is_live(text: str) -> bool:
    """Return whether a text is a URL of a live source, and no `IRI=FILE`.

    >>> _is_live("kafka://host/t?format=json"), _is_live("http://example.org/s=x.nq")
    (True, False)
    """
    before = text.partition("=")[0]
    return scheme_of(text) is not None and (
        "?" in before or scheme_of(text) not in ("http", "https")
    )


def _name_and_file(text: str, names: Sequence[str], option: str) -> tuple[str, str]:
    if parts := split_name(text, names):
        return parts
    if len(names) == 1 and option == "stream":
        if "=" not in text or _is_live(text) or Path(text).exists():
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
