"""Spark on the command line: the command `prepare`, and the session of a command."""

from __future__ import annotations

import argparse
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from streamsparql.cli.common_options import Commands, duration_option
from streamsparql.cli.data_options import MASTER_HELP
from streamsparql.cli.summary import Summary

if TYPE_CHECKING:
    from streamsparql.spark import SparkSession


def add_prepare(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `prepare`."""
    parser = commands.add_parser(
        "prepare",
        help="sort files by time once, for many runs on Spark",
        description="Sort the items of files by time with Spark, and write them as Parquet.",
        epilog="example: streamsparql prepare wind/*.nq -o wind.parquet",
    )
    add = parser.add_argument
    add("source", metavar="FILE", nargs="+", help="files and folders of a stream")
    add("-o", dest="folder", metavar="DIR", required=True, help="the folder to write to")
    add("--master", metavar="URL", help=MASTER_HELP)
    add("--max-delay", metavar="DUR", type=duration_option, help="how late items may arrive")
    add("--time-unit", choices=("s", "ms", "us", "ns"), metavar="UNIT", help="s, ms, us or ns")
    add("--time-zone", metavar="ZONE", help="of local times; default: UTC")
    add("--stamp-from", metavar="NAME", help="column or predicate with the timestamps")
    parser.set_defaults(run=_prepare)


def _prepare(options: argparse.Namespace) -> int:
    options.name = "streamsparql"
    with spark_session(options.master) as spark:
        from streamsparql.spark import prepare

        with Summary(None, quiet=False) as summary:
            result = prepare(
                spark,
                options.source,
                options.folder,
                max_delay=options.max_delay,
                time_unit=options.time_unit,
                time_zone=options.time_zone,
                stamp_from=options.stamp_from,
            )
            summary.show_rejects(result.rejects, result.notes)
    return 0


@contextmanager
def spark_session(master: str | None, quiet: bool = False) -> Iterator[SparkSession]:
    """Open a Spark session for the command; errors of Spark become errors of this package.

    Without a terminal, and unless `quiet`, long runs print their progress.

    An interrupt ends the command at once: the process of Spark ends with this one.
    """
    from streamsparql.spark.failures import raising_spark_errors
    from streamsparql.spark.progress import progress_lines
    from streamsparql.spark.sessions import session

    logging.getLogger().addHandler(logging.NullHandler())  # py4j logs each interrupt
    spark = session(master)
    if threading.current_thread() is threading.main_thread():
        # In place of pyspark's handler, which only stops Spark.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupted = False
    try:
        with raising_spark_errors(), nullcontext() if quiet else progress_lines(spark):
            yield spark
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        if not interrupted:
            with suppress(Exception):
                spark.stop()
