"""The command `head`: what the first rows of a file show, and a mapping of them."""

from __future__ import annotations

import argparse
import sys

from streamsparql.cli.common_options import (
    Commands,
    HelpFormatter,
    UsageError,
    check_output,
    parse_positive_number,
)
from streamsparql.cli.data_options import CSV_DELIMITERS
from streamsparql.connectors.urls import scheme_of

_EXAMPLES = """\
examples:
  streamsparql head traffic.csv
  streamsparql head traffic.csv --query > query.rq
  streamsparql run query.rq --stream traffic.csv --auto"""


def add_head(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `head`."""
    parser = commands.add_parser(
        "head",
        help="show the columns or predicates of a file, and a mapping",
        description="Show the first rows of a file, what they are, and how to query them.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="a file or folder, or - for standard input")
    add("-n", dest="rows", metavar="N", type=parse_positive_number, default=5, help="rows shown")
    add("--mapping", action="store_true", help="print the mapping alone")
    add("--query", action="store_true", help="print the query to begin with alone")
    add("--namespace", metavar="IRI", help="of the predicates of the mapping")
    add("--no-header", action="store_true", help="the CSV has none: columns are a b c ..")
    add("--delimiter", metavar="C", help="separator of the CSV, such as ; or tab")
    add("--time-unit", choices=("s", "ms", "us", "ns"), metavar="UNIT", help="s, ms, us or ns")
    add("--time-zone", metavar="ZONE", help="of local times; default: UTC")
    add("--stamp-from", metavar="NAME", help="column, path or predicate with the timestamps")
    parser.set_defaults(run=_head)


def _head(options: argparse.Namespace) -> int:
    from streamsparql.cli.summary import on_command_line
    from streamsparql.look.head import head
    from streamsparql.text.visible import visible

    if options.mapping and options.query:
        raise UsageError("--mapping and --query print one thing alone; leave out one of the two")
    if scheme_of(options.file) is not None:
        raise UsageError(f"head reads files; write a sample of {options.file} to one")
    check_output(None)
    options.name = "streamsparql"
    shown = head(
        options.file,
        rows=options.rows,
        header=False if options.no_header else None,
        delimiter=CSV_DELIMITERS.get(options.delimiter, options.delimiter),
        namespace=options.namespace,
        time_unit=options.time_unit,
        time_zone=options.time_zone,
        stamp_from=options.stamp_from,
        option=on_command_line,
    )
    if options.mapping and shown.mapping is None:
        raise UsageError(f"--mapping: {options.file} needs none: its triples are read as they are")
    text = shown.mapping if options.mapping else shown.query if options.query else str(shown)
    lines = (text or "").rstrip("\n").split("\n")
    print(*map(visible, lines), sep="\n", file=sys.stdout)
    return 0
