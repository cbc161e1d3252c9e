"""The command `demo`: a wind park made on the spot, shown, left as files, or told live."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsparql.cli.data_options import MASTER
from streamsparql.cli.options import Commands, UsageError, number, whole
from streamsparql.errors import EngineError

if TYPE_CHECKING:
    from streamsparql.windpark import WindPark

TURBINES, MINUTES, SEED, SPEED = 8, 120, 7, 60.0
_LARGEST = 20_000_000
EXAMPLES = """\
examples:
  streamsparql demo
  streamsparql demo --write park
  streamsparql demo --pour | streamsparql run park/now.rq --stream - --every 1m"""


def add_demo(commands: Commands[argparse.ArgumentParser]) -> None:
    """Adds the command `demo`."""
    parser = commands.add_parser(
        "demo",
        help="show queries over a wind park, made on the spot",
        description="Shows what this is about, with a wind park that is made on the spot.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument_group("what to do with the park, but to show it").add_argument
    add("--write", metavar="DIR", help="leave its data and queries there, to play with")
    add("--pour", action="store_true", help="print it as N-Quads, as time goes by")
    add("--speed", metavar="X", type=_speed, help="how fast; default: 60, a minute in a second")
    add = parser.add_argument_group("the park").add_argument
    add("--turbines", metavar="N", type=number, default=TURBINES, help=f"default: {TURBINES}")
    add("--minutes", metavar="N", type=number, help=f"default: {MINUTES}; --pour goes on for ever")
    add("--seed", metavar="N", type=whole, default=SEED, help=f"another park; default: {SEED}")
    add = parser.add_argument_group("engine").add_argument
    add("--engine", choices=("embedded", "spark"), default="embedded", help="default: embedded")
    add("--master", metavar="URL", help=MASTER)
    parser.set_defaults(run=_demo)


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0.001 <= speed <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no speed: 1 is that of the clock, 60 faster")
    return speed


def _demo(options: argparse.Namespace) -> int:
    _check(options)
    from streamsparql.windpark import wind_park

    park = wind_park(options.turbines, options.minutes or MINUTES, options.seed)
    if options.pour:
        _pour(park, options.speed or SPEED, options.minutes)
    elif options.write is not None:
        _write(park, options.write)
    else:
        from streamsparql.cli.tour import Tour

        with _engine(park, options) as given:
            Tour(park, given).show()
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.pour and options.write is not None:
        raise UsageError("--write leaves files and --pour a stream: choose one of them")
    if options.write == "":
        raise UsageError("--write: no folder is given")
    minutes = 1 if options.pour else options.minutes or MINUTES
    if options.turbines * minutes > _LARGEST:
        raise UsageError(
            f"{options.turbines:,} turbines over {minutes:,} minutes are too much to show or to"
            f" write: {_LARGEST:,} of one by the other is the most"
        )
    if options.speed is not None and not options.pour:
        raise UsageError("--speed goes with --pour")
    if options.engine == "spark" and (options.pour or options.write is not None):
        raise UsageError("--engine spark is for what is shown, not for --pour and --write")
    if options.engine != "spark" and options.master is not None:
        raise UsageError("--master goes with --engine spark")
    if sys.stdout is None:
        raise EngineError("standard output is closed")


@contextmanager
def _engine(park: WindPark, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The arguments of `Query.run`: on Spark the park is files, as it would be in earnest."""
    if options.engine == "embedded":
        yield {"streams": park.to_arrow(), "graph": park.graph}
        return
    from tempfile import TemporaryDirectory

    from streamsparql.cli.spark_commands import command_session

    with (
        TemporaryDirectory(prefix="streamsparql-") as folder,
        command_session(options.master) as spark,
    ):
        park.write(folder)
        yield {
            "streams": f"{folder}/wind.nq",
            "graph": f"{folder}/turbines.ttl",
            "engine": "spark",
            "spark": spark,
        }


def _write(park: WindPark, folder: str) -> None:
    from streamsparql.windpark.folder import commands

    park.write(folder)
    print(f"The park is in {folder}, and README.txt there says what the files are. Try:")
    for purpose, command in commands(str(Path(folder))).items():
        print(f"\n# {purpose}\n{command}")


def _pour(park: WindPark, speed: float, minutes: int | None) -> None:
    """Writes the park's items when it is time; what is due together goes out together."""
    from streamsparql.windpark import MINUTE
    from streamsparql.windpark.folder import quads

    begun, told = time.monotonic(), park.live()
    end = None if minutes is None else park.start + minutes * MINUTE
    for item in told:
        if end is not None and item[3] >= end:
            break
        ahead = (item[3] - park.start) / 1000 / speed - (time.monotonic() - begun)
        if ahead > 0:
            sys.stdout.flush()
            time.sleep(ahead)
        sys.stdout.writelines(quads([item]))
    sys.stdout.flush()
