"""The command `demo`: simulated data, shown with queries, written to files, or streamed live."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsparql.cli.common_options import (
    Commands,
    UsageError,
    parse_positive_number,
    parse_whole_number,
)
from streamsparql.cli.data_options import MASTER_HELP
from streamsparql.errors import EngineError

if TYPE_CHECKING:
    from streamsparql.windpark import WindPark

TURBINES, MINUTES, SEED, SPEED = 8, 120, 7, 60.0
_MAX_TURBINE_MINUTES = 20_000_000
_EXAMPLES = """\
examples:
  streamsparql demo
  streamsparql demo --write park
  streamsparql demo --only tsunami
  streamsparql demo --pour | streamsparql run park/now.rq --stream - --every 1m"""


def add_demo(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `demo`."""
    parser = commands.add_parser(
        "demo",
        help="show queries over a simulated wind park",
        description="Show what streamsparql does, with queries over simulated data.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument_group("what to show").add_argument
    note = "the wind park (default), or events: tsunamis in the readings of a gauge"
    add("--only", choices=("park", "tsunami"), default="park", help=note)
    add = parser.add_argument_group("instead of showing it").add_argument
    add("--write", metavar="DIR", help="write the data and queries to this folder")
    add("--pour", action="store_true", help="print the park as N-Quads, paced by the clock")
    add(
        "--speed", metavar="X", type=_parse_speed, help="speed-up; default: 60, a minute per second"
    )
    add = parser.add_argument_group("the park").add_argument
    positive = partial(add, metavar="N", type=parse_positive_number)
    positive("--turbines", help=f"default: {TURBINES}")
    positive("--minutes", help=f"default: {MINUTES}; with --pour: endless")
    seed = f"seed of the simulation; default: {SEED}"
    add("--seed", metavar="N", type=parse_whole_number, default=SEED, help=seed)
    add = parser.add_argument_group("engine").add_argument
    add("--engine", choices=("embedded", "spark"), default="embedded", help="default: embedded")
    add("--master", metavar="URL", help=MASTER_HELP)
    parser.set_defaults(run=_demo)


def _parse_speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0.001 <= speed <= 1e9:
        raise argparse.ArgumentTypeError(
            f"not a valid speed: {text!r}; 1 is real time, 60 a minute per second"
        )
    return speed


def _demo(options: argparse.Namespace) -> int:
    _check(options)
    if options.only == "tsunami":
        return _demo_tsunami(options)
    from streamsparql.windpark import wind_park

    park = wind_park(options.turbines or TURBINES, options.minutes or MINUTES, options.seed)
    if options.pour:
        _pour(park, options.speed or SPEED, options.minutes)
    elif options.write is not None:
        _write(park, options.write)
    else:
        from streamsparql.cli.tour import Tour

        with _on_engine(park, options) as arguments:
            Tour(park, arguments).show()
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.pour and options.write is not None:
        raise UsageError(
            "--write and --pour exclude each other: --write writes files, --pour prints a stream"
        )
    if options.write == "":
        raise UsageError("--write: missing folder name")
    minutes = 1 if options.pour else options.minutes or MINUTES
    turbines = options.turbines or TURBINES
    if turbines * minutes > _MAX_TURBINE_MINUTES:
        raise UsageError(
            f"--turbines {turbines} --minutes {minutes}: the park is too large;"
            f" turbines times minutes must not exceed {_MAX_TURBINE_MINUTES:,}"
        )
    if options.speed is not None and not options.pour:
        raise UsageError("--speed requires --pour")
    if options.engine == "spark" and (options.pour or options.write is not None):
        raise UsageError("--engine spark cannot be combined with --pour or --write")
    if options.engine != "spark" and options.master is not None:
        raise UsageError("--master requires --engine spark")
    if options.only == "tsunami":
        _check_tsunami(options)
    if sys.stdout is None:
        raise EngineError("standard output is closed")


def _check_tsunami(options: argparse.Namespace) -> None:
    """Refuse the options that are about the wind park."""
    for name in ("turbines", "minutes", "pour"):
        if getattr(options, name):
            raise UsageError(f"--only tsunami cannot be combined with --{name}, a wind park's")


def _demo_tsunami(options: argparse.Namespace) -> int:
    from streamsparql.tsunami import Gauge

    gauge = Gauge(seed=options.seed)
    if options.write is None:
        from streamsparql.cli.tsunami_tour import TsunamiTour

        with _engine(options) as arguments:
            TsunamiTour(gauge, arguments).show()
    else:
        gauge.write(options.write)
        print(f"The readings, queries and rules were written to {options.write}.")
    return 0


@contextmanager
def _on_engine(park: WindPark, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `Query.run`; Spark reads the park from files, as in production."""
    if options.engine == "embedded":
        yield {"streams": park.to_arrow(), "graph": park.graph}
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="streamsparql-") as folder, _engine(options) as engine:
        park.write(folder)
        yield {"streams": f"{folder}/wind.nq", "graph": f"{folder}/turbines.ttl", **engine}


@contextmanager
def _engine(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `Query.run` that choose the engine."""
    if options.engine == "embedded":
        yield {}
        return
    from streamsparql.cli.spark_commands import spark_session

    with spark_session(options.master) as spark:
        yield {"engine": "spark", "spark": spark}


def _write(park: WindPark, folder: str) -> None:
    from streamsparql.windpark.folder import example_commands

    park.write(folder)
    print(f"The park was written to {folder}; README.txt there describes its files. Try:")
    for purpose, command in example_commands(str(Path(folder))).items():
        print(f"\n# {purpose}\n{command}")


def _pour(park: WindPark, speed: float, minutes: int | None) -> None:
    """Print the items of a park when they are due, those of one instant together."""
    from streamsparql.windpark import MINUTE
    from streamsparql.windpark.folder import quad_lines

    began = time.monotonic()
    end = None if minutes is None else park.start + minutes * MINUTE
    for item in park.live():
        if end is not None and item[3] >= end:
            break
        ahead = (item[3] - park.start) / 1000 / speed - (time.monotonic() - began)
        if ahead > 0:
            sys.stdout.flush()
            time.sleep(ahead)
        sys.stdout.writelines(quad_lines([item]))
    sys.stdout.flush()
