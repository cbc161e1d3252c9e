"""Spark on the command line: the command `prepare`, and the session of a command."""

from __future__ import annotations

import argparse
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from streamsparql.cli.data_options import MASTER
from streamsparql.cli.options import Commands, duration
from streamsparql.cli.summary import Summary

if TYPE_CHECKING:
    from streamsparql.spark import SparkSession


def add_prepare(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `prepare`."""
    parser = commands.add_parser(
        "prepare",
        help="sort files by time, once, for many runs on Spark",
        description="Write the items of files as Parquet in order of time, with Spark.",
        epilog="example: streamsparql prepare wind/*.nq -o wind.parquet",
    )
    add = parser.add_argument
    add("source", metavar="FILE", nargs="+", help="files and folders of one stream")
    add("-o", dest="folder", metavar="DIR", required=True, help="the folder to write")
    add("--master", metavar="URL", help=MASTER)
    add("--max-delay", metavar="DUR", type=duration, help="items later than this are rejected")
    parser.set_defaults(run=_prepare)


def _prepare(options: argparse.Namespace) -> int:
    options.name = "streamsparql"
    with command_session(options.master) as spark:
        from streamsparql.spark import prepare

        with Summary(None, quiet=False) as summary:
            files = prepare(spark, options.source, options.folder, max_delay=options.max_delay)
            summary.tell_rejects(files.rejects, None)
    return 0


@contextmanager
def command_session(master: str | None) -> Iterator[SparkSession]:
    """Open a session that ends with the command; errors of Spark become an `EngineError`.

    An interrupt ends the command at once: Spark's process ends with this one.
    """
    from streamsparql.spark.failures import raising_spark_errors
    from streamsparql.spark.sessions import session

    logging.getLogger().addHandler(logging.NullHandler())  # py4j logs each interrupt
    spark = session(master)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # pyspark's asks Spark to stop
    interrupted = False
    try:
        with raising_spark_errors():
            yield spark
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        if not interrupted:
            with suppress(Exception):
                spark.stop()
