"""The commands that read data: `run` and `prepare`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, dropwhile, islice
from typing import IO, TYPE_CHECKING, Any

from streamsparql.cli.options import (
    Commands,
    UsageError,
    compile_options,
    compiled,
    duration,
    moment,
    sources,
)
from streamsparql.errors import EngineError, SourceError, StreamSparqlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamsparql.query import Query
    from streamsparql.sources import Reject

OUTPUTS = ("table", "csv", "jsonl", "nq")
REPORTS = ("rstream", "istream", "dstream")
_SHOWN_REJECTS = 3
_T = "T is milliseconds since 1970 or a time as 2026-01-31T12:00:00Z, DUR as 500ms, 10s, 5m, 1h."
_MASTER = "Spark's master: local[2], spark://host:7077, yarn, sc://host; default: all cores here"


def add_run(commands: Commands[argparse.ArgumentParser]) -> None:
    """Adds the command `run`."""
    parser = commands.add_parser(
        "run",
        help="answer a query over files",
        description=f"Answers a query over files. {_T}",
        epilog="example: streamsparql run query.rq --stream http://example.org/wind=wind.nq",
    )
    add = parser.add_argument
    add("query", metavar="QUERY", help="a file, or - for standard input")
    repeated = partial(add, metavar="IRI=FILE", action="append", default=[])
    repeated("--stream", help="a stream; IRI= may be left out where there is one")
    add("--graph", metavar="FILE", help="the static default graph")
    repeated("--named", help="a static graph")
    add("--engine", choices=("embedded", "spark"), default="embedded", help="default: embedded")
    add("--master", metavar="URL", help=_MASTER)
    add("--slabs", metavar="N", type=_count, help="how many parts Spark cuts time into")
    add("--report", choices=REPORTS, help="snapshots at instants, not rows with their validity")
    add("--every", metavar="DUR", type=duration, help="from one report to the next")
    add("--from", dest="start", metavar="T", type=moment, help="results from then on")
    add("--until", dest="end", metavar="T", type=moment, help="results before then")
    add("--max-delay", metavar="DUR", type=duration, default=0, help="how late items may come")
    add("--strict", action="store_true", help="bad or late input is an error")
    add("--output", choices=OUTPUTS, default="table", help="default: table")
    add("-o", dest="file", metavar="FILE", help="write there instead of the screen")
    compile_options(parser)
    parser.set_defaults(run=_run)


def add_prepare(commands: Commands[argparse.ArgumentParser]) -> None:
    """Adds the command `prepare`."""
    parser = commands.add_parser(
        "prepare",
        help="order files by time, once, for many runs on Spark",
        description="Writes the items of files in the order of time, as Parquet, with Spark.",
        epilog="example: streamsparql prepare wind/*.nq -o wind.parquet",
    )
    add = parser.add_argument
    add("source", metavar="FILE", nargs="+", help="files and folders of one stream")
    add("-o", dest="folder", metavar="DIR", required=True, help="the folder to write")
    add("--master", metavar="URL", help=_MASTER)
    add("--max-delay", metavar="DUR", type=duration, help="what comes later than that is late")
    parser.set_defaults(run=_prepare)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of slabs")
    return int(text)


# -- run -------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    _check_options(options)
    query = compiled(options.query, options)
    options.name = "streamsparql"
    if options.output == "nq" and query.form not in ("construct", "describe"):
        raise UsageError(f"--output nq is for triples, and this is {query.form.upper()}: use jsonl")
    streams = sources(options.stream, query.streams, "stream")
    if missing := [name for name in query.streams if name not in streams]:
        raise SourceError(
            f"the query reads the stream <{missing[0]}>: give --stream {missing[0]}=FILE"
        )
    given: dict[str, Any] = {
        "streams": streams,
        "graph": options.graph,
        "graphs": sources(options.named, query.graphs, "named"),
        "start": options.start,
        "end": options.end,
        "strict": options.strict,
        "max_delay": options.max_delay,
    }
    if options.engine == "embedded":
        _answer(query, given, options)
    else:
        with session(options.master) as spark:
            given.update(engine="spark", spark=spark, slabs=options.slabs)
            _answer(query, given, options)
    return 0


def _check_options(options: argparse.Namespace) -> None:
    if options.engine != "spark":
        for name in ("master", "slabs"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name} goes with --engine spark")
    files = [options.query, options.graph, *options.stream, *options.named]
    if sum(file is not None and (file == "-" or file.endswith("=-")) for file in files) > 1:
        raise UsageError("standard input can be read once: only one of the files can be -")


def _answer(query: Query, given: dict[str, Any], options: argparse.Namespace) -> None:
    """Runs the query and writes what it gives."""
    from streamsparql.cli.rows import Lines, writers

    result = query.run(**given)
    lines = Lines(query, result, options.report, options.every)
    live = any(source == "-" for source in given["streams"].values())
    rows = iter(lines)
    first = list(islice(rows, 1))  # a run that fails at once leaves an older file alone
    with _output(options.file) as file:
        write = writers[options.output](file, lines)
        for line in chain(first, rows):
            write.line(line)
            if live:
                write.flush()
        write.flush()
    _tell(result.late)


@contextmanager
def _output(name: str | None) -> Iterator[IO[str]]:
    if name is None:
        if sys.stdout is None:
            raise EngineError("standard output is closed: name a file with -o")
        yield sys.stdout
        return
    try:
        with open(name, "w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise StreamSparqlError(f"cannot write {name}: {error.strerror}") from None


def _tell(rejects: Sequence[Reject]) -> None:
    """Says on standard error what of the input is not part of the answer."""
    if not rejects or sys.stderr is None:
        return
    items = "item is" if len(rejects) == 1 else "items are"
    print(f"{len(rejects):,} {items} not part of the answer:", file=sys.stderr)
    for reject in rejects[:_SHOWN_REJECTS]:
        print(f"  {reject}", file=sys.stderr)
    if len(rejects) > _SHOWN_REJECTS:
        print(f"  … and {len(rejects) - _SHOWN_REJECTS:,} more", file=sys.stderr)


# -- Spark -----------------------------------------------------------------------------------------


def _prepare(options: argparse.Namespace) -> int:
    options.name = "streamsparql"
    with session(options.master) as spark:
        from streamsparql.spark import prepare

        made = prepare(spark, options.source, options.folder, max_delay=options.max_delay)
        _tell(made.rejects)
    return 0


@contextmanager
def session(master: str | None) -> Iterator[SparkSession]:
    """A session that ends with the command; what Spark raises in it becomes an error of ours."""
    from streamsparql.spark.sessions import session

    spark = session(master)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    interrupted = False
    try:
        yield spark
    except PySparkException as error:
        raise EngineError(f"Spark: {told(str(error))}") from error
    except Py4JError as error:
        raise EngineError(f"Spark's Java process does not answer: {told(str(error))}") from error
    except KeyboardInterrupt:
        interrupted = True  # the Java process ends with this one
        raise
    finally:
        if not interrupted:
            with suppress(Exception):
                spark.stop()


def told(message: str) -> str:
    """What an error of Spark says, without the stack of the worker that raised it.

    >>> told('It failed.\\nTraceback (most recent call last):\\n  File "a", line 1\\nKeyError: 1')
    'KeyError: 1'
    >>> told("[PATH_NOT_FOUND] no such path. SQLSTATE: 42K03")
    '[PATH_NOT_FOUND] no such path. SQLSTATE: 42K03'
    """
    lines = [line for line in message.splitlines() if line.strip()]
    frames = [n for n, line in enumerate(lines) if line.startswith("  File ")]
    if frames:
        below = dropwhile(lambda line: line.startswith("  "), lines[frames[-1] :])
        return "\n".join(below).removeprefix("streamsparql.errors.")
    return lines[0] if lines else "an error that says nothing"
